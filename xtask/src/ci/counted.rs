//! The step `counted`: instruction counts, and some tests with the programs as they ship.

use super::{PROFILE, WHOLE};
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::Need;
use crate::step::{Lane, Step};

/// The step.
pub(super) const STEP: Step = Step {
    name: "counted",
    about: "instructions counted, the command as it ships, the lab's fit made anew",
    lane: Lane::Shared,
    minutes: 10,
    needs: &[
        Need::package("valgrind"),
        Need::program("ovmf", "/usr/share/OVMF/OVMF_CODE_4M.fd"),
        Need::package("chromium"),
    ],
    paths: &["stack/", "bench/", "command/", "lab/", "bindings/"],
    run,
};

/// Tests of the command that `cargo xtask test` cuts short or leaves out.
const CUT_SHORT: [&str; 5] = [
    "selftest::every_case_passes",
    "selftest::every_controller_passes",
    "flash::the_whole_chip_goes",
    "flash::a_firmware_image_goes",
    "lab::",
];

/// Checks that only the profile `counted` can make: instruction counts of the shipped code,
/// with its link-time optimisation and without debug checks; and that the command passes its longest
/// tests in that profile.
///
/// Only the command is built in this profile. The tests that run it are those of the step `test`. Cargo
/// does not build them again, since `--workspace` keeps the features the same.
fn run(cx: &Context) -> Outcome {
    let programs = ["-p", "barewire-cli", "--bins"];
    let build = [&["build", "--profile", "counted"], &programs[..]].concat();
    let built = cx.ran(&Task::new("cargo", &build));
    if !built.success {
        return Outcome::of_tests(false, built.tally);
    }
    let counted = cx.root.join(cx.target_dir("counted")).to_string_lossy().into_owned();
    let cargo = ["test", "--workspace", "--no-fail-fast"];
    let counting = ["--test", "instructions", "--", "--show-output"];
    let shipped = [&["--test", "cli", "--", "--show-output"][..], &CUT_SHORT].concat();
    let ran = [&counting[..], &shipped].map(|which| {
        let task = Task::new("cargo", &[&cargo[..], &PROFILE, which].concat());
        cx.run_tests(
            &task.linted().env(WHOLE.0, WHOLE.1).env("BAREWIRE_PROGRAMS", counted.as_str()),
        )
    });
    // Some hundred thousand simulated runs, which take ten times as long with debug checks.
    let lab = [
        "test",
        "--profile",
        "models",
        "-p",
        "barewire-lab",
        "--test",
        "fit",
        "--",
        "--show-output",
    ];
    let fit = cx.run_tests(&Task::new("cargo", &lab));
    Outcome::of_all(ran.into_iter().chain([fit]).collect())
}
