//! Sorts the acquisitions of a measurement into images.

use super::acquisition_header::AcquisitionHeader;
use super::builder;
use super::calibration::position_of;
use super::consistency::check_spread;
use super::header::{CalibrationMode, Header, HeaderEncoding, TrajectoryKind};
use super::header_trajectory::TrajectoryOptions;
use super::missing_shots::{fewer_shots, missing_shots, ExpectedShots, ShotCollector};
use super::noise::NoiseWhitener;
use super::position::{ScanIndex, SliceKey};
use super::scan_data::{Dataset, MeasuredScan, Noise};
use super::shots::{Shot, ShotData};
use super::spare_arrays::SpareArrays;
use super::warnings::warn;
use super::window::SlidingWindow;
use crate::acquisition::{AcquisitionPurpose, AcquisitionUse};
use crate::base::error::{bail, try_collect, Error, Result};
use num_complex::Complex;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

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
    /// Whether noise whitens the images that are taken after it. Otherwise images are not whitened.
    pub whiten: bool,
    /// The number of newest images of a slice whose data are joined: a sliding window. 0 and 1 mean no window.
    pub window: usize,
    /// Choices for trajectories that are computed from the header.
    pub trajectory: TrajectoryOptions,
}

/// The acquisitions of one index, by purpose. Lines with both possible purposes are in both.
#[derive(Default)]
struct ImageShots {
    image: ShotData,
    calibration: ShotData,
}

/// The data of an image, and its calibration data.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledImage {
    /// The data of the image.
    pub image: MeasuredScan,
    /// The calibration data of the image's slice; `None` if it does not have them.
    pub calibration: Option<Arc<MeasuredScan>>,
    /// Whether the measurement has calibration data so far, but not of the image's slice.
    pub has_other_calibration: bool,
}

/// Receives the acquisitions of a measurement, and hands out its images.
pub struct ScanAssembler {
    header: Header,
    options: AssemblyOptions,
    open: BTreeMap<ScanIndex, ImageShots>,
    /// Images that are complete, without those handed out.
    complete: VecDeque<ShotData>,
    /// The indices of all images to which no acquisition can be added.
    closed: BTreeSet<ScanIndex>,
    calibration: Vec<Arc<MeasuredScan>>,
    noise: NoiseWhitener,
    window: SlidingWindow,
    /// The shots of images that are completed in several parts.
    collectors: BTreeMap<SliceKey, ShotCollector>,
    /// The largest number of shots of an image of each encoding.
    max_shots: BTreeMap<u16, usize>,
    uses: BTreeMap<AcquisitionUse, usize>,
    /// The number of samples of images that are announced.
    expected: BTreeMap<ScanIndex, usize>,
    /// The number of samples of each encoding's last image, which the next one is likely to have.
    last_samples: BTreeMap<u16, usize>,
    spare: Arc<SpareArrays>,
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
        let noise = NoiseWhitener::new(header.noise_bandwidth);
        ScanAssembler {
            header,
            options,
            open: BTreeMap::new(),
            complete: VecDeque::new(),
            closed: BTreeSet::new(),
            calibration: Vec::new(),
            noise,
            window: SlidingWindow::new(options.window),
            collectors: BTreeMap::new(),
            max_shots: BTreeMap::new(),
            uses: BTreeMap::new(),
            expected: BTreeMap::new(),
            last_samples: BTreeMap::new(),
            spare: Arc::default(),
            counter: None,
            orders: BTreeMap::new(),
            descriptions: BTreeSet::new(),
        }
    }

    /// Returns the arrays that the next images use again. Hosts that read many images give back the arrays of images
    /// that they no longer need.
    pub fn spare_arrays(&self) -> Arc<SpareArrays> {
        Arc::clone(&self.spare)
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
    /// The image and the calibration data of an acquisition that is refused are not made without it:
    /// [`next_image`](Self::next_image) returns the error. An image that is already complete is unchanged.
    ///
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
        *self.uses.entry(usage).or_default() += 1;
        match usage {
            AcquisitionUse::Unused(_) => {}
            AcquisitionUse::Noise => {
                header.check_encoding()?;
                self.noise.add(header, &with_sign_of_model(data, self.options.conjugate)?)?;
            }
            _ => {
                let order = self.next_order(header);
                self.add_signal(Shot { number, header: *header, usage, order }, trajectory, data)?;
            }
        }
        Ok(usage)
    }

    /// Counts an acquisition that the caller cannot add because of this error: its image and calibration data are not
    /// made without it.
    pub fn refuse(&mut self, number: usize, header: &AcquisitionHeader, error: &Error) {
        let usage = AcquisitionUse::of_flags(header.flags);
        *self.uses.entry(usage).or_default() += 1;
        if usage.has(AcquisitionPurpose::Image) || usage.has(AcquisitionPurpose::Calibration) {
            let order = self.next_order(header);
            self.refuse_shot(Shot { number, header: *header, usage, order }, error);
        }
    }

    fn refuse_shot(&mut self, shot: Shot, error: &Error) {
        // An image that is already complete is unchanged.
        let Ok(parts) = self.open_image(&shot) else { return };
        parts.into_iter().for_each(|part| part.refuse(shot, error));
    }

    /// Whitens the data of an acquisition in place, [samples, coils], for hosts in which a later step sorts
    /// acquisitions. The noise is that of earlier calls of [`add`](Self::add).
    ///
    /// The data stay unchanged without the option `whiten`, without noise so far, and if they are not finite. Data of
    /// noise, and of an acquisition that is not used and has a different number of coils than the noise, also do.
    ///
    /// # Errors
    /// The data are unchanged. The errors of [`whiten`](super::whiten); `BadFile` for a wrong length or sample time;
    /// `Unsupported` for compressed samples.
    pub fn whiten(&mut self, header: &AcquisitionHeader, data: &mut [Complex<f32>]) -> Result<()> {
        if !self.options.whiten {
            return Ok(());
        }
        if AcquisitionUse::of_flags(header.flags).is_used() {
            header.check_encoding()?;
        }
        check_len(header, data)?;
        let conjugate = self.options.conjugate;
        let of_model = with_sign_of_model(data, conjugate)?;
        let Some(whitened) = self.noise.whiten_acquisition(header, &of_model)? else { return Ok(()) };
        data.iter_mut().zip(whitened).for_each(|(to, z)| *to = if conjugate { z.conj() } else { z });
        Ok(())
    }

    /// Returns whether [`whiten`](Self::whiten) may change data: the option is set, and noise came.
    pub fn has_whitening(&self) -> bool {
        self.options.whiten && self.noise.has_samples()
    }

    /// Returns the number of earlier acquisitions of the same encoding, slice, contrast and set.
    fn next_order(&mut self, header: &AcquisitionHeader) -> usize {
        let index = header.index();
        let next = self.orders.entry([index.encoding, index.slice, index.contrast, index.set]).or_default();
        *next += 1;
        *next - 1
    }

    /// Returns the scan of these acquisitions. Each description of a trajectory is one warning.
    fn build(&mut self, shots: ShotData, is_image: bool) -> Result<MeasuredScan> {
        let descriptions = &mut self.descriptions;
        builder::build(&self.header, shots, is_image, &self.options.trajectory, &self.spare, |text| {
            if !descriptions.contains(&text) {
                warn(&*text);
                descriptions.insert(text);
            }
        })
    }

    fn add_signal(&mut self, shot: Shot, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
        let conjugate = self.options.conjugate;
        let checked = check_data(&shot.header, trajectory, data).and_then(|()| with_sign_of_model(data, conjugate));
        match checked {
            Ok(data) => {
                let spare = Arc::clone(&self.spare);
                let parts = self.open_image(&shot)?;
                // A part that has no memory for its samples refuses the acquisition itself.
                let added = parts.into_iter().map(|part| part.add(shot, trajectory, &data, &spare));
                added.fold(Ok(()), Result::and)
            }
            Err(error) => {
                self.refuse_shot(shot, &error);
                Err(error)
            }
        }
    }

    /// Returns the acquisitions to which a new one belongs: of the image, of its calibration, or both. Completes images
    /// whose counter differs.
    ///
    /// # Errors
    /// `BadFile` if the image is already complete.
    fn open_image(&mut self, shot: &Shot) -> Result<Vec<&mut ShotData>> {
        let index = shot.header.index();
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
        let is_shared = is_embedded(&self.header, &shot.header);
        let last = self.last_samples.get(&index.encoding);
        let expected = match self.expected.get(&index).or(last) {
            Some(&samples) => samples,
            // For the first image only: other images may be open for a long time, with fewer samples than announced.
            None if self.open.is_empty() => announced_samples(&self.header, &shot.header),
            None => 0,
        };
        let shots = self.open.entry(index).or_default();
        let mut parts = Vec::new();
        if is_image || is_shared {
            shots.image.expected_samples = expected;
            parts.push(&mut shots.image);
        }
        if shot.usage.has(AcquisitionPurpose::Calibration) || is_shared {
            parts.push(&mut shots.calibration);
        }
        Ok(parts)
    }

    /// Completes the images and calibration data of the acquisitions so far, also if the completion counter did not
    /// change. Later acquisitions with the same counters begin a new image of the same index.
    pub fn complete(&mut self) {
        let indices: Vec<ScanIndex> = self.open.keys().copied().collect();
        self.complete_images(indices, true);
    }

    /// Ends the measurement: all images are complete. Warns of missing shots of images that
    /// [`complete`](Self::complete) completed. With the option `whiten`, warns of noise that had no effect or did not
    /// come.
    pub fn end(&mut self) {
        self.complete_where(|_| true);
        for (key, mut collector) in std::mem::take(&mut self.collectors) {
            warn_of_missing_shots(key, collector.end());
        }
        if self.options.whiten {
            self.noise.report(&self.header);
        }
    }

    fn complete_where(&mut self, is_complete: impl Fn(&ScanIndex) -> bool) {
        let indices: Vec<ScanIndex> = self.open.keys().filter(|index| is_complete(index)).copied().collect();
        self.complete_images(indices, false);
    }

    /// Completes images. `is_part`: later acquisitions may have the same index.
    fn complete_images(&mut self, indices: Vec<ScanIndex>, is_part: bool) {
        if self.complete.is_empty() {
            self.discard_old_calibration();
        }
        for index in indices {
            let Some(mut shots) = self.open.remove(&index) else { continue };
            share_embedded_lines(&self.header, &mut shots, &mut self.uses);
            if !shots.calibration.is_empty() {
                match self.build(shots.calibration, false) {
                    Ok(scan) => self.calibration.push(Arc::new(scan)),
                    // A reconstruction without coil maps does not need calibration.
                    Err(e) => warn(format!("calibration acquisitions are not used: {e}")),
                }
            }
            if !shots.image.is_empty() {
                shots.image.is_part = self.collect_shots(index, &shots.image, is_part);
                self.last_samples.insert(index.encoding, shots.image.kspace.len());
                if !is_part {
                    self.closed.insert(index);
                }
                self.complete.push_back(shots.image);
            }
        }
    }

    /// Keeps the newest calibration data of each series of images only, so that a long measurement does not fill the
    /// memory. All images so far have been taken.
    fn discard_old_calibration(&mut self) {
        let mut newest = BTreeSet::new();
        let mut is_newest: Vec<bool> =
            self.calibration.iter().rev().map(|other| newest.insert(other.scan.index.slice_key())).collect();
        self.calibration.retain(|_| is_newest.pop() == Some(true));
    }

    /// Counts the shots of an image that is a part, or belongs to earlier parts. Returns whether it does. Warns of
    /// missing shots of the previous repetition.
    fn collect_shots(&mut self, index: ScanIndex, image: &ShotData, is_part: bool) -> bool {
        let key = index.slice_key();
        let has_parts = self.collectors.get(&key).is_some_and(|collector| collector.has_parts_of(index.repetition));
        if !is_part && !has_parts {
            return false;
        }
        if let Some(expected) = expected_shots(&self.header, index.encoding) {
            let steps = image.shots.iter().map(|shot| shot.header.steps());
            let previous = self.collectors.entry(key).or_default().add(expected, index.repetition, steps);
            warn_of_missing_shots(key, previous);
        }
        true
    }

    /// Returns the warnings about missing shots of an image, which are complete unless the image is a part.
    fn check_shots(&mut self, image: &ShotData) -> Option<String> {
        let first = image.shots.first()?.header;
        let expected = expected_shots(&self.header, first.encoding_space_ref)?;
        let count = image.shots.len();
        if !expected.is_known {
            return fewer_shots(count, self.max_shots.entry(first.encoding_space_ref).or_default());
        }
        let steps = || image.shots.iter().map(|shot| shot.header.steps()).collect();
        (!image.is_part).then(|| missing_shots(&expected, &steps(), count))?
    }

    /// Returns the data of the next complete image, in ascending order of the indices that were completed together.
    /// Returns `None` without a complete image.
    ///
    /// # Errors
    /// This image is left out, and the next call returns the next one. `BadFile`, `CoordinateOutOfRange`, `NotFinite`,
    /// `Unsupported` if the acquisitions do not give an image; the error of an acquisition that was refused; the errors
    /// of [`whiten`](super::whiten).
    pub fn next_image(&mut self) -> Option<Result<AssembledImage>> {
        let shots = self.complete.pop_front()?;
        let index = shots.index();
        let image = self.assemble(shots);
        Some(image.map_err(|error| match index {
            Some(index) => error.within(index),
            None => error,
        }))
    }

    fn assemble(&mut self, shots: ShotData) -> Result<AssembledImage> {
        let missing = self.check_shots(&shots);
        let mut image = self.build(shots, true)?;
        if let Some(text) = missing {
            warn(format!("an image {text}"));
        }
        if self.options.whiten {
            self.noise.whiten_scan(&mut image.scan, &self.spare)?;
        }
        image.scan = self.window.add(image.scan)?;
        check_spread(&image.scan);
        let indices = self.calibration.iter().map(|other| &other.scan.index);
        let calibration =
            position_of(indices, &image.scan.index).map(|position| Arc::clone(&self.calibration[position]));
        let has_other_calibration = calibration.is_none() && !self.calibration.is_empty();
        Ok(AssembledImage { image, calibration, has_other_calibration })
    }

    /// Returns the noise so far, one entry per number of coils and sample time.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn noise(&self) -> Result<Vec<Noise>> {
        self.noise.noise()
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
            scans.push(scan?.image.scan);
        }
        let (noise, uses) = (self.noise()?, self.uses());
        let calibration = self.calibration.into_iter().map(|scan| Arc::unwrap_or_clone(scan).scan).collect();
        Ok(Dataset { header: self.header, scans, noise, calibration, uses })
    }
}

/// Returns the number of samples of an image that the encoding limits announce; 0 without limits. A number that would
/// occupy much memory is not believed.
fn announced_samples(header: &Header, acquisition: &AcquisitionHeader) -> usize {
    const MAX_BYTES: usize = 64 << 20;
    let encoding = header.encodings.get(usize::from(acquisition.encoding_space_ref));
    let shots: usize = match encoding.map(|encoding| encoding.steps) {
        Some([Some(first), second]) => first.count() * second.map_or(1, |limits| limits.count()),
        _ => 0,
    };
    let samples = shots.saturating_mul(acquisition.kept_samples().len());
    let bytes = samples.saturating_mul(usize::from(acquisition.active_channels) * size_of::<Complex<f32>>());
    if bytes <= MAX_BYTES {
        samples
    } else {
        0
    }
}

/// Returns samples with the sign of the model. `conjugate`: they have the other one.
fn with_sign_of_model(data: &[Complex<f32>], conjugate: bool) -> Result<Cow<'_, [Complex<f32>]>> {
    match conjugate {
        true => try_collect(data.len(), "the data", data.iter().map(|z| z.conj())).map(Cow::Owned),
        false => Ok(Cow::Borrowed(data)),
    }
}

/// Returns the expected shots of an encoding; `None` for an unknown encoding, and for Cartesian scans, which may leave
/// out lines on purpose.
fn expected_shots(header: &Header, encoding: u16) -> Option<ExpectedShots> {
    let encoding = header.encodings.get(usize::from(encoding))?;
    (encoding.trajectory != TrajectoryKind::Cartesian).then(|| ExpectedShots::of(encoding))
}

/// Warns of missing shots of an image that was completed in several parts.
fn warn_of_missing_shots([_, slice, ..]: SliceKey, missing: Option<(u16, String)>) {
    if let Some((repetition, text)) = missing {
        warn(format!("the image of slice {slice}, repetition {repetition} {text}"));
    }
}

/// Checks the length of an acquisition's data.
fn check_len(header: &AcquisitionHeader, data: &[Complex<f32>]) -> Result<()> {
    let (count, coils) = (header.number_of_samples as usize, header.active_channels as usize);
    if data.len() != count * coils {
        let (n, need) = (2 * data.len(), 2 * count * coils);
        bail!(BadFile, "the data have {n} numbers, but {count} complex samples of {coils} coils need {need}");
    }
    Ok(())
}

/// Checks the arrays of an acquisition.
fn check_data(header: &AcquisitionHeader, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
    header.check_encoding()?;
    let (count, dimensions) = (header.number_of_samples as usize, header.trajectory_dimensions as usize);
    if trajectory.len() != count * dimensions {
        let (n, d, need) = (trajectory.len(), dimensions, count * dimensions);
        bail!(BadFile, "the trajectory has {n} numbers, but {count} samples of {d} dimensions need {need}");
    }
    check_len(header, data)?;
    header.dwell()?;
    let kept = header.kept_samples();
    for (coil, samples) in data.chunks_exact(count.max(1)).enumerate() {
        let kept_samples = samples.get(kept.clone()).unwrap_or_default();
        // A fold without branches takes a fraction of the time of a search.
        let is_finite = |z: &Complex<f32>| (z.re.abs() < f32::INFINITY) & (z.im.abs() < f32::INFINITY);
        if kept_samples.iter().fold(true, |all, z| all & is_finite(z)) {
            continue;
        }
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
