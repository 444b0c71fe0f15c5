//! Builds that lint: clippy's compiler in the place of rustc, for the crates of this workspace.
//!
//! `cargo clippy` reads every crate a second time, with metadata of every dependency that is built for it alone:
//! a quarter of all the time that `cargo xtask test` took. clippy-driver is rustc with lints, so what it builds is
//! what the tests run, and each crate is read once. All steps that share a target directory must build so, since
//! cargo keeps what different compilers made apart.

/// The environment of such a build: the compiler, and that a warning is an error.
pub(crate) const VARIABLES: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    // `cargo clippy -- -D warnings` passes the same text.
    ("CLIPPY_ARGS", "-Dwarnings__CLIPPY_HACKERY__"),
];
