//! The result as text.

use std::fmt::Write as _;

use super::published::{self, PublishedRow};
use super::{By, Report, Row, Times};
use crate::shared::text::figure;

/// A name's column, one of ours, one that was published.
const NAME: usize = 31;
const OURS: usize = 22;
const THEIRS: usize = 8;

pub(super) fn heading(by: By) -> &'static str {
    match by {
        By::Process => "process",
        By::Sockets => "two sockets",
        By::Interrupt => "hard interrupt",
    }
}

impl Report {
    /// Whether this run's frames are like those of the published times: frames that come one by
    /// one.
    fn like_his_times(&self) -> bool {
        self.as_published && self.gap_ms == Some(10.0)
    }

    /// Whether this run's frames are like those of the published shares: a full bus.
    fn like_his_shares(&self) -> bool {
        self.as_published && self.full_load
    }
}

/// One line: the name, ours, what was published.
fn line(
    report: &Report,
    name: &str,
    ours: impl Fn(&Row) -> String,
    theirs: Option<fn(&PublishedRow) -> f64>,
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

/// A time, with its range.
fn time(row: &Row, name: &str, us: Option<f64>) -> String {
    // Whole microseconds from a millisecond on: an echo that waits may take seconds.
    let one = |us: f64| if us < 1e3 { format!("{us:.2}") } else { format!("{us:.0}") };
    us.map_or("-".into(), |us| row.ranges.text(name, us, one))
}

/// A line of the table of times: its name, the names of its ranges, ours, what was published.
struct TimeRow {
    name: &'static str,
    p50: &'static str,
    max: &'static str,
    ours: fn(&Row) -> Option<Times>,
    theirs: fn(&PublishedRow) -> f64,
}

const TIMES: [TimeRow; 4] = [
    TimeRow {
        name: "RX EOF to TX SOF",
        p50: "rx_eof_to_tx_sof_p50_us",
        max: "rx_eof_to_tx_sof_max_us",
        ours: |row| row.rx_eof_to_tx_sof_us,
        theirs: |kernel| kernel.rx_eof_to_tx_sof_us,
    },
    TimeRow {
        name: "interrupt line low",
        p50: "irq_low_p50_us",
        max: "irq_low_max_us",
        ours: |row| row.irq_low_us,
        theirs: |kernel| kernel.irq_low_us,
    },
    TimeRow {
        name: "CS to first clock",
        p50: "cs_to_clock_p50_us",
        max: "cs_to_clock_max_us",
        ours: |row| row.cs_to_clock_us,
        theirs: |kernel| kernel.cs_to_clock_us,
    },
    TimeRow {
        name: "CS high, 1st to 2nd access",
        p50: "cs_high_gap_p50_us",
        max: "cs_high_gap_max_us",
        ours: |row| row.cs_high_gap_us,
        theirs: |kernel| kernel.cs_high_gap_us,
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
    let (with_times, with_shares) = (report.like_his_times(), report.like_his_shares());
    if with_times {
        text += "A, B and C are three Linux kernels, measured and published; see below.\n";
    }
    text += "\n";
    let mut columns = format!("{:<NAME$}", "us");
    for row in &report.rows {
        let _ = write!(columns, " {:>OURS$}", heading(row.by));
    }
    if with_times {
        for kernel in ["A", "B", "C"] {
            let _ = write!(columns, "{kernel:>THEIRS$}");
        }
    }
    text += &(columns + "\n");
    for TimeRow { name, p50, max, ours, theirs } in TIMES {
        let middle = |row: &Row| time(row, p50, ours(row).map(|times| times.p50));
        let longest = |row: &Row| time(row, max, ours(row).map(|times| times.max));
        let first = format!("{name}, p50");
        text += &line(report, &first, middle, Some(theirs).filter(|_| with_times));
        text += &line(report, &format!("{:>1$}", "max", first.len()), longest, None);
    }
    if report.full_load {
        text += "(an echo waits for the end of the frame that the far node had ready)\n";
    }
    let percent = |name: &'static str, get: fn(&Row) -> f64| {
        move |row: &Row| row.ranges.text(name, get(row), |percent| format!("{percent:.2}"))
    };
    text += "\n% of one processor's time\n";
    let share = percent("receive_cpu_percent", |row| row.receive_cpu_percent);
    text += &line(report, "receiving", share, None);
    let polled = "  of it SPI's clock runs, polled";
    let share = percent("receive_wire_percent", |row| row.receive_wire_percent);
    text += &line(report, polled, share, None);
    text += &line(report, "all, sending too", percent("cpu_percent", |row| row.cpu_percent), None);
    text += &line(report, polled, percent("wire_percent", |row| row.wire_percent), None);
    text += &line(report, "idle", percent("idle_percent", |row| row.idle_percent), None);
    let count = |name: &'static str, get: fn(&Row) -> u64| {
        let grouped = |count: f64| figure::grouped(count as u64);
        move |row: &Row| row.ranges.text(name, get(row) as f64, grouped)
    };
    text += "\nframes\n";
    let sent = count("frames_sent", |row| row.frames_sent);
    text += &line(report, "sent by the far node", sent, None);
    text += &line(report, "echoed", count("frames_echoed", |row| row.frames_echoed), None);
    text += &line(report, "lost", count("frames_lost", |row| row.frames_lost), None);
    let reordered = count("frames_reordered", |row| row.frames_reordered);
    text += &line(report, "out of order", reordered, None);
    let accesses = Some((|kernel| kernel.spi_accesses_per_frame) as fn(&PublishedRow) -> f64);
    let two = |count: f64| format!("{count:.2}");
    text += &line(
        report,
        "SPI accesses a frame",
        |row| match row.spi_accesses_per_frame {
            Some(count) => row.ranges.text("spi_accesses_per_frame", count, two),
            None => "-".into(),
        },
        accesses.filter(|_| with_times),
    );
    if with_times {
        text += "\n\
            Published (A, B, C): measured on an i.MX8MP at 250 kbit/s by a scope, canecho on Linux 5.18-rc1, with\n\
            polling, and with a fast path (David Jander, linux-spi, 2022). Compare them with the row of two sockets.\n";
    }
    if with_shares {
        let shares = |get: fn(&PublishedRow) -> f64| {
            published::ALL.map(|kernel| format!("{:.1}", get(&kernel))).join(", ")
        };
        let _ = write!(
            text,
            "\n\
            Published of such a bus, by top: receiving {}, idle {} % (Linux 5.18-rc1, with polling, with a\n\
            fast path; David Jander, linux-spi, 2022). Of how many processors those are shares was not published,\n\
            and the board has four: no comparison with ours, of one, is possible.\n",
            shares(|kernel| kernel.receive_cpu_percent),
            shares(|kernel| kernel.idle_percent),
        );
    }
    text
}
