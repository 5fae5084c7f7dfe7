//! Conversion of the caller's geometry and options to those of the Rust API.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, DeviceKind, Precision, PriorNumber};
use super::structs::*;
use super::versioned::{read, read_or_initial};
use crate::backend::Element;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::geometry::{DeviceGeometry, Geometry, VoxelBasis};
use crate::base::interrupt::Interrupt;
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::{CudaStream, Device, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::reconstruction::prior::{Matrix, Prior};
use crate::{CgOptions, Complex};
use std::borrow::Cow;
use std::ffi::c_void;

/// Evaluates an expression in which `$t` is the type of a precision.
macro_rules! with_precision {
    ($precision:expr, $t:ident => $body:expr) => {
        match $precision {
            Precision::F32 => {
                type $t = f32;
                $body
            }
            Precision::F64 => {
                type $t = f64;
                $body
            }
        }
    };
}
pub(super) use with_precision;

/// Returns the precision of a recon_precision.
pub(super) fn precision(value: u32) -> Result<Precision> {
    choice("precision", value)
}

/// Names of the arrays of coordinates in messages.
const COORDINATE_NAMES: [&str; 3] = ["coordinates[0]", "coordinates[1]", "coordinates[2]"];

/// Returns the number of elements from the first to the last of `len` elements that are `stride` apart.
fn strided_extent(len: usize, stride: usize) -> Result<usize> {
    match len.checked_sub(1).map(|last| last.checked_mul(stride)) {
        None => Ok(0),
        Some(Some(last)) => Ok(last.saturating_add(1)),
        Some(None) => bail!(SizeOverflow, "{len} elements, {stride} apart, exceed the address space"),
    }
}

/// A caller's geometry, with its sizes checked as far as the lengths of arrays depend on them.
pub(super) struct ScanInput {
    raw: recon_geometry,
    pub precision: Precision,
    pub dims: Vec<usize>,
    /// Whether voxels are a list of positions.
    pub listed: bool,
    /// Number of voxels of one image.
    pub voxels: usize,
    pub samples: usize,
    pub coils: usize,
    pub frames: usize,
    /// Whether coordinates, weights and coil maps are in the memory of a GPU.
    pub on_device: bool,
}

impl ScanInput {
    /// Reads and checks a caller's geometry.
    ///
    /// # Safety
    /// As for [`read`].
    pub unsafe fn read(geometry: *const recon_geometry) -> Result<ScanInput> {
        // SAFETY: the caller's promise.
        let raw = unsafe { read("geometry", geometry) }?;
        let precision = precision(raw.precision)?;
        if raw.ndim != 2 && raw.ndim != 3 {
            bail!(InvalidSize, "ndim is {}: 2 or 3 dimensions are supported", raw.ndim);
        }
        let ndim = raw.ndim as usize;
        let dims = raw.dims[..ndim].iter().map(|&n| size("dims", n)).collect::<Result<Vec<_>>>()?;
        let grid = checked_product(&dims, "the image")?;
        let listed = raw.voxel_count != 0 || raw.voxels.iter().any(|v| !v.is_null());
        let voxels = if listed { size("voxel_count", raw.voxel_count)? } else { grid };
        let (samples, coils) = (size("samples", raw.samples)?, size("coils", raw.coils)?);
        let frames = size("frames", raw.frames)?;
        // Operations refuse sizes of 0 where they matter. Products of the other sizes must not overflow until then.
        let nonzero = |n: usize| n.max(1);
        checked_product(&[voxels, coils, frames].map(nonzero), "the images")?;
        checked_product(&[samples, coils, frames].map(nonzero), "the k-space data")?;
        Ok(ScanInput { raw, precision, dims, listed, voxels, samples, coils, frames, on_device: false })
    }

    /// Returns whether coil maps combine the coils into one image.
    pub fn has_maps(&self) -> bool {
        !self.raw.coil_maps.is_null()
    }

    /// Returns the k-space coordinates, one array per axis. Coordinates with a stride are copied.
    ///
    /// # Safety
    /// Pointers of the geometry that are not null lead to arrays of the lengths that its sizes give.
    pub unsafe fn coordinates<'a, T: Element>(&self, arrays: &mut CallArrays) -> Result<Vec<Cow<'a, [T]>>> {
        // SAFETY: the caller's promise.
        unsafe { self.axes(arrays, COORDINATE_NAMES, self.raw.coordinates, self.raw.coordinate_stride, self.samples) }
    }

    /// Returns the number of coordinates that [`ScanInput::coordinates`] copies, which it does if they are not
    /// contiguous.
    pub fn copied_coordinates(&self) -> usize {
        if self.raw.coordinate_stride > 1 {
            self.dims.len() * self.samples
        } else {
            0
        }
    }

    /// Returns one array of `len` elements per axis. Elements are `stride` apart in the caller's arrays.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`].
    unsafe fn axes<'a, T: Element>(
        &self,
        arrays: &mut CallArrays,
        names: [&'static str; 3],
        pointers: [*const c_void; 3],
        stride: u64,
        len: usize,
    ) -> Result<Vec<Cow<'a, [T]>>> {
        let stride = size("the stride of coordinates", stride)?.max(1);
        let extent = strided_extent(len, stride)?;
        (0..self.dims.len())
            .map(|axis| {
                // SAFETY: the caller's promise: `len` elements, `stride` apart.
                let all: &'a [T] = unsafe { arrays.input(names[axis], pointers[axis].cast(), extent) }?;
                if stride == 1 {
                    return Ok(Cow::Borrowed(all));
                }
                let mut copy = try_vec(len, T::default(), "coordinates")?;
                copy.iter_mut().zip(all.iter().step_by(stride)).for_each(|(to, from)| *to = *from);
                Ok(Cow::Owned(copy))
            })
            .collect()
    }

    /// Returns the geometry's voxel basis.
    fn basis(&self) -> Result<VoxelBasis> {
        choice("basis", self.raw.basis)
    }

    /// Returns the field map, the decay map and the times; `None` for those that the geometry does not have.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`].
    pub unsafe fn off_resonance<'a, T: Real>(&self, arrays: &mut CallArrays) -> Result<[Option<&'a [T]>; 3]> {
        let raw = &self.raw;
        // SAFETY: the caller's promise.
        unsafe {
            Ok([
                arrays.optional("field_map", raw.field_map.cast(), self.voxels)?,
                arrays.optional("decay_map", raw.decay_map.cast(), self.voxels)?,
                arrays.optional("times", raw.times.cast(), self.samples)?,
            ])
        }
    }

    /// Returns the ranges of off-resonance, decay and times, in voxels that a coil sees; `None` without maps and times.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`].
    unsafe fn band<T: Real>(&self, arrays: &mut CallArrays) -> Result<Option<OffResonanceRange>> {
        let raw = &self.raw;
        if raw.field_map.is_null() && raw.decay_map.is_null() && raw.times.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let none: [&[T]; 3] = [&[]; 3];
            let geometry = Geometry {
                coils: self.coils,
                coil_maps: arrays.optional("coil_maps", raw.coil_maps.cast(), self.voxels * self.coils)?,
                field_map: arrays.optional("field_map", raw.field_map.cast(), self.voxels)?,
                decay_map: arrays.optional("decay_map", raw.decay_map.cast(), self.voxels)?,
                times: arrays.optional("times", raw.times.cast(), self.samples)?,
                ..Geometry::new(&self.dims, &none[..self.dims.len()])
            };
            geometry.check_off_resonance(self.voxels, self.samples)?;
            geometry.band()
        }
    }

    /// Returns the sizes that determine the memory of a plan. Coordinates may be null. With a field map or a decay map,
    /// the maps, times and coil maps are read. Other arrays are not read.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`], of these arrays.
    pub unsafe fn size<T: Real>(&self, arrays: &mut CallArrays, calibration: usize) -> Result<ScanSize> {
        let size = ScanSize {
            coils: self.coils,
            frames: self.frames,
            coil_maps: self.has_maps(),
            weights: !self.raw.weights.is_null(),
            listed: self.listed.then_some(self.voxels),
            basis: self.basis()?,
            calibration,
            // SAFETY: the caller's promise.
            band: unsafe { self.band::<T>(arrays) }?,
            ..ScanSize::new(&self.dims, self.samples)
        };
        if self.on_device || self.raw.coordinates.iter().all(|k| k.is_null()) {
            return Ok(size);
        }
        // SAFETY: the caller's promise.
        let k = unsafe { self.coordinates::<T>(arrays) }?;
        let k: Vec<&[T]> = k.iter().map(|k| &**k).collect();
        let ScanSize { central_samples, edge, .. } =
            ScanSize::with_calibration(&Geometry::new(&self.dims, &k), calibration)?;
        Ok(ScanSize { central_samples, edge, ..size })
    }

    /// Returns the geometry whose coordinates, weights and coil maps are in the memory of a GPU.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`], in that memory.
    unsafe fn device_geometry<'a, T: Real>(
        &self,
        arrays: &mut CallArrays,
        basis: VoxelBasis,
    ) -> Result<Geometry<'a, T>> {
        let raw = &self.raw;
        if self.listed || [raw.field_map, raw.decay_map, raw.times].iter().any(|map| !map.is_null()) {
            bail!(
                Unsupported,
                "geometry_on_device is set, but the geometry has a voxel list, field_map, decay_map or times: set it to \
                 0 and give all arrays in the host's memory"
            );
        }
        let stride = size("the stride of coordinates", raw.coordinate_stride)?.max(1);
        let extent = strided_extent(self.samples, stride)?;
        let ndim = self.dims.len();
        let coordinates: Vec<*const T> = raw.coordinates[..ndim].iter().map(|k| k.cast()).collect();
        for (name, &k) in COORDINATE_NAMES.into_iter().zip(&coordinates) {
            arrays.register(name, k, extent, false)?;
        }
        // SAFETY: the caller's promise.
        let mut device = unsafe { DeviceGeometry::new(&coordinates, self.samples, stride) };
        if !raw.weights.is_null() {
            arrays.register::<T>("weights", raw.weights.cast(), self.samples, false)?;
            // SAFETY: the caller's promise.
            device = unsafe { device.weights(raw.weights.cast()) };
        }
        if !raw.coil_maps.is_null() {
            arrays.register::<Complex<T>>("coil_maps", raw.coil_maps.cast(), self.voxels * self.coils, false)?;
            // SAFETY: the caller's promise.
            device = unsafe { device.coil_maps(raw.coil_maps.cast()) };
        }
        let mut geometry = Geometry::new(&self.dims, &[]);
        (geometry.coils, geometry.frames, geometry.basis) = (self.coils, self.frames, basis);
        geometry.on_device = Some(device);
        Ok(geometry)
    }

    /// Calls `operation` with the geometry.
    ///
    /// # Safety
    /// As for [`ScanInput::coordinates`].
    pub unsafe fn with_geometry<T: Real, R>(
        &self,
        arrays: &mut CallArrays,
        operation: impl FnOnce(&Geometry<'_, T>) -> Result<R>,
    ) -> Result<R> {
        let raw = &self.raw;
        let basis = self.basis()?;
        if self.on_device {
            // SAFETY: the caller's promise.
            return operation(&unsafe { self.device_geometry(arrays, basis) }?);
        }
        // SAFETY: the caller's promise holds for every pointer of the geometry; lengths are those of the header.
        unsafe {
            let k = self.coordinates::<T>(arrays)?;
            let names = ["voxels[0]", "voxels[1]", "voxels[2]"];
            let lists: Option<Vec<Cow<'_, [T]>>> = match self.listed {
                true => Some(self.axes(arrays, names, raw.voxels, raw.voxel_stride, self.voxels)?),
                false => None,
            };
            let geometry = Geometry {
                dims: self.dims.clone(),
                coordinates: k.iter().map(|k| &**k).collect(),
                weights: arrays.optional("weights", raw.weights.cast(), self.samples)?,
                coils: self.coils,
                coil_maps: arrays.optional("coil_maps", raw.coil_maps.cast(), self.voxels * self.coils)?,
                frames: self.frames,
                voxels: lists.as_ref().map(|lists| lists.iter().map(|r| &**r).collect()),
                basis,
                field_map: arrays.optional("field_map", raw.field_map.cast(), self.voxels)?,
                decay_map: arrays.optional("decay_map", raw.decay_map.cast(), self.voxels)?,
                times: arrays.optional("times", raw.times.cast(), self.samples)?,
                on_device: None,
            };
            operation(&geometry)
        }
    }
}

/// The caller's pointer that is passed to a callback.
struct CallbackData(*mut c_void);

// SAFETY: the library only passes it back, in threads in which the caller makes calls.
unsafe impl Send for CallbackData {}
// SAFETY: a shared reference only gives access to the pointer's value.
unsafe impl Sync for CallbackData {}

impl CallbackData {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Returns an interrupt that calls the caller's callback; `None` without a callback.
///
/// # Safety
/// The callback meets the documentation of its type, and accepts `data` as long as the interrupt exists.
pub(super) unsafe fn interrupt(callback: recon_interrupt_callback, data: *mut c_void) -> Option<Interrupt> {
    callback.map(|callback| {
        let data = CallbackData(data);
        // SAFETY: the caller's promise. Only a thread that is in a call of this library polls the interrupt.
        Interrupt::new(move || unsafe { callback(data.pointer()) } != 0)
    })
}

/// Reads the options of a plan whose arrays are in the host's memory, and refuses arrays on a GPU. `computation` is the
/// subject and verb of the message.
///
/// # Safety
/// As for [`options`].
pub(super) unsafe fn host_options(raw_options: *const recon_options, computation: &str) -> Result<Options> {
    // SAFETY: the caller's promise.
    let raw = unsafe { read_or_initial("options", raw_options) }?;
    for (name, value) in
        [("pointers_on_device", raw.pointers_on_device), ("geometry_on_device", raw.geometry_on_device)]
    {
        if value != 0 {
            bail!(Unsupported, "{name} is {value}: {computation} in the host's memory; set it to 0");
        }
    }
    // SAFETY: the caller's promise.
    unsafe { options(raw_options) }
}

/// Reads the options of a plan; null means the defaults.
///
/// # Safety
/// As for [`read_or_initial`]. device_indices is null or leads to device_count indices. stream and interrupt meet their
/// documentation.
pub(super) unsafe fn options(options: *const recon_options) -> Result<Options> {
    // SAFETY: the caller's promise.
    let raw = unsafe { read_or_initial("options", options) }?;
    let device = choice("device", raw.device)?;
    let on_device = [("pointers_on_device", raw.pointers_on_device), ("geometry_on_device", raw.geometry_on_device)];
    let on_device = on_device.into_iter().find(|(_, value)| *value != 0);
    if let (Some((name, value)), DeviceKind::Cpu) = (on_device, device) {
        bail!(
            InvalidArgument,
            "{name} is {value}, but device is RECON_DEVICE_CPU: set it to 0, or use RECON_DEVICE_CUDA"
        );
    }
    let device = match device {
        // Arrays on a GPU require a GPU.
        DeviceKind::Auto if on_device.is_some() => Device::Cuda(Vec::new()),
        DeviceKind::Auto => Device::Auto,
        DeviceKind::Cpu => Device::Cpu,
        DeviceKind::Cuda if raw.device_count == 0 => Device::Cuda(Vec::new()),
        DeviceKind::Cuda => {
            // SAFETY: the caller's promise.
            let indices = unsafe {
                CallArrays::default().input("device_indices", raw.device_indices, raw.device_count as usize)
            }?;
            Device::Cuda(try_collect(indices.len(), "device indices", indices.iter().copied())?)
        }
    };
    Ok(Options {
        method: choice("method", raw.method)?,
        normal: choice("normal", raw.normal)?,
        device,
        tolerance: raw.tolerance,
        window: choice("window", raw.window)?,
        width: raw.width as usize,
        oversampling: raw.oversampling,
        threads: raw.threads as usize,
        // A limit beyond the address space has no effect.
        memory_limit: (raw.memory_limit != 0).then(|| usize::try_from(raw.memory_limit).unwrap_or(usize::MAX)),
        simd: choice("simd", raw.simd)?,
        // SAFETY: the caller's promise.
        stream: (raw.use_stream != 0).then(|| unsafe { CudaStream::new(raw.stream) }),
        // SAFETY: the caller's promise.
        interrupt: unsafe { interrupt(raw.interrupt, raw.interrupt_data) },
    })
}

/// Converts the options of conjugate gradients, for images of `voxels` voxels and a result of `image_len` elements.
///
/// # Safety
/// Pointers of the options that are not null lead to arrays of the documented lengths.
pub(super) unsafe fn cg_options<'a, T: Real>(
    arrays: &mut CallArrays,
    raw: &recon_cg_options,
    voxels: usize,
    image_len: usize,
) -> Result<CgOptions<'a, T>> {
    let prior = choice("prior", raw.prior)?;
    // SAFETY: the caller's promise; lengths are those of the header.
    unsafe {
        let prior = match prior {
            PriorNumber::Identity => Prior::Identity,
            PriorNumber::Differences => Prior::Differences,
            PriorNumber::Anatomical => Prior::Anatomical {
                reference: arrays.input("reference", raw.reference.cast(), voxels)?,
                edge: raw.edge,
            },
            PriorNumber::Matrix => {
                let rows = size("matrix_rows", raw.matrix_rows)?;
                let starts: &[u64] = arrays.input("matrix_starts", raw.matrix_starts, rows.saturating_add(1))?;
                let entries = size("the number of matrix entries", starts[rows])?;
                Prior::Matrix(Matrix {
                    rows: starts,
                    columns: arrays.input("matrix_columns", raw.matrix_columns, entries)?,
                    values: arrays.input::<Complex<T>>("matrix_values", raw.matrix_values.cast(), entries)?,
                })
            }
        };
        Ok(CgOptions {
            iterations: size("iterations", raw.iterations)?,
            tolerance: raw.tolerance,
            lambda: raw.lambda,
            lambda_unit: choice("lambda_unit", raw.lambda_unit)?,
            noise_level: raw.noise_level,
            prior,
            initial: arrays.optional("initial", raw.initial.cast(), image_len)?,
        })
    }
}
