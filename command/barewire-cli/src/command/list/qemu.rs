//! The boards of `barewire-qemu`, and whether their program is installed.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use barewire::controller::CsLine;
use barewire_qemu::{BoardSpec, QemuProgram, Version};
use rustix::fs::{Access, access};
use serde::Serialize;

use super::{BoardChip, ChipSelect};

/// How long a program may take to say its version.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A board in QEMU.
#[derive(Serialize)]
pub(super) struct Entry {
    bus: String,
    simulated: bool,
    emulator: &'static str,
    machine: &'static str,
    controller: &'static str,
    controller_base: u32,
    loopback: bool,
    chip_selects: Vec<ChipSelect>,
    #[serde(flatten)]
    program: Program,
}

/// A board's program.
#[derive(Serialize)]
struct Program {
    installed: bool,
    /// None unless it was asked for and told.
    version: Option<String>,
    needed_version: String,
    /// None unless the version was asked for.
    usable: Option<bool>,
    package: &'static str,
    #[serde(skip)]
    remedy: String,
}

impl Entry {
    pub(super) fn of(spec: &'static BoardSpec, versions: Option<&mut Versions>) -> Self {
        Self {
            bus: format!("qemu:{}", spec.name),
            simulated: false,
            emulator: spec.program.command,
            machine: spec.machine,
            controller: spec.silicon.block.name,
            controller_base: spec.silicon.base,
            loopback: spec.loopback,
            chip_selects: chip_selects(spec),
            program: Program::of(&spec.program, spec.needed, versions),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { bus, emulator, machine, controller, controller_base, .. } = self;
        let mut text = format!("{bus:<14}  QEMU's model of the board ({emulator} -M {machine})\n");
        let loops = if self.loopback { ", loops back: `barewire selftest`" } else { "" };
        let _ = writeln!(text, "  controller    {controller} at {controller_base:#x}{loops}");
        for ChipSelect { chip_select, line, driver, chip, .. } in &self.chip_selects {
            let behind = chip.as_ref().map_or("nothing attached".into(), BoardChip::text);
            let _ = writeln!(text, "  --cs {chip_select}        {line} ({driver}): {behind}");
        }
        if self.chip_selects.is_empty() {
            text.push_str("  chip selects  none: nothing is on the bus\n");
        }
        let _ = writeln!(text, "  program       {}", self.program.text(emulator));
        text
    }
}

/// The lines that are wired; a storage chip is on the first.
fn chip_selects(spec: &BoardSpec) -> Vec<ChipSelect> {
    let lines = spec.silicon.chip_selects;
    let wired = lines.iter().zip(0..).filter_map(|(line, chip_select)| {
        let (line, driver, active_high) = match *line {
            CsLine::Native { channel, active_high } => {
                (format!("SS{channel}"), "native", active_high)
            }
            CsLine::Gpio { bit, active_high } => (format!("GPIO bit {bit}"), "gpio", active_high),
            CsLine::Absent | CsLine::Sleeping => return None,
        };
        let chip = spec
            .storage
            .filter(|_| chip_select == 0)
            .map(|part| BoardChip { size: Some(part.size), ..BoardChip::named(part.name) });
        Some(ChipSelect { chip_select, line: line.into(), driver, active_high, chip })
    });
    wired.collect()
}

impl Program {
    fn of(program: &QemuProgram, needed: Version, versions: Option<&mut Versions>) -> Self {
        let named = std::env::var_os(program.variable).filter(|value| !value.is_empty());
        let command = named.unwrap_or_else(|| OsString::from(program.command));
        let installed = is_installed(&command, std::env::var_os("PATH").as_deref());
        let said = versions.map(|versions| match installed {
            true => {
                versions.0.entry(command).or_insert_with_key(|command| ask_version(command)).clone()
            }
            false => None,
        });
        let version = said.as_ref().and_then(|said| version_in(said.as_deref()?));
        Self {
            installed,
            usable: said.as_ref().map(|_| version.is_some_and(|(_, version)| version >= needed)),
            version: version.map(|(text, _)| text.to_owned()),
            needed_version: needed.to_string(),
            package: program.package,
            remedy: program.remedy(needed),
        }
    }

    fn text(&self, command: &str) -> String {
        let Self { needed_version, package, remedy, .. } = self;
        match &self.version {
            Some(version) if self.usable == Some(true) => {
                format!("{command} {version} is installed")
            }
            Some(version) => format!(
                "{command} {version} is installed, the board needs {needed_version} or later: {remedy}"
            ),
            None if self.installed && self.usable.is_some() => {
                format!("{command} is there, and does not say QEMU's version")
            }
            None if self.installed => {
                format!("{command} is installed; the board needs QEMU {needed_version} or later")
            }
            None => {
                format!("{command} is not installed: on Debian, sudo apt-get install {package}")
            }
        }
    }
}

/// What each program said of its version.
#[derive(Default)]
pub(super) struct Versions(HashMap<OsString, Option<String>>);

/// Whether a program can be started, found as a shell finds it.
fn is_installed(command: &OsStr, path: Option<&OsStr>) -> bool {
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if command.as_encoded_bytes().contains(&b'/') {
        return is_program(Path::new(command));
    }
    std::env::split_paths(path.unwrap_or_default()).any(|folder| is_program(&folder.join(command)))
}

/// The first line of the program's `--version`, if it can be run. No board is started.
fn ask_version(command: &OsStr) -> Option<String> {
    // A file and not a pipe, because reading a pipe could not be stopped.
    let (ours, theirs) = UnixStream::pair().ok()?;
    ours.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    let mut child = Command::new(command)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(OwnedFd::from(theirs))
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut line = String::new();
    // Values that QEMU did not report are left out.
    let _ = BufReader::new(ours).read_line(&mut line);
    let _ = child.kill();
    let _ = child.wait();
    Some(line)
}

/// The version as `QEMU emulator version 7.2.22 (Debian …)` has it, and to compare.
fn version_in(said: &str) -> Option<(&str, Version)> {
    let (_, rest) = said.split_once("QEMU emulator version ")?;
    let text = rest.split_whitespace().next()?;
    let mut numbers = text.split('.').map(|number| {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..digits].parse().ok()
    });
    Some((text, Version { major: numbers.next()??, minor: numbers.next()?? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let shell = |path: &str| is_installed(OsStr::new("sh"), Some(OsStr::new(path)));
        assert!(shell("/nowhere:/usr/bin:/bin") && !shell("/nowhere") && !shell(""));
        let named = |command: &str| is_installed(OsStr::new(command), None);
        assert!(named("/bin/sh") && !named("/bin") && !named("/etc/passwd") && !named("sh"));
    }

    #[test]
    fn versions_are_read() {
        let version =
            |said| version_in(said).map(|(text, version)| (text, version.major, version.minor));
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\n";
        assert_eq!(version(debian), Some(("7.2.22", 7, 2)));
        assert_eq!(version("QEMU emulator version 11.0-rc1"), Some(("11.0-rc1", 11, 0)));
        for said in
            ["", "GNU bash, version 5.2", "QEMU emulator version ", "QEMU emulator version 7"]
        {
            assert_eq!(version(said), None, "{said}");
        }
    }
}
