//! `barewire man`: the manual pages, one for each command, from the command's own definition.

use std::path::PathBuf;

use crate::shared::failure::Failure;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The directory; made if there is none
    directory: PathBuf,
}

/// Runs it.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<(), Failure> {
    let directory = &args.directory;
    let wrong =
        |error| Failure::io(format!("write manual pages into {}", directory.display()), &error);
    std::fs::create_dir_all(directory).map_err(wrong)?;
    clap_mangen::generate_to(command, directory).map_err(wrong)
}
