//! `barewire board show`: a shipped board's file.

use barewire_sim::BoardSpec;
use barewire_sim::board::board_names;

use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::text::near;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The board's name, as in `barewire list`, with or without sim:
    #[arg(value_name = "BOARD")]
    board: String,
}

/// Runs it.
pub(super) fn run(args: &Args) -> Result<(), Failure> {
    output::text(text(&args.board)?)
}

/// The file of the shipped board of that name.
pub(super) fn text(name: &str) -> Result<&'static str, Failure> {
    let name = name.strip_prefix("sim:").unwrap_or(name);
    BoardSpec::text_of(name).ok_or_else(|| {
        Failure::Usage(match std::path::Path::new(name).is_file() {
            true => {
                format!("{name} is a file already: `barewire list {name}` says what it describes")
            }
            false => near::unknown("simulated board", name, &board_names()),
        })
    })
}
