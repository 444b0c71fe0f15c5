//! The shipped drivers on the boards that have their block.
//!
//! # How it works
//! A row of `drivers!` names a driver as its model is named, its type and GPIO bank, and the function that makes
//! it from a board's table. The macro adds what is the same for all: the type on simulated registers, the driver
//! polled and with an interrupt, and the row that [`any`](super::any) looks up. Functions for a driver's own
//! choices follow the rows.

use barewire::controller::atmel::{Atmel, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::cadence::{Cadence, CadenceConfig};
use barewire::controller::dw_ssi::{DwSsi, DwSsiConfig};
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{
    AtmelPio, Bcm2835Gpio, ImxGpio, OmapGpio, Ownership, Pl061, Rp1Gpio, SiFiveGpio, ZynqGpio,
};
use barewire::controller::mcspi::{Mcspi, McspiConfig};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::sifive::{SiFive, SiFiveConfig};
use barewire::controller::{ALWAYS_POLL, Controller, CsLine, NoInterrupt};

use super::{AnyInterrupt, SimInterrupt, chip_selects, gpio, reference_hz};
use crate::board::{Board, SimRegisters, SimTimer};
use crate::model::{self, ControllerKind};

/// The shipped driver of a kind of controller.
pub(super) struct Driver {
    pub kind: &'static ControllerKind,
    /// Starts it with an interrupt that it can sleep until.
    pub sleeping: fn(&Board, u32, AnyInterrupt<true>) -> Box<dyn Controller>,
    /// Starts it with one that it cannot sleep until: polled, or for a bus whose handler is called.
    pub awake: fn(&Board, u32, AnyInterrupt<false>) -> Box<dyn Controller>,
    /// [`native_takes_any`](super::native_takes_any).
    pub native_takes_any: bool,
}

macro_rules! drivers {
    ($(
        $(#[$doc:meta])*
        $name:ident, $interrupt:ident: $alias:ident = $driver:ident<$bank:ident>,
            from $on_board:ident, native_takes_any: $native:literal;
    )+) => {
        $(
            /// The shipped driver's body on a simulated board.
            pub type $alias<I = NoInterrupt> =
                $driver<SimRegisters, $bank<SimRegisters>, SimTimer, I>;

            $(#[$doc])*
            ///
            /// # Panics
            /// As [`any`](super::any).
            #[must_use]
            pub fn $name(board: &Board) -> $alias {
                $on_board(board, ALWAYS_POLL)
            }

            #[doc = concat!("[`", stringify!($name), "`], with transfers that take longer than")]
            /// `poll_limit_ns` on the wire waiting by interrupt.
            ///
            /// # Panics
            /// As [`any`](super::any).
            #[must_use]
            pub fn $interrupt(board: &Board, poll_limit_ns: u32) -> $alias<SimInterrupt> {
                $on_board(board, poll_limit_ns).with_interrupt(SimInterrupt::new(board))
            }
        )+

        pub(super) static DRIVERS: &[Driver] = &[$(Driver {
            kind: &model::$name::KIND,
            sleeping: |board, poll_limit_ns, interrupt| {
                Box::new($on_board(board, poll_limit_ns).with_interrupt(interrupt))
            },
            awake: |board, poll_limit_ns, interrupt| {
                Box::new($on_board(board, poll_limit_ns).with_interrupt(interrupt))
            },
            native_takes_any: $native,
        }),+];
    };
}

drivers! {
    /// The board's SPI, polled, nothing lost however late the caller is.
    atmel, atmel_interrupt: SimAtmel = Atmel<AtmelPio>,
        from atmel_on_board, native_takes_any: true;

    // Its native line refuses a transfer with a speed of its own.
    /// The board's SPI0, polled.
    bcm2835, bcm2835_interrupt: SimBcm2835 = Bcm2835<Bcm2835Gpio>,
        from bcm2835_on_board, native_takes_any: false;

    /// The board's Cadence SPI, polled.
    cadence, cadence_interrupt: SimCadence = Cadence<ZynqGpio>,
        from cadence_on_board, native_takes_any: true;

    // A native chip select takes only transfers that fit into the FIFO.
    /// The board's SSI, polled.
    dw_ssi, dw_ssi_interrupt: SimDwSsi = DwSsi<Rp1Gpio>,
        from dw_ssi_on_board, native_takes_any: false;

    /// The board's ECSPI, polled, its GPIO bank shared.
    ecspi, ecspi_interrupt: SimEcspi = Ecspi<ImxGpio>,
        from ecspi_on_board, native_takes_any: true;

    /// The board's McSPI, polled, with MOSI on SPIDAT\[1\].
    mcspi, mcspi_interrupt: SimMcspi = Mcspi<OmapGpio>,
        from mcspi_on_board, native_takes_any: true;

    // If one chip is on its native line, no other can be on a GPIO.
    /// The board's PL022, polled. Its own select line is in the driver's table only if a chip has been
    /// attached to it before: it falls for every frame, so a board with a chip on it has no other.
    pl022, pl022_interrupt: SimPl022 = Pl022<Pl061>,
        from pl022_on_board, native_takes_any: false;

    // Its own line refuses a setup time, and a transfer with a speed of its own.
    /// The board's SiFive SPI, polled.
    sifive, sifive_interrupt: SimSiFive = SiFive<SiFiveGpio>,
        from sifive_on_board, native_takes_any: false;
}

fn atmel_on_board(board: &Board, poll_limit_ns: u32) -> SimAtmel {
    atmel_by_choice(board, Pipe::WaitDataRead, PeripheralSelect::Fixed, poll_limit_ns)
}

/// [`atmel`] with the driver's two choices made by the caller.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn atmel_with(board: &Board, pipe: Pipe, peripheral_select: PeripheralSelect) -> SimAtmel {
    atmel_by_choice(board, pipe, peripheral_select, ALWAYS_POLL)
}

/// [`atmel_interrupt`] with the words on the way chosen by the caller.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn atmel_interrupt_with(
    board: &Board,
    pipe: Pipe,
    poll_limit_ns: u32,
) -> SimAtmel<SimInterrupt> {
    atmel_by_choice(board, pipe, PeripheralSelect::Fixed, poll_limit_ns)
        .with_interrupt(SimInterrupt::new(board))
}

fn atmel_by_choice(
    board: &Board,
    pipe: Pipe,
    peripheral_select: PeripheralSelect,
    poll_limit_ns: u32,
) -> SimAtmel {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = AtmelConfig { reference_hz, chip_selects, pipe, peripheral_select, poll_limit_ns };
    Atmel::new(board.controller(), AtmelPio::new(gpio(board)), board.timer(), config)
}

fn bcm2835_on_board(board: &Board, poll_limit_ns: u32) -> SimBcm2835 {
    let (core_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = Bcm2835Config { core_hz, chip_selects, poll_limit_ns };
    Bcm2835::new(board.controller(), Bcm2835Gpio::new(gpio(board)), board.timer(), config)
}

fn cadence_on_board(board: &Board, poll_limit_ns: u32) -> SimCadence {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = CadenceConfig { reference_hz, chip_selects, poll_limit_ns };
    Cadence::new(board.controller(), ZynqGpio::new(gpio(board)), board.timer(), config)
}

fn dw_ssi_on_board(board: &Board, poll_limit_ns: u32) -> SimDwSsi {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    // `num-cs` of RP1's SPI0 in Raspberry Pi's device tree.
    let native_lines = 2;
    let config = DwSsiConfig { reference_hz, chip_selects, native_lines, poll_limit_ns };
    DwSsi::new(board.controller(), Rp1Gpio::new(gpio(board)), board.timer(), config)
}

fn ecspi_on_board(board: &Board, poll_limit_ns: u32) -> SimEcspi {
    ecspi_by_choice(board, Ownership::Shared, poll_limit_ns)
}

/// [`ecspi`], with what may be assumed of its GPIO bank decided by the caller.
///
/// # Panics
/// As [`any`](super::any).
#[must_use]
pub fn ecspi_with(board: &Board, ownership: Ownership) -> SimEcspi {
    ecspi_by_choice(board, ownership, ALWAYS_POLL)
}

fn ecspi_by_choice(board: &Board, ownership: Ownership, poll_limit_ns: u32) -> SimEcspi {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
    Ecspi::new(board.controller(), ImxGpio::new(gpio(board), ownership), board.timer(), config)
}

fn mcspi_on_board(board: &Board, poll_limit_ns: u32) -> SimMcspi {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = McspiConfig { reference_hz, chip_selects, d0_sends: false, poll_limit_ns };
    Mcspi::new(board.controller(), OmapGpio::new(gpio(board)), board.timer(), config)
}

fn pl022_on_board(board: &Board, poll_limit_ns: u32) -> SimPl022 {
    let (reference_hz, mut chip_selects) = (reference_hz(board), chip_selects(board));
    for (line, cs) in chip_selects.iter_mut().zip(0..) {
        if matches!(line, CsLine::Native { .. }) && !board.has_chip(cs) {
            *line = CsLine::Absent;
        }
    }
    let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
    Pl022::new(board.controller(), Pl061::new(gpio(board)), board.timer(), config)
}

fn sifive_on_board(board: &Board, poll_limit_ns: u32) -> SimSiFive {
    let (reference_hz, chip_selects) = (reference_hz(board), chip_selects(board));
    let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns };
    let gpio = SiFiveGpio::new(gpio(board), Ownership::Shared);
    SiFive::new(board.controller(), gpio, board.timer(), config)
}
