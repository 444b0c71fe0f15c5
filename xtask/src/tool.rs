//! Programs that prepare guests and packages: run quietly, their output in a log or as an answer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a program runs before a line says what it does, and how often that line is repeated.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many of a log's last lines an error repeats.
const TAIL_LINES: usize = 12;

/// Runs `command` with all its output in `log`. If it takes long, its last line is shown on stderr.
///
/// # Errors
/// If it cannot be started or fails. The error has the end of its output.
pub(crate) fn run(command: &mut Command, log: &Path) -> Result<(), String> {
    let name = name(command);
    let file = |what| move |e| format!("cannot {what} {}: {e}", log.display());
    let out = File::create(log).map_err(file("write"))?;
    let err = out.try_clone().map_err(file("write"))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let status = watched(command, log).map_err(|e| format!("cannot run {name}: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read(log).map_err(file("read"))?;
    Err(format!("{name}: {status}\n{}", tail(&String::from_utf8_lossy(&said))))
}

/// Waits for a command, and tells every now and then how far it is, by its log.
fn watched(command: &mut Command, log: &Path) -> std::io::Result<ExitStatus> {
    let (began, mut told) = (Instant::now(), Duration::ZERO);
    let mut child = command.spawn()?;
    // Short at first: most programs are soon done.
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(200));
        let elapsed = began.elapsed();
        if elapsed >= told + PATIENCE {
            told = elapsed;
            let said = std::fs::read(log).unwrap_or_default();
            let last = last_line(&String::from_utf8_lossy(&said));
            let program = command.get_program().to_string_lossy();
            eprintln!("    {program}, {} s: {last}", elapsed.as_secs());
        }
    }
}

/// The last line that says something.
fn last_line(said: &str) -> String {
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .unwrap_or("nothing said yet")
        .to_owned()
}

/// Runs `command`. Returns its standard output.
///
/// # Errors
/// If it cannot be started or fails: with the end of its standard error.
pub(crate) fn answer(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = name(command);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}\n{}", output.status, tail(&said)))
}

/// Where the shell would find `program`.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

/// The program and its arguments, for messages.
fn name(command: &Command) -> String {
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    let all: Vec<String> =
        [command.get_program().to_string_lossy().into_owned()].into_iter().chain(args).collect();
    format!("`{}`", all.join(" "))
}

fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_ran_and_what_it_said() {
        let why = answer(Command::new("sh").args(["-c", "echo lost >&2; exit 3"])).expect_err("3");
        assert!(why.contains("`sh -c") && why.contains('3') && why.ends_with("lost"), "{why}");
        assert!(answer(&mut Command::new("barewire-no-such-program")).is_err());
        assert_eq!(answer(Command::new("echo").arg("x")), Ok(b"x\n".to_vec()));
    }

    #[test]
    fn a_long_program_is_told_by_what_it_said_last() {
        assert_eq!(last_line("   Compiling a\n   Compiling b v1\n\n"), "Compiling b v1");
        assert_eq!(last_line(""), "nothing said yet");
    }

    #[test]
    fn only_the_end_of_a_long_log_is_repeated() {
        let said: String = (0..100).map(|n| format!("line {n}\n\n")).collect();
        let end = tail(&said);
        assert_eq!(end.lines().count(), TAIL_LINES);
        assert!(end.ends_with("line 99"), "{end}");
    }
}
