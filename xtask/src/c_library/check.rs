//! The step of CI: the library is installed into a scratch prefix and used there; its interface is as reviewed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::install::{self, Profile};
use super::list::{CHECKS, Check, SKIPS, VALGRIND};
use crate::context::{Context, Outcome, Stop};
use crate::tally::{SKIPPED, Tally};

/// If it is set, the reviewed files are written anew; then review the difference.
const BLESS: &str = "BAREWIRE_BLESS";

/// The step: each check counts as a test.
pub(super) fn step(cx: &Context) -> Outcome {
    match all(cx) {
        Ok(tally) => Outcome::of_tests(tally.failed == 0, tally),
        Err(why) => Stop::Broke(why).outcome("c", cx),
    }
}

/// Where the checks run.
struct Place {
    root: PathBuf,
    prefix: PathBuf,
    scratch: PathBuf,
}

fn all(cx: &Context) -> Result<Tally, String> {
    let dir = cx.root.join(cx.target_dir("c"));
    let place =
        Place { root: cx.root.clone(), prefix: dir.join("prefix"), scratch: dir.join("scratch") };
    let built = install::build(cx, Profile::Ci)?;
    // Otherwise files of an earlier run would be judged.
    for dir in [&place.prefix, &place.scratch] {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    install::install(&cx.root, &built, &place.prefix)?;
    let mut tally = Tally::default();
    let mut note = |name: &str, held: Result<(), String>| match held {
        Ok(()) => {
            tally.passed += 1;
            cx.console.say(&format!("c: {name}"));
        }
        Err(why) if !cx.ci && why.starts_with(&format!("exit status: {SKIPS}\n")) => {
            let line = format!("{SKIPPED} c: {name}: what it needs was not obtained");
            cx.console.say(&line);
            tally.skipped.push(line);
        }
        Err(why) => {
            tally.failed += 1;
            cx.console.say(&format!("c: FAILED: {name}: {why}"));
            tally.failures.push(format!("{name}: {why}"));
        }
    };
    for check in CHECKS {
        note(check.name, place.shell(check));
    }
    note("sizes and offsets are as reviewed", place.abi());
    note("the library exports what was reviewed, and nothing else", place.symbols());
    Ok(tally)
}

impl Place {
    fn shell(&self, check: &Check) -> Result<(), String> {
        self.answer("sh", &["-euc", check.script]).map(drop)
    }

    /// Runs a program in the scratch directory. Returns its output.
    fn answer(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let lib = self.prefix.join("lib");
        let output = Command::new(program)
            .args(args)
            .current_dir(&self.scratch)
            .env("ROOT", &self.root)
            .env("PREFIX", &self.prefix)
            .env("PKG_CONFIG_PATH", lib.join("pkgconfig"))
            .env("LD_LIBRARY_PATH", &lib)
            .env("VALGRIND", VALGRIND)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run {program}: {e}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        match output.status.success() {
            true => Ok(said),
            false => {
                let said = said + &String::from_utf8_lossy(&output.stderr);
                Err(format!("{}\n{said}", output.status))
            }
        }
    }

    fn abi(&self) -> Result<(), String> {
        let table = self.answer("tests/abi", &[])?;
        let header = self.root.join("bindings/c/include/barewire.h");
        let header = fs::read_to_string(&header).map_err(|e| e.to_string())?;
        for line in header.lines() {
            if let Some(name) = line.strip_prefix("} ").and_then(|rest| rest.strip_suffix(';'))
                && !table.lines().any(|line| line.split(' ').next() == Some(name))
            {
                return Err(format!("tests/c/abi.c does not print {name}"));
            }
        }
        self.reviewed("abi.txt", &table)
    }

    fn symbols(&self) -> Result<(), String> {
        let library = self.prefix.join("lib/libbarewire.so").to_string_lossy().into_owned();
        let said = self.answer("nm", &["-D", "--defined-only", "--format=posix", &library])?;
        let symbols = said.lines().filter_map(|line| line.split(' ').next());
        let mut symbols: Vec<&str> = symbols.collect();
        symbols.sort_unstable();
        self.reviewed("symbols.txt", &(symbols.join("\n") + "\n"))
    }

    /// Compares with a reviewed file, or writes it.
    fn reviewed(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.root.join("bindings/c/tests/snapshots").join(name);
        if std::env::var_os(BLESS).is_some() {
            fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
            return Err(format!("{}: written: review and run again", path.display()));
        }
        differ(&path, &fs::read_to_string(&path).unwrap_or_default(), text)
    }
}

/// Which lines are only in one of them.
fn differ(path: &Path, reviewed: &str, text: &str) -> Result<(), String> {
    if reviewed == text {
        return Ok(());
    }
    let gone = reviewed.lines().filter(|line| !text.lines().any(|other| other == *line));
    let new = text.lines().filter(|line| !reviewed.lines().any(|other| other == *line));
    let lines: Vec<String> =
        gone.map(|line| format!("- {line}")).chain(new.map(|line| format!("+ {line}"))).collect();
    Err(format!("not as reviewed in {}:\n{}", path.display(), lines.join("\n")))
}
