//! Sorts the acquisitions of a measurement into images.

use super::acquisition_header::AcquisitionHeader;
use super::builder;
use super::header::{CalibrationMode, Header, HeaderEncoding, TrajectoryKind};
use super::header_trajectory::TrajectoryOptions;
use super::position::ScanIndex;
use super::scan_data::{Dataset, Noise, Scan};
use super::shots::{no_memory, Shot, ShotData};
use super::warnings::warn;
use crate::acquisition::{AcquisitionPurpose, AcquisitionUse};
use crate::base::error::{bail, try_collect, Result};
use num_complex::Complex;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The counter whose change means that the images before it are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompletionCounter {
    /// No counter: images are complete at the end of the measurement.
    #[default]
    None,
    /// The slice.
    Slice,
    /// The contrast.
    Contrast,
    /// The phase.
    Phase,
    /// The repetition.
    Repetition,
    /// The set.
    Set,
}

impl CompletionCounter {
    fn value(self, index: &ScanIndex) -> u16 {
        match self {
            CompletionCounter::None => 0,
            CompletionCounter::Slice => index.slice,
            CompletionCounter::Contrast => index.contrast,
            CompletionCounter::Phase => index.phase,
            CompletionCounter::Repetition => index.repetition,
            CompletionCounter::Set => index.set,
        }
    }
}

/// How acquisitions become images.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AssemblyOptions {
    /// The counter whose change completes images.
    pub completion: CompletionCounter,
    /// Whether k-space has the other sign than the model, exp(+i 2 pi k.r), as some converters write it. If so, the
    /// samples are conjugated.
    pub conjugate: bool,
    /// Choices for trajectories that are computed from the header.
    pub trajectory: TrajectoryOptions,
}

/// The acquisitions of one index, by purpose. Lines with both possible purposes are in both.
#[derive(Default)]
struct ImageShots {
    image: ShotData,
    calibration: ShotData,
}

/// Receives the acquisitions of a measurement, and hands out its images.
pub struct ScanAssembler {
    header: Header,
    options: AssemblyOptions,
    open: BTreeMap<ScanIndex, ImageShots>,
    /// Images that are complete, without those handed out.
    complete: VecDeque<ShotData>,
    /// The indices of all images that are complete.
    closed: BTreeSet<ScanIndex>,
    calibration: Vec<Scan>,
    /// The samples of noise of each coil, by number of coils and bits of the sample time.
    noise: BTreeMap<(usize, u32), Vec<Vec<Complex<f32>>>>,
    uses: BTreeMap<AcquisitionUse, usize>,
    /// The number of samples of images that are announced.
    expected: BTreeMap<ScanIndex, usize>,
    /// The completion counter of the last image acquisition.
    counter: Option<u16>,
    /// The number of acquisitions so far of each encoding, slice, contrast and set.
    orders: BTreeMap<[u16; 4], usize>,
    /// The descriptions of trajectories that are in the log.
    descriptions: BTreeSet<String>,
}

impl ScanAssembler {
    /// Begins a measurement with this header.
    pub fn new(header: Header, options: AssemblyOptions) -> ScanAssembler {
        ScanAssembler {
            header,
            options,
            open: BTreeMap::new(),
            complete: VecDeque::new(),
            closed: BTreeSet::new(),
            calibration: Vec::new(),
            noise: BTreeMap::new(),
            uses: BTreeMap::new(),
            expected: BTreeMap::new(),
            counter: None,
            orders: BTreeMap::new(),
            descriptions: BTreeSet::new(),
        }
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Announces an acquisition that will be added later, so that memory is reserved at once. Optional.
    pub fn announce(&mut self, header: &AcquisitionHeader) {
        if AcquisitionUse::of_flags(header.flags).has(AcquisitionPurpose::Image) {
            let samples = self.expected.entry(header.index()).or_default();
            *samples = samples.saturating_add(header.kept_samples().len());
        }
    }

    /// Adds an acquisition: `trajectory` is [dimensions, samples], `data` is [samples, coils]. `number` names it in
    /// messages. Returns its use.
    ///
    /// # Errors
    /// - `BadFile` for lengths that the header does not announce, a sample time that is not one, and an acquisition of
    ///   an image that is already complete.
    /// - `NotFinite` with coil and sample.
    /// - `Unsupported` for compressed samples.
    /// - `OutOfHostMemory`.
    pub fn add(
        &mut self,
        number: usize,
        header: &AcquisitionHeader,
        trajectory: &[f32],
        data: &[Complex<f32>],
    ) -> Result<AcquisitionUse> {
        let usage = AcquisitionUse::of_flags(header.flags);
        if usage.is_used() {
            header.check_encoding()?;
        }
        *self.uses.entry(usage).or_default() += 1;
        match usage {
            AcquisitionUse::Unused(_) => {}
            AcquisitionUse::Noise => self.add_noise(header, data)?,
            _ => {
                let order = self.next_order(header);
                self.add_signal(Shot { number, header: *header, usage, order }, trajectory, data)?;
            }
        }
        Ok(usage)
    }

    /// Returns the number of earlier acquisitions of the same encoding, slice, contrast and set.
    fn next_order(&mut self, header: &AcquisitionHeader) -> usize {
        let index = header.index();
        let next = self.orders.entry([index.encoding, index.slice, index.contrast, index.set]).or_default();
        *next += 1;
        *next - 1
    }

    /// Returns the scan of these acquisitions. Each description of a trajectory is one warning.
    fn build(&mut self, shots: ShotData, is_image: bool) -> Result<Scan> {
        let descriptions = &mut self.descriptions;
        builder::build(&self.header, shots, is_image, &self.options.trajectory, |text| {
            if !descriptions.contains(&text) {
                warn(&*text);
                descriptions.insert(text);
            }
        })
    }

    /// Adds the samples of noise, also samples marked as discarded.
    fn add_noise(&mut self, header: &AcquisitionHeader, data: &[Complex<f32>]) -> Result<()> {
        let (count, coils) = (header.number_of_samples as usize, header.active_channels as usize);
        if data.len() != count * coils {
            let (n, need) = (2 * data.len(), 2 * count * coils);
            bail!(BadFile, "the noise has {n} numbers, but {count} complex samples of {coils} coils need {need}");
        }
        let dwell = header.dwell()? as f32;
        // A group of noise without samples would need memory for its coils only.
        if data.is_empty() {
            return Ok(());
        }
        let data = &*with_sign_of_model(data, self.options.conjugate)?;
        let group = self.noise.entry((coils, dwell.to_bits())).or_insert_with(|| vec![Vec::new(); coils]);
        for (coil, samples) in group.iter_mut().zip(data.chunks_exact(count)) {
            coil.try_reserve(count).map_err(no_memory)?;
            coil.extend_from_slice(samples);
        }
        Ok(())
    }

    fn add_signal(&mut self, shot: Shot, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
        let header = &shot.header;
        check_data(header, trajectory, data)?;
        let index = header.index();
        if self.closed.contains(&index) {
            bail!(
                BadFile,
                "it belongs to an image that is already complete (slice {}, repetition {}): complete images by another \
                 counter, or at the end of the measurement",
                index.slice,
                index.repetition
            );
        }
        let is_image = shot.usage.has(AcquisitionPurpose::Image);
        if is_image {
            let counter = self.options.completion.value(&index);
            if self.counter.replace(counter).is_some_and(|last| last != counter) {
                let completion = self.options.completion;
                self.complete_where(|other| completion.value(other) != counter);
            }
        }
        let data = &*with_sign_of_model(data, self.options.conjugate)?;
        let is_shared = is_embedded(&self.header, header);
        let expected = self.expected.get(&index).copied().unwrap_or(0);
        let shots = self.open.entry(index).or_default();
        if is_image || is_shared {
            shots.image.expected_samples = expected;
            shots.image.add(shot, trajectory, data)?;
        }
        if shot.usage.has(AcquisitionPurpose::Calibration) || is_shared {
            shots.calibration.add(shot, trajectory, data)?;
        }
        Ok(())
    }

    /// Ends the measurement: all images are complete.
    pub fn end(&mut self) {
        self.complete_where(|_| true);
    }

    fn complete_where(&mut self, is_complete: impl Fn(&ScanIndex) -> bool) {
        let indices: Vec<ScanIndex> = self.open.keys().filter(|index| is_complete(index)).copied().collect();
        for index in indices {
            let Some(mut shots) = self.open.remove(&index) else { continue };
            share_embedded_lines(&self.header, &mut shots, &mut self.uses);
            if !shots.calibration.shots.is_empty() {
                match self.build(shots.calibration, false) {
                    Ok(scan) => self.calibration.push(scan),
                    // A reconstruction without coil maps does not need calibration.
                    Err(e) => warn(format!("calibration acquisitions are not used: {e}")),
                }
            }
            if !shots.image.shots.is_empty() {
                self.closed.insert(index);
                self.complete.push_back(shots.image);
            }
        }
    }

    /// Returns the next complete image, in ascending order of the indices that were completed together. Returns `None`
    /// without a complete image.
    ///
    /// # Errors
    /// `BadFile`, `CoordinateOutOfRange`, `NotFinite`, `Unsupported` if the acquisitions do not give an image. This
    /// image is left out, and the next call returns the next one.
    pub fn next_image(&mut self) -> Option<Result<Scan>> {
        let shots = self.complete.pop_front()?;
        Some(self.build(shots, true))
    }

    /// Returns the calibration data of all complete images, in ascending order of their index.
    pub fn calibration(&self) -> &[Scan] {
        &self.calibration
    }

    /// Returns the noise so far, one entry per number of coils and sample time.
    pub fn noise(&self) -> Vec<Noise> {
        let noise = self.noise.iter().map(|((coils, dwell), data)| Noise {
            coils: *coils,
            dwell: f32::from_bits(*dwell),
            data: data.concat(),
        });
        noise.filter(|noise| !noise.data.is_empty()).collect()
    }

    /// Returns the number of acquisitions of each use so far. A line that is used for image and calibration is
    /// counted as such when its image is complete.
    pub fn uses(&self) -> Vec<(AcquisitionUse, usize)> {
        self.uses.iter().filter(|(_, count)| **count > 0).map(|(usage, count)| (*usage, *count)).collect()
    }

    /// Ends the measurement and returns everything.
    ///
    /// # Errors
    /// Returns the error of the first image that cannot be assembled.
    pub fn finish(mut self) -> Result<Dataset> {
        self.end();
        let mut scans = Vec::new();
        while let Some(scan) = self.next_image() {
            scans.push(scan?);
        }
        let (noise, uses) = (self.noise(), self.uses());
        Ok(Dataset { header: self.header, scans, noise, calibration: self.calibration, uses })
    }
}

/// Returns samples with the sign of the model. `conjugate`: they have the other one.
fn with_sign_of_model(data: &[Complex<f32>], conjugate: bool) -> Result<Cow<'_, [Complex<f32>]>> {
    match conjugate {
        true => try_collect(data.len(), "the data", data.iter().map(|z| z.conj())).map(Cow::Owned),
        false => Ok(Cow::Borrowed(data)),
    }
}

/// Checks the arrays of an acquisition.
fn check_data(header: &AcquisitionHeader, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
    let (count, coils) = (header.number_of_samples as usize, header.active_channels as usize);
    let dimensions = header.trajectory_dimensions as usize;
    if trajectory.len() != count * dimensions {
        let (n, d, need) = (trajectory.len(), dimensions, count * dimensions);
        bail!(BadFile, "the trajectory has {n} numbers, but {count} samples of {d} dimensions need {need}");
    }
    if data.len() != count * coils {
        let (n, need) = (2 * data.len(), 2 * count * coils);
        bail!(BadFile, "the data have {n} numbers, but {count} complex samples of {coils} coils need {need}");
    }
    header.dwell()?;
    let kept = header.kept_samples();
    for (coil, samples) in data.chunks_exact(count.max(1)).enumerate() {
        let kept_samples = samples.get(kept.clone()).unwrap_or_default();
        if let Some(i) = kept_samples.iter().position(|z| !z.is_finite()) {
            bail!(NotFinite, "coil {coil}, sample {}: the data are {}", kept.start + i, kept_samples[i]);
        }
    }
    Ok(())
}

/// Returns whether an acquisition belongs to a Cartesian encoding whose header says that calibration is embedded.
fn is_embedded(header: &Header, acquisition: &AcquisitionHeader) -> bool {
    let encoding = header.encodings.get(acquisition.encoding_space_ref as usize);
    let is_cartesian =
        |e: &HeaderEncoding| acquisition.trajectory_dimensions == 0 || e.trajectory == TrajectoryKind::Cartesian;
    encoding.filter(|e| is_cartesian(e)).and_then(|e| e.parallel).map(|p| p.calibration)
        == Some(Some(CalibrationMode::Embedded))
}

/// Decides for which purposes the lines of an image with embedded calibration are used. Lines of other images stay with
/// their own purpose.
///
/// A calibration line also belongs to the image, unless the image has an acquisition of the same encoding steps: a line
/// that was measured for both purposes must not count twice. Image lines between the first and the last calibration
/// line are also used for calibration, because some converters flag only the lines that parallel imaging would leave
/// out.
fn share_embedded_lines(header: &Header, shots: &mut ImageShots, uses: &mut BTreeMap<AcquisitionUse, usize>) {
    let embedded = shots.image.shots.iter().filter(|shot| is_embedded(header, &shot.header));
    let mut image_steps = BTreeSet::new();
    // The first and last calibration steps.
    let mut range: Option<[[u16; 2]; 2]> = None;
    for shot in embedded {
        let steps = shot.header.steps();
        if shot.usage.has(AcquisitionPurpose::Image) {
            image_steps.insert(steps);
        }
        if shot.usage.has(AcquisitionPurpose::Calibration) {
            let [first, last] = range.get_or_insert([steps; 2]);
            for i in 0..2 {
                (first[i], last[i]) = (first[i].min(steps[i]), last[i].max(steps[i]));
            }
        }
    }
    let has_image = !image_steps.is_empty();
    let mut shared = BTreeSet::new();
    for shot in shots.image.shots.iter().filter(|shot| is_embedded(header, &shot.header)) {
        let steps = shot.header.steps();
        let is_shared = match shot.usage {
            // Only the first calibration line of these steps, if the image does not have the line.
            AcquisitionUse::Calibration => has_image && image_steps.insert(steps),
            AcquisitionUse::Image => {
                range.is_some_and(|[first, last]| (0..2).all(|i| (first[i]..=last[i]).contains(&steps[i])))
            }
            _ => false,
        };
        if is_shared {
            shared.insert(shot.number);
            if let Some(count) = uses.get_mut(&shot.usage) {
                *count -= 1;
            }
            *uses.entry(AcquisitionUse::ImageAndCalibration).or_default() += 1;
        }
    }
    let uses_of = |shot: &Shot| match shared.contains(&shot.number) {
        true => AcquisitionUse::ImageAndCalibration,
        false => shot.usage,
    };
    shots.image.retain(|shot| uses_of(shot).has(AcquisitionPurpose::Image));
    shots.calibration.retain(|shot| uses_of(shot).has(AcquisitionPurpose::Calibration));
}
