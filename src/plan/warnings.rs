//! Warnings about implausible input and about tolerances that are not met.

use crate::base::defaults;
use crate::base::geometry::Geometry;
use crate::base::options::{Options, Window};
use crate::base::real::Real;
use crate::base::warning::{Warning, WarningKind};
use crate::engine::interface::PlanInfo;
use crate::nufft::gridding_params::four_places;

/// Warns about sample times that are implausible in seconds: a wrong unit would blur the image.
pub(super) fn time_warning<T: Real>(geometry: &Geometry<'_, T>) -> Option<Warning> {
    // The signal of protons in tissue has decayed by then, and no readout is as long.
    const MAX_PLAUSIBLE_TIME: f64 = 1.0;
    let times = geometry.off_resonance()?.times;
    let (m, t) = times.iter().map(|t| t.wide()).enumerate().find(|(_, t)| t.abs() > MAX_PLAUSIBLE_TIME)?;
    Some(Warning {
        kind: WarningKind::Times,
        message: format!(
            "the sample times reach {t} s (sample {m}): are they in ms or us? Times are in seconds from the excitation \
             or the echo"
        ),
    })
}

/// Warns if no tolerance is set and the default tolerance is not met.
pub(super) fn tolerance_warning(info: &PlanInfo, options: &Options) -> Option<Warning> {
    if options.tolerance != 0.0 || info.error <= defaults::TOLERANCE {
        return None;
    }
    let is_minimax = info.window == Some(Window::Minimax);
    let (mut details, mut remedy) =
        (String::new(), if is_minimax { "Use double precision" } else { "Use the minimax window or double precision" });
    if options.width != 0 || options.oversampling != 0.0 {
        details = format!("of {} cells at an oversampling of {} ", info.width, four_places(info.oversampling));
        remedy = match (options.width, options.oversampling) {
            (0, _) => "Set a larger oversampling or none",
            (_, 0.0) => "Set a larger width or none",
            _ => "Set a larger width or oversampling, or only one of them",
        };
    }
    Some(Warning {
        kind: WarningKind::Tolerance,
        message: format!(
            "the expected error of transforms is {:.1e}, above the default tolerance of {:.0e}: the {} window {}cannot \
             reach less here. {}, or set a tolerance that is large enough",
            info.error,
            defaults::TOLERANCE,
            info.window.map_or("", Window::name),
            details,
            remedy
        ),
    })
}
