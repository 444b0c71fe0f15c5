//! Registers through `/dev/mem`.
//!
//! Needs permission for the node *and* `CAP_SYS_RAWIO`: the kernel checks both. Prefer UIO: it
//! needs no capability, and the device tree, not the user, gives it the address.

use std::fs::File;

use rustix::io::Errno;

use super::{MapError, bound, open_device};
use crate::iomem;
use crate::root::Root;
use crate::sys::{MappedRegisters, Window};

const PATH: &str = "/dev/mem";

/// `/dev/mem`, open.
#[derive(Debug)]
pub struct DevMem {
    file: File,
    root: Root,
}

impl DevMem {
    /// Opens `/dev/mem` under `root`, O_RDWR and O_SYNC.
    ///
    /// # Errors
    /// * [`MapError::NoSuchDevice`] if the kernel does not have it.
    /// * [`MapError::NoPermission`] with the node's group.
    /// * [`MapError::NotPermitted`] without `CAP_SYS_RAWIO`, or on a locked-down kernel.
    /// * [`MapError::Os`] otherwise.
    pub fn open(root: &Root) -> Result<Self, MapError> {
        let file = open_device(root, PATH)
            .map_err(|errno| MapError::of_open(root, PATH, errno, Vec::new))?;
        Ok(Self { file, root: root.clone() })
    }

    /// Maps a controller's `len` bytes of registers at `address`: the pages that contain them.
    ///
    /// Check its clock first ([`clock`](super::clock)): accessing a gated block may hang the
    /// machine.
    ///
    /// # Errors
    /// * [`MapError::Bound`] if a kernel driver is bound to it, with the command that unbinds the
    ///   driver.
    /// * [`MapError::Memory`], [`MapError::Range`] if the range is not a register block.
    /// * [`MapError::RangeNotPermitted`] if the kernel protects the range; [`MapError::Os`].
    pub fn map_controller(&self, address: u64, len: u32) -> Result<MappedRegisters, MapError> {
        bound::refuse_if_bound(&self.root, address, len)?;
        self.map_shared(address, len)
    }

    /// Maps registers that a kernel driver may continue to use: a GPIO bank, the clock controller.
    /// There, a read-modify-write of either side can lose a change that the other made in between.
    ///
    /// # Errors
    /// As [`DevMem::map_controller`], without [`MapError::Bound`].
    pub fn map_shared(&self, address: u64, len: u32) -> Result<MappedRegisters, MapError> {
        let range = || MapError::Range { address, len, available: None };
        if address % 4 != 0 || len % 4 != 0 {
            return Err(range());
        }
        let window = Window::around(address, len, crate::sys::page_size()).ok_or_else(range)?;
        if iomem::is_memory(&self.root, address, len) {
            return Err(MapError::Memory { address, len });
        }
        MappedRegisters::map(&self.file, &window).map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => {
                let claimed_by = iomem::claims(&self.root, address, len);
                MapError::RangeNotPermitted { address, claimed_by, remedy: None }
            }
            _ => MapError::Os { path: PATH.into(), what: "mapped", errno },
        })
    }
}
