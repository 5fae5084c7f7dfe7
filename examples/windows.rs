//! Writes src/nufft/minimax_table.rs: the minimax windows. Run with `cargo run --release --example windows` after a
//! change here; tests/minimax.rs compares the file with this program.
//!
//! A window of W cells is a polynomial of degree d in each cell, in the form that gridding evaluates. The polynomials
//! are the unknowns, so their error is included in the minimisation. With F the window's Fourier transform, the error
//! of a sample at offset f in its cell, in a voxel of frequency xi, is
//!
//! ```text
//! e(f, xi) = sum_j window(j + f - W/2) exp(-i 2 pi xi (j + f - W/2)) - F(xi)   relative to F(xi)
//! ```
//!
//! Its mean square over f is the sum over all periods p != 0 of F(xi + p)^2 / F(xi)^2. Gaussian quadrature in f
//! computes it exactly, however slowly the aliases decrease. In the mean used here, the edge of the cell has an
//! additional weight of about a tenth. Samples of a Cartesian scan lie there, and the plain mean would leave errors of
//! three or four times its own.
//!
//! With coefficients c, mean square and main lobe are c' A(xi) c and c' B(xi) c. The largest quotient over the voxels
//! of an image, |xi| <= 0.5/sigma, is minimised. This is the min-max criterion of Fessler and Sutton, IEEE Trans.
//! Signal Process. 51:560, 2003, with one window for all positions and the correction of Jacob, IEEE Trans. Image
//! Process. 18:1894, 2009. For any weights of the voxels the smallest generalised eigenvalue of (sum w A, sum w B) is a
//! lower bound, and its eigenvector is a window. Weights that are multiplied by the errors (Lawson's iteration) raise
//! the bound until bound and window meet.
//!
//! The windows of one width and degree at all oversampling factors are nearly combinations of a few. The windows of
//! some factors (`modes`) are optimised over all polynomials, the others over the combinations of these. The table has
//! the modes, and a row for each oversampling factor. The error in a row is that of the printed numbers, the maximum
//! over some hundred voxels, refined between them. It is valid at any larger oversampling too. Rows are so close that
//! the error decreases by a tenth from one to the next (a quarter from nine cells on, a half from twelve on).
//!
//! The program uses only the four operations, square roots and the functions of the crate `libm`, so that all machines
//! write the same bytes.

use std::f64::consts::PI;
use std::fmt::Write;

/// Families: width, degree, and the first and last oversampling. If two have one width, the lower degree is within a
/// tenth of the best at small oversampling; the higher one begins where the lower one loses more. For wide windows, the
/// degrees are sufficient for double precision.
pub const FAMILIES: [(usize, usize, f64, f64); 23] = [
    (2, 2, 1.25, 2.5),
    (3, 2, 1.25, 1.5),
    (3, 3, 1.25, 2.5),
    (4, 3, 1.25, 1.5),
    (4, 4, 1.25, 2.5),
    (5, 4, 1.25, 1.7),
    (5, 5, 1.25, 2.5),
    (6, 5, 1.25, 1.8),
    (6, 6, 1.3, 2.5),
    (7, 6, 1.25, 2.0),
    (7, 7, 1.45, 2.5),
    (8, 6, 1.25, 1.35),
    (8, 7, 1.25, 2.5),
    (9, 7, 1.25, 1.5),
    (9, 8, 1.28, 2.5),
    (10, 8, 1.25, 1.65),
    (10, 9, 1.38, 2.5),
    (11, 10, 1.25, 2.5),
    (12, 10, 1.25, 2.0),
    (13, 11, 1.25, 2.0),
    (14, 12, 1.25, 2.0),
    (15, 12, 1.25, 1.9),
    (16, 13, 1.25, 1.75),
];

/// Weight of the edge of a cell among the positions of samples. Narrow windows at small oversampling are for tolerances
/// above 1e-3, for which the promise for Cartesian scans is weaker.
fn edge_weight(width: usize, sigma: f64) -> f64 {
    if width > 4 {
        0.1
    } else {
        0.055 + 0.075 * (sigma - 1.4).clamp(0.0, 0.6)
    }
}
/// Nodes of Gaussian quadrature in a cell: exact for polynomials of degree 47, twice the degree of a squared error.
const NODES: usize = 24;

fn main() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/nufft/minimax_table.rs");
    let mut text = header();
    for family in FAMILIES {
        let started = std::time::Instant::now();
        text += &of_family(family);
        println!("width {}, degree {}: {:.1} s", family.0, family.1, started.elapsed().as_secs_f64());
    }
    text += "];\n";
    std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

/// Returns the head of the table's file.
pub fn header() -> String {
    "//! Minimax windows. Written by examples/windows.rs, which describes the numbers. To write this file again, run
//! `cargo run --release --example windows`.

/// Windows of one width and degree.
pub(super) struct Family {
    pub width: usize,
    pub degree: usize,
    /// Windows whose linear combinations are the windows of the rows. Each has coefficients of the powers of
    /// t = 2 f - 1, lowest first, for half of the taps.
    pub modes: &'static [f64],
    /// Rows in ascending order of oversampling. Each has the oversampling, the worst error, the amplification of
    /// rounding errors, and the coefficient of each mode.
    pub rows: &'static [f64],
}

#[rustfmt::skip]
pub(super) const FAMILIES: &[Family] = &[
"
    .to_owned()
}

/// Computes a family.
pub fn of_family((width, degree, first, last): (usize, usize, f64, f64)) -> String {
    let masters = if width < 9 { 2 + width / 2 } else { width.min(12) - 2 };
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for i in 0..masters {
        // Chebyshev's nodes, ends included.
        let part = 0.5 - 0.5 * libm::cos(PI * i as f64 / (masters - 1) as f64);
        let sigma = of_log_error(log_error(first) + part * (log_error(last) - log_error(first)));
        let (mains, aliases) = positions(width, degree, sigma);
        add_orthogonal(&mut basis, minimax(&mains, &aliases, 1.01));
    }
    let mut rows: Vec<(f64, Vec<f64>)> = Vec::new();
    for sigma in sigmas(width, first, last) {
        let (mains, aliases) = positions(width, degree, sigma);
        let mains: Vec<Vec<f64>> = mains.iter().map(|b| basis.iter().map(|u| dot(u, b)).collect()).collect();
        let reduced = aliases.iter().map(|a| a.times(&basis).triangle());
        let parts = minimax(&mains, &reduced.collect::<Vec<_>>(), 1.003);
        rows.push((sigma, parts));
    }
    // The window is 1 in its centre, and coefficients are at most 1.
    let centre = |c: &[f64]| {
        let powers = powers(c, width, degree);
        let (tap, t) = if width % 2 == 0 { (width / 2 - 1, 1.0) } else { (width / 2, 0.0) };
        powers[tap * (degree + 1)..][..degree + 1].iter().rev().fold(0.0, |sum, c| sum * t + c)
    };
    let centres: Vec<f64> = basis.iter().map(|u| centre(u)).collect();
    for (_, parts) in &mut rows {
        let peak = dot(parts, &centres);
        parts.iter_mut().for_each(|z| *z /= peak);
    }
    for (i, mode) in basis.iter_mut().enumerate() {
        let largest = rows.iter().fold(0.0, |most: f64, (_, z)| most.max(z[i].abs()));
        mode.iter_mut().for_each(|c| *c *= largest);
        rows.iter_mut().for_each(|(_, z)| z[i] /= largest);
    }
    let modes: Vec<Vec<f64>> = basis.iter().map(|u| powers(u, width, degree)).collect();
    print(width, degree, &modes, &rows)
}

/// Approximate logarithm of the error per cell of width.
fn log_error(sigma: f64) -> f64 {
    PI * (1.0 - 1.0 / sigma).sqrt()
}

fn of_log_error(log: f64) -> f64 {
    1.0 / (1.0 - (log / PI) * (log / PI))
}

/// Returns the oversampling factors of a family's rows. Above 2, which only small images need, they are further apart.
fn sigmas(width: usize, first: f64, last: f64) -> Vec<f64> {
    let fall = match width {
        ..5 => 0.03,
        5..9 => 0.085,
        9..12 => 0.2,
        _ => 0.4,
    };
    let mut sigmas = Vec::new();
    let mut part = |from: f64, to: f64, fall: f64| {
        let (low, high) = (log_error(from), log_error(to));
        let steps = libm::ceil(width as f64 * (high - low) / fall);
        for i in 0..steps as usize {
            sigmas.push(of_log_error(low + (high - low) * i as f64 / steps));
        }
    };
    part(first, last.min(2.0), fall);
    if last > 2.0 {
        part(2.0, last, 4.0 * fall);
    }
    sigmas.push(last);
    // Four digits, rounded up: a row begins where its error does.
    sigmas.iter().map(|s| libm::ceil(s * 1e4 - 1e-6) / 1e4).collect()
}

/// Returns a family as source text of the table.
fn print(width: usize, degree: usize, modes: &[Vec<f64>], rows: &[(f64, Vec<f64>)]) -> String {
    // Digits of a hundredth of the smallest error, because the correction amplifies it.
    let combined = |modes: &[Vec<f64>], parts: &[f64]| combination(modes, parts);
    let least = rows.iter().fold(f64::INFINITY, |least, (sigma, parts)| {
        let window = Window::new(width, degree, &combined(modes, parts));
        least.min(window.error(0.5 / sigma) / window.amplification(0.5 / sigma))
    });
    let places = (libm::ceil(2.0 - libm::log10(least)) as usize).min(17);
    let rounded = |values: &[f64]| -> (Vec<String>, Vec<f64>) {
        let words: Vec<String> = values.iter().map(|v| word(*v, places)).collect();
        let values = words.iter().map(|w| w.parse().expect("a number")).collect();
        (words, values)
    };
    let (words, modes): (Vec<_>, Vec<_>) = modes.iter().map(|mode| rounded(mode)).unzip();
    let mut text = format!("    Family {{\n        width: {width},\n        degree: {degree},\n        modes: &[\n");
    words.iter().for_each(|words| lines(&mut text, words));
    text += "        ],\n        rows: &[\n";
    for (sigma, parts) in rows {
        let (words, parts) = rounded(parts);
        let window = Window::new(width, degree, &combined(&modes, &parts));
        let (worst, amplification) = (window.worst(0.5 / sigma), window.amplification(0.5 / sigma));
        let mut all = vec![format!("{sigma:?}"), upwards(worst), upwards(amplification)];
        all.extend(words);
        lines(&mut text, &all);
    }
    text + "        ],\n    },\n"
}

/// Returns a number with this number of decimal places, in the shorter notation.
fn word(value: f64, places: usize) -> String {
    let plain = format!("{value:.places$}");
    let plain = if plain.contains('.') { plain.trim_end_matches('0').to_owned() } else { plain };
    let value: f64 = plain.parse().expect("a number");
    if value == 0.0 {
        return "0.0".to_owned();
    }
    let plain = if plain.ends_with('.') { plain + "0" } else { plain };
    let short = format!("{value:e}");
    if short.len() < plain.len() {
        short
    } else {
        plain
    }
}

/// Returns a bound of four digits.
fn upwards(value: f64) -> String {
    let rounded = format!("{:.3e}", value * 1.0005);
    let value: f64 = rounded.parse().expect("a number");
    if value < 1e-2 {
        rounded
    } else {
        format!("{value:?}")
    }
}

/// Joins words in lines of less than 120 columns.
fn lines(text: &mut String, words: &[String]) {
    let mut line = "           ".to_owned();
    for word in words {
        if line.len() + word.len() + 2 > 119 {
            writeln!(text, "{line}").expect("memory");
            line = "           ".to_owned();
        }
        write!(line, " {word},").expect("memory");
    }
    writeln!(text, "{line}").expect("memory");
}

/// Returns the sum of modes times coefficients.
fn combination(modes: &[Vec<f64>], parts: &[f64]) -> Vec<f64> {
    (0..modes[0].len()).map(|i| modes.iter().zip(parts).fold(0.0, |sum, (mode, z)| sum + mode[i] * z)).collect()
}

/// Values of a window at the quadrature nodes.
struct Window {
    width: usize,
    rule: Vec<(f64, f64)>,
    /// [node][tap]
    values: Vec<Vec<f64>>,
}

impl Window {
    /// Evaluates the powers of t = 2 f - 1 of half of the taps, lowest first.
    fn new(width: usize, degree: usize, powers: &[f64]) -> Window {
        let rule = gauss(NODES);
        let value = |tap: usize, t: f64| {
            let (tap, t) = if 2 * tap < width { (tap, t) } else { (width - 1 - tap, -t) };
            powers[tap * (degree + 1)..][..degree + 1].iter().rev().fold(0.0, |sum, c| sum * t + c)
        };
        let values = rule.iter().map(|(t, _)| (0..width).map(|tap| value(tap, *t)).collect()).collect();
        Window { width, rule, values }
    }

    /// Returns the Fourier transform, and the mean square of the difference from it.
    fn transform(&self, xi: f64) -> (f64, f64) {
        let sum = |((t, _), taps): (&(f64, f64), &Vec<f64>)| {
            let start = 0.5 * (t + 1.0) - 0.5 * self.width as f64;
            taps.iter().enumerate().fold((0.0, 0.0), |(re, im), (j, tap)| {
                let (s, c) = libm::sincos(2.0 * PI * xi * (start + j as f64));
                (re + tap * c, im - tap * s)
            })
        };
        let sums: Vec<(f64, f64)> = self.rule.iter().zip(&self.values).map(sum).collect();
        let main = self.rule.iter().zip(&sums).fold(0.0, |sum, ((_, w), (re, _))| sum + w * re);
        let alias = self
            .rule
            .iter()
            .zip(&sums)
            .fold(0.0, |sum, ((_, w), (re, im))| sum + w * ((re - main) * (re - main) + im * im));
        (main, alias)
    }

    /// Returns the error in one voxel.
    fn error(&self, xi: f64) -> f64 {
        let (main, alias) = self.transform(xi);
        (alias / (main * main + alias)).sqrt()
    }

    /// Returns the maximum error up to the frequency `edge`.
    fn worst(&self, edge: f64) -> f64 {
        let count = 240 + 16 * self.width;
        let step = 0.5 * PI / count as f64;
        let at = |i: f64| self.error(edge * libm::sin(i * step));
        let errors: Vec<f64> = (0..=count).map(|i| at(i as f64)).collect();
        let mut worst = errors.iter().copied().fold(0.0, f64::max);
        for i in 1..count {
            let [a, b, c] = [errors[i - 1], errors[i], errors[i + 1]];
            if b >= a && b >= c && b > 0.9 * worst && a + c < 2.0 * b {
                worst = worst.max(at(i as f64 + 0.5 * (a - c) / (a - 2.0 * b + c)));
            }
        }
        worst
    }

    /// Returns the root mean square of F(0)/F(xi) up to the frequency `edge`.
    fn amplification(&self, edge: f64) -> f64 {
        let centre = self.transform(0.0).0;
        let square = |(t, w): &(f64, f64)| {
            let quotient = centre / self.transform(0.5 * (t + 1.0) * edge).0;
            w * quotient * quotient
        };
        self.rule.iter().map(square).sum::<f64>().sqrt()
    }
}

/// A matrix in columns.
#[derive(Clone)]
pub struct Columns(Vec<Vec<f64>>);

impl Columns {
    /// Returns the product with vectors.
    fn times(&self, vectors: &[Vec<f64>]) -> Columns {
        let product = |v: &Vec<f64>| {
            let mut sum = vec![0.0; self.0[0].len()];
            for (column, v) in self.0.iter().zip(v) {
                add(&mut sum, column, *v);
            }
            sum
        };
        Columns(vectors.iter().map(product).collect())
    }

    /// Returns the R of a QR decomposition by Householder reflections: [columns][rows up to the diagonal], then zeros.
    fn triangle(mut self) -> Columns {
        let count = self.0.len();
        let rows = self.0[0].len();
        for k in 0..count.min(rows) {
            let (left, right) = self.0.split_at_mut(k + 1);
            let column = &mut left[k];
            let size = dot(&column[k..], &column[k..]).sqrt();
            if size > 0.0 {
                let first = column[k];
                let diagonal = if first > 0.0 { -size } else { size };
                column[k] -= diagonal;
                let square = size * (size + first.abs());
                for other in right {
                    let part = dot(&column[k..], &other[k..]) / square;
                    add(&mut other[k..], &column[k..], -part);
                }
                column[k] = diagonal;
            }
            column.truncate((k + 1).min(rows));
        }
        let rows = rows.min(count);
        self.0.iter_mut().for_each(|c| c.resize(rows, 0.0));
        self
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    rest + sums.iter().sum::<f64>()
}

/// Computes sum += factor v.
fn add(sum: &mut [f64], v: &[f64], factor: f64) {
    sum.iter_mut().zip(v).for_each(|(sum, v)| *sum += factor * v);
}

/// Adds the component of a vector beyond an orthonormal basis to the basis.
fn add_orthogonal(basis: &mut Vec<Vec<f64>>, mut vector: Vec<f64>) {
    if basis.len() == vector.len() {
        return;
    }
    for _ in 0..3 {
        for u in basis.iter() {
            let part = dot(u, &vector);
            add(&mut vector, u, -part);
        }
        let size = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|v| *v /= size);
    }
    basis.push(vector);
}

/// Returns the Legendre polynomials up to a degree.
fn legendre(degree: usize, t: f64) -> Vec<f64> {
    let mut p = vec![1.0, t];
    for m in 1..degree {
        p.push(((2 * m + 1) as f64 * t * p[m] - m as f64 * p[m - 1]) / (m + 1) as f64);
    }
    p.truncate(degree + 1);
    p
}

/// Returns the nodes in (-1, 1) of Gaussian quadrature, and weights whose sum is 1.
fn gauss(count: usize) -> Vec<(f64, f64)> {
    let node = |i: usize| {
        let mut t = -libm::cos(PI * (i as f64 + 0.75) / (count as f64 + 0.5));
        let mut slope = 0.0;
        for _ in 0..100 {
            let p = legendre(count, t);
            slope = count as f64 * (t * p[count] - p[count - 1]) / (t * t - 1.0);
            let step = p[count] / slope;
            t -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        (t, 1.0 / ((1.0 - t * t) * slope * slope))
    };
    (0..count).map(node).collect()
}

/// Returns the unknown taps and powers of Legendre polynomials: half of the taps, and the even powers of a middle tap.
fn unknowns(width: usize, degree: usize) -> Vec<(usize, usize)> {
    let all = (0..width.div_ceil(2)).flat_map(|tap| (0..=degree).map(move |m| (tap, m)));
    all.filter(|(tap, m)| 2 * tap + 1 != width || m % 2 == 0).collect()
}

/// Returns the powers of t of half of the taps, lowest first.
fn powers(c: &[f64], width: usize, degree: usize) -> Vec<f64> {
    // Legendre polynomials in powers.
    let mut table = vec![vec![0.0; degree + 1]; degree + 2];
    table[0][0] = 1.0;
    table[1][1] = 1.0;
    for m in 1..degree {
        for i in 0..=degree {
            let raised = if i > 0 { table[m][i - 1] } else { 0.0 };
            table[m + 1][i] = ((2 * m + 1) as f64 * raised - m as f64 * table[m - 1][i]) / (m + 1) as f64;
        }
    }
    let mut powers = vec![0.0; width.div_ceil(2) * (degree + 1)];
    for ((tap, m), c) in unknowns(width, degree).into_iter().zip(c) {
        add(&mut powers[tap * (degree + 1)..][..degree + 1], &table[m], *c);
    }
    powers
}

/// Returns, for some voxels up to the image's edge, the effect of the unknowns on F, and on the errors at each position
/// of a sample, real and imaginary.
fn positions(width: usize, degree: usize, sigma: f64) -> (Vec<Vec<f64>>, Vec<Columns>) {
    let rule = gauss(NODES);
    let unknowns = unknowns(width, degree);
    let edge = edge_weight(width, sigma);
    // By symmetry, half of the cell is enough.
    let half = rule.iter().filter(|(t, _)| *t < 0.0).map(|(t, w)| (*t, 2.0 * w * (1.0 - edge)));
    let places: Vec<(f64, f64)> = half.chain([(-1.0, edge)]).collect();
    let sum = |t: f64, xi: f64| -> Vec<(f64, f64)> {
        let p = legendre(degree, t);
        let start = 0.5 * (t + 1.0) - 0.5 * width as f64;
        let phases: Vec<(f64, f64)> = (0..width).map(|j| libm::sincos(-2.0 * PI * xi * (start + j as f64))).collect();
        let one = |&(tap, m): &(usize, usize)| {
            let ((s, c), (s2, c2)) = (phases[tap], phases[width - 1 - tap]);
            match (2 * tap + 1 == width, m % 2) {
                (true, _) => (p[m] * c, p[m] * s),
                (_, 0) => (p[m] * (c + c2), p[m] * (s + s2)),
                _ => (p[m] * (c - c2), p[m] * (s - s2)),
            }
        };
        unknowns.iter().map(one).collect()
    };
    let count = 20 + 2 * width;
    let voxel = |i: usize| {
        let xi = 0.5 / sigma * libm::sin(0.5 * PI * i as f64 / (count - 1) as f64);
        let mut main = vec![0.0; unknowns.len()];
        for (t, w) in &rule {
            main.iter_mut().zip(sum(*t, xi)).for_each(|(main, (re, _))| *main += w * re);
        }
        let mut columns = vec![Vec::with_capacity(2 * places.len()); unknowns.len()];
        for (t, w) in &places {
            let root = w.sqrt();
            for ((column, main), (re, im)) in columns.iter_mut().zip(&main).zip(sum(*t, xi)) {
                column.extend([root * (re - main), root * im]);
            }
        }
        (main, Columns(columns))
    };
    (0..count).map(voxel).unzip()
}

/// Returns the vector whose maximum quotient of |aliases c| by |mains c| over the voxels is smallest, within a factor
/// `gap`; in the first voxel |mains c| is 1.
fn minimax(mains: &[Vec<f64>], aliases: &[Columns], gap: f64) -> Vec<f64> {
    let unknowns = mains[0].len();
    let mut weights = vec![1f64; mains.len()];
    let mut shares = vec![1.0 / mains.len() as f64; mains.len()];
    let (mut best, mut least, mut bound) = (Vec::new(), f64::INFINITY, 0f64);
    for round in 0..400 {
        let rows: usize = aliases.iter().map(|a| a.0[0].len()).sum();
        let mut stacked = Columns(vec![Vec::with_capacity(rows); unknowns]);
        for (a, w) in aliases.iter().zip(&weights) {
            let root = w.sqrt();
            for (to, from) in stacked.0.iter_mut().zip(&a.0) {
                to.extend(from.iter().map(|v| root * v));
            }
        }
        let r = stacked.triangle().0;
        // The largest singular vector of the mains times the inverse of r.
        let scaled: Vec<Vec<f64>> = mains
            .iter()
            .zip(&weights)
            .map(|(main, w)| {
                let mut x: Vec<f64> = main.iter().map(|v| w.sqrt() * v).collect();
                for i in 0..unknowns {
                    x[i] = (x[i] - dot(&r[i][..i], &x[..i])) / r[i][i];
                }
                x
            })
            .collect();
        let mut y = vec![0.0; unknowns];
        scaled.iter().for_each(|x| add(&mut y, x, 1.0));
        let mut size = 0.0;
        for _ in 0..200 {
            let mut next = vec![0.0; unknowns];
            scaled.iter().for_each(|x| add(&mut next, x, dot(x, &y)));
            let now = dot(&next, &next).sqrt();
            next.iter_mut().for_each(|v| *v /= now);
            y = next;
            let done = (now - size).abs() <= 1e-11 * now;
            size = now;
            if done {
                break;
            }
        }
        let mut c = y;
        for i in (0..unknowns).rev() {
            c[i] /= r[i][i];
            let (before, at) = c.split_at_mut(i);
            add(before, &r[i][..i], -at[0]);
        }
        let main = dot(&c, &mains[0]);
        c.iter_mut().for_each(|v| *v /= main);
        let squares: Vec<f64> = mains.iter().map(|b| dot(b, &c) * dot(b, &c)).collect();
        let errors: Vec<f64> = aliases
            .iter()
            .zip(&squares)
            .map(|(a, square)| {
                let v = &a.times(std::slice::from_ref(&c)).0[0];
                (dot(v, v) / square).sqrt()
            })
            .collect();
        let worst = errors.iter().copied().fold(0.0, f64::max);
        // Three rounds find denominators, with which weights are shares of the errors.
        if round >= 3 {
            bound = bound.max(1.0 / size.sqrt());
            if worst < least {
                (least, best) = (worst, c);
            }
            if least <= gap * bound {
                break;
            }
            shares.iter_mut().zip(&errors).for_each(|(s, e)| *s *= e / worst * (e / worst));
            let sum: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|s| *s /= sum);
        }
        weights = shares.iter().zip(&squares).map(|(s, square)| s / square.max(1e-40)).collect();
    }
    best
}
