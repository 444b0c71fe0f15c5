//! A temporary directory that only this user can enter, and that is deleted on drop.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::QemuError;

/// The number of names to try. If all were taken, an attacker must have guessed them.
const ATTEMPTS: u32 = 16;

/// A directory of mode 0700. Dropping it removes it and what is in it.
#[derive(Debug)]
pub struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// Creates a directory in the system's directory for temporary files.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new() -> Result<Self, QemuError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut attempt = 0;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // A short name: the path of a socket in it has at most 108 bytes.
            let name =
                format!("barewire-qemu-{}-{count}-{:x}", std::process::id(), now.subsec_nanos());
            let path = std::env::temp_dir().join(name);
            // Fails if the name exists, even as a symbolic link.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // Absolute, because QEMU runs in another directory and TMPDIR may be relative.
                    let path = path.canonicalize().unwrap_or(path);
                    return Ok(Self { path });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(QemuError::file(path, "create the directory")(error)),
            }
        }
    }

    /// Its absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file `name` in it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning; a destructor cannot report it.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn private_while_it_lives_and_gone_after() {
        let (one, two) = (PrivateDir::new().expect("one"), PrivateDir::new().expect("two"));
        assert_ne!(one.path(), two.path());
        let mode = std::fs::metadata(one.path()).expect("exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        std::fs::write(one.join("file"), "x").expect("writes");
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists());
    }
}
