//! `barewire completions`: a shell's completions, from the command's own definition.

use clap_complete::Shell;

use crate::shared::failure::Failure;
use crate::shared::output;

/// Where each shell looks for them.
const AFTER_HELP: &str = "\
  barewire completions bash > /etc/bash_completion.d/barewire
  barewire completions zsh > /usr/local/share/zsh/site-functions/_barewire
  barewire completions fish > ~/.config/fish/completions/barewire.fish";

#[derive(clap::Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Runs it.
pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<(), Failure> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::bytes(&script)
}
