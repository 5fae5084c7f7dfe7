//! Helpers for the tests of the program: running it in a temporary folder, reference transforms, and scans.

use crate::io::{Dataset, Image, Placement, Scan, ScanIndex};
use num_complex::Complex;
use recon::scan::{EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use recon::Trajectory;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Calls `f` while no other test does. HDF5 locks the files that it has open, and a program started meanwhile would
/// inherit file and lock.
pub fn with_lock<R>(f: impl FnOnce() -> R) -> R {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

pub fn write_dataset(path: PathBuf, dataset: &Dataset) {
    with_lock(|| crate::io::tests::write_dataset(path, dataset)).unwrap();
}

pub fn read_images(path: impl AsRef<Path>) -> Vec<Image> {
    with_lock(|| crate::io::read_images(path)).unwrap()
}

/// Runs the Python of RECON_TEST_PYTHON, or else `python3`, with these arguments; `None` if it is not there.
pub fn python(arguments: &[&str], dir: &TempDir) -> Option<Output> {
    let program = std::env::var_os("RECON_TEST_PYTHON").unwrap_or("python3".into());
    let mut python = Command::new(program);
    python.args(arguments).current_dir(&dir.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(with_lock(|| python.spawn()).ok()?.wait_with_output().unwrap())
}

/// A temporary folder, which is removed when the value is dropped.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = format!("recon-program-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = crate::common::emulated(env!("CARGO_BIN_EXE_recon"));
        command.args(line.split_whitespace()).current_dir(&self.0).env_remove("RUST_LOG");
        command.env_remove("RECON_SIMD").stdin(Stdio::null());
        command
    }

    /// Runs the program in this folder, with arguments that have no spaces.
    pub fn run(&self, line: &str) -> ProgramOutput {
        let mut command = self.command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        ProgramOutput {
            line: line.into(),
            status: out.status.code(),
            stdout: text(out.stdout),
            stderr: text(out.stderr),
        }
    }

    /// Runs the program, which must succeed without output on the error stream. Returns the standard output.
    pub fn ok(&self, line: &str) -> String {
        let out = self.run(line);
        assert!(out.status == Some(0) && out.stderr.is_empty(), "{out:?}");
        out.stdout
    }

    /// Runs the program, which must fail with this status, one line that contains these words, and no new file.
    pub fn fails(&self, status: i32, line: &str, words: &[&str]) {
        let before = self.names();
        let out = self.run(line);
        assert_eq!(out.status, Some(status), "{}: {out:?}", out.line);
        assert!(out.stderr.starts_with("recon: error: ") && out.stderr.ends_with('\n'), "{out:?}");
        assert_eq!(out.stderr.matches('\n').count(), 1, "{out:?}");
        assert!(!out.stderr.contains("panic"), "{out:?}");
        for word in words {
            assert!(out.stderr.contains(word), "no {word:?} in {out:?}");
        }
        assert_eq!(self.names(), before, "{out:?}");
    }

    /// Returns the percent error that `recon compare` prints.
    pub fn error(&self, arguments: &str) -> f64 {
        let out = self.ok(&format!("compare {arguments} --json"));
        serde_json::from_str::<serde_json::Value>(&out).unwrap()["percent_error"].as_f64().unwrap()
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]

pub struct ProgramOutput {
    pub line: String,
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Computes the inverse discrete Fourier transform of k-space [nx, ny], with both origins in the middle.
pub fn inverse_fft(kspace: &[Complex<f32>], [nx, ny]: [usize; 2]) -> Vec<Complex<f64>> {
    let mut planner = rustfft::FftPlanner::<f64>::new();
    let (fx, fy) = (planner.plan_fft_inverse(nx), planner.plan_fft_inverse(ny));
    let mut a = vec![Complex::default(); nx * ny];
    for (i, z) in kspace.iter().enumerate() {
        // Index n/2 goes to 0.
        let (x, y) = ((i % nx + nx.div_ceil(2)) % nx, (i / nx + ny.div_ceil(2)) % ny);
        a[y * nx + x] = Complex::new(z.re as f64, z.im as f64) / (nx * ny) as f64;
    }
    a.chunks_exact_mut(nx).for_each(|row| fx.process(row));
    for x in 0..nx {
        let mut column: Vec<_> = (0..ny).map(|y| a[y * nx + x]).collect();
        fy.process(&mut column);
        (0..ny).for_each(|y| a[y * nx + x] = column[y]);
    }
    (0..nx * ny).map(|i| a[(i / nx + ny.div_ceil(2)) % ny * nx + (i % nx + nx.div_ceil(2)) % nx]).collect()
}

/// Returns the relative l2 distance.
pub fn distance(image: &[Complex<f32>], exact: &[Complex<f64>]) -> f64 {
    assert_eq!(image.len(), exact.len());
    let wide = |z: &Complex<f32>| Complex::new(z.re as f64, z.im as f64);
    let error: f64 = image.iter().zip(exact).map(|(z, e)| (wide(z) - e).norm_sqr()).sum();
    (error / exact.iter().map(|e| e.norm_sqr()).sum::<f64>()).sqrt()
}

/// Returns pseudo-random numbers.
pub fn noise(count: usize, seed: u64) -> Vec<Complex<f32>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| Complex::new(next(), next())).collect()
}

pub fn space(matrix: [usize; 3], fov_mm: [f32; 3]) -> EncodingSpace {
    EncodingSpace { matrix, fov_mm }
}

/// Returns a dataset of one 2D scan and its encoding.
pub fn scan(
    trajectory: &Trajectory,
    encoded: EncodingSpace,
    recon: EncodingSpace,
    coils: usize,
    data: Vec<Complex<f32>>,
) -> Dataset {
    let samples = trajectory.samples();
    let scan = Scan {
        index: ScanIndex::default(),
        encoded_matrix: encoded.matrix,
        recon_matrix: recon.matrix,
        encoded_fov_mm: encoded.fov_mm,
        recon_fov_mm: recon.fov_mm,
        trajectory: TrajectoryKind::Other,
        ndim: trajectory.ndim(),
        coordinates: (0..trajectory.ndim()).map(|a| trajectory.axis_as(a)).collect(),
        weights: None,
        samples_per_shot: vec![trajectory.samples_per_shot(); trajectory.shots()],
        skipped_per_shot: vec![0; trajectory.shots()],
        coils,
        data,
        times: vec![0.0; samples],
        placement: Placement::default(),
        coil_matrix: None,
        noise_level: None,
    };
    let encoding = HeaderEncoding { encoded, recon, trajectory: TrajectoryKind::Other, ..Default::default() };
    let header = Header { encodings: vec![encoding], ..Header::default() };
    Dataset { header, scans: vec![scan], noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() }
}

pub fn only_image(path: &Path) -> Image {
    let mut images = read_images(path);
    assert_eq!(images.len(), 1);
    images.remove(0)
}
