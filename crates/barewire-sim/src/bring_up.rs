//! The shipped driver on a simulated board: which lines it gets, and what its processor time costs.
//!
//! *Read first*: `barewire::controller::ecspi`. This is the one room of this crate that knows the
//! driver; the models do not.
//!
//! # How it works
//! [`bring_up`] makes the driver from a board's own table, as board code would. [`Charged`] wraps
//! it and charges the instructions the bus paths execute around the register work: the registers
//! charge their own.

use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::ecspi::{Ecspi, EcspiConfig, Streaming};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::{
    ALWAYS_POLL, Controller, CsLine, Interrupt, NoInterrupt, Program, Unfinished,
};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use crate::board::{Board, SimRegisters, SimTimer};
use crate::chip::PS_PER_NS;
use crate::platform::SimPlatform;
use crate::wire::Driver;

/// Instructions of the sync path for a message of one transfer, without the controller's register
/// work: 149 for the whole call less 14 of the null controller's three calls.
///
/// Counted on x86-64 by callgrind (`crates/barewire-cli/tests/snapshots/instructions.txt`); an
/// Arm core's count differs somewhat, and is to replace it when it is counted.
pub const INSTRUCTIONS_PER_MESSAGE: u64 = 135;
/// Instructions each further transfer of a message adds, counted likewise: 44 less 9.
pub const INSTRUCTIONS_PER_TRANSFER: u64 = 35;

/// The shipped driver's body on a simulated board.
pub type SimEcspi<I = NoInterrupt> = Ecspi<SimRegisters, ImxGpio<SimRegisters>, SimTimer, I>;

/// The board's controller, under the shipped driver. GPIO banks are [shared](Ownership::Shared),
/// as they are for a process beside a kernel.
///
/// # Panics
/// If the board's table is not one the driver knows: more than four chip selects, or GPIO chip
/// selects outside its first GPIO block.
#[must_use]
pub fn bring_up(board: &Board) -> SimEcspi {
    bring_up_with(board, Ownership::Shared, Streaming::Refill)
}

/// [`bring_up`] with the driver's two choices made by the caller.
///
/// # Panics
/// As [`bring_up`].
#[must_use]
pub fn bring_up_with(board: &Board, ownership: Ownership, streaming: Streaming) -> SimEcspi {
    let poll_limit_ns = ALWAYS_POLL;
    on_board(board, ownership, EcspiConfig { streaming, poll_limit_ns, ..config(board) })
}

/// [`bring_up`], with transfers that take longer than `poll_limit_ns` on the wire waiting by
/// interrupt.
///
/// # Panics
/// As [`bring_up`].
#[must_use]
pub fn bring_up_interrupt(board: &Board, poll_limit_ns: u32) -> SimEcspi<SimInterrupt> {
    let config = EcspiConfig { poll_limit_ns, ..config(board) };
    on_board(board, Ownership::Shared, config).with_interrupt(SimInterrupt::new(board))
}

fn config(board: &Board) -> EcspiConfig {
    let mut chip_selects = [CsLine::Absent; 4];
    for (line, cs) in chip_selects.iter_mut().zip(board.spec().cs) {
        *line = match cs.driver {
            Driver::Native(channel) => CsLine::Native { channel, active_high: cs.active_high },
            Driver::Gpio { block: 0, bit } => CsLine::Gpio { bit, active_high: cs.active_high },
            Driver::Gpio { block, .. } => unreachable!("GPIO block {block} of one"),
        };
    }
    let reference_hz =
        u32::try_from(board.profile().reference_hz.value).expect("a reference clock fits 32 bits");
    let poll_limit_ns = ALWAYS_POLL;
    EcspiConfig { reference_hz, chip_selects, streaming: Streaming::Refill, poll_limit_ns }
}

fn on_board(board: &Board, ownership: Ownership, config: EcspiConfig) -> SimEcspi {
    let gpio = board.gpio(0).expect("the board has a GPIO block");
    Ecspi::new(board.controller(), ImxGpio::new(gpio, ownership), board.timer(), config)
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

/// A bus over the shipped driver, its instructions charged, waiting in virtual time.
#[must_use]
pub fn bus(board: &Board) -> Bus<Charged<SimEcspi>> {
    Bus::with_platform(Charged::new(bring_up(board), board.clone()), &SimPlatform)
}

/// A controller whose messages cost processor time.
#[derive(Debug)]
pub struct Charged<C> {
    inner: C,
    board: Board,
}

impl<C> Charged<C> {
    /// `inner`, charging `board`.
    pub fn new(inner: C, board: Board) -> Self {
        Self { inner, board }
    }

    /// The controller back.
    pub fn into_inner(self) -> C {
        self.inner
    }

    fn charge(&self, message: &[Transfer<'_>]) {
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
