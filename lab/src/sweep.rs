//! A figure over a parameter, and where one way of working begins to be better than another.
//!
//! *Read first*: [`crate::workload`], whose workloads run here with one setting varied.
//!
//! # What goes together
//!
//! | paths | board | figure | parameters |
//! |---|---|---|---|
//! | `spidev-4.4…` | rpi3 | samples a second | all |
//! | `linux-5.18…`, `linux-5.19…` | imx8mp | interrupt pin low, of an echo | `clock`, `irq-latency` |
//! | the same | imx6dl | a read of 512 bytes by dd | `clock`, `irq-latency` |
//! | the same | imx8mp | one message, by polling and by interrupts | `length`, `polling-limit` |
//! | the same | imx6dl | one message of 512 bytes, likewise | `polling-limit` |
//! | `linux-3.14…` | sama5d36 | the status and a block of the flash | `clock`, `length`, `irq-latency` |
//!
//! # How it works
//! A `Point` has the settings of a run: those of the board's experiment, with the parameter at one value. A
//! `Column` runs its workload at a point. A `Pair` names two columns. A break-even is a value at which the first
//! becomes better than the second, or stops being so. It lies between two values of the table. It is interpolated
//! there, and then narrowed by further runs of the two columns until it is known to the parameter's resolution: 10 ns,
//! 1 kHz, or one transfer or byte.
//!
//! # What the parameters mean
//! - `delay`: what the kernel waits at a cs_change, beside the time of the toggle itself. For barewire it is
//!   `cs_inactive`, the time between two conversions with all that happens in it.
//! - `polling-limit`: a transfer that takes longer waits by interrupts. spi-bcm2835 counts nine clocks a byte, spi-imx
//!   twelve.
//! - `irq-latency`: from the line's rise to the code that waits for the interrupt. That is the chip's interrupt thread
//!   in an echo (`irq_thread_ps` of the board's profile), and the controller's handler in all else
//!   (`interrupt_latency_ps`). The profile's other figure of the two is scaled by the same factor, so that the
//!   profile's own value gives the replayed figure. On the Raspberry Pi all transfers wait by interrupts in this sweep.
//!
//! # Processor time of one message
//! It is what keeps any processor busy: the steps of all threads and handlers, polling, switches to threads that
//! slept, and the way into and out of interrupts. A processor that waits for an interrupt is free for others. So the
//! length from which sleeping pays is the one from which a message by interrupts takes less processor time than a
//! polled one, though it takes longer.
//!
//! # Not supported
//! A sweep of two parameters. DMA in the sweeps of one message.

use std::collections::BTreeSet;
use std::rc::Rc;

use barewire::chip::mcp3008::MCP3008;
use barewire_sim::engine::Thread;
use barewire_sim::profile::Profile;
use barewire_sim::scenario::sampling;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::cost::Costs;
use crate::error::LabError;
use crate::kernel::bcm2835::POLL_LIMIT_NS;
use crate::kernel::imx::{Imx, clock_hz};
use crate::kernel::{Core, Kernel, Path, Waiting, Xfer};
use crate::machine::Machine;
use crate::ours;
use crate::outcome::{BreakEven, Sweep, SweepRequest};
use crate::regime::Regime;
use crate::workload::{self, dd, echo, nor, spidev};

/// Transfers of a call on the Raspberry Pi.
const BATCHES: [usize; 4] = [1, 10, 100, 500];
/// Conversions of barewire's prepared messages.
const PREPARED: usize = 100;
/// The most bytes that spidev takes in one call by default.
const SPIDEV_BYTES: usize = 4_096;
/// From here on spi-bcm2835 uses DMA, which is not modelled.
const BCM2835_DMA_BYTES: usize = 96;
/// A burst of the ECSPI.
const BURST_BYTES: usize = 512;
/// The commands 03h and 13h of the boards' flashes.
const FLASH_MAX_HZ: u64 = 50_000_000;
/// spi-imx's own limit.
const IMX_POLL_LIMIT_NS: u64 = 30_000;
const FRAMES: u64 = 3;
const FRAME_GAP_PS: u64 = 10_000_000_000;

/// The parameter that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    Delay,
    Clock,
    Batch,
    Length,
    PollingLimit,
    IrqLatency,
}

impl Parameter {
    const ALL: [Self; 6] =
        [Self::Delay, Self::Clock, Self::Batch, Self::Length, Self::PollingLimit, Self::IrqLatency];

    fn name(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::Clock => "clock",
            Self::Batch => "batch",
            Self::Length => "length",
            Self::PollingLimit => "polling-limit",
            Self::IrqLatency => "irq-latency",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Delay | Self::PollingLimit | Self::IrqLatency => "ns",
            Self::Clock => "Hz",
            Self::Batch => "transfers",
            Self::Length => "bytes",
        }
    }

    /// How near a break-even is known.
    fn resolution(self) -> f64 {
        match self {
            Self::Delay | Self::PollingLimit | Self::IrqLatency => 10.0,
            Self::Clock => 1_000.0,
            Self::Batch | Self::Length => 1.0,
        }
    }
}

/// The workload of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bench {
    Spidev,
    Echo,
    Dd,
    Message,
    Nor,
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
struct Point {
    delay_ns: Option<u64>,
    speed_hz: u64,
    batch: usize,
    length: usize,
    poll_limit_ns: u64,
    irq_latency_ns: Option<u64>,
}

impl Point {
    fn with(self, parameter: Parameter, value: f64) -> Self {
        let value = value as u64;
        match parameter {
            Parameter::Delay => Self { delay_ns: Some(value), ..self },
            Parameter::Clock => Self { speed_hz: value, ..self },
            Parameter::Batch => Self { batch: value as usize, ..self },
            Parameter::Length => Self { length: value as usize, ..self },
            Parameter::PollingLimit => Self { poll_limit_ns: value, ..self },
            Parameter::IrqLatency => Self { irq_latency_ns: Some(value), ..self },
        }
    }
}

type Run<'a> = Box<dyn Fn(&Point) -> Result<f64, LabError> + 'a>;

struct Column<'a> {
    name: String,
    run: Run<'a>,
}

/// `what` holds wherever the first column is better than the second.
struct Pair {
    first: usize,
    second: usize,
    what: String,
}

#[derive(Default)]
struct Plan<'a> {
    value_unit: String,
    more_is_better: bool,
    columns: Vec<Column<'a>>,
    pairs: Vec<Pair>,
}

impl<'a> Plan<'a> {
    fn column(
        &mut self,
        name: impl Into<String>,
        run: impl Fn(&Point) -> Result<f64, LabError> + 'a,
    ) {
        self.columns.push(Column { name: name.into(), run: Box::new(run) });
    }

    fn pair(&mut self, first: usize, second: usize, what: impl Into<String>) {
        self.pairs.push(Pair { first, second, what: what.into() });
    }
}

/// A path on a board, and the parameter to vary.
struct Sweeper {
    costs: Rc<Costs>,
    path: &'static Path,
    spec: &'static BoardSpec,
    parameter: Parameter,
    bench: Bench,
}

/// The figure of `request`, over its parameter.
///
/// # Errors
/// If there is no such path, board or parameter, they do not go together, or a value cannot be.
pub fn sweep(costs: &Costs, request: &SweepRequest) -> Result<Sweep, LabError> {
    let sweeper = Sweeper::new(costs, request)?;
    let values = sweeper.values(&request.values)?;
    let (plan, point) = (sweeper.plan(), sweeper.point());
    let parameter = sweeper.parameter;
    let at = |column: usize, value: f64| (plan.columns[column].run)(&point.with(parameter, value));
    let (rows, break_even) =
        table(plan.columns.len(), (&plan.pairs, plan.more_is_better), parameter, &values, &at)?;
    Ok(Sweep {
        request: request.clone(),
        unit: parameter.unit().into(),
        value_unit: plan.value_unit,
        regime: sweeper.regime(),
        columns: plan.columns.into_iter().map(|column| column.name).collect(),
        rows,
        break_even,
    })
}

type Rows = Vec<(f64, Vec<f64>)>;

/// The rows of so many columns, which have a figure `at` each value, and where pairs of them cross.
fn table(
    columns: usize,
    (pairs, more_is_better): (&[Pair], bool),
    parameter: Parameter,
    values: &[f64],
    at: &dyn Fn(usize, f64) -> Result<f64, LabError>,
) -> Result<(Rows, Vec<BreakEven>), LabError> {
    let is_better = |one: f64, other: f64| if more_is_better { one > other } else { one < other };
    let mut rows = Rows::new();
    for &value in values {
        let row: Result<Vec<f64>, LabError> =
            (0..columns).map(|column| at(column, value)).collect();
        rows.push((value, row?));
    }
    let mut break_even = Vec::new();
    for Pair { first, second, what } in pairs {
        let is_so = |value| Ok(is_better(at(*first, value)?, at(*second, value)?));
        for two in rows.windows(2) {
            let [low, high] = [&two[0], &two[1]];
            let less = |(_, row): &(f64, Vec<f64>)| row[*first] - row[*second];
            let so_below = is_better(low.1[*first], low.1[*second]);
            if so_below == is_better(high.1[*first], high.1[*second]) {
                continue;
            }
            let straight = less(low) / (less(low) - less(high));
            let guess = low.0 + straight * (high.0 - low.0);
            let at = close_in([low.0, high.0], guess, parameter.resolution(), so_below, &is_so)?;
            let name = parameter.name();
            let what = match so_below {
                true => format!("{what} below this {name}"),
                false => format!("{what} from this {name} on"),
            };
            break_even.push(BreakEven { what, at });
        }
    }
    break_even.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok((rows, break_even))
}

/// The first value, to `resolution`, at which `is_so` is no longer `so_below`: tried at both sides of `guess` first.
fn close_in(
    [mut low, mut high]: [f64; 2],
    guess: f64,
    resolution: f64,
    so_below: bool,
    is_so: &dyn Fn(f64) -> Result<bool, LabError>,
) -> Result<f64, LabError> {
    let near = [guess - resolution / 2.0, guess + resolution / 2.0].map(f64::round);
    let mut near = near.into_iter();
    while high - low > resolution {
        let tried = near
            .by_ref()
            .find(|&value| low < value && value < high)
            .unwrap_or_else(|| ((low + high) / 2.0).floor());
        *(if is_so(tried)? == so_below { &mut low } else { &mut high }) = tried;
    }
    Ok(high)
}

fn refused<T>(text: String) -> Result<T, LabError> {
    Err(LabError::Refused(text))
}

impl Sweeper {
    fn new(costs: &Costs, request: &SweepRequest) -> Result<Self, LabError> {
        let SweepRequest { path, board, parameter, .. } = request;
        let (path, spec) = (Path::find(path)?, workload::board(board)?);
        let found = Parameter::ALL.into_iter().find(|one| one.name() == parameter);
        let parameter = found.ok_or_else(|| LabError::Unknown {
            what: "parameter",
            name: parameter.clone(),
            known: Parameter::ALL.map(|one| one.name().into()).into(),
        })?;
        let bench = Self::bench(path, spec, parameter)?;
        Ok(Self { costs: Rc::new(costs.clone()), path, spec, parameter, bench })
    }

    /// The workload of `path` on `spec` in which `parameter` can vary.
    fn bench(path: &Path, spec: &BoardSpec, parameter: Parameter) -> Result<Bench, LabError> {
        use Parameter::{Clock, IrqLatency, Length, PollingLimit};
        let is_spidev = path.name.starts_with("spidev");
        let is_314 = matches!(path.core, Core::Queue314 | Core::Tasklet314);
        let boards: &[&str] = match (is_spidev, is_314) {
            (true, _) => &["rpi3"],
            (_, true) => &["sama5d36"],
            _ => &["imx8mp", "imx6dl"],
        };
        if !boards.contains(&spec.name) {
            let text =
                format!("{} runs on {}, not on {}", path.name, boards.join(" and "), spec.name);
            return refused(text);
        }
        let (can, bench): (&[Parameter], _) = match (spec.name, parameter) {
            ("rpi3", _) => (&Parameter::ALL, Bench::Spidev),
            ("sama5d36", _) => (&[Clock, Length, IrqLatency], Bench::Nor),
            ("imx6dl", PollingLimit) => (&[PollingLimit], Bench::Message),
            ("imx6dl", Length) => {
                let text = "a read by dd has 512 bytes on imx6dl: sweep the length on imx8mp, or clock, irq-latency or \
                            polling-limit here";
                return refused(text.into());
            }
            ("imx6dl", _) => (&[Clock, IrqLatency, PollingLimit], Bench::Dd),
            (_, Length | PollingLimit) => (&[Length, PollingLimit], Bench::Message),
            _ => (&[Clock, IrqLatency, Length, PollingLimit], Bench::Echo),
        };
        if can.contains(&parameter) {
            return Ok(bench);
        }
        let can: Vec<&str> = can.iter().map(|one| one.name()).collect();
        refused(format!(
            "{} on {} has no {} to vary: it has {}; spidev-4.4 on rpi3 has all",
            path.name,
            spec.name,
            parameter.name(),
            can.join(", ")
        ))
    }

    /// The smallest and the largest value of the parameter, and why.
    fn bounds(&self) -> (f64, f64, &'static str) {
        let can_hz = self.spec.can().map_or(0, |can| u64::from(can.oscillator_hz) * 85 / 200);
        let adc_hz = self.spec.adc().and_then(|adc| MCP3008.max_speed_hz(adc.supply_mv).ok());
        match (self.parameter, self.bench) {
            (Parameter::Clock, Bench::Spidev) => {
                let high_hz = f64::from(adc_hz.unwrap_or(0));
                let why = "slower, the driver ends chip select within the last clock; faster is beyond the converter";
                (self.slowest_hz(high_hz), high_hz, why)
            }
            (Parameter::Clock, Bench::Echo | Bench::Message) => (
                4e6,
                can_hz as f64,
                "slower, the driver ends chip select within the last clock; faster, the chip's erratum forbids",
            ),
            (Parameter::Clock, Bench::Dd) => {
                (1e6, FLASH_MAX_HZ as f64, "the flash's limit for this read")
            }
            (Parameter::Clock, Bench::Nor) => (
                1e6,
                FLASH_MAX_HZ as f64,
                "the controller's divider, and the flash's limit for this read",
            ),
            (Parameter::Length, Bench::Spidev) => (
                1.0,
                (BCM2835_DMA_BYTES - 1) as f64,
                "the driver uses DMA for more, which is not modelled",
            ),
            (Parameter::Length, Bench::Nor) => (
                1.0,
                nor::BLOCK_MAX as f64,
                "the driver splits what is longer than a DMA transfer, which is not modelled",
            ),
            (Parameter::Length, _) => (1.0, BURST_BYTES as f64, "one burst of the controller"),
            (Parameter::Batch, _) => (
                1.0,
                (SPIDEV_BYTES / spidev::CONVERSION_BYTES) as f64,
                "4,096 bytes in one call of spidev",
            ),
            (Parameter::IrqLatency, _) => (0.0, 2e5, "later, frames are lost"),
            (Parameter::Delay | Parameter::PollingLimit, _) => (0.0, 1e7, "ten milliseconds"),
        }
    }

    /// The slowest clock of the converter at which its last clock is over when chip select ends, to 100 kHz.
    ///
    /// spi-bcm2835 ends when it has read the last byte, which is there half a clock before its end. How soon after that
    /// it moves the chip select depends on the costs, and is measured at `high_hz`.
    fn slowest_hz(&self, high_hz: f64) -> f64 {
        const STEP_HZ: f64 = 1e5;
        let sampled = self.sampled(&self.point().with(Parameter::Clock, high_hz), 1);
        let holds = sampled.intervals(spidev::Metric::CsHold).all.iter();
        let hold_ps = holds.map(|(from, to)| to - from).min().unwrap_or(0);
        let half_ps = hold_ps as f64 + 5e11 / high_hz;
        (5e11 / half_ps / STEP_HZ).ceil().mul_add(STEP_HZ, STEP_HZ)
    }

    /// The values asked, whole and in order.
    fn values(&self, asked: &[f64]) -> Result<Vec<f64>, LabError> {
        let (low, high, why) = self.bounds();
        let mut values: Vec<f64> = asked.iter().map(|value| value.round()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.is_empty() {
            return refused("a sweep needs values".into());
        }
        if let Some(value) = values.iter().find(|value| !(low..=high).contains(*value)) {
            let (name, unit) = (self.parameter.name(), self.parameter.unit());
            let board = self.spec.name;
            return refused(format!(
                "{name} is {low} to {high} {unit} on {board}, not {value}: {why}"
            ));
        }
        Ok(values)
    }

    /// The board's experiment.
    fn point(&self) -> Point {
        let (speed_hz, length) = match self.spec.name {
            "rpi3" => (3_600_000, spidev::CONVERSION_BYTES),
            "sama5d36" => (44_000_000, 512),
            "imx6dl" => (30_000_000, BURST_BYTES),
            // A received frame's object.
            _ => (17_000_000, 25),
        };
        let poll_limit_ns = match (self.bench, self.parameter) {
            (Bench::Spidev, Parameter::IrqLatency) => 0,
            (Bench::Spidev, _) => POLL_LIMIT_NS,
            _ => IMX_POLL_LIMIT_NS,
        };
        Point {
            delay_ns: None,
            speed_hz,
            batch: PREPARED,
            length,
            poll_limit_ns,
            irq_latency_ns: None,
        }
    }

    fn plan(&self) -> Plan<'_> {
        match self.bench {
            Bench::Spidev => self.spidev_plan(),
            Bench::Echo => self.one_plan(
                "us of the interrupt pin low",
                |point| {
                    let machine = self.machine(point);
                    let echoed =
                        echo::run(&machine, self.path, point.speed_hz, FRAMES, FRAME_GAP_PS);
                    let low = echoed.intervals.iter().find(|one| one.0 == echo::Metric::IntLow);
                    low.map(|low| low.1.mean_us())
                },
                Some((
                    "barewire",
                    Box::new(|point| {
                        let speed_hz = u32::try_from(point.speed_hz).ok()?;
                        let profile = self.profile_of_ours(point);
                        let echoed =
                            ours::echoed(self.spec, profile, (FRAMES, FRAME_GAP_PS), speed_hz)?;
                        Some(echoed.int_low?.p50_us)
                    }),
                )),
            ),
            Bench::Dd => {
                let limit_ns = ours::poll_limit_ns(self.path.waiting);
                let ours: Option<Ours<'_>> = limit_ns.map(|limit_ns| {
                    let run: OneRun<'_> = Box::new(move |point| {
                        let profile = self.profile_of_ours(point);
                        let reads = ours::reads(
                            self.spec,
                            profile,
                            limit_ns,
                            point.speed_hz,
                            BURST_BYTES,
                            false,
                        )?;
                        Some(reads.period_us)
                    });
                    ("barewire, without dd", run)
                });
                self.one_plan(
                    "us a read of 512 bytes",
                    |point| {
                        let read = dd::run(&self.machine(point), self.path, point.speed_hz, 3);
                        Some(read.reads.mean_us())
                    },
                    ours,
                )
            }
            Bench::Nor => self.one_plan(
                "us from the status to the block's end",
                |point| {
                    let Point { speed_hz, length, .. } = *point;
                    let read = nor::run(&self.machine(point), self.path, speed_hz, length, 1);
                    Some(read.time_ps() as f64 / 1e6)
                },
                Some((
                    "barewire, polled",
                    Box::new(|point| {
                        let Point { speed_hz, length, .. } = *point;
                        let profile = self.profile_of_ours(point);
                        let limit_ns = ours::poll_limit_ns(Waiting::Polling)?;
                        Some(
                            ours::reads(self.spec, profile, limit_ns, speed_hz, length, true)?
                                .window_us,
                        )
                    }),
                )),
            ),
            Bench::Message => self.message_plan(),
        }
    }

    /// The path's column, and barewire's.
    fn one_plan<'a>(
        &'a self,
        value_unit: &str,
        run: impl Fn(&Point) -> Option<f64> + 'a,
        ours: Option<Ours<'a>>,
    ) -> Plan<'a> {
        let mut plan = Plan { value_unit: value_unit.into(), ..Plan::default() };
        let failed = || LabError::Refused(format!("{} cannot be run so", self.path.name));
        plan.column(&self.path.name, move |point| run(point).ok_or_else(failed));
        if let Some((name, run)) = ours {
            plan.column(name, move |point| {
                run(point).ok_or_else(|| LabError::Refused("barewire cannot be run so".into()))
            });
            plan.pair(1, 0, "barewire is faster");
        }
        plan
    }

    fn spidev_plan(&self) -> Plan<'_> {
        let mut plan =
            Plan { value_unit: "samples/s".into(), more_is_better: true, ..Plan::default() };
        if self.parameter == Parameter::Batch {
            for (name, delay_ns) in [("10 us delay", 10_000), ("no delay", 0)] {
                plan.column(name, move |point| {
                    Ok(self.rate(&Point { delay_ns: Some(delay_ns), ..*point }, point.batch))
                });
            }
            plan.pair(1, 0, "taking the delay away pays");
        } else {
            // More than spidev takes in one call.
            let fits = |batch: &&usize| {
                self.parameter != Parameter::Length || **batch * BCM2835_DMA_BYTES <= SPIDEV_BYTES
            };
            for (place, &batch) in BATCHES.iter().filter(fits).enumerate() {
                plan.column(format!("batch of {batch}"), move |point| Ok(self.rate(point, batch)));
                if place > 0 {
                    plan.pair(place, 0, format!("batches of {batch} pay"));
                }
            }
        }
        if matches!(self.parameter, Parameter::Delay | Parameter::Clock | Parameter::Batch) {
            let place = plan.columns.len();
            plan.column("barewire", |point| Ok(self.our_rate(point)));
            plan.pair(place, 0, format!("barewire is faster than {}", plan.columns[0].name));
        }
        plan
    }

    /// Samples a second through the path.
    fn rate(&self, point: &Point, batch: usize) -> f64 {
        self.sampled(point, batch).samples_per_s
    }

    /// A steady state of the path.
    fn sampled(&self, point: &Point, batch: usize) -> spidev::SamplingRun {
        let delay_ns = point.delay_ns.unwrap_or(self.path.cs_change_delay_ns);
        let path = Path { cs_change_delay_ns: delay_ns, ..self.path.clone() };
        // Whole turns of the driver's eight phases of polling, and 40 samples at least: a steady state.
        let mut ioctls = 40_usize.div_ceil(batch).max(2);
        while !(ioctls * batch).is_multiple_of(8) {
            ioctls += 1;
        }
        let Point { speed_hz, length, poll_limit_ns, .. } = *point;
        let options = spidev::Options { speed_hz, batch, length, poll_limit_ns, ioctls };
        spidev::run(&self.machine(point), &path, &options)
    }

    fn our_rate(&self, point: &Point) -> f64 {
        let setup = sampling::Setup {
            board_options: BoardOptions {
                profile: Some(self.profile_of_ours(point)),
                ..BoardOptions::default()
            },
            software: sampling::Software::LinuxProcess,
            speed_hz: point.speed_hz as u32,
            cs_inactive_ns: point.delay_ns.unwrap_or(0) as u32,
            batch: point.batch,
            messages: 40_usize.div_ceil(point.batch).max(3),
        };
        setup.run().samples_per_s
    }

    fn message_plan(&self) -> Plan<'_> {
        let mut plan = Plan { value_unit: "us of one message".into(), ..Plan::default() };
        let by = move |waiting| move |point: &Point| self.message(point, waiting);
        let chosen = move |point: &Point| match self.polls(point) {
            true => Waiting::Polling,
            false => Waiting::Interrupts,
        };
        plan.column("polling", move |point| Ok(by(Waiting::Polling)(point).time_us));
        plan.column("interrupts", move |point| Ok(by(Waiting::Interrupts)(point).time_us));
        let name = match self.parameter {
            Parameter::PollingLimit => "by the limit".into(),
            _ => format!("limit of {} us", IMX_POLL_LIMIT_NS / 1_000),
        };
        plan.column(name, move |point| Ok(self.message(point, chosen(point)).time_us));
        let name = |waiting: &str| format!("processor, {waiting}");
        plan.column(name("polling"), move |point| Ok(by(Waiting::Polling)(point).processor_us));
        plan.column(name("interrupts"), move |point| {
            Ok(by(Waiting::Interrupts)(point).processor_us)
        });
        plan.pair(1, 0, "interrupts are as fast");
        plan.pair(4, 3, "sleeping takes less processor time than polling");
        plan.pair(2, 1, "the driver polls");
        plan
    }

    /// Whether spi-imx polls a transfer: twelve clocks a byte, less than the limit.
    fn polls(&self, point: &Point) -> bool {
        let made_hz = clock_hz(self.spec.profile.reference_hz.value, point.speed_hz);
        let bytes = u128::from(made_hz) * u128::from(point.poll_limit_ns) / 12_000_000_000;
        (point.length as u128) < bytes
    }

    /// One message of one transfer among several alike.
    fn message(&self, point: &Point, waiting: Waiting) -> Message {
        const BEFORE: u32 = 2;
        const MESSAGES: u32 = 4;
        let path = Path { waiting, ..self.path.clone() };
        let machine = self.machine(point);
        let board = machine.board();
        let host = Imx::new(board, self.spec.flash().cs, point.speed_hz);
        let kernel = Kernel::new(&machine, &host, &path);
        machine.set_cold(false);
        let window = std::cell::Cell::new((0, 0));
        let caller = || {
            for index in 0..BEFORE + MESSAGES {
                if index == BEFORE {
                    machine.start();
                    window.set((machine.now(), 0));
                }
                kernel.sync(vec![Xfer::new(&vec![0; point.length])]);
            }
            window.set((window.get().0, machine.now()));
            kernel.stop();
        };
        let mut threads = vec![
            Thread::new("caller", caller).on(0, 10),
            Thread::new("pump", || kernel.pump()).on(1, 50),
        ];
        threads.extend(host.threads(&machine));
        board.engine().run(threads);
        let (record, (from, to)) = (machine.finish(), window.get());
        let lanes = record.lanes();
        let lanes: Vec<&str> =
            lanes.iter().map(|lane| &**lane).filter(|&lane| lane != "SDMA").collect();
        let costs = machine.threads();
        let steps: u64 = record.busy(&lanes, from, to).values().map(|part| part.ps).sum();
        let switches = record.switches(&lanes, from, to) * costs.context_switch_ps;
        let entries =
            record.times_of("interrupt entry").into_iter().filter(|at| (from..to).contains(&at.0));
        let interrupts = entries.count() as u64
            * (costs.interrupt_latency_ps + board.profile().interrupt_exit_ps.value);
        let us = |ps: u64| ps as f64 / 1e6 / f64::from(MESSAGES);
        Message { time_us: us(to - from), processor_us: us(steps + switches + interrupts) }
    }

    /// `profile` with the interrupts' latency asked.
    fn at(&self, mut profile: Profile, point: &Point) -> Profile {
        let Some(asked_ns) = point.irq_latency_ns else { return profile };
        let felt = match self.bench {
            Bench::Echo => profile.irq_thread_ps.value,
            _ => profile.interrupt_latency_ps.value,
        };
        let by = asked_ns as f64 * 1e3 / felt as f64;
        for figure in [&mut profile.irq_thread_ps, &mut profile.interrupt_latency_ps] {
            figure.value = ((figure.value as f64 * by).round() as u64).max(1);
        }
        profile
    }

    fn machine(&self, point: &Point) -> Machine {
        let profile = Some(self.at(self.costs.profile(&self.spec.profile), point));
        let board = Board::new(self.spec, BoardOptions { profile, ..BoardOptions::default() });
        Machine::new(board, self.costs.clone(), Rc::new(BTreeSet::new()))
    }

    /// An echo begins with an interrupt after idle; all else runs in a loop.
    fn regime(&self) -> Regime {
        if self.bench == Bench::Echo { Regime::AfterIdle } else { Regime::InALoop }
    }

    fn profile_of_ours(&self, point: &Point) -> Profile {
        self.at(self.costs.process(&self.spec.profile, self.regime()), point)
    }
}

type OneRun<'a> = Box<dyn Fn(&Point) -> Option<f64> + 'a>;
type Ours<'a> = (&'static str, OneRun<'a>);

/// One message.
struct Message {
    /// From the call to its return.
    time_us: f64,
    /// The time for which processors were busy with it, all of them together.
    processor_us: f64,
}

mod own;
#[cfg(test)]
mod tests;

pub use own::{OwnSweepRequest, own_sweep};
