//! The steps of `cargo xtask test`: format, house rules, lints, and all tests that this machine can run.

use super::PROFILE;
use crate::child::Task;
use crate::context::{Context, Outcome, Verdict};
use crate::report::plural;
use crate::step::{Lane, Step};
use crate::tidy;

pub(super) const FMT: Step = step("fmt", "rustfmt has nothing to change, in any workspace", 1, fmt);

pub(super) const TIDY: Step = step("tidy", "the house rules", 1, house_rules);

pub(super) const CLIPPY: Step =
    step("clippy", "no compiler or clippy warning in any target; builds the tests", 8, clippy);

pub(super) const TEST: Step =
    step("test", "unit, integration and doc tests, with debug checks", 5, test);

const fn step(
    name: &'static str,
    about: &'static str,
    minutes: u8,
    run: fn(&Context) -> Outcome,
) -> Step {
    Step { name, about, lane: Lane::Test, minutes, needs: &[], paths: &[], run }
}

fn fmt(cx: &Context) -> Outcome {
    // By default rustfmt colours its differences even into a file.
    let colour = if cx.console.colour() { "always" } else { "never" };
    let wrong = [".", "iommu", "kernel"].into_iter().find(|folder| {
        let manifest = format!("{folder}/Cargo.toml");
        let args =
            ["fmt", "--all", "--check", "--manifest-path", &manifest, "--", "--color", colour];
        cx.run(&Task::new("cargo", &args)).verdict == Verdict::Failed
    });
    match wrong {
        None => Outcome::passed(),
        Some(".") => Outcome::failed().with_note("remedy: cargo fmt --all".into()),
        Some(folder) => {
            Outcome::failed().with_note(format!("remedy: cd {folder} && cargo fmt --all"))
        }
    }
}

fn house_rules(cx: &Context) -> Outcome {
    match tidy::run(&cx.root, &cx.console) {
        Ok(0) => Outcome::passed(),
        Ok(count) => Outcome::failed().with_note(plural(count, "finding")),
        Err(why) => {
            cx.console.say(&why);
            Outcome::failed().with_note(why)
        }
    }
}

/// Builds all that the step `test` runs, and lints it in the same pass.
fn clippy(cx: &Context) -> Outcome {
    let args = [&["test", "--workspace", "--no-run"], &PROFILE[..]].concat();
    cx.run(&Task::new("cargo", &args).linted())
}

/// Tests that other steps run, by substrings of their names: a test that writes 32 MiB to a chip by the command,
/// which the step `counted` runs with a fast one; and the command on QEMU's boards, which the step `whole` runs
/// where QEMU is.
const ELSEWHERE: [&str; 2] = ["flash::the_whole_chip_goes_there_and_back", "qemu::"];

/// `--no-fail-fast`, so that the totals are of all tests; `--show-output`, because a test that
/// skips itself passes, and the harness hides the output of a passed test.
///
/// Optimised, with debug assertions and overflow checks. The longest tests are cut short: the steps `whole` and
/// `counted` run them.
///
/// Not cargo-nextest: a new user would have to install it before the first test, it runs no documentation
/// tests, and a process for each of 2,000 tests that take milliseconds costs more than it gains on two cores.
fn test(cx: &Context) -> Outcome {
    let harness = ["--no-fail-fast", "--", "--show-output"];
    let skips = ELSEWHERE.map(|name| ["--skip", name]).concat();
    let args = [&["test", "--workspace"], &PROFILE[..], &harness, &skips].concat();
    cx.run_tests(&Task::new("cargo", &args).linted())
}
