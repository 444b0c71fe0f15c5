//! The step `whole`: the tests that `cargo xtask test` cuts short, because they take minutes, and those that hand their
//! work to a program by another author, which may not be installed.
//!
//! `cargo xtask test` runs these tests too, but for those on QEMU. Without the program each of them says `SKIPPED:` and
//! passes.

use super::{PROFILE, WHOLE};
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::Need;
use crate::step::{Lane, Step};

/// The step.
pub(super) const STEP: Step = Step {
    name: "whole",
    about: "the longest tests whole; QEMU's boards, wires read by sigrok-cli, pages opened by a browser",
    lane: Lane::Shared,
    minutes: 4,
    needs: &[
        Need::Qemu("qemu-system-arm"),
        Need::Qemu("qemu-system-riscv64"),
        Need::package("sigrok-cli"),
        Need::program("device-tree-compiler", "dtc"),
        Need::package("chromium"),
        Need::program("libc6-dev", "/usr/include/stdio.h"),
    ],
    paths: &["stack/", "bench/", "command/", "lab/", "scope/", "bindings/", "contrib/"],
    run,
};

/// The tests to run: a kind of target, and the beginnings of the tests' names. No names means all tests of
/// the target. The command's tests that `counted` runs are not here.
const TESTS: [(&[&str], &[&str]); 5] = [
    (
        &["--test", "cli"],
        &[
            "qemu::",
            "wire::a_recorded_jedec_read",
            "run::what_would_go_around_the_library",
            "run::a_node_that_exists",
            "run_gpio::a_chip_that_exists",
            "can::the_page_shows",
        ],
    ),
    (&["--lib"], &["doctor::", "vcd::"]),
    (&["--test", "it"], &["captures::", "messages::", "mcp251xfd::echo", "sd_card::"]),
    (&["--test", "any_bus"], &["qemu_"]),
    (&["--test", "run"], &[]),
];

/// On QEMU's boards. Not whole: a whole chip is read back elsewhere, by the command.
const ON_QEMU: [&str; 2] = ["--test", "on_qemu"];

/// Runs the tests with `--workspace`, as the step `test` built them. A package built alone would have other features of
/// its dependencies, and be built again.
fn run(cx: &Context) -> Outcome {
    let task = |target: &[&str], names: &[&str]| {
        let cargo = ["test", "--workspace", "--no-fail-fast"];
        let args = [&cargo[..], &PROFILE, target, &["--", "--show-output"], names].concat();
        Task::new("cargo", &args).linted()
    };
    let ran = TESTS.map(|(target, names)| cx.run_tests(&task(target, names).env(WHOLE.0, WHOLE.1)));
    let on_qemu = cx.run_tests(&task(&ON_QEMU, &[]));
    Outcome::of_all(ran.into_iter().chain([on_qemu]).collect())
}
