//! Registers and the interrupt of a UIO device.
//!
//! `/sys/class/uio/uioN/maps/mapM` gives the address and the length of a block. Mapping `/dev/uioN`
//! at offset M pages maps block M, whose registers begin `offset` bytes into its first page.
//! [`interrupt`] waits for its interrupt.
//!
//! Needs only permission to read and write `/dev/uioN`.

use std::fs::File;
use std::io::ErrorKind;
use std::time::Duration;

use rustix::io::Errno;

use super::{MapError, MappedInterrupt, bound, interrupt, open_device};
use crate::root::{Root, number};
use crate::sys::{MappedRegisters, Window};

const CLASS: &str = "/sys/class/uio";

/// A block of a UIO device, as sysfs describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UioMap {
    /// Its number, from 0.
    pub index: u32,
    /// Its name, often empty.
    pub name: String,
    /// The physical address of its first page.
    pub addr: u64,
    /// Bytes from `addr`. Newer kernels round it up to whole pages.
    pub size: u64,
    /// The offset of the registers in the first page.
    pub offset: u64,
}

impl UioMap {
    /// The address of the registers.
    #[must_use]
    pub fn registers_at(&self) -> u64 {
        self.addr.wrapping_add(self.offset)
    }
}

/// An open UIO device.
#[derive(Debug)]
pub struct Uio {
    file: File,
    path: String,
    maps: Vec<UioMap>,
    root: Root,
}

/// The UIO nodes under `root`.
#[must_use]
pub(crate) fn nodes(root: &Root) -> Vec<String> {
    root.names(CLASS).into_iter().map(|name| format!("/dev/{name}")).collect()
}

/// The device's name of node `name` (`uio0`), from sysfs.
pub(crate) fn device_name(root: &Root, name: &str) -> String {
    root.text(format!("{CLASS}/{name}/name")).unwrap_or_default()
}

/// The blocks of node `name`, in order.
pub(crate) fn maps(root: &Root, name: &str) -> Result<Vec<UioMap>, MapError> {
    let directory = format!("{CLASS}/{name}/maps");
    let found = root.names(&directory).into_iter().filter_map(|entry| {
        let index = entry.strip_prefix("map")?.parse().ok()?;
        Some((index, format!("{directory}/{entry}")))
    });
    found
        .map(|(index, map)| {
            let field = |name: &str| {
                let path = format!("{map}/{name}");
                let value = root.text(&path).ok().and_then(|text| number(&text));
                value.ok_or(MapError::Malformed { path })
            };
            Ok(UioMap {
                index,
                name: root.text(format!("{map}/name")).unwrap_or_default(),
                addr: field("addr")?,
                size: field("size")?,
                offset: field("offset")?,
            })
        })
        .collect()
}

impl Uio {
    /// Opens `/dev/uioN` (or `uioN`) under `root`, O_RDWR and O_SYNC. While this lives, the device
    /// is powered and, under a bus that manages clocks, clocked.
    ///
    /// # Errors
    /// * [`MapError::NoSuchDevice`], with the existing nodes.
    /// * [`MapError::NoPermission`], with the node's group and the udev rule.
    /// * [`MapError::Malformed`] if sysfs does not describe it.
    /// * [`MapError::NotPermitted`], [`MapError::Os`] otherwise.
    pub fn open(root: &Root, path: &str) -> Result<Self, MapError> {
        let name = path.strip_prefix("/dev/").unwrap_or(path);
        let path = format!("/dev/{name}");
        let file = open_device(root, &path)
            .map_err(|errno| MapError::of_open(root, &path, errno, || nodes(root)))?;
        let maps = maps(root, name)?;
        Ok(Self { file, path, maps, root: root.clone() })
    }

    /// The UIO node that maps the registers at `address`.
    #[must_use]
    pub fn find(root: &Root, address: u64) -> Option<String> {
        nodes(root).into_iter().find(|path| {
            let name = path.strip_prefix("/dev/").unwrap_or(path);
            maps(root, name).is_ok_and(|maps| maps.iter().any(|m| m.registers_at() == address))
        })
    }

    /// Its blocks.
    #[must_use]
    pub fn maps(&self) -> &[UioMap] {
        &self.maps
    }

    /// Its node, as `/dev/uioN`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn block(&self, index: u32) -> Result<&UioMap, MapError> {
        let count = self.maps.len();
        let map = self.maps.iter().find(|map| map.index == index);
        map.ok_or_else(|| MapError::NoSuchMap { path: self.path.clone(), index, count })
    }

    /// The address of block `index`'s registers.
    ///
    /// # Errors
    /// [`MapError::NoSuchMap`].
    pub fn registers_at(&self, index: u32) -> Result<u64, MapError> {
        self.block(index).map(UioMap::registers_at)
    }

    /// Maps the first `len` bytes of the registers of block `index`: the pages that contain them.
    ///
    /// # Errors
    /// * [`MapError::NoSuchMap`].
    /// * [`MapError::Range`] if the block is shorter, or `len` is not a multiple of 4.
    /// * [`MapError::Bound`] if another kernel driver is bound to these registers.
    /// * [`MapError::NotPermitted`], [`MapError::Os`].
    pub fn map(&self, index: u32, len: u32) -> Result<MappedRegisters, MapError> {
        bound::refuse_if_bound(&self.root, self.registers_at(index)?, len)?;
        self.map_shared(index, len)
    }

    /// Maps registers that a kernel driver may continue to use: a GPIO bank. There, a
    /// read-modify-write of either side can lose a change that the other made in between.
    ///
    /// # Errors
    /// As [`Uio::map`], without [`MapError::Bound`].
    pub fn map_shared(&self, index: u32, len: u32) -> Result<MappedRegisters, MapError> {
        let path = || self.path.clone();
        let map = self.block(index)?;
        let page_size = crate::sys::page_size();
        let available = map.size.saturating_sub(map.offset);
        let range = || MapError::Range {
            address: map.registers_at(),
            len,
            available: (u64::from(len) > available).then_some(available),
        };
        let whole = map.offset % 4 == 0 && len % 4 == 0;
        if !whole || u64::from(len) > available || map.offset >= page_size as u64 {
            return Err(range());
        }
        // In the file, the offset of a block is its number in pages; the registers are within.
        let begin = u64::from(index) * page_size as u64 + map.offset;
        let window = Window::around(begin, len, page_size).ok_or_else(range)?;
        MappedRegisters::map(&self.file, &window).map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => MapError::NotPermitted { path: path(), what: "mapped" },
            _ => MapError::Os { path: path(), what: "mapped", errno },
        })
    }

    /// Unmasks the interrupt. Call it before each wait: the kernel masks the interrupt when it
    /// comes.
    ///
    /// # Errors
    /// [`MapError::NoInterrupt`], [`MapError::Os`].
    pub fn enable_interrupt(&self) -> Result<(), MapError> {
        self.control(true)
    }

    /// Masks the interrupt.
    ///
    /// # Errors
    /// [`MapError::NoInterrupt`], [`MapError::Os`].
    pub fn disable_interrupt(&self) -> Result<(), MapError> {
        self.control(false)
    }

    fn control(&self, unmasked: bool) -> Result<(), MapError> {
        let told = interrupt::unmask(&self.file, unmasked);
        told.map_err(|error| self.interrupt_error("told to mask its interrupt", &error))
    }

    /// Waits for the interrupt, for at most `timeout`. Returns the kernel's count of interrupts,
    /// which wraps, or `None` if none came in time.
    ///
    /// # Errors
    /// [`MapError::NoInterrupt`], [`MapError::Os`].
    pub fn wait_interrupt(&self, timeout: Duration) -> Result<Option<u32>, MapError> {
        let count = interrupt::wait(&self.file, timeout);
        count.map_err(|error| self.interrupt_error("asked for its interrupt", &error))
    }

    /// UIO returns EIO if there is no interrupt, ENOSYS if it cannot be masked.
    fn interrupt_error(&self, what: &'static str, error: &std::io::Error) -> MapError {
        let path = self.path.clone();
        match Errno::from_io_error(error) {
            Some(Errno::IO | Errno::NOSYS) => MapError::NoInterrupt { path },
            Some(errno) => MapError::Os { path, what, errno },
            None if error.kind() == ErrorKind::UnexpectedEof => MapError::NoInterrupt { path },
            None => MapError::Os { path, what, errno: Errno::IO },
        }
    }
}

impl MappedInterrupt {
    /// The interrupt of `uio`, masked until a message needs it.
    ///
    /// # Errors
    /// [`MapError::NoInterrupt`] if the device has none, or none that can be masked;
    /// [`MapError::Os`].
    pub fn of(uio: Uio) -> Result<Self, MapError> {
        // A device without an interrupt refuses this call.
        uio.disable_interrupt()?;
        Ok(Self(Some(uio.file)))
    }
}
