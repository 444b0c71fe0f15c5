//! BCM2835 SPI0: the SPI block of the Raspberry Pi, polled or by its interrupt.
//!
//! # Read first
//! BCM2835 ARM Peripherals, chapter 10 (BCM2836 and BCM2837 have the same block, BCM2711 has it as
//! SPI0 and SPI3 to 6), and the errata that its users keep at elinux.org; section 1.3 on accesses
//! to two peripherals. Where the chapter is silent, the text says so and names what users measured.
//!
//! # How the block works
//! A FIFO of 64 bytes in each direction. While TA is set, a byte written to FIFO is sent, most
//! significant bit first, and brings one in. A byte takes nine clocks; SCK rests in the last one.
//! SCK is the core clock divided by an even CDIV. DONE says that nothing is left to send and the
//! last clock is over; it clears when a byte is written. A full receive FIFO (RXF) stalls the block
//! with its clock stopped: late software costs time, never data. The native lines CE0 and CE1 are
//! active while TA is set, for any number of bytes.
//!
//! # How this driver uses it
//! 1. A device's settings are two register values, CS and CDIV. They are written when another
//!    device was configured before: clear TA and the FIFOs, write CDIV, set TA, and wait one clock
//!    if SCK has moved. SCK rests at CPOL whether TA is set or clear (users measured it; the manual
//!    does not say), so a chip that is selected afterwards sees no edge.
//! 2. A byte is one write and one read: FIFO takes wider accesses only under DMAEN.
//! 3. At most one FIFO's worth is in flight, see `fifo.rs`. One read of CS says how much was
//!    received: with DONE everything, with RXR 48 bytes, with RXD one. A transfer of a few bytes
//!    reads each byte while the next is on the wire. If the read of CS that found the last byte saw
//!    DONE too, no further read is needed; otherwise the driver waits for DONE before it moves the
//!    chip select. Then DONE is written, see *DONE*.
//! 4. No byte is ever lost, so a transfer can fail only by a timeout.
//! 5. Transfers that take longer than [`Bcm2835Config::poll_limit_ns`] wait by interrupt: at RXR
//!    (INTR) while there is more to send, which leaves 16 bytes of time to serve it, and at DONE
//!    (INTD) for the rest. Both are level interrupts, masked outside [`Controller::arm`](super::Controller::arm).
//!
//! # Between two messages of one device
//! If a GPIO selects the chip, nothing is written between two messages of one device.
//! - TA may stay set. Section 10.6.2 begins with an empty block with TA set (it interrupts at once,
//!   because DONE is set), so nothing is on the wire until a byte is written.
//! - FIFO needs no clearing: after DONE every received byte has been read.
//! - CS and CDIV have the device's values, and INTR and INTD are clear.
//!
//! So a message of 3 bytes is: one write to lower CS, 3 writes to FIFO, reads of CS while the wire
//! works, a read per byte, one write of DONE, one write to raise CS. Reads add time only after the
//! last clock: the read of CS that sees DONE and, if the last byte came with it, the read of that
//! byte. A chip on a native line costs as much: setting TA lowers CS and clearing it raises CS.
//!
//! # DONE
//! The manual says that DONE is read-only, and cleared by writing to FIFO or clearing TA. Linux's
//! authors saw transmission break now and then unless a 1 is written to it after every transfer,
//! and call it RW1C or an erratum (Lukas Wunner, *spi: bcm2835: Work around DONE bit erratum*,
//! August 2019, commit 4c524191c0a2,
//! <https://lore.kernel.org/r/edb004dff4af6106f6bfcb89e1a96391e96eb857.1564825752.git.lukas@wunner.de>).
//! They saw it with a polled transfer before one by DMA; which part of the block breaks is not
//! known. So this driver is correct under both readings:
//! * The bit is written once after each transfer, and by every reset: between a message's transfers
//!   before more is sent, after the last one behind the chip select's edge. That is one write,
//!   about 10 ns on a Raspberry Pi 3, and none on a native line, where the write that deasserts CS
//!   includes it.
//! * If the block ran dry within a transfer and everything it sent was read, the block regards the
//!   transfer as ended: DONE is awaited and written before more is sent.
//! * Nothing relies on DONE being set while nothing was sent.
//!
//! Linux's own driver refills a block that is dry but has unread received bytes, without writing
//! DONE, whenever its interrupts are served late. So this driver takes that to work.
//!
//! # Chip selects
//! GPIO registers ([`gpio`](super::gpio)), or the native lines CE0 and CE1. While a GPIO selects a
//! chip, TA activates the line that the CS field names. So the field names line 2: SPI0 has CSPOL2
//! but no such pin. Setup, hold and inactive times are made by software on every line. A native
//! line needs no GPIO block, but it rises when CDIV is written: a transfer with a speed of its own
//! is refused there. CS has a polarity bit for each line and a common one (CSPOL). The driver uses
//! the bits of the lines; CSPOL stays 0.
//!
//! # Ordering
//! 1. Every line is inactive before the block is touched for the first time.
//! 2. CS and CDIV are written, and SCK is at rest, before a chip is selected.
//! 3. TA is set before FIFO is written: otherwise the block takes the byte for a new CS value.
//! 4. DONE is seen before a chip is deselected.
//! 5. After an error the chip is deselected first; then TA and the FIFOs are cleared.
//! 6. A barrier stands between a chip select on a GPIO and accesses to the block, see
//!    [`Bcm2835Gpio`](super::gpio::Bcm2835Gpio).
//!
//! # Not supported
//! Words other than 8 bits; least significant bit first and loopback (neither is in the block);
//! DMA, LoSSI, bidirectional mode; the auxiliary SPI1 and SPI2, which are different blocks. DLEN
//! stays 0: users report that a value above 1 removes the ninth clock; the manual says that it has
//! no effect without DMA. Delays are spun, even in an interrupt handler.
//!
//! # Example
//! ```no_run
//! # use barewire::{controller::{ALWAYS_POLL, CsLine, bcm2835::*, gpio::*}, bus::Bus, reg::Mmio, spi::*, time::Timer};
//! # fn bring_up(spi0: Mmio, gpio: Mmio, timer: impl Timer) -> Result<(), Error> {
//! let config = Bcm2835Config {
//!     core_hz: 400_000_000,
//!     chip_selects: [CsLine::Gpio { bit: 8, active_high: false }, CsLine::Absent, CsLine::Absent, CsLine::Absent],
//!     poll_limit_ns: ALWAYS_POLL,
//! };
//! let bus = Bus::new(Bcm2835::new(spi0, Bcm2835Gpio::new(gpio), timer, config));
//! // 3.571 MHz.
//! let adc = bus.device(&Settings::new(0, 3_600_000))?;
//! # Ok(()) }
//! ```

mod config;
mod regs;

pub use config::Bcm2835Config;

use core::task::Poll;

use super::block::{Block, BlockDriver, State};
use super::deadline::poll;
use super::fifo::{self, Cut, Fifo};
use super::gpio::GpioBank;
use super::{Interrupt, NoInterrupt, Plan, Preset, Stopped, Wire};
use crate::reg::Registers;
use crate::spi::Data;
use crate::time::{NS_PER_S, Timer, mul_div};
use regs::{
    BYTE_CLOCKS, CLEAR, CLK, CPOL, CS, DLEN, DONE, FIFO, FIFO_BYTES, INTD, INTR, RXD, RXF, RXR,
    RXR_BYTES, TA, WRITTEN, divisor,
};

/// The native lines.
const NATIVE_CHANNELS: u8 = 2;
/// No device's configuration: neither register has such bits.
const UNCONFIGURED: u32 = u32::MAX;
// Where `configure` puts its values in `Preset::regs`.
/// CS while the device is configured and its chip not selected: with TA, unless TA selects the
/// chip.
const P_CS: usize = 0;
/// Ticks of one clock.
const P_SETTLE: usize = 1;

/// Whether a native line selects the preset's chip.
#[inline(always)]
fn is_native(preset: &Preset) -> bool {
    preset.regs[P_CS] & TA == 0
}

/// The SPI0 block, its select lines and the timer that makes its delays.
pub type Bcm2835<R, G, T, I = NoInterrupt> = Block<Bcm2835State, R, G, T, I>;

/// The driver's state.
#[derive(Debug, Default)]
pub struct Bcm2835State {
    /// CS as last written, without bits that clear themselves; after a reset [`UNCONFIGURED`].
    cs: u32,
    /// CDIV as last written; after a reset [`UNCONFIGURED`].
    cdiv: u32,
    /// Whether DONE was seen since the last byte was sent, and was not written yet.
    done: bool,
    /// Whether everything sent was received, and DONE was not written yet.
    dry: bool,
}

impl State for Bcm2835State {
    type Config = Bcm2835Config;
    type Board = Bcm2835Config;
    type Flight = fifo::Flight;
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Bcm2835<R, G, T, I> {
    /// Configures the block for the device, and waits until SCK rests at its level.
    #[cold]
    fn reconfigure(&mut self, preset: &Preset) {
        let cs = preset.regs[P_CS];
        if is_native(preset) && self.state.cs == cs | TA && self.state.cdiv == preset.plan.control {
            // The chip's last message left it selected (`Selection::keeps_cs`): clearing TA would end that.
            return;
        }
        let rests = self.state.cs != UNCONFIGURED && (self.state.cs ^ cs) & CPOL == 0;
        self.state.cs = cs;
        // A byte that was cut off may have been received since the reset, and have set DONE.
        self.set_clock(preset.plan.control, CLEAR | DONE);
        if !rests {
            self.wait_ticks(preset.regs[P_SETTLE]);
        }
    }

    /// Writes CS, and CDIV while TA is clear.
    #[cold]
    fn set_clock(&mut self, cdiv: u32, clear: u32) {
        self.regs.write(CS, self.state.cs & !TA | clear);
        self.regs.write(CLK, cdiv);
        self.state.cdiv = cdiv;
        if self.state.cs & TA != 0 {
            self.regs.write(CS, self.state.cs);
        }
    }

    /// Writes DONE, see the module's *DONE*.
    #[inline(always)]
    fn acknowledge(&mut self) {
        self.regs.write(CS, self.state.cs | DONE);
        (self.state.done, self.state.dry) = (false, false);
    }

    /// Prepares for sending more after everything sent was received: for a message's next transfer,
    /// or a transfer whose block ran dry.
    #[cold]
    fn refill(&mut self) {
        // If DONE never comes, the next bytes do not come back either: their timeout reports it.
        let _ = poll(self, |this| this.wire_ns(1), Self::at_rest);
        self.acknowledge();
    }

    /// Sets CDIV for a transfer, and cuts it.
    #[inline(always)]
    fn prepare(&mut self, plan: &Plan) -> Cut {
        if self.state.cdiv != plan.control {
            self.set_clock(plan.control, 0);
        }
        Cut::new(plan, 1)
    }

    #[inline(always)]
    fn set_cs(&mut self, cs: u32) {
        self.regs.write(CS, cs);
        self.state.cs = cs;
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> Fifo for Bcm2835<R, G, T, I> {
    /// Both FIFOs together could take more, but then a read of CS would not say how much was
    /// received.
    fn depth(&self) -> usize {
        FIFO_BYTES
    }

    #[inline]
    fn put(&mut self, words: impl ExactSizeIterator<Item = u32>) {
        if self.state.dry {
            self.refill();
        }
        self.regs.write_each(FIFO, words);
    }

    #[inline]
    fn ready(&mut self, in_flight: usize) -> usize {
        let cs = self.regs.read(CS);
        // DONE without a received byte belongs to an earlier transfer, even if a model sets it.
        if cs & RXD == 0 {
            return 0;
        }
        self.state.done = cs & DONE != 0;
        let ready = if self.state.done {
            in_flight
        } else if cs & RXF != 0 {
            FIFO_BYTES
        } else if cs & RXR != 0 {
            RXR_BYTES
        } else {
            1
        };
        self.state.dry = ready >= in_flight;
        ready
    }

    #[inline]
    fn take<P>(&mut self, places: impl ExactSizeIterator<Item = P>, to: impl FnMut(P, u32)) {
        self.regs.read_each(FIFO, places, to);
    }

    fn discard(&mut self, n: usize) {
        self.regs.discard_n(FIFO, n);
    }

    #[inline]
    fn at_rest(&mut self) -> bool {
        self.state.done = self.state.done || self.regs.read(CS) & DONE != 0;
        self.state.done
    }

    /// Never: a full receive FIFO stalls the block.
    fn lost(&mut self) -> bool {
        false
    }

    fn wire_ns(&self, words: usize) -> u64 {
        let clocks = BYTE_CLOCKS * words as u64;
        let periods = clocks * u64::from(divisor(self.state.cdiv));
        mul_div(periods, NS_PER_S, self.config.core_hz)
    }

    fn flight(&mut self) -> &mut fifo::Flight {
        &mut self.flight
    }
}

impl<R: Registers, G: GpioBank, T: Timer, I: Interrupt> BlockDriver for Bcm2835<R, G, T, I> {
    /// Clears TA, the FIFOs and the interrupt enables; each byte takes its nine clocks.
    fn reset(&mut self) {
        self.regs.write(CS, self.config.polarities() | CLEAR | DONE);
        self.regs.write(DLEN, 0);
        (self.state.cs, self.state.cdiv) = (UNCONFIGURED, UNCONFIGURED);
        (self.state.done, self.state.dry) = (false, false);
        self.flight = fifo::Flight::default();
    }

    fn mask(&mut self) {
        self.regs.write(CS, self.state.cs);
    }

    /// The other bits of CS stay as they are: clearing TA may move SCK while a chip is selected.
    fn mask_unknown(&mut self) {
        let cs = self.regs.read(CS);
        self.regs.write(CS, cs & WRITTEN);
    }

    fn unmask(&mut self) {
        let awaited = if self.flight.flow.all_sent() { INTD } else { INTR };
        self.regs.write(CS, self.state.cs | awaited);
    }

    #[inline(always)]
    fn enter(&mut self, preset: &Preset) -> bool {
        if self.state.cs != preset.regs[P_CS] || self.state.cdiv != preset.plan.control {
            self.reconfigure(preset);
        }
        if is_native(preset) {
            self.set_cs(preset.regs[P_CS] | TA);
        }
        true
    }

    #[inline(always)]
    fn exit(&mut self, preset: &Preset) {
        if is_native(preset) {
            self.regs.write(CS, preset.regs[P_CS] | DONE);
            self.state.cs = preset.regs[P_CS];
            (self.state.done, self.state.dry) = (false, false);
        }
        self.exit_short();
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
    fn is_short(&self, preset: &Preset, control: u32, len: usize) -> bool {
        let set = self.state.cs == preset.regs[P_CS] && self.state.cdiv == control;
        set && preset.cs_mask != 0 && len <= FIFO_BYTES
    }

    /// After the edge: the write does not have to wait until the edge has arrived.
    #[inline(always)]
    fn exit_short(&mut self) {
        if self.state.dry {
            self.acknowledge();
        }
    }

    fifo::short_by_bytes!(exchange_rest_of_any);
}
