//! `cargo xtask c`: builds the C library and installs it below a prefix, with its headers and its pkg-config file.
//!
//! How it works: [`install`] lays the files out; [`check`] is the step of CI, which uses them as C and C++ programs do.

mod check;
mod install;
mod list;

use std::path::PathBuf;

use crate::ci::{Context, Outcome};
use crate::nearest;

pub(crate) use install::Profile;

/// What the command line asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    prefix: PathBuf,
}

/// The help text.
pub(crate) fn help() -> String {
    "Builds the C library and installs it: libbarewire.so, libbarewire.a, barewire.h, barewire.hpp, barewire.pc.\n\n\
     usage: cargo xtask c --prefix DIR\n\n\
     The installed tree may be moved: the pkg-config file is relative to itself.\n"
        .into()
}

/// Reads what follows `c`: where to.
pub(crate) fn parse(args: &[String]) -> Result<Options, String> {
    let mut prefix = None;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let dir = match arg.split_once('=') {
            Some(("--prefix", dir)) => dir,
            _ if arg == "--prefix" => args.next().ok_or("`--prefix` needs a directory")?,
            _ => return Err(nearest::unknown("option", arg, &["--prefix"])),
        };
        prefix = Some(PathBuf::from(dir));
    }
    let prefix = prefix.filter(|prefix| !prefix.as_os_str().is_empty());
    Ok(Options { prefix: prefix.ok_or("where to? `cargo xtask c --prefix DIR`")? })
}

/// The command.
pub(crate) fn run(options: &Options, cx: &Context) -> Result<bool, String> {
    let here = std::env::current_dir().map_err(|e| format!("no current directory: {e}"))?;
    let prefix = here.join(&options.prefix);
    cx.console.say("c: building");
    let built = install::build(cx, Profile::Release)?;
    for path in install::install(&cx.root, &built, &prefix)? {
        cx.console.say(&path.display().to_string());
    }
    let pc = prefix.join("lib/pkgconfig");
    cx.console.say(&format!("to use it: export PKG_CONFIG_PATH={}", pc.display()));
    Ok(true)
}

/// The step of CI.
pub(crate) fn step(cx: &Context) -> Outcome {
    check::step(cx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_needed() {
        let parsed =
            |line: &str| parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>());
        assert_eq!(parsed("--prefix x").expect("given").prefix, PathBuf::from("x"));
        assert_eq!(parsed("--prefix=x/y").expect("given").prefix, PathBuf::from("x/y"));
        assert!(parsed("").expect_err("none").contains("--prefix DIR"));
        assert!(parsed("--prefix").is_err() && parsed("--prefix=").is_err());
        assert!(parsed("--prefx x").expect_err("no such").contains("`--prefix`"));
    }
}
