//! Child processes: run one, show its output as it comes, and count while it passes by.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::console::Console;
use crate::linted;
use crate::tally::Tally;

/// A command with its arguments and what it adds to the environment.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

/// How a task ended.
#[derive(Debug, Default)]
pub(crate) struct TaskResult {
    /// Whether it could be started and exited with zero.
    pub(crate) success: bool,
    /// The counts in its output.
    pub(crate) tally: Tally,
    /// The processor time, user and system, of the child and of the children it waited for; zero
    /// where there is no `/proc`.
    pub(crate) processor: Duration,
}

impl Task {
    /// A command line, not yet run.
    pub(crate) fn new(program: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_string()).collect();
        Self { program: program.to_owned(), args, env: Vec::new() }
    }

    /// Adds to the environment of the child.
    #[must_use]
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.env.push((name, value.into()));
        self
    }

    /// Builds as [`linted`] says.
    #[must_use]
    pub(crate) fn linted(self) -> Self {
        linted::VARIABLES.iter().fold(self, |task, (name, value)| task.env(name, *value))
    }

    /// The task as a user would type it.
    pub(crate) fn line(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let args = self.args.iter().map(|arg| quoted(arg));
        env.chain([quoted(&self.program)]).chain(args).collect::<Vec<_>>().join(" ")
    }

    /// Runs the task in `dir`, echoing and counting its lines until both its streams end.
    pub(crate) fn run(&self, dir: &Path, console: Console) -> TaskResult {
        console.say(&format!("$ {}", self.line()));
        let mut command = self.command(dir);
        // Cargo prints no colours into a pipe, so they are requested where a person watches.
        if console.colour() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let ended = child.and_then(|child| follow(child, console));
        ended.unwrap_or_else(|e| {
            console.say(&format!("cannot run `{}`: {e}", self.program));
            TaskResult::default()
        })
    }

    /// Runs the task silently. Returns its standard output if it succeeded.
    pub(crate) fn answer(&self, dir: &Path) -> Option<String> {
        let output = self.command(dir).stdin(Stdio::null()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    }

    fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(dir);
        command
    }
}

/// Passes both streams of `child` on, each from a thread of its own so that neither can fill its
/// pipe and stop the child while the other is read.
fn follow(mut child: Child, console: Console) -> io::Result<TaskResult> {
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let out = scope
            .spawn(|| out.map_or_else(Tally::default, |from| pass(from, io::stdout(), console)));
        let err = scope
            .spawn(|| err.map_or_else(Tally::default, |from| pass(from, io::stderr(), console)));
        for stream in [out, err] {
            tally.absorb(stream.join().expect("passing lines on does not panic"));
        }
    });
    let processor = processor_time(child.id());
    let success = child.wait()?.success();
    Ok(TaskResult { success, tally, processor })
}

/// The processor time of a child, read between its exit and the wait that forgets it.
///
/// Its streams have ended, so it exits soon. A child that closed them and goes on is waited for.
fn processor_time(pid: u32) -> Duration {
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut line = stat();
    while line.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z')) {
        thread::sleep(Duration::from_millis(2));
        line = stat();
    }
    time_in(&line, 14)
}

/// The processor time of all children of this process that were waited for so far.
pub(crate) fn children_time() -> Duration {
    time_in(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default(), 16)
}

/// The sum of the fields `first` to 17 of a line of `/proc/PID/stat`: 14 and 15 are `utime` and `stime`,
/// 16 and 17 those of the children (proc(5)).
///
/// In ticks of `USER_HZ`, which is 100 on every Linux architecture that runs Rust.
fn time_in(stat: &str, first: usize) -> Duration {
    // The second field is the program's name in parentheses, which may contain spaces.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    let ticks =
        fields.skip(first - 3).take(18 - first).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(10 * ticks.sum::<u64>())
}

/// Copies lines until the stream ends, counting. A reader that closed the pipe stops the echo,
/// not the count. Bytes that are not UTF-8 are echoed unchanged.
fn pass(from: impl Read, mut to: impl Write, console: Console) -> Tally {
    let mut from = BufReader::new(from);
    let mut tally = Tally::default();
    let mut roll = RollCall::default();
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\n', '\r']);
        tally.scan(text);
        if !roll.covers(text) {
            let framed = console.framed(line.strip_suffix(b"\n").unwrap_or(&line));
            let _ = to.write_all(&framed).and_then(|()| to.flush());
        }
        line.clear();
    }
    tally
}

/// The list of passed tests' names that the harness prints after their captured output.
///
/// Tests run with `--show-output`, because a passed test's `SKIPPED:` line is captured otherwise;
/// the harness then names every passed test a second time, which is left out of the echo.
#[derive(Debug, Default)]
struct RollCall {
    inside: bool,
}

impl RollCall {
    /// Whether `line` belongs to the list.
    fn covers(&mut self, line: &str) -> bool {
        let opens = line == "successes:";
        self.inside = opens || (self.inside && line.starts_with("    "));
        self.inside
    }
}

/// `text` so that a shell takes it as one word.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_string() } else { format!("'{text}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_reads_as_it_would_be_typed() {
        let task = Task::new("cargo", &["doc", "a b"]).env("RUSTDOCFLAGS", "-Dwarnings");
        assert_eq!(task.line(), "RUSTDOCFLAGS=-Dwarnings cargo doc 'a b'");
    }

    #[test]
    fn lines_are_echoed_and_counted() {
        let input = b"test result: ok. 2 passed; 0 failed; 0 ignored\n\xff raw\nSKIPPED: last line";
        let mut echo = Vec::new();
        let tally = pass(&input[..], &mut echo, Console::silent());
        assert_eq!(echo, [&input[..], b"\n"].concat());
        assert_eq!((tally.passed, tally.skipped.len()), (2, 1));
    }

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a) b) Z 1 2 3 4 5 6 7 8 9 10 1000 2000 30 4 20 0 1";
        assert_eq!(time_in(stat, 14), Duration::from_millis(30_340));
        assert_eq!(time_in(stat, 16), Duration::from_millis(340));
        assert_eq!(time_in("", 14), Duration::ZERO);
    }

    #[test]
    fn processor_time_of_a_child_includes_its_own_children() {
        let script = "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'; true";
        let ran = Task::new("sh", &["-c", script]).run(Path::new("."), Console::silent());
        assert!(ran.success && ran.processor >= Duration::from_millis(10), "{ran:?}");
    }

    #[test]
    fn the_second_list_of_names_is_not_echoed_but_captured_output_is() {
        let input = "\nsuccesses:\n\n---- reads ----\n    indented output\nSKIPPED: no chip\n\n\
                     successes:\n    reads\n    writes\n\ntest result\n";
        let mut echo = Vec::new();
        let tally = pass(input.as_bytes(), &mut echo, Console::silent());
        let echo = String::from_utf8(echo).expect("text");
        assert_eq!(
            echo,
            "\n\n---- reads ----\n    indented output\nSKIPPED: no chip\n\n\ntest result\n"
        );
        assert_eq!(tally.skipped, ["SKIPPED: no chip"]);
    }

    #[test]
    fn a_program_that_does_not_exist_is_a_failure_not_a_panic() {
        let task = Task::new("barewire-no-such-program", &[]);
        assert!(!task.run(Path::new("."), Console::silent()).success);
        assert_eq!(task.answer(Path::new(".")), None);
    }
}
