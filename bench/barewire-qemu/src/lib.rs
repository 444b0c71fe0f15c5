//! QEMU's boards driven from the host: the shipped drivers on register models that nobody here
//! wrote.
//!
//! *Read first*: `ARCHITECTURE.md` for where this crate stands in the house.
//!
//! # How it works
//! - `process` starts a QEMU with a stopped machine and ends it again; `program` finds it.
//! - `qtest` reads and writes the machine's registers over a socket.
//! - `registers` and `timer` are bodies of barewire's `Registers` and `Timer`, so that the
//!   shipped driver runs here unchanged.
//! - `interrupt` is the controller's interrupt line.
//! - `board` has the boards as a table, and what QEMU's models leave out.
//! - `bring_up` puts the shipped drivers on them: the one room that knows those.
//! - `virt` is another kind of machine: an SMMUv3 and a device that does DMA behind it, on which
//!   barewire-iommu runs unchanged.
//! - `trace` reads what QEMU's flash chip says it was told.
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
//! Timing: these models run in no time and prove register use and data only. Guests; DMA but behind an SMMU. Systems without Unix sockets.

mod board;
mod bring_up;
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
pub use error::{QemuError, Version};
pub use interrupt::QemuInterrupt;
pub use program::QemuProgram;
pub use registers::QemuRegisters;
pub use spec::{BoardSpec, GpioLine, InterruptTap, Medium, Silicon, Storage};
pub use timer::QemuTimer;
pub use trace::FlashCommand;
pub use virt::{
    EDU_BUFFER_BYTES, Edu, GuestPool, GuestRam, SmmuRegisters, VirtMachine, VirtOptions,
};
pub use watched::Watched;
