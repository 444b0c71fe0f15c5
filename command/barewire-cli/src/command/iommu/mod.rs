//! `barewire iommu`: IO page tables, measured, explained and replayed.

mod bench;
mod replay;
mod shape;
mod walk;

use crate::shared::failure::Failure;

/// `barewire iommu`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Time map_sg and unmap against hand-written floors and two other crates, and count the TLB
    /// invalidations by strategy
    Bench(crate::command::bench::Args),
    /// Explain what a walker does with an IOVA in a dumped table, level by level
    Walk(walk::Args),
    /// Replay a kernel's trace of maps and unmaps under every strategy: invalidations, refills, time
    Replay(replay::Args),
}

impl Args {
    /// The command as typed, for errors.
    pub(crate) fn name(&self) -> &'static str {
        match self.verb {
            Verb::Bench(_) => "iommu bench",
            Verb::Walk(_) => "iommu walk",
            Verb::Replay(_) => "iommu replay",
        }
    }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.verb {
        Verb::Bench(args) => bench::run(args),
        Verb::Walk(args) => walk::run(args),
        Verb::Replay(args) => replay::run(args),
    }
}
