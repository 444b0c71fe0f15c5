//! `cargo xtask dist`: what a release is made of, for each architecture: a static binary, an archive and a
//! Debian package, with completions, manual pages and what a board needs; a Python wheel; and their checksums.
//!
//! How it works: [`documents`] lets the command describe itself; [`stage`] lays out the files as they are installed;
//! [`package`] packs them. All that is written is below `target/dist`. File times and owners in archives
//! are fixed, so that the same sources and compiler give the same bytes.

mod arch;
mod check;
pub(crate) mod dkms;
mod documents;
pub(crate) mod package;
#[cfg(test)]
mod recipes;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use arch::Arch;

use crate::context::{Context, Outcome, Stop};
use crate::needs::{self, Need};
use crate::programs;
use crate::python;
use crate::report::End;
use crate::static_build::{self, Place};
use crate::step::{Lane, Step};
use crate::tally::Tally;
use crate::tool;

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "dist",
    about: "the command's package is installed, run and removed",
    lane: Lane::Programs,
    minutes: 4,
    needs: &[
        Need::program("gcc", "cc"),
        Need::program("dpkg", "dpkg-deb"),
        Need::package("gzip"),
        Need::package("tar"),
        Need::program("coreutils", "sha256sum"),
        Need::package("git"),
        Need::Target(static_build::AMD64),
        Need::Target(static_build::LIBRARY_AMD64),
    ],
    paths: &["stack/", "bench/", "bindings/", "command/", "contrib/", "lab/"],
    run: step,
};

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    /// What to make: an architecture's files, or the kernel module's package; all unless told
    #[arg(value_name = "WHAT", value_enum)]
    what: Vec<What>,
}

/// What can be made alone.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum What {
    Arm64,
    Armhf,
    Amd64,
    /// The kernel module's package, which is for all architectures
    Dkms,
}

impl What {
    const ALL: [Self; 4] = [Self::Arm64, Self::Armhf, Self::Amd64, Self::Dkms];

    fn arch(self) -> Option<Arch> {
        match self {
            Self::Arm64 => Some(Arch::Arm64),
            Self::Armhf => Some(Arch::Armhf),
            Self::Amd64 => Some(Arch::Amd64),
            Self::Dkms => None,
        }
    }
}

/// The files to make.
#[derive(Debug)]
struct Plan {
    arches: Vec<Arch>,
    /// Cargo's profile.
    profile: &'static str,
    /// Settings for Cargo that override those in its files.
    config: &'static [&'static str],
    /// Whether Python's wheels are made too: they need maturin from PyPI.
    wheels: bool,
    /// Whether the kernel module's package is made, which is for all architectures.
    module: bool,
}

/// Where files are made.
#[derive(Debug)]
struct Dirs {
    /// The workspace.
    root: PathBuf,
    /// The directory of the files to ship.
    out: PathBuf,
    /// The directory of intermediate files.
    work: PathBuf,
    /// Cargo's directory for these builds.
    cargo: PathBuf,
}

impl Dirs {
    fn of(cx: &Context) -> Self {
        let base = cx.target();
        let out = base.join("dist");
        Self {
            root: cx.root.clone(),
            work: out.join("work"),
            cargo: base.join("guests/cargo"),
            out,
        }
    }
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<End, String> {
    let what = if options.what.is_empty() { &What::ALL[..] } else { &options.what };
    let arches: Vec<Arch> = what.iter().filter_map(|what| what.arch()).collect();
    let module = what.contains(&What::Dkms);
    let halves = dkms::MACHINES.iter().filter(|_| module);
    let needs = arches.iter().flat_map(|arch| arch.needs());
    let needs = needs.chain(halves.flat_map(|half| half.needs()));
    let needs: Vec<Need> = STEP
        .needs
        .iter()
        .copied()
        .filter(|need| !matches!(need, Need::Target(_)))
        .chain(needs)
        .collect();
    if let Some(lacking) = needs::obtain(&needs, cx) {
        return Err(lacking);
    }
    let plan = Plan { arches, profile: "dist", config: &[], wheels: true, module };
    for path in make(&plan, cx)? {
        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let name = path.strip_prefix(&cx.root).unwrap_or(&path).display().to_string();
        cx.console.say(&format!("{name:<56}{:>8} KiB", bytes.div_ceil(1024)));
    }
    Ok(End::Passed)
}

/// This machine's architecture, built without link-time optimisation, installed into a scratch directory,
/// looked at and removed.
pub(crate) fn step(cx: &Context) -> Outcome {
    // The wheel is built and tested by the step `python`.
    let arches: Vec<Arch> = Arch::of_this_machine().into_iter().collect();
    // Neither timed nor counted, so not optimised.
    let config = &["profile.guest.opt-level=0", "profile.guest.package.barewire-cli.opt-level=0"];
    let plan = Plan { arches, profile: "guest", config, wheels: false, module: false };
    if plan.arches.is_empty() {
        let why = "no package for this machine's architecture".to_owned();
        return Stop::Lacks(why).outcome(STEP.name, cx);
    }
    let checked = make(&plan, cx).and_then(|made| check::all(&Dirs::of(cx), &made));
    match checked {
        Ok(passed) => {
            passed.iter().for_each(|what| cx.console.say(&format!("dist: {what}")));
            let tally = Tally { passed: passed.len() as u64, ..Tally::default() };
            Outcome::of_tests(true, tally)
        }
        Err(why) => Stop::Broke(why).outcome(STEP.name, cx),
    }
}

/// Makes everything; the files to ship.
fn make(plan: &Plan, cx: &Context) -> Result<Vec<PathBuf>, String> {
    let dirs = Dirs::of(cx);
    // Files of an earlier run must not be shipped by this one.
    let _ = fs::remove_dir_all(&dirs.out);
    let version = version(&dirs.root)?;
    let log = dirs.work.join("cargo.log");
    make_way(&log)?;
    let mut made = match plan.arches.is_empty() {
        true => Vec::new(),
        false => commands(plan, cx, &dirs, &version, &log)?,
    };
    if plan.module {
        cx.console.say("dist: building the kernel module's Rust half");
        let (root, cargo) = (&*dirs.root, &*dirs.cargo.with_file_name("cargo-module"));
        let place = dkms::Place { root, cargo, work: &dirs.work, out: &dirs.out };
        made.push(dkms::make(&place, &version)?);
    }
    made.push(package::checksums(&dirs, &made)?);
    Ok(made)
}

/// Makes what has the command in it, for each architecture.
fn commands(
    plan: &Plan,
    cx: &Context,
    dirs: &Dirs,
    version: &str,
    log: &Path,
) -> Result<Vec<PathBuf>, String> {
    let built = programs::build(cx, log)?;
    let documents = documents::all(dirs, &built)?;
    let time = documents::time(&dirs.root);
    let targets: Vec<_> = plan.arches.iter().map(|arch| arch.target()).collect();
    cx.console.say(&format!("dist: building for {}", targets.join(", ")));
    let (root, cargo, profile, config) = (&*dirs.root, &*dirs.cargo, plan.profile, plan.config);
    let place = Place { root, cargo, profile, config, log };
    let commands = place.commands(&targets)?;
    let targets: Vec<_> = plan.arches.iter().map(|arch| arch.library()).collect();
    let libraries = place.libraries(&targets)?;
    let mut made = Vec::new();
    for ((&arch, command), library) in plan.arches.iter().zip(&commands).zip(&libraries) {
        let name = format!("barewire-{version}-{}", arch.debian());
        let binary = dirs.out.join(&name);
        copy(command, &binary)?;
        let staged = stage::Layout { dirs, documents: &documents, command, library, version };
        made.push(binary);
        made.push(package::archive(dirs, &staged.archive(&name)?, &name, time)?);
        let package = dirs.out.join(format!("barewire_{version}_{}.deb", arch.debian()));
        package::debian(&staged.debian(arch)?, &package, time)?;
        made.push(package);
        if plan.wheels {
            let (target, linker) = arch.library();
            cx.console.say(&format!("dist: building the Python wheel for {target}"));
            let (cargo, out) = (&dirs.cargo, &dirs.out);
            made.push(python::wheel(cx, cargo, out, (target, linker), plan.profile, time)?);
        }
    }
    Ok(made)
}

/// Both licences, whole.
fn copyright(root: &Path, path: &Path) -> Result<(), String> {
    let mut text = String::from("barewire is licensed under MIT or Apache-2.0, at your choice.\n");
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        text += "\n";
        text += &String::from_utf8_lossy(&read(&root.join(file))?);
    }
    write(path, &text)
}

/// Copies the files of a directory and of those below it.
fn copy_all(from: &Path, to: &Path) -> Result<(), String> {
    let entries = fs::read_dir(from).map_err(|e| format!("cannot read {}: {e}", from.display()))?;
    for entry in entries.flatten() {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() { copy_all(&path, &place)? } else { copy(&path, &place)? }
    }
    Ok(())
}

/// The workspace's version.
pub(crate) fn version(root: &Path) -> Result<String, String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let manifest = String::from_utf8_lossy(&manifest).into_owned();
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.map(|rest| rest.trim_end_matches('"').to_owned());
    version.ok_or_else(|| "Cargo.toml has no version".to_owned())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}

pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    make_way(path)?;
    fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_way(to)?;
    fs::copy(from, to)
        .map(|_| ())
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

fn make_way(path: &Path) -> Result<(), String> {
    let dir = path.parent().unwrap_or(path);
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))
}

/// Runs a program for its effect.
fn run_quietly(command: &mut Command) -> Result<(), String> {
    tool::answer(command).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_overlay_compiles() {
        if tool::on_path("dtc").is_none() {
            println!("SKIPPED: no dtc (Debian: device-tree-compiler)");
            return;
        }
        let overlays = Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/overlays");
        let mut seen = 0;
        for entry in fs::read_dir(&overlays).expect("overlays").flatten() {
            let mut dtc = Command::new("dtc");
            dtc.args(["-@", "-I", "dts", "-O", "dtb", "-o", "/dev/null"]).arg(entry.path());
            let compiled = run_quietly(&mut dtc);
            assert!(compiled.is_ok(), "{compiled:?}");
            seen += 1;
        }
        assert!(seen >= 3, "{seen} overlays");
    }

    /// The list of a Debian package and the files of the workspace.
    #[test]
    fn every_file_that_is_installed_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for path in stage::sources() {
            assert!(root.join(path).is_file(), "{path}");
        }
    }

    #[test]
    fn the_version_is_the_workspaces() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(version(&root).as_deref(), Ok(env!("CARGO_PKG_VERSION")));
    }
}
