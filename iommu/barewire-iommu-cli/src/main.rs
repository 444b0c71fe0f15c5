//! The `barewire-iommu` command: IO page tables measured, explained, and kernels' traces replayed.
//!
//! Results go to stdout, everything else to stderr. Exit codes are in the help below.
//!
//! Every verb is a module of [`command`]. [`shared`] holds what verbs have in common.

mod command;
mod shared;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use command::{bench, explain, replay, walk};
use shared::failure::Failure;
use shared::interrupt;
use shared::output::note;

const AFTER_HELP: &str = "\
Examples:
  barewire-iommu replay --example camera
  barewire-iommu walk --dump tables.bin@0x80000000 --root 0x80010000 0xfffff000
  barewire-iommu explain --level 3 0x0060000050001f43
  barewire-iommu bench --json

Exit codes:
  0    done
  1    it failed; stderr says why
  2    wrong usage
  3    walk: the device would fault there
  130  stopped by Ctrl-C (or SIGTERM)";

#[derive(Parser, Debug)]
#[command(
    name = "barewire-iommu",
    version,
    about = "IO page tables and their TLB invalidations: measure, explain and replay them",
    after_help = AFTER_HELP,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Time map_sg and unmap against hand-written floors and three other crates, and count the TLB
    /// invalidations by strategy
    Bench(bench::Args),
    /// Explain what a walker does with an IOVA in a dumped table, level by level
    Walk(walk::Args),
    /// Name the fields of descriptors
    Explain(explain::Args),
    /// Replay a kernel's trace of maps and unmaps under every strategy: invalidations, refills, time
    Replay(replay::Args),
}

impl Verb {
    /// Its name, for errors.
    fn name(&self) -> &'static str {
        match self {
            Verb::Bench(_) => "bench",
            Verb::Walk(_) => "walk",
            Verb::Explain(_) => "explain",
            Verb::Replay(_) => "replay",
        }
    }

    fn run(&self) -> Result<(), Failure> {
        match self {
            Verb::Bench(args) => bench::run(args),
            Verb::Walk(args) => walk::run(args),
            Verb::Explain(args) => explain::run(args),
            Verb::Replay(args) => replay::run(args),
        }
    }
}

fn main() -> ExitCode {
    let verb = Cli::parse().verb;
    match interrupt::install().and_then(|()| verb.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure != Failure::BrokenPipe {
                note!("barewire-iommu: {}: {failure}", verb.name());
            }
            ExitCode::from(failure.code())
        }
    }
}
