//! `bench`: every row, the counts, the thread's table.

use std::time::Duration;

use serde_json::Value;

use super::command::{barewire_iommu, interrupted, run};

const SIZES: [&str; 8] = ["4K", "64K", "1M", "2M", "12M", "16M", "24M", "32M"];

fn bench() -> Value {
    run(&["bench", "--json", "--rounds", "1", "--no-instructions"]).ok().json()
}

/// The row that has these fields, and a strategy or none.
#[track_caller]
fn row<'v>(report: &'v Value, fields: [&str; 4], strategy: Option<&str>) -> &'v Value {
    let names = ["impl", "op", "size", "layout"];
    let rows = report["rows"].as_array().expect("rows");
    let mut found = rows.iter().filter(|row| {
        names.iter().zip(fields).all(|(&name, field)| row[name] == field)
            && row["strategy"].as_str() == strategy
    });
    let row = found.next().unwrap_or_else(|| panic!("no row of {fields:?} {strategy:?}"));
    assert!(found.next().is_none(), "two rows of {fields:?} {strategy:?}");
    row
}

/// The other crates that are measured: on 64 bits alone, since neither compiles for 32.
const PEERS: &[&str] = if cfg!(target_pointer_width = "64") {
    &["aarch64_paging", "page_table_multiarch", "page_table_generic"]
} else {
    &[]
};

#[test]
fn every_row_is_there_once_and_the_counts_are_exact() {
    let report = bench();
    let strategies = ["by_page", "by_asid", "by_range", "gathered"];
    for size in SIZES {
        for layout in ["scattered", "contiguous"] {
            for &peer in PEERS {
                for op in ["map_sg", "unmap", "map_table", "unmap_table"] {
                    row(&report, [peer, op, size, layout], None);
                }
            }
            for op in ["map_sg", "map_table"] {
                row(&report, ["floor_a", op, size, layout], None);
            }
            for op in ["map_sg", "map_table", "unmap_table", "domain_map", "domain_unmap"] {
                row(&report, ["barewire", op, size, layout], None);
            }
            for strategy in strategies {
                row(&report, ["barewire", "unmap", size, layout], Some(strategy));
            }
        }
        row(&report, ["floor_leaf", "unmap_leaf", size, "scattered"], None);
        row(&report, ["barewire", "unmap_leaf", size, "scattered"], Some("gathered"));
    }
    for size in &SIZES[..3] {
        row(&report, ["floor_leaf", "unmap_table", size, "scattered"], None);
    }
    for size in &SIZES[3..] {
        for op in ["map_sg", "map_table"] {
            row(&report, ["floor_b", op, size, "scattered"], None);
            row(&report, ["floor_b_unzeroed", op, size, "scattered"], None);
        }
        row(&report, ["floor_drop", "unmap", size, "scattered"], None);
        row(&report, ["floor_drop", "unmap_table", size, "scattered"], None);
    }
    for row in report["rows"].as_array().expect("rows") {
        for figure in ["ns_median", "ns_min"] {
            assert!(row[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {row}");
        }
        // Two decimals: 0 where the floor was interrupted, which is the machine's affair and not the test's.
        for (floor, ratio) in
            [("floor", "ratio_to_floor"), ("strict_floor", "ratio_to_strict_floor")]
        {
            let ratio = row[ratio].as_f64();
            assert!(ratio.is_some_and(|ratio| ratio >= 0.0), "{row}");
            assert!(row[floor].as_str().is_some_and(|name| name.starts_with("floor_")), "{row}");
        }
    }
    let count = |size, strategy| {
        row(&report, ["barewire", "unmap", size, "scattered"], Some(strategy))["invalidations"]
            .clone()
    };
    assert_eq!(
        [count("32M", "by_page"), count("32M", "by_asid"), count("32M", "gathered")],
        [8192, 16, 1]
    );
    assert_eq!(
        [count("2M", "by_page"), count("2M", "by_asid"), count("2M", "gathered")],
        [512, 1, 1]
    );
    // 8,192 pages are one range command: 1 << 13.
    assert_eq!(
        [count("32M", "by_range"), count("4K", "by_page"), count("64K", "by_asid")],
        [1, 1, 16]
    );
}

#[test]
fn maps_of_whole_tables_are_held_against_both_floors() {
    let report = bench();
    for (size, floor, strict) in [
        ("1M", "floor_a", "floor_a"),
        ("2M", "floor_b", "floor_b_unzeroed"),
        ("32M", "floor_b", "floor_b_unzeroed"),
    ] {
        for op in ["map_sg", "map_table", "domain_map"] {
            let row = row(&report, ["barewire", op, size, "scattered"], None);
            assert_eq!((&row["floor"], &row["strict_floor"]), (&floor.into(), &strict.into()));
        }
    }
}

#[test]
fn table_work_is_compared_with_the_best_peer_and_the_domain_with_the_rest() {
    let report = bench();
    let ours = |op, size, layout| row(&report, ["barewire", op, size, layout], None);
    for size in ["4K", "64K"] {
        for layout in ["scattered", "contiguous"] {
            for op in ["map_table", "unmap_table"] {
                let median = |peer| {
                    row(&report, [peer, op, size, layout], None)["ns_median"].as_f64().expect("ns")
                };
                let best = PEERS
                    .iter()
                    .copied()
                    .min_by(|one, other| median(one).total_cmp(&median(other)));
                let row = ours(op, size, layout);
                assert_eq!(row["best_peer"].as_str(), best, "{row}");
                assert_eq!(row["ratio_to_best_peer"].is_number(), best.is_some(), "{row}");
            }
            for (op, base) in [("domain_map", "map_table"), ("domain_unmap", "unmap")] {
                let row = ours(op, size, layout);
                assert_eq!(row["on_top_of"], base, "{row}");
                assert!(row["ns_on_top"].is_number() && row["best_peer"].is_null(), "{row}");
                assert!(row["ns_on_top_of_table"].is_number(), "{row}");
            }
        }
    }
}

/// Each promise is listed once, whether it was kept on this machine or not.
#[test]
fn every_bar_is_there() {
    let report = bench();
    let bars = report["bars"].as_array().expect("bars");
    let bar = |what: &str| {
        let mut found = bars
            .iter()
            .filter(|bar| bar["what"].as_str().is_some_and(|name| name.starts_with(what)));
        let bar = found.next().unwrap_or_else(|| panic!("no bar of {what:?}"));
        assert!(found.next().is_none(), "two bars of {what:?}");
        let (value, limit) = (bar["value"].as_f64(), bar["limit"].as_f64().expect("a limit"));
        let at_most = bar["at_most"].as_bool().expect("a direction");
        let met = value.map(|value| if at_most { value <= limit } else { value >= limit });
        assert_eq!(bar["met"].as_bool(), met, "{bar}");
        (limit, at_most)
    };
    for (what, limit) in [
        ("map_sg 32M scattered, x floor_b_unzeroed", 1.5),
        ("map_sg 2M scattered, x floor_b_unzeroed", 1.5),
        ("map_sg 32M contiguous, ns", 200.0),
        ("unmap 32M gathered, x floor_drop", 2.5),
        ("unmap_leaf 1M, x floor_leaf", 1.5),
        ("domain_map 4K scattered, ns on top of map_table", 20.0),
        ("domain_map 64K scattered, ns on top of map_table", 20.0),
        ("invalidations of unmap 32M, by_page", 8192.0),
        ("invalidations of unmap 32M, by_asid", 16.0),
        ("invalidations of unmap 32M, gathered", 1.0),
        ("the thread's unmaps", 20.0),
    ] {
        assert_eq!(bar(what), (limit, true), "{what}");
    }
    // These begin as others do.
    let named = |what: &str| bars.iter().filter(|bar| bar["what"] == what).count();
    for size in ["2M", "32M"] {
        assert_eq!(named(&format!("map_sg {size} scattered, x floor_b")), 1);
    }
    for size in ["4K", "64K"] {
        for base in ["unmap", "unmap_table"] {
            let what = format!("domain_unmap {size} scattered, ns on top of {base}");
            assert_eq!(named(&what), 1, "{what}");
        }
    }
    if PEERS.is_empty() {
        return;
    }
    for op in ["map_table", "unmap_table"] {
        for size in ["4K", "64K"] {
            for layout in ["scattered", "contiguous"] {
                assert_eq!(bar(&format!("{op} {size} {layout}, x ")), (1.1, true));
            }
        }
    }
    assert_eq!(bar("unmap_table 32M contiguous, x "), (1.1, true));
    for peer in PEERS {
        assert_eq!(bar(&format!("{peer} map 32M, x ours")), (10.0, false));
    }
}

#[test]
fn the_thread_s_unmaps_are_fitted_within_a_fifth() {
    let report = bench();
    let thread = &report["thread"];
    let lines = thread["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), SIZES.len());
    for (line, size) in lines.iter().zip(SIZES) {
        assert_eq!(line["size"], size);
        for column in ["before", "after"] {
            let published = line[column]["published_us"].as_f64().expect("published");
            let fitted = line[column]["fitted_us"].as_f64().expect("fitted");
            assert!((fitted / published - 1.0).abs() <= 0.2, "{size} {column}: {line}");
        }
        assert!(line["gathered"]["published_us"].is_null(), "a prediction is not published");
    }
    // One flush of all, where 16 had been.
    assert_eq!(lines[7]["gathered"]["invalidations"], 1);
    let costs = &thread["costs"];
    let near = |name: &str, us: f64| {
        let cost = costs[name].as_f64().expect("a cost");
        assert!((cost / us - 1.0).abs() < 0.15, "{name}: {cost} for about {us}");
    };
    near("call_us", 1.35);
    near("page_us", 0.39);
    near("address_us", 0.125);
    near("asid_us", 3.17);
}

#[test]
fn the_table_says_what_is_measured_and_what_is_fitted() {
    let text = run(&["bench", "--rounds", "1", "--no-instructions"]).ok().text();
    for part in [
        "no IOMMU: tables in this machine's memory",
        "map_sg, scattered",
        "unmap_leaf, scattered",
        "fitted",
        "prediction",
        "Ranjan",
        "floor_drop",
        "floor_b_unzeroed",
        "map_table, contiguous",
        "unmap_table, scattered",
        "domain_unmap, scattered",
        "on top of table work",
        "x strictest floor",
        "promised",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    for peer in PEERS {
        assert!(text.contains(peer), "{peer} is not in\n{text}");
    }
    assert_eq!(text.contains("x best peer"), !PEERS.is_empty(), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn bad_options_are_refused() {
    assert_eq!(run(&["bench", "--rounds", "0"]).code, Some(2));
    assert_eq!(run(&[]).code, Some(2));
    let ran = run(&["benhc"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'bench'"), "{ran:?}");
    run(&["bench", "--count-op", "map"]).fails(2, "no operation is called \"map\"");
}

#[test]
fn ctrl_c_ends_it_between_two_rounds() {
    let command = barewire_iommu(&["bench", "--json", "--rounds", "1000000"]);
    let ran = interrupted(command, Duration::from_millis(500));
    assert!(ran.stdout.is_empty(), "an interrupted bench prints nothing");
    ran.fails(130, "stopped as asked");
}
