//! McSPI: the multichannel serial port interface of TI's OMAP and Sitara, polled or by its interrupt.
//!
//! The block is in the AM335x (BeagleBone), AM437x, AM62x and AM64x; device trees call it `ti,omap4-mcspi`. The
//! registers begin where a tree's `reg` does, 0x100 before those that older trees (`ti,omap2-mcspi`) name.
//!
//! # Read first
//! TI, *AM335x and AMIC110 Sitara Processors Technical Reference Manual* (SPRUH73), chapter 24, "Multichannel
//! Serial Port Interface (McSPI)": 24.3.2, "Master Mode", for the rules below; 24.4 for the registers. The
//! manuals of AM62x (SPRUIV7) and AM64x (SPRUIM2) describe the same block.
//!
//! # How the block works
//! Four channels share a shift register. Each has its mode, divisor, word length, select line (SPIEN), and a
//! register to send and one to receive. One of them may use a FIFO of 64 bytes instead, half of it each way; if
//! two claim it, none has it. A word is sent while the channel is enabled, there is a word to send, and there is
//! room for the word that comes back: nothing is ever lost, however late we are.
//!
//! With SINGLE set, FORCE drives the channel's line, at the level that EPOL says. A change of the configuration
//! acts on the pins at once, so the clock takes the polarity of a channel when it is configured. Enabling a
//! channel empties the FIFO.
//!
//! # How this driver uses it
//! 1. The channel in use has the FIFO, and stays enabled between messages to a chip on a GPIO. Such a message takes no access
//!    but to the GPIO, the words, and the status.
//! 2. RXFFE clear: a word has been received. TXFFE set: the last word is in the shift register (a word leaves the
//!    FIFO when it is assigned there), so all before it have been received. EOT, which tells the end of a word,
//!    "is meaningless when using the buffer", and is not read.
//! 3. The last word is read only when RXFFE shows it.
//! 4. A transfer of 8-bit words that the FIFO does not hold, of a multiple of 4 bytes, goes in words of 32 bits:
//!    identical bits on the wire with a quarter of the accesses.
//! 5. A transfer that waits by interrupt is counted by the block: EOW interrupts when it is over, RX_FULL whenever
//!    half of the receive FIFO is full. WCNT counts to 65,535. At the end of a longer transfer the last
//!    bytes, fewer than half of the FIFO, are polled.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the native lines, of either polarity, with any setup and hold time. A native line
//! takes four accesses more: FORCE and the enable bit each way, because the manual wants the channel disabled
//! before its line is released. A chip on a GPIO needs a channel whose line is not wired to another chip.
//!
//! # Ordering
//! 1. After a reset EPOL is 0, which would hold an active-low line active. So every channel has its EPOL before
//!    the block becomes a controller and drives the lines (MODULCTRL's MS).
//! 2. EPOL, PHA and POL are written only while the channel is disabled, the word length and the divisor only
//!    between words.
//! 3. SCK has the polarity of a device before its chip is selected. Writes may be posted: CHCONF is read back
//!    before a GPIO selects.
//! 4. A channel gives up the FIFO before another takes it.
//! 5. A word may be received half a clock before its last clock is over, and no status says that it is. The timer waits for
//!    half a clock after the last word.
//! 6. A native line's edge is a write that may be posted. So a delay after the edge begins with a
//!    read of the block.
//! 7. A disabled channel finishes its word. A reset disables the channel, waits for a word's time, and then
//!    releases the line: no chip sees half a word.
//! 8. IRQSTATUS is cleared before the FIFO is emptied: a level that is reached meanwhile interrupts again.
//!
//! # Not supported
//! Word lengths other than 8, 16 and 32 bits; least significant bit first and loopback (not in the block); several
//! channels at once, and lines that the block moves by itself (TCS); turbo and start-bit modes; one direction
//! alone; target mode; DMA; power management (SYSCONFIG stays as it is). Delays are spun, in an interrupt
//! handler too.
//!
//! QEMU 10 has no machine with the block. The n800 and n810 of QEMU 7.2 have that of OMAP2, which has no FIFO and
//! no RXFFE, so this driver cannot run there. It was judged on this project's own model, on which Linux's
//! driver runs too, and has not run on silicon.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, mcspi::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(spi0: Mmio, gpio1: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = McspiConfig {
//!     reference_hz: 48_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 28, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     d0_sends: false,
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(Mcspi::new(spi0, OmapGpio::new(gpio1), timer, config));
//! let flash = bus.device(&Settings::new(0, 24_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod regs;

pub use config::McspiConfig;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div, mul_div_ceil};
use config::{chconf, chctrl, divisor, in_words, word_bits};
use regs::{
    AFL_SHIFT, CHCONF, CHCTRL, CHSTAT, CLKD_SHIFT, CLKG, Channel, EN, EOW, EXTCLK_SHIFT,
    FIFO_BYTES, FORCE, IRQENABLE, IRQSTATUS, MODULCTRL, PHA, POL, RX, RX0_FULL, RXFFE, SINGLE, TX,
    TXFFE, WCNT_SHIFT, WL_SHIFT, XFERLEVEL,
};

/// A value that no plan has.
const UNCONFIGURED: u32 = u32::MAX;
/// Bytes in the receive FIFO that interrupt.
const LEVEL_BYTES: usize = FIFO_BYTES / 2;
/// The most words that WCNT counts.
const COUNTED_MAX: usize = 0xffff;
/// Bytes of a word of the FIFO in a long transfer of bytes.
const WIDE: u8 = 4;
// Where `configure` puts its values in `Preset::regs`.
/// The device's [`Channel`].
const P_CHANNEL: usize = 0;
/// 1: the select line is native.
const P_NATIVE: usize = 1;
/// CHCONF without what `control` has, and with the line inactive.
const P_CHCONF: usize = 2;

/// The block, its select lines and the timer that makes its delays.
pub type Mcspi<R, G, T, I = NoInterrupt> = Block<McspiState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct McspiState {
    /// What the channel in use is configured for; after a reset [`UNCONFIGURED`].
    control: u32,
    channel: Channel,
    /// XFERLEVEL: 0 unless a transfer waited by interrupt.
    level: u32,
    /// Ticks of the timer in half a clock.
    half_ticks: u64,
    /// A native line was moved by a write that may still be under way.
    posted: bool,
}

impl State for McspiState {
    type Config = McspiConfig;
    type Board = McspiConfig;
    type Flight = fifo::Flight;
}

/// Whether the select line of the preset's chip is native.
#[inline(always)]
fn is_native(preset: &Preset) -> bool {
    preset.regs[P_NATIVE] != 0
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Mcspi<R, G, T, I> {
    /// Ticks of the timer in that many cycles of the functional clock, rounded up.
    fn ticks_of(&self, cycles: u64) -> u64 {
        mul_div_ceil(cycles, self.timer.frequency_hz(), self.config.reference_hz)
    }

    fn write(&mut self, register: u32, value: u32) {
        self.regs.write(self.state.channel.register(register), value);
    }

    fn remember(&mut self, control: u32) {
        self.state.control = control;
        self.state.half_ticks = self.ticks_of(u64::from(divisor(control)).div_ceil(2));
    }

    /// Configures the device's channel while no chip is selected.
    #[cold]
    fn set_up(&mut self, preset: &Preset) {
        let (control, channel) = (preset.plan.control, Channel::of(preset.regs[P_CHANNEL]));
        if self.state.channel != Channel::Unknown {
            self.write(CHCTRL, 0);
            if self.state.channel != channel {
                // Ordering 4.
                let unused = self.config.unused(self.state.channel.number());
                self.write(CHCONF, unused);
            }
        }
        self.state.channel = channel;
        let native = is_native(preset);
        self.write(
            CHCONF,
            preset.regs[P_CHCONF] | chconf(control) | if native { 0 } else { FORCE },
        );
        // Ordering 3: the polarity arrives.
        self.regs.read(channel.register(CHCONF));
        if !native {
            self.write(CHCTRL, chctrl(control) | EN);
        }
        self.remember(control);
    }

    /// Changes what a transfer needs while the chip is selected: Ordering 2.
    #[cold]
    fn restart(&mut self, preset: &Preset, control: u32, level: u32) {
        self.write(CHCTRL, chctrl(self.state.control));
        if self.state.level != level {
            self.regs.write(XFERLEVEL, level);
            self.state.level = level;
        }
        if self.state.control != control {
            self.write(CHCONF, preset.regs[P_CHCONF] | chconf(control) | FORCE);
            self.remember(control);
        }
        self.write(CHCTRL, chctrl(control) | EN);
    }

    /// Cuts a transfer of `len` bytes, and gives the `control` for it.
    #[inline(always)]
    fn cut(plan: &Plan, len: usize) -> (Cut, u32) {
        let wide = plan.word_bytes() == 1
            && plan.word_delay_ticks == 0
            && len > FIFO_BYTES
            && len % usize::from(WIDE) == 0;
        if wide {
            return (Cut::new(plan, WIDE), in_words(plan.control, WIDE));
        }
        (Cut::new(plan, plan.word_bytes()), plan.control)
    }

    /// Bytes of a word of the FIFO.
    #[inline(always)]
    fn frame_bytes(&self) -> usize {
        // At least 1: a division by it has no way to a panic.
        (word_bits(self.state.control) / 8).max(1) as usize
    }

    /// The interrupts of the channel in use.
    fn awaited(&self) -> u32 {
        EOW | RX0_FULL << (4 * self.state.channel.number())
    }

    /// Disables a channel that may be sending, and waits until it does not: Ordering 7.
    fn silence(&mut self, channel: Channel) {
        let ctrl = self.regs.read(channel.register(CHCTRL));
        if ctrl & EN == 0 {
            return;
        }
        self.regs.write(channel.register(CHCTRL), ctrl & !EN);
        let conf = self.regs.read(channel.register(CHCONF));
        let clkd = conf >> CLKD_SHIFT & 0xf;
        let divisor = match conf & CLKG {
            0 => 1 << clkd,
            _ => ((ctrl >> EXTCLK_SHIFT & 0xff) << 4 | clkd) + 1,
        };
        // A word, and a bit that may precede it.
        let clocks = (conf >> WL_SHIFT & 0x1f) + 2;
        let ticks = self.ticks_of(u64::from(clocks) * u64::from(divisor));
        self.timer.wait_ticks(ticks);
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Mcspi<R, G, T, I> {
    #[inline]
    fn depth(&self) -> usize {
        FIFO_BYTES / self.frame_bytes()
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.regs.write_each(self.state.channel.register(TX), words);
    }

    #[inline]
    fn ready(&mut self, in_flight: usize) -> usize {
        let status = self.regs.read(self.state.channel.register(CHSTAT));
        if status & RXFFE != 0 {
            return 0;
        }
        // The last is still on the wire, or is read only when RXFFE shows it.
        if status & TXFFE != 0 { (in_flight - 1).max(1) } else { 1 }
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(self.state.channel.register(RX), places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(self.state.channel.register(RX), n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        // Ordering 5.
        self.timer.wait_ticks(self.state.half_ticks);
        true
    }

    fn lost(&mut self) -> bool {
        false
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let clocks = words as u64 * u64::from(word_bits(self.state.control));
        let periods = clocks * u64::from(divisor(self.state.control));
        mul_div(periods, NS_PER_S, self.config.reference_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Mcspi<R, G, T, I> {
    const RUN_INLINE: bool = false;

    #[cold]
    fn reset(&mut self) {
        self.regs.write(IRQENABLE, 0);
        Channel::ALL.into_iter().for_each(|channel| self.silence(channel));
        for channel in Channel::ALL {
            // Ordering 1, 4 and 7.
            let unused = self.config.unused(channel.number());
            self.regs.write(channel.register(CHCONF), unused);
        }
        self.regs.write(XFERLEVEL, 0);
        self.regs.write(MODULCTRL, SINGLE);
        // The lines have moved before anything else does.
        self.regs.read(MODULCTRL);
        (self.state.control, self.state.channel) = (UNCONFIGURED, Channel::Unknown);
        (self.state.level, self.state.posted) = (0, false);
        self.flight = fifo::Flight::default();
    }

    fn mask(&mut self) {
        self.regs.write(IRQENABLE, 0);
    }

    fn unmask(&mut self) {
        self.regs.write(IRQENABLE, self.awaited());
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        let (control, native) = (preset.plan.control, is_native(preset));
        let changed = self.state.control ^ control;
        // Ordering 3: the polarity.
        if self.state.channel as u32 != preset.regs[P_CHANNEL] || changed & (PHA | POL) != 0 {
            self.set_up(preset);
        } else if changed != 0 && !native {
            self.restart(preset, control, self.state.level);
        } else if changed != 0 {
            // Includes the line, which may be active already if the chip was kept selected.
            self.remember(control);
        }
        if native {
            self.write(CHCONF, preset.regs[P_CHCONF] | chconf(control) | FORCE);
            self.write(CHCTRL, chctrl(control) | EN);
            self.state.posted = true;
        }
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        if is_native(preset) {
            let control = self.state.control;
            self.write(CHCTRL, chctrl(control));
            self.write(CHCONF, preset.regs[P_CHCONF] | chconf(control));
            self.state.posted = true;
        }
    }

    /// Ordering 6.
    #[inline(always)]
    fn settle(&mut self) {
        if self.state.posted {
            self.regs.read(self.state.channel.register(CHCONF));
            self.state.posted = false;
        }
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let len = data.len();
        let (cut, control) = Self::cut(plan, len);
        if self.state.control != control || self.state.level != 0 {
            self.restart(preset, control, 0);
        }
        if cut.frame_of_bytes() == Some(WIDE) {
            if let Some((tx, rx)) = data.apart() {
                return fifo::exchange_frames::<_, 4>(self, len, tx, rx);
            }
        }
        fifo::exchange(self, cut, plan, data)
    }

    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        let (cut, control) = Self::cut(plan, data.len());
        let word_bytes = (word_bits(control) / 8).max(1) as usize;
        let words = data.len() / word_bytes;
        // With a delay between words, each is awaited.
        let (bytes, count) = match plan.word_delay_ticks {
            0 => (LEVEL_BYTES, if words > COUNTED_MAX { 0 } else { words }),
            _ => (word_bytes, 0),
        };
        self.regs.write(IRQSTATUS, self.awaited());
        let level = (bytes as u32 - 1) << AFL_SHIFT | (count as u32) << WCNT_SHIFT;
        self.restart(preset, control, level);
        fifo::begin(self, cut, plan, data);
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        // Ordering 8.
        self.regs.write(IRQSTATUS, self.awaited());
        loop {
            let advanced = fifo::advance(self, plan, data);
            let left = self.flight.flow.in_flight() * self.frame_bytes();
            let level = self.state.level;
            // Neither WCNT nor the level will interrupt.
            let polled = level >> WCNT_SHIFT == 0 && left <= (level >> AFL_SHIFT) as usize;
            if advanced.is_ready() || !polled {
                return advanced;
            }
        }
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        self.state.control == control
            && self.state.channel as u32 == preset.regs[P_CHANNEL]
            && self.state.level == 0
            && !is_native(preset)
            && len <= FIFO_BYTES
    }

    fifo::short_by_bytes!(exchange_rest::<_, 1>);
}
