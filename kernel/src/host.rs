//! One controller of any block.

use core::task::Poll;

use barewire::controller::bcm2835::{self, Bcm2835Config};
use barewire::controller::ecspi::{self, EcspiConfig};
use barewire::controller::pl022::{self, Pl022Config};
use barewire::controller::{Controller, CsLine, Limits, Preset, Unfinished};
use barewire::reg::MmioBlock;
use barewire::spi::{Effective, Error, Settings, Transfer};

use crate::linux::{Clock, Lines};

/// ECSPI's registers up to TESTREG.
pub(crate) const ECSPI_BYTES: u32 = 0x24;
/// BCM2835's up to LTOH and DC.
pub(crate) const BCM2835_BYTES: u32 = 0x18;
/// PL022's with the numbers of the part.
pub(crate) const PL022_BYTES: u32 = 0x1000;

pub(crate) type Ecspi = ecspi::Ecspi<MmioBlock<ECSPI_BYTES>, Lines, Clock>;
pub(crate) type Bcm2835 = bcm2835::Bcm2835<MmioBlock<BCM2835_BYTES>, Lines, Clock>;
pub(crate) type Pl022 = pl022::Pl022<MmioBlock<PL022_BYTES>, Lines, Clock>;

/// A register block with its driver.
pub(crate) enum Host {
    Ecspi(Ecspi),
    Bcm2835(Bcm2835),
    Pl022(Pl022),
}

/// The board's part of a configuration.
pub(crate) struct Board {
    pub(crate) reference_hz: u32,
    pub(crate) chip_selects: [CsLine; 4],
    pub(crate) poll_limit_ns: u32,
}

/// Calls `$call` on the driver that there is.
macro_rules! any {
    ($host:expr, $controller:ident => $call:expr) => {
        match $host {
            Host::Ecspi($controller) => $call,
            Host::Bcm2835($controller) => $call,
            Host::Pl022($controller) => $call,
        }
    };
}
pub(crate) use any;

impl Host {
    pub(crate) fn ecspi(regs: MmioBlock<ECSPI_BYTES>, lines: Lines, board: Board) -> Self {
        let Board { reference_hz, chip_selects, poll_limit_ns } = board;
        let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
        Self::Ecspi(Ecspi::new(regs, lines, Clock, config))
    }

    pub(crate) fn bcm2835(regs: MmioBlock<BCM2835_BYTES>, lines: Lines, board: Board) -> Self {
        let Board { reference_hz, chip_selects, poll_limit_ns } = board;
        let config = Bcm2835Config { core_hz: reference_hz, chip_selects, poll_limit_ns };
        Self::Bcm2835(Bcm2835::new(regs, lines, Clock, config))
    }

    pub(crate) fn pl022(regs: MmioBlock<PL022_BYTES>, lines: Lines, board: Board) -> Self {
        let Board { reference_hz, chip_selects, poll_limit_ns } = board;
        let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
        Self::Pl022(Pl022::new(regs, lines, Clock, config))
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
