//! `explain`: descriptors typed by hand, and text that is no descriptor.

use serde_json::{Value, json};

use super::command::run;

#[test]
fn fields_are_told_with_their_meaning() {
    let told = run(&["explain", "--level", "3", "0x0060000050001f43"]).ok().text();
    for line in [
        "level 3, stage 1, granule 4 KiB",
        "0x0060000050001f43  page at 0x50001000, 4 KiB",
        "  AttrIndx=000  NS=0  AP[2:1]=01 (read-write)  SH=11 (inner shareable)  AF=1  nG=1  GP=0",
    ] {
        assert!(told.lines().any(|told| told == line), "{line:?} is not in\n{told}");
    }
    let ends = run(&["explain", "--level", "3", "0", "50004401"]).ok().text();
    for line in [
        "0x0000000000000000  invalid: bit 0 is clear, a walk faults here",
        "0x0000000050004401  reserved: this level has no such descriptor, a walk faults here",
    ] {
        assert!(ends.lines().any(|told| told == line), "{line:?} is not in\n{ends}");
    }
}

#[test]
fn the_same_bits_are_another_thing_at_another_level_granule_and_stage() {
    let one = |options: &[&str], descriptor: &str| {
        let line = run(&[&["explain", "--json"], options, &[descriptor]].concat()).ok().json();
        let descriptors = line["descriptors"].as_array().expect("descriptors");
        assert_eq!(descriptors.len(), 1);
        descriptors[0].clone()
    };
    let kind = |options: &[&str], descriptor| {
        let one = one(options, descriptor);
        (one["kind"].as_str().expect("a kind").to_owned(), one["address"].clone())
    };
    let (table, block) = ("0x80002003", "0x40000741");
    for (options, descriptor, expected, address) in [
        (&["--level", "3"][..], table, "page", json!(0x8000_2000_u64)),
        (&["--level", "2"], table, "table", json!(0x8000_2000_u64)),
        // A table of 64 KiB is where the bits above its size say.
        (&["--level", "2", "--granule", "64k"], table, "table", json!(0x8000_0000_u64)),
        (&["--level", "2"], block, "block", json!(0x4000_0000)),
        (&["--level", "1"], block, "block", json!(0x4000_0000)),
        (&["--level", "1", "--granule", "16k"], block, "reserved", Value::Null),
        (&["--level", "0"], block, "reserved", Value::Null),
        (&["--level", "0"], "80002002", "invalid", Value::Null),
    ] {
        assert_eq!(kind(options, descriptor), (expected.into(), address), "{options:?}");
    }
    let fields =
        |stage| one(&["--level", "3", "--stage", stage], "6000000000007ff")["fields"].clone();
    assert_eq!(fields("1")[0], json!({"name": "AttrIndx", "value": 7, "meaning": null}));
    assert_eq!(
        fields("2")[0],
        json!({"name": "MemAttr", "value": 15, "meaning": "Normal, write-back"})
    );
}

#[test]
fn several_descriptors_are_one_line_of_json() {
    let line = run(&["explain", "--level", "2", "--stage", "2", "--json", "0", "fff"]).ok().json();
    assert_eq!([&line["level"], &line["granule"], &line["stage"]], [2, 4096, 2]);
    let names: Vec<_> = (0..2).map(|n| line["descriptors"][n]["descriptor"].clone()).collect();
    assert_eq!(names, ["0000000000000000", "0000000000000fff"]);
    assert_eq!(line["descriptors"][0]["fields"], json!([]));
}

#[test]
fn what_is_no_descriptor_or_no_level_is_refused() {
    let of_level_3 = |descriptor| run(&["explain", "--level", "3", descriptor]);
    for bad in ["x", "0x", "", "+1", "1g", "0x1_0000_0000_0000_0000", "0x60000050001f430000"] {
        of_level_3(bad).misused("a descriptor is 64 bits in hexadecimal");
    }
    of_level_3("-1").misused("unexpected argument");
    for (arguments, part) in [
        (&["1"][..], "--level"),
        (&["--level", "3"], "DESCRIPTOR"),
        (&["--level", "4", "1"], "levels are 0 to 3"),
        (&["--level", "-1", "1"], "level"),
        (&["--level", "3", "--granule", "8k", "1"], "4k, 16k and 64k"),
        (&["--level", "3", "--stage", "3", "1"], "1 and 2"),
    ] {
        run(&[&["explain"], arguments].concat()).misused(part);
    }
    run(&["explain", "--level", "0", "--granule", "64k", "1"]).fails(2, "begin at level 1");
    run(&["explain", "--level", "0", "--granule", "16k", "--stage", "2", "1"]).fails(2, "level 1");
}
