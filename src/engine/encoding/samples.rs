//! Arrays of the samples of a plan: coordinates and density weights, where the plan computes and on the host.

use crate::backend::{Backend, DevicePointer, DeviceSlice, Element, Reals, Source, ValueCheck};
use crate::base::error::{try_vec, Result};
use crate::base::geometry::{
    check_below, check_coil_maps, check_coordinates, check_weight, is_in_range, reach, CheckedValues, DeviceGeometry,
    Geometry, InputRanges, COIL_SENSITIVITY, CPU_OR_SEVERAL_GPUS, EDGE_ROUNDING, NORMAL_MAP_LIMIT,
};
use crate::base::memory::Aligned;
use crate::base::real::Real;
use crate::base::workers::copied;
use num_complex::Complex;
use std::sync::OnceLock;

/// Name of coordinates in errors.
const COORDINATES: &str = "the coordinates";
/// Name of density weights in errors.
const WEIGHTS: &str = "the weights";

/// One number per sample. A GPU has it in its memory; a copy for the host is made when it is first used there.
pub(crate) struct SampleArray<T: Real, B: Backend<T>> {
    samples: usize,
    what: &'static str,
    device: Option<B::Array<T>>,
    host: OnceLock<Aligned<T>>,
    /// Largest magnitude, where a check on a GPU has found it.
    largest: Option<f64>,
}

impl<T: Real, B: Backend<T>> SampleArray<T, B> {
    fn on_host(host: Aligned<T>, what: &'static str) -> Self {
        SampleArray { samples: host.len(), what, device: None, host: OnceLock::from(host), largest: None }
    }

    fn on_device(device: B::Array<T>, samples: usize, what: &'static str) -> Self {
        SampleArray { samples, what, device: Some(device), host: OnceLock::new(), largest: None }
    }

    /// Returns the array in the memory of a GPU; `None` on the CPU.
    pub fn device(&self) -> Option<&B::Array<T>> {
        self.device.as_ref()
    }

    /// Returns the array in the memory of a GPU, and its largest magnitude; `None` on the CPU.
    pub fn device_and_largest<'a>(&'a self, b: &'a B) -> Result<Option<(Reals<'a, B, T>, f64)>> {
        let Some(device) = &self.device else { return Ok(None) };
        let from = b.view(device);
        let largest = match self.largest {
            Some(largest) => largest,
            None => {
                let valid = [-f64::MAX, f64::MAX];
                let check = ValueCheck { from, stride: 1, samples: self.samples, valid, to: None, top: None };
                b.check_values(&mut [check])?.pop().map_or(0.0, |checked| reach(checked.range))
            }
        };
        Ok(Some((from, largest)))
    }

    /// Returns the bytes of the copy for the host.
    pub fn host_bytes(&self) -> usize {
        self.host.get().map_or(0, |host| size_of_val(&host[..]))
    }

    /// Returns the numbers on the host.
    pub fn host(&self, b: &B) -> Result<&[T]> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let mut host = Aligned::zeros(self.samples, self.what)?;
        if let Some(device) = &self.device {
            b.download(b.view(device), &mut host)?;
        }
        // If another thread has copied the array meanwhile, the copies are equal.
        Ok(self.host.get_or_init(|| host))
    }
}

/// The coordinates and the density weights of a plan.
pub(crate) struct SampleArrays<T: Real, B: Backend<T>> {
    /// k-space coordinates in cycles per voxel, one array per axis.
    pub coordinates: Vec<SampleArray<T, B>>,
    /// The caller's density weights; `None` means that all are 1.
    pub weights: Option<SampleArray<T, B>>,
}

impl<T: Real, B: Backend<T>> SampleArrays<T, B> {
    /// Copies the arrays of a geometry on the host to where the plan computes.
    pub fn copied(b: &B, geometry: &Geometry<'_, T>) -> Result<Self> {
        let coordinates = if b.is_gpu() {
            let upload = |k: &&[T]| Ok(SampleArray::on_device(b.upload(k, COORDINATES)?, k.len(), COORDINATES));
            geometry.coordinates.iter().map(upload).collect::<Result<_>>()?
        } else {
            Self::coordinates_on_host(copied(b.workers(), &geometry.coordinates, COORDINATES)?)
        };
        let weights = geometry.weights.map(|w| Self::new_weights(b, w.into())).transpose()?;
        Ok(SampleArrays { coordinates, weights })
    }

    fn coordinates_on_host(k: Vec<Aligned<T>>) -> Vec<SampleArray<T, B>> {
        k.into_iter().map(|k| SampleArray::on_host(k, COORDINATES)).collect()
    }

    /// Copies the arrays of a geometry to where the plan computes, and checks the whole geometry; on a GPU, the samples
    /// are checked there.
    pub fn checked(b: &B, geometry: &Geometry<'_, T>) -> Result<(Self, InputRanges)> {
        if !b.is_gpu() {
            geometry.check_on_host(CPU_OR_SEVERAL_GPUS)?;
            let (coordinates, ranges) = geometry.checked_copies(b.workers())?;
            let weights = geometry.weights.map(|w| Self::new_weights(b, w.into())).transpose()?;
            return Ok((SampleArrays { coordinates: Self::coordinates_on_host(coordinates), weights }, ranges));
        }
        if let Some(device) = &geometry.on_device {
            return Self::checked_on_device(b, geometry, device);
        }
        let mut samples = Self::copied(b, geometry)?;
        let count = geometry.samples();
        let arrays = samples.coordinates.iter().chain(&samples.weights).filter_map(SampleArray::device);
        let check = |(i, array)| ValueCheck {
            from: b.view(array),
            stride: 1,
            samples: count,
            valid: if i < geometry.dims.len() { VALID_COORDINATES } else { valid_weights::<T>() },
            to: None,
            top: None,
        };
        let checked = b.check_values(&mut arrays.enumerate().map(check).collect::<Vec<_>>())?;
        let mut ranges = input_ranges(geometry.dims.len(), checked)?;
        let is_within = ranges.coordinates.iter().all(|&range| is_in_range(range));
        if !is_within {
            samples.coordinates = wrapped(b, &samples.coordinates, geometry.top().wide())?;
        }
        samples.set_largest(&ranges);
        geometry.check_voxels()?;
        ranges.map = geometry.coil_maps.map(|maps| check_coil_maps(b.workers(), maps)).transpose()?;
        Ok((samples, ranges))
    }

    /// Copies and checks arrays in the memory of the caller's GPU.
    fn checked_on_device(
        b: &B,
        geometry: &Geometry<'_, T>,
        device: &DeviceGeometry<'_, T>,
    ) -> Result<(Self, InputRanges)> {
        let (count, axes) = (device.samples, device.coordinates.len());
        let addresses = device.coordinates.iter().map(|&k| (k, (count - 1) * device.stride + 1));
        let addresses = addresses.chain(device.weights.map(|w| (w, count)));
        let input = |(at, len)| b.input(device_source::<T, B, T>(b, at, len)?);
        let inputs = addresses.map(input).collect::<Result<Vec<_>>>()?;
        let new = |i: usize| b.unwritten::<T>(count, if i < axes { COORDINATES } else { WEIGHTS });
        let mut copies = (0..inputs.len()).map(new).collect::<Result<Vec<_>>>()?;
        let check = |(i, (input, copy))| {
            let is_axis = i < axes;
            ValueCheck {
                from: b.read(input),
                stride: if is_axis { device.stride } else { 1 },
                samples: count,
                valid: if is_axis { VALID_COORDINATES } else { valid_weights::<T>() },
                to: Some(b.view_mut(copy)),
                top: is_axis.then(|| geometry.top().wide()),
            }
        };
        let mut checks: Vec<_> = inputs.iter().zip(&mut copies).enumerate().map(check).collect();
        let mut ranges = input_ranges(axes, b.check_values(&mut checks)?)?;
        drop(checks);
        if let Some(maps) = device.coil_maps {
            let maps = device_source(b, maps, geometry.voxel_count() * geometry.coils)?;
            ranges.map = Some(check_maps_on_device(b, maps)?);
        }
        let mut arrays = copies.into_iter();
        let coordinates = arrays.by_ref().take(axes).map(|k| SampleArray::on_device(k, count, COORDINATES)).collect();
        let weights = arrays.next().map(|w| SampleArray::on_device(w, count, WEIGHTS));
        let mut samples = SampleArrays { coordinates, weights };
        samples.set_largest(&ranges);
        Ok((samples, ranges))
    }

    /// Keeps the largest magnitudes from these ranges. Coordinates that had to be wrapped are left out.
    fn set_largest(&mut self, ranges: &InputRanges) {
        for (k, &range) in self.coordinates.iter_mut().zip(&ranges.coordinates) {
            k.largest = is_in_range(range).then(|| reach(range));
        }
        if let Some(weights) = &mut self.weights {
            weights.largest = ranges.weight;
        }
    }

    /// Copies density weights to where the plan computes.
    pub fn new_weights(b: &B, weights: Source<'_, T>) -> Result<SampleArray<T, B>> {
        let count = weights.len();
        match weights {
            Source::Host(weights) if b.is_gpu() => {
                Ok(SampleArray::on_device(b.upload(weights, WEIGHTS)?, count, WEIGHTS))
            }
            Source::Host(weights) => {
                let mut copies = copied(b.workers(), &[weights], WEIGHTS)?;
                Ok(SampleArray::on_host(copies.pop().expect("one array was copied"), WEIGHTS))
            }
            Source::Device(_) => {
                let mut copy = b.unwritten(count, WEIGHTS)?;
                b.copy(b.read(&b.input(weights)?), b.view_mut(&mut copy));
                Ok(SampleArray::on_device(copy, count, WEIGHTS))
            }
        }
    }
}

/// Range of valid coordinates.
const VALID_COORDINATES: [f64; 2] = [-0.5 - EDGE_ROUNDING, 0.5 + EDGE_ROUNDING];

/// Returns the range of valid density weights.
fn valid_weights<T: Real>() -> [f64; 2] {
    [0.0, T::LARGEST]
}

/// Returns the ranges of checked coordinates of `axes` axes, and of weights if they follow. Fails if a value is
/// invalid.
fn input_ranges<T: Real>(axes: usize, checked: Vec<CheckedValues<T>>) -> Result<InputRanges> {
    let mut ranges = InputRanges { coordinates: Vec::with_capacity(axes), weight: None, map: None };
    for (i, CheckedValues { range, invalid }) in checked.into_iter().enumerate() {
        if i < axes {
            check_coordinates(i, invalid)?;
            ranges.coordinates.push(range);
        } else {
            check_weight(invalid)?;
            ranges.weight = Some(range[1]);
        }
    }
    Ok(ranges)
}

/// Returns copies of coordinates on a GPU that are within [-0.5, 0.5). Those from 0.5 on become `top`.
fn wrapped<T: Real, B: Backend<T>>(b: &B, k: &[SampleArray<T, B>], top: f64) -> Result<Vec<SampleArray<T, B>>> {
    let new = |k: &SampleArray<T, B>| b.unwritten::<T>(k.samples, COORDINATES);
    let mut copies = k.iter().map(new).collect::<Result<Vec<_>>>()?;
    let arrays = k.iter().filter_map(|k| Some((k.device()?, k.samples)));
    let check = |((from, samples), copy)| ValueCheck {
        from: b.view(from),
        stride: 1,
        samples,
        valid: VALID_COORDINATES,
        to: Some(b.view_mut(copy)),
        top: Some(top),
    };
    b.check_values(&mut arrays.zip(&mut copies).map(check).collect::<Vec<_>>())?;
    let copies = copies.into_iter().zip(k);
    Ok(copies.map(|(copy, k)| SampleArray::on_device(copy, k.samples, COORDINATES)).collect())
}

/// Returns an array of a geometry in the memory of the plan's GPU.
pub(crate) fn device_source<'a, T: Real, B: Backend<T>, E: Element>(
    b: &B,
    address: usize,
    len: usize,
) -> Result<Source<'a, E>> {
    b.check_address(address)?;
    // SAFETY: the creator of the geometry's `DeviceGeometry` promised that the array is there and does not change.
    Ok(Source::Device(unsafe { DeviceSlice::new(DevicePointer::new(address as u64), len) }))
}

/// Returns the largest density weight in the memory of the plan's GPU, or an error if a weight is invalid.
pub(crate) fn check_weights_on_device<T: Real, B: Backend<T>>(b: &B, weights: Source<'_, T>) -> Result<f64> {
    check_source(b, &weights)?;
    let samples = weights.len();
    let input = b.input(weights)?;
    let check =
        ValueCheck { from: b.read(&input), stride: 1, samples, valid: valid_weights::<T>(), to: None, top: None };
    let ranges = input_ranges(0, b.check_values(&mut [check])?)?;
    Ok(ranges.weight.unwrap_or(0.0))
}

/// Returns an upper bound of the real and imaginary parts of coil maps in the memory of the plan's GPU, or an error if
/// a value is not finite.
pub(crate) fn check_maps_on_device<T: Real, B: Backend<T>>(b: &B, maps: Source<'_, Complex<T>>) -> Result<f64> {
    check_source(b, &maps)?;
    let input = b.input(maps)?;
    let first = |limit| b.first_exceeding(b.read(&input), limit);
    match check_below(COIL_SENSITIVITY, T::of(NORMAL_MAP_LIMIT), first)? {
        true => Ok(NORMAL_MAP_LIMIT),
        false => check_coil_maps(b.workers(), &host_copy(b, maps, "unusually large coil sensitivities")?),
    }
}

/// Checks that an array of the caller is in the memory of the plan's GPU.
fn check_source<T: Real, B: Backend<T>, E>(b: &B, source: &Source<'_, E>) -> Result<()> {
    match source {
        Source::Host(_) => Ok(()),
        Source::Device(slice) => b.check_address(slice.pointer().address() as usize),
    }
}

/// Copies an array of the caller to the host.
pub(super) fn host_copy<T: Real, B: Backend<T>>(
    b: &B,
    array: Source<'_, Complex<T>>,
    what: &str,
) -> Result<Vec<Complex<T>>> {
    let mut host = try_vec(array.len(), Complex::default(), what)?;
    b.download(b.read(&b.input(array)?), &mut host)?;
    Ok(host)
}

/// Returns the coordinates on the host, one slice per axis.
pub(crate) fn host_axes<'a, T: Real, B: Backend<T>>(b: &B, k: &'a [SampleArray<T, B>]) -> Result<Vec<&'a [T]>> {
    k.iter().map(|k| k.host(b)).collect()
}

/// Calls `f` with views of coordinates where the plan computes.
pub(crate) fn with_coordinates<T: Real, B: Backend<T>, R>(
    b: &B,
    k: &[SampleArray<T, B>],
    f: impl FnOnce(&[Reals<'_, B, T>]) -> Result<R>,
) -> Result<R> {
    if k.iter().all(|k| k.device.is_some()) {
        return f(&k.iter().filter_map(SampleArray::device).map(|k| b.view(k)).collect::<Vec<_>>());
    }
    let inputs = host_axes(b, k)?.into_iter().map(|k| b.input(k.into())).collect::<Result<Vec<_>>>()?;
    let views: Vec<_> = inputs.iter().map(|k| b.read(k)).collect();
    f(&views)
}
