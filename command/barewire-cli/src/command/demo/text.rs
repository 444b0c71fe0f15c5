//! The demo's text: one screen.

use std::fmt::Write as _;

use barewire_lab::Band;
use barewire_lab::ours::Beside;

use super::{Access, COUNTED, Counted, DataStretch, PUBLISHED, Report, picture};
use crate::shared::beside;
use crate::shared::costs::Costs;
use crate::shared::session::{self, Figures};
use crate::shared::text::figure::{self, Unit};

impl session::Report for Report {
    const FIGURES: bool = false;

    fn text(&self, _: Option<&Figures>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = if self.picture { self.draw(&mut text) } else { self.write(&mut text) };
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
            "Times are virtual: each register access and instruction costs what profile {profile} says{},",
            costs.suffix()
        )?;
        writeln!(out, "each bit one clock, each flash operation its datasheet's time.")?;
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
        self.draw(out)?;
        writeln!(
            out,
            "\nnext: barewire list; barewire flash id --bus sim:imx8mp; barewire flash --help"
        )
    }

    /// The picture: an access to scale, and other figures beside ours.
    fn draw(&self, out: &mut String) -> std::fmt::Result {
        let clock = figure::clock(self.speed_hz.into());
        writeln!(
            out,
            "One prepared access of {} bytes at {clock}, SIMULATED: {} ({}), to scale",
            self.access.bytes, self.board, self.bus
        )?;
        self.access.draw(out, self.speed_hz, self.read.figures.costs)?;
        self.compare(out)
    }

    fn compare(&self, out: &mut String) -> std::fmt::Result {
        fn row(
            out: &mut String,
            what: &str,
            figure: &str,
            bar: &str,
            how: &str,
        ) -> std::fmt::Result {
            writeln!(out, "  {what:<23}  {figure:>19}  {bar:<width$}  {how}", width = picture::BAR)
        }
        writeln!(
            out,
            "CS falls to first clock, frames of an MCP2518FD after idle (# lowest, = used, - highest)"
        )?;
        let longest = self.beside.iter().map(|one| one.published).fold(0.0, f64::max);
        for (Beside { published, .. }, (_, what, text)) in self.beside.iter().zip(PUBLISHED) {
            let bar = picture::figure([*published; 3], longest);
            row(out, what, text, &bar, "published, on silicon")?;
        }
        if let Some(beside) = self.beside.last() {
            let Band { used, low, high } = beside.barewire;
            let bar = picture::figure([low, used, high], longest);
            let ours = format!("{} us", beside::ours(beside));
            row(out, "barewire, a process", &ours, &bar, "simulated, lab's costs")?;
        }
        writeln!(
            out,
            "Instructions of a 4-byte message on that board, emulated (a register access is one)"
        )?;
        let longest = COUNTED.iter().map(|row| row.instructions).max().unwrap_or(1) as f64;
        for Counted { what, instructions, .. } in COUNTED {
            let bar = picture::figure([*instructions as f64; 3], longest);
            row(out, what, &figure::grouped(*instructions), &bar, "counted, in QEMU")?;
        }
        Ok(())
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
    /// The parts of the timeline that are drawn.
    const DRAWN: [(&str, &str); 4] = [
        ("call_to_cs_ns", "call to CS falls"),
        ("cs_to_first_clock_ns", "to the first clock"),
        ("clocks_ns", "to the last clock"),
        ("last_clock_to_cs_ns", "to CS rises"),
    ];

    fn draw(&self, out: &mut String, speed_hz: u32, costs: Costs) -> std::fmt::Result {
        let [call, lead, clocks, lag, _] = self.timeline.spans().unwrap_or_default();
        let spans = [call, lead, clocks, lag].map(|ns| ns as f64);
        let value = |name, used: f64| self.ranges.values(name).unwrap_or([used; 3]);
        let totals = value("ns_per_access", self.ns_per_access);
        let longest = totals.into_iter().fold(0.0, f64::max);
        let rows = match self.ranges.is_empty() {
            true => vec![(costs.describe(), 1)],
            false => [Costs::Low, Costs::Used, Costs::High]
                .map(Costs::describe)
                .into_iter()
                .zip(0..)
                .collect(),
        };
        for (costs, level) in rows {
            let mut parts = spans;
            for (part, (name, _)) in parts.iter_mut().zip(Self::DRAWN) {
                *part = value(name, *part)[level];
            }
            let bar = picture::access(parts, longest);
            writeln!(out, "  {costs:<13}  {bar:<56}  {:>7}", figure::time(totals[level]))?;
        }
        for (index, (name, what)) in Self::DRAWN.into_iter().enumerate() {
            let unit = Unit::of_time(spans[index]);
            let text = self.ranges.text(name, spans[index], |ns| unit.number(ns));
            let entry = format!("  {} {what} {text} {}", picture::PARTS[index], unit.name);
            if index % 2 == 0 { write!(out, "{entry:<45}")? } else { writeln!(out, "{entry}")? }
        }
        let (reads, writes) = (self.register_reads_per_access, self.register_writes_per_access);
        let bits = self.bytes * 8;
        let unit = Unit::of_time(self.ns_per_access);
        let count = |count: f64| format!("{count}");
        writeln!(
            out,
            "  {} {} from call to return, {} of it the {bits} clocks: bus use {} %;",
            self.ranges.text("ns_per_access", self.ns_per_access, |ns| unit.number(ns)),
            unit.name,
            figure::time(bits as f64 * 1e9 / f64::from(speed_hz)),
            self.ranges.text("bus_use", self.bus_use, figure::percent_number)
        )?;
        writeln!(
            out,
            "  {} register accesses: {} writes, {} reads (most await the last clock)",
            reads + writes,
            self.ranges.text("register_writes_per_access", writes, count),
            self.ranges.text("register_reads_per_access", reads, count)
        )
    }
}
