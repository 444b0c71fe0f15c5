//! Which program the tests run, for those that are programs of their own.

use std::path::{Path, PathBuf};

/// The program that a test runs: the one in the directory `BAREWIRE_PROGRAMS` if that is set, else
/// `built`, which cargo built with the test. So a release build can be tested and counted by tests that
/// are no release builds themselves.
pub(crate) fn program(built: &str) -> PathBuf {
    program_in(std::env::var_os("BAREWIRE_PROGRAMS").map(PathBuf::from).as_deref(), built)
}

fn program_in(dir: Option<&Path>, built: &str) -> PathBuf {
    let built = Path::new(built);
    match (dir, built.file_name()) {
        (Some(dir), Some(name)) => dir.join(name),
        _ => built.into(),
    }
}

#[test]
fn a_program_is_taken_from_the_directory_given_or_as_built() {
    let built = "/target/ci/barewire";
    let release = Path::new("/target/release");
    assert_eq!(program_in(Some(release), built), Path::new("/target/release/barewire"));
    assert_eq!(program_in(None, built), Path::new(built));
}
