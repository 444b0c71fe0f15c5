//! A temporary directory that only this user can enter, and that goes when we do.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::QemuError;

/// Names tried before giving up: somebody would have to have guessed them all.
const ATTEMPTS: u32 = 16;

/// A directory of mode 0700. Dropping it removes it and what is in it.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// A new one, under the system's directory for temporary files.
    pub(crate) fn new() -> Result<Self, QemuError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mut attempt = 0;
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            // Short: the path of a socket in it has to fit 108 bytes.
            let name =
                format!("barewire-qemu-{}-{count}-{:x}", std::process::id(), now.subsec_nanos());
            let path = std::env::temp_dir().join(name);
            // Fails if the name is taken, whoever took it, and by a link too.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // QEMU runs elsewhere, so a relative TMPDIR must not matter.
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaning; nobody is left to tell.
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
