//! A controller on mapped registers after its start: the driver, the errors of its chip selects, and the
//! choice between blocks.

use std::task::Poll;

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;

use super::Mapped;
use super::block::{Block, blocks};
use super::facts::{Board, Parts};
use crate::gpio::CsFault;
use crate::shared::SharedLock;

/// A started controller on mapped registers.
#[derive(Debug)]
pub struct MappedBlock<C> {
    controller: C,
    /// The errors of chip selects through the kernel, if they can fail.
    fault: Option<CsFault>,
    /// Keeps other processes away, if the lock is held exclusively.
    _alone: Option<SharedLock>,
}

impl<C> MappedBlock<C> {
    /// Steps 7 and 8 of [`mapped`](super::mapped), by the function of the block's module.
    fn bring_up(mapped: Mapped, start: fn(Parts, Board) -> C) -> Self {
        let Mapped { board, parts, watched, lock, chips, .. } = mapped;
        let forgotten = lock.is_some() && chips.is_some();
        assert!(!forgotten, "other processes use the bus: take its lock, or open it exclusively");
        let fault = parts.selects.fault();
        // Edges through registers cannot fail, and without a watch there is no other fault.
        let fallible = watched.get() || !parts.selects.is_one_bank();
        let controller = start(parts, board);
        let fault = (fallible || fault.is_set()).then_some(fault);
        Self { controller, fault, _alone: lock }
    }

    /// Fails a message during which a chip select could not be driven: its chip may not have
    /// received the message, or may still be selected.
    #[inline(always)]
    fn judged(&self, ran: Result<usize, Unfinished>) -> Result<usize, Unfinished> {
        let Some(fault) = &self.fault else { return ran };
        match fault.take() {
            None => ran,
            Some(errno) => ran.and(Err(Unfinished::os(0, errno.raw_os_error()))),
        }
    }
}

impl<C: Controller> Layer for MappedBlock<C> {
    barewire::wrapped_controller!(controller: C);

    #[inline(always)]
    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller.run(preset, message);
        self.judged(ran)
    }

    #[inline(always)]
    fn run_exchange_layer(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        let ran = self.controller.run_exchange(preset, tx, rx);
        self.judged(ran)
    }

    fn start_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let ran = self.controller.start(preset, message);
        ran.map(|ran| self.judged(ran))
    }

    fn resume_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Poll<Result<usize, Unfinished>> {
        let ran = self.controller.resume(preset, message);
        ran.map(|ran| self.judged(ran))
    }
}

macro_rules! controllers {
    ($($(#[$doc:meta])+ $variant:ident => $module:ident, $driver:ident;)+) => {
        /// A controller on mapped registers, in use: one variant per block.
        ///
        /// A bus over this enum looks up the block for each message. A program that knows its board
        /// avoids that by a bus over the [`MappedBlock`] inside, whose driver is then compiled into
        /// its messages. A program that does not, but can be compiled for each block, uses
        /// [`Mapped::start_each`].
        ///
        /// ```no_run
        /// use barewire::bus::Bus;
        /// use barewire::spi::Settings;
        /// use barewire_linux::map::{Mapped, MappedController};
        /// # fn bring_up(mapped: Mapped) -> Result<(), Box<dyn std::error::Error>> {
        /// let MappedController::Ecspi(ecspi) = mapped.start() else {
        ///     return Err("the board has an ECSPI".into());
        /// };
        /// let bus = Bus::new(ecspi);
        /// let device = bus.device(&Settings::new(0, 20_000_000))?;
        /// # Ok(()) }
        /// ```
        #[derive(Debug)]
        pub enum MappedController {
            $($(#[$doc])+ $variant(MappedBlock<super::$module::$driver>),)+
        }

        impl Mapped {
            /// Steps 7 and 8 of [`mapped`](super::mapped). The registers are accessed from here on.
            /// Unless the bus is exclusive, call this while holding [its lock](Mapped::take_lock).
            ///
            /// # Panics
            /// If the lock was not taken.
            #[must_use]
            pub fn start(self) -> MappedController {
                match self.block {
                    $(Block::$variant => {
                        MappedController::$variant(MappedBlock::bring_up(self, super::$module::start))
                    })+
                }
            }

            /// [`Mapped::start`] with the type of the block's own driver, for code that is compiled
            /// once per block: `user` gets the function that starts the driver, and panics as
            /// [`Mapped::start`] does.
            pub fn start_each<U: MappedUser>(self, user: U) -> U::Output {
                match self.block {
                    $(Block::$variant => user.run(|| MappedBlock::bring_up(self, super::$module::start)),)+
                }
            }
        }

        /// Each message goes to the block by one dynamic call.
        impl Layer for MappedController {
            type Inner = dyn Controller;

            fn inner(&self) -> &Self::Inner {
                match self { $(Self::$variant(block) => block,)+ }
            }

            fn inner_mut(&mut self) -> &mut Self::Inner {
                match self { $(Self::$variant(block) => block,)+ }
            }

            fn may_use_its_bus_layer(&self) -> bool {
                self.inner().may_use_its_bus()
            }

fn run_layer(
                &mut self,
                preset: &Preset,
                message: &mut [Transfer<'_>],
            ) -> Result<usize, Unfinished> {
                self.inner_mut().run(preset, message)
            }

            fn run_exchange_layer(
                &mut self,
                preset: &Preset,
                tx: &[u8],
                rx: &mut [u8],
            ) -> Result<usize, Unfinished> {
                self.inner_mut().run_exchange(preset, tx, rx)
            }

            fn start_layer(
                &mut self,
                preset: &Preset,
                message: &mut [Transfer<'_>],
            ) -> Poll<Result<usize, Unfinished>> {
                self.inner_mut().start(preset, message)
            }
        }
    };
}
blocks!(controllers);

/// Code that is compiled once per block, with the block's own driver; see [`Mapped::start_each`].
pub trait MappedUser {
    /// The result.
    type Output;

    /// Uses the controller that `start` brings up. No register is accessed before `start` is
    /// called.
    fn run<C: Controller + Send + 'static>(self, start: impl FnOnce() -> C) -> Self::Output;
}
