//! `barewire regs`: names, values, bulk, reading back, and refusals.

use serde_json::{Value, json};

use super::command::{Ran, array, has_fields, run};

const CHIP: [&str; 2] = ["--chip", "mcp2518fd"];

/// On `sim:imx8mp`, unless `more` names a bus.
fn regs(verb: &str, more: &[&str]) -> Ran {
    let bus = ["--bus", "sim:imx8mp"];
    let bus = if more.contains(&"--bus") { &[] } else { &bus[..] };
    run(&[&["regs", verb][..], bus, &CHIP, more].concat())
}

fn read(names: &[&str]) -> Value {
    regs("read", &[&["--json"], names].concat()).ok().json()
}

fn write(assignments: &[&str]) -> Value {
    regs("write", &[&["--json"], assignments].concat()).ok().json()
}

#[test]
fn registers_are_read_by_name_address_and_field() {
    let line = read(&["c1con", "0xe00", "C1CON.REQOP", "C1FIFOCON31"]);
    assert_eq!([&line["bus"], &line["chip"]], [&json!("sim:imx8mp"), &json!("MCP2518FD")]);
    assert_eq!([&line["chip_select"], &line["speed_hz"]], [&json!(2), &json!(17_000_000)]);
    let registers = array(&line, "registers");
    // As the data sheet has them after a reset.
    for (register, (name, address, value)) in registers.iter().zip([
        ("C1CON", 0, "04980760"),
        ("OSC", 0xe00, "00000460"),
        ("C1CON", 0, "04980760"),
        ("C1FIFOCON31", 0x1c4, "00600400"),
    ]) {
        let expected = json!({"name": name, "address": address, "value": value, "reset": value});
        has_fields(register, &expected);
    }
    let ready = &array(&registers[1], "fields")[1];
    let expected = json!({"name": "OSCRDY", "lsb": 10, "width": 1, "value": 1, "access": "ro", "volatile": false});
    assert_eq!(*ready, expected);
    let one = array(&registers[2], "fields");
    assert_eq!((one.len(), &one[0]["name"], &one[0]["value"]), (1, &json!("REQOP"), &json!(4)));
    assert_eq!(array(&read(&["C1FLTCON"]), "registers").len(), 8, "all registers of the array");
    let text = regs("read", &["--quiet", "OSC"]).ok().text();
    assert!(text.starts_with("OSC at 0xe00 is 00000460, as after a reset\n"), "{text}");
    assert!(text.contains("\n  CLKODIV      6:5  3\n"), "{text}");
    // A register read by hand, with `xfer`: READ, the address, four bytes, least significant first.
    let xfer = ["xfer", "--bus", "sim:imx8mp", "--cs", "2", "--speed-hz", "16M", "--json"];
    let by_hand = run(&[&xfer[..], &["3e0000000000"]].concat());
    let came_in = by_hand.ok().json()["transfers"][0]["rx"].as_str().expect("bytes").to_owned();
    assert!(came_in.ends_with("60040000"), "{came_in}");
}

#[test]
fn fields_and_registers_are_written_and_read_back() {
    let line =
        write(&["C1CON.DNCNT=0x12", "c1nbtcfg=0x3e0f0e", "C1CON.DNCNT=18", "C1MASK7.MSID=5"]);
    assert_eq!(line["verified"], json!(true));
    let writes = array(&line, "writes");
    let [field, whole, again, element] = writes else { panic!("{line}") };
    has_fields(field, &json!({"to": "C1CON.DNCNT", "name": "C1CON", "before": "04980760"}));
    has_fields(field, &json!({"written": "04980772", "read": "04980772"}));
    assert_eq!(whole["before"], Value::Null, "written without being read");
    assert_eq!([&whole["written"], &whole["read"]], [&json!("003e0f0e"); 2]);
    assert_eq!([&again["written"], &again["before"]], [&Value::Null, &json!("04980772")]);
    assert_eq!([&element["address"], &element["read"]], [&json!(0x22c), &json!("00000005")]);
    assert!(writes.iter().all(|write| write["differences"] == json!([])), "{line}");
    let blind = write(&["--no-verify", "OSC=0x460"]);
    let write = &array(&blind, "writes")[0];
    assert_eq!([&blind["verified"], &write["read"]], [&Value::Null; 2]);
    assert_eq!(write["written"], json!("00000460"));
}

#[test]
fn what_the_chip_changes_itself_is_said_and_no_failure() {
    let line = write(&["C1CON.ABAT=1", "C1TSCON=0xffffffff", "OSC=0x60", "C1TEFCON.FRESET=1"]);
    assert_eq!(line["verified"], json!(true));
    let differences: Vec<_> =
        array(&line, "writes").iter().map(|write| write["differences"].clone()).collect();
    let aborted = json!({"field": "ABAT", "written": 1, "read": 0, "why": "volatile"});
    assert_eq!(differences[0], json!([aborted]));
    let other =
        json!({"field": null, "written": 0xfff8_fc00_u32, "read": 0, "why": "not-implemented"});
    assert_eq!(differences[1], json!([other]));
    let ready = json!({"field": "OSCRDY", "written": 0, "read": 1, "why": "read-only"});
    assert_eq!(differences[2], json!([ready]));
    // Set in Configuration mode, and asked for all the same.
    assert_eq!(array(&line, "writes")[3]["written"], json!("00000400"));
}

#[test]
fn what_was_not_written_is_a_failure_with_a_hint() {
    // Eleven bits of an idle bus after the request the mode is another.
    let mut assignments = vec!["--json", "C1CON.REQOP=6"];
    assignments.extend(["C1CON.DNCNT=1", "C1CON.DNCNT=2"].repeat(4));
    assignments.push("C1NBTCFG.BRP=1");
    let ran = regs("write", &assignments);
    let line = ran.fails(1, "C1NBTCFG reads not as written; most of its registers").json();
    assert_eq!(line["verified"], json!(false));
    let last = array(&line, "writes").last().expect("writes").clone();
    let expected = json!([{"field": "BRP", "written": 1, "read": 0, "why": "unexpected"}]);
    assert_eq!(last["differences"], expected);
}

#[test]
fn a_dump_is_all_registers_in_few_exchanges() {
    let line = regs("dump", &["--json", "--stats"]).ok().json();
    let registers = array(&line, "registers");
    assert_eq!(registers.len(), 193);
    let addresses: Vec<_> = registers.iter().map(|it| it["address"].as_u64()).collect();
    assert!(addresses.is_sorted() && addresses[192] == Some(0xe14), "{addresses:?}");
    // 19 registers, 168 by 32, 6; each two bytes more than its registers.
    assert_eq!(line["statistics"]["messages"], json!(1 + 6 + 1));
    assert_eq!(line["statistics"]["bytes"], json!(193 * 4 + 8 * 2));
    let named =
        |name: &str| registers.iter().find(|it| it["name"] == name).expect(name)["value"].clone();
    assert_eq!([named("C1VEC"), named("C1FIFOCON9")], ["40400040", "00600400"]);
    assert_eq!(regs("dump", &["--chip", "mcp2517fd", "--cs", "2"]).code, Some(2), "one chip");
    let elder = ["regs", "dump", "--bus", "sim:imx8mp", "--chip", "mcp2517fd", "--cs", "2"];
    let elder = run(&[&elder[..], &["--json"]].concat()).ok().json();
    assert_eq!(array(&elder, "registers").len(), 192);
    // The board has another chip, so its oscillator is not taken for this one's: the slowest's clock.
    assert_eq!(elder["speed_hz"], json!(1_700_000));
}

#[test]
fn a_dump_for_people_leaves_out_what_is_unused() {
    let text = regs("dump", &["--quiet"]).ok().text();
    let head = "MCP2518FD on sim:imx8mp, simulated, chip select 2, at 16 MHz\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("\n  0xe00  OSC         00000460  OSCRDY CLKODIV=3\n"), "{text}");
    assert!(!text.contains("C1FIFO") && !text.contains("C1FLT"), "{text}");
    assert!(text.contains("165 registers of unused FIFOs or filters left out"), "{text}");
    let all = regs("dump", &["--quiet", "--all"]).ok().text();
    assert!(all.contains("  C1FIFOUA31 ") && all.contains("  C1MASK31 "), "{all}");
    assert_eq!(all.lines().count(), 193 + 2);
    let raw = regs("dump", &["--quiet", "--raw"]).ok().text();
    assert!(raw.starts_with("0x000  04980760 003e0f0f 000e0303 00021000\n"), "{raw}");
    assert!(raw.contains("\n0x040  00000400 00000000 00000000 --------\n0x050 "), "{raw}");
    assert!(raw.contains("\n0x2e0  00000000 00000000 00000000 00000000\n0xe00 "), "{raw}");
}

#[test]
fn wrong_names_values_and_accesses_are_refused_before_the_bus_is_opened() {
    for (assignment, part) in [
        ("C1VEC=1", "the register at 0x18 can only be read"),
        ("C1CON.OPMOD=1", "C1CON.OPMOD is read only"),
        ("C1CON.REQOP=8", "0x8 does not fit C1CON.REQOP: it has 3 bits"),
        ("OSC=0x100000000", "does not fit OSC: it has 32 bits"),
        ("C1FIFOCON=1", "several registers: name one, as C1FIFOCON1"),
        ("C1CON", "write REGISTER=VALUE"),
        ("C1CON=x", "not a number"),
        ("C1CNO=1", "did you mean \"C1CON\"?"),
    ] {
        // The node does not exist, so opening it is what fails.
        regs("write", &["--bus", "spidev:/dev/spidev99.9", "OSC=0x460", assignment]).fails(2, part);
    }
    for (register, part) in [
        ("C1CON.REQ", "did you mean \"REQOP\"?"),
        ("0x400", "no register at 0x400: the nearest is C1MASK31 at 0x2ec"),
        ("C1FIFOCON32", "there are C1FIFOCON1 to C1FIFOCON31"),
    ] {
        regs("read", &["--bus", "spidev:/dev/spidev99.9", register]).fails(2, part);
    }
    run(&["regs", "read", "--chip", "mcp2518", "OSC"]).misused("did you mean \"mcp2518fd\"?");
    assert_eq!(regs("dump", &["--raw", "--json"]).code, Some(2));
    assert_eq!(regs("read", &[]).code, Some(2));
}

#[test]
fn a_missing_chip_and_too_fast_a_clock_are_told() {
    for (arguments, part) in [
        (
            &["--bus", "sim:imx8mp,fault=no-chip"][..],
            "no MCP2518FD answers on chip select 2 (OSC reads 0xffffffff)",
        ),
        (
            &["--bus", "sim:imx8mp,fault=stuck-low"],
            "no MCP2518FD answers on chip select 2 (OSC reads 0x0)",
        ),
        (&["--bus", "sim:sabrelite", "--cs", "0"], "no MCP2518FD answers on chip select 0"),
        (&["--bus", "sim:sabrelite"], "sim:sabrelite has no MCP2518FD"),
        (&["--bus", "qemu:sabrelite"], "no board of QEMU's has an MCP2518FD"),
        (&["--cs", "7"], "no chip select 7"),
        (
            &["--speed-hz", "17000001"],
            "above the MCP2518FD's limit of 17000000 Hz with an oscillator of 40000000 Hz",
        ),
        (&["--speed-hz", "9M", "--oscillator-hz", "20M"], "limit of 8500000 Hz"),
        (&["--oscillator-hz", "41M"], "up to 40 MHz (--oscillator-hz)"),
        (&["--oscillator-hz", "999k"], "takes 1 MHz up to 40 MHz (--oscillator-hz)"),
    ] {
        regs("dump", arguments).fails(1, part);
        regs("read", &[arguments, &["OSC"]].concat()).fails(1, part);
        regs("write", &[arguments, &["OSC=0x460"]].concat()).fails(1, part);
    }
    regs("read", &["--speed-hz", "17M", "OSC"]).ok();
    run(&["regs", "read", "--bus", "sim:imx8mp", "--chip", "mcp2517fd", "OSC"])
        .fails(1, "sim:imx8mp has no MCP2517FD, but an MCP2518FD");
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../../../docs/regs.md");
    let blocks: Vec<&str> = page.split("```\n").skip(1).step_by(2).collect();
    assert!(blocks.len() >= 4, "{page}");
    for block in blocks {
        let (command, shown) = block.split_once('\n').expect("a command and its output");
        let command = command.strip_prefix("$ barewire ").expect("the command");
        let arguments: Vec<&str> = command.split(' ').collect();
        let text = run(&arguments).ok().text();
        match shown.strip_suffix("…\n") {
            Some(begin) => assert!(text.starts_with(begin), "{command}:\n{text}"),
            None => assert_eq!(text, shown, "{command}"),
        }
    }
}
