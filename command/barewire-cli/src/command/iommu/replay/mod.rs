//! `barewire iommu replay`: a trace of maps and unmaps, under every strategy.
//!
//! # How it works
//! Each line that is an event goes to six [`engine`]s. Each has a page table of its own, the
//! library's, whose tables lie in an arena, a gather or several a call, a strategy that makes
//! invalidations of them, a [`tlb`] that takes them, and an account. A seventh TLB takes nothing but
//! exactly what was unmapped: what misses in an engine's and not in that is the price of
//! invalidating too much.
//!
//! What the device accesses is not in the trace. It is assumed to read every leaf once, in order,
//! as soon as it is mapped, and in turn with that a small set of pages that are mapped all the time;
//! after each unmap it touches all of these.

mod camera;
mod costs;
mod engine;
mod memory;
mod replayer;
mod report;
mod tlb;
mod trace;
mod window;

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use barewire_iommu::{Access, Attributes, Config, Strategy};

use super::shape::Shape;
use crate::shared::failure::Failure;
use crate::shared::text::number;
use crate::shared::{interrupt, output};
use costs::{CostArgs, Prices};
use engine::{Bounds, Engine, Plan};
use memory::Memory;
use replayer::Replayer;
use report::{Report, Row};
use trace::{Event, Line};
use window::Window;

const EXAMPLES: &str = "\
A trace is text, from any of:
  trace-cmd record -e iommu:map -e iommu:unmap …; trace-cmd report > TRACE
  perf record -a -e iommu:map -e iommu:unmap …;   perf script --ns > TRACE
  echo 1 > /sys/kernel/tracing/events/iommu/enable; cat /sys/kernel/tracing/trace_pipe > TRACE

Examples:
  barewire iommu replay --example camera
  barewire iommu replay --example camera --address-ns 4000 --window-ms 16.7
  barewire iommu replay TRACE --tlb-entries 512 --working-set 128 --miss-ns 500 --json
  ssh board cat /sys/kernel/tracing/trace | barewire iommu replay -";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["trace", "example"])))]
pub(super) struct Args {
    /// The trace; - is stdin
    #[arg(value_name = "TRACE")]
    trace: Option<String>,
    /// Replay a generated trace: camera maps and unmaps about 100 MB a second, as in the mailing list thread
    #[arg(long, value_name = "NAME")]
    example: Option<Example>,
    /// Print the example's trace as the kernel's tracer would write it, and replay nothing
    #[arg(long, requires = "example", conflicts_with = "trace")]
    print_trace: bool,
    #[command(flatten)]
    shape: Shape,
    /// The length of the window whose worst case is reported: one frame
    #[arg(long, value_name = "MS", default_value = "33", value_parser = window)]
    window_ms: f64,
    /// Pages the device uses all the time, beside what is mapped and unmapped
    #[arg(long, value_name = "PAGES", default_value_t = 16, value_parser = |text: &str| number::within(text, 0..=1 << 20))]
    working_set: u32,
    /// Let adaptive use range commands (SMMUv3.2)
    #[arg(long)]
    ranges: bool,
    /// Deferred: flush when so many calls wait
    #[arg(long, value_name = "CALLS", default_value_t = 256, value_parser = |text: &str| number::within(text, 1..=1 << 20))]
    defer_calls: u32,
    /// Deferred: flush when the oldest has waited so long
    #[arg(long, value_name = "MS", default_value = "10", value_parser = window)]
    defer_ms: f64,
    /// Memory for tables, of each strategy
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = |text: &str| number::within(text, 1..=1 << 16))]
    tables_mib: u32,
    #[command(flatten)]
    costs: CostArgs,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Traces that are made up.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Example {
    /// The thread's camera
    Camera,
}

fn window(text: &str) -> Result<f64, String> {
    let ms = text.parse().ok().filter(|ms| (0.001..=1e6).contains(ms));
    ms.ok_or_else(|| "milliseconds are a number from 0.001 to 1000000: 33 or 16.7".into())
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6).round() as u64
}

/// Replays.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    if args.print_trace {
        return output::text(&camera::text());
    }
    let geometry = args.shape.geometry()?;
    // The kernel that was traced splits blocks where it must, and so do we.
    let config = Config { bbml2: true, ..args.shape.config() };
    let prices = args.costs.prices(args.ranges);
    let attributes = Attributes::new(config.stage, Access::ReadWrite);
    let plans = plans(args, &prices);
    let table_bytes = geometry.page_bytes() as usize;
    let bytes = u64::from(args.tables_mib) << 20;
    if memory::BASE + bytes > geometry.output_end() {
        return Err(Failure::Usage(format!(
            "tables of {} MiB are beyond {} bits of output (--tables-mib, --output-bits)",
            args.tables_mib, config.output_bits
        )));
    }
    let tables = (bytes as usize) / table_bytes;
    let mut memories: Vec<Memory> =
        plans.iter().map(|_| Memory::new(tables, table_bytes)).collect();
    let mut engines = Vec::new();
    for (plan, memory) in plans.into_iter().zip(&mut memories) {
        let arena = memory.arena(table_bytes)?;
        let window = Window::new(ns(args.window_ms));
        let engine = Engine::new(plan, config, attributes, arena, prices, window)
            .map_err(|error| Failure::Usage(format!("{error} (--tables-mib)")))?;
        engines.push(engine);
    }
    let mut replayer =
        Replayer::new(engines, geometry, prices.strategy.tlb_entries, args.working_set);
    match (&args.trace, args.example) {
        (Some(path), _) if path == "-" => read(&mut replayer, io::stdin().lock(), "stdin")?,
        (Some(path), _) => {
            let file = File::open(path)
                .map_err(|error| Failure::io(format_args!("open {path:?}"), &error))?;
            read(&mut replayer, BufReader::new(file), path)?;
        }
        (None, _) => {
            for (number, (time_ns, event)) in (1..).zip(camera::events()) {
                take(&mut replayer, &Line { time_ns: Some(time_ns), event }, "camera", number)?;
            }
        }
    }
    replayer.finish();
    let report = report(args, &prices, &replayer);
    if args.json { output::json(&report) } else { output::text(&report.text()) }
}

fn plans(args: &Args, prices: &Prices) -> Vec<(&'static str, Plan)> {
    let bounds = Bounds { calls: args.defer_calls as usize, age_ns: ns(args.defer_ms) };
    vec![
        ("by_page", Plan::EachWalk { walk: Strategy::ByPage }),
        ("by_context_each_walk", Plan::EachWalk { walk: Strategy::ByContext }),
        ("by_range", Plan::Gathered(Strategy::ByRange)),
        ("by_context", Plan::Gathered(Strategy::ByContext)),
        ("adaptive", Plan::Gathered(Strategy::Adaptive(prices.strategy))),
        ("deferred", Plan::Deferred(bounds)),
    ]
}

/// Lines between two looks whether somebody pressed Ctrl-C.
const LINES_PER_CHECK: u64 = 1024;

/// The longest line read, in bytes: the kernel's are of some hundred.
const LINE_MAX: u64 = 64 << 10;

fn read(replayer: &mut Replayer<'_>, mut from: impl BufRead, name: &str) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    for number in 1.. {
        if number % LINES_PER_CHECK == 0 {
            interrupt::check()?;
        }
        bytes.clear();
        match from.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes) {
            Ok(0) => break,
            Ok(_) if bytes.len() as u64 == LINE_MAX => {
                return Err(Failure::Failed(format!(
                    "{name} line {number} has more than {LINE_MAX} bytes: this is no trace"
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io(format_args!("read {name:?}"), &error)),
        }
        let parsed = trace::parse(&String::from_utf8_lossy(&bytes));
        // A number that lacks digits is still a number: of a line that nothing ends, none is believed.
        let cut = !bytes.ends_with(b"\n");
        match parsed {
            Ok(Line { event: Event::Map { .. } | Event::Unmap { .. }, .. }) | Err(_) if cut => {
                replayer.input.lines += 1;
                replayer.input.cut_line = true;
            }
            Ok(line) => take(replayer, &line, name, number)?,
            Err(error) => return Err(Failure::Failed(format!("{name} line {number}: {error}"))),
        }
    }
    let input = &replayer.input;
    if input.maps == 0 && input.unmaps == 0 {
        return Err(Failure::Failed(format!(
            "{name} has no iommu:map or iommu:unmap event in its {} lines: trace those",
            input.lines
        )));
    }
    Ok(())
}

fn take(replayer: &mut Replayer<'_>, line: &Line, name: &str, number: u64) -> Result<(), Failure> {
    replayer.input.lines += 1;
    replayer.line(line).map_err(|error| Failure::Failed(format!("{name} line {number}: {error}")))
}

fn report(args: &Args, prices: &Prices, replayer: &Replayer<'_>) -> Report {
    let timed = replayer.input.duration_ns.is_some();
    let window_ns = ns(args.window_ms);
    let row = |engine: &Engine<'_>| Row::new(engine, prices, window_ns, timed);
    let camera = args.example.is_some();
    let by_page = replayer.engines.first().filter(|_| camera);
    Report {
        trace: if camera { "camera".into() } else { args.trace.clone().unwrap_or_default() },
        about: camera.then_some(camera::ABOUT),
        input: replayer.input,
        costs: args.costs.told(prices),
        working_set: args.working_set,
        device: replayer.device,
        window_ms: args.window_ms,
        strategies: replayer.engines.iter().map(row).collect(),
        complaint_address_ns: by_page
            .map(|engine| report::complaint_address_ns(engine, &replayer.input, prices)),
    }
}
