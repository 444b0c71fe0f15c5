//! `barewire-iommu replay`: a trace of maps and unmaps, under every strategy.
//!
//! # How it works
//! Each device has a domain ([`domains`]). An event goes to its device's six [`engine`]s. Each engine has one
//! strategy, with a page table of the library's, a gather or more per call, which the strategy turns into
//! invalidations, a [`tlb`] that executes them, and an account. All devices' tables for one strategy are in one
//! arena. A seventh TLB drops exactly the unmapped addresses. An access that misses in an engine's TLB and hits in
//! that one is the price of invalidating too much.
//!
//! The trace does not have the device's accesses. The device is assumed to read every leaf once, in
//! order, as soon as the leaf is mapped. Between these reads it reads a small set of pages that are
//! always mapped; after each unmap it reads all pages of that set.

mod camera;
mod costs;
mod domains;
mod engine;
mod lists;
mod memory;
mod pattern;
mod read;
mod replayer;
mod report;
mod tlb;
mod trace;
mod window;

use barewire_iommu::{Access, Arena, Attributes, Config, Strategy};

use super::shape::Shape;
use crate::shared::failure::Failure;
use crate::shared::number;
use crate::shared::output;
use costs::{CostArgs, Prices};
use domains::Domains;
use engine::{Bounds, Engine, Plan};
use memory::Memory;
use pattern::Pattern;
use read::Manner;
use replayer::{Refusal, Replayer};
use report::Report;
use trace::TraceLine;
use window::Window;

const EXAMPLES: &str = "\
A trace is text, from any of (dma events are of Linux 6.12 and later; iommu events name no device):
  trace-cmd record -e dma …;   trace-cmd report > TRACE
  perf record -a -e 'dma:*' …; perf script --ns > TRACE
  echo 1 > /sys/kernel/tracing/events/dma/enable; cat /sys/kernel/tracing/trace_pipe > TRACE
  trace-cmd record -e iommu:map -e iommu:unmap …; trace-cmd report > TRACE

Examples:
  barewire-iommu replay --example camera
  barewire-iommu replay --example camera --address-ns 4000 --window-ms 16.7
  barewire-iommu replay TRACE --device '0000:01:*' --device 12340000.mmc
  barewire-iommu replay TRACE --tlb-entries 512 --working-set 128 --miss-ns 500 --json
  ssh board cat /sys/kernel/tracing/trace | barewire-iommu replay -";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["trace", "example"])))]
pub(crate) struct Args {
    /// The trace; - is stdin
    #[arg(value_name = "TRACE")]
    trace: Option<String>,
    /// Replay a generated trace: camera maps and unmaps about 100 MB a second, as in the mailing list thread
    #[arg(long, value_name = "NAME")]
    example: Option<Example>,
    /// Print the example's trace as the kernel's tracer would write it, and replay nothing
    #[arg(long, requires = "example", conflicts_with = "trace")]
    print_trace: bool,
    /// Replay the events of this device alone; * and ? match any text and any character, and the option
    /// may be given several times. Events that name no device belong to "unnamed"
    #[arg(long, value_name = "NAME", value_parser = Pattern::parse)]
    device: Vec<Pattern>,
    /// End at the first line that cannot be read or replayed, and name it
    #[arg(long)]
    strict: bool,
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
    /// Deferred: flush when this many calls wait
    #[arg(long, value_name = "CALLS", default_value_t = 256, value_parser = |text: &str| number::within(text, 1..=1 << 20))]
    defer_calls: u32,
    /// Deferred: flush when the oldest has waited so long
    #[arg(long, value_name = "MS", default_value = "10", value_parser = window)]
    defer_ms: f64,
    /// Memory for tables, of each strategy, for all devices
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
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
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
    let arenas = memories
        .iter_mut()
        .map(|memory| memory.arena(table_bytes))
        .collect::<Result<Vec<Arena<'_>>, Failure>>()?;
    let create = || {
        let engine = |(&plan, arena)| {
            let window = Window::new(ns(args.window_ms));
            Engine::new(plan, config, attributes, arena, prices, window)
                .map_err(|error| format!("{error} (--tables-mib)"))
        };
        let engines = plans.iter().zip(&arenas).map(engine).collect::<Result<_, String>>()?;
        let tlb_entries = prices.strategy.tlb_entries;
        Ok(Replayer::new(engines, geometry, tables, tlb_entries, args.working_set))
    };
    // Options that already fail for the first device are wrong usage.
    drop(create().map_err(Failure::Usage)?);
    let mut domains = Domains::new(create, args.device.clone());
    match &args.trace {
        Some(path) => {
            read::read(&mut domains, path, Manner { strict: args.strict, silent: args.json })?;
        }
        None => {
            for (time_ns, event) in camera::events() {
                domains.input.lines += 1;
                domains.line(&TraceLine { time_ns: Some(time_ns), event }).map_err(|refused| {
                    let (Refusal::Line(reason) | Refusal::Replay(reason)) = refused;
                    Failure::Failed(format!("camera: {reason}"))
                })?;
            }
        }
    }
    domains.finish();
    let report = report(args, &prices, &domains);
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

fn report<F>(args: &Args, prices: &Prices, domains: &Domains<'_, F>) -> Report {
    let is_camera = args.example.is_some();
    let by_page = domains.all.first().and_then(|domain| domain.replayer.engines.first());
    let devices = report::devices(&domains.all, prices, ns(args.window_ms));
    Report {
        trace: if is_camera { "camera".into() } else { args.trace.clone().unwrap_or_default() },
        about: is_camera.then_some(camera::ABOUT),
        input: domains.input.clone(),
        costs: args.costs.told(prices),
        working_set: args.working_set,
        device: devices.iter().map(|device| device.accesses).sum(),
        window_ms: args.window_ms,
        strategies: report::total(&devices),
        devices,
        attached: domains.attached.iter().cloned().collect(),
        complaint_address_ns: by_page
            .filter(|_| is_camera)
            .map(|engine| report::complaint_address_ns(engine, &domains.input.events, prices)),
    }
}
