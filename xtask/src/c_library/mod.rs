//! `cargo xtask c`: builds the C library and installs it below a prefix, with its headers and its pkg-config file.
//!
//! How it works: [`install`] lays the files out; [`check`] is the step of CI, which uses them as C and C++ programs do.

mod check;
mod install;
mod list;

use crate::context::{Context, Outcome};
use crate::needs::Need;
use crate::report::End;
use crate::step::{Lane, Step};

pub(crate) use install::Profile;

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "c",
    about: "the C library, by programs in C and C++ under valgrind and sanitizers",
    lane: Lane::Programs,
    minutes: 1,
    needs: &[
        Need::program("gcc", "cc"),
        Need::program("g++", "c++"),
        Need::package("make"),
        Need::package("cmake"),
        Need::program("pkgconf", "pkg-config"),
        Need::package("valgrind"),
        Need::program("python3-venv", "python3"),
    ],
    paths: &["stack/", "bench/", "bindings/", "examples/"],
    run: step,
};

/// The options of the command line.
#[derive(clap::Args, Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Where to. The installed tree may be moved: the pkg-config file is relative to itself
    #[arg(long, value_name = "DIR", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    prefix: String,
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<End, String> {
    let here = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    let prefix = here.join(&options.prefix);
    cx.console.say("c: building");
    let built = install::build(cx, Profile::Counted)?;
    for path in install::install(&cx.root, &built, &prefix)? {
        cx.console.say(&path.display().to_string());
    }
    let pc = prefix.join("lib/pkgconfig");
    cx.console.say(&format!("to use it: export PKG_CONFIG_PATH={}", pc.display()));
    Ok(End::Passed)
}

/// The step of CI.
pub(crate) fn step(cx: &Context) -> Outcome {
    check::step(cx)
}
