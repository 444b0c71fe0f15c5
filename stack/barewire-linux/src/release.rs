//! The running kernel's release.

use crate::root::{Root, number};

/// Its text, as `uname -r` prints it; empty if unknown.
pub(crate) fn text(root: &Root) -> String {
    root.text("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Its first two numbers; 0.0 if unknown.
pub(crate) fn version(root: &Root) -> (u64, u64) {
    let release = text(root);
    let digits = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        number(&text[..end]).unwrap_or(0)
    };
    let mut parts = release.split('.').map(digits);
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_before_anything_else() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let root = Root::at(dir.path());
        assert_eq!(version(&root), (0, 0));
        std::fs::create_dir_all(root.path("/proc/sys/kernel")).expect("made");
        for (text, expected) in
            [("6.12.9-arm64", (6, 12)), ("6.1.0-50-arm64\n", (6, 1)), ("7.0-rc1", (7, 0))]
        {
            std::fs::write(root.path("/proc/sys/kernel/osrelease"), text).expect("written");
            assert_eq!(version(&root), expected, "{text}");
        }
    }
}
