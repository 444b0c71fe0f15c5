//! The shipped drivers on simulated boards: which lines they get, and what their processor time
//! costs.
//!
//! *Read first*: `barewire::controller`. This is the one room of this crate that knows the drivers;
//! the models do not.
//!
//! # How it works
//! [`any`] makes the driver that a board needs from its own table, as board code would; beside it
//! stands each driver's own way in, with its choices. [`Charged`] wraps it and charges the instructions the bus paths execute around the register work: the registers
//! charge their own.

mod atmel;
mod bcm2835;
mod bench;
mod dw_ssi;
mod ecspi;
mod pin;
mod pl022;

use std::fmt;
use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::{Controller, CsLine, Interrupt, Program, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use crate::board::spec::ControllerKind;
use crate::board::{Board, SimRegisters};
use crate::chip::{PS_PER_NS, Ps};
use crate::platform::SimPlatform;
use crate::wire::Driver;
pub use atmel::{SimAtmel, atmel, atmel_interrupt, atmel_interrupt_with, atmel_with};
pub use bcm2835::{SimBcm2835, bcm2835, bcm2835_interrupt};
pub use bench::{BenchError, ChipBench, Outcome, SimBus, bench};
pub use dw_ssi::{SimDwSsi, dw_ssi, dw_ssi_interrupt};
pub use ecspi::{SimEcspi, ecspi, ecspi_interrupt, ecspi_with};
pub use pin::{AnyBank, SimInput, SimOutput, input, output};
pub use pl022::{SimPl022, pl022, pl022_interrupt};

/// Instructions of the sync path for a message of one transfer, without the controller's register
/// work: 149 for the whole call less 14 of the null controller's three calls.
///
/// Counted on x86-64 by callgrind (`command/barewire-cli/tests/snapshots/instructions.txt`); an
/// Arm core's count differs somewhat, and is to replace it when it is counted.
pub const INSTRUCTIONS_PER_MESSAGE: u64 = 135;
/// Instructions each further transfer of a message adds, counted likewise: 44 less 9.
pub const INSTRUCTIONS_PER_TRANSFER: u64 = 35;

/// The board's controller under the shipped driver, whichever that is.
pub struct AnyController(Box<dyn Controller>);

impl fmt::Debug for AnyController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyController").finish_non_exhaustive()
    }
}

/// The board's controller, polled, under the driver it needs. GPIO banks are
/// [shared](barewire::controller::gpio::Ownership::Shared), as they are for a process beside a
/// kernel.
///
/// # Panics
/// If the board's table is not one its driver knows: more than four chip selects, or GPIO chip
/// selects outside its first GPIO block.
#[must_use]
pub fn any(board: &Board) -> AnyController {
    AnyController(match board.spec().kind {
        ControllerKind::Atmel => Box::new(atmel(board)),
        ControllerKind::Bcm2835 => Box::new(bcm2835(board)),
        ControllerKind::DwSsi => Box::new(dw_ssi(board)),
        ControllerKind::Ecspi => Box::new(ecspi(board)),
        ControllerKind::Pl022 => Box::new(pl022(board)),
    })
}

/// [`any`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// `interrupt`: a [`SimInterrupt`], as it is or wrapped.
///
/// # Panics
/// As [`any`].
#[must_use]
pub fn any_interrupt(
    board: &Board,
    poll_limit_ns: u32,
    interrupt: impl Interrupt + 'static,
) -> AnyController {
    AnyController(match board.spec().kind {
        ControllerKind::Atmel => {
            Box::new(atmel_interrupt(board, poll_limit_ns).with_interrupt(interrupt))
        }
        ControllerKind::Bcm2835 => {
            Box::new(bcm2835_interrupt(board, poll_limit_ns).with_interrupt(interrupt))
        }
        ControllerKind::DwSsi => {
            Box::new(dw_ssi_interrupt(board, poll_limit_ns).with_interrupt(interrupt))
        }
        ControllerKind::Ecspi => {
            Box::new(ecspi_interrupt(board, poll_limit_ns).with_interrupt(interrupt))
        }
        ControllerKind::Pl022 => {
            Box::new(pl022_interrupt(board, poll_limit_ns).with_interrupt(interrupt))
        }
    })
}

impl Layer for AnyController {
    type Inner = dyn Controller;

    fn inner(&self) -> &Self::Inner {
        &*self.0
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.0
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.0.run(program, message)
    }

    fn start_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.0.start(program, message)
    }
}

/// The board's table of chip selects, as board code would write it.
fn chip_selects(board: &Board) -> [CsLine; 4] {
    let mut chip_selects = [CsLine::Absent; 4];
    for (line, cs) in chip_selects.iter_mut().zip(board.spec().cs) {
        *line = match cs.driver {
            Driver::Native(channel) => CsLine::Native { channel, active_high: cs.active_high },
            Driver::Gpio { block: 0, bit } => CsLine::Gpio { bit, active_high: cs.active_high },
            Driver::Gpio { block, .. } => unreachable!("GPIO block {block} of one"),
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
const PS_PER_S: u64 = 1_000_000_000_000;

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

    /// The same for a Linux process: a tick of its processor is charged with the next message after
    /// it.
    pub fn for_linux_process(self) -> Self {
        Self { tick_at: Some(self.board.engine().now_ps() + PS_PER_S / TICK_HZ), ..self }
    }

    /// The controller back.
    pub fn into_inner(self) -> C {
        self.inner
    }

    /// Pays for a tick that fell due since the last message. One, however many: those before fell
    /// into a sleep.
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
    type Inner = C;

    fn inner(&self) -> &C {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut C {
        &mut self.inner
    }

    fn run_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        self.charge(message);
        self.inner.run(program, message)
    }

    fn start_layer(
        &mut self,
        program: &Program,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        self.charge(message);
        self.inner.start(program, message)
    }
}
