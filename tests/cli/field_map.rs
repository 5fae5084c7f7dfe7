//! The command `fieldmap`.

use crate::io::tests::write_cfl;
use crate::io::{Dataset, Image, Placement, Scan, ScanIndex};
use crate::{read_images, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::scan::{EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use recon::Trajectory;
use std::f64::consts::TAU;
use std::fs;

/// The size of the images.
const N: usize = 48;
/// The echo times in seconds.
const TIMES: [f64; 2] = [0.0046, 0.0069];
/// The command for the images of [`write_echoes`].
const FIELDMAP: &str = "fieldmap first.cfl second.cfl --echo-times 0.0046,0.0069";

/// Returns the off-resonance in Hz. Positions are fractions of the field of view.
fn smooth_field(x: f64, y: f64) -> f64 {
    90.0 * x - 60.0 * (4.0 * y).sin()
}

/// Returns the position of a voxel as fractions of the field of view.
fn position(i: usize) -> [f64; 2] {
    [i % N, i / N].map(|j| (j as f64 - (N / 2) as f64) / N as f64)
}

/// Returns images [N, N, 2] of a disk in two coils at echo time `t`, with this off-resonance and a decay of 20 1/s.
fn echo(t: f64, field: fn(f64, f64) -> f64) -> Vec<Complex<f32>> {
    let mut image = Vec::new();
    for coil in [1.0, -1.0] {
        for i in 0..N * N {
            let [x, y] = position(i);
            let magnitude = if x * x + y * y < 0.16 { 1.0 + 0.5 * coil * x } else { 0.0 };
            let z = Complex::from_polar(magnitude * (-20.0 * t).exp(), coil * 5.0 * y - TAU * field(x, y) * t);
            image.push(Complex::new(z.re as f32, z.im as f32));
        }
    }
    image
}

/// Writes both echoes as first.cfl and second.cfl.
fn write_echoes(dir: &TempDir, field: fn(f64, f64) -> f64) {
    for (name, t) in ["first.cfl", "second.cfl"].iter().zip(TIMES) {
        write_cfl(dir.path(name), &[N, N, 1, 2], &echo(t, field)).unwrap();
    }
}

/// Returns the root mean square difference between a map and `truth` in the disk.
fn rms_error(dir: &TempDir, name: &str, truth: fn(f64, f64) -> f64) -> f64 {
    let image = &read_images(dir.path(name))[0];
    assert_eq!((image.dims, image.channels), ([N, N, 1], 1));
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, z) in image.data.iter().enumerate() {
        assert!(z.re.is_finite() && z.im == 0.0);
        let [x, y] = position(i);
        if x * x + y * y < 0.15 {
            sum += (z.re as f64 - truth(x, y)).powi(2);
            count += 1.0;
        }
    }
    f64::sqrt(sum / count)
}

fn index(slice: u16, contrast: u16) -> ScanIndex {
    ScanIndex { slice, contrast, ..Default::default() }
}

/// Returns the raw data of two slices with two echoes each, and these echo times in the header.
fn raw_echoes(echo_times_ms: Vec<f64>) -> Dataset {
    let trajectory = Trajectory::cartesian(&[N, N]).unwrap();
    let axes = trajectory.axes();
    let geometry = recon::Geometry::new(&[N, N], &axes).coils(2);
    let plan = recon::Plan::new(&geometry, &recon::Options::default()).unwrap();
    let space = EncodingSpace { matrix: [N, N, 1], fov_mm: [240.0, 240.0, 5.0] };
    let scan = |slice: u16, contrast: u16| {
        let image = echo(TIMES[contrast as usize], smooth_field);
        let image: Vec<Complex<f64>> = image.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect();
        let mut kspace = vec![Complex::default(); N * N * 2];
        plan.forward(&image, &mut kspace).unwrap();
        Scan {
            index: index(slice, contrast),
            encoded_matrix: space.matrix,
            recon_matrix: space.matrix,
            encoded_fov_mm: space.fov_mm,
            recon_fov_mm: space.fov_mm,
            ndim: 2,
            coordinates: (0..2).map(|axis| trajectory.axis_as(axis)).collect(),
            weights: None,
            trajectory: TrajectoryKind::Other,
            samples_per_shot: vec![N; N],
            skipped_per_shot: vec![0; N],
            coils: 2,
            data: kspace.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect(),
            times: (0..N * N).map(|m| (m % N) as f32 * 1e-5).collect(),
            placement: Placement::default(),
            coil_matrix: None,
            noise_level: None,
        }
    };
    let encoding = HeaderEncoding { encoded: space, recon: space, ..Default::default() };
    Dataset {
        header: Header { encodings: vec![encoding], echo_times_ms, ..Default::default() },
        scans: [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(slice, contrast)| scan(slice, contrast)).into(),
        noise: Vec::new(),
        calibration: Vec::new(),
        uses: Vec::new(),
    }
}

/// Writes ISMRMRD images of two slices with two echoes each.
fn write_ismrmrd_images(dir: &TempDir, name: &str) {
    let images: Vec<Image> = [(0, 0), (0, 1), (1, 0), (1, 1)]
        .map(|(slice, contrast)| {
            let image = Image::new([N, N, 1], 2, echo(TIMES[contrast as usize], smooth_field)).unwrap();
            Image { index: index(slice, contrast), ..image }
        })
        .into();
    with_lock(|| crate::io::tests::write_images(dir.path(name), &images)).unwrap();
}

#[test]
fn field_maps_of_images() {
    let dir = TempDir::new();
    write_echoes(&dir, smooth_field);
    for extension in ["h5", "cfl", "nii", "nii.gz"] {
        dir.ok(&format!("{FIELDMAP} -o field.{extension}"));
        assert!(rms_error(&dir, &format!("field.{extension}"), smooth_field) < 1.0, "{extension}");
    }
    dir.ok(&format!("{FIELDMAP} --precision f64 --smoothing 0 --threads 2 --decay decay.cfl -o exact.cfl"));
    assert!(rms_error(&dir, "exact.cfl", smooth_field) < 1e-3 && rms_error(&dir, "decay.cfl", |_, _| 20.0) < 1e-3);
    // Both echoes in one BART file.
    write_cfl(dir.path("both.cfl"), &[N, N, 1, 2, 1, 2], &TIMES.map(|t| echo(t, smooth_field)).concat()).unwrap();
    dir.ok("fieldmap both.cfl --echo-times 0.0046,0.0069 -o one.h5");
    dir.ok(&format!("{FIELDMAP} -o again.h5"));
    assert!(read_images(dir.path("one.h5")) == read_images(dir.path("again.h5")));
    write_ismrmrd_images(&dir, "images.h5");
    dir.ok("fieldmap images.h5 --echo-times 0.0046,0.0069 --slice 1 -o of_images.h5");
    assert!(rms_error(&dir, "of_images.h5", smooth_field) < 1.0);
}

#[test]
fn field_maps_of_raw_data() {
    let dir = TempDir::new();
    let mut dataset = raw_echoes(vec![4.6, 6.9]);
    write_dataset(dir.path("raw.h5"), &dataset);
    assert!(dir.ok("info raw.h5").contains("4.6, 6.9 ms"));
    dir.ok("fieldmap raw.h5 -o of_raw.h5 --report report.json --decay decay.h5");
    assert!(rms_error(&dir, "of_raw.h5", smooth_field) < 1.0 && rms_error(&dir, "decay.h5", |_, _| 20.0) < 1.0);
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
    // The header's echo times in ms, divided by 1000, differ by rounding.
    let other = read_images(dir.path("other.h5"));
    assert!(other.len() == 1 && other[0].data.iter().zip(&maps[0].data).all(|(a, b)| (a - b).norm() < 1e-3));
    dir.fails(1, "fieldmap raw.h5 --slice 7 -o x.h5", &["slice"]);
    dataset.header.echo_times_ms.pop();
    write_dataset(dir.path("without.h5"), &dataset);
    dir.fails(1, "fieldmap without.h5 -o x.h5", &["1 echo times", "contrast 1", "--echo-times"]);
}

/// Phase wraps cause a warning, with unwrapping and without.
#[test]
fn phase_wraps_are_reported() {
    let dir = TempDir::new();
    let steep_field = |x: f64, _: f64| 800.0 * x;
    write_echoes(&dir, steep_field);
    let out = dir.run(&format!("{FIELDMAP} -o wrapped.h5"));
    assert!(out.status == Some(0) && out.stderr.contains("217.4 Hz") && out.stderr.contains("unwrapped"), "{out:?}");
    assert!(rms_error(&dir, "wrapped.h5", steep_field) < 3.0);
    let out = dir.run(&format!("{FIELDMAP} --no-unwrap -o wrapped.h5"));
    assert!(out.status == Some(0) && out.stderr.contains("not unwrapped"), "{out:?}");
    assert!(rms_error(&dir, "wrapped.h5", steep_field) > 50.0);
}

#[test]
fn unusable_echoes_and_options_are_errors() {
    let dir = TempDir::new();
    write_echoes(&dir, smooth_field);
    write_ismrmrd_images(&dir, "images.h5");
    dir.ok(&format!("{FIELDMAP} -o field.nii"));
    for (line, words) in [
        ("fieldmap first.cfl second.cfl -o x.h5", &["--echo-times", "seconds"][..]),
        ("fieldmap first.cfl second.cfl --echo-times 4.6,6.9 -o x.h5", &["milliseconds"]),
        ("fieldmap first.cfl second.cfl --echo-times 0.0069,0.0046 -o x.h5", &["increasing"]),
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
    ] {
        dir.fails(1, line, words);
    }
    dir.fails(2, "fieldmap -o x.h5", &["FILE"]);
    dir.fails(2, "fieldmap first.cfl second.cfl --echo-times 1ms,2ms -o x.h5", &["1ms"]);
}
