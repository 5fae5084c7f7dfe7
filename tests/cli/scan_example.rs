//! The C program of docs/raw-data.md: the same acquisitions in a file and in a stream give the same bytes of images.

use crate::acquisitions::header_bytes;
use crate::io::ismrmrd::Acquisition;
use crate::io::tests::write_acquisitions;
use crate::{noise, only_image, read_images, space, with_lock, TempDir};
use num_complex::Complex;
use recon::phantom::{CoilModel, Phantom};
use recon::scan::{AcquisitionHeader, EncodingLimits, Header, HeaderEncoding, TrajectoryKind};
use recon::trajectory::SpokeOrder;
use recon::Trajectory;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SPOKES: usize = 48;
const READOUT: usize = 64;
const COILS: usize = 3;
const SLICES: usize = 2;

/// An acquisition with its arrays.
struct Shot {
    header: AcquisitionHeader,
    trajectory: Vec<f32>,
    data: Vec<Complex<f32>>,
}

/// Returns noise, a navigator, and the spokes of two slices.
fn shots() -> Vec<Shot> {
    let header = AcquisitionHeader {
        version: 1,
        number_of_samples: READOUT as u16,
        available_channels: COILS as u16,
        active_channels: COILS as u16,
        center_sample: READOUT as u16 / 2,
        sample_time_us: 4.0,
        ..Default::default()
    };
    let without_trajectory = |flag: u32, samples: usize| Shot {
        header: AcquisitionHeader { flags: 1 << (flag - 1), number_of_samples: samples as u16, ..header },
        trajectory: Vec::new(),
        data: noise(samples * COILS, 3),
    };
    let mut shots = vec![without_trajectory(19, 2000), without_trajectory(23, READOUT)];
    let trajectory = Trajectory::radial2d(SPOKES, READOUT, SpokeOrder::Linear).unwrap();
    let k = [0, 1].map(|axis| trajectory.axis_as::<f32>(axis));
    let ring = CoilModel::ring(COILS, 2).unwrap();
    let kspace = Phantom::shepp_logan_2d().kspace(&[32, 32], &trajectory.axes(), Some(&ring), 1).unwrap();
    for i in 0..SPOKES * SLICES {
        let (spoke, slice) = (i % SPOKES, i / SPOKES);
        let mut header = AcquisitionHeader { trajectory_dimensions: 2, ..header };
        // Two samples are discarded.
        (header.discard_pre, header.discard_post) = (1, 1);
        (header.idx.kspace_encode_step_1, header.idx.slice) = (spoke as u16, slice as u16);
        header.position[2] = 5.0 * slice as f32;
        let samples = spoke * READOUT..(spoke + 1) * READOUT;
        let value = |coil: usize, m: usize| {
            let z = kspace[coil * SPOKES * READOUT + m] * (slice as f64 + 1.0);
            Complex::new(z.re as f32, z.im as f32)
        };
        shots.push(Shot {
            header,
            trajectory: samples.clone().flat_map(|m| [k[0][m], k[1][m]]).collect(),
            data: (0..COILS)
                .flat_map(|coil| samples.clone().map(move |m| (coil, m)))
                .map(|(c, m)| value(c, m))
                .collect(),
        });
    }
    shots
}

/// Returns the XML header: the image is interpolated, and its middle is kept.
fn xml() -> String {
    let limits = EncodingLimits { minimum: 0, maximum: SPOKES as u16 - 1, center: SPOKES as u16 / 2 };
    let encoding = HeaderEncoding {
        encoded: space([32, 32, 1], [200.0, 200.0, 5.0]),
        recon: space([40, 24, 1], [200.0, 150.0, 5.0]),
        trajectory: TrajectoryKind::Radial,
        steps: [Some(limits), None],
        ..Default::default()
    };
    Header { encodings: vec![encoding], ..Default::default() }.to_xml()
}

/// Returns the messages of MRD's streaming protocol: a number of 16 bits, then the contents.
fn stream(xml: &str, shots: &[Shot]) -> Vec<u8> {
    let message = |number: u16| number.to_le_bytes();
    let mut bytes = message(3).to_vec();
    bytes.extend((xml.len() as u32).to_le_bytes());
    bytes.extend(xml.as_bytes());
    for shot in shots {
        bytes.extend(message(1008));
        bytes.extend(header_bytes(&shot.header));
        shot.trajectory.iter().for_each(|k| bytes.extend(k.to_le_bytes()));
        shot.data.iter().for_each(|z| bytes.extend([z.re, z.im].map(f32::to_le_bytes).as_flattened()));
    }
    bytes.extend(message(4));
    bytes
}

/// Writes the acquisitions as a file of ISMRMRD.
fn write_file(path: PathBuf, xml: &str, shots: &[Shot]) {
    let stored = shots.iter().map(|shot| Acquisition {
        header: shot.header,
        trajectory: shot.trajectory.clone(),
        data: shot.data.clone(),
    });
    with_lock(|| write_acquisitions(&path, Some(xml), shots.len(), &mut { stored })).unwrap();
}

/// Compiles the program with the static library of this build, with the warnings of a vendor's build.
fn program(dir: &TempDir) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = std::env::current_exe().unwrap().parent().unwrap().join("librecon.a");
    assert!(library.exists(), "no {}", library.display());
    let mut command = Command::new("cc");
    command.args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1", "-I"]);
    command.arg(root.join("include")).arg(root.join("examples/c/scan.c")).arg(library);
    command.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc", "-o"]).arg(dir.path("scan"));
    let output = with_lock(|| command.output()).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    dir.path("scan")
}

/// Runs the program on a stream.
fn run(dir: &TempDir, program: &Path, bytes: &[u8]) -> Output {
    std::fs::write(dir.path("stream.mrd"), bytes).unwrap();
    let mut command = Command::new(program);
    command.stdin(File::open(dir.path("stream.mrd")).unwrap());
    with_lock(|| command.output()).unwrap()
}

#[test]
fn a_program_in_c_makes_the_images_of_recon_grid() {
    let (dir, xml, shots) = (TempDir::new(), xml(), shots());
    let program = program(&dir);
    write_file(dir.path("scan.h5"), &xml, &shots);
    // A warning says that the noise whitens the data.
    let grid = dir.run("grid scan.h5 -o image.h5");
    assert!(grid.status == Some(0) && grid.stderr.lines().count() == 1, "{grid:?}");
    let images = read_images(dir.path("image.h5"));
    assert_eq!(images.len(), SLICES);
    let output = run(&dir, &program, &stream(&xml, &shots));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.lines().count() == 1 && text.contains("noise acquisitions whiten"),
        "{text}"
    );
    let floats: Vec<f32> = output.stdout.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    let from_file: Vec<f32> = images.iter().flat_map(|image| image.data.iter().flat_map(|z| [z.re, z.im])).collect();
    assert!(from_file.iter().any(|x| *x > 1.0) && from_file.len() == 2 * SLICES * 40 * 24);
    let differences = floats.iter().zip(&from_file).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
    assert_eq!((differences, floats.len()), (0, from_file.len()));
}

#[test]
fn the_program_in_c_reports_errors_and_warnings() {
    let (dir, xml, mut shots) = (TempDir::new(), xml(), shots());
    let program = program(&dir);
    let whole = stream(&xml, &shots);
    let fails = |bytes: &[u8], words: &str| {
        let output = run(&dir, &program, bytes);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(words) && text.lines().count() == 1, "{words}: {text}");
    };
    fails(&whole[..whole.len() - 2], "the stream ends");
    fails(&whole[..2000], "the stream ends");
    fails(b"", "the stream ends");
    fails(&stream("<html/>", &shots), "<html>");
    fails(&whole[whole.len() - 2..], "scan");
    fails(&[254, 3], "the stream ends");
    fails(&[&[1, 0][..], &whole].concat(), "expected MRD_MESSAGE_HEADER");
    shots[9].data[5].im = f32::NAN;
    fails(&stream(&xml, &shots), "acquisition 9");
    shots.remove(9);
    let output = run(&dir, &program, &stream(&xml, &shots));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("47 of the 48 shots"), "{text}");
    write_file(dir.path("scan.h5"), &xml, &shots);
    let printed = dir.run("grid scan.h5 --slice 0 -o image.h5").stderr;
    assert!(printed.contains("47 of the 48 shots"), "{printed}");
    assert_eq!(only_image(&dir.path("image.h5")).data.len(), 40 * 24);
}
