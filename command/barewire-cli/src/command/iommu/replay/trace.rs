//! The kernel's iommu events as text: a line in, what it says out.
//!
//! Lines of `trace` and `trace_pipe`, of `trace-cmd report` and of `perf script` differ in what
//! stands before the event's name, and agree from there on:
//!
//! ```text
//! … 1.941518: map: IOMMU: iova=0xfffff000 - 0x100000000 paddr=0x8a3d0000 size=4096
//! … 1.941711: iommu:unmap: IOMMU: iova=0xfffff000 - 0x100000000 size=4096 unmapped_size=4096
//! ```
//!
//! Older kernels leave the end of the range out. The room knows nothing of its neighbours: a
//! fuzz target has it too.

use std::fmt;

/// What a line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// `size` bytes from `iova` were mapped to `phys`.
    Map { iova: u64, phys: u64, size: u64 },
    /// `size` bytes from `iova` were to be unmapped, and `unmapped` of them were.
    Unmap { iova: u64, size: u64, unmapped: u64 },
    /// The tracer lost so many events here.
    Lost(u64),
    /// A comment, or nothing.
    Blank,
    /// Something else.
    Other,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line {
    /// When, on the tracer's clock; none if it does not say, or not in seconds.
    pub(super) time_ns: Option<u64>,
    /// What.
    pub(super) event: Event,
}

/// Why a line that is one of ours cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Malformed {
    /// It lacks a field.
    Missing(&'static str),
    /// A field is no number.
    Number(&'static str),
    /// There is nothing between begin and end.
    Empty,
    /// The range goes beyond 64 bits.
    Overflow,
    /// The range's end is not begin and size.
    End { end: u64, expected: u64 },
    /// More was unmapped than asked.
    TooMuch { size: u64, unmapped: u64 },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Missing(field) => write!(f, "{field}= is missing: was the line cut?"),
            Self::Number(field) => write!(f, "{field}= is no number of 64 bits"),
            Self::Empty => f.write_str("a range of 0 bytes"),
            Self::Overflow => f.write_str("the range goes beyond 64 bits"),
            Self::End { end, expected } => {
                write!(f, "the range ends at {end:#x}, by its size at {expected:#x}")
            }
            Self::TooMuch { size, unmapped } => {
                write!(f, "{unmapped} bytes were unmapped of {size}")
            }
        }
    }
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<Line, Malformed> {
    let mut before = None;
    let mut words = line.split_ascii_whitespace().peekable();
    if words.peek().is_none_or(|word| word.starts_with('#')) {
        return Ok(Line { time_ns: None, event: Event::Blank });
    }
    while let Some(word) = words.next() {
        let name = word.strip_prefix("iommu:").unwrap_or(word);
        let ours = matches!(name, "map:" | "unmap:") && words.peek() == Some(&"IOMMU:");
        if ours {
            let time_ns = before.and_then(seconds);
            let fields = Fields::new(words.skip(1))?;
            let event = if name == "map:" { fields.map() } else { fields.unmap() }?;
            return Ok(Line { time_ns, event });
        }
        if matches!((before, word), (_, "[LOST") | (Some("PERF_RECORD_LOST"), "lost")) {
            // Older tracers do not say how many.
            let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(1);
            return Ok(Line { time_ns: None, event: Event::Lost(count) });
        }
        before = Some(word);
    }
    Ok(Line { time_ns: None, event: Event::Other })
}

/// `12.345678:` in nanoseconds. Without a fraction it counts something else: cycles, events.
fn seconds(word: &str) -> Option<u64> {
    let (whole, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let below = fraction.parse::<u64>().ok()? * scale;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(below)
}

#[derive(Default)]
struct Fields<'a> {
    iova: Option<&'a str>,
    end: Option<&'a str>,
    paddr: Option<&'a str>,
    size: Option<&'a str>,
    unmapped_size: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn new(words: impl Iterator<Item = &'a str>) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "-" {
                fields.end = Some(words.next().ok_or(Malformed::Missing("size"))?);
                continue;
            }
            let place = match word.split_once('=') {
                Some(("iova", _)) => &mut fields.iova,
                Some(("paddr", _)) => &mut fields.paddr,
                Some(("size", _)) => &mut fields.size,
                Some(("unmapped_size", _)) => &mut fields.unmapped_size,
                // A newer kernel may say more.
                _ => continue,
            };
            *place = word.split_once('=').map(|(_, value)| value);
        }
        Ok(fields)
    }

    fn range(&self) -> Result<(u64, u64), Malformed> {
        let iova = number("iova", self.iova)?;
        let size = number("size", self.size)?;
        if size == 0 {
            return Err(Malformed::Empty);
        }
        let last = iova.checked_add(size - 1).ok_or(Malformed::Overflow)?;
        if self.end.is_some() {
            let (end, expected) = (number("iova", self.end)?, last.wrapping_add(1));
            if end != expected {
                return Err(Malformed::End { end, expected });
            }
        }
        Ok((iova, size))
    }

    fn map(&self) -> Result<Event, Malformed> {
        let (iova, size) = self.range()?;
        let phys = number("paddr", self.paddr)?;
        phys.checked_add(size - 1).ok_or(Malformed::Overflow)?;
        Ok(Event::Map { iova, phys, size })
    }

    fn unmap(&self) -> Result<Event, Malformed> {
        let (iova, size) = self.range()?;
        let unmapped = number("unmapped_size", self.unmapped_size)?;
        if unmapped > size {
            return Err(Malformed::TooMuch { size, unmapped });
        }
        Ok(Event::Unmap { iova, size, unmapped })
    }
}

fn number(field: &'static str, text: Option<&str>) -> Result<u64, Malformed> {
    let text = text.ok_or(Malformed::Missing(field))?;
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign, which has no meaning here.
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return Err(Malformed::Number(field));
    }
    u64::from_str_radix(digits, radix).map_err(|_| Malformed::Number(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: Event = Event::Map { iova: 0xffff_f000, phys: 0x8a3d_0000, size: 4096 };
    const UNMAP: Event = Event::Unmap { iova: 0xffe0_0000, size: 0x20_0000, unmapped: 0x1000 };

    #[test]
    fn every_tool_s_lines_are_read() {
        for (line, time_ns, event) in [
            // trace, with the end of the range
            (
                "     v4l2-cam-1234    [003] d..1.   512.000123: map: IOMMU: iova=0x00000000fffff000 - 0x0000000100000000 paddr=0x000000008a3d0000 size=4096",
                Some(512_000_123_000),
                MAP,
            ),
            // without; a name with a space in it
            (
                "  my cam: x-1234  [003] 512.000123: unmap: IOMMU: iova=0x00000000ffe00000 size=2097152 unmapped_size=4096",
                Some(512_000_123_000),
                UNMAP,
            ),
            // trace-cmd report
            (
                "cam-77 [000]  0.5:   map:                  IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096",
                Some(500_000_000),
                MAP,
            ),
            // perf script --ns
            (
                "cam  77 [001] 12.123456789: iommu:unmap: IOMMU: iova=0xffe00000 - 0x100000000 size=2097152 unmapped_size=4096",
                Some(12_123_456_789),
                UNMAP,
            ),
            // a counting clock; no clock; a field more
            ("cam-77 [000] 77: map: IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096", None, MAP),
            ("map: IOMMU: iova=0xfffff000 paddr=0x8a3d0000 size=4096 dev=x y", None, MAP),
            ("CPU:2 [LOST 4321 EVENTS]", None, Event::Lost(4321)),
            ("CPU:2 [LOST EVENTS]", None, Event::Lost(1)),
            ("cam 77 [001] 12.1: PERF_RECORD_LOST lost 12", None, Event::Lost(12)),
            ("# tracer: nop", None, Event::Blank),
            ("   ", None, Event::Blank),
            ("cam-77 [000] 1.5: attach_device_to_domain: IOMMU: device=a", None, Event::Other),
            ("cam-77 [000] 1.5: sched_switch: map: prev=1", None, Event::Other),
            ("cam-77 [000] 1.5: io_page_fault: IOMMU:x iova=0x1 flags=0", None, Event::Other),
        ] {
            assert_eq!(parse(line), Ok(Line { time_ns, event }), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (fields, expected) in [
            ("map: IOMMU: iova=0x1000 paddr=0x10", Malformed::Missing("size")),
            ("map: IOMMU: iova=0x1000 size=16", Malformed::Missing("paddr")),
            ("map: IOMMU:", Malformed::Missing("iova")),
            ("unmap: IOMMU: iova=0x1000 size=16", Malformed::Missing("unmapped_size")),
            ("unmap: IOMMU: iova=0x1000 -", Malformed::Missing("size")),
            ("map: IOMMU: iova=0x1g paddr=0 size=16", Malformed::Number("iova")),
            ("map: IOMMU: iova=0x+1 paddr=0 size=16", Malformed::Number("iova")),
            ("map: IOMMU: iova= paddr=0 size=16", Malformed::Number("iova")),
            ("map: IOMMU: iova=0x10000000000000000 paddr=0 size=16", Malformed::Number("iova")),
            ("map: IOMMU: iova=0x1 paddr=0 size=-16", Malformed::Number("size")),
            ("map: IOMMU: iova=0x1 paddr=0 size=0", Malformed::Empty),
            ("map: IOMMU: iova=0xffffffffffffffff paddr=0 size=2", Malformed::Overflow),
            ("map: IOMMU: iova=0 paddr=0xffffffffffffffff size=2", Malformed::Overflow),
            (
                "map: IOMMU: iova=0x1000 - 0x3000 paddr=0 size=4096",
                Malformed::End { end: 0x3000, expected: 0x2000 },
            ),
            (
                "unmap: IOMMU: iova=0x1000 size=16 unmapped_size=17",
                Malformed::TooMuch { size: 16, unmapped: 17 },
            ),
        ] {
            assert_eq!(parse(&format!("cam-77 [000] 1.5: {fields}")), Err(expected), "{fields}");
        }
        // Up to the last byte there is.
        let last = "map: IOMMU: iova=0xffffffffffffffff - 0x0 paddr=0 size=1";
        assert!(parse(last).is_ok(), "{:?}", parse(last));
    }
}
