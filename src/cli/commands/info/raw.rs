//! The contents of a file of raw data: acquisitions and their use, the scanner, encodings, images and trajectory.

use super::text::{counted, list, range, sizes, span};
use crate::run::input::kind_name;
use crate::run::output::{counted_images, say};
use recon::acquisition::AcquisitionUse;
use recon::scan::{EncodingLimits, Header, HeaderEncoding, ParallelImaging};
use recon::Result;
use recon_files::{Dataset, Noise, Placement, Scan, ScanIndex};
use serde_json::{json, Value};
use std::collections::BTreeSet;

/// Type of a dependency of the header that is a noise scan.
const NOISE_DEPENDENCY: &str = "noise";

/// Prints the contents of a raw dataset.
pub fn print_raw(dataset: &Dataset) -> Result<()> {
    say(&format!("ISMRMRD raw data of {}", counted_images(dataset.scans.len())))?;
    print_uses(&dataset.uses)?;
    dataset.noise.iter().try_for_each(print_noise)?;
    print_header(&dataset.header)?;
    encodings(dataset).iter().try_for_each(EncodingSummary::print)
}

/// Returns the JSON keys of a raw dataset.
pub fn raw_json(dataset: &Dataset) -> Value {
    let header = &dataset.header;
    let uses = dataset
        .uses
        .iter()
        .map(|&(usage, count)| json!({ "kind": usage.name(), "used_for": purpose(usage), "count": count }));
    let noise = dataset.noise.iter().map(|noise| {
        json!({
            "coils": noise.coils,
            "samples": noise.data.len() / noise.coils,
            "sample_time_us": micros(noise.dwell),
            "bandwidth_hz": micros(noise.dwell).map(|us| 1e6 / us),
        })
    });
    let dependencies = header.dependencies.iter().map(|(kind, id)| json!({ "type": kind, "measurement": id }));
    json!({
        "contents": "raw data",
        "images": dataset.scans.len(),
        "acquisitions": uses.collect::<Vec<_>>(),
        "noise": noise.collect::<Vec<_>>(),
        "vendor": header.vendor,
        "model": header.model,
        "patient_position": header.patient_position,
        "dependencies": dependencies.collect::<Vec<_>>(),
        "noise_bandwidth_ratio": header.noise_bandwidth,
        "receive_channels": header.receiver_channels,
        "proton_resonance_hz": header.h1_resonance_hz,
        "echo_times_ms": header.echo_times_ms,
        "repetition_times_ms": header.repetition_times_ms,
        "encodings": encodings(dataset).iter().map(EncodingSummary::json).collect::<Vec<_>>(),
    })
}

fn purpose(usage: AcquisitionUse) -> &'static str {
    match usage {
        AcquisitionUse::Image => "images",
        AcquisitionUse::Calibration => "coil maps",
        AcquisitionUse::ImageAndCalibration => "images and coil maps",
        AcquisitionUse::Noise => "whitening",
        AcquisitionUse::Unused(_) => "nothing",
    }
}

/// Returns a sample time in microseconds; `None` if it is unknown.
fn micros(seconds: f32) -> Option<f64> {
    // Single precision has seven digits: the others would only show its rounding.
    (seconds > 0.0).then(|| (f64::from(seconds) * 1e10).round() / 1e4)
}

/// Prints the number of acquisitions of each use, including unused ones.
fn print_uses(uses: &[(AcquisitionUse, usize)]) -> Result<()> {
    say(&format!("acquisitions            {}", uses.iter().map(|(_, n)| n).sum::<usize>()))?;
    for &(usage, n) in uses {
        say(&format!("  used for {:<12} {n} {}", purpose(usage), usage.name()))?;
    }
    Ok(())
}

fn print_noise(noise: &Noise) -> Result<()> {
    let samples = noise.data.len() / noise.coils;
    let time = match micros(noise.dwell) {
        Some(us) => format!("{us} microseconds each (bandwidth {} kHz)", (1e6 / us).round() / 1e3),
        None => "sample time not in the file".into(),
    };
    say(&format!("noise scan              {samples} samples of {} coils, {time}", noise.coils))
}

fn print_header(header: &Header) -> Result<()> {
    for (kind, id) in header.dependencies.iter().filter(|(kind, _)| kind.eq_ignore_ascii_case(NOISE_DEPENDENCY)) {
        say(&format!("separate {:<14} measurement {id}, not in this file", format!("{} scan", kind.to_lowercase())))?;
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
    for (name, times) in [("echo times", &header.echo_times_ms), ("repetition times", &header.repetition_times_ms)] {
        if !times.is_empty() {
            say(&format!("{name:<23} {} ms", list(times)))?;
        }
    }
    Ok(())
}

/// A counter of acquisitions: the numbers that image data have, and the number of values that the header announces.
struct CounterSummary {
    name: &'static str,
    numbers: BTreeSet<u16>,
    /// `None` if the header does not have it.
    announced: Option<usize>,
}

impl CounterSummary {
    fn print(&self) -> Result<()> {
        let announced = match self.announced {
            Some(n) if n > self.numbers.len() => format!("; the header announces {n}"),
            _ => String::new(),
        };
        say(&format!("  {:<21} {}{announced}", self.name, counted(&self.numbers)))
    }

    fn json(&self) -> Value {
        json!({ "count": self.numbers.len(), "numbers": self.numbers, "announced": self.announced })
    }
}

/// The calibration data of an encoding.
struct CalibrationSummary {
    slices: BTreeSet<u16>,
    shots: Option<[usize; 2]>,
    samples: Option<[usize; 2]>,
}

/// The scans of one encoding. Ranges are the smallest and the largest number; `None` if there are no scans.
struct EncodingSummary<'a> {
    number: usize,
    header: &'a HeaderEncoding,
    calibration: Option<CalibrationSummary>,
    images: usize,
    counters: [CounterSummary; 5],
    coils: Option<[usize; 2]>,
    shots: Option<[usize; 2]>,
    samples_per_shot: Option<[usize; 2]>,
    samples_per_image: Option<[usize; 2]>,
    /// The different sample times in microseconds; `None` if unknown.
    sample_times: Vec<Option<f64>>,
    /// The number of images with density weights.
    weighted: usize,
    /// The smallest and the largest coordinate along each axis.
    trajectory: Vec<[f32; 2]>,
    /// The number of images with a position in the patient, and the position of the first of them.
    placed: usize,
    placement: Option<Placement>,
}

/// Returns the summary of each encoding of the header.
fn encodings(dataset: &Dataset) -> Vec<EncodingSummary<'_>> {
    let all = dataset.header.encodings.iter().enumerate();
    all.map(|(number, header)| {
        let of_encoding = |scan: &&Scan| usize::from(scan.index.encoding) == number;
        let scans: Vec<&Scan> = dataset.scans.iter().filter(of_encoding).collect();
        let calibration: Vec<&Scan> = dataset.calibration.iter().filter(of_encoding).collect();
        EncodingSummary::new(number, header, &scans, &calibration)
    })
    .collect()
}

fn counters(header: &HeaderEncoding, scans: &[&Scan]) -> [CounterSummary; 5] {
    type Counter = fn(&ScanIndex) -> u16;
    let counters: [(&str, Counter, Option<EncodingLimits>); 5] = [
        ("slices", |i| i.slice, header.slices),
        ("repetitions", |i| i.repetition, header.repetitions),
        ("contrasts", |i| i.contrast, header.contrasts),
        ("phases", |i| i.phase, header.phases),
        ("sets", |i| i.set, header.sets),
    ];
    counters.map(|(name, counter, limits)| CounterSummary {
        name,
        numbers: scans.iter().map(|scan| counter(&scan.index)).collect(),
        announced: limits.map(|limits| limits.count()),
    })
}

/// Returns the smallest and the largest coordinate of scans along each axis.
fn trajectory_range(scans: &[&Scan]) -> Vec<[f32; 2]> {
    let axes = 0..scans.first().map_or(0, |scan| scan.ndim);
    axes.map(|axis| {
        let all = scans.iter().flat_map(|scan| scan.coordinates[axis].iter());
        all.fold([f32::INFINITY, f32::NEG_INFINITY], |[low, high], &k| [low.min(k), high.max(k)])
    })
    .collect()
}

impl<'a> EncodingSummary<'a> {
    fn new(number: usize, header: &'a HeaderEncoding, scans: &[&Scan], calibration: &[&Scan]) -> EncodingSummary<'a> {
        let shots = |scans: &[&Scan]| range(scans.iter().map(|scan| scan.samples_per_shot.len()));
        let samples = |scans: &[&Scan]| range(scans.iter().flat_map(|scan| scan.samples_per_shot.iter().copied()));
        let mut sample_times: Vec<Option<f64>> = scans.iter().map(|scan| micros(scan.dwell())).collect();
        sample_times.sort_by(|a, b| a.unwrap_or_default().total_cmp(&b.unwrap_or_default()));
        sample_times.dedup();
        let placed: Vec<Placement> = scans.iter().map(|scan| scan.placement).filter(Placement::is_known).collect();
        EncodingSummary {
            number,
            header,
            calibration: (!calibration.is_empty()).then(|| CalibrationSummary {
                slices: calibration.iter().map(|scan| scan.index.slice).collect(),
                shots: shots(calibration),
                samples: samples(calibration),
            }),
            images: scans.len(),
            counters: counters(header, scans),
            coils: range(scans.iter().map(|scan| scan.coils)),
            shots: shots(scans),
            samples_per_shot: samples(scans),
            samples_per_image: range(scans.iter().map(|scan| scan.samples())),
            sample_times,
            weighted: scans.iter().filter(|scan| scan.weights.is_some()).count(),
            trajectory: trajectory_range(scans),
            placed: placed.len(),
            placement: placed.first().copied(),
        }
    }

    fn print(&self) -> Result<()> {
        say(&format!("encoding {}: {}", self.number, kind_name(self.header.trajectory)))?;
        for (name, space) in [("encoded", &self.header.encoded), ("reconstructed", &self.header.recon)] {
            let (matrix, fov) = (sizes(&space.matrix), sizes(&space.fov_mm));
            say(&format!("  {name:<21} {matrix} voxels, {fov} mm"))?;
        }
        if let Some(ParallelImaging { acceleration: [first, second], calibration }) = self.header.parallel {
            let mode = calibration.map_or(String::new(), |mode| format!(", {} calibration", mode.name()));
            say(&format!("  parallel imaging      factors {first} and {second}{mode}"))?;
        }
        if let Some(CalibrationSummary { slices, shots, samples }) = &self.calibration {
            let (shots, samples, slices) = (span(*shots), span(*samples), counted(slices));
            say(&format!("  calibration           {shots} shots of {samples} samples; slices {slices}"))?;
        }
        if self.images == 0 {
            return say("  images                none");
        }
        say(&format!("  images                {}", self.images))?;
        self.counters.iter().try_for_each(CounterSummary::print)?;
        self.print_samples()?;
        self.print_placement()
    }

    fn print_samples(&self) -> Result<()> {
        for (name, range) in [
            ("coils", self.coils),
            ("shots per image", self.shots),
            ("samples per shot", self.samples_per_shot),
            ("samples per image", self.samples_per_image),
        ] {
            say(&format!("  {name:<21} {}", span(range)))?;
        }
        let time = |us: &Option<f64>| us.map_or("not in the file".into(), |us| format!("{us:.3} microseconds"));
        say(&format!("  sample time           {}", list(&self.sample_times.iter().map(time).collect::<Vec<_>>())))?;
        let weights = match self.weighted {
            0 => "no".to_owned(),
            n if n == self.images => "yes".to_owned(),
            n => format!("in {n} of {}", counted_images(self.images)),
        };
        say(&format!("  density weights       {weights}"))?;
        for (name, [low, high]) in ["x", "y", "z"].iter().zip(&self.trajectory) {
            say(&format!("  trajectory {name}          {low:.4} to {high:.4} cycles per voxel"))?;
        }
        Ok(())
    }

    fn print_placement(&self) -> Result<()> {
        let Some(placement) = self.placement else { return say("  position              not in the file") };
        let which = match (self.placed, self.images) {
            (1, 1) => String::new(),
            (placed, all) if placed == all => " (first image)".into(),
            (placed, all) => format!(" ({placed} of {all} images have one: the first of them)"),
        };
        say(&format!("  position              {} mm{which}", list(&placement.position)))?;
        for (name, direction) in ["x", "y", "z"].iter().zip(placement.directions()) {
            say(&format!("  {name} axis                {}", list(&direction)))?;
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let HeaderEncoding { encoded, recon, parallel, .. } = self.header;
        let mut object = json!({
            "trajectory": self.header.trajectory.name(),
            "encoded_matrix": encoded.matrix,
            "encoded_fov_mm": encoded.fov_mm,
            "reconstructed_matrix": recon.matrix,
            "reconstructed_fov_mm": recon.fov_mm,
            "acceleration": parallel.map(|parallel| parallel.acceleration),
            "calibration_mode": parallel.and_then(|parallel| parallel.calibration).map(|mode| mode.name()),
            "calibration": self.calibration.as_ref().map(|calibration| json!({
                "slices": calibration.slices,
                "shots": calibration.shots,
                "samples_per_shot": calibration.samples,
            })),
            "images": self.images,
            "coils": self.coils,
            "shots_per_image": self.shots,
            "samples_per_shot": self.samples_per_shot,
            "samples_per_image": self.samples_per_image,
            "sample_times_us": self.sample_times,
            "images_with_weights": self.weighted,
            "trajectory_range": self.trajectory,
            "images_with_position": self.placed,
            "position_mm": self.placement.map(|placement| placement.position),
            "read_dir": self.placement.map(|placement| placement.read_dir),
            "phase_dir": self.placement.map(|placement| placement.phase_dir),
            "slice_dir": self.placement.map(|placement| placement.slice_dir),
        });
        self.counters.iter().for_each(|counter| object[counter.name] = counter.json());
        object
    }
}
