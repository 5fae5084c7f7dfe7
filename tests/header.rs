//! include/recon.h is what src/ffi says, and compiles as C99 and C++11.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The header as cbindgen makes it now.
fn generate() -> String {
    static HEADER: OnceLock<String> = OnceLock::new();
    HEADER.get_or_init(run_cbindgen).clone()
}

fn run_cbindgen() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    // Enumerations are made by macros, which cbindgen does not read.
    let enumerations =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("enumerations-{}.rs", std::process::id()));
    std::fs::write(&enumerations, recon::ffi::enumerations::sources()).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config).with_src(&enumerations);
    for file in ["structs.rs", "mod.rs"] {
        builder = builder.with_src(root().join("src/ffi").join(file));
    }
    let mut text = Vec::new();
    builder.generate().expect("the header can be generated").write(&mut text);
    std::fs::remove_file(&enumerations).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn header_is_up_to_date() {
    let path = root().join("include/recon.h");
    let now = generate();
    if std::env::var_os("RECON_UPDATE_HEADER").is_some_and(|v| v == "1") {
        std::fs::write(&path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != now {
        let line = committed.lines().zip(now.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!("include/recon.h is stale from line {} on: run `make header` and commit it", line + 1);
    }
}

#[test]
fn every_function_and_field_is_documented() {
    let header = generate();
    let lines: Vec<&str> = header.lines().collect();
    let body = lines.iter().position(|l| l.starts_with("typedef")).unwrap();
    for (i, line) in lines.iter().enumerate().skip(body) {
        let function = line.contains(" *recon_") || line.starts_with("recon_") || line.starts_with("void recon_");
        let function =
            (function || line.starts_with("uint32_t recon_")) && line.contains('(') && !line.starts_with(' ');
        let field = line.starts_with("    ") && !line.starts_with("     ") && !line.trim_start().starts_with("//");
        if function || field {
            assert!(lines[i - 1].trim_start().starts_with("//"), "line {}: {line} has no comment", i + 1);
        }
    }
}

/// C takes a second declaration of a function, other readers of the header do not.
#[test]
fn every_function_is_declared_once() {
    let header = generate();
    let mut count = 0;
    for file in std::fs::read_dir(root().join("src/ffi")).unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for (at, start) in source.match_indices("extern \"C\" fn recon_") {
            let name = source[at + start.len() - "recon_".len()..].split('(').next().unwrap();
            let declared = header.lines().filter(|l| !l.trim_start().starts_with("//"));
            let times = declared.filter(|l| l.contains(&format!("{name}("))).count();
            assert_eq!(times, 1, "{name} is declared {times} times");
            count += 1;
        }
    }
    assert!(count > 40, "{count} functions");
}

/// cbindgen.toml names the enumerations, as functions take their numbers and not their types.
#[test]
fn every_enumeration_is_in_the_header() {
    let header = generate();
    let sources = recon::ffi::enumerations::sources();
    let before = |at: usize| sources[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
    let named = sources.match_indices(" = ").map(|(at, _)| before(at));
    let names: Vec<&str> = named.filter(|name| name.starts_with("RECON_")).collect();
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        assert!(
            header.contains(&format!("    {name} = ")),
            "{name} is not in the header: name its type in cbindgen.toml"
        );
    }
}

/// What a vendor's build may ask for.
const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Werror"];

fn compile(compiler: &str, standard: &str, extension: &str, text: &str) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("header.{extension}"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(compiler)
        .arg(standard)
        .args(WARNINGS)
        .args(["-fsyntax-only", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .output()
        .unwrap_or_else(|e| panic!("{compiler}: {e}"));
    assert!(output.status.success(), "{compiler} {standard}:\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn header_compiles_as_c_and_cpp() {
    // Twice, for the include guard; sizes are what the library's own assertions say.
    let text = "#include <recon.h>\n#include <recon.h>\n\
        typedef char geometry_is_176[sizeof(recon_geometry) == 176 ? 1 : -1];\n\
        typedef char options_is_104[sizeof(recon_options) == 104 ? 1 : -1];\n\
        typedef char cg_is_120[sizeof(recon_cg_options) == 120 ? 1 : -1];\n\
        typedef char propeller_is_32[sizeof(recon_propeller_options) == 32 ? 1 : -1];\n\
        typedef char propeller_report_is_80[sizeof(recon_propeller_report) == 80 ? 1 : -1];\n\
        typedef char field_map_is_48[sizeof(recon_field_map_options) == 48 ? 1 : -1];\n\
        typedef char field_map_report_is_80[sizeof(recon_field_map_report) == 80 ? 1 : -1];\n\
        int main(void) { recon_geometry g; return recon_geometry_init(&g, sizeof g) == RECON_OK ? 0 : 1; }\n";
    compile("cc", "-std=c99", "c", text);
    compile("c++", "-std=c++11", "cpp", text);
}

#[test]
fn example_in_the_header_compiles() {
    let header = generate();
    let example =
        header.lines().take_while(|l| !l.starts_with("// The model")).filter_map(|l| l.strip_prefix("//     "));
    let body: Vec<&str> = example.collect();
    assert!(body.len() > 15 && body.iter().any(|l| l.contains("recon_cg(")), "the example is gone");
    let text =
        format!("#include <stddef.h>\n#include <recon.h>\nint main(void) {{\n{}\nreturn 0;\n}}\n", body.join("\n"));
    compile("cc", "-std=c99", "example.c", &text);
    compile("c++", "-std=c++11", "example.cpp", &text);
}

/// The blocks of docs/c.md in a language, which its fences name.
fn blocks_of_the_page(language: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/c.md")).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn blocks_of_the_page_on_c_compile() {
    for (language, compiler, standard) in [("c", "cc", "-std=c99"), ("cpp", "c++", "-std=c++11")] {
        let blocks = blocks_of_the_page(language);
        assert!(blocks.iter().any(|block| block.contains("recon_grid(")), "the {language} program is gone");
        for (i, block) in blocks.iter().enumerate() {
            compile(compiler, standard, &format!("page-{i}.{language}"), &format!("#include <recon.h>\n{block}"));
        }
    }
}

/// Clang warns of more than GCC: an enumeration without negative values is unsigned to it.
#[test]
fn examples_compile_without_a_warning() {
    for (compilers, standard, source) in [
        (["cc", "clang"], "-std=c99", "examples/c/recon.c"),
        (["c++", "clang++"], "-std=c++11", "examples/cpp/recon.cpp"),
    ] {
        let text = std::fs::read_to_string(root().join(source)).unwrap();
        for compiler in compilers {
            match Command::new(compiler).arg("--version").output() {
                Ok(_) => compile(compiler, standard, source.rsplit('/').next().unwrap(), &text),
                // Not by a macro, whose lines are kept back where the test passes.
                Err(_) => writeln!(std::io::stdout(), "skipped: {source} under {compiler} (not installed)").unwrap(),
            }
        }
    }
}
