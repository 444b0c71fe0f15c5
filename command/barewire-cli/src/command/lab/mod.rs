//! `barewire lab`: published experiments replayed on simulated kernels, beside barewire.
//!
//! # How it works
//! `barewire-lab` does the work; this folder prints it. Figures are called *published* or *simulated*, never
//! *measured*. Ctrl-C ends a verb at once, since no verb leaves anything half done that matters.

mod explain;
mod fit;
mod gain;
mod given;
mod list;
mod own;
mod page;
mod run;
mod sweep;

use crate::shared::failure::Failure;

/// `barewire lab`.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// List the experiments, or the published figures
    List(list::Args),
    /// Write a commented experiment of your own, to be changed and run
    New(own::new::Args),
    /// Replay all experiments: published, simulated and barewire's figures, and the score; or run your own
    Run(run::Args),
    /// Take a figure apart, step by step, as a table and on a timeline
    Explain(explain::Args),
    /// Vary one parameter of a path: a table, and where one way begins to be better than another
    Sweep(Box<sweep::Args>),
    /// Fit costs: to the published figures of the fit set, to your own figures, or a profile from a kernel's trace
    Fit(fit::Args),
    /// Show where the time of your messages goes, and what each measure saves: of an experiment of your own, or a trace
    Gain(gain::Args),
    /// Write all of it into one HTML page, without scripts and without a network
    Report(page::Args),
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::List(args) => list::run(args),
        Verb::New(args) => own::new::run(args),
        Verb::Run(args) => run::run(args),
        Verb::Explain(args) => explain::run(args),
        Verb::Sweep(args) => sweep::run(args),
        Verb::Fit(args) => fit::run(args),
        Verb::Gain(args) => gain::run(args),
        Verb::Report(args) => page::run(args),
    }
}
