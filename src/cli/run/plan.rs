//! A plan that is used for one scan after another.

use crate::run::weights::Weights;
use recon::{Geometry, Options, Plan, Real, Result};

/// A plan, and the properties that cannot change when it gets a new trajectory.
pub struct ReusablePlan<T: Real> {
    pub plan: Plan<T>,
    dims: Vec<usize>,
    coils: usize,
    has_coil_maps: bool,
}

impl<T: Real> ReusablePlan<T> {
    /// Returns a plan with these weights. The previous plan gets the new trajectory if image size and coils are equal.
    /// Otherwise a new plan is created, and also under a memory limit, which would count both trajectories. Results
    /// have the same bits.
    pub fn new(
        previous: Option<Self>,
        geometry: &Geometry<'_, T>,
        weights: &Weights<T>,
        options: &Options,
    ) -> Result<Self> {
        let mut geometry = geometry.clone();
        geometry.weights = weights.known();
        let (dims, coils, has_coil_maps) = (geometry.dims.clone(), geometry.coils, geometry.coil_maps.is_some());
        let fits = |plan: &Self| (&plan.dims, plan.coils, plan.has_coil_maps) == (&dims, coils, has_coil_maps);
        let plan = match previous.filter(|previous| fits(previous) && options.memory_limit.is_none()) {
            Some(ReusablePlan { plan, .. }) => {
                if geometry.weights.is_none() {
                    // A plan with weights does not accept a trajectory without weights.
                    plan.set_weights(None)?;
                }
                plan.set_trajectory(&geometry)?;
                plan
            }
            None => Plan::new(&geometry, options)?,
        };
        weights.compute_in(&plan)?;
        Ok(ReusablePlan { plan, dims, coils, has_coil_maps })
    }
}
