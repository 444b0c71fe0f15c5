//! Reviewed tables: held against, or written anew where `BAREWIRE_BLESS` is set, which fails the run:
//! what was written nobody has reviewed.

use std::path::Path;

/// Holds `text` against the snapshot of that name.
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, text).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == reviewed, "not as reviewed in {}:\n{text}", path.display());
}
