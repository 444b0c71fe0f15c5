//! SiFive SPI: the controller of the FU540-C000 and the FU740-C000, polled or by its interrupt.
//!
//! Device trees call it `sifive,spi0`.
//!
//! # Read first
//! SiFive, *SiFive FU540-C000 Manual*, chapter "Serial Peripheral Interface (SPI)", and SiFive,
//! *SiFive FU740-C000 Manual*, v1p2, March 2021, the chapter of the same name.
//!
//! Where the manual leaves a question open, the block's register-transfer source answers it: SiFive,
//! *sifive-blocks*, 2016, as kept in
//! [Chipyard](https://github.com/ucb-bar/chipyard/tree/main/generators/rocket-chip-blocks/src/main/scala/devices/spi),
//! `SPIRegs`, `SPIFIFO`, `SPIMedia` and `SPIPhysical`. The statements below about the block come from there.
//!
//! # How the block works
//! A FIFO of 8 bytes each way. Each byte sent brings one into the receive FIFO, if FMT's direction
//! says so. A read of RXDATA takes a byte out, or says that there was none. SCK is the input clock
//! divided by 2 * (SCKDIV + 1). No register empties a FIFO, none says that the block is busy, and
//! none says that a byte was lost.
//!
//! Before the first byte the block selects: under CSMODE's AUTO and HOLD the line that CSID names
//! becomes active, under OFF no line moves. Under AUTO it releases after each byte, and selects again for
//! the next one. Under HOLD and OFF it stays selected until CSMODE changes. It takes over SCKDIV and
//! SCKMODE only while it is not selected, and FMT with each byte.
//!
//! # How this driver uses it
//! 1. At most 8 bytes are in flight, so the receive FIFO cannot overrun however late we are, and
//!    TXDATA's full flag is never asked.
//! 2. A read of RXDATA is both the question whether a byte has come and the byte.
//! 3. The receive watermark alone interrupts. The transmit watermark says that bytes have left the
//!    FIFO, not that they are out on the wire.
//! 4. The flash interface is switched off at bring-up: FCTRL.
//! 5. To a chip on a GPIO, transfers take the same accesses by a shorter path: up to 8 bytes, which are all in
//!    flight at once, compiled into the caller; more by a call.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the block's own lines, of either polarity. CSMODE's HOLD
//! keeps the block's own line active from the first frame on. The line becomes active with that frame,
//! not when CSMODE is written: a setup time is refused. A transfer without bytes does not select.
//! Writing AUTO releases the line, one to two clocks later. While a GPIO selects, CSMODE is OFF.
//!
//! # Ordering
//! 1. SCK has the polarity of a device before its chip is selected.
//! 2. A byte arrives in the receive FIFO half a clock before its last clock is over. The timer waits 2
//!    clocks after the last byte, because it does not run with SCK.
//! 3. The timer waits 4 clocks after AUTO is written: then the line is inactive and the time between
//!    two selects begins.
//! 4. The block ignores a new SCKDIV while it is selected. On its own line a transfer with a speed that
//!    is not the device's is refused ([`Error::NativeCsSpeed`](crate::spi::Error::NativeCsSpeed)). While a GPIO selects, AUTO is
//!    written, then after 4 clocks SCKDIV, then OFF: no line moves.
//! 5. Bytes that a timeout leaves in the transmit FIFO cannot be taken back. If the block still runs,
//!    they go out under OFF, with no line active. As many are waited for as the FIFO holds, and
//!    discarded.
//!
//! # Not supported
//! Words other than of 8 bits; loopback (not in the block); dual and quad formats; the flash
//! interface; target mode. Delays are spun, in an interrupt handler too.
//!
//! This driver was judged on QEMU 10.0's `sifive_u`, whose bytes take no time, and on this project's
//! model, which was written from the sources above: not on silicon.

mod config;
mod regs;

pub use config::SiFiveConfig;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div, mul_div_ceil};
use config::{divisor, endian, sckdiv, sckmode};
use regs::{
    AUTO, CSDEF, CSID, CSMODE, DELAY0, DELAY0_RESET, DELAY1, DELAY1_RESET, DEPTH, DIV_MAX, EMPTY,
    FCTRL, FMT, FMT_BYTES, HOLD, IE, OFF, RXDATA, RXMARK, RXWM, SCKDIV, SCKMODE, TXDATA,
};

/// A value that no register can hold: each has unused bits.
const UNCONFIGURED: u32 = u32::MAX;
/// Clocks of a frame, with one before it and one after it where a line moves.
const FRAME_CLOCKS_MAX: u64 = 10;
/// Clocks after which the block has released its line: at most one of the last byte, one before the
/// release and one after it, and one because the timer does not run with SCK.
const RELEASE_CLOCKS: u64 = 4;
/// Clocks after which the last byte's are over.
const LAST_CLOCKS: u64 = 2;
// Where `configure` puts its values in `Preset::regs`.
/// CSID, where the select line is the block's own.
const P_CSID: usize = 0;
/// 1: the select line is the block's own.
const P_NATIVE: usize = 1;

/// The block, its select lines and the timer that makes its delays.
pub type SiFive<R, G, T, I = NoInterrupt> = Block<SiFiveState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct SiFiveState {
    /// SCKDIV, SCKMODE, FMT's ENDIAN as a plan has them; after a reset [`UNCONFIGURED`].
    control: u32,
    /// CSMODE while no chip is selected: AUTO, or OFF after a chip on a GPIO.
    idle_mode: u32,
    csid: u32,
    rxmark: u32,
    /// Ticks of the timer after which a transfer's last clock is over.
    last_ticks: u64,
    /// The byte that [`Fifo::ready`] took out.
    taken: u32,
    /// CSDEF as the first reset found it.
    csdef: Option<u32>,
    /// Whether the last reset was one after an error: a block that did not answer may have kept what it received.
    recovered: bool,
}

impl State for SiFiveState {
    type Config = SiFiveConfig;
    type Board = SiFiveConfig;
    type Flight = fifo::Flight;
}

/// Whether the select line of the preset's chip is the block's own.
#[inline(always)]
fn is_native(preset: &Preset) -> bool {
    preset.regs[P_NATIVE] != 0
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> SiFive<R, G, T, I> {
    /// Ticks of the timer in `clocks` of SCK, rounded up.
    fn ticks_of(&self, sckdiv: u32, clocks: u64) -> u64 {
        let cycles = clocks * u64::from(divisor(sckdiv));
        mul_div_ceil(cycles, self.timer.frequency_hz(), self.config.reference_hz)
    }

    /// Waits for that many clocks of SCK.
    #[inline]
    fn await_clocks(&mut self, clocks: u64) {
        let ticks = self.ticks_of(sckdiv(self.state.control), clocks);
        self.timer.wait_ticks(ticks);
    }

    /// Empties the receive FIFO.
    fn drain(&mut self) {
        for _ in 0..=DEPTH {
            if self.regs.read(RXDATA) & EMPTY != 0 {
                break;
            }
        }
    }

    /// CSMODE becomes AUTO, and the block is not selected any more.
    #[inline]
    fn unselect(&mut self) {
        self.regs.write(CSMODE, AUTO);
        self.await_clocks(RELEASE_CLOCKS);
    }

    /// Writes the registers that differ while the block is not selected: Ordering 4.
    fn reconfigure(&mut self, control: u32, idle_mode: u32) {
        if self.state.idle_mode != AUTO {
            self.unselect();
        }
        let (old, first) = (self.state.control, self.state.control == UNCONFIGURED);
        if self.state.recovered {
            self.state.recovered = false;
            self.drain();
        }
        if first || sckdiv(old) != sckdiv(control) {
            self.regs.write(SCKDIV, sckdiv(control));
        }
        if first || sckmode(old) != sckmode(control) {
            self.regs.write(SCKMODE, sckmode(control));
        }
        if first || endian(old) != endian(control) {
            self.regs.write(FMT, FMT_BYTES | endian(control));
        }
        self.state.control = control;
        self.state.last_ticks = self.ticks_of(sckdiv(control), LAST_CLOCKS);
        if idle_mode != AUTO {
            self.regs.write(CSMODE, idle_mode);
        }
        self.state.idle_mode = idle_mode;
    }

    /// Sets the block up for a transfer, and cuts it. On the block's own line all plans of a message are the same.
    #[inline(always)]
    fn prepare(&mut self, plan: &Plan) -> Cut {
        if self.state.control != plan.control {
            self.reconfigure(plan.control, OFF);
        }
        Cut::new(plan, 1)
    }

    /// Exchanges a transfer of more bytes than the FIFO holds. Not inlined: its loops are for any length.
    #[inline(never)]
    fn exchange_long(&mut self, len: usize, tx: Option<&[u8]>, rx: Option<&mut [u8]>) -> bool {
        fifo::exchange_ready::<_, 1>(self, len, tx, rx)
    }

    /// Sets the number of bytes at which the block interrupts: half a FIFO, or all in flight.
    fn await_bytes(&mut self) {
        let bytes = self.flight.flow.in_flight().clamp(1, DEPTH / 2);
        let rxmark = bytes as u32 - 1;
        if self.state.rxmark != rxmark {
            self.regs.write(RXMARK, rxmark);
            self.state.rxmark = rxmark;
        }
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for SiFive<R, G, T, I> {
    const ONE_A_LOOK: bool = true;
    const WAITS_FOR_WORDS: bool = true;

    fn depth(&self) -> usize {
        DEPTH
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.regs.write_each(TXDATA, words);
    }

    #[inline]
    fn ready(&mut self, _in_flight: usize) -> usize {
        self.state.taken = self.regs.read(RXDATA);
        (self.state.taken & EMPTY == 0).into()
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, mut to: impl FnMut(P, u32)) {
        // One at most: `ready` has read it.
        for place in places {
            to(place, self.state.taken & 0xff);
        }
    }

    #[inline]
    fn discard(&mut self, _n: usize) {}

    #[inline(always)]
    fn take_one(&mut self) -> Option<u32> {
        let taken = self.regs.read(RXDATA);
        (taken & EMPTY == 0).then_some(taken)
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        // Ordering 2.
        self.timer.wait_ticks(self.state.last_ticks);
        true
    }

    fn lost(&mut self) -> bool {
        false
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let cycles =
            words as u64 * FRAME_CLOCKS_MAX * u64::from(divisor(sckdiv(self.state.control)));
        mul_div(cycles, NS_PER_S, self.config.reference_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for SiFive<R, G, T, I> {
    const RUN_INLINE: bool = false;

    /// Silences the block and empties its FIFOs, whichever program drove it last: Ordering 5.
    #[cold]
    fn reset(&mut self) {
        self.regs.write(IE, 0);
        self.regs.write(CSMODE, OFF);
        self.regs.write(FCTRL, 0);
        // A block that has stopped answering says neither this nor its clock.
        self.state.recovered = self.state.csdef.is_some();
        let csdef = *self.state.csdef.get_or_insert_with(|| self.regs.read(CSDEF));
        self.regs.write(CSDEF, self.config.csdef(csdef));
        self.regs.write(DELAY0, DELAY0_RESET);
        self.regs.write(DELAY1, DELAY1_RESET);
        let sckdiv = match self.state.control {
            control if self.state.recovered && control != UNCONFIGURED => sckdiv(control),
            _ => self.regs.read(SCKDIV) & DIV_MAX,
        };
        // One more than the FIFO holds is being sent.
        let clocks = (DEPTH as u64 + 1) * FRAME_CLOCKS_MAX + RELEASE_CLOCKS;
        let ticks = self.ticks_of(sckdiv, clocks);
        self.timer.wait_ticks(ticks);
        self.drain();
        self.regs.write(CSMODE, AUTO);
        let ticks = self.ticks_of(sckdiv, RELEASE_CLOCKS);
        self.timer.wait_ticks(ticks);
        self.state.idle_mode = AUTO;
        (self.state.control, self.state.csid, self.state.rxmark) =
            (UNCONFIGURED, UNCONFIGURED, UNCONFIGURED);
        self.flight = fifo::Flight::default();
    }

    fn mask(&mut self) {
        self.regs.write(IE, 0);
    }

    fn unmask(&mut self) {
        self.regs.write(IE, RXWM);
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        let native = is_native(preset);
        let idle_mode = if native { AUTO } else { OFF };
        // Ordering 1: the polarity.
        if self.state.control != preset.plan.control || self.state.idle_mode != idle_mode {
            self.reconfigure(preset.plan.control, idle_mode);
        }
        if native {
            let csid = preset.regs[P_CSID];
            if self.state.csid != csid {
                self.regs.write(CSID, csid);
                self.state.csid = csid;
            }
            self.regs.write(CSMODE, HOLD);
        }
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        if is_native(preset) {
            // Ordering 3.
            self.unselect();
        }
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        let cut = self.prepare(plan);
        fifo::exchange(self, cut, plan, data)
    }

    fn begin(&mut self, _preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        let cut = self.prepare(plan);
        fifo::begin(self, cut, plan, data);
        self.await_bytes();
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        let advanced = fifo::advance(self, plan, data);
        if advanced.is_pending() {
            self.await_bytes();
        }
        advanced
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, _len: usize) -> bool {
        // OFF: a GPIO selects, or nothing does.
        self.state.control == control && self.state.idle_mode == OFF && !is_native(preset)
    }

    #[inline(always)]
    fn exchange_short(
        &mut self,
        _control: u32,
        len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> bool {
        match len {
            ..=DEPTH => fifo::exchange_short::<_, 1>(self, len, tx, rx),
            _ => self.exchange_long(len, tx, rx),
        }
    }

    fn exchange_rest(
        &mut self,
        _control: u32,
        _len: usize,
        tx: Option<&[u8]>,
        rx: Option<&mut [u8]>,
    ) -> Result<(), Stopped> {
        fifo::exchange_rest::<_, 1>(self, tx, rx)
    }
}
