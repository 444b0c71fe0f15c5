//! `barewire demo`: the main job in a minute, on a simulated board, with figures a newcomer can
//! place.
//!
//! # How it works
//! 1. Identify the chip, write a pattern, read it back with what lies behind it, compare.
//! 2. Run one register access by the prepared path, watched: the timeline is read off the
//!    recording of the wire, so it is what a scope on the pins would show.
//! 3. Run it many times for the figures per access.
//! 4. Let CAN frames be echoed in the lab, because the published figures to compare with are of such traffic: by the costs
//!    that are fitted to these figures, so that both sides pay the same for code that waits for memory.
//!
//! All but the last runs three times, at the costs used and at both ends of their ranges ([`crate::shared::costs`]).

mod picture;
mod text;
mod timeline;

use barewire::spi::Settings;
use barewire_lab::ours::{Beside, beside};
use serde::Serialize;

use crate::command::flash::{self, PIECE};
use crate::shared::costs::{Costs, Headline, LowHigh, Ranges, low_and_high};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::session::{self, Figures, Request, Session, TellArgs};
use crate::shared::text::hex;
use timeline::Timeline;

const BUS: &str = "sim:imx8mp";
const SPEED_HZ: u32 = 20_000_000;
const PATTERN_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 1 << 20;
const ACCESSES: u64 = 1_000;
/// RDID and three bytes to clock its answer in.
const ACCESS: [u8; 4] = [0x9f, 0, 0, 0];

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print only the picture: an access to scale, and published and counted figures beside it
    #[arg(long, conflicts_with = "json")]
    picture: bool,
    /// Run once, at the lowest, the used or the highest costs that their sources allow [default: all
    /// three, and each figure with its range]
    #[arg(long, value_name = "WHICH", value_enum)]
    costs: Option<Costs>,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    bus: &'static str,
    board: &'static str,
    simulated: bool,
    chip: String,
    jedec_id: String,
    size: u64,
    speed_hz: u32,
    write: DataStretch,
    read: DataStretch,
    access: Access,
    /// CS falls to first clock, as published and ours, by the costs that the lab fitted to those kernels.
    beside: Vec<Beside>,
    counted: &'static [Counted],
    /// Whether the text is the picture alone.
    #[serde(skip)]
    picture: bool,
}

/// A stretch of data.
#[derive(Serialize)]
struct DataStretch {
    bytes: u64,
    equal: bool,
    #[serde(flatten)]
    figures: Figures,
    #[serde(skip_serializing_if = "Ranges::is_empty")]
    ranges: Ranges,
}

impl DataStretch {
    fn of(bytes: u64, figures: Figures) -> Self {
        Self { bytes, equal: true, figures, ranges: Ranges::default() }
    }

    fn bytes_per_second(&self) -> Option<f64> {
        self.figures.bytes_per_second(self.bytes)
    }

    const HEADLINES: [Headline<Self>; 3] = [
        ("virtual_ns", |moved| Some(moved.figures.virtual_ns as f64)),
        ("bytes_per_second_virtual", Self::bytes_per_second),
        ("bus_use_in_transfers", |moved| Some(moved.figures.bus_use_in_transfers)),
    ];
}

/// One register access.
#[derive(Serialize)]
struct Access {
    bytes: usize,
    times: u64,
    timeline: Timeline,
    /// The mean of all transfers.
    ns_per_access: f64,
    register_reads_per_access: f64,
    register_writes_per_access: f64,
    bus_use: f64,
    #[serde(skip_serializing_if = "Ranges::is_empty")]
    ranges: Ranges,
}

impl Access {
    const HEADLINES: [Headline<Self>; 8] = [
        ("call_to_cs_ns", |access| access.span(0)),
        ("cs_to_first_clock_ns", |access| access.span(1)),
        ("clocks_ns", |access| access.span(2)),
        ("last_clock_to_cs_ns", |access| access.span(3)),
        ("ns_per_access", |access| Some(access.ns_per_access)),
        ("register_reads_per_access", |access| Some(access.register_reads_per_access)),
        ("register_writes_per_access", |access| Some(access.register_writes_per_access)),
        ("bus_use", |access| Some(access.bus_use)),
    ];

    /// The duration of one part of the timeline.
    fn span(&self, index: usize) -> Option<f64> {
        Some(self.timeline.spans()?[index] as f64)
    }
}

impl Report {
    /// Adds the headline figures at low and high costs.
    fn ranged(self, ends: &LowHigh<Self>) -> Self {
        let LowHigh { low, high } = ends;
        let moved = |get: fn(&Self) -> &DataStretch| {
            Ranges::of(get(&self), get(low), get(high), &DataStretch::HEADLINES)
        };
        let (write, read) = (moved(|report| &report.write), moved(|report| &report.read));
        let access = Ranges::of(&self.access, &low.access, &high.access, &Access::HEADLINES);
        Self {
            write: DataStretch { ranges: write, ..self.write },
            read: DataStretch { ranges: read, ..self.read },
            access: Access { ranges: access, ..self.access },
            ..self
        }
    }
}

/// The thread's kernels A, B and C, each with the figure as its author wrote it, "ca." among it.
const PUBLISHED: [(&str, &str, &str); 3] = [
    ("jander-rfc-cs2clk-A", "Linux 5.18-rc1 (A)", "ca. 10 us"),
    ("jander-rfc-cs2clk-B", "A + polling spi-imx (B)", "9.8 us"),
    ("jander-rfc-cs2clk-C", "B + his fast API (C)", "2.6 us"),
];

/// Instructions of a message of 4 bytes, counted before.
#[derive(Serialize)]
struct Counted {
    what: &'static str,
    instructions: u64,
    source: &'static str,
}

/// `shared`: under the lock between processes, as a bus is opened unless told otherwise; `alone`: with `exclusive`.
const COUNTED: &[Counted] = &[
    counted("spidev, Linux 6.12", 5_967),
    counted("spidev, Linux 6.1", 5_301),
    counted("barewire, shared", 246),
    counted("barewire, alone", 112),
];

const fn counted(what: &'static str, instructions: u64) -> Counted {
    const SOURCE: &str = "counted in a guest on QEMU's imx8mp-evk, where a register access counts \
        as one instruction: cargo xtask guests imx8mp-evk/count imx8mp-evk/count-newer";
    Counted { what, instructions, source: SOURCE }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // The text already contains the summary's figures at their places.
    let Args { json, picture, costs } = *args;
    let tell = TellArgs {
        json,
        vcd: None,
        vcd_limit: 0,
        stats: false,
        latency: false,
        costs,
        quiet: true,
    };
    let request = Request::named(BUS, &tell);
    session::run(&request, |session| {
        if costs.is_some() {
            return Ok(Report { picture, ..demo(session)? });
        }
        let other = |costs| session::rerun(&request, costs, demo);
        let (report, ends) = low_and_high(other, || demo(session))?;
        Ok(Report { picture, ..report.ranged(&ends) })
    })
}

fn demo(session: &Session) -> Result<Report, Failure> {
    let simulated = session
        .open
        .board()
        .ok_or_else(|| Failure::Failed("the demo needs a simulated board".into()))?;
    let settings = Settings::new(0, SPEED_HZ);
    let mut timer = session.open.timer();
    let (mut chip, effective) =
        flash::open(session, &mut *timer, settings, 0, &Default::default())?;
    let pattern = pattern();

    session.begin_figures();
    let mut scratch = vec![0; PIECE];
    chip.write(0, &pattern, &mut scratch, &mut |_| interrupt::flow())?;
    let write = DataStretch::of(pattern.len() as u64, Figures::of(simulated));

    session.begin_figures();
    let mut read = vec![0; READ_BYTES];
    for (piece, offset) in read.chunks_mut(PIECE).zip((0..).step_by(PIECE)) {
        interrupt::check()?;
        chip.read(offset, piece)?;
    }
    let (front, rest) = read.split_at(pattern.len());
    let equal = front == pattern && rest.iter().all(|&byte| byte == 0xff);
    if !equal {
        return Err(Failure::Failed("what was read is not what was written".into()));
    }
    let read = DataStretch::of(read.len() as u64, Figures::of(simulated));

    let mut access = session.open.bus().device(&settings)?.prepare(ACCESS)?;
    // The first run writes the configuration; from then on it is there.
    access.run()?;
    simulated.board.start_vcd();
    session.begin_figures();
    access.run()?;
    let call_ns = Figures::of(simulated).virtual_ns;
    let vcd = simulated.board.take_vcd().map(|capture| capture.vcd).unwrap_or_default();
    let timeline = Timeline::read(&String::from_utf8_lossy(&vcd), call_ns)
        .ok_or_else(|| Failure::Failed("the recording does not show one whole access".into()))?;
    session.begin_figures();
    for _ in 0..ACCESSES {
        interrupt::check()?;
        let [_, id @ ..] = *access.run()?;
        if id != chip.jedec_id().0 {
            let got = hex::format(&id, "");
            return Err(Failure::Failed(format!("an access gave {got} for the JEDEC id")));
        }
    }
    let figures = Figures::of(simulated);
    let mean = |total: u64| total as f64 / ACCESSES as f64;
    Ok(Report {
        bus: BUS,
        board: "NXP i.MX 8M Plus EVK",
        simulated: true,
        chip: chip.geometry().name.unwrap_or("unknown").into(),
        jedec_id: hex::format(&chip.jedec_id().0, ""),
        size: chip.size(),
        speed_hz: effective.speed_hz,
        write,
        read,
        access: Access {
            bytes: ACCESS.len(),
            times: ACCESSES,
            timeline,
            ns_per_access: mean(figures.virtual_ns),
            register_reads_per_access: mean(figures.register_reads),
            register_writes_per_access: mean(figures.register_writes),
            bus_use: figures.bus_use,
            ranges: Ranges::default(),
        },
        beside: beside(&PUBLISHED.map(|(id, ..)| id)),
        counted: COUNTED,
        picture: false,
    })
}

/// Lines of 16 bytes that say where they stand: easy to find in a hex dump.
fn pattern() -> Vec<u8> {
    (0..PATTERN_BYTES)
        .step_by(16)
        .flat_map(|at| format!("barewire {at:06x}\n").into_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn counts_are_those_of_the_reviewed_table() {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/instructions.txt");
        let table = std::fs::read_to_string(table).expect("the reviewed table");
        let rows = ["spidev-4-6.12", "spidev-4", "locked-prepared-4", "prepared-4"];
        assert_eq!(rows.len(), COUNTED.len());
        for (Counted { instructions, .. }, row) in COUNTED.iter().zip(rows) {
            let line = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let mut found = line.filter(|words| words[..2] == ["imx8mp-evk", row]);
            let count = found.next().map(|words| words[2].to_owned());
            assert_eq!(count, Some(instructions.to_string()), "{row}");
        }
    }
}
