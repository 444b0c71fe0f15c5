//! Whether the library can be loaded into a program: known before it is started.
//!
//! Read first: elf(5), execve(2), ld.so(8) on secure-execution mode.

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::shared::failure::Failure;

/// How much of a file is read: the headers, and a script's first line.
const HEAD_BYTES: u64 = 64 << 10;
/// A script's interpreter may be a script; Linux stops at four.
const SCRIPTS_MAX: usize = 4;
/// The library's file name.
pub(super) const LIBRARY: &str = "libbarewire_spidev.so";
/// The environment variable that names another one.
const LIBRARY_VARIABLE: &str = "BAREWIRE_SPIDEV_LIBRARY";

/// The facts of an ELF file that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Elf {
    /// 1 for 32 bits, 2 for 64.
    class: u8,
    machine: u16,
    /// The program that loads it; none for a static program or a library.
    interpreter: Option<String>,
}

/// The kind of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Elf(Elf),
    /// A script, run by that program and its first argument.
    Script(String, Option<String>),
    Other,
}

const PT_INTERP: u32 = 3;

/// The `bytes` little-endian bytes at `at`.
fn number(head: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let field = head.get(at..at.checked_add(bytes)?)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Reads an ELF file's head; `None` where it ends too early. Only little-endian machines run this.
fn elf(head: &[u8]) -> Option<Elf> {
    let class = *head.get(4)?;
    let wide = class == 2;
    let machine = number(head, 18, 2)?;
    // Offsets of e_phoff, e_phentsize and e_phnum; within a program header, of p_offset and p_filesz.
    let (phoff, phoff_bytes, phentsize) = if wide { (32, 8, 54) } else { (28, 4, 42) };
    let (offset_at, size_at, bytes) = if wide { (8, 32, 8) } else { (4, 16, 4) };
    let table = usize::try_from(number(head, phoff, phoff_bytes)?).ok()?;
    let size = usize::try_from(number(head, phentsize, 2)?).ok()?;
    let count = usize::try_from(number(head, phentsize + 2, 2)?).ok()?;
    let mut interpreter = None;
    for index in 0..count {
        let header = table.checked_add(index.checked_mul(size)?)?;
        if number(head, header, 4)? == u64::from(PT_INTERP) {
            let offset = usize::try_from(number(head, header + offset_at, bytes)?).ok()?;
            let len = usize::try_from(number(head, header + size_at, bytes)?).ok()?;
            let text = head.get(offset..offset.checked_add(len)?)?;
            let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
            interpreter = Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    Some(Elf { class, machine: u16::try_from(machine).ok()?, interpreter })
}

fn kind(head: &[u8]) -> Kind {
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        return match words.next() {
            Some(program) => Kind::Script(program.into(), words.next().map(str::to_owned)),
            None => Kind::Other,
        };
    }
    match head.starts_with(b"\x7fELF") {
        true => elf(head).map_or(Kind::Other, Kind::Elf),
        false => Kind::Other,
    }
}

fn read_kind(path: &Path) -> Result<Kind, Failure> {
    let failed = |error| Failure::io(format_args!("read {}", path.display()), &error);
    let mut head = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(failed)?;
    Ok(kind(&head))
}

/// The file that a command's name means, as execvp(3) finds it.
pub(super) fn find(name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|dir| dir.join(name)).find(|file| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
    });
    found.ok_or_else(|| {
        super::cannot_start(super::NOT_FOUND, &format!("there is no command {name:?} in PATH"))
    })
}

/// Whether the kernel would give the program rights that this process lacks; the loader then ignores
/// the library.
fn gains_rights(path: &Path) -> Option<&'static str> {
    let found = fs::metadata(path).ok()?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if found.mode() & 0o4000 != 0 && found.uid() != user.as_raw() {
        return Some("it is setuid");
    }
    if found.mode() & 0o2000 != 0 && found.gid() != group.as_raw() {
        return Some("it is setgid");
    }
    let mut room = [0_u8; 64];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut room[..]).is_ok();
    (capabilities && !user.is_root()).then_some("it has file capabilities")
}

/// Refuses a program into which the library at `library` cannot be loaded.
pub(super) fn check(program: &Path, library: &Path) -> Result<(), Failure> {
    let Kind::Elf(ours) = read_kind(library)? else {
        return Err(Failure::Failed(format!("{} is no library", library.display())));
    };
    let mut path = program.to_owned();
    for _ in 0..=SCRIPTS_MAX {
        let refused = |why: &str| {
            Err(Failure::Failed(format!(
                "{} would go around the mapped nodes: {why}, so {LIBRARY} is not loaded into it; \
                 flashrom and what else speaks serprog: `barewire serve --serprog`",
                path.display()
            )))
        };
        if let Some(why) = gains_rights(&path) {
            return refused(why);
        }
        match read_kind(&path)? {
            Kind::Other => {
                return Err(super::cannot_start(
                    super::NOT_RUNNABLE,
                    &format!("{} is neither a program nor a script that names one", path.display()),
                ));
            }
            Kind::Elf(elf) if (elf.class, elf.machine) != (ours.class, ours.machine) => {
                return refused("it is for another architecture");
            }
            Kind::Elf(Elf { interpreter: None, .. }) => return refused("it is statically linked"),
            Kind::Elf(Elf { interpreter: Some(loader), .. }) if loader.contains("ld-musl") => {
                return refused("it uses musl, another C library");
            }
            Kind::Elf(_) => return Ok(()),
            // `#!/usr/bin/env python3`: what matters is the program that env finds.
            Kind::Script(interpreter, argument) => {
                let by_env = Path::new(&interpreter).file_name().is_some_and(|name| name == "env");
                path = match argument.filter(|word| by_env && !word.starts_with('-')) {
                    Some(named) if !named.contains('=') => find(&named)?,
                    _ => interpreter.into(),
                };
            }
        }
    }
    Err(super::cannot_start(super::NOT_RUNNABLE, "scripts are nested too deep"))
}

/// The library: the one that was named, else beside the command or where a package puts it.
pub(super) fn library(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = named.map(Path::to_owned).or_else(|| env::var_os(LIBRARY_VARIABLE).map(Into::into));
    if let Some(path) = named {
        return match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(error) => Err(Failure::io(format_args!("find {}", path.display()), &error)),
        };
    }
    let command = env::current_exe().and_then(|path| path.canonicalize());
    let command = command.map_err(|error| Failure::io("find this command's own file", &error))?;
    let beside = command.parent().unwrap_or(Path::new("/"));
    let places = ["", "deps", "../lib/barewire"].map(|place| beside.join(place).join(LIBRARY));
    let found = places.iter().find_map(|path| path.canonicalize().ok());
    found.ok_or_else(|| {
        Failure::Failed(format!(
            "{LIBRARY} is not in {}: build it (`cargo build --release -p barewire-spidev-preload`), or name \
             it with --library or {LIBRARY_VARIABLE}",
            places.map(|path| path.parent().unwrap_or(&path).display().to_string()).join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_apart() {
        assert_eq!(kind(b"#!/bin/sh\nexit"), Kind::Script("/bin/sh".into(), None));
        assert_eq!(
            kind(b"#! /usr/bin/env python3 -u\n"),
            Kind::Script("/usr/bin/env".into(), Some("python3".into()))
        );
        assert_eq!(kind(b"#!\n"), Kind::Other);
        assert_eq!(kind(b"text"), Kind::Other);
        assert_eq!(kind(b"\x7fELF"), Kind::Other, "cut");
        let own = env::current_exe().expect("a test is a file");
        let Ok(Kind::Elf(elf)) = read_kind(&own) else { panic!("a program") };
        assert!(elf.interpreter.is_some_and(|loader| loader.contains("ld")));
    }

    #[test]
    fn no_head_makes_it_panic() {
        let own = fs::read(env::current_exe().expect("a test is a file")).expect("readable");
        let head = &own[..own.len().min(4096)];
        for cut in 0..head.len().min(512) {
            let _ = kind(&head[..cut]);
        }
        for at in 0..64 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = head.to_vec();
                broken[at] = value;
                let _ = kind(&broken);
            }
        }
    }
}
