//! QEMU's boards driven from the host: the shipped drivers on register models that are not ours.
//!
//! *Read first*: `ARCHITECTURE.md` for this crate's place in the project.
//!
//! # How it works
//! - `process` starts a QEMU with a stopped machine and ends it; `program` finds QEMU.
//! - `qtest` accesses the machine's registers over a socket.
//! - `registers` and `timer` implement barewire's `Registers` and `Timer`, so that the shipped
//!   drivers run here unchanged.
//! - `interrupt` is the controller's interrupt line.
//! - `board` has a table of the boards, and lists what QEMU's models leave out.
//! - `bring_up` runs the shipped drivers on the boards. Only this module knows the drivers.
//! - `virt` is another kind of machine: an SMMUv3 and a device behind it that does DMA, on which
//!   barewire-iommu runs unchanged.
//! - `trace` reads the log of QEMU's flash model.
//!
//! ```no_run
//! use barewire::chip::spi_nor::SpiNor;
//! use barewire::spi::Settings;
//! use barewire_qemu::{QemuBoard, QemuOptions};
//!
//! let board = QemuBoard::open("sabrelite", &QemuOptions::default())?;
//! let bus = board.bus();
//! let flash = SpiNor::new(bus.device(&Settings::new(0, 20_000_000))?, board.timer())?;
//! assert_eq!(flash.jedec_id().0, [0xbf, 0x25, 0x41]);
//! board.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! - Timing: these models run in no time. They verify register use and data only.
//! - Guests.
//! - DMA, except behind an SMMU.
//! - Systems without Unix sockets.

mod board;
mod bring_up;
mod driver;
mod error;
mod flash_file;
mod interrupt;
mod private_dir;
mod process;
mod program;
mod qtest;
mod registers;
mod spec;
mod timer;
mod trace;
mod virt;
mod watched;

pub use board::{BOARDS, QemuBoard, QemuOptions};
pub use bring_up::QemuController;
pub use driver::{Lines, QemuBlock};
pub use error::{QemuError, Version};
pub use interrupt::{InterruptTap, QemuInterrupt};
pub use program::QemuProgram;
pub use registers::QemuRegisters;
pub use spec::{BoardSpec, Medium, Silicon, Storage};
pub use timer::QemuTimer;
pub use trace::FlashCommand;
pub use virt::{
    EDU_BUFFER_BYTES, Edu, GuestPool, GuestRam, SmmuRegisters, VirtMachine, VirtOptions,
};
pub use watched::Watched;
