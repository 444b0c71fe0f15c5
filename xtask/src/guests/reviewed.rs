//! What was counted beside what was reviewed, row by row.

use std::path::Path;

use crate::check::{Check, Verdict, is_blessing};

/// The table in `file`, or an empty one if there is none.
pub(super) fn read<T>(
    root: &Path,
    file: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
    parse(&text).map_err(|why| format!("{file}: {why}"))
}

pub(super) fn write(root: &Path, file: &str, text: String) -> Result<(), String> {
    std::fs::write(root.join(file), text).map_err(|e| format!("cannot write {file}: {e}"))
}

/// What is wrong with `counted`: rows that `file` has not, rows that are off, and rows of it that were not counted.
pub(super) fn differences<T>(
    file: &str,
    counted: &[(String, T)],
    reviewed: &[(String, T)],
    shown: impl Fn(&T) -> String,
    is_off: impl Fn(&str, &T, &T) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (path, now) in counted {
        match reviewed.iter().find(|(known, _)| known == path) {
            None => wrong.push(format!("{path} {} is not in {file}", shown(now))),
            Some((_, was)) if is_off(path, now, was) => {
                wrong.push(format!("{path} {}, reviewed {}", shown(now), shown(was)));
            }
            Some(_) => {}
        }
    }
    let missing = reviewed.iter().filter(|(path, _)| !counted.iter().any(|(name, _)| name == path));
    wrong.extend(missing.map(|(path, _)| format!("{path} was not counted")));
    wrong
}

/// The check of that name, with what is wrong.
pub(super) fn check(name: &str, wrong: &[String]) -> Check {
    if wrong.is_empty() {
        return Check::new(name, Verdict::Passed, "");
    }
    let why = format!("{}; BAREWIRE_BLESS=1 rewrites the table", wrong.join("; "));
    Check::new(name, Verdict::Failed, why)
}

/// The check of that name, which fails where the table is written instead.
pub(super) fn unless_blessing(name: &str, judge: impl FnOnce() -> Check) -> Check {
    if is_blessing() {
        return Check::new(name, Verdict::Failed, "snapshot written: review and run again");
    }
    judge()
}
