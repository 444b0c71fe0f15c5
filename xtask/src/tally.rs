//! Reads a child's output: tests counted, tests skipped, builds broken.

/// The sums over the lines read so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Tests that passed, by the harness's own result lines.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
    /// Tests the harness was told to leave out.
    pub(crate) ignored: u64,
    /// Every line that begins `SKIPPED:`, whole.
    pub(crate) skipped: Vec<String>,
    /// Every line that begins `FIGURE:`, whole.
    pub(crate) figures: Vec<String>,
    /// The failures with their reasons, repeated at the end of the run: a log that is cut short
    /// keeps its end.
    pub(crate) failures: Vec<String>,
    /// Whether the compiler gave up, so that nothing ran.
    pub(crate) build_broke: bool,
    /// Whether the lines are those in which the harness tells what failed.
    pub(crate) telling: bool,
}

/// The most lines about failures that are kept of one child. The first ones tell most.
const TOLD: usize = 60;

/// The start of a line by which a test or step says that it could not run here.
pub(crate) const SKIPPED: &str = "SKIPPED:";

/// The start of a line that the end of the run repeats.
const FIGURE: &str = "FIGURE:";

impl Tally {
    /// Reads one line of output, coloured or not.
    pub(crate) fn scan(&mut self, line: &str) {
        let line = without_escapes(line);
        self.keep_failure(&line);
        if let Some(result) = TestResult::parse(&line) {
            self.passed += result.passed;
            self.failed += result.failed;
            self.ignored += result.ignored;
        } else if line.starts_with(SKIPPED) {
            self.skipped.push(line.trim_end().to_string());
        } else if line.starts_with(FIGURE) {
            self.figures.push(line.trim_end().to_string());
        } else if line.starts_with("error: could not compile") {
            self.build_broke = true;
        }
    }

    /// Keeps the lines from `failures:` to the result: what failed tests printed, and their names.
    fn keep_failure(&mut self, line: &str) {
        self.telling = line == "failures:" || (self.telling && !line.starts_with("test result: "));
        let tells = self.telling && !line.is_empty() && line != "failures:";
        if (tells || line.starts_with("error: ")) && self.failures.len() < TOLD {
            self.failures.push(line.trim_end().to_string());
        }
    }

    /// Adds the tally of another stream or another child.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
        self.figures.extend(other.figures);
        self.failures.extend(other.failures);
        self.build_broke |= other.build_broke;
    }
}

/// One `test result:` line of the standard test harness.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TestResult {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl TestResult {
    /// Reads `test result: ok. X passed; Y failed; Z ignored; …`. Any other line is `None`.
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let (_verdict, counts) = rest.split_once(". ")?;
        let mut counts = counts.split(';');
        let mut next = |what: &str| count(counts.next()?, what);
        Some(Self { passed: next("passed")?, failed: next("failed")?, ignored: next("ignored")? })
    }
}

/// The number in `N what`.
fn count(field: &str, what: &str) -> Option<u64> {
    let (number, word) = field.trim().split_once(' ')?;
    if word == what { number.parse().ok() } else { None }
}

/// `line` without terminal colour sequences (`ESC [ … letter`), which cargo and the test harness
/// put inside the very lines that are counted.
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().take_while(|c| !c.is_ascii_alphabetic()).for_each(drop);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.scan(line));
        tally
    }

    #[test]
    fn result_lines_are_summed() {
        let tally = scanned(&[
            "running 5 tests",
            "test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 3 filtered out",
        ]);
        assert_eq!((tally.passed, tally.failed, tally.ignored), (14, 2, 1));
    }

    #[test]
    fn coloured_result_lines_are_read() {
        let tally = scanned(&[
            "test result: \x1b[32mok\x1b[m. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "\x1b[1m\x1b[31mtest result: FAILED\x1b(B\x1b[m. 0 passed; 1 failed; 0 ignored",
        ]);
        assert_eq!((tally.passed, tally.failed), (7, 1));
    }

    #[test]
    fn look_alikes_are_not_counted() {
        let tally = scanned(&[
            "  test result: ok. 4 passed; 0 failed; 0 ignored",
            "test result: ok. 4 passed, 0 failed",
            "test result: ok. four passed; 0 failed; 0 ignored",
            "test result: ok",
            "",
        ]);
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn skipped_lines_are_kept_whole_and_only_from_the_start_of_a_line() {
        let tally = scanned(&["SKIPPED: no valgrind here\r", "nothing was SKIPPED: here"]);
        assert_eq!(tally.skipped, ["SKIPPED: no valgrind here"]);
    }

    #[test]
    fn figures_are_kept_whole() {
        let tally = scanned(&["FIGURE: 7 of 9", "no FIGURE: this"]);
        assert_eq!(tally.figures, ["FIGURE: 7 of 9"]);
    }

    #[test]
    fn what_failed_is_kept_and_what_passed_is_not() {
        let tally = scanned(&[
            "successes:",
            "---- panics_as_it_should stdout ----",
            "thread 'panics_as_it_should' panicked at src/lib.rs:1:1:",
            "",
            "failures:",
            "",
            "---- one stdout ----",
            "thread 'one' panicked at src/lib.rs:2:2:",
            "failures:",
            "    one",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored",
            "running 3 tests",
            "error: test failed, to rerun pass `-p a --lib`",
        ]);
        let told = ["---- one stdout ----", "thread 'one' panicked at src/lib.rs:2:2:", "    one"];
        let whose = "error: test failed, to rerun pass `-p a --lib`";
        assert_eq!(tally.failures, [&told[..], &[whose]].concat());
    }

    #[test]
    fn a_broken_build_is_noticed() {
        assert!(
            scanned(&["\x1b[1m\x1b[91merror\x1b[0m: could not compile `barewire` (lib)"])
                .build_broke
        );
        assert!(!scanned(&["warning: could not compile a thing"]).build_broke);
    }

    #[test]
    fn tallies_add_up() {
        let mut sum = scanned(&["test result: ok. 1 passed; 0 failed; 0 ignored", "SKIPPED: a"]);
        sum.absorb(scanned(&["test result: ok. 2 passed; 0 failed; 3 ignored", "SKIPPED: b"]));
        assert_eq!((sum.passed, sum.ignored, sum.skipped.len()), (3, 3, 2));
    }
}
