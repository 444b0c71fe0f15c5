//! barewire's own chores, run as `cargo xtask COMMAND`.
//!
//! [`ci`] is the whole of CI, so that a contributor and the build machine run the same thing;
//! [`tidy`] holds the house rules that no compiler knows. This crate uses the standard library
//! only: it is what builds first on a clean clone, and what must work when everything else broke.

mod backports;
mod c_library;
mod child;
mod ci;
mod clients;
mod console;
mod dist;
mod guests;
mod nearest;
mod python;
mod report;
mod static_build;
mod tally;
mod tidy;
mod tool;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use ci::{STEPS, Step};
use console::Console;

/// What the command line asked for.
#[derive(Debug, PartialEq)]
enum Command {
    Help,
    Tidy,
    Ci(Vec<&'static Step>),
    Guests(guests::Options),
    GuestsHelp,
    Clients(Vec<&'static clients::Client>),
    ClientsHelp,
    Dist(dist::Options),
    DistHelp,
    C(c_library::Options),
    CHelp,
}

/// The exit code of a command line that cannot be understood, as in most Unix tools.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.is_empty() {
        eprint!("{}", help());
        return ExitCode::from(USAGE_ERROR);
    }
    let command = match parse(&args) {
        Ok(command) => command,
        Err(message) => {
            eprintln!("error: {message}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    match execute(&command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command; `false` is a check that failed and has said why.
fn execute(command: &Command) -> Result<bool, String> {
    let console = Console::detect();
    match command {
        Command::Help => {
            console.say(help().trim_end());
            Ok(true)
        }
        Command::Tidy => tidy::run(&root()?, &console).map(|findings| findings == 0),
        Command::Ci(steps) => Ok(ci::run(steps, &ci::Context::new(root()?, console))),
        Command::Guests(options) => guests::run(options, &ci::Context::new(root()?, console)),
        Command::GuestsHelp => {
            console.say(guests::help().trim_end());
            Ok(true)
        }
        Command::Clients(only) => Ok(clients::run(only, &ci::Context::new(root()?, console))),
        Command::ClientsHelp => {
            console.say(clients::help().trim_end());
            Ok(true)
        }
        Command::Dist(options) => dist::run(options, &ci::Context::new(root()?, console)),
        Command::DistHelp => {
            console.say(dist::help().trim_end());
            Ok(true)
        }
        Command::C(options) => c_library::run(options, &ci::Context::new(root()?, console)),
        Command::CHelp => {
            console.say(c_library::help().trim_end());
            Ok(true)
        }
    }
}

/// Reads the command line.
fn parse(args: &[String]) -> Result<Command, String> {
    let (command, rest) = args.split_first().ok_or("no command given")?;
    match command.as_str() {
        "help" | "--help" | "-h" => Ok(Command::Help),
        "tidy" => match rest.first() {
            None => Ok(Command::Tidy),
            Some(extra) => Err(format!("`tidy` takes no arguments, got `{extra}`")),
        },
        "ci" => parse_ci(rest),
        "clients" if rest.iter().any(|arg| arg == "--help" || arg == "-h") => {
            Ok(Command::ClientsHelp)
        }
        "clients" => clients::parse(rest).map(Command::Clients),
        "guests" if rest.iter().any(|arg| arg == "--help" || arg == "-h") => {
            Ok(Command::GuestsHelp)
        }
        "guests" => guests::parse(rest).map(Command::Guests),
        "dist" if rest.iter().any(|arg| arg == "--help" || arg == "-h") => Ok(Command::DistHelp),
        "dist" => dist::parse(rest).map(Command::Dist),
        "c" if rest.iter().any(|arg| arg == "--help" || arg == "-h") => Ok(Command::CHelp),
        "c" => c_library::parse(rest).map(Command::C),
        other => Err(nearest::unknown(
            "command",
            other,
            &["c", "ci", "clients", "dist", "guests", "tidy", "help"],
        )),
    }
}

/// Reads what follows `ci`: nothing, or which steps.
fn parse_ci(args: &[String]) -> Result<Command, String> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let names = match arg.split_once('=') {
            Some(("--step", names)) => names,
            _ if arg == "--step" => args.next().ok_or_else(|| {
                format!("`--step` needs a name, one of: {}", step_names().join(", "))
            })?,
            _ => return Err(nearest::unknown("option", arg, &["--step"])),
        };
        wanted.extend(names.split(','));
    }
    for name in &wanted {
        if !step_names().contains(name) {
            return Err(nearest::unknown("step", name, &step_names()));
        }
    }
    // In the order of CI, whatever the order asked: later steps lean on what `tools` installs.
    let chosen = |step: &&Step| wanted.is_empty() || wanted.contains(&step.name);
    Ok(Command::Ci(STEPS.iter().filter(chosen).collect()))
}

fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// The help text; its list of steps is the table that runs them.
fn help() -> String {
    let mut text = String::from(
        "barewire's own chores.\n\n\
         usage: cargo xtask COMMAND\n\n\
         commands:\n  \
         ci                        everything CI checks\n  \
         c --prefix DIR            the C library, installed there\n  \
         ci --step NAME[,NAME]     single steps of it\n  \
         clients [CLIENT…]         programs nobody here wrote, unmodified; --help names them\n  \
         guests [BOARD[/BOOT]…]    barewire under stock kernels on emulated boards; --help says more\n  \
         dist [ARCHITECTURE…]      static binaries, archives, packages and wheels; --help says more\n  \
         tidy                      the house rules alone\n  \
         help                      this text\n\n\
         steps of ci:\n",
    );
    for step in STEPS {
        text += &format!("  {:<14}{}\n", step.name, step.about);
    }
    text += "\nenvironment:\n  \
             BAREWIRE_NO_INSTALL=1     install nothing, print what is missing\n  \
             CI=true                   a tool that stays missing is a failure\n  \
             CARGO_TARGET_DIR=DIR      build there instead of in target\n";
    text
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
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    fn names(line: &str) -> Vec<&'static str> {
        match parsed(line) {
            Ok(Command::Ci(steps)) => steps.iter().map(|step| step.name).collect(),
            other => panic!("`{line}` is no ci run: {other:?}"),
        }
    }

    #[test]
    fn plain_ci_runs_every_step() {
        assert_eq!(names("ci"), step_names());
        assert_eq!(names("ci --step guests"), ["guests"]);
    }

    #[test]
    fn chosen_steps_run_in_the_order_of_ci() {
        assert_eq!(names("ci --step tidy,fmt"), ["fmt", "tidy"]);
        assert_eq!(names("ci --step=tidy --step fmt"), ["fmt", "tidy"]);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_near_one() {
        let message = parsed("ci --step clipy").expect_err("no such step");
        assert!(message.contains("`clipy`") && message.contains("`clippy`"), "{message}");
        let message = parsed("tidi").expect_err("no such command");
        assert!(message.contains("`tidi`") && message.contains("`tidy`"), "{message}");
        let message = parsed("ci --stpe fmt").expect_err("no such option");
        assert!(message.contains("`--step`"), "{message}");
    }

    #[test]
    fn a_step_option_without_a_name_is_refused() {
        assert!(parsed("ci --step").is_err());
        assert!(parsed("ci --step=").is_err());
        assert!(parsed("ci --step fmt,,tidy").is_err());
    }

    #[test]
    fn tidy_and_help_are_understood() {
        assert_eq!(parsed("tidy"), Ok(Command::Tidy));
        assert!(parsed("tidy now").is_err());
        assert_eq!(parsed("--help"), Ok(Command::Help));
    }

    #[test]
    fn help_names_every_step() {
        let text = help();
        assert!(step_names().iter().all(|name| text.contains(name)), "{text}");
    }
}
