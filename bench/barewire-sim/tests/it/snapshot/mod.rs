//! Reviewed tables. A test compares its result with the table. With `BAREWIRE_BLESS` set it writes
//! the table instead, and fails, because the new table has not been reviewed.

use std::path::Path;

/// Compares `text` with the snapshot of that name.
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, text).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == reviewed, "not as reviewed in {}:\n{text}", path.display());
}
