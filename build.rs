//! Sets the soname of the shared library, by which programs request a version of the ABI from the loader.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let unix = std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|f| f.contains("unix"));
    let apple = std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|v| v == "apple");
    // The major version is the version of the ABI. It is increased when callers must be compiled again.
    let abi = std::env::var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    if unix && !apple {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librecon.so.{abi}");
    }
}
