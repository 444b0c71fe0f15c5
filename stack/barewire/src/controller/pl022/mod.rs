//! PL022: ARM's PrimeCell synchronous serial port, polled or by its interrupt.
//!
//! # Read first
//! ARM DDI 0194, "PrimeCell Synchronous Serial Port (PL022) Technical Reference Manual", chapters
//! 2 (operation; "Motorola SPI frame format" for when the select line moves) and 3 (registers). The
//! block is in ST's Nomadik and SPEAr, Calxeda's Highbank, the LM3S and the RP2040.
//!
//! # How the block works
//! Two FIFOs of 8 words of 4 to 16 bits; a word is a *frame* on the wire. While the block is
//! enabled (SSE), frames are sent as long as the transmit FIFO has words. Each frame brings a word
//! into the receive FIFO. A word that comes while that FIFO is full is lost, and RORRIS says so.
//! There are no counts: RNE says that there is a word, RXRIS that there are four, BSY that a frame
//! is on the wire.
//!
//! The clock is SSPCLK / (CPSDVSR × (1 + SCR)), CPSDVSR even. With SPH = 0 the block rests for
//! about two clocks after each frame, and its native select line (SSPFSSOUT) pulses. With SPH = 1
//! the frames of a filled FIFO follow each other without a pause.
//!
//! # How this driver uses it
//! 1. A device's settings are SSPCR0, SSPCPSR and SSPCR1. They are written when they change, with
//!    SSE clear, before a chip is selected. If the clock's polarity changes, the driver then waits
//!    two clock periods: the level follows when the block is enabled, in its own clock's time. (In
//!    an enabled block it would follow with the next frame, and the chip would count an edge.) A
//!    transfer with a speed or a word length of its own changes them while the chip is selected.
//!    That does not move the clock: the block may be enabled with words in its FIFO, so at rest the
//!    clock has the level of SPO, whether the block is enabled or not.
//! 2. At most 8 frames are in flight, so the receive FIFO cannot overrun however late we are. With
//!    8 in flight RXRIS is polled and four words are read at a time. With fewer, RNE is polled for
//!    each word, unless BSY has cleared: then all have been received. The last of them is read only
//!    when RNE shows it, so a lost word is noticed and not made up.
//! 3. With SPH = 1, and if every transfer of the message has an even length, two bytes go in a
//!    frame: half the accesses for identical bits on the wire. With SPH = 0 a byte is a frame, and
//!    the chip sees the pause after each byte that any driver would make.
//! 4. After the last word the driver waits until BSY clears: the last capture is up to a clock
//!    before the end.
//! 5. RORRIS means that a word was lost: [`Stopped::Overrun`].
//! 6. Transfers that take longer than [`Pl022Config::poll_limit_ns`] wait by interrupt; see
//!    `flight.rs`.
//! 7. The block has no reset, and clearing SSE keeps its FIFOs. So at bring-up and after errors it
//!    is emptied: words waiting in the transmit FIFO are sent while no chip is selected.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the native line, channel 0, active low. The block
//! moves its native line by itself: it falls with a frame and rises when the FIFO is empty; with
//! SPH = 0 it rises after every frame. So with SPH = 0 a message is one transfer of one word. With
//! SPH = 1 it is one transfer of up to 8 frames, which are in the FIFO before the block is enabled.
//! Longer messages are refused, and so are a setup time, a hold time and a word delay. The native
//! line falls whichever chip is addressed: a board with a chip on it can have no other.
//!
//! # Not supported
//! Least significant bit first (not in the block), word lengths other than 8 and 16 bits, TI's and
//! National's frame formats, target mode, DMA. Delays are spun, even in an interrupt handler.
//!
//! QEMU's model takes no time, has no RORRIS and no RTRIS, and gives a chip each frame as one word.
//! This driver runs on it unchanged, with two exceptions: QEMU's chips that take bytes need SPH =
//! 0, and a transfer of less than four frames that waits by interrupt ends at its deadline.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, pl022::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(pl022: Mmio, pl061: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = Pl022Config {
//!     reference_hz: 150_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 3, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(Pl022::new(pl022, Pl061::new(pl061), timer, config));
//! let flash = bus.device(&Settings::new(0, 20_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod flight;
mod regs;
#[cfg(test)]
mod tests;

pub use config::Pl022Config;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::deadline::poll;
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped, Wire};
use crate::reg::Registers;
use crate::spi::{Data, Transfer};
use crate::time::Timer;
use config::{frame_bytes, in_pairs};
use regs::{
    BSY, CPSDVSR_MAX, DSS, FIFO_WORDS, HALF_WORDS, RNE, ROR, RT, RX, SPO, SSE, SSPCPSR, SSPCR0,
    SSPCR1, SSPDMACR, SSPDR, SSPICR, SSPIMSC, SSPRIS, SSPSR, dss,
};

/// No device's configuration: SSPCPSR has eight bits.
const UNCONFIGURED: u32 = u32::MAX;
// Where `configure` puts its values in `Preset::regs`.
/// SSPCR1.
const P_CR1: usize = 0;
const P_FLAGS: usize = 1;
/// Ticks of two clocks.
const P_SETTLE: usize = 2;
/// In `P_FLAGS`: the select line is native.
const NATIVE: u32 = 1 << 0;
/// In `P_FLAGS`: frames follow each other without a pause.
const PAIRS: u32 = 1 << 1;

// A plan's `control`: SSPCR0 without a word length in the lower half, SSPCPSR in the upper half.
const CR0_BITS: u32 = 0xffff;

/// Control: SSPCPSR.
const fn cpsdvsr(prescaler: u32) -> u32 {
    prescaler << 16
}

/// Control: the product of the dividers.
const fn divisor(control: u32) -> u32 {
    (control >> 16) * ((control >> 8 & 0xff) + 1)
}

/// The PL022 block, its select lines and the timer that makes its delays.
pub type Pl022<R, G, T, I = NoInterrupt> = Block<Pl022State, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct Pl022State {
    /// SSPCR0 and SSPCPSR as last written; after a reset [`UNCONFIGURED`].
    control: u32,
    /// SSPCR1 as last written.
    cr1: u32,
    /// Whether two bytes of the message go in a frame.
    pairs: bool,
    /// Whether the selected chip is on the native line.
    native: bool,
    /// Whether BSY was seen clear after everything sent was received.
    rested: bool,
    /// Whether the transfer on the wire is continued by interrupt.
    left: bool,
    /// Why emptying the block failed.
    stuck: Option<Stopped>,
}

impl State for Pl022State {
    type Config = Pl022Config;
    type Board = Pl022Config;
    type Flight = fifo::Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Pl022<R, G, T, I> {
    /// Reads received words and lets waiting words out.
    fn empty(&mut self) -> Result<(), Stopped> {
        if self.is_empty() {
            return Ok(());
        }
        // The time depends on the clock that is set now, by any program.
        self.state.control =
            self.regs.read(SSPCR0) & CR0_BITS | cpsdvsr(self.regs.read(SSPCPSR) & 0xff);
        poll(self, |this| this.wire_ns(FIFO_WORDS), Self::is_empty)
    }

    /// Whether the block is idle and empty. Reads one received word if there is any.
    fn is_empty(&mut self) -> bool {
        let status = self.regs.read(SSPSR);
        if status & RNE != 0 {
            self.regs.discard_n(SSPDR, 1);
        }
        status & (RNE | BSY) == 0
    }

    fn disable(&mut self) {
        // The role bit (MS) may change only while the block is disabled.
        let cr1 = self.regs.read(SSPCR1);
        self.regs.write(SSPCR1, cr1 & !SSE);
        self.regs.write(SSPCR1, 0);
        self.state.cr1 = 0;
    }

    /// Prepares a block that was disabled, or not a controller, to send the words waiting in its
    /// transmit FIFO. Sets only registers that would prevent sending.
    fn make_runnable(&mut self) {
        let (cr0, prescaler) = (self.regs.read(SSPCR0), self.regs.read(SSPCPSR) & 0xff);
        if prescaler < 2 {
            self.regs.write(SSPCPSR, CPSDVSR_MAX);
        }
        if cr0 & DSS < 3 {
            self.regs.write(SSPCR0, dss(1));
        }
    }

    /// Writes the control registers while the block is at rest.
    #[cold]
    fn reconfigure(&mut self, cr1: u32, control: u32) -> Result<(), Stopped> {
        if let Some(stopped) = self.state.stuck {
            return Err(stopped);
        }
        self.regs.write(SSPCR1, cr1 & !SSE);
        if self.state.control ^ control > CR0_BITS {
            self.regs.write(SSPCPSR, control >> 16);
        }
        self.regs.write(SSPCR0, control & CR0_BITS);
        self.regs.write(SSPCR1, cr1);
        self.state.cr1 = cr1;
        self.state.control = control;
        Ok(())
    }

    /// Configures the block for the device while no chip is selected. Returns whether that
    /// succeeded.
    #[cold]
    fn set_up(&mut self, preset: &Preset, control: u32) -> bool {
        if self.state.stuck.is_some() {
            // Try again: its clock may be running now.
            self.reset();
        }
        let repolarized =
            (self.state.control ^ control) & SPO != 0 || self.state.control == UNCONFIGURED;
        let done = self.reconfigure(preset.regs[P_CR1], control).is_ok();
        if done && repolarized {
            self.wait_ticks(preset.regs[P_SETTLE]);
        }
        done
    }

    /// Whether four or more words were received and none was lost. After a loss it is false, so
    /// that nothing is read that would hide the loss.
    #[inline]
    fn half_full(&mut self) -> bool {
        self.regs.read(SSPRIS) & (RX | ROR) == RX
    }

    /// SSPCR0 and SSPCPSR for a transfer of `plan`.
    #[inline(always)]
    fn control_of(&self, plan: &Plan) -> u32 {
        plan.control | dss(frame_bytes(plan, self.state.pairs))
    }

    /// Sets the block up for a transfer, and cuts the transfer into frames.
    #[inline(always)]
    fn prepare(&mut self, preset: &Preset, plan: &Plan) -> Result<Cut, Stopped> {
        let control = self.control_of(plan);
        if self.state.control != control {
            self.reconfigure(preset.regs[P_CR1], control)?;
        }
        Ok(Cut::new(plan, frame_bytes(plan, self.state.pairs)))
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Pl022<R, G, T, I> {
    fn depth(&self) -> usize {
        FIFO_WORDS
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.state.rested = false;
        // The native line would rise between two words if the second were late: enable after both.
        let together = self.state.native && words.len() > 1;
        if together {
            self.regs.write(SSPCR1, self.state.cr1 & !SSE);
        }
        self.regs.write_each(SSPDR, words);
        if together {
            self.regs.write(SSPCR1, self.state.cr1);
        }
    }

    #[inline]
    fn ready(&mut self, in_flight: usize) -> usize {
        if self.state.left && in_flight + self.flight.flow.unsent() >= HALF_WORDS {
            return self.ready_left(in_flight);
        }
        if in_flight == FIFO_WORDS {
            return if self.half_full() { HALF_WORDS } else { 0 };
        }
        let status = self.regs.read(SSPSR);
        if status & RNE == 0 {
            return 0;
        }
        if status & BSY != 0 {
            return 1;
        }
        // All have been received, unless one was lost: so the last is read only once RNE shows it.
        self.state.rested = in_flight == 1;
        (in_flight - 1).max(1)
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(SSPDR, places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(SSPDR, n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        self.state.rested || self.regs.read(SSPSR) & BSY == 0
    }

    fn lost(&mut self) -> bool {
        self.regs.read(SSPRIS) & ROR != 0
    }

    fn wire_ns(&self, words: usize) -> u64 {
        self.config.wire_ns(self.state.control, words)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Pl022<R, G, T, I> {
    #[cold]
    fn reset(&mut self) {
        self.regs.write(SSPIMSC, 0);
        self.regs.write(SSPDMACR, 0);
        self.state.stuck = self.empty().err();
        if self.state.stuck.is_some() {
            self.disable();
            self.make_runnable();
            self.regs.write(SSPCR1, SSE);
            self.state.stuck = self.empty().err();
        }
        self.disable();
        self.regs.write(SSPICR, ROR | RT);
        self.state.control = UNCONFIGURED;
        self.state.native = false;
        self.flight = fifo::Flight::default();
    }

    fn leave(&mut self) {
        self.regs.write(SSPCR1, 0);
    }

    fn mask(&mut self) {
        self.regs.write(SSPIMSC, 0);
    }

    fn unmask(&mut self) {
        self.regs.write(SSPIMSC, self.awaited());
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        let control = self.control_of(&preset.plan);
        if (self.state.control != control || self.state.cr1 != preset.regs[P_CR1])
            && !self.set_up(preset, control)
        {
            return false;
        }
        self.state.native = preset.regs[P_FLAGS] & NATIVE != 0;
        true
    }

    fn look_ahead(&mut self, preset: &Preset, message: &[Transfer<'_>]) {
        self.state.pairs = in_pairs(preset, message);
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let cut = self.prepare(preset, plan)?;
        self.state.left = false;
        fifo::exchange(self, cut, plan, data)
    }

    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        // A stuck block is given nothing: the transfer then times out.
        if let Ok(cut) = self.prepare(preset, plan) {
            self.state.left = true;
            fifo::begin(self, cut, plan, data);
        }
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        if let Some(stopped) = self.state.stuck {
            return Poll::Ready(Err(stopped));
        }
        fifo::advance(self, plan, data)
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        let set = self.state.control == control | dss(1) && self.state.cr1 == preset.regs[P_CR1];
        let bytes = preset.regs[P_FLAGS] & (NATIVE | PAIRS) == 0;
        set && bytes && len <= FIFO_WORDS
    }

    #[inline(always)]
    fn enter_short(&mut self, _preset: &Preset) {
        (self.state.native, self.state.pairs, self.state.left) = (false, false, false);
    }

    fifo::short_by_bytes!(exchange_rest_of_any);
}
