//! The step `test-release`: instruction counts, and some tests with the programs as they ship.

use super::{Context, Outcome, PROFILE, WHOLE};
use crate::child::Task;
use crate::static_build;
use crate::tools;

/// What only the release profile can show: instruction counts of what users build, with its
/// link-time optimisation and without debug checks; and that the command passes there too.
///
/// Only the programs are built so, and the one that counts page tables for 64-bit Arm too. The tests
/// that run them are those of the step `test`, which cargo does not build again: `--workspace` keeps the
/// features the same.
pub(super) fn run(cx: &Context) -> Outcome {
    let programs = ["-p", "barewire-cli", "-p", "barewire-iommu-bench", "--bins"];
    let mut builds = vec![Task::new("cargo", &[&["build", "--release"], &programs[..]].concat())];
    // Without it, the test that counts says that it skipped.
    let arm64 = tools::has_target(cx, static_build::ARM64);
    builds.extend(arm64.then(counts_arm64));
    for build in &builds {
        let built = cx.ran(build);
        if !built.success {
            return Outcome::of_tests(false, built.tally);
        }
    }
    let in_root = |dir: String| cx.root.join(dir).to_string_lossy().into_owned();
    let release = in_root(cx.target_dir("release"));
    let release_arm64 = in_root(cx.target_dir(&format!("{}/release", static_build::ARM64)));
    let cargo = ["test", "--workspace", "--no-fail-fast"];
    let counting = ["--test", "instructions", "--", "--show-output", "--include-ignored"];
    let shipped = ["--test", "cli", "--", "--show-output", "selftest::", "stress::", "flash::"];
    let ran = [&counting[..], &shipped].map(|which| {
        let task = Task::new("cargo", &[&cargo[..], &PROFILE, which].concat());
        let task = task.env(WHOLE.0, WHOLE.1).env("BAREWIRE_PROGRAMS", release.as_str());
        let arm64 = arm64.then_some(release_arm64.as_str());
        cx.run_tests(&arm64.into_iter().fold(task, |task, dir| task.env(PROGRAMS_ARM64, dir)))
    });
    // Some hundred thousand simulated runs, which take ten times as long with debug checks.
    let lab = ["test", "--release", "-p", "barewire-lab", "--test", "fit", "--", "--show-output"];
    let fit = cx.run_tests(&Task::new("cargo", &lab));
    Outcome::of_all(ran.into_iter().chain([fit]).collect())
}

/// Names the directory of programs for 64-bit Arm to the tests that run them under QEMU.
const PROGRAMS_ARM64: &str = "BAREWIRE_PROGRAMS_ARM64";

/// Builds the program whose instructions QEMU counts.
fn counts_arm64() -> Task {
    let target = static_build::ARM64;
    let program = ["build", "--release", "-p", "barewire-iommu-bench", "--bin", "iommu-count"];
    // The linker as in `static_build`.
    let flags = format!("{} -C linker=rust-lld", static_build::atomics(target));
    Task::new("cargo", &[&program[..], &["--target", target]].concat()).env("RUSTFLAGS", flags)
}
