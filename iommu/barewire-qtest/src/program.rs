//! Finds the QEMU program and checks its version.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::{QemuError, Version};
use crate::private_dir::PrivateDir;

/// How long `--version` may take.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two checks of a process or a socket.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// How much of its answer is read.
const ANSWER_MAX: u64 = 4_096;

/// The program for a machine, as distributions package it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QemuProgram {
    /// The command.
    pub command: &'static str,
    /// The environment variable that names another program.
    pub variable: &'static str,
    /// Debian's package.
    pub package: &'static str,
}

impl QemuProgram {
    /// QEMU for 32-bit Arm.
    pub const ARM: Self = Self {
        command: "qemu-system-arm",
        variable: "BAREWIRE_QEMU_ARM",
        package: "qemu-system-arm",
    };

    /// QEMU for 64-bit Arm.
    pub const AARCH64: Self = Self {
        command: "qemu-system-aarch64",
        variable: "BAREWIRE_QEMU_AARCH64",
        package: "qemu-system-arm",
    };

    /// QEMU for 64-bit RISC-V.
    pub const RISCV64: Self = Self {
        command: "qemu-system-riscv64",
        variable: "BAREWIRE_QEMU_RISCV64",
        package: "qemu-system-misc",
    };

    /// Its path: the caller's, or the environment's, or else the command.
    fn path(&self, named: Option<&Path>) -> PathBuf {
        let named = named.map(Path::to_owned).or_else(|| {
            let value = std::env::var_os(self.variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        });
        match named {
            // QEMU will run in another directory.
            Some(path) if path.components().count() > 1 => {
                std::path::absolute(&path).unwrap_or(path)
            }
            Some(path) => path,
            None => self.command.into(),
        }
    }

    /// Finds the program and checks that it is QEMU of version `needed` or later. `named` is tried
    /// instead of the environment's or the default one; its answer is kept in `dir`.
    ///
    /// # Errors
    /// It is missing, too old, or not QEMU.
    pub fn find(
        &self,
        named: Option<&Path>,
        needed: Version,
        dir: &PrivateDir,
    ) -> Result<PathBuf, QemuError> {
        let program = self.path(named);
        let said = self.ask_version(&program, dir)?;
        match parse_version(&said) {
            Some(found) if found >= needed => Ok(program),
            Some(found) => {
                Err(QemuError::TooOld { program, found, needed, remedy: self.remedy(needed) })
            }
            None => {
                let said = said.lines().next().unwrap_or_default().to_owned();
                Err(QemuError::NotQemu { program, said })
            }
        }
    }

    /// Which Debian release has QEMU `needed`, and how to install it.
    #[must_use]
    pub fn remedy(&self, needed: Version) -> String {
        let package = self.package;
        match DEBIAN.iter().find(|row| row.version >= needed) {
            Some(Debian { version, has, target }) => {
                format!("{has} {version} (sudo apt-get install {target}{package})")
            }
            None => format!("no Debian release known here has {needed}"),
        }
    }

    fn ask_version(&self, program: &Path, dir: &PrivateDir) -> Result<String, QemuError> {
        // To a file: the program could leave a process running that holds a pipe open.
        let path = dir.join("version");
        let file = File::create(&path).map_err(QemuError::file(&path, "create"))?;
        let mut child = Command::new(program)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| QemuError::Missing {
                program: program.to_owned(),
                package: self.package,
                reason: error.to_string(),
            })?;
        let begun = Instant::now();
        while let Ok(None) = child.try_wait() {
            if begun.elapsed() > VERSION_TIMEOUT {
                // Reaped below.
                let _ = child.kill();
                let _ = child.wait();
                let said = format!("nothing for {} s", VERSION_TIMEOUT.as_secs());
                return Err(QemuError::NotQemu { program: program.to_owned(), said });
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        let mut said = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(ANSWER_MAX).read_to_end(&mut said))
            .map_err(QemuError::file(&path, "read"))?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    }
}

/// A Debian release's QEMU.
struct Debian {
    version: Version,
    /// The beginning of the sentence for the user.
    has: &'static str,
    /// Options for `apt-get install` besides the package.
    target: &'static str,
}

/// Oldest first. The release after bookworm has the version of bookworm-backports.
const DEBIAN: [Debian; 2] = [
    Debian { version: Version { major: 7, minor: 2 }, has: "Debian 12 (bookworm) has", target: "" },
    Debian {
        version: Version { major: 10, minor: 0 },
        has: "Debian 13, and on Debian 12 bookworm-backports, have",
        target: "-t bookworm-backports ",
    },
];

/// The version in `QEMU emulator version 7.2.22 (Debian …)`.
fn parse_version(said: &str) -> Option<Version> {
    let (_, rest) = said.lines().next()?.split_once("QEMU emulator version ")?;
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some(Version { major: numbers.next()??, minor: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let version = |major, minor| Some(Version { major, minor });
        for (said, expected) in [
            ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright", version(7, 2)),
            ("QEMU emulator version 10.0.2", version(10, 0)),
            ("QEMU emulator version 6.2", version(6, 2)),
            ("QEMU emulator version 11.0-rc1\r\n", version(11, 0)),
            ("QEMU emulator version 7", None),
            ("QEMU emulator version x.y", None),
            ("QEMU emulator version 99999999999.1", None),
            ("GNU bash, version 5.2", None),
            ("", None),
        ] {
            assert_eq!(parse_version(said), expected, "{said:?}");
        }
    }

    #[test]
    fn the_remedy_is_the_oldest_debian_that_will_do() {
        let program = QemuProgram { command: "q", variable: "Q", package: "qemu-system-arm" };
        let remedy = |major, minor| program.remedy(Version { major, minor });
        assert_eq!(
            remedy(7, 2),
            "Debian 12 (bookworm) has 7.2 (sudo apt-get install qemu-system-arm)"
        );
        let text = remedy(9, 1);
        assert!(
            text.contains("bookworm-backports, have 10.0")
                && text.contains("install -t bookworm-backports qemu-system-arm"),
            "{text}"
        );
        assert_eq!(remedy(99, 0), "no Debian release known here has 99.0");
    }

    #[test]
    fn versions_compare_as_numbers() {
        let version = |major, minor| Version { major, minor };
        assert!(version(10, 0) > version(7, 2) && version(7, 10) > version(7, 2));
    }
}
