//! Tells the command the profile that it is built with, which `barewire bench` says beside its figures.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // …/PROFILE/build/NAME/out
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name);
    let profile = profile.unwrap_or_default().to_string_lossy().into_owned();
    println!("cargo::rustc-env=BAREWIRE_PROFILE={profile}");
}
