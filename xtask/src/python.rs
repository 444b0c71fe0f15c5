//! The Python package: a virtual environment with it, its tests, and tools from PyPI.
//!
//! How it works: `pip install ./bindings/python` builds the package as a user's would, and what is installed is tested:
//! pytest's tests, the counted cost of calls among them; mypy on the package and its tests; the stubs against
//! the module. The original py-spidev, whose answers ours are compared with, runs under `barewire run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::context::{Context, Outcome, Stop};
use crate::needs::Need;
use crate::programs;
use crate::step::{Lane, Step};
use crate::tally::{SKIPPED, Tally};
use crate::tool;

/// The packages that tests import from PyPI. The first is the original py-spidev, in the version that our class
/// follows.
const PYPI: [&str; 18] = [
    "spidev==3.8",
    "pytest==9.*",
    "mypy==2.*",
    "numpy==2.*",
    "gpiozero==2.0.1.post3",
    "luma.oled==3.16.0",
    "luma.core==2.6.0",
    "luma.led_matrix==1.9.0",
    "Adafruit-MCP3008==1.0.2",
    "mcp3008==1.0.1",
    "unicornhathd==0.0.4",
    "pyarrow==26.*",
    "dask[distributed]==2026.*",
    "fsspec==2026.*",
    "duckdb==2.*",
    "perfetto==0.*",
    "protobuf==7.*",
    "pysigrok-saleae-logic2==0.0.2",
];
/// The program that builds wheels.
const MATURIN: &str = "maturin>=1.9,<2";
/// The package's folder.
const PACKAGE: &str = "bindings/python";
/// Whether a Python is new enough, and has what makes an environment.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";
/// The checks besides pytest: each is a claim and Python's arguments.
const CHECKS: [(&str, &[&str]); 3] = [
    ("the package has types", &["-m", "mypy", "-p", "barewire"]),
    (
        "tests and the example keep to the types",
        &["-m", "mypy", "--strict", "--exclude", "clients/", "tests", "../../examples/sine.py"],
    ),
    (
        "the stubs are the module's",
        &[
            "-m",
            "mypy.stubtest",
            "barewire",
            "--allowlist",
            "tests/stubtest_allowed.txt",
            "--mypy-config-file",
            "pyproject.toml",
        ],
    ),
];

/// The step of CI.
pub(crate) const STEP: Step = Step {
    name: "python",
    about: "the Python package, installed by pip",
    lane: Lane::Programs,
    minutes: 5,
    needs: &[
        Need::program("gcc", "cc"),
        Need::package("valgrind"),
        Need::program("python3-venv", "python3"),
    ],
    paths: &["stack/", "bench/", "bindings/", "scope/", "examples/"],
    run: step,
};

/// Installs the package and tests it.
pub(crate) fn step(cx: &Context) -> Outcome {
    let dir = cx.root.join(cx.target_dir("python"));
    match prepare(cx, &dir) {
        Ok(ready) => test(cx, &dir, &ready),
        Err(stop) => stop.outcome(STEP.name, cx),
    }
}

/// The environment of the tests.
struct Ready {
    python: PathBuf,
    /// The command, for the original under `barewire run`.
    barewire: PathBuf,
}

fn prepare(cx: &Context, dir: &Path) -> Result<Ready, Stop> {
    let python = environment(dir, "venv", &PYPI).map_err(Stop::Lacks)?;
    let built = programs::build(cx, &dir.join("build.log")).map_err(Stop::Broke)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"]);
    pip.arg(cx.root.join(PACKAGE));
    // As it ships but for the linker's optimisation, which takes minutes.
    pip.env("CARGO_PROFILE_DIST_LTO", "off").env("CARGO_PROFILE_DIST_CODEGEN_UNITS", "16");
    tool::run(&mut pip, &dir.join("install.log")).map_err(Stop::Broke)?;
    Ok(Ready { python, barewire: built.join("barewire") })
}

/// A virtual environment with packages from PyPI; its Python.
fn environment(dir: &Path, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let probe = Command::new("python3").args(["-c", PROBE]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Err("no python3 of 3.11 or later with venv (apt-get install python3-venv)".into());
    }
    fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    let venv = dir.join(name);
    let python = venv.join("bin/python");
    let log = dir.join(format!("{name}.log"));
    if !python.exists() {
        tool::run(Command::new("python3").args(["-m", "venv"]).arg(&venv), &log)?;
    }
    let mut pip = Command::new(&python);
    tool::run(pip.args(["-m", "pip", "install", "--quiet"]).args(packages), &log)
        .map_err(|why| format!("nothing from PyPI ({why})"))?;
    Ok(python)
}

/// Builds the wheel of an architecture into `out`; its file.
pub(crate) fn wheel(
    cx: &Context,
    cargo: &Path,
    out: &Path,
    (target, linker): (&str, &str),
    profile: &str,
    time: u64,
) -> Result<PathBuf, String> {
    let dir = cx.root.join(cx.target_dir("python"));
    let python = environment(&dir, "maturin", &[MATURIN])?;
    let made = dir.join(format!("wheel-{target}"));
    let _ = fs::remove_dir_all(&made);
    let mut maturin = Command::new(python);
    maturin.args(["-m", "maturin", "build", "--locked", "--profile", profile, "--target", target]);
    maturin.arg("--target-dir").arg(cargo).arg("--out").arg(&made);
    maturin.env(crate::static_build::variable(target, "LINKER"), linker);
    maturin.env("SOURCE_DATE_EPOCH", time.to_string()).current_dir(cx.root.join(PACKAGE));
    tool::run(&mut maturin, &dir.join(format!("wheel-{target}.log")))?;
    let entries =
        fs::read_dir(&made).map_err(|e| format!("cannot read {}: {e}", made.display()))?;
    let wheel = entries.filter_map(Result::ok).map(|entry| entry.path()).next();
    let wheel = wheel.ok_or("maturin made no wheel")?;
    let file = out.join(wheel.file_name().unwrap_or_default());
    fs::copy(&wheel, &file).map_err(|e| format!("cannot copy {}: {e}", wheel.display()))?;
    Ok(file)
}

fn test(cx: &Context, dir: &Path, ready: &Ready) -> Outcome {
    let figures = dir.join("figures");
    let _ = fs::remove_file(&figures);
    let python = |args: &[&str]| {
        let mut command = Command::new(&ready.python);
        command.args(args).current_dir(cx.root.join(PACKAGE)).stdin(Stdio::null());
        command.env("BAREWIRE", &ready.barewire).env("BAREWIRE_FIGURES", &figures);
        command.env("PYTHONDONTWRITEBYTECODE", "1").env("MYPY_CACHE_DIR", dir.join("mypy"));
        command
    };
    let ran = python(&["-m", "pytest", "-rs", "--color=no"]).output();
    let said = match &ran {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => format!("pytest did not start: {error}"),
    };
    let success = ran.is_ok_and(|output| output.status.success());
    let mut tally = read(&said);
    if !success {
        cx.console.say(&said);
        // Its last lines name the tests that failed, and why.
        let last = said.lines().rev().take(40).collect::<Vec<_>>();
        tally.failures.extend(last.into_iter().rev().map(str::to_owned));
    }
    // A run that broke without a failed test is a failure too.
    tally.failed = tally.failed.max(u64::from(!success));
    for (what, args) in CHECKS {
        match tool::answer(&mut python(args)) {
            Ok(_) => tally.passed += 1,
            Err(why) => {
                cx.console.say(&format!("FAILED: {what}\n{why}"));
                // mypy's findings are on its standard output.
                let again = python(args).output().map(|output| output.stdout).unwrap_or_default();
                cx.console.say(&String::from_utf8_lossy(&again));
                tally.failed += 1;
                tally.failures.push(format!("{what}: {why}"));
            }
        }
    }
    let found = fs::read_to_string(&figures).unwrap_or_default();
    found.lines().for_each(|line| tally.scan(line));
    found.lines().for_each(|line| cx.console.say(line));
    let all_ran = tally.skipped.is_empty() || !cx.ci;
    Outcome::of_tests(tally.failed == 0 && all_ran, tally)
}

/// Parses pytest's output: its last line, and a line for each skip.
fn read(said: &str) -> Tally {
    let mut tally = Tally::default();
    for line in said.lines() {
        if let Some(why) = line.strip_prefix("SKIPPED [") {
            tally.skipped.push(format!("{SKIPPED} python: [{why}"));
        }
    }
    let summary = said.lines().rev().find(|line| line.contains(" in ") && line.contains("passed"));
    let counts = summary.and_then(|line| line.split_once(" in ")).map_or("", |(counts, _)| counts);
    for count in counts.trim_matches(['=', ' ']).split(", ") {
        let Some((number, word)) = count.split_once(' ') else { continue };
        let number = number.parse().unwrap_or(0);
        match word {
            "passed" => tally.passed = number,
            "failed" | "error" | "errors" => tally.failed += number,
            _ => {}
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pytest_says_is_counted() {
        let tally = read(
            "....\nSKIPPED [1] tests/test_speed.py:81: no valgrind\n1 failed, 30 passed, 1 skipped, 2 errors in 9.25s\n",
        );
        assert_eq!((tally.passed, tally.failed), (30, 3));
        assert_eq!(tally.skipped, ["SKIPPED: python: [1] tests/test_speed.py:81: no valgrind"]);
        assert_eq!(read("===== 7 passed in 0.10s =====").passed, 7);
        assert_eq!(read("203 passed, 1 warning in 75.31s (0:01:15)").passed, 203);
    }

    #[test]
    fn a_run_that_says_nothing_counts_nothing() {
        assert_eq!(read("no tests ran in 0.01s"), Tally::default());
        assert_eq!(read(""), Tally::default());
        assert_eq!(read("ImportError: passed in vain"), Tally::default());
    }
}
