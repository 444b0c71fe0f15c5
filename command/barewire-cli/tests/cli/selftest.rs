//! `selftest`: every case passes in loopback, every fault makes it fail.

use serde_json::json;

use super::command::{barewire, has_fields, interrupted, run, runs_whole};

/// The options that leave out the long transfers where tests do not run whole, and how many messages
/// that makes.
fn lengths() -> (&'static [&'static str], usize) {
    if runs_whole() { (&[], 1_801) } else { (&["--max-len", "4099"], 1_541) }
}

#[test]
fn every_case_passes_on_a_simulated_board() {
    let (max_len, iterations) = lengths();
    let ran = run(&[&["selftest", "--bus", "sim:imx8mp", "--json"], max_len].concat()).ok().json();
    let expected = json!({
        "iterations": iterations, "passed": true, "failed": 0, "failures": [], "fault": null,
        "cause": null, "bus": "sim:imx8mp", "simulated": true, "chip_select": 0, "violations": 0,
    });
    has_fields(&ran, &expected);
    assert!(ran["bytes"].as_u64() > Some(1_000_000), "{ran}");
    let text = run(&["selftest", "--bus", "sim:sabrelite", "--max-len", "64"]).ok().text();
    assert!(text.contains("iterations in loopback, lengths to 64: all passed"), "{text}");
}

#[test]
fn every_controller_passes() {
    // Whole, all lengths: the step `counted` runs it with the command as it ships.
    let max_len = if runs_whole() { "131072" } else { "512" };
    let all_passed = format!("lengths to {max_len}: all passed");
    for board in ["highbank", "imx6dl", "rpi5", "sama5d36"] {
        let bus = format!("sim:{board}");
        let text = run(&["selftest", "--bus", &bus, "--max-len", max_len]).ok().text();
        assert!(text.replace(',', "").contains(&all_passed), "{text}");
    }
    for bus in ["sim:rpi3", "sim:unleashed", "sim:zynq", "sim:beaglebone"] {
        let selftest = ["selftest", "--bus", bus, "--max-len", max_len];
        run(&selftest).fails(1, "connect MISO to MOSI by a wire, and say --wired");
        for cs in ["0", "1"] {
            let text = run(&[&selftest[..], &["--wired", "--cs", cs]].concat()).ok().text();
            assert!(text.replace(',', "").contains(&all_passed), "{text}");
        }
    }
}

#[test]
fn every_fault_makes_it_fail() {
    for fault in ["timeout", "stuck-low", "stuck-high", "bit-flip"] {
        for when in [&[][..], &["--fault-at", "50"], &["--fault-seed", "7"]] {
            let common =
                ["selftest", "--bus", "sim:imx8mp", "--max-len", "64", "--json", "--fault", fault];
            let ran = run(&[&common, when].concat()).fails(1, "iterations failed");
            let line = ran.json();
            assert_eq!([&line["passed"], &line["fault"]["kind"]], [&json!(false), &json!(fault)]);
            assert!(line["failed"].as_u64() > Some(0), "{line}");
            let first = &line["failures"][0];
            for name in ["case", "len", "tx_offset", "rx_offset", "what"] {
                assert!(!first[name].is_null(), "{name} of {first}");
            }
            assert!(line["failures"].as_array().map(Vec::len) <= Some(20));
        }
    }
    let text = run(&["selftest", "--bus", "sim:imx8mp", "--max-len", "64", "--fault", "bit-flip"])
        .fails(1, "1 of ")
        .text();
    assert!(text.contains("1 FAILED") && text.contains(" received "), "{text}");
    let far = [
        "selftest",
        "--bus",
        "sim:imx8mp",
        "--max-len",
        "64",
        "--fault",
        "timeout",
        "--fault-at",
        "9999999",
    ];
    run(&far).fails(1, "went unnoticed");
}

#[test]
fn what_cannot_be_tested_is_refused() {
    run(&["selftest", "--bus", "qemu:sabrelite"]).fails(1, "no loopback");
    run(&["selftest", "--bus", "spidev:/dev/null"]).fails(1, "not a spidev node");
    run(&["selftest", "--bus", "sim:imx8mp", "--cs", "7"]).fails(1, "no chip select 7");
    for wrong in [
        &["--fault", "nonsense"][..],
        &["--fault-at", "1"],
        &["--fault", "timeout", "--fault-at", "1", "--fault-seed", "1"],
    ] {
        assert_eq!(run(&[&["selftest"], wrong].concat()).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn ctrl_c_ends_it_soon() {
    // Slow clocks take the simulator longest.
    let command = barewire(&["selftest", "--bus", "sim:imx8mp", "--speed-hz", "200k"]);
    let ran = interrupted(command, 700);
    let ran = ran.fails(130, "stopped as asked");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}
