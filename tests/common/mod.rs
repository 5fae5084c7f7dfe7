//! Helpers of all test programs: random numbers, direct sums in double precision, distances, vector units.
#![allow(dead_code)]

pub mod decay;
pub mod documents;
pub mod emulator;
pub mod scans;
pub mod transforms;

use recon::phantom::{Ellipsoid, Phantom};
use recon::{Complex, ErrorKind, Geometry, Options, Plan, Real, Simd};
use std::f64::consts::TAU;
use std::path::Path;
use std::sync::OnceLock;

/// A head phantom that differs from all of its mirror images.
pub fn head() -> Phantom {
    let mut shapes = Phantom::shepp_logan_2d().shapes().to_vec();
    shapes.push(Ellipsoid {
        density: 0.3,
        centre: [0.3, -0.25, 0.0],
        semi_axes: [0.2, 0.08, 1.0],
        angles: [0.6, 0.0, 0.0],
    });
    Phantom::new(2, shapes).unwrap()
}

/// Creates a generator with a new seed; print `seed` in failures.
pub struct Random {
    pub seed: u64,
    state: u64,
}

impl Random {
    pub fn fresh() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = std::env::var("RECON_TEST_SEED")
            .map_or(clock.as_nanos() as u64, |s| s.parse().expect("RECON_TEST_SEED is a number"));
        Random::of(seed)
    }

    /// Creates a generator with a given seed.
    pub fn of(seed: u64) -> Self {
        Random { seed, state: seed }
    }

    /// Returns a number that is uniform in [-0.5, 0.5).
    pub fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    /// Returns an integer from 0 to n - 1.
    pub fn below(&mut self, n: usize) -> usize {
        ((self.uniform() + 0.5) * n as f64) as usize
    }

    pub fn reals<T: Real>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::of(self.uniform())).collect()
    }

    pub fn complexes<T: Real>(&mut self, n: usize) -> Vec<Complex<T>> {
        (0..n).map(|_| Complex::new(T::of(self.uniform()), T::of(self.uniform()))).collect()
    }

    /// Returns coordinates within [-0.5, 0.5), one vector per axis.
    pub fn trajectory<T: Real>(&mut self, ndim: usize, samples: usize) -> Vec<Vec<T>> {
        (0..ndim).map(|_| (0..samples).map(|_| T::coordinate(self.uniform())).collect()).collect()
    }
}

pub fn slices<T>(lists: &[Vec<T>]) -> Vec<&[T]> {
    lists.iter().map(|l| &l[..]).collect()
}

/// Returns an array of NaN: elements that a call does not write remain NaN.
pub fn poisoned<T: Real>(n: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::of(f64::NAN), T::of(f64::NAN)); n]
}

pub fn wide<T: Real>(z: &[Complex<T>]) -> Vec<Complex<f64>> {
    z.iter().map(|z| Complex::new(z.re.wide(), z.im.wide())).collect()
}

pub fn narrow<T: Real>(z: &[Complex<f64>]) -> Vec<Complex<T>> {
    z.iter().map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect()
}

pub fn wide_lists<T: Real>(k: &[Vec<T>]) -> Vec<Vec<f64>> {
    k.iter().map(|k| k.iter().map(|k| k.wide()).collect()).collect()
}

/// Returns voxel coordinates of a grid, r = index - floor(n/2), one vector per axis.
pub fn voxels(dims: &[usize]) -> Vec<Vec<f64>> {
    let total: usize = dims.iter().product();
    let mut stride = 1;
    dims.iter()
        .map(|&n| {
            let r = (0..total).map(|i| (i / stride % n) as f64 - (n / 2) as f64).collect();
            stride *= n;
            r
        })
        .collect()
}

/// Computes out(a) = sum_b values(b) exp(sign i 2 pi a.b), term by term.
pub fn direct(sign: f64, from: &[Vec<f64>], values: &[Complex<f64>], to: &[Vec<f64>]) -> Vec<Complex<f64>> {
    (0..to[0].len())
        .map(|a| {
            (0..values.len())
                .map(|b| {
                    let turns: f64 = from.iter().zip(to).map(|(f, t)| f[b] * t[a]).sum();
                    values[b] * Complex::from_polar(1.0, sign * TAU * (turns - turns.round()))
                })
                .sum()
        })
        .collect()
}

/// Returns the relative l2 distance. It is NaN if `a` has a NaN.
pub fn distance<T: Real>(a: &[Complex<T>], exact: &[Complex<f64>]) -> f64 {
    assert_eq!(a.len(), exact.len());
    let error: f64 = wide(a).iter().zip(exact).map(|(a, e)| (a - e).norm_sqr()).sum();
    (error / exact.iter().map(|e| e.norm_sqr()).sum::<f64>()).sqrt()
}

/// Returns <a, b>, conjugating a.
pub fn inner<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> Complex<f64> {
    wide(a).iter().zip(wide(b)).map(|(a, b)| a.conj() * b).sum()
}

pub fn norm<T: Real>(a: &[Complex<T>]) -> f64 {
    inner(a, a).re.sqrt()
}

/// Prints a line bypassing the test harness, which shows only the output of failed tests.
pub fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns the levels of this processor's vector unit, the lowest first. Prints a line for each missing level of its
/// architecture.
pub fn levels() -> Vec<Simd> {
    let has = |simd: &Simd| match level(*simd) {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
            say(&format!("skipped: {e}"));
            false
        }
    };
    let all: &[Simd] = match cfg!(target_arch = "x86_64") {
        true => &[Simd::Baseline, Simd::Avx2, Simd::Avx512],
        false => &[Simd::Baseline],
    };
    all.iter().copied().filter(has).collect()
}

/// Returns the level of a plan with this option.
pub fn level(simd: Simd) -> recon::Result<&'static str> {
    let options = Options { simd, threads: 1, ..Options::default() };
    Ok(Plan::new(&Geometry::new(&[2, 2], &[&[0.0f32][..], &[0.0]]), &options)?.info().simd)
}

/// Runs the tests of this program again, in one process for each level of the vector unit except the level in use.
/// Tests with `level` in their names are left out: one of them calls this function, others compare levels themselves.
/// If RECON_SIMD is set, only that level is requested, and nothing runs again.
pub fn again_at_other_levels() {
    if std::env::var_os("RECON_SIMD").is_some() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = program.file_stem().unwrap().to_string_lossy();
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    let here = level(Simd::Auto).unwrap();
    for simd in levels() {
        let level = level(simd).unwrap();
        if level == here {
            continue;
        }
        let mut again = std::process::Command::new(&program);
        let out = again.args(["--skip", "level"]).env("RECON_SIMD", simd.to_string()).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        let result = text.lines().find(|line| line.starts_with("test result:")).unwrap_or("no result");
        say(&format!("{name} at level {level}: {result}"));
        let ran = out.status.success() && !result.contains(" 0 passed");
        assert!(ran, "{name} at level {level}:\n{text}{}", String::from_utf8_lossy(&out.stderr));
    }
}

/// Returns the project's folder. Tests of the program are compiled in a package below it (src/cli), so this is the
/// first parent folder that contains the header.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<&Path> = OnceLock::new();
    ROOT.get_or_init(|| {
        let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        folders.find(|folder| folder.join("include/recon.h").exists()).expect("a folder with include/recon.h")
    })
}

/// Returns a command that runs a program which was built for the tested platform. On a different machine, this is the
/// emulator in RECON_TEST_EMULATOR, a program and its arguments.
pub fn emulated(program: &str) -> std::process::Command {
    let emulator = std::env::var("RECON_TEST_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace().chain([program]);
    let mut command = std::process::Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// Runs a command that must succeed. Returns its standard output, then its error output.
#[track_caller]
pub fn run(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = printed(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

/// Returns the standard output of a command, then its error output.
pub fn printed(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
