//! cuFFT from its library at run time, and the time of transforms that are queued on a GPU.

use libloading::Library;
use recon::backend::cuda::runtime::Stream;
use recon::{Error, ErrorKind, Result};
use std::ffi::{c_int, c_void};
use std::time::Instant;

/// Number of transforms that are queued per measurement.
const TIMES: usize = 20;
/// cuFFT's type of transforms from complex to complex in single precision.
const C2C: c_int = 0x29;

/// A plan of cuFFT for complex transforms in single precision.
pub struct CuFft {
    library: Library,
    plan: c_int,
}

impl CuFft {
    /// Creates a plan for transforms of `arrays` grids on a stream.
    pub fn new(grid: &[usize], arrays: usize, stream: *mut c_void) -> Result<Self> {
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
        let library = library.ok_or_else(|| {
            failed(&format!("none of {} was found: add its folder to LD_LIBRARY_PATH", names.join(", ")))
        })?;
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

    /// Queues the transform of the grids at the address `from`. The result is written to the address `to`, which may be
    /// the same.
    pub fn run(&self, from: u64, to: u64, inverse: bool) -> Result<()> {
        type Exec = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_int) -> c_int;
        // SAFETY: the function has these parameters; arrays of the plan's size exist.
        let status = unsafe {
            let run = self.library.get::<Exec>(b"cufftExecC2C").map_err(|e| failed(&e.to_string()))?;
            run(self.plan, from as *mut c_void, to as *mut c_void, if inverse { 1 } else { -1 })
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

/// Returns the median microseconds per grid of `runs` measurements. `work` queues a transform of `arrays` grids.
pub fn median_microseconds(
    stream: &Stream,
    runs: usize,
    arrays: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..=runs {
        stream.synchronize()?;
        let started = Instant::now();
        (0..TIMES).try_for_each(|_| work())?;
        stream.synchronize()?;
        times.push(1e6 * started.elapsed().as_secs_f64() / (TIMES * arrays) as f64);
    }
    // The first run is a warm-up and does not count.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(times[runs / 2])
}
