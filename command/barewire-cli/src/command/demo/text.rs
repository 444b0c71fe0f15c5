//! The demo's text: one screen.

use std::fmt::Write as _;

use super::{Access, CanTraffic, DataStretch, PUBLISHED, PublishedTime, Report};
use crate::shared::session::{self, Figures};
use crate::shared::text::figure::{self, Unit};

/// Characters of the longest bar.
const BAR: u64 = 28;

impl session::Report for Report {
    const FIGURES: bool = false;

    fn text(&self, _: Option<&Figures>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }
}

impl Report {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let Figures { profile, costs, .. } = self.read.figures;
        let clock = figure::clock(self.speed_hz.into());
        writeln!(out, "The shipped driver on a SIMULATED board: {} ({}).", self.board, self.bus)?;
        writeln!(
            out,
            "Times are virtual: each register access and instruction costs what profile"
        )?;
        writeln!(
            out,
            "{profile} says{}, each bit one clock, each flash operation its datasheet's time.",
            costs.suffix()
        )?;
        if !self.access.ranges.is_empty() {
            writeln!(
                out,
                "Many costs are assumptions: in parentheses, what their lowest and highest make of it."
            )?;
        }
        writeln!(out)?;
        let Report { chip, jedec_id, .. } = self;
        writeln!(out, "identify  {chip}, JEDEC id {jedec_id}, {}", figure::size(self.size))?;
        moved(out, "write", &self.write, "read back, equal (mostly chip time)")?;
        let wire = figure::rate(f64::from(self.speed_hz) / 8.0);
        let equal = format!("all equal ({clock} can carry {wire})");
        moved(out, "read", &self.read, &equal)?;
        let inside = self.read.figures.bus_use_in_transfers;
        let inside = self.read.ranges.text("bus_use_in_transfers", inside, figure::percent_number);
        writeln!(out, "          bus use inside transfers: {inside} %\n")?;
        self.access.write(out, self.speed_hz)?;
        self.compare(out)?;
        writeln!(
            out,
            "\nnext: barewire list; barewire flash id --bus sim:imx8mp; barewire flash --help"
        )
    }

    fn compare(&self, out: &mut String) -> std::fmt::Result {
        let CanTraffic { cs_to_first_clock_ns_p50: ours, ranges, .. } = &self.can_traffic;
        let us = |ns: f64| format!("{:.2}", ns / 1e3);
        let ours_us = ranges.text("cs_to_first_clock_ns_p50", *ours, us);
        writeln!(out, "\nCS active to first clock on the i.MX 8M Plus, frames of an MCP2518FD")?;
        let longest = PUBLISHED.iter().map(|row| row.cs_to_first_clock_ns).max().unwrap_or(1);
        let mut row = |what: &str, time: &str, ns: u64, how: &str| {
            let bar = "#".repeat((ns * BAR).div_ceil(longest) as usize);
            writeln!(out, "  {what:<23}  {time:>19}  {bar:<28}  {how}")
        };
        for PublishedTime { what, text, cs_to_first_clock_ns, .. } in PUBLISHED {
            row(what, text, *cs_to_first_clock_ns, "published, on silicon")?;
        }
        row("barewire, a process", &format!("{ours_us} us"), *ours as u64, "simulated, this run")?;
        writeln!(
            out,
            "  Published: David Jander, \"A new SPI API for fast, low-latency regmap peripheral"
        )?;
        writeln!(
            out,
            "  access\", linux-spi, May 2022. Each cost's source and range: `barewire list --costs`."
        )
    }
}

fn moved(out: &mut String, what: &str, moved: &DataStretch, note: &str) -> std::fmt::Result {
    let ns = moved.figures.virtual_ns as f64;
    let rate = moved.bytes_per_second().unwrap_or_default();
    let (time, pace) = (Unit::of_time(ns), Unit::of_rate(rate));
    let DataStretch { bytes, ranges, .. } = moved;
    writeln!(
        out,
        "{what:<9} {} in {} {}, {} {}, {note}",
        figure::size(*bytes),
        ranges.text("virtual_ns", ns, |ns| time.number(ns)),
        time.name,
        ranges.text("bytes_per_second_virtual", rate, |rate| pace.number(rate)),
        pace.name
    )
}

impl Access {
    fn write(&self, out: &mut String, speed_hz: u32) -> std::fmt::Result {
        let Access { bytes, times, .. } = self;
        let id = "the JEDEC id";
        writeln!(
            out,
            "One register access: {bytes} bytes ({id}) by the prepared path, {times} times\n"
        )?;
        let [call, lead, clocks, lag, _] = self.timeline.spans().unwrap_or_default();
        writeln!(
            out,
            "  call         CS falls       first clock        last clock     CS rises, return"
        )?;
        writeln!(
            out,
            "   |{}|{}|{}|{}|",
            span(call, 14),
            span(lead, 16),
            span(clocks, 19),
            span(lag, 14)
        )?;
        self.write_ends(out)?;
        let (reads, writes) = (self.register_reads_per_access, self.register_writes_per_access);
        let bits = self.bytes * 8;
        let unit = Unit::of_time(self.ns_per_access);
        let wire_ns = bits as f64 * 1e9 / f64::from(speed_hz);
        writeln!(
            out,
            "  {} {} from call to return, {} of it the {bits} clocks: bus use {} %",
            self.ranges.text("ns_per_access", self.ns_per_access, |ns| unit.number(ns)),
            unit.name,
            figure::time(wire_ns),
            self.ranges.text("bus_use", self.bus_use, figure::percent_number)
        )?;
        let count = |count: f64| format!("{count}");
        writeln!(
            out,
            "  {} register accesses: {} writes, {} reads (most await the last clock)",
            reads + writes,
            self.ranges.text("register_writes_per_access", writes, count),
            self.ranges.text("register_reads_per_access", reads, count)
        )
    }

    /// Under each dimension line its range.
    fn write_ends(&self, out: &mut String) -> std::fmt::Result {
        if self.ranges.is_empty() {
            return writeln!(out);
        }
        let spans = self.timeline.spans().unwrap_or_default();
        let parts = [
            ("call_to_cs_ns", 14),
            ("cs_to_first_clock_ns", 16),
            ("clocks_ns", 19),
            ("last_clock_to_cs_ns", 14),
        ];
        write!(out, "   ")?;
        for ((name, width), ns) in parts.into_iter().zip(spans) {
            let unit = Unit::of_time(ns as f64);
            let ends = self.ranges.ends(name, |ns| unit.number(ns));
            let ends = ends.map_or(String::new(), |ends| format!("({ends})"));
            write!(out, " {ends:^width$}")?;
        }
        let end = out.trim_end().len();
        out.truncate(end);
        writeln!(out, "\n")
    }
}

/// A dimension line of `width` characters.
fn span(ns: u64, width: usize) -> String {
    format!("{:-^width$}", format!(" {} ", figure::time(ns as f64)))
}
