//! Registers through `/dev/mem`.
//!
//! Needs permission for the node *and* `CAP_SYS_RAWIO`: the kernel checks both. Prefer UIO: it
//! needs no capability, and the device tree, not the user, gives it the address.

use std::fs::File;

use rustix::io::Errno;

use super::{MapError, bound, open_device};
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
    /// * [`MapError::NotPermitted`] if the kernel protects the range; [`MapError::Os`].
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
        if !address.is_multiple_of(4) || !len.is_multiple_of(4) {
            return Err(range());
        }
        let window = Window::around(address, len, rustix::param::page_size()).ok_or_else(range)?;
        let iomem = self.root.text("/proc/iomem").unwrap_or_default();
        if overlaps_memory(&iomem, address, len) {
            return Err(MapError::Memory { address, len });
        }
        MappedRegisters::map(&self.file, &window).map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => {
                MapError::NotPermitted { path: PATH.into(), what: "mapped there" }
            }
            _ => MapError::Os { path: PATH.into(), what: "mapped", errno },
        })
    }
}

/// Whether `len` bytes at `address` overlap main memory, according to the text of `/proc/iomem`. In
/// an unprivileged process all addresses there read as zero, so nothing is found.
fn overlaps_memory(iomem: &str, address: u64, len: u32) -> bool {
    let last = address.saturating_add(u64::from(len).saturating_sub(1));
    iomem.lines().any(|line| {
        let Some((range, "System RAM")) = line.trim().split_once(" : ") else {
            return false;
        };
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let range = range.split_once('-').and_then(|(from, to)| Some((hex(from)?, hex(to)?)));
        range.is_some_and(|(from, to)| from < to && address <= to && from <= last)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const IOMEM: &str = "\
30820000-3082ffff : 30820000.spi spi@30820000
40000000-55ffffff : System RAM
  40210000-4141ffff : Kernel code
100000000-13fffffff : System RAM
bad line : System RAM
";

    #[test]
    fn main_memory_is_known_to_its_last_byte() {
        for (address, len, memory) in [
            (0x3082_0000, 0x40, false),
            (0x3fff_fffc, 4, false),
            (0x3fff_fffc, 8, true),
            (0x4000_0000, 4, true),
            (0x55ff_fffc, 4, true),
            (0x5600_0000, 4, false),
            (0x1_3fff_fffc, 4, true),
            (0, 4, false),
        ] {
            assert_eq!(overlaps_memory(IOMEM, address, len), memory, "{address:#x}");
        }
        assert!(overlaps_memory(IOMEM, 0x3000_0000, u32::MAX));
        let hidden = "00000000-00000000 : System RAM\n";
        assert!(!overlaps_memory(hidden, 0, 4), "who may not know learns nothing");
    }
}
