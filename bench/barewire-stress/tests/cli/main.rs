//! The program as its users run it.

mod stress;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The output of a run of the program.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// Asserts success.
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Asserts exit code `code` and an error that holds `part`.
    #[track_caller]
    fn fails(self, code: i32, part: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        let error = self.stderr.lines().rfind(|line| line.starts_with("barewire-stress: "));
        assert!(error.is_some_and(|error| error.contains(part)), "{part:?} is not in {self:?}");
        self
    }

    fn text(self) -> String {
        self.stdout
    }

    /// Stdout as the one line of JSON it has to be.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// The program that cargo built with the test, or the one in the directory `BAREWIRE_PROGRAMS`.
fn program(arguments: &[&str]) -> Command {
    let built = env!("CARGO_BIN_EXE_barewire-stress").into();
    let programs = std::env::var_os("BAREWIRE_PROGRAMS").map(PathBuf::from);
    let mut command = Command::new(programs.map_or(built, |dir| dir.join("barewire-stress")));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> Ran {
    program(arguments).output().expect("the program starts").into()
}

/// Starts the program and interrupts it after a second of processor time: a time by the clock may be too
/// short on a busy machine.
fn interrupted(arguments: &[&str]) -> Ran {
    let child = program(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let id = child.id().to_string();
    let begun = Instant::now();
    while ticks(&id) < 100 {
        assert!(begun.elapsed() < Duration::from_secs(120), "it does nothing");
        sleep(Duration::from_millis(10));
    }
    let status = Command::new("kill").args(["-INT", &id]).status();
    assert!(status.expect("kill is there").success());
    child.wait_with_output().expect("it ends").into()
}

/// The processor time of a process in its own code, `utime` of proc(5): hundredths of a second.
fn ticks(id: &str) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
    let fields = stat.rsplit_once(')').expect("a name in parentheses").1;
    let utime = fields.split_whitespace().nth(11).expect("14 fields");
    utime.parse().expect("a number")
}
