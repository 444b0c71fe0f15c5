//! Any of barewire's buses by its name: parsed, opened, and usable from any thread.
//!
//! # How it works
//! [`name`] parses a name such as `sim:rpi3,flash=chip.bin`. [`AnyBus::open`] opens it, whatever it is, as a
//! [`Bus`](barewire::bus::Bus) that threads share. Programs that need more of one kind of bus use its parts:
//! [`SimBoard`] is a simulated board with its chips, [`mapped`] checks that a mapped controller answers and
//! stays ours.
//!
//! ```
//! use barewire::spi::{Settings, Transfer};
//! use barewire_open::AnyBus;
//!
//! let bus = AnyBus::open("sim:imx8mp", &mut |note| eprintln!("{note}"))?;
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//! let mut id = [0; 4];
//! device.device().sync(&mut [Transfer::exchange(&[0x9f, 0, 0, 0], &mut id)])?;
//! assert_eq!(id[1..], [0xef, 0x40, 0x19]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! More than one process on a simulated board: its state is this process's. Recording the wire, injecting
//! faults after opening, measuring latencies: the command `barewire` does that.

mod any_bus;
mod confined;
mod error;
pub mod files;
mod first_read;
mod flash_file;
pub mod mapped;
pub mod name;
pub mod near;
pub mod number;
mod oled;
mod out_file;
mod owned_message;
mod sim_board;

pub use any_bus::{AnyBus, AnyDevice, AnyTimer, DynController, SimFigures, Steady};
pub use error::OpenError;
pub use first_read::first_read;
pub use flash_file::FlashFile;
pub use out_file::{OutFile, is_stdout};
pub use owned_message::{OwnedMessage, OwnedPrepared, Shape};
pub use sim_board::{Fitted, SimBoard, SimCan};
