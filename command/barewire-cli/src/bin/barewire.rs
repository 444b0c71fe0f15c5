//! The program `barewire`. All its code is in the library, so that tests can parse with its definition of the
//! command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    barewire_cli::main()
}
