//! Files of `make install`: enough to build and run programs in C and C++, with the shared and the static library,
//! found by pkg-config and by CMake.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}:\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// Returns the folder of the library that this test was built with, so that it need not be built again.
fn built() -> PathBuf {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    assert!(deps.join("librecon.so").exists(), "no librecon.so in {}", deps.display());
    deps
}

fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn make(target: &str, prefix: &Path, more: &[String]) {
    let mut command = Command::new("make");
    command.current_dir(root()).arg(target).arg(format!("PREFIX={}", prefix.display()));
    run(command.arg(format!("BUILT={}", built().display())).args(more));
}

fn pkg_config(prefix: &Path, arguments: &[&str]) -> Vec<String> {
    let path = prefix.join("lib/pkgconfig");
    let text = run(Command::new("pkg-config").env("PKG_CONFIG_PATH", path).args(arguments).arg("recon"));
    text.split_whitespace().map(str::to_owned).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

const PROGRAMS: [(&str, &str, &str); 2] =
    [("cc", "-std=c99", "examples/c/recon.c"), ("c++", "-std=c++11", "examples/cpp/recon.cpp")];

/// Runs an example and checks that its images are good.
fn check_output(program: &Path, libraries: Option<&Path>) {
    let mut command = Command::new(program);
    command.env_remove("LD_LIBRARY_PATH");
    if let Some(folder) = libraries {
        command.env("LD_LIBRARY_PATH", folder);
    }
    let text = run(&mut command);
    let error = |method: &str| -> f64 {
        let line = text.lines().find(|l| l.starts_with(method)).unwrap_or_else(|| panic!("no {method} in:\n{text}"));
        line.split("error ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
    };
    let (gridded, solved) = (error("gridding"), error("conjugate gradients"));
    assert!(gridded > 10.0 && gridded < 30.0 && solved > 5.0 && solved < 20.0, "{text}");
    assert!(text.contains("iteration 20") && text.contains("after 20 iterations"), "{text}");
}

/// Returns the libraries that a file requires from the loader.
fn needed(file: &Path) -> Vec<String> {
    let text = run(Command::new("readelf").arg("-d").arg(file));
    let between = |line: &str| line.split(['[', ']']).nth(1).map(str::to_owned);
    text.lines().filter(|l| l.contains("(NEEDED)")).filter_map(between).collect()
}

#[test]
fn installed_copy_serves_c_and_cpp() {
    let folder = fresh("install");
    let prefix = folder.join("prefix");
    make("install", &prefix, &[]);
    let lib = prefix.join("lib");

    // Nothing but the C library.
    let shared = lib.join("librecon.so");
    for name in needed(&shared) {
        let known = ["libc.so", "libm.so", "libgcc_s.so", "libpthread.so", "libdl.so", "librt.so", "ld-linux"];
        assert!(known.iter().any(|k| name.starts_with(k)), "librecon.so needs {name}");
    }
    let abi = concat!("librecon.so.", env!("RECON_ABI")).to_owned();
    assert!(run(Command::new("readelf").arg("-d").arg(&shared)).contains(&format!("soname: [{abi}]")));
    assert!(lib.join(&abi).exists());
    // It exports only the C API, with the version node.
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&shared));
    let node = concat!("@@RECON_", env!("RECON_ABI"));
    let versioned = symbols.lines().filter(|l| !l.contains(" A ")).filter_map(|l| l.split_whitespace().nth(2));
    let names: Vec<&str> = versioned.map(|name| name.strip_suffix(node).expect(name)).collect();
    let header = std::fs::read_to_string(prefix.join("include/recon.h")).unwrap();
    for name in &names {
        assert!(name.starts_with("recon_") && header.contains(&format!("{name}(")), "{name} is exported");
    }
    // A function's declaration begins its line with the type, and its name is before the first bracket.
    let starts = header.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let before = starts.filter_map(|line| line.split_once('(')).map(|(before, _)| before);
    let declared = before.filter(|b| !b.starts_with("typedef") && b.contains("recon_")).count();
    assert_eq!(names.len(), declared, "{names:?}");
    assert!(declared > 50);

    assert_eq!(pkg_config(&prefix, &["--modversion"]), [env!("CARGO_PKG_VERSION")]);
    let warnings = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"];
    for (compiler, standard, source) in PROGRAMS {
        let program = folder.join(format!("shared-{compiler}"));
        let mut command = Command::new(compiler);
        command.arg(standard).args(warnings).arg(root().join(source)).arg("-o").arg(&program);
        run(command.args(pkg_config(&prefix, &["--cflags", "--libs"])));
        assert!(needed(&program).contains(&abi));
        check_output(&program, Some(&lib));
    }

    // If only the static library is installed, the same names refer to it.
    let only_static = folder.join("static");
    make("install", &only_static, &[]);
    for file in files(&only_static.join("lib")) {
        if file.file_name().unwrap().to_str().unwrap().contains(".so") {
            std::fs::remove_file(file).unwrap();
        }
    }
    for (compiler, standard, source) in PROGRAMS {
        let program = folder.join(format!("static-{compiler}"));
        let mut command = Command::new(compiler);
        command.arg(standard).args(warnings).arg(root().join(source)).arg("-o").arg(&program);
        run(command.args(pkg_config(&only_static, &["--static", "--cflags", "--libs"])));
        assert!(!needed(&program).iter().any(|n| n.contains("recon")));
        check_output(&program, None);
    }

    // A program without any shared library, with the same pkg-config file.
    for (compiler, standard, source) in PROGRAMS {
        let program = folder.join(format!("no-shared-{compiler}"));
        let mut command = Command::new(compiler);
        command.arg("-static").arg(standard).args(warnings).arg(root().join(source)).arg("-o").arg(&program);
        run(command.args(pkg_config(&prefix, &["--static", "--cflags", "--libs"])));
        assert_eq!(needed(&program), Vec::<String>::new());
        check_output(&program, None);
    }

    cmake(&folder, &prefix);

    // An installation into a staging folder, and uninstallation.
    // The library for MATLAB's functions is installed if it was built, and its place is taken by an empty file here.
    let stage = fresh("stage");
    let built_with_files = fresh("built");
    for name in ["librecon.a", "librecon.so"] {
        std::os::unix::fs::symlink(built().join(name), built_with_files.join(name)).unwrap();
    }
    std::fs::write(built_with_files.join("librecon_files.a"), "").unwrap();
    let more = [format!("DESTDIR={}", stage.display()), format!("BUILT={}", built_with_files.display())];
    make("install", Path::new("/opt/recon"), &more);
    assert!(stage.join("opt/recon/lib/librecon_files.a").exists());
    let config = std::fs::read_to_string(stage.join("opt/recon/lib/pkgconfig/recon.pc")).unwrap();
    assert!(config.contains("prefix=/opt/recon\n") && !config.contains('@'), "{config}");
    make("uninstall", Path::new("/opt/recon"), &[format!("DESTDIR={}", stage.display())]);
    assert_eq!(files(&stage), Vec::<PathBuf>::new());
    for folder in [folder, stage, built_with_files] {
        std::fs::remove_dir_all(folder).unwrap();
    }
}

fn cmake(folder: &Path, prefix: &Path) {
    if Command::new("cmake").arg("--version").output().is_err() {
        // Bypasses the test harness, which would hide it.
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: the CMake package, because there is no cmake here");
        return;
    }
    let project = folder.join("cmake");
    std::fs::create_dir_all(&project).unwrap();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(example C CXX)\nset(CMAKE_CXX_STANDARD 11)\n\
         find_package(recon {version} REQUIRED)\nforeach(kind recon static)\n\
         add_executable(c-${{kind}} {root}/examples/c/recon.c)\ntarget_link_libraries(c-${{kind}} recon::${{kind}})\n\
         add_executable(cpp-${{kind}} {root}/examples/cpp/recon.cpp)\n\
         target_link_libraries(cpp-${{kind}} recon::${{kind}})\nendforeach()\n",
        version = env!("CARGO_PKG_VERSION"),
        root = root().display()
    );
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let build = project.join("build");
    let search = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    run(Command::new("cmake").arg("-S").arg(&project).arg("-B").arg(&build).arg(search));
    run(Command::new("cmake").arg("--build").arg(&build));
    for name in ["c-recon", "cpp-recon", "c-static", "cpp-static"] {
        check_output(&build.join(name), None);
        let shared = needed(&build.join(name)).iter().any(|n| n.starts_with("librecon.so"));
        assert_eq!(shared, name.ends_with("recon"), "{name}");
    }
}
