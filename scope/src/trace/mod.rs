//! A kernel's `events/spi` as text: the messages in it, their phases, and a profile of the board made of them.
//!
//! *Read first*: Linux, `include/trace/events/spi.h`, for what each event prints.
//!
//! # How it works
//! [`parse`] reads a line: an event, or none of ours. [`read`] puts events in the order of time, follows those of each
//! controller from a message's submission to its end, and divides the time between into named [`Phase`]s, without a gap: the
//! phases of a message add up to its whole time. Events of the scheduler and of interrupts say who ran, slept and was
//! woken meanwhile. [`Profile::of`] takes the medians of messages that have the same phases, which is to say the same
//! transfers; [`TraceKind`] the distribution of the times in between.
//!
//! A message is left out, and counted, if its transfers do not add up to what its end says, or if it lasts where events
//! were lost. A time contains what the tracer costs. Whether the trace's clock is a board's or an emulator's is not in it.
//!
//! # Not supported
//! Messages that overlap on one controller, as with offloaded transfers. Binary traces: `trace-cmd report` and `perf
//! script` make text. A trace is read whole, in memory of some times its size.

mod kinds;
mod line;
mod messages;
mod profile;
#[cfg(test)]
mod tests;

pub use kinds::{TraceKind, kinds};
pub use line::{Event, LineError, Sent, TraceLine, parse};
pub use messages::{Mark, Message, Phase, SkippedLine, Trace, Transfer, read};
pub use profile::{PhaseTime, Profile, Shape, TransferCost};

/// How much of a file [`is_trace`] has to see.
pub const HEAD_BYTES: usize = 64 << 10;

/// Whether a file with this beginning is a trace: it says so, or has a whole line with an event of ours.
#[must_use]
pub fn is_trace(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&head[..head.len().min(HEAD_BYTES)]);
    let is_event = |line| parse(line).is_ok_and(|line| line.event != Event::Other);
    text.starts_with("# tracer:") || text.starts_with("cpus=") || text.lines().any(is_event)
}
