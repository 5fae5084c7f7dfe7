//! Reads ISMRMRD raw data.

use super::acquisitions::{read_bodies, read_headers, read_noise, AcquisitionEntry, AcquisitionList};
use super::header::{CalibrationMode, Header, HeaderEncoding, TrajectoryKind};
use super::scan::{Dataset, Scan};
use super::scan_builder::ScanBuilder;
use super::storage::{check_stored, checked_type, hdf5_error, open, Acquisition};
use crate::io::image::ScanIndex;
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use recon::acquisition::{AcquisitionPurpose, AcquisitionUse};
use recon::error::{bail, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum length of an XML header stored as a string of fixed length, in bytes.
const MAX_XML: usize = 1 << 20;

/// Reads the raw data of the group `group`. Default: `dataset`.
///
/// The flags of an acquisition decide whether it is image, calibration or noise ([`AcquisitionUse`]); a line of the log
/// counts them. If the header says that calibration is embedded, calibration lines are also part of the image. Samples
/// marked as discarded are left out. A file may have noise and no image.
///
/// The image is 2D if the encoded matrix has one voxel along z, otherwise 3D. The trajectory is interpreted by its
/// number of dimensions:
///
/// - As many as the image has: the coordinates.
/// - One more: the coordinates, then the density weight. For a 2D image this is (kx, ky, weight). If the third number
///   is 0 in every sample of the image, it is interpreted as kz and ignored.
/// - Two, for a 3D image: (kx, ky) of a stack, with kz from `kspace_encode_step_2`.
/// - None: a Cartesian trajectory is computed, k = (step - centre) / n.
///
/// The centre of a Cartesian readout is `center_sample`, or floor(samples / 2) if that is 0 and cannot be the centre.
/// The centre of the other axes comes from the encoding limits, or is floor(n/2) if the header does not have them. A
/// reversed readout runs from its other end. A coordinate of 0.5, or one outside by rounding only, becomes the edge.
///
/// Ambiguous files cause a warning: weights that are constant along each shot, a kz that is never negative, encoding
/// steps that repeat or differ unexpectedly, fewer shots than announced.
///
/// # Errors
/// All messages begin with the name of the file.
///
/// - `IO`: the file cannot be opened.
/// - `BadFile`: it is not an HDF5 file, or is truncated; it has no such group, no header, or no acquisitions for an
///   image; or counts disagree.
/// - `NotFinite`, `CoordinateOutOfRange`: the message has the acquisition, the coil and the sample.
/// - `Unsupported`: the trajectory is not in the file and is not Cartesian.
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
    let set = open_acquisitions(&node, group)?;
    let mut acquisitions = read_headers(&set)?;
    share_embedded_lines(&header, &mut acquisitions);
    check_counts(&acquisitions, set.size(), path)?;
    let (scans, calibration) = read_scans(&set, &header, &acquisitions.signal, path)?;
    let noise = read_noise(&set, &acquisitions.noise)?;
    Ok(Dataset { header, scans, noise, calibration, uses: acquisitions.counts.into_iter().collect() })
}

/// Opens the acquisitions, and checks their layout and number.
fn open_acquisitions(node: &hdf5::Group, group: &str) -> Result<hdf5::Dataset> {
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
    Ok(set)
}

/// Checks that there is an image or noise, and that the file can contain the samples that its headers announce.
fn check_counts(acquisitions: &AcquisitionList, total: usize, path: &Path) -> Result<()> {
    let AcquisitionList { signal, noise, counts } = acquisitions;
    let list = counts.iter().map(|(usage, n)| format!("{n} {}", usage.name())).collect::<Vec<_>>().join(", ");
    if !signal.iter().any(|entry| entry.usage.has(AcquisitionPurpose::Image)) && noise.is_empty() {
        bail!(BadFile, "none of the {total} acquisitions is image data: {list}");
    }
    if counts.keys().any(|usage| *usage != AcquisitionUse::Image) {
        log::info!("{}: {total} acquisitions: {list}", path.display());
    }
    // Samples are stored without compression, so that the length of the file bounds them.
    let length = std::fs::metadata(path).map(|m| m.len()).unwrap_or(u64::MAX);
    let announced = signal.iter().chain(noise).fold(0u64, |sum, entry| {
        let header = &entry.header;
        sum.saturating_add(header.number_of_samples as u64 * header.active_channels as u64 * 8)
    });
    if announced > length {
        bail!(BadFile, "the acquisitions announce {announced} bytes of data in a file of {length}: it is damaged");
    }
    Ok(())
}

/// Reads the scans of images and of calibration.
fn read_scans(
    set: &hdf5::Dataset,
    header: &Header,
    entries: &[AcquisitionEntry],
    path: &Path,
) -> Result<(Vec<Scan>, Vec<Scan>)> {
    let (images, image_of) = group_by_image(entries, AcquisitionPurpose::Image);
    let (lines, calibration_of) = group_by_image(entries, AcquisitionPurpose::Calibration);
    let mut builders = images.iter().map(|m| ScanBuilder::new(header, m)).collect::<Result<Vec<_>>>()?;
    // Unusable calibration is a warning only: a reconstruction without coil maps does not need it.
    let calibration_builder = |members: &Vec<&AcquisitionEntry>| {
        let warn = |e| log::warn!("{}: calibration acquisitions are not used: {e}", path.display());
        ScanBuilder::new(header, members).map_err(warn).ok()
    };
    let mut calibration: Vec<Option<ScanBuilder>> = lines.iter().map(calibration_builder).collect();
    read_bodies(set, entries, |i, entry, body| {
        if let Some(builder) = image_of[i].and_then(|scan| builders.get_mut(scan)) {
            builder.add(entry, &body.traj, &body.data)?;
        }
        if let Some(Some(builder)) = calibration_of[i].and_then(|scan| calibration.get_mut(scan)) {
            builder.add(entry, &body.traj, &body.data)?;
        }
        Ok(())
    })?;
    let scans = builders.into_iter().zip(&images).map(|(builder, m)| builder.finish(m)).collect::<Result<_>>()?;
    let calibration = calibration.into_iter().flatten().map(ScanBuilder::finish_calibration).collect::<Result<_>>()?;
    Ok((scans, calibration))
}

/// Groups the acquisitions of one purpose by the image that they belong to. Returns the members of each group, and the
/// group of each acquisition; `None` for other purposes.
fn group_by_image(
    entries: &[AcquisitionEntry],
    purpose: AcquisitionPurpose,
) -> (Vec<Vec<&AcquisitionEntry>>, Vec<Option<usize>>) {
    let mut numbers: BTreeMap<ScanIndex, usize> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.usage.has(purpose)) {
        numbers.entry(entry.index()).or_default();
    }
    for (position, number) in numbers.values_mut().enumerate() {
        *number = position;
    }
    let mut members = vec![Vec::new(); numbers.len()];
    let group_of = |entry: &AcquisitionEntry| numbers.get(&entry.index()).copied().filter(|_| entry.usage.has(purpose));
    let groups: Vec<Option<usize>> = entries.iter().map(group_of).collect();
    for (entry, group) in entries.iter().zip(&groups) {
        if let Some(group) = group {
            members[*group].push(entry);
        }
    }
    (members, groups)
}

/// Uses lines for both image and calibration, if the encoding is Cartesian and its header says that calibration is
/// embedded.
///
/// A calibration line then also belongs to the image, unless the image has an acquisition of the same encoding steps:
/// a line that was measured for both purposes must not count twice. Image lines between the first and the last
/// calibration line are also used for calibration, because some converters flag only the lines that parallel imaging
/// would leave out.
fn share_embedded_lines(header: &Header, acquisitions: &mut AcquisitionList) {
    let AcquisitionList { signal, counts, .. } = acquisitions;
    let is_embedded = |entry: &AcquisitionEntry| {
        let encoding = header.encodings.get(entry.header.encoding_space_ref as usize);
        let is_cartesian =
            |e: &HeaderEncoding| entry.header.trajectory_dimensions == 0 || e.trajectory == TrajectoryKind::Cartesian;
        encoding.filter(|e| is_cartesian(e)).and_then(|e| e.parallel).map(|p| p.calibration)
            == Some(Some(CalibrationMode::Embedded))
    };
    let mut image_steps: BTreeMap<ScanIndex, BTreeSet<[u16; 2]>> = BTreeMap::new();
    // The first and last calibration steps.
    let mut ranges: BTreeMap<ScanIndex, [[u16; 2]; 2]> = BTreeMap::new();
    for entry in signal.iter().filter(|entry| is_embedded(entry)) {
        let steps = entry.steps();
        if entry.usage.has(AcquisitionPurpose::Image) {
            image_steps.entry(entry.index()).or_default().insert(steps);
        }
        if entry.usage.has(AcquisitionPurpose::Calibration) {
            let [first, last] = ranges.entry(entry.index()).or_insert([steps; 2]);
            for i in 0..2 {
                (first[i], last[i]) = (first[i].min(steps[i]), last[i].max(steps[i]));
            }
        }
    }
    for entry in signal.iter_mut().filter(|entry| is_embedded(entry)) {
        let (index, steps) = (entry.index(), entry.steps());
        let is_shared = match entry.usage {
            // Only the first calibration line of these steps, if the image does not have the line.
            AcquisitionUse::Calibration => image_steps.get_mut(&index).is_some_and(|image| image.insert(steps)),
            AcquisitionUse::Image => {
                ranges.get(&index).is_some_and(|[first, last]| (0..2).all(|i| (first[i]..=last[i]).contains(&steps[i])))
            }
            _ => false,
        };
        if is_shared {
            if let Some(count) = counts.get_mut(&entry.usage) {
                *count -= 1;
            }
            entry.usage = AcquisitionUse::ImageAndCalibration;
            *counts.entry(entry.usage).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 0);
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
