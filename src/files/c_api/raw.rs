//! Raw data of a file: k-space of each image, noise, and fields of the header.

use super::outcome::{call, library_call, path_of, text_of};
use crate::bart::{read_bart, TrajectoryFile};
use crate::ismrmrd::{Acquisition, RawFile};
use crate::Format;
use recon::acquisition::AcquisitionUse;
use recon::error::{bail, Error, Result};
use recon::ffi::{
    recon_scan, recon_scan_add, recon_scan_create, recon_scan_destroy, recon_scan_end, recon_scan_image,
    recon_scan_image_calibration, recon_scan_image_destroy, recon_scan_image_properties, recon_scan_next,
    recon_scan_options, recon_scan_properties, recon_status, recon_trajectory_kind,
};
use recon::scan::{AcquisitionHeader, AssemblyOptions, Header, Noise, Scan, ScanAssembler, TrajectoryKind};
use std::collections::BTreeSet;
use std::ffi::{c_char, c_void, CString};
use std::path::Path;
use std::ptr::{null, null_mut};

/// The images to read: a number from 0 for each counter, or -1 for all.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_files_selection {
    pub encoding: i64,
    pub slice: i64,
    pub repetition: i64,
    pub contrast: i64,
    pub phase: i64,
    pub set: i64,
}

/// Fields of the XML header, and the header itself. Texts are NULL, numbers NAN, if the header does not have them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_files_header {
    pub xml: *const c_char,
    pub vendor: *const c_char,
    pub model: *const c_char,
    pub patient_position: *const c_char,
    pub echo_times_ms: *const f64,
    pub echo_time_count: u64,
    pub repetition_times_ms: *const f64,
    pub repetition_time_count: u64,
    /// Ratio of the receiver's noise bandwidth to its sampling bandwidth.
    pub noise_bandwidth: f64,
    pub field_strength_tesla: f64,
    pub frequency_hz: f64,
}

/// Noise samples.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_files_noise {
    pub coils: u64,
    pub samples: u64,
    /// Time between samples in seconds; 0 if unknown.
    pub dwell: f64,
    /// Complex float [samples, coils].
    pub data: *const c_void,
}

/// The raw data of a file. Created by recon_files_read_raw and recon_files_read_bart.
pub struct recon_files_raw {
    header: HeaderTexts,
    scans: Vec<RawScan>,
    noise: Vec<Noise>,
}

/// The XML header and its fields, for C.
struct HeaderTexts {
    xml: CString,
    texts: [Option<CString>; 3],
    header: Header,
    field_strength_tesla: f64,
    frequency_hz: f64,
}

impl HeaderTexts {
    fn new(xml: &str, header: Header) -> HeaderTexts {
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let texts = [&header.vendor, &header.model, &header.patient_position].map(|t| t.as_deref().map(text));
        let [field_strength_tesla, frequency_hz] =
            ["systemFieldStrength_T", "H1resonanceFrequency_Hz"].map(|name| number_in(xml, name));
        HeaderTexts { xml: text(xml), texts, header, field_strength_tesla, frequency_hz }
    }
}

/// Returns the number of the first element of this name; NAN without one.
fn number_in(xml: &str, name: &str) -> f64 {
    let number = |document: roxmltree::Document| {
        let node = document.descendants().find(|node| node.tag_name().name() == name)?;
        node.text()?.trim().parse().ok()
    };
    roxmltree::Document::parse(xml).ok().and_then(number).unwrap_or(f64::NAN)
}

/// A scan of the library.
struct OwnedScan(*mut recon_scan);

impl Drop for OwnedScan {
    fn drop(&mut self) {
        // SAFETY: created by the library, and owned.
        unsafe { recon_scan_destroy(self.0) };
    }
}

/// The data of an image of the library; null without data.
pub(super) struct OwnedImage(*mut recon_scan_image);

impl Drop for OwnedImage {
    fn drop(&mut self) {
        // SAFETY: null, or created by the library and owned.
        unsafe { recon_scan_image_destroy(self.0) };
    }
}

/// The data of an image.
pub(super) enum RawScan {
    /// From acquisitions: the image, and its calibration.
    Acquired(OwnedImage, OwnedImage),
    /// From arrays, with the number of samples of each shot and the discarded ones before them.
    Arrays(Box<Scan>, Vec<u64>, Vec<u64>),
    /// Freed by recon_files_free_scan.
    Freed,
}

impl OwnedScan {
    fn create(xml: &str, options: *const recon_scan_options) -> Result<OwnedScan> {
        let mut scan = null_mut();
        // SAFETY: the text has this length, and the options are the caller's.
        library_call(unsafe { recon_scan_create(xml.as_ptr().cast(), xml.len() as u64, options, &mut scan) })?;
        Ok(OwnedScan(scan))
    }

    /// Adds an acquisition, after a check of the lengths, which the library takes from the header.
    fn add(&self, acquisition: &Acquisition) -> Result<()> {
        let Acquisition { header, trajectory, data } = acquisition;
        if AcquisitionUse::of_flags(header.flags).is_used() && header.check_encoding().is_ok() {
            let samples = header.number_of_samples as usize;
            let (numbers, coordinates) =
                (samples * header.active_channels as usize, samples * header.trajectory_dimensions as usize);
            if data.len() != numbers || trajectory.len() != coordinates {
                bail!(
                    BadFile,
                    "the acquisition has {} complex samples and {} coordinates, but its header announces {numbers} and \
                     {coordinates}: the file is damaged",
                    data.len(),
                    trajectory.len()
                );
            }
        }
        let bytes = header.to_bytes();
        // SAFETY: the scan is alive, and the arrays have the lengths of the header.
        let status = unsafe {
            recon_scan_add(self.0, bytes.as_ptr().cast(), trajectory.as_ptr(), data.as_ptr().cast::<c_void>())
        };
        library_call(status)
    }

    /// Returns the next image; `None` if there are no more.
    fn next_image(&self) -> Result<Option<OwnedImage>> {
        let mut image = null_mut();
        // SAFETY: the scan is alive.
        library_call(unsafe { recon_scan_next(self.0, &mut image) })?;
        Ok((!image.is_null()).then_some(OwnedImage(image)))
    }
}

impl OwnedImage {
    fn properties(&self, to: &mut recon_scan_properties) -> Result<()> {
        // SAFETY: the image is alive.
        library_call(unsafe { recon_scan_image_properties(self.0, to) })
    }

    fn calibration(&self) -> Result<OwnedImage> {
        let mut calibration = null_mut();
        // SAFETY: the image is alive.
        library_call(unsafe { recon_scan_image_calibration(self.0, &mut calibration) })?;
        Ok(OwnedImage(calibration))
    }
}

/// Reads the acquisitions of a file.
fn read_raw(
    path: &Path,
    group: &str,
    options: &recon_scan_options,
    selection: &recon_files_selection,
) -> Result<recon_files_raw> {
    if Format::of_input(path) == Some(Format::Bart) {
        return read_cartesian_bart(path, options, selection);
    }
    let mut file = RawFile::open(path, group)?;
    let header = Header::from_xml(&file.xml)?;
    let scan = OwnedScan::create(&file.xml, options)?;
    let conjugate = options.conjugate != 0;
    // Without whitening, the samples of the noise as they were measured.
    let mut noise = ScanAssembler::new(Header::default(), AssemblyOptions { conjugate, ..Default::default() });
    let is_used = |header: &AcquisitionHeader| AcquisitionUse::of_flags(header.flags).is_used();
    let mut refusal = None;
    let fed = file.for_each(is_used, |number, acquisition| {
        let Acquisition { header, trajectory, data } = acquisition;
        if AcquisitionUse::of_flags(header.flags) == AcquisitionUse::Noise {
            noise.add(number, header, trajectory, data)?;
        }
        scan.add(acquisition).inspect_err(|error| refusal = Some(error.clone()))
    });
    // The library's message has the number of the acquisition already.
    match (fed, refusal) {
        (Err(_), Some(error)) if error.message().starts_with("acquisition ") => return Err(error),
        (fed, _) => fed?,
    }
    // SAFETY: the scan is alive.
    library_call(unsafe { recon_scan_end(scan.0) })?;
    let mut scans = Vec::new();
    let mut found = CounterValues::default();
    while let Some(image) = scan.next_image()? {
        let mut properties = empty_properties()?;
        image.properties(&mut properties)?;
        if found.selects(selection, &properties) {
            let calibration = image.calibration()?;
            scans.push(RawScan::Acquired(image, calibration));
        }
    }
    if scans.is_empty() && !found.is_empty() {
        bail!(InvalidArgument, "there is no such image: the file has {}", found.list());
    }
    Ok(recon_files_raw { header: HeaderTexts::new(&file.xml, header), scans, noise: noise.noise()? })
}

/// Reads Cartesian k-space of BART.
fn read_cartesian_bart(
    path: &Path,
    options: &recon_scan_options,
    selection: &recon_files_selection,
) -> Result<recon_files_raw> {
    if options.conjugate != 0 {
        bail!(InvalidArgument, "'Conjugate' is for ISMRMRD files: conj(d) conjugates k-space of BART");
    }
    // The messages have the program's options.
    let with_own_options = |e: Error| {
        let text = e.message().replace("--trajectory", "'Trajectory'").replace("--matrix", "'Matrix'");
        Error::new(e.kind(), text)
    };
    let dataset = read_bart(path, None).map_err(with_own_options)?;
    let (mut raw, mut found) = (recon_files_raw::of_scans(dataset.scans), CounterValues::default());
    let mut selected = Vec::new();
    for scan in raw.scans {
        let mut properties = empty_properties()?;
        if let RawScan::Arrays(scan, shots, skipped) = &scan {
            scan_properties(scan, shots, skipped, &mut properties);
        }
        if found.selects(selection, &properties) {
            selected.push(scan);
        }
    }
    if selected.is_empty() {
        bail!(InvalidArgument, "there is no such image: the file has {}", found.list());
    }
    raw.scans = selected;
    Ok(raw)
}

/// The values of each counter in a file.
#[derive(Default)]
struct CounterValues([BTreeSet<u32>; 6]);

impl CounterValues {
    /// Adds the counters of an image, and returns whether it is selected.
    fn selects(&mut self, selection: &recon_files_selection, p: &recon_scan_properties) -> bool {
        let s = selection;
        let wanted = [s.encoding, s.slice, s.repetition, s.contrast, s.phase, s.set];
        let own = [p.encoding, p.slice, p.repetition, p.contrast, p.phase, p.set];
        self.0.iter_mut().zip(own).for_each(|(values, value)| {
            values.insert(value);
        });
        wanted.iter().zip(own).all(|(&wanted, own)| wanted < 0 || wanted == i64::from(own))
    }

    fn is_empty(&self) -> bool {
        self.0[0].is_empty()
    }

    fn list(&self) -> String {
        let names = ["encodings", "slices", "repetitions", "contrasts", "phases", "sets"];
        let numbers = |values: &BTreeSet<u32>| match values.len() {
            0..=12 => values.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", "),
            n => format!("{n} from {:?} to {:?}", values.first().unwrap_or(&0), values.last().unwrap_or(&0)),
        };
        names
            .iter()
            .zip(&self.0)
            .map(|(name, values)| format!("{name} {}", numbers(values)))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

fn empty_properties() -> Result<recon_scan_properties> {
    let mut properties = std::mem::MaybeUninit::uninit();
    let size = size_of::<recon_scan_properties>() as u32;
    // SAFETY: the function writes the whole structure, and does not read it.
    library_call(unsafe { recon::ffi::recon_scan_properties_init(properties.as_mut_ptr(), size) })?;
    // SAFETY: written by the successful call.
    Ok(unsafe { properties.assume_init() })
}

/// Writes the properties of a scan of arrays.
fn scan_properties(scan: &Scan, shots: &[u64], skipped: &[u64], to: &mut recon_scan_properties) {
    let wide = |values: [f32; 3]| values.map(f64::from);
    to.ndim = scan.ndim as u32;
    to.encoded_matrix = scan.encoded_matrix.map(|n| n as u64);
    to.recon_matrix = scan.recon_matrix.map(|n| n as u64);
    to.encoded_fov_mm = wide(scan.encoded_fov_mm);
    to.recon_fov_mm = wide(scan.recon_fov_mm);
    to.samples = scan.samples() as u64;
    to.shots = shots.len() as u64;
    to.coils = scan.coils as u64;
    to.coordinates = std::array::from_fn(|axis| scan.coordinates.get(axis).map_or(null(), |k| k.as_ptr()));
    to.weights = scan.weights.as_ref().map_or(null(), |weights| weights.as_ptr());
    to.times = scan.times.as_ptr();
    to.kspace = scan.data.as_ptr().cast();
    to.samples_per_shot = shots.as_ptr();
    to.skipped_per_shot = skipped.as_ptr();
    to.trajectory = match scan.trajectory {
        TrajectoryKind::Cartesian => recon_trajectory_kind::RECON_TRAJECTORY_CARTESIAN as u32,
        _ => recon_trajectory_kind::RECON_TRAJECTORY_OTHER as u32,
    };
    let index = &scan.index;
    to.encoding = index.encoding.into();
    to.slice = index.slice.into();
    to.repetition = index.repetition.into();
    to.contrast = index.contrast.into();
    to.phase = index.phase.into();
    to.set = index.set.into();
}

impl recon_files_raw {
    /// Creates raw data of scans without a header.
    fn of_scans(scans: Vec<Scan>) -> recon_files_raw {
        let numbers = |list: &[usize]| list.iter().map(|&n| n as u64).collect::<Vec<_>>();
        let arrays = |scan: Scan| {
            let (shots, skipped) = (numbers(&scan.samples_per_shot), numbers(&scan.skipped_per_shot));
            RawScan::Arrays(Box::new(scan), shots, skipped)
        };
        let header = HeaderTexts::new("", Header::default());
        recon_files_raw { header, scans: scans.into_iter().map(arrays).collect(), noise: Vec::new() }
    }
}

/// Reads the raw data of the group `group` of an ISMRMRD file. The caller passes `*raw` to recon_files_free_raw.
#[no_mangle]
pub unsafe extern "C" fn recon_files_read_raw(
    path: *const c_char,
    group: *const c_char,
    options: *const recon_scan_options,
    selection: *const recon_files_selection,
    raw: *mut *mut recon_files_raw,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's texts and structures.
        let (path, group, options, selection) =
            unsafe { (path_of(path)?, text_of("the group", group)?, &*options, &*selection) };
        let made = read_raw(&path, group, options, selection).map_err(|e| e.within(path.display()))?;
        // SAFETY: the caller's pointer.
        unsafe { *raw = Box::into_raw(Box::new(made)) };
        Ok(())
    })
}

/// Writes what a file contains: 1 for raw data in this group, 2 for images, 0 for neither.
#[no_mangle]
pub unsafe extern "C" fn recon_files_contents(
    path: *const c_char,
    group: *const c_char,
    contents: *mut u32,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's texts.
        let (path, group) = unsafe { (path_of(path)?, text_of("the group", group)?) };
        let found = match (RawFile::open(&path, group), crate::read_images(&path)) {
            (Ok(_), _) => 1,
            (Err(_), Ok(_)) => 2,
            _ => 0,
        };
        // SAFETY: the caller's number.
        unsafe { *contents = found };
        Ok(())
    })
}

/// Reads k-space of BART, [1, samples, shots, coils], and its trajectory, [3, samples, shots] in 1/FOV of a matrix.
#[no_mangle]
pub unsafe extern "C" fn recon_files_read_bart(
    kspace: *const c_char,
    trajectory: *const c_char,
    matrix: *const u64,
    raw: *mut *mut recon_files_raw,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's texts, and three sizes.
        let (kspace, trajectory, matrix) =
            unsafe { (path_of(kspace)?, path_of(trajectory)?, [*matrix, *matrix.add(1), *matrix.add(2)]) };
        let trajectory = TrajectoryFile { path: &trajectory, matrix: matrix.map(|n| n as usize) };
        let made = recon_files_raw::of_scans(read_bart(&kspace, Some(trajectory))?.scans);
        // SAFETY: the caller's pointer.
        unsafe { *raw = Box::into_raw(Box::new(made)) };
        Ok(())
    })
}

/// Returns the number of images.
#[no_mangle]
pub unsafe extern "C" fn recon_files_scan_count(raw: *const recon_files_raw) -> u64 {
    // SAFETY: the caller's raw data.
    unsafe { &*raw }.scans.len() as u64
}

/// Writes the properties of an image's data, or of its calibration, with the addresses of their arrays. An image
/// without calibration data has a calibration of 0 samples.
#[no_mangle]
pub unsafe extern "C" fn recon_files_scan(
    raw: *const recon_files_raw,
    index: u64,
    calibration: u32,
    properties: *mut recon_scan_properties,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's raw data and structure.
        let (raw, to) = unsafe { (&*raw, &mut *properties) };
        *to = empty_properties()?;
        match raw.scans.get(index as usize) {
            Some(RawScan::Acquired(image, own)) => match calibration {
                0 => image.properties(to),
                _ if own.0.is_null() => Ok(()),
                _ => own.properties(to),
            },
            Some(RawScan::Arrays(scan, shots, skipped)) => {
                if calibration == 0 {
                    scan_properties(scan, shots, skipped, to);
                }
                Ok(())
            }
            _ => bail!(InvalidArgument, "there is no image {index}, or it was freed"),
        }
    })
}

/// Frees the data of an image, whose number remains.
#[no_mangle]
pub unsafe extern "C" fn recon_files_free_scan(raw: *mut recon_files_raw, index: u64) {
    // SAFETY: the caller's raw data.
    if let Some(scan) = unsafe { &mut *raw }.scans.get_mut(index as usize) {
        *scan = RawScan::Freed;
    }
}

/// Writes the header's fields. They belong to the raw data.
#[no_mangle]
pub unsafe extern "C" fn recon_files_header_of(raw: *const recon_files_raw, header: *mut recon_files_header) {
    // SAFETY: the caller's raw data.
    let own = &unsafe { &*raw }.header;
    let [vendor, model, patient_position] = own.texts.each_ref().map(|t| t.as_ref().map_or(null(), |t| t.as_ptr()));
    let (echoes, repetitions) = (&own.header.echo_times_ms, &own.header.repetition_times_ms);
    let fields = recon_files_header {
        xml: own.xml.as_ptr(),
        vendor,
        model,
        patient_position,
        echo_times_ms: echoes.as_ptr(),
        echo_time_count: echoes.len() as u64,
        repetition_times_ms: repetitions.as_ptr(),
        repetition_time_count: repetitions.len() as u64,
        noise_bandwidth: own.header.noise_bandwidth.unwrap_or(f64::NAN),
        field_strength_tesla: own.field_strength_tesla,
        frequency_hz: own.frequency_hz,
    };
    // SAFETY: the caller's structure.
    unsafe { *header = fields };
}

/// Writes group `index` of the noise, one for each number of coils and sample time. It has 0 samples if there are no
/// more.
#[no_mangle]
pub unsafe extern "C" fn recon_files_noise_of(raw: *const recon_files_raw, index: u64, noise: *mut recon_files_noise) {
    // SAFETY: the caller's raw data.
    let group = unsafe { &*raw }.noise.get(index as usize);
    let none = recon_files_noise { coils: 0, samples: 0, dwell: 0.0, data: null() };
    let found = group.map_or(none, |noise| recon_files_noise {
        coils: noise.coils as u64,
        samples: (noise.data.len() / noise.coils) as u64,
        dwell: noise.dwell.into(),
        data: noise.data.as_ptr().cast(),
    });
    // SAFETY: the caller's structure.
    unsafe { *noise = found };
}

/// Frees raw data. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn recon_files_free_raw(raw: *mut recon_files_raw) {
    if !raw.is_null() {
        // SAFETY: created by this library, and by the caller's promise not freed before.
        drop(unsafe { Box::from_raw(raw) });
    }
}
