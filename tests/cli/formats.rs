//! Formats of files, and scans of several images.

use crate::io::tests::write_cfl;
use crate::io::{read_cfl, Placement, ScanIndex};
use crate::{
    distance, inverse_fft, noise, only_image, raw_file, read_images, scan, space, with_lock, write_dataset, TempDir,
};
use recon::scan::{EncodingLimits, Header, HeaderEncoding, TrajectoryKind};
use recon::Trajectory;
use std::fs;

#[test]
fn all_formats_are_read_back() {
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
    for words in ["20 x 20 x 20 voxels", "density weights       yes", "samples per shot      40", "radial"] {
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
        // The slices are 8 mm apart, from the head to the feet.
        scan.placement = Placement {
            position: [1.0, 2.0, 3.0 - 8.0 * f32::from(slice)],
            read_dir: [1.0, 0.0, 0.0],
            phase_dir: [0.0, 1.0, 0.0],
            slice_dir: [0.0, 0.0, 1.0],
            ..Placement::default()
        };
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
    // One plan is used for all scans.
    let log = dir.run("-v grid scan.h5 -o again.h5").stderr;
    assert_eq!((log.matches("plan: ").count(), log.matches("samples of 2 coils").count()), (1, 6), "{log}");

    dir.ok("grid scan.h5 --slice 1 -o slice.h5");
    let images = read_images(dir.path("slice.h5"));
    assert_eq!(images.iter().map(|i| (i.index.slice, i.index.repetition)).collect::<Vec<_>>(), [(1, 0), (1, 1)]);
    dir.ok("grid scan.h5 --slice 2 --repetition 1 -o one.h5");
    assert_eq!(only_image(&dir.path("one.h5")).index.slice, 2);
    dir.fails(1, "grid scan.h5 --slice 3 -o none.h5", &["--slice", "no such number, 3", "slices 0, 1, 2"]);

    // The other formats take images of one size.
    dir.ok("grid scan.h5 -o all.cfl");
    // Repetitions are in BART's dimension 10, slices in dimension 13.
    let array = read_cfl(dir.path("all.cfl")).unwrap();
    assert_eq!(array.dims, [12, 10, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 3]);
    dir.ok("grid scan.h5 -o combined.h5");
    for image in &read_images(dir.path("combined.h5")) {
        let at = image.index.repetition as usize + 2 * image.index.slice as usize;
        assert_eq!(array.data[120 * at..][..120], image.data, "{:?}", image.index);
    }
    // A missing image is an error before the computation.
    let mut gap = dataset.clone();
    gap.scans.remove(3);
    write_dataset(dir.path("gap.h5"), &gap);
    dir.fails(1, "grid gap.h5 -o no.cfl", &["no.cfl", "no image slice 1, repetition 1", "full grid", ".h5"]);
    dir.ok("grid gap.h5 --slice 0,2 -o no_gap.cfl");
    assert_eq!(read_cfl(dir.path("no_gap.cfl")).unwrap().dims, [12, 10, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 2]);
    // In a NIfTI file, the slices are along z in the order of their positions, and repetitions are along dimension 4.
    dir.ok("grid scan.h5 -o all.nii");
    let volume = only_image(&dir.path("all.nii"));
    assert_eq!((volume.dims, volume.channels, volume.fov_mm), ([12, 10, 3], 2, [12.0, 10.0, 24.0]));
    assert_eq!(volume.placement.position, [1.0, 2.0, -5.0]);
    for image in &read_images(dir.path("combined.h5")) {
        let (z, repetition) = (2 - image.index.slice as usize, image.index.repetition as usize);
        let slice = &volume.channel(repetition)[z * 120..][..120];
        assert!(slice.iter().zip(&image.data).all(|(a, b)| a.re == b.norm()), "{:?}", image.index);
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
fn cartesian_data_without_trajectory() {
    let dir = TempDir::new();
    let (nx, ny) = (30, 17);
    let data = noise(nx * ny, 4);
    let matrix = space([nx, ny, 1], [60.0, 34.0, 5.0]);
    let limits = EncodingLimits { minimum: 0, maximum: ny as u16 - 1, center: ny as u16 / 2 };
    let encoding = HeaderEncoding {
        encoded: matrix,
        recon: matrix,
        trajectory: TrajectoryKind::Cartesian,
        steps: [Some(limits), None],
        ..Default::default()
    };
    let xml = Header { encodings: vec![encoding], ..Header::default() }.to_xml();
    let line = |y: usize| raw_file::RawAcquisition {
        steps: [y as u16, 0],
        data: data[y * nx..][..nx].iter().flat_map(|z| [z.re, z.im]).collect(),
        ..Default::default()
    };
    // The even lines, then the odd lines, then line 3 again.
    let order = (0..ny).step_by(2).chain((1..ny).step_by(2)).chain([3]);
    let lines: Vec<_> = order.map(line).collect();
    with_lock(|| raw_file::write(&dir.path("scan.h5"), &xml, &lines));
    let exact = inverse_fft(&data, [nx, ny]);
    // The repeated line counts half, so that the image is right.
    let warns = |command: &str| {
        let out = dir.run(command);
        let is_warned = out.stderr.lines().count() == 1 && out.stderr.contains("18 acquisitions of an image have 17");
        assert!(out.status == Some(0) && is_warned, "{out:?}");
        out.stdout
    };
    warns("grid scan.h5 -o image.h5");
    assert!(distance(&only_image(&dir.path("image.h5")).data, &exact) < 1e-4);
    warns("cg scan.h5 -o cg.h5 --iterations 20 --tolerance 1e-6");
    assert!(distance(&only_image(&dir.path("cg.h5")).data, &exact) < 1e-3);
    assert!(warns("info scan.h5").contains("cartesian"));
}

#[test]
fn bart_files() {
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
    // The error for a NaN has its coil and sample.
    let mut bad = read_cfl(dir.path("k.cfl")).unwrap();
    bad.data[7296 + 41].im = f32::NAN;
    write_cfl(dir.path("nan.cfl"), &bad.dims, &bad.data).unwrap();
    dir.fails(1, "cg nan.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["coil 1, sample 41", "NaN"]);
    // A file that is shorter than its header announces, and a file without a header.
    fs::copy(dir.path("k.hdr"), dir.path("cut.hdr")).unwrap();
    fs::write(dir.path("cut.cfl"), &fs::read(dir.path("k.cfl")).unwrap()[..5000]).unwrap();
    dir.fails(1, "grid cut.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["cut"]);
    fs::write(dir.path("lone.cfl"), [0; 64]).unwrap();
    dir.fails(1, "grid lone.cfl --trajectory k_traj.cfl --matrix 48,40 -o x.h5", &["lone"]);
}
