//! The bench's report for readers.

use std::fmt::Write as _;

use barewire_iommu_bench::bars::find;
use barewire_iommu_bench::list::{Layout, SIZES};
use barewire_iommu_bench::row::{Op, Row};
use barewire_iommu_bench::subject::Implementation;

use super::Report;

/// The operations, in the order of the report.
const TIMED: [Op; 7] = [
    Op::MapTable,
    Op::UnmapTable,
    Op::MapSg,
    Op::Unmap,
    Op::UnmapLeaf,
    Op::DomainMap,
    Op::DomainUnmap,
];

/// All of it.
pub(super) fn text(report: &Report) -> String {
    let settled = if report.settled { "" } else { ", and the medians have not settled" };
    let mut text = format!(
        "Measured here ({}), {} rounds{settled}.\nTimes are medians, ratios the medians of each round's own; they \
         inform.\n",
        report.machine, report.rounds
    );
    for layout in [Layout::Scattered, Layout::Contiguous] {
        for op in TIMED {
            block(&mut text, &report.rows, op, layout);
        }
    }
    text.push_str(
        "\nfloor_a     8 bytes a page into tables that are ready\n\
         floor_b     the same, its tables allocated, zeroed and published\n\
         floor_b_unzeroed  the same without zeroing: every entry is stored anyway\n\
         floor_drop  whole tables unhooked and given back\n\
         floor_leaf  entries emptied one by one, as a table in use needs it\n\
         by_page, by_asid  each table flushed by itself; by_range, gathered  one flush a call\n\
         unmap_leaf  by calls of at most 1M, which leave the tables where they are\n\
         map_table, unmap_table  the work on tables alone: nothing chosen, flushed or released\n\
         domain_map, domain_unmap  a strict Domain: addresses allocated, locks, and all of the above\n",
    );
    invalidations(&mut text, report);
    threads_and_instructions(&mut text, report);
    thread_table(&mut text, report);
    bars(&mut text, report);
    text
}

/// One operation: a line for each implementation, a column for each size.
fn block(text: &mut String, rows: &[Row], op: Op, layout: Layout) {
    let of_block = |row: &&Row| row.op == op && row.layout == layout;
    let mut who: Vec<(Implementation, Option<&str>)> = Vec::new();
    for row in rows.iter().filter(of_block) {
        if !who.contains(&(row.implementation, row.strategy)) {
            who.push((row.implementation, row.strategy));
        }
    }
    if who.is_empty() {
        return;
    }
    // Floors come first here. Small sizes have fewer floors, so the rows are in another order.
    who.sort_by_key(|&(implementation, _)| !is_floor(implementation));
    let title = format!("{}, {}", op.name(), layout.name());
    let _ = write!(text, "\n{title:<30}");
    for size in SIZES {
        let _ = write!(text, "{:>9}", size.name);
    }
    let _ = writeln!(text, "{:>10}", "ns/page");
    for &(implementation, strategy) in &who {
        let cells =
            SIZES.map(|size| (size, find(rows, implementation, (op, size.name, layout), strategy)));
        let _ = write!(text, "{:<30}", name(implementation, strategy));
        for (_, row) in cells {
            let _ = write!(text, "{:>9}", row.map_or("-".into(), |row| short_time(row.ns_median)));
        }
        let per_page =
            cells.iter().rev().find_map(|&(size, row)| Some(row?.ns_median / size.pages() as f64));
        let _ = writeln!(text, "{:>10}", per_page.map_or("-".into(), |ns| format!("{ns:.3}")));
        if is_floor(implementation) {
            continue;
        }
        let rows = cells.map(|(_, row)| row);
        line(text, "  x floor", rows, |row| Some(ratio(row.ratio_to_floor)));
        if cells.iter().any(|(_, row)| row.is_some_and(|row| row.strict_floor != row.floor)) {
            line(text, "  x strictest floor", rows, |row| Some(ratio(row.ratio_to_strict_floor)));
        }
        line(text, "  x best peer", rows, |row| row.ratio_to_best_peer.map(ratio));
        if let Some(base) = rows.iter().find_map(|row| row.as_ref()?.on_top_of) {
            let title = format!("  on top of {}", base.name());
            line(text, &title, rows, |row| row.ns_on_top.map(short_time));
            let title = "  on top of table work";
            line(text, title, rows, |row| row.ns_on_top_of_table.map(short_time));
        }
    }
}

/// A line of values derived from each size's row; `None` if no size has one.
fn line(
    text: &mut String,
    title: &str,
    rows: [Option<&Row>; SIZES.len()],
    of: impl Fn(&Row) -> Option<String>,
) {
    let cells = rows.map(|row| row.and_then(&of));
    if cells.iter().all(Option::is_none) {
        return;
    }
    let _ = write!(text, "{title:<30}");
    for cell in cells {
        let _ = write!(text, "{:>9}", cell.as_deref().unwrap_or("-"));
    }
    text.push('\n');
}

fn is_floor(implementation: Implementation) -> bool {
    implementation.name().starts_with("floor_")
}

fn name(implementation: Implementation, strategy: Option<&str>) -> String {
    match strategy {
        Some(strategy) => format!("{} {strategy}", implementation.name()),
        None => implementation.name().into(),
    }
}

/// Three digits and a unit, without a space.
fn short_time(ns: f64) -> String {
    match ns {
        ..10.0 => format!("{ns:.2}ns"),
        ..100.0 => format!("{ns:.1}ns"),
        ..1e3 => format!("{ns:.0}ns"),
        ..1e4 => format!("{:.2}us", ns / 1e3),
        ..1e5 => format!("{:.1}us", ns / 1e3),
        _ => format!("{:.0}us", ns / 1e3),
    }
}

fn ratio(value: f64) -> String {
    if value < 100.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// The TLB invalidations, by strategy.
fn invalidations(text: &mut String, report: &Report) {
    let _ = write!(text, "\n{:<30}", "invalidations, scattered");
    for size in SIZES {
        let _ = write!(text, "{:>9}", size.name);
    }
    text.push('\n');
    for strategy in ["by_page", "by_asid", "by_range", "gathered"] {
        let _ = write!(text, "{strategy:<30}");
        for size in SIZES {
            let of = (Op::Unmap, size.name, Layout::Scattered);
            let row = find(&report.rows, Implementation::Barewire, of, Some(strategy));
            let count = row.and_then(|row| row.invalidations);
            let _ = write!(text, "{:>9}", count.map_or("-".into(), |count| count.to_string()));
        }
        text.push('\n');
    }
}

fn threads_and_instructions(text: &mut String, report: &Report) {
    if let Some(scaling) = &report.scaling {
        let _ = writeln!(
            text,
            "\nScaling: {} scattered mapped and unmapped {:.0} times a second by one thread,\n{:.0} by two on \
             disjoint ranges of the same table: x {:.2}; with a table each: x {:.2}",
            scaling.size, scaling.one_per_s, scaling.two_per_s, scaling.ratio, scaling.ratio_apart
        );
        let running = scaling.ratio_while_running.zip(scaling.ratio_apart_while_running);
        if let Some((ratio, apart)) = running {
            let _ = writeln!(
                text,
                "(x {ratio:.2} and x {apart:.2} in the time that both had a processor)."
            );
        }
    }
    if report.instructions.iter().all(|counted| counted.per_call.is_none()) {
        return;
    }
    let _ =
        writeln!(text, "\n{:<30}{:>12}{:>12}", "instructions (callgrind)", "per call", "per page");
    for counted in &report.instructions {
        let what = format!("{} {} {}", counted.op, counted.size, counted.layout);
        let per_call = counted.per_call.map_or("-".into(), |count| count.to_string());
        let per_page = counted.per_page.map_or("-".into(), |count| format!("{count:.2}"));
        let _ = writeln!(text, "{what:<30}{per_call:>12}{per_page:>12}");
    }
}

/// The thread's table: published beside fitted, and the prediction.
fn thread_table(text: &mut String, report: &Report) {
    let thread = &report.thread;
    let costs = thread.costs;
    let _ = write!(
        text,
        "\nThe thread's table: iommu_unmap of a scattered list on an SM8150, in us. Published by S. P. \
         Ranjan,\nlinux-arm-kernel, 2021-06-23; fitted: our counts times {:.2} a call, {:.2} a 4K page, {:.3} an \
         invalidation\nby address and {:.2} by ASID, which were fitted to it; gathered, one flush a call, is a \
         prediction by them.\n\n",
        costs.call_us, costs.page_us, costs.address_us, costs.asid_us
    );
    let _ = writeln!(
        text,
        "{:<6}{:>12}{:>32}{:>32}{:>21}",
        "", "map_sg", "walks by address (before)", "walks by ASID (after)", "gathered"
    );
    let _ = writeln!(
        text,
        "{:<6}{:>12}{:>12}{:>10}{:>10}{:>12}{:>10}{:>10}{:>12}{:>9}",
        "size",
        "published",
        "published",
        "fitted",
        "count",
        "published",
        "fitted",
        "count",
        "predicted",
        "count"
    );
    for line in &thread.lines {
        let _ = write!(text, "{:<6}{:>12.2}", line.size, line.map_sg_published_us[1]);
        for cell in [line.before, line.after] {
            let published = cell.published_us.map_or("-".into(), |us| format!("{us:.2}"));
            let _ =
                write!(text, "{published:>12}{:>10.2}{:>10}", cell.fitted_us, cell.invalidations);
        }
        let gathered = line.gathered;
        let _ = writeln!(text, "{:>12.2}{:>9}", gathered.fitted_us, gathered.invalidations);
    }
    let worst = thread.worst_error() * 100.0;
    let _ = writeln!(text, "The fit is nowhere more than {worst:.1} % off.");
}

fn bars(text: &mut String, report: &Report) {
    let load = report.load.map_or("-".into(), |load| format!("{:.1}", load.most()));
    let _ = writeln!(text, "\n{:<56}{:>10}{:>12}{:>9}", "promised", "here", "bar", "at load");
    for bar in &report.bars {
        let sign = if bar.at_most { "<=" } else { ">=" };
        let limit = format!("{sign} {}", bar.limit);
        let met = if bar.met { "met" } else { "NOT MET" };
        let _ = writeln!(text, "{:<56}{:>10.2}{limit:>12}{load:>9}  {met}", bar.what, bar.value);
    }
}
