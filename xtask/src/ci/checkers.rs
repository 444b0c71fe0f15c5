//! The steps that check what tests cannot: model checkers, Miri, other targets, the oldest compiler, licences.

use super::PROFILE;
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::{self, Need};
use crate::step::{Lane, Step};

/// The paths of the core, and those of the tests that run it under a model checker.
const CORE: &[&str] = &["stack/barewire/"];
/// All that users link.
const LIBRARIES: &[&str] =
    &["stack/", "bench/", "bindings/", "command/", "lab/", "iommu/barewire-iommu/"];

pub(super) const LINUX32: Step = Step {
    name: "linux32",
    about: "libraries and programs compile for 32-bit Linux",
    lane: Lane::Shared,
    minutes: 1,
    needs: &[Need::Target(LINUX32_TARGET)],
    paths: LIBRARIES,
    run: linux32,
};

pub(super) const DOCS: Step = Step {
    name: "docs",
    about: "documentation without warnings",
    lane: Lane::Shared,
    minutes: 1,
    needs: &[],
    paths: LIBRARIES,
    run: docs,
};

pub(super) const MIRI: Step = Step {
    name: "miri",
    about: "the tests of the core's unsafe code under Miri",
    lane: Lane::Own,
    minutes: 6,
    needs: &[Need::Miri],
    paths: &["stack/barewire/", "bindings/barewire-open/"],
    run: miri,
};

pub(super) const LOOM: Step = Step {
    name: "loom",
    about: "the bus word, and the slots of `barewire run`, under a model checker",
    lane: Lane::Own,
    minutes: 2,
    needs: &[],
    paths: &["stack/barewire/", "bindings/barewire-spidev-abi/"],
    run: loom,
};

pub(super) const SHUTTLE: Step = Step {
    name: "shuttle",
    about: "the bus under half a million random schedules",
    lane: Lane::Own,
    minutes: 2,
    needs: &[],
    paths: CORE,
    run: shuttle,
};

pub(super) const NO_STD: Step = Step {
    name: "no_std",
    about: "the core builds without an operating system, and runs in QEMU",
    lane: Lane::Own,
    minutes: 2,
    needs: &[
        Need::Target(BARE_TARGETS[0]),
        Need::Target(BARE_TARGETS[1]),
        Need::Target(BARE_TARGETS[2]),
        Need::Target(BARE_TARGETS[3]),
        Need::Target(NO_CAS_TARGETS[0]),
        Need::Target(NO_CAS_TARGETS[1]),
        Need::package("qemu-system-arm"),
    ],
    paths: &["stack/barewire/", "examples/firmware/"],
    run: no_std,
};

pub(super) const MSRV: Step = Step {
    name: "msrv",
    about: "the oldest compilers promised build it: the library's, and the workspace's",
    lane: Lane::Own,
    minutes: 1,
    needs: &[Need::OldestCompiler, Need::LibraryCompiler],
    paths: LIBRARIES,
    run: msrv,
};

pub(super) const DENY: Step = Step {
    name: "deny",
    about: "licences, sources and versions of what we depend on (deny.toml)",
    lane: Lane::Own,
    minutes: 1,
    needs: &[DENY_PROGRAM],
    paths: &["deny.toml", "Cargo.lock", "iommu/Cargo.lock", "fuzz/Cargo.lock"],
    run: deny,
};

/// Targets without an operating system, on which the core and the page tables must build.
pub(super) const BARE_TARGETS: [&str; 4] = [
    "thumbv7em-none-eabihf",
    "aarch64-unknown-none",
    "riscv32imac-unknown-none-elf",
    "wasm32-unknown-unknown",
];

/// Targets without compare-and-swap, for which the core has a feature. Page tables need compare-and-swap.
const NO_CAS_TARGETS: [&str; 2] = ["thumbv6m-none-eabi", "riscv32imc-unknown-none-elf"];

/// The backend for a library built alone. `.cargo/config.toml` has the same flags, but `RUSTFLAGS` replaces
/// those.
const NO_CAS_FLAGS: &str = "-Dwarnings --cfg portable_atomic_unsafe_assume_single_core";

/// The core's features, and a target to build them all for.
const FEATURES: &str = "defmt,embassy,embedded-storage-async,portable-atomic,words16";
pub(super) const FEATURES_TARGET: &str = BARE_TARGETS[0];

/// The 32-bit Linux that the workspace must build for.
pub(super) const LINUX32_TARGET: &str = "armv7-unknown-linux-gnueabihf";

/// The program that checks dependencies.
const DENY_NAME: &str = "cargo-deny";
const DENY_PROGRAM: Need = Need::Crate { name: DENY_NAME, version: "0.19.0" };

fn no_std(cx: &Context) -> Outcome {
    let dir = cx.target_dir("no_std");
    // Not the profile `dev`, which would optimise procedural macros.
    let build = [&["build", "--target-dir", &dir, "-p", "barewire"], &PROFILE[..]].concat();
    let built = |more: &[&str], flags: &str| {
        let task = Task::new("cargo", &[&build[..], more].concat());
        cx.ran(&task.env("RUSTFLAGS", flags)).success
    };
    let mut success = true;
    for target in BARE_TARGETS {
        success &= built(&["--target", target], "-Dwarnings");
    }
    for target in NO_CAS_TARGETS {
        success &= built(&["--target", target, "--features", "portable-atomic"], NO_CAS_FLAGS);
    }
    success &= built(&["--target", FEATURES_TARGET, "--features", FEATURES], "-Dwarnings");
    if success { firmware(cx) } else { Outcome::failed() }
}

/// The examples for microcontrollers, built and run on the board that QEMU emulates.
fn firmware(cx: &Context) -> Outcome {
    let dir = cx.root.join(cx.target_dir("firmware"));
    let success = ["firmware", "embassy", "stack"].into_iter().fold(true, |success, bin| {
        let args = ["run", "--bin", bin, "--target-dir", &dir.to_string_lossy()];
        // Where their own settings are found: the linker script, the emulator.
        let ran = cx.ran_in(&cx.root.join("examples/firmware"), &Task::new("cargo", &args));
        success && ran.success
    });
    Outcome::of_check(success)
}

/// Compiled and not linked, which needs no foreign linker. With `--target` the flags apply to that
/// target only, so build scripts and macros are those of the plain builds.
fn linux32(cx: &Context) -> Outcome {
    let args = ["check", "--workspace", "--target", LINUX32_TARGET];
    let args = [&args[..], &PROFILE].concat();
    cx.run(&Task::new("cargo", &args).env("RUSTFLAGS", "-Dwarnings"))
}

/// The core's features that its oldest compiler has: `embassy`'s dependencies want a newer one.
const OLD_FEATURES: &str = "defmt,embedded-storage-async,portable-atomic,words16";

/// The library alone, without its tests, by its own oldest compiler, and the whole workspace by the workspace's.
fn msrv(cx: &Context) -> Outcome {
    let dir = cx.target_dir("msrv");
    let checked = |version: String, what: &[&str]| {
        let compiler = format!("+{version}");
        let args = [&[&*compiler, "check", "--locked", "--target-dir", &dir], what].concat();
        cx.run(&Task::new("cargo", &[&args[..], &PROFILE].concat()))
    };
    let library = ["-p", "barewire", "-p", "barewire-linux"];
    // Without barewire-linux, whose atomics are the standard library's.
    let with_features = ["-p", "barewire", "--features", OLD_FEATURES];
    Outcome::of_all(vec![
        checked(needs::library_compiler(cx), &library),
        checked(needs::library_compiler(cx), &with_features),
        checked(needs::oldest_compiler(cx), &["--workspace"]),
    ])
}

/// Programs apart from libraries: the command and the core are both called `barewire`, and in one
/// run cargo would write both to one page, in no certain order, with a warning.
fn docs(cx: &Context) -> Outcome {
    let success = ["--bins", "--lib"].into_iter().fold(true, |success, kind| {
        let args = [&["doc", "--workspace", "--no-deps", kind], &PROFILE[..]].concat();
        let task = Task::new("cargo", &args);
        let ran = cx.ran(&task.env("RUSTDOCFLAGS", "-Dwarnings"));
        success && ran.success
    });
    Outcome::of_check(success)
}

/// Each workspace's dependencies, by one set of rules. Not the advisories, whose database is another service's;
/// docs/releasing.md has the command.
fn deny(cx: &Context) -> Outcome {
    let workspaces =
        ["Cargo.toml", "iommu/Cargo.toml", "fuzz/Cargo.toml", "examples/firmware/Cargo.toml"];
    let checked = workspaces.map(|manifest| {
        let args = ["--manifest-path", manifest, "check", "--config", "deny.toml"];
        // Exceptions of one workspace are not met in the others.
        let allowed = ["license-exception-not-encountered", "unnecessary-skip", "unmatched-skip"];
        let allowed = allowed.map(|lint| ["--allow", lint]).concat();
        let what = ["bans", "licenses", "sources"];
        cx.run(&Task::new(DENY_NAME, &[&args[..], &allowed, &what].concat()))
    });
    Outcome::of_all(checked.into())
}

fn loom(cx: &Context) -> Outcome {
    let of = |package| cx.run_tests(&model_checker(cx, "loom", package, &["--test", "loom"]));
    Outcome::of_all([of("barewire"), of("barewire-spidev-abi")].into())
}

fn shuttle(cx: &Context) -> Outcome {
    let task = model_checker(cx, "shuttle", "barewire", &["--test", "shuttle"]);
    cx.run_tests(&task.env("BAREWIRE_SCHEDULES", "500000"))
}

/// A package's tests built for a model checker, in a profile for programs that run long and are built
/// for it alone.
pub(super) fn model_checker(cx: &Context, name: &str, package: &str, which: &[&str]) -> Task {
    let dir = cx.root.join(cx.target_dir(name)).to_string_lossy().into_owned();
    let cargo =
        ["test", "-p", package, "--profile", "models", "--no-fail-fast", "--target-dir", &dir];
    let args = [&cargo[..], which, &["--", "--show-output"]].concat();
    let flags = if name.ends_with("loom") { "--cfg loom" } else { "--cfg shuttle" };
    Task::new("cargo", &args).env("RUSTFLAGS", flags)
}

/// The modules of the core whose unit tests Miri runs: those with unsafe code. The others cannot show
/// undefined behaviour but through these, and would take four times as long.
const MIRI_MODULES: [&str; 2] = ["bus", "reg"];

/// Isolation is off because proptest reads its regression files; few cases, because Miri is some
/// hundred times slower and looks for undefined behaviour rather than for rare values. Miri runs on
/// one thread, even if tests start several.
pub(super) fn under_miri(cx: &Context, dir: &str, packages: &[&str], tests: &[&str]) -> Task {
    let dir = cx.root.join(cx.target_dir(dir)).to_string_lossy().into_owned();
    let cargo = ["miri", "test", "--no-fail-fast", "--target-dir", &dir];
    needs::nightly(&[&cargo[..], packages, &["--", "--show-output"], tests].concat())
        .env("MIRIFLAGS", "-Zmiri-disable-isolation")
        // Each backtrace of a panic takes Miri seconds.
        .env("RUST_BACKTRACE", "0")
        .env("PROPTEST_CASES", "4")
}

fn miri(cx: &Context) -> Outcome {
    let task = |packages: &[&str], tests: &[&str]| under_miri(cx, "miri", packages, tests);
    let modules = MIRI_MODULES.map(|module| format!("{module}::"));
    // Tests of chips are in modules of the same names.
    let core = [&modules.each_ref().map(String::as_str)[..], &["--skip", "chip::"]].concat();
    cx.run_tests_beside(
        &cx.root,
        &[
            task(&["-p", "barewire", "--test", "panics"], &[]),
            task(&["-p", "barewire", "--test", "worst_moments"], &[]),
            task(&["-p", "barewire", "--lib"], &core),
            task(&["-p", "barewire", "--doc"], &[]),
            task(&["-p", "barewire-open", "--lib"], &["confined::"]),
            // The worker's futex is a system call that Miri checks by another type.
            task(
                &["-p", "barewire-open", "--test", "owned_message"],
                &["--skip", "the_bytes_are_changed_between_two_runs"],
            ),
        ],
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// The files under `dir` that allow unsafe code, by their paths from there.
    pub(in crate::ci) fn unsafe_files(dir: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                found.extend(unsafe_files(&path));
            } else if std::fs::read_to_string(&path).is_ok_and(|text| {
                text.lines()
                    .any(|line| line.starts_with("#![allow") && line.contains("unsafe_code"))
            }) {
                found.push(path);
            }
        }
        found
    }

    #[test]
    fn miri_runs_every_module_of_the_core_that_allows_unsafe_code() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stack/barewire/src");
        let files = unsafe_files(&src);
        assert!(files.len() > 8, "{files:?}");
        for file in files {
            let inside = file.strip_prefix(&src).expect("is inside");
            let module = inside.components().next().expect("a folder").as_os_str();
            assert!(MIRI_MODULES.contains(&module.to_str().expect("text")), "{}", inside.display());
        }
    }
}
