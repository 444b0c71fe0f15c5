//! The error of a command that was given no bus: how to find one, and how to try the command without.
//!
//! No command that does a job on a chip has a default bus. If one had, `flash verify` would compare a file
//! with a simulated chip where `--bus` was forgotten, and its exit code would say that the board's chip is
//! right.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

const TIPS: [&str; 3] = [
    "`barewire doctor` finds the buses of this machine",
    "--bus sim:imx8mp is a simulated board, to try it on (adc: sim:rpi3); `barewire list` names all",
    "the environment variable BAREWIRE_BUS names the bus of all commands that are given none",
];

/// `error`; if it says that no bus is named, with tips for the user.
pub(crate) fn explained(mut error: Error) -> Error {
    let is_the_bus = |argument: &String| argument.starts_with("--bus ");
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
        && missing.iter().any(is_the_bus)
    {
        let tips = TIPS.map(StyledStr::from).into();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}
