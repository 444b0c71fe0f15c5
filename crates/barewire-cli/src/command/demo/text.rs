//! The demo's text: one screen.

use std::fmt::Write as _;

use super::{Access, Moved, PUBLISHED, Published, Report};
use crate::session::{self, Figures};
use crate::text::figure;

/// Characters of the longest bar.
const BAR: u64 = 30;

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
        let profile = self.read.figures.profile;
        let clock = figure::clock(self.speed_hz.into());
        writeln!(out, "The shipped driver on a SIMULATED board: {} ({}).", self.board, self.bus)?;
        writeln!(
            out,
            "Times are virtual: each register access and instruction costs what profile"
        )?;
        writeln!(
            out,
            "{profile} says, each bit one clock, each flash operation its datasheet's time.\n"
        )?;
        let Report { chip, jedec_id, .. } = self;
        writeln!(out, "identify  {chip}, JEDEC id {jedec_id}, {}", figure::size(self.size))?;
        moved(out, "write", &self.write, "read back and equal (most is the chip's own time)")?;
        let wire = figure::rate(f64::from(self.speed_hz) / 8.0);
        let equal = format!("all equal ({clock} can carry {wire})");
        moved(out, "read", &self.read, &equal)?;
        let inside = figure::percent(self.read.figures.bus_use_in_transfers);
        writeln!(out, "          bus use inside transfers: {inside}\n")?;
        self.access.write(out, self.speed_hz)?;
        self.compare(out)?;
        writeln!(out, "\nnext: barewire list; barewire flash id; barewire flash --help")
    }

    fn compare(&self, out: &mut String) -> std::fmt::Result {
        let ours = self.access.timeline.cs_to_first_clock_ns();
        writeln!(out, "\nCS active to first clock on the i.MX 8M Plus")?;
        let longest = PUBLISHED.iter().map(|row| row.cs_to_first_clock_ns).max().unwrap_or(1);
        let mut row = |what: &str, time: &str, ns: u64, how: &str| {
            let bar = "#".repeat((ns * BAR).div_ceil(longest) as usize);
            writeln!(out, "  {what:<23}  {time:>9}  {bar:<30}  {how}")
        };
        for Published { what, text, cs_to_first_clock_ns, .. } in PUBLISHED {
            row(what, text, *cs_to_first_clock_ns, "published, on silicon")?;
        }
        let time = format!("{:.2} us", ours as f64 / 1e3);
        row("barewire, prepared", &time, ours, "simulated, this run")?;
        writeln!(
            out,
            "  Published: David Jander, \"A new SPI API for fast, low-latency regmap peripheral"
        )?;
        writeln!(
            out,
            "  access\", linux-spi, May 2022. Some costs of the profile are assumptions:"
        )?;
        writeln!(out, "  `barewire list --costs` names each one's source.")
    }
}

fn moved(out: &mut String, what: &str, moved: &Moved, note: &str) -> std::fmt::Result {
    let (size, time) = (figure::size(moved.bytes), figure::time(moved.figures.virtual_ns as f64));
    let rate = moved.figures.bytes_per_second(moved.bytes).unwrap_or_default();
    writeln!(out, "{what:<9} {size} in {time}, {}, {note}", figure::rate(rate))
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
            "   |{}|{}|{}|{}|\n",
            span(call, 14),
            span(lead, 16),
            span(clocks, 19),
            span(lag, 14)
        )?;
        let (reads, writes) = (self.register_reads_per_access, self.register_writes_per_access);
        let bits = self.bytes * 8;
        let wire_ns = bits as f64 * 1e9 / f64::from(speed_hz);
        writeln!(
            out,
            "  {} from call to return, {} of it the {bits} clocks at {}: bus use {}",
            figure::time(self.ns_per_access),
            figure::time(wire_ns),
            figure::clock(speed_hz.into()),
            figure::percent(self.bus_use)
        )?;
        writeln!(
            out,
            "  {} register accesses: {writes} writes, {reads} reads (most await the last clock)",
            reads + writes
        )
    }
}

/// A dimension line of `width` characters.
fn span(ns: u64, width: usize) -> String {
    format!("{:-^width$}", format!(" {} ", figure::time(ns as f64)))
}
