//! Cadence SPI: the controller of Zynq-7000 and Zynq UltraScale+, polled or by its interrupt.
//!
//! Device trees call it `cdns,spi-r1p6` and `xlnx,zynq-spi-r1p6`.
//!
//! # Read first
//! Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), chapter 17, "SPI Controller", and appendix B.30; the
//! same block in *Zynq UltraScale+ Device Technical Reference Manual* (UG1085) and its registers in UG1087.
//!
//! Where the manual leaves a question open, the vendor's polled driver answers it (Xilinx, *embeddedsw*, `spips`,
//! `XSpiPs_PolledTransfer`): a byte leaves the transmit FIFO once it has been received. So as soon as the transmit
//! FIFO is empty, that driver reads as many bytes as it has sent. Linux's spi-cadence relies on it too.
//!
//! # How the block works
//! A FIFO of 128 bytes each way. Each byte sent brings one in. SCK is the reference clock divided by a power of two,
//! 4 to 256. The status has no count: a bit says that the transmit FIFO holds fewer bytes than TX_THRES, another
//! that the receive FIFO holds RX_THRES or more. No register empties a FIFO, and none says that SCK is at rest.
//!
//! CONFIG has the clock, the mode and, with manual chip select, the line that is active. A new mode acts when the
//! block is enabled, not before (Linux's spi-cadence says so, and disables the block for it).
//!
//! # How this driver uses it
//! 1. At most 128 bytes are in flight, so the receive FIFO cannot overrun however late we are, and the full flag is
//!    never asked.
//! 2. With TX_THRES at 1, one read of the status says that all bytes in flight have been received. A transfer that
//!    fits the FIFO is a write for each byte, that read, and a read for each byte.
//! 3. For a longer one TX_THRES is 65: half a FIFO is sent and read while the other half is on the wire. It is 1
//!    again for the rest.
//! 4. The receive FIFO's bit is in the same read, and RX_THRES is always 1. While the wire is the slower of the two,
//!    a look finds a byte there, which is read before the next look. And a block that takes no byte has an empty
//!    transmit FIFO too: without a received byte it must not seem to have answered.
//! 5. The interrupt is the first condition, TX FIFO not full.
//! 6. To a chip on a GPIO, transfers that fit the FIFO take the same accesses by a shorter path, compiled into the
//!    caller.
//!
//! The shortest message, a byte to a chip on the block's own line, is 5 accesses: CONFIG selects, TX_DATA takes the byte,
//! INTR_STATUS says that it was received, RX_DATA gives the answer, CONFIG deselects. None can be left out, and
//! INTR_STATUS alone is repeated, until the byte is over.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)) or the block's own SS0 to SS2, active low. Software moves them (manual
//! chip select), so they take any message and any delay.
//!
//! # Ordering
//! 1. SCK has the polarity of a device before its chip is selected: the block is disabled and enabled with the new
//!    mode while it selects no line.
//! 2. A byte may arrive in the receive FIFO half a clock before its last clock is over: the manual does not say
//!    when. The timer waits a clock after the last byte, before a line moves.
//! 3. A reset disables the block, and deselects once a byte that was on the wire must be over. Bytes that a timeout
//!    leaves in the transmit FIFO cannot be taken back: they go out at the fastest clock with no line active. As many
//!    are waited for as the FIFO holds, and discarded. If the block stands still, the next message resets it again.
//! 4. The mode fault is switched off (Modefail_gen_en): an SS0 pin that is left open would stop the block.
//!
//! # Not supported
//! Words other than of 8 bits, least significant bit first, loopback, lines that are active high (not in the block);
//! an external decoder of the lines; manual start; target mode. Delays are spun, in an interrupt handler too. A
//! FIFO of another depth, as some licensees of the block have.
//!
//! This driver was judged on QEMU's `xilinx-zynq-a9`, whose bytes take no time, and on this project's model, which was
//! written from the sources above: not on silicon.
//!
//! # Example
//! ```
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, cadence::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(spi0: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = CadenceConfig {
//!     reference_hz: 166_666_667,
//!     chip_selects: [CsLine::Native { channel: 0, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(Cadence::new(spi0, NoGpio, timer, config));
//! let flash = bus.device(&Settings::new(0, 20_000_000))?;
//! # Ok(()) }
//! ```

mod config;
mod regs;

pub use config::CadenceConfig;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, divide, mul_div, mul_div_ceil};
use config::IDLE;
use regs::{
    ALL, BAUD_RATE_DIV, CLK_PH, CLK_POL, CONFIG, CS, DELAY, DEPTH, EN, INTR_STATUS, INTRPT_DIS,
    INTRPT_EN, RX_DATA, RX_NOT_EMPTY, RX_OVERFLOW, RX_THRES, TX_DATA, TX_NOT_FULL, TX_THRES, baud,
    divisor,
};

/// A value that CONFIG cannot hold: it has unused bits.
const UNCONFIGURED: u32 = u32::MAX;
/// TX_THRES where all bytes in flight are awaited.
const ALL_OUT: usize = 1;
/// TX_THRES where half a FIFO is awaited.
const HALF_OUT: usize = DEPTH / 2 + 1;
/// Cycles of the reference clock in which a byte is sent at the slowest clock, with the longest delays.
const BYTE_CYCLES: u64 = 8 * divisor(baud(7)) as u64 + 2 * 0xff;
/// Cycles in which a full FIFO is sent at the fastest clock, and one byte more.
const FLUSH_CYCLES: u64 = 8 * (DEPTH as u64 + 1) * divisor(IDLE) as u64;
// Where `configure` puts its values in `Preset::regs`.
/// The bit of CONFIG's CS that selects the block's own line when it is 0; 0 without such a line.
const P_LINE: usize = 0;

/// The block, its select lines and the timer that makes its delays.
pub type Cadence<R, G, T, I = NoInterrupt> = Block<CadenceState, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct CadenceState {
    /// CONFIG as last written; after a reset [`UNCONFIGURED`].
    config: u32,
    /// TX_THRES as last written.
    tx_thres: usize,
    /// The caller does not look again: TX_THRES is set before it sleeps.
    asleep: bool,
    /// Ticks of the timer after which a transfer's last clock is over.
    last_ticks: u64,
    /// A reset could not empty the transmit FIFO.
    stuck: bool,
}

impl State for CadenceState {
    type Config = CadenceConfig;
    type Board = CadenceConfig;
    type Flight = fifo::Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Cadence<R, G, T, I> {
    /// Ticks of the timer in `cycles` of the reference clock, rounded up.
    fn ticks_of(&self, cycles: u64) -> u64 {
        mul_div_ceil(cycles, self.timer.frequency_hz(), self.config.reference_hz)
    }

    /// Writes a CONFIG that differs from the last one.
    #[inline(always)]
    fn write_config(&mut self, config: u32) {
        if (self.state.config ^ config) & BAUD_RATE_DIV != 0 {
            self.new_clock(config);
        }
        self.regs.write(CONFIG, config);
        self.state.config = config;
    }

    /// Computes what depends on the clock.
    #[cold]
    fn new_clock(&mut self, config: u32) {
        self.state.last_ticks = self.ticks_of(divisor(config).into());
    }

    /// Brings the block to another mode, with no line selected: Ordering 1. Returns false if it is stuck.
    #[cold]
    fn change_mode(&mut self, control: u32) -> bool {
        if self.state.stuck {
            // Try again: its clock may be running now.
            self.reset();
            if self.state.stuck {
                return false;
            }
        }
        self.regs.write(EN, 0);
        self.new_clock(control);
        self.regs.write(CONFIG, control);
        self.state.config = control;
        self.regs.write(EN, 1);
        true
    }

    /// The error of a block that a reset could not empty.
    #[cold]
    fn stuck(&self) -> Stopped {
        let (timeout_us, _) = divide(FLUSH_CYCLES * 1_000_000, self.config.reference_hz);
        Stopped::TimedOut { timeout_us: u32::try_from(timeout_us).unwrap_or(u32::MAX) }
    }

    /// Sets the clock of a transfer, and cuts it.
    #[inline(always)]
    fn prepare(&mut self, plan: &Plan) -> Cut {
        let config = plan.control & (self.state.config | !CS);
        if self.state.config != config {
            self.write_config(config);
        }
        Cut::new(plan, 1)
    }

    #[inline]
    fn set_tx_thres(&mut self, bytes: usize) {
        if self.state.tx_thres != bytes {
            self.regs.write(TX_THRES, bytes as u32);
            self.state.tx_thres = bytes;
        }
    }

    /// Sets the number of bytes at which the block interrupts: half a FIFO, or all in flight.
    fn await_bytes(&mut self) {
        let bytes = if self.flight.flow.all_sent() { ALL_OUT } else { HALF_OUT };
        self.set_tx_thres(bytes);
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Cadence<R, G, T, I> {
    const WAITS_FOR_WORDS: bool = true;

    fn depth(&self) -> usize {
        DEPTH
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        self.regs.write_each(TX_DATA, words);
    }

    #[inline]
    fn ready(&mut self, in_flight: usize) -> usize {
        if in_flight < self.state.tx_thres {
            // The bit is set however many have been received.
            if self.state.asleep {
                return 0;
            }
            self.set_tx_thres(ALL_OUT);
        }
        const BOTH: u32 = TX_NOT_FULL | RX_NOT_EMPTY;
        match self.regs.read(INTR_STATUS) & BOTH {
            BOTH => in_flight + 1 - self.state.tx_thres,
            RX_NOT_EMPTY if !self.state.asleep => 1,
            _ => 0,
        }
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(RX_DATA, places, to);
    }

    #[inline]
    fn discard(&mut self, n: usize) {
        self.regs.discard_n(RX_DATA, n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        // Ordering 2.
        self.timer.wait_ticks(self.state.last_ticks);
        true
    }

    fn lost(&mut self) -> bool {
        self.regs.read(INTR_STATUS) & RX_OVERFLOW != 0
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let cycles = words as u64 * 8 * u64::from(divisor(self.state.config));
        mul_div(cycles, NS_PER_S, self.config.reference_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Cadence<R, G, T, I> {
    const RUN_INLINE: bool = false;

    /// Silences the block and empties its FIFOs, whichever program drove it last: Ordering 3.
    #[cold]
    fn reset(&mut self) {
        self.regs.write(INTRPT_DIS, ALL);
        self.regs.write(EN, 0);
        let ticks = self.ticks_of(BYTE_CYCLES);
        self.timer.wait_ticks(ticks);
        self.regs.write(CONFIG, IDLE);
        self.regs.write(DELAY, 0);
        self.regs.write(TX_THRES, ALL_OUT as u32);
        self.regs.write(RX_THRES, 1);
        self.regs.write(EN, 1);
        let ticks = self.ticks_of(FLUSH_CYCLES);
        self.timer.wait_ticks(ticks);
        let mut status = self.regs.read(INTR_STATUS);
        for _ in 0..DEPTH {
            if status & RX_NOT_EMPTY == 0 {
                break;
            }
            self.regs.discard_n(RX_DATA, 1);
            status = self.regs.read(INTR_STATUS);
        }
        self.regs.write(INTR_STATUS, ALL);
        self.state = CadenceState {
            config: UNCONFIGURED,
            tx_thres: ALL_OUT,
            stuck: status & TX_NOT_FULL == 0,
            ..CadenceState::default()
        };
        self.flight = fifo::Flight::default();
    }

    fn mask(&mut self) {
        self.regs.write(INTRPT_DIS, TX_NOT_FULL);
    }

    fn unmask(&mut self) {
        self.regs.write(INTRPT_EN, TX_NOT_FULL);
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        let control = preset.plan.control;
        let other_mode = (self.state.config ^ control) & (CLK_PH | CLK_POL) != 0;
        if (other_mode || self.state.config == UNCONFIGURED) && !self.change_mode(control) {
            return false;
        }
        let config = control & !preset.regs[P_LINE];
        if self.state.config != config {
            self.write_config(config);
        }
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        if preset.regs[P_LINE] != 0 {
            self.regs.write(CONFIG, self.state.config | CS);
            self.state.config |= CS;
        }
    }

    #[inline(always)]
    fn transfer(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        if self.state.stuck {
            return Err(self.stuck());
        }
        let cut = self.prepare(plan);
        self.state.asleep = false;
        if data.len() > DEPTH && plan.word_delay_ticks == 0 {
            self.set_tx_thres(HALF_OUT);
        }
        fifo::exchange(self, cut, plan, data)
    }

    fn begin(&mut self, _preset: &Preset, plan: &Plan, data: &mut Data<'_>) {
        if self.state.stuck {
            // It is given nothing: `advance` says so.
            return;
        }
        let cut = self.prepare(plan);
        self.state.asleep = true;
        fifo::begin(self, cut, plan, data);
        self.await_bytes();
    }

    fn advance(
        &mut self,
        _preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>> {
        if self.state.stuck {
            return Poll::Ready(Err(self.stuck()));
        }
        let advanced = fifo::advance(self, plan, data);
        if advanced.is_pending() {
            self.await_bytes();
        }
        advanced
    }

    #[inline(always)]
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        // A plan's control selects no line: a GPIO does, or nothing.
        self.state.config == control && len <= DEPTH && preset.regs[P_LINE] == 0
    }

    fifo::short_by_bytes!(exchange_rest::<_, 1>);
}
