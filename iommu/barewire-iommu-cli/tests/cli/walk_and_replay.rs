//! `walk` on tables of our own and by hand; `replay` on the camera and on bad traces.
#![allow(unsafe_code, reason = "an arena is promised its memory")]

use std::ptr::NonNull;

use barewire_iommu::{
    Access, Arena, Attributes, Config, Gather, Granule, Iova, Link, PageTable, PhysAddr, Segment,
    Stage,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::command::{Ran, barewire_iommu, run, run_with_input, text};

const BASE: u64 = 0x8000_0000;

/// A dump in a temporary file.
struct Dump {
    _dir: TempDir,
    option: String,
}

impl Dump {
    fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("dump@1.bin");
        std::fs::write(&path, bytes).expect("a file is written");
        Self { option: format!("{}@{BASE:#x}", text(&path)), _dir: dir }
    }

    fn walk(&self, arguments: &[&str]) -> Ran {
        run(&[&["walk", "--dump", &self.option], arguments].concat())
    }
}

/// Tables of 4 KiB from [`BASE`] on, by their entries.
fn by_hand(entries: &[(usize, u64)]) -> Dump {
    let mut bytes = vec![0; 0x4000];
    for (at, descriptor) in entries {
        bytes[*at..at + 8].copy_from_slice(&descriptor.to_le_bytes());
    }
    Dump::new(&bytes)
}

fn small() -> Dump {
    by_hand(&[
        (0x0000, 0x8000_1003),
        (0x1000, 0x8000_2003 | 1 << 62), // read-only below
        (0x1008, 0x1_4000_0745),         // a block of 1 GiB
        (0x2000, 0x8000_3003),           // a table of pages
        (0x2008, 0x9000_0003),           // one that is in no dump
        (0x2010, 0x8000_2003),           // the table itself
        (0x3008, 0x60_0000_5000_1f43),   // a page
        (0x3010, 0x60_0000_5000_2f43),   // its neighbour
        (0x3018, 0x5000_3343),           // AF is clear
        (0x3020, 0x5000_4401),           // reserved
    ])
}

#[test]
fn a_walk_is_told_level_by_level() {
    let dump = small();
    let told = dump.walk(&["--root", "0x80000000", "0x1234"]).ok().text();
    for line in [
        "root 0x80000000: stage 1, granule 4 KiB, 48 bits in, 48 out; 512 entries at level 0",
        "  level 1  table 0x80001000  entry 0 at 0x80001000: 0x4000000080002003  table at 0x80002000",
        "             APTable=10 (read-only below)",
        "  level 3  table 0x80003000  entry 1 at 0x80003008: 0x0060000050001f43  page at 0x50001000, 4 KiB",
        "             AttrIndx=000  NS=0  AP[2:1]=01 (read-write)  SH=11 (inner shareable)  AF=1  nG=1  GP=0",
        "  -> 0x50001234, read-only",
    ] {
        assert!(told.lines().any(|told| told == line), "{line:?} is not in\n{told}");
    }
    let by_register = dump.walk(&["--ttbr", "0x0005000080000001", "0x1234"]).ok().text();
    assert_eq!(by_register, told);
    let line = dump.walk(&["--root", "0x80000000", "--json", "0x1234", "1G"]).ok().json();
    assert_eq!(
        line["table"],
        json!({"root": BASE, "granule": 4096, "stage": 1, "input_bits": 48, "output_bits": 48,
            "start_level": 0, "root_entries": 512})
    );
    let [page, block] = [&line["walks"][0], &line["walks"][1]];
    assert_eq!([&page["iova"], &page["level"]], [&json!(0x1234), &json!(3)]);
    assert_eq!(page["result"], "mapped");
    assert_eq!(
        page["mapped"],
        json!({"phys": 0x5000_1234, "leaf_size": 4096, "readable": true, "writable": false,
            "unprivileged": true})
    );
    let step = &page["steps"][3];
    assert_eq!(step["descriptor"], "0060000050001f43");
    assert_eq!(
        [&step["level"], &step["table"], &step["index"], &step["entry"], &step["address"]],
        [3, BASE + 0x3000, 1, BASE + 0x3008, 0x5000_1000].map(Value::from).each_ref()
    );
    assert_eq!(step["fields"][3], json!({"name": "SH", "value": 3, "meaning": "inner shareable"}));
    assert_eq!(block["mapped"]["leaf_size"], 1 << 30);
    assert_eq!(block["steps"].as_array().map(Vec::len), Some(2));
}

#[test]
fn each_end_has_its_exit_code() {
    let dump = small();
    let at = |iova: &str| dump.walk(&["--root", "0x80000000", iova]);
    at("0x3000").fails(3, "0x3000: access flag fault at level 3");
    let reserved = at("0x4000").fails(3, "0x4000: translation fault at level 3");
    assert!(reserved.text().contains("this level has no such descriptor"), "{reserved:?}");
    at("0x5000").fails(3, "translation fault at level 3");
    at("0x1000000000000").fails(3, "translation fault at level 0");
    at("0x200000")
        .fails(1, "the level 3 entry at 0x90000000 is in no dump (there is 0x80000000 to");
    // All faults are printed, and then the command fails with the first.
    let both = dump.walk(&["--root", "0x80000000", "--json", "0x4000", "0x5000", "0x1000"]);
    let both = both.fails(3, "0x4000: translation fault at level 3, and 1 more");
    let results: Vec<_> = both.json()["walks"]
        .as_array()
        .map_or(vec![], |walks| walks.iter().map(|walk| walk["result"].clone()).collect());
    assert_eq!(results, ["translation_fault", "translation_fault", "mapped"]);
    let narrow = ["--root", "0x80000000", "--output-bits", "32", "0x40000000"];
    dump.walk(&narrow).fails(3, "0x40000000: address size fault at level 1");
}

#[test]
fn a_list_has_all_that_is_mapped_and_all_that_is_wrong() {
    let dump = small();
    let listed = dump.walk(&["--root", "0x80000000"]).fails(1, "0x90000000 is in no dump");
    for (at, part) in [
        "0x000000001000-0x000000002fff  -> 0x000050001000  8 KiB, 2 leaves, read-only  AP[2:1]=01",
        "0x000000003000-0x000000003fff  access flag fault at level 3",
        "0x000000004000-0x000000004fff  translation fault at level 3",
        "0x000000200000-0x0000003fffff  unknown: 0x90000000 is in no dump",
        "0x000000400000-0x0000005fffff  a loop: level 2 leads back to the table at 0x80002000",
        "0x000040000000-0x00007fffffff  -> 0x000140000000  1024 MiB, 1 leaf, read-write  AttrIndx=001",
        "1048584 KiB mapped",
    ]
    .into_iter()
    .enumerate()
    {
        let text = listed.text();
        let line = text.lines().nth(1 + at).unwrap_or_default();
        assert!(line.starts_with(part), "{part:?}: {line:?}");
    }
    let some = ["--root", "0x80000000", "--entries-max", "10", "--json"];
    let stopped =
        dump.walk(&some).fails(1, "10 entries have been read, and the list ends before 0x7000");
    let spans = stopped.json()["spans"].clone();
    assert_eq!(spans[0]["what"], "mapped");
    assert_eq!(
        spans.as_array().and_then(|spans| spans.last()).map(|s| &s["what"]),
        Some(&json!("stopped"))
    );
}

#[test]
fn what_is_no_table_or_no_dump_is_refused() {
    let dump = small();
    dump.walk(&["--root", "0x80000008", "0"])
        .fails(2, "aligned to 0x1000 bytes, and 0x80000008 is not");
    dump.walk(&["--root", "0x80000000", "--input-bits", "49", "0"]).fails(2, "32 to 48");
    dump.walk(&["--root", "0x80000000", "--output-bits", "33", "0"]).fails(2, "36, 40");
    let concatenated = ["--root", "0x80001000", "--stage", "2", "--input-bits", "40", "0"];
    dump.walk(&concatenated).fails(2, "aligned to 0x2000 bytes");
    let beside = [&dump.option[..], "--dump", &dump.option, "--root", "0"];
    run(&[&["walk", "--dump"], &beside[..]].concat()).fails(2, "both have 0x80000000");
    run(&["walk", "--dump", "/nowhere/x@0", "--root", "0"]).fails(1, "cannot open");
    run(&["walk", "--dump", "/@0", "--root", "0"]).fails(1, "is no file");
    for (arguments, part) in [
        (&["--dump", "x", "--root", "0"][..], "FILE@0xBASE"),
        (&["--dump", "x@0x4", "--root", "0"], "multiple of 8"),
        (&["--dump", "x@y", "--root", "0"], "not a number"),
        (&["--dump", "x@0"], "--root"),
        (&["--dump", "x@0", "--root", "0", "--ttbr", "0"], "cannot be used with"),
        (&["--dump", "x@0", "--root", "0", "--granule", "8k"], "4k, 16k and 64k"),
        (&["--dump", "x@0", "--root", "0", "--stage", "3"], "1 and 2"),
        (&["--root", "0"], "--dump"),
    ] {
        let ran = run(&[&["walk"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(part), "{part:?}: {ran:?}");
    }
}

/// A walker finds the mappings in tables that our own code built.
#[test]
fn tables_of_our_own_are_walked() {
    for (granule, name, stage, input_bits) in [
        (Granule::Size4K, "4k", Stage::One, 48),
        (Granule::Size16K, "16k", Stage::One, 36),
        (Granule::Size64K, "64k", Stage::Two, 42),
        (Granule::Size4K, "4k", Stage::Two, 40),
    ] {
        let config = Config { granule, stage, input_bits, ..Config::default() };
        let page = granule.bytes();
        let tables = 32;
        let links: Vec<Link> = (0..tables).map(|_| Link::new()).collect();
        let mut words = vec![0_u64; tables * page as usize / 8];
        let start = NonNull::from(&mut words[..]).cast();
        // SAFETY: as many bytes as links say, and the arena is gone before them.
        let arena = unsafe { Arena::new(start, PhysAddr(BASE), page as usize, &links) };
        let mut table = PageTable::new(config, arena.expect("aligned")).expect("room");
        let attributes = Attributes::new(stage, Access::Read);
        let mut gather = Gather::new();
        let mut part = table.whole();
        let block = 1 << (2 * page.trailing_zeros() - 3);
        let pieces =
            [0x9_0000, 0x5_0000, 0x7_0000].map(|phys| Segment { phys: PhysAddr(phys), len: page });
        part.map_sg(Iova(3 * page), &pieces, attributes, &mut gather).expect("maps");
        part.map(Iova(block), PhysAddr(4 * block), block, attributes, &mut gather).expect("maps");
        let root = format!("{:#x}", table.root().0);
        let known: Vec<_> = table.ranges(Iova(0)..Iova(1 << input_bits)).collect();
        let probes: Vec<u64> = [3 * page, 4 * page + 17, block, 2 * block - 1].into();
        let expected: Vec<u64> = probes
            .iter()
            .map(|&iova| table.iova_to_phys(Iova(iova)).expect("mapped").phys.0)
            .collect();
        // Its memory is ours again, with all that is in it.
        table.leak();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let dump = Dump::new(&bytes);
        let (stage_name, bits) =
            (if stage == Stage::One { "1" } else { "2" }, input_bits.to_string());
        let shape = [
            "--root",
            &root,
            "--granule",
            name,
            "--stage",
            stage_name,
            "--input-bits",
            &bits,
            "--json",
        ];
        let iovas: Vec<String> = probes.iter().map(|iova| format!("{iova:#x}")).collect();
        let iovas: Vec<&str> = iovas.iter().map(String::as_str).collect();
        let line = dump.walk(&[&shape[..], &iovas].concat()).ok().json();
        let found: Vec<_> =
            (0..probes.len()).map(|n| line["walks"][n]["mapped"]["phys"].as_u64()).collect();
        assert_eq!(found, expected.into_iter().map(Some).collect::<Vec<_>>());
        assert_eq!(line["walks"][0]["mapped"]["writable"], false);
        assert_eq!(line["walks"][2]["mapped"]["leaf_size"], block);
        let spans = dump.walk(&shape).ok().json()["spans"].clone();
        let spans: Vec<_> = spans
            .as_array()
            .expect("spans")
            .iter()
            .map(|span| ["iova", "size", "phys"].map(|name| span[name].as_u64().expect(name)))
            .collect();
        let known: Vec<_> = known.iter().map(|m| [m.iova.0, m.len, m.phys.0]).collect();
        assert_eq!(spans, known);
        assert_eq!(spans.len(), 4);
    }
}

/// A strategy's figures of a replay, by name.
fn figures(line: &Value, names: &[&str]) -> Vec<(String, Vec<u64>)> {
    let rows = line["strategies"].as_array().expect("strategies");
    let row = |row: &Value| {
        let figures = names.iter().map(|name| row[name].as_u64().expect(name)).collect();
        (row["strategy"].as_str().expect("a name").into(), figures)
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_camera_by_every_strategy() {
    let line = run(&["replay", "--example", "camera", "--json"]).ok().json();
    let names = [
        "calls",
        "leaf_stores",
        "flushes",
        "by_address",
        "by_range",
        "by_context",
        "refill_misses",
    ];
    let expected: Vec<(String, Vec<u64>)> = [
        // 30 frames of 765 pages, 512 of them a whole table's, and of 48.
        ("by_page", [60, 9_030, 90, 24_390, 0, 0, 0]),
        ("by_context_each_walk", [60, 9_030, 90, 9_030, 0, 30, 30 * 16]),
        ("by_range", [60, 9_030, 60, 0, 120, 0, 0]),
        ("by_context", [60, 9_030, 60, 0, 0, 60, 60 * 16]),
        ("adaptive", [60, 9_030, 60, 1_440, 0, 30, 30 * 16]),
        ("deferred", [60, 9_030, 30, 0, 0, 30, 29 * 16]),
    ]
    .map(|(name, figures)| (name.into(), figures.into()))
    .into();
    assert_eq!(figures(&line, &names), expected);
    assert_eq!(
        [&line["input"]["mapped_bytes"], &line["input"]["unmapped_bytes"]],
        [&json!(99_901_440); 2]
    );
    // 60 calls, 9,030 leaves and 24,390 addresses.
    let by_page = &line["strategies"][0];
    assert_eq!(by_page["unmap_ns"], 60.0 * 1350.0 + 9_030.0 * 390.0 + 24_390.0 * 125.0);
    // One frame in 33 ms: two calls, 301 leaves, 813 addresses.
    let worst_ns = 2.0 * 1350.0 + 301.0 * 390.0 + 813.0 * 125.0;
    assert_eq!(by_page["window_worst_ns"], worst_ns);
    assert_eq!(by_page["window_share"], worst_ns / 33e6);
    assert_eq!(line["complaint_address_ns"].as_f64().map(f64::round), Some(3948.0));
    let dear = ["replay", "--example", "camera", "--json", "--address-ns", "3948.4"];
    let total_ns = run(&dear).ok().json()["strategies"][0]["unmap_ns"].as_f64().expect("a time");
    assert!((total_ns - 99_901_440.0).abs() < 1e5, "100 ms per 100 MB: {total_ns}");
}

/// The text given on stdin, and the expected output.
pub(super) fn replay(trace: &str, options: &[&str]) -> Ran {
    run_with_input(barewire_iommu(&[&["replay", "-"], options].concat()), trace)
}

#[test]
fn a_printed_trace_replays_as_the_example_does() {
    let example = ["replay", "--example", "camera"];
    let trace = run(&[&example[..], &["--print-trace"]].concat()).ok().text();
    let mut read = replay(&trace, &["--json"]).ok().json();
    let mut made = run(&[&example[..], &["--json"]].concat()).ok().json();
    for name in ["trace", "about", "complaint_address_ns"] {
        read[name] = Value::Null;
        made[name] = Value::Null;
    }
    for line in [&mut read, &mut made] {
        line["input"]["lines"] = Value::Null;
    }
    assert_eq!(read, made);
}

/// The thread's 32 MiB in 4 KiB pages, unmapped in one call.
#[test]
fn the_threads_32_mib() {
    let mut trace = String::new();
    for page in 0..8192_u64 {
        let (iova, phys) = (0x4000_0000 + page * 4096, 0x1_0000_0000 + page * 8192);
        trace += &format!("x-1 [0] 1.0: map: IOMMU: iova={iova:#x} paddr={phys:#x} size=4096\n");
    }
    trace += "x-1 [0] 2.0: unmap: IOMMU: iova=0x40000000 size=33554432 unmapped_size=33554432\n";
    let line = replay(&trace, &["--json", "--working-set", "0"]).ok().json();
    let expected: Vec<(String, Vec<u64>)> = [
        ("by_page", 8192),
        ("by_context_each_walk", 16),
        ("by_range", 1),
        ("by_context", 1),
        ("adaptive", 1),
        ("deferred", 1),
    ]
    .map(|(name, count)| (name.into(), vec![count]))
    .into();
    assert_eq!(figures(&line, &["invalidations"]), expected);
    // The thread measured 1,033 and 51.8 us.
    let us = |n: usize| line["strategies"][n]["unmap_ns"].as_f64().map(|ns| ns / 1e3);
    assert_eq!([us(0), us(1)], [Some(1025.35), Some(52.07)]);
}

#[test]
fn a_bad_trace_is_told_by_its_line() {
    let good = "x-1 [0] 1.0: map: IOMMU: iova=0x1000 - 0x2000 paddr=0x10000 size=4096\n";
    let bad = |line: &str| replay(&format!("{good}# a comment\n{line}\n{good}"), &["--strict"]);
    for (line, part) in [
        ("1.0: map: IOMMU: iova=0x3000 size=4096", "stdin line 3: paddr= is missing"),
        (
            "1.0: map: IOMMU: iova=0x3000 - 0x5000 paddr=0 size=4096",
            "line 3: the range ends at 0x5000",
        ),
        ("1.0: map: IOMMU: iova=x paddr=0 size=4096", "line 3: iova= is no number"),
        ("1.0: map: IOMMU: iova=0x3000 paddr=0 size=100", "line 3: size 0x64 is no multiple"),
        (
            "1.0: map: IOMMU: iova=0x1000000000000 paddr=0 size=4096",
            "line 3: iova 0x1000000000fff has more than 48 bits (--input-bits)",
        ),
        (
            "1.0: unmap: IOMMU: iova=0 size=4096 unmapped_size=8192",
            "line 3: 8192 bytes were unmapped of 4096",
        ),
    ] {
        bad(line).fails(1, part);
        let skipped = replay(&format!("{good}{line}\n{good}"), &["--json"]).ok();
        assert_eq!(skipped.json()["input"]["malformed_lines"], 1, "{line}");
        assert_eq!(skipped.json()["input"]["maps"], 2, "{line}");
    }
    replay("# tracer: nop\nx-1 1.0: sched_switch: x\n", &[])
        .fails(1, "no iommu:map, iommu:unmap or dma:dma_* event in its 2 lines");
    replay("", &[]).fails(1, "in its 0 lines");
    replay("1.0: map: IOMMU: iova=x\n", &[]).fails(1, "in its 1 lines, and 1 that cannot be read");
    replay(
        &good.replace("0x1000 - 0x2000", "0x10000").replace("4096", "65536"),
        &["--granule", "64k"],
    )
    .ok();
    replay(good, &["--granule", "64k", "--strict"])
        .fails(1, "line 1: iova 0x1000 is no multiple of the 65536 byte granule (--granule)");
    replay(good, &["--output-bits", "32", "--tables-mib", "8192"]).fails(2, "--tables-mib");
    run(&["replay", "/nowhere/trace"]).fails(1, "cannot open");
    for (arguments, part) in [
        (&[][..], "required"),
        (&["t", "--example", "camera"], "cannot be used with"),
        (&["--print-trace", "t"], "cannot be used with"),
        (&["t", "--miss-ns", "-1"], "unexpected argument"),
        (&["t", "--miss-ns", "x"], "nanoseconds are a number"),
        (&["t", "--window-ms", "0"], "milliseconds are a number"),
        (&["t", "--tlb-entries", "2M"], "from 0 to 1048576"),
        (&["t", "--defer-calls", "0"], "--defer-calls"),
    ] {
        let ran = run(&[&["replay"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(part), "{part:?}: {ran:?}");
    }
}

#[test]
fn what_is_odd_in_a_trace_is_counted() {
    let trace = "\
CPU:1 [LOST 12 EVENTS]
x-1 [0] 1.000000: attach_device_to_domain: IOMMU: device=a
x-1 [0] 1.000000: map: IOMMU: iova=0x1000 - 0x2000 paddr=0x10000 size=4096
x-1 [0] 0.900000: map: IOMMU: iova=0x1000 - 0x2000 paddr=0x20000 size=4096
x-1 [0] 77: unmap: IOMMU: iova=0x0 - 0x3000 size=12288 unmapped_size=8192
x-1 [0] 1.500000: unmap: IOMMU: iova=0x1000 - 0x2000 size=40";
    let line = replay(trace, &["--json"]).ok().json();
    assert_eq!(
        line["input"],
        json!({"lines": 6, "maps": 2, "unmaps": 1, "other_lines": 0, "lost_events": 12,
            "cut_line": true, "mapped_bytes": 8192, "unmapped_bytes": 8192, "short_unmaps": 1,
            "assumed_mapped_bytes": 4096, "assumed_unmapped_bytes": 4096, "backward_times": 1,
            "untimed": 1, "duration_ns": 0, "malformed_lines": 0, "unmatched_unmaps": 1,
            "failed_maps": 0, "truncated_lists": 0, "located_maps": 0, "identity_maps": 0,
            "not_replayed": {"attach_device_to_domain": 1}, "unselected_events": 0,
            "left_out_events": 0})
    );
    assert_eq!(line["attached"], json!(["a"]));
    assert_eq!(line["devices"][0]["device"], "unnamed");
    assert_eq!(line["devices"][0]["strategies"], line["strategies"]);
    let told = replay(trace, &[]).ok().text();
    for part in [
        "12 events lost",
        "4,096 bytes unmapped that no line",
        "4,096 bytes mapped again",
        "1 line at the end, cut",
    ] {
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }
    let untimed =
        replay("map: IOMMU: iova=0x1000 paddr=0x20000 size=4096\n", &["--json"]).ok().json();
    assert_eq!(untimed["input"]["duration_ns"], Value::Null);
    assert_eq!(untimed["strategies"][0]["window_share"], Value::Null);
}
