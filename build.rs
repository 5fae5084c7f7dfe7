//! Sets the soname of the shared library, by which programs request a version of the ABI from the loader.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let manifest = std::fs::read_to_string("Cargo.toml").expect("Cargo.toml can be read");
    let abi = manifest.lines().find_map(|line| line.strip_prefix("abi = ")).expect("Cargo.toml has a line abi = N");
    // For tests.
    println!("cargo:rustc-env=RECON_ABI={abi}");
    let unix = std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|f| f.contains("unix"));
    let apple = std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|v| v == "apple");
    if unix && !apple {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librecon.so.{abi}");
    }
}
