//! Exact instruction counts of mapping and unmapping, and of the floors: reviewed tables that gate.
//!
//! Only a build in profile `counted` under the pinned compiler has reproducible counts: on x86-64 by
//! callgrind, on aarch64 by QEMU. Elsewhere a test says that it skipped, and what to run. Set
//! `BAREWIRE_BLESS=1` to write a table anew, then review the difference.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use barewire_iommu_bench::callgrind::{program, why_not};
use barewire_iommu_bench::counted::{COUNTED, counted_on_arm};
use barewire_iommu_bench::traced;

const TOOLCHAIN: &str = include_str!("../../rust-toolchain.toml");

const HEADER: &str = "\
Instructions of mapping and unmapping, counted by callgrind; x86-64, release, pinned compiler; libc's
(it fills memory) left out. The floors are what the work itself costs: who changes one says why.
unmap: one call, one flush of a TLB that counts, tables given back. unmap_table: nothing chosen, flushed
or given back. domain_map, domain_unmap: a strict Domain.

";

const HEADER_ARM: &str = "\
Executed in one call on aarch64: counted from the log of qemu-aarch64, not measured. Release, pinned
compiler, Armv8.0 (exclusives: stores of LDXR/STXR loops). Lines: cleaned by DC CVAC, of 64 bytes.
Walker: snoops the caches, or the pool cleans what changed and waits by a DSB each time. Operations as
in instructions.txt; map_table is map_sg.

";

#[test]
fn instructions_of_page_tables_and_their_floors_are_as_reviewed() {
    let program =
        why_not(TOOLCHAIN).map_or_else(|| program(env!("CARGO_BIN_EXE_iommu-count")), Err);
    let program = match program {
        Ok(program) => program,
        Err(why) => {
            println!("SKIPPED: {why}");
            return;
        }
    };
    let mut table = String::from(HEADER);
    let _ = writeln!(
        table,
        "{:<18}{:<6}{:<12}{:>10}{:>10}",
        "op", "size", "layout", "per call", "per page"
    );
    for op in COUNTED {
        let per_call = op.per_call(&program, &[&op.key()]).unwrap_or_else(|why| panic!("{why}"));
        let (layout, per_page) = (op.layout.name(), op.per_page(per_call));
        let _ = writeln!(
            table,
            "{:<18}{:<6}{layout:<12}{per_call:>10}{per_page:>10.2}",
            op.op, op.size
        );
    }
    compare(&table, "instructions.txt");
}

#[test]
fn what_page_tables_execute_on_arm_is_as_reviewed() {
    let Some(programs) = std::env::var_os("BAREWIRE_PROGRAMS_ARM64").map(PathBuf::from) else {
        println!(
            "SKIPPED: BAREWIRE_PROGRAMS_ARM64 names no directory of programs for aarch64: {BUILD_ARM}"
        );
        return;
    };
    if let Some(why) = traced::why_not(TOOLCHAIN) {
        println!("SKIPPED: {why}");
        return;
    }
    let program = programs.join("iommu-count");
    let mut table = String::from(HEADER_ARM);
    let _ = writeln!(
        table,
        "{:<18}{:<5}{:<12}{:<8}{:>13}{:>9}{:>7}{:>11}{:>5}{:>5}{:>7}",
        "op",
        "size",
        "layout",
        "walker",
        "instructions",
        "per page",
        "STLR",
        "exclusives",
        "DMB",
        "DSB",
        "lines"
    );
    for op in counted_on_arm() {
        let counts = op.executed(&program).unwrap_or_else(|why| panic!("{}: {why}", op.key()));
        let per_page = op.per_page(counts.instructions);
        let walker = if op.coherent { "snoops" } else { "cleaned" };
        let _ = writeln!(
            table,
            "{:<18}{:<5}{:<12}{walker:<8}{:>13}{per_page:>9.2}{:>7}{:>11}{:>5}{:>5}{:>7}",
            op.op,
            op.size,
            op.layout.name(),
            counts.instructions,
            counts.store_releases,
            counts.exclusives,
            counts.dmb,
            counts.dsb,
            counts.cleaned_lines
        );
    }
    compare(&table, "instructions_arm64.txt");
}

/// How to build the program that is counted on aarch64, where the target is installed.
const BUILD_ARM: &str = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld \
    RUSTFLAGS='-C target-feature=-outline-atomics' cargo build --profile counted -p barewire-iommu-bench \
    --bin iommu-count --target aarch64-unknown-linux-musl, and name \
    target/aarch64-unknown-linux-musl/counted";

/// The README shows some lines of the table for Arm.
#[test]
fn the_readme_s_lines_are_the_reviewed_ones() {
    let reviewed = std::fs::read_to_string(snapshot("instructions_arm64.txt")).expect("is there");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../barewire-iommu/README.md");
    let readme = std::fs::read_to_string(&path).expect("is there");
    // Operation, size, layout and walker name a line.
    let name = |line: &str| line.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    let is_shown = |line: &str| {
        matches!(line.split_whitespace().nth(3), Some("snoops" | "cleaned"))
            && line.split_whitespace().count() == 11
    };
    let current = |line: &str| {
        let same = reviewed.lines().find(|reviewed| name(reviewed) == name(line));
        same.unwrap_or("no longer counted").to_owned()
    };
    let refreshed: Vec<String> = readme
        .lines()
        .map(|line| if is_shown(line) { current(line) } else { line.to_owned() })
        .collect();
    assert!(readme.lines().any(is_shown), "{} shows lines of the table", path.display());
    let refreshed = refreshed.join("\n") + "\n";
    if readme != refreshed && std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &refreshed).expect("the README is writable");
        panic!("{}: lines written: review and run again", path.display());
    }
    assert!(readme == refreshed, "{} has other lines than the snapshot", path.display());
}

fn snapshot(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name)
}

/// Compares a table with the reviewed one, or writes it.
#[track_caller]
fn compare(table: &str, name: &str) {
    let path = snapshot(name);
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, table).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
