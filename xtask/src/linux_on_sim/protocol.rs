//! What a guest and its server say, line by line.
//!
//! The guest (`bench/barewire-mmio/linux/checks`):
//!
//! ```text
//! CHECK name passed
//! CHECK name failed why
//! CHECK name skipped why
//! ACCESSES bytes reads writes   of the controller, for a message of that many bytes
//! FRAME reads writes            of the controller, for a CAN frame there and back
//! TRACED from to                the accesses of the controller, by number, that are one message's
//! NOTE - text                   for people
//! DONE                          it came to its end
//! ```
//!
//! spi-loopback-test says how it ended in the kernel's log. The server says `TOLD text` of a chip, and
//! `HARM violation` once for each rule of the wire that was broken. Every other line is the kernel's.

use std::str::FromStr;

use crate::check::{Check, Verdict};

/// Accesses of the controller for one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Accesses {
    pub(super) bytes: u32,
    pub(super) reads: f64,
    pub(super) writes: f64,
}

/// All that a run said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunReport {
    pub(super) checks: Vec<Check>,
    pub(super) accesses: Vec<Accesses>,
    /// Reads and writes of the controller for a CAN frame there and back.
    pub(super) frame: Option<(f64, f64)>,
    /// The numbers of a message's first access, and of the one after its last.
    pub(super) traced: Option<(usize, usize)>,
    /// These accesses, a line each.
    pub(super) message: Option<String>,
    pub(super) notes: Vec<String>,
}

/// The cases of spi-loopback-test as the kernel's log tells them.
#[derive(Default)]
struct Loopback<'t> {
    cases: u32,
    complaint: Option<&'t str>,
    ended: Option<&'t str>,
}

/// Parses the output of guest and server. `broken` are rules that may be broken; `loopback` says
/// that spi-loopback-test ran.
pub(super) fn read(
    guest: &str,
    server: &str,
    broken: &[(&str, &str)],
    loopback: bool,
) -> RunReport {
    let mut said = RunReport::default();
    let mut done = false;
    let mut log = Loopback::default();
    for line in guest.lines().map(str::trim) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "CHECK" => {
                said.checks.push(Check::parse(rest).unwrap_or_else(|| Check::unreadable(line)))
            }
            "ACCESSES" => match accesses(rest) {
                Some(accesses) => said.accesses.push(accesses),
                None => said.checks.push(Check::unreadable(line)),
            },
            "FRAME" => match pair(rest) {
                Some(accesses) => said.frame = Some(accesses),
                None => said.checks.push(Check::unreadable(line)),
            },
            "TRACED" => match pair(rest) {
                Some(numbers) => said.traced = Some(numbers),
                None => said.checks.push(Check::unreadable(line)),
            },
            "NOTE" => said.notes.push(rest.trim_start_matches("- ").to_owned()),
            "DONE" => done = true,
            _ => log.line(line),
        }
    }
    if loopback {
        said.checks.push(log.check());
        said.notes.push(format!("spi-loopback-test: {} cases", log.cases));
    }
    said.checks.push(judged("end", done, last_lines(guest)));
    judge_server(server, broken, &mut said);
    said
}

impl<'t> Loopback<'t> {
    fn line(&mut self, line: &'t str) {
        let Some((_, text)) = line.split_once("spi-loopback-test spi") else { return };
        if text.contains("with iteration values") {
            self.cases += 1;
        } else if let Some((_, code)) = text.split_once("Finished spi-loopback-tests with return: ")
        {
            self.ended = Some(code);
        } else if text.contains("strangeness")
            || text.contains("test failed")
            || text.contains("shorter")
        {
            self.complaint.get_or_insert(text);
        }
    }

    fn check(&self) -> Check {
        let why = match (self.complaint, self.ended) {
            (Some(complaint), _) => complaint.to_owned(),
            (None, Some(code)) => format!("it returned {code}"),
            (None, None) => format!("it did not end; {} cases ran", self.cases),
        };
        judged("loopback", self.ended == Some("0"), why)
    }
}

/// A check of the host's own.
pub(super) fn judged(name: &str, right: bool, why: impl Into<String>) -> Check {
    match right {
        true => Check::new(name, Verdict::Passed, ""),
        false => Check::new(name, Verdict::Failed, why),
    }
}

fn accesses(rest: &str) -> Option<Accesses> {
    let mut parts = rest.split(' ');
    let bytes = parts.next()?.parse().ok()?;
    let (reads, writes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Accesses { bytes, reads, writes })
}

fn pair<T: FromStr>(rest: &str) -> Option<(T, T)> {
    let (one, other) = rest.split_once(' ')?;
    Some((one.parse().ok()?, other.parse().ok()?))
}

/// What the guest said last, for a run that did not end.
fn last_lines(guest: &str) -> String {
    let panic = guest.lines().find(|line| line.contains("Kernel panic"));
    let last = guest.lines().rfind(|line| !line.trim().is_empty());
    panic.or(last).unwrap_or("it said nothing").trim().to_owned()
}

/// The rules of the wire, and the other side of a CAN bus.
fn judge_server(server: &str, broken: &[(&str, &str)], said: &mut RunReport) {
    let mut harms = Vec::new();
    let mut ended = false;
    for line in server.lines() {
        if let Some(text) = line.strip_prefix("TOLD ") {
            let sums = said.notes.iter().find_map(|note| note.strip_prefix("can-sum "));
            let sum = sums.and_then(|sums| sums.split(' ').next().map(str::to_owned));
            if let Some(sum) = sum.filter(|_| text.starts_with("can: ")) {
                // Three sums must be equal: of the frames received in the guest, of those that it
                // sent back, and of those that returned.
                let right = text.matches(&sum).count() == 2;
                said.checks.push(judged("can-sums", right, format!("{text}; the guest {sum}")));
            }
            said.notes.push(text.to_owned());
        } else if let Some(text) = line.strip_prefix("HARM ") {
            if !broken.iter().any(|(rule, _)| text.contains(&format!(" {rule}"))) {
                harms.push(text.to_owned());
            }
        } else if line.starts_with("REQUESTS ") {
            ended = true;
        }
    }
    let why = if ended { harms.join("; ") } else { format!("the server did not end: {server}") };
    said.checks.push(judged("wire", ended && harms.is_empty(), why));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "REQUESTS 1 0 Gone\n";

    fn verdicts(said: &RunReport) -> Vec<(&str, Verdict)> {
        said.checks.iter().map(|check| (check.name.as_str(), check.verdict)).collect()
    }

    #[test]
    fn checks_figures_and_notes_are_read() {
        let guest = "Linux 6.1\nCHECK a passed \nCHECK b failed no chip\nNOTE - text\nACCESSES 4 29 7.5\nFRAME 180.5 90\nTRACED 3 9\nDONE\n";
        let said = read(guest, SERVER, &[], false);
        let expected = [
            ("a", Verdict::Passed),
            ("b", Verdict::Failed),
            ("end", Verdict::Passed),
            ("wire", Verdict::Passed),
        ];
        assert_eq!(verdicts(&said), expected);
        assert_eq!(said.accesses, [Accesses { bytes: 4, reads: 29.0, writes: 7.5 }]);
        assert_eq!(said.frame, Some((180.5, 90.0)));
        assert_eq!(said.traced, Some((3, 9)));
        assert_eq!(said.notes, ["text"]);
    }

    #[test]
    fn a_guest_that_does_not_end_fails_with_its_panic() {
        let said = read("CHECK a passed\nKernel panic - not syncing\n trace\n", SERVER, &[], false);
        assert_eq!(said.checks[1].why, "Kernel panic - not syncing");
        let said = read("CHECK what\nDONE\n", "", &[], false);
        let expected =
            [("protocol", Verdict::Failed), ("end", Verdict::Passed), ("wire", Verdict::Failed)];
        assert_eq!(verdicts(&said), expected);
    }

    #[test]
    fn the_loopback_tests_end_and_cases_are_read_from_the_log() {
        let case = "spi-loopback-test spi0.0:   with iteration values: len = 0, tx_off = 1\n";
        let end = |code| {
            format!(
                "spi-loopback-test spi0.0: Finished spi-loopback-tests with return: {code}\nDONE\n"
            )
        };
        let said = read(&format!("{case}{case}{}", end("0")), SERVER, &[], true);
        assert_eq!(said.checks[0].verdict, Verdict::Passed);
        assert_eq!(said.notes, ["spi-loopback-test: 2 cases"]);
        let said = read(&format!("{case}{}", end("-22")), SERVER, &[], true);
        assert_eq!(said.checks[0].why, "it returned -22");
    }

    #[test]
    fn a_rule_may_be_broken_only_where_that_is_known() {
        let server = format!("HARM 5 ns: sck_idle on cs0: early\n{SERVER}");
        let known = [("sck_idle on", "as on silicon")];
        for (broken, verdict) in [(&known[..], Verdict::Passed), (&[][..], Verdict::Failed)] {
            let said = read("DONE\n", &server, broken, false);
            assert_eq!(said.checks[1].verdict, verdict);
        }
    }

    #[test]
    fn the_far_nodes_sums_are_the_guests() {
        let told = |sum| format!("TOLD can: heard 1 ({sum}), sent 1 ({sum})\n{SERVER}");
        for (sum, verdict) in [("00ab", Verdict::Passed), ("00ac", Verdict::Failed)] {
            let said = read("NOTE - can-sum 00ab after 1 frames\nDONE\n", &told(sum), &[], false);
            assert_eq!(said.checks[1].name, "can-sums");
            assert_eq!(said.checks[1].verdict, verdict);
        }
    }
}
