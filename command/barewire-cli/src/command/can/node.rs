//! Our chip in use, and how it is waited for.
//!
//! # How it works
//! [`CanArgs::open`] proves the chip and sets it up, off the bus; [`Node::start`] joins. Then the
//! caller alternates between two calls. [`Node::wait`] returns when the chip has events or a time
//! has passed; a [`Waiter`] says how it waits. [`Node::serve`] reports all events to the caller.
//! Dropping or [stopping](Node::stop) the node puts the chip into configuration mode: it neither
//! sends nor acknowledges.
//!
//! # Time
//! Nanoseconds of the board's power-up on a simulated board, of the opening elsewhere; the chip's own
//! time stamps, microseconds, are put on the same line once, when it starts.

use std::time::Duration;

use barewire::bus::Device;
use barewire::chip::mcp251xfd::{
    CanError, Config, ErrorCounters, ErrorState, Filter, Found, Frame, Mcp251xfd, Part, Received,
};
use barewire::controller::Controller;
use barewire::regmap::OnDevice;
use barewire::spi::Settings;
use barewire::time::Timer;
use barewire_linux::Root;
use barewire_linux::gpio::{CharacterDevices, GpioError, InterruptLine, Sensed};
use barewire_linux::shared::ChipLock;
use barewire_sim::IntLine;
use serde::Serialize;

use super::args::{CanArgs, Which};
use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::session::{Session, SimCan};

/// Bytes of an exchange of the driver's registers.
const FRAME_BYTES: usize = 6;
/// How often a chip without an interrupt line is asked: 32 frames of 47 bits at 1 Mbit/s fill its FIFO
/// in 1.5 ms.
pub(super) const POLL_NS: u64 = 500_000;
/// Looks of one turn at a chip without an interrupt line.
const LOOKS: u32 = 64;
const PS_PER_NS: u64 = 1_000;
const NS_PER_US: u64 = 1_000;

/// The driver on any bus.
pub(super) type CanChip<'s> = Mcp251xfd<OnDevice<'s, dyn Controller + 's, FRAME_BYTES>, BoxedTimer>;

/// A session's timer, owned, for a driver that must own its timer.
pub(super) struct BoxedTimer(Box<dyn Timer>);

impl Timer for BoxedTimer {
    fn frequency_hz(&self) -> u32 {
        self.0.frequency_hz()
    }

    fn now_ticks(&mut self) -> u64 {
        self.0.now_ticks()
    }

    fn wait_ticks(&mut self, ticks: u64) {
        self.0.wait_ticks(ticks);
    }

    fn sleep_ns(&mut self, ns: u64) {
        self.0.sleep_ns(ns);
    }
}

/// A report of the chip to a command: a frame, an error, or a frame that was sent.
pub(super) struct ChipReport<'r> {
    pub(super) received: &'r Received,
    pub(super) found: &'r Found,
    /// The counters, where the state has changed.
    pub(super) counters: Option<ErrorCounters>,
}

/// Our chip.
pub(super) struct Node<'s> {
    chip: CanChip<'s>,
    session: &'s Session,
    timer: Box<dyn Timer>,
    on_bus: bool,
    clock: Clock,
    waiter: Waiter<'s>,
    /// Held as long as the driver lives, because the chip has one mode and one set of FIFOs for all
    /// users.
    _chip_lock: Option<ChipLock>,
}

/// How the chip is waited for.
enum Waiter<'s> {
    /// By a simulated board's interrupt line.
    Simulated(&'s IntLine),
    /// By a GPIO line of the kernel. If a wait fails, the next service reports the error.
    Gpio { line: InterruptLine, broken: Option<GpioError> },
    /// The chip is read at intervals.
    Polled,
}

impl<'s> Waiter<'s> {
    /// `--int`'s line if there is one, else the simulated board's, else none.
    fn open(args: &CanArgs, session: &'s Session) -> Result<Self, Failure> {
        if let Some((line, sense)) = args.int_line()? {
            let line = InterruptLine::open(&Root::system(), &CharacterDevices, &line, sense);
            let line = line.map_err(|error| Failure::Failed(format!("--int: {error}")))?;
            return Ok(Self::Gpio { line, broken: None });
        }
        let simulated = session.open.board().and_then(|board| board.can.as_ref());
        Ok(match simulated.filter(|_| !args.no_interrupt) {
            Some(can) => Self::Simulated(&can.line),
            None => Self::Polled,
        })
    }
}

/// Where the chip's time stamps begin, in microseconds of [`Node::now_ns`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    zero_us: i64,
}

impl Clock {
    /// A time stamp on that line, in microseconds.
    pub(super) fn at_us(self, stamp: u64) -> u64 {
        self.zero_us.saturating_add_unsigned(stamp).max(0) as u64
    }
}

impl CanArgs {
    /// The chip of the session's bus, identified and set up, off the CAN bus; and its kind.
    pub(super) fn open<'s>(
        &self,
        session: &'s Session,
        config: Config,
    ) -> Result<(Node<'s>, Which), Failure> {
        let chip_select = self.chip_select()?;
        let waiter = Waiter::open(self, session)?;
        let chip_lock = session.keep_chip(chip_select)?;
        let settings = Settings::new(chip_select, self.speed_hz());
        let settings = settings.with_mode(session.mode(chip_select));
        let device: Device<'s, dyn Controller + 's> = session.open.bus().device(&settings)?;
        let effective_speed_hz = device.effective().speed_hz;
        session.note_clock(self.speed_hz(), effective_speed_hz);
        // The speed asked, not the controller's next slower one: on another board it would be what
        // the chip gets.
        let max_hz = self.oscillator().spi_max_hz();
        if self.speed_hz() > max_hz {
            return Err(CanError::SpiTooFast { speed_hz: self.speed_hz(), max_hz }.into());
        }
        let chip = Mcp251xfd::new(device, BoxedTimer(session.open.timer()), config)?;
        let which = Which {
            place: session.place.clone(),
            chip_select,
            chip: match chip.part() {
                Part::Mcp2517fd => "MCP2517FD",
                Part::Mcp2518fd => "MCP2518FD",
            },
            speed_hz: self.speed_hz(),
            effective_speed_hz,
            rates: self.rates()?,
        };
        let timer = session.open.timer();
        let clock = Clock::default();
        let node =
            Node { chip, session, timer, on_bus: false, clock, waiter, _chip_lock: chip_lock };
        Ok((node, which))
    }
}

impl<'s> Node<'s> {
    /// The simulated board's side of the chip, where there is one.
    pub(super) fn simulated(&self) -> Option<&'s SimCan> {
        self.session.open.board()?.can.as_ref()
    }

    /// The driver's configuration.
    pub(super) fn config(&self) -> &Config {
        self.chip.config()
    }

    /// Sets the chip's filters; without any, everything passes.
    pub(super) fn set_filters(&mut self, filters: &[Filter]) -> Result<(), Failure> {
        for (index, &filter) in (0..).zip(filters) {
            self.chip.set_filter(index, Some(filter))?;
        }
        Ok(())
    }

    /// Takes no frames: filter 0 is what takes all of them.
    pub(super) fn receive_nothing(&mut self) -> Result<(), Failure> {
        Ok(self.chip.set_filter(0, None)?)
    }

    /// Joins the bus.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        self.chip.start()?;
        self.on_bus = true;
        // The chip's counter is read somewhere in the exchange: in its middle, off by half of it at most.
        let before_ns = self.now_ns();
        let stamp_us = self.chip.now()? as i64;
        let middle_ns = before_ns + (self.now_ns() - before_ns) / 2;
        self.clock = Clock { zero_us: (middle_ns / NS_PER_US) as i64 - stamp_us };
        Ok(())
    }

    /// Leaves the bus: the chip is in configuration mode.
    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        self.on_bus = false;
        Ok(self.chip.stop()?)
    }

    /// The time.
    pub(super) fn now_ns(&mut self) -> u64 {
        match self.session.open.board() {
            Some(simulated) => simulated.board.engine().now_ps() / PS_PER_NS,
            None => self.timer.now_ticks() * 1_000_000_000 / u64::from(self.timer.frequency_hz()),
        }
    }

    /// How the chip's time stamps lie on the line of [`Node::now_ns`].
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// Waits until the chip has something to say, or for `ns`; false if it has nothing.
    pub(super) fn wait(&mut self, ns: u64) -> bool {
        match &mut self.waiter {
            Waiter::Simulated(line) => line.wait(Some(ns.saturating_mul(PS_PER_NS))),
            Waiter::Gpio { line, broken } => match line.wait(Duration::from_nanos(ns)) {
                Ok(sensed) => sensed == Sensed::Active,
                Err(error) => {
                    *broken = Some(error);
                    true
                }
            },
            Waiter::Polled => {
                self.timer.sleep_ns(ns.min(POLL_NS));
                true
            }
        }
    }

    /// Lets `ns` pass, even if the chip asserts its interrupt.
    pub(super) fn pass(&mut self, ns: u64) {
        self.timer.sleep_ns(ns);
    }

    /// Passes all that the chip reports to `see`. False: the chip reported nothing.
    pub(super) fn serve(
        &mut self,
        mut see: impl FnMut(ChipReport<'_>) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let mut broken = None;
        let mut handle = |chip: &mut CanChip<'s>, received: &Received, found: &Found| {
            let counters = match found.state {
                Some(_) => Some(chip.error_counters()?),
                None => None,
            };
            if broken.is_none() {
                broken = see(ChipReport { received, found, counters }).err();
            }
            Ok(())
        };
        let mut something = false;
        match &mut self.waiter {
            Waiter::Simulated(line) => {
                something = self.chip.serve(|| line.is_high(), handle)?.looks > 0;
            }
            Waiter::Gpio { line, broken: line_broken } => {
                let wants = || match line.is_at_rest() {
                    Ok(at_rest) => !at_rest,
                    Err(error) => {
                        *line_broken = Some(error);
                        false
                    }
                };
                something = self.chip.serve(wants, handle)?.looks > 0;
                if let Some(error) = line_broken.take() {
                    return Err(Failure::Failed(format!("--int: {error}")));
                }
            }
            Waiter::Polled => {
                let mut received = Received::EMPTY;
                for _ in 0..LOOKS {
                    let found = self.chip.service(&mut received)?;
                    if found.is_nothing() {
                        break;
                    }
                    something = true;
                    handle(&mut self.chip, &received, &found)?;
                }
            }
        }
        broken.map_or(Ok(something), Err)
    }

    /// Gives the chip a frame; `None` if all its places are taken.
    pub(super) fn transmit(&mut self, frame: &Frame) -> Result<Option<u8>, CanError> {
        match self.chip.transmit(frame) {
            Ok(sequence) => Ok(Some(sequence)),
            Err(CanError::TxFull) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The error counters.
    pub(super) fn error_counters(&mut self) -> Result<ErrorCounters, Failure> {
        Ok(self.chip.error_counters()?)
    }

    /// SPI accesses to the chip so far, where they are counted.
    pub(super) fn accesses(&self) -> Option<u64> {
        Some(self.simulated()?.chip.borrow().instructions())
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        if self.on_bus
            && let Err(error) = self.stop()
        {
            note!("barewire: the CAN controller could not be taken off the bus: {error}");
        }
    }
}

/// The error counters of our chip at the end.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Counters {
    pub(super) transmit_errors: u8,
    pub(super) receive_errors: u8,
    pub(super) error_state: &'static str,
}

impl Counters {
    pub(super) fn of(counters: ErrorCounters) -> Self {
        let ErrorCounters { transmit, receive, state } = counters;
        let error_state = match state {
            ErrorState::Active => "active",
            ErrorState::Warning => "warning",
            ErrorState::Passive => "passive",
            ErrorState::BusOff => "bus-off",
        };
        Self { transmit_errors: transmit, receive_errors: receive, error_state }
    }
}
