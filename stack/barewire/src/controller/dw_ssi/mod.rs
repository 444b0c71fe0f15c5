//! DW_apb_ssi: the synchronous serial interface of Synopsys' DesignWare, polled or by its interrupt.
//!
//! The block is in Raspberry Pi's RP1 (the header of the Raspberry Pi 5), in SoCs of Intel, Altera,
//! Microsemi and many others; device trees call it `snps,dw-apb-ssi`.
//!
//! # Read first
//! Synopsys, *DesignWare DW_apb_ssi Databook*, is not public. Vendors reprint its chapters:
//! * Raspberry Pi Ltd, *RP2040 Datasheet*, section 4.10, "SSI"
//!   (<https://datasheets.raspberrypi.com/rp2040/rp2040-datasheet.pdf>): version 4.01a.
//! * Intel, *Cyclone V Hard Processor System Technical Reference Manual*, chapter "SPI Controller":
//!   transfers, clock ratios, register descriptions.
//! * Raspberry Pi Ltd, *RP1 Peripherals* (<https://datasheets.raspberrypi.com/rp1/rp1-peripherals.pdf>),
//!   for the addresses in RP1.
//!
//! # How the block works
//! A FIFO in each direction, 2 to 256 words deep. A word is a *frame* on the wire, of 4 to 16 bits
//! or, depending on how the block was built, up to 32. Frames are sent while the block is enabled
//! (SSIENR), a select line is enabled (SER) and the transmit FIFO has words. Each brings a word
//! into the receive FIFO; one that comes while that FIFO is full is lost, and RXO says so. SCK is
//! the reference clock divided by an even number (BAUDR). CTRLR0 and BAUDR are writable only while
//! the block is disabled, and disabling it empties both FIFOs.
//!
//! # How this driver uses it
//! 1. A block may be far away: a read of RP1's registers crosses PCIe and takes about a
//!    microsecond, while a write is posted and takes a fortieth of that. So this driver avoids
//!    reads, not writes.
//! 2. Few frames. A frame carries up to four bytes; the remaining bytes of a transfer go in one
//!    shorter frame: identical bits on the wire with a quarter of the reads. `config.rs` cuts a
//!    transfer into frames.
//! 3. At most a FIFO's depth of words is in flight, so the receive FIFO cannot overrun however late
//!    we are, and TFNF is never read. RXFLR says how many words were received; so many are read,
//!    and as many more are sent. For the last word SR is read instead, which also says whether the
//!    block is idle: a message of one frame takes one read of SR at the right time and one read of
//!    DR.
//! 4. The depth of the FIFOs and the size of frames are detected at bring-up: TXFTLR and RXFTLR
//!    store only values below the depth, and CTRLR0 stores DFS_32 only if there are frames of 32
//!    bits.
//! 5. RXO means that a word was lost: [`Stopped::Overrun`].
//! 6. Transfers that take longer than [`DwSsiConfig::poll_limit_ns`] wait by interrupt; see
//!    `flight.rs`.
//! 7. To a chip on a GPIO, transfers of 8-bit words that one load of the FIFO holds take the same accesses by a shorter
//!    path: `short.rs`.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the native lines. Nothing is sent while SER is 0. So a
//! chip that a GPIO selects also needs a native line that is not wired to another chip.
//!
//! A native line rises whenever the transmit FIFO runs empty, so software that is late by one word
//! ends the message (*RPi5 SPI transfers: CS isn't kept low during words*, September 2024,
//! <https://github.com/raspberrypi/linux/issues/6354>). Use a GPIO. On a native line a message is
//! one transfer of equal frames that fit the FIFO: they are written while SER is 0, and begin when
//! SER names the line. Longer messages are refused, and so are a setup time, a hold time and a word
//! delay.
//!
//! # Ordering
//! 1. The block is disabled before CTRLR0 and BAUDR are written.
//! 2. SCK has the polarity of a device before its chip is selected. A transfer with a speed or a
//!    frame size of its own disables the block with the chip selected: SCK stays at rest, because
//!    CTRLR0 keeps its polarity.
//! 3. The transmit FIFO becomes empty (TFE) before the last bit is out, and the last word is
//!    received before the last clock is over. A chip is deselected only after SR has shown BUSY
//!    clear. BUSY is set late after a word is written, so it is trusted only once every word has
//!    been received.
//! 4. A write may be posted, and a delay after it would begin before the write arrives. So a delay
//!    after an edge of a chip select begins with a read of the block, which cannot overtake earlier
//!    writes.
//!
//! # Not supported
//! DWC_ssi (`snps,dwc-ssi-1.01a`), whose CTRLR0 has other fields; least significant bit first (not in
//! the block); word lengths other than 8, 16 and 32 bits; the frame formats of Texas Instruments and
//! National Semiconductor; dual and quad formats; receive-only and EEPROM transfers; RX_SAMPLE_DLY;
//! target mode; DMA. Delays are spun, in an interrupt handler too.
//!
//! QEMU has no model of the block. This driver was tested against this project's own model only,
//! and has not run on silicon.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, dw_ssi::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(spi0: Mmio, gpio: Rp1Gpio<Mmio>, timer: impl Timer) -> Result<(), Error> {
//! let config = DwSsiConfig {
//!     reference_hz: 200_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 8, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     native_lines: 2,
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(DwSsi::new(spi0, gpio, timer, config));
//! let flash = bus.device(&Settings::new(0, 20_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod flight;
mod regs;
mod short;

pub use config::DwSsiConfig;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::deadline::poll;
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::words::{pack, unpack};
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div};
use config::{Built, divisor, frame_bytes, mode_of, native_frame_bytes};
use flight::AWAITED;
use regs::{
    BAUDR, BUSY, CTRLR0, DEPTH_MAX, DFS_32, DMACR, DR, ICR, IMR, MODE, RFNE, RISR, RXFLR, RXFTLR,
    RXO, SER, SR, SSIENR, TXFTLR, frame_bits, frame_size,
};

/// No register's value: each has unused bits.
const UNCONFIGURED: u32 = u32::MAX;
// Where `configure` puts its values in `Preset::regs`.
/// SER while the chip is selected.
const P_SER: usize = 0;
/// 1: the select line is native.
const P_NATIVE: usize = 1;

/// Whether the select line of the preset's chip is native.
#[inline(always)]
fn is_native(preset: &Preset) -> bool {
    preset.regs[P_NATIVE] != 0
}

/// How the block was built.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Words that each FIFO holds.
    depth: usize,
    /// Frames have up to 32 bits, set in DFS_32; else up to 16, set in DFS.
    wide: bool,
    /// Bytes whose frames a FIFO holds, however they are cut.
    load_bytes: usize,
}

impl Size {
    const fn new(depth: usize, wide: bool) -> Self {
        // 24 bytes or less may be cut into more frames than of the widest: at most 8.
        let bytes = if depth < 8 { 1 } else { if wide { 4 } else { 2 } };
        Self { depth, wide, load_bytes: depth * bytes }
    }

    /// Bytes that a frame carries, at most.
    fn frame_bytes_max(self) -> u8 {
        if self.wide { 4 } else { 2 }
    }
}

/// The DW_apb_ssi block, its select lines and the timer that makes its delays.
pub type DwSsi<R, G, T, I = NoInterrupt> = Block<DwSsiState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct DwSsiState {
    /// CTRLR0 as last written; after a reset [`UNCONFIGURED`], as the three below.
    ctrlr0: u32,
    baudr: u32,
    ser: u32,
    rxftlr: u32,
    /// Bytes of a frame under CTRLR0; 0 after a reset.
    frame_bytes: u8,
    /// SER of the selected chip if it is on a native line; else 0.
    native: u32,
    /// Whether the block was seen idle after the last word was received.
    rested: bool,
    /// Whether the transfer on the wire is continued by interrupt.
    left: bool,
    /// Whether a chip select moved and no register was read since.
    posted: bool,
}

impl State for DwSsiState {
    type Config = DwSsiConfig;
    type Board = Built;
    type Flight = fifo::Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> DwSsi<R, G, T, I> {
    /// Detects how the block was built. The block is disabled.
    fn measure(&mut self) -> Size {
        let depth = self.fifo_depth(TXFTLR).min(self.fifo_depth(RXFTLR));
        self.regs.write(CTRLR0, DFS_32);
        let wide = self.regs.read(CTRLR0) & DFS_32 == DFS_32;
        // Probing has overwritten the threshold.
        self.state.rxftlr = UNCONFIGURED;
        Size::new(depth as usize, wide)
    }

    /// The depth of the FIFO of a threshold register, which stores only smaller values.
    fn fifo_depth(&mut self, threshold: u32) -> u32 {
        let (mut kept, mut refused) = (1, DEPTH_MAX);
        while refused - kept > 1 {
            let value = kept.midpoint(refused);
            self.regs.write(threshold, value);
            if self.regs.read(threshold) == value {
                kept = value;
            } else {
                refused = value;
            }
        }
        refused
    }

    /// Writes the registers that differ, with the block disabled (Ordering 1).
    #[cold]
    fn reconfigure(&mut self, ctrlr0: u32, baudr: u32, ser: u32) {
        self.regs.write(SSIENR, 0);
        if self.state.ctrlr0 != ctrlr0 {
            self.regs.write(CTRLR0, ctrlr0);
            self.state.ctrlr0 = ctrlr0;
            self.state.frame_bytes = (frame_bits(ctrlr0, self.config.size.wide) / 8) as u8;
        }
        if self.state.baudr != baudr {
            self.regs.write(BAUDR, baudr);
            self.state.baudr = baudr;
        }
        if self.state.ser != ser {
            self.regs.write(SER, ser);
            self.state.ser = ser;
        }
        self.regs.write(SSIENR, 1);
    }

    /// Sets the block up for frames of `bytes`.
    #[inline(always)]
    fn frames_of(&mut self, control: u32, bytes: u8) {
        let ctrlr0 = mode_of(control) | frame_size(bytes, self.config.size.wide);
        let baudr = divisor(control);
        if self.state.ctrlr0 != ctrlr0 || self.state.baudr != baudr {
            self.reconfigure(ctrlr0, baudr, self.state.ser);
        }
    }

    /// Sets the block up for a transfer of `len` bytes, and cuts it.
    #[inline(always)]
    fn prepare(&mut self, plan: &Plan, len: usize) -> Cut {
        let bytes = if self.state.native != 0 {
            native_frame_bytes(plan, len, self.config.size)
        } else {
            frame_bytes(plan, len, self.config.size)
        };
        self.frames_of(plan.control, bytes);
        Cut::new(plan, bytes)
    }

    /// Exchanges the whole frames of a transfer.
    #[inline]
    fn exchange_body(&mut self, cut: Cut, plan: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        let len = data.len();
        if cut.frame_of_bytes() == Some(4) {
            if let Some((tx, rx)) = data.apart() {
                return fifo::exchange_frames::<_, 4>(self, len, tx, rx);
            }
        }
        fifo::exchange(self, cut, plan, data)
    }

    /// Exchanges the bytes at a transfer's end that did not fill a frame, if there are any, as one
    /// frame.
    fn exchange_tail(&mut self, plan: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        let (len, word_bytes) = (data.len(), plan.word_bytes());
        let tail = len % usize::from(self.state.frame_bytes.max(1));
        if tail == 0 {
            return Ok(());
        }
        self.state.left = false;
        self.frames_of(plan.control, tail as u8);
        self.send_frame(data.tx().and_then(|tx| tx.get(len - tail..)), word_bytes);
        let rx = data.rx_mut().and_then(|rx| rx.get_mut(len - tail..));
        self.await_frame(rx, word_bytes)
    }

    /// Sends bytes that are one frame, for which the block is set up.
    #[inline(always)]
    fn send_frame(&mut self, tx: Option<&[u8]>, word_bytes: u8) {
        let word = match tx {
            Some(tx) => pack(tx, word_bytes),
            None => 0,
        };
        self.regs.write(DR, word);
    }

    #[inline(always)]
    fn receive_frame(&mut self, rx: Option<&mut [u8]>, word_bytes: u8) {
        match rx {
            Some(rx) => unpack(self.regs.read(DR), rx, word_bytes),
            None => self.regs.discard_n(DR, 1),
        }
    }

    /// Waits until the frame that was sent has been received and the block is idle.
    fn await_frame(&mut self, rx: Option<&mut [u8]>, word_bytes: u8) -> Result<(), Stopped> {
        if let Err(stopped) = poll(self, |this| this.wire_ns(1), Self::has_frame) {
            return Err(if self.lost() { Stopped::Overrun } else { stopped });
        }
        self.receive_frame(rx, word_bytes);
        Ok(())
    }

    /// Whether the last word in flight has been received and the block is idle.
    ///
    /// One read says both (Ordering 3). Without the word it does not count, so a lost word is noticed.
    #[inline(always)]
    fn has_frame(&mut self) -> bool {
        self.state.rested = self.regs.read(SR) & (BUSY | RFNE) == RFNE;
        self.state.rested
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for DwSsi<R, G, T, I> {
    fn depth(&self) -> usize {
        self.config.size.depth
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.state.rested = false;
        if self.state.native == 0 {
            self.regs.write_each(DR, words);
            return;
        }
        // The native line would rise between two words if the second were late: all are in the FIFO
        // before it falls.
        self.regs.write(SER, 0);
        self.regs.write_each(DR, words);
        self.regs.write(SER, self.state.native);
        self.state.ser = self.state.native;
    }

    #[inline]
    fn ready(&mut self, in_flight: usize) -> usize {
        if in_flight > 1 || self.state.left {
            return self.regs.read(RXFLR) as usize;
        }
        self.has_frame().into()
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(DR, places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(DR, n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        self.state.rested || self.regs.read(SR) & BUSY == 0
    }

    fn lost(&mut self) -> bool {
        self.regs.read(RISR) & RXO != 0
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let clocks = words as u64 * u64::from(frame_bits(self.state.ctrlr0, self.config.size.wide));
        let periods = clocks * u64::from(self.state.baudr);
        mul_div(periods, NS_PER_S, self.config.board.reference_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for DwSsi<R, G, T, I> {
    const RUN_INLINE: bool = false;

    /// Disables the block, which stops it and empties its FIFOs, in whatever state it is.
    #[cold]
    fn reset(&mut self) {
        self.regs.write(SSIENR, 0);
        self.regs.write(IMR, 0);
        self.regs.write(SER, 0);
        self.regs.write(DMACR, 0);
        // A word lost earlier must not fail the next message.
        self.regs.read(ICR);
        (self.state.ctrlr0, self.state.baudr, self.state.ser) = (UNCONFIGURED, UNCONFIGURED, 0);
        self.state.rxftlr = UNCONFIGURED;
        (self.state.frame_bytes, self.state.native, self.state.left, self.state.posted) =
            (0, 0, false, false);
        self.flight = fifo::Flight::default();
    }

    /// Detects the block's size too: about twenty reads.
    fn bring_up(&mut self) {
        self.reset();
        self.config.size = self.measure();
    }

    fn mask(&mut self) {
        self.regs.write(IMR, 0);
    }

    fn unmask(&mut self) {
        self.regs.write(IMR, AWAITED);
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        let control = preset.plan.control;
        // For a native line `put` writes SER.
        let (native, ser) = if is_native(preset) {
            (preset.regs[P_SER], self.state.ser)
        } else {
            (0, preset.regs[P_SER])
        };
        self.state.native = native;
        // Ordering 2: the polarity. The frame size is set with each transfer.
        if (self.state.ctrlr0 ^ control) & MODE != 0 || self.state.ser != ser {
            let word = frame_size(preset.plan.word_bytes(), self.config.size.wide);
            self.reconfigure(mode_of(control) | word, divisor(control), ser);
        }
        self.state.posted |= preset.cs_mask != 0;
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        self.state.posted |= preset.cs_mask != 0;
    }

    /// Ordering 4.
    #[inline(always)]
    fn settle(&mut self) {
        if self.state.posted {
            self.regs.read(SR);
            self.state.posted = false;
        }
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let cut = self.prepare(plan, data.len());
        self.state.left = false;
        self.exchange_body(cut, plan, data)?;
        self.exchange_tail(plan, data)
    }

    fn begin(&mut self, _preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        let cut = self.prepare(plan, data.len());
        self.state.left = true;
        fifo::begin(self, cut, plan, data);
        self.await_words();
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let advanced = fifo::advance(self, plan, data);
        match advanced {
            Poll::Pending => self.await_words(),
            Poll::Ready(Err(_)) => {}
            // Ordering 3: the rest of the transfer is one frame.
            Poll::Ready(Ok(())) => return Poll::Ready(self.exchange_tail(plan, data)),
        }
        advanced
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        let mode =
            (self.state.ctrlr0 ^ control) & MODE == 0 && self.state.baudr == divisor(control);
        let selects = self.state.ser == preset.regs[P_SER] && !is_native(preset);
        mode && selects && len <= self.config.size.load_bytes
    }

    #[inline(always)]
    fn enter_short(&mut self, _preset: &Preset) {
        (self.state.native, self.state.left, self.state.posted) = (0, false, true);
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
        control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        self.exchange_rest_of_load(control, len, tx, rx)
    }
}
