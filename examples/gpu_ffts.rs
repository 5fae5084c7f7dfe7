//! Transforms of whole grids on a GPU by this library and by cuFFT: `cargo run --release --example gpu_ffts`, with
//! libcufft on the loader's path.
//!
//! This library transforms from an oversampled grid to the image and back. It skips lines that are zero or are not
//! needed, and crops, pads and corrects in the same passes. cuFFT transforms the whole grid. A program that uses cuFFT
//! would need further passes to crop, pad and correct; these are not timed. Single precision. Times are medians, in
//! microseconds per grid. If the last column is below 1, this library is faster.

use libloading::Library;
use recon::backend::cuda::fft::GridFft;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::runtime::{Context, Stream};
use recon::{Complex, Error, ErrorKind, Result};
use std::ffi::{c_int, c_void};
use std::time::Instant;

const RUNS: usize = 21;
const TIMES: usize = 20;
const C2C: c_int = 0x29;

/// A plan of cuFFT.
struct CuFft {
    library: Library,
    plan: c_int,
}

impl CuFft {
    /// Creates a plan for transforms of `arrays` grids on a stream.
    fn new(grid: &[usize], arrays: usize, stream: *mut c_void) -> Result<Self> {
        type PlanMany = unsafe extern "C" fn(
            *mut c_int,
            c_int,
            *mut c_int,
            *mut c_int,
            c_int,
            c_int,
            *mut c_int,
            c_int,
            c_int,
            c_int,
            c_int,
        ) -> c_int;
        let names = ["libcufft.so.12", "libcufft.so.11", "libcufft.so"];
        // SAFETY: loading cuFFT runs its initialisers only.
        let library = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
        let library = library.ok_or_else(|| failed(&format!("none of {} is there", names.join(", "))))?;
        // cuFFT's first axis is the slowest.
        let mut n: Vec<c_int> = grid.iter().rev().map(|&n| n as c_int).collect();
        let (each, null, mut plan) = (grid.iter().product::<usize>() as c_int, std::ptr::null_mut(), 0);
        // SAFETY: the functions have these parameters (cufft.h).
        let status = unsafe {
            let plan_many = library.get::<PlanMany>(b"cufftPlanMany").map_err(|e| failed(&e.to_string()))?;
            let rank = n.len() as c_int;
            plan_many(&mut plan, rank, n.as_mut_ptr(), null, 1, each, null, 1, each, C2C, arrays as c_int)
        };
        let cufft = CuFft { library, plan };
        cufft.check("planning", status)?;
        type SetStream = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
        // SAFETY: the function has these parameters; the stream outlives the plan.
        let status = unsafe {
            let set = cufft.library.get::<SetStream>(b"cufftSetStream").map_err(|e| failed(&e.to_string()))?;
            set(plan, stream)
        };
        cufft.check("taking the stream", status)?;
        Ok(cufft)
    }

    /// Queues the transform in place of the grids at this address.
    fn run(&self, address: u64, inverse: bool) -> Result<()> {
        type Exec = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_int) -> c_int;
        // SAFETY: the function has these parameters; arrays of the plan's size exist.
        let status = unsafe {
            let run = self.library.get::<Exec>(b"cufftExecC2C").map_err(|e| failed(&e.to_string()))?;
            run(self.plan, address as *mut c_void, address as *mut c_void, if inverse { 1 } else { -1 })
        };
        self.check("running", status)
    }

    fn check(&self, what: &str, status: c_int) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => Err(failed(&format!("{what} gave {status}"))),
        }
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("cuFFT: {what}"))
}

/// Returns the median microseconds per grid. `work` queues a transform of `arrays` grids.
fn median(stream: &Stream, arrays: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..=RUNS {
        stream.synchronize()?;
        let started = Instant::now();
        (0..TIMES).try_for_each(|_| work())?;
        stream.synchronize()?;
        times.push(1e6 * started.elapsed().as_secs_f64() / (TIMES * arrays) as f64);
    }
    // The first run is a warm-up and does not count.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

fn main() -> Result<()> {
    let context = Context::of(0)?;
    let stream = Stream::new(&context)?;
    // SAFETY: the stream is one of this GPU's primary context, and outlives the plans below.
    let gpu = unsafe { Gpu::new(0, Some(stream.handle().cast())) }?;
    println!("{}, medians of {RUNS}", gpu.properties().name);
    println!("image           grid            arrays  direction      ours, us  cuFFT, us  ours / its");
    let cases: [(&[usize], &[usize], usize); 6] = [
        (&[256, 256], &[320, 320], 1),
        (&[256, 256], &[320, 320], 32),
        (&[512, 512], &[640, 640], 8),
        (&[128, 128, 128], &[160, 160, 160], 1),
        (&[128, 128, 128], &[192, 192, 192], 4),
        (&[256, 256, 256], &[320, 320, 320], 1),
    ];
    for (dims, grid, arrays) in cases {
        let correction: Vec<Vec<f64>> = dims.iter().map(|&n| vec![1.0; n]).collect();
        let ours = GridFft::<f32>::new(&gpu, dims, grid, &correction)?;
        let (cells, voxels) = (grid.iter().product::<usize>(), dims.iter().product::<usize>());
        let mut grids = gpu.zeros::<Complex<f32>>(cells * arrays, "grids")?;
        let mut images = gpu.zeros::<Complex<f32>>(voxels * arrays, "images")?;
        for (direction, inverse) in [("to the image", true), ("to the grid", false)] {
            let own = median(&stream, arrays, || {
                match inverse {
                    true => ours.grid_to_image(&gpu, grids.view_mut(), images.view_mut()),
                    false => ours.image_to_grid(&gpu, images.view(), grids.view_mut()),
                }
                Ok(())
            })?;
            let its = {
                let _current = context.enter();
                let cufft = CuFft::new(grid, arrays, stream.handle().cast())?;
                median(&stream, arrays, || cufft.run(grids.pointer().address(), inverse))?
            };
            println!(
                "{:15} {:15} {arrays:>6}  {direction:12} {own:>10.1} {its:>10.1} {:>10.2}",
                format!("{dims:?}"),
                format!("{grid:?}"),
                own / its
            );
        }
    }
    Ok(())
}
