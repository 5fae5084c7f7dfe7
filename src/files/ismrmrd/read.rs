//! Reads ISMRMRD raw data.

use super::acquisitions::AcquisitionTable;
use super::images::read_images;
use super::layout::Acquisition;
use crate::hdf5::{check_stored, hdf5_error, member_names, open, Hdf5File, HeapReader};
use crate::image::Image;
use hdf5_pure::Datatype;
use recon::acquisition::{AcquisitionPurpose, AcquisitionUse};
use recon::error::{bail, ErrorKind, Result};
use recon::scan::{AcquisitionHeader, AssemblyOptions, Dataset, Header, ScanAssembler, MAX_XML};
use std::collections::BTreeMap;
use std::path::Path;

/// The usual group of raw data.
pub const GROUP: &str = "dataset";

/// The raw data of a file: header and acquisitions.
pub struct RawFile {
    /// The XML header.
    pub xml: String,
    table: AcquisitionTable,
}

impl RawFile {
    /// Opens a file, and reads the XML header and the headers of all acquisitions of the group `group`.
    ///
    /// # Errors
    /// As [`read_dataset`]; the message does not begin with the name of the file.
    pub fn open(path: &Path, group: &str) -> Result<RawFile> {
        let file = open(path)?;
        let Ok(node) = file.file.group(group) else {
            let names = member_names(&file.file.root());
            let list = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            bail!(BadFile, "there is no group {group:?}; the file has: {list}");
        };
        let mut heap = HeapReader::new(&file);
        let xml = read_xml(&file, &mut heap, &node, group)?;
        let set = open_acquisitions(&file, &node, group)?;
        let table = AcquisitionTable::read(&set, heap)?;
        check_counts(&table.headers, file.bytes.length())?;
        Ok(RawFile { xml, table })
    }

    /// Returns the headers of all acquisitions.
    pub fn headers(&self) -> &[AcquisitionHeader] {
        &self.table.headers
    }

    /// Calls `use_acquisition` for each acquisition with its number, in the order of the file. Trajectory and data are
    /// empty for an acquisition that `is_used` refuses.
    ///
    /// # Errors
    /// `BadFile` if an acquisition cannot be read, and the errors of `use_acquisition`. The message begins with the
    /// number of the acquisition.
    pub fn for_each(
        &mut self,
        is_used: impl Fn(&AcquisitionHeader) -> bool,
        mut use_acquisition: impl FnMut(usize, &Acquisition) -> Result<()>,
    ) -> Result<()> {
        let mut acquisition = Acquisition::default();
        for number in 0..self.table.headers.len() {
            let mut pass = || {
                if is_used(&self.table.headers[number]) {
                    self.table.acquisition(number, &mut acquisition)?;
                } else {
                    acquisition = Acquisition { header: self.table.headers[number], ..Default::default() };
                }
                use_acquisition(number, &acquisition)
            };
            pass().map_err(|e| e.within(format_args!("acquisition {number}")))?;
        }
        Ok(())
    }
}

/// The contents of a file.
pub enum FileContents {
    /// Raw data.
    Raw(Box<Dataset>),
    /// Images.
    Images(Vec<Image>),
}

/// Reads the raw data of the group `group`; the images of the file if it does not contain raw data.
///
/// # Errors
/// The errors of [`read_dataset`].
pub fn read_either(path: &Path, group: &str, options: AssemblyOptions) -> Result<FileContents> {
    match RawFile::open(path, group) {
        Ok(file) => Ok(FileContents::Raw(Box::new(assemble(file, path, options)?))),
        // If the file does not contain images either, the error about raw data is more helpful.
        Err(e) => read_images(path, None).map(FileContents::Images).map_err(|_| e.within(path.display())),
    }
}

/// Reads the raw data of the group `group`, and makes scans of them. Samples of acquisitions that are not used are not
/// read.
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
pub fn read_dataset(path: &Path, group: &str, options: AssemblyOptions) -> Result<Dataset> {
    let file = RawFile::open(path, group).map_err(|e| e.within(path.display()))?;
    assemble(file, path, options)
}

/// Makes scans of all acquisitions of a file.
fn assemble(mut file: RawFile, path: &Path, options: AssemblyOptions) -> Result<Dataset> {
    let mut assemble = || {
        let mut assembler = ScanAssembler::new(Header::from_xml(&file.xml)?, options);
        file.headers().iter().for_each(|header| assembler.announce(header));
        let is_used = |header: &AcquisitionHeader| AcquisitionUse::of_flags(header.flags).is_used();
        file.for_each(is_used, |number, acquisition| {
            let Acquisition { header, trajectory, data } = acquisition;
            assembler.add(number, header, trajectory, data).map(drop)
        })?;
        assembler.finish()
    };
    let dataset = assemble().map_err(|e| e.within(path.display()))?;
    log_uses(&dataset, path);
    Ok(dataset)
}

/// Opens the acquisitions, and checks their layout and number.
fn open_acquisitions(file: &Hdf5File, node: &hdf5_pure::Group, group: &str) -> Result<hdf5_pure::Dataset> {
    let Ok(set) = node.dataset("data") else {
        bail!(BadFile, "there is no {group}/data: this file has no raw data");
    };
    let shape = set.shape().map_err(hdf5_error(ErrorKind::BadFile, "the number of acquisitions cannot be read"))?;
    match shape[..] {
        [0] => bail!(BadFile, "{group}/data has no acquisitions"),
        [_] => {}
        _ => bail!(BadFile, "{group}/data has {} dimensions where raw data have one", shape.len()),
    }
    check_stored(&set, &file.bytes, "data")?;
    Ok(set)
}

/// Checks that there is an image or noise, and that the file can contain the samples that its headers announce.
fn check_counts(headers: &[AcquisitionHeader], length: u64) -> Result<()> {
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

fn read_xml(file: &Hdf5File, heap: &mut HeapReader, node: &hdf5_pure::Group, group: &str) -> Result<String> {
    let Ok(set) = node.dataset("xml") else {
        bail!(BadFile, "there is no {group}/xml: raw data need their XML header");
    };
    let bad = |what| hdf5_error(ErrorKind::BadFile, what);
    let datatype = set.datatype().map_err(bad("the type of xml cannot be read"))?;
    let entries = set.shape().map_err(bad("the size of xml cannot be read"))?.iter().product::<u64>();
    if entries != 1 {
        bail!(BadFile, "{group}/xml has {entries} entries where one is expected");
    }
    check_stored(&set, &file.bytes, "xml")?;
    let record = || set.read_raw().map_err(bad("the XML header cannot be read"));
    let bytes = match datatype {
        Datatype::VariableLength { is_string: true, .. } => {
            let record = record()?;
            let Some(reference) = record.get(..heap.reference_size()) else {
                bail!(BadFile, "the XML header cannot be read: the file is damaged");
            };
            heap.array(heap.reference(reference), 1)?.to_vec()
        }
        Datatype::String { .. } => record()?,
        _ => bail!(BadFile, "{group}/xml is not a text"),
    };
    if bytes.len() > MAX_XML {
        bail!(BadFile, "the XML header has {} bytes: at most {MAX_XML} are expected", bytes.len());
    }
    // A text of fixed length ends with zeros.
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match String::from_utf8(bytes[..end].to_vec()) {
        Ok(text) if text.trim().is_empty() => bail!(BadFile, "the XML header is empty"),
        Ok(text) => Ok(text),
        Err(_) => bail!(BadFile, "the XML header is not UTF-8"),
    }
}
