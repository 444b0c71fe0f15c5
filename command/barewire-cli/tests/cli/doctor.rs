//! `barewire doctor`, `restore`, `completions` and `man` on the machine that runs the tests: what stands
//! between a board and a bus is judged in guests, and on directory trees beside the code.

use serde_json::Value;

use super::command::{Bench, Has, run, text};

#[test]
fn doctor_says_what_there_is_and_changes_nothing() {
    let said = run(&["doctor"]).ok().text();
    assert!(said.starts_with("This machine: "), "{said}");
    assert!(said.contains("--bus "), "it ends in a bus: {said}");
    let json = run(&["doctor", "--json"]).ok().json();
    for field in ["machine", "findings", "controllers", "ready", "after_steps"] {
        assert_ne!(json[field], Value::Null, "{field} in {json}");
    }
    assert!(run(&["list"]).ok().text().contains("barewire doctor"));
}

#[test]
fn doctor_of_a_bus_says_by_its_exit_code_whether_it_is_ready() {
    run(&["doctor", "sim:imx8mp"]).ok();
    run(&["doctor", "spidev:/dev/spidev97.0"]).fails(1, "no controller of this machine");
    run(&["doctor", "mem:0x97000000,reference-hz=80M,cs=native0"]).fails(1, "no controller");
    run(&["doctor", "mem:ninety"]).fails(2, "an address");
    run(&["doctor", "usb:0"]).fails(2, "is no bus");
    run(&["doctor", "--overlay", "97.spi"]).fails(2, "97.spi");
    run(&["doctor", "--probe-anyway", "0"]).misused("<BUS>");
}

#[test]
fn a_chip_is_asked_only_on_request() {
    let plain = run(&["doctor", "sim:imx8mp"]).ok().text();
    assert!(!plain.contains("ef4019"), "{plain}");
    let asked = run(&["doctor", "sim:imx8mp", "--probe-anyway", "0"]).ok().text();
    assert!(asked.contains("ef4019"), "{asked}");
    run(&["doctor", "sim:imx8mp,fault=no-chip", "--probe-anyway", "0"]).fails(1, "did not answer");
    run(&["doctor", "--json", "--probe"]).misused("--probe");
    let known = run(&["doctor", "sim:imx8mp", "--probe"]).ok();
    assert!(known.stderr.contains("no chip was asked"), "{known:?}");
}

#[test]
fn restore_without_anything_to_restore_says_so() {
    // A machine with a controller that has no driver is not a machine for this test.
    let ran = run(&["restore", "--dry-run", "--json"]).ok();
    assert!(ran.json().is_array(), "{ran:?}");
}

#[test]
fn completions_and_pages_are_of_this_command() {
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef barewire"), ("fish", "complete -c barewire")]
    {
        let script = run(&["completions", shell]).ok().text();
        script.has(&[mark, "doctor", "verify"]);
    }
    run(&["completions", "csh"]).misused("possible values");
    let bench = Bench::new("imx8mp");
    let pages = bench.path("man");
    run(&["man", &text(&pages)]).ok();
    let page = std::fs::read_to_string(pages.join("barewire-doctor.1")).expect("a page");
    assert!(page.contains("--overlay") || page.contains("\\-\\-overlay"), "{page}");
}
