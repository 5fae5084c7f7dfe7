//! `recon info`.

use crate::io::{read_cfl, read_images, Dataset, Image, Scan};
use crate::reader::{read_either, FileContents};
use crate::run::input::kind_name;
use crate::run::output::{counted_images, has_ending, say};
use recon::acquisition::AcquisitionUse;
use recon::backend::cuda::{compile, library, runtime};
use recon::{Device, Geometry, Method, Options, Plan, Result};
use std::path::PathBuf;

/// What this program is and runs on, or what a file holds
///
/// Without FILE: version, vector unit, threads, GPUs, NVRTC, the folder of compiled kernels. With FILE: encodings,
/// matrices and fields of view (mm), coils, shots, samples, slices and the range of the trajectory (cycles per voxel)
/// of raw data, and the use of each kind of acquisition (images, coil maps, whitening, or none), or the sizes of
/// images. Nothing is reconstructed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  recon info scan.h5")]
pub struct InfoArgs {
    /// Raw data or images: .h5, .mrd, .cfl, .nii, .nii.gz, .npy
    file: Option<PathBuf>,

    /// Group of the HDF5 file that has the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset")]
    group: String,
}

pub fn run(args: &InfoArgs) -> Result<()> {
    match &args.file {
        None => program(),
        Some(path) if has_ending(path, &[".cfl", ".hdr"]) => {
            let cfl = read_cfl(path)?;
            say(&format!("BART array of {:?} complex numbers", cfl.dims))
        }
        Some(path) if has_ending(path, &[".nii", ".nii.gz", ".npy"]) => read_images(path).and_then(|i| images(&i)),
        Some(path) => match read_either(path, &args.group)? {
            FileContents::Raw(dataset) => raw(&dataset),
            FileContents::Images(found) => images(&found),
        },
    }
}

fn program() -> Result<()> {
    let k = [0.0f32];
    let options = Options { method: Method::Exact, device: Device::Cpu, ..Options::default() };
    let info = Plan::new(&Geometry::new(&[1, 1], &[&k, &k]), &options)?.info();
    say(&format!("recon {}", env!("CARGO_PKG_VERSION")))?;
    say(&format!("vector unit  {}", info.simd))?;
    say(&format!("threads      {}", info.threads))?;
    gpus()
}

/// The GPUs, and what their kernels are compiled with.
fn gpus() -> Result<()> {
    match library::driver_version() {
        Ok((major, minor)) => say(&format!("driver       for CUDA {major}.{minor}"))?,
        Err(e) => say(&format!("driver       none: {e}"))?,
    }
    for index in 0..runtime::count() {
        let gpu = runtime::properties(index)?;
        say(&format!(
            "GPU {index:<8} {}, compute capability {}.{}, {} multiprocessors, {:.0} GiB{}",
            gpu.name,
            gpu.capability.0,
            gpu.capability.1,
            gpu.multiprocessors,
            gpu.memory as f64 / (1u64 << 30) as f64,
            if gpu.supported() { "" } else { " (too old: 7.5 is needed)" }
        ))?;
    }
    match library::nvrtc() {
        Ok((major, minor)) => say(&format!("NVRTC        {major}.{minor}"))?,
        Err(e) => say(&format!("NVRTC        none: {e}"))?,
    }
    say("cuFFT        not used: transforms are recon's own")?;
    match compile::cache_folder() {
        Some(folder) => say(&format!("kernels in   {}", folder.display())),
        None => say("kernels in   no folder: neither RECON_CACHE_DIR nor a home; they are compiled by each process"),
    }
}

fn sizes<N: std::fmt::Display>(values: &[N]) -> String {
    values.iter().map(|v| v.to_string()).collect::<Vec<_>>().join(" x ")
}

/// A range of numbers in words: `0 to 9`, or `3`.
fn span(values: impl Iterator<Item = usize>) -> String {
    let mut all: Vec<usize> = values.collect();
    all.sort_unstable();
    all.dedup();
    match all[..] {
        [] => "none".into(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    }
}

/// The count and the range of a counter: `3 (0 to 2)`, or all of a few numbers with gaps: `3 (0, 2, 7)`.
fn counted(values: impl Iterator<Item = usize>) -> String {
    let all: std::collections::BTreeSet<usize> = values.collect();
    let range = span(all.iter().copied());
    let gaps = all.last().zip(all.first()).is_some_and(|(last, first)| last - first >= all.len());
    let list = || all.iter().map(|v| v.to_string()).collect::<Vec<_>>().join(", ");
    format!("{} ({})", all.len(), if gaps && all.len() <= 12 { list() } else { range })
}

/// Says how many acquisitions are used for each purpose, and which are not used.
fn uses(uses: &[(AcquisitionUse, usize)]) -> Result<()> {
    say(&format!("acquisitions            {}", uses.iter().map(|(_, n)| n).sum::<usize>()))?;
    for (of, n) in uses {
        let purpose = match of {
            AcquisitionUse::Image => "images",
            AcquisitionUse::Calibration => "coil maps",
            AcquisitionUse::ImageAndCalibration => "images and coil maps",
            AcquisitionUse::Noise => "whitening",
            AcquisitionUse::Unused(_) => "nothing",
        };
        say(&format!("  used for {purpose:<12} {n} {}", of.name()))?;
    }
    Ok(())
}

fn raw(Dataset { header, scans, noise, calibration, uses: used }: &Dataset) -> Result<()> {
    say(&format!("ISMRMRD raw data of {}", counted_images(scans.len())))?;
    uses(used)?;
    for n in noise {
        let time = if n.dwell > 0.0 { format!(", {} microseconds each", n.dwell * 1e6) } else { String::new() };
        say(&format!("noise                   {} samples of {} coils{time}", n.data.len() / n.coils, n.coils))?;
    }
    if let Some(x) = header.noise_bandwidth {
        say(&format!("noise bandwidth         {x} of the sampling bandwidth"))?;
    }
    if let Some(n) = header.receiver_channels {
        say(&format!("receive channels        {n}"))?;
    }
    if let Some(hz) = header.h1_resonance_hz.filter(|&hz| hz > 0) {
        say(&format!("proton resonance        {} MHz", hz as f64 * 1e-6))?;
    }
    if !header.echo_times_ms.is_empty() {
        let times: Vec<String> = header.echo_times_ms.iter().map(f64::to_string).collect();
        say(&format!("echo times              {} ms", times.join(", ")))?;
    }
    for (number, encoding) in header.encodings.iter().enumerate() {
        let mine: Vec<&Scan> = scans.iter().filter(|s| s.index.encoding as usize == number).collect();
        say(&format!("encoding {number}: {}", kind_name(encoding.trajectory)))?;
        for (name, space) in [("encoded", &encoding.encoded), ("reconstructed", &encoding.recon)] {
            let (matrix, fov) = (sizes(&space.matrix), sizes(&space.fov_mm));
            say(&format!("  {name:<21} {matrix} voxels, {fov} mm"))?;
        }
        if let Some(parallel) = encoding.parallel {
            let [first, second] = parallel.acceleration;
            let mode = parallel.calibration.map_or(String::new(), |mode| format!(", {} calibration", mode.name()));
            say(&format!("  parallel imaging      factors {first} and {second}{mode}"))?;
        }
        let lines: Vec<&Scan> = calibration.iter().filter(|s| s.index.encoding as usize == number).collect();
        if !lines.is_empty() {
            let slices = counted(lines.iter().map(|s| s.index.slice as usize));
            let shots = span(lines.iter().map(|s| s.samples_per_shot.len()));
            let samples = span(lines.iter().flat_map(|s| s.samples_per_shot.iter().copied()));
            say(&format!("  calibration           {shots} shots of {samples} samples; slices {slices}"))?;
        }
        if mine.is_empty() {
            say("  images                none")?;
            continue;
        }
        say(&format!("  images                {}", mine.len()))?;
        type Counter = fn(&Scan) -> u16;
        let counters: [(&str, Counter); 5] = [
            ("slices", |s| s.index.slice),
            ("repetitions", |s| s.index.repetition),
            ("contrasts", |s| s.index.contrast),
            ("phases", |s| s.index.phase),
            ("sets", |s| s.index.set),
        ];
        for (name, of) in counters {
            say(&format!("  {name:<21} {}", counted(mine.iter().map(|s| of(s) as usize))))?;
        }
        say(&format!("  coils                 {}", span(mine.iter().map(|s| s.coils))))?;
        say(&format!("  shots an image        {}", span(mine.iter().map(|s| s.samples_per_shot.len()))))?;
        let shots = mine.iter().flat_map(|s| s.samples_per_shot.iter().copied());
        say(&format!("  samples a shot        {}", span(shots)))?;
        say(&format!("  samples an image      {}", span(mine.iter().map(|s| s.samples()))))?;
        let mut dwells: Vec<f32> = mine.iter().map(|s| s.dwell()).collect();
        dwells.sort_by(f32::total_cmp);
        dwells.dedup();
        let microseconds = |dwell: &f32| match *dwell {
            dwell if dwell > 0.0 => format!("{:.3} microseconds", f64::from(dwell) * 1e6),
            _ => "not in the file".to_owned(),
        };
        let dwells: Vec<_> = dwells.iter().map(microseconds).collect();
        say(&format!("  sample time           {}", dwells.join(", ")))?;
        let weights = mine.iter().filter(|s| s.weights.is_some()).count();
        say(&format!(
            "  density weights       {}",
            match weights {
                0 => "no".to_owned(),
                n if n == mine.len() => "yes".to_owned(),
                n => format!("in {n} of {}", counted_images(mine.len())),
            }
        ))?;
        for axis in 0..mine[0].ndim {
            let (low, high) = mine
                .iter()
                .flat_map(|s| s.coordinates[axis].iter())
                .fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &k| (a.min(k), b.max(k)));
            say(&format!("  trajectory {}          {low:.4} to {high:.4} cycles per voxel", ["x", "y", "z"][axis]))?;
        }
    }
    Ok(())
}

fn images(images: &[Image]) -> Result<()> {
    say(&counted_images(images.len()))?;
    // One image of each size, in the order of the file.
    let alike = |a: &Image, b: &Image| (a.dims, a.channels) == (b.dims, b.channels);
    for same in images.chunk_by(alike) {
        let image = &same[0];
        if same.len() < images.len() {
            say(&format!("images      {}", same.len()))?;
        }
        say(&format!("voxels      {}", sizes(&image.dims)))?;
        say(&format!("channels    {}", image.channels))?;
        if image.fov_mm.iter().all(|&f| f > 0.0) {
            say(&format!("field       {} mm", sizes(&image.fov_mm)))?;
        }
        let largest = same.iter().flat_map(|i| &i.data).map(|z| z.norm()).fold(0.0, f32::max);
        say(&format!("largest     {largest}"))?;
    }
    Ok(())
}
