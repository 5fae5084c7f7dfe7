//! `convert`, `coilmaps`, `density` and `forward`: what the program knows, as files.

use crate::common::say;
use crate::io::tests::write_cfl;
use crate::io::{read_cfl, read_npy, Dataset, Image, ScanIndex};
use crate::{distance, noise, only_image, read_images, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use std::f64::consts::PI;
use std::process::Command;

/// Runs `bart` in a folder; false if it is not there.
fn bart(dir: &TempDir, line: &str) -> bool {
    let mut command = Command::new("bart");
    command.args(line.split_whitespace()).current_dir(&dir.0);
    let Ok(out) = with_lock(|| command.output()) else { return false };
    assert!(out.status.success(), "bart {line}: {out:?}");
    true
}

fn read_dataset(dir: &TempDir, name: &str) -> Dataset {
    with_lock(|| crate::io::tests::read_dataset(dir.path(name))).unwrap()
}

#[test]
fn raw_data_are_converted_in_both_directions() {
    let dir = TempDir::new();
    for (matrix, fov, options) in [
        ("24,20", "24,20,1", "--trajectory spiral --coils 3"),
        ("12,10,8", "12,10,8", "--trajectory kooshball --coils 2"),
    ] {
        dir.ok(&format!("simulate --matrix {matrix} {options} -o raw.h5"));
        dir.ok("convert raw.h5 -o k.cfl");
        // The same files as those of the simulation for BART.
        dir.ok(&format!("simulate --matrix {matrix} {options} -o simulated.cfl"));
        let (k, simulated) = (read_cfl(dir.path("k.cfl")).unwrap(), read_cfl(dir.path("simulated.cfl")).unwrap());
        assert_eq!(k, simulated);
        let points = ["k_traj.cfl", "simulated_traj.cfl"].map(|name| read_cfl(dir.path(name)).unwrap());
        assert_eq!(points[0].dims, points[1].dims);
        for (a, b) in points[0].data.iter().zip(&points[1].data) {
            assert!((a - b).norm() <= 1e-5 && a.im == 0.0, "{a} and {b}");
        }
        dir.ok(&format!("convert k.cfl --trajectory k_traj.cfl --matrix {matrix} --fov {fov} -o again.h5"));
        let (raw, again) = (read_dataset(&dir, "raw.h5"), read_dataset(&dir, "again.h5"));
        let (a, b) = (&raw.scans[0], &again.scans[0]);
        assert_eq!((&a.data, a.encoded_matrix, a.encoded_fov_mm), (&b.data, b.encoded_matrix, b.encoded_fov_mm));
        assert_eq!((&a.samples_per_shot, a.coils), (&b.samples_per_shot, b.coils));
        for (a, b) in a.coordinates.iter().flatten().zip(b.coordinates.iter().flatten()) {
            assert!((a - b).abs() < 1e-6, "{a} and {b}");
        }
    }
    // Without a field of view there is a warning. The file is read.
    let out = dir.run("convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 -o unknown.h5");
    assert!(out.status == Some(0) && out.stderr.contains("--fov"), "{out:?}");
    assert!(dir.ok("info unknown.h5").contains("12 x 10 x 8 voxels"));
    // Noise and weights are not in files of BART.
    dir.ok("simulate --matrix 16,16 --coils 2 --snr 20 --noise-samples 500 --weights -o noisy.h5");
    let out = dir.run("convert noisy.h5 -o noisy.cfl");
    assert!(out.status == Some(0) && out.stderr.contains("noise acquisitions, density weights"), "{out:?}");

    dir.fails(1, "convert raw.h5 -o raw.nii", &["raw data", ".h5, .mrd, .cfl"]);
    dir.fails(1, "convert raw.h5 -o x", &["x:", ".npy, .mat"]);
    dir.fails(1, "convert raw.h5 --slice 4 -o x.cfl", &["no such number, 4"]);
    dir.fails(1, "convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 --fov 1,2 -o x.h5", &["--fov", "220,220,5"]);
    dir.fails(1, "convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 -o k_traj.hdr", &["k_traj", "another name"]);
    dir.fails(2, "convert k.cfl --trajectory k_traj.cfl -o x.h5", &["--matrix"]);
    // K-space that is taken for an image.
    write_cfl(dir.path("plain.cfl"), &[1, 6, 4, 2], &noise(48, 2)).unwrap();
    let out = dir.run("convert plain.cfl -o plain.npy");
    assert!(out.status == Some(0) && out.stderr.contains("give --trajectory and --matrix"), "{out:?}");
}

#[test]
fn files_of_bart_become_ismrmrd_files() {
    let dir = TempDir::new();
    if !bart(&dir, "traj -r -x 32 -y 48 t") {
        say("skipped: scans of BART, because there is no bart here");
        return;
    }
    bart(&dir, "phantom -k -s 4 -t t k");
    dir.ok("convert k.cfl --trajectory t.cfl --matrix 32,32 --fov 220,220,5 -o scan.h5");
    dir.ok("grid scan.h5 -o converted.h5");
    dir.ok("grid k.cfl --trajectory t.cfl --matrix 32,32 -o direct.h5");
    assert_eq!(dir.error("converted.h5 direct.h5"), 0.0);
    // Back to BART: the files that it wrote.
    dir.run("convert scan.h5 -o back.cfl");
    assert_eq!(read_cfl(dir.path("back.cfl")).unwrap(), read_cfl(dir.path("k.cfl")).unwrap());
    bart(&dir, "nrmse -t 0.000001 t back_traj");
}

/// The image with maps of a file has the same bits as the image with the estimate.
#[test]
fn coil_maps_can_be_used_again() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,28 --trajectory spiral --coils 4 --snr 50 -o scan.h5");
    dir.ok("cg scan.h5 --iterations 4 -o direct.h5");
    let direct = only_image(&dir.path("direct.h5"));
    for name in ["maps.h5", "maps.cfl", "maps.npy", "maps.mat"] {
        dir.ok(&format!("coilmaps scan.h5 -o {name}"));
        let maps = only_image(&dir.path(name));
        assert_eq!((maps.dims, maps.channels), ([32, 28, 1], 4), "{name}");
        dir.ok(&format!("cg scan.h5 --iterations 4 --maps {name} -o again.h5"));
        assert_eq!(only_image(&dir.path("again.h5")).data, direct.data, "{name}");
    }
    assert_eq!(read_cfl(dir.path("maps.cfl")).unwrap().dims, [32, 28, 1, 4]);
    // In double precision, the file rounds the maps.
    dir.ok("coilmaps scan.h5 --precision f64 --calibration 20 -o wide.h5");
    dir.ok("cg scan.h5 --iterations 4 --precision f64 --calibration 20 -o direct.h5");
    dir.ok("cg scan.h5 --iterations 4 --precision f64 --maps wide.h5 -o again.h5");
    let error = dir.error("again.h5 direct.h5");
    assert!(error < 1e-3, "{error} %");

    dir.fails(1, "coilmaps scan.h5 -o maps.nii", &["coil maps are complex", ".h5"]);
    dir.fails(1, "coilmaps scan.h5 -o scan.h5", &["scan.h5", "another name"]);
    dir.fails(1, "coilmaps scan.h5 --frame-shots 3 -o x.h5", &["--frame-shots"]);

    // A map per slice, which cg uses slice by slice.
    let mut dataset = read_dataset(&dir, "scan.h5");
    let mut second = dataset.scans[0].clone();
    second.index = ScanIndex { slice: 1, ..ScanIndex::default() };
    let mut repeated = second.clone();
    repeated.index.repetition = 1;
    dataset.scans.extend([second, repeated]);
    write_dataset(dir.path("slices.h5"), &dataset);
    dir.ok("coilmaps slices.h5 -o slices_maps.h5");
    let slices: Vec<u16> = read_images(dir.path("slices_maps.h5")).iter().map(|i| i.index.slice).collect();
    assert_eq!(slices, [0, 1]);
    dir.fails(1, "cg slices.h5 --maps slices_maps.h5 -o x.h5", &["slices_maps.h5", "2 images"]);
    dir.ok("coilmaps slices.h5 --slice 1 -o one.h5");
    dir.ok("cg slices.h5 --slice 1 --maps one.h5 -o x.h5");
}

/// Maps of whitened and compressed data are maps of the coils in the file.
#[test]
fn maps_of_virtual_coils_are_converted_back() {
    let dir = TempDir::new();
    let noise = "--snr 50 --noise-samples 4000 --coupling 0.4 --noise-gain 3";
    dir.ok(&format!("simulate --matrix 32,28 --trajectory spiral --coils 6 {noise} -o scan.h5"));
    for options in ["", "--compress 4", "--whiten none --compress 4"] {
        for line in [
            format!("coilmaps scan.h5 {options} -o maps.h5"),
            format!("cg scan.h5 {options} --iterations 4 -o direct.h5"),
            format!("cg scan.h5 {options} --iterations 4 --maps maps.h5 -o again.h5"),
        ] {
            let out = dir.run(&format!("-q {line}"));
            assert!(out.status == Some(0) && out.stderr.is_empty(), "{out:?}");
        }
        assert_eq!(only_image(&dir.path("maps.h5")).channels, 6);
        let error = dir.error("again.h5 direct.h5");
        assert!(error < 1e-3, "{options}: {error} %");
    }
}

#[test]
fn density_weights_can_be_used_again() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 24,24 --trajectory radial --shots 60 --samples 48 --coils 2 -o scan.h5");
    for method in ["ramp", "jackson", "pipe-menon"] {
        dir.ok(&format!("density scan.h5 --density {method} -o weighted.h5"));
        assert_eq!(read_dataset(&dir, "weighted.h5").scans[0].data, read_dataset(&dir, "scan.h5").scans[0].data);
        dir.ok("grid weighted.h5 -o again.h5");
        dir.ok(&format!("grid scan.h5 --density {method} -o direct.h5"));
        let error = dir.error("again.h5 direct.h5");
        assert!(error < 1e-4, "{method}: {error} %");
    }
    dir.ok("density scan.h5 -o default.h5");
    dir.ok("grid default.h5 -o again.h5");
    dir.ok("grid scan.h5 -o direct.h5");
    assert!(dir.error("again.h5 direct.h5") < 1e-4);

    // The weights of even spokes are in proportion to |k|, except in the centre, and add up to the area of the disc.
    dir.ok("density scan.h5 --density ramp -o w.npy");
    let weights = read_npy(dir.path("w.npy")).unwrap();
    assert_eq!((&weights.dims[..], weights.complex), (&[48, 60][..], false));
    let scan = &read_dataset(&dir, "scan.h5").scans[0];
    let radius = |m: usize| f64::from(scan.coordinates[0][m]).hypot(f64::from(scan.coordinates[1][m]));
    let slopes: Vec<f64> = (0..48 * 60).filter(|&m| radius(m) > 0.1).map(|m| weights.data[m].re / radius(m)).collect();
    let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
    assert!(slopes.iter().all(|slope| (slope / mean - 1.0).abs() < 0.01), "{mean}");
    let total: f64 = weights.data.iter().map(|w| w.re).sum();
    assert!((total / (PI / 4.0) - 1.0).abs() < 0.05, "{total}");
    for (name, dims) in [("w.cfl", &[1, 48, 60][..]), ("w.mat", &[48, 60])] {
        dir.ok(&format!("density scan.h5 --density ramp -o {name}"));
        let (found, data) = match name {
            "w.cfl" => read_cfl(dir.path(name)).map(|cfl| (cfl.dims, cfl.data)).unwrap(),
            _ => {
                let array = crate::io::mat::read_mat(dir.path(name)).unwrap().remove(0);
                assert_eq!(array.name, "weights");
                (array.dims, array.data.unwrap())
            }
        };
        assert_eq!(found, dims);
        assert!(data.iter().zip(&weights.data).all(|(a, b)| f64::from(a.re) == b.re && a.im == 0.0), "{name}");
    }
    // From k-space of BART, and scans of different trajectories.
    dir.ok("convert scan.h5 -o k.cfl");
    dir.ok("density k.cfl --trajectory k_traj.cfl --matrix 24,24 --density jackson -o bart.cfl");
    let mut dataset = read_dataset(&dir, "scan.h5");
    let mut other = dataset.scans[0].clone();
    other.index.slice = 1;
    other.coordinates.iter_mut().flatten().for_each(|k| *k *= 0.98);
    dataset.scans.push(other);
    write_dataset(dir.path("two.h5"), &dataset);
    dir.fails(1, "density two.h5 -o x.npy", &["2 different trajectories", "--slice"]);
    dir.ok("density two.h5 --density ramp -o two_weighted.h5");
    dir.ok("density two.h5 --density ramp --slice 1 -o x.npy");
    assert_eq!(read_npy(dir.path("x.npy")).unwrap().dims, [48, 60]);
    dir.fails(1, "density scan.h5 -o x.nii", &[".h5, .mrd, .cfl, .hdr, .npy, .mat"]);
}

/// Returns the sums over voxels of x(r) exp(-i 2 pi (k.r + f(r) t)), for an image [nx, ny].
fn direct_sums(
    image: &[Complex<f32>],
    [nx, ny]: [usize; 2],
    k: [&[f32]; 2],
    phase: impl Fn(usize, usize) -> f64,
) -> Vec<Complex<f64>> {
    let sample = |m: usize| {
        let voxel = |i: usize| {
            let (x, y) = ((i % nx) as f64 - (nx / 2) as f64, (i / nx) as f64 - (ny / 2) as f64);
            let turns = f64::from(k[0][m]) * x + f64::from(k[1][m]) * y + phase(i, m);
            Complex::new(f64::from(image[i].re), f64::from(image[i].im)) * Complex::from_polar(1.0, -2.0 * PI * turns)
        };
        (0..nx * ny).map(voxel).sum()
    };
    (0..k[0].len()).map(sample).collect()
}

fn dot(a: &[Complex<f32>], b: &[Complex<f32>]) -> Complex<f64> {
    let wide = |z: &Complex<f32>| Complex::new(f64::from(z.re), f64::from(z.im));
    a.iter().zip(b).map(|(a, b)| wide(a).conj() * wide(b)).sum()
}

#[test]
fn samples_are_direct_sums_of_the_image() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 18,15 --trajectory spiral --shots 4 --samples 90 --coils 3 --dwell 5 --truth truth.h5 \
            --maps maps.cfl -o scan.h5");
    let scan = read_dataset(&dir, "scan.h5").scans.remove(0);
    let k = [&scan.coordinates[0][..], &scan.coordinates[1]];
    let image = only_image(&dir.path("truth.h5"));
    dir.ok("forward truth.h5 --like scan.h5 -o plain.h5");
    let plain = read_dataset(&dir, "plain.h5").scans.remove(0);
    assert_eq!((plain.coils, &plain.coordinates, &plain.times), (1, &scan.coordinates, &scan.times));
    let error = distance(&plain.data, &direct_sums(&image.data, [18, 15], k, |_, _| 0.0));
    assert!(error < 2e-5, "{error}");

    // With coil maps, off-resonance, exact sums and double precision.
    let field: Vec<Complex<f32>> = (0..18 * 15).map(|i| Complex::new(40.0 * (i % 18) as f32 - 300.0, 0.0)).collect();
    write_cfl(dir.path("field.cfl"), &[18, 15], &field).unwrap();
    dir.ok(
        "forward truth.h5 --like scan.h5 --maps maps.cfl --field-map field.cfl --method exact --precision f64 -o y.h5",
    );
    let seen = read_dataset(&dir, "y.h5").scans.remove(0);
    let maps = only_image(&dir.path("maps.cfl"));
    for coil in 0..3 {
        let weighted: Vec<_> = maps.channel(coil).iter().zip(&image.data).map(|(s, x)| s * x).collect();
        let turns = |i: usize, m: usize| f64::from(field[i].re) * f64::from(scan.times[m]);
        let exact = direct_sums(&weighted, [18, 15], k, turns);
        let error = distance(&seen.data[coil * scan.samples()..][..scan.samples()], &exact);
        assert!(error < 1e-5, "coil {coil}: {error}");
    }

    // <E x, y> = <x, E^H y> with the adjoint of recon fhd.
    let (x, y) = (noise(18 * 15, 5), noise(scan.samples() * 3, 6));
    write_cfl(dir.path("x.cfl"), &[18, 15], &x).unwrap();
    let mut dataset = read_dataset(&dir, "scan.h5");
    dataset.scans[0].data = y.clone();
    write_dataset(dir.path("d.h5"), &dataset);
    let options = "--maps maps.cfl --field-map field.cfl --tolerance 1e-6 --precision f64";
    dir.ok(&format!("forward x.cfl --like d.h5 {options} -o ex.h5"));
    dir.ok(&format!("fhd d.h5 {options} -o ehy.h5"));
    let (ex, ehy) = (read_dataset(&dir, "ex.h5").scans.remove(0).data, only_image(&dir.path("ehy.h5")).data);
    let (left, right) = (dot(&ex, &y), dot(&x, &ehy));
    assert!((left - right).norm() < 1e-5 * left.norm(), "{left} and {right}");
}

#[test]
fn samples_on_trajectories_of_bart() {
    let dir = TempDir::new();
    dir.ok(
        "simulate --matrix 20,16 --trajectory radial --shots 12 --coils 2 --truth truth.nii --maps maps.npy -o k.cfl",
    );
    dir.ok("forward truth.nii --trajectory k_traj.cfl --maps maps.npy -o a.h5");
    dir.ok("forward truth.nii --trajectory k_traj.cfl --maps maps.npy -o a.cfl");
    let a = read_cfl(dir.path("a.cfl")).unwrap();
    assert_eq!(a.dims, [1, 40, 12, 2]);
    let scan = read_dataset(&dir, "a.h5").scans.remove(0);
    assert_eq!((&scan.data, scan.encoded_fov_mm), (&a.data, [20.0, 16.0, 1.0]));
    // Two images become two scans, and each channel is a coil.
    let image = |repetition: u16, seed: u64| {
        let mut image = Image::new([20, 16, 1], 2, noise(640, seed)).unwrap();
        image.index.repetition = repetition;
        image.fov_mm = [20.0, 16.0, 1.0];
        image
    };
    let images = [image(0, 1), image(1, 2)];
    with_lock(|| crate::io::tests::write_images(dir.path("two.h5"), &images)).unwrap();
    dir.ok("forward two.h5 --trajectory k_traj.cfl -o two_scans.h5");
    let scans = read_dataset(&dir, "two_scans.h5").scans;
    assert_eq!(scans.iter().map(|s| (s.index.repetition, s.coils)).collect::<Vec<_>>(), [(0, 2), (1, 2)]);
    let k = [&scans[1].coordinates[0][..], &scans[1].coordinates[1]];
    let exact = direct_sums(images[1].channel(1), [20, 16], k, |_, _| 0.0);
    let samples = scans[1].samples();
    let error = distance(&scans[1].data[samples..], &exact);
    assert!(error < 2e-5, "{error}");

    dir.fails(1, "forward two.h5 --trajectory k_traj.cfl -o x.cfl", &["2 scans", "--repetition"]);
    dir.fails(2, "forward two.h5 -o x.h5", &["--like"]);
    dir.fails(2, "forward two.h5 --like a.h5 --trajectory k_traj.cfl -o x.h5", &["--trajectory"]);
    dir.fails(1, "forward maps.npy --trajectory k.cfl -o x.h5", &["k.cfl", "[3, samples, shots]"]);
    dir.fails(1, "forward two.h5 --like a.h5 --maps maps.npy -o x.h5", &["two.h5", "4 images"]);
    let out = dir.run("forward maps.npy --trajectory k_traj.cfl -o x.h5");
    assert!(out.status == Some(0) && out.stderr.contains("field of view"), "{out:?}");
}
