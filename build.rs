//! Gives the shared library its soname: programs ask the loader for the ABI's version, not for a file of that name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let unix = std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|f| f.contains("unix"));
    let apple = std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|v| v == "apple");
    // The first number of the version is the ABI's; it grows when a caller must be compiled again.
    let abi = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    if unix && !apple {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librecon.so.{abi}");
    }
}
