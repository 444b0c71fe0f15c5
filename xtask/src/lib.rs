//! barewire's own chores, run as `cargo xtask COMMAND`.
//!
//! `ci` is the whole of CI, so that a contributor and the build machine run the same thing;
//! `tidy` holds the house rules that no compiler knows. A library, so that the test of the pages can ask
//! whether a command that they name exists.

mod backports;
mod c_library;
mod check;
mod child;
mod ci;
mod clients;
mod console;
mod context;
mod dist;
mod faults;
mod guests;
mod kernel_object;
mod linted;
mod linux_on_sim;
mod needs;
mod programs;
mod python;
mod report;
mod size;
mod static_build;
mod step;
mod tally;
mod tidy;
mod tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

use console::Console;
use context::Context;
use report::End;

#[derive(Parser, Debug)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    about = "barewire's own chores",
    after_help = "Exit codes: 0 done; 1 something failed; 2 wrong usage; 3 nothing failed, but something could not run \
                  on this machine.\n\
                  CARGO_TARGET_DIR names another directory for builds. CI=true says that this is a build machine: \
                  what is missing is installed, and what stays missing is a failure.",
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Format, house rules, lints and all tests that need nothing but the compiler; installs nothing
    Test,
    /// Everything: `test`, model checkers, Miri, other targets, programs of others, packages, guests
    #[command(after_long_help = ci::list())]
    Ci(CiArgs),
    /// The house rules alone
    Tidy,
    /// barewire under stock Debian kernels, on boards that QEMU emulates
    #[command(after_help = guests::list())]
    Guests {
        #[command(flatten)]
        options: guests::Options,
        #[command(flatten)]
        install: Install,
    },
    /// The kernel module in place of Linux's drivers, under stock Debian kernels
    #[command(after_help = guests::module::list())]
    Kernel {
        #[command(flatten)]
        options: guests::module::Options,
        #[command(flatten)]
        install: Install,
    },
    /// Linux's own SPI and chip drivers, unmodified, on the simulated boards
    #[command(after_help = linux_on_sim::list())]
    LinuxOnSim {
        #[command(flatten)]
        options: linux_on_sim::Options,
        #[command(flatten)]
        install: Install,
    },
    /// Programs nobody here wrote, unmodified, on simulated and emulated boards
    #[command(after_help = clients::list())]
    Clients {
        #[command(flatten)]
        options: clients::Options,
        #[command(flatten)]
        install: Install,
    },
    /// Plant ten faults in the bus, one at a time in a copy of the tree: the judge of `barewire bound` has to find each
    Faults,
    /// Static binaries, archives, Debian packages and Python wheels, with checksums, in target/dist
    Dist {
        #[command(flatten)]
        options: dist::Options,
        #[command(flatten)]
        install: Install,
    },
    /// The code of whole firmware programs in bytes, by block and path, compared with a reviewed table
    #[command(
        after_help = "BAREWIRE_BLESS=1 writes examples/firmware-size/sizes.txt anew, and fails."
    )]
    Size(Install),
    /// Build the C library and install it: libbarewire.so and .a, barewire.h, barewire.hpp, barewire.pc
    C(c_library::Options),
}

#[derive(Args, Clone, Debug, Default)]
struct Install {
    /// Install what is missing: packages by apt, toolchains by rustup, cargo-deny by cargo
    #[arg(long)]
    install: bool,
}

#[derive(Args, Debug)]
struct CiArgs {
    /// Leave out the steps of `cargo xtask test`
    #[arg(long)]
    rest: bool,
    /// Single steps, in the order of CI; `--help` lists them
    #[arg(long = "step", value_name = "NAME", value_delimiter = ',',
          value_parser = PossibleValuesParser::new(ci::names()), hide_possible_values = true)]
    steps: Vec<String>,
    /// Only steps that have something to check: where the tree differs from its merge base with COMMIT
    /// (unless told, the upstream branch or main)
    #[arg(long, value_name = "COMMIT", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    changed: Option<String>,
    #[command(flatten)]
    install: Install,
}

/// The command line, for the test that a page's commands exist.
#[must_use]
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    let Cli { command } = Cli::parse();
    match execute(&command) {
        Ok(end) => ExitCode::from(end.code()),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &Command) -> Result<End, String> {
    let (root, console) = (root()?, Console::detect());
    let cx = |install: &Install| Context::new(root.clone(), console, install.install);
    match command {
        Command::Test => Ok(ci::test(&cx(&Install::default()))),
        Command::Ci(CiArgs { rest, steps, changed, install }) => {
            let only = steps.clone();
            let choice = ci::Choice { rest: *rest, only, changed: changed.clone() };
            ci::ci(&choice, &cx(install))
        }
        Command::Tidy => tidy::run(&root, &console).map(|findings| End::of_check(findings == 0)),
        Command::Guests { options, install } => guests::run(options, &cx(install)),
        Command::Kernel { options, install } => guests::module::run(options, &cx(install)),
        Command::LinuxOnSim { options, install } => linux_on_sim::run(options, &cx(install)),
        Command::Clients { options, install } => Ok(clients::run(options, &cx(install))),
        Command::Faults => faults::run(&root, console),
        Command::Dist { options, install } => dist::run(options, &cx(install)),
        Command::Size(install) => Ok(size::run(&cx(install))),
        Command::C(options) => c_library::run(options, &cx(&Install::default())),
    }
}

/// The workspace's root: the nearest directory upward that holds this crate.
///
/// Found at run time, so that a build directory that moved with its checkout still works.
fn root() -> Result<PathBuf, String> {
    let here = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    here.ancestors()
        .find(|dir| dir.join("xtask/Cargo.toml").is_file())
        .map(PathBuf::from)
        .ok_or_else(|| "not inside a barewire checkout; run this from one".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let words = ["xtask"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).map(|cli| cli.command).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn ci_takes_steps_changes_and_leave_to_install() {
        let Ok(Command::Ci(args)) = parsed("ci --rest --step tidy,fmt --step test --install")
        else {
            panic!("it is understood");
        };
        assert!(args.rest && args.install.install && args.changed.is_none());
        assert_eq!(args.steps, ["tidy", "fmt", "test"]);
        let base = |line| match parsed(line) {
            Ok(Command::Ci(args)) => args.changed,
            other => panic!("{other:?}"),
        };
        assert_eq!(base("ci --changed"), Some(String::new()));
        assert_eq!(base("ci --changed=v1"), Some("v1".into()));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_near_one() {
        for (line, near) in [
            ("ci --step clipy", "clippy"),
            ("tidi", "tidy"),
            ("ci --stpe fmt", "--step"),
            ("guests raspi3", "raspi3b"),
            ("guests raspi3b/maped", "raspi3b/mapped"),
            ("linux-on-sim imx8m", "imx8mp"),
            ("clients spi-pip", "spi-pipe"),
            ("dist arm46", "arm64"),
        ] {
            let message = parsed(line).expect_err("no such name");
            assert!(message.contains(near), "{line}: {message}");
        }
    }

    #[test]
    fn what_has_no_value_is_refused() {
        for line in [
            "ci --step",
            "ci --step=",
            "ci --step fmt,,tidy",
            "tidy now",
            "test now",
            "c",
            "c --prefix=",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_help_of_ci_names_every_step() {
        let help = ci::list();
        assert!(ci::names().iter().all(|name| help.contains(name)), "{help}");
    }
}
