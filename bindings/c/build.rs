//! How the shared library is linked: its name for the loader, and that it stays loaded.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The crate is not called as the library is: see Cargo.toml.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbarewire.so.0");
        // A worker thread may run its code after a `dlclose`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
