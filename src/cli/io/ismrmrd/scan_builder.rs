//! Assembles the scan of one image from its acquisitions, and checks how their numbers are interpreted.

use super::acquisitions::AcquisitionEntry;
use super::header::{Header, HeaderEncoding, TrajectoryKind};
use super::scan::Scan;
use super::storage::flag;
use crate::io::bytes::wrap_coordinate;
use crate::io::image::Placement;
use num_complex::Complex;
use recon::error::{bail, checked_product, try_vec, Result};
use std::collections::BTreeSet;
use std::ops::Range;

/// The origin of a scan's coordinates.
#[derive(Clone, Copy, PartialEq)]
enum CoordinateSource {
    /// The trajectory in the file, with or without a density weight.
    File { weights: bool },
    /// (kx, ky) from the file, kz from encoding step 2.
    Stack,
    /// Encoding steps and positions along the readout.
    Grid,
}

impl CoordinateSource {
    fn new(encoding: &HeaderEncoding, ndim: usize, first: &AcquisitionEntry) -> Result<CoordinateSource> {
        Ok(match first.header.trajectory_dimensions as usize {
            0 if encoding.trajectory == TrajectoryKind::Cartesian => CoordinateSource::Grid,
            0 => bail!(
                Unsupported,
                "acquisition {}: no trajectory is stored, and a {} one cannot be computed: store it, or set \
                 <trajectory> to cartesian if the scan is Cartesian",
                first.number,
                encoding.trajectory.name()
            ),
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

/// Returns the number of samples of an image, and checks that its acquisitions agree in coils and dimensions.
fn count_samples(members: &[&AcquisitionEntry]) -> Result<usize> {
    let first = members[0];
    let (coils, dimensions) = (first.header.active_channels as usize, first.header.trajectory_dimensions as usize);
    let mut samples = 0;
    for m in members {
        let h = &m.header;
        if h.active_channels as usize != coils || coils == 0 {
            bail!(
                BadFile,
                "acquisition {} has {} coils and acquisition {} of the same image has {coils}",
                m.number,
                h.active_channels,
                first.number
            );
        }
        if h.trajectory_dimensions as usize != dimensions {
            bail!(
                BadFile,
                "acquisition {} has {} trajectory dimensions and acquisition {} of the same image has {dimensions}",
                m.number,
                h.trajectory_dimensions,
                first.number
            );
        }
        if m.kept_samples().is_empty() {
            bail!(
                BadFile,
                "acquisition {} keeps no samples: it has {} and discards {} before and {} after",
                m.number,
                h.number_of_samples,
                h.discard_pre,
                h.discard_post
            );
        }
        samples += m.kept_samples().len();
    }
    Ok(samples)
}

/// A scan that is being read.
pub(super) struct ScanBuilder<'a> {
    scan: Scan,
    encoding: &'a HeaderEncoding,
    source: CoordinateSource,
    /// Numbers per sample of the trajectory in the file.
    dimensions: usize,
    /// The number of samples of all acquisitions.
    samples: usize,
    /// The number of samples read so far.
    samples_read: usize,
}

impl<'a> ScanBuilder<'a> {
    /// Checks the acquisitions of one image and allocates its arrays.
    pub fn new(header: &'a Header, members: &[&AcquisitionEntry]) -> Result<ScanBuilder<'a>> {
        let (first, head) = (members[0], &members[0].header);
        let mut index = first.index();
        index.average = members.iter().map(|m| m.header.idx.average).min().unwrap_or(0);
        let Some(encoding) = header.encodings.get(index.encoding as usize) else {
            let (n, count) = (first.number, header.encodings.len());
            bail!(BadFile, "acquisition {n} refers to encoding {}, but the header has {count}", index.encoding);
        };
        let ndim = if encoding.encoded.matrix[2] == 1 { 2 } else { 3 };
        let (coils, dimensions) = (head.active_channels as usize, head.trajectory_dimensions as usize);
        let source = CoordinateSource::new(encoding, ndim, first)?;
        let samples = count_samples(members)?;
        let reserve = || {
            let mut v = try_vec(samples, 0f32, "the samples")?;
            v.clear();
            Result::Ok(v)
        };
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
            coils,
            data: try_vec(checked_product(&[samples, coils], "the data")?, Complex::ZERO, "the data")?,
            times: reserve()?,
            placement: Placement {
                position: head.position,
                read_dir: head.read_dir,
                phase_dir: head.phase_dir,
                slice_dir: head.slice_dir,
                table_position: head.patient_table_position,
                measurement_uid: head.measurement_uid,
                acquisition_time_stamp: head.acquisition_time_stamp,
                physiology_time_stamp: head.physiology_time_stamp,
            },
            coil_matrix: None,
            noise_level: None,
        };
        Ok(ScanBuilder { scan, encoding, source, dimensions, samples, samples_read: 0 })
    }

    /// Adds one acquisition: `traj` is [dimensions, samples], `data` is [real and imaginary, samples, coils].
    pub fn add(&mut self, entry: &AcquisitionEntry, traj: &[f32], data: &[f32]) -> Result<()> {
        let header = &entry.header;
        let (count, kept, coils) = (header.number_of_samples as usize, entry.kept_samples(), self.scan.coils);
        if traj.len() != count * self.dimensions {
            let (n, d) = (traj.len(), self.dimensions);
            bail!(BadFile, "the trajectory has {n} numbers, but {count} samples of {d} dimensions need {}", count * d);
        }
        if data.len() != 2 * count * coils {
            let (n, need) = (data.len(), 2 * count * coils);
            bail!(BadFile, "the data have {n} numbers, but {count} complex samples of {coils} coils need {need}");
        }
        for coil in 0..coils {
            let from = &data[2 * (coil * count + kept.start)..2 * (coil * count + kept.end)];
            let to = &mut self.scan.data[coil * self.samples + self.samples_read..][..kept.len()];
            for (i, (z, pair)) in to.iter_mut().zip(from.chunks_exact(2)).enumerate() {
                *z = Complex::new(pair[0], pair[1]);
                if !z.is_finite() {
                    bail!(NotFinite, "coil {coil}, sample {}: the data are {z}", kept.start + i);
                }
            }
        }
        match self.source {
            CoordinateSource::File { .. } => self.add_points(traj, kept.clone())?,
            CoordinateSource::Stack => {
                self.add_points(traj, kept.clone())?;
                let k = self.step_coordinate(1, header.idx.kspace_encode_step_2)?;
                self.scan.coordinates[2].extend(kept.clone().map(|_| k));
            }
            CoordinateSource::Grid => self.add_line(entry, kept.clone())?,
        }
        let dwell = entry.dwell()?;
        self.scan.times.extend(kept.clone().map(|i| (i as f64 * dwell) as f32));
        self.scan.samples_per_shot.push(kept.len());
        self.scan.skipped_per_shot.push(kept.start);
        self.samples_read += kept.len();
        Ok(())
    }

    /// Adds the points of a stored trajectory.
    fn add_points(&mut self, traj: &[f32], kept: Range<usize>) -> Result<()> {
        let ndim = self.scan.ndim;
        for sample in kept {
            for (axis, &k) in traj[sample * self.dimensions..][..self.dimensions].iter().enumerate() {
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
        self.encoding.steps[which].map_or(self.scan.encoded_matrix[1 + which] / 2, |l| l.center as usize)
    }

    /// Returns the coordinate of an encoding step along axis 1 + `which`.
    fn step_coordinate(&self, which: usize, step: u16) -> Result<f32> {
        let (n, centre) = (self.scan.encoded_matrix[1 + which], self.centre(which));
        let k = ((step as f64 - centre as f64) / n as f64) as f32;
        match wrap_coordinate(k) {
            Some(k) => Ok(k),
            None => bail!(
                CoordinateOutOfRange,
                "encoding step {} is {step}, which is outside k-space: the centre is step {centre} of {n}: correct the \
                 encoding limits or the matrix size in the XML header",
                which + 1
            ),
        }
    }

    /// Adds a line of the Cartesian grid.
    fn add_line(&mut self, entry: &AcquisitionEntry, kept: Range<usize>) -> Result<()> {
        let (n, head) = (self.scan.encoded_matrix[0], &entry.header);
        let last = head.number_of_samples as usize - 1;
        // A centre of 0 that would place the end of the readout outside k-space means that the writer did not set it.
        let centre = match head.center_sample as usize {
            0 if 2 * last >= n => head.number_of_samples as usize / 2,
            c => c,
        };
        let reverse = head.flags & flag::bit(flag::REVERSE) != 0;
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
        for (which, &step) in entry.steps().iter().enumerate().take(self.scan.ndim - 1) {
            let k = self.step_coordinate(which, step)?;
            self.scan.coordinates[1 + which].extend(kept.clone().map(|_| k));
        }
        Ok(())
    }

    /// Checks counters and trajectory, and returns the scan of an image.
    pub fn finish(self, members: &[&AcquisitionEntry]) -> Result<Scan> {
        self.check_counters(members)?;
        self.finish_calibration()
    }

    /// Checks the trajectory, and returns a calibration scan. Counters are not checked: gaps are found when coil maps
    /// are estimated.
    pub fn finish_calibration(mut self) -> Result<Scan> {
        if let CoordinateSource::File { weights } = self.source {
            self.check_trajectory(weights)?;
        }
        Ok(self.scan)
    }

    /// Checks that the counters of an image's acquisitions fit its trajectory.
    fn check_counters(&self, members: &[&AcquisitionEntry]) -> Result<()> {
        let steps = |which: usize| -> BTreeSet<u16> { members.iter().map(|entry| entry.steps()[which]).collect() };
        let (ndim, matrix) = (self.scan.ndim, self.scan.encoded_matrix);
        let has_partitions = ndim == 2 && steps(1).len() > 1 && members.len() <= u16::MAX as usize;
        if has_partitions && self.source == CoordinateSource::Grid {
            bail!(
                BadFile,
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: set the \
                 encoded matrix to the number of partitions"
            );
        }
        let axes_from_steps = match self.source {
            CoordinateSource::Grid => 0..ndim - 1,
            CoordinateSource::Stack => 1..2,
            CoordinateSource::File { .. } => 0..0,
        };
        for which in axes_from_steps.filter(|which| matrix[1 + which] > 1) {
            let (axis, n, counter) = (["y", "z"][which], matrix[1 + which], which + 1);
            let all = steps(which);
            let (Some(&first), Some(&last)) = (all.first(), all.last()) else { continue };
            // The plan warns if there is a single line.
            if first == last && members.len() > 1 {
                bail!(
                    BadFile,
                    "kspace_encode_step_{counter} is {first} in all {} acquisitions of an image with {n} voxels along \
                     {axis}, but it determines the position in k-space: correct the counters, store a trajectory, or \
                     set the encoded matrix to 1 along {axis}",
                    members.len()
                );
            }
            let centre = self.centre(which);
            let (below, above) = (centre as isize - first as isize, last as isize - centre as isize);
            if below.min(above) <= 0 && below.max(above) > 1 {
                log::warn!(
                    "kspace_encode_step_{counter} runs from {first} to {last}, and its centre is {centre}: one half of \
                     k-space along {axis} is missing, and the image will be blurred. If k-space is complete, correct \
                     the encoding limits in the XML header; --partial-fourier needs at least four lines on the short \
                     side"
                );
            }
        }
        if has_partitions {
            log::warn!(
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: all are used \
                 for this image. If they are partitions of a volume, set the encoded matrix to their number along z"
            );
        }
        let counters = |entry: &&AcquisitionEntry| {
            let i = &entry.header.idx;
            (i.kspace_encode_step_1, i.kspace_encode_step_2, i.average, i.segment)
        };
        let distinct = members.iter().map(counters).collect::<BTreeSet<_>>().len();
        if self.source == CoordinateSource::Grid && 2 * distinct <= members.len() {
            log::warn!(
                "{} acquisitions of an image have {distinct} different counters: acquisitions with the same encoding \
                 steps, average and segment are averaged",
                members.len()
            );
        }
        // Cartesian scans are not checked: they may leave out lines on purpose.
        let announced: usize = self.encoding.steps.iter().flatten().map(|l| l.count()).product();
        if self.encoding.trajectory != TrajectoryKind::Cartesian && members.len() < announced {
            log::warn!(
                "an image has {} of the {announced} shots that the encoding limits in the XML header announce: the \
                 measurement was cut short, or its shots have the counters of several images",
                members.len()
            );
        }
        Ok(())
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
                log::warn!(
                    "k along {axis} is {} in all samples, but the encoded matrix has {n} voxels: the image will be \
                     constant along {axis}",
                    k[0]
                );
            }
        }
        if ndim == 3 && !with_weights && k[2].iter().all(|&v| v >= 0.0) && k[2].iter().any(|&v| v > 0.0) {
            log::warn!(
                "the last of 3 trajectory dimensions of a 3D image is never negative: it is read as kz. Density \
                 weights must be the last of 4, after kz"
            );
        }
        let Some(weights) = scan.weights.as_ref().filter(|_| ndim == 2) else { return Ok(()) };
        let mut shots = scan.samples_per_shot.iter().scan(0, |start, &count| {
            let shot = &weights[*start..*start + count];
            *start += count;
            Some(shot)
        });
        if weights.iter().all(|&w| w == 0.0) {
            log::warn!("the third trajectory dimension is 0 in all samples: it is read as kz, not as density weights");
            scan.weights = None;
        } else if shots.all(|shot| shot.len() > 1 && shot.iter().all(|&w| w == shot[0] && w <= 0.5)) {
            log::warn!(
                "the third trajectory dimension is constant along each shot: it is read as density weights, not as kz. \
                 --ignore-weights computes other weights; if it is kz, set the encoded matrix to the number of voxels \
                 along z"
            );
        }
        Ok(())
    }
}
