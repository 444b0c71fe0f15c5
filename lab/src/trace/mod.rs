//! A kernel's `events/spi` as text: the messages in it, their phases, and a profile of the board made of them.
//!
//! *Read first*: Linux, `include/trace/events/spi.h`, for what each event prints.
//!
//! # How it works
//! [`line`](parse) reads a line: an event, or none of ours. [`read`] follows the events of each controller from a
//! message's submission to its end and divides the time between into named [`Phase`]s, without a gap: the phases of a
//! message add up to its whole time. [`Profile::of`] takes the medians of messages that have the same phases, which is to
//! say the same transfers.
//!
//! A phase contains what the tracer costs. Whether the trace's clock is a board's or an emulator's is not in it.
//!
//! # Not supported
//! Messages that overlap on one controller, as with offloaded transfers. Binary traces: `trace-cmd report` makes text.

mod line;
mod messages;
mod profile;
#[cfg(test)]
mod tests;

pub use line::{Event, LineError, TraceLine, parse};
pub use messages::{Message, Phase, SkippedLine, Trace, read};
pub use profile::{PhaseTime, Profile, Shape, TransferCost};
