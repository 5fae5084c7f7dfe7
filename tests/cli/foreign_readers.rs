//! Files of every format are read by other projects: h5py, NumPy, SciPy, nibabel, BART and Octave.

use crate::common::say;
use crate::harness::python;
use crate::io::tests::write_images;
use crate::io::{Image, Placement, ScanIndex};
use crate::{noise, only_image, with_lock, TempDir};
use num_complex::Complex;
use std::fs;
use std::process::{Command, Stdio};

/// The sizes of the test images: x, y, z, channels, images.
const SIZES: [usize; 5] = [5, 4, 3, 2, 2];

/// Runs a program in a folder. Returns its output; `None` if the program is not there.
fn run(dir: &TempDir, program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&dir.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = with_lock(|| command.spawn()).ok()?.wait_with_output().unwrap();
    assert!(out.status.success(), "{program}: {out:?}");
    Some(String::from_utf8(out.stdout).unwrap())
}

/// Writes two volumes with positions to image.h5, and to image.* in the formats that `convert` writes. reference.bin
/// has the voxels.
fn write_files() -> (TempDir, Vec<Complex<f32>>) {
    let dir = TempDir::new();
    let [nx, ny, nz, channels, count] = SIZES;
    let data = noise(SIZES.iter().product(), 3);
    let volume = |(repetition, data): (usize, &[Complex<f32>])| {
        let mut image = Image::new([nx, ny, nz], channels, data.to_vec()).unwrap();
        image.fov_mm = [10.0, 12.0, 12.0];
        image.placement = Placement {
            position: [1.5, -20.0, 33.0],
            read_dir: [0.0, 0.6, 0.8],
            phase_dir: [1.0, 0.0, 0.0],
            slice_dir: [0.0, 0.8, -0.6],
            ..Placement::default()
        };
        image.index = ScanIndex { repetition: repetition as u16, ..ScanIndex::default() };
        image
    };
    let images: Vec<Image> = data.chunks(data.len() / count).enumerate().map(volume).collect();
    with_lock(|| write_images(dir.path("image.h5"), &images)).unwrap();
    let bytes: Vec<u8> = data.iter().flat_map(|z| [z.re.to_le_bytes(), z.im.to_le_bytes()].concat()).collect();
    fs::write(dir.path("reference.bin"), bytes).unwrap();

    let mut real = images[0].clone();
    real.channels = 1;
    real.data = data[..nx * ny * nz].iter().map(|z| Complex::new(z.re, 0.0)).collect();
    with_lock(|| write_images(dir.path("real.h5"), &[real])).unwrap();
    for line in ["real.h5 -o real.mat", "image.h5 -o image.mat", "image.mat -o back.h5"] {
        dir.ok(&format!("convert {line}"));
    }
    for (line, lost) in [
        ("real.h5 -o real.npy", "the voxel size; the position in the patient"),
        ("image.h5 -o image.npy", "the position in the patient; the counters"),
        ("image.h5 --repetition 0 -o one.npy", "the position in the patient"),
        ("image.h5 -o image.cfl", "the voxel size; the position in the patient"),
        ("image.h5 -o image.nii", "the phase: magnitudes are written"),
        ("image.h5 -o image.nii.gz", "the phase: magnitudes are written"),
        ("image.h5 -o image.png", "the scale: grey levels are written"),
    ] {
        let out = dir.run(&format!("convert {line}"));
        assert!(out.status == Some(0) && out.stderr.lines().count() == 1 && out.stderr.contains(lost), "{out:?}");
    }
    assert_eq!(with_lock(|| crate::io::read_images(dir.path("back.h5"))).unwrap(), images);
    (dir, data)
}

/// Checks that a file has the voxels of the first test image.
fn check_first_image(dir: &TempDir, name: &str, data: &[Complex<f32>]) {
    let image = only_image(&dir.path(name));
    let sizes = [&image.dims[..], &[image.channels]].concat();
    assert_eq!((&sizes[..], &image.data[..]), (&SIZES[..4], &data[..120]), "{name}");
}

#[test]
fn python_reads_every_format() {
    let (dir, data) = write_files();
    if !python(&["-c", "import h5py, nibabel, scipy.io"], &dir).is_some_and(|out| out.status.success()) {
        say("skipped: no Python with h5py, nibabel and scipy (RECON_TEST_PYTHON)");
        return;
    }
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/foreign_readers.py");
    let sizes = SIZES.map(|n| n.to_string());
    let arguments: Vec<&str> = [SCRIPT].into_iter().chain(sizes.iter().map(|n| &**n)).collect();
    let out = python(&arguments, &dir).unwrap();
    assert!(out.status.success(), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout).lines().count(), 8, "{out:?}");

    // Files that SciPy writes, compressed and not, are read.
    let script = "import numpy, scipy.io\n\
                  reference = numpy.fromfile('reference.bin', numpy.complex64)\n\
                  voxels = reference.reshape(5, 4, 3, 2, 2, order='F')[:, :, :, :, 0]\n\
                  scipy.io.savemat('small.mat', {'a': voxels, 'note': 'text'}, do_compression=True)\n\
                  scipy.io.savemat('plain.mat', {'a': voxels.astype(complex)}, do_compression=False)\n\
                  scipy.io.savemat('level4.mat', {'a': numpy.ones((3, 3))}, format='4')\n";
    let out = python(&["-c", script], &dir).unwrap();
    assert!(out.status.success(), "{out:?}");
    for name in ["small.mat", "plain.mat"] {
        check_first_image(&dir, name, &data);
    }
    dir.fails(1, "convert level4.mat -o x.h5", &["level4.mat", "level 4", "-v7"]);
}

#[test]
fn octave_reads_and_writes_mat_files() {
    let (dir, data) = write_files();
    let code = "load('image.mat'); f = fopen('reference.bin'); r = fread(f, Inf, 'float32=>single'); fclose(f); \
                r = reshape(complex(r(1:2:end), r(2:2:end)), 5, 4, 3, 2, 2); \
                assert(isequal(image, r) && isa(image, 'single') && iscomplex(image)); \
                assert(repetition, [0 1]); assert(voxel_size, [2 2; 3 3; 4 4], 1e-6); \
                assert(size(affine), [4 4 2]); p = affine(:, :, 1) * [2; 2; 1; 1]; \
                assert(p(1:3), [-1.5; 20; 33], 1e-4); \
                real = load('real.mat'); assert(isreal(real.image) && isequal(size(real.image), [5 4 3])); \
                maps = image(:, :, :, :, 1); save('-v7', 'maps.mat', 'maps'); save('-v6', 'plain.mat', 'maps'); \
                disp('same')";
    let Some(out) = run(&dir, "octave-cli", &["--no-init-file", "--eval", code]) else {
        say("skipped: .mat files in Octave, because there is no octave-cli here");
        return;
    };
    assert!(out.contains("same"), "{out}");
    for name in ["maps.mat", "plain.mat"] {
        check_first_image(&dir, name, &data);
    }
}

#[test]
fn bart_reads_converted_images() {
    let (dir, data) = write_files();
    let Some(text) = run(&dir, "bart", &["show", "image"]) else {
        say("skipped: BART's files in BART, because there is no bart here");
        return;
    };
    let numbers: Vec<f64> = text
        .split_whitespace()
        .flat_map(|number| {
            // In +1.25e-01-5.0e-01i, the sign that does not follow an e separates the parts.
            let number = number.trim_end_matches('i');
            let is_split = |&(at, c): &(usize, char)| at > 0 && "+-".contains(c) && !number[..at].ends_with('e');
            let at = number.char_indices().find(is_split).unwrap().0;
            [number[..at].parse().unwrap(), number[at..].parse::<f64>().unwrap()]
        })
        .collect();
    assert_eq!(numbers.len(), 2 * data.len());
    for (a, z) in numbers.chunks(2).zip(&data) {
        assert!((a[0] - f64::from(z.re)).abs() < 1e-6 && (a[1] - f64::from(z.im)).abs() < 1e-6, "{a:?} and {z}");
    }
    let dims: Vec<String> =
        (0..4).map(|i| run(&dir, "bart", &["show", "-d", &i.to_string(), "image"]).unwrap()).collect();
    assert_eq!(dims.iter().map(|n| n.trim()).collect::<Vec<_>>(), ["5", "4", "3", "2"]);
}
