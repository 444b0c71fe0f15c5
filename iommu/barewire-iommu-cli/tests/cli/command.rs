//! Running the command.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Starts a command, waits until it handles SIGINT and for `work` from then on, and interrupts it.
///
/// A time alone is not enough: on a busy machine a program may take longer to begin.
pub(super) fn interrupted(mut command: Command, work: Duration) -> Ran {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let id = child.id().to_string();
    let begun = Instant::now();
    while !handles_interrupt(&id) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never handled SIGINT");
        sleep(Duration::from_millis(5));
    }
    sleep(work);
    let status = Command::new("kill").args(["-INT", &id]).status();
    assert!(status.expect("kill is there").success());
    child.wait_with_output().expect("it ends").into()
}

/// Whether a process has a handler for SIGINT, which is signal 2, by the mask `SigCgt` of proc(5). Also if it has
/// ended: then there is nothing to wait for.
fn handles_interrupt(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let caught = field("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    field("State:").is_none_or(|state| state.starts_with('Z'))
        || caught.is_some_and(|mask| mask & 1 << 1 != 0)
}

/// The output of a run of the command.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Ran {
    /// Asserts success.
    #[track_caller]
    pub(super) fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Asserts exit code `code` and an error in one line that holds `part`.
    #[track_caller]
    pub(super) fn fails(self, code: i32, part: &str) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        let error = self.stderr.lines().rfind(|line| line.starts_with("barewire-iommu: "));
        let error = error.unwrap_or_else(|| panic!("no error line: {self:?}"));
        assert!(error.contains(part), "{part:?} is not in {error:?}");
        self
    }

    /// Asserts a usage error whose text holds `part`.
    #[track_caller]
    pub(super) fn misused(self, part: &str) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert!(self.stderr.contains(part), "{part:?} is not in {self:?}");
        assert!(self.stdout.is_empty(), "{self:?}");
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("UTF-8 on stdout")
    }

    /// Stdout as the one line of JSON it has to be.
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("UTF-8 on stderr");
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// The command, not yet run.
pub(super) fn barewire_iommu(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_barewire-iommu"));
    command.args(arguments);
    command
}

pub(super) fn run(arguments: &[&str]) -> Ran {
    barewire_iommu(arguments).output().expect("the command starts").into()
}

/// Runs the command with `input` on its stdin.
pub(super) fn run_with_input(mut command: Command, input: &str) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // It may fail before it has read all.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends").into()
}

pub(super) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").into()
}
