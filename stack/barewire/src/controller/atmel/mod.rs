//! The SPI block of Atmel's (now Microchip's) SAMA5D3 and of the AT91 and SAM9 before it, polled or
//! by its interrupt.
//!
//! # Read first
//! SAMA5D3 Series datasheet, chapter "Serial Peripheral Interface (SPI)": "Master Mode Operations"
//! with its flow chart, "Transfer Delays", "Peripheral Deselection without DMA", and the user
//! interface. Errata of parts with the same block: AT91SAM7 revision B, "Software Reset Must be
//! Written Twice"; two about a divisor of 1 (see `config.rs`).
//!
//! # How the block works
//! There is no FIFO, only a transmit register (TDR), a shift register and a receive register (RDR).
//! - A word written to TDR goes to the shift register when that is free: after DLYBCS and DLYBS if
//!   the line changes, after DLYBCT if another word preceded it. TDRE says when TDR may be written
//!   again.
//! - A word that was clocked goes to RDR (RDRF), even if the previous one was not read (OVRES).
//!   With WDRBT no word starts before RDR has been read.
//! - Each of the four lines (NPCS) has a register with its divider, mode, word length and delays
//!   (CSR). Every transfer belongs to one line, which MR or the word itself names. With CSAAT the
//!   line stays active until LASTXFER is written or another line is named.
//!
//! # How this driver uses it
//! 1. A device's settings are two register values: MR and the CSR of its line. Both are written
//!    only when they change. The clock's polarity is written to all four CSRs, so that its idle
//!    level does not depend on the line that was used last; it changes before the chip is selected.
//! 2. Transfers of even length in 8-bit words are sent as 16-bit words, unless there is a word
//!    delay: half the accesses for identical bits on the wire. A change between even and odd
//!    lengths writes the CSR.
//! 3. A word costs three accesses: SR until RDRF, RDR, TDR. RDRF implies that TDR is free. With
//!    WDRBT, TDR is free once RDR was read and the word's last half clock is over; at 10 MHz or
//!    more it is by then. At slower clocks, and where two words are written in a row, SR is read
//!    until TDRE. The same reads return OVRES, and TXEMPTY after the last word if that is over by
//!    then.
//! 4. With DLYBCT there is one word in flight: TDR stays occupied during the delay, and the next
//!    word can be written at any time in it.
//! 5. A wait polls the hardware 64 times before it reads the timer, and gives up after twice the
//!    wire time plus 1 ms.
//! 6. Transfers that take longer than [`AtmelConfig::poll_limit_ns`] wait by interrupt, one
//!    interrupt per word; `flight.rs` says what that costs.
//! 7. To a chip on a PIO line, at 10 MHz or more, transfers of 8-bit words take the same accesses by a shorter path:
//!    `short.rs`.
//!
//! # How many words are in flight
//! | [`Pipe`] | polled | by interrupt |
//! |---|---|---|
//! | `WaitDataRead` | the wire waits for one read of SR and one of RDR per word | the wire waits until the handler reads RDR |
//! | `OneWord` | it also waits for the write of TDR | it also waits until the handler writes TDR |
//! | `TwoWords` | no wait; a word is lost if software is later than one word | no wait; a word is lost if the handler is late |
//!
//! A lost word is an error ([`Error::Overrun`](crate::spi::Error::Overrun)); the block is then reset and usable again. Polled
//! at 26.4 MHz on SAMA5D3, as simulated, 518 bytes take 194 µs with `WaitDataRead` and 158 µs with
//! `TwoWords`; the wire alone takes 157 µs. A process under Linux loses words with `TwoWords`,
//! because the kernel's timer tick takes longer than a word.
//!
//! # Chip selects
//! PIO registers ([`gpio`](super::gpio)) or the native lines, which are active low. A native line
//! falls when the first word is written and rises after LASTXFER, when the last clock is over; it
//! never pulses within a message. Its setup time is DLYBS, at most 255 periods of the peripheral
//! clock. It stays inactive for DLYBCS: up to 255 periods software continues meanwhile, above that
//! software waits. DLYBCS applies to all lines: if two devices have different values, the next
//! message waits for the previous device's. A selection without a word does not move a native line.
//!
//! Word delays use DLYBCT, on PIO lines too, up to 255 × 32 periods; the timer makes longer ones.
//! The block also inserts DLYBCT after a transfer's last word, unless that is its only word.
//!
//! # Not supported
//! Least significant bit first (not in the block); words of 9 to 15 bits; a line decoder (PCSDEC);
//! the FIFOs of SAMA5D2 and later; DMA and PDC; target mode. Write protection (SPI_WPMR): the
//! program that set it must clear it. Delays are spun, even in an interrupt handler.
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
mod short;

pub use config::{AtmelConfig, PeripheralSelect, Pipe};

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::deadline::poll;
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::pace::pace_slowly;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div_ceil, ticks_at_least};
use regs::{
    BITS_16, CHANNELS, CPOL, CR, DLYBCS_MIN, DLYBCT, IDR, IER, LASTXFER, MR, OVRES, RDR, RDRF,
    SCBR_SHIFT, SPIDIS, SPIEN, SR, SWRST, TDR, TDRE, TXEMPTY, csr_of, dlybcs_of, scbr_of,
};

// Where `configure` puts its values in `Preset::regs`.
const P_MR: usize = 0;
/// The native line that the transfers use, wired or not.
const P_CHANNEL: usize = 1;
/// 1: the line is native.
const P_NATIVE: usize = 2;
/// The PCS field of each word with [`PeripheralSelect::Variable`]; else 0.
const P_PCS: usize = 3;

/// Whether the select line of the preset's chip is native.
#[inline(always)]
fn is_native(preset: &Preset) -> bool {
    preset.regs[P_NATIVE] != 0
}

/// The SPI block, its select lines and the timer that makes its delays.
pub type Atmel<R, G, T, I = NoInterrupt> = Block<AtmelState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct AtmelState {
    /// MR and the CSRs as last written.
    mr: u32,
    csr: [u32; CHANNELS as usize],
    /// The line of the running message, and its PCS in TDR.
    channel: usize,
    pcs: u32,
    /// The largest divider (SCBR) of a clock that is not slow.
    fast_scbr_max: u32,
    /// The most words in flight.
    depth: usize,
    /// Whether RDR may be read before the word's last half clock is over.
    slow: bool,
    /// SR as last read, if no word was written since; else 0.
    status: u32,
    /// OVRES as seen so far: reading SR clears it.
    overrun: bool,
    /// Whether a word was sent since the line was last deselected.
    selected: bool,
}

impl State for AtmelState {
    type Config = AtmelConfig;
    type Board = AtmelConfig;
    type Flight = fifo::Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Atmel<R, G, T, I> {
    /// Ticks that last at least `periods` of the block's clock.
    fn ticks_of(&self, periods: u32) -> u64 {
        let ns = mul_div_ceil(periods.into(), NS_PER_S, self.config.reference_hz);
        ticks_at_least(ns, self.timer.frequency_hz())
    }

    #[cold]
    fn reconfigure(&mut self, preset: &Preset) {
        let mr = preset.regs[P_MR];
        if self.state.mr != mr {
            // DLYBCS of the previous line may still be running.
            let inactive = dlybcs_of(self.state.mr);
            if inactive > DLYBCS_MIN && inactive != dlybcs_of(mr) {
                self.timer.wait_ticks(self.ticks_of(inactive));
            }
            // The block does not count the inactive time of a line that its reset moved.
            let ticks = self.ticks_of(dlybcs_of(mr));
            self.rest.at_least(ticks.try_into().unwrap_or(u32::MAX), &mut self.timer);
            self.regs.write(MR, mr);
            self.state.mr = mr;
        }
        let polarity = preset.plan.control & CPOL;
        if self.csr() & CPOL == polarity {
            return;
        }
        for channel in 0..self.state.csr.len() {
            let csr = if channel == self.state.channel {
                preset.plan.control
            } else {
                self.state.csr[channel]
            };
            self.set_csr(channel, csr & !CPOL | polarity);
        }
        // A chip that a GPIO selects must not see the clock change its level: this read waits for
        // the writes.
        self.read_status();
    }

    /// The CSR of the running message's line, as last written.
    #[inline(always)]
    fn csr(&self) -> u32 {
        // Not a panic, as below.
        self.state.csr[self.state.channel % self.state.csr.len()]
    }

    #[inline]
    fn set_csr(&mut self, channel: usize, csr: u32) {
        // Not a panic: a short message has no code for one.
        let channel = channel % self.state.csr.len();
        if self.state.csr[channel] != csr {
            self.regs.write(csr_of(channel), csr);
            self.state.csr[channel] = csr;
        }
    }

    #[inline]
    fn read_status(&mut self) -> u32 {
        self.state.status = self.regs.read(SR);
        self.state.overrun |= self.state.status & OVRES != 0;
        self.state.status
    }

    /// Whether TDR was seen free, or a read shows it free now.
    #[inline(always)]
    fn is_free(&mut self) -> bool {
        self.state.status & TDRE != 0 || self.read_status() & TDRE != 0
    }

    /// Waits until TDR is free, after a look at which it was not.
    #[cold]
    #[inline(never)]
    fn await_free(&mut self) -> Result<(), Stopped> {
        poll(self, |this| this.wire_ns(1), Self::is_free)
    }

    #[inline]
    fn send(&mut self, word: u32) {
        self.regs.write(TDR, word | self.state.pcs);
        self.state.status = 0;
    }

    /// Sets the block up for a transfer of at least one word: its CSR and its word size.
    #[inline]
    fn shape(&mut self, plan: &Plan, len: usize) -> Cut {
        let csr = plan.control;
        let apart = csr & DLYBCT != 0 || plan.word_delay_ticks > 0;
        let frame_bytes = match plan.word_bytes() {
            1 if !apart => frame_bytes(len),
            word => word,
        };
        self.frames_of(csr, frame_bytes, len);
        self.state.overrun = false;
        Cut::new(plan, frame_bytes)
    }

    /// Sets the block up for a transfer of `len` bytes in words of `frame_bytes`.
    #[inline]
    fn frames_of(&mut self, mut csr: u32, frame_bytes: u8, len: usize) {
        if frame_bytes == 2 {
            csr |= BITS_16;
        }
        if len == usize::from(frame_bytes) {
            // No word follows that would need the delay.
            csr &= !DLYBCT;
        }
        self.set_csr(self.state.channel, csr);
        // Step 4 of the module: with DLYBCT one word is in flight.
        let one = csr & DLYBCT != 0 || self.config.pipe == Pipe::OneWord;
        self.state.depth = if one { 1 } else { 2 };
        self.state.slow = scbr_of(csr) > self.state.fast_scbr_max;
        self.state.selected = true;
    }
}

/// How many bytes go in a word, for a transfer of `len` bytes in 8-bit words without delays.
#[inline(always)]
fn frame_bytes(len: usize) -> u8 {
    if len % 2 == 0 { 2 } else { 1 }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Atmel<R, G, T, I> {
    const ONE_A_LOOK: bool = true;

    #[inline]
    fn depth(&self) -> usize {
        self.state.depth
    }

    #[inline(always)]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        for (index, word) in words.enumerate() {
            // TDR may still hold a word: one just written stays for DLYBCS and DLYBS; one written
            // before the last stays until half a clock after RDRF. It must not be overwritten.
            if (index > 0 || self.state.slow) && !self.is_free() && self.await_free().is_err() {
                // It stays there for good: the transfer will time out.
                return;
            }
            self.send(word);
        }
    }

    #[inline]
    fn ready(&mut self, _in_flight: usize) -> usize {
        let full = self.read_status() & RDRF != 0;
        // After a lost word the rest cannot be assigned to their places.
        usize::from(full && !self.state.overrun)
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(RDR, places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(RDR, n);
    }

    #[inline(always)]
    fn take_one(&mut self) -> Option<u32> {
        self.state.status = self.regs.read(SR);
        if self.state.status & (RDRF | OVRES) != RDRF {
            self.state.overrun |= self.state.status & OVRES != 0;
            return None;
        }
        Some(self.regs.read(RDR))
    }

    fn pace<const N: usize>(
        &mut self,
        paced: usize,
        words: usize,
        tx: Option<&[[u8; N]]>,
        rx: Option<&mut [[u8; N]]>,
    ) -> usize {
        match self.state.slow {
            true => pace_slowly(self, paced, words, tx, rx),
            false => self.pace_fast(paced, words, tx, rx),
        }
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        self.state.status & TXEMPTY != 0 || self.read_status() & TXEMPTY != 0
    }

    fn lost(&mut self) -> bool {
        self.state.overrun
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let periods = self.config.periods(self.csr());
        mul_div_ceil(words as u64 * u64::from(periods), NS_PER_S, self.config.reference_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Atmel<R, G, T, I> {
    const RUN_INLINE: bool = false;

    /// Resets the block to its state after power-up, but as the wire's controller.
    fn reset(&mut self) {
        // Twice: AT91SAM7 revision B, "Software Reset Must be Written Twice". Other parts do not
        // mind.
        self.regs.write(CR, SWRST);
        self.regs.write(CR, SWRST);
        self.mask();
        // MSTR before any CSR: the block uses a CSR for its clock only if it drives the clock.
        self.state.mr = self.config.mr();
        self.regs.write(MR, self.state.mr);
        self.regs.write(CR, SPIEN);
        self.state.csr = [0; CHANNELS as usize];
        self.state.fast_scbr_max = self.config.fast_scbr_max();
        self.state.status = 0;
        self.state.overrun = false;
        self.state.selected = false;
        self.flight = fifo::Flight::default();
    }

    fn leave(&mut self) {
        self.regs.write(CR, SPIDIS);
    }

    fn mask(&mut self) {
        self.regs.write(IDR, RDRF | OVRES | TXEMPTY);
    }

    fn unmask(&mut self) {
        self.regs.write(IER, self.awaited());
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        self.enter_short(preset);
        let polarity = (self.csr() ^ preset.plan.control) & CPOL;
        if self.state.mr != preset.regs[P_MR] || polarity != 0 {
            self.reconfigure(preset);
        }
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        if is_native(preset) && self.state.selected {
            // Not if the line never fell: LASTXFER would then end the next message after its first
            // word.
            self.regs.write(CR, LASTXFER);
        }
        self.state.selected = false;
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let cut = self.shape(plan, data.len());
        let len = data.len();
        if cut.frame_of_bytes() == Some(2) {
            if let Some((tx, rx)) = data.apart() {
                return fifo::exchange_frames::<_, 2>(self, len, tx, rx);
            }
        }
        fifo::exchange(self, cut, plan, data)
    }

    fn begin(&mut self, _preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        let cut = self.shape(plan, data.len());
        fifo::begin(self, cut, plan, data);
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        fifo::advance(self, plan, data)
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, _len: usize) -> bool {
        let polarity = (self.state.csr[self.channel_of(preset)] ^ control) & CPOL;
        let set = self.state.mr == preset.regs[P_MR] && polarity == 0;
        // Without a delay of the block's, and so fast that TDR is free whenever RDR was read.
        let direct = control >> SCBR_SHIFT <= self.state.fast_scbr_max;
        set && direct && !is_native(preset)
    }

    #[inline(always)]
    fn enter_short(&mut self, preset: &Preset) {
        self.state.channel = self.channel_of(preset);
        self.state.pcs = preset.regs[P_PCS];
    }

    /// Not inlined: its loops are for any length.
    #[inline(never)]
    fn exchange_short(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        match frame_bytes(len) {
            2 => self.exchange_words::<2>(control | BITS_16, len, tx, rx),
            _ => self.exchange_words::<1>(control, len, tx, rx),
        }
    }

    fn exchange_rest(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        self.finish_words(control, len, tx, rx)
    }
}
