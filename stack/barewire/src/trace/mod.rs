//! Events on a bus, for tracing and counting.
//!
//! They are named after the kernel's SPI tracepoints with the same meaning: `spi_message_start`,
//! `spi_transfer_start`/`stop`, `spi_message_done`.

use crate::controller::Unfinished;
use crate::spi::Data;

/// An event on a bus.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event<'e> {
    /// A message begins. It was validated before.
    MessageStart {
        /// Ticks of the tracer's timer.
        at_ticks: u64,
        /// The number of its transfers.
        transfers: usize,
    },
    /// A transfer of the message, reported after the message has ended: the data sent and received.
    Transfer {
        /// The index, from 0.
        index: usize,
        /// Its buffers.
        data: &'e Data<'e>,
        /// Whether CS was released and asserted again after it.
        cs_change: bool,
    },
    /// The message is complete.
    MessageDone {
        /// Ticks of the tracer's timer.
        at_ticks: u64,
        /// Its length in bytes.
        actual_length: usize,
    },
    /// The message did not finish.
    MessageFailed {
        /// Ticks of the tracer's timer.
        at_ticks: u64,
        /// Where it failed, and how long it took.
        unfinished: Unfinished,
    },
}

/// Receives events. Only the holder of the bus calls it, so calls never overlap.
pub trait Sink {
    /// Receives an event, in order.
    fn event(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Sink for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}
