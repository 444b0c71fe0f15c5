//! Running the command, and files for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use barewire_sim::random::SplitMix64;
use serde_json::Value;
use tempfile::TempDir;

use super::program::program;

pub(super) const IMX8MP_SIZE: usize = 32 << 20;
pub(super) const SABRELITE_SIZE: usize = 2 << 20;

/// Whether tests run whole which take minutes in a debug build: in an optimised one, and where
/// `BAREWIRE_WHOLE` is set, as CI does, whose tests are optimised and keep the debug checks.
pub(super) fn runs_whole() -> bool {
    !cfg!(debug_assertions) || std::env::var_os("BAREWIRE_WHOLE").is_some()
}

/// Starts a command, waits until it handles SIGINT and has [worked](works_for) for `work_ms`, and interrupts it.
pub(super) fn interrupted(command: Command, work_ms: u64) -> Ran {
    interrupted_after(command, |id| works_for(id, work_ms)).1
}

/// The memory that a command may gain between two looks at it. Allocators and the kernel round.
pub(super) const GROWTH_MAX_KB: u64 = 1_024;

/// As [`interrupted`], after so much work that a command which keeps something of each step takes more
/// memory: it may not.
#[track_caller]
pub(super) fn interrupted_without_growth(command: Command) -> Ran {
    let ((before_kb, after_kb), ran) = interrupted_after(command, |id| {
        works_for(id, 400);
        let before_kb = resident_kb(id);
        works_for(id, 2_000);
        (before_kb, resident_kb(id))
    });
    assert!(after_kb <= before_kb + GROWTH_MAX_KB, "{before_kb} kB, then {after_kb} kB: {ran:?}");
    ran
}

/// The resident memory of a process, without pages of its program's file, which the kernel drops and reads
/// again as it likes: `RssAnon` of proc(5), a part of `VmRSS`. Of one that has ended it is 0.
pub(super) fn resident_kb(id: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    field.and_then(|field| field.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// Starts a command, waits until it handles SIGINT, lets `meanwhile` look at it by its id, and interrupts it.
fn interrupted_after<T>(mut command: Command, meanwhile: impl FnOnce(&str) -> T) -> (T, Ran) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let id = child.id().to_string();
    let begun = Instant::now();
    while !handles_interrupt(&id) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never handled SIGINT");
        sleep(Duration::from_millis(5));
    }
    let seen = meanwhile(&id);
    let status = Command::new("kill").args(["-INT", &id]).status();
    assert!(status.expect("kill is there").success());
    (seen, child.wait_with_output().expect("it ends").into())
}

/// Waits until a process has had a processor for `work_ms` in its own code, by `utime` of proc(5), or has
/// ended. On a busy machine a time by the clock says little of what it has done.
pub(super) fn works_for(id: &str, work_ms: u64) {
    let begun = Instant::now();
    loop {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The fields behind the name, which is in parentheses: the state is the first.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let mut fields = fields.split_whitespace();
        let has_ended = fields.next().is_none_or(|state| state == "Z");
        // In hundredths of a second.
        let utime: u64 = fields.nth(10).and_then(|ticks| ticks.parse().ok()).unwrap_or_default();
        if has_ended || utime * 10 >= work_ms {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it does nothing");
        sleep(Duration::from_millis(5));
    }
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
        let error = self.stderr.lines().rfind(|line| line.starts_with("barewire: "));
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

    /// A line of JSON for each message or frame, and the report behind them.
    #[track_caller]
    pub(super) fn json_lines(&self) -> (Vec<Value>, Value) {
        let text = self.text();
        let json =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut lines: Vec<Value> = text.lines().map(json).collect();
        let report = lines.pop().expect("a report");
        (lines, report)
    }

    /// The report of a command that prints a line of JSON for each frame before it.
    #[track_caller]
    pub(super) fn last_json(&self) -> Value {
        self.json_lines().1
    }

    /// Asserts success and what stands on stdout.
    #[track_caller]
    pub(super) fn prints(&self, text: &str) {
        assert_eq!((self.text().as_str(), self.code), (text, Some(0)), "{self:?}");
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
pub(super) fn barewire(arguments: &[&str]) -> Command {
    let mut command = Command::new(program(env!("CARGO_BIN_EXE_barewire")));
    command.args(arguments).env_remove("BAREWIRE_BUS");
    command
}

pub(super) fn run(arguments: &[&str]) -> Ran {
    barewire(arguments).output().expect("the command starts").into()
}

/// Runs the command with the words of a line.
pub(super) fn run_line(line: &str) -> Ran {
    run(&line.split_whitespace().collect::<Vec<_>>())
}

/// The code of a signal in a recording of the wire.
#[track_caller]
pub(super) fn vcd_code<'v>(vcd: &'v str, signal: &str) -> &'v str {
    let line = vcd.lines().find(|line| line.ends_with(&format!(" {signal} $end")));
    let code = line.and_then(|line| line.split(' ').nth(3));
    code.unwrap_or_else(|| panic!("no {signal} in\n{vcd:.2000}"))
}

/// What is asserted of a text.
pub(super) trait Has {
    /// It has all of `parts`.
    #[track_caller]
    fn has(&self, parts: &[&str]);
}

impl Has for str {
    fn has(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.contains(part), "{part:?} is not in {self}");
        }
    }
}

/// Asserts the fields of `value` that `expected` has.
#[track_caller]
pub(super) fn has_fields(value: &Value, expected: &Value) {
    for (name, expected) in expected.as_object().expect("an object") {
        assert_eq!(&value[name], expected, "{name} of {value}");
    }
}

/// A field that is a list.
#[track_caller]
pub(super) fn array<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("no list {name} in {value}"))
}

/// A trace that a kernel wrote, if it is beside this repository.
pub(super) fn kernels_trace() -> Option<String> {
    let path = "../../../shared/traces/imx8mp_linux61_dd.txt";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if !path.exists() {
        println!("SKIPPED: a kernel's trace: it is not beside this repository");
        return None;
    }
    Some(text(&path))
}

/// The path of a file in the repository's folder `examples`.
pub(super) fn example(name: &str) -> String {
    text(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name))
}

/// A directory of a test's own, removed when dropped.
pub(super) struct Dir(TempDir);

impl Dir {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// The path of `name` in it, as text.
    pub(super) fn path(&self, name: &str) -> String {
        text(&self.0.path().join(name))
    }

    /// Its own path, as text.
    pub(super) fn whole(&self) -> String {
        text(self.0.path())
    }

    /// A file of `content` in it, its path as text.
    pub(super) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("a file is written");
        path
    }
}

/// A directory with a chip file.
pub(super) struct Bench {
    pub(super) dir: TempDir,
    pub(super) bus: String,
    pub(super) chip: PathBuf,
}

impl Bench {
    /// A bench for `board`. The first command makes the chip file, by an erase before it if it only reads.
    pub(super) fn new(board: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let chip = dir.path().join("chip.bin");
        let bus = format!("sim:{board},flash={}", chip.display());
        Self { dir, bus, chip }
    }

    /// The same, its chip file made.
    pub(super) fn made(board: &str) -> Self {
        let bench = Self::new(board);
        bench.make("");
        bench
    }

    /// Makes the chip file if there is none, by a command that changes the chip. Faults and protection may make it fail; the
    /// file is there all the same.
    fn make(&self, options: &str) {
        if !self.chip.exists() {
            let bus = format!("{}{options}", self.bus);
            run(&["flash", "erase", "-q", "--bus", &bus, "--length", "64K"]);
        }
    }

    /// `flash VERB --bus BUS,options ARGUMENTS`
    pub(super) fn flash(&self, verb: &str, options: &str, arguments: &[&str]) -> Ran {
        let bus = format!("{}{options}", self.bus);
        if ["id", "read", "verify"].contains(&verb) {
            self.make(options);
        }
        run(&[&["flash", verb, "--bus", &bus], arguments].concat())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file of `bytes`, its path as text.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file is written");
        text(&path)
    }

    pub(super) fn content(&self) -> Vec<u8> {
        fs::read(&self.chip).expect("the chip file is there")
    }

    /// The names in the directory, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).expect("the directory is there");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("UTF-8")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

pub(super) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").into()
}

/// Bytes of SplitMix64: they look like firmware to an erase-and-program algorithm.
pub(super) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    let words = std::iter::repeat_with(|| random.next_u64().to_le_bytes());
    words.flatten().take(len).collect()
}
