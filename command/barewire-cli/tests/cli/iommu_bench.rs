//! `barewire iommu bench`: every row, the counts, the thread's table.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::command::{Ran, barewire, run};

const SIZES: [&str; 8] = ["4K", "64K", "1M", "2M", "12M", "16M", "24M", "32M"];

fn bench() -> Value {
    run(&["iommu", "bench", "--json", "--rounds", "1", "--no-instructions"]).ok().json()
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
    &["aarch64_paging", "page_table_multiarch"]
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
                for op in ["map_sg", "unmap"] {
                    row(&report, [peer, op, size, layout], None);
                }
            }
            row(&report, ["floor_a", "map_sg", size, layout], None);
            row(&report, ["barewire", "map_sg", size, layout], None);
            for strategy in strategies {
                row(&report, ["barewire", "unmap", size, layout], Some(strategy));
            }
        }
        row(&report, ["floor_leaf", "unmap_leaf", size, "scattered"], None);
        row(&report, ["barewire", "unmap_leaf", size, "scattered"], Some("gathered"));
    }
    for size in &SIZES[3..] {
        row(&report, ["floor_b", "map_sg", size, "scattered"], None);
        row(&report, ["floor_drop", "unmap", size, "scattered"], None);
    }
    for row in report["rows"].as_array().expect("rows") {
        for figure in ["ns_median", "ns_min"] {
            assert!(row[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {row}");
        }
        // Two decimals. The cheapest floor may be a two hundredth of another where little is optimised.
        let is_floor = row["impl"].as_str().is_some_and(|name| name.starts_with("floor_"));
        let ratio = row["ratio_to_floor"].as_f64();
        assert!(ratio.is_some_and(|ratio| ratio > 0.0 || is_floor && ratio == 0.0), "{row}");
        assert!(row["floor"].as_str().is_some_and(|floor| floor.starts_with("floor_")), "{row}");
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
    assert!(report["bars"].as_array().is_some_and(|bars| bars.len() >= 10));
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
    let text = run(&["iommu", "bench", "--rounds", "1", "--no-instructions"]).ok().text();
    for part in [
        "no IOMMU: tables in this machine's memory",
        "map_sg, scattered",
        "unmap_leaf, scattered",
        "fitted",
        "prediction",
        "Ranjan",
        "floor_drop",
        "promised",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    for peer in PEERS {
        assert!(text.contains(peer), "{peer} is not in\n{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn bad_options_are_refused() {
    assert_eq!(run(&["iommu", "bench", "--rounds", "0"]).code, Some(2));
    assert_eq!(run(&["iommu"]).code, Some(2));
    let ran = run(&["iommu", "benhc"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("'bench'"), "{ran:?}");
    run(&["iommu", "bench", "--count-op", "map"]).fails(2, "no operation is called \"map\"");
}

#[test]
fn ctrl_c_ends_it_between_two_rounds() {
    let mut command = barewire(&["iommu", "bench", "--json", "--rounds", "1000000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    sleep(Duration::from_millis(500));
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill is there").success());
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert!(ran.stdout.is_empty(), "half a bench is none");
    ran.fails(130, "stopped as asked");
}
