//! QEMU's boards driven from the host: the shipped drivers on register models that are not ours.
//!
//! *Read first*: `ARCHITECTURE.md` for this crate's place in the project.
//!
//! # How it works
//! - The crate barewire-qtest finds QEMU, starts it with a stopped machine, ends it, and accesses the
//!   machine's registers over a socket.
//! - `registers` and `timer` implement barewire's `Registers` and `Timer`, so that the shipped
//!   drivers run here unchanged.
//! - `interrupt` is the controller's interrupt line.
//! - `board` has a table of the boards, and lists what QEMU's models leave out.
//! - `bring_up` runs the shipped drivers on the boards. Only this module knows the drivers.
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
//! - DMA.
//! - Systems without Unix sockets.

mod board;
mod bring_up;
mod driver;
mod error;
mod flash_file;
mod interrupt;
mod registers;
mod spec;
mod timer;
mod trace;
mod watched;

pub use barewire_qtest::{QemuError, QemuProgram, Version};
pub use board::{BOARDS, QemuBoard, QemuOptions};
pub use bring_up::QemuController;
pub use driver::{Lines, QemuBlock};
pub use error::BoardError;

pub use interrupt::{InterruptTap, QemuInterrupt};
pub use registers::QemuRegisters;
pub use spec::{BoardSpec, Medium, Silicon, Storage};
pub use timer::QemuTimer;
pub use trace::FlashCommand;
pub use watched::WatchedController;
