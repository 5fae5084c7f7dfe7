//! `recon info`.

use crate::options::AcquisitionArgs;
use crate::run::input::kind_name;
use crate::run::output::{counted_images, say};
use crate::run::streams::input_path;
use recon::acquisition::AcquisitionUse;
use recon::backend::cuda::{compile, library, runtime};
use recon::{Device, Geometry, Method, Options, Plan, Result};
use recon_files::ismrmrd::{read_either, FileContents};
use recon_files::{read_cfl, read_images, Dataset, FileUse, Format, Image, Scan};
use std::path::PathBuf;

/// Describes the program and its machine, or the contents of a file
///
/// Without FILE: version, vector unit, threads, GPUs, NVRTC, and the folder of compiled kernels. With FILE of images:
/// their sizes. With FILE of raw data: encodings, matrices and fields of view (mm), coils, shots, samples, slices, and
/// the range of the trajectory (cycles per voxel). Also the use of each kind of acquisition: images, coil maps,
/// whitening, or nothing. Nothing is reconstructed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  recon info scan.h5")]
pub struct InfoArgs {
    #[arg(help = FileUse::ReadImages.help("Raw data or images"))]
    file: Option<PathBuf>,

    /// Group of the raw data in an HDF5 file
    #[arg(long, value_name = "NAME", default_value = "dataset")]
    group: String,

    #[command(flatten)]
    acquisitions: AcquisitionArgs,
}

pub fn run(args: &InfoArgs) -> Result<()> {
    let Some(path) = &args.file else { return describe_program() };
    let path = &*input_path(path)?;
    match Format::of_input(path) {
        Some(Format::Bart) => {
            let cfl = read_cfl(path)?;
            say(&format!("BART array of {:?} complex numbers", cfl.dims))
        }
        Some(Format::Nifti | Format::Dicom | Format::Numpy | Format::Matlab) => {
            read_images(path).and_then(|images| describe_images(&images))
        }
        _ => match read_either(path, &args.group, args.acquisitions.options())? {
            FileContents::Raw(dataset) => describe_raw(&dataset),
            FileContents::Images(images) => describe_images(&images),
        },
    }
}

fn describe_program() -> Result<()> {
    let k = [0.0f32];
    let options = Options { method: Method::Exact, device: Device::Cpu, ..Options::default() };
    let info = Plan::new(&Geometry::new(&[1, 1], &[&k, &k]), &options)?.info();
    say(&format!("recon {}", env!("CARGO_PKG_VERSION")))?;
    say(&format!("vector unit  {}", info.simd))?;
    say(&format!("threads      {}", info.threads))?;
    describe_gpus()
}

/// Prints the driver, the GPUs, the compiler of their kernels and the folder of compiled kernels.
fn describe_gpus() -> Result<()> {
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

/// Formats the range of some numbers: `0 to 9`, `3`, or `none`.
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

/// Formats the number of values of a counter and their range: `3 (0 to 2)`; up to 12 values with gaps are listed:
/// `3 (0, 2, 7)`.
fn counted(values: impl Iterator<Item = usize>) -> String {
    let all: std::collections::BTreeSet<usize> = values.collect();
    let range = span(all.iter().copied());
    let gaps = all.last().zip(all.first()).is_some_and(|(last, first)| last - first >= all.len());
    let list = || all.iter().map(|v| v.to_string()).collect::<Vec<_>>().join(", ");
    format!("{} ({})", all.len(), if gaps && all.len() <= 12 { list() } else { range })
}

/// Prints the number of acquisitions of each use, including unused ones.
fn describe_uses(uses: &[(AcquisitionUse, usize)]) -> Result<()> {
    say(&format!("acquisitions            {}", uses.iter().map(|(_, n)| n).sum::<usize>()))?;
    for (usage, n) in uses {
        let purpose = match usage {
            AcquisitionUse::Image => "images",
            AcquisitionUse::Calibration => "coil maps",
            AcquisitionUse::ImageAndCalibration => "images and coil maps",
            AcquisitionUse::Noise => "whitening",
            AcquisitionUse::Unused(_) => "nothing",
        };
        say(&format!("  used for {purpose:<12} {n} {}", usage.name()))?;
    }
    Ok(())
}

/// Prints the contents of a raw dataset.
fn describe_raw(dataset: &Dataset) -> Result<()> {
    let Dataset { header, scans, noise, calibration, uses } = dataset;
    say(&format!("ISMRMRD raw data of {}", counted_images(scans.len())))?;
    describe_uses(uses)?;
    for n in noise {
        let time = if n.dwell > 0.0 { format!(", {} microseconds each", n.dwell * 1e6) } else { String::new() };
        say(&format!("noise                   {} samples of {} coils{time}", n.data.len() / n.coils, n.coils))?;
    }
    if header.vendor.is_some() || header.model.is_some() {
        let words: Vec<&str> = [&header.vendor, &header.model].into_iter().flatten().map(String::as_str).collect();
        say(&format!("scanner                 {}", words.join(" ")))?;
    }
    if let Some(position) = &header.patient_position {
        say(&format!("patient position        {position}"))?;
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
        describe_scans(&scans.iter().filter(|s| s.index.encoding as usize == number).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Prints counters, sizes and trajectory of the scans of one encoding.
fn describe_scans(scans: &[&Scan]) -> Result<()> {
    let Some(first) = scans.first() else { return say("  images                none") };
    say(&format!("  images                {}", scans.len()))?;
    type Counter = fn(&Scan) -> u16;
    let counters: [(&str, Counter); 5] = [
        ("slices", |s| s.index.slice),
        ("repetitions", |s| s.index.repetition),
        ("contrasts", |s| s.index.contrast),
        ("phases", |s| s.index.phase),
        ("sets", |s| s.index.set),
    ];
    for (name, counter) in counters {
        say(&format!("  {name:<21} {}", counted(scans.iter().map(|s| counter(s) as usize))))?;
    }
    say(&format!("  coils                 {}", span(scans.iter().map(|s| s.coils))))?;
    say(&format!("  shots per image       {}", span(scans.iter().map(|s| s.samples_per_shot.len()))))?;
    say(&format!("  samples per shot      {}", span(scans.iter().flat_map(|s| s.samples_per_shot.iter().copied()))))?;
    say(&format!("  samples per image     {}", span(scans.iter().map(|s| s.samples()))))?;
    let mut dwells: Vec<f32> = scans.iter().map(|s| s.dwell()).collect();
    dwells.sort_by(f32::total_cmp);
    dwells.dedup();
    let microseconds = |dwell: &f32| match *dwell {
        dwell if dwell > 0.0 => format!("{:.3} microseconds", f64::from(dwell) * 1e6),
        _ => "not in the file".to_owned(),
    };
    let dwells: Vec<_> = dwells.iter().map(microseconds).collect();
    say(&format!("  sample time           {}", dwells.join(", ")))?;
    let weights = match scans.iter().filter(|s| s.weights.is_some()).count() {
        0 => "no".to_owned(),
        n if n == scans.len() => "yes".to_owned(),
        n => format!("in {n} of {}", counted_images(scans.len())),
    };
    say(&format!("  density weights       {weights}"))?;
    for (axis, name) in ["x", "y", "z"].iter().enumerate().take(first.ndim) {
        let (low, high) = scans
            .iter()
            .flat_map(|s| s.coordinates[axis].iter())
            .fold((f32::INFINITY, f32::NEG_INFINITY), |(a, b), &k| (a.min(k), b.max(k)));
        say(&format!("  trajectory {name}          {low:.4} to {high:.4} cycles per voxel"))?;
    }
    Ok(())
}

/// Prints the sizes and the largest magnitude of images, once for successive images of one size.
fn describe_images(images: &[Image]) -> Result<()> {
    say(&counted_images(images.len()))?;
    for same_size in images.chunk_by(|a, b| (a.dims, a.channels) == (b.dims, b.channels)) {
        let image = &same_size[0];
        if same_size.len() < images.len() {
            say(&format!("images      {}", same_size.len()))?;
        }
        say(&format!("voxels      {}", sizes(&image.dims)))?;
        say(&format!("channels    {}", image.channels))?;
        if image.fov_mm.iter().all(|&f| f > 0.0) {
            say(&format!("field       {} mm", sizes(&image.fov_mm)))?;
        }
        let largest = same_size.iter().flat_map(|i| &i.data).map(|z| z.norm()).fold(0.0, f32::max);
        say(&format!("largest     {largest}"))?;
    }
    Ok(())
}
