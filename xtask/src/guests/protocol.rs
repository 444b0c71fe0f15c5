//! The lines that a guest writes to its serial console.
//!
//! ```text
//! CHECK name passed
//! CHECK name failed why
//! CHECK name skipped why
//! COUNT path value        instructions, a fraction allowed; of a path's several, the least counts
//! ACCESSES path calls     between the next two marks, that many operations ran on that path (or -: of no interest)
//! WROTE offset length     the flash now has the first length bytes of /new there
//! DONE                    the script came to its end
//! ```
//!
//! Every other line is the kernel's, or a command's output, and stays in the log.

use crate::check::Check;

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum GuestLine {
    Check(Check),
    /// Instructions of one operation on a path.
    Count(String, f64),
    /// Operations between two marks (`guests/wire.c`).
    Accesses(String, f64),
    Wrote {
        offset: usize,
        length: usize,
    },
    Done,
}

/// Reads a line of the console; `None` is output that means nothing here.
///
/// A line of the protocol that cannot be read is a failed check, since a check that is not
/// counted must not look like one that passed.
pub(super) fn parse(line: &str) -> Option<GuestLine> {
    let line = before_stamp(line).trim();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let understood = match word {
        "CHECK" => Check::parse(rest).map(GuestLine::Check),
        "COUNT" => path_and_number(rest).map(|(path, count)| GuestLine::Count(path, count)),
        "ACCESSES" => path_and_number(rest).map(|(path, calls)| GuestLine::Accesses(path, calls)),
        "WROTE" => wrote(rest),
        "DONE" if rest.is_empty() => Some(GuestLine::Done),
        _ => return None,
    };
    Some(understood.unwrap_or_else(|| GuestLine::Check(Check::unreadable(line))))
}

/// The line without a message of the kernel's that was written before its end: `CHECK x passed[   74.153012] spi0: …`.
fn before_stamp(line: &str) -> &str {
    let is_stamp = |rest: &str| {
        let inner = rest.split_once(']').map(|(inner, _)| inner.trim_start());
        inner.and_then(|inner| inner.split_once('.')).is_some_and(|(s, us)| {
            [s, us].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let glued = |at: usize| !line[..at].ends_with(' ') && is_stamp(&line[at + 1..]);
    line.match_indices('[').map(|(at, _)| at).find(|&at| glued(at)).map_or(line, |at| &line[..at])
}

fn path_and_number(rest: &str) -> Option<(String, f64)> {
    let (path, value) = rest.split_once(' ')?;
    let value: f64 = value.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| (path.to_owned(), value))
}

fn wrote(rest: &str) -> Option<GuestLine> {
    let (offset, length) = rest.split_once(' ')?;
    Some(GuestLine::Wrote { offset: offset.parse().ok()?, length: length.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    fn check_of(line: &str) -> Check {
        match parse(line) {
            Some(GuestLine::Check(check)) => check,
            other => panic!("`{line}` is no check: {other:?}"),
        }
    }

    #[test]
    fn checks_are_read_with_their_reason() {
        assert_eq!(check_of("CHECK mem-id passed\r"), Check::new("mem-id", Verdict::Passed, ""));
        assert_eq!(
            check_of("CHECK mem-read failed exit 1: no chip"),
            Check::new("mem-read", Verdict::Failed, "exit 1: no chip")
        );
        assert_eq!(check_of("CHECK uio skipped no UIO").verdict, Verdict::Skipped);
    }

    #[test]
    fn a_message_of_the_kernel_that_cuts_a_line_short_is_not_its_own() {
        let line = "CHECK panic-bind passed[   74.153012] spi_master spi0: given up\r";
        assert_eq!(check_of(line), Check::new("panic-bind", Verdict::Passed, ""));
        let why = "CHECK unload failed [   74.153012] spi0: in use [2.5]";
        assert_eq!(check_of(why).why, "[   74.153012] spi0: in use [2.5]");
        assert_eq!(check_of("CHECK a[1.5 passed").verdict, Verdict::Passed);
    }

    #[test]
    fn figures_and_the_end_are_read() {
        assert_eq!(parse("COUNT prepared 297.5"), Some(GuestLine::Count("prepared".into(), 297.5)));
        assert_eq!(
            parse("WROTE 4096 65536"),
            Some(GuestLine::Wrote { offset: 4096, length: 65536 })
        );
        assert_eq!(parse(" DONE \r\n"), Some(GuestLine::Done));
    }

    #[test]
    fn other_output_means_nothing() {
        for line in ["", "[    1.2] spi_imx", "CHECKS", "DONE up=3.2", "a CHECK x passed"] {
            let parsed = parse(line);
            let failed =
                matches!(&parsed, Some(GuestLine::Check(check)) if check.name == "protocol");
            assert!(parsed.is_none() || (line.starts_with("DONE") && failed), "{line}: {parsed:?}");
        }
    }

    #[test]
    fn a_broken_line_of_the_protocol_is_a_failure() {
        for line in [
            "CHECK",
            "CHECK mem-id",
            "CHECK mem-id fine",
            "CHECK mem-id failed",
            "CHECK mem-id skipped ",
            "COUNT prepared",
            "COUNT prepared NaN",
            "COUNT prepared -1",
            "WROTE 0",
            "WROTE 0 x",
        ] {
            let check = check_of(line);
            assert_eq!(
                (check.name.as_str(), check.verdict),
                ("protocol", Verdict::Failed),
                "{line}"
            );
        }
    }
}
