//! Assembles the scan of one image from its acquisitions, and checks how their numbers are interpreted.

use super::consistency::{check, check_gaps, check_step_limits, largest_gap};
use super::header::{Header, HeaderEncoding};
use super::header_trajectory::{trajectory_of, HeaderTrajectory, TrajectoryOptions};
use super::position::Placement;
use super::scan_data::{MeasuredScan, Scan};
use super::shots::{Shot, ShotData};
use super::spare_arrays::SpareArrays;
use super::step_axis::StepAxis;
use super::warnings::warn;
use crate::base::error::{bail, Result};
use crate::base::geometry::wrap_coordinate;
use num_complex::Complex;
use std::collections::BTreeSet;
use std::ops::Range;

/// The origin of a scan's coordinates.
#[derive(Clone, PartialEq)]
enum CoordinateSource {
    /// The trajectory in the file, with or without a density weight.
    File { weights: bool },
    /// (kx, ky) from the file, kz from encoding step 2.
    Stack,
    /// Encoding steps and positions along the readout.
    Grid,
    /// The header.
    Header(HeaderTrajectory),
}

impl CoordinateSource {
    /// `computed`: the trajectory from the header; `None` if the acquisitions have one, or are lines of a grid.
    fn new(ndim: usize, first: &Shot, computed: Option<HeaderTrajectory>) -> Result<CoordinateSource> {
        Ok(match first.header.trajectory_dimensions as usize {
            0 => computed.map_or(CoordinateSource::Grid, CoordinateSource::Header),
            d if d == ndim => CoordinateSource::File { weights: false },
            d if d == ndim + 1 => CoordinateSource::File { weights: true },
            2 => CoordinateSource::Stack,
            d => bail!(
                BadFile,
                "acquisition {}: a trajectory of {d} dimensions for a {ndim}D image: {ndim} are expected, or {} with \
                 density weights",
                first.number,
                ndim + 1
            ),
        })
    }
}

/// A scan that is being assembled.
struct ScanBuilder<'a> {
    scan: Scan,
    encoding: &'a HeaderEncoding,
    source: CoordinateSource,
    /// Numbers per sample of the stored trajectory.
    dimensions: usize,
    /// Whether the centre of a readout is assumed that could be elsewhere.
    has_assumed_centre: bool,
}

/// Returns the scan of these acquisitions. `is_image`: checks the counters too; gaps of calibration data are found when
/// coil maps are estimated. `describe` receives the description of a trajectory from the header.
pub(super) fn build(
    header: &Header,
    mut data: ShotData,
    is_image: bool,
    options: &TrajectoryOptions,
    spare: &SpareArrays,
    describe: impl FnOnce(String),
) -> Result<MeasuredScan> {
    data.take_problem()?;
    // The samples that a computed trajectory leaves out are discarded in the headers of the shots.
    let [first, last] = [&data.shots[0], &data.shots[data.shots.len() - 1]].map(|shot| shot.header);
    let encoding = encoding_of(header, &data.shots[0])?;
    let computed = trajectory_of(header, encoding, &data.shots, options)?;
    if let Some(computed) = &computed {
        data.limit_samples(|shot| computed.available_samples(shot))?;
        describe(computed.describe());
    }
    let ShotData { shots, trajectory, kspace, .. } = data;
    let mut builder = ScanBuilder::new(header, encoding, &shots, computed, spare)?;
    let mut start = 0;
    for shot in &shots {
        let count = shot.header.kept_samples().len();
        let stored = &trajectory[start * builder.dimensions..][..count * builder.dimensions];
        builder.add(shot, stored).map_err(|e| e.within(format_args!("acquisition {}", shot.number)))?;
        start += count;
    }
    spare.put_numbers(trajectory);
    builder.scan.data = kspace.into_array();
    if builder.has_assumed_centre {
        warn(
            "center_sample is 0, which would place samples outside k-space: the middle of the readout is taken as its \
             centre. If it is elsewhere, set center_sample",
        );
    }
    if is_image {
        builder.check_counters(&shots)?;
        builder.check_readouts(&shots);
        builder.check_zeros();
        check(builder.encoding, &shots);
    }
    if let CoordinateSource::File { weights } = builder.source {
        builder.check_trajectory(weights)?;
    }
    Ok(MeasuredScan { scan: builder.scan, first, last })
}

/// Returns the encoding of an acquisition.
///
/// # Errors
/// `BadFile` if the header does not have it.
fn encoding_of<'a>(header: &'a Header, shot: &Shot) -> Result<&'a HeaderEncoding> {
    let number = shot.header.encoding_space_ref;
    let Some(encoding) = header.encodings.get(number as usize) else {
        let (n, count) = (shot.number, header.encodings.len());
        bail!(BadFile, "acquisition {n} refers to encoding {number}, but the header has {count}");
    };
    Ok(encoding)
}

impl<'a> ScanBuilder<'a> {
    /// Checks the acquisitions of one image and allocates its arrays.
    fn new(
        header: &Header,
        encoding: &'a HeaderEncoding,
        members: &[Shot],
        computed: Option<HeaderTrajectory>,
        spare: &SpareArrays,
    ) -> Result<ScanBuilder<'a>> {
        let (first, head) = (&members[0], &members[0].header);
        let mut index = head.index();
        index.average = members.iter().map(|m| m.header.idx.average).min().unwrap_or(0);
        let ndim = if encoding.encoded.matrix[2] == 1 { 2 } else { 3 };
        let source = CoordinateSource::new(ndim, first, computed)?;
        let samples = members.iter().map(|shot| shot.header.kept_samples().len()).sum();
        let reserve = || spare.numbers(samples);
        let with_weights = source == CoordinateSource::File { weights: true };
        let scan = Scan {
            index,
            encoded_matrix: encoding.encoded.matrix,
            recon_matrix: encoding.recon.matrix,
            encoded_fov_mm: encoding.encoded.fov_mm,
            recon_fov_mm: encoding.recon.fov_mm,
            trajectory: encoding.trajectory,
            ndim,
            coordinates: (0..ndim).map(|_| reserve()).collect::<Result<_>>()?,
            weights: if with_weights { Some(reserve()?) } else { None },
            samples_per_shot: Vec::with_capacity(members.len()),
            skipped_per_shot: Vec::with_capacity(members.len()),
            coils: head.active_channels as usize,
            data: Vec::new(),
            times: reserve()?,
            placement: Placement {
                // With one excitation per image; in segmented scans TR is the time between excitations.
                repetition_time_ms: match (members, &header.repetition_times_ms[..]) {
                    ([_], [time]) if *time > 0.0 => Some(*time as f32),
                    _ => None,
                },
                ..head.placement()
            },
            coil_matrix: None,
            noise_level: None,
        };
        Ok(ScanBuilder {
            scan,
            encoding,
            source,
            dimensions: head.trajectory_dimensions as usize,
            has_assumed_centre: false,
        })
    }

    /// Adds one acquisition. `trajectory` is [dimensions, samples that are not discarded].
    fn add(&mut self, shot: &Shot, trajectory: &[f32]) -> Result<()> {
        let (header, kept) = (&shot.header, shot.header.kept_samples());
        match &self.source {
            CoordinateSource::File { .. } => self.add_points(trajectory, kept.start)?,
            CoordinateSource::Stack => {
                self.add_points(trajectory, kept.start)?;
                let k = self.step_coordinate(1, header.idx.kspace_encode_step_2)?;
                self.scan.coordinates[2].extend(kept.clone().map(|_| k));
            }
            CoordinateSource::Grid => self.add_line(shot, kept.clone())?,
            CoordinateSource::Header(computed) => computed.add(shot, &mut self.scan.coordinates)?,
        }
        let dwell = header.dwell()?;
        self.scan.times.extend(kept.clone().map(|i| (i as f64 * dwell) as f32));
        self.scan.samples_per_shot.push(kept.len());
        self.scan.skipped_per_shot.push(kept.start);
        Ok(())
    }

    /// Adds the points of a stored trajectory, which begins with sample `first`.
    fn add_points(&mut self, trajectory: &[f32], first: usize) -> Result<()> {
        let (ndim, dimensions) = (self.scan.ndim, self.dimensions);
        // Nearly all readouts are within k-space, and need no decision for each number.
        let is_inside = |point: &[f32]| {
            let (coordinates, weight) = point.split_at(ndim.min(dimensions));
            let is_inside = coordinates.iter().fold(true, |all, k| all & (*k >= -0.5) & (*k < 0.5));
            weight.iter().fold(is_inside, |all, weight| all & (*weight >= 0.0) & (*weight < f32::INFINITY))
        };
        if trajectory.chunks_exact(dimensions).fold(true, |all, point| all & is_inside(point)) {
            let arrays = self.scan.coordinates.iter_mut().chain(&mut self.scan.weights);
            for (axis, array) in arrays.enumerate().take(dimensions) {
                array.extend(trajectory.chunks_exact(dimensions).map(|point| point[axis]));
            }
            return Ok(());
        }
        for (point, sample) in trajectory.chunks_exact(self.dimensions).zip(first..) {
            for (axis, &k) in point.iter().enumerate() {
                if !k.is_finite() {
                    bail!(NotFinite, "sample {sample}: number {axis} of its trajectory is {k}");
                }
                match (axis < ndim, wrap_coordinate(k)) {
                    (true, Some(k)) => self.scan.coordinates[axis].push(k),
                    (true, None) => bail!(
                        CoordinateOutOfRange,
                        "sample {sample}: coordinate {axis} is {k}, outside [-0.5, 0.5]: trajectories are in cycles \
                         per voxel of the encoded matrix: divide those in cycles per field of view by the matrix size, \
                         radians by 2 pi"
                    ),
                    (false, _) if k < 0.0 => bail!(
                        BadFile,
                        "sample {sample}: the density weight is {k}: the last of {} trajectory dimensions of a \
                         {ndim}D image is the weight, and cannot be negative{}",
                        self.dimensions,
                        if ndim == 2 {
                            "; for kz, the encoded matrix must have more than one voxel along z"
                        } else {
                            ""
                        }
                    ),
                    (false, _) => {
                        if let Some(weights) = &mut self.scan.weights {
                            weights.push(k);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the encoding step through the centre of k-space along axis 1 + `which`.
    fn centre(&self, which: usize) -> usize {
        StepAxis::new(self.encoding, which).centre
    }

    /// Returns the coordinate of an encoding step along axis 1 + `which`.
    fn step_coordinate(&self, which: usize, step: u16) -> Result<f32> {
        StepAxis::new(self.encoding, which).coordinate(step)
    }

    /// Adds a line of the Cartesian grid.
    fn add_line(&mut self, shot: &Shot, kept: Range<usize>) -> Result<()> {
        let (n, head) = (self.scan.encoded_matrix[0], &shot.header);
        let last = head.number_of_samples as usize - 1;
        // A centre of 0 that would place the end of the readout outside k-space means that the writer did not set it.
        let centre = match head.center_sample as usize {
            0 if 2 * last >= n => {
                self.has_assumed_centre |= last + 1 != n;
                head.number_of_samples as usize / 2
            }
            c => c,
        };
        let reverse = head.is_reversed();
        for sample in kept.clone() {
            let position = if reverse { last - sample } else { sample };
            let k = ((position as f64 - centre as f64) / n as f64) as f32;
            match wrap_coordinate(k) {
                Some(k) => self.scan.coordinates[0].push(k),
                None => bail!(
                    CoordinateOutOfRange,
                    "sample {sample} of {} is outside k-space, with the centre at {centre} and {n} voxels: correct \
                     center_sample, or the encoded matrix in the XML header",
                    last + 1
                ),
            }
        }
        for (which, &step) in head.steps().iter().enumerate().take(self.scan.ndim - 1) {
            let k = self.step_coordinate(which, step)?;
            self.scan.coordinates[1 + which].extend(kept.clone().map(|_| k));
        }
        Ok(())
    }

    /// Checks that the encoding steps of axis 1 + `which`, from which coordinates are computed, cover k-space.
    fn check_steps(&self, which: usize, steps: &BTreeSet<u16>, shots: usize) -> Result<()> {
        let (axis, n, counter) = (["y", "z"][which], self.scan.encoded_matrix[1 + which], which + 1);
        let (Some(&first), Some(&last)) = (steps.first(), steps.last()) else { return Ok(()) };
        // The plan warns if there is a single line.
        if first == last && shots > 1 {
            bail!(
                BadFile,
                "kspace_encode_step_{counter} is {first} in all {shots} acquisitions of an image with {n} voxels along \
                 {axis}, but it determines the position in k-space: correct the counters, store a trajectory, or \
                 set the encoded matrix to 1 along {axis}"
            );
        }
        let centre = self.centre(which);
        let (below, above) = (centre as isize - first as isize, last as isize - centre as isize);
        if below.min(above) <= 0 && below.max(above) > 1 {
            warn(format!(
                "kspace_encode_step_{counter} runs from {first} to {last}, and its centre is {centre}: one half of \
                 k-space along {axis} is missing, and the image will be blurred. If k-space is complete, correct \
                 the encoding limits in the XML header; partial Fourier needs at least four lines on the short side"
            ));
        }
        self.check_centre(which, steps);
        Ok(())
    }

    /// Warns if the header does not have the centre of steps that do not reach both ends of k-space.
    fn check_centre(&self, which: usize, steps: &BTreeSet<u16>) {
        let (n, counter) = (self.scan.encoded_matrix[1 + which], which + 1);
        let (Some(&first), Some(&last)) = (steps.first(), steps.last()) else { return };
        let gap = largest_gap(steps).map_or(1, |[a, b]| (b - a) as usize);
        let is_complete = (first as usize) < gap && n < last as usize + 1 + gap;
        if self.encoding.steps[which].is_none() && !is_complete {
            warn(format!(
                "kspace_encode_step_{counter} runs from {first} to {last} with {n} voxels, and the XML header has no \
                 limits <kspace_encoding_step_{counter}>: step {} is taken as the centre of k-space. If it is \
                 another one, add the limits",
                n / 2
            ));
        }
    }

    /// Checks that the counters of an image's acquisitions fit its trajectory.
    fn check_counters(&self, members: &[Shot]) -> Result<()> {
        let steps = |which: usize| -> BTreeSet<u16> { members.iter().map(|shot| shot.header.steps()[which]).collect() };
        let (ndim, matrix) = (self.scan.ndim, self.scan.encoded_matrix);
        let has_partitions = ndim == 2 && steps(1).len() > 1 && members.len() <= u16::MAX as usize;
        if has_partitions && self.source == CoordinateSource::Grid {
            bail!(
                BadFile,
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: set the \
                 encoded matrix to the number of partitions"
            );
        }
        let axes_from_steps = match &self.source {
            CoordinateSource::Grid => 0..ndim - 1,
            CoordinateSource::Stack => 1..2,
            CoordinateSource::File { .. } => 0..0,
            CoordinateSource::Header(computed) => computed.step_axes(),
        };
        for which in axes_from_steps.filter(|which| matrix[1 + which] > 1) {
            self.check_steps(which, &steps(which), members.len())?;
            check_step_limits(self.encoding, which, members);
        }
        if self.source == CoordinateSource::Grid {
            check_gaps(self.encoding, members);
        }
        if has_partitions {
            warn(
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: all are used \
                 for this image. If they are partitions of a volume, set the encoded matrix to their number along z",
            );
        }
        let counters = |shot: &Shot| {
            let i = &shot.header.idx;
            (i.kspace_encode_step_1, i.kspace_encode_step_2, i.average, i.segment)
        };
        let distinct = members.iter().map(counters).collect::<BTreeSet<_>>().len();
        let is_repeated = match self.source {
            CoordinateSource::Grid => distinct < members.len(),
            // Many writers of trajectories leave the counters at 0.
            _ => steps(0).len() > 1 && 2 * distinct <= members.len(),
        };
        if is_repeated {
            warn(format!(
                "{} acquisitions of an image have {distinct} different counters: acquisitions with the same encoding \
                 steps, average and segment are averaged. If they belong to several images, correct their slice, \
                 contrast, phase, repetition or set",
                members.len()
            ));
        }
        Ok(())
    }

    /// Warns if a symmetric readout of a Cartesian grid is shorter than the encoded matrix.
    fn check_readouts(&self, shots: &[Shot]) {
        let n = self.scan.encoded_matrix[0];
        let is_short = |shot: &&Shot| {
            let (h, count) = (&shot.header, shot.header.number_of_samples);
            h.center_sample == count / 2 && (h.discard_pre, h.discard_post) == (0, 0) && usize::from(count) < n
        };
        if self.source != CoordinateSource::Grid {
            return;
        }
        if let Some(shot) = shots.iter().find(is_short) {
            let count = shot.header.number_of_samples;
            warn(format!(
                "acquisition {}: the readout has {count} samples around the centre of k-space, but the encoded matrix \
                 has {n} voxels along x: either the image has {:.0} % of the resolution of this matrix, or an earlier \
                 step removed the oversampling, and the image is wrong: then correct encodedSpace in the XML header, \
                 matrix and field of view",
                shot.number,
                100.0 * f64::from(count) / n as f64
            ));
        }
    }

    /// Warns of acquisitions that are zero in every sample and coil.
    fn check_zeros(&self) {
        let (samples, mut start) = (self.scan.samples(), 0);
        let is_zero = |count: &&usize| {
            let range = start..start + **count;
            start = range.end;
            let mut coils = self.scan.data.chunks_exact(samples);
            coils.all(|coil| coil[range.clone()].iter().all(|z| *z == Complex::ZERO))
        };
        let zeros = self.scan.samples_per_shot.iter().filter(is_zero).count();
        if zeros > 0 {
            warn(format!(
                "{zeros} of the {} acquisitions of an image are zero in every sample and coil, and count as measured, \
                 although every receiver has noise: do not store acquisitions that were not measured",
                self.scan.samples_per_shot.len()
            ));
        }
    }

    /// Checks the interpretation of a stored trajectory.
    fn check_trajectory(&mut self, with_weights: bool) -> Result<()> {
        let scan = &mut self.scan;
        let (ndim, k) = (scan.ndim, &scan.coordinates);
        // If a writer stored kx of a whole shot and then ky, two successive values of kx are read as (kx, ky).
        let sum_of_squares = |f: fn(f32, f32) -> f32| -> f64 {
            k[0].iter().zip(&k[1]).map(|(&x, &y)| f(x, y) as f64).map(|v| v * v).sum()
        };
        let is_diagonal = sum_of_squares(|x, y| x - y) < 0.01 * sum_of_squares(|x, y| x + y);
        if is_diagonal && scan.samples_per_shot.len() > 1 && scan.encoded_matrix[..2].iter().all(|&n| n > 1) {
            bail!(
                BadFile,
                "kx and ky are nearly the same in all samples: store the {} trajectory numbers of each sample \
                 together, before those of the next sample",
                self.dimensions
            );
        }
        for (axis, k) in k.iter().enumerate() {
            let n = scan.encoded_matrix[axis];
            // The plan warns if k is near 0.
            if n > 1 && k[0].abs() >= 0.125 && k.iter().all(|&v| (v - k[0]).abs() < 1e-6) {
                let axis = ["x", "y", "z"][axis];
                warn(format!(
                    "k along {axis} is {} in all samples, but the encoded matrix has {n} voxels: the image will be \
                     constant along {axis}",
                    k[0]
                ));
            }
        }
        if ndim == 3 && !with_weights && k[2].iter().all(|&v| v >= 0.0) && k[2].iter().any(|&v| v > 0.0) {
            warn(
                "the last of 3 trajectory dimensions of a 3D image is never negative: it is read as kz. Density \
                 weights must be the last of 4, after kz",
            );
        }
        let Some(weights) = scan.weights.as_ref().filter(|_| ndim == 2) else { return Ok(()) };
        let mut shots = scan.samples_per_shot.iter().scan(0, |start, &count| {
            let shot = &weights[*start..*start + count];
            *start += count;
            Some(shot)
        });
        if weights.iter().all(|&w| w == 0.0) {
            warn("the third trajectory dimension is 0 in all samples: it is read as kz, not as density weights");
            scan.weights = None;
        } else if shots.all(|shot| shot.len() > 1 && shot.iter().all(|&w| w == shot[0] && w <= 0.5)) {
            warn("the third trajectory dimension is constant along each shot: it is read as density weights, not as kz. If \
                 it is kz, set the encoded matrix to the number of voxels along z; if it is neither, ignore the weights \
                 of the file");
        }
        Ok(())
    }
}
