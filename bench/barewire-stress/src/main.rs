//! `barewire-stress`: contexts that mix every path and device on one simulated bus, and a judge at
//! the wire.
//!
//! # How it works
//! Each context is a [simulated thread](barewire_sim::engine::Thread) with a random stream of its
//! own, so that a seed is a run. The shipped driver runs on the simulated board; a
//! [recorder](judge::Recorder) behind each chip select reports the bytes on the wire to the
//! [`judge`]. The contexts report the results that their calls returned. Memory grows with the run
//! by one byte a message.
//!
//! A run that hangs, because all its threads sleep or block each other, has no report: it ends with
//! an error and exit code 1.
//!
//! After Ctrl-C the contexts give no more messages. Those given run to their end, and the report
//! covers them.

mod account;
mod context;
mod frame;
mod judge;
mod message;
mod platform;
mod report;
mod sabotage;
mod slot;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::panic;
use std::process::{self, ExitCode};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use barewire::bus::{Bus, Pump};
use barewire::controller::Controller;
use barewire::middleware::{Fault, FaultInjector, When};
use barewire::spi::Error;
use barewire_open::name::{self, BusName, SimOptions};
use barewire_open::number;
use barewire_sim::bring_up::{Charged, any, native_takes_any};
use barewire_sim::engine::Thread;
use barewire_sim::profile::CostLevel;
use barewire_sim::{Board, BoardOptions};
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use account::Account;
use context::{Context, Counts, Floor};
use frame::CONTEXTS_MAX;
use judge::{Judge, Recorder};
use platform::WatchedPlatform;
use report::Report;
use sabotage::{Sabotage, Saboteur};

const PS_PER_NS: u64 = 1_000;
/// The most messages of a run: with more, 32-bit numbers could repeat within one context.
const MESSAGES_MAX: u64 = 1_000_000_000;

const EXAMPLES: &str = "\
Examples:
  barewire-stress
  barewire-stress --contexts 16 --messages 1M --seed 7 --faults 0.001 --json
  barewire-stress --sabotage interleave        (must fail)
  barewire-stress --pump worker --faults 0.01
  barewire-stress --bus sim:imx8mp,jitter-ns=200 --seed 3";

const PROGRESS: &str = "{prefix:9} {wide_bar} {human_pos}/{human_len}, {eta} left";

/// Run random messages on every path, device and priority from many contexts on a simulated bus,
/// and check order, completeness and statistics at the wire
#[derive(Parser, Debug)]
#[command(after_help = EXAMPLES, max_term_width = 100)]
struct Args {
    /// The bus, a simulated board: sim:BOARD and its options, as sim:imx8mp,jitter-ns=200,seed=7
    #[arg(long, value_name = "BUS", default_value = "sim:imx8mp")]
    bus: String,
    /// The number of contexts that submit messages at the same time, 1 to 64
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = number::count::<usize>)]
    contexts: usize,
    /// Messages in all
    #[arg(long, value_name = "N", default_value = "100000", value_parser = number::count::<u64>)]
    messages: u64,
    /// The seed: the same seed gives the same run
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = number::count::<u64>)]
    seed: u64,
    /// Let transfers time out with this probability, 0 to 1
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    faults: f64,
    /// Break a promise of the bus on purpose, a few times; the run must detect it and fail
    #[arg(long, value_name = "KIND")]
    sabotage: Option<Sabotage>,
    /// The part that runs messages whose submitter does not wait
    #[arg(long, value_name = "WHO", default_value = "caller")]
    pump: Pumps,
    /// Use a bus lock with priority inheritance
    #[arg(long)]
    inheritance: bool,
    /// Charge each cost at the lowest or the highest value that its sources allow
    #[arg(long, value_name = "WHICH", value_enum, default_value = "used")]
    costs: Costs,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Print no progress bar or notes, only errors
    #[arg(long, short)]
    quiet: bool,
}

/// What runs submitted messages.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Pumps {
    /// The context that submits a message, or the holder of the bus
    Caller,
    /// A worker thread
    Worker,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "a rate is a number from 0 to 1: 0.001 is one transfer in 1,000".into())
}

/// Which costs the board charges.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Costs {
    /// Each cost at the lowest value that its sources allow
    Low,
    /// The values that all tables use
    Used,
    /// Each cost at the highest value that its sources allow
    High,
}

/// Why it ended before it was done, and its exit code.
#[derive(Debug)]
struct Failure {
    code: u8,
    text: String,
}

impl Failure {
    fn failed(text: String) -> Self {
        Self { code: 1, text }
    }

    fn usage(text: String) -> Self {
        Self { code: 2, text }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::failed(error.to_string())
    }
}

/// Whether Ctrl-C, SIGTERM or SIGHUP came.
static STOP: AtomicBool = AtomicBool::new(false);

fn asked_to_stop() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Writes a line to stderr. Unlike `eprintln!`, it does not panic if that fails.
fn note(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn main() -> ExitCode {
    let args = Args::parse();
    // The first asks, the second ends the program.
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    };
    let listening = ctrlc::set_handler(handler)
        .map_err(|error| Failure::failed(format!("cannot listen for Ctrl-C: {error}")));
    match listening.and_then(|()| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, text }) => {
            note(format_args!("barewire-stress: {text}"));
            ExitCode::from(code)
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    args.check().map_err(Failure::usage)?;
    let options = simulated(&args.bus)?;
    let report = stress(args, &options)?;
    let text = match args.json {
        true => serde_json::to_string(&report).expect("strings and numbers are JSON") + "\n",
        false => report.text(),
    };
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if args.sabotage.is_some() && report.sabotaged == 0 && !args.quiet {
        note(format_args!("nothing was sabotaged: too few messages"));
    }
    report.verdict()?;
    match printed {
        // A reader that has gone (`| head`) wants no more.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ if asked_to_stop() => Err(Failure { code: 130, text: "stopped as asked".into() }),
        _ => Ok(()),
    }
}

impl Args {
    fn check(&self) -> Result<(), String> {
        if !(1..=CONTEXTS_MAX).contains(&self.contexts) {
            return Err(format!("--contexts {}: 1 to {CONTEXTS_MAX}", self.contexts));
        }
        if self.messages < self.contexts as u64 || self.messages > MESSAGES_MAX {
            return Err(format!(
                "--messages {}: at least one for each of the {} contexts, at most {MESSAGES_MAX}",
                self.messages, self.contexts
            ));
        }
        Ok(())
    }

    /// One transfer in so many goes wrong.
    fn when(&self) -> When {
        if self.faults == 0.0 {
            return When::Never;
        }
        // A float's conversion saturates.
        When::Random { seed: self.seed, one_in: (1.0 / self.faults).round() as u32 }
    }
}

/// The board of that name. Refuses a name that is no board, and options that a stress run does not
/// have.
fn simulated(name: &str) -> Result<SimOptions, Failure> {
    let name = name::parse(name).map_err(Failure::usage)?;
    let BusName::Sim(options) = name else {
        return Err(Failure::usage(format!(
            "stress runs simulated threads in virtual time and listens behind every chip select: \
             {name} has neither; name a simulated board, sim:BOARD (`barewire list`)"
        )));
    };
    if !options.board.is_shipped() {
        return Err(Failure::usage(
            "stress puts its own chips behind the chip selects of a shipped board (`barewire list`)".into(),
        ));
    }
    if options.flash.is_some() || options.status.is_some() || options.faults != Default::default() {
        return Err(Failure::usage(
            "stress puts its own chips behind the chip selects: leave flash, protect and fault \
             out (--faults makes transfers go wrong)"
                .into(),
        ));
    }
    Ok(options)
}

fn stress(args: &Args, options: &SimOptions) -> Result<Report, Failure> {
    let level = match args.costs {
        Costs::Low => CostLevel::Low,
        Costs::Used => CostLevel::Used,
        Costs::High => CostLevel::High,
    };
    let board_options = BoardOptions {
        profile: Some(options.board.profile.at(level)),
        jitter_ps: options.jitter_ns.saturating_mul(PS_PER_NS),
        seed: options.seed ^ args.seed,
        blocks: options.block_options(),
        ..BoardOptions::default()
    };
    let board = Board::new(options.board, board_options);
    let judge = Rc::new(RefCell::new(Judge::new(args.contexts)));
    // A GPIO, and the controller's own line where that takes messages of any form.
    let lines = if native_takes_any(&board) { [0, 1] } else { [0, 0] };
    for chip_select in lines {
        let recorder = Recorder::new(chip_select, judge.clone());
        board.attach(chip_select, Rc::new(RefCell::new(recorder)));
    }
    let sabotaged = Rc::new(Cell::new(0));
    let driver = Charged::new(any(&board), board.clone());
    let faulty = FaultInjector::new(driver, Fault::Timeout, args.when());
    let platform = WatchedPlatform::of(args.inheritance);
    let pump = if args.pump == Pumps::Worker { Pump::Worker } else { Pump::Caller };
    let saboteur = Saboteur::new(faulty, args.sabotage, sabotaged.clone());
    let bus: Box<Bus<dyn Controller>> =
        Box::new(Bus::with_platform(saboteur, platform).with_pump(pump));
    bus.set_counting(true);
    let silent = args.quiet || args.json;
    let target = match silent {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(10),
    };
    let progress = ProgressBar::with_draw_target(Some(args.messages), target)
        .with_prefix("stress")
        .with_style(ProgressStyle::with_template(PROGRESS).expect("a template"));
    let floor = Floor {
        bus: &bus,
        board: &board,
        lines,
        judge: judge.clone(),
        account: RefCell::new(Account::default()),
        counts: RefCell::new(Counts::default()),
        progress: &progress,
        shown: Cell::new(0),
        inherits: args.inheritance,
    };
    let begun = Instant::now();
    let mut contexts = (0..args.contexts)
        .map(|index| {
            let (each, more) =
                (args.messages / args.contexts as u64, args.messages % args.contexts as u64);
            let messages = each + u64::from((index as u64) < more);
            Context::new(&floor, index, messages, args.seed)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let threads = contexts.iter_mut().enumerate();
    let (left, stop, bus_ref) = (&Cell::new(args.contexts), &AtomicBool::new(false), &*bus);
    let mut threads: Vec<Thread<'_>> = threads
        .map(|(index, context)| {
            Thread::new(&format!("context {index}"), move || {
                context.run();
                left.set(left.get() - 1);
                if left.get() == 0 {
                    stop.store(true, Ordering::Relaxed);
                    bus_ref.ring();
                }
            })
        })
        .collect();
    if args.pump == Pumps::Worker {
        threads.push(Thread::new("worker", || {
            bus_ref.serve(stop);
        }));
    }
    // Threads that sleep for ever, among others: unwinding would wait for them as well.
    let again = format!("--contexts {} --seed {}", args.contexts, args.seed);
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        note(format_args!(
            "barewire-stress: a promise was broken so that the run cannot go on ({again}):"
        ));
        hook(panic);
        process::exit(1);
    }));
    board.engine().run(threads);
    let _ = panic::take_hook();
    progress.finish_and_clear();
    drop(contexts);
    let real_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (broken, seen) = judge.borrow_mut().close();
    let account = floor.account.take();
    let differences = account.mismatches(&bus.statistics(), &seen);
    let expected = &account.expected;
    let messages = judge.borrow().given();
    Ok(Report {
        bus: format!("sim:{}", options.board.name),
        simulated: true,
        profile: board.profile().name,
        costs: args.costs,
        contexts: args.contexts,
        messages,
        seed: args.seed,
        faults: args.faults,
        pump: args.pump,
        inheritance: args.inheritance,
        sabotage: args.sabotage,
        order_violations: broken.order_violations,
        interleavings: broken.interleavings,
        lost: broken.lost,
        duplicated: broken.duplicated,
        statistics_mismatches: differences.len() as u64,
        wrong_results: account.wrong_results,
        wire_violations: board.harms_total(),
        trace_hash: format!("{:016x}", board.trace_hash()),
        virtual_ns: board.engine().now_ps() / PS_PER_NS,
        real_ns,
        sabotaged: sabotaged.get(),
        failed: expected.errors,
        cancelled: account.cancelled,
        busy: account.busy,
        waited: expected.spi_sync - expected.spi_sync_immediate,
        priority_overtakes: seen.priority_overtakes,
        overtaken_max: seen.overtaken_max,
        wire_messages: seen.messages,
        wire_bytes: seen.bytes,
        selections: seen.selections,
        thread_switches: board.engine().switches(),
        paths: floor.counts.take(),
        differences,
    })
}
