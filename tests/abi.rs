//! The ABI: programs that were compiled with an older header of the present soname run with today's library.
//!
//! tests/abi/librecon.so.N belongs to the number N of the ABI (Cargo.toml). It contains `abi.xml`, libabigail's dump of
//! all functions, structures and enumerations, and the header of each version since the soname began. CONTRIBUTING.md
//! ("The ABI") says what to do after a change.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

mod common;
use common::{emulated, root, run};

/// The number of the ABI.
const ABI: &str = env!("RECON_ABI");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the folder of the present soname.
fn kept() -> PathBuf {
    root().join("tests/abi").join(format!("librecon.so.{ABI}"))
}

/// Returns the versions whose headers are kept.
fn versions() -> Vec<String> {
    let entries = std::fs::read_dir(kept()).unwrap_or_else(|e| panic!("{}: {e}", kept().display()));
    let folders = entries.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir());
    let mut found: Vec<String> = folders.map(|folder| folder.file_name().into_string().unwrap()).collect();
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

fn present_header() -> String {
    read(root().join("include/recon.h"))
}

/// Returns the C compiler for the tested platform: the command in the variable CC, which make uses too, or else `cc`.
fn compiler() -> Command {
    let line = std::env::var("CC").unwrap_or("cc".into());
    let mut words = line.split_whitespace();
    let mut compiler = Command::new(words.next().unwrap_or("cc"));
    compiler.args(words);
    compiler
}

/// Returns an empty folder for temporary files.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns a header without comments.
fn code_of(header: &str) -> String {
    header.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// Returns the declarations of functions in a header, without the semicolon.
fn prototypes(header: &str) -> Vec<String> {
    let code = code_of(header);
    let start = code.find("extern \"C\" {").expect("functions follow extern \"C\"");
    let statements = code[start..].split(';').map(|text| text.rsplit("\n\n").next().unwrap().trim());
    let functions = statements.map(|text| text.trim_start_matches("RECON_MUST_USE\n").to_owned());
    let found: Vec<String> = functions.filter(|text| text.ends_with(')') && text.contains("recon_")).collect();
    assert!(found.len() > 80, "{found:?}");
    found
}

/// Returns the name of the function that a prototype declares.
fn name_of(prototype: &str) -> &str {
    prototype.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap()
}

/// Builds a library with the functions of a header, which end the process, and with the soname and the version node of
/// the installed library. A caller's view of both is the same, so that older programs can be linked with it. Its debug
/// information describes all types of the header. Returns its path.
fn stub_library(folder: &Path, header: &str) -> PathBuf {
    std::fs::write(folder.join("recon.h"), header).unwrap();
    // No type of this system's C library is in the dump.
    let types = [("char", 8), ("short", 16), ("int", 32), ("long", 64)];
    let integers = types
        .map(|(name, bits)| format!("typedef signed {name} int{bits}_t;\ntypedef unsigned {name} uint{bits}_t;\n"));
    std::fs::write(folder.join("stdint.h"), integers.concat()).unwrap();
    let functions = prototypes(header);
    let bodies: String = functions.iter().map(|f| format!("{f} {{ __builtin_trap(); }}\n")).collect();
    std::fs::write(folder.join("stub.c"), format!("#include <recon.h>\n{bodies}")).unwrap();
    let names: String = functions.iter().map(|f| format!("{};", name_of(f))).collect();
    std::fs::write(folder.join("stub.map"), format!("RECON_{ABI} {{ global: {names} local: *; }};\n")).unwrap();
    let mut compiler = compiler();
    compiler.current_dir(folder).args(["-std=c99", "-w", "-g", "-fno-eliminate-unused-debug-types", "-fPIC"]);
    compiler.args(["-shared", "-nostdinc", "-nostdlib", "-I.", "stub.c", "-o", "librecon.so"]);
    run(compiler.args(["-Wl,--version-script=stub.map", &format!("-Wl,-soname,librecon.so.{ABI}")]));
    std::fs::remove_file(folder.join("stdint.h")).unwrap();
    folder.join("librecon.so")
}

/// Writes libabigail's dump of a header to `to`.
fn write_dump(folder: &Path, header: &str, to: &Path) {
    let library = stub_library(folder, header);
    let options = ["--load-all-types", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs"];
    run(Command::new("abidw").args(options).args(["--type-id-style", "hash", "--out-file"]).arg(to).arg(library));
}

/// Returns the members of each structure in a dump: names, types and offsets in bits.
fn structures(dump: &str) -> BTreeMap<String, Vec<[String; 3]>> {
    let document = roxmltree::Document::parse(dump).unwrap();
    let by_id: BTreeMap<&str, roxmltree::Node> =
        document.descendants().filter_map(|node| Some((node.attribute("id")?, node))).collect();
    let type_of = |node: &roxmltree::Node| {
        let (mut text, mut id) = (String::new(), node.attribute("type-id"));
        while let Some(node) = id.and_then(|id| by_id.get(id)) {
            let name = node.attribute("name").unwrap_or_default();
            text +=
                &format!("{} {name} {} ", node.tag_name().name(), node.attribute("size-in-bits").unwrap_or_default());
            // Pointers and arrays continue with their elements. A named type has its own comparison.
            id = if name.is_empty() || node.has_tag_name("array-type-def") { node.attribute("type-id") } else { None };
        }
        text
    };
    let members = |class: roxmltree::Node| {
        let of_member = |member: roxmltree::Node| {
            let variable = member.children().find(|child| child.has_tag_name("var-decl"))?;
            let offset = member.attribute("layout-offset-in-bits")?.to_owned();
            Some([variable.attribute("name")?.to_owned(), type_of(&variable), offset])
        };
        class.children().filter_map(of_member).collect::<Vec<_>>()
    };
    let classes = document.descendants().filter(|node| node.has_tag_name("class-decl"));
    let found = classes.filter_map(|class| Some((class.attribute("name")?.to_owned(), members(class))));
    found.filter(|(_, members)| !members.is_empty()).collect()
}

/// Returns the structures to which members were added at the end, and which did not change otherwise. Their first
/// member is the size that a caller knows, so that older callers can use them.
fn grown_structures(before: &str, now: &str) -> Vec<String> {
    let (before, now) = (structures(before), structures(now));
    let is_grown = |name: &str, members: &[[String; 3]]| {
        let of_now = now.get(name).map_or(&[][..], Vec::as_slice);
        members[0][0] == "struct_size" && of_now.len() > members.len() && of_now.starts_with(members)
    };
    before.iter().filter(|(name, members)| is_grown(name, members)).map(|(name, _)| name.clone()).collect()
}

/// Compares two dumps. Returns the changes that break older callers, as abidiff describes them, and whether there are
/// any changes.
fn compare(folder: &Path, before: &Path, now: &Path) -> (Option<String>, bool) {
    let abidiff = |options: &[&str]| {
        let mut command = Command::new("abidiff");
        let output = command.arg("--non-reachable-types").args(options).arg(before).arg(now).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // Bit 0: abidiff failed. Bit 1: wrong arguments. Bits 2 and 3: changes.
        let code = output.status.code().unwrap();
        assert!(code & 3 == 0, "abidiff: {text}");
        (code != 0).then_some(text)
    };
    let grown = grown_structures(&read(before), &read(now));
    let suppressions: String =
        grown.iter().map(|name| format!("[suppress_type]\n  type_kind = struct\n  name = {name}\n")).collect();
    let file = folder.join("suppressions.ini");
    std::fs::write(&file, suppressions).unwrap();
    let breaking = abidiff(&["--no-added-syms", "--suppressions", file.to_str().unwrap()]);
    (breaking, abidiff(&["--harmless"]).is_some())
}

/// Returns whether libabigail is installed and knows this processor's dump, or prints that the test is skipped.
fn has_libabigail() -> bool {
    let is_installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let is_usable = cfg!(target_arch = "x86_64") && is_installed("abidw") && is_installed("abidiff");
    if !is_usable {
        // Bypasses the test harness, which would hide it.
        use std::io::Write;
        let reason = "without libabigail (Debian's abigail-tools), or not on x86-64";
        let _ = writeln!(std::io::stderr(), "skipped: comparison of the ABI, {reason}");
    }
    is_usable
}

#[test]
fn older_callers_can_use_the_present_header() {
    if !has_libabigail() {
        return;
    }
    let folder = fresh("present");
    let now = folder.join("now.xml");
    write_dump(&folder, &present_header(), &now);
    let committed = kept().join("abi.xml");
    let updates = std::env::var_os("RECON_UPDATE_ABI").is_some_and(|v| v == "1");
    if updates && !committed.exists() {
        std::fs::create_dir_all(kept()).unwrap();
        std::fs::copy(&now, &committed).unwrap();
    }
    assert!(committed.exists(), "{} is missing: see \"The ABI\" in CONTRIBUTING.md", committed.display());
    let (breaking, has_changes) = compare(&folder, &committed, &now);
    let mut found: Vec<(String, String)> = breaking.into_iter().map(|text| ("tests/abi".to_owned(), text)).collect();
    for version in versions() {
        let folder = fresh(&format!("dump-{version}"));
        let before = folder.join("before.xml");
        write_dump(&folder, &read(kept().join(&version).join("recon.h")), &before);
        found.extend(compare(&folder, &before, &now).0.map(|text| (format!("version {version}"), text)));
    }
    let texts: String = found.iter().map(|(place, text)| format!("compared with {place}:\n{text}\n")).collect();
    assert!(
        found.is_empty(),
        "include/recon.h breaks programs that were compiled with an earlier header of librecon.so.{ABI}:\n\n{texts}\n\
         Change it so that they run: add a function instead of changing one, add fields at the end of a structure, and \
         never change numbers. If programs must be compiled again, raise `abi` in Cargo.toml: see \"The ABI\" in \
         CONTRIBUTING.md."
    );
    if updates {
        std::fs::copy(&now, &committed).unwrap();
    } else if has_changes {
        panic!(
            "include/recon.h has additions that older programs do not notice. Run RECON_UPDATE_ABI=1 cargo test \
             --locked --test abi, and commit {}",
            committed.display()
        );
    }
}

/// Changes of the header, each as the text before and after, and whether older callers break.
const CHANGES: [(&str, &str, bool); 11] = [
    ("RECON_WINDOW_GAUSSIAN = 1", "RECON_WINDOW_GAUSSIAN = 9", true),
    ("RECON_LOG_TRACE = 5,", "", true),
    ("RECON_LOG_TRACE = 5,", "RECON_LOG_TRACE = 5, RECON_LOG_MORE = 6,", false),
    ("const void *decay_map;", "const void *decay_map; uint64_t more;", false),
    ("uint64_t samples;", "uint64_t samples; uint64_t more;", true),
    ("uint64_t samples;", "double samples;", true),
    ("const void *decay_map;", "const void *decay_map; uint64_t more; float less[3];", false),
    ("recon_q(const recon_plan *plan, void *q);", "recon_q(const recon_plan *plan, float x, void *q);", true),
    ("recon_status recon_q(const recon_plan *plan, void *q);", "void recon_q(const recon_plan *plan, void *q);", true),
    (
        "recon_status recon_q(const recon_plan *plan, void *q);",
        "recon_status recon_q(const recon_plan *plan, void *q);\n\nuint32_t recon_new(const recon_plan *plan);",
        false,
    ),
    ("(const recon_log_message *message, void *user_data);", "(uint32_t level, void *user_data);", true),
];

#[test]
fn changes_that_break_callers_are_found() {
    if !has_libabigail() {
        return;
    }
    let header = code_of(&present_header());
    let folder = fresh("before");
    let before = folder.join("before.xml");
    write_dump(&folder, &header, &before);
    for (i, (from, to, breaks)) in CHANGES.into_iter().enumerate() {
        let folder = fresh(&format!("change-{i}"));
        assert!(header.contains(from), "{from} is not in the header");
        let now = folder.join("now.xml");
        write_dump(&folder, &header.replacen(from, to, 1), &now);
        let (breaking, has_changes) = compare(&folder, &before, &now);
        assert!(has_changes, "{to}: no change was found");
        assert_eq!(breaking.is_some(), breaks, "{to}: {}", breaking.unwrap_or_default());
    }
}

/// The folder of the soname has the header of the present version, and there is no folder of a different soname.
#[test]
fn headers_of_all_versions_are_kept() {
    let entries = std::fs::read_dir(root().join("tests/abi")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.path()).collect::<Vec<_>>();
    assert_eq!(folders, [kept()], "tests/abi has the folder of the present soname only: see CONTRIBUTING.md");
    assert!(
        versions().iter().any(|version| version == VERSION),
        "the header of version {VERSION} is not kept: copy include/recon.h to {}",
        kept().join(VERSION).join("recon.h").display()
    );
    for version in versions() {
        let header = read(kept().join(&version).join("recon.h"));
        let numbers = ["MAJOR", "MINOR", "PATCH"].map(|name| {
            let start = format!("#define RECON_VERSION_{name} ");
            header.lines().find_map(|line| line.strip_prefix(&start)).expect("a version").to_owned()
        });
        assert_eq!(numbers.join("."), version, "the version in the header of tests/abi");
    }
}

/// Returns a C function that calls each `_init` function of a header with the header's size of the structure, and looks
/// for bytes that were written beyond it, and a table of all functions.
fn generated_checks(header: &str) -> String {
    let prototypes = prototypes(header);
    let names: Vec<&str> = prototypes.iter().map(|prototype| name_of(prototype)).collect();
    let structures = names.iter().filter_map(|name| name.strip_suffix("_init"));
    let checks: String = structures.map(|name| format!("    CHECK({name});\n")).collect();
    let table: String = names.iter().map(|name| format!("    (any_function){name},\n")).collect();
    format!(
        "#include <recon.h>\n#include <stdio.h>\n#include <string.h>\n\
         int check_structures(void);\n\
         typedef void (*any_function)(void);\n\
         #define CHECK(name) do {{ \\\n\
             union {{ name value; unsigned char bytes[sizeof(name) + 64]; }} room; \\\n\
             memset(&room, 0x5a, sizeof room); \\\n\
             if (name##_init(&room.value, sizeof(name)) != RECON_OK) {{ \\\n\
                 fprintf(stderr, \"%s\\n\", recon_last_error_message()); return 1; }} \\\n\
             if (room.value.struct_size != sizeof(name)) {{ puts(\"struct_size of \" #name); return 1; }} \\\n\
             for (unsigned i = sizeof(name); i < sizeof room; i++) \\\n\
                 if (room.bytes[i] != 0x5a) {{ puts(\"bytes beyond \" #name); return 1; }} \\\n\
         }} while (0)\n\
         const any_function all_functions[] = {{\n{table}}};\n\
         int check_structures(void) {{\n{checks}    return all_functions[0] == NULL;\n}}\n"
    )
}

/// Returns a folder with the library as it is installed, linked from the static library that this test was built with.
fn installed_library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let library = built.join(format!("librecon.so.{VERSION}"));
        let mut make = Command::new("make");
        run(make.current_dir(root()).arg(&library).arg(format!("BUILT={}", built.display())));
        let folder = fresh("installed");
        std::os::unix::fs::symlink(library, folder.join(format!("librecon.so.{ABI}"))).unwrap();
        folder
    })
}

/// Programs are linked with a library of their time, and run with today's.
#[test]
fn programs_of_older_headers_run() {
    let library = installed_library();
    for version in versions() {
        let folder = fresh(&format!("program-{version}"));
        let header = read(kept().join(&version).join("recon.h"));
        stub_library(&folder, &header);
        std::fs::write(folder.join("checks.c"), generated_checks(&header)).unwrap();
        let mut compiler = compiler();
        compiler.current_dir(&folder).args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-I."]);
        compiler.arg(root().join("tests/abi/program.c")).args(["checks.c", "-L.", "-lrecon", "-lm", "-o", "program"]);
        run(&mut compiler);
        let mut program = emulated(folder.join("program").to_str().unwrap());
        let printed = run(program.env("LD_LIBRARY_PATH", library).env("LD_BIND_NOW", "1"));
        assert_eq!(printed, "ok\n", "a program of version {version}");
    }
}

/// The loader refuses a program of a different ABI: the soname and the node have the number.
#[test]
fn symbols_have_the_version_node() {
    let library = installed_library().join(format!("librecon.so.{ABI}"));
    let symbols = run(Command::new("objdump").arg("-T").arg(&library));
    let node = format!("RECON_{ABI}");
    // On ARM, the table also has local symbols of sections.
    let is_exported = |words: &Vec<&str>| words.len() >= 6 && words[1] != "l" && !words.contains(&"*UND*");
    let words = symbols.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let lines: Vec<Vec<&str>> = words.filter(is_exported).map(|words| words.into_iter().rev().collect()).collect();
    let mut found: Vec<&str> = lines.iter().filter(|words| words[0].starts_with("recon_")).map(|w| w[0]).collect();
    found.sort();
    let header = present_header();
    let prototypes = prototypes(&header);
    let mut declared: Vec<&str> = prototypes.iter().map(|prototype| name_of(prototype)).collect();
    declared.sort();
    assert_eq!(found, declared);
    for words in &lines {
        let is_node = words[0] == node;
        assert!(is_node || (words[0].starts_with("recon_") && words[1] == node), "{words:?} in {symbols}");
    }
}
