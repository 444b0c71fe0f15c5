//! The kernel's GPIO character device, served by pins: what a program sees that was written for
//! `/dev/gpiochipN`.
//!
//! Read first: `include/uapi/linux/gpio.h` and `Documentation/userspace-api/gpio/` of Linux. The rules and the
//! order of the checks are those of Linux 6.1. Both versions of the interface are there: programs of
//! libgpiod 1.4 and before, and others, use the first.
//!
//! # How it works
//! * [`ChipName`]: a chip's node.
//! * [`GpioRequest`]: an ioctl's number, decoded. The library copies as many bytes as it says.
//! * [`GpioChip`]: one chip: which of its lines are requested by which open file, what they are set to, and
//!   the events that those files read. Its pins are anything that is [`Pins`].
//! * `layout`: the structures. `config`: a line's settings, with the kernel's checks. `edges`: the level
//!   changes of a watched line.
//!
//! A request makes a new open file. The library makes it first, a connection to the server as every open file
//! ([`protocol`](crate::protocol)), and passes its id behind the request's structure. Events are packets on
//! that connection: each is one structure, so that a program which reads around the library gets them too.
//!
//! # Differences from the kernel
//! * More events are kept than a program asks for, because those in the connection come on top. If they are
//!   too many, the oldest of those that are not in the connection is lost; sequence numbers show it.
//! * If a line changes and changes back between two looks, there is no event, unless a chip asserted its
//!   pin again.
//! * `EVENT_CLOCK_HTE` is `EOPNOTSUPP`, as by a kernel without timestamp engines.
//! * Every line may be watched for edges.

mod chip;
mod config;
mod edges;
mod layout;
mod request;
pub mod tree;

pub use crate::chip_name::ChipName;
pub use chip::{GpioChip, GpioError, LineSpec};
pub use edges::{Look, Now};
pub use request::{Argument, GpioRequest};

/// The pins of a chip, by line: numbers from 0, all below [`LINES_MAX`].
pub trait Pins {
    /// How many there are, at most [`LINES_MAX`].
    fn lines(&self) -> u32;

    /// A pin's level, driven by the board, a chip or a program.
    fn level(&mut self, line: u32) -> bool;

    /// Makes a pin an output that begins with `high`.
    fn output(&mut self, line: u32, high: bool);

    /// Drives pins that are outputs: those of `mask`, a bit for each line, to the levels in `levels`.
    fn drive(&mut self, mask: u64, levels: u64);

    /// Makes a pin an input.
    fn input(&mut self, line: u32);

    /// Pulls a pin up or down.
    fn pull(&mut self, line: u32, up: bool);

    /// Looks at a pin as an interrupt controller does.
    fn look(&mut self, line: u32) -> Look;
}

/// The most lines of a chip here: a bit for each in a word.
pub const LINES_MAX: u32 = 64;
