//! Any of barewire's buses by its name: parsed, opened, and usable from any thread.
//!
//! # How it works
//! [`name`] parses a name such as `sim:rpi3,flash=chip.bin`. [`AnyBus`] is the bus of that name for
//! any thread; [`LocalBus`] is a bus for one thread, with a simulated board in reach. Both open it
//! by the same code, in the folder `kind`, and with the same [`OpenOptions`]: injected faults, a
//! tracer, what is on a simulated board.
//!
//! ```
//! use barewire::spi::{Settings, Transfer};
//! use barewire_open::AnyBus;
//!
//! let bus = AnyBus::open("sim:imx8mp")?;
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//! let mut id = [0; 4];
//! device.device().sync(&mut [Transfer::exchange(&[0x9f, 0, 0, 0], &mut id)])?;
//! assert_eq!(id[1..], [0xef, 0x40, 0x19]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A tracer gets the events of each message:
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! use barewire::spi::{Settings, Transfer};
//! use barewire::trace::Event;
//! use barewire_open::{AnyBus, Layers, OpenOptions, name};
//!
//! static DONE: AtomicUsize = AtomicUsize::new(0);
//!
//! let trace = Box::new(|event: &Event<'_>| {
//!     if let Event::MessageDone { .. } = event {
//!         DONE.fetch_add(1, Ordering::Relaxed);
//!     }
//! });
//! let layers = Layers { trace: Some(trace), ..Layers::default() };
//! let options = OpenOptions { layers, ..OpenOptions::default() };
//! let bus = AnyBus::open_with(&name::parse("sim:rpi3")?, options, &mut |note| eprintln!("{note}"))?;
//! let device = bus.device(&Settings::new(0, 1_000_000))?;
//! device.device().sync(&mut [Transfer::write(&[1, 2, 3])])?;
//! assert_eq!(DONE.load(Ordering::Relaxed), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! More than one process on a simulated board: its state is this process's.

mod any_bus;
mod confined;
pub mod costs;
mod display;
mod error;
pub mod files;
mod first_read;
mod flash_file;
mod kind;
mod layers;
mod local_bus;
pub mod name;
pub mod number;
mod options;
mod out_file;
mod owned_message;
mod sim_board;
mod waiting;
mod wiring;

pub use any_bus::{AnyBus, AnyDevice, AnyTimer, DynController, Steady};
pub use barewire_sim::near;
pub use error::OpenError;
pub use flash_file::FlashFile;
pub use kind::Backing;
pub use kind::mapped::map;
pub use layers::{Layers, TraceSink};
pub use local_bus::LocalBus;
pub use options::OpenOptions;
pub use out_file::{OutFile, is_stdout};
pub use owned_message::{OwnedMessage, OwnedPrepared, Shape};
pub use sim_board::{Fitting, SimBoard, SimCan, SimFigures, SimFlash};
pub use waiting::Console;
