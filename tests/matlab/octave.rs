//! The MATLAB package in GNU Octave, and in MATLAB if it is installed. The MEX file is built with both layouts of
//! complex numbers, and matlab/tests runs with each.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[path = "../common/mod.rs"]
mod common;
use common::documents::{blocks_in, documents, Block};
use common::{printed, root, run, say};

fn found(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Returns whether an Octave that can build MEX files is installed. Prints a line if not.
fn octave() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let both = found("octave-cli") && found("mkoctfile");
        if !both {
            say("skipped: the tests of MATLAB's side, because there is no octave-cli with mkoctfile here");
        }
        both
    })
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("matlab").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the library recon of the same build as these tests.
fn library() -> PathBuf {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("librecon.a");
    assert!(library.exists(), "no {}", library.display());
    library
}

/// Returns the library recon_files of the same build as these tests: the newest, since its name has a number for the
/// options of the build.
fn files_library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("librecon_files") && name.ends_with(".a")
    };
    let all = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_library);
    let newest = all.max_by_key(|path| path.metadata().unwrap().modified().unwrap());
    newest.unwrap_or_else(|| panic!("no librecon_files in {}", folder.display()))
}

/// Runs Octave without the user's settings, in the folder of the MEX file, with the package on its path.
fn octave_command(mex: &Path, code: &str) -> Command {
    let mut command = Command::new("octave-cli");
    let matlab = root().join("matlab");
    let code = format!("addpath('{}'); addpath('{}'); {code}", mex.display(), matlab.display());
    command.args(["--norc", "--no-history", "--eval", &code]).current_dir(mex).env("HOME", mex).env_remove("DISPLAY");
    command
}

/// Returns the folder of the MEX file with this layout of complex numbers. It is built once.
fn mex_file(separate: bool) -> PathBuf {
    static BUILT: Mutex<[bool; 2]> = Mutex::new([false; 2]);
    // Names of users' folders contain spaces.
    let folder = folder(if separate { "separate complex" } else { "interleaved" });
    let mut built = BUILT.lock().unwrap_or_else(|e| e.into_inner());
    if !built[usize::from(separate)] {
        let _ = std::fs::remove_file(folder.join("recon_mex.mex"));
        // As in README.md: a folder of the path may be relative.
        let code = format!(
            "rmpath('{0}/matlab'); cd('{0}'); addpath matlab; \
             recon.build('Library', '{1}', 'Output', '{2}', 'Separate', {separate});",
            root().display(),
            files_library().display(),
            folder.display()
        );
        let printed = run(&mut octave_command(&folder, &code));
        assert!(!printed.contains("warning"), "{printed}");
        assert!(folder.join("recon_mex.mex").exists(), "{printed}");
        // The compiler's object files are deleted.
        let objects = |folder: &Path| {
            let names = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.ends_with(".o")).collect::<Vec<_>>()
        };
        assert_eq!([objects(&folder), objects(&root().join("matlab/mex"))].concat(), Vec::<String>::new());
        built[usize::from(separate)] = true;
    }
    folder
}

/// Writes new random input, and the results of the C API for it.
fn reference() -> &'static Path {
    static FILES: OnceLock<PathBuf> = OnceLock::new();
    FILES.get_or_init(|| {
        let files = folder("reference");
        let program = files.join("program");
        let mut command = Command::new("cc");
        command.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(root().join("include"));
        command.arg(root().join("matlab/tests/reference.c")).arg(library());
        run(command.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc", "-o"]).arg(&program));
        let seed = std::env::var("RECON_TEST_SEED")
            .unwrap_or_else(|_| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string());
        run(Command::new(&program).arg(&files).arg(&seed));
        files
    })
}

fn run_tests(separate: bool) {
    if !octave() {
        return;
    }
    let mex = mex_file(separate);
    let mut command = octave_command(&mex, &format!("addpath('{}'); run_tests", root().join("matlab/tests").display()));
    let output = command.env("RECON_TEST_MEX", &mex).env("RECON_TEST_REFERENCE", reference()).output().unwrap();
    let text = printed(&output);
    assert!(output.status.success() && text.contains(" passed, 0 failed, 0 skipped"), "{}\n{text}", output.status);
}

#[test]
fn octave_with_interleaved_complex() {
    run_tests(false);
}

#[test]
fn octave_with_separate_complex() {
    run_tests(true);
}

#[test]
fn mex_file_needs_nothing_and_hides_everything() {
    if !octave() {
        return;
    }
    let mex = mex_file(false).join("recon_mex.mex");
    let dynamic = run(Command::new("readelf").arg("-d").arg(&mex));
    for line in dynamic.lines().filter(|l| l.contains("(NEEDED)")) {
        let known =
            ["libc.so", "libm.so", "libgcc_s.so", "libpthread", "libdl", "librt", "libutil", "ld-linux", "liboct"];
        assert!(known.iter().any(|k| line.contains(k)) || line.contains("libstdc++"), "the MEX file needs {line}");
    }
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&mex));
    let names: Vec<&str> = symbols.lines().filter_map(|l| l.split_whitespace().nth(2)).collect();
    assert!(names.contains(&"mexFunction"), "{names:?}");
    // mkoctfile adds the second name.
    assert!(names.iter().all(|n| ["mexFunction", "__mx_has_interleaved_complex__"].contains(n)), "{names:?}");
}

/// Checks that the MEX file's sources compile under MATLAB's conditions, without and with gpuArrays. The functions of
/// gpuArrays are declared in matlab/tests/mock.
#[test]
fn matlab_conditions_compile() {
    if !octave() {
        return;
    }
    let headers = run(Command::new("mkoctfile").args(["-p", "INCFLAGS"]));
    for condition in ["-URECON_GPUARRAY", "-DRECON_GPUARRAY"] {
        let mut command = Command::new("cc");
        command.args(["-fsyntax-only", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        command.args([condition, "-DMX_HAS_INTERLEAVED_COMPLEX=1"]).args(headers.split_whitespace());
        command.arg("-I").arg(root().join("matlab/tests/mock")).arg("-I").arg(root().join("include"));
        let sources = std::fs::read_dir(root().join("matlab/mex")).unwrap().map(|f| f.unwrap().path());
        run(command.args(sources.filter(|path| path.extension().is_some_and(|e| e == "c"))));
    }
}

/// Waits until a process has computed for two seconds more: long after the start of a call, also on a busy machine, and
/// long before its end.
fn wait_for_work(process: u32) {
    // Fields 14 and 15 are the time in hundredths of a second, and field 2 is a name in brackets.
    let seconds = || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
    };
    let (begun, waits_since) = (seconds(), Instant::now());
    let has_worked = || Some(seconds()? >= begun? + 2.0);
    while has_worked() == Some(false) && waits_since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    if begun.is_none() {
        std::thread::sleep(Duration::from_secs(3));
    }
}

/// Checks that Ctrl-C ends a long computation with an error, also during a progress function, and that Octave
/// continues.
#[test]
fn ctrl_c_cancels() {
    if !octave() {
        return;
    }
    for call in [
        "recon.cg(k, d, [32 32 32], 'Iterations', 1e6, 'Progress', @(p) 0, 'Device', 'cpu')",
        "recon.cg(k, d, [32 32 32], 'Iterations', 1e6, 'Device', 'cpu')",
        "recon.fhd(k, d, [32 32 32], 'Method', 'exact', 'Device', 'cpu')",
        "recon.fhd(k, d(:, 1), [32 32 32], 'Voxels', rand(8e6, 3), 'Device', 'cpu')",
        "recon.density(k, [32 32 32], 'Iterations', 1e6, 'Change', 1e-300, 'Device', 'cpu')",
        "recon.fieldmap(reshape(d, [250 200 200 2]), [250 200 200], [0.004 0.006], 'Threshold', 0, 'Smoothing', 1e4)",
    ] {
        let code = format!(
            "k = rand(50000, 3) - 0.5; d = complex(randn(50000, 400), randn(50000, 400)); \
             fdisp(stderr, 'running'); \
             try, {call}; \
             catch e, fdisp(stderr, e.identifier), end; \
             fdisp(stderr, recon_mex('plans')); x = recon.fhd(k, d(:, 1), [8 8 8]); fdisp(stderr, size(x)); \
             fdisp(stderr, 'alive')"
        );
        let mut command = octave_command(&mex_file(false), &code);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("running") {
            line.clear();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "Octave ended early");
        }
        wait_for_work(child.id());
        let asked = Instant::now();
        run(Command::new("kill").args(["-INT", &child.id().to_string()]));
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() && rest.contains("recon:Cancelled") && rest.contains("alive"), "{status}\n{rest}");
        let plans = rest.lines().nth(1).unwrap_or_default().trim();
        assert_eq!(plans, "0", "plans are left:\n{rest}");
        // A shared machine may stop for seconds. Without Ctrl-C the call takes minutes, a field map half a minute.
        assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
    }
}

/// Checks that signals other than Ctrl-C do not end a call. An example is SIGCHLD, at the end of a child of Octave's
/// `system`.
#[test]
fn other_signals_do_not_cancel() {
    if !octave() {
        return;
    }
    // Children end one after the other while recon computes, enough of them that one ends during each call, also on a
    // fast machine.
    let code = "k = rand(50000, 3) - 0.5; d = complex(randn(50000, 8), randn(50000, 8)); ended = 0; \
                for i = 1:4, \
                  pids = []; \
                  for t = 1:8, pids(t) = system(sprintf('sleep %.1f', t / 10), false, 'async'); end; \
                  started = tic(); \
                  while toc(started) < 1, x = recon.fhd(k, d, [32 32 32], 'Method', 'exact', 'Device', 'cpu'); end; \
                  y = recon.cg(k, d, [16 16 16], 'Iterations', 20, 'Progress', @(p) 0, 'Device', 'cpu'); \
                  for pid = pids, ended = ended + (waitpid(pid) == pid); end; \
                end; \
                fdisp(stderr, sprintf('%d children ended, %d voxels', ended, numel(x)))";
    let printed = printed(&octave_command(&mex_file(false), code).output().unwrap());
    assert!(printed.contains("32 children ended, 262144 voxels"), "{printed}");
}

/// Checks that the examples draw their pictures without a display.
#[test]
fn examples_draw() {
    if !octave() {
        return;
    }
    let mex = mex_file(false);
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("matlab/examples")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".m") else { continue };
        let pictures = folder(&format!("pictures-{name}"));
        for old in std::fs::read_dir(&pictures).unwrap() {
            std::fs::remove_file(old.unwrap().path()).unwrap();
        }
        let examples = root().join("matlab/examples");
        run(&mut octave_command(&mex, &format!("addpath('{}'); {name}('{}')", examples.display(), pictures.display())));
        let files: Vec<_> = std::fs::read_dir(&pictures).unwrap().map(|f| f.unwrap().path()).collect();
        assert!(!files.is_empty(), "{name} wrote no picture");
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 5_000, "{} is no picture", file.display());
        }
        count += 1;
    }
    assert!(count >= 3, "{count} examples");
}

/// Blocks of the documents that this test does not run, by their first lines, and the test that runs them.
const NOT_RUN_HERE: [(&str, &str); 8] = [
    ("addpath matlab", "mex_file of this file builds by the same function, recon.build"),
    ("x = lsqr(@(x, flag) E.afun", "MATLAB only: Octave 7.3 has no lsqr; afun is tested in matlab/tests"),
    ("E = parallel.pool.Constant(", "MATLAB only: the Parallel Computing Toolbox"),
    ("radial_coils('docs/matlab')", "examples_draw"),
    ("spiral('docs/matlab')", "examples_draw"),
    ("propeller('docs/matlab')", "examples_draw"),
    ("realtime('docs/matlab')", "examples_draw"),
    ("offresonance('docs/matlab')", "examples_draw"),
];

/// Blocks that show lines of an example, by their first lines, and the example, which examples_draw runs.
const EXCERPTS: [(&str, &str); 4] = [
    ("gridding = recon.combine(recon.grid(k, d, n), n);", "radial_coils.m"),
    ("none = recon.grid(k, d, n, 'Weights', ones(size(d)));", "spiral.m"),
    ("gradient = E.normal(x) / L - b;", "propeller.m"),
    ("with = recon.cg(k, d, n, 'Iterations', 12, 'FieldMap', f, 'Times', t);", "offresonance.m"),
];

/// Checks that each line of an excerpt is a line of the example.
fn check_excerpt(block: &Block, example: &str) {
    let text = std::fs::read_to_string(root().join("matlab/examples").join(example)).unwrap();
    for line in block.lines.iter().map(|line| line.trim()) {
        assert!(text.lines().any(|l| l.trim() == line), "{}: {line:?} is not in {example}", block.place);
    }
}

/// Returns the functions at the end of a block, which Octave requires before their use, and the statements.
fn functions_first(block: &Block) -> [String; 2] {
    let text = block.text();
    match text.find("\nfunction ") {
        Some(at) => [text[at..].to_owned(), text[..at + 1].to_owned()],
        None => [String::new(), text],
    }
}

/// Runs the blocks of each document in order, in one session that begins in an empty folder.
#[test]
fn blocks_of_the_documents_run() {
    let mut unused: Vec<&str> = NOT_RUN_HERE.iter().chain(&EXCERPTS).map(|(start, _)| *start).collect();
    for document in documents() {
        let mut script = "1;\nset(0, 'defaultfigurevisible', 'off');\n".to_owned();
        let mut count = 0;
        for block in blocks_in(&document, "matlab") {
            let starts = |(start, _): &&(&str, &str)| block.first_line().starts_with(start);
            if let Some((start, example)) = EXCERPTS.iter().find(starts) {
                check_excerpt(&block, example);
                unused.retain(|u| u != start);
            } else if let Some((start, _)) = NOT_RUN_HERE.iter().find(starts) {
                unused.retain(|u| u != start);
            } else {
                let [functions, statements] = functions_first(&block);
                script += &format!("{functions}fdisp(stderr, 'block {}');\n{statements}", block.place);
                count += 1;
            }
        }
        if count == 0 || !octave() {
            continue;
        }
        let files = folder(&format!("documents/{}", document.replace('/', "-")));
        std::fs::remove_dir_all(&files).unwrap();
        std::fs::create_dir_all(&files).unwrap();
        script += "fdisp(stderr, 'all blocks ran');\n";
        let path = folder("documents").join("blocks.m");
        std::fs::write(&path, script).unwrap();
        let mut command = octave_command(&mex_file(false), &format!("source('{}')", path.display()));
        let printed = run(command.current_dir(&files));
        assert!(printed.contains("all blocks ran"), "{document}:\n{printed}");
        let warns = |line: &str| line.starts_with("warning: ") && !line.contains("gnuplot");
        assert!(!printed.lines().any(warns), "{document} has examples that warn:\n{printed}");
    }
    assert!(unused.is_empty(), "no document has the blocks that begin so: {unused:?}");
}

/// Makes an image of a raw file with the program and with Octave, and checks that they have the same bits. `resize` is
/// Octave's code for a scan whose two matrices differ.
fn compare_with_the_program(scan: &Path, folder: &Path, resize: &str) {
    let [by_program, by_octave] = ["program.cfl", "octave.cfl"].map(|name| folder.join(name));
    run(Command::new(env!("CARGO_BIN_EXE_recon")).args(["cg", "--device", "cpu"]).arg(scan).arg("-o").arg(&by_program));
    let code = format!(
        "[k, d, info] = recon.read('{}'); x = recon.cg(k, d, info.matrix, 'Maps', 'data', 'Device', 'cpu'); \
         {resize} recon.write('{}', x, info)",
        scan.display(),
        by_octave.display()
    );
    run(&mut octave_command(&mex_file(false), &code));
    let [program, octave] = [&by_program, &by_octave].map(|path| std::fs::read(path).unwrap());
    assert!(program.len() > 10_000 && program == octave, "{}: the images differ", scan.display());
}

/// Checks that recon.read and recon.cg are the whole program: one call each.
#[test]
fn two_calls_give_the_programs_image() {
    if !octave() {
        return;
    }
    let folder = folder("two-calls");
    let scan = folder.join("scan.h5");
    let mut simulate = Command::new(env!("CARGO_BIN_EXE_recon"));
    simulate.args(["simulate", "--matrix", "64,64", "--trajectory", "radial", "--shots", "48", "--samples", "128"]);
    run(simulate.args(["--coils", "4", "-o"]).arg(&scan));
    compare_with_the_program(&scan, &folder, "");
    let other = folder.join("other.h5");
    let code = format!(
        "[k, d, info] = recon.read('{}'); info.header = ''; info.reconMatrix = [40 50]; \
         info.reconFov = info.fov .* [0.5 1 1]; recon.write('{}', k, d, info)",
        scan.display(),
        other.display()
    );
    run(&mut octave_command(&mex_file(false), &code));
    compare_with_the_program(&other, &folder, "x = recon.resizeimage(x, info);");
    let data = std::env::var_os("RECON_DATA_DIR").map_or(root().join("../shared/data"), PathBuf::from);
    let brain = data.join("brain_8ch_radial96.h5");
    match brain.exists() {
        true => compare_with_the_program(&brain, &folder, ""),
        false => say(&format!("skipped: {} is not there (set RECON_DATA_DIR)", brain.display())),
    }
}

/// Reads a raw file and a file of images with h5py and the package ismrmrd, and prints their numbers.
const PYTHON_READER: &str = r#"
import sys, h5py, ismrmrd, numpy
scan = ismrmrd.Dataset(sys.argv[1], "dataset", create_if_needed=False)
print(scan.number_of_acquisitions())
for i in range(scan.number_of_acquisitions()):
    shot = scan.read_acquisition(i)
    print(shot.idx.slice, list(shot.position), shot.sample_time_us, shot.traj.ravel().tolist(),
          shot.data.real.ravel().tolist(), shot.data.imag.ravel().tolist())
xml = ismrmrd.xsd.CreateFromDocument(scan.read_xml_header())
space = xml.encoding[0].encodedSpace
print(space.matrixSize.x, space.matrixSize.y, space.fieldOfView_mm.x)
scan.close()
with h5py.File(sys.argv[2], "r") as file:
    image = file["dataset/image_0/data"][:]
    print(image.shape, image["real"].ravel().tolist(), image["imag"].ravel().tolist())
"#;

/// Checks files that recon.write wrote with readers of other projects.
#[test]
fn other_readers_read_the_same_numbers() {
    let python = std::env::var_os("RECON_TEST_PYTHON").unwrap_or("python3".into());
    let has_packages = Command::new(&python).args(["-c", "import h5py, ismrmrd"]).output();
    if !has_packages.is_ok_and(|out| out.status.success()) {
        say("skipped: files of recon.write in h5py and ismrmrd (not installed; RECON_TEST_PYTHON)");
        return;
    }
    if !octave() {
        return;
    }
    let folder = folder("other-readers");
    let code = format!(
        "cd('{}'); k = reshape((0:7) / 16 - 0.25, [2 2 2]); d = reshape(complex(1:8, -(1:8)), [2 2 2]); \
         info = struct('matrix', [8 6], 'fov', [80 60 5], 'slice', 3, 'position', [1 2 3], 'times', [0 1 0 1] * 1e-5); \
         recon.write('scan.h5', k, d, info); recon.write('image.h5', reshape(complex(1:6, 2:7), [1 2 3]))",
        folder.display()
    );
    run(&mut octave_command(&mex_file(false), &code));
    let read = run(Command::new(&python).args(["-c", PYTHON_READER, "scan.h5", "image.h5"]).current_dir(&folder));
    // Samples of a shot are adjacent, coordinates of a sample too, and the last axis of images is x.
    let expected = [
        "2",
        "3 [1.0, 2.0, 3.0] 10.0 [-0.25, 0.0, -0.1875, 0.0625] [1.0, 2.0, 5.0, 6.0] [-1.0, -2.0, -5.0, -6.0]",
        "3 [1.0, 2.0, 3.0] 10.0 [-0.125, 0.125, -0.0625, 0.1875] [3.0, 4.0, 7.0, 8.0] [-3.0, -4.0, -7.0, -8.0]",
        "8 6 80.0",
        "(1, 1, 3, 2, 1) [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]",
    ];
    assert_eq!(read.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn matlab_itself() {
    if !found("matlab") {
        say("skipped: the tests in MATLAB itself, because there is no matlab here");
        return;
    }
    let mex = folder("matlab");
    let code = format!(
        "addpath('{0}'); addpath('{1}'); addpath('{1}/tests'); \
         recon.build('Library', '{2}', 'Output', '{0}'); run_tests",
        mex.display(),
        root().join("matlab").display(),
        files_library().display()
    );
    let mut command = Command::new("matlab");
    let command = command.args(["-batch", &code]).env("RECON_TEST_MEX", &mex).env("RECON_TEST_REFERENCE", reference());
    let printed = run(command.current_dir(&mex));
    assert!(printed.contains(" passed, 0 failed, 0 skipped"), "{printed}");
}
