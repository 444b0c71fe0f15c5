//! Write, read and verify are byte-equal; the JSON names are kept; output files are whole or
//! absent.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::command::{
    Bench, IMX8MP_SIZE, SABRELITE_SIZE, has_fields, noise, run, run_line, runs_whole, text,
};

/// A real firmware image, from Debian's package ovmf.
const OVMF: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";

/// Writes `data` at `offset`, reads it back with separate commands, verifies, and looks into the
/// chip file for what else changed.
fn round_trip(bench: &Bench, data: &[u8], offset: usize) {
    let before = if bench.chip.exists() { bench.content() } else { vec![0xff; IMX8MP_SIZE] };
    let input = bench.file("in", data);
    let (out, at) = (text(&bench.path("out")), offset.to_string());
    let wrote = bench.flash("write", "", &["--offset", &at, "--json", &input]).ok().json();
    assert_eq!([&wrote["bytes"], &wrote["violations"]], [&json!(data.len()), &json!(0)]);
    assert_eq!(wrote["verified"], json!(!data.is_empty()));
    if data.is_empty() {
        let there = fs::read(&out).ok();
        let nothing = ["--offset", &at, "--length", "0", &out];
        bench.flash("read", "", &nothing).fails(1, "nothing to read");
        assert!(fs::read(&out).ok() == there, "an empty read does not replace the output");
        bench.flash("verify", "", &["--offset", &at, &input]).fails(1, "nothing to verify");
        return;
    }
    let length = data.len().to_string();
    bench.flash("read", "", &["--offset", &at, "--length", &length, &out]).ok();
    assert!(fs::read(&out).expect("read made it") == data, "{} bytes at {at}", data.len());
    bench.flash("verify", "", &["--offset", &at, &input]).ok();
    let mut expected = before;
    expected[offset..offset + data.len()].copy_from_slice(data);
    assert!(bench.content() == expected, "{} bytes at {at}: a neighbour changed", data.len());
}

#[test]
fn sizes_at_every_edge_go_there_and_back() {
    let bench = Bench::new("imx8mp");
    for (seed, (len, offset)) in
        [(0, 0), (1, 0), (256, 0), (257, 0), (1, IMX8MP_SIZE - 1), (300, 4000), (0, IMX8MP_SIZE)]
            .into_iter()
            .enumerate()
    {
        round_trip(&bench, &noise(len, seed as u64), offset);
    }
    assert_eq!(bench.names(), ["chip.bin", "in", "out"], "no partial file stays");
}

#[test]
fn the_whole_chip_goes_there_and_back() {
    // This takes a minute without optimisation; then only the smaller chip is tested.
    if runs_whole() {
        round_trip(&Bench::new("imx8mp"), &noise(IMX8MP_SIZE, 1), 0);
    }
    let bench = Bench::new("sabrelite");
    let data = noise(SABRELITE_SIZE, 2);
    let input = bench.file("in", &data);
    bench.flash("write", "", &["--unprotect", &input]).ok();
    assert!(bench.content() == data);
    bench.flash("read", "", &[&text(&bench.path("out"))]).ok();
    assert!(fs::read(bench.path("out")).expect("read made it") == data);
}

#[test]
fn a_firmware_image_goes_there_and_back() {
    let Ok(image) = fs::read(OVMF) else {
        println!("SKIPPED: {OVMF} is not there (Debian: apt-get install ovmf)");
        return;
    };
    assert!(image.len() >= 1 << 20);
    // Without optimisation the simulator is some twenty times slower: the image's end will do.
    let image = if runs_whole() { &image[..] } else { &image[image.len() - (64 << 10)..] };
    let bench = Bench::new("imx8mp");
    round_trip(&bench, image, 0);
    let again = bench.flash("write", "", &["--json", &text(&bench.path("in"))]).ok().json();
    assert_eq!(again["unchanged_bytes"], json!(image.len()), "what is there is left alone");
    assert_eq!([&again["programs"], &again["erases"]], [&json!(0), &json!(0)]);
}

#[test]
fn erase_sets_ones_and_nothing_else() {
    let bench = Bench::new("imx8mp");
    bench.flash("write", "", &[&bench.file("in", &noise(12 << 10, 1))]).ok();
    let mut expected = bench.content();
    expected[4096..8192].fill(0xff);
    bench.flash("erase", "", &["--offset", "4K", "--length", "0x1000"]).ok();
    assert!(bench.content() == expected);
    let erased = bench.flash("erase", "", &["--all", "--json"]).ok().json();
    assert_eq!(erased["bytes"], json!(IMX8MP_SIZE));
    assert!(bench.content().iter().all(|&byte| byte == 0xff));
}

#[test]
fn protection_is_cleared_only_when_asked() {
    let bench = Bench::new("sabrelite");
    let data = noise(1000, 3);
    let input = bench.file("in", &data);
    // This part powers up protected.
    bench.flash("write", "", &[&input]).fails(1, "--unprotect");
    bench.flash("erase", "", &["--all"]).fails(1, "--unprotect");
    assert!(bench.content().iter().all(|&byte| byte == 0xff));
    bench.flash("write", "", &["--unprotect", &input]).ok();
    assert!(bench.content().starts_with(&data));
    bench.flash("erase", "", &["--all", "--unprotect"]).ok();
    bench.flash("write", ",protect=none", &[&input]).ok();
    assert!(bench.content().starts_with(&data));
}

#[test]
fn flash_id_names_the_chip_of_both_boards() {
    let id = run(&["flash", "id", "--json", "--bus", "sim:sabrelite"]).ok().json();
    has_fields(
        &id,
        &json!({
            "bus": "sim:sabrelite", "simulated": true, "chip_select": 0, "jedec_id": "bf2541",
            "name": "SST25VF016B", "size": 2 << 20, "page_size": 256, "programming": "aai-word",
            "address_bytes": 3, "addressing": "three-byte", "mode": 0, "speed_hz": 20_000_000,
            "effective_speed_hz": 20_000_000, "max_speed_hz": 50_000_000, "read_command": "03",
            "status": "1c", "write_enabled": false, "protected": {"start": 0, "end": 2 << 20},
            "profile": "sabrelite", "violations": 0,
        }),
    );
    let id = run_line("flash id --bus sim:imx8mp --json --speed-hz 66M --mode 3").ok().json();
    has_fields(
        &id,
        &json!({
            "bus": "sim:imx8mp", "jedec_id": "ef4019", "name": "W25Q256JV", "size": 32 << 20,
            "programming": "page", "address_bytes": 4, "addressing": "four-byte-opcodes",
            "mode": 3, "speed_hz": 66_000_000, "effective_speed_hz": 40_000_000, "status": "00",
            "protected": null, "profile": "imx8mp", "violations": 0,
        }),
    );
    let erase: Vec<_> = id["erase_types"].as_array().expect("a list").iter().collect();
    has_fields(erase[0], &json!({"size": 4096, "opcode": "21"}));
    assert!(id["virtual_ns"].as_u64() > Some(0) && id["bus_use"].as_f64() > Some(0.0));
}

#[test]
fn figures_are_for_the_read_alone() {
    let read = ["flash", "read", "--bus", "sim:imx8mp", "--length", "64K", "--json", "/dev/null"];
    let read = run(&read).ok().json();
    assert_eq!(read["bits"], json!(8 * (65_536 + 5)), "opcode, four address bytes, data");
    assert!(read["bus_use_in_transfers"].as_f64() >= Some(0.985), "{read}");
    let rate = read["bytes_per_second_virtual"].as_f64().expect("a rate");
    assert!(rate > 0.97 * 2.5e6 && rate < 2.5e6, "{rate}");
}

#[test]
fn an_output_file_is_replaced_whole_and_keeps_its_permissions() {
    let bench = Bench::new("imx8mp");
    let old = bench.file("old", b"what was there");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).expect("chmod");
    symlink(&old, bench.path("link")).expect("a link");
    let link = text(&bench.path("link"));
    bench.flash("read", ",fault=no-chip", &["--length", "16", &link]).fails(1, "no chip answers");
    assert_eq!(fs::read(&old).expect("it stays"), b"what was there");
    bench.flash("read", "", &["--length", "16", &link]).ok();
    assert_eq!(fs::read(&old).expect("it is replaced"), [0xff; 16]);
    assert_eq!(fs::metadata(&old).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert!(fs::symlink_metadata(bench.path("link")).expect("it is there").is_symlink());
    assert_eq!(bench.names(), ["chip.bin", "link", "old"]);
}

#[test]
fn the_chip_is_found_on_each_simulated_board_unless_a_chip_select_is_named() {
    for (board, cs) in
        [("beaglebone", 1), ("imx8mp", 0), ("rpi3", 1), ("rpi5", 2), ("unleashed", 1), ("zynq", 1)]
    {
        let bus = format!("sim:{board}");
        let id = run(&["flash", "id", "--json", "--bus", &bus]).ok().json();
        assert_eq!([&id["chip_select"], &id["violations"]], [&json!(cs), &json!(0)], "{board}");
    }
    run(&["flash", "id", "--bus", "sim:rpi5", "--cs", "1"]).fails(1, "no chip answers");
}

#[test]
fn the_flash_parts_are_listed_with_what_they_do_and_where_it_was_read() {
    let list = run(&["list", "--flash-parts", "--json"]).ok().json();
    let parts = list["flash_parts"].as_array().expect("a list");
    let published = "sst26vf064b is25wp256 s25fs256t zd25q128c atxp032 mx25l3233f gd25lb512me w25q01nw \
                     mx25r6435f mx25uw6345g bh25q128as mt25qu256a";
    for name in published.split_whitespace() {
        let part = parts.iter().find(|part| part["name"] == name).expect(name);
        assert!(part["sfdp"].is_string() && part["source"].is_string(), "{part}");
    }
    let part = parts.iter().find(|part| part["name"] == "zd25q128c").expect("it is listed");
    assert_eq!([&part["jedec_id"], &part["size"]], [&json!("ef4018"), &json!(16 << 20)]);
    assert!(part["sfdp"] == "1.0" && part["beyond_sfdp"].is_string(), "{part}");
    let text = run(&["list", "--flash-parts"]).ok().text();
    assert!(text.contains("sst26vf064b  bf2643  8 MiB    1.6   locked at power-up"), "{text}");
    assert!(text.contains("s25fl512s    010220  64 MiB   none  "), "{text}");
}

#[test]
fn a_board_takes_another_flash_and_an_unknown_one_is_refused_with_the_near_name() {
    let bench = Bench::new("imx8mp");
    let file = bench.path("part.bin");
    let bus = format!("sim:imx8mp,flash-part=mx25l3233f,flash={}", text(&file));
    let id = run(&["flash", "erase", "--length", "4K", "--json", "--bus", &bus]).ok().json();
    assert_eq!([&id["jedec_id"], &id["violations"]], [&json!("c22016"), &json!(0)]);
    assert_eq!(fs::metadata(&file).expect("it was made").len(), 4 << 20);
    let bus = "sim:imx8mp,flash-part=mx25l3233";
    run(&["flash", "id", "--bus", bus]).fails(2, "did you mean \"mx25l3233f\"?");
}

#[test]
fn list_and_demo_speak_json() {
    let list = run(&["list", "--json"]).ok().json();
    let buses: Vec<_> =
        list["buses"].as_array().expect("a list").iter().map(|bus| bus["bus"].clone()).collect();
    let sim = "sim:beaglebone sim:highbank sim:imx6dl sim:imx8mp sim:rpi3 \
               sim:rpi5 sim:sabrelite sim:sama5d36 sim:unleashed sim:zynq";
    let qemu = "qemu:sabrelite qemu:highbank qemu:lm3s6965evb qemu:raspi3b qemu:sifive_u \
                qemu:sifive_u_sd qemu:zynq";
    let expected = [sim.split(' '), qemu.split(' ')].into_iter().flatten();
    assert_eq!(buses, expected.collect::<Vec<_>>());
    for bus in list["buses"].as_array().expect("a list") {
        let nothing =
            ["qemu:highbank", "qemu:raspi3b", "sim:unleashed", "sim:zynq"].map(|name| json!(name));
        let chip = &bus["chip_selects"][0]["chip"];
        assert_eq!(chip.is_null(), nothing.contains(&bus["bus"]), "{bus}");
        assert_eq!(bus["costs"][0]["source"].is_string(), bus["simulated"] == json!(true), "{bus}");
    }
    for kind in ["spidev", "uio", "controllers"] {
        assert!(list["machine"][kind].is_array(), "{kind}");
    }
    let text = run(&["list"]).ok().text();
    assert!(text.contains("MCP2518FD at 40 MHz, INT at GPIO5_IO12, up to 17 MHz"), "{text}");
    assert!(text.contains("\nqemu:sabrelite  ") && text.contains("\nThis machine\n"), "{text}");
    run(&["list", "--costs"]).ok();
    let demo = run(&["demo", "--json"]).ok();
    assert_eq!(demo.stderr, "");
    let demo = demo.json();
    assert_eq!([&demo["jedec_id"], &demo["read"]["equal"]], [&json!("ef4019"), &json!(true)]);
    let timeline = &demo["access"]["timeline"];
    assert!(timeline["first_clock_ns"].as_u64() > timeline["cs_falls_ns"].as_u64());
    for (part, name) in [
        ("write", "virtual_ns"),
        ("read", "bytes_per_second_virtual"),
        ("read", "bus_use_in_transfers"),
        ("access", "cs_to_first_clock_ns"),
        ("access", "ns_per_access"),
        ("access", "bus_use"),
    ] {
        let range = &demo[part]["ranges"][name];
        let [low, value, high] = ["low", "value", "high"].map(|end| range[end].as_f64());
        assert!(low.is_some() && low != value && value != high, "{part} {name}: {range}");
    }
    let beside = demo["beside"].as_array().expect("the thread's three kernels");
    assert_eq!(beside.len(), 3, "{beside:?}");
    assert!(beside.iter().all(|one| one["regime"] == json!("after idle")), "{beside:?}");
    let low = run(&["demo", "--json", "--costs", "low"]).ok().json();
    let access = &low["access"];
    assert_eq!(access["ns_per_access"], demo["access"]["ranges"]["ns_per_access"]["low"]);
    assert!(access.get("ranges").is_none() && low["read"]["costs"] == json!("low"), "{low}");
    let counted = demo["counted"].as_array().expect("counts");
    let shared = counted.iter().find(|row| row["what"] == json!("barewire, shared"));
    let instructions = |row: &Value| row["instructions"].as_u64();
    assert!(shared.is_some_and(|row| instructions(row) < instructions(&counted[0])));
    let lines = run(&["demo"]).ok().text();
    assert!(lines.contains("4.40 (2.07–7.01) us") && lines.contains("after idle"), "{lines}");
    let picture = run(&["demo", "--picture"]).ok().text();
    assert!(lines.contains(&picture) && picture.lines().count() < 24, "{picture}");
    run(&["demo", "--picture", "--json"]).misused("cannot be used with");
    let once = run(&["demo", "--picture", "--costs", "high"]).ok().text();
    assert!(once.contains("costs highest") && !once.contains("costs used"), "{once}");
    assert!(lines.lines().count() <= 30, "one screen: {lines}");
    assert!(lines.lines().all(|line| line.chars().count() <= 100), "{lines}");
}

#[test]
fn a_flash_behind_a_raspberry_pi_5s_gpio_goes_there_and_back() {
    let bench = Bench::new("rpi5");
    let data = noise(5_000, 3);
    let input = bench.file("in", &data);
    bench.flash("write", "", &["--offset", "1", &input]).ok();
    assert!(bench.content()[1..5_001] == data);
    let out = text(&bench.path("out"));
    bench.flash("read", "", &["--cs", "2", "--offset", "1", "--length", "5000", &out]).ok();
    assert!(fs::read(&out).expect("read made it") == data);
}

#[test]
fn reads_may_have_a_slower_clock_than_writes() {
    let bench = Bench::new("imx8mp");
    let input = bench.file("in", &noise(4096, 3));
    let seconds = |verb: &str, options: &str, arguments: &[&str]| {
        let line = bench.flash(verb, options, &[arguments, &["--json"]].concat()).ok().json();
        line["seconds_virtual"].as_f64().expect("a time")
    };
    let out = text(&bench.path("out"));
    let read = |options: &[&str]| {
        let length = [&[out.as_str(), "--length", "256K"][..], options].concat();
        seconds("read", "", &length)
    };
    let (fast, slow) = (read(&[]), read(&["--read-speed-hz", "5M"]));
    assert!((3.5..4.5).contains(&(slow / fast)), "20 MHz takes {fast} s, 5 MHz {slow} s");
    // A read clock above the device's own clock has no effect.
    assert!((read(&["--read-speed-hz", "80M"]) - fast).abs() < fast / 100.0);
    bench.flash("write", "", &[&input, "--read-speed-hz", "5M"]).ok();
    assert!(bench.content()[..4096] == noise(4096, 3));
    let line = bench.flash("id", "", &["--json", "--read-speed-hz", "1M"]).ok().json();
    has_fields(&line, &json!({"speed_hz": 20_000_000, "read_speed_hz": 1_000_000}));
    bench.flash("id", "", &["--read-speed-hz", "0"]).misused("0 Hz");
}

#[test]
fn a_difference_is_a_result() {
    let bench = Bench::new("sabrelite");
    let mut data = noise(20_000, 7);
    let input = bench.file("in", &data);
    bench.flash("write", "", &["--unprotect", "--offset", "0x1000", &input]).ok();
    data[5] ^= 1;
    data[19_999] ^= 0xff;
    let (expected, actual) = (data[5], data[5] ^ 1);
    let other = bench.file("other", &data);
    let ran = bench.flash("verify", "", &["--offset", "0x1000", "--json", &other]);
    let said = format!("at 0x1005 the chip holds {actual:02x}, not {expected:02x}");
    let ran = ran.fails(1, &said);
    let told = ran.json();
    has_fields(&told, &json!({"equal": false, "different_bytes": 2, "bytes": 20_000}));
    let first = json!({ "address": 0x1005, "expected": expected, "actual": actual });
    assert_eq!(told["first_difference"], first);
    let ran = bench.flash("verify", "", &["--offset", "0x1000", &other]).fails(1, &said);
    assert!(ran.text().contains("2 bytes differ"), "{ran:?}");
    let equal = bench.flash("verify", "", &["--offset", "0x1000", "--json", &input]).ok().json();
    has_fields(&equal, &json!({"equal": true, "different_bytes": 0, "first_difference": null}));
}

#[test]
fn the_parts_of_a_write_add_up() {
    let bench = Bench::new("sabrelite");
    // Erased bytes among others, then a change inside a sector: its neighbours are restored.
    let mut data = noise(10_000, 9);
    data[300..3_000].fill(0xff);
    let mut changed = data[4_000..4_100].to_vec();
    changed.iter_mut().for_each(|byte| *byte = !*byte);
    for (name, data, offset) in [("all", &data[..], "0"), ("part", &changed[..], "4000")] {
        let input = bench.file(name, data);
        let arguments = ["--unprotect", "--json", "--offset", offset, &input];
        let told = bench.flash("write", "", &arguments).ok().json();
        let [bytes, unchanged, programmed, skipped, restored] =
            ["bytes", "unchanged_bytes", "programmed_bytes", "skipped_bytes", "restored_bytes"]
                .map(|name| told[name].as_u64().expect("a number"));
        assert_eq!(unchanged + programmed + skipped, bytes, "{told}");
        assert_eq!(restored > 0, name == "part", "{told}");
        assert_eq!(skipped > 2_000, name == "all", "{told}");
    }
}

#[test]
fn a_summary_is_not_printed_quietly() {
    let bench = Bench::made("imx8mp");
    let input = bench.file("in", &noise(1_000, 3));
    let out = text(&bench.path("out"));
    for arguments in [
        &["write", "-q", &input][..],
        &["verify", "-q", &input],
        &["read", "-q", "--length", "1K", &out],
        &["erase", "-q", "--length", "4K"],
    ] {
        let ran = bench.flash(arguments[0], "", &arguments[1..]).ok();
        assert_eq!((ran.text(), ran.stderr), (String::new(), String::new()), "{arguments:?}");
    }
    // What is asked for is printed.
    assert!(bench.flash("id", "", &["-q"]).ok().text().contains("W25Q256JV"));
}

#[test]
fn a_mistyped_flash_file_is_not_made_by_a_command_that_reads() {
    let bench = Bench::new("imx8mp");
    let (input, out) = (bench.file("in", &[1]), text(&bench.path("out")));
    for (verb, argument) in [("id", None), ("read", Some(&out)), ("verify", Some(&input))] {
        let arguments: Vec<&str> = argument.map(String::as_str).into_iter().collect();
        let ran = run(&[&["flash", verb, "--bus", &bench.bus], &arguments[..]].concat());
        ran.fails(1, "does not exist; a command that changes the chip");
        assert_eq!(bench.names(), ["in"], "{verb}");
    }
    bench.flash("erase", "", &["--length", "4K"]).ok();
    bench.flash("id", "", &[]).ok();
}

#[test]
fn a_wrong_bus_is_told_before_a_missing_file() {
    for verb in ["write", "verify"] {
        let ran = run(&["flash", verb, "--bus", "sim:imx8m", "/nowhere"]);
        ran.fails(2, "did you mean \"imx8mp\"");
    }
}
