//! apt beside the machine's own: foreign architectures and newer lists, without root and without a
//! change to the machine.
//!
//! State and cache lie in a directory of our own. The sources are the machine's (`/etc/apt`), so that mirrors,
//! keys and proxies are those that it uses. An entry that names its architectures has no others here. Mirrors
//! that are being updated answer with lists whose hashes do not match: that is tried again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::tool;

/// How often something is fetched, and how long a mirror is left alone in between.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_secs(5);

/// An apt of our own.
#[derive(Debug)]
pub(crate) struct Apt {
    dir: PathBuf,
}

impl Apt {
    /// Sets it up below `dir`, which is absolute.
    pub(crate) fn new(dir: &Path) -> Result<Self, String> {
        let host = tool::answer(Command::new("dpkg").arg("--print-architecture"))?;
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
        };
        for name in ["lists/partial", "cache/archives/partial"] {
            let path = dir.join(name);
            fs::create_dir_all(&path)
                .map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        }
        write("status", "")?;
        write("apt.conf", &config(dir, String::from_utf8_lossy(&host).trim()))?;
        Ok(Self { dir: dir.to_owned() })
    }

    /// Fetches the lists. Some may stay missing. The steps that need them say so.
    pub(crate) fn update(&self, log: &Path) -> Result<(), String> {
        persist(|| tool::run(self.command("apt-get").arg("update"), log))
    }

    /// The names of all packages that begin with `prefix`.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>, String> {
        let said = tool::answer(self.command("apt-cache").args(["pkgnames", prefix]))?;
        Ok(String::from_utf8_lossy(&said).lines().map(str::to_owned).collect())
    }

    /// Fetches packages (`name` or `name:architecture`) into `dir`.
    pub(crate) fn download(&self, names: &[String], dir: &Path, log: &Path) -> Result<(), String> {
        let task = || {
            let mut command = self.command("apt-get");
            command.arg("download").args(names).current_dir(dir);
            tool::run(&mut command, log)
        };
        persist(task)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.dir.join("apt.conf")).env("LC_ALL", "C");
        command
    }
}

/// apt's configuration. `APT_CONFIG` is read before `/etc/apt/apt.conf.d`, whose proxies are wanted.
fn config(dir: &Path, host: &str) -> String {
    let dir = dir.display();
    format!(
        "Dir::State \"{dir}\";\n\
         Dir::State::lists \"{dir}/lists\";\n\
         Dir::State::status \"{dir}/status\";\n\
         Dir::Cache \"{dir}/cache\";\n\
         APT::Architecture \"{host}\";\n\
         APT::Architectures {{ \"{host}\"; \"arm64\"; \"armhf\"; }};\n\
         APT::Sandbox::User \"\";\n\
         Acquire::Languages \"none\";\n\
         Acquire::Retries \"3\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::DEP-11-icons-small::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::DEP-11-icons::DefaultEnabled \"false\";\n\
         Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled \"false\";\n"
    )
}

/// Tries `task` a few times until it works. Returns the last error.
fn persist(mut task: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    let mut ended = task();
    for _ in 1..ATTEMPTS {
        if ended.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        ended = task();
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_state_is_in_our_own_directory() {
        let text = config(Path::new("target/guests/apt"), "amd64");
        for key in ["Dir::State ", "Dir::State::lists ", "Dir::Cache "] {
            let line = text.lines().find(|line| line.starts_with(key)).expect(key);
            assert!(line.contains("\"target/guests/apt"), "{line}");
        }
        assert!(text.contains("{ \"amd64\"; \"arm64\"; \"armhf\"; }"), "{text}");
    }

    #[test]
    fn what_works_is_not_tried_again() {
        let mut tried = 0;
        let ended = persist(|| {
            tried += 1;
            Ok(())
        });
        assert_eq!((ended, tried), (Ok(()), 1));
    }
}
