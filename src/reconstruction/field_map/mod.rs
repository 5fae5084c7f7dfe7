//! Field maps and decay maps from images of two or more echoes.
//!
//! Voxel r of the image at echo time t has the phase -2 pi f(r) t, and a magnitude proportional to exp(-R(r) t). Coils
//! are combined in products of echoes, sum_c conj(x_c(t_j)) x_c(t_k). These have the phase that accumulates between the
//! two echoes; the coils' phases cancel.
//!
//! The shortest echo spacing determines f within half the inverse of the spacing. Longer spacings are unwrapped with
//! it, voxel by voxel. A line through the phases of all echoes, weighted by their power, then gives f: the estimate of
//! least variance for small noise. The same line through the logarithms of magnitudes gives R.
//!
//! If f exceeds the range of the shortest spacing, its phase wraps. Wraps are undone along neighbours, the most
//! reliable first (unwrap.rs).
//!
//! The map minimises sum_r w(r) (f(r) - measured(r))^2 + smoothing sum |f(r) - f(neighbour)|^2 (Funai et al., IEEE
//! Trans. Med. Imaging 27:1484, 2008, with differences of first order). w is the inverse variance of f due to noise, in
//! units of its median. Voxels of little signal therefore follow their neighbours. Voxels without signal are filled
//! smoothly, with values between the smallest and the largest measured value.

mod echoes;
mod fit;
mod grid;
mod smooth;
mod unwrap;

pub use echoes::Echoes;

use crate::backend::cpu::Cpu;
use crate::base::defaults;
use crate::base::error::{bail, try_collect, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::check_len;
use crate::base::interrupt::{self, ActiveInterrupt, Interrupt};
use crate::base::options::Simd;
use crate::base::real::Real;
use crate::base::results::{check_result, check_results};
use crate::base::sizes::three_axes;
use crate::base::warning::{raise, WarningKind};
use crate::base::workers::{collect, Workers};
use fit::EchoFit;
use grid::{VoxelGrid, WHAT};
use std::f64::consts::{PI, TAU};

/// Share of the voxels with signal below which a piece is not worth a warning.
const LEAST_PIECE: f64 = 0.01;
/// Share of half a period beyond which a median is considered close to half a period.
const NEAR_LIMIT: f64 = 0.75;
/// Largest smoothing; with more, a map is a single number.
const MOST_SMOOTHING: f64 = 1e6;

/// Options of a field map.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldMapOptions {
    /// Weight of differences between neighbouring voxels, relative to that of a voxel of median signal. 0: voxels with
    /// signal keep their measured values, and the other voxels are filled.
    pub smoothing: f64,
    /// Share of the largest signal below which a voxel counts as without signal; 0: all voxels count.
    ///
    /// Signal that noise alone may have does not count either. The signal of two echoes is the root of
    /// 2 / (1 / |x_1|^2 + 1 / |x_2|^2); that of more echoes is the equivalent for the precision of f.
    pub threshold: f64,
    /// Whether wraps of the phase are undone. They are detected, with a warning, in any case.
    pub unwrap: bool,
    /// Number of CPU threads including the calling thread; 0: as many as the machine runs at once. The map has the same
    /// bits for any number.
    pub threads: usize,
    /// Callback that can cancel the call; `None`: not cancellable. The calling thread polls it.
    pub interrupt: Option<Interrupt>,
}

impl FieldMapOptions {
    /// The defaults, which are also those of C, the program and MATLAB.
    pub const DEFAULT: Self = FieldMapOptions {
        smoothing: defaults::FIELD_MAP_SMOOTHING,
        threshold: defaults::FIELD_MAP_THRESHOLD,
        unwrap: true,
        threads: 0,
        interrupt: None,
    };

    /// Returns an error if an option is out of its range.
    fn check(&self) -> Result<()> {
        let FieldMapOptions { smoothing, threshold, .. } = *self;
        if !(0.0..=MOST_SMOOTHING).contains(&smoothing) {
            bail!(InvalidArgument, "smoothing is {smoothing}: it must be from 0 to {MOST_SMOOTHING:e}");
        }
        if !(0.0..1.0).contains(&threshold) {
            bail!(
                InvalidArgument,
                "threshold is {threshold}: it is a share of the largest signal, and must be from 0 to below 1"
            );
        }
        Ok(())
    }
}

impl Default for FieldMapOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Properties of a computed field map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldMapReport {
    /// Largest |f| in Hz that the phase represents without a wrap: 1 / (2 shortest spacing of echoes).
    pub limit: f64,
    /// Share of the voxels with signal.
    pub signal: f64,
    /// Weighted RMS change in Hz by smoothing, in voxels with signal. This is mostly noise, unless the smoothing is too
    /// strong.
    pub change: f64,
    /// Number of pairs of neighbouring voxels with signal whose phases differ by more than pi: wraps, if there are
    /// many.
    pub jumps: usize,
    /// Number of voxels whose phase was unwrapped.
    pub unwrapped: usize,
    /// Number of pairs that still differ by more than pi afterwards, or without unwrapping. The map is wrong there, or
    /// the field changes by more within a voxel.
    pub unresolved: usize,
    /// Ambiguity in Hz: f and f + `period` have the same phases at all echo times.
    ///
    /// With evenly spaced echoes it is 1 / (spacing), twice `limit`. Each piece of the object gets the median nearest
    /// 0 Hz, to which a multiple of the period may have to be added.
    pub period: f64,
    /// Number of separate pieces of voxels with signal. Each has its own ambiguity: nothing relates the f of two
    /// pieces.
    pub pieces: usize,
    /// Number of voxels in pieces for which noise hides the correct f within `period`.
    pub undecided: usize,
}

/// Estimates the field map f in Hz, [dims], from images of several echoes, and on request the map of the decay rate R2*
/// in 1/s, [dims], non-negative.
///
/// The sign of f is that of the model: the signal of a voxel at time t is multiplied by exp(-i 2 pi f t).
///
/// The coils' phases cancel, so no coil maps are needed. Other causes of phase between echoes appear as off-resonance:
/// fat, flow, and alternating readout directions. If the phase wraps, there is a warning (`WarningKind::Wraps`).
///
/// The map of each connected piece of the object may be off by a multiple of [`FieldMapReport::period`], which changes
/// no phase. The multiple with the median nearest 0 Hz is used. An object at 450 Hz, measured with echoes 2.5 ms apart
/// (period 400 Hz), results in 50 Hz. Unevenly spaced echoes have a longer period. If the median of a piece is close to
/// half a period, or if noise hides the multiple, there is a warning.
///
/// The computation takes about 100 bytes per voxel, and 150 more if the phase wraps.
///
/// # Errors
/// The outputs are unchanged after an error:
/// - `InvalidSize` for sizes of 0, a number of axes other than 2 or 3, and fewer than two echoes.
/// - `SizeMismatch`.
/// - `NotFinite` with the index.
/// - `InvalidArgument` for echo times that do not increase or are not in seconds, images without phase, echoes without
///   signal, and options out of range.
/// - `OutOfHostMemory`, `Cancelled`.
pub fn estimate_field_map<T: Real>(
    echoes: &Echoes<'_, T>,
    options: &FieldMapOptions,
    field_map: &mut [T],
    decay_map: Option<&mut [T]>,
) -> Result<FieldMapReport> {
    let _mode = FloatMode::standard();
    let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
    options.check()?;
    let voxels = echoes.check()?;
    check_len("voxels of the field map", field_map.len(), voxels, "one per voxel")?;
    if let Some(map) = &decay_map {
        check_len("voxels of the decay map", map.len(), voxels, "one per voxel")?;
    }
    let workers = &Cpu::new(options.threads, Simd::Auto)?;
    interrupt::check(WHAT)?;
    let fit = EchoFit::new(echoes, voxels, workers)?;
    interrupt::check(WHAT)?;
    let mut phase = collect(workers, voxels, WHAT, |i| fit.base_phase(i))?;
    interrupt::check(WHAT)?;
    let mut weights = fit.weights(workers, options.threshold)?;
    let dims = three_axes(echoes.dims);
    let grid = VoxelGrid { dims, weights: &weights };
    let (mut report, near_limit) = resolve_wraps(&fit, &grid, options, workers, &mut phase)?;
    divide_by_median(&mut weights)?;
    let grid = VoxelGrid { dims, weights: &weights };

    let measured = collect(workers, voxels, WHAT, |i| if weights[i] > 0.0 { fit.frequency(i, phase[i]) } else { 0.0 })?;
    drop(phase);
    interrupt::check(WHAT)?;
    let frequencies = grid.smoothed(workers, &measured, options.smoothing)?;
    report.change = grid.distance(workers, &measured, &frequencies);
    let decay = match &decay_map {
        None => None,
        Some(_) => {
            let rate = |i: usize| if weights[i] > 0.0 { fit.decay(i) } else { 0.0 };
            let measured = collect(workers, voxels, DECAY_MAP, rate)?;
            Some(grid.smoothed(workers, &measured, options.smoothing)?)
        }
    };
    // Rounded to the precision of the maps, which may overflow.
    let field = try_collect(voxels, WHAT, frequencies.iter().map(|&f| T::of(f)))?;
    check_results("off-resonance of voxel", &field)?;
    // Signals do not grow: a negative rate is noise.
    let rates = |decay: &Vec<f64>| try_collect(voxels, DECAY_MAP, decay.iter().map(|r| T::of(r.max(0.0))));
    let rates = decay.as_ref().map(rates).transpose()?;
    if let (Some(decay), Some(rates)) = (&decay, &rates) {
        check_results("decay rate of voxel", decay)?;
        check_results("decay rate of voxel", rates)?;
    }
    check_result("change of the field map by smoothing", report.change)?;
    warn_of_wraps(&report, &near_limit, fit.unit);
    warn_of_multiples(&report, &near_limit, fit.unit);
    workers.warning().into_iter().for_each(|warning| raise(warning.kind, warning.message));
    field_map.copy_from_slice(&field);
    if let (Some(map), Some(rates)) = (decay_map, rates) {
        map.copy_from_slice(&rates);
    }
    Ok(report)
}

/// Name of the decay map in messages.
const DECAY_MAP: &str = "the decay map";

/// Unwraps the phase and selects the multiple of the period of each piece. Returns the report, with `change` 0, and the
/// largest piece close to half a period.
fn resolve_wraps<T: Real>(
    fit: &EchoFit<'_, T>,
    grid: &VoxelGrid<'_>,
    options: &FieldMapOptions,
    workers: &dyn Workers,
    phase: &mut [f64],
) -> Result<(FieldMapReport, NearLimit)> {
    let signal_voxels = grid.weights.iter().filter(|&&w| w > 0.0).count();
    let turns = fit.period();
    let mut report = FieldMapReport {
        limit: 0.5 / fit.unit,
        signal: signal_voxels as f64 / phase.len() as f64,
        change: 0.0,
        jumps: grid.jumps(workers, phase),
        unwrapped: 0,
        unresolved: 0,
        period: turns as f64 / fit.unit,
        pieces: 0,
        undecided: 0,
    };
    report.unresolved = report.jumps;
    if report.jumps > 0 && options.unwrap {
        report.unwrapped = grid.unwrap(phase, signal_voxels)?;
        report.unresolved = grid.jumps(workers, phase);
    }
    interrupt::check(WHAT)?;
    check_result("period of the echoes", report.period)?;
    let mut near_limit = NearLimit { signal_voxels, voxels: 0, median: 0.0 };
    for piece in grid.pieces(signal_voxels)?.chunk_by(|a, b| a.0 == b.0) {
        interrupt::check(WHAT)?;
        report.pieces += 1;
        if options.unwrap && turns > 1 {
            let (turn, is_decided) = fit.choose_turn(piece, phase, turns);
            piece.iter().for_each(|&(_, i)| phase[i] += TAU * turn as f64);
            report.unwrapped += if turn != 0 { piece.len() } else { 0 };
            report.undecided += if is_decided { 0 } else { piece.len() };
        }
        near_limit.add(piece, phase, turns)?;
    }
    Ok((report, near_limit))
}

/// Divides the weights by their median over voxels with signal, so that smoothing means the same for all images.
fn divide_by_median(weights: &mut [f64]) -> Result<()> {
    let positive = weights.iter().copied().filter(|&w| w > 0.0);
    let mut sorted = try_collect(positive.clone().count(), WHAT, positive)?;
    let middle = sorted.len() / 2;
    let median = *sorted.select_nth_unstable_by(middle, f64::total_cmp).1;
    weights.iter_mut().for_each(|w| *w /= median);
    Ok(())
}

/// Largest piece whose median is close to half a period.
struct NearLimit {
    /// Number of voxels with signal, of all pieces.
    signal_voxels: usize,
    /// Number of voxels of the piece; 0 if there is no such piece.
    voxels: usize,
    /// Median of the phase per shortest spacing, in radians.
    median: f64,
}

impl NearLimit {
    /// Examines a piece, and replaces the current one if the new piece is larger.
    fn add(&mut self, piece: &[(usize, usize)], phase: &[f64], turns: usize) -> Result<()> {
        if piece.len() <= self.voxels || (piece.len() as f64) < LEAST_PIECE * self.signal_voxels as f64 {
            return Ok(());
        }
        let mut phases = try_collect(piece.len(), WHAT, piece.iter().map(|&(_, i)| phase[i]))?;
        let median = *phases.select_nth_unstable_by(piece.len() / 2, f64::total_cmp).1;
        if median.abs() > NEAR_LIMIT * PI * turns as f64 {
            (self.voxels, self.median) = (piece.len(), median);
        }
        Ok(())
    }
}

/// Warns of pieces whose multiple of the period is uncertain. `unit` is the shortest spacing in seconds.
fn warn_of_multiples(report: &FieldMapReport, near_limit: &NearLimit, unit: f64) {
    let (period, signal_voxels) = (report.period, near_limit.signal_voxels);
    let remedy = "compare with a map from echoes closer together, or with another piece, and add the multiple to the \
                  map";
    if near_limit.voxels > 0 {
        let median = -near_limit.median / (TAU * unit);
        let other = median - period * median.signum();
        raise(
            WarningKind::Wraps,
            format!(
                "a piece of {} of {signal_voxels} voxels with signal has a median off-resonance of {median:.1} Hz, \
                 close to half the period of {period:.1} Hz of these echo times, so that {other:.1} Hz fits the data \
                 equally well: {remedy}",
                near_limit.voxels
            ),
        );
    }
    if report.undecided as f64 > LEAST_PIECE * signal_voxels as f64 {
        raise(
            WarningKind::Wraps,
            format!(
                "for {} of {signal_voxels} voxels with signal, noise hides the multiple of {:.1} Hz within the period \
                 of {period:.1} Hz of these echoes, and the off-resonance nearest 0 Hz is used: {remedy}",
                report.undecided,
                1.0 / unit
            ),
        );
    }
}

/// Warns of wraps. `unit` is the shortest spacing in seconds.
fn warn_of_wraps(report: &FieldMapReport, near_limit: &NearLimit, unit: f64) {
    let FieldMapReport { limit, jumps, unwrapped, unresolved, .. } = *report;
    if jumps == 0 {
        return;
    }
    let cause = format!(
        "the phase between echoes {:.4} ms apart wraps if off-resonance exceeds {limit:.1} Hz, and {jumps} pairs of \
         neighbouring voxels differ by more than that",
        1e3 * unit
    );
    let result = match (unwrapped, unresolved) {
        (0, _) => "they were not unwrapped, and the map is wrong on one side of each".into(),
        (_, 0) => format!(
            "{unwrapped} of {} voxels with signal were unwrapped, and each connected object got the median nearest \
             0 Hz",
            near_limit.signal_voxels
        ),
        _ => format!(
            "{unwrapped} of {} voxels with signal were unwrapped, and each connected object got the median nearest \
             0 Hz; {unresolved} pairs still differ by as much, and the map is wrong on one side of each",
            near_limit.signal_voxels
        ),
    };
    raise(WarningKind::Wraps, format!("{cause}: {result}. Echoes closer together avoid wraps"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    #[test]
    fn uncertain_multiples_cause_a_warning() {
        // One piece of constant off-resonance; echoes 2.5 ms apart have a period of 400 Hz.
        let warnings = |f: f64, times: &[f64]| {
            let image = |t: &f64| vec![Complex::from_polar(1.0, -TAU * f * t); 12 * 12];
            let images: Vec<Complex<f64>> = times.iter().flat_map(image).collect();
            let echoes = Echoes { images: &images, dims: &[12, 12], coils: 1, times };
            let mut map = vec![f64::NAN; 144];
            let options = FieldMapOptions { threads: 1, ..FieldMapOptions::DEFAULT };
            let estimate = || estimate_field_map(&echoes, &options, &mut map, None).unwrap();
            let (report, warnings) = crate::base::warning::capture(estimate);
            let kinds = warnings.iter().map(|w| w.kind).all(|kind| kind == WarningKind::Wraps);
            assert!(kinds && report.pieces == 1 && report.jumps == 0, "{report:?}");
            (map[70], warnings.into_iter().map(|w| w.message).collect::<Vec<_>>())
        };
        let even = [0.004, 0.0065];
        let (f, messages) = warnings(50.0, &even);
        assert!((f - 50.0).abs() < 1e-6 && messages.is_empty(), "{f} {messages:?}");
        for (sign, median) in [(1.0, "170.0 Hz"), (-1.0, "-170.0 Hz")] {
            let (f, messages) = warnings(170.0 * sign, &even);
            assert!((f - 170.0 * sign).abs() < 1e-6 && messages.len() == 1, "{f} {messages:?}");
            let other = if sign > 0.0 { "-230.0 Hz" } else { "230.0 Hz" };
            assert!(
                messages[0].contains(median) && messages[0].contains(other) && messages[0].contains("400.0 Hz"),
                "{messages:?}"
            );
        }
        // Uneven echoes have a period of 1200 Hz.
        let (f, messages) = warnings(170.0, &[0.004, 0.0065, 0.009875]);
        assert!((f - 170.0).abs() < 1e-6 && messages.is_empty(), "{f} {messages:?}");
    }
}
