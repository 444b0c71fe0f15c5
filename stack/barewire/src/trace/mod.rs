//! Events: what happened on a bus, for whoever watches or counts.
//!
//! Named after the kernel's SPI tracepoints where they mean the same: `spi_message_start`,
//! `spi_transfer_start`/`stop`, `spi_message_done`.

use crate::controller::Unfinished;
use crate::spi::Data;

/// Something that happened on a bus.
#[derive(Clone, Copy, Debug)]
pub enum Event<'e> {
    /// A message begins; it was validated before.
    MessageStart {
        /// Ticks of the watcher's timer.
        at_ticks: u64,
        /// Its transfers.
        transfers: usize,
    },
    /// A transfer of it, after the message: what was sent and received.
    Transfer {
        /// Which, from 0.
        index: usize,
        /// Its buffers.
        data: &'e Data<'e>,
        /// Whether CS dropped and rose after it.
        cs_change: bool,
    },
    /// The message is done.
    MessageDone {
        /// Ticks of the watcher's timer.
        at_ticks: u64,
        /// Its length in bytes.
        actual_length: usize,
    },
    /// The message did not finish.
    MessageFailed {
        /// Ticks of the watcher's timer.
        at_ticks: u64,
        /// Where, and after how long.
        unfinished: Unfinished,
    },
}

/// Takes events. Called by whoever holds the bus, so never by two at once.
pub trait Sink {
    /// An event, in order.
    fn event(&mut self, event: &Event<'_>);
}

impl<F: FnMut(&Event<'_>)> Sink for F {
    fn event(&mut self, event: &Event<'_>) {
        self(event);
    }
}
