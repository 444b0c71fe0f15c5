//! `barewire iommu`: IO page tables, measured, explained and replayed.

mod bench;

use crate::failure::Failure;

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
    Bench(bench::Args),
}

impl Args {
    /// The command as typed, for errors.
    pub(crate) fn name(&self) -> &'static str {
        match self.verb {
            Verb::Bench(_) => "iommu bench",
        }
    }
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    match &args.verb {
        Verb::Bench(args) => bench::run(args),
    }
}
