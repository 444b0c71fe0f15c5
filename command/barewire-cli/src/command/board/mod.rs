//! `barewire board`: files of simulated boards, a user's own and the shipped ones.

mod new;
mod show;

use crate::shared::failure::Failure;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Verb {
    /// Write a commented file of a board of your own, to be changed: --bus sim:FILE
    New(new::Args),
    /// Print the file of a shipped board
    Show(show::Args),
}

/// Runs it.
pub(crate) fn run(verb: &Verb) -> Result<(), Failure> {
    match verb {
        Verb::New(args) => new::run(args),
        Verb::Show(args) => show::run(args),
    }
}
