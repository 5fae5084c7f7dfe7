//! Reads ISMRMRD raw data.

use super::acquisitions::{read_bodies, read_headers};
use super::storage::{check_stored, checked_type, hdf5_error, open, Acquisition};
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use num_complex::Complex;
use recon::acquisition::{AcquisitionPurpose, AcquisitionUse};
use recon::error::{bail, ErrorKind, Result};
use recon::scan::{AcquisitionHeader, AssemblyOptions, Dataset, Header, ScanAssembler, MAX_XML};
use std::collections::BTreeMap;
use std::path::Path;

/// A receiver of the raw data of a file.
pub trait RawReceiver {
    /// Receives the header and the headers of all acquisitions.
    fn begin(&mut self, header: Header, acquisitions: &[AcquisitionHeader]) -> Result<()>;
    /// Receives an acquisition, in the order of the file: `trajectory` is [dimensions, samples], `data` is [samples,
    /// coils]. Both are empty for an acquisition that is not used.
    fn add(
        &mut self,
        number: usize,
        header: &AcquisitionHeader,
        trajectory: &[f32],
        data: &[Complex<f32>],
    ) -> Result<()>;
}

/// Assembles the scans of a file.
pub struct DatasetBuilder {
    options: AssemblyOptions,
    assembler: Option<ScanAssembler>,
}

impl DatasetBuilder {
    /// Creates a builder.
    pub fn new(options: AssemblyOptions) -> DatasetBuilder {
        DatasetBuilder { options, assembler: None }
    }

    /// Returns the dataset. Messages begin with the name of the file.
    pub fn finish(self, path: &Path) -> Result<Dataset> {
        let Some(assembler) = self.assembler else {
            bail!(Internal, "{}: raw data ended before their header", path.display());
        };
        let dataset = assembler.finish().map_err(|e| e.within(path.display()))?;
        log_uses(&dataset, path);
        Ok(dataset)
    }
}

impl RawReceiver for DatasetBuilder {
    fn begin(&mut self, header: Header, acquisitions: &[AcquisitionHeader]) -> Result<()> {
        let mut assembler = ScanAssembler::new(header, self.options);
        acquisitions.iter().for_each(|header| assembler.announce(header));
        self.assembler = Some(assembler);
        Ok(())
    }

    fn add(
        &mut self,
        number: usize,
        header: &AcquisitionHeader,
        trajectory: &[f32],
        data: &[Complex<f32>],
    ) -> Result<()> {
        let Some(assembler) = &mut self.assembler else {
            bail!(Internal, "acquisition {number} came before the header");
        };
        let added = assembler.add(number, header, trajectory, data);
        added.map(drop).map_err(|e| e.within(format_args!("acquisition {number}")))
    }
}

/// Reads the raw data of a group, and passes them to a receiver. Samples of acquisitions that are not used are not
/// read. A [`DatasetBuilder`] makes scans of them:
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
pub fn read_raw(path: &Path, group: &str, receiver: &mut impl RawReceiver) -> Result<()> {
    pass_raw(path, group, receiver).map_err(|e| e.within(path.display()))
}

/// Reads the raw data of the group `group` in this process. Default: `dataset`.
pub fn read_dataset(path: impl AsRef<Path>, group: Option<&str>) -> Result<Dataset> {
    let path = path.as_ref();
    let mut builder = DatasetBuilder::new(AssemblyOptions::default());
    read_raw(path, group.unwrap_or("dataset"), &mut builder)?;
    builder.finish(path)
}

fn pass_raw(path: &Path, group: &str, receiver: &mut impl RawReceiver) -> Result<()> {
    let file = open(path)?;
    let Ok(node) = file.group(group) else {
        let mut names = file.member_names().unwrap_or_default();
        names.sort();
        let list = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        bail!(BadFile, "there is no group {group:?}; the file has: {list}");
    };
    let header = Header::from_xml(&read_xml(&node, group)?)?;
    let set = open_acquisitions(&node, group)?;
    let acquisitions = read_headers(&set)?;
    check_counts(&acquisitions, path)?;
    receiver.begin(header, &acquisitions)?;
    read_bodies(&set, &acquisitions, |number, body| {
        let header = &acquisitions[number];
        let data = complex_pairs(&body.data, header);
        let data = data.map_err(|e| e.within(format_args!("acquisition {number}")))?;
        receiver.add(number, header, &body.traj, data)
    })
}

/// Returns real and imaginary parts as complex numbers. An odd number of them is an error.
fn complex_pairs<'a>(numbers: &'a [f32], header: &AcquisitionHeader) -> Result<&'a [Complex<f32>]> {
    if !numbers.len().is_multiple_of(2) {
        let (samples, coils) = (header.number_of_samples as usize, header.active_channels as usize);
        let (n, need) = (numbers.len(), 2 * samples * coils);
        bail!(BadFile, "the data have {n} numbers, but {samples} complex samples of {coils} coils need {need}");
    }
    // SAFETY: a complex number has the layout of its two parts.
    Ok(unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len() / 2) })
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
fn check_counts(headers: &[AcquisitionHeader], path: &Path) -> Result<()> {
    let mut counts: BTreeMap<AcquisitionUse, usize> = BTreeMap::new();
    for header in headers {
        *counts.entry(AcquisitionUse::of_flags(header.flags)).or_default() += 1;
    }
    let is_used = |usage: &AcquisitionUse| usage.has(AcquisitionPurpose::Image) || usage.has(AcquisitionPurpose::Noise);
    if !counts.keys().any(is_used) {
        let list = use_list(counts.iter().map(|(usage, count)| (*usage, *count)));
        bail!(BadFile, "none of the {} acquisitions is image data: {list}", headers.len());
    }
    // Samples are stored without compression, so that the length of the file bounds them.
    let length = std::fs::metadata(path).map(|m| m.len()).unwrap_or(u64::MAX);
    let used = headers.iter().filter(|header| AcquisitionUse::of_flags(header.flags).is_used());
    let announced = used.fold(0u64, |sum, header| {
        sum.saturating_add(header.number_of_samples as u64 * header.active_channels as u64 * 8)
    });
    if announced > length {
        bail!(BadFile, "the acquisitions announce {announced} bytes of data in a file of {length}: it is damaged");
    }
    Ok(())
}

/// Counts the acquisitions by their use in a line of the log.
fn log_uses(dataset: &Dataset, path: &Path) {
    if dataset.uses.iter().any(|(usage, _)| *usage != AcquisitionUse::Image) {
        let total: usize = dataset.uses.iter().map(|(_, count)| count).sum();
        log::info!("{}: {total} acquisitions: {}", path.display(), use_list(dataset.uses.iter().copied()));
    }
}

fn use_list(uses: impl Iterator<Item = (AcquisitionUse, usize)>) -> String {
    uses.map(|(usage, count)| format!("{count} {}", usage.name())).collect::<Vec<_>>().join(", ")
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
