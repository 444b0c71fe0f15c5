//! What was counted beside what was reviewed, row by row.

use crate::check::{Check, Verdict, is_blessing};

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
