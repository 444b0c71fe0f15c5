//! The directory that contains `/dev`, `/sys` and `/proc`: an argument, so that tests use a tree of
//! their own.

use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};

/// The directory used as `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// The machine's own `/`.
    #[must_use]
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// Another directory.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// The absolute `path` under this root.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file, without white space at its end.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let mut text = std::fs::read_to_string(self.path(path))?;
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(path))
    }

    /// The names in a directory, sorted with numbers in numeric order; empty if it cannot be read.
    pub(crate) fn names(&self, directory: impl AsRef<Path>) -> Vec<String> {
        self.names_of(directory, |_| true)
    }

    /// The names of the directories in a directory, like [`Root::names`].
    pub(crate) fn directories(&self, directory: impl AsRef<Path>) -> Vec<String> {
        self.names_of(directory, |entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    }

    fn names_of(&self, directory: impl AsRef<Path>, wanted: fn(&DirEntry) -> bool) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(directory)) else {
            return Vec::new();
        };
        let entries = entries.flatten().filter(wanted);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort_by_cached_key(|name| counted(name));
        names
    }

    /// The last component of a symbolic link's target.
    pub(crate) fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }
}

impl Default for Root {
    fn default() -> Self {
        Self::system()
    }
}

/// A number as sysfs writes it: `0x` and hexadecimal, or decimal.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A sort key by which `spidev2.0` comes before `spidev10.0`.
fn counted(name: &str) -> Vec<(u64, String)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (word, tail) = tail.split_at(letters);
        key.push((number.parse().unwrap_or(0), word.to_owned()));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_begin_at_the_root() {
        let root = Root::at("/tmp/tree");
        assert_eq!(root.path("/dev/spidev0.0"), Path::new("/tmp/tree/dev/spidev0.0"));
        assert_eq!(root.path("dev/mem"), Path::new("/tmp/tree/dev/mem"));
        assert_eq!(Root::system().path("/dev/mem"), Path::new("/dev/mem"));
    }

    #[test]
    fn names_sort_as_people_count() {
        let mut names = ["spidev10.0", "spidev2.10", "spidev2.9", "spidev0.0"];
        names.sort_by_cached_key(|name| counted(name));
        assert_eq!(names, ["spidev0.0", "spidev2.9", "spidev2.10", "spidev10.0"]);
    }

    #[test]
    fn numbers_are_hexadecimal_only_with_their_prefix() {
        assert_eq!(number("0x30820000\n"), Some(0x3082_0000));
        assert_eq!(number("4096"), Some(4096));
        assert_eq!(number("3082000z"), None);
        assert_eq!(number(""), None);
    }
}
