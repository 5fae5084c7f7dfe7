//! Density weights of scans.

use crate::options::{defaults, DensityArgs};
use crate::run::input::scan_name;
use crate::run::sampling::Sampling;
use recon::scan::complete_grid_weights;
use recon::{Density, Options, Plan, Real, Result};
use recon_files::Scan;

/// Density weights of a scan.
pub enum Weights<T: Real> {
    /// Weights of the file, or equal weights for a complete Cartesian grid. Their scale does not matter.
    Given(Vec<T>),
    /// Weights that are computed for the plan's trajectory.
    Computed(Density),
    /// No weights. Gridding then uses the library's default, Pipe and Menon.
    Default,
}

impl<T: Real> Weights<T> {
    /// Returns the weights of the file or of the options, or equal weights for a complete Cartesian grid.
    pub fn for_image(scan: &Scan, density: &DensityArgs) -> Result<Self> {
        let weights = Self::of_file_or_options(scan, density);
        if matches!(weights, Weights::Default) && density.density.is_none() {
            if let Some(weights) = complete_grid_weights(scan)? {
                log::info!("{}: a complete Cartesian grid, equal weights", scan_name(scan));
                return Ok(Weights::Given(weights.into_iter().map(T::of).collect()));
            }
        }
        Ok(weights)
    }

    /// Returns the weights of the file or of the options. Coil maps and partial Fourier recognise Cartesian lines
    /// themselves.
    pub fn of_file_or_options(scan: &Scan, density: &DensityArgs) -> Self {
        if let Some(weights) = scan.weights.as_ref().filter(|_| !density.ignore_weights) {
            return Weights::Given(weights.iter().map(|&w| T::of(w as f64)).collect());
        }
        match Density::from(density.density.unwrap_or(defaults::DENSITY)) {
            d if d == Density::default() => Weights::Default,
            d => Weights::Computed(d),
        }
    }

    /// Returns the weights for a data term: those of [`Weights::for_image`], where `Default` becomes `Computed`.
    pub fn for_data_term(scan: &Scan, density: &DensityArgs) -> Result<Self> {
        Ok(match Weights::for_image(scan, density)? {
            Weights::Default => Weights::Computed(Density::default()),
            weights => weights,
        })
    }

    /// Replaces `Computed` by the weights of this sampling.
    pub fn compute(self, sampling: &Sampling<T>, options: &Options) -> Result<Self> {
        match self {
            Weights::Computed(density) => {
                let plan = Plan::new(&sampling.geometry_without_maps(), options)?;
                plan.density(density).map(Weights::Given)
            }
            weights => Ok(weights),
        }
    }

    /// Returns the weights that a plan is created with; `None` for `Computed` and `Default`.
    pub fn known(&self) -> Option<&[T]> {
        match self {
            Weights::Given(w) => Some(w),
            Weights::Computed(_) | Weights::Default => None,
        }
    }

    /// Computes the weights of a plan's trajectory and gives them to the plan, if they are to be computed.
    pub fn compute_in(&self, plan: &Plan<T>) -> Result<()> {
        match self {
            Weights::Computed(density) => plan.set_weights(Some(&plan.density(*density)?)),
            Weights::Given(_) | Weights::Default => Ok(()),
        }
    }
}

/// Warns if the weights in the file override --density.
pub fn warn_of_file_weights(scans: &[Scan], density: &DensityArgs) {
    if density.density.is_some() && !density.ignore_weights && scans.iter().any(|scan| scan.weights.is_some()) {
        log::warn!("the density weights in the file are used, and --density is not: --ignore-weights reverses this");
    }
}
