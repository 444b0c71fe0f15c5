//! The shipped drivers on simulated boards: which lines they get, and what their processor time
//! costs.
//!
//! *Read first*: `barewire::controller`. This is the one module of this crate that imports the
//! drivers; the models do not.
//!
//! # How it works
//! [`any`] makes the driver that a board needs from the board's table, as board code would. Each
//! driver also has a function of its own, with its options. [`Charged`] wraps a driver and charges
//! the instructions that the bus paths execute around the register accesses. The accesses charge
//! their own costs.

mod bench;
mod drivers;
mod handled;
mod pin;

use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::{
    ALWAYS_POLL, Controller, CsLine, Interrupt, NoInterrupt, Preset, Unfinished,
};
use barewire::middleware::{Layer, Pointer};
use barewire::spi::Transfer;

use crate::board::{Board, SimRegisters};
use crate::chip::{PS_PER_NS, PS_PER_S, Ps};
use crate::platform::SimPlatform;
use crate::wire::Driver as CsDriver;
pub use bench::{BenchError, ChipBench, Outcome, SimBus, bench};
pub use drivers::*;
use drivers::{DRIVERS, Driver};
pub use handled::{Handled, Woken, await_woken, handled_bus, run_handled};
pub use pin::{AnyBank, GpioLines, SimInput, SimOutput, input, output};

/// The driver of the board's controller.
fn driver(board: &Board) -> &'static Driver {
    let kind = board.spec().kind;
    let driver = DRIVERS.iter().find(|driver| driver.kind == kind);
    driver.unwrap_or_else(|| {
        panic!("add the driver of {kind:?} to `drivers!` in bring_up/drivers.rs")
    })
}

/// Whether the controller's own chip select takes messages of any form, beside chips on GPIOs.
///
/// # Panics
/// If no driver is listed for the board's controller.
#[must_use]
pub fn native_takes_any(board: &Board) -> bool {
    driver(board).native_takes_any
}

/// Instructions of the sync path for a message of one transfer, without the controller's register
/// work: 149 for the whole call less 14 of the null controller's three calls. (The whole call takes 152
/// now. A test allows 20 between what the simulated CAN echo is charged and its own count.)
///
/// Counted on x86-64 by callgrind (`command/barewire-cli/tests/snapshots/instructions.txt`); an
/// Arm core's count differs somewhat, and is to replace it when it is counted.
pub const INSTRUCTIONS_PER_MESSAGE: u64 = 135;
/// Instructions each further transfer of a message adds, counted likewise: 44 less 9.
pub const INSTRUCTIONS_PER_TRANSFER: u64 = 35;

/// The board's controller under the shipped driver for its block.
pub type AnyController = Pointer<Box<dyn Controller>>;

/// The board's controller, polled, under the driver it needs. GPIO banks are
/// [shared](barewire::controller::gpio::Ownership::Shared), as they are for a process beside a
/// kernel.
///
/// # Panics
/// If no driver is listed for the board's controller, or the board's table is not one its driver
/// knows: more than four chip selects, or GPIO chip selects outside its first GPIO block.
#[must_use]
pub fn any(board: &Board) -> AnyController {
    any_interrupt(board, ALWAYS_POLL, NoInterrupt)
}

/// [`any`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// `interrupt`: a [`SimInterrupt`], as it is or wrapped.
///
/// # Panics
/// As [`any`].
#[must_use]
pub fn any_interrupt<I: Interrupt + 'static>(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: I,
) -> AnyController {
    let (driver, interrupt) = (driver(board), Box::new(interrupt));
    Pointer(match I::PRESENT {
        true => (driver.sleeping)(board, poll_limit_ns, AnyInterrupt(interrupt)),
        false => (driver.awake)(board, poll_limit_ns, AnyInterrupt(interrupt)),
    })
}

/// An interrupt of any type: [`Driver`] has one function for all of them.
struct AnyInterrupt<const PRESENT: bool>(Box<dyn DynInterrupt>);

/// [`Interrupt`] without its constant, which a trait object cannot have.
trait DynInterrupt {
    fn enable(&mut self);
    fn wait(&mut self, timeout_us: u32) -> bool;
}

impl<I: Interrupt> DynInterrupt for I {
    fn enable(&mut self) {
        Interrupt::enable(self);
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        Interrupt::wait(self, timeout_us)
    }
}

impl<const PRESENT: bool> Interrupt for AnyInterrupt<PRESENT> {
    const PRESENT: bool = PRESENT;

    fn enable(&mut self) {
        self.0.enable();
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        self.0.wait(timeout_us)
    }
}

/// The board's table of chip selects, as board code would write it.
fn chip_selects(board: &Board) -> [CsLine; 4] {
    let mut chip_selects = [CsLine::Absent; 4];
    let own = (0..).zip(board.spec().cs);
    for (line, (at, cs)) in chip_selects.iter_mut().zip(own) {
        *line = match cs.driver {
            _ if !board.has_line(at) => CsLine::Absent,
            CsDriver::Native(channel) => CsLine::Native { channel, active_high: cs.active_high },
            CsDriver::Gpio { block: 0, bit } => CsLine::Gpio { bit, active_high: cs.active_high },
            CsDriver::Gpio { block, .. } => unreachable!("GPIO block {block} of one"),
        };
    }
    chip_selects
}

/// The controller's reference clock, in hertz.
fn reference_hz(board: &Board) -> u32 {
    u32::try_from(board.profile().reference_hz.value).expect("a reference clock fits 32 bits")
}

/// The registers of the board's first GPIO block.
fn gpio(board: &Board) -> SimRegisters {
    board.gpio(0).expect("the board has a GPIO block")
}

/// The controller's interrupt, as a process has it through UIO; outside any simulated thread as
/// bare metal has it that waits for an event.
///
/// Letting it come is one system call and waiting two, each taken as long as a futex wait that
/// returns at once, which is a system call that finds nothing to do.
#[derive(Debug)]
pub struct SimInterrupt(Board);

impl SimInterrupt {
    /// The interrupt of the controller of `board`.
    #[must_use]
    pub fn new(board: &Board) -> Self {
        Self(board.clone())
    }

    fn system_call(&self) {
        let engine = self.0.engine();
        if engine.running_index().is_some() {
            engine.spend_ps(self.0.profile().futex_call_ps.value);
        }
    }
}

impl Interrupt for SimInterrupt {
    fn enable(&mut self) {
        self.system_call();
    }

    fn wait(&mut self, timeout_us: u32) -> bool {
        // The first call is the board's to charge.
        let came = self.0.wait_interrupt(Some(u64::from(timeout_us) * 1_000 * PS_PER_NS));
        self.system_call();
        came
    }
}

/// A bus over the board's driver, its instructions charged, waiting in virtual time.
#[must_use]
pub fn bus(board: &Board) -> Bus<Charged<AnyController>> {
    Bus::with_platform(Charged::new(any(board), board.clone()), &SimPlatform)
}

/// Periods of Linux's timer tick a second: Raspberry Pi OS's and Debian's arm64 kernels are built
/// with CONFIG_HZ=250.
pub const TICK_HZ: u64 = 250;
/// Instructions of one tick beside the interrupt's entry and exit. Assumption: time keeping, the
/// scheduler's tick and timers that are due, some thousands; to be replaced by a count of a kernel.
pub const INSTRUCTIONS_PER_TICK: u64 = 3_000;

/// A controller whose messages cost processor time.
#[derive(Debug)]
pub struct Charged<C> {
    inner: C,
    board: Board,
    /// When the kernel's next tick falls due, where there is a kernel.
    tick_at: Option<Ps>,
}

impl<C> Charged<C> {
    /// `inner`, charging `board`.
    pub fn new(inner: C, board: Board) -> Self {
        Self { inner, board, tick_at: None }
    }

    /// Accounts for a Linux process: a timer tick of its processor is charged with the first
    /// message after the tick.
    pub fn for_linux_process(self) -> Self {
        Self { tick_at: Some(self.board.engine().now_ps() + PS_PER_S / TICK_HZ), ..self }
    }

    /// The controller back.
    pub fn into_inner(self) -> C {
        self.inner
    }

    /// Pays for a tick that fell due since the last message. One, even if several are due: the
    /// earlier ones fell into a sleep, where they cost nothing.
    fn tick(&mut self) {
        let (Some(at), now) = (self.tick_at, self.board.engine().now_ps()) else { return };
        if at > now {
            return;
        }
        let period = PS_PER_S / TICK_HZ;
        self.tick_at = Some(at + ((now - at) / period + 1) * period);
        let profile = self.board.profile();
        let kernel_ps = profile.interrupt_latency_ps.value + profile.interrupt_exit_ps.value;
        self.board.engine().spend_ps(kernel_ps);
        self.board.cpu_work(INSTRUCTIONS_PER_TICK);
    }

    fn charge(&mut self, message: &[Transfer<'_>]) {
        self.tick();
        let further = message.len().saturating_sub(1) as u64;
        self.board.cpu_work(INSTRUCTIONS_PER_MESSAGE + further * INSTRUCTIONS_PER_TRANSFER);
    }
}

impl<C: Controller> Layer for Charged<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.charge(message);
        self.inner.run(preset, message)
    }

    fn start_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.charge(message);
        self.inner.start(preset, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::boards;
    use crate::board::{BoardOptions, BoardSpec};

    #[test]
    fn every_board_has_a_driver_and_every_driver_a_board() {
        let of_boards = |driver: &&Driver| boards().any(|board| board.kind == driver.kind);
        assert_eq!(DRIVERS.iter().filter(of_boards).count(), DRIVERS.len());
        for (index, driver) in DRIVERS.iter().enumerate() {
            assert!(DRIVERS[..index].iter().all(|other| other.kind != driver.kind));
        }
        for board in boards() {
            let board = Board::new(board, BoardOptions::default());
            let limits = [
                any(&board).limits(),
                any_interrupt(&board, 0, SimInterrupt::new(&board)).limits(),
            ];
            assert_eq!(limits[0], limits[1], "{board:?}");
        }
    }

    #[test]
    fn a_native_line_takes_any_message_or_does_not() {
        for (name, takes) in [("imx8mp", true), ("rpi3", false)] {
            let spec = BoardSpec::find(name).expect("a board");
            assert_eq!(native_takes_any(&Board::new(spec, BoardOptions::default())), takes);
        }
    }
}
