//! The result as text.

use std::fmt::Write as _;

use super::published::KERNELS;
use super::{By, Report, Row, Times};
use crate::shared::beside;
use crate::shared::text::figure;

/// A name's column, and one of ours.
const NAME: usize = 31;
const OURS: usize = 22;

pub(super) fn heading(by: By) -> &'static str {
    match by {
        By::Process => "process",
        By::Sockets => "two sockets",
        By::Interrupt => "hard interrupt",
    }
}

/// One line: the name, and each row's.
fn line(report: &Report, name: &str, ours: impl Fn(&Row) -> String) -> String {
    let mut line = format!("{name:<NAME$}");
    for row in &report.rows {
        let _ = write!(line, " {:>OURS$}", ours(row));
    }
    line + "\n"
}

/// A time, with its range.
fn time(row: &Row, name: &str, us: Option<f64>) -> String {
    // Whole microseconds from a millisecond on: an echo that waits may take seconds.
    let one = |us: f64| if us < 1e3 { format!("{us:.2}") } else { format!("{us:.0}") };
    us.map_or("-".into(), |us| row.ranges.text(name, us, one))
}

/// A line of the table of times: its name, the names of its ranges, and the time.
struct TimeRow {
    name: &'static str,
    p50: &'static str,
    max: &'static str,
    ours: fn(&Row) -> Option<Times>,
}

const TIMES: [TimeRow; 4] = [
    TimeRow {
        name: "RX EOF to TX SOF",
        p50: "rx_eof_to_tx_sof_p50_us",
        max: "rx_eof_to_tx_sof_max_us",
        ours: |row| row.rx_eof_to_tx_sof_us,
    },
    TimeRow {
        name: "interrupt line low",
        p50: "irq_low_p50_us",
        max: "irq_low_max_us",
        ours: |row| row.irq_low_us,
    },
    TimeRow {
        name: "CS to first clock",
        p50: "cs_to_clock_p50_us",
        max: "cs_to_clock_max_us",
        ours: |row| row.cs_to_clock_us,
    },
    TimeRow {
        name: "CS high, 1st to 2nd access",
        p50: "cs_high_gap_p50_us",
        max: "cs_high_gap_max_us",
        ours: |row| row.cs_high_gap_us,
    },
];

pub(super) fn text(report: &Report) -> String {
    let each = match report.gap_ms {
        Some(0.0) => "back to back".into(),
        Some(ms) => format!("one every {ms} ms"),
        None => "at a log's times".into(),
    };
    let mut text = format!(
        "{} on {}, simulated (cost profile {}{}): SPI at most {}, CAN at {} kbit/s\n\
         {} frames, {each}, echoed under the identifier before\n\n",
        report.chip,
        report.place.bus,
        report.profile,
        report.costs.suffix(),
        figure::clock(report.speed_hz.into()),
        f64::from(report.rates.bitrate_hz) / 1e3,
        figure::grouped(report.first.frames_sent),
    );
    if !report.first.ranges.is_empty() {
        text += "In parentheses: what the lowest and the highest costs make of it.\n";
    }
    text += "EOF is the end of a frame on the CAN bus, SOF the begin of one; p50 is the median.\n";
    text += "Code runs as in a loop here: no instruction waits for memory.\n\n";
    let mut columns = format!("{:<NAME$}", "us");
    for row in &report.rows {
        let _ = write!(columns, " {:>OURS$}", heading(row.by));
    }
    text += &(columns + "\n");
    for TimeRow { name, p50, max, ours } in TIMES {
        let middle = |row: &Row| time(row, p50, ours(row).map(|times| times.p50));
        let longest = |row: &Row| time(row, max, ours(row).map(|times| times.max));
        let first = format!("{name}, p50");
        text += &line(report, &first, middle);
        text += &line(report, &format!("{:>1$}", "max", first.len()), longest);
    }
    if report.full_load {
        text += "(an echo waits for the end of the frame that the far node had ready)\n";
    }
    let percent = |name: &'static str, get: fn(&Row) -> f64| {
        move |row: &Row| row.ranges.text(name, get(row), |percent| format!("{percent:.2}"))
    };
    text += "\n% of one processor's time\n";
    let share = percent("receive_cpu_percent", |row| row.receive_cpu_percent);
    text += &line(report, "receiving", share);
    let polled = "  of it SPI's clock runs, polled";
    let share = percent("receive_wire_percent", |row| row.receive_wire_percent);
    text += &line(report, polled, share);
    text += &line(report, "all, sending too", percent("cpu_percent", |row| row.cpu_percent));
    text += &line(report, polled, percent("wire_percent", |row| row.wire_percent));
    text += &line(report, "idle", percent("idle_percent", |row| row.idle_percent));
    let count = |name: &'static str, get: fn(&Row) -> u64| {
        let grouped = |count: f64| figure::grouped(count as u64);
        move |row: &Row| row.ranges.text(name, get(row) as f64, grouped)
    };
    text += "\nframes\n";
    let sent = count("frames_sent", |row| row.frames_sent);
    text += &line(report, "sent by the far node", sent);
    text += &line(report, "echoed", count("frames_echoed", |row| row.frames_echoed));
    text += &line(report, "lost", count("frames_lost", |row| row.frames_lost));
    let reordered = count("frames_reordered", |row| row.frames_reordered);
    text += &line(report, "out of order", reordered);
    let two = |count: f64| format!("{count:.2}");
    text += &line(report, "SPI accesses a frame", |row| match row.spi_accesses_per_frame {
        Some(count) => row.ranges.text("spi_accesses_per_frame", count, two),
        None => "-".into(),
    });
    if !report.beside.is_empty() {
        let rows: Vec<_> =
            report.beside.iter().map(|(name, figures)| (*name, &**figures)).collect();
        text += "\n\
            Like beside like. A, B, C: measured on an i.MX8MP at 250 kbit/s, canecho on Linux 5.18-rc1, with polling, and\n\
            with a fast path (David Jander, linux-spi, 2022). barewire: two sockets as there, after idle, by the costs that\n\
            the lab fitted to those kernels; the largest is what an instruction takes longer in code that was idle.\n";
        text += &beside::table(&KERNELS, &rows);
    }
    text
}
