//! The handle of a plan, which has either precision.

use super::arrays::check_pointer;
use super::enumerations::{Enumeration, WarningNumber};
use super::status::{call_of_plan, recon_status};
use crate::base::error::{checked_product, Result};
use crate::engine::interface::PlanInfo;
use crate::plan::Plan;
use crate::{Warning, WarningKind};
use std::ffi::CString;
use std::sync::Mutex;

/// A plan: everything that depends on the trajectory. Created by recon_plan_create. Any number of threads may use a
/// plan at once.
pub struct recon_plan {
    pub(super) typed: TypedPlan,
    /// A recon_precision. With the sizes below, it determines the lengths of arrays.
    pub(super) precision: u32,
    /// The requested recon_window.
    pub(super) window: u32,
    pub(super) dims: Vec<usize>,
    pub(super) voxels: usize,
    pub(super) coils: usize,
    pub(super) frames: usize,
    /// Whether coil maps combine the coils into one image.
    pub(super) has_coil_maps: bool,
    /// Whether images and k-space are in the GPU's memory.
    pub(super) on_device: bool,
    /// Whether coordinates, weights and coil maps are in the GPU's memory.
    pub(super) geometry_on_device: bool,
    /// Number (a recon_warning) and text of each warning, once they were read.
    pub(super) warnings: Mutex<Option<Vec<(u32, CString)>>>,
}

/// A plan of the Rust API.
pub(super) enum TypedPlan {
    F32(Plan<f32>),
    F64(Plan<f64>),
}

impl From<Plan<f32>> for TypedPlan {
    fn from(plan: Plan<f32>) -> Self {
        TypedPlan::F32(plan)
    }
}

impl From<Plan<f64>> for TypedPlan {
    fn from(plan: Plan<f64>) -> Self {
        TypedPlan::F64(plan)
    }
}

/// Evaluates an expression in which `$p` is the plan of either precision. The expression may change the plan.
macro_rules! with_shared_plan {
    ($plan:expr, $p:ident => $body:expr) => {
        match &$plan.typed {
            TypedPlan::F32($p) => $body,
            TypedPlan::F64($p) => $body,
        }
    };
}
pub(super) use with_shared_plan;

/// Evaluates an expression in which `$p` is a snapshot of the plan of either precision. The lengths of arrays then
/// match the operation, even if another thread changes the trajectory in between.
macro_rules! with_plan_snapshot {
    ($plan:expr, $p:ident => $body:expr) => {
        with_shared_plan!($plan, p => {
            let $p = &p.clone();
            $body
        })
    };
}
pub(super) use with_plan_snapshot;

impl recon_plan {
    /// Returns the description of the plan.
    pub(super) fn info(&self) -> PlanInfo {
        with_plan_snapshot!(self, p => p.info())
    }

    /// Returns the number of images of all frames.
    pub(super) fn images(&self) -> usize {
        self.frames * if self.has_coil_maps { 1 } else { self.coils }
    }

    /// Returns the number of elements of gridded k-space; 0 with exact sums.
    pub(super) fn grid_elements(&self, info: &PlanInfo) -> Result<usize> {
        if info.grid.is_empty() {
            return Ok(0);
        }
        checked_product(&[&info.grid[..], &[self.coils, self.frames]].concat(), "the gridded k-space")
    }
}

impl TypedPlan {
    /// Returns number and text of each warning.
    pub fn warnings(&self) -> Vec<(u32, CString)> {
        let warnings = match self {
            TypedPlan::F32(p) => p.warnings(),
            TypedPlan::F64(p) => p.warnings(),
        };
        let text = |w: &Warning| CString::new(w.message.replace('\0', " ")).unwrap_or_default();
        warnings.iter().map(|w| (warning_number(w.kind), text(w))).collect()
    }
}

/// Returns the recon_warning of a kind.
pub(super) fn warning_number(kind: WarningKind) -> u32 {
    let kind = match kind {
        WarningKind::Extent => WarningNumber::Extent,
        WarningKind::Tolerance => WarningNumber::Tolerance,
        WarningKind::Blades => WarningNumber::Blades,
        WarningKind::Noise => WarningNumber::Noise,
        WarningKind::Compression => WarningNumber::Compression,
        WarningKind::Wraps => WarningNumber::Wraps,
        WarningKind::Times => WarningNumber::Times,
        WarningKind::Threads => WarningNumber::Threads,
        WarningKind::Calibration => WarningNumber::Calibration,
        WarningKind::Acquisitions => WarningNumber::Acquisitions,
        WarningKind::PartialFourier => WarningNumber::PartialFourier,
    };
    kind.number()
}

/// Runs the body of a C function of a plan, as `call` of src/ffi/status.rs does. Messages of the log have the plan.
///
/// # Safety
/// `plan` is null, or was created by recon_plan_create and not destroyed.
pub(super) unsafe fn call_with_plan(
    plan: *const recon_plan,
    body: impl FnOnce(&recon_plan) -> Result<()>,
) -> recon_status {
    call_of_plan(plan.cast(), || {
        check_pointer("plan", plan)?;
        // SAFETY: not null, and by the caller's promise alive. Parts of a plan that change after its creation are
        // behind locks.
        body(unsafe { &*plan })
    })
}
