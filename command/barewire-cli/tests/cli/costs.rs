//! `--costs`: on every command that runs on a simulated board, and what it reaches.

use serde_json::{Value, json};

use super::command::{array, has_fields, run, run_line};

fn line(words: &str) -> Value {
    run_line(words).ok().last_json()
}

#[test]
fn every_board_is_faster_at_low_costs_and_slower_at_high_ones() {
    let list = line("list --json");
    let boards = array(&list, "buses").iter();
    let boards: Vec<_> = boards.filter(|bus| bus["simulated"] == json!(true)).collect();
    assert_eq!(boards.len(), barewire_sim::board::board_names().len());
    for board in boards {
        let bus = board["bus"].as_str().expect("a name");
        let virtual_ns = ["low", "used", "high"].map(|costs| {
            let line =
                line(&format!("xfer --bus {bus} --speed-hz 1M --costs {costs} --json 9f000000"));
            assert_eq!(line["costs"], json!(costs), "{line}");
            line["virtual_ns"].as_u64().expect("a time")
        });
        assert!(virtual_ns[0] < virtual_ns[1] && virtual_ns[1] < virtual_ns[2], "{virtual_ns:?}");
        let unasked = line(&format!("xfer --bus {bus} --speed-hz 1M --json 9f000000"));
        has_fields(&unasked, &json!({"costs": "used", "virtual_ns": virtual_ns[1]}));
        for cost in array(board, "costs") {
            let [low, value, high] = ["low", "value", "high"].map(|end| cost[end].as_u64());
            assert!(low.is_some() && low <= value && value <= high, "{cost}");
            let sources = ["source", "low_source", "high_source"];
            assert!(sources.iter().all(|name| cost[name].is_string()), "{cost}");
        }
    }
}

#[test]
fn every_command_takes_it() {
    for words in [
        "flash id --bus sim:imx8mp",
        "flash read --bus sim:imx8mp --length 16 -",
        "selftest --bus sim:imx8mp",
        "adc read --bus sim:rpi3",
        "can dump --bus sim:imx8mp -n 2 -g 1",
        "can gen --bus sim:imx8mp -n 2",
        "regs dump --chip mcp2518fd --bus sim:imx8mp --cs 2",
    ] {
        let [used, high] = ["", "--costs high"].map(|costs| format!("{words} {costs}"));
        if words.starts_with("flash read") {
            let told = run_line(&high).ok().stderr;
            assert!(told.contains("profile imx8mp at its highest costs:"), "{told}");
            continue;
        }
        let [used, high] = [used, high].map(|words| line(&format!("{words} --json")));
        assert_eq!((&used["costs"], &high["costs"]), (&json!("used"), &json!("high")), "{words}");
        // A CAN bus keeps its own time.
        let waits = words.starts_with("can ");
        assert!(waits || used["virtual_ns"].as_u64() < high["virtual_ns"].as_u64(), "{words}");
    }
    let bench = |costs| {
        let words = format!("bench --rounds 1 --no-instructions --json --costs {costs}");
        let simulated = line(&words)["simulated"].clone();
        assert_eq!(simulated["costs"], json!(costs));
        simulated["worker_hop"][1]["ns_median"].as_u64()
    };
    assert!(bench("low") < bench("high"));
    let costs = line("demo --costs high --json")["read"]["costs"].clone();
    assert_eq!(costs, json!("high"));
    assert_eq!(run(&["demo", "--costs", "middle"]).code, Some(2));
}
