//! The program `barewire`. All of it is in the library, whose definition of the command line tests parse with.

use std::process::ExitCode;

fn main() -> ExitCode {
    barewire_cli::main()
}
