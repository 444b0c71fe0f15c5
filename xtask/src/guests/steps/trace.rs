//! The lines of a trace, as `guests/steps.c` writes them.

/// What the last instruction of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Call,
    Return,
    /// A return from an exception.
    Resume,
    Other,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Instructions of the kernel, one behind the other, from `at` to `next`.
    Run { cpu: usize, at: u64, instructions: u64, next: u64, end: End },
    /// Instructions of user space.
    User { cpu: usize, instructions: u64 },
    /// The next run of that processor switches stacks.
    Switch { cpu: usize, previous: u64, next: u64 },
    /// A mark.
    Mark(String),
}

/// Reads a line.
///
/// # Errors
/// It is none.
pub(super) fn parse(line: &str) -> Result<Line, String> {
    read(line).ok_or_else(|| format!("no line of a trace: `{line}`"))
}

fn read(line: &str) -> Option<Line> {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    if kind == "m" {
        return Some(Line::Mark(rest.to_owned()));
    }
    let mut words = rest.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let mut address = || u64::from_str_radix(words.next()?, 16).ok();
    match kind {
        "s" => Some(Line::Switch { cpu, previous: address()?, next: address()? }),
        "u" => Some(Line::User { cpu, instructions: words.next()?.parse().ok()? }),
        "r" => {
            let at = address()?;
            let instructions = words.next()?.parse().ok()?;
            let next = u64::from_str_radix(words.next()?, 16).ok()?;
            let end = match words.next()? {
                "c" => End::Call,
                "r" => End::Return,
                "e" => End::Resume,
                "j" => End::Other,
                _ => return None,
            };
            Some(Line::Run { cpu, at, instructions, next, end })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let run = Line::Run {
            cpu: 1,
            at: 0xffff_8000,
            instructions: 3,
            next: 0xffff_800c,
            end: End::Call,
        };
        assert_eq!(parse("r 1 ffff8000 3 ffff800c c"), Ok(run));
        assert_eq!(parse("u 0 12"), Ok(Line::User { cpu: 0, instructions: 12 }));
        assert_eq!(parse("s 0 a b"), Ok(Line::Switch { cpu: 0, previous: 10, next: 11 }));
        assert_eq!(parse("m spidev-1"), Ok(Line::Mark("spidev-1".to_owned())));
        assert_eq!(parse("m "), Ok(Line::Mark(String::new())));
    }

    #[test]
    fn other_lines_are_errors() {
        for line in ["", "r 1 ffff8000 3 ffff800c x", "r 1 ffff8000 3", "u 0", "s 0 a", "x 1"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
