//! `recon view`: pages in headless Chromium, and their text.

use crate::io::{write_images, Image, Placement};
use crate::{noise, with_lock, ProgramOutput, TempDir};
use num_complex::Complex;
use recon::atomic_file::write_atomically;
use std::io::Write;
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/view.py");

/// Writes images in the order of acquisition.
fn write(dir: &TempDir, name: &str, images: &[Image]) {
    with_lock(|| write_atomically(|files| write_images(files, &dir.path(name), images))).unwrap();
}

/// Runs the program with arguments that may contain spaces or other characters.
fn run(dir: &TempDir, arguments: &[&str]) -> ProgramOutput {
    let mut command = dir.command("");
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    ProgramOutput { line: arguments.join(" "), status: out.status.code(), stdout, stderr }
}

/// Runs tests/cli/view.py in the folder; `None` if there is no Python 3.
fn script(dir: &TempDir, arguments: &[&str]) -> Option<ProgramOutput> {
    let mut python = Command::new("python3");
    python.arg(SCRIPT).args(arguments).current_dir(&dir.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    python.env("PYTHONDONTWRITEBYTECODE", "1");
    let out = with_lock(|| python.spawn()).ok()?.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    Some(ProgramOutput { line: arguments.join(" "), status: out.status.code(), stdout, stderr })
}

/// Returns whether there are a browser and Python, and prints a line if not.
fn has_browser() -> bool {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let runs = |name: &str| Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = |name: &str| with_lock(|| runs(name)).is_ok_and(|status| status.success());
    let given = std::env::var("RECON_TEST_CHROMIUM").ok();
    if is_there("python3") && (given.is_some() || names.iter().any(|name| is_there(name))) {
        return true;
    }
    // Not eprintln!: the test harness hides its output if the test passes.
    let _ = writeln!(std::io::stderr(), "skipped: pages of recon view in a browser (no chromium, or no python3)");
    false
}

/// Checks pixels of pages against the numbers of the files: magnitudes, phases, differences, all sliders and keys.
#[test]
fn pages_show_the_numbers_of_the_files() {
    if !has_browser() {
        return;
    }
    let dir = TempDir::new();
    let out = script(&dir, &["write", "."]).unwrap();
    assert_eq!(out.status, Some(0), "{out:?}");
    // Two repetitions of three slices, in the order of acquisition.
    let image = |slice: u16, repetition: u16| {
        let first = 1.0 + 100.0 * f32::from(slice) + 1000.0 * f32::from(repetition);
        let data = (0..30).map(|i| Complex::from(first + (i % 5) as f32 + 10.0 * (i / 5) as f32)).collect();
        let mut image = Image::new([5, 6, 1], 1, data).unwrap();
        (image.index.slice, image.index.repetition) = (slice, repetition);
        (image.placement.read_dir, image.placement.phase_dir) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]);
        image.placement.slice_dir = [0.0, 0.0, 1.0];
        image
    };
    let images: Vec<Image> = [0, 1].iter().flat_map(|&r| [2, 0, 1].map(|s| image(s, r))).collect();
    write(&dir, "series.h5", &images);
    dir.ok("view magnitude.npy signed.npy complex.npy small.npy series.h5 -o page.html");
    let out = run(&dir, &["view", "a<b>&\"'.npy", "</script><!--<script>.npy", "-o", "names.html"]);
    assert!(out.status == Some(0) && out.stderr.is_empty(), "{out:?}");
    let out = script(&dir, &["check", "."]).unwrap();
    assert_eq!(out.status, Some(0), "{}\n{}", out.stdout, out.stderr);
    assert_eq!(out.stdout.lines().count(), 7, "{}", out.stdout);
}

/// Returns the text of a page, which is UTF-16 with a byte order mark.
fn page_text(dir: &TempDir, name: &str) -> String {
    let bytes = std::fs::read(dir.path(name)).unwrap();
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    assert_eq!((bytes.len() % 2, units[0]), (0, 0xfeff));
    String::from_utf16(&units[1..]).unwrap()
}

/// Returns the description of the series in a page.
fn page_header(page: &str) -> serde_json::Value {
    let text = page.split("<script type=\"application/json\" id=\"header\">").nth(1).unwrap();
    serde_json::from_str(text.split("</script>").next().unwrap()).unwrap()
}

#[test]
fn pages_need_no_network_and_contain_all_images() {
    let dir = TempDir::new();
    let mut volume = Image::new([4, 3, 2], 3, noise(72, 1)).unwrap();
    volume.fov_mm = [8.0, 3.0, 10.0];
    let mut localizer = Image::new([4, 3, 1], 1, noise(12, 2)).unwrap();
    localizer.index.slice = 1;
    let mut sagittal = localizer.clone();
    sagittal.index.slice = 2;
    sagittal.placement = Placement {
        read_dir: [0.0, 1.0, 0.0],
        phase_dir: [0.0, 0.0, -1.0],
        slice_dir: [1.0, 0.0, 0.0],
        ..Placement::default()
    };
    write(&dir, "a.h5", &[volume.clone(), localizer, sagittal]);
    write(&dir, "a.cfl", &[volume]);
    // The file of two sizes causes a warning.
    let out = dir.run("view a.h5 a.cfl -o page.HTML");
    assert!(out.status == Some(0) && out.stderr.contains("2 series of images"), "{out:?}");
    let page = page_text(&dir, "page.HTML");
    for word in ["http:", "https:", "//cdn", "src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!page.contains(word), "the page contains {word}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("default-src 'none'"));
    for marker in ["@STYLE@", "@HEADER@", "@DATA@", "@SCRIPT@"] {
        assert!(!page.contains(marker), "{marker}");
    }
    let header = page_header(&page);
    let series = header["series"].as_array().unwrap();
    // The volume, an image without an orientation, and one with; then the volume of the other file.
    let names: Vec<&str> = series.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.h5, series 0", "a.h5, series 1", "a.h5, series 2", "a.cfl"]);
    assert_eq!(series[0]["size"], serde_json::json!([4, 3, 2]));
    assert_eq!((&series[0]["coils"], &series[0]["kind"]), (&3.into(), &"complex".into()));
    assert_eq!(series[0]["voxel"], serde_json::json!([2.0, 1.0, 5.0]));
    assert!(series[3]["voxel"].is_null());
    assert_eq!(series.iter().map(|s| s["planes"].as_array().unwrap().len()).collect::<Vec<_>>(), [3, 1, 1, 3]);
    // Voxels: three volumes of two slices, each with phases.
    let bytes = series[0]["bytes"].as_array().unwrap();
    assert_eq!((bytes.len(), bytes[2].as_array().unwrap().len()), (3, 4));
    assert_eq!(page.matches("<script type=\"text/plain\" id=\"d0-").count(), 3);
    // Fewer bits.
    dir.ok("view a.cfl -o small.html --bits 5,0");
    let header = page_header(&page_text(&dir, "small.html"));
    let series = &header["series"][0];
    assert_eq!((&series["highest"], &series["phaseLevels"]), (&31.into(), &0.into()));
}

/// A volume of noise has fewer bits, so that the page has at most 20 MB, and causes a warning.
#[test]
fn large_pages_have_fewer_bits() {
    let dir = TempDir::new();
    let side = 256;
    write(&dir, "noise.cfl", &[Image::new([side; 3], 1, noise(side * side * side, 3)).unwrap()]);
    let out = dir.run("view noise.cfl -o page.html");
    assert!(out.status == Some(0) && out.stderr.matches('\n').count() == 1, "{out:?}");
    assert!(out.stderr.contains("the page would otherwise have more than 20 MB: --bits 8,6 makes"), "{out:?}");
    let size = std::fs::metadata(dir.path("page.html")).unwrap().len();
    assert!((14_000_000..=20_000_000).contains(&size), "{size}");
}

#[test]
fn wrong_arguments() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --truth truth.h5 -o scan.h5");
    dir.fails(1, "view scan.h5 -o page.html", &["scan.h5", "reconstruct it first"]);
    dir.fails(1, "view truth.h5 -o page.png", &["page.png", ".html"]);
    dir.fails(1, "view truth.h5 -o page", &["page", ".html"]);
    dir.fails(1, "view truth.png -o page.html", &["truth.png", ".h5"]);
    dir.fails(1, "view nothing.h5 -o page.html", &["nothing.h5"]);
    dir.fails(1, "view truth.h5 -o nowhere/page.html", &["nowhere"]);
    dir.fails(1, "view truth.h5 -o page.html --bits 9,6", &["--bits 9,6"]);
    dir.fails(1, "view truth.h5 -o page.html --bits 8", &["--bits 8", "8,6"]);
    dir.fails(2, "view truth.h5 -o page.html --bits x", &["--bits"]);
    dir.fails(2, "view -o page.html", &["FILE"]);
    dir.fails(2, "view truth.h5", &["--output"]);
    let mut image = Image::new([2, 2, 1], 1, vec![Complex::from(1.0); 4]).unwrap();
    image.data[1].re = f32::NAN;
    std::fs::write(dir.path("nan.hdr"), "# Dimensions\n2 2 1\n").unwrap();
    let numbers: Vec<u8> = image.data.iter().flat_map(|z| [z.re, z.im]).flat_map(f32::to_le_bytes).collect();
    std::fs::write(dir.path("nan.cfl"), numbers).unwrap();
    dir.fails(1, "view nan.cfl -o page.html", &["nan.cfl", "NaN"]);
}
