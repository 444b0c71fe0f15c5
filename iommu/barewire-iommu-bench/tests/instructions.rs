//! Exact instruction counts of mapping and unmapping, and of the floors: a reviewed table that gates.
//!
//! Only the optimised build under the pinned compiler on x86-64 has reproducible counts; elsewhere
//! the test says that it skipped. Set `BAREWIRE_BLESS=1` to write the table anew; the difference is
//! then for a reviewer.

use std::fmt::Write as _;
use std::path::Path;

use barewire_iommu_bench::callgrind::{program, why_not};
use barewire_iommu_bench::counted::COUNTED;

const HEADER: &str = "\
Instructions of mapping and unmapping, counted by callgrind; x86-64, release, pinned compiler; libc's
(it fills memory) left out. The floors are what the work itself costs: who changes one says why.
unmap: one call, one flush of a TLB that counts, tables given back.

";

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build, see BAREWIRE_PROGRAMS")]
fn instructions_of_page_tables_and_their_floors_are_as_reviewed() {
    if let Some(why) = why_not(include_str!("../../../rust-toolchain.toml")) {
        println!("SKIPPED: {why}");
        return;
    }
    let program = program(env!("CARGO_BIN_EXE_iommu-count"));
    let mut table = String::from(HEADER);
    let _ = writeln!(
        table,
        "{:<12}{:<6}{:<12}{:>10}{:>10}",
        "op", "size", "layout", "per call", "per page"
    );
    for op in COUNTED {
        let per_call = op.per_call(&program, &[&op.key()]).unwrap_or_else(|why| panic!("{why}"));
        let (layout, per_page) = (op.layout.name(), op.per_page(per_call));
        let _ = writeln!(
            table,
            "{:<12}{:<6}{layout:<12}{per_call:>10}{per_page:>10.2}",
            op.op, op.size
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/instructions.txt");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        std::fs::write(&path, &table).expect("the snapshot is writable");
        panic!("{}: snapshot written: review and run again", path.display());
    }
    let reviewed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == reviewed, "not as reviewed in {}:\n{table}", path.display());
}
