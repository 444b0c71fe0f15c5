//! A spidev node: the kernel's controller, with one chip select.

use barewire::controller::Controller;
use barewire_linux::Monotonic;
use barewire_linux::shared::ChipLocks;
use barewire_linux::spidev::{LastError, SavedMode, Spidev};

use super::Backing;
use crate::name::SpidevName;
use crate::{Layers, OpenError};

/// The backing of a node. Dropping it restores the node's mode.
pub(crate) struct SpidevBacking {
    last_error: LastError,
    locks: ChipLocks,
    _saved_mode: SavedMode,
}

/// The node as asked, opened.
pub(crate) fn open(
    name: &SpidevName,
    layers: Layers,
) -> Result<(Box<dyn Controller + Send>, SpidevBacking), OpenError> {
    let saved_mode = SavedMode::of(&name.path).map_err(OpenError::of_spidev)?;
    let spidev = Spidev::open(&name.path).map_err(OpenError::of_spidev)?;
    let last_error = spidev.last_error();
    let locks = ChipLocks::Node(name.path.clone());
    let part = SpidevBacking { last_error, locks, _saved_mode: saved_mode };
    Ok((layers.around(spidev, Monotonic::new()), part))
}

impl Backing for SpidevBacking {
    fn chip_locks(&self) -> Option<&ChipLocks> {
        Some(&self.locks)
    }

    fn cause(&self) -> Option<String> {
        self.last_error.take().map(|error| error.to_string())
    }
}
