//! `barewire can echo`: sends each received frame back at once and reports the time this takes.
//!
//! *Read first*: [`barewire_sim::scenario::can_echo`], which this prints.
//!
//! # How it works
//! Each kind of echo runs on a board of its own, and all get equal frames. Without `--costs` each
//! runs on three boards: at the usual costs and at both ends of their ranges. The JSON has the
//! figures of the process at its top; beside them are the other kinds', and of frames like those published for a kernel
//! the published figures with barewire's by the same costs ([`published`]).

mod published;
mod table;

use std::num::NonZeroU64;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ScopedJoinHandle};

use barewire_sim::model::can::Pattern;
use barewire_sim::scenario::can_echo::{self, EchoFigures, Setup, Spread, Who};
use serde::{Serialize, Serializer};

use super::args::{CanArgs, Rates};
use super::far::{Far, FarArgs, IdMode};
use crate::shared::bus_name::{self, BusName, SimOptions};
use crate::shared::costs::{Costs, Headline, LowHigh, Ranges, low_and_high};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output;
use crate::shared::progress::Progress;
use crate::shared::session::Place;
use published::Lines;

/// The bit rate of the published figures.
const PUBLISHED_BITRATE_HZ: u32 = 250_000;
const PS_PER_MS: u64 = 1_000_000_000;
/// Frames between two steps of the progress bar.
const STEP: u64 = 256;

/// Options for boards stand in [`CanArgs`]; the echo runs on simulated ones alone, so they are not
/// offered.
#[derive(clap::Args, Debug)]
#[command(mut_args(hide_what_is_for_boards))]
pub(crate) struct Args {
    #[command(flatten)]
    can: CanArgs,
    /// What echoes the frames: a process that UIO wakes, that process and a second one behind two
    /// sockets, or an interrupt handler without a kernel [default: all three]
    #[arg(long, value_name = "WHO", value_delimiter = ',', value_enum)]
    by: Vec<By>,
    #[command(flatten)]
    far: FarArgs,
}

/// What echoes the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum By {
    Process,
    Sockets,
    Interrupt,
}

impl By {
    const ALL: [Self; 3] = [Self::Process, Self::Sockets, Self::Interrupt];

    fn who(self) -> Who {
        match self {
            Self::Process => Who::Process,
            Self::Sockets => Who::Sockets,
            Self::Interrupt => Who::HardInterrupt,
        }
    }
}

/// The middle and the longest.
#[derive(Clone, Copy, Debug, Serialize)]
struct Times {
    p50: f64,
    max: f64,
}

impl Times {
    fn of(spread: Spread) -> Self {
        let rounded = |us: f64| (us * 1e3).round() / 1e3;
        Self { p50: rounded(spread.p50_us), max: rounded(spread.max_us) }
    }
}

/// The result of one kind of echo. The field names are an interface.
#[derive(Clone, Debug, Serialize)]
struct Row {
    by: By,
    rx_eof_to_tx_sof_us: Option<Times>,
    irq_low_us: Option<Times>,
    cs_to_clock_us: Option<Times>,
    cs_high_gap_us: Option<Times>,
    /// The busy share of one processor, from the time at which the first frame is ready to be sent
    /// until all were echoed.
    cpu_percent: f64,
    /// The share of the same time in which SPI's clock ran while the processor waited for it.
    wire_percent: f64,
    idle_percent: f64,
    /// The receive service alone, and SPI's clock in it.
    receive_cpu_percent: f64,
    receive_wire_percent: f64,
    elapsed_ms: f64,
    frames_sent: u64,
    frames_echoed: u64,
    frames_lost: u64,
    frames_reordered: u64,
    frames_unasked: u64,
    frames_destroyed: u64,
    interrupts: u64,
    spi_accesses_per_frame: Option<f64>,
    receive_spi_accesses_per_frame: Option<f64>,
    interrupted: bool,
    #[serde(skip)]
    wanted: u64,
    #[serde(skip)]
    violations: usize,
    #[serde(skip_serializing_if = "Ranges::is_empty")]
    ranges: Ranges,
}

/// The headlines of a row; those of times are named as their line of the table and end with `p50_us`
/// or `max_us`.
const HEADLINES: [Headline<Row>; 20] = [
    ("rx_eof_to_tx_sof_p50_us", |row| Some(row.rx_eof_to_tx_sof_us?.p50)),
    ("rx_eof_to_tx_sof_max_us", |row| Some(row.rx_eof_to_tx_sof_us?.max)),
    ("irq_low_p50_us", |row| Some(row.irq_low_us?.p50)),
    ("irq_low_max_us", |row| Some(row.irq_low_us?.max)),
    ("cs_to_clock_p50_us", |row| Some(row.cs_to_clock_us?.p50)),
    ("cs_to_clock_max_us", |row| Some(row.cs_to_clock_us?.max)),
    ("cs_high_gap_p50_us", |row| Some(row.cs_high_gap_us?.p50)),
    ("cs_high_gap_max_us", |row| Some(row.cs_high_gap_us?.max)),
    ("cpu_percent", |row| Some(row.cpu_percent)),
    ("wire_percent", |row| Some(row.wire_percent)),
    ("idle_percent", |row| Some(row.idle_percent)),
    ("receive_cpu_percent", |row| Some(row.receive_cpu_percent)),
    ("receive_wire_percent", |row| Some(row.receive_wire_percent)),
    ("elapsed_ms", |row| Some(row.elapsed_ms)),
    ("frames_sent", |row| Some(row.frames_sent as f64)),
    ("frames_echoed", |row| Some(row.frames_echoed as f64)),
    ("frames_lost", |row| Some(row.frames_lost as f64)),
    ("frames_reordered", |row| Some(row.frames_reordered as f64)),
    ("interrupts", |row| Some(row.interrupts as f64)),
    ("spi_accesses_per_frame", |row| row.spi_accesses_per_frame),
];

impl Row {
    fn of(by: By, echoed: &EchoFigures, wanted: u64) -> Self {
        let rounded = |percent: f64| (percent * 1e3).round() / 1e3;
        let percent = |ps| rounded(echoed.percent(ps));
        let frames = echoed.frames.echoed;
        let a_frame = |accesses: u64| (frames > 0).then(|| accesses as f64 / frames as f64);
        Self {
            by,
            rx_eof_to_tx_sof_us: echoed.rx_eof_to_tx_sof.map(Times::of),
            irq_low_us: echoed.int_low.map(Times::of),
            cs_to_clock_us: echoed.cs_to_clock.map(Times::of),
            cs_high_gap_us: echoed.cs_high.map(Times::of),
            cpu_percent: percent(echoed.cpu_ps),
            wire_percent: percent(echoed.wire_ps),
            idle_percent: rounded(100.0 - echoed.percent(echoed.cpu_ps)),
            receive_cpu_percent: percent(echoed.receive_ps),
            receive_wire_percent: percent(echoed.receive_wire_ps),
            elapsed_ms: echoed.elapsed_ps as f64 / PS_PER_MS as f64,
            frames_sent: echoed.frames.sent,
            frames_echoed: frames,
            frames_lost: echoed.frames.lost,
            frames_reordered: echoed.frames.reordered,
            frames_unasked: echoed.frames.unasked,
            frames_destroyed: echoed.frames.destroyed,
            interrupts: echoed.interrupts,
            spi_accesses_per_frame: a_frame(echoed.accesses),
            receive_spi_accesses_per_frame: a_frame(echoed.receive_accesses),
            interrupted: echoed.interrupted,
            wanted,
            violations: echoed.violations.len(),
            ranges: Ranges::default(),
        }
    }

    /// Adds the figures at low and high costs. Does nothing if one of the three runs was
    /// interrupted: it has other frames than the rest.
    fn ranged(self, ends: &LowHigh<Self>) -> Self {
        let LowHigh { low, high } = ends;
        if self.interrupted || low.interrupted || high.interrupted {
            return self;
        }
        Self { ranges: Ranges::of(&self, low, high, &HEADLINES), ..self }
    }

    fn verdict(&self, starving: bool) -> Result<(), Failure> {
        if self.interrupted {
            return Err(Failure::Interrupted("stopped as asked".into()));
        }
        let Self { frames_lost, frames_reordered, frames_unasked, violations, .. } = self;
        if frames_lost + frames_reordered + frames_unasked > 0 {
            let why = match self.frames_destroyed {
                0 if starving => {
                    "; on a full bus an echo comes through whose identifier is below all others: -I \
                     with one above 0"
                        .into()
                }
                0 => String::new(),
                destroyed => format!(
                    "; {destroyed} were destroyed on the bus, as happens where an echo has the \
                     identifier of the far node's next frame: -I with one above 0"
                ),
            };
            return Err(Failure::Failed(format!(
                "{}: {frames_lost} frames were lost, {frames_reordered} out of order, \
                 {frames_unasked} echoes of nothing{why}",
                table::heading(self.by)
            )));
        }
        if self.frames_sent < self.wanted {
            let (sent, wanted) = (self.frames_sent, self.wanted);
            return Err(Failure::Failed(format!(
                "{}: {sent} frames of {wanted} that the far node was to send got through: do both \
                 have the same bit rate (--bitrate, --oscillator-hz)?",
                table::heading(self.by)
            )));
        }
        match violations {
            0 => Ok(()),
            broken => Err(Failure::Failed(format!(
                "{}: {broken} rules of the chip were broken",
                table::heading(self.by)
            ))),
        }
    }
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    place: Place,
    profile: &'static str,
    costs: Costs,
    chip: &'static str,
    chip_select: u8,
    speed_hz: u32,
    #[serde(flatten)]
    rates: Rates,
    gap_ms: Option<f64>,
    full_load: bool,
    /// The whole that the percentages refer to.
    percent_of: &'static str,
    #[serde(flatten)]
    first: Row,
    rows: Vec<Row>,
    /// The figures published of such frames, and ours beside them; empty if these are others.
    #[serde(serialize_with = "all_of")]
    beside: Lines,
}

fn all_of<S: Serializer>(lines: &Lines, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().flat_map(|(_, figures)| figures))
}

const PERCENT_OF: &str =
    "one processor's time, from the first frame's wish to be sent until the last was echoed";

/// The frames sent by default: the thread's own.
fn default_far() -> Far {
    Far {
        gap_ps: 10 * PS_PER_MS,
        count: NonZeroU64::new(1_000),
        id: IdMode::Like(Pattern::Fixed(0x077)),
        length: Some(Pattern::Fixed(8)),
        ..Far::default()
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let Args { can, by, far } = args;
    let tell = &can.tell;
    let options = simulated(can)?;
    if tell.vcd.is_some() || tell.stats || tell.latency {
        return Err(Failure::Usage(
            "--vcd, --stats and --latency are not for can echo, which has a board for each row; \
             can dump and can gen take them"
                .into(),
        ));
    }
    if far.poll_ms.is_some() {
        return Err(Failure::Usage(
            "-p: not for can echo, whose far node waits for the bus".into(),
        ));
    }
    if can.no_interrupt {
        return Err(Failure::Usage(
            "--no-interrupt: not for can echo, which is about the interrupt; can dump and can gen take it"
                .into(),
        ));
    }
    let rates = can.rates()?;
    // Settings of the far node that the user did not give are those of the published measurement.
    let far = far.settle(can.fd, default_far())?;
    let frames = far.total().unwrap_or(0);
    let as_published = can.bitrate == PUBLISHED_BITRATE_HZ
        && !can.fd
        && Far { gap_ps: far.gap_ps, count: far.count, seed: far.seed, ..default_far() } == far;
    let by = if by.is_empty() { By::ALL.to_vec() } else { by.clone() };
    let silent = tell.quiet || tell.json;
    let runs = if tell.costs.is_some() { 1 } else { 3 };
    let total = frames.saturating_mul(by.len() as u64 * runs);
    let progress = Progress::counting("echoing", total, silent);
    let done = AtomicU64::new(0);
    let at = |by: By, costs: Costs| -> Result<Row, Failure> {
        let mut told = 0;
        let options = SimOptions { costs: costs.level(), ..options.clone() };
        let echoed = can_echo::run(setup(can, &options, &far, by)?, &mut |frame| {
            if frame >= told + STEP {
                progress.set(done.fetch_add(frame - told, Ordering::Relaxed) + frame - told);
                told = frame;
            }
            !interrupt::asked()
        });
        Ok(Row::of(by, &echoed?, frames))
    };
    let row = |by: By| match tell.costs {
        Some(costs) => at(by, costs),
        None => {
            let (row, ends) = low_and_high(|costs| at(by, costs), || at(by, Costs::Used))?;
            Ok(row.ranged(&ends))
        }
    };
    // The boards have nothing in common: each row has a processor of its own, as far as there are enough.
    let rows: Result<Vec<Row>, Failure> = thread::scope(|scope| {
        let row = &row;
        let threads: Vec<_> = by.iter().map(|&by| scope.spawn(move || row(by))).collect();
        let joined = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
        };
        threads.into_iter().map(joined).collect()
    });
    let rows = rows?;
    drop(progress);
    let spec = options.board.can().expect("checked above");
    let report = Report {
        place: Place::of(&BusName::Sim(options.clone())),
        profile: options.profile().name,
        costs: tell.costs.unwrap_or_default(),
        chip: spec.part.name(),
        chip_select: spec.cs,
        speed_hz: can.speed_hz(),
        rates,
        gap_ms: far.gap_ms(),
        full_load: far.gap_ms() == Some(0.0),
        percent_of: PERCENT_OF,
        first: rows[0].clone(),
        rows,
        // The lab has costs of its own.
        beside: match far.gap_ms() {
            _ if tell.costs.is_some() => Lines::new(),
            Some(10.0) if as_published => published::times(),
            Some(0.0) if as_published => published::shares(),
            _ => Lines::new(),
        },
    };
    let printed =
        if tell.json { output::json(&report) } else { output::text(&table::text(&report)) };
    let starving = far.gap_ms() == Some(0.0) && !far.leaves_room_below();
    report.rows.iter().try_for_each(|row| row.verdict(starving)).and(printed)
}

fn hide_what_is_for_boards(arg: clap::Arg) -> clap::Arg {
    let hidden = matches!(arg.get_id().as_str(), "interrupt_line" | "fifo" | "cpu" | "mlock");
    if hidden { arg.hide(true) } else { arg }
}

/// The board, which must be a simulated one with a CAN controller.
fn simulated(can: &CanArgs) -> Result<SimOptions, Failure> {
    let name = &can.bus;
    let BusName::Sim(options) = bus_name::parse(name).map_err(Failure::Usage)? else {
        return Err(Failure::Usage(format!(
            "can echo needs the far node and the clock of a simulated board (sim:imx8mp), not {name}: on a \
             real bus, `can dump` and `can gen` are there, and `can bridge` with canecho"
        )));
    };
    can.refuse_boards_options()?;
    match options.board.can() {
        Some(spec) if can.chip_select.is_none_or(|cs| cs == spec.cs) => Ok(options),
        Some(spec) => Err(Failure::Usage(format!(
            "--cs: the CAN controller of {name} is behind chip select {}",
            spec.cs
        ))),
        None => Err(Failure::Failed(format!("{name} has no CAN controller; sim:imx8mp has"))),
    }
}

fn setup(can: &CanArgs, options: &SimOptions, far: &Far, by: By) -> Result<Setup, Failure> {
    Ok(Setup {
        board: options.board,
        board_options: options.board_options(),
        who: by.who(),
        ticks: true,
        config: can.config(),
        times: can.times()?,
        speed_hz: can.speed_hz(),
        faults: options.can_faults(),
        far: Box::new(far.frames().map(|(at, frame)| (at, frame.to_sim()))),
        frames: far.total().unwrap_or(0),
        gap_ps: far.longest_gap_ps(),
    })
}
