//! MCP2518FD and MCP2517FD: CAN FD controllers behind SPI.
//!
//! # Read first
//! Microchip DS20006027 (MCP2518FD) and DS20005688 (MCP2517FD), chapters "Memory organization" and
//! "SPI instructions"; DS20005678, the family's reference manual; errata DS80000789 (MCP2518FD) and
//! DS80000792 (MCP2517FD).
//!
//! # How the chip works
//! Registers lie at 0x000 and 0xe00, 2 KiB of memory at 0x400; each exchange is a command, a 12-bit
//! address, and bytes from there on. Memory holds FIFOs of *objects*: a header, a time stamp, data.
//! Whoever reads or writes one says UINC (next object) in the FIFO's control register afterwards,
//! with TXREQ (send it) where it is to go out. INT is low while an enabled flag of C1INT is set.
//!
//! # How this driver uses it
//! 1. [`Mcp251xfd::new`] proves the chip: reset, oscillator, C1CON's reset value; then everything
//!    is set up, off the bus. [`Mcp251xfd::start`] joins the bus.
//! 2. A received frame is three accesses ([`Mcp251xfd::service`]): C1INT, whose RXIF says that FIFO
//!    1 has a frame, since no other receives; the object, whose address follows from the one before;
//!    UINC. Data beyond 8 bytes is a fourth, because the length is in the header
//!    (always reading 64 bytes would take 28 µs at 16 MHz). The FIFO's status is
//!    not read: its flag is C1INT's, and its index may be wrong (erratum DS80000789 6).
//! 3. The last access to an object and UINC are one message with `cs_change`: the bus is taken twice
//!    for a short frame.
//! 4. A transmitted frame is two accesses in one message ([`Mcp251xfd::transmit`]): the object, then
//!    the one byte with UINC and TXREQ. Free places are counted, and asked for only when the count says
//!    there are none. Nothing interrupts for it, unless events are asked for.
//! 5. C1INT has flags and enables in one word: if the enables are not what was written, the chip
//!    was reset or is gone, which costs no access to find out.
//! 6. Single bytes are written where a register's others belong to somebody else.
//!
//! # Ordering
//! 1. An object is read before UINC gives its place back, and written before TXREQ sends it.
//! 2. A flag is cleared before what it is about is read: a change in between sets it again.
//! 3. With an access that failed nobody knows whether UINC arrived: the next call asks the chip where
//!    the FIFOs stand.
//!
//! # Not supported
//! Sleep and wake-up, ECC, GPIO pins, one-shot transmission and abort of single frames, answers to
//! remote frames, standard identifiers of 12 bits, more than one FIFO to receive into.
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
use crate::bus::Device;
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
pub enum Part {
    /// The elder, without low power mode.
    Mcp2517fd,
    /// The younger; MCP251863 has one inside.
    Mcp2518fd,
}

/// A CAN FD controller that has proved its identity.
pub struct Mcp251xfd<F, T> {
    // Hot fields first: what a received frame reads.
    link: Link<F>,
    layout: Layout,
    /// What C1INT has in its upper half: nothing while off the bus.
    enables: u32,
    /// What accesses that failed have left to do: flags of C1INT, and [`OUT_OF_STEP`].
    owed: u32,
    /// Places known to be free to transmit from.
    tx_free: u8,
    sequence: u8,
    times: Widener,
    /// C1INT, as it was read last.
    interrupts: u32,
    /// What [`embedded_can`]'s traits have still to report.
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

impl<'b, C, T> Mcp251xfd<OnDevice<'b, C, FRAME_BYTES>, T>
where
    C: Controller + ?Sized,
    T: Timer,
{
    /// The controller behind `device`: proved and set up, off the bus. `timer` times its waits.
    ///
    /// # Errors
    /// [`CanError::NoChip`], [`CanError::UnexpectedId`], [`CanError::OscillatorNotReady`];
    /// [`CanError::SpiTooFast`], [`CanError::Oscillator`], [`CanError::BitTiming`],
    /// [`CanError::Ram`] and [`CanError::Depth`], of which nothing was clocked;
    /// [`CanError::Message`], [`CanError::Crc`], [`CanError::WriteCrc`].
    pub fn new(device: Device<'b, C>, timer: T, config: Config) -> Result<Self, CanError> {
        Self::over(OnDevice::new(device)?, device.effective().speed_hz, timer, config)
    }
}

impl<P: Port, T: Timer> Mcp251xfd<OnPort<P, FRAME_BYTES>, T> {
    /// [`Mcp251xfd::new`] behind any [`Port`], another HAL's `SpiDevice` for one.
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

    /// Which part it is.
    pub fn part(&self) -> Part {
        self.part
    }

    /// What it is set up as.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time of the time stamps, in their ticks.
    ///
    /// # Errors
    /// [`CanError::Message`], [`CanError::Crc`].
    pub fn now(&mut self) -> Result<u64, CanError> {
        let stamp = self.link.read(&C1TBC)?;
        Ok(self.times.widen(stamp))
    }
}
