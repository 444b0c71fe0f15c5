//! MCP2518FD and MCP2517FD: CAN FD controllers on SPI.
//!
//! # Read first
//! Microchip DS20006027 (MCP2518FD) and DS20005688 (MCP2517FD), chapters "Memory organization" and
//! "SPI instructions"; DS20005678, the family's reference manual; errata DS80000789 (MCP2518FD) and
//! DS80000792 (MCP2517FD).
//!
//! # How the chip works
//! Registers are at 0x000 and 0xe00, and 2 KiB of memory at 0x400. Each exchange is a command, a
//! 12-bit address, and bytes from that address on. The memory holds FIFOs of *objects*: a header, a
//! time stamp, data. After software has read or written an object it sets UINC (next object) in the
//! FIFO's control register, and TXREQ too if the object is to be sent. INT is low while an enabled
//! flag of C1INT is set.
//!
//! # How this driver uses it
//! 1. Identity: [`Mcp251xfd::new`] checks the chip by reset, oscillator, and C1CON's reset value.
//!    Then it sets everything up, off the bus. [`Mcp251xfd::start`] joins the bus.
//! 2. Receive: a received frame takes three accesses ([`Mcp251xfd::service`]). C1INT: its flag RXIF
//!    means that FIFO 1 has a frame, since only that FIFO receives. The object: its address follows
//!    from the previous one. UINC. Data beyond 8 bytes takes a fourth access, because the header
//!    has the length. The FIFO's status is not read: C1INT has its flag, and its index may be wrong
//!    (erratum DS80000789 6).
//! 3. One message: the last access to an object and UINC are one message with `cs_change`, so the
//!    bus is acquired twice for a short frame.
//! 4. Transmit: a transmitted frame takes two accesses in one message ([`Mcp251xfd::transmit`]):
//!    the object, then the byte with UINC and TXREQ. The driver counts free places, and asks the
//!    chip only when the count is zero. There is no interrupt for transmission unless events are
//!    configured.
//! 5. Presence: C1INT has flags and enables in one word. If the enables differ from the written
//!    value, the chip was reset or is gone. This check needs no additional access.
//! 6. Single bytes: a register is written in part if its other bytes have another owner.
//!
//! # Ordering
//! 1. An object is read before UINC releases it, and written before TXREQ sends it.
//! 2. A flag is cleared before its cause is read, so a change in between sets it again.
//! 3. After a failed access it is unknown whether UINC arrived, so the next call asks the chip for
//!    the state of the FIFOs.
//!
//! # Not supported
//! - Sleep and wake-up, ECC, GPIO pins.
//! - One-shot transmission, and abort of single frames.
//! - Answers to remote frames.
//! - Standard identifiers of 12 bits.
//! - More than one FIFO to receive into.
//!
//! # Example
//! ```no_run
//! use barewire::bus::Bus;
//! use barewire::chip::mcp251xfd::{BitRate, Config, Mcp251xfd, Oscillator, Received};
//! use barewire::spi::Settings;
//! # struct Clock;
//! # impl barewire::time::Timer for Clock {
//! #     fn frequency_hz(&self) -> u32 { 1 }
//! #     fn now_ticks(&mut self) -> u64 { 0 }
//! # }
//! # let timer = Clock;
//! # let bus = Bus::new(barewire::controller::null::Null::new());
//!
//! let config = Config::classic(Oscillator::new(40_000_000), BitRate::new(250_000));
//! let device = bus.device(&Settings::new(0, 16_000_000))?;
//! let mut can = Mcp251xfd::new(device, timer, config)?;
//! can.start()?;
//! let mut received = Received::EMPTY;
//! while can.service(&mut received)?.frame {
//!     can.transmit(&received.frame)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod can;
mod config;
mod crc;
mod error;
mod filter;
mod frame;
mod layout;
mod regs;
mod rx;
mod service;
mod setup;
mod tef;
#[cfg(test)]
mod tests;
mod timestamp;
mod timing;
mod tx;

pub use config::{Config, Mode, Oscillator, Payload, TxOrder};
pub use error::CanError;
pub use filter::Filter;
pub use frame::{Frame, Received};
pub use regs::{MAP, MAP_2517FD};
pub use service::{ErrorCounters, ErrorState, Found, Invalid, Served};
pub use tef::Transmitted;
pub use timing::{BitRate, BitTiming, TimingError};

/// Identifiers, as `embedded-can` has them.
pub use embedded_can::{ExtendedId, Id, StandardId};

use core::fmt;

use super::{OnPort, Port};
use crate::bus::{Device, Uses};
use crate::controller::Controller;
use crate::regmap::{Frames, OnDevice, RegMap};
use crate::time::Timer;
use access::{BUFFER_BYTES, Link};
use filter::FILTERS;
use layout::Layout;
use regs::{C1TBC, FRAME_BYTES};
use timestamp::Widener;

/// No flag of C1INT: the chip must be asked where its FIFOs stand.
const OUT_OF_STEP: u32 = 1 << 5;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Part {
    /// The older part, without low power mode.
    Mcp2517fd,
    /// The newer part; MCP251863 contains one.
    Mcp2518fd,
}

/// A CAN FD controller whose identity was checked.
pub struct Mcp251xfd<F, T> {
    // Hot fields first: those read for a received frame.
    link: Link<F>,
    layout: Layout,
    /// The value of C1INT's upper half: 0 while off the bus.
    enables: u32,
    /// Work left over by failed accesses: flags of C1INT, and [`service::OUT_OF_STEP`].
    owed: u32,
    /// The number of objects known to be free for transmission.
    tx_free: u8,
    sequence: u8,
    times: Widener,
    /// The last value read from C1INT.
    interrupts: u32,
    /// An error that [`embedded_can`]'s traits have yet to report.
    deferred: Option<CanError>,
    rx_buffer: [u8; BUFFER_BYTES],
    tx_buffer: [u8; BUFFER_BYTES],
    /// The access that sends an object, and its length.
    tx_go: ([u8; 6], usize),
    timer: T,
    config: Config,
    part: Part,
    filters: [Option<Filter>; FILTERS],
}

impl<F, T> fmt::Debug for Mcp251xfd<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp251xfd")
            .field("part", &self.part)
            .field("config", &self.config)
            .field("interrupts", &self.interrupts)
            .finish_non_exhaustive()
    }
}

impl<'b, C, U, T> Mcp251xfd<OnDevice<'b, C, FRAME_BYTES, U>, T>
where
    C: Controller + ?Sized,
    U: Uses,
    T: Timer,
{
    /// Identifies the controller behind `device` and sets it up, off the bus. `timer` times its
    /// waits.
    ///
    /// # Errors
    /// Before anything is clocked: [`CanError::SpiTooFast`], [`CanError::Oscillator`],
    /// [`CanError::BitTiming`], [`CanError::Ram`] and [`CanError::Depth`]. Then
    /// [`CanError::NoChip`], [`CanError::UnexpectedId`], [`CanError::OscillatorNotReady`],
    /// [`CanError::Message`], [`CanError::Crc`] and [`CanError::WriteCrc`].
    pub fn new(device: Device<'b, C, U>, timer: T, config: Config) -> Result<Self, CanError> {
        Self::over(OnDevice::new(device)?, device.effective().speed_hz, timer, config)
    }
}

impl<P: Port, T: Timer> Mcp251xfd<OnPort<P, FRAME_BYTES>, T> {
    /// [`Mcp251xfd::new`] on any [`Port`], for example another HAL's `SpiDevice`.
    ///
    /// # Errors
    /// As [`Mcp251xfd::new`].
    pub fn on_port(port: P, timer: T, config: Config) -> Result<Self, CanError> {
        let speed_hz = port.speed_hz();
        Self::over(OnPort::new(port), speed_hz, timer, config)
    }
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    fn over(frames: F, speed_hz: u32, timer: T, config: Config) -> Result<Self, CanError> {
        setup::check(&config, speed_hz)?;
        let mut filters = [None; FILTERS];
        filters[0] = Some(Filter::ALL);
        let mut this = Self {
            link: Link::new(RegMap::new(frames, &MAP)),
            layout: Layout::new(&config)?,
            enables: 0,
            owed: 0,
            tx_free: 0,
            sequence: 0,
            times: Widener::default(),
            interrupts: 0,
            deferred: None,
            rx_buffer: [0; BUFFER_BYTES],
            tx_buffer: [0; BUFFER_BYTES],
            tx_go: ([0; 6], 0),
            timer,
            config,
            part: Part::Mcp2517fd,
            filters,
        };
        this.bring_up(|_| Ok(()))?;
        Ok(this)
    }

    /// The part.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The present time, in ticks of the time stamps.
    ///
    /// # Errors
    /// [`CanError::Message`], [`CanError::Crc`].
    pub fn now(&mut self) -> Result<u64, CanError> {
        let stamp = self.link.read(&C1TBC)?;
        Ok(self.times.widen(stamp))
    }
}
