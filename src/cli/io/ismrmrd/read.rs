//! Reads ISMRMRD raw data.

use super::header::{CalibrationMode, Encoding, Header, TrajectoryKind};
use super::scan::{Dataset, Noise, Scan};
use super::storage::{check_stored, checked_type, flag, hdf5_error, open, Acquisition, AcquisitionHead};
use crate::io::bytes::wrap_coordinate;
use crate::io::image::{Placement, ScanIndex};
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenArray, VarLenAscii, VarLenUnicode};
use num_complex::Complex;
use recon::acquisition::{AcquisitionPurpose, AcquisitionUse};
use recon::error::{bail, checked_product, try_vec, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Heads read at a time.
const HEADS: usize = 4096;
/// Acquisitions read at a time, at most, and their bytes.
const ACQUISITIONS: usize = 1024;
const BATCH_BYTES: usize = 16 << 20;
/// The longest XML header of fixed length that is read, in bytes.
const MAX_XML: usize = 1 << 20;

/// The part of an acquisition that is read first, for all acquisitions.
#[derive(hdf5::H5Type, Clone, Copy)]
#[repr(C)]
struct HeadOnly {
    head: AcquisitionHead,
}

/// The part that is read afterwards.
#[derive(hdf5::H5Type)]
#[repr(C)]
struct Body {
    traj: VarLenArray<f32>,
    data: VarLenArray<f32>,
}

/// Reads the raw data of the group `group`, or of `dataset` when none is named.
///
/// [`AcquisitionUse`] decides from an acquisition's flags whether it is image, calibration or noise; a line in the log
/// counts them. Where the header says that calibration is embedded, its lines are part of the image as well. Samples
/// marked to be discarded are dropped. A file may have noise and no image.
///
/// The image is 2D when the encoded matrix has one voxel along z, otherwise 3D. With as many trajectory dimensions as
/// the image has, these are the coordinates; with one more, the last is the density weight. Three dimensions of a 2D
/// image are thus (kx, ky, weight); only when the third is zero in every sample of an image is it taken for kz and
/// dropped. Two dimensions of a 3D image are (kx, ky) of a stack, with kz from `kspace_encode_step_2`. Without a
/// trajectory, a Cartesian one is computed: k = (step - centre) / n. The centre of the readout comes from
/// `center_sample` (floor(samples / 2) where that is zero and not possible), the centre of the other axes from the
/// encoding limits (floor(n/2) where the header has none). A reversed readout runs from its other end. A coordinate of
/// 0.5, or just outside by rounding, becomes the edge.
///
/// Ambiguous files are logged with a warning: weights that do not change along a shot, a kz that is never negative,
/// encoding steps that repeat or differ unexpectedly, fewer shots than announced.
///
/// # Errors
/// `IO` when the file cannot be opened; `BadFile` when it is not an HDF5 file, or is truncated, has no such group,
/// no header or no acquisitions that make an image, or when counts in it disagree; `NotFinite` for a NaN or infinite
/// number and `CoordinateOutOfRange`, both with the acquisition, coil and sample; `Unsupported` for a trajectory that
/// would have to be computed and is not Cartesian. Messages begin with the name of the file.
pub fn read_dataset(path: impl AsRef<Path>, group: Option<&str>) -> Result<Dataset> {
    let path = path.as_ref();
    read(path, group.unwrap_or("dataset")).map_err(|e| e.within(path.display()))
}

fn read(path: &Path, group: &str) -> Result<Dataset> {
    let file = open(path)?;
    let Ok(node) = file.group(group) else {
        let mut names = file.member_names().unwrap_or_default();
        names.sort();
        let list = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        bail!(BadFile, "there is no group {group:?}; the file has: {list}");
    };
    let header = Header::from_xml(&read_xml(&node, group)?)?;
    let Ok(set) = node.dataset("data") else {
        bail!(BadFile, "there is no {group}/data: this file has no raw data");
    };
    if set.ndim() != 1 {
        bail!(BadFile, "{group}/data has {} dimensions where raw data have one", set.ndim());
    }
    if set.size() == 0 {
        bail!(BadFile, "{group}/data has no acquisitions");
    }
    checked_type::<Acquisition>(&set, "data")?;
    check_stored(&set, "data")?;

    let (mut heads, noise, mut uses) = read_heads(&set)?;
    share_embedded_lines(&header, &mut heads, &mut uses);
    let list = uses.iter().map(|(of, n)| format!("{n} {}", of.name())).collect::<Vec<_>>().join(", ");
    let is_image = |h: &Head| h.of.has(AcquisitionPurpose::Image);
    if !heads.iter().any(is_image) && noise.is_empty() {
        bail!(BadFile, "none of the {} acquisitions is image data: {list}", set.size());
    }
    if uses.keys().any(|of| *of != AcquisitionUse::Image) {
        log::info!("{}: {} acquisitions: {list}", path.display(), set.size());
    }
    // The samples are stored without compression, so that the file's length bounds them.
    let length = std::fs::metadata(path).map(|m| m.len()).unwrap_or(u64::MAX);
    let announced = heads
        .iter()
        .chain(&noise)
        .fold(0u64, |sum, h| sum.saturating_add(h.head.number_of_samples as u64 * h.head.active_channels as u64 * 8));
    if announced > length {
        bail!(BadFile, "the acquisitions announce {announced} bytes of data in a file of {length}: it is damaged");
    }

    let (images, image_of) = groups(&heads, AcquisitionPurpose::Image);
    let (lines, calibration_of) = groups(&heads, AcquisitionPurpose::Calibration);
    let mut builders = images.iter().map(|m| Builder::new(&header, m)).collect::<Result<Vec<_>>>()?;
    let mut calibration: Vec<Option<Builder>> = Vec::with_capacity(lines.len());
    for members in &lines {
        let made = Builder::new(&header, members);
        calibration.push(match made {
            Ok(made) => Some(made),
            // A reconstruction without coil maps does not need it.
            Err(e) => {
                log::warn!("{}: calibration acquisitions are not used: {e}", path.display());
                None
            }
        });
    }
    read_bodies(&set, &heads, |i, h, body| {
        if let Some(builder) = image_of[i].and_then(|scan| builders.get_mut(scan)) {
            builder.add(h, &body.traj, &body.data)?;
        }
        if let Some(Some(builder)) = calibration_of[i].and_then(|scan| calibration.get_mut(scan)) {
            builder.add(h, &body.traj, &body.data)?;
        }
        Ok(())
    })?;
    let scans = builders.into_iter().zip(&images).map(|(builder, m)| builder.finish(m)).collect::<Result<_>>()?;
    let calibration = calibration.into_iter().flatten().map(Builder::finish_calibration).collect::<Result<_>>()?;
    let noise = read_noise(&set, &noise)?;
    Ok(Dataset { header, scans, noise, calibration, uses: uses.into_iter().collect() })
}

/// Groups the heads of one purpose by the image that they belong to. Returns the members of each group, and the group
/// of each head.
fn groups(heads: &[Head], purpose: AcquisitionPurpose) -> (Vec<Vec<&Head>>, Vec<Option<usize>>) {
    let mut numbers: BTreeMap<ScanIndex, usize> = BTreeMap::new();
    for h in heads.iter().filter(|h| h.of.has(purpose)) {
        numbers.entry(h.index()).or_default();
    }
    for (position, number) in numbers.values_mut().enumerate() {
        *number = position;
    }
    let mut members = vec![Vec::new(); numbers.len()];
    let group = |h: &Head| numbers.get(&h.index()).copied().filter(|_| h.of.has(purpose));
    let of_head: Vec<Option<usize>> = heads.iter().map(group).collect();
    for (h, group) in heads.iter().zip(&of_head) {
        if let Some(group) = group {
            members[*group].push(h);
        }
    }
    (members, of_head)
}

/// Lets image and calibration share the lines of a Cartesian encoding whose header says that calibration is embedded.
///
/// Calibration lines then belong to the image as well, unless the image has an acquisition of the same encoding steps:
/// a line that was measured for both purposes is not to count twice. Image lines between the first and the last
/// calibration line are used for calibration as well: some converters flag only the lines that parallel imaging would
/// leave out.
fn share_embedded_lines(header: &Header, heads: &mut [Head], uses: &mut BTreeMap<AcquisitionUse, usize>) {
    let is_embedded = |h: &Head| {
        let encoding = header.encodings.get(h.head.encoding_space_ref as usize);
        let has_lines = |e: &Encoding| h.head.trajectory_dimensions == 0 || e.trajectory == TrajectoryKind::Cartesian;
        encoding.filter(|e| has_lines(e)).and_then(|e| e.parallel).map(|p| p.calibration)
            == Some(Some(CalibrationMode::Embedded))
    };
    let steps = |h: &Head| [h.head.idx.kspace_encode_step_1, h.head.idx.kspace_encode_step_2];
    let mut images: BTreeMap<ScanIndex, BTreeSet<[u16; 2]>> = BTreeMap::new();
    // The first and last calibration steps.
    let mut ranges: BTreeMap<ScanIndex, [[u16; 2]; 2]> = BTreeMap::new();
    for h in heads.iter().filter(|h| is_embedded(h)) {
        let here = steps(h);
        if h.of.has(AcquisitionPurpose::Image) {
            images.entry(h.index()).or_default().insert(here);
        }
        if h.of.has(AcquisitionPurpose::Calibration) {
            let [first, last] = ranges.entry(h.index()).or_insert([here; 2]);
            for which in 0..2 {
                (first[which], last[which]) = (first[which].min(here[which]), last[which].max(here[which]));
            }
        }
    }
    for h in heads.iter_mut().filter(|h| is_embedded(h)) {
        let (index, here) = (h.index(), steps(h));
        let shared = match h.of {
            // The first of several, if the image does not have the line.
            AcquisitionUse::Calibration => images.get_mut(&index).is_some_and(|image| image.insert(here)),
            AcquisitionUse::Image => {
                ranges.get(&index).is_some_and(|[first, last]| (0..2).all(|i| (first[i]..=last[i]).contains(&here[i])))
            }
            _ => false,
        };
        if shared {
            if let Some(count) = uses.get_mut(&h.of) {
                *count -= 1;
            }
            h.of = AcquisitionUse::ImageAndCalibration;
            *uses.entry(h.of).or_default() += 1;
        }
    }
    uses.retain(|_, count| *count > 0);
}

/// Calls `use_body` with each acquisition, and its position in `heads`.
fn read_bodies(
    set: &hdf5::Dataset,
    heads: &[Head],
    mut use_body: impl FnMut(usize, &Head, &Body) -> Result<()>,
) -> Result<()> {
    let mut first = 0;
    while first < heads.len() {
        let (mut count, mut bytes) = (1, heads[first].bytes());
        while count < ACQUISITIONS && first + count < heads.len() {
            let next = &heads[first + count];
            bytes += next.bytes();
            if next.number != heads[first].number + count || bytes > BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let start = heads[first].number;
        let what = format!("acquisitions {start} to {} cannot be read: the file is damaged", start + count - 1);
        let bodies = set.read_slice_1d::<Body, _>(start..start + count);
        let bodies = bodies.map_err(hdf5_error(ErrorKind::BadFile, &what))?;
        for (i, body) in bodies.iter().enumerate() {
            let h = &heads[first + i];
            let used = use_body(first + i, h, body);
            used.map_err(|e| e.within(format_args!("acquisition {}", h.number)))?;
        }
        first += count;
    }
    Ok(())
}

/// The noise of acquisitions, whose samples are all kept.
fn read_noise(set: &hdf5::Dataset, heads: &[Head]) -> Result<Vec<Noise>> {
    // Of each number of coils and sample time: the samples of each coil.
    let mut kinds: BTreeMap<(usize, u32), Vec<Vec<Complex<f32>>>> = BTreeMap::new();
    read_bodies(set, heads, |_, h, body| {
        let (count, coils) = (h.head.number_of_samples as usize, h.head.active_channels as usize);
        if body.data.len() != 2 * count * coils {
            let (n, need) = (body.data.len(), 2 * count * coils);
            bail!(BadFile, "the noise has {n} numbers, but {count} complex samples of {coils} coils need {need}");
        }
        let dwell = checked_dwell(&h.head)? as f32;
        let kind = kinds.entry((coils, dwell.to_bits())).or_insert_with(|| vec![Vec::new(); coils]);
        for (coil, numbers) in kind.iter_mut().zip(body.data.chunks_exact(2 * count.max(1))) {
            coil.extend(numbers.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])));
        }
        Ok(())
    })?;
    let noise =
        |((coils, dwell), data): (_, Vec<Vec<_>>)| Noise { coils, dwell: f32::from_bits(dwell), data: data.concat() };
    Ok(kinds.into_iter().map(noise).filter(|noise| !noise.data.is_empty()).collect())
}

/// The seconds from one sample of an acquisition to the next.
fn checked_dwell(head: &AcquisitionHead) -> Result<f64> {
    let dwell = head.sample_time_us as f64 * 1e-6;
    if !dwell.is_finite() || dwell < 0.0 {
        bail!(BadFile, "the sample time is {} microseconds", head.sample_time_us);
    }
    Ok(dwell)
}

fn read_xml(node: &hdf5::Group, group: &str) -> Result<String> {
    let Ok(set) = node.dataset("xml") else {
        bail!(BadFile, "there is no {group}/xml: raw data need their XML header");
    };
    let kind = set.dtype().and_then(|t| t.to_descriptor());
    let kind = kind.map_err(hdf5_error(ErrorKind::BadFile, "the type of xml cannot be read"))?;
    if set.size() != 1 {
        bail!(BadFile, "{group}/xml has {} entries where one is expected", set.size());
    }
    macro_rules! bytes {
        ($t:ty) => {
            set.read_raw::<$t>().map(|v| v.first().map(|s| s.as_bytes().to_vec()).unwrap_or_default())
        };
    }
    let bytes = match kind {
        TypeDescriptor::VarLenAscii => bytes!(VarLenAscii),
        TypeDescriptor::VarLenUnicode => bytes!(VarLenUnicode),
        TypeDescriptor::FixedAscii(n) if n <= MAX_XML => bytes!(FixedAscii<MAX_XML>),
        TypeDescriptor::FixedUnicode(n) if n <= MAX_XML => bytes!(FixedUnicode<MAX_XML>),
        _ => bail!(BadFile, "{group}/xml is not a text"),
    };
    let bytes = bytes.map_err(hdf5_error(ErrorKind::BadFile, "the XML header cannot be read"))?;
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => bail!(BadFile, "the XML header is empty"),
        Ok(text) => Ok(text),
        Err(_) => bail!(BadFile, "the XML header is not UTF-8"),
    }
}

/// The head of an acquisition that is read.
struct Head {
    /// The position in the file.
    number: usize,
    head: AcquisitionHead,
    of: AcquisitionUse,
}

impl Head {
    fn index(&self) -> ScanIndex {
        let i = &self.head.idx;
        ScanIndex {
            encoding: self.head.encoding_space_ref,
            slice: i.slice,
            repetition: i.repetition,
            contrast: i.contrast,
            phase: i.phase,
            set: i.set,
            average: 0,
        }
    }

    fn bytes(&self) -> usize {
        let h = &self.head;
        h.number_of_samples as usize * (8 * h.active_channels as usize + 4 * h.trajectory_dimensions as usize)
    }

    /// The samples that are not discarded.
    fn kept(&self) -> std::ops::Range<usize> {
        let (n, pre, post) = (self.head.number_of_samples, self.head.discard_pre, self.head.discard_post);
        pre as usize..(n as usize).saturating_sub(post as usize).max(pre as usize)
    }
}

/// Reads the heads of all acquisitions. Returns those of images and calibration, those of noise, and the numbers of
/// acquisitions by their use.
fn read_heads(set: &hdf5::Dataset) -> Result<(Vec<Head>, Vec<Head>, BTreeMap<AcquisitionUse, usize>)> {
    let count = set.size();
    let (mut heads, mut noise, mut uses) = (Vec::new(), Vec::new(), BTreeMap::new());
    for start in (0..count).step_by(HEADS) {
        let end = (start + HEADS).min(count);
        let what = format!("the heads of acquisitions {start} to {} cannot be read: the file is damaged", end - 1);
        let part = set.read_slice_1d::<HeadOnly, _>(start..end);
        for (i, HeadOnly { head }) in part.map_err(hdf5_error(ErrorKind::BadFile, &what))?.iter().enumerate() {
            let of = AcquisitionUse::of_flags(head.flags);
            *uses.entry(of).or_default() += 1;
            match of {
                AcquisitionUse::Noise => noise.push(Head { number: start + i, head: *head, of }),
                AcquisitionUse::Unused(_) => {}
                _ => heads.push(Head { number: start + i, head: *head, of }),
            }
        }
    }
    Ok((heads, noise, uses))
}

/// The source of a scan's coordinates.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    /// The trajectory of the file, with or without a density weight.
    File { weights: bool },
    /// (kx, ky) from the file, kz from an encoding step.
    Stack,
    /// The encoding steps.
    Grid,
}

impl Source {
    fn of(encoding: &Encoding, ndim: usize, first: &Head) -> Result<Source> {
        Ok(match first.head.trajectory_dimensions as usize {
            0 if encoding.trajectory == TrajectoryKind::Cartesian => Source::Grid,
            0 => bail!(
                Unsupported,
                "acquisition {}: no trajectory is stored, and a {} one cannot be computed: store it, or set \
                 <trajectory> to cartesian if it is",
                first.number,
                encoding.trajectory.name()
            ),
            d if d == ndim => Source::File { weights: false },
            d if d == ndim + 1 => Source::File { weights: true },
            2 => Source::Stack,
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

/// The samples kept of all acquisitions of an image, whose counts are checked.
fn kept_samples(members: &[&Head]) -> Result<usize> {
    let first = members[0];
    let (coils, dimensions) = (first.head.active_channels as usize, first.head.trajectory_dimensions as usize);
    let mut samples = 0;
    for m in members {
        let h = &m.head;
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
        if m.kept().is_empty() {
            bail!(
                BadFile,
                "acquisition {} keeps no samples: it has {} and discards {} before and {} after",
                m.number,
                h.number_of_samples,
                h.discard_pre,
                h.discard_post
            );
        }
        samples += m.kept().len();
    }
    Ok(samples)
}

/// A scan while it is read.
struct Builder<'a> {
    scan: Scan,
    encoding: &'a Encoding,
    source: Source,
    dimensions: usize,
    samples: usize,
    /// The number of samples read so far.
    filled: usize,
}

impl<'a> Builder<'a> {
    fn new(header: &'a Header, members: &[&Head]) -> Result<Builder<'a>> {
        let (first, head) = (members[0], &members[0].head);
        let mut index = first.index();
        index.average = members.iter().map(|m| m.head.idx.average).min().unwrap_or(0);
        let Some(encoding) = header.encodings.get(index.encoding as usize) else {
            let (n, have) = (first.number, header.encodings.len());
            bail!(BadFile, "acquisition {n} refers to encoding {}, but the header has {have}", index.encoding);
        };
        let ndim = if encoding.encoded.matrix[2] == 1 { 2 } else { 3 };
        let (coils, dimensions) = (head.active_channels as usize, head.trajectory_dimensions as usize);
        let source = Source::of(encoding, ndim, first)?;
        let samples = kept_samples(members)?;
        let reserve = || {
            let mut v = try_vec(samples, 0f32, "the samples")?;
            v.clear();
            Result::Ok(v)
        };
        let with_weights = source == Source::File { weights: true };
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
        Ok(Builder { scan, encoding, source, dimensions, samples, filled: 0 })
    }

    /// Adds one acquisition: `traj` is [dimensions, samples], `data` is [real and imaginary, samples, coils].
    fn add(&mut self, h: &Head, traj: &[f32], data: &[f32]) -> Result<()> {
        let (count, kept, coils) = (h.head.number_of_samples as usize, h.kept(), self.scan.coils);
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
            let to = &mut self.scan.data[coil * self.samples + self.filled..][..kept.len()];
            for (i, (z, pair)) in to.iter_mut().zip(from.chunks_exact(2)).enumerate() {
                *z = Complex::new(pair[0], pair[1]);
                if !z.is_finite() {
                    bail!(NotFinite, "coil {coil}, sample {}: the data are {z}", kept.start + i);
                }
            }
        }
        match self.source {
            Source::File { .. } => self.add_points(traj, kept.clone())?,
            Source::Stack => {
                self.add_points(traj, kept.clone())?;
                let k = self.step(1, h.head.idx.kspace_encode_step_2)?;
                self.scan.coordinates[2].extend(kept.clone().map(|_| k));
            }
            Source::Grid => self.add_line(&h.head, kept.clone())?,
        }
        let dwell = checked_dwell(&h.head)?;
        self.scan.times.extend(kept.clone().map(|i| (i as f64 * dwell) as f32));
        self.scan.samples_per_shot.push(kept.len());
        self.scan.skipped_per_shot.push(kept.start);
        self.filled += kept.len();
        Ok(())
    }

    /// Adds the points of a stored trajectory.
    fn add_points(&mut self, traj: &[f32], kept: std::ops::Range<usize>) -> Result<()> {
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

    /// The encoding step through the centre of k-space along axis 1 + `which`.
    fn centre(&self, which: usize) -> usize {
        self.encoding.steps[which].map_or(self.scan.encoded_matrix[1 + which] / 2, |l| l.center as usize)
    }

    /// The coordinate of an encoding step along axis 1 + `which`.
    fn step(&self, which: usize, step: u16) -> Result<f32> {
        let (n, centre) = (self.scan.encoded_matrix[1 + which], self.centre(which));
        let k = ((step as f64 - centre as f64) / n as f64) as f32;
        match wrap_coordinate(k) {
            Some(k) => Ok(k),
            None => bail!(
                CoordinateOutOfRange,
                "encoding step {} is {step}, and with the centre at {centre} of {n} that is outside k-space: correct \
                 the encoding limits or the matrix size in the XML header",
                which + 1
            ),
        }
    }

    /// Adds a line of the Cartesian grid.
    fn add_line(&mut self, head: &AcquisitionHead, kept: std::ops::Range<usize>) -> Result<()> {
        let n = self.scan.encoded_matrix[0];
        let last = head.number_of_samples as usize - 1;
        // A centre of zero was never set if it would put the end of the readout outside of k-space.
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
        for which in 0..self.scan.ndim - 1 {
            let step = [head.idx.kspace_encode_step_1, head.idx.kspace_encode_step_2][which];
            let k = self.step(which, step)?;
            self.scan.coordinates[1 + which].extend(kept.clone().map(|_| k));
        }
        Ok(())
    }

    fn finish(mut self, members: &[&Head]) -> Result<Scan> {
        self.check_counters(members)?;
        match self.source {
            Source::File { weights } => self.check_trajectory(weights)?,
            Source::Stack | Source::Grid => {}
        }
        Ok(self.scan)
    }

    /// Finishes calibration data. Its counters are its own: what is missing is found when maps are estimated.
    fn finish_calibration(mut self) -> Result<Scan> {
        if let Source::File { weights } = self.source {
            self.check_trajectory(weights)?;
        }
        Ok(self.scan)
    }

    /// Checks that the counters of an image's acquisitions fit its trajectory.
    fn check_counters(&self, members: &[&Head]) -> Result<()> {
        let steps = |which: usize| -> BTreeSet<u16> {
            let step = |h: &&Head| [h.head.idx.kspace_encode_step_1, h.head.idx.kspace_encode_step_2][which];
            members.iter().map(step).collect()
        };
        let (ndim, matrix) = (self.scan.ndim, self.scan.encoded_matrix);
        let partitions = ndim == 2 && steps(1).len() > 1 && members.len() <= u16::MAX as usize;
        if partitions && self.source == Source::Grid {
            bail!(
                BadFile,
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: set the \
                 encoded matrix to the number of partitions"
            );
        }
        // Axes whose coordinates are computed from encoding steps.
        let computed = match self.source {
            Source::Grid => 0..ndim - 1,
            Source::Stack => 1..2,
            Source::File { .. } => 0..0,
        };
        for which in computed.filter(|which| matrix[1 + which] > 1) {
            let (axis, n, counter) = (["y", "z"][which], matrix[1 + which], which + 1);
            let all = steps(which);
            let (Some(&first), Some(&last)) = (all.first(), all.last()) else { continue };
            // A single line is left to the plan's warning.
            if first == last && members.len() > 1 {
                bail!(
                    BadFile,
                    "kspace_encode_step_{counter} is {first} in all {} acquisitions of an image with {n} voxels along \
                     {axis}, where it says the place in k-space: correct the counters, store a trajectory, or set the \
                     encoded matrix to 1 along {axis}",
                    members.len()
                );
            }
            let centre = self.centre(which);
            let (below, above) = (centre as isize - first as isize, last as isize - centre as isize);
            if below.min(above) <= 0 && below.max(above) > 1 {
                log::warn!(
                    "kspace_encode_step_{counter} runs from {first} to {last}, and its centre is {centre}: one half of \
                     k-space along {axis} is missing, and the image will be blurred; correct the encoding limits in \
                     the XML header if it is not"
                );
            }
        }
        if partitions {
            log::warn!(
                "kspace_encode_step_2 differs among the acquisitions of an image with one voxel along z: all are put \
                 into this image; for partitions of a volume, set the encoded matrix to their number along z"
            );
        }
        let counters = |h: &&Head| {
            let i = &h.head.idx;
            (i.kspace_encode_step_1, i.kspace_encode_step_2, i.average, i.segment)
        };
        let different = members.iter().map(counters).collect::<BTreeSet<_>>().len();
        if self.source == Source::Grid && 2 * different <= members.len() {
            log::warn!(
                "{} acquisitions of an image have {different} different counters: those with the same encoding steps, \
                 average and segment are averaged",
                members.len()
            );
        }
        // Cartesian scans may leave out lines on purpose.
        let announced: usize = self.encoding.steps.iter().flatten().map(|l| l.count()).product();
        if self.encoding.trajectory != TrajectoryKind::Cartesian && members.len() < announced {
            log::warn!(
                "an image has {} of the {announced} shots that the encoding limits in the XML header announce: the \
                 measurement was cut short, or counters put its shots into several images",
                members.len()
            );
        }
        Ok(())
    }

    /// Checks the interpretation of a stored trajectory.
    fn check_trajectory(&mut self, with_weights: bool) -> Result<()> {
        let scan = &mut self.scan;
        let (ndim, k) = (scan.ndim, &scan.coordinates);
        // If a writer stored kx of a whole shot and then ky, neighbours in kx are read as a point.
        let square = |f: fn(f32, f32) -> f32| -> f64 {
            k[0].iter().zip(&k[1]).map(|(&x, &y)| f(x, y) as f64).map(|v| v * v).sum()
        };
        let diagonal = square(|x, y| x - y) < 0.01 * square(|x, y| x + y);
        if diagonal && scan.samples_per_shot.len() > 1 && scan.encoded_matrix[..2].iter().all(|&n| n > 1) {
            bail!(
                BadFile,
                "kx and ky are nearly the same in all samples: the {} numbers of a sample's trajectory must stand \
                 together, all of one sample before those of the next",
                self.dimensions
            );
        }
        for (axis, k) in k.iter().enumerate() {
            let n = scan.encoded_matrix[axis];
            // For k near 0 the plan warns.
            if n > 1 && k[0].abs() >= 0.125 && k.iter().all(|&v| (v - k[0]).abs() < 1e-6) {
                let axis = ["x", "y", "z"][axis];
                log::warn!(
                    "k along {axis} is {} in all samples, but the encoded matrix has {n} voxels: the image will not \
                     change along it",
                    k[0]
                );
            }
        }
        if ndim == 3 && !with_weights && k[2].iter().all(|&v| v >= 0.0) && k[2].iter().any(|&v| v > 0.0) {
            log::warn!(
                "the last of 3 trajectory dimensions of a 3D image is never negative: taken for kz; density weights \
                 are the last of 4, after kz"
            );
        }
        let Some(weights) = scan.weights.as_ref().filter(|_| ndim == 2) else { return Ok(()) };
        let mut shots = scan.samples_per_shot.iter().scan(0, |start, &count| {
            let shot = &weights[*start..*start + count];
            *start += count;
            Some(shot)
        });
        if weights.iter().all(|&w| w == 0.0) {
            log::warn!("the third trajectory dimension is zero throughout: taken for kz, not for density weights");
            scan.weights = None;
        } else if shots.all(|shot| shot.len() > 1 && shot.iter().all(|&w| w == shot[0] && w <= 0.5)) {
            log::warn!(
                "the third trajectory dimension does not change along any shot: taken for density weights, not for kz; \
                 --ignore-weights computes others, and for kz, set the encoded matrix to its voxels along z"
            );
        }
        Ok(())
    }
}
