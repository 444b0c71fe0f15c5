//! One controller of any block.
#![allow(unsafe_code, reason = "a block's registers are where the C half says")]

use core::task::Poll;

use barewire::controller::atmel::{self, AtmelConfig, PeripheralSelect, Pipe};
use barewire::controller::bcm2835::{self, Bcm2835Config};
use barewire::controller::cadence::{self, CadenceConfig};
use barewire::controller::dw_ssi::{self, DwSsiConfig};
use barewire::controller::ecspi::{self, EcspiConfig};
use barewire::controller::mcspi::{self, McspiConfig};
use barewire::controller::pl022::{self, Pl022Config};
use barewire::controller::sifive::{self, SiFiveConfig};
use barewire::controller::{Controller, CsLine, Limits, Preset, Unfinished};
use barewire::reg::Registers;
use barewire::spi::{Effective, Error, Settings, Transfer};

use crate::linux::{Clock, Lines};
use crate::registers::Block;

// The lengths are those of the registers that the driver uses.
pub(crate) type Ecspi = ecspi::Ecspi<Block<0x24>, Lines, Clock>;
pub(crate) type Bcm2835 = bcm2835::Bcm2835<Block<0x18>, Lines, Clock>;
pub(crate) type Pl022 = pl022::Pl022<Block<0x1000>, Lines, Clock>;
pub(crate) type DwSsi = dw_ssi::DwSsi<Block<0x100>, Lines, Clock>;
pub(crate) type Atmel = atmel::Atmel<Block<0x100>, Lines, Clock>;
pub(crate) type Cadence = cadence::Cadence<Block<0x30>, Lines, Clock>;
pub(crate) type Mcspi = mcspi::Mcspi<Block<0x1a4>, Lines, Clock>;
pub(crate) type SiFive = sifive::SiFive<Block<0x78>, Lines, Clock>;

/// A register block with its driver.
pub(crate) enum Host {
    Ecspi(Ecspi),
    Bcm2835(Bcm2835),
    Pl022(Pl022),
    DwSsi(DwSsi),
    Atmel(Atmel),
    Cadence(Cadence),
    Mcspi(Mcspi),
    SiFive(SiFive),
}

/// The board's part of a configuration.
pub(crate) struct Board {
    pub(crate) reference_hz: u32,
    pub(crate) chip_selects: [CsLine; 4],
    pub(crate) poll_limit_ns: u32,
    /// How many select lines a DW_apb_ssi has.
    pub(crate) native_lines: u8,
    /// Whether MOSI of a McSPI is on SPIDAT\[0\].
    pub(crate) d0_sends: bool,
}

/// VERSION of Atmel's block, which its data sheets do not describe: Linux's driver tells by it what a block has.
const ATMEL_VERSION: u32 = 0xfc;
/// The version of the first blocks with WDRBT.
const ATMEL_WDRBT: u32 = 0x210;

/// Calls `$call` on the driver that there is.
macro_rules! any {
    ($host:expr, $controller:ident => $call:expr) => {
        match $host {
            Host::Ecspi($controller) => $call,
            Host::Bcm2835($controller) => $call,
            Host::Pl022($controller) => $call,
            Host::DwSsi($controller) => $call,
            Host::Atmel($controller) => $call,
            Host::Cadence($controller) => $call,
            Host::Mcspi($controller) => $call,
            Host::SiFive($controller) => $call,
        }
    };
}
pub(crate) use any;

impl Host {
    /// Brings up the block with the number of `enum bw_block`; `None` if there is no such.
    ///
    /// # Safety
    /// The registers of such a block are at `base`, as [`Block::new`] says.
    pub(crate) unsafe fn new(
        block: u32,
        base: *mut u32,
        lines: Lines,
        board: Board,
    ) -> Option<Self> {
        let Board { reference_hz, chip_selects, poll_limit_ns, native_lines, d0_sends } = board;
        macro_rules! start {
            ($driver:ident, $config:expr) => {{
                let config = $config;
                // SAFETY: promised.
                Self::$driver($driver::new(unsafe { Block::new(base) }, lines, Clock, config))
            }};
        }
        Some(match block {
            0 => start!(Ecspi, EcspiConfig { reference_hz, chip_selects, poll_limit_ns }),
            1 => start!(
                Bcm2835,
                Bcm2835Config { core_hz: reference_hz, chip_selects, poll_limit_ns }
            ),
            2 => start!(Pl022, Pl022Config { reference_hz, chip_selects, poll_limit_ns }),
            3 => start!(
                DwSsi,
                DwSsiConfig { reference_hz, chip_selects, native_lines, poll_limit_ns }
            ),
            4 => {
                // SAFETY: promised.
                let version = unsafe { Block::<0x100>::new(base) }.read(ATMEL_VERSION) & 0xfff;
                let pipe = if version >= ATMEL_WDRBT { Pipe::WaitDataRead } else { Pipe::OneWord };
                let peripheral_select = PeripheralSelect::Fixed;
                start!(
                    Atmel,
                    AtmelConfig {
                        reference_hz,
                        chip_selects,
                        pipe,
                        peripheral_select,
                        poll_limit_ns
                    }
                )
            }
            5 => start!(Cadence, CadenceConfig { reference_hz, chip_selects, poll_limit_ns }),
            6 => start!(Mcspi, McspiConfig { reference_hz, chip_selects, d0_sends, poll_limit_ns }),
            7 => start!(SiFive, SiFiveConfig { reference_hz, chip_selects, poll_limit_ns }),
            _ => return None,
        })
    }

    /// Deselects all chips and makes the block silent.
    pub(crate) fn leave(self) {
        any!(self, controller => drop(controller.release()));
    }

    pub(crate) fn limits(&self) -> Limits {
        any!(self, controller => controller.limits())
    }

    pub(crate) fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        any!(self, controller => controller.configure(settings))
    }

    /// Plans a message and runs it: to its end, or until its first transfer that waits by interrupt if `may_wait`.
    ///
    /// # Errors
    /// A message that the block does not take, or that did not end.
    #[inline(never)]
    pub(crate) fn run(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        may_wait: bool,
    ) -> Result<Poll<Result<usize, Unfinished>>, Error> {
        any!(self, controller => {
            controller.plan(preset, message).map_err(|refused| refused.error)?;
            Ok(match may_wait {
                true => controller.start(preset, message),
                false => Poll::Ready(controller.run(preset, message)),
            })
        })
    }

    /// Runs a message of one plain exchange that [`Preset::takes_exchange`] takes.
    #[inline(always)]
    pub(crate) fn exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        any!(self, controller => controller.run_exchange(preset, tx, rx))
    }

    pub(crate) fn resume(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        any!(self, controller => controller.resume(preset, message))
    }

    pub(crate) fn arm(&mut self) {
        any!(self, controller => controller.arm());
    }
}
