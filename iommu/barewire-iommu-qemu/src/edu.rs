//! QEMU's educational PCI device: 4 KiB of buffer, and DMA between it and memory.
//!
//! *Read first*: QEMU's documentation, "EDU device" (docs/specs/edu).
//!
//! # How it works
//! Source, destination and count are written, then a command. 100 ms of the machine's time later
//! the device does the transfer and clears bit 0 of the command. The machine does nothing else, so
//! that time passes at once.
//!
//! Faults are not reported: memory that cannot be read leaves zeros in the buffer, and data that
//! cannot be written is lost.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use barewire_iommu::Iova;
use barewire_qtest::{Link, QemuError};

/// The size of its buffer, which is the maximum of one transfer.
pub const EDU_BUFFER_BYTES: usize = 4096;

/// PCI's configuration space on this machine, and the addresses for BARs.
const ECAM: u32 = 0x3f00_0000;
const MMIO: u32 = 0x1000_0000;

/// Device and vendor id in configuration space.
const ID: u32 = 0x11e8_1234;
/// Slots of bus 0.
const SLOTS: u32 = 32;
/// A slot's configuration space in ECAM: 4 KiB for each of 8 functions.
const SLOT_BYTES: u32 = 8 * 4096;
const COMMAND: u32 = 0x04;
const COMMAND_MEMORY: u32 = 1 << 1;
const COMMAND_BUS_MASTER: u32 = 1 << 2;
const BAR0: u32 = 0x10;

const IDENTIFICATION: u32 = 0x00;
/// Its low byte; the other bytes are a version.
const IDENTIFICATION_LOW: u32 = 0xed;
const DMA_SOURCE: u32 = 0x80;
const DMA_DESTINATION: u32 = 0x88;
const DMA_COUNT: u32 = 0x90;
const DMA_COMMAND: u32 = 0x98;
const DMA_RUN: u64 = 1;
const DMA_TO_MEMORY: u64 = 2;
/// The buffer's address for DMA.
const BUFFER: u64 = 0x4_0000;

/// How long a transfer may take in real time: it needs microseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long to poll without a pause.
const SPIN: Duration = Duration::from_millis(2);

/// The device, with its BAR assigned and bus mastering enabled.
#[derive(Debug)]
pub struct Edu {
    link: Rc<RefCell<Link>>,
    /// Its StreamID, which for a PCI device is the requester id.
    stream: u32,
}

impl Edu {
    /// Finds the device on bus 0 and sets it up.
    pub(crate) fn find(link: Rc<RefCell<Link>>) -> Result<Self, QemuError> {
        let trouble = |trouble: String| QemuError::Device { device: "edu", trouble };
        let mut bus = link.borrow_mut();
        let mut read = |address| {
            let mut word = [0];
            bus.read_n(address, &mut word);
            word[0]
        };
        let slot = |slot: &u32| ECAM + slot * SLOT_BYTES;
        let found = (0..SLOTS).find(|at| read(slot(at)) == ID);
        let Some(found) = found else {
            let error = bus.error().cloned();
            return Err(error.unwrap_or_else(|| trouble("it is on no slot of bus 0".into())));
        };
        bus.write(slot(&found) + BAR0, MMIO);
        bus.write(slot(&found) + COMMAND, COMMAND_MEMORY | COMMAND_BUS_MASTER);
        let mut id = [0];
        bus.read_n(MMIO + IDENTIFICATION, &mut id);
        if let Some(error) = bus.error() {
            return Err(error.clone());
        }
        if id[0] & 0xff != IDENTIFICATION_LOW {
            return Err(trouble(format!("it calls itself {:#x}", id[0])));
        }
        drop(bus);
        Ok(Self { link, stream: found << 3 })
    }

    /// Its StreamID.
    #[must_use]
    pub fn stream(&self) -> u32 {
        self.stream
    }

    /// Transfers memory to the buffer by DMA.
    ///
    /// # Errors
    /// A lost connection, or a device that does not finish in time.
    ///
    /// # Panics
    /// If `len` is 0 or more than the buffer.
    pub fn fetch(&self, from: Iova, len: usize) -> Result<(), QemuError> {
        self.transfer(from.0, BUFFER, len, DMA_RUN)
    }

    /// Transfers the buffer to memory by DMA.
    ///
    /// # Errors
    /// As [`Edu::fetch`].
    ///
    /// # Panics
    /// As [`Edu::fetch`].
    pub fn store(&self, to: Iova, len: usize) -> Result<(), QemuError> {
        self.transfer(BUFFER, to.0, len, DMA_RUN | DMA_TO_MEMORY)
    }

    fn transfer(&self, from: u64, to: u64, len: usize, command: u64) -> Result<(), QemuError> {
        // Otherwise the model would abort QEMU.
        assert!((1..=EDU_BUFFER_BYTES).contains(&len), "{len} bytes: the buffer has 4096");
        let mut link = self.link.borrow_mut();
        link.write_long(MMIO + DMA_SOURCE, from);
        link.write_long(MMIO + DMA_DESTINATION, to);
        link.write_long(MMIO + DMA_COUNT, len as u64);
        link.write_long(MMIO + DMA_COMMAND, command);
        let begun = Instant::now();
        while link.read_long(MMIO + DMA_COMMAND) & DMA_RUN != 0 {
            let waited = begun.elapsed();
            if waited > TIMEOUT {
                let trouble = format!("a transfer has not ended in {} s", TIMEOUT.as_secs());
                return Err(QemuError::Device { device: "edu", trouble });
            }
            if waited > SPIN {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        link.error().map_or(Ok(()), |error| Err(error.clone()))
    }
}
