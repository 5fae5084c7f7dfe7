//! Transforms of whole grids on a GPU by this library and by cuFFT: `cargo run --release --example gpu_ffts`, with
//! libcufft on the loader's path.
//!
//! This library transforms from an oversampled grid to the image and back. It skips lines that are zero or are not
//! needed, and crops, pads and corrects in the same passes. cuFFT transforms the whole grid. A program that uses cuFFT
//! would need further passes to crop, pad and correct; these are not timed. Single precision. Times are medians, in
//! microseconds per grid. If the last column is below 1, this library is faster.

#[path = "common/cufft.rs"]
mod cufft;

use cufft::{median_microseconds, CuFft};
use recon::backend::cuda::fft::GridFft;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::kernel_check::CheckArguments;
use recon::backend::cuda::runtime::{Context, Stream};
use recon::{Complex, Result};

const RUNS: usize = 21;

fn main() -> Result<()> {
    let context = Context::of(0)?;
    let stream = Stream::new(&context)?;
    // SAFETY: the stream is one of this GPU's primary context, and outlives the plans below.
    let gpu = unsafe { Gpu::new(0, Some(stream.handle().cast()), 0) }?;
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
            let own = median_microseconds(&stream, RUNS, arrays, || {
                match inverse {
                    true => ours.grid_to_image(&gpu, grids.view_mut(), images.view_mut(), CheckArguments::NONE),
                    false => ours.image_to_grid(&gpu, images.view(), grids.view_mut(), CheckArguments::NONE),
                }
                Ok(())
            })?;
            let its = {
                let _current = context.enter();
                let address = grids.pointer().address();
                let cufft = CuFft::new(grid, arrays, stream.handle().cast())?;
                median_microseconds(&stream, RUNS, arrays, || cufft.run(address, address, inverse))?
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
