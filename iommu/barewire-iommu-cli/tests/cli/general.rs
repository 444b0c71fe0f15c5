//! Rules for every verb: help, bad input, and a run that does nothing.

use super::command::{barewire_iommu, run, run_with_input};

#[test]
fn the_help_names_every_verb_and_exit_code() {
    let help = run(&["--help"]).ok().text();
    for part in ["bench", "walk", "explain", "replay", "3    walk: the device would fault", "130"] {
        assert!(help.contains(part), "{part:?} is not in\n{help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    for verb in ["bench", "walk", "explain", "replay"] {
        let help = run(&[verb, "--help"]).ok().text();
        assert!(help.contains("--json"), "{help}");
        // Each option says what it does.
        assert!(!help.contains("--count-op"), "{help}");
    }
}

#[test]
fn an_endless_input_is_refused() {
    run(&["replay", "/dev/zero"]).fails(1, "has more than");
}

#[test]
fn nothing_done_is_no_success() {
    run_with_input(barewire_iommu(&["replay", "-"]), "").fails(1, "no iommu:map");
}

#[test]
fn numbers_mean_one_thing_and_what_is_none_is_told_in_words() {
    for command in [
        &["replay", "t", "--defer-calls", "x"][..],
        &["walk", "--input-bits", "x"],
        &["bench", "--rounds", "x"],
    ] {
        let ran = run(command);
        assert!(!ran.stderr.contains("digit found"), "{ran:?}");
        ran.misused("not a number: write ");
    }
}
