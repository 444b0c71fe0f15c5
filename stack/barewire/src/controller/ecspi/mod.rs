//! ECSPI: the SPI block of i.MX 6, 7 and 8M, polled or by its interrupt.
//!
//! # Read first
//! i.MX 6Dual/6Quad reference manual, chapter ECSPI (the block is the same in i.MX 7 and 8M);
//! i.MX 6 datasheet, "ECSPI Master Mode Timing"; erratum ERR009165 (a word written to TXFIFO
//! during an exchange may be sent twice when SMC is set; never with XCH).
//!
//! # How the block works
//! Two FIFOs of 64 words of 32 bits. Words are sent in *bursts* of 1 to 4,096 bits, with no idle
//! clocks between the words of a burst. A burst starts when XCH is written or, with SMC, when a
//! word is written to TXFIFO. The clock stops while a burst has no word to send. The block's native
//! select line (SS) is active for one burst.
//!
//! # What the manual leaves open
//! The driver is correct under every reading of these points; the simulator has a switch for each.
//! - **When XCH clears.** The manual says: when TXFIFO and the shift register have been shifted
//!   out. A user saw it clear when TXFIFO was empty, before the last word was out (Mark Siggins,
//!   "iMX6 Solo SPI: XCH behaviour in master mode", NXP community, December 2014,
//!   <https://community.nxp.com/thread/336850>). NXP's support agrees ("iMX8MM, Cortex-M4, ECSPI
//!   with GPIO chipselect", NXP community, March 2023,
//!   <https://community.nxp.com/t5/i-MX-Processors/iMX8MM-Cortex-M4-ECSPI-with-GPIO-chipselect-how-to-detect-when/td-p/1622686>).
//!   TC is as doubtful. This driver uses neither to end a transfer: it counts the received words.
//! - **What happens to a burst that ran out of words.** It may continue with the next word. Or it
//!   may wait for XCH: Linux's and NuttX's drivers assume that and set XCH after each refill, and
//!   QEMU's model does it. The burst's length continues to count in both cases; Linux's longest
//!   bursts rely on that.
//! - **What SS does in the meantime.** SS_CTL = 0 sends one burst under one SS. SS_CTL = 1 sends
//!   several bursts until TXFIFO is empty, with SS negated between them. So SS_CTL stays 0, and a
//!   transfer on the native line never runs out of words.
//!
//! # How this driver uses it
//! 1. A device's settings are two register values: CONREG without a burst length, and CONFIGREG.
//!    CONFIGREG has the same mode for all four channels, so that the clock's idle level does not
//!    depend on the selected channel. Both are written only when they change. After CONFIGREG the
//!    driver waits two clocks: the clock's polarity follows one clock later, and a chip that is
//!    already selected would count that edge.
//! 2. Up to 4 bytes: write TXDATA, read STATREG until RR, read RXDATA (the word must be written and
//!    read, and RXDATA is undefined before RR). At 10 MHz or more SMC starts the burst; on the
//!    native line these three accesses are the whole transfer. A word is never written during a
//!    burst here, so ERR009165 cannot occur. Below 10 MHz XCH starts the burst, and step 5 follows.
//! 3. More than 4 bytes: bursts of up to 512 bytes. Four words go to TXFIFO and XCH starts the
//!    burst. From then on as many words are sent as were received, with at most 64 in flight:
//!    neither FIFO can overrun, TXFIFO stays full, and the first clock does not wait for the last
//!    word to be written. STATREG says how many words were received: RR one, RDR as many as
//!    RX_THRESHOLD says, RF 64. On the native line all words, at most 64, go to TXFIFO before XCH.
//!    At 10 MHz or more, up to 256 bytes take these accesses by a shorter path: `short.rs`.
//! 4. While words wait in TXFIFO and polls find none received, XCH is read now and then. If it is
//!    clear, the burst has run out of words, and XCH is set again. A late refill costs time, never
//!    data.
//! 5. A burst is over when as many words were received as sent, half a clock has passed, and XCH is
//!    clear. RR may come at the last sampling edge, half a clock before the end. At 10 MHz or more,
//!    reading RXDATA takes longer than that half clock. At slower clocks the timer waits for it; on
//!    the native line, which rises half a clock later, it waits for a whole clock. A transfer that
//!    SMC started does not use XCH: its next word may be written at once.
//! 6. A wait polls the hardware 64 times before it reads the timer, and gives up after twice the
//!    wire time plus 1 ms. The timer is read *before* the status: a thread that was preempted
//!    between the two still sees that the hardware finished.
//! 7. Transfers that take longer than [`EcspiConfig::poll_limit_ns`] wait by interrupt: the caller
//!    sleeps ([`Ecspi::with_interrupt`]), or the block's handler continues the message
//!    ([`Controller::start`](super::Controller::start)). Both refill at RXFIFO's threshold, every 32 words; see `flight.rs`.
//!    A message with shorter transfers only runs as above.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the native lines. A native line is active for one
//! burst of one FIFO load. So transfers above 256 bytes, second transfers without `cs_change`, and
//! word delays are refused there: they would pulse it. Its setup time is counted in clocks
//! (CSD_CTL, at most 63); its hold time is half a clock less 2 ns and cannot be set. A line that is
//! active high gets its idle level as soon as the block is enabled. While the block is disabled,
//! for one register write in [`Ecspi::new`] and in each recovery, it drives that line high. A
//! device without a chip select ([`Mode::NO_CS`](crate::spi::Mode::NO_CS)) uses a channel whose
//! line is not wired to a chip; if all four are wired, it is refused.
//!
//! # Not supported
//! Least significant bit first (not in the block), word lengths other than 8, 16 and 32 bits,
//! target mode, DMA, SPI_RDY, HT mode. Delays and the half clock after a burst are spun, even in an
//! interrupt handler.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, ecspi::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(ecspi: Mmio, gpio3: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = EcspiConfig {
//!     reference_hz: 60_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 19, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let gpio = ImxGpio::new(gpio3, Ownership::Shared);
//! let bus = Bus::new(Ecspi::new(ecspi, gpio, timer, config));
//! let flash = bus.device(&Settings::new(0, 20_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod flight;
mod regs;
mod short;
#[cfg(test)]
mod tests;

pub use config::EcspiConfig;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::deadline::{Deadline, Patience, poll};
use super::gpio::GpioBank;
use super::words::{first_word_bytes, pack, unpack};
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped, Wire};
use crate::reg::Registers;
use crate::reg::chunks::{rchunks, rchunks_mut};
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div};
use flight::Flight;
use regs::{
    BURST_BYTES_MAX, BURST_LENGTH, CHANNEL_MODE_ALL, CONFIGREG, CONREG, DMAREG, EN, FIFO_WORDS,
    INTREG, PERIODREG, RDR, RF, RR, RXDATA, SMC, STATREG, TE, TESTREG, TXDATA, XCH, burst_length,
    divisor, rx_threshold, ss_pol,
};
use short::{LOAD_BYTES, NATIVE_LOAD_BYTES};

/// Words written before a burst starts: few, so that the first clock comes early, but enough to
/// last while the rest is written.
const PREFILL_WORDS: usize = 4;
/// Words that a polled transfer reads after one poll when they are there: the threshold of RDR.
const BATCH_WORDS: usize = 4;
/// RDR's threshold after a reset.
const RESET_THRESHOLD_WORDS: usize = 1;
/// How many polls without a received word there are per read of XCH.
const LOOKS_PER_XCH: u32 = 16;
/// CONREG at rest. It starts no burst; its burst length is one that every model of the block
/// accepts.
const IDLE: u32 = EN | CHANNEL_MODE_ALL | burst_length(1);
/// No device's configuration: CONFIGREG has no such bits.
const UNCONFIGURED: [u32; 3] = [u32::MAX; 3];
/// FIFO words sent at a time, unless none is received: TXFIFO does not run empty before there is
/// room for that many.
const CHUNK_WORDS: usize = 16;
// Where `configure` puts its values in `Preset::regs`.
const P_CONFIGREG: usize = 0;
const P_PERIODREG: usize = 1;
const P_TESTREG: usize = 2;
/// Ticks of two clocks.
const P_SETTLE: usize = 3;

/// The ECSPI block, its select lines and the timer that makes its delays.
pub type Ecspi<R, G, T, I = NoInterrupt> = Block<EcspiState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct EcspiState {
    /// CONREG as last written, without XCH.
    conreg: u32,
    /// CONFIGREG, PERIODREG and TESTREG as last written; after a reset [`UNCONFIGURED`].
    configured: [u32; 3],
    /// RDR's threshold in words, as last written to DMAREG.
    threshold_words: usize,
}

impl State for EcspiState {
    type Config = EcspiConfig;
    type Board = EcspiConfig;
    type Flight = Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Ecspi<R, G, T, I> {
    #[cold]
    fn reconfigure(&mut self, preset: &Preset, wanted: [u32; 3]) {
        // The dividers first: the two clocks waited for below are the new device's.
        self.set_conreg(preset.plan.control & !SMC | IDLE);
        let [configreg, periodreg, testreg] = wanted;
        self.regs.write(CONFIGREG, configreg);
        self.regs.write(PERIODREG, periodreg);
        self.regs.write(TESTREG, testreg);
        self.state.configured = wanted;
        self.wait_ticks(preset.regs[P_SETTLE]);
    }

    /// Whether the block is configured for the device. Compared by element: 32-bit Arms call a
    /// function to compare arrays.
    #[inline(always)]
    fn is_configured(&self, preset: &Preset) -> bool {
        if cfg!(target_pointer_width = "64") {
            return self.state.configured == preset.regs[..3];
        }
        self.state.configured[0] == preset.regs[P_CONFIGREG]
            && self.state.configured[1] == preset.regs[P_PERIODREG]
            && self.state.configured[2] == preset.regs[P_TESTREG]
    }

    #[inline(always)]
    fn set_conreg(&mut self, conreg: u32) {
        if self.state.conreg != conreg {
            self.regs.write(CONREG, conreg);
            self.state.conreg = conreg;
        }
    }

    /// Sets how many words RDR, and its interrupt, stand for.
    #[inline]
    fn set_threshold(&mut self, words: usize) {
        if self.state.threshold_words != words {
            self.regs.write(DMAREG, rx_threshold(words));
            self.state.threshold_words = words;
        }
    }

    #[inline]
    fn start_burst(&mut self) {
        self.regs.write(CONREG, self.state.conreg | XCH);
    }

    /// Sets XCH again if the burst has run out of words. Words may be waiting in TXFIFO.
    #[inline]
    fn restart_if_dry(&mut self) {
        if self.regs.read(CONREG) & XCH == 0 {
            self.restart_if_waiting();
        }
    }

    /// XCH was clear. Only words that are waiting now prove that the burst has stopped: it may also
    /// have ended between the two reads, and XCH would start another burst.
    #[cold]
    fn restart_if_waiting(&mut self) {
        if self.regs.read(STATREG) & TE == 0 {
            self.start_burst();
        }
    }

    /// Waits for the end of a burst that XCH started, after all its words were received. See step 5
    /// of the module.
    #[inline]
    fn end_burst(&mut self, preset: &Preset) -> Result<(), Stopped> {
        let halves = if preset.asks { 2 } else { 1 };
        let timer_hz = self.timer.frequency_hz();
        let ticks = self.config.half_clock_ticks(self.state.conreg, halves, timer_hz);
        self.wait_ticks(ticks);
        self.poll::<CONREG>(XCH, 0, 4)
    }

    /// Polls until the bits `mask` of the register at `OFFSET` equal `wanted`. A constant: the register's existence is then
    /// checked by the compiler.
    #[inline(always)]
    fn poll<const OFFSET: u32>(
        &mut self,
        mask: u32,
        wanted: u32,
        bytes: usize,
    ) -> Result<(), Stopped> {
        poll(self, |this| this.wire_ns(bytes), |this| this.regs.read(OFFSET) & mask == wanted)
    }

    /// Reads a received word of 1 to 4 bytes into `rx`.
    #[inline(always)]
    fn receive_word(&mut self, rx: Option<&mut [u8]>) {
        match rx {
            Some(rx) => unpack(self.regs.read(RXDATA), rx, 1),
            None => self.regs.discard_n(RXDATA, 1),
        }
    }

    /// How long `bytes` take at the current clock, in nanoseconds.
    fn wire_ns(&self, bytes: usize) -> u64 {
        let bits = bytes as u64 * 8;
        let periods = bits * u64::from(divisor(self.state.conreg));
        mul_div(periods, NS_PER_S, self.config.reference_hz)
    }

    fn deadline(&mut self, bytes: usize) -> Deadline {
        let wire_ns = self.wire_ns(bytes);
        Deadline::new(&mut self.timer, wire_ns)
    }

    /// Exchanges a transfer of one FIFO word.
    #[inline(always)]
    fn exchange_word(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        if plan.control & SMC == 0 {
            return self.exchange_any_word(preset, plan, data, 0..data.len());
        }
        self.set_conreg(plan.control & !BURST_LENGTH | burst_length(data.len()));
        let word = data.tx().map_or(0, |tx| pack(tx, plan.word_bytes()));
        self.regs.write(TXDATA, word);
        self.poll::<STATREG>(RR, RR, data.len())?;
        match data.rx_mut() {
            Some(rx) => unpack(self.regs.read(RXDATA), rx, plan.word_bytes()),
            None => self.regs.discard_n(RXDATA, 1),
        }
        Ok(())
    }

    /// Exchanges one FIFO word of a transfer, the bytes at `span`, at any clock.
    #[cold]
    fn exchange_any_word(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
        span: core::ops::Range<usize>,
    ) -> Result<(), Stopped> {
        let conreg = plan.control & !BURST_LENGTH | burst_length(span.len());
        self.set_conreg(conreg);
        let word = data
            .tx()
            .and_then(|tx| tx.get(span.clone()))
            .map_or(0, |tx| pack(tx, plan.word_bytes()));
        self.regs.write(TXDATA, word);
        if conreg & SMC == 0 {
            self.start_burst();
        }
        self.poll::<STATREG>(RR, RR, span.len())?;
        match data.rx_mut().and_then(|rx| rx.get_mut(span)) {
            Some(rx) => unpack(self.regs.read(RXDATA), rx, plan.word_bytes()),
            None => self.regs.discard_n(RXDATA, 1),
        }
        if conreg & SMC == 0 { self.end_burst(preset) } else { Ok(()) }
    }

    /// A lower bound of how many of `in_flight` words were received, from STATREG.
    #[inline]
    fn come(&self, status: u32, in_flight: usize) -> usize {
        let words = if status & RF != 0 {
            FIFO_WORDS
        } else if status & RDR != 0 {
            self.state.threshold_words
        } else {
            usize::from(status & RR != 0)
        };
        words.min(in_flight)
    }

    /// Exchanges a burst of any length: refills and drains it while it runs.
    fn exchange_burst(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
        span: Span,
    ) -> Result<(), Stopped> {
        self.set_conreg(plan.control & !(BURST_LENGTH | SMC) | burst_length(span.len));
        let sent = span.words().min(prefill_words(preset));
        self.send(plan, data.tx(), span, 0..sent);
        self.start_burst();
        self.finish_burst(plan, data, span, 0..sent)?;
        self.end_burst(preset)
    }

    /// Receives the words `in_flight` of a burst, and exchanges the words after them.
    // Inlined always, as the two functions of its loop: called, they took 5 % of 1 KiB.
    #[inline(always)]
    fn finish_burst(
        &mut self,
        plan: &Plan,
        data: &mut Data<'_>,
        span: Span,
        in_flight: core::ops::Range<usize>,
    ) -> Result<(), Stopped> {
        let core::ops::Range { start: mut received, end: mut sent } = in_flight;
        let words = span.words();
        let mut patience = Patience::default();
        let mut looks_in_vain = 0_u32;
        // Whether to send even less than a chunk.
        let mut top_up = false;
        while received < words {
            // What is in flight fits RXFIFO, so it cannot overrun however late we are.
            let room = FIFO_WORDS - (sent - received);
            let unsent = words - sent;
            if unsent > 0 && (top_up || room >= CHUNK_WORDS || room >= unsent) {
                let until = sent + room.min(unsent);
                self.send(plan, data.tx(), span, sent..until);
                sent = until;
            }
            let late = patience.late(&mut self.timer);
            let (come, status) = self.drain_burst(plan, data, span, received..sent);
            if come > 0 {
                received += come;
                patience.renew();
                looks_in_vain = 0;
                top_up = false;
                continue;
            }
            // Fill TXFIFO before starting the burst again: it runs as far as TXFIFO reaches.
            top_up = sent < words && sent - received < FIFO_WORDS;
            if !top_up {
                if status & TE == 0 && looks_in_vain % LOOKS_PER_XCH == 0 {
                    self.restart_if_dry();
                }
                looks_in_vain = looks_in_vain.wrapping_add(1);
            }
            patience.look_in_vain(late, || self.deadline(FIFO_WORDS * 4))?;
        }
        Ok(())
    }

    /// Reads received words of those in flight, and polls until there are no more. Returns how many
    /// words were received, and the first STATREG read.
    #[inline(always)]
    fn drain_burst(
        &mut self,
        plan: &Plan,
        data: &mut Data<'_>,
        span: Span,
        in_flight: core::ops::Range<usize>,
    ) -> (usize, u32) {
        let status = self.regs.read(STATREG);
        let come = match data.rx_mut() {
            _ if status & (RR | RDR | RF) == 0 => 0,
            Some(rx) if plan.word_bytes() == 1 => {
                let bytes = rx.get_mut(span.bytes(in_flight.clone())).unwrap_or_default();
                in_flight.len() - self.drain_bytes(bytes, status)
            }
            _ => {
                let come = self.come(status, in_flight.len());
                self.receive(plan, data, span, in_flight.start..in_flight.start + come);
                come
            }
        };
        (come, status)
    }

    /// Reads received words into `bytes`, those of the words in flight, until there are no more;
    /// `look` is STATREG with at least one received. Returns how many words are still to come.
    #[inline(always)]
    fn drain_bytes(&mut self, bytes: &mut [u8], mut look: u32) -> usize {
        // Only the burst's first word may be short.
        let (short, mut words) = rchunks_mut::<4>(bytes);
        if !short.is_empty() {
            unpack(self.regs.read(RXDATA), short, 1);
            look = self.regs.read(STATREG);
        }
        loop {
            if look & (RDR | RF) == 0 {
                // The shortest path for one word that was received meanwhile.
                if look & RR == 0 {
                    break;
                }
                let Some((word, rest)) = core::mem::take(&mut words).split_first_mut() else {
                    break;
                };
                words = rest;
                *word = self.regs.read(RXDATA).to_be_bytes();
            } else {
                let come = self.come(look, words.len());
                let (now, rest) = core::mem::take(&mut words).split_at_mut(come);
                words = rest;
                self.regs
                    .read_each(RXDATA, now.iter_mut(), |word, read| *word = read.to_be_bytes());
            }
            if words.is_empty() {
                break;
            }
            look = self.regs.read(STATREG);
        }
        words.len()
    }

    #[inline(always)]
    fn send(&mut self, plan: &Plan, tx: Option<&[u8]>, span: Span, words: core::ops::Range<usize>) {
        let Some(tx) = tx else {
            return self.regs.write_each(TXDATA, words.map(|_| 0));
        };
        let (short, whole) = rchunks::<4>(tx.get(span.bytes(words)).unwrap_or_default());
        let word_bytes = plan.word_bytes();
        if !short.is_empty() {
            self.regs.write(TXDATA, pack(short, word_bytes));
        }
        let whole = whole.iter();
        // Two loops, so that the word size is not tested for each word.
        match word_bytes {
            1 => self.regs.write_each(TXDATA, whole.map(|&word| u32::from_be_bytes(word))),
            _ => self.regs.write_each(TXDATA, whole.map(|word| pack(word, word_bytes))),
        }
    }

    #[inline]
    fn receive(
        &mut self,
        plan: &Plan,
        data: &mut Data<'_>,
        span: Span,
        words: core::ops::Range<usize>,
    ) {
        let Some(rx) = data.rx_mut() else {
            return self.regs.discard_n(RXDATA, words.len());
        };
        let (short, whole) = rchunks_mut::<4>(rx.get_mut(span.bytes(words)).unwrap_or_default());
        let word_bytes = plan.word_bytes();
        if !short.is_empty() {
            unpack(self.regs.read(RXDATA), short, word_bytes);
        }
        let whole = whole.iter_mut();
        match word_bytes {
            1 => self.regs.read_each(RXDATA, whole, |bytes, word| *bytes = word.to_be_bytes()),
            _ => self.regs.read_each(RXDATA, whole, |bytes, word| unpack(word, bytes, word_bytes)),
        }
    }

    /// Exchanges words with a delay between them: each is its own burst.
    #[cold]
    fn exchange_spaced(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let len = usize::from(plan.word_bytes()).max(1);
        for start in (0..data.len()).step_by(len) {
            if start > 0 {
                self.wait_ticks(plan.word_delay_ticks);
            }
            self.exchange_any_word(preset, plan, data, start..start + len)?;
        }
        Ok(())
    }

    fn exchange_long(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        self.set_threshold(BATCH_WORDS);
        let mut start = 0;
        while start < data.len() {
            let span = Span { start, len: (data.len() - start).min(BURST_BYTES_MAX) };
            self.exchange_burst(preset, plan, data, span)?;
            start += span.len;
        }
        Ok(())
    }
}

/// A device's CONFIGREG, PERIODREG and TESTREG.
#[inline(always)]
fn wanted(preset: &Preset) -> [u32; 3] {
    [preset.regs[P_CONFIGREG], preset.regs[P_PERIODREG], preset.regs[P_TESTREG]]
}

/// How many words are written to TXFIFO before a burst starts: all, on a native line.
#[inline]
fn prefill_words(preset: &Preset) -> usize {
    if preset.asks { FIFO_WORDS } else { PREFILL_WORDS }
}

/// A burst's bytes within its transfer's buffers.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// A whole transfer of `len` bytes in one burst.
    fn whole(len: usize) -> Self {
        Self { start: 0, len }
    }

    fn words(self) -> usize {
        self.len.div_ceil(4)
    }

    /// The bytes of FIFO words `words`, at least one, of the burst. Only its first word may be
    /// short.
    #[inline]
    fn bytes(self, words: core::ops::Range<usize>) -> core::ops::Range<usize> {
        let first = self.start + first_word_bytes(self.len);
        let start = if words.start == 0 { self.start } else { first + 4 * words.start - 4 };
        start..first + 4 * words.end - 4
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Ecspi<R, G, T, I> {
    /// Disables and enables the block: that flushes its FIFOs and resets everything but CONREG.
    fn reset(&mut self) {
        self.regs.write(CONREG, IDLE & !EN);
        self.state.conreg = IDLE;
        self.regs.write(CONREG, self.state.conreg);
        let active_high = self.config.native_active_high();
        if active_high != 0 {
            // First of all: these lines are active until this write.
            self.regs.write(CONFIGREG, ss_pol(active_high));
        }
        self.regs.write(INTREG, 0);
        self.state.configured = UNCONFIGURED;
        self.state.threshold_words = RESET_THRESHOLD_WORDS;
        self.flight = Flight::default();
    }

    /// The disabled block drives all its native lines high, including active-high ones.
    fn leave(&mut self) {
        self.regs.write(CONREG, IDLE & !EN);
    }

    fn mask(&mut self) {
        self.regs.write(INTREG, 0);
    }

    fn unmask(&mut self) {
        self.regs.write(INTREG, self.flight.awaited());
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        if !self.is_configured(preset) {
            self.reconfigure(preset, wanted(preset));
        }
        true
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        if plan.word_delay_ticks > 0 {
            return self.exchange_spaced(preset, plan, data);
        }
        if data.len() <= 4 {
            return self.exchange_word(preset, plan, data);
        }
        self.exchange_long(preset, plan, data)
    }

    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        self.launch(preset, plan, data, 0);
    }

    fn advance(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        self.go_on(preset, plan, data)
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        let fits = len <= NATIVE_LOAD_BYTES || len <= LOAD_BYTES && !preset.asks;
        fits && control & SMC != 0 && self.is_configured(preset)
    }

    #[inline(always)]
    fn exchange_short(
        &mut self,
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        self.exchange_one_load(control, len, tx, rx)
    }

    fn exchange_rest(
        &mut self,
        _control: u32,
        len: usize,
        _tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        self.exchange_rest_of_load(len, rx)
    }
}
