//! The program `recon`, run as its users run it.

// The readers and writers of the program, with their own tests, which run here.
#[allow(dead_code, unused_imports)]
#[path = "../../src/cli/io/mod.rs"]
mod io;

mod calibration;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod damaged;
mod documents;
mod files;
mod frames;
mod messages;
mod off_resonance;
mod outputs;
mod pictures;
mod reader;

use crate::io::ismrmrd::{Encoding, Header, Limits, Space, TrajectoryKind};
use crate::io::tests::{test_data, write_cfl};
use crate::io::{read_cfl, read_npy, Dataset, Image, Placement, Scan, ScanIndex};
use num_complex::Complex;
use recon::trajectory::SpokeOrder;
use recon::Trajectory;
use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs one call at a time. HDF5 locks the files that it has open, and a program started meanwhile inherits file and
/// lock.
fn alone<R>(f: impl FnOnce() -> R) -> R {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

fn write_dataset(path: PathBuf, dataset: &Dataset) {
    alone(|| crate::io::tests::write_dataset(path, dataset)).unwrap();
}

fn read_images(path: impl AsRef<Path>) -> Vec<Image> {
    alone(|| crate::io::read_images(path)).unwrap()
}

/// A folder that is removed when this value goes out of scope.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> TempDir {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let name = format!("recon-cli-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recon"));
        command.args(line.split_whitespace()).current_dir(&self.0).env_remove("RUST_LOG");
        command.env_remove("RECON_SIMD").stdin(Stdio::null());
        command
    }

    /// Runs the program in this folder, with arguments that have no spaces.
    fn run(&self, line: &str) -> Outcome {
        let mut command = self.command(line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = alone(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Outcome { line: line.into(), status: out.status.code(), stdout: text(out.stdout), stderr: text(out.stderr) }
    }

    /// Runs the program, which must succeed and print nothing to the error stream. Returns the standard output.
    fn ok(&self, line: &str) -> String {
        let out = self.run(line);
        assert!(out.status == Some(0) && out.stderr.is_empty(), "{out:?}");
        out.stdout
    }

    /// Runs the program, which must fail with this status, one line that contains these words, and no new file.
    fn fails(&self, status: i32, line: &str, words: &[&str]) {
        let before = self.names();
        let out = self.run(line);
        assert_eq!(out.status, Some(status), "{out:?}");
        assert!(out.stderr.starts_with("recon: error: ") && out.stderr.ends_with('\n'), "{out:?}");
        assert_eq!(out.stderr.matches('\n').count(), 1, "{out:?}");
        assert!(!out.stderr.contains("panic"), "{out:?}");
        for word in words {
            assert!(out.stderr.contains(word), "no {word:?} in {out:?}");
        }
        assert_eq!(self.names(), before, "{out:?}");
    }

    /// The percent error that `recon compare` finds.
    fn error(&self, arguments: &str) -> f64 {
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
#[allow(dead_code)]
struct Outcome {
    line: String,
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

/// The inverse discrete Fourier transform of k-space [nx, ny], with both origins in the middle.
fn inverse_fft(kspace: &[Complex<f32>], [nx, ny]: [usize; 2]) -> Vec<Complex<f64>> {
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

/// Relative l2 distance.
fn distance(image: &[Complex<f32>], exact: &[Complex<f64>]) -> f64 {
    assert_eq!(image.len(), exact.len());
    let wide = |z: &Complex<f32>| Complex::new(z.re as f64, z.im as f64);
    let error: f64 = image.iter().zip(exact).map(|(z, e)| (wide(z) - e).norm_sqr()).sum();
    (error / exact.iter().map(|e| e.norm_sqr()).sum::<f64>()).sqrt()
}

/// Numbers that look random.
fn noise(count: usize, seed: u64) -> Vec<Complex<f32>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..count).map(|_| Complex::new(next(), next())).collect()
}

fn space(matrix: [usize; 3], fov_mm: [f32; 3]) -> Space {
    Space { matrix, fov_mm }
}

/// A dataset of one 2D scan and its encoding.
fn scan(trajectory: &Trajectory, encoded: Space, recon: Space, coils: usize, data: Vec<Complex<f32>>) -> Dataset {
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
    let encoding = Encoding { encoded, recon, trajectory: TrajectoryKind::Other, ..Default::default() };
    let header = Header { encodings: vec![encoding], ..Header::default() };
    Dataset { header, scans: vec![scan], noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() }
}

fn only_image(path: &Path) -> Image {
    let mut images = read_images(path);
    assert_eq!(images.len(), 1);
    images.remove(0)
}

#[test]
fn noise_whitens_coils_and_compression_makes_fewer() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 48,48 --trajectory golden-angle --shots 40 --coils 8 --snr 4 --seed 3";
    let scan = &format!("{scan} --coupling 0.5 --noise-gain 8");
    dir.ok("simulate --matrix 48,48 --coils 4 --snr 9 --noise-samples 3000 -o four.h5");
    dir.ok(&format!("{scan} --noise-samples 20000 --truth truth.h5 --maps maps.cfl -o noisy.h5"));
    assert!(dir.ok("info noisy.h5").contains("20000 samples of 8 coils"));
    // The file's own noise is used, and that is said.
    let auto = dir.run("cg noisy.h5 --maps maps.cfl --iterations 4 -o white.h5");
    assert_eq!((auto.status, auto.stderr.matches('\n').count()), (Some(0), 1), "{auto:?}");
    assert!(["noise acquisitions whiten", "--whiten none"].iter().all(|w| auto.stderr.contains(w)), "{auto:?}");
    dir.ok("cg noisy.h5 --maps maps.cfl --iterations 4 --whiten none -o plain.h5");
    let [white, plain] = ["white.h5", "plain.h5"].map(|f| dir.error(&format!("{f} truth.h5 --scale best")));
    assert!(white < 0.97 * plain, "{white} against {plain}");
    // Whitened maps map data and image alike: the same image at the same scale, in units that cancel.
    assert!(dir.error("white.h5 truth.h5") < 1.05 * white);

    // Lambda from the noise that is known.
    let found = dir.run("cg noisy.h5 --maps maps.cfl --iterations 30 --noise-level auto --report r.json -o level.h5");
    assert!(found.status == Some(0) && dir.error("level.h5 truth.h5") < white, "{found:?}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("r.json")).unwrap()).unwrap();
    assert!(report[0]["absolute_lambda"].as_f64().unwrap() > 0.0);
    dir.fails(1, "cg four.h5 --whiten none --noise-level auto -o a.h5", &["--noise-level auto", "not whitened"]);
    dir.fails(1, "cg four.h5 --whiten none --noise-level 1e-6 -o a.h5", &["too low"]);
    dir.fails(2, "cg four.h5 --noise-level 1 --lambda 1 -o a.h5", &["--lambda"]);
    for wrong in ["0", "-1", "x"] {
        dir.fails(2, &format!("cg four.h5 --noise-level {wrong} -o a.h5"), &["auto"]);
    }

    // The same noise from another file.
    dir.ok(&format!("{scan} -o data.h5"));
    dir.ok("cg data.h5 --maps maps.cfl --iterations 4 --whiten noisy.h5 -o other.h5");
    assert_eq!(only_image(&dir.path("other.h5")).data, only_image(&dir.path("white.h5")).data);
    dir.fails(1, "grid data.h5 --whiten data.h5 -o a.h5", &["data.h5", "no noise acquisitions"]);
    dir.fails(1, "grid data.h5 --whiten four.h5 -o a.h5", &["four.h5", "4 coils", "data of 8"]);
    dir.ok("simulate --matrix 48,48 --coils 8 --snr 9 --noise-samples 7 -o short.h5");
    dir.fails(1, "grid data.h5 --whiten short.h5 -o a.h5", &["short.h5", "7 samples", "8 coils"]);
    write_cfl(dir.path("noise.cfl"), &[1, 500, 10, 8], &noise(40_000, 5)).unwrap();
    dir.ok("grid data.h5 --whiten noise.cfl -o cfl.h5");
    write_cfl(dir.path("odd.cfl"), &[2, 500, 5, 8], &noise(40_000, 5)).unwrap();
    dir.fails(1, "grid data.h5 --whiten odd.cfl -o a.h5", &["odd.cfl", "[1, samples, shots, coils]"]);

    // Three virtual coils of eight have almost all of the energy of these.
    dir.ok("simulate --matrix 48,48 --coils 8 --maps all.cfl -o eight.h5");
    dir.ok("cg eight.h5 --maps all.cfl -o eight_image.h5");
    dir.ok("cg eight.h5 --maps all.cfl --compress 5 -o five.h5");
    dir.ok("cg eight.h5 --maps all.cfl --compress 99.9% -o most.h5");
    for image in ["five.h5", "most.h5"] {
        assert!(dir.error(&format!("{image} eight_image.h5")) < 1.0);
    }
    dir.ok("grid eight.h5 --compress 5 --combine none -o coils.h5");
    assert_eq!(only_image(&dir.path("coils.h5")).channels, 5);
    let few = dir.run("grid eight.h5 --compress 1 -o one.h5");
    assert!(few.status == Some(0) && few.stderr.contains("1 virtual coils of 8 hold"), "{few:?}");
    dir.fails(1, "grid eight.h5 --compress 9 -o a.h5", &["9 virtual coils of 8"]);
    for wrong in ["0", "0%", "101%", "1.5", "x"] {
        dir.fails(2, &format!("grid eight.h5 --compress {wrong} -o a.h5"), &["percentage"]);
    }
    dir.fails(2, "simulate --matrix 9,9 --coupling 0.5 -o a.h5", &["--snr"]);
    dir.fails(1, "simulate --matrix 9,9 --coils 2 --snr 9 --coupling 1 -o a.h5", &["--coupling is 1"]);
    dir.fails(1, "simulate --matrix 9,9 --snr 9 --coupling 0.5 -o a.h5", &["more --coils"]);
    dir.fails(1, "simulate --matrix 9,9 --coils 2 --snr 9 --noise-gain 0 -o a.h5", &["--noise-gain is 0"]);
    dir.fails(1, "simulate --matrix 9,9 --snr 9 --noise-samples 5 -o a.cfl", &["--noise-samples"]);
}

#[test]
fn radial_scan_with_coils() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 96,96 --coils 4 --snr 200 --seed 7 --truth truth.h5 --maps maps.cfl -o scan.h5");
    dir.ok("grid scan.h5 -o grid.h5");
    // The remaining error is at the sharp edges of the phantom, which no image of finite resolution shows.
    assert!(dir.error("grid.h5 truth.h5 --magnitude") < 13.5);
    dir.ok("cg scan.h5 -o cg.h5 --iterations 15 --report report.json");
    assert!(dir.error("cg.h5 truth.h5 --magnitude") < 12.0);
    dir.ok("cg scan.h5 -o maps.h5 --iterations 15 --maps maps.cfl");
    assert!(dir.error("maps.h5 truth.h5") < 12.0);
    dir.ok("cg scan.h5 -o coils.h5 --iterations 8 --no-maps --weighted");
    assert!(dir.error("coils.h5 truth.h5") < 13.5);
    dir.ok("fhd scan.h5 --maps maps.cfl -o fhd.h5");
    assert!(dir.error("fhd.h5 truth.h5 --scale best") > 30.0, "the plain adjoint is blurred");

    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("report.json")).unwrap()).unwrap();
    assert_eq!(report[0]["images"][0]["iterations"], 15);
    assert_eq!(report[0]["images"][0]["residuals"].as_array().unwrap().len(), 16);
    assert!(report[0]["seconds"]["total"].as_f64().unwrap() > 0.0);

    // Started at a solution, the first residual is small. An anatomical reference is accepted.
    dir.ok("cg scan.h5 -o warm.h5 --iterations 1 --maps maps.cfl --initial maps.h5 --report warm.json");
    let warm: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("warm.json")).unwrap()).unwrap();
    assert!(warm[0]["images"][0]["residuals"][0].as_f64().unwrap() < 0.1);
    dir.ok("cg scan.h5 -o prior.h5 --iterations 15 --prior anatomical --reference truth.h5 --lambda 1e-3");
    assert!(dir.error("prior.h5 truth.h5 --magnitude") < 12.0);

    // Q saved and loaded makes the same image.
    dir.ok("cg scan.h5 -o a.h5 --iterations 5 --save-q q.bin");
    dir.ok("cg scan.h5 -o b.h5 --iterations 5 --load-q q.bin");
    assert_eq!(only_image(&dir.path("a.h5")).data, only_image(&dir.path("b.h5")).data);
    // Q of another trajectory is refused.
    dir.fails(1, "cg scan.h5 -o c.h5 --every 2 --load-q q.bin", &["q.bin"]);
}

/// A stack of stars has the ramp of its planes. Where the ramp does not hold, it is refused and no file is left.
#[test]
fn ramp_weights_know_stacks_and_what_they_are_not_for() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 24,24,12 --trajectory stack-of-stars --truth truth.h5 -o stack.h5");
    let info = dir.ok("info stack.h5");
    for words in ["24 x 24 x 12 voxels", "samples a shot        48", "radial"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    dir.ok("grid stack.h5 --density ramp -o ramp.h5");
    dir.ok("grid stack.h5 --density pipe-menon -o pipe_menon.h5");
    // Both have an error because 24 voxels show few details. The errors are alike, and the images differ by a few
    // percent.
    let (ramp, pipe_menon) = (dir.error("ramp.h5 truth.h5"), dir.error("pipe_menon.h5 truth.h5"));
    assert!((ramp - pipe_menon).abs() < 3.0 && dir.error("ramp.h5 pipe_menon.h5") < 6.0, "{ramp} and {pipe_menon}");
    // Weights in the file are the same.
    dir.ok("simulate --matrix 24,24,12 --trajectory stack-of-stars --weights -o weighted.h5");
    dir.ok("grid weighted.h5 -o weighted_image.h5");
    assert!(dir.error("weighted_image.h5 ramp.h5") < 0.01);
    for trajectory in ["cartesian", "propeller", "rosette", "spiral --exponent 1.5"] {
        dir.ok(&format!("simulate --matrix 32,32 --trajectory {trajectory} -o scan.h5"));
        dir.fails(1, "grid scan.h5 --density ramp -o x.h5", &["ramp", "pipe-menon"]);
        assert!(!dir.path("x.h5").exists(), "{trajectory}");
    }
}

#[test]
fn every_format_reads_back() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 20,20,20 --trajectory kooshball --weights --truth truth.cfl -o scan.mrd");
    dir.ok("grid scan.mrd -o a.h5");
    for name in ["a.mrd", "a.cfl", "a.nii", "a.nii.gz"] {
        dir.ok(&format!("grid scan.mrd -o {name}"));
        assert!(dir.error(&format!("{name} a.h5 --magnitude")) < 1e-3, "{name}");
        assert!(dir.ok(&format!("info {name}")).contains("20"));
    }
    dir.ok("grid scan.mrd -o a.png");
    assert!(fs::read(dir.path("a.png")).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(dir.error("a.h5 truth.cfl --magnitude") < 20.0);
    dir.ok("cg scan.mrd -o cg.h5 --iterations 10 --precision f64");
    assert!(dir.error("cg.h5 truth.cfl --magnitude") < 18.0);
    // Exact sums in double precision and the NUFFT in single precision agree to the tolerance.
    dir.ok("fhd scan.mrd -o exact.h5 --method exact --precision f64");
    dir.ok("fhd scan.mrd -o nufft.h5 --tolerance 1e-5");
    assert!(dir.error("nufft.h5 exact.h5") < 1e-3);

    let info = dir.ok("info scan.mrd");
    for words in ["20 x 20 x 20 voxels", "density weights       yes", "samples a shot        40", "radial"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    dir.ok("grid scan.mrd --kspace -o k.cfl");
    let grid = read_cfl(dir.path("k.cfl")).unwrap();
    assert!(grid.dims.len() == 3 && grid.dims.iter().all(|&n| n >= 25), "{:?}", grid.dims);
}

#[test]
fn slices_and_repetitions() {
    let dir = TempDir::new();
    let trajectory = Trajectory::cartesian(&[12, 10]).unwrap();
    let matrix = space([12, 10, 1], [12.0, 10.0, 5.0]);
    let mut dataset = scan(&trajectory, matrix, matrix, 2, noise(240, 1));
    let first = dataset.scans.pop().unwrap();
    for (slice, repetition) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
        let mut scan = first.clone();
        scan.index = ScanIndex { slice, repetition, ..ScanIndex::default() };
        scan.data.iter_mut().for_each(|z| *z *= (1 + slice + 10 * repetition) as f32);
        dataset.scans.push(scan);
    }
    write_dataset(dir.path("scan.h5"), &dataset);

    dir.ok("grid scan.h5 -o all.h5 --combine none");
    let images = read_images(dir.path("all.h5"));
    assert_eq!(images.len(), 6);
    let exact = inverse_fft(&first.data[120..], [12, 10]);
    for image in &images {
        assert_eq!((image.dims, image.channels), ([12, 10, 1], 2));
        let factor = (1 + image.index.slice + 10 * image.index.repetition) as f64;
        let scaled: Vec<_> = exact.iter().map(|z| z * factor).collect();
        assert!(distance(image.channel(1), &scaled) < 1e-4, "{:?}", image.index);
    }
    // One plan serves all.
    let log = dir.run("-v grid scan.h5 -o again.h5").stderr;
    assert_eq!((log.matches("plan: ").count(), log.matches("samples of 2 coils").count()), (1, 6), "{log}");

    dir.ok("grid scan.h5 --slice 1 -o slice.h5");
    let images = read_images(dir.path("slice.h5"));
    assert_eq!(images.iter().map(|i| (i.index.slice, i.index.repetition)).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    dir.ok("grid scan.h5 --slice 2 --repetition 1 -o one.h5");
    assert_eq!(only_image(&dir.path("one.h5")).index.slice, 2);
    dir.fails(1, "grid scan.h5 --slice 3 -o none.h5", &["no such slice", "slices 0, 1, 2"]);

    // The other formats take images of one size.
    for (name, along) in [("all.nii", 3), ("all.cfl", 10)] {
        dir.ok(&format!("grid scan.h5 -o {name}"));
        assert_eq!(only_image(&dir.path(name)).channels, 6, "{along}");
    }
    dir.ok("grid scan.h5 -o all.png");
    dir.ok("cg scan.h5 -o cg.h5 --iterations 3 --report cg.json");
    assert_eq!(read_images(dir.path("cg.h5")).len(), 6);

    let wide = space([16, 10, 1], [16.0, 10.0, 5.0]);
    let other = scan(&Trajectory::cartesian(&[16, 10]).unwrap(), wide, wide, 2, noise(320, 2));
    dataset.header.encodings.extend(other.header.encodings);
    dataset.scans.extend(other.scans.into_iter().map(|mut s| {
        s.index.encoding = 1;
        s
    }));
    write_dataset(dir.path("two.h5"), &dataset);
    dir.ok("grid two.h5 -o two_images.h5");
    dir.fails(1, "grid two.h5 -o two.nii", &["cannot share this file", ".h5"]);
}

#[test]
fn oversampling_is_cut_away() {
    let dir = TempDir::new();
    let trajectory = Trajectory::radial2d(60, 64, SpokeOrder::Linear).unwrap();
    let (encoded, recon) = (space([48, 32, 1], [96.0, 64.0, 5.0]), space([24, 30, 1], [48.0, 60.0, 5.0]));
    write_dataset(dir.path("scan.h5"), &scan(&trajectory, encoded, recon, 1, noise(60 * 64, 3)));
    dir.ok("grid scan.h5 --matrix encoded -o whole.h5");
    dir.ok("grid scan.h5 -o part.h5");
    let (whole, part) = (only_image(&dir.path("whole.h5")), only_image(&dir.path("part.h5")));
    assert_eq!((whole.dims, whole.fov_mm), ([48, 32, 1], [96.0, 64.0, 5.0]));
    assert_eq!((part.dims, part.fov_mm), ([24, 30, 1], [48.0, 60.0, 5.0]));
    for y in 0..30 {
        for x in 0..24 {
            assert_eq!(part.data[y * 24 + x], whole.data[(y + 1) * 48 + x + 12], "{x} {y}");
        }
    }
    // A truth of a smaller matrix is placed in the middle of the image.
    let out = dir.run("compare whole.h5 part.h5");
    assert!(out.status == Some(0) && out.stderr.contains("truth of [24, 30, 1] voxels is placed"), "{out:?}");
    // --matrix gives the same voxels as the encoded matrix, over the same field of view.
    dir.ok("grid scan.h5 --matrix 24,30 -o same.h5");
    assert_eq!(only_image(&dir.path("same.h5")).data, part.data);
    dir.fails(1, "grid scan.h5 --matrix 24,30,2 -o x.h5", &["2D"]);
}

#[test]
fn other_voxel_sizes_are_interpolated_by_fourier() {
    let dir = TempDir::new();
    // Two waves, sampled on a Cartesian grid of 16 x 12 voxels. The image is of 24 x 9 voxels over the same field of
    // view.
    let trajectory = Trajectory::cartesian(&[16, 12]).unwrap();
    let waves = [((3i32, -2i32), Complex::new(1.0, 0.5)), ((-5, 4), Complex::new(-0.25, 2.0))];
    let mut data = vec![Complex::new(0f32, 0.0); 16 * 12];
    for ((u, v), amplitude) in waves {
        data[((v + 6) * 16 + u + 8) as usize] = amplitude * (16.0 * 12.0);
    }
    let (encoded, recon) = (space([16, 12, 1], [32.0, 36.0, 5.0]), space([24, 9, 1], [32.0, 36.0, 5.0]));
    write_dataset(dir.path("scan.h5"), &scan(&trajectory, encoded, recon, 1, data));
    dir.ok("grid scan.h5 -o image.h5");
    let image = only_image(&dir.path("image.h5"));
    assert_eq!((image.dims, image.fov_mm), ([24, 9, 1], [32.0, 36.0, 5.0]));
    let exact: Vec<Complex<f64>> = (0..24 * 9)
        .map(|i| {
            let (x, y) = ((i % 24) as f64 - 12.0, (i / 24) as f64 - 4.0);
            waves
                .iter()
                .map(|((u, v), a)| {
                    let turns = *u as f64 * x / 24.0 + *v as f64 * y / 9.0;
                    Complex::new(a.re as f64, a.im as f64) * Complex::cis(std::f64::consts::TAU * turns)
                })
                .sum()
        })
        .collect();
    assert!(distance(&image.data, &exact) < 1e-4);
    // The initial image may have the matrix of the result or the encoded matrix.
    dir.ok("cg scan.h5 -o cg.h5 --iterations 5 --initial image.h5 --report r.json");
    assert!(distance(&only_image(&dir.path("cg.h5")).data, &exact) < 1e-3);
}

/// Writes raw data in the layout of ISMRMRD. It can write what the writer of the program cannot: other counters, and
/// acquisitions without a trajectory.
mod bare {
    use hdf5::types::{VarLenArray, VarLenAscii};

    #[derive(hdf5::H5Type, Clone, Copy, Default)]
    #[repr(C)]
    struct Counters {
        kspace_encode_step_1: u16,
        kspace_encode_step_2: u16,
        average: u16,
        slice: u16,
        contrast: u16,
        phase: u16,
        repetition: u16,
        set: u16,
        segment: u16,
        user: [u16; 8],
    }

    #[derive(hdf5::H5Type, Clone, Copy, Default)]
    #[repr(C)]
    struct Head {
        version: u16,
        flags: u64,
        measurement_uid: u32,
        scan_counter: u32,
        acquisition_time_stamp: u32,
        physiology_time_stamp: [u32; 3],
        number_of_samples: u16,
        available_channels: u16,
        active_channels: u16,
        channel_mask: [u64; 16],
        discard_pre: u16,
        discard_post: u16,
        center_sample: u16,
        encoding_space_ref: u16,
        trajectory_dimensions: u16,
        sample_time_us: f32,
        position: [f32; 3],
        read_dir: [f32; 3],
        phase_dir: [f32; 3],
        slice_dir: [f32; 3],
        patient_table_position: [f32; 3],
        idx: Counters,
        user_int: [i32; 8],
        user_float: [f32; 8],
    }

    #[derive(hdf5::H5Type)]
    #[repr(C)]
    struct Acquisition {
        head: Head,
        traj: VarLenArray<f32>,
        data: VarLenArray<f32>,
    }

    /// An acquisition.
    #[derive(Clone, Default)]
    pub struct Line {
        /// Flags of ISMRMRD, bit by bit.
        pub flags: u64,
        /// The encoding.
        pub encoding: u16,
        /// The number of coils; 0 means 1.
        pub coils: u16,
        /// The slice.
        pub slice: u16,
        /// Encoding steps 1 and 2.
        pub steps: [u16; 2],
        /// How many numbers of the trajectory a sample has, and the numbers of all samples.
        pub dimensions: u16,
        pub trajectory: Vec<f32>,
        /// Real and imaginary parts.
        pub data: Vec<f32>,
        /// Samples at the beginning that are not used.
        pub discard_pre: u16,
        /// Microseconds from one sample to the next; 0 means unknown.
        pub sample_time: f32,
    }

    pub fn write(path: &std::path::Path, xml: &str, lines: &[Line]) {
        let file = hdf5::File::create(path).unwrap();
        let group = file.create_group("dataset").unwrap();
        let text = VarLenAscii::from_ascii(xml).unwrap();
        group.new_dataset::<VarLenAscii>().shape(1).create("xml").unwrap().write_raw(&[text]).unwrap();
        let acquisitions: Vec<_> = lines
            .iter()
            .map(|line| Acquisition {
                head: Head {
                    version: 1,
                    flags: line.flags,
                    encoding_space_ref: line.encoding,
                    number_of_samples: (line.data.len() / 2) as u16 / line.coils.max(1),
                    available_channels: line.coils.max(1),
                    active_channels: line.coils.max(1),
                    center_sample: (line.data.len() / 4) as u16 / line.coils.max(1),
                    trajectory_dimensions: line.dimensions,
                    discard_pre: line.discard_pre,
                    sample_time_us: line.sample_time,
                    idx: Counters {
                        kspace_encode_step_1: line.steps[0],
                        kspace_encode_step_2: line.steps[1],
                        slice: line.slice,
                        ..Counters::default()
                    },
                    ..Head::default()
                },
                traj: VarLenArray::from_slice(&line.trajectory),
                data: VarLenArray::from_slice(&line.data),
            })
            .collect();
        let set = group.new_dataset::<Acquisition>().packed(true).shape(acquisitions.len()).create("data").unwrap();
        set.write_raw(&acquisitions).unwrap();
    }
}

#[test]
fn cartesian_data_without_trajectory() {
    let dir = TempDir::new();
    let (nx, ny) = (30, 17);
    let data = noise(nx * ny, 4);
    let matrix = space([nx, ny, 1], [60.0, 34.0, 5.0]);
    let limits = Limits { minimum: 0, maximum: ny as u16 - 1, center: ny as u16 / 2 };
    let encoding = Encoding {
        encoded: matrix,
        recon: matrix,
        trajectory: TrajectoryKind::Cartesian,
        steps: [Some(limits), None],
        parallel: None,
    };
    let xml = Header { encodings: vec![encoding], ..Header::default() }.to_xml();
    let line = |y: usize| bare::Line {
        steps: [y as u16, 0],
        data: data[y * nx..][..nx].iter().flat_map(|z| [z.re, z.im]).collect(),
        ..Default::default()
    };
    // First the even lines, then the odd ones, then line 3 once more.
    let order = (0..ny).step_by(2).chain((1..ny).step_by(2)).chain([3]);
    let lines: Vec<_> = order.map(line).collect();
    alone(|| bare::write(&dir.path("scan.h5"), &xml, &lines));
    let exact = inverse_fft(&data, [nx, ny]);
    dir.ok("grid scan.h5 -o image.h5");
    assert!(distance(&only_image(&dir.path("image.h5")).data, &exact) < 1e-4);
    dir.ok("cg scan.h5 -o cg.h5 --iterations 20 --tolerance 1e-6");
    assert!(distance(&only_image(&dir.path("cg.h5")).data, &exact) < 1e-3);
    assert!(dir.ok("info scan.h5").contains("cartesian"));
}

#[test]
fn pairs_of_bart() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 48,40 --coils 3 --truth truth.nii -o k.cfl");
    assert_eq!(read_cfl(dir.path("k.cfl")).unwrap().dims, [1, 96, 76, 3]);
    assert_eq!(read_cfl(dir.path("k_traj.cfl")).unwrap().dims, [3, 96, 76]);
    dir.ok("simulate --matrix 48,40 --coils 3 -o k.h5");
    dir.ok("grid k.cfl --trajectory k_traj.cfl --matrix 48,40 -o bart.cfl");
    dir.ok("grid k.h5 -o ismrmrd.cfl");
    assert!(dir.error("bart.cfl ismrmrd.cfl") < 1e-3);
    assert!(dir.error("bart.cfl truth.nii") < 25.0);
    dir.ok("cg k.cfl --trajectory k_traj.cfl --matrix 48,40 --iterations 10 -o cg.nii.gz");
    assert!(dir.error("cg.nii.gz truth.nii") < 25.0);

    dir.fails(1, "grid k.cfl -o x.h5", &["--trajectory"]);
    dir.fails(1, "grid k.cfl --trajectory k_traj.cfl -o x.h5", &["--matrix"]);
    dir.fails(1, "grid k.cfl --trajectory k_traj.cfl --matrix 20,20 -o x.h5", &["outside the range"]);
    dir.fails(1, "grid k.h5 --trajectory k_traj.cfl -o x.h5", &["--trajectory"]);
    dir.fails(1, "grid k_traj.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["[1, samples, shots, coils]"]);
    // A trajectory with one shot less.
    let whole = read_cfl(dir.path("k_traj.cfl")).unwrap();
    write_cfl(dir.path("short.cfl"), &[3, 96, 75], &whole.data[..3 * 96 * 75]).unwrap();
    let short = ["k.cfl and short.cfl", "[1, 96, 76, 3]", "[3, 96, 75]"];
    dir.fails(1, "grid k.cfl --trajectory short.cfl --matrix 48,40 -o x.h5", &short);
    // A NaN is named by its coil and sample.
    let mut bad = read_cfl(dir.path("k.cfl")).unwrap();
    bad.data[7296 + 41].im = f32::NAN;
    write_cfl(dir.path("nan.cfl"), &bad.dims, &bad.data).unwrap();
    dir.fails(1, "cg nan.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["coil 1, sample 41", "NaN"]);
    // A file shorter than its header says, and a file without a header.
    fs::copy(dir.path("k.hdr"), dir.path("cut.hdr")).unwrap();
    fs::write(dir.path("cut.cfl"), &fs::read(dir.path("k.cfl")).unwrap()[..5000]).unwrap();
    dir.fails(1, "grid cut.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["cut"]);
    fs::write(dir.path("lone.cfl"), [0; 64]).unwrap();
    dir.fails(1, "grid lone.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["lone"]);
}

#[test]
fn damaged_files() {
    let dir = TempDir::new();
    dir.fails(1, "grid nowhere.h5 -o x.h5", &["nowhere.h5", "No such file"]);
    fs::write(dir.path("empty.h5"), []).unwrap();
    dir.fails(1, "grid empty.h5 -o x.h5", &["empty.h5", "is empty"]);
    let random: Vec<u8> = noise(5000, 5).iter().flat_map(|z| z.re.to_le_bytes()).collect();
    fs::write(dir.path("random.h5"), &random).unwrap();
    dir.fails(1, "cg random.h5 -o x.h5", &["not an HDF5 file"]);
    dir.fails(1, "info random.h5", &["not an HDF5 file"]);
    dir.fails(1, "grid . -o x.h5", &["folder"]);

    let trajectory = Trajectory::radial2d(12, 16, SpokeOrder::Linear).unwrap();
    let matrix = space([16, 16, 1], [16.0, 16.0, 5.0]);
    let mut data = noise(2 * 192, 6);
    // A number that can be found in the file: coil 1, shot 2, sample 5.
    data[192 + 2 * 16 + 5].re = 12345.678;
    write_dataset(dir.path("good.h5"), &scan(&trajectory, matrix, matrix, 2, data));
    let good = fs::read(dir.path("good.h5")).unwrap();
    for length in [good.len() - 1, good.len() * 9 / 10, good.len() / 2, good.len() / 10, 9] {
        fs::write(dir.path("cut.h5"), &good[..length]).unwrap();
        dir.fails(1, "grid cut.h5 -o x.h5", &["cut.h5"]);
    }
    let mark = 12345.678f32.to_le_bytes();
    let at = good.windows(4).position(|w| w == mark).unwrap();
    let mut bad = good.clone();
    bad[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(dir.path("nan.h5"), &bad).unwrap();
    for command in ["grid", "fbp", "propeller", "fhd", "cg"] {
        dir.fails(1, &format!("{command} nan.h5 -o x.h5"), &["acquisition 2", "coil 1", "sample 5", "NaN"]);
    }
    dir.fails(1, "grid good.h5 --group other -o x.h5", &["other", "dataset"]);
    // A file of images is not raw data.
    dir.ok("grid good.h5 -o image.h5");
    dir.fails(1, "grid image.h5 -o x.h5", &["image.h5"]);
    dir.fails(1, "compare good.h5 image.h5", &["no images"]);
}

/// A disk in two coils with this off-resonance, at echo time `t`: [n, n, 2].
fn echo(n: usize, t: f64, field: &dyn Fn(f64, f64) -> f64) -> Vec<Complex<f32>> {
    let mut image = Vec::new();
    for coil in [1.0, -1.0] {
        for i in 0..n * n {
            let [x, y] = [i % n, i / n].map(|j| (j as f64 - (n / 2) as f64) / n as f64);
            let inside = if x * x + y * y < 0.16 { 1.0 + 0.5 * coil * x } else { 0.0 };
            let z = Complex::from_polar(inside * (-20.0 * t).exp(), coil * 5.0 * y - TAU * field(x, y) * t);
            image.push(Complex::new(z.re as f32, z.im as f32));
        }
    }
    image
}

#[test]
fn field_maps_of_images_and_raw_data() {
    let dir = TempDir::new();
    let n = 48;
    let times = [0.0046, 0.0069];
    let field = |x: f64, y: f64| 90.0 * x - 60.0 * (4.0 * y).sin();
    let echoes = times.map(|t| echo(n, t, &field));
    // The RMS difference from the truth in the disk, and the number of voxels.
    let error = |name: &str, field: &dyn Fn(f64, f64) -> f64| -> f64 {
        let image = &read_images(dir.path(name))[0];
        assert_eq!((image.dims, image.channels), ([n, n, 1], 1));
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, z) in image.data.iter().enumerate() {
            assert!(z.re.is_finite() && z.im == 0.0);
            let [x, y] = [i % n, i / n].map(|j| (j as f64 - (n / 2) as f64) / n as f64);
            if x * x + y * y < 0.15 {
                sum += (z.re as f64 - field(x, y)).powi(2);
                count += 1.0;
            }
        }
        f64::sqrt(sum / count)
    };
    for (name, data) in ["first", "second"].iter().zip(&echoes) {
        write_cfl(dir.path(&format!("{name}.cfl")), &[n, n, 1, 2], data).unwrap();
    }
    let both = "fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069";
    for ending in ["h5", "cfl", "nii", "nii.gz"] {
        dir.ok(&format!("{both} -o field.{ending}"));
        assert!(error(&format!("field.{ending}"), &field) < 1.0, "{ending}");
    }
    dir.ok(&format!("{both} --precision f64 --smoothing 0 --threads 2 --decay decay.cfl -o exact.cfl"));
    assert!(error("exact.cfl", &field) < 1e-3 && error("decay.cfl", &|_, _| 20.0) < 1e-3);
    // Both echoes in one file of BART's.
    write_cfl(dir.path("both.cfl"), &[n, n, 1, 2, 1, 2], &echoes.concat()).unwrap();
    dir.ok("fieldmap both.cfl --echo-times 0.0046,0.0069 -o one.h5");
    dir.ok(&format!("{both} -o again.h5"));
    assert!(read_images(dir.path("one.h5")) == read_images(dir.path("again.h5")));

    // Images of ISMRMRD, and raw data of two contrasts and slices, whose header has the echo times.
    let index = |slice: u16, contrast: u16| ScanIndex { slice, contrast, ..Default::default() };
    let trajectory = Trajectory::cartesian(&[n, n]).unwrap();
    let k: Vec<Vec<f64>> = (0..2).map(|axis| trajectory.axis(axis).to_vec()).collect();
    let geometry = recon::Geometry::new(&[n, n], &[&k[0], &k[1]]).coils(2);
    let plan = recon::Plan::new(&geometry, &recon::Options::default()).unwrap();
    let (mut images, mut scans) = (Vec::new(), Vec::new());
    for slice in 0..2 {
        for (contrast, data) in echoes.iter().enumerate() {
            let mut image = Image::new([n, n, 1], 2, data.clone()).unwrap();
            image.index = index(slice, contrast as u16);
            images.push(image);
            let wide: Vec<Complex<f64>> = data.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect();
            let mut kspace = vec![Complex::default(); n * n * 2];
            plan.forward(&wide, &mut kspace).unwrap();
            scans.push(Scan {
                index: index(slice, contrast as u16),
                encoded_matrix: [n, n, 1],
                recon_matrix: [n, n, 1],
                encoded_fov_mm: [240.0, 240.0, 5.0],
                recon_fov_mm: [240.0, 240.0, 5.0],
                ndim: 2,
                coordinates: k.iter().map(|k| k.iter().map(|&k| k as f32).collect()).collect(),
                weights: None,
                trajectory: TrajectoryKind::Other,
                samples_per_shot: vec![n; n],
                skipped_per_shot: vec![0; n],
                coils: 2,
                data: kspace.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect(),
                times: (0..n * n).map(|m| (m % n) as f32 * 1e-5).collect(),
                placement: Placement::default(),
                coil_matrix: None,
                noise_level: None,
            });
        }
    }
    alone(|| recon::atomic_file::whole(|f| crate::io::write_images(f, &dir.path("images.h5"), &images))).unwrap();
    dir.ok("fieldmap images.h5 --echo-times 0.0046,0.0069 --slice 1 -o of_images.h5");
    assert!(error("of_images.h5", &field) < 1.0);
    let space = Space { matrix: [n, n, 1], fov_mm: [240.0, 240.0, 5.0] };
    let encoding = Encoding { encoded: space, recon: space, trajectory: TrajectoryKind::Other, ..Default::default() };
    let mut header = Header { encodings: vec![encoding], echo_times_ms: vec![4.6, 6.9], ..Default::default() };
    let raw = |header: &Header| Dataset {
        header: header.clone(),
        scans: scans.clone(),
        noise: Vec::new(),
        calibration: Vec::new(),
        uses: Vec::new(),
    };
    write_dataset(dir.path("raw.h5"), &raw(&header));
    assert!(dir.ok("info raw.h5").contains("4.6, 6.9 ms"));
    dir.ok("fieldmap raw.h5 -o of_raw.h5 --report report.json --decay decay.h5");
    assert!(error("of_raw.h5", &field) < 1.0 && error("decay.h5", &|_, _| 20.0) < 1.0);
    let maps = read_images(dir.path("of_raw.h5"));
    assert_eq!(
        maps.iter().map(|m| (m.index, m.fov_mm[0])).collect::<Vec<_>>(),
        [(index(0, 0), 240.0), (index(1, 0), 240.0)]
    );
    let report = fs::read_to_string(dir.path("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report[1]["slice"].as_u64(), report[1]["jumps"].as_u64()), (Some(1), Some(0)));
    assert!((report[0]["limit_hz"].as_f64().unwrap() - 217.39).abs() < 0.01);
    assert!((report[0]["signal"].as_f64().unwrap() - 0.5).abs() < 0.02);
    assert!((report[0]["echo_times_s"][1].as_f64().unwrap() - 0.0069).abs() < 1e-12);
    dir.ok("fieldmap raw.h5 --slice 0 --echo-times 0.0046,0.0069 -o other.h5");
    // Milliseconds over 1000 are rounded.
    let other = read_images(dir.path("other.h5"));
    assert!(other.len() == 1 && other[0].data.iter().zip(&maps[0].data).all(|(a, b)| (a - b).norm() < 1e-3));
    header.echo_times_ms.pop();
    write_dataset(dir.path("without.h5"), &raw(&header));
    dir.fails(1, "fieldmap without.h5 -o x.h5", &["1 echo times", "contrast 1", "--echo-times"]);

    // Wraps are named in any case.
    let steep = |x: f64, _: f64| 800.0 * x;
    for (name, t) in ["first", "second"].iter().zip(times) {
        write_cfl(dir.path(&format!("{name}.cfl")), &[n, n, 1, 2], &echo(n, t, &steep)).unwrap();
    }
    let out = dir.run(&format!("{both} -o wrapped.h5"));
    assert!(out.status == Some(0) && out.stderr.contains("217.4 Hz") && out.stderr.contains("unwrapped"), "{out:?}");
    assert!(error("wrapped.h5", &steep) < 3.0);
    let out = dir.run(&format!("{both} --no-unwrap -o wrapped.h5"));
    assert!(out.status == Some(0) && out.stderr.contains("not unwrapped"), "{out:?}");
    assert!(error("wrapped.h5", &steep) > 50.0);

    for (line, words) in [
        ("fieldmap first.cfl second.cfl -o x.h5", &["--echo-times", "seconds"][..]),
        ("fieldmap first.cfl second.cfl --echo-times 4.6,6.9 -o x.h5", &["milliseconds"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0069,0.0046 -o x.h5", &["increase"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0046 -o x.h5", &["1 times", "2 echoes"]),
        ("fieldmap first.cfl --echo-times 0.0046,0.0069 -o x.h5", &["first.cfl", "echoes]"]),
        ("fieldmap field.nii --echo-times 0.0046,0.0069 -o x.h5", &["field.nii", "one echo"]),
        ("fieldmap field.nii field.nii --echo-times 0.0046,0.0069 -o x.h5", &["magnitudes"]),
        ("fieldmap first.cfl field.nii --echo-times 0.0046,0.0069 -o x.h5", &["coils", "same"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069 -o x.png", &["x.png", "sign"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069 -o first.cfl", &["first.cfl"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069 --smoothing -1 -o x.h5", &["smoothing"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069 --threshold 1 -o x.h5", &["threshold"]),
        ("fieldmap images.h5 -o x.h5", &["--echo-times"]),
        ("fieldmap images.h5 --echo-times 0.0046,0.0069 --slice 7 -o x.h5", &["slice"]),
        ("fieldmap raw.h5 --slice 7 -o x.h5", &["slice"]),
    ] {
        dir.fails(1, line, words);
    }
    dir.fails(2, "fieldmap -o x.h5", &["FILE"]);
    dir.fails(2, "fieldmap first.cfl second.cfl --echo-times 1ms,2ms -o x.h5", &["1ms"]);
}

#[test]
fn bad_arguments() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    dir.ok("simulate --matrix 16,16 --trajectory spiral -o spiral.h5");
    for (line, words) in [
        ("grid scan.h5 -o x.jpg", ["x.jpg", "ending"]),
        ("grid scan.h5 -o x", ["x:", "ending"]),
        ("grid scan.h5 -o nowhere/x.h5", ["nowhere", "does not exist"]),
        ("grid scan.h5 -o scan.h5", ["scan.h5", "another name"]),
        ("grid scan.h5 -o x.png --kspace", ["x.png", "k-space"]),
        ("grid scan.h5 -o x.h5 --matrix 0,0", ["size along x is 0", "--matrix"]),
        ("grid scan.h5 -o x.h5 --matrix 16,0", ["size along y is 0", "--matrix"]),
        ("grid scan.h5 -o x.h5 --matrix 99999999,99999999", ["voxels", "header"]),
        ("grid scan.h5 -o x.h5 --every 0", ["--every", "0"]),
        ("grid scan.h5 -o x.h5 --tolerance 0", ["--tolerance", "0"]),
        ("grid scan.h5 -o x.h5 --tolerance nan", ["--tolerance", "NaN"]),
        ("grid scan.h5 -o x.h5 --tolerance 1e-30", ["1e-30", "tolerance"]),
        ("grid scan.h5 -o x.h5 --window bilinear --tolerance 1e-4", ["bilinear", "tolerance"]),
        ("grid scan.h5 -o x.h5 --width 1", ["width is 1", "2 to 16"]),
        ("grid scan.h5 -o x.h5 --width 17", ["width is 17", "2 to 16"]),
        ("grid scan.h5 -o x.h5 --oversampling 1.2", ["oversampling is 1.2", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling -2", ["oversampling is -2", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling nan", ["oversampling is NaN", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling inf", ["oversampling is inf", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --window bilinear --width 4", ["width is 4", "bilinear"]),
        ("grid scan.h5 -o x.h5 --width 4 --oversampling 1.5 --tolerance 1e-5", ["1e-5", "a width of"]),
        ("fhd scan.h5 -o x.h5 --method exact --width 4", ["width", "method exact"]),
        ("fhd scan.h5 -o x.h5 --method exact --oversampling 2", ["oversampling", "method exact"]),
        ("grid scan.h5 -o x.h5 --memory-limit 1K", ["memory limit", "1024"]),
        ("grid scan.h5 -o x.h5 --kspace --method exact", ["no grid", "exact"]),
        ("fbp spiral.h5 -o x.h5", ["radial", "gridding"]),
        ("cg scan.h5 -o x.h5 --lambda -1", ["--lambda", "-1"]),
        ("cg scan.h5 -o x.h5 --residual 2", ["--residual", "2"]),
        ("cg scan.h5 -o x.h5 --prior anatomical", ["--reference", "anatomical"]),
        ("cg scan.h5 -o x.h5 --maps nowhere.cfl", ["nowhere.hdr", ".cfl"]),
        ("cg scan.h5 -o x.h5 --load-q scan.h5", ["scan.h5", ""]),
        ("cg scan.h5 -o x.h5 --report nowhere/r.json", ["nowhere", "does not exist"]),
        ("simulate --matrix 0,16 -o x.h5", ["size along x", "0"]),
        ("simulate --matrix 16,16 --trajectory kooshball -o x.h5", ["kooshball", "3D"]),
        ("simulate --matrix 16,16 --turns 3 -o x.h5", ["--turns", "radial"]),
        ("simulate --matrix 16,16 --partitions 3 -o x.h5", ["--partitions", "radial"]),
        ("simulate --matrix 16,16 --trajectory stack-of-stars -o x.h5", ["stack-of-stars", "3D"]),
        ("simulate --matrix 16,16,4 --trajectory stack-of-stars --partitions 0 -o x.h5", ["partitions", "0"]),
        ("simulate --matrix 16,16 --trajectory spiral --exponent 2 --weights -o x.h5", ["ramp", "pipe-menon"]),
        ("simulate --matrix 16,16 --coils 0 -o x.h5", ["coils", "0"]),
        ("simulate --matrix 16,16 --snr 0 -o x.h5", ["noise", "0"]),
        ("simulate --matrix 16,16 --shots 0 -o x.h5", ["spokes", "0"]),
        ("simulate --matrix 16,16 -o x.png", ["x.png", "ending"]),
        ("bench radial2d --runs 0", ["--runs", "0"]),
        ("bench radial2d --tolerance 3", ["--tolerance", "3"]),
        ("compare scan.h5 scan.h5", ["no images", ""]),
        ("compare scan.h5 scan.h5 --mask 3", ["--mask", "3"]),
    ] {
        dir.fails(1, line, &words);
    }
    for (line, words) in [
        ("grid", "required"),
        ("grid scan.h5", "--output"),
        ("frobnicate", "frobnicate"),
        ("grid scan.h5 -o x.h5 --matrix 16", "--matrix"),
        ("grid scan.h5 -o x.h5 --memory-limit 12Q", "--memory-limit"),
        ("grid scan.h5 -o x.h5 --memory-limit 99999999999T", "--memory-limit"),
        ("grid scan.h5 -o x.h5 --device tpu", "--device"),
        ("grid scan.h5 -o x.h5 --slice 70000", "--slice"),
        ("fbp scan.h5 -o x.h5 --filter hanning", "shepp-logan"),
        ("cg scan.h5 -o x.h5 --iterations -3", "-3"),
        ("cg scan.h5 -o x.h5 --weighted --unweighted", "--weighted"),
    ] {
        dir.fails(2, line, &[words]);
    }
    #[cfg(target_os = "linux")]
    dir.fails(1, "grid scan.h5 -o /proc/x.h5", &["/proc"]);
    dir.ok("grid scan.h5 -o x.h5 --memory-limit 512M --device cpu --threads 1");
}

#[test]
fn help_and_version() {
    let dir = TempDir::new();
    assert_eq!(dir.ok("--version").trim(), format!("recon {}", env!("CARGO_PKG_VERSION")));
    let help = dir.ok("--help");
    for command in ["info", "simulate", "grid", "fbp", "propeller", "fhd", "cg", "fieldmap", "compare", "bench"] {
        assert!(help.contains(command));
        let long = dir.ok(&format!("{command} --help"));
        assert!(long.contains("Example") && long.contains(&format!("recon {command}")), "{long}");
        assert!(dir.ok(&format!("{command} -h")).contains("Usage"));
    }
    let out = dir.run("");
    assert!(out.status == Some(2) && out.stderr.contains("Usage"), "{out:?}");
    let info = dir.ok("info");
    assert!(info.contains("vector unit") && info.contains("threads"), "{info}");
}

#[test]
fn benchmarks_say_all_keys() {
    let dir = TempDir::new();
    let keys = [
        "case",
        "backend",
        "device",
        "threads",
        "method",
        "tolerance",
        "error",
        "plan_ms",
        "median_ms",
        "runs",
        "host_bytes",
        "device_bytes",
    ];
    for operation in ["adjoint", "forward"] {
        let out = dir.ok(&format!(
            "bench radial2d --json --runs 2 --tolerance 1e-2 --tolerance 1e-4 --operation {operation} --threads 2"
        ));
        let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        for (line, tolerance) in lines.iter().zip([1e-2, 1e-4]) {
            for key in keys {
                assert!(!line[key].is_null(), "{key}: {line}");
            }
            assert_eq!((line["tolerance"].as_f64(), line["runs"].as_u64()), (Some(tolerance), Some(2)));
            let error = line["error"].as_f64().unwrap();
            assert!(error > 0.0 && error < tolerance, "{line}");
            assert!(line["median_ms"].as_f64().unwrap() > 0.0);
        }
    }
    assert!(dir.ok("bench propeller --runs 1").lines().count() == 2);
}

/// `--simd` wins over RECON_SIMD. A level that the processor lacks is refused, and the error names it.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_vector_unit_is_the_one_asked_for() {
    let dir = TempDir::new();
    let bench = |options: &str, variable: &str| {
        let line = format!("bench radial2d --runs 1 --tolerance 1e-2 --json {options}");
        let mut command = dir.command(&line);
        command.env("RECON_SIMD", variable).stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = alone(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let level = serde_json::from_slice::<serde_json::Value>(&out.stdout).map(|v| v["simd"].clone());
        level.map_err(|_| String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!(bench("", "sse").unwrap(), "sse");
    assert_eq!(bench("--simd baseline", "mmx").unwrap(), "sse");
    let refused = bench("", "mmx").unwrap_err();
    assert!(refused.starts_with("recon: error: ") && refused.contains("RECON_SIMD is 'mmx'"), "{refused}");
    let best = bench("", "").unwrap();
    for (level, had) in
        [("avx2", best != "sse"), ("avx512", best.as_str().is_some_and(|best| best.starts_with("avx512")))]
    {
        match bench(&format!("--simd {level}"), "sse") {
            Ok(used) => assert!(had && used == level, "{level}: {used}"),
            Err(error) => assert!(!had && error.contains(&format!("level {level} was asked for")), "{error}"),
        }
    }
    dir.fails(2, "bench radial2d --simd mmx", &["--simd"]);
}

#[test]
#[cfg(unix)]
fn interrupts_leave_nothing() {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let dir = TempDir::new();
    dir.ok("simulate --matrix 128,128 --shots 8000 --samples 256 -o k.cfl");
    // Exact sums that take half a minute or more on two fast cores.
    let mut command =
        dir.command("fhd k.cfl --trajectory k_traj.cfl --matrix 1000,1000 --method exact --precision f64 -o image.h5");
    command.stderr(Stdio::piped());
    // These tests may run as a background job of a shell, which ignores interrupts. The program would ignore them too.
    // SAFETY: signal() is safe to call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    };
    let child = alone(|| command.spawn()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    // SAFETY: a signal to a process that this test started and has not waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) }, 0);
    let out = child.wait_with_output().unwrap();
    assert!(out.status.code() == Some(130) && out.status.signal().is_none(), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("recon: error: interrupted"));
    assert_eq!(dir.names(), ["k.cfl", "k.hdr", "k_traj.cfl", "k_traj.hdr"]);
}

#[test]
fn readers_may_leave() {
    let dir = TempDir::new();
    let mut command = dir.command("info");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = alone(|| command.spawn()).unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}

#[test]
fn brain_cartesian_is_the_inverse_fft() {
    let Some(path) = test_data("brain_8ch_cartesian.h5") else { return };
    let dir = TempDir::new();
    dir.ok(&format!("grid {} -o image.h5 --combine none", path.display()));
    let image = only_image(&dir.path("image.h5"));
    assert_eq!((image.dims, image.channels), ([230, 180, 1], 8));
    let scan = alone(|| crate::io::ismrmrd::read_dataset(&path, None)).unwrap().scans.remove(0);
    let (mut error, mut norm) = (0.0, 0.0);
    for coil in 0..8 {
        let mut kspace = vec![Complex::default(); 230 * 180];
        for m in 0..scan.samples() {
            let place =
                |axis: usize, n: usize| (scan.coordinates[axis][m] * n as f32).round() as isize + n as isize / 2;
            kspace[(place(1, 180) * 230 + place(0, 230)) as usize] = scan.data[coil * scan.samples() + m];
        }
        for (z, e) in image.channel(coil).iter().zip(inverse_fft(&kspace, [230, 180])) {
            error += (Complex::new(z.re as f64, z.im as f64) - e).norm_sqr();
            norm += e.norm_sqr();
        }
    }
    let error = (error / norm).sqrt();
    assert!(error < 1e-4, "{error}");
}

#[test]
fn brain_radial_undersampled() {
    let (Some(scan), Some(truth)) = (test_data("brain_8ch_radial96.h5"), test_data("brain_rss_230x180.npy")) else {
        return;
    };
    // The array is indexed [x, y]: its fastest axis is y.
    assert_eq!(read_npy(&truth).unwrap().dims, [180, 230]);
    let dir = TempDir::new();
    // Errors are inside the head. For comparison: BART's pics has 5.8 % with every second spoke and 10.9 % with every
    // fourth, gridding 4.7 % and 11.5 %.
    for (every, gridding, cg) in [(1, 2.0, 3.0), (2, 5.0, 4.7), (4, 12.0, 10.9)] {
        // Backprojection is gridding with ramp weights, and the angles that are measured.
        for (command, bound) in [("grid", gridding), ("fbp", 1.5 * gridding), ("cg", cg)] {
            let out = dir.run(&format!("{command} {} --every {every} -o image.h5", scan.display()));
            // 24 spokes leave gaps in the centre of k-space: gridding says so.
            let is_warned = (command, every) == ("grid", 4);
            assert_eq!((out.status, out.stderr.contains("the image is aliased")), (Some(0), is_warned), "{out:?}");
            let truth = truth.display();
            let error = dir.error(&format!("image.h5 {truth} --transpose --magnitude --scale best --mask 0.1"));
            println!("{command}, every {every}: {error:.2} %");
            assert!(error < bound, "{command}, every {every}: {error}");
        }
    }
}

#[test]
fn backprojections_are_near_gridding_with_ramp_weights() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 64,64 --trajectory radial --shots 150 --coils 3 --snr 100 --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 --density ramp -o gridding.h5");
    let mut before = 0.0;
    for filter in ["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] {
        dir.ok(&format!("fbp scan.h5 --filter {filter} -o {filter}.h5"));
        let error = dir.error(&format!("{filter}.h5 gridding.h5 --magnitude"));
        println!("{filter}: {error:.2} % from gridding");
        assert!(error > before && error < if filter == "ram-lak" { 2.0 } else { 35.0 }, "{filter}: {error} %");
        before = error;
    }
    // In both precisions, and a picture.
    dir.ok("fbp scan.h5 --precision f64 -o double.h5");
    assert!(dir.error("double.h5 ram-lak.h5") < 1e-3);
    dir.ok("fbp scan.h5 --filter hann -o image.png");
    dir.ok("simulate --matrix 16,16,8 --trajectory stack-of-stars --partitions 8 -o stack.h5");
    dir.fails(1, "fbp stack.h5 -o x.h5", &["3 axes", "gridding"]);
}

#[test]
fn motion_of_blades_is_corrected() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 96,96 --trajectory propeller --shots 12 --lines 18 --samples 128 --coils 3";
    dir.ok(&format!("{scan} --truth truth.h5 -o still.h5"));
    let told = dir.run(&format!("-v {scan} --motion 10,5 -o moving.h5")).stderr;
    assert_eq!(told.matches(": turned by ").count(), 12, "{told}");
    let error = |file: &str| dir.error(&format!("{file} truth.h5 --magnitude --scale best"));
    dir.ok("grid still.h5 -o at_rest.h5");
    dir.ok("grid moving.h5 -o uncorrected.h5");
    dir.ok("propeller moving.h5 -o corrected.h5 --report motion.json --corrected again.h5");
    let [rest, found, before] = ["at_rest.h5", "corrected.h5", "uncorrected.h5"].map(error);
    println!("at rest {rest} %, corrected {found} %, uncorrected {before} %");
    assert!(found < 1.5 * rest && before > 2.5 * rest, "at rest {rest} %, corrected {found} %, before {before} %");

    // The report has what was simulated, from the mean position.
    let report = std::fs::read_to_string(dir.path("motion.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report[0]["lines"].as_u64(), report[0]["samples"].as_u64()), (Some(18), Some(128)));
    let blades = report[0]["blades"].as_array().unwrap();
    for (line, blade) in told.lines().filter(|l| l.contains(": turned by ")).zip(blades) {
        let numbers: Vec<f64> = line
            .split(": turned by ")
            .nth(1)
            .unwrap()
            .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
            .filter_map(|t| t.parse().ok())
            .collect();
        let shift = &blade["translation_voxels"];
        let of = [&blade["rotation_degrees"], &shift[0], &shift[1]].map(|v| v.as_f64().unwrap());
        assert!((0..3).all(|i| (numbers[i] - of[i]).abs() < 0.3), "{line}: {of:?}");
        assert!(blade["correlation"].as_f64().unwrap() > 0.95 && blade["weight"].as_f64().unwrap() > 0.5);
    }
    assert_eq!(blades.len(), 12);
    assert!(dir.ok("propeller moving.h5 -o x.h5 --report -").contains("rotation_degrees"));

    // The corrected scan is one like any other.
    dir.ok("cg again.h5 --no-maps --weighted -o solved.h5");
    assert!(error("solved.h5") < 1.5 * rest, "{} %", error("solved.h5"));
    dir.ok("grid again.h5 -o gridded.h5");
    assert!(dir.error("gridded.h5 corrected.h5 --magnitude") < 1e-3);
    dir.ok("propeller moving.h5 -o none.h5 --no-rotation --no-translation --no-weighting --phase none");
    assert!(dir.error("none.h5 uncorrected.h5 --magnitude") < 0.5);
    dir.ok("propeller moving.h5 -o x.png --precision f64 --lines 18 --phase constant");

    // Frames of a longer series: half of the blades each, as if they were all of a scan.
    dir.ok("propeller moving.h5 -o frames.h5 --frame-shots 108 --report frames.json");
    let frames = std::fs::read_to_string(dir.path("frames.json")).unwrap();
    let frames: serde_json::Value = serde_json::from_str(&frames).unwrap();
    let blades = |i: usize| frames[i]["blades"].as_array().unwrap().len();
    assert_eq!((blades(0), blades(1), frames[1]["repetition"].as_u64()), (6, 6, Some(1)));
    // Frames that end within a blade: what is left of it is left out, with a warning.
    let out = dir.run("propeller moving.h5 -o cut.h5 --frame-shots 100");
    let told = "blade 5 (lines 90 to 99 of the scan) has 10 of 18 lines: the blade is left out";
    assert!(out.status == Some(0) && out.stderr.contains(told), "{out:?}");

    dir.fails(1, "propeller moving.h5 -o x.h5 --lines 17", &["blades of 17 lines"]);
    dir.fails(1, "propeller moving.h5 -o x.h5 --corrected x.cfl", &["x.cfl", ".h5"]);
    dir.fails(1, "propeller moving.h5 -o x.h5 --corrected x.h5", &["two outputs"]);
    dir.fails(2, "propeller moving.h5 -o x.h5 --phase rough", &["smooth"]);
    dir.ok("simulate --matrix 48,48 --trajectory radial -o radial.h5");
    dir.fails(1, "propeller radial.h5 -o x.h5", &["PROPELLER", "gridding"]);
    dir.ok("simulate --matrix 16,16,8 --trajectory stack-of-stars --partitions 8 -o stack.h5");
    dir.fails(1, "propeller stack.h5 -o x.h5", &["2D"]);
    dir.fails(1, "simulate --matrix 48,48 --motion 1,1 -o x.h5", &["--motion", "radial"]);
    dir.fails(1, "simulate --matrix 48,32 --trajectory propeller --motion 1,1 -o x.h5", &["48 x 32"]);
    dir.fails(2, "simulate --matrix 48,48 --trajectory propeller --motion 1 -o x.h5", &["10,5"]);
}

#[test]
fn every_window_has_a_tolerance_of_its_own() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 --trajectory radial --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 -o reference.h5 --tolerance 1e-6");
    for (window, bound) in [("minimax", 0.01), ("kaiser-bessel", 0.01), ("gaussian", 0.01), ("bilinear", 20.0)] {
        dir.ok(&format!("-q grid scan.h5 --window {window} -o image.h5"));
        let out = dir.run(&format!("grid scan.h5 --window {window} -o said.h5"));
        assert_eq!(out.stderr.contains("above the default tolerance"), window == "bilinear", "{out:?}");
        let error = dir.error("image.h5 reference.h5");
        assert!(error < bound, "{window}: {error} %");
    }
}

#[test]
fn a_named_width_and_oversampling_are_used() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 --trajectory radial -o scan.h5");
    dir.ok("fhd scan.h5 -o reference.h5 --method exact");
    for (named, window, percent, warned) in [
        ("--width 4 --oversampling 1.5", "width 4, oversampling 1.5", 0.03..3.0, true),
        ("--width 7 --oversampling 2", "width 7, oversampling 2.0", 1e-5..1e-3, false),
        ("--width 8", "width 8, ", 1e-5..1e-3, false),
        ("--oversampling 2.5", "oversampling 2.5", 1e-5..1e-3, false),
    ] {
        let out = dir.run(&format!("-v fhd scan.h5 -o image.h5 {named}"));
        assert!(out.stderr.contains(window), "{named}: {out:?}");
        assert_eq!(out.stderr.contains("above the default tolerance"), warned, "{named}: {out:?}");
        let error = dir.error("image.h5 reference.h5");
        assert!(percent.contains(&error), "{named}: {error} %");
    }
}

#[test]
fn compare_draws_a_picture_of_several() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,24 --trajectory radial --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 -o a.h5");
    dir.ok("cg scan.h5 -o b.h5");
    let lines = dir.ok("compare a.h5 b.h5 truth.h5 --scale best --picture row.png");
    assert!(lines.lines().count() == 2 && lines.contains("a.h5: error ") && lines.contains("b.h5: error "), "{lines}");
    let picture = std::fs::read(dir.path("row.png")).unwrap();
    let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (3 * 32, 24));
}
