//! The accesses of Linux's drivers for one message, beside the reviewed ones.
//!
//! The reviewed accesses are stored beside the test that makes a page of Linux's and of ours:
//! `bench/barewire-mmio/tests/it/traces/BOARD.txt`. A board without that file is not compared.

use std::fs;
use std::path::{Path, PathBuf};

use crate::check::{Check, Verdict, is_blessing};

/// The part of the server's trace that is the message's, one access a line; `None` if it is not there.
pub(super) fn of_message(trace: &str, (from, to): (usize, usize)) -> Option<String> {
    let lines: Vec<&str> = trace.lines().collect();
    let message = lines.get(from..to).filter(|message| !message.is_empty())?;
    Some(message.iter().map(|line| format!("{line}\n")).collect())
}

fn path(root: &Path, board: &str) -> PathBuf {
    root.join("bench/barewire-mmio/tests/it/traces").join(format!("{board}.txt"))
}

/// Whether a run's message is the reviewed one, or writes it; no check if there is nothing to compare.
pub(super) fn judge(root: &Path, board: &str, message: Option<&str>) -> Option<Check> {
    let (message, path) = (message?, path(root, board));
    let reviewed = fs::read_to_string(&path).ok()?;
    let failed = |why| Some(Check::new("trace", Verdict::Failed, why));
    if reviewed == message {
        return Some(Check::new("trace", Verdict::Passed, ""));
    }
    if is_blessing() {
        return failed(match fs::write(&path, message) {
            Ok(()) => "trace written: review it and run again".into(),
            Err(error) => format!("cannot write {}: {error}", path.display()),
        });
    }
    let differing = message.lines().zip(reviewed.lines()).find(|(now, then)| now != then);
    let (now, then) = differing.unwrap_or(("another length", "the reviewed one"));
    failed(format!("`{now}` instead of `{then}`: {} differs", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "A <- 1\nB -> 2\nB -> 3\nC <- 4\n";

    #[test]
    fn a_message_is_cut_from_the_trace() {
        assert_eq!(of_message(TRACE, (1, 3)).as_deref(), Some("B -> 2\nB -> 3\n"));
        for numbers in [(1, 1), (3, 1), (3, 5)] {
            assert_eq!(of_message(TRACE, numbers), None);
        }
    }

    #[test]
    fn another_message_than_the_reviewed_one_fails() {
        let root = std::env::temp_dir().join(format!("barewire-traces-{}", std::process::id()));
        let file = path(&root, "board");
        assert_eq!(judge(&root, "board", Some(TRACE)), None);
        fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        fs::write(&file, TRACE).expect("written");
        let verdict = |message| judge(&root, "board", Some(message)).expect("a check").verdict;
        assert_eq!(verdict(TRACE), Verdict::Passed);
        assert_eq!(verdict("A <- 1\n"), Verdict::Failed);
        assert_eq!(verdict(&TRACE.replace('4', "5")), Verdict::Failed);
        fs::remove_dir_all(&root).expect("removed");
    }
}
