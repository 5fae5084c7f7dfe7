//! include/recon.h is generated from src/ffi, and compiles as C99 and C++11.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

mod common;
use common::documents::{blocks_in, documents};
use common::{root, run};

/// Files of src/ffi with types and functions, in the order of their declarations in the header.
const FILES: [&str; 20] = [
    "structs.rs",
    "scan_structs.rs",
    "library.rs",
    // The functions of initialisers.rs come here.
    "plan_handle.rs",
    "plan.rs",
    "warnings.rs",
    "plan_changes.rs",
    "transforms.rs",
    "conjugate_gradients.rs",
    "reconstruction.rs",
    "images.rs",
    "phase_difference.rs",
    "trajectories.rs",
    "phantoms.rs",
    "acquisition.rs",
    "scans.rs",
    "coil_matrices.rs",
    "field_map.rs",
    "propeller.rs",
    "partial_fourier.rs",
];

/// Returns the header that cbindgen generates from the present sources.
fn generate() -> String {
    static HEADER: OnceLock<String> = OnceLock::new();
    HEADER.get_or_init(run_cbindgen).clone()
}

/// Returns the macros of the header: the version of the package, and RECON_MUST_USE.
fn macros() -> String {
    let number = |name: &str, value: &str| format!("#define RECON_VERSION_{name} {value}\n");
    let version = [
        number("MAJOR", env!("CARGO_PKG_VERSION_MAJOR")),
        number("MINOR", env!("CARGO_PKG_VERSION_MINOR")),
        number("PATCH", env!("CARGO_PKG_VERSION_PATCH")),
    ];
    format!(
        "\n// Version of this header. recon_version() returns the version of the library at run time.\n{}{}",
        version.concat(),
        MUST_USE.trim_end()
    )
}

/// The macro in front of functions whose status must be used.
const MUST_USE: &str = "
// A compiler warns if the status of these functions is dropped. After a failure the handle does not exist, the
// structure has no defaults, or the array still has its previous content: a program that does not look at the status
// would go on with these. All functions with a status have the macro, except recon_set_log_callback and those that read
// warnings: no image depends on them. Define RECON_MUST_USE as empty before #include to turn the warnings off.
#ifndef RECON_MUST_USE
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#define RECON_MUST_USE [[nodiscard]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define RECON_MUST_USE [[nodiscard]]
#elif defined(__GNUC__) || defined(__clang__)
#define RECON_MUST_USE __attribute__((warn_unused_result))
#elif defined(_MSC_VER)
#include <sal.h>
#define RECON_MUST_USE _Check_return_
#else
#define RECON_MUST_USE
#endif
#endif
";

/// Returns a header of cbindgen with tags of structures and enumerations, so that C++ can declare structures in
/// advance. cbindgen itself would then also write `struct` and `enum` in front of each use. RECON_MUST_USE has a line
/// of its own.
fn with_tags(header: &str) -> String {
    let (mut lines, mut start) = (Vec::new(), None);
    for line in header.replace("RECON_MUST_USE recon_", "RECON_MUST_USE\nrecon_").lines() {
        if line == "typedef struct {" || line == "typedef enum {" {
            start = Some(lines.len());
        }
        if let (Some(at), Some(name)) = (start, line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';'))) {
            let kind = if lines[at] == "typedef struct {" { "struct" } else { "enum" };
            lines[at] = format!("typedef {kind} {name} {{");
            start = None;
        }
        lines.push(line.to_owned());
    }
    lines.join("\n") + "\n"
}

/// Runs cbindgen.
fn run_cbindgen() -> String {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    config.after_includes = Some(macros());
    // Macros define enumerations and initialisers, and cbindgen does not expand macros.
    let generated = recon::ffi::generated_sources();
    let paths = ["enumerations", "initialisers"]
        .map(|name| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.rs", std::process::id())));
    paths.iter().zip(&generated).for_each(|(path, text)| std::fs::write(path, text).unwrap());
    let mut builder = cbindgen::Builder::new().with_config(config).with_src(&paths[0]);
    for file in FILES {
        builder = builder.with_src(root().join("src/ffi").join(file));
        if file == "library.rs" {
            builder = builder.with_src(&paths[1]);
        }
    }
    let mut text = Vec::new();
    builder.generate().expect("the header can be generated").write(&mut text);
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    with_tags(&String::from_utf8(text).unwrap())
}

/// Files of src/files/c_api with types and functions, in the order of their declarations in matlab/mex/files.h.
const MEX_FILES: [&str; 4] = ["outcome.rs", "raw.rs", "raw_writer.rs", "images.rs"];

/// Returns the header of the readers and writers for the MEX file.
fn generate_for_mex() -> String {
    let mut config = cbindgen::Config::from_file(root().join("cbindgen.toml")).unwrap();
    config.header = Some(
        "/* Readers and writers of files for the MEX file: the additional functions of the static library recon_files.\n \
         *\n * Generated from src/files/c_api by `make header`: edit that instead. */"
            .into(),
    );
    config.include_guard = Some("RECON_FILES_H".into());
    config.sys_includes = vec!["recon.h".into()];
    config.cpp_compat = false;
    config.export.include.clear();
    let sources = MEX_FILES.map(|file| root().join("src/files/c_api").join(file));
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |b, file| b.with_src(file));
    let mut text = Vec::new();
    builder.generate().expect("the header of the MEX file can be generated").write(&mut text);
    with_tags(&String::from_utf8(text).unwrap())
}

#[test]
fn headers_are_up_to_date() {
    check_header("include/recon.h", &generate());
    check_header("matlab/mex/files.h", &generate_for_mex());
}

/// Compares a committed header with the present one, or replaces it if the environment asks for that.
fn check_header(name: &str, now: &str) {
    let path = root().join(name);
    if std::env::var_os("RECON_UPDATE_HEADER").is_some_and(|v| v == "1") {
        std::fs::write(&path, now).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != now {
        let line = committed.lines().zip(now.lines()).position(|(a, b)| a != b).unwrap_or(0);
        panic!("{name} is stale from line {} on: run `make header` and commit it", line + 1);
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
            let above = if lines[i - 1] == "RECON_MUST_USE" { lines[i - 2] } else { lines[i - 1] };
            assert!(above.trim_start().starts_with("//"), "line {}: {line} has no comment", i + 1);
        }
    }
}

/// C accepts a second declaration of a function, but other languages that read the header do not.
#[test]
fn every_function_is_declared_once() {
    let header = generate();
    let mut count = 0;
    let files = std::fs::read_dir(root().join("src/ffi")).unwrap();
    let sources = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    for source in sources.chain(recon::ffi::generated_sources()) {
        // Tokens of a generated source may be on different lines.
        let source = source.split_whitespace().collect::<Vec<_>>().join(" ");
        for (at, start) in source.match_indices("extern \"C\" fn recon_") {
            let name = source[at + start.len() - "recon_".len()..].split('(').next().unwrap().trim();
            let declared = header.lines().filter(|l| !l.trim_start().starts_with("//"));
            let times = declared.filter(|l| l.contains(&format!("{name}("))).count();
            assert_eq!(times, 1, "{name} is declared {times} times");
            count += 1;
        }
    }
    assert!(count > 60, "{count} functions");
}

/// cbindgen.toml lists the enumerations, since functions take their numbers rather than their types.
#[test]
fn every_enumeration_is_in_the_header() {
    let header = generate();
    let [sources, _] = recon::ffi::generated_sources();
    let word_before = |at: usize| sources[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
    let values = sources.match_indices(" = ").map(|(at, _)| word_before(at));
    let names: Vec<&str> = values.filter(|name| name.starts_with("RECON_")).collect();
    assert!(names.len() > 60, "{names:?}");
    for name in names {
        assert!(
            header.contains(&format!("    {name} = ")),
            "{name} is not in the header: name its type in cbindgen.toml"
        );
    }
}

/// Warnings that a vendor's build may enable.
const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wsign-conversion", "-Werror"];

/// Checks that a source compiles without warnings.
fn compile(compiler: &str, standard: &str, extension: &str, text: &str) {
    let output = try_to_compile(compiler, standard, extension, text);
    assert!(output.status.success(), "{compiler} {standard}:\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a source with warnings as errors, and returns the outcome.
fn try_to_compile(compiler: &str, standard: &str, extension: &str, text: &str) -> Output {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("header.{extension}"));
    std::fs::write(&source, text).unwrap();
    let output = Command::new(compiler)
        .arg(standard)
        .args(WARNINGS)
        .args(["-c", "-o", "/dev/null", "-I"])
        .arg(root().join("include"))
        .arg(&source)
        .output();
    output.unwrap_or_else(|e| panic!("{compiler}: {e}"))
}

/// Compilers and standards with which the header compiles without a warning; without clang only those of GCC.
fn compilers() -> Vec<(&'static str, &'static str)> {
    static LIST: OnceLock<Vec<(&str, &str)>> = OnceLock::new();
    let find = || {
        let mut list = vec![("cc", "-std=c99"), ("cc", "-std=c2x"), ("c++", "-std=c++11"), ("c++", "-std=c++17")];
        let clang = [("clang", "-std=c99"), ("clang++", "-std=c++11"), ("clang++", "-std=c++20")];
        let is_installed = |compiler: &str| Command::new(compiler).arg("--version").output().is_ok();
        list.extend(clang.iter().filter(|(compiler, _)| is_installed(compiler)));
        if let Some((compiler, _)) = clang.iter().find(|(compiler, _)| !is_installed(compiler)) {
            // A macro's output is hidden if the test passes.
            let _ = writeln!(std::io::stderr(), "skipped: the header under {compiler} (not installed)");
        }
        list
    };
    LIST.get_or_init(find).clone()
}

#[test]
fn header_compiles_as_c_and_cpp() {
    // Included twice to test the include guard. The sizes are those that the library asserts.
    let text = "#include <recon.h>\n#include <recon.h>\n\
        typedef char geometry_is_176[sizeof(recon_geometry) == 176 ? 1 : -1];\n\
        typedef char options_is_104[sizeof(recon_options) == 104 ? 1 : -1];\n\
        typedef char cg_is_120[sizeof(recon_cg_options) == 120 ? 1 : -1];\n\
        typedef char propeller_is_32[sizeof(recon_propeller_options) == 32 ? 1 : -1];\n\
        typedef char propeller_report_is_80[sizeof(recon_propeller_report) == 80 ? 1 : -1];\n\
        typedef char partial_fourier_is_24[sizeof(recon_partial_fourier_options) == 24 ? 1 : -1];\n\
        typedef char partial_fourier_report_is_48[sizeof(recon_partial_fourier_report) == 48 ? 1 : -1];\n\
        typedef char field_map_is_48[sizeof(recon_field_map_options) == 48 ? 1 : -1];\n\
        typedef char field_map_report_is_80[sizeof(recon_field_map_report) == 80 ? 1 : -1];\n\
        int main(void) { recon_geometry g; return recon_geometry_init(&g, sizeof g) == RECON_OK ? 0 : 1; }\n";
    for (compiler, standard) in compilers() {
        compile(compiler, standard, &extension("sizes", compiler), text);
    }
}

/// Returns the ending of a test's source for a compiler. Tests run at once, and each has its own file.
fn extension(test: &str, compiler: &str) -> String {
    format!("{test}.{}", if compiler.ends_with("++") { "cpp" } else { "c" })
}

/// Structures can be declared before the header is included, and tags and typedef names are the same types. A status
/// is passed without a conversion.
#[test]
fn structures_and_enumerations_have_tags() {
    let text = "struct recon_geometry;\nstruct recon_plan;\n\
        int samples_of(const struct recon_geometry *geometry);\n\
        #include <recon.h>\n\
        int samples_of(const recon_geometry *geometry) { return (int)geometry->samples; }\n\
        const char *text_of(enum recon_status status);\n\
        const char *text_of(recon_status status) { return recon_status_string(status); }\n\
        const char *name_of(recon_status status);\n\
        const char *name_of(recon_status status) { return recon_status_name(status); }\n\
        static void hear(const struct recon_log_message *message, void *data) {\n\
            *(const struct recon_plan **)data = message->plan;\n\
        }\n\
        int main(void) {\n\
            const recon_plan *plan;\n\
            const enum recon_log_level level = RECON_LOG_ERROR;\n\
            return recon_set_log_callback(hear, &plan, level) == RECON_OK ? 0 : 1;\n\
        }\n";
    for (compiler, standard) in compilers() {
        compile(compiler, standard, &extension("tags", compiler), text);
    }
    let header = generate();
    for line in header.lines().filter(|line| line.starts_with("typedef ") && line.ends_with('{')) {
        assert!(line.contains(" recon_"), "{line} has no tag");
    }
}

/// Numbers of the version are those of Cargo.toml, and the preprocessor can compare them.
#[test]
fn header_has_the_version() {
    let version = [env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"), env!("CARGO_PKG_VERSION_PATCH")];
    let [major, minor, patch] = version;
    let text = format!(
        "#include <recon.h>\n\
         #if RECON_VERSION_MAJOR != {major} || RECON_VERSION_MINOR != {minor} || RECON_VERSION_PATCH != {patch}\n\
         #error \"version\"\n#endif\nint main(void) {{ return 0; }}\n"
    );
    compile("cc", "-std=c99", &extension("version", "cc"), &text);
}

/// Compilers refuse programs that drop a status, unless the program turns that off.
#[test]
fn compilers_warn_of_a_dropped_status() {
    let program = |before: &str, call: &str| {
        let start = format!("{before}\n#include <recon.h>\nrecon_plan *plan; recon_geometry g;\n");
        format!("{start}int main(void) {{ {call}; return 0; }}\n")
    };
    for (compiler, standard) in compilers() {
        let extension = extension("dropped", compiler);
        for call in ["recon_plan_create(&g, 0, &plan)", "recon_geometry_init(&g, sizeof g)"] {
            let outcome = try_to_compile(compiler, standard, &extension, &program("", call));
            let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
            assert!(!outcome.status.success() && text.contains("unused-result"), "{compiler} {standard}: {text}");
            compile(compiler, standard, &extension, &program("#define RECON_MUST_USE", call));
        }
        let log = program("", "recon_set_log_callback(0, 0, RECON_LOG_OFF)");
        compile(compiler, standard, &extension, &log);
    }
}

/// All functions with a status have the macro, except those on which no image depends.
#[test]
fn functions_with_a_status_must_be_checked() {
    let header = generate();
    let lines: Vec<&str> = header.lines().collect();
    let name = |line: &str| Some(line.strip_prefix("recon_status ")?.split_once('(')?.0.to_owned());
    let without = |i: usize| name(lines[i]).filter(|_| lines[i - 1] != "RECON_MUST_USE");
    let found: Vec<String> = (1..lines.len()).filter_map(without).collect();
    assert_eq!(found, ["recon_set_log_callback", "recon_last_warning", "recon_plan_warning"]);
}

#[test]
fn example_in_the_header_compiles() {
    let header = generate();
    let example =
        header.lines().take_while(|l| !l.starts_with("// The model")).filter_map(|l| l.strip_prefix("//     "));
    let body: Vec<&str> = example.collect();
    assert!(body.len() > 15 && body.iter().any(|l| l.contains("recon_cg(")), "the example is missing");
    let function = format!("recon_status reconstruct(void) {{\n{}\nreturn RECON_OK;\n}}\n", body.join("\n"));
    let text = format!("#include <stddef.h>\n#include <recon.h>\nrecon_status reconstruct(void);\n{function}");
    compile("cc", "-std=c99", "example.c", &text);
    compile("c++", "-std=c++11", "example.cpp", &text);
}

/// Compiles a program with the warnings of a vendor's build, links it with the static library of this build, and runs
/// it. Returns its output.
fn build_and_run(compiler: &str, standard: &str, name: &str, text: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join(name), folder.join(format!("{name}.program")));
    std::fs::write(&source, text).unwrap();
    let library = std::env::current_exe().unwrap().parent().unwrap().join("librecon.a");
    assert!(library.exists(), "no {}", library.display());
    let mut command = Command::new(compiler);
    command.arg(standard).args(WARNINGS).arg("-I").arg(root().join("include")).arg(&source).arg(library);
    run(command.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc", "-o"]).arg(&program));
    run(Command::new(&program).current_dir(&folder))
}

/// Returns whether a block is a whole program.
fn is_program(text: &str) -> bool {
    text.contains("int main(")
}

#[test]
fn blocks_of_the_page_on_c_compile() {
    for (language, compiler, standard) in [("c", "cc", "-std=c99"), ("cpp", "c++", "-std=c++11")] {
        let blocks = blocks_in("docs/c.md", language);
        assert!(blocks.iter().any(|block| block.text().contains("recon_grid(")), "the {language} program is missing");
        for (i, block) in blocks.iter().enumerate() {
            let text = format!("#include <recon.h>\n{}", block.text());
            compile(compiler, standard, &format!("page-{i}.{language}"), &text);
        }
    }
}

/// C and C++ blocks are only in the documents that the other tests of this file read.
#[test]
fn blocks_in_c_have_a_test() {
    for document in documents().iter().filter(|d| !["docs/c.md", "README.md"].contains(&d.as_str())) {
        let first = ["c", "cpp"].iter().flat_map(|language| blocks_in(document, language)).next();
        assert!(first.is_none(), "{}: no test runs this block", first.unwrap().place);
    }
}

/// A whole program prints the output that the page shows. Numbers may differ in the last digit with the processor.
#[test]
fn programs_of_the_page_on_c_run() {
    let blocks = blocks_in("docs/c.md", "c");
    let programs: Vec<_> = blocks.iter().map(|block| block.text()).filter(|text| is_program(text)).collect();
    let shown = &blocks_in("docs/c.md", "text")[0];
    assert_eq!(programs.len(), 1, "this test compares one program with one output");
    let printed = build_and_run("cc", "-std=c99", "program.c", &programs[0]);
    let numbers = |text: &str| -> Vec<f64> {
        text.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|word| word.parse().ok()).collect()
    };
    let (found, shown_numbers) = (numbers(&printed), numbers(&shown.text()));
    assert_eq!((found.len(), shown_numbers.len()), (4, 4), "{printed}");
    for (a, b) in found.iter().zip(&shown_numbers) {
        assert!((a - b).abs() < 0.15, "the page shows {}, but the program printed {printed}", shown.text());
    }
}

/// Calls every function that the page on C defines.
const CALLS: &str = r#"
enum { N = 64, SPOKES = 48, READOUT = 128, SAMPLES = SPOKES * READOUT, COILS = 4, NOISES = 500 };
static float kx[SAMPLES], ky[SAMPLES], times[SAMPLES], weights[SAMPLES], field[N * N], found[N * N];
static float kspace[2 * SAMPLES * COILS], fewer[2 * SAMPLES * 2], noise[2 * NOISES * COILS];
static float maps[2 * N * N * COILS], image[2 * N * N], echoes[4 * N * N];

#define CHECK(call)                                                        \
    if ((call) != RECON_OK) {                                              \
        fprintf(stderr, "%s: %s\n", #call, recon_last_error_message());    \
        return 1;                                                          \
    }
#define REQUIRE(condition)                          \
    if (!(condition)) {                             \
        fprintf(stderr, "false: %s\n", #condition); \
        return 1;                                   \
    }

static int is_image(void) {
    double sum = 0;
    for (int i = 0; i < 2 * N * N; i++) sum += (double)image[i] * (double)image[i];
    return sum > 0 && sum < 1e30;
}

int main(void) {
    recon_geometry g;
    recon_options options;
    recon_plan *plan = NULL;
    recon_plan_properties properties;
    recon_status status;
    uint64_t bytes = 0;
    uint32_t random = 1;
    int i;

    CHECK(start_log());
    CHECK(recon_geometry_init(&g, sizeof g));
    g.dims[0] = g.dims[1] = N;
    g.samples = SAMPLES;
    g.coordinates[0] = kx;
    g.coordinates[1] = ky;
    CHECK(recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_LINEAR, kx, ky));
    CHECK(recon_phantom_kspace(&g, NULL, 0, RECON_COILS_UNIFORM, 0, kspace));
    CHECK(bytes_of_cg(&g, NULL, &bytes));
    REQUIRE(bytes > N * N);

    CHECK(recon_options_init(&options, sizeof options));
    options.normal = RECON_NORMAL_TOEPLITZ;
    options.device = RECON_DEVICE_CPU;
    CHECK(recon_plan_create(&g, &options, &plan));
    CHECK(describe(plan, &properties));
    REQUIRE(properties.image_elements == N * N);
    CHECK(print_warnings(plan));
    remove("q.bin");
    CHECK(q_from_file(plan, "q.bin"));
    CHECK(q_from_file(plan, "q.bin"));
    for (i = 0; i < SAMPLES; i++) weights[i] = 1;
    CHECK(next_frame(plan, &g, ky, kx, weights, SAMPLES, kspace, image));
    REQUIRE(is_image());
    recon_plan_destroy(plan);

    g.coordinates[0] = kx;
    g.coordinates[1] = ky;
    g.weights = NULL;
    for (i = 0; i < N * N; i++) field[i] = 30.0f;
    CHECK(velocity_in_cm_per_s(&g, image, image, found));
    for (i = 0; i < N * N; i++) REQUIRE(found[i] < 1e-3f && found[i] > -1e-3f);
    CHECK(plan_with_field_map(&g, field, times, READOUT, 0.001f, 5e-6f, &plan));
    REQUIRE(times[READOUT] == 0.001f);
    CHECK(recon_grid(plan, kspace, image));
    REQUIRE(is_image());
    recon_plan_destroy(plan);
    g.field_map = NULL;
    g.times = NULL;

    for (i = 0; i < 2 * NOISES * COILS; i++) {
        random = random * 1664525u + 1013904223u;
        noise[i] = (float)(random >> 8) / 16777216.0f - 0.5f;
    }
    g.coils = COILS;
    CHECK(recon_phantom_kspace(&g, NULL, 0, RECON_COILS_RING, 0, kspace));
    CHECK(maps_of_calibration(&g, kspace, maps));
    REQUIRE(maps[2 * (N * N / 2 + N / 2)] != 0 || maps[2 * (N * N / 2 + N / 2) + 1] != 0);
    g.coils = 1;
    CHECK(prepare(noise, NOISES, kspace, SAMPLES, COILS, 2, fewer));
    REQUIRE(fewer[0] != 0);

    /* A field of 40 Hz: between the echoes, 2.46 ms apart, the phase turns by -2 pi 40 0.00246. */
    for (i = 0; i < N * N; i++) {
        echoes[2 * i] = 1;
        echoes[2 * (N * N + i)] = 0.81486f;
        echoes[2 * (N * N + i) + 1] = -0.57967f;
    }
    CHECK(field_of_two_echoes(echoes, N, N, 1, found));
    REQUIRE(found[N * N / 2] > 39.9f && found[N * N / 2] < 40.1f);

    g.samples = 8 * 12 * N;
    CHECK(recon_trajectory_propeller(RECON_F32, 8, 12, N, kx, ky));
    CHECK(recon_phantom_kspace(&g, NULL, 0, RECON_COILS_UNIFORM, 0, kspace));
    CHECK(still_image(&g, 8, kspace, image));
    REQUIRE(is_image());

    /* A Cartesian scan of N lines without the first eighth. */
    g.samples = N * (N - N / 8);
    for (i = 0; i < (int)g.samples; i++) {
        kx[i] = (float)(i % N - N / 2) / N;
        ky[i] = (float)(N / 8 + i / N - N / 2) / N;
    }
    CHECK(recon_phantom_kspace(&g, NULL, 0, RECON_COILS_UNIFORM, 0, kspace));
    CHECK(fill_missing_side(&g, kspace, image));
    REQUIRE(is_image());

    status = plan_on_gpu(&g, NULL, &plan);
    REQUIRE(status == RECON_OK || status == RECON_NO_DEVICE || status == RECON_DRIVER_INCOMPLETE);
    if (status == RECON_OK) recon_plan_destroy(plan);
    printf("all functions were called\n");
    return 0;
}
"#;

#[test]
fn functions_of_the_page_on_c_run() {
    let blocks = blocks_in("docs/c.md", "c");
    let parts: String = blocks.iter().map(|block| block.text()).filter(|text| !is_program(text)).collect();
    // Every function that a block defines is called.
    for line in parts.lines().filter(|line| line.starts_with("recon_status ")) {
        let name = line["recon_status ".len()..].split('(').next().unwrap();
        assert!(CALLS.contains(&format!("{name}(")), "docs/c.md: nothing calls {name}");
    }
    let text = format!("#include <recon.h>\n#include <stdio.h>\n{parts}{CALLS}");
    let printed = build_and_run("cc", "-std=c99", "functions.c", &text);
    assert!(
        printed.contains("all functions were called")
            && printed.contains("blade 7: ")
            && printed.contains("samples below"),
        "{printed}"
    );
}

#[test]
fn blocks_of_readme_in_c_run() {
    let blocks = blocks_in("README.md", "c");
    assert_eq!(blocks.len(), 1, "this test provides the data of one block");
    let (includes, body): (Vec<String>, Vec<String>) =
        blocks[0].lines.iter().cloned().partition(|line| line.starts_with("#include"));
    let text = format!(
        "{}\n#include <stdint.h>\n#include <stdio.h>\n\
         enum {{ N = 256, SPOKES = 96, READOUT = 512, SAMPLES = SPOKES * READOUT }};\n\
         static float kx[SAMPLES], ky[SAMPLES], kspace[2 * SAMPLES], image[2 * N * N];\n\
         int main(void) {{\n\
         const uint64_t samples = SAMPLES;\nrecon_geometry scan;\ndouble sum = 0;\n\
         if (recon_geometry_init(&scan, sizeof scan) != RECON_OK) return 1;\n\
         scan.dims[0] = scan.dims[1] = N;\nscan.samples = SAMPLES;\nscan.coordinates[0] = kx;\nscan.coordinates[1] = ky;\n\
         if (recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky) != RECON_OK) return 2;\n\
         if (recon_phantom_kspace(&scan, NULL, 0, RECON_COILS_UNIFORM, 0, kspace) != RECON_OK) return 3;\n\
         {}\n\
         for (int i = 0; i < 2 * N * N; i++) sum += (double)image[i] * (double)image[i];\n\
         printf(\"sum of squares %.0f\\n\", sum);\nreturn sum > 0 && sum < 1e30 ? 0 : 4;\n}}\n",
        includes.join("\n"),
        body.join("\n")
    );
    let printed = build_and_run("cc", "-std=c99", "readme.c", &text);
    assert!(printed.starts_with("sum of squares "), "{printed}");
    // The C++ block shows lines of an example that tests/install.rs builds and runs.
    let example = std::fs::read_to_string(root().join("examples/cpp/recon.cpp")).unwrap();
    for line in blocks_in("README.md", "cpp").iter().flat_map(|block| block.lines.clone()) {
        assert!(example.lines().any(|l| l.trim() == line.trim()), "{line:?} is not in examples/cpp/recon.cpp");
    }
}

/// Clang has more warnings than GCC; for example, an enumeration without negative values is unsigned.
#[test]
fn examples_compile_without_a_warning() {
    for (compilers, standard, source) in [
        (["cc", "clang"], "-std=c99", "examples/c/recon.c"),
        (["cc", "clang"], "-std=c99", "examples/c/scan.c"),
        (["c++", "clang++"], "-std=c++11", "examples/cpp/recon.cpp"),
    ] {
        let text = std::fs::read_to_string(root().join(source)).unwrap();
        for compiler in compilers {
            match Command::new(compiler).arg("--version").output() {
                Ok(_) => compile(compiler, standard, source.rsplit('/').next().unwrap(), &text),
                // A macro's output is hidden if the test passes.
                Err(_) => writeln!(std::io::stdout(), "skipped: {source} under {compiler} (not installed)").unwrap(),
            }
        }
    }
}
