//! Parses the kernel's iommu and dma events: each line of text becomes an event.
//!
//! *Read first*: Linux, `include/trace/events/iommu.h` and `include/trace/events/dma.h` (the latter since
//! 6.12), for what each event prints.
//!
//! Lines of `trace` and `trace_pipe`, of `trace-cmd report` and of `perf script` differ in what
//! stands before the event's name, and agree from there on:
//!
//! ```text
//! … 1.941518: map: IOMMU: iova=0xfffff000 - 0x100000000 paddr=0x8a3d0000 size=4096
//! … 1.941711: iommu:unmap: IOMMU: iova=0xfffff000 - 0x100000000 size=4096 unmapped_size=4096
//! … 1.941812: dma_map_page: 0000:01:00.0 dir=TO_DEVICE dma_addr=fffff040 size=1500 phys_addr=8a3d0040 attrs=
//! ```
//!
//! What differs between kernels:
//! - `iommu:map` of older ones leaves the end of the range out.
//! - `dma_map_page` and `dma_map_resource`, and their unmaps, are `dma_map_phys` since 6.18.
//! - `dma_map_sg` of newer ones prints how many entries it has, and no more than 128 of them.
//! - `dma_unmap_sg` prints the list's physical addresses in all versions, not the IOVA.
//! - `dma_alloc` prints no physical address.
//!
//! This folder uses nothing of its neighbours, because a fuzz target includes it too.

mod dma;
mod iommu;

use std::fmt;

/// The event of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event<'a> {
    /// `size` bytes from `iova` were mapped to `phys`, in a domain without a name.
    Map { iova: u64, phys: u64, size: u64 },
    /// `size` bytes from `iova` were to be unmapped, and `unmapped` of them were.
    Unmap { iova: u64, size: u64, unmapped: u64 },
    /// A device's driver asked for something.
    Dma { device: &'a str, call: Call },
    /// A device came to, or left, a domain or a group.
    Named { event: &'static str, device: &'a str },
    /// An event of ours that changes no mapping.
    Passed(&'static str),
    /// The number of events that the tracer lost here.
    Lost(u64),
    /// A comment, or nothing.
    Blank,
    /// Something else.
    Other,
}

/// What a driver asked of the kernel's DMA interface. Addresses and sizes are those of buffers, in
/// bytes, and need not be multiples of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Call {
    /// A buffer was mapped. The trace does not give the physical address of memory that the DMA API
    /// allocated.
    Map { addr: u64, size: u64, phys: Option<u64> },
    /// A scatter list was mapped: the device's segments (address and size), and the memory's.
    MapList { segments: Vec<(u64, u64)>, phys: Vec<u64>, truncated: bool },
    /// A buffer was unmapped.
    Unmap { addr: u64, size: u64 },
    /// The scatter list of this memory was unmapped.
    UnmapList { phys: Vec<u64> },
    /// The kernel refused to map.
    Failed,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TraceLine<'a> {
    /// The time on the tracer's clock; `None` if the line has none, or not in seconds.
    pub(super) time_ns: Option<u64>,
    /// The event.
    pub(super) event: Event<'a>,
}

/// Why a line cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineError {
    /// It is no line of a tracer.
    NoEvent,
    /// It lacks a field.
    Missing(&'static str),
    /// A field is no number.
    Number(&'static str),
    /// A field is no list of numbers.
    List(&'static str),
    /// There is nothing between begin and end.
    Empty,
    /// The range goes beyond 64 bits.
    Overflow,
    /// The range's end is not begin and size.
    End { end: u64, expected: u64 },
    /// More was unmapped than asked.
    TooMuch { size: u64, unmapped: u64 },
    /// A scatter list has as many addresses, and another number of sizes.
    Uneven { addresses: usize, sizes: usize },
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoEvent => {
                f.write_str("it is no line of a tracer: there is neither a time nor a processor")
            }
            Self::Missing("device") => f.write_str("there is no device: was the line cut?"),
            Self::Missing(field) => write!(f, "{field}= is missing: was the line cut?"),
            Self::Number(field) => write!(f, "{field}= is no number of 64 bits"),
            Self::List(field) => write!(f, "{field}= is no list of numbers of 64 bits"),
            Self::Empty => f.write_str("a range of 0 bytes"),
            Self::Overflow => f.write_str("the range goes beyond 64 bits"),
            Self::End { end, expected } => {
                write!(f, "the range ends at {end:#x}, by its size at {expected:#x}")
            }
            Self::TooMuch { size, unmapped } => {
                write!(f, "{unmapped} bytes were unmapped of {size}")
            }
            Self::Uneven { addresses, sizes } => {
                write!(f, "a list of {addresses} addresses and {sizes} sizes")
            }
        }
    }
}

/// Events of the group `iommu` that change no mapping. Their text begins with `IOMMU:`.
const NAMED: [&str; 4] = [
    "attach_device_to_domain:",
    "detach_device_from_domain:",
    "add_device_to_group:",
    "remove_device_from_group:",
];

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<TraceLine<'_>, LineError> {
    let mut before = None;
    let mut words = line.split_ascii_whitespace().peekable();
    if is_between_events(line) {
        return Ok(TraceLine { time_ns: None, event: Event::Blank });
    }
    let mut is_event = false;
    while let Some(word) = words.next() {
        let time_ns = before.and_then(seconds);
        // What the kernel's iommu events begin with. Older ones have no space after it.
        if words.peek().is_some_and(|next| next.starts_with("IOMMU:")) {
            let name = word.strip_prefix("iommu:").unwrap_or(word);
            let fields = words.clone().skip(1);
            let event = match name {
                "map:" => Some(iommu::map(fields)?),
                "unmap:" => Some(iommu::unmap(fields)?),
                "io_page_fault:" => Some(Event::Passed("io_page_fault")),
                _ => NAMED.iter().find(|named| **named == name).and_then(|named| {
                    let device = fields.clone().find_map(|word| word.strip_prefix("device="))?;
                    Some(Event::Named { event: named.trim_end_matches(':'), device })
                }),
            };
            if let Some(event) = event {
                return Ok(TraceLine { time_ns, event });
            }
        }
        // The time or a counter stands before the name of an event, and ends with a colon.
        if before.is_none_or(|before| before.ends_with(':')) {
            let name = word.strip_prefix("dma:").unwrap_or(word);
            if let Some(kind) = name.strip_suffix(':').and_then(dma::Kind::of) {
                return Ok(TraceLine { time_ns, event: kind.parse(words)? });
            }
        }
        if matches!((before, word), (_, "[LOST") | (Some("PERF_RECORD_LOST"), "lost")) {
            // Older tracers do not say how many.
            let count = words.next().and_then(|count| count.parse().ok()).unwrap_or(1);
            return Ok(TraceLine { time_ns: None, event: Event::Lost(count) });
        }
        is_event |= is_of_tracer(word);
        before = Some(word);
    }
    if is_event {
        Ok(TraceLine { time_ns: None, event: Event::Other })
    } else {
        Err(LineError::NoEvent)
    }
}

/// Whether a line has no event: an empty line, a comment, the header of `trace-cmd report`, or a line of a
/// call chain.
fn is_between_events(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let Some(first) = words.next() else { return true };
    let is_address = |word: &str| word.len() >= 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    first.starts_with('#')
        || first.starts_with("cpus=")
        || matches!(first, "=>" | "version")
        || (first == "CPU" && line.trim_end().ends_with("is empty"))
        || is_address(first)
}

/// Whether every line of a tracer has such a word: the time or a counter, or the processor.
fn is_of_tracer(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let processor = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let counter = word.strip_suffix(':').map(|rest| rest.replacen('.', "", 1));
    processor.is_some_and(digits) || counter.is_some_and(|rest| digits(&rest))
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

fn number(field: &'static str, text: Option<&str>) -> Result<u64, LineError> {
    let text = text.ok_or(LineError::Missing(field))?;
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // `from_str_radix` takes a sign, which has no meaning here.
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return Err(LineError::Number(field));
    }
    u64::from_str_radix(digits, radix).map_err(|_| LineError::Number(field))
}

#[cfg(test)]
mod tests;
