//! Splits QEMU's answers into lines and parses them: pure functions over bytes.
//!
//! Each command has one answer, in order: `OK`, `OK 0x…`, or `FAIL`/`ERR` with a reason. Lines that
//! begin with `IRQ` report interrupt lines that moved; they are not answers.

/// The longest line kept. Answers have 23 bytes; a longer line is not an answer.
pub(super) const LINE_MAX: usize = 4_096;

/// A line from QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'l> {
    /// Done, without a value.
    Ok,
    /// Done; this value was read.
    Value(u64),
    /// An interrupt line moved. Not an answer.
    Irq {
        /// The line's number.
        line: u32,
        /// Whether it is up now.
        raised: bool,
    },
    /// Refused, or not in the protocol: the whole line.
    Bad(&'l [u8]),
}

/// Reads one line, without its newline.
pub(super) fn parse(line: &[u8]) -> Reply<'_> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    match text {
        b"OK" => Reply::Ok,
        _ if text.starts_with(b"IRQ ") => irq(text).unwrap_or(Reply::Bad(line)),
        _ => match text.strip_prefix(b"OK 0x").and_then(hex) {
            Some(value) => Reply::Value(value),
            // For example `OK little`: done, and the text is not needed.
            None if text.starts_with(b"OK ") && !text.starts_with(b"OK 0x") => Reply::Ok,
            None => Reply::Bad(line),
        },
    }
}

/// `IRQ raise 3`, `IRQ lower 3`.
fn irq(text: &[u8]) -> Option<Reply<'static>> {
    let (raised, number) = match text.strip_prefix(b"IRQ raise ") {
        Some(number) => (true, number),
        None => (false, text.strip_prefix(b"IRQ lower ")?),
    };
    let digits = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let line = std::str::from_utf8(number).ok().filter(|_| digits)?.parse().ok()?;
    Some(Reply::Irq { line, raised })
}

/// 1 to 16 hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | u64::from(digit))
    })
}

/// Received bytes, and the lines in them.
#[derive(Debug, Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// The start of the first line that was not returned yet.
    start: usize,
    /// The bytes before this index contain no newline.
    searched: usize,
}

impl Lines {
    /// Adds received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            // The rest is less than a line, because `next` is called until there is none.
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, without its newline.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        match self.bytes[self.searched..].iter().position(|&byte| byte == b'\n') {
            Some(at) => {
                let line = self.start..self.searched + at;
                self.start = line.end + 1;
                self.searched = self.start;
                Some(&self.bytes[line])
            }
            None => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    /// A line without an end that is longer than any answer.
    pub(super) fn overlong(&self) -> Option<&[u8]> {
        let rest = &self.bytes[self.start..];
        (rest.len() > LINE_MAX).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        assert_eq!(parse(b"OK"), Reply::Ok);
        assert_eq!(parse(b"OK\r"), Reply::Ok);
        assert_eq!(parse(b"OK little"), Reply::Ok);
        assert_eq!(parse(b"OK 0x0000000000000003"), Reply::Value(3));
        assert_eq!(parse(b"OK 0xffffffffffffffff"), Reply::Value(u64::MAX));
        assert_eq!(parse(b"IRQ raise 31"), Reply::Irq { line: 31, raised: true });
        assert_eq!(parse(b"IRQ lower 0\r"), Reply::Irq { line: 0, raised: false });
    }

    #[test]
    fn whatever_else_is_bad_and_kept() {
        for line in [
            &b"FAIL Unknown command 'x'"[..],
            b"ERR no",
            b"",
            b"ok",
            b"OKAY",
            b"IRQS",
            b"IRQ",
            b"IRQ raise ",
            b"IRQ raise +1",
            b"IRQ lower 99999999999",
            b"IRQ toggle 3",
            b"OK 0x",
            b"OK 0xg",
            b"OK 0x00000000000000000",
            b"\xff\x00",
        ] {
            assert_eq!(parse(line), Reply::Bad(line), "{:?}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"OK\nOK 0x1\n\nIRQ raise 1\nOK 0x22\n";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece);
                while let Some(line) = lines.next() {
                    found.push(line.to_vec());
                }
            }
            let whole: Vec<_> = text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            assert_eq!(found, whole[..5], "pieces of {size}");
            assert_eq!(lines.overlong(), None);
        }
    }

    #[test]
    fn a_line_without_an_end_is_noticed() {
        let mut lines = Lines::default();
        lines.push(&[b'x'; LINE_MAX]);
        assert_eq!(lines.next(), None);
        assert_eq!(lines.overlong(), None);
        lines.push(b"x");
        assert_eq!(lines.next(), None);
        assert!(lines.overlong().is_some());
    }

    #[test]
    fn random_bytes_never_panic() {
        // The alphabet contains the strings the parser looks for, so that all its branches are
        // reached.
        let alphabet = b"OKFAILERIRQ 0x19abcfg\n\n\r\x00\xff\xc3";
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut lines = Lines::default();
        let mut seen = [0; 4];
        for _ in 0..20_000 {
            let piece: Vec<u8> = (0..random() % 24)
                .map(|_| match random() {
                    value if value % 8 == 0 => (value >> 8) as u8,
                    value => alphabet[(value >> 8) as usize % alphabet.len()],
                })
                .collect();
            lines.push(if random() % 4 == 0 { b"OK 0x1f\n" } else { &piece });
            while let Some(line) = lines.next() {
                seen[match parse(line) {
                    Reply::Ok => 0,
                    Reply::Value(_) => 1,
                    Reply::Irq { .. } => 2,
                    Reply::Bad(_) => 3,
                }] += 1;
            }
        }
        assert!(seen[1] > 0 && seen[3] > 0, "{seen:?}");
    }
}
