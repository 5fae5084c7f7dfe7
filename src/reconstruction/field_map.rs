//! Field maps, and maps of decay, from images of two or more echoes.
//!
//! Voxel r of the image at echo time t has the phase of -2 pi f(r) t, and the magnitude of exp(-R(r) t). Coils are
//! combined in the products of echoes, sum_c conj(x_c(t_j)) x_c(t_k), which have the phase that grows from one echo to
//! the other and not the coils'. The shortest spacing of echoes gives f within half its inverse. Longer ones are
//! unwrapped by it, voxel by voxel, and a line through the phases of all echoes, weighted by their power, gives f: the
//! estimate of least variance where noise is small. The same line through the logarithms of magnitudes gives R.
//!
//! Where f leaves that range its phase wraps. Wraps are undone along neighbours, the surest first (Abdul-Rahman et al.,
//! Appl. Opt. 46:6623, 2007).
//!
//! The map minimises sum_r w(r) (f(r) - measured(r))^2 + smoothing sum |f(r) - f(neighbour)|^2 (Funai et al., IEEE
//! Trans. Med. Imaging 27:1484, 2008, with differences of first order), w being the inverse of the variance that noise
//! gives to f, in units of its median. So voxels of little signal follow their neighbours, and those of none are filled
//! smoothly, from values that were measured: between the least and the largest of these.

use crate::backend::cpu::Cpu;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_dims, check_len, first_exceeding};
use crate::base::interrupt::{self, ActiveInterrupt, Interrupt};
use crate::base::options::Simd;
use crate::base::real::{wide, Real};
use crate::base::results::{check_result, check_results};
use crate::base::sizes::three_axes;
use crate::base::warning::{raise, WarningKind};
use crate::base::workers::{collect, each_chunk, fold, SharedSlice, Workers};
use num_complex::Complex;
use std::cmp::Ordering;
use std::f64::consts::{PI, TAU};

const WHAT: &str = "the field map";
const UNWRAPPING: &str = "the unwrapping of the field map";
/// Echo times are seconds; larger numbers are milliseconds.
const LATEST: f64 = 1.0;
/// Scanners need longer for a sample than this between two echoes.
const LEAST_SPACING: f64 = 1e-8;
/// Spacings that differ by less are the same.
const SAME_SPACING: f64 = 1e-3;
/// Turns of the shortest spacing that are tried for a piece, and the longest period that is searched for.
const MOST_TURNS: usize = 16;
/// Two frequencies are told apart if some echo sees a difference of this part of a turn.
const TOLD_APART: f64 = 0.1;
/// The part of the power that the misfit of the next best number of turns must exceed that of the best by.
const DECIDED: f64 = 0.05;
/// A smaller part of the voxels with signal is not worth a warning.
const LEAST_PIECE: f64 = 0.01;
/// A median beyond this part of half a period is close to it.
const NEAR_LIMIT: f64 = 0.75;
/// The residual of the smoothed map at which iterations end, relative to the map.
const ACCURACY: f64 = 1e-8;
/// More iterations than any map needs.
const MOST_ITERATIONS: usize = 10_000;
/// With more smoothing a map is one number.
const MOST_SMOOTHING: f64 = 1e6;
/// Smaller grids are solved for without a still smaller one.
const SMALLEST_GRID: usize = 8;
/// Noise alone has more power than counts as signal in one voxel of e^5 at most, by the bound on sums of squares of
/// Laurent and Massart (Ann. Stat. 28:1302, 2000).
const RARE: f64 = 5.0;
/// The median of |n| of a normal variable of variance 1.
const MEDIAN_OF_NORMAL: f64 = 0.6745;
/// The standard deviation of noise over that of the magnitude: between 1, where there is signal, and 1.53, where there
/// is none, in one coil (Rayleigh's distribution).
const OVER_MAGNITUDE: f64 = 1.25;
/// The mean square of an angle of which nothing is known.
const UNKNOWN_ANGLE: f64 = PI * PI / 3.0;

/// How a field map is made of images.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldMapOptions {
    /// The weight of differences between neighbouring voxels against that of a voxel of median signal. 0: voxels with
    /// signal keep what was measured, and the others are filled.
    pub smoothing: f64,
    /// Signal below this part of the largest counts as none, as that which noise alone may have does. The signal of two
    /// echoes is the root of 2 / (1 / |x_1|^2 + 1 / |x_2|^2); of more, what is as good for f. 0: all voxels count.
    pub threshold: f64,
    /// Whether wraps of the phase are undone. They are found, and warned of, in any case.
    pub unwrap: bool,
    /// CPU threads, the calling one among them; 0: as many as the machine runs at once. The map has the same bits for
    /// any number.
    pub threads: usize,
    /// Asked now and then whether to end the call, by the thread that made it.
    pub interrupt: Option<Interrupt>,
}

impl FieldMapOptions {
    /// The defaults, also those of C, the program and MATLAB.
    pub const DEFAULT: Self = FieldMapOptions {
        smoothing: defaults::FIELD_MAP_SMOOTHING,
        threshold: defaults::FIELD_MAP_THRESHOLD,
        unwrap: true,
        threads: 0,
        interrupt: None,
    };
}

impl Default for FieldMapOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is known of a field map that was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldMapReport {
    /// The largest |f| in Hz that the phase tells without a wrap: 1 / (2 shortest spacing of echoes).
    pub limit: f64,
    /// The part of the voxels that has signal.
    pub signal: f64,
    /// The RMS in Hz, weighted as the fit is, of what smoothing changed in voxels with signal: mostly noise, unless the
    /// smoothing is too strong.
    pub change: f64,
    /// Pairs of neighbouring voxels with signal whose phases jumped by more than pi: wraps, where there are many.
    pub jumps: usize,
    /// Voxels whose phase was unwrapped.
    pub unwrapped: usize,
    /// Pairs of neighbours that still jump by more than pi after that, or without it: there the map is wrong, or the
    /// field changes by more within a voxel.
    pub unresolved: usize,
    /// Ambiguity in Hz: f and f + `period` have the same phases at all echo times. With evenly spaced echoes it is
    /// 1 / (spacing), twice `limit`. Of each piece of the object the median nearest 0 Hz is taken, to which
    /// such a multiple may have to be added.
    pub period: f64,
    /// Separate pieces of voxels with signal. Each has its own ambiguity: nothing links the f of two pieces.
    pub pieces: usize,
    /// Voxels in pieces for which noise hides which of the f within `period` is the right one.
    pub undecided: usize,
}

/// Images of several echoes.
#[derive(Debug, Clone, Copy)]
pub struct Echoes<'a, T: Real> {
    /// [dims, coils, echoes], not combined.
    pub images: &'a [Complex<T>],
    /// Voxels along x, y and maybe z.
    pub dims: &'a [usize],
    /// Receive coils.
    pub coils: usize,
    /// In seconds, increasing. Only their differences matter.
    pub times: &'a [f64],
}

/// The field map f in Hz, [dims], of images, with the sign of the model: the signal of a voxel at time t is multiplied by
/// exp(-i 2 pi f t). And the map of decay R2* in 1/s, [dims], none negative, if asked for.
///
/// The coils' phases cancel, so no coil maps are needed. What makes the phase grow otherwise from echo to echo is taken
/// for off-resonance: fat, flow, and the direction of the readout where it alternates. Where the phase wraps there is a
/// warning (`WarningKind::Wraps`).
///
/// Of each connected piece of the object the whole map may be off by a multiple of [`FieldMapReport::period`], which
/// changes no phase: the multiple with the median nearest 0 Hz is taken. An object at 450 Hz, measured by echoes
/// 2.5 ms apart (period 400 Hz), comes out at 50 Hz. Unevenly spaced echoes have a longer period. If the median of a
/// piece is close to half a period, or if noise hides the multiple, there is a warning.
///
/// It takes about 100 bytes a voxel, and 150 more where the phase wraps.
///
/// # Errors
/// `InvalidSize` for sizes of 0, another number of axes than 2 or 3, and fewer than two echoes; `SizeMismatch`;
/// `NotFinite` with the index; `InvalidArgument` for echo times that do not increase or are not seconds, images that
/// have lost their phase, echoes without signal, and options without sense; `OutOfHostMemory`; `Cancelled`. Outputs are
/// untouched then.
pub fn estimate_field_map<T: Real>(
    echoes: &Echoes<'_, T>,
    options: &FieldMapOptions,
    field_map: &mut [T],
    decay_map: Option<&mut [T]>,
) -> Result<FieldMapReport> {
    let _mode = FloatMode::standard();
    let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
    check_options(options)?;
    let voxels = echoes.check()?;
    check_len("voxels of the field map", field_map.len(), voxels, "one a voxel")?;
    if let Some(map) = &decay_map {
        check_len("voxels of the decay map", map.len(), voxels, "one a voxel")?;
    }
    let workers = &Cpu::new(options.threads, Simd::Auto)?;
    interrupt::check(WHAT)?;
    let fit = Fit::new(echoes, voxels, workers)?;
    interrupt::check(WHAT)?;
    let mut base = collect(workers, voxels, WHAT, |i| fit.base(i))?;
    interrupt::check(WHAT)?;
    let mut weights = fit.weights(workers, options.threshold)?;
    let counted = weights.iter().filter(|&&w| w > 0.0).count();
    let grid = Grid { dims: three_axes(echoes.dims), weights: &weights };
    let mut report = FieldMapReport {
        limit: 0.5 / fit.unit,
        signal: counted as f64 / voxels as f64,
        change: 0.0,
        jumps: grid.jumps(workers, &base),
        unwrapped: 0,
        unresolved: 0,
        period: 0.0,
        pieces: 0,
        undecided: 0,
    };
    report.unresolved = report.jumps;
    if report.jumps > 0 && options.unwrap {
        report.unwrapped = grid.unwrap(&mut base, counted)?;
        report.unresolved = grid.jumps(workers, &base);
    }
    interrupt::check(WHAT)?;
    let turns = fit.period();
    report.period = turns as f64 / fit.unit;
    check_result("period of the echoes", report.period)?;
    let voxels_of_pieces = grid.pieces(counted)?;
    let mut near_limit = NearLimit::default();
    for piece in voxels_of_pieces.chunk_by(|a, b| a.0 == b.0) {
        interrupt::check(WHAT)?;
        report.pieces += 1;
        if options.unwrap && turns > 1 {
            let (turn, decided) = fit.choose_turn(piece, &base, turns);
            piece.iter().for_each(|&(_, i)| base[i] += TAU * turn as f64);
            report.unwrapped += if turn != 0 { piece.len() } else { 0 };
            report.undecided += if decided { 0 } else { piece.len() };
        }
        near_limit.look(piece, &base, counted, turns)?;
    }
    drop(voxels_of_pieces);
    // In units of the median, so that smoothing means the same for all images.
    let mut sorted = try_collect(counted, WHAT, weights.iter().copied().filter(|&w| w > 0.0))?;
    let median = *sorted.select_nth_unstable_by(counted / 2, f64::total_cmp).1;
    drop(sorted);
    weights.iter_mut().for_each(|w| *w /= median);
    let grid = Grid { dims: three_axes(echoes.dims), weights: &weights };

    let measured = collect(workers, voxels, WHAT, |i| if weights[i] > 0.0 { fit.frequency(i, base[i]) } else { 0.0 })?;
    drop(base);
    interrupt::check(WHAT)?;
    let frequencies = grid.smoothed(workers, &measured, options.smoothing)?;
    report.change = grid.distance(workers, &measured, &frequencies);
    let decay = match &decay_map {
        None => None,
        Some(_) => {
            let rate = |i: usize| if weights[i] > 0.0 { fit.decay(i) } else { 0.0 };
            let measured = collect(workers, voxels, "the decay map", rate)?;
            Some(grid.smoothed(workers, &measured, options.smoothing)?)
        }
    };
    // Rounded to the precision of the maps, which may overflow.
    let field = try_collect(voxels, WHAT, frequencies.iter().map(|&f| T::of(f)))?;
    check_results("off-resonance of voxel", &field)?;
    // Signals do not grow: where noise says so, it is noise.
    let rates = |decay: &Vec<f64>| try_collect(voxels, "the decay map", decay.iter().map(|r| T::of(r.max(0.0))));
    let rates = decay.as_ref().map(rates).transpose()?;
    if let (Some(decay), Some(rates)) = (&decay, &rates) {
        check_results("decay rate of voxel", decay)?;
        check_results("decay rate of voxel", rates)?;
    }
    check_result("change of the field map by smoothing", report.change)?;
    warn(&report, counted, fit.unit);
    warn_of_turns(&report, counted, &near_limit, fit.unit);
    workers.warning().into_iter().for_each(|warning| raise(warning.kind, warning.message));
    field_map.copy_from_slice(&field);
    if let (Some(map), Some(rates)) = (decay_map, rates) {
        map.copy_from_slice(&rates);
    }
    Ok(report)
}

fn check_options(options: &FieldMapOptions) -> Result<()> {
    let FieldMapOptions { smoothing, threshold, .. } = *options;
    if !(0.0..=MOST_SMOOTHING).contains(&smoothing) {
        bail!(InvalidArgument, "smoothing is {smoothing}: it must be from 0 to {MOST_SMOOTHING:e}");
    }
    if !(0.0..1.0).contains(&threshold) {
        bail!(
            InvalidArgument,
            "threshold is {threshold}: it is a part of the largest signal, and must be from 0 to below 1"
        );
    }
    Ok(())
}

/// The largest piece whose median is close to half a period.
#[derive(Default)]
struct NearLimit {
    voxels: usize,
    /// Phase that grows in a unit of time.
    median: f64,
}

impl NearLimit {
    fn look(&mut self, piece: &[(usize, usize)], base: &[f64], counted: usize, turns: usize) -> Result<()> {
        if piece.len() <= self.voxels || (piece.len() as f64) < LEAST_PIECE * counted as f64 {
            return Ok(());
        }
        let mut phases = try_collect(piece.len(), WHAT, piece.iter().map(|&(_, i)| base[i]))?;
        let median = *phases.select_nth_unstable_by(piece.len() / 2, f64::total_cmp).1;
        if median.abs() > NEAR_LIMIT * PI * turns as f64 {
            *self = NearLimit { voxels: piece.len(), median };
        }
        Ok(())
    }
}

/// Warns of pieces whose multiple of the period is a guess.
fn warn_of_turns(report: &FieldMapReport, counted: usize, near_limit: &NearLimit, unit: f64) {
    let period = report.period;
    let remedy = "compare with a map of echoes closer together, or with another piece, and add the multiple to the map";
    if near_limit.voxels > 0 {
        let median = -near_limit.median / (TAU * unit);
        let other = median - period * median.signum();
        raise(
            WarningKind::Wraps,
            format!(
                "a piece of {} of {counted} voxels with signal has a median off-resonance of {median:.1} Hz, close to \
                 half the period of {period:.1} Hz that these echo times leave open: {other:.1} Hz fits the data as well; \
                 {remedy}",
                near_limit.voxels
            ),
        );
    }
    if report.undecided as f64 > LEAST_PIECE * counted as f64 {
        raise(
            WarningKind::Wraps,
            format!(
                "for {} of {counted} voxels with signal noise hides which multiple of {:.1} Hz the off-resonance has, \
                 within the period of {period:.1} Hz of these echo times: the one nearest 0 Hz is taken; {remedy}",
                report.undecided,
                1.0 / unit
            ),
        );
    }
}

/// Names wraps.
fn warn(report: &FieldMapReport, counted: usize, unit: f64) {
    let FieldMapReport { limit, jumps, unwrapped, unresolved, .. } = *report;
    if jumps == 0 {
        return;
    }
    let cause = format!(
        "the phase between echoes {:.4} ms apart wraps where off-resonance is beyond {limit:.1} Hz: {jumps} pairs of \
         neighbouring voxels jump by more than that",
        1e3 * unit
    );
    let found = match (unwrapped, unresolved) {
        (0, _) => "they were not unwrapped, and the map is wrong on one side of them".into(),
        (_, 0) => format!(
            "{unwrapped} of {counted} voxels with signal were unwrapped, taking the median of each connected object \
             that is nearest 0 Hz"
        ),
        _ => format!(
            "{unwrapped} of {counted} voxels with signal were unwrapped, taking the median of each connected object \
             that is nearest 0 Hz; {unresolved} pairs still jump, and the map is wrong on one side of them"
        ),
    };
    raise(WarningKind::Wraps, format!("{cause}; {found}. Echoes closer together leave no doubt"));
}

impl<T: Real> Echoes<'_, T> {
    /// Checks sizes and times; returns the number of voxels.
    fn check(&self) -> Result<usize> {
        check_dims(self.dims)?;
        if self.coils == 0 {
            bail!(InvalidSize, "images of 0 coils: there is at least one");
        }
        let echoes = self.times.len();
        if echoes < 2 {
            bail!(InvalidSize, "{echoes} echo times: a field map needs images of two echoes or more");
        }
        for (k, &t) in self.times.iter().enumerate() {
            if !t.is_finite() {
                bail!(NotFinite, "echo time {k} is {t}: it must be a number of seconds");
            }
            if t.abs() > LATEST {
                bail!(
                    InvalidArgument,
                    "echo time {k} is {t} s: echo times are given in seconds; these look like milliseconds, which are \
                     to be divided by 1000"
                );
            }
        }
        if let Some(k) = self.times.windows(2).position(|t| t[1] > t[0] && t[1] - t[0] < LEAST_SPACING) {
            bail!(
                InvalidArgument,
                "echo time {} is {:e} s after the one before: echo times are given in seconds, and echoes are at least \
                 {LEAST_SPACING:e} s apart",
                k + 1,
                self.times[k + 1] - self.times[k]
            );
        }
        if let Some(k) = self.times.windows(2).position(|t| t[0] >= t[1]) {
            bail!(
                InvalidArgument,
                "echo time {} is {} s after {} s: echo times must increase; give the images and times in their order, \
                 each time once",
                k + 1,
                self.times[k + 1],
                self.times[k]
            );
        }
        let voxels = checked_product(self.dims, "the image")?;
        let needed = checked_product(&[voxels, self.coils, echoes], "the images of echoes")?;
        check_len("voxels of images", self.images.len(), needed, "voxels times coils times echoes")?;
        Ok(voxels)
    }
}

/// The fit of one voxel.
struct Fit<'a, T: Real> {
    echoes: &'a Echoes<'a, T>,
    voxels: usize,
    /// The inverse of the largest number in the images.
    scale: f64,
    /// The shortest spacing of echoes in seconds: the unit of time here.
    unit: f64,
    /// Neighbouring echoes of this spacing, by the first of each.
    shortest: Vec<usize>,
}

/// Sums of a weighted fit of a line.
#[derive(Default, Clone, Copy)]
struct Line {
    weight: f64,
    time: f64,
    square: f64,
    value: f64,
    product: f64,
}

impl Line {
    fn add(&mut self, weight: f64, time: f64, value: f64) {
        self.weight += weight;
        self.time += weight * time;
        self.square += weight * time * time;
        self.value += weight * value;
        self.product += weight * time * value;
    }

    /// The inverse of the slope's variance, for values of variances 1 / weight.
    fn precision(&self) -> f64 {
        if self.weight > 0.0 {
            (self.square - self.time * self.time / self.weight).max(0.0)
        } else {
            0.0
        }
    }

    fn slope(&self) -> Option<f64> {
        let precision = self.precision();
        (precision > 0.0).then(|| (self.product - self.time * self.value / self.weight) / precision)
    }
}

/// The angle that is `angle` but for turns, nearest to `target`.
fn nearest(angle: f64, target: f64) -> f64 {
    angle + TAU * ((target - angle) / TAU).round()
}

impl<'a, T: Real> Fit<'a, T> {
    fn new(echoes: &'a Echoes<'a, T>, voxels: usize, workers: &dyn Workers) -> Result<Self> {
        let of_echo = voxels * echoes.coils;
        let limit = T::of(f64::INFINITY);
        if let Some((at, z)) = first_exceeding(workers, echoes.images, limit) {
            let (k, c, i) = (at / of_echo, at / voxels % echoes.coils, at % voxels);
            bail!(NotFinite, "voxel {i} of coil {c} and echo {k} is {} + {}i: it must be a number", z.re, z.im);
        }
        let mut largest = [0.0f64; 2];
        for (k, echo) in echoes.images.chunks_exact(of_echo).enumerate() {
            let of_part = |range: std::ops::Range<usize>| {
                let larger =
                    |most: [f64; 2], z: &Complex<T>| [most[0].max(z.re.wide().abs()), most[1].max(z.im.wide().abs())];
                echo[range].iter().fold([0.0; 2], larger)
            };
            let most = fold(workers, of_echo, [0.0; 2], of_part, |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
            if most == [0.0; 2] {
                bail!(
                    InvalidArgument,
                    "the images of echo {k} are 0 everywhere: a field map needs signal in all echoes"
                );
            }
            largest = [largest[0].max(most[0]), largest[1].max(most[1])];
        }
        if largest[1] == 0.0 {
            bail!(
                InvalidArgument,
                "the images are real: their phases are lost, and off-resonance with them; give complex images, not \
                 magnitudes"
            );
        }
        let gap = |k: usize| echoes.times[k + 1] - echoes.times[k];
        let gaps = echoes.times.len() - 1;
        let unit = (0..gaps).map(gap).fold(f64::INFINITY, f64::min);
        let is_shortest = |k: &usize| gap(*k) <= unit * (1.0 + SAME_SPACING);
        let count = (0..gaps).filter(is_shortest).count();
        let shortest = try_collect(count, WHAT, (0..gaps).filter(is_shortest))?;
        let scale = 1.0 / largest[0].max(largest[1]).max(f64::MIN_POSITIVE);
        Ok(Fit { echoes, voxels, scale, unit, shortest })
    }

    fn value(&self, i: usize, coil: usize, echo: usize) -> Complex<f64> {
        wide(self.echoes.images[(echo * self.echoes.coils + coil) * self.voxels + i]) * self.scale
    }

    fn time(&self, echo: usize) -> f64 {
        (self.echoes.times[echo] - self.echoes.times[0]) / self.unit
    }

    /// The product of an echo with the next one, whose phase is that which has grown between them.
    fn product(&self, i: usize, echo: usize) -> Complex<f64> {
        (0..self.echoes.coils).map(|c| self.value(i, c, echo).conj() * self.value(i, c, echo + 1)).sum()
    }

    fn power(&self, i: usize, echo: usize) -> f64 {
        (0..self.echoes.coils).map(|c| self.value(i, c, echo).norm_sqr()).sum()
    }

    /// The phase that has grown in a unit of time, within half a turn.
    fn base(&self, i: usize) -> f64 {
        self.shortest.iter().map(|&k| self.product(i, k)).sum::<Complex<f64>>().arg()
    }

    /// Distance between neighbouring echoes in units of the shortest one.
    fn gap(&self, echo: usize) -> f64 {
        self.time(echo + 1) - self.time(echo)
    }

    /// Number of turns of the shortest spacing that no pair of neighbouring echoes sees, at most [`MOST_TURNS`].
    fn period(&self) -> usize {
        let gaps = self.echoes.times.len() - 1;
        let is_seen = |turns: usize| {
            (0..gaps).map(|k| turns as f64 * self.gap(k)).any(|turns| (turns - turns.round()).abs() > TOLD_APART)
        };
        (1..MOST_TURNS).find(|&turns| !is_seen(turns)).unwrap_or(MOST_TURNS)
    }

    /// Number of turns of the shortest spacing to add to a piece's phases so that they fit all echoes best, and whether
    /// no other number within the period fits almost as well. If several do, 0 is preferred.
    fn choose_turn(&self, piece: &[(usize, usize)], base: &[f64], period: usize) -> (i32, bool) {
        let mut misfits = [0.0; MOST_TURNS];
        let mut power = 0.0;
        // Numbers of turns in the order 0, 1, -1, 2, -2.
        let turns_of = |number: usize| if number % 2 == 1 { number.div_ceil(2) as i32 } else { -(number as i32 / 2) };
        for &(_, i) in piece {
            for k in (0..self.echoes.times.len() - 1).filter(|k| !self.shortest.contains(k)) {
                let (product, gap) = (self.product(i, k), self.gap(k));
                power += product.norm();
                for (number, misfit) in misfits.iter_mut().enumerate().take(period) {
                    let wanted = gap * (base[i] + TAU * f64::from(turns_of(number)));
                    *misfit += product.norm() - (product * Complex::from_polar(1.0, -wanted)).re;
                }
            }
        }
        let best = (0..period).fold(0, |best, number| if misfits[number] < misfits[best] { number } else { best });
        let next = (0..period).filter(|&n| n != best).map(|n| misfits[n]).fold(f64::INFINITY, f64::min);
        let is_decided = next - misfits[best] > DECIDED * power;
        let is_better = misfits[0] - misfits[best] > DECIDED * power;
        (if is_better { turns_of(best) } else { 0 }, is_decided)
    }

    /// How well each voxel tells its off-resonance: the inverse of its variance; 0 without signal.
    fn weights(&self, workers: &dyn Workers, threshold: f64) -> Result<Vec<f64>> {
        let weight = |i: usize| {
            let mut line = Line::default();
            (0..self.echoes.times.len()).for_each(|k| line.add(self.power(i, k), self.time(k), 0.0));
            let tells = self.shortest.iter().any(|&k| self.product(i, k) != Complex::default());
            if tells {
                line.precision()
            } else {
                0.0
            }
        };
        let mut weights = collect(workers, self.voxels, WHAT, weight)?;
        let most = weights.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            bail!(InvalidArgument, "no voxel has signal in two echoes: are the images of one object?");
        }
        if threshold == 0.0 {
            return Ok(weights);
        }
        let mut even = Line::default();
        for k in 0..self.echoes.times.len() {
            even.add(self.noise_power(workers, k)?, self.time(k), 0.0);
        }
        let least = even.precision().max(threshold * threshold * most);
        if most < least {
            bail!(
                InvalidArgument,
                "no voxel has signal that noise alone does not have: measure with less noise, or with threshold 0 all \
                 voxels count"
            );
        }
        weights.iter_mut().filter(|w| **w < least).for_each(|w| *w = 0.0);
        Ok(weights)
    }

    /// The power of an echo that noise alone hardly exceeds in a voxel. Its level is found from the image: the median
    /// of differences of magnitudes over two voxels in x and y tells it (Donoho and Johnstone, Biometrika 81:425,
    /// 1994), as most voxels differ in these by their noise. Over two, since interpolated images have neighbours of
    /// almost the same noise.
    fn noise_power(&self, workers: &dyn Workers, echo: usize) -> Result<f64> {
        let [nx, ny, _] = three_axes(self.echoes.dims);
        let [columns, rows] = [nx, ny].map(|n| n.saturating_sub(2));
        let slices = self.voxels / (nx * ny);
        if columns * rows == 0 {
            return Ok(0.0);
        }
        let magnitude = |i: usize| self.power(i, echo).sqrt();
        let mut differences = collect(workers, columns * rows * slices, "the noise level", |j| {
            let i = j % columns + nx * (j / columns % rows + ny * (j / columns / rows));
            let (near, far) = (magnitude(i) - magnitude(i + 2), magnitude(i + 2 * nx) - magnitude(i + 2 * nx + 2));
            0.5 * (near - far).abs()
        })?;
        let middle = differences.len() / 2;
        let median = *differences.select_nth_unstable_by(middle, f64::total_cmp).1;
        let level = OVER_MAGNITUDE * median / MEDIAN_OF_NORMAL;
        let parts = 2.0 * self.echoes.coils as f64;
        Ok(level * level * (parts + 2.0 * (parts * RARE).sqrt() + 2.0 * RARE))
    }

    /// Off-resonance in Hz of a voxel whose phase grows by about `rate` in a unit of time.
    fn frequency(&self, i: usize, rate: f64) -> f64 {
        let echoes = self.echoes.times.len();
        let [mut low, mut high] = [self.shortest[0]; 2];
        let [mut phase_low, mut phase_high] = [0.0; 2];
        let mut line = Line::default();
        line.add(self.power(i, low), self.time(low), 0.0);
        // Echoes come in order of their distance from those that are there: these unwrap them.
        while high - low + 1 < echoes {
            let below = if low > 0 { self.time(low) - self.time(low - 1) } else { f64::INFINITY };
            let above = if high + 1 < echoes { self.time(high + 1) - self.time(high) } else { f64::INFINITY };
            let (gap, echo) = if above <= below { (above, high) } else { (below, low - 1) };
            let slope = if gap <= 1.0 + SAME_SPACING { rate } else { line.slope().unwrap_or(rate) };
            let product = self.product(i, echo);
            let grown = if product == Complex::default() { slope * gap } else { nearest(product.arg(), slope * gap) };
            if above <= below {
                high += 1;
                phase_high += grown;
                line.add(self.power(i, high), self.time(high), phase_high);
            } else {
                low -= 1;
                phase_low -= grown;
                line.add(self.power(i, low), self.time(low), phase_low);
            }
        }
        -line.slope().unwrap_or(rate) / (TAU * self.unit)
    }

    /// The decay rate of a voxel in 1/s, negative where noise makes it so.
    fn decay(&self, i: usize) -> f64 {
        let mut line = Line::default();
        for k in 0..self.echoes.times.len() {
            let power = self.power(i, k);
            if power > 0.0 {
                line.add(power, self.time(k), 0.5 * power.ln());
            }
        }
        -line.slope().unwrap_or(0.0) / self.unit
    }
}

/// A grid of voxels, and how much each tells.
struct Grid<'a> {
    dims: [usize; 3],
    weights: &'a [f64],
}

/// Calls `each(i, [x, y, z])` for the voxels of a range.
fn each_voxel(dims: [usize; 3], range: std::ops::Range<usize>, mut each: impl FnMut(usize, [usize; 3])) {
    let [nx, ny, _] = dims;
    let mut at = [range.start % nx, range.start / nx % ny, range.start / nx / ny];
    for i in range {
        each(i, at);
        at[0] += 1;
        if at[0] == nx {
            at[0] = 0;
            at[1] += 1;
            if at[1] == ny {
                at[1] = 0;
                at[2] += 1;
            }
        }
    }
}

impl Grid<'_> {
    /// From a voxel to the next one along each axis.
    fn strides(&self) -> [usize; 3] {
        [1, self.dims[0], self.dims[0] * self.dims[1]]
    }

    /// Voxel `i` and the next one along the axis, if both have signal.
    fn pair(&self, i: usize, at: [usize; 3], axis: usize) -> Option<usize> {
        let next = i + self.strides()[axis];
        (at[axis] + 1 < self.dims[axis] && self.weights[i] > 0.0 && self.weights[next] > 0.0).then_some(next)
    }

    /// Pairs of neighbours with signal whose phases differ by more than half a turn.
    fn jumps(&self, workers: &dyn Workers, phase: &[f64]) -> usize {
        let of_part = |range: std::ops::Range<usize>| {
            let mut jumps = 0;
            each_voxel(self.dims, range, |i, at| {
                for axis in 0..3 {
                    let jump = |next: usize| (phase[next] - phase[i]).abs() > PI;
                    jumps += usize::from(self.pair(i, at, axis).is_some_and(jump));
                }
            });
            jumps
        };
        fold(workers, phase.len(), 0, of_part, |a, b| a + b)
    }

    /// Pieces of the object: the voxels with signal, `counted` in all, as pairs of their piece and their index, sorted.
    fn pieces(&self, counted: usize) -> Result<Vec<(usize, usize)>> {
        let voxels = self.weights.len();
        let mut parent = try_collect(voxels, UNWRAPPING, 0..voxels)?;
        let find = |parent: &mut [usize], mut i: usize| {
            while parent[i] != i {
                parent[i] = parent[parent[i]];
                i = parent[i];
            }
            i
        };
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in 0..3 {
                if let Some(next) = self.pair(i, at, axis) {
                    let (a, b) = (find(&mut parent, i), find(&mut parent, next));
                    // The smaller index is the root: it does not depend on the order.
                    parent[a.max(b)] = a.min(b);
                }
            }
        });
        let mut all = crate::base::error::try_reserve(counted, UNWRAPPING)?;
        for i in (0..voxels).filter(|&i| self.weights[i] > 0.0) {
            all.push((find(&mut parent, i), i));
        }
        sort(&mut all, &|a: &(usize, usize), b| a.cmp(b))?;
        Ok(all)
    }

    /// Undoes wraps along neighbours, those first about whose difference their own neighbours leave least doubt. Each
    /// connected object of `counted` voxels in all gets the median nearest 0. Returns how many voxels have changed.
    fn unwrap(&self, phase: &mut [f64], counted: usize) -> Result<usize> {
        /// Pairs of neighbours between two questions whether to go on.
        const EDGES: usize = 1 << 16;
        let voxels = phase.len();
        let turned = |a: f64, b: f64| nearest(b - a, 0.0);
        // Second differences of the phase, after Abdul-Rahman et al.: small where it is sure.
        let mut doubt = try_vec(voxels, 0.0f64, UNWRAPPING)?;
        let mut pairs = 0;
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in (0..3).filter(|&a| self.dims[a] > 1) {
                pairs += usize::from(self.pair(i, at, axis).is_some());
                let stride = self.strides()[axis];
                let inside = at[axis] > 0 && at[axis] + 1 < self.dims[axis];
                let known = inside && [i - stride, i, i + stride].iter().all(|&j| self.weights[j] > 0.0);
                doubt[i] += match known {
                    true => (turned(phase[i], phase[i + stride]) - turned(phase[i - stride], phase[i])).powi(2),
                    false => UNKNOWN_ANGLE,
                };
            }
        });
        let mut edges = crate::base::error::try_reserve::<(f64, usize, usize)>(pairs, UNWRAPPING)?;
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in 0..3 {
                if let Some(next) = self.pair(i, at, axis) {
                    edges.push((doubt[i] + doubt[next], i, next));
                }
            }
        });
        drop(doubt);
        sort(&mut edges, &|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))))?;

        // Trees of voxels that have been joined: each has its parent, and the turns that it is ahead of it.
        let mut parent = try_collect(voxels, UNWRAPPING, 0..voxels)?;
        let mut turns = try_vec(voxels, 0i32, UNWRAPPING)?;
        let mut size = try_vec(voxels, 1u32, UNWRAPPING)?;
        for (number, (_, a, b)) in edges.into_iter().enumerate() {
            if number % EDGES == 0 {
                interrupt::check(UNWRAPPING)?;
            }
            let ((root_a, turns_a), (root_b, turns_b)) =
                (root(&mut parent, &mut turns, a), root(&mut parent, &mut turns, b));
            if root_a == root_b {
                continue;
            }
            // What b must be turned by, for the step from a to be the short way.
            let step = ((nearest(phase[b], phase[a]) - phase[b]) / TAU).round() as i32;
            let ahead = turns_a + step - turns_b;
            if size[root_a] >= size[root_b] {
                (parent[root_b], turns[root_b]) = (root_a, ahead);
                size[root_a] = size[root_a].saturating_add(size[root_b]);
            } else {
                (parent[root_a], turns[root_a]) = (root_b, -ahead);
                size[root_b] = size[root_b].saturating_add(size[root_a]);
            }
        }
        // Objects one after the other, each in the order of its phases.
        let mut all = crate::base::error::try_reserve::<(usize, f64, usize, i32)>(counted, UNWRAPPING)?;
        for i in (0..voxels).filter(|&i| self.weights[i] > 0.0) {
            let (object, turns) = root(&mut parent, &mut turns, i);
            all.push((object, phase[i] + TAU * f64::from(turns), i, turns));
        }
        sort(&mut all, &|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)))?;
        let mut changed = 0;
        for object in all.chunk_by(|a, b| a.0 == b.0) {
            let total: f64 = object.iter().map(|v| self.weights[v.2]).sum();
            let mut sum = 0.0;
            let middle = object.iter().find(|v| {
                sum += self.weights[v.2];
                sum >= 0.5 * total
            });
            let own = middle.map_or(0.0, |v| (v.1 / TAU).round());
            for &(_, unwrapped, i, turns) in object {
                changed += usize::from(f64::from(turns) != own);
                phase[i] = unwrapped - TAU * own;
            }
        }
        Ok(changed)
    }

    /// The map that is near the measured values, by their weights, and smooth.
    fn smoothed(&self, workers: &dyn Workers, measured: &[f64], smoothing: f64) -> Result<Vec<f64>> {
        let weighted = collect(workers, measured.len(), WHAT, |i| self.weights[i] * measured[i])?;
        // A hundredth of the median's weight fills, until voxels with signal get back what was measured.
        let start = if smoothing > 0.0 { smoothing } else { 0.01 };
        let mut map = self.start(workers, &weighted, start)?;
        let system = match smoothing > 0.0 {
            true => System { grid: self, smoothing, hold: false },
            false => {
                map.iter_mut().zip(measured).zip(self.weights).filter(|(_, w)| **w > 0.0).for_each(|((to, f), _)| {
                    *to = *f;
                });
                System { grid: self, smoothing: 1.0, hold: true }
            }
        };
        system.solve(workers, &weighted, &mut map)?;
        Ok(map)
    }

    /// A first guess: the solution on a grid of half the size.
    fn start(&self, workers: &dyn Workers, weighted: &[f64], smoothing: f64) -> Result<Vec<f64>> {
        let dims = self.dims;
        if dims.iter().all(|&n| n <= SMALLEST_GRID) {
            let (sum, weight) = (weighted.iter().sum::<f64>(), self.weights.iter().sum::<f64>());
            return try_vec(weighted.len(), if weight > 0.0 { sum / weight } else { 0.0 }, WHAT);
        }
        let half = dims.map(|n| if n > SMALLEST_GRID { n.div_ceil(2) } else { n });
        let halves: [usize; 3] = std::array::from_fn(|a| if half[a] < dims[a] { 2 } else { 1 });
        let sums = |of: &[f64]| {
            let block = |j: usize| {
                let at = [j % half[0], j / half[0] % half[1], j / half[0] / half[1]];
                let ends: [usize; 3] = std::array::from_fn(|a| dims[a].min((at[a] + 1) * halves[a]));
                let mut sum = 0.0;
                for z in at[2] * halves[2]..ends[2] {
                    for y in at[1] * halves[1]..ends[1] {
                        let row = dims[0] * (y + dims[1] * z);
                        sum += of[row + at[0] * halves[0]..row + ends[0]].iter().sum::<f64>();
                    }
                }
                sum
            };
            collect(workers, half.iter().product(), WHAT, block)
        };
        let (weights, few) = (sums(self.weights)?, sums(weighted)?);
        // A step of the coarse grid is two of the fine one, for each of the voxels side by side.
        let side: usize = halves.iter().product();
        let smoothing = smoothing * side as f64 / 4.0;
        let grid = Grid { dims: half, weights: &weights };
        let mut coarse = grid.start(workers, &few, smoothing)?;
        System { grid: &grid, smoothing, hold: false }.solve(workers, &few, &mut coarse)?;
        collect(workers, weighted.len(), WHAT, |i| {
            let at = [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
            let [x, y, z]: [usize; 3] = std::array::from_fn(|a| at[a] / halves[a]);
            coarse[x + half[0] * (y + half[1] * z)]
        })
    }

    /// The weighted RMS of the difference of two maps.
    fn distance(&self, workers: &dyn Workers, a: &[f64], b: &[f64]) -> f64 {
        let of_part = |range: std::ops::Range<usize>| {
            range.fold([0.0; 2], |sum: [f64; 2], i| {
                [sum[0] + self.weights[i] * (a[i] - b[i]).powi(2), sum[1] + self.weights[i]]
            })
        };
        let [square, weight] = fold(workers, a.len(), [0.0; 2], of_part, |a, b| [a[0] + b[0], a[1] + b[1]]);
        (square / weight).sqrt()
    }
}

/// Sorts, and asks meanwhile whether to go on: a volume has tens of millions of pairs of neighbours.
fn sort<E>(values: &mut [E], order: &impl Fn(&E, &E) -> Ordering) -> Result<()> {
    /// Sorted at once, in a tenth of a second.
    const PART: usize = 1 << 20;
    interrupt::check(UNWRAPPING)?;
    if values.len() <= PART {
        values.sort_unstable_by(order);
        return Ok(());
    }
    let (low, _, high) = values.select_nth_unstable_by(values.len() / 2, order);
    sort(low, order)?;
    sort(high, order)
}

/// The root of a voxel's tree, and the turns that the voxel is ahead of it. Shortens the way there.
fn root(parent: &mut [usize], turns: &mut [i32], i: usize) -> (usize, i32) {
    let (mut at, mut ahead) = (i, 0);
    while parent[at] != at {
        let above = parent[at];
        if parent[above] != above {
            turns[at] += turns[above];
            parent[at] = parent[above];
        }
        ahead += turns[at];
        at = parent[at];
    }
    (at, ahead)
}

/// The equations of the smoothed map: (W + smoothing D^T D) map = W measured.
struct System<'a> {
    grid: &'a Grid<'a>,
    smoothing: f64,
    /// Voxels with signal are held at what they are.
    hold: bool,
}

impl System<'_> {
    fn held(&self, i: usize) -> bool {
        self.hold && self.grid.weights[i] > 0.0
    }

    /// What multiplies a voxel itself.
    fn diagonal(&self, i: usize, at: [usize; 3]) -> f64 {
        let ends = |a: usize| usize::from(at[a] > 0) + usize::from(at[a] + 1 < self.grid.dims[a]);
        let neighbours: usize = (0..3).map(ends).sum();
        self.grid.weights[i] + self.smoothing * neighbours as f64
    }

    /// One row of the equations.
    fn row(&self, x: &[f64], i: usize, at: [usize; 3]) -> f64 {
        let own = x[i];
        let mut differences = 0.0;
        let strides = self.grid.strides();
        for a in 0..3 {
            if at[a] > 0 {
                differences += own - x[i - strides[a]];
            }
            if at[a] + 1 < self.grid.dims[a] {
                differences += own - x[i + strides[a]];
            }
        }
        self.grid.weights[i] * own + self.smoothing * differences
    }

    /// Conjugate gradients, preconditioned by the diagonal, from `map` on. The same bits for any workers.
    fn solve(&self, workers: &dyn Workers, weighted: &[f64], map: &mut [f64]) -> Result<()> {
        let (dims, len) = (self.grid.dims, map.len());
        let [mut residual, mut direction, mut product] =
            [try_vec(len, 0.0, WHAT)?, try_vec(len, 0.0, WHAT)?, try_vec(len, 0.0, WHAT)?];
        let add = |a: [f64; 2], b: [f64; 2]| [a[0] + b[0], a[1] + b[1]];
        let (mut energy, size) = {
            let (residual, direction) = (SharedSlice::new(&mut residual), SharedSlice::new(&mut direction));
            let map = &*map;
            let [energy, size] = fold(
                workers,
                len,
                [0.0; 2],
                |range| {
                    let mut sums = [0.0; 2];
                    each_voxel(dims, range, |i, at| {
                        let diagonal = self.diagonal(i, at);
                        sums[1] += diagonal * map[i] * map[i];
                        if diagonal > 0.0 && !self.held(i) {
                            let r = weighted[i] - self.row(map, i, at);
                            sums[0] += r * r / diagonal;
                            // SAFETY: each voxel is in one range.
                            unsafe { (residual.set(i, r), direction.set(i, r / diagonal)) };
                        }
                    });
                    sums
                },
                add,
            );
            (energy, size)
        };
        for _ in 0..MOST_ITERATIONS {
            interrupt::check(WHAT)?;
            if energy.is_nan() || energy <= ACCURACY * ACCURACY * size {
                break;
            }
            let curvature = {
                let product = SharedSlice::new(&mut product);
                let of_part = |range: std::ops::Range<usize>| {
                    let mut sum = 0.0;
                    each_voxel(dims, range, |i, at| {
                        if !self.held(i) {
                            let q = self.row(&direction, i, at);
                            sum += q * direction[i];
                            // SAFETY: each voxel is in one range.
                            unsafe { product.set(i, q) };
                        }
                    });
                    sum
                };
                fold(workers, len, 0.0, of_part, |a, b| a + b)
            };
            if curvature <= 0.0 {
                break;
            }
            let step = energy / curvature;
            let next = {
                let (map, residual) = (SharedSlice::new(map), SharedSlice::new(&mut residual));
                let of_part = |range: std::ops::Range<usize>| {
                    let mut sum = 0.0;
                    // SAFETY: ranges do not overlap.
                    let (map, residual) =
                        unsafe { (map.part(range.start, range.len()), residual.part(range.start, range.len())) };
                    let start = range.start;
                    each_voxel(dims, range, |i, at| {
                        map[i - start] += step * direction[i];
                        let r = residual[i - start] - step * product[i];
                        residual[i - start] = r;
                        let diagonal = self.diagonal(i, at);
                        sum += if diagonal > 0.0 { r * r / diagonal } else { 0.0 };
                    });
                    sum
                };
                fold(workers, len, 0.0, of_part, |a, b| a + b)
            };
            let kept = next / energy;
            energy = next;
            let shared = SharedSlice::new(&mut direction);
            each_chunk(workers, len, |_, range| {
                // SAFETY: chunks do not overlap.
                let direction = unsafe { shared.part(range.start, range.len()) };
                let start = range.start;
                each_voxel(dims, range, |i, at| {
                    let diagonal = self.diagonal(i, at);
                    let own = if diagonal > 0.0 { residual[i] / diagonal } else { 0.0 };
                    direction[i - start] = own + kept * direction[i - start];
                });
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiple_that_is_a_guess_is_warned_of() {
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
        let (f, told) = warnings(50.0, &even);
        assert!((f - 50.0).abs() < 1e-6 && told.is_empty(), "{f} {told:?}");
        for (sign, there) in [(1.0, "170.0 Hz"), (-1.0, "-170.0 Hz")] {
            let (f, told) = warnings(170.0 * sign, &even);
            assert!((f - 170.0 * sign).abs() < 1e-6 && told.len() == 1, "{f} {told:?}");
            let other = if sign > 0.0 { "-230.0 Hz" } else { "230.0 Hz" };
            assert!(told[0].contains(there) && told[0].contains(other) && told[0].contains("400.0 Hz"), "{told:?}");
        }
        // Uneven echoes have a period of 1200 Hz.
        let (f, told) = warnings(170.0, &[0.004, 0.0065, 0.009875]);
        assert!((f - 170.0).abs() < 1e-6 && told.is_empty(), "{f} {told:?}");
    }

    /// Lists that are sorted at once, and those that are sorted in parts.
    #[test]
    fn long_lists_are_sorted_as_short_ones() {
        let mut state = 1u32;
        for len in [0, 1, 2, 3, 1000, 1 << 20, (1 << 20) + 1, 2_500_000] {
            // Few enough values for many to be equal.
            let next = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 12
            };
            let mut values: Vec<u32> = (0..len).map(next).collect();
            let mut sorted = values.clone();
            sorted.sort();
            sort(&mut values, &u32::cmp).unwrap();
            assert!(values == sorted, "{len} values");
        }
    }
}
