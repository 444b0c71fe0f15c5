//! A converter read through spidev: the ADC speed test.
//!
//! *Read first*: Scott Ellis, *Analyzing SPI driver performance on the Raspberry Pi*, 2017; MCP3004/3008 data sheet
//! DS21295, section 6.1, for the bytes.
//!
//! # How it works
//! A process calls `ioctl(SPI_IOC_MESSAGE(n))` in a loop and does not look at the data. Each of the n transfers is one
//! conversion of channel 0, and all but the last have `cs_change`. The loop has run for a moment before anything is
//! measured, so its code is not cold. The lab looks at every code and at every broken rule of the wire.
//!
//! Processor 0 has the process, its timer tick and the controller's interrupt; processor 1 the SPI pump, which is woken
//! after each message to find nothing.
//!
//! # The metrics
//! A clock's first edge is half a period after its bit begins, and its last edge is where its bit ends. So *cs-setup*
//! goes to the first edge, as on an oscilloscope, and *cs-hold* begins at the last. *clocks* are whole bits.
//!
//! # Not supported
//! What a timer tick does to a batch that it interrupts: a tick that is due waits for the next `ioctl`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::model::signal::Signal;
use barewire_sim::{Rule, Selection, Violation};
use serde::Deserialize;

use super::Intervals;
use crate::cost::Costs;
use crate::kernel::bcm2835::{Bcm2835, POLL_LIMIT_NS};
use crate::kernel::{Kernel, Path, Xfer};
use crate::machine::{Machine, Record};

/// CONFIG_HZ=100.
const TICK_PS: Ps = 10_000_000_000;
/// The first byte of a conversion: the start bit, single-ended, channel 0. The code's upper 8 bits are the second
/// byte, its lower 2 the third's upper 2.
const COMMAND: u8 = 0x60;
/// The bytes of a conversion.
pub const CONVERSION_BYTES: usize = 3;
/// What is at the input: neither all zeros nor all ones, nor the same backwards.
const LEVEL_UV: i64 = 1_234_000;
/// Ioctls before anything is measured.
const WARM_UP: usize = 2;

/// What the experiment measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Samples a second: its one interval goes from the beginning of the first ioctl to that of the one after the last.
    Rate,
    /// From chip select active to the first clock's edge.
    CsSetup,
    /// From the last clock's edge to chip select inactive.
    CsHold,
    /// Chip select inactive between two ioctls.
    IoctlGap,
    /// Chip select inactive inside a batch.
    CsToggle,
    /// From the first bit to the end of the last.
    Clocks,
    /// Chip select active.
    Transfer,
}

/// How the test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The clock asked.
    pub speed_hz: u64,
    /// Transfers of an ioctl.
    pub batch: usize,
    /// Bytes of a transfer, zeros after the first.
    pub length: usize,
    /// Transfers whose clocks take as long or longer wait by interrupts.
    pub poll_limit_ns: u64,
    /// Ioctls measured.
    pub ioctls: usize,
}

impl Options {
    /// The article's: conversions, enough of them for a steady rate.
    #[must_use]
    pub fn new(speed_hz: u64, batch: usize) -> Self {
        Self {
            speed_hz,
            batch,
            length: CONVERSION_BYTES,
            poll_limit_ns: POLL_LIMIT_NS,
            ioctls: (2_000 / batch.max(1)).max(4),
        }
    }
}

/// What came of it.
pub struct Sampled {
    /// Where the time went.
    pub record: Record,
    /// The intervals of each metric.
    pub intervals: Vec<(Metric, Intervals)>,
    /// Samples in the interval of [`Metric::Rate`].
    pub samples: usize,
    /// Samples a second.
    pub samples_per_s: f64,
    /// Rules of the wire that were broken. Only that of the time between two conversions may be.
    pub violations: Vec<Violation>,
}

impl Sampled {
    /// The intervals of `metric`.
    ///
    /// # Panics
    /// Never: all metrics are there.
    #[must_use]
    pub fn intervals(&self, metric: Metric) -> &Intervals {
        &self.intervals.iter().find(|one| one.0 == metric).expect("every metric").1
    }

    /// The figure of `metric`: samples a second or microseconds.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Rate => self.samples_per_s,
            metric => self.intervals(metric).mean_us(),
        }
    }
}

struct Process<'m> {
    machine: &'m Machine,
    kernel: &'m Kernel<'m, Bcm2835>,
    options: Options,
    code: u16,
    begun: RefCell<Vec<Ps>>,
}

impl Process<'_> {
    fn ioctl(&self) {
        let (machine, Options { batch, length, .. }) = (self.machine, self.options);
        machine.charge("system call", &["syscall"]);
        machine.charge("spidev", &["spidev"]);
        machine.charge_times("spidev transfer", batch as f64, &["spidev-transfer"]);
        machine.charge_times("copy", (2 * length * batch) as f64, &["copy"]);
        let mut tx = vec![0; length];
        tx[0] = COMMAND;
        let mut message = vec![Xfer::new(&tx).with_cs_change(); batch];
        message[batch - 1].cs_change = false;
        for xfer in self.kernel.sync(message) {
            if let [_, high, low, ..] = xfer.rx[..] {
                let code = u16::from(high) << 2 | u16::from(low) >> 6;
                assert_eq!(code, self.code, "the code of the level at the input");
            }
        }
    }

    fn run(&self) {
        let machine = self.machine;
        for _ in 0..WARM_UP {
            self.ioctl();
        }
        machine.board().clear_violations();
        machine.start();
        let mut tick_at = machine.now() + TICK_PS;
        for _ in 0..self.options.ioctls {
            self.begun.borrow_mut().push(machine.now());
            while tick_at <= machine.now() {
                machine.charge("timer tick", &["tick"]);
                tick_at += TICK_PS;
            }
            self.ioctl();
        }
        self.begun.borrow_mut().push(machine.now());
        self.kernel.stop();
    }
}

/// Samples through `path`: `ioctls` of `batch` conversions each.
///
/// # Panics
/// As [`run_with`].
#[must_use]
pub fn run(machine: &Machine, path: &Path, speed_hz: u64, batch: usize, ioctls: usize) -> Sampled {
    run_with(machine, path, &Options { ioctls, ..Options::new(speed_hz, batch) })
}

/// Samples through `path` as `options` say.
///
/// # Panics
/// If the board has no converter behind a BCM2835 SPI0, if an option is 0, if a code is wrong, or if a rule of the wire
/// is broken other than the converter's shortest time between two conversions.
#[must_use]
pub fn run_with(machine: &Machine, path: &Path, options: &Options) -> Sampled {
    let board = machine.board();
    let spec = board.spec().adc().expect("the board has a converter");
    let adc = board.attach_adc().expect("the board has a converter");
    adc.borrow_mut().set_input(0, Signal::Constant { level_uv: LEVEL_UV });
    let host = Bcm2835::new(board, spec.cs, options.speed_hz, options.poll_limit_ns);
    let kernel = Kernel::new(machine, &host, path);
    machine.set_cold(false);
    let code = LEVEL_UV * 1_024 / (i64::from(spec.vref_mv) * 1_000);
    let process = Process {
        machine,
        kernel: &kernel,
        options: *options,
        code: code as u16,
        begun: RefCell::default(),
    };
    let mut threads = vec![
        Thread::new("process", || process.run()).on(0, 10),
        Thread::new("pump", || kernel.pump()).on(1, 50),
    ];
    threads.extend(host.threads(machine));
    board.engine().run(threads);
    let record = machine.finish();
    let begun = process.begun.take();
    let violations = broken(machine, record.wire());
    let (from, to) = (begun[0], begun[options.ioctls]);
    let samples = options.ioctls * options.batch;
    let ticks = record.times_of("timer tick");
    let intervals = intervals(record.wire(), options.batch, 500_000_000_000 / host.clock_hz());
    let mut intervals: Vec<(Metric, Intervals)> =
        intervals.into_iter().map(|(metric, all)| (metric, Intervals { all })).collect();
    for (_, Intervals { all }) in &mut intervals {
        // A tick belongs to the rate: nobody reads the gap between two calls from one that it is in.
        all.retain(|&(from, to)| !ticks.iter().any(|tick| from <= tick.0 && tick.1 <= to));
    }
    intervals.insert(0, (Metric::Rate, Intervals { all: vec![(from, to)] }));
    let samples_per_s = samples as f64 / (to - from) as f64 * 1e12;
    Sampled { record, intervals, samples, samples_per_s, violations }
}

/// The violations, none of which may be any other than that of the time between two conversions.
fn broken(machine: &Machine, wire: &[Selection]) -> Vec<Violation> {
    let board = machine.board();
    let kept = board.violations();
    let Some(required_ns) = kept.first().map(|one| one.required_ns) else { return kept };
    let others: Vec<&Violation> =
        kept.iter().filter(|one| one.rule != Rule::CsInactive || one.cs != Some(0)).collect();
    assert!(others.is_empty(), "{others:#?}");
    // The log keeps the first ones only: those that it does not keep are of the same rule if their number is right.
    let short = wire.windows(2).filter(|pair| {
        pair[1].selected_at - pair[0].deselected_at < required_ns * 1_000
    });
    assert_eq!(short.count() as u64, board.violations_total(), "violations that are not kept");
    kept
}

/// The intervals of each metric but the rate.
fn intervals(
    wire: &[Selection],
    batch: usize,
    half_a_clock: Ps,
) -> Vec<(Metric, Vec<(Ps, Ps)>)> {
    let each = |part: &dyn Fn(&Selection) -> (Ps, Ps)| wire.iter().map(part).collect();
    let between = |inside: bool| {
        let pairs = wire.windows(2).enumerate();
        let pairs = pairs.filter(|(index, _)| ((index + 1) % batch != 0) == inside);
        pairs.map(|(_, pair)| (pair[0].deselected_at, pair[1].selected_at)).collect()
    };
    vec![
        (Metric::CsSetup, each(&|one| (one.selected_at, one.first_clock_at + half_a_clock))),
        (Metric::CsHold, each(&|one| (one.last_clock_at, one.deselected_at))),
        (Metric::IoctlGap, between(false)),
        (Metric::CsToggle, between(true)),
        (Metric::Clocks, each(&|one| (one.first_clock_at, one.last_clock_at))),
        (Metric::Transfer, each(&|one| (one.selected_at, one.deselected_at))),
    ]
}

/// Samples a second of `path` on the board `rpi3`, as a sweep asks for.
///
/// # Panics
/// As [`run_with`].
#[must_use]
pub fn rate(
    costs: &Rc<Costs>,
    off: &Rc<BTreeSet<String>>,
    path: &Path,
    batch: usize,
    length: usize,
    speed_hz: u64,
    poll_limit_ns: u64,
) -> f64 {
    let machine = super::machine("rpi3", costs, off).expect("a board");
    let options = Options { length, poll_limit_ns, ..Options::new(speed_hz, batch) };
    run_with(&machine, path, &options).samples_per_s
}

/// The `cs_change` delay from which a batch of `batch` conversions is slower than single ones, in nanoseconds; none if
/// it is slower without any delay.
///
/// The time of a sample grows with the delay in a straight line, so two delays give it.
///
/// # Panics
/// As [`run_with`].
#[must_use]
pub fn break_even(
    costs: &Rc<Costs>,
    off: &Rc<BTreeSet<String>>,
    path: &Path,
    batch: usize,
    speed_hz: u64,
) -> Option<f64> {
    const FAR_NS: u64 = 10_000;
    let period_ns = |batch: usize, delay_ns: u64| {
        let path = Path { cs_change_delay_ns: delay_ns, ..path.clone() };
        1e9 / rate(costs, off, &path, batch, CONVERSION_BYTES, speed_hz, POLL_LIMIT_NS)
    };
    let single_ns = period_ns(1, 0);
    let [near, far] = [0, FAR_NS].map(|delay_ns| period_ns(batch, delay_ns) - single_ns);
    (near < 0.0).then(|| -near / (far - near) * FAR_NS as f64)
}

/// The article's own formula: a batch of n takes n transfers, n - 1 toggles with their delay, and one gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formula {
    /// Clocks with lead and lag.
    pub transfer_us: f64,
    /// The gap between two ioctls.
    pub gap_us: f64,
    /// A toggle without any delay.
    pub toggle_us: f64,
}

impl Formula {
    /// With the article's parts.
    pub const ARTICLE: Self = Self { transfer_us: 9.2, gap_us: 5.0, toggle_us: 0.25 };

    /// Samples a second.
    #[must_use]
    pub fn rate(&self, batch: usize, delay_us: f64) -> f64 {
        let (n, toggle_us) = (batch as f64, self.toggle_us + delay_us);
        1e6 * n / (n * self.transfer_us + (n - 1.0) * toggle_us + self.gap_us)
    }

    /// The delay from which a batch, of whatever size, is slower than single transfers.
    #[must_use]
    pub fn break_even_us(&self) -> f64 {
        self.gap_us - self.toggle_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED_HZ: u64 = 3_600_000;

    fn sampled(costs: &Costs, name: &str, options: &Options) -> Sampled {
        let machine =
            super::super::machine("rpi3", &Rc::new(costs.clone()), &Rc::new(BTreeSet::new())).expect("a board");
        run_with(&machine, &Path::find(name).expect("a path"), options)
    }

    #[test]
    #[ignore = "prints"]
    fn prints() {
        for costs in [Costs::assumed(), Costs::fitted()] {
            for name in ["spidev-4.4", "spidev-4.4-no-delay"] {
                for batch in [1, 10, 100, 500] {
                    let sampled = sampled(&costs, name, &Options::new(SPEED_HZ, batch));
                    print!("{name} {batch}");
                    for (metric, _) in &sampled.intervals {
                        print!(" {metric:?} {:.3}", sampled.figure(*metric));
                    }
                    println!(" violations {}", sampled.violations.len());
                    if batch < 100 {
                        for metric in [Metric::CsSetup, Metric::CsHold, Metric::IoctlGap] {
                            let (from, to) = sampled.intervals(metric).all[100];
                            println!("  {metric:?}");
                            for (step, part) in sampled.record.attribute(from, to).0 {
                                println!("    {step:<32}{:>8.3} {:>3}", part.ps as f64 / 1e6, part.times);
                            }
                        }
                    }
                }
            }
        }
    }
}
