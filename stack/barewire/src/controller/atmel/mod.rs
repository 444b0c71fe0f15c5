//! The SPI of Atmel's, now Microchip's, SAMA5D3, and of the AT91 and SAM9 before it, polled or by
//! its interrupt.
//!
//! # Read first
//! SAMA5D3 Series datasheet, chapter "Serial Peripheral Interface (SPI)": "Master Mode Operations"
//! with its flow chart, "Transfer Delays", "Peripheral Deselection without DMA", and the user
//! interface. Errata of parts with the same block: AT91SAM7 revision B, "Software Reset Must be
//! Written Twice"; two about a divisor of 1 (see `config.rs`).
//!
//! # How the block works
//! No FIFO: a transmit register (TDR), a shift register, a receive register (RDR). A word written
//! to TDR goes to the shift register as soon as that is free, after DLYBCS and DLYBS if the line
//! changes, after DLYBCT if a word went before; TDRE says when TDR may be written again. A word
//! that has been clocked goes to RDR (RDRF), whether the one before was read or not (OVRES), unless
//! WDRBT lets no word start before RDR has been read. Each of four lines (NPCS) has a register with
//! its divider, mode, word length and delays (CSR); every transfer is one line's, which MR or the
//! word itself names. With CSAAT the line stays active until LASTXFER is written or another is
//! named.
//!
//! # How this driver uses it
//! 1. A device's settings are two register values: MR and the CSR of its line. Both are written
//!    only when they change. The clock's polarity stands in all four CSRs, so that its idle level
//!    does not depend on which line was last; it changes before the chip is selected.
//! 2. Transfers in 8-bit words of even length go in words of 16 bits where no word delay lies
//!    between: half the accesses for the same wire. A transfer of another length writes the CSR in
//!    between.
//! 3. A word costs three accesses: SR until RDRF, RDR, TDR. RDRF says also that TDR is free, or,
//!    with WDRBT, that it will be once RDR has been read, if the word's last half clock is over,
//!    which it is by then at 10 MHz and more. Below, and where two words are written in a row, SR
//!    is read until TDRE. OVRES comes with the same reads, as does TXEMPTY after the last word if
//!    it is over by then.
//! 4. With DLYBCT there is one word on the way: TDR stays taken throughout the delay, and the next
//!    word has all of it to be written in.
//! 5. A wait asks the hardware some 64 times before it asks the timer, and gives up after twice the
//!    wire time and 1 ms.
//! 6. Transfers that take longer than [`AtmelConfig::poll_limit_ns`] wait by interrupt; see
//!    `flight.rs` for what that costs: an interrupt a word.
//!
//! # How many words are on the way
//! | [`Pipe`] | polled | by interrupt |
//! |---|---|---|
//! | `WaitDataRead` | the wire waits for one read of SR and one of RDR a word | it waits for the handler's way to RDR |
//! | `OneWord` | and for the write of TDR | and for its way to TDR |
//! | `TwoWords` | no wait; lost if we are later than a word | no wait; lost if the handler is |
//!
//! What is lost is an error ([`Error::Overrun`]), and the block is reset and usable after it.
//! Polled at 26.4 MHz on SAMA5D3, as simulated, 518 bytes take 194 µs with `WaitDataRead` and
//! 158 µs with `TwoWords`; the wire alone takes 157 µs. A process under Linux loses words with
//! `TwoWords`: a tick of the kernel's is longer than a word.
//!
//! # Chip selects
//! PIO registers ([`gpio`](super::gpio)) or the block's own lines, which are active low. These fall
//! when the first word is written and rise when LASTXFER is, after the last clock is over: whatever
//! the message's transfers, they do not pulse. Their setup time is DLYBS, of at most 255 periods of
//! the peripheral clock; they stay inactive for DLYBCS, while software goes on, or, beyond 255
//! periods, while it waits. DLYBCS is all lines' alike: where two devices differ in it, whoever
//! comes next waits out the other's. A selection without a single word is not seen on them.
//!
//! Word delays are DLYBCT, on PIO lines too, up to 255 times 32 periods; longer ones are the
//! timer's. The block inserts DLYBCT after a transfer's last word also, unless that is its only
//! one.
//!
//! # Not supported
//! Least significant bit first (not in the block); words of 9 to 15 bits; a line decoder (PCSDEC);
//! the FIFOs of SAMA5D2 and later; DMA and PDC; target mode; write protection (SPI_WPMR), which
//! whoever set it is to take back. Delays are spun, in an interrupt handler too.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, atmel::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(spi0: Mmio, piod: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = AtmelConfig {
//!     reference_hz: 132_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 13, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     pipe: Pipe::WaitDataRead,
//!     peripheral_select: PeripheralSelect::Fixed,
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(Atmel::new(spi0, AtmelPio::new(piod), timer, config));
//! let flash = bus.device(&Settings::new(0, 44_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod flight;
mod regs;
#[cfg(test)]
mod tests;

pub use config::{AtmelConfig, PeripheralSelect, Pipe};

use core::task::Poll;

use super::block;
use super::deadline::{Timed, poll};
use super::fifo::{self, Cut, Fifo, Flight};
use super::gpio::GpioBank;
use super::lines::{self, Rest};
use super::waits::plan_waits;
use super::{
    Controller, Interrupt, Limits, NoInterrupt, Plan, Program, Progress, Stopped, Unfinished, Wire,
    plan_message, resume_message,
};
use crate::reg::Registers;
use crate::spi::{Data, Effective, Error, MessageError, Settings, Transfer};
use crate::time::{Timer, ticks_at_least};
use regs::{
    BITS_16, CHANNELS, CPOL, CR, DLYBCS_MIN, DLYBCT, IDR, IER, LASTXFER, MR, OVRES, RDR, RDRF,
    SPIDIS, SPIEN, SR, SWRST, TDR, TDRE, TXEMPTY, csr_of, dlybcs_of,
};

// Where `configure` puts its values in `Program::regs`.
const P_MR: usize = 0;
/// Which of the block's lines the transfers are, wired or not.
const P_CHANNEL: usize = 1;
/// The GPIO bit of the select line; 0 for the block's own line.
const P_CS_MASK: usize = 2;
const P_FLAGS: usize = 3;
/// In P_FLAGS: the line is active high.
const CS_HIGH: u32 = 1 << 0;
/// In P_FLAGS: the line is the block's own.
const NATIVE: u32 = 1 << 1;
/// PCS of each word, with [`PeripheralSelect::Variable`]; else 0.
const P_PCS: usize = 4;

/// The SPI block, its select lines and the timer that makes its delays.
#[derive(Debug)]
pub struct Atmel<R, G, T, I = NoInterrupt> {
    regs: R,
    gpio: G,
    /// MR and the CSRs as last written.
    mr: u32,
    csr: [u32; CHANNELS as usize],
    /// The line of the message that runs, and its PCS in TDR.
    channel: usize,
    pcs: u32,
    /// Words on the way at most.
    depth: usize,
    /// Whether RDR can have been read before the word's last half clock is over.
    slow: bool,
    /// SR as last read, if no word was written since; else 0.
    status: u32,
    /// Reading SR clears OVRES: this remembers it.
    overrun: bool,
    /// Whether a word was sent since the line was last deselected.
    selected: bool,
    timer: T,
    rest: Rest,
    config: AtmelConfig,
    interrupt: I,
    /// The message begun, between two steps of it.
    progress: Progress,
    flight: Flight,
}

impl<R: Registers, G: GpioBank, T: Timer> Atmel<R, G, T> {
    /// Resets and enables the block, and drives every GPIO select line inactive.
    ///
    /// # Panics
    /// If `config.reference_hz` is 0.
    pub fn new(regs: R, gpio: G, timer: T, config: AtmelConfig) -> Self {
        assert!(config.reference_hz > 0, "the block's peripheral clock runs");
        let mut this = Self {
            regs,
            gpio,
            mr: 0,
            csr: [0; CHANNELS as usize],
            channel: 0,
            pcs: 0,
            depth: 1,
            slow: true,
            status: 0,
            overrun: false,
            selected: false,
            timer,
            rest: Rest::default(),
            config,
            interrupt: NoInterrupt,
            progress: Progress::default(),
            flight: Flight::default(),
        };
        this.deselect_all();
        this.reset();
        this.rest = Rest::begin(&mut this.timer);
        this
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Atmel<R, G, T, I> {
    /// The same, sleeping for `interrupt` where a transfer takes longer than
    /// [`AtmelConfig::poll_limit_ns`].
    pub fn with_interrupt<J: Interrupt>(self, interrupt: J) -> Atmel<R, G, T, J> {
        Atmel {
            regs: self.regs,
            gpio: self.gpio,
            mr: self.mr,
            csr: self.csr,
            channel: self.channel,
            pcs: self.pcs,
            depth: self.depth,
            slow: self.slow,
            status: self.status,
            overrun: self.overrun,
            selected: self.selected,
            timer: self.timer,
            rest: self.rest,
            config: self.config,
            interrupt,
            progress: self.progress,
            flight: self.flight,
        }
    }

    /// The pieces back, the block disabled.
    pub fn release(mut self) -> (R, G, T) {
        self.regs.write(CR, SPIDIS);
        (self.regs, self.gpio, self.timer)
    }

    fn deselect_all(&mut self) {
        lines::deselect_all(&self.config.chip_selects, &mut self.gpio);
    }

    /// Everything as after power-up, but driving the clock.
    fn reset(&mut self) {
        // Twice: AT91SAM7 revision B, "Software Reset Must be Written Twice". Once more costs
        // nothing elsewhere.
        self.regs.write(CR, SWRST);
        self.regs.write(CR, SWRST);
        self.silence();
        // MSTR before any CSR: a CSR of a block that does not drive the clock is no clock's.
        self.mr = self.config.mr();
        self.regs.write(MR, self.mr);
        self.regs.write(CR, SPIEN);
        self.csr = [0; CHANNELS as usize];
        self.status = 0;
        self.overrun = false;
        self.selected = false;
        self.flight = Flight::default();
    }

    fn silence(&mut self) {
        self.regs.write(IDR, RDRF | OVRES | TXEMPTY);
    }

    /// Whole ticks in which `periods` of the block's clock pass.
    fn ticks_of(&self, periods: u32) -> u64 {
        let ns = (u64::from(periods) * 1_000_000_000).div_ceil(self.config.reference_hz.into());
        ticks_at_least(ns, self.timer.frequency_hz())
    }

    #[cold]
    fn reconfigure(&mut self, program: &Program) {
        let mr = program.regs[P_MR];
        if self.mr != mr {
            // DLYBCS may still run for the line before, which asked for it.
            let inactive = dlybcs_of(self.mr);
            if inactive > DLYBCS_MIN && inactive != dlybcs_of(mr) {
                self.timer.wait_ticks(self.ticks_of(inactive));
            }
            // Of what its reset moved the block knows nothing.
            let ticks = self.ticks_of(dlybcs_of(mr));
            self.rest.at_least(ticks.try_into().unwrap_or(u32::MAX), &mut self.timer);
            self.regs.write(MR, mr);
            self.mr = mr;
        }
        let polarity = program.plan.control & CPOL;
        if self.csr[self.channel] & CPOL == polarity {
            return;
        }
        for channel in 0..self.csr.len() {
            let csr =
                if channel == self.channel { program.plan.control } else { self.csr[channel] };
            self.set_csr(channel, csr & !CPOL | polarity);
        }
        // A chip that a GPIO selects must not see the clock change its level: this read waits for
        // the writes.
        self.read_status();
    }

    #[inline]
    fn set_csr(&mut self, channel: usize, csr: u32) {
        if self.csr[channel] != csr {
            self.regs.write(csr_of(channel), csr);
            self.csr[channel] = csr;
        }
    }

    #[inline]
    fn read_status(&mut self) -> u32 {
        self.status = self.regs.read(SR);
        self.overrun |= self.status & OVRES != 0;
        self.status
    }

    #[inline]
    fn send(&mut self, word: u32) {
        self.regs.write(TDR, word | self.pcs);
        self.status = 0;
    }

    /// Makes the block ready for a transfer of at least one word: its CSR, its words.
    #[inline]
    fn shape(&mut self, plan: &Plan, data: &Data<'_>) -> Cut {
        let mut csr = plan.control;
        let apart = csr & DLYBCT != 0 || plan.word_delay_ticks > 0;
        let mut frame_bytes = plan.word_bytes();
        if frame_bytes == 1 && !apart && data.len().is_multiple_of(2) {
            csr |= BITS_16;
            frame_bytes = 2;
        }
        if data.len() == usize::from(frame_bytes) {
            // Nothing follows that it would be apart from.
            csr &= !DLYBCT;
        }
        self.set_csr(self.channel, csr);
        // Item 4 of the module: with DLYBCT one word is on the way.
        let one = csr & DLYBCT != 0 || self.config.pipe == Pipe::OneWord;
        self.depth = if one { 1 } else { 2 };
        self.slow = self.config.is_slow(csr);
        self.overrun = false;
        self.selected = true;
        Cut::new(plan, frame_bytes)
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Timed for Atmel<R, G, T, I> {
    type Timer = T;

    fn timer(&mut self) -> &mut T {
        &mut self.timer
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Atmel<R, G, T, I> {
    #[inline]
    fn depth(&self) -> usize {
        self.depth
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        for (index, word) in words.enumerate() {
            // One written a moment ago stays in TDR for DLYBCS and DLYBS, one written before the
            // last for half a clock after RDRF, and would be overwritten.
            if (index > 0 || self.slow) && self.status & TDRE == 0 {
                let free =
                    poll(self, |this| this.wire_ns(1), |this| this.read_status() & TDRE != 0);
                if free.is_err() {
                    // It stays there for good: the transfer's timeout says so.
                    return;
                }
            }
            self.send(word);
        }
    }

    #[inline]
    fn ready(&mut self, _in_flight: usize) -> usize {
        let full = self.read_status() & RDRF != 0;
        // With a word lost, those after it are nobody's.
        usize::from(full && !self.overrun)
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(RDR, places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(RDR, n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        self.status & TXEMPTY != 0 || self.read_status() & TXEMPTY != 0
    }

    fn lost(&mut self) -> bool {
        self.overrun
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let wire_ps = self.config.wire_ps(self.csr[self.channel], words);
        u64::try_from(wire_ps.div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    fn flight(&mut self) -> &mut Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Wire for Atmel<R, G, T, I> {
    #[inline(always)]
    fn select(&mut self, program: &Program) {
        self.channel = program.regs[P_CHANNEL] as usize % self.csr.len();
        self.pcs = program.regs[P_PCS];
        let polarity = (self.csr[self.channel] ^ program.plan.control) & CPOL;
        if self.mr != program.regs[P_MR] || polarity != 0 {
            self.reconfigure(program);
        }
        let mask = program.regs[P_CS_MASK];
        if mask != 0 {
            self.gpio.drive(mask, program.regs[P_FLAGS] & CS_HIGH != 0);
        }
    }

    #[inline(always)]
    fn deselect(&mut self, program: &Program) {
        let mask = program.regs[P_CS_MASK];
        if mask != 0 {
            self.gpio.drive(mask, program.regs[P_FLAGS] & CS_HIGH == 0);
        } else if program.regs[P_FLAGS] & NATIVE != 0 && self.selected {
            // Not for a line that never fell: it would be kept for the next message's first word.
            self.regs.write(CR, LASTXFER);
        }
        self.selected = false;
    }

    #[inline(always)]
    fn exchange(
        &mut self,
        _program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        if data.is_empty() {
            return Ok(());
        }
        let cut = self.shape(plan, data);
        fifo::exchange(self, cut, plan, data)
    }

    #[cold]
    fn recover(&mut self) {
        self.reset();
    }

    #[inline]
    fn wait_ticks(&mut self, ticks: u32) {
        self.timer.wait_ticks(ticks.into());
    }

    #[inline]
    fn rest_ticks(&mut self, ticks: u32) {
        self.rest.at_least(ticks, &mut self.timer);
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Controller for Atmel<R, G, T, I> {
    fn limits(&self) -> Limits {
        self.config.limits(self.timer.frequency_hz())
    }

    fn configure(&self, settings: &Settings) -> Result<(Program, Effective), Error> {
        self.config.configure(settings, self.timer.frequency_hz())
    }

    fn plan(&self, program: &Program, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let config = &self.config;
        let timer_hz = self.timer.frequency_hz();
        plan_message(program, timer_hz, message, |transfer| config.plan(program, transfer))?;
        for transfer in message.iter_mut() {
            if transfer.plan.control & DLYBCT != 0 {
                // The block's delay is as long as the timer's would be.
                transfer.plan.word_delay_ticks = 0;
            }
        }
        plan_waits(program, message, |plan| config.poll_bytes_max(plan, timer_hz));
        Ok(())
    }

    fn run(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        block::run_any(self, program, message)
    }

    fn start(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        block::start(self, program, message)
    }

    fn resume(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        // The block's next read waits for this write: its line is low before a handler returns.
        self.silence();
        resume_message(self, program, message)
    }

    fn arm(&mut self) {
        self.regs.write(IER, flight::awaited(&self.flight));
    }

    fn reclaim(&mut self) {
        // First of all: nobody is left whom the interrupt would mean.
        self.silence();
        self.deselect_all();
        self.reset();
        self.rest = Rest::begin(&mut self.timer);
    }
}
