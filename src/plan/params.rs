//! Parameters of a plan that its changes keep, and the check that a new geometry has the same.

use crate::base::checksum::Checksum;
use crate::base::error::{bail, Result};
use crate::base::geometry::{Geometry, VoxelBasis};
use crate::base::options::{Method, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::engine::device_selection::DeviceSelection;
use crate::engine::interruption::Interruption;

/// Parameters that stay the same for the lifetime of a plan.
pub(super) struct PlanParams {
    pub options: Options,
    pub device_selection: DeviceSelection,
    /// Whether transforms are exact sums.
    exact: bool,
    pub dims: Vec<usize>,
    pub voxels: usize,
    /// Checksum of the voxel positions; `None` for a grid of voxels.
    voxel_list: Option<u64>,
    basis: VoxelBasis,
    pub coils: usize,
    pub frames: usize,
    /// Whether coils are combined by coil maps.
    combines_coils: bool,
    /// Whether the plan has a field map, and whether it has a decay map.
    off_resonance: [bool; 2],
}

impl PlanParams {
    /// Collects the parameters of a geometry.
    pub fn new<T: Real>(
        geometry: &Geometry<'_, T>,
        options: &Options,
        method: Method,
        device_selection: DeviceSelection,
    ) -> Self {
        let combines_coils = geometry.has_coil_maps();
        PlanParams {
            options: options.clone(),
            device_selection,
            exact: method == Method::Exact,
            dims: geometry.dims.clone(),
            voxels: geometry.voxel_count(),
            voxel_list: geometry.voxels.as_ref().map(|axes| position_checksum(axes)),
            basis: geometry.basis,
            coils: geometry.coils,
            frames: geometry.frames,
            combines_coils,
            off_resonance: [geometry.field_map.is_some(), geometry.decay_map.is_some()],
        }
    }

    /// Determines when transforms of `samples` samples can be interrupted, with reals of `real` bytes.
    pub fn interruption(&self, samples: usize, real: usize) -> Interruption {
        let size = ScanSize {
            coils: self.coils,
            frames: self.frames,
            coil_maps: self.combines_coils,
            listed: self.voxel_list.map(|_| self.voxels),
            ..ScanSize::new(&self.dims, samples)
        };
        Interruption::new(&size, &self.options, self.exact, self.off_resonance.contains(&true), real)
    }

    /// Checks that a new geometry differs only in trajectory, weights, times and the values of maps.
    pub fn check_same<T: Real>(&self, geometry: &Geometry<'_, T>) -> Result<()> {
        let remedy = "a new trajectory cannot change this. Use the plan's value, or make a new plan";
        if geometry.dims != self.dims {
            bail!(
                SizeMismatch,
                "the geometry has an image of {:?} voxels, the plan {:?}: {remedy}",
                geometry.dims,
                self.dims
            );
        }
        let (new, present) = (geometry.voxels.is_some(), self.voxel_list.is_some());
        if new != present {
            let list = |is_list| if is_list { "a list of voxels" } else { "no list of voxels" };
            bail!(InvalidArgument, "the geometry has {}, the plan has {}: {remedy}", list(new), list(present));
        }
        for (name, new, present) in [
            ("voxels in its list", geometry.voxel_count(), self.voxels),
            ("coils", geometry.coils, self.coils),
            ("frames", geometry.frames, self.frames),
        ] {
            if new != present {
                bail!(SizeMismatch, "the geometry has {new} {name}, the plan {present}: {remedy}");
            }
        }
        if geometry.voxels.as_ref().map(|axes| position_checksum(axes)) != self.voxel_list {
            bail!(InvalidArgument, "the voxel list of the geometry has other positions than the plan's: {remedy}");
        }
        if geometry.basis != self.basis {
            bail!(
                InvalidArgument,
                "the geometry has the voxel basis {:?}, the plan has {:?}: {remedy}",
                geometry.basis,
                self.basis
            );
        }
        let new = [geometry.field_map.is_some(), geometry.decay_map.is_some()];
        for (name, (new, present)) in ["field map", "decay map"].iter().zip(new.into_iter().zip(self.off_resonance)) {
            if new != present {
                bail!(
                    InvalidArgument,
                    "the geometry has {} {name}, the plan has {}: set this map and the times of the new samples if \
                     the plan has such a map, or make a new plan",
                    if new { "a" } else { "no" },
                    if present { "one" } else { "none" }
                );
            }
        }
        if geometry.has_coil_maps() {
            self.check_combines_coils()?;
        }
        Ok(())
    }

    /// Checks that the plan has coil maps. New values of maps are allowed, but whether there are maps decides the
    /// number of images.
    pub fn check_combines_coils(&self) -> Result<()> {
        if !self.combines_coils {
            bail!(
                InvalidArgument,
                "coil maps cannot be set: the plan was made without maps and has one image for each of {} coils. Make \
                 a new plan with the maps",
                self.coils
            );
        }
        Ok(())
    }

    /// Returns the number of elements of an image array.
    pub fn image_len(&self) -> usize {
        self.voxels * self.frames * if self.combines_coils { 1 } else { self.coils }
    }

    /// Returns the number of elements of Q.
    pub fn q_len(&self) -> usize {
        self.voxels << if self.voxel_list.is_some() { 0 } else { self.dims.len() }
    }
}

/// Returns a checksum of voxel positions, one slice per axis.
fn position_checksum<T: Real>(axes: &[&[T]]) -> u64 {
    let mut sum = Checksum::new();
    axes.iter().flat_map(|r| r.iter()).for_each(|r| sum.add(&r.wide().to_le_bytes()));
    sum.0
}
