//! Lines for the kernel's files, by which drivers are bound, and where what was done is written down.

use std::fs;

use barewire_linux::Root;

/// Says how to restore the drivers, while `barewire measure` has them.
pub(crate) const JOURNAL: &str = "/run/barewire-measure.restore";

/// A line written to a file of sysfs.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    text: String,
    path: String,
}

impl Write {
    /// `text` to be written to `path`.
    pub(crate) fn new(text: &str, path: String) -> Self {
        Self { text: text.to_owned(), path }
    }

    /// The file.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The same as a command of a shell.
    pub(crate) fn command(&self) -> String {
        let space = if self.text.is_empty() { "" } else { " " };
        format!("echo{space}{} > {}", self.text, self.path)
    }

    /// Writes it.
    pub(crate) fn run(&self, root: &Root) -> Result<(), String> {
        let written = fs::write(root.path(&self.path), format!("{}\n", self.text));
        written.map_err(|error| format!("cannot write {}: {error}", self.path))
    }
}
