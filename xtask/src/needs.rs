//! The tools that steps need besides the pinned compiler: finds them, prints the line that installs them, and
//! installs them.
//!
//! Nothing is installed unless `--install` or `CI=true` allows it; otherwise the user gets one line to paste. A
//! toolchain or program that exists is never replaced: the nightly toolchain is pinned by its date and has a name of
//! its own.

use std::path::Path;

use crate::backports;
use crate::child::Task;
use crate::context::Context;
use crate::tool;

/// The nightly toolchain whose Miri judges unsafe code. Newer ones may warn of more, or format otherwise.
pub(crate) const NIGHTLY: &str = "nightly-2026-05-20";

/// Something a step needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    /// A package of Debian's, and a program on the path, or a file, that shows that it is there.
    Package { name: &'static str, proof: &'static str },
    /// This program of a QEMU that is new enough for every board.
    Qemu(&'static str),
    /// The standard library of the pinned compiler for a target.
    Target(&'static str),
    /// The oldest compiler that the workspace promises to build with.
    OldestCompiler,
    /// The one that the library promises, which is older.
    LibraryCompiler,
    /// [`NIGHTLY`], with Miri.
    Miri,
    /// A program of crates.io's; the version that is installed if there is none.
    Crate { name: &'static str, version: &'static str },
}

impl Need {
    /// A package that has a program.
    pub(crate) const fn program(name: &'static str, program: &'static str) -> Self {
        Self::Package { name, proof: program }
    }

    /// A package called as its program.
    pub(crate) const fn package(name: &'static str) -> Self {
        Self::program(name, name)
    }

    /// The missing tool, for people.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Package { name, .. } | Self::Crate { name, .. } => name.into(),
            Self::Qemu(program) => format!("{program} of QEMU 10 or later"),
            Self::Target(target) => format!("standard library for {target}"),
            Self::OldestCompiler => "Rust of the oldest version promised".into(),
            Self::LibraryCompiler => "Rust of the oldest version promised for the library".into(),
            Self::Miri => format!("{NIGHTLY} with Miri"),
        }
    }

    /// Whether this machine has it.
    pub(crate) fn is_met(self, cx: &Context) -> bool {
        match self {
            Self::Package { proof, .. } if proof.starts_with('/') => Path::new(proof).is_file(),
            Self::Package { proof, .. } => tool::on_path(proof).is_some(),
            Self::Qemu(program) => backports::is_new_enough(&cx.root, program),
            Self::Target(target) => has_target(cx, target),
            Self::OldestCompiler => has_toolchain(cx, &oldest_compiler(cx)),
            Self::LibraryCompiler => has_toolchain(cx, &library_compiler(cx)),
            Self::Miri => {
                let version = ["miri", "--version"];
                nightly(&version).answer(&cx.root).is_some()
            }
            Self::Crate { name, .. } => tool::on_path(name).is_some(),
        }
    }
}

/// A cargo command of the pinned nightly toolchain.
pub(crate) fn nightly(args: &[&str]) -> Task {
    let toolchain = format!("+{NIGHTLY}");
    Task::new("cargo", &[&[toolchain.as_str()], args].concat())
}

/// The `needs` that this machine lacks, each once.
pub(crate) fn missing(needs: &[Need], cx: &Context) -> Vec<Need> {
    let mut different: Vec<Need> = Vec::new();
    for &need in needs {
        if !different.contains(&need) {
            different.push(need);
        }
    }
    different.into_iter().filter(|need| !need.is_met(cx)).collect()
}

/// Installs what is missing of `needs`, if that is allowed. Returns the tools that stay missing,
/// and the line that installs them; nothing if none is missing.
pub(crate) fn obtain(needs: &[Need], cx: &Context) -> Option<String> {
    let mut lacking = missing(needs, cx);
    if !lacking.is_empty() && cx.may_install {
        cx.console.header("installing what is missing");
        install(&lacking, cx);
        lacking = missing(&lacking, cx);
    }
    (!lacking.is_empty()).then(|| told(&lacking, cx))
}

/// Installs `needs`, as far as that is possible.
fn install(needs: &[Need], cx: &Context) {
    for task in tasks(needs, cx) {
        match task {
            How::Run(task) => {
                task.env("DEBIAN_FRONTEND", "noninteractive").run(&cx.root, cx.console);
            }
            How::Backports(way) if is_root(cx) => way.go(&cx.root, cx.console),
            How::Backports(way) => cx.console.say(&format!("to install: {}", way.line(false))),
            How::Unknown(what) => cx.console.say(&format!("no way known to install {what}")),
        }
    }
}

/// Text that names the `missing` tools, with the line that installs them.
fn told(missing: &[Need], cx: &Context) -> String {
    let mut names: Vec<_> = missing.iter().map(|need| need.name()).collect();
    names.sort();
    names.dedup();
    format!("missing here: {}\nto install it: {}", names.join(", "), line(missing, cx))
}

/// The line that installs `needs`: to be pasted into a shell in the workspace's root.
fn line(needs: &[Need], cx: &Context) -> String {
    let parts = tasks(needs, cx).into_iter().map(|task| match task {
        How::Run(task) => task.line(),
        How::Backports(way) => way.line(is_root(cx)),
        How::Unknown(what) => format!("# install {what}"),
    });
    parts.collect::<Vec<_>>().join(" && ")
}

/// A way to install something.
enum How {
    Run(Task),
    Backports(backports::Way),
    Unknown(String),
}

/// How `needs`, which are all different, are installed, in order.
fn tasks(needs: &[Need], cx: &Context) -> Vec<How> {
    let (mut packages, mut targets, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
    let mut qemu = false;
    for &need in needs {
        match need {
            // Two proofs may be of one package.
            Need::Package { name, .. } if packages.contains(&name) => {}
            Need::Package { name, .. } => packages.push(name),
            Need::Target(target) => targets.push(target),
            Need::Qemu(_) => qemu = true,
            Need::OldestCompiler => tasks.push(toolchain(&oldest_compiler(cx), &[])),
            Need::LibraryCompiler => tasks.push(toolchain(&library_compiler(cx), &[])),
            Need::Miri => tasks.push(toolchain(NIGHTLY, &["--component", "miri,rust-src"])),
            Need::Crate { name, version } => {
                // Unoptimised: it is built much longer than it runs.
                let args = ["install", "--debug", "--locked", "--version", version, name];
                tasks.push(How::Run(Task::new("cargo", &args)));
            }
        }
    }
    if !targets.is_empty() {
        tasks.push(How::Run(Task::new("rustup", &[&["target", "add"], &targets[..]].concat())));
    }
    let newer = qemu.then(backports::way).transpose();
    // Each package once, by the newer source.
    packages.retain(|name| newer.is_err() || !qemu || !backports::PACKAGES.contains(name));
    if let Ok(Some(None)) = newer {
        packages.extend(backports::PACKAGES);
    }
    let mut all = Vec::new();
    if !packages.is_empty() {
        let (mut update, mut install) = (
            vec!["apt-get", "update"],
            vec!["apt-get", "install", "-y", "--no-install-recommends"],
        );
        install.extend(packages);
        if !is_root(cx) {
            update.insert(0, "sudo");
            install.insert(0, "sudo");
        }
        all.extend([update, install].map(|args| {
            let program = args[0];
            How::Run(Task::new(program, &args[1..]))
        }));
    }
    match newer {
        Ok(Some(Some(way))) => all.push(How::Backports(way)),
        Err(what) => all.push(How::Unknown(what)),
        Ok(_) => {}
    }
    all.extend(tasks);
    all
}

fn toolchain(name: &str, more: &[&str]) -> How {
    let install = ["toolchain", "install", name, "--profile", "minimal", "--no-self-update"];
    How::Run(Task::new("rustup", &[&install[..], more].concat()))
}

fn is_root(cx: &Context) -> bool {
    Task::new("id", &["-u"]).answer(&cx.root).is_some_and(|uid| uid.trim() == "0")
}

/// Whether the compiler in use has a standard library for `target`, however it was installed.
pub(crate) fn has_target(cx: &Context, target: &str) -> bool {
    Task::new("rustc", &["--print", "target-libdir", "--target", target])
        .answer(&cx.root)
        .is_some_and(|dir| Path::new(dir.trim()).is_dir())
}

fn has_toolchain(cx: &Context, version: &str) -> bool {
    Task::new("cargo", &[&format!("+{version}"), "--version"]).answer(&cx.root).is_some()
}

/// The oldest compiler the workspace promises to build with: its manifest's `rust-version`.
pub(crate) fn oldest_compiler(cx: &Context) -> String {
    promised(cx, "Cargo.toml")
}

/// The oldest compiler that the library promises: that of its crates' manifests.
pub(crate) fn library_compiler(cx: &Context) -> String {
    promised(cx, "stack/barewire/Cargo.toml")
}

fn promised(cx: &Context, manifest: &str) -> String {
    let manifest = std::fs::read_to_string(cx.root.join(manifest)).unwrap_or_default();
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    format!("{}.0", line.unwrap_or_default().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::console::Console;

    fn context() -> Context {
        Context::new(
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")),
            Console::silent(),
            false,
        )
    }

    #[test]
    fn the_line_installs_each_thing_once_and_can_be_pasted() {
        let needs = [
            Need::package("valgrind"),
            Need::Target("thumbv6m-none-eabi"),
            Need::program("valgrind", "/no/such/file"),
            Need::Miri,
            Need::program("ovmf", "/no/such/file"),
        ];
        let line = line(&needs, &context());
        let line = line.replace("sudo ", "");
        assert_eq!(
            line,
            format!(
                "apt-get update && apt-get install -y --no-install-recommends valgrind ovmf && \
                 rustup toolchain install {NIGHTLY} --profile minimal --no-self-update --component \
                 miri,rust-src && rustup target add thumbv6m-none-eabi"
            )
        );
    }

    #[test]
    fn what_is_there_is_not_missing() {
        let there = Need::package("cargo");
        let not = [Need::package("barewire-no-such-program"), Need::program("x", "/no/such/file")];
        assert_eq!(missing(&[there, not[0], not[1], not[0]], &context()), not);
    }

    #[test]
    fn the_nightly_toolchain_is_pinned_by_its_date() {
        let date = NIGHTLY.strip_prefix("nightly-").expect("a nightly");
        assert!(date.len() == 10 && date.split('-').all(|part| part.parse::<u32>().is_ok()));
    }

    #[test]
    fn the_oldest_compiler_is_the_manifests() {
        let version = oldest_compiler(&context());
        assert!(version.starts_with("1.") && version.ends_with(".0"), "{version}");
        let library = library_compiler(&context());
        assert!(library.starts_with("1.") && library < version, "{library}");
    }
}
