//! The result as text.

use std::fmt::Write as _;

use super::published::{self, Published};
use super::{By, Report, Row, Times};
use crate::text::figure;

/// A name's column, one of ours, one that was published.
const NAME: usize = 32;
const OURS: usize = 16;
const THEIRS: usize = 8;

pub(super) fn heading(by: By) -> &'static str {
    match by {
        By::Process => "process",
        By::Sockets => "two sockets",
        By::Interrupt => "hard interrupt",
    }
}

impl Report {
    /// Whether his times are of such frames: they come one by one.
    fn like_his_times(&self) -> bool {
        self.as_published && self.gap_ms == Some(10.0)
    }

    /// Whether his shares are: of a full bus.
    fn like_his_shares(&self) -> bool {
        self.as_published && self.full_load
    }
}

/// One line: the name, ours, what was published.
fn line(
    report: &Report,
    name: &str,
    ours: impl Fn(&Row) -> String,
    theirs: Option<fn(&Published) -> f64>,
) -> String {
    let mut line = format!("{name:<NAME$}");
    for row in &report.rows {
        let _ = write!(line, " {:>OURS$}", ours(row));
    }
    if let Some(theirs) = theirs {
        for kernel in &published::ALL {
            let _ = write!(line, "{:>THEIRS$}", theirs(kernel));
        }
    }
    line + "\n"
}

fn times(times: Option<Times>) -> String {
    // Whole microseconds from a millisecond on: an echo that waits may take seconds.
    let one = |us: f64| if us < 1e3 { format!("{us:.2}") } else { format!("{us:.0}") };
    times.map_or("-".into(), |Times { p50, max }| format!("{} / {}", one(p50), one(max)))
}

pub(super) fn text(report: &Report) -> String {
    let each = match report.gap_ms {
        Some(0.0) => "back to back".into(),
        Some(ms) => format!("one every {ms} ms"),
        None => "at a log's times".into(),
    };
    let mut text = format!(
        "{} on {}, simulated (cost profile {}): SPI at most {}, CAN at {} kbit/s\n\
         {} frames, {each}, echoed under the identifier before\n\n",
        report.chip,
        report.place.bus,
        report.profile,
        figure::clock(report.speed_hz.into()),
        f64::from(report.rates.bitrate_hz) / 1e3,
        figure::grouped(report.first.frames_sent),
    );
    let mut columns = format!("{:<NAME$}", "us, p50 / max");
    for row in &report.rows {
        let _ = write!(columns, " {:>OURS$}", heading(row.by));
    }
    let (with_times, with_shares) = (report.like_his_times(), report.like_his_shares());
    if with_times || with_shares {
        for kernel in ["A", "B", "C"] {
            let _ = write!(columns, "{kernel:>THEIRS$}");
        }
    }
    text += &(columns + "\n");
    for (name, ours, theirs) in [
        (
            "RX EOF to TX SOF",
            (|row| row.rx_eof_to_tx_sof_us) as fn(&Row) -> Option<Times>,
            (|kernel| kernel.rx_eof_to_tx_sof_us) as fn(&Published) -> f64,
        ),
        ("interrupt line low", |row| row.irq_low_us, |kernel| kernel.irq_low_us),
        ("CS to first clock", |row| row.cs_to_clock_us, |kernel| kernel.cs_to_clock_us),
        ("CS high, 1st to 2nd access", |row| row.cs_high_gap_us, |kernel| kernel.cs_high_gap_us),
    ] {
        let theirs = Some(theirs).filter(|_| with_times);
        text += &line(report, name, |row| times(ours(row)), theirs);
    }
    if report.full_load {
        text += "(an echo waits for the end of the frame that the far node had ready)\n";
    }
    let percent = |percent: f64| format!("{percent:.2}");
    text += "\n% of one processor's time\n";
    text += &line(
        report,
        "receiving",
        |row| percent(row.receive_cpu_percent),
        Some((|kernel| kernel.receive_cpu_percent) as fn(&Published) -> f64)
            .filter(|_| with_shares),
    );
    let polled = "  of it SPI's clock runs, polled";
    text += &line(report, polled, |row| percent(row.receive_wire_percent), None);
    text += &line(report, "all, sending too", |row| percent(row.cpu_percent), None);
    text += &line(report, polled, |row| percent(row.wire_percent), None);
    let idle = Some((|kernel| kernel.idle_percent) as fn(&Published) -> f64);
    let idle = idle.filter(|_| with_shares);
    text += &line(report, "idle", |row| percent(row.idle_percent), idle);
    let grouped = |count: u64| figure::grouped(count);
    text += "\nframes\n";
    text += &line(report, "sent by the far node", |row| grouped(row.frames_sent), None);
    text += &line(report, "echoed", |row| grouped(row.frames_echoed), None);
    text += &line(report, "lost", |row| grouped(row.frames_lost), None);
    text += &line(report, "out of order", |row| grouped(row.frames_reordered), None);
    let accesses = Some((|kernel| kernel.spi_accesses_per_frame) as fn(&Published) -> f64);
    text += &line(
        report,
        "SPI accesses a frame",
        |row| row.spi_accesses_per_frame.map_or("-".into(), |count| format!("{count:.2}")),
        accesses.filter(|_| with_times || with_shares),
    );
    if !with_times && !with_shares {
        return text;
    }
    text + "\n\
        Published (A, B, C): measured on an i.MX8MP at 250 kbit/s, canecho on Linux 5.18-rc1, with polling,\n\
        and with a fast path (David Jander, linux-spi, 2022): times by a scope with a frame every 10 ms,\n\
        shares by top at full load, of an unnamed number of processors. Two sockets is the row like his.\n"
}
