//! The bench's report as text.

use std::fmt::Write;

use super::{Report, Row, lengths};

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "Null controller (no wire), this machine, {} rounds. Time in ns.\n",
        report.rounds
    );
    let _ = writeln!(
        text,
        "{:<27}{:>9}{:>9}{:>9}{:>14}",
        "operation", "median", "min", "x floor", "instructions"
    );
    for row in &report.rows {
        let _ = writeln!(
            text,
            "{:<27}{:>9}{:>9}{:>9}{:>14}",
            row.op,
            or_dash(row.ns_median),
            or_dash(row.ns_min),
            or_dash(row.ratio_to_floor),
            row.instructions.map_or("-".into(), |count| count.to_string())
        );
    }
    for driver in &report.drivers {
        let instructions = driver.instructions.map_or("-".into(), |n| n.to_string());
        let _ = writeln!(text, "{:<27}{:>41}", driver.op, instructions);
    }
    let _ = writeln!(
        text,
        "\nbare      the controller's calls alone\n\
         floor     a compare-and-swap and an exchange around them: what a bus must cost\n\
         prepared  a 4-byte access prepared once     sync  any 4-byte message\n\
         ..._in_100  per transfer of a 100-transfer sync message\n\
         async_batch_32  queued, run, result fetched: per message of 32\n\
         process_shared  sync under the lock between processes, which nobody else wants\n\
         worker_hop  a message handed to a worker thread, until its result is back\n\
         contended_N  N threads, each with sync messages: time over the messages of all\n\
         ecspi_...  a prepared 4-byte access through that driver, its registers ready at once\n\
         prepared_6, regmap_read  6 bytes prepared, and the same as a register read by name\n"
    );
    text += &lengths::text(&report.lengths);
    contended(&report.rows, &mut text);
    let _ = writeln!(text, "Measured elsewhere (not on this machine):");
    for other in report.measured_elsewhere {
        let _ = writeln!(
            text,
            "  {:>8} ns {:>10} instructions  {}",
            other.ns, other.instructions, other.what
        );
    }
    let _ = write!(text, "\n{}", report.simulated);
    text
}

fn contended(rows: &[Row], text: &mut String) {
    let _ = writeln!(
        text,
        "{:<27}{:>12}{:>12}{:>13}",
        "beside a mutex (>1 faster)", "fair", "std", "least share"
    );
    for row in rows {
        if let Some(shares) = &row.contended {
            let _ = writeln!(
                text,
                "{:<27}{:>12.2}{:>12.2}{:>13.2}",
                row.op, shares.ratio_to_fair_mutex, shares.ratio_to_std_mutex, shares.least_share
            );
        }
    }
    text.push('\n');
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}
