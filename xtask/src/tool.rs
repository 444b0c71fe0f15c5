//! Programs that prepare guests and packages: run quietly, their output in a log or as an answer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many of a log's last lines an error repeats.
const TAIL_LINES: usize = 12;

/// Runs `command` with all its output in `log`.
///
/// # Errors
/// If it cannot be started or fails: with the end of what it said.
pub(crate) fn run(command: &mut Command, log: &Path) -> Result<(), String> {
    let name = name(command);
    let file = |what| move |e| format!("cannot {what} {}: {e}", log.display());
    let out = File::create(log).map_err(file("write"))?;
    let err = out.try_clone().map_err(file("write"))?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let status = command.status().map_err(|e| format!("cannot run {name}: {e}"))?;
    if status.success() {
        return Ok(());
    }
    let said = std::fs::read(log).map_err(file("read"))?;
    Err(format!("{name}: {status}\n{}", tail(&String::from_utf8_lossy(&said))))
}

/// Runs `command`; its standard output.
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
    fn only_the_end_of_a_long_log_is_repeated() {
        let said: String = (0..100).map(|n| format!("line {n}\n\n")).collect();
        let end = tail(&said);
        assert_eq!(end.lines().count(), TAIL_LINES);
        assert!(end.ends_with("line 99"), "{end}");
    }
}
