//! Damaged files of all formats: the program ends with an error of one line or with success. It never crashes, hangs,
//! or writes part of an output.

use crate::common::Random;
use crate::{noise, scan, space, with_lock, write_dataset, TempDir};
use recon::trajectory::SpokeOrder;
use recon::Trajectory;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The number of files of each format. The environment variable RECON_TEST_DAMAGED sets a different number.
const FILES: usize = 40;
/// Maximum time of a run.
const LONGEST: Duration = Duration::from_secs(20);

/// Formats: name, files of which one is damaged, and a command that reads BAD and writes OUT.
const FORMATS: [(&str, &[&str], &str); 8] = [
    ("ISMRMRD raw data", &["scan.h5"], "grid BAD -o OUT"),
    ("ISMRMRD images", &["truth.h5"], "compare BAD truth.h5 --picture OUT.png"),
    ("HDF5, what is in it", &["scan.h5", "truth.h5"], "info BAD"),
    (".cfl and .hdr", &["k.cfl", "k.hdr"], "grid BAD --trajectory k_traj.cfl --matrix 16,16 -o OUT"),
    (".npy", &["truth.npy"], "compare BAD truth.h5 --picture OUT.png"),
    (".nii", &["truth.nii"], "compare BAD truth.h5 --picture OUT.png"),
    (".nii.gz", &["truth.nii.gz"], "compare BAD truth.h5 --picture OUT.png"),
    ("saved Q", &["q.bin"], "cg scan.h5 --iterations 1 --load-q BAD -o OUT"),
];

/// The result of one run.
struct RunResult {
    success: bool,
    time: Duration,
}

/// Truncates the bytes, or changes one to ten of them. Returns a description of the damage.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    if random.below(5) == 0 {
        bytes.truncate(random.below(bytes.len()));
        return format!("cut to {}", bytes.len());
    }
    let changes: Vec<String> = (0..=random.below(10))
        .map(|_| {
            let (at, value) = (random.below(bytes.len()), random.below(256) as u8);
            bytes[at] = value;
            format!("{at}: {value}")
        })
        .collect();
    format!("bytes changed: {}", changes.join(", "))
}

/// Runs a command that may hang. Returns `None` if it does.
fn run(command: &mut Command) -> Option<(std::process::ExitStatus, String, Duration)> {
    let start = Instant::now();
    let mut child = with_lock(|| command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()).unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some((status, reader.join().unwrap().unwrap(), start.elapsed()));
        }
        if start.elapsed() > LONGEST {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn attempt(good: &TempDir, format: usize, seed: u64) -> Result<RunResult, String> {
    let (_, names, line) = FORMATS[format];
    let mut random = Random::of(seed);
    let dir = TempDir::new();
    for entry in fs::read_dir(&good.0).unwrap() {
        let path = entry.unwrap().path();
        fs::hard_link(&path, dir.path(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let name = names[random.below(names.len())];
    let mut bytes = fs::read(dir.path(name)).unwrap();
    let what = damage(&mut bytes, &mut random);
    fs::remove_file(dir.path(name)).unwrap();
    let bad = format!("bad_{name}");
    // Both files of a pair get the new name.
    let (stem, _) = name.split_once('.').unwrap();
    for pair in names.iter().filter(|n| **n != name && n.split_once('.').unwrap().0 == stem) {
        fs::rename(dir.path(pair), dir.path(&format!("bad_{pair}"))).unwrap();
    }
    fs::write(dir.path(&bad), &bytes).unwrap();
    let truth = dir.path("truth.h5");
    if !truth.exists() {
        fs::hard_link(good.path("truth.h5"), truth).unwrap();
    }
    let before = dir.names();
    let output = if line.contains("OUT.png") { "x.png" } else { "x.h5" };
    let line = line.replace("BAD", &bad).replace("OUT.png", output).replace("OUT", output);
    let failed = |why: &str| Err(format!("{line} (seed {seed}; {name}, {what}): {why}"));
    let Some((status, text, time)) = run(&mut dir.command(&line)) else {
        return failed("it hangs");
    };
    let mut after = dir.names();
    let errors = text.lines().filter(|l| l.starts_with("recon: error: ")).count();
    let lines_known = text.lines().all(|l| l.starts_with("recon: error: ") || l.starts_with("recon: warn: "));
    match status.code() {
        Some(0) => after.retain(|n| n != output),
        Some(1) if errors == 1 && lines_known && !text.contains("defect") => {}
        _ => return failed(&format!("{status}: {text}")),
    }
    if after != before {
        return failed(&format!("it left {after:?} where there was {before:?}"));
    }
    Ok(RunResult { success: status.success(), time })
}

#[test]
fn damaged_files_are_errors() {
    let mut random = Random::fresh();
    println!("seed {}", random.seed);
    let files =
        std::env::var("RECON_TEST_DAMAGED").map_or(FILES, |n| n.parse().expect("RECON_TEST_DAMAGED is a number"));
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 --shots 12 --truth truth.h5 -o scan.h5");
    dir.ok("simulate --matrix 16,16 --truth truth.nii.gz -o k.cfl");
    dir.ok("simulate --matrix 16,16 --truth truth.nii -o other.cfl");
    dir.ok("cg scan.h5 --iterations 1 --save-q q.bin -o image.h5");
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (16, 16), }".to_vec();
    npy.resize(127, b' ');
    npy.push(b'\n');
    npy.extend((0..256).flat_map(|i| (i as f32).to_le_bytes()));
    fs::write(dir.path("truth.npy"), npy).unwrap();
    assert_eq!(dir.run("compare truth.npy truth.h5").status, Some(0));

    let tasks: Vec<(usize, u64)> =
        (0..FORMATS.len() * files).map(|i| (i / files, (random.uniform() * 1e15) as i64 as u64)).collect();
    let (tasks, done) = (Mutex::new(tasks), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| loop {
                let Some((format, seed)) = tasks.lock().unwrap().pop() else { break };
                let result = attempt(&dir, format, seed);
                done.lock().unwrap().push((format, result));
            });
        }
    });
    let done = done.into_inner().unwrap();
    for (format, (name, ..)) in FORMATS.iter().enumerate() {
        let mine: Vec<_> = done.iter().filter(|d| d.0 == format).map(|d| &d.1).collect();
        let runs = || mine.iter().filter_map(|r| r.as_ref().ok());
        let (right, longest) = (runs().filter(|r| r.success).count(), runs().map(|r| r.time).max().unwrap_or_default());
        let wrong = mine.len() - runs().count();
        println!(
            "{name:<20} {:>5} files: {right} read, {} errors, {wrong} faults, longest {:.1} s",
            mine.len(),
            runs().count() - right,
            longest.as_secs_f64()
        );
    }
    let faults: Vec<_> = done.iter().filter_map(|d| d.1.as_ref().err()).cloned().collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Damages the reference of an acquisition to its data: length, heap address and object number.
#[test]
fn damaged_references_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 --shots 12 -o scan.h5");
    let good = fs::read(dir.path("scan.h5")).unwrap();
    let heaps: Vec<usize> = (0..good.len() - 4).filter(|&at| good[at..].starts_with(b"GCOL")).collect();
    let place = (*heaps.last().expect("a heap") as u64).to_le_bytes();
    let reference = (0..good.len() - 12).find(|&at| good[at..].starts_with(&place)).expect("a reference to the heap");
    for (offset, value) in [(-1, 0x7f), (9, 0xff), (11, 1)] {
        let mut bytes = good.clone();
        bytes[reference.checked_add_signed(offset).unwrap()] = value;
        fs::write(dir.path("bad.h5"), bytes).unwrap();
        for line in ["info bad.h5", "grid bad.h5 -o x.h5"] {
            let start = Instant::now();
            dir.fails(1, line, &["bad.h5: ", "damaged"]);
            assert!(start.elapsed() < LONGEST, "{line}: {:?}", start.elapsed());
        }
    }
    assert!(!fs::read_dir(&dir.0).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with("core")));
}

#[test]
fn unusable_files_are_errors() {
    let dir = TempDir::new();
    dir.fails(1, "grid nowhere.h5 -o x.h5", &["nowhere.h5", "(os error 2)"]);
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
    // A number that the test can find in the file: coil 1, shot 2, sample 5.
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
