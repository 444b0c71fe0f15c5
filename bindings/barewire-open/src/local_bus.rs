//! A bus of any kind for one thread, with the board behind it in reach.
//!
//! How it works: as [`AnyBus`](crate::AnyBus), without the parts for threads: no gate, no worker. A simulated board's
//! time passes by the board's own events alone.
//!
//! ```
//! use barewire::spi::{Settings, Transfer};
//! use barewire_open::{LocalBus, OpenOptions, name};
//!
//! let name = name::parse("sim:imx8mp")?;
//! let bus = LocalBus::open_with(&name, OpenOptions::default(), &mut |note| eprintln!("{note}"))?;
//! let device = bus.bus().device(&Settings::new(0, 20_000_000))?;
//! device.sync(&mut [Transfer::write(&[0x06])])?;
//! assert!(bus.board().is_some_and(|board| board.flash().is_some_and(|flash| flash.borrow().write_enabled())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};

use barewire::bus::{Bus, Platform};
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire_linux::platform::FUTEX;
use barewire_sim::SimPlatform;

use crate::kind::{self, Backing, NoBacking, mapped, qemu, sim, spidev};
use crate::name::BusName;
use crate::{OpenError, OpenOptions};

/// A bus of any kind for one thread. Its [`Backing`] does everything besides messages.
pub struct LocalBus {
    bus: Box<Bus<dyn Controller>>,
    /// Dropped after the bus.
    backing: Box<dyn Backing>,
}

impl fmt::Debug for LocalBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBus").finish_non_exhaustive()
    }
}

/// A bus over `controller`, whose waiting callers use `platform`.
fn local(
    controller: Box<dyn Controller>,
    backing: impl Backing + 'static,
    platform: &'static dyn Platform,
) -> LocalBus {
    let bus = Box::new(Bus::with_platform(Pointer(controller), platform));
    LocalBus { bus, backing: Box::new(backing) }
}

impl LocalBus {
    /// Opens the bus of that name. `tell` gets notes and warnings for people, a line each; while the bus waits for
    /// another process, it gets that process's name.
    ///
    /// # Errors
    /// The part that could not be opened, and why.
    pub fn open_with(
        name: &BusName,
        options: OpenOptions,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Self, OpenError> {
        let OpenOptions { layers, fitted, linux_process, console } = options;
        Ok(match name {
            BusName::Null => local(kind::null(layers), NoBacking, &FUTEX),
            BusName::Spidev(name) => {
                let (controller, backing) = spidev::open(name, layers)?;
                local(controller, backing, &FUTEX)
            }
            BusName::Mapped(spec) => {
                let (controller, backing) = mapped::open(spec, layers, console, tell)?;
                local(controller, backing, &FUTEX)
            }
            BusName::Sim(name) => {
                let (controller, backing) = sim::open(name, fitted, linux_process, layers, tell)?;
                local(controller, backing, &SimPlatform)
            }
            BusName::Qemu(name) => {
                let (controller, backing) = qemu::open(name, layers)?;
                local(controller, backing, &FUTEX)
            }
        })
    }

    /// The bus.
    #[must_use]
    pub fn bus(&self) -> &Bus<dyn Controller + '_> {
        &*self.bus
    }
}

impl Deref for LocalBus {
    type Target = dyn Backing;

    fn deref(&self) -> &Self::Target {
        &*self.backing
    }
}

impl DerefMut for LocalBus {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.backing
    }
}
