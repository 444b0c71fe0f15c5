//! barewire on Linux: the kernel's spidev as a controller, controllers' registers mapped into the
//! process, and a search for both on this machine.
//!
//! **Experimental until it has run on a board.** Tested: under Linux 6.1 and 6.12 in QEMU's guests, device-tree
//! overlays included; the bytes and the sequence of the ioctls against a recorder; sysfs, `/dev/mem` and UIO against a
//! directory tree in which ordinary files and a FIFO replace them.
//!
//! Read first: this crate's README, on rights, `bufsiz`, clocks and atomicity.
//!
//! * [`spidev`]: any controller that has a kernel driver, through `/dev/spidevB.C`.
//! * [`map`]: a controller without a kernel driver: its registers, through UIO or `/dev/mem`, for
//!   barewire's own drivers.
//! * [`bus_text`]: such a controller written as text, for a command line.
//! * [`discover`](mod@discover): which of these exist on this machine.
//! * [`survey`]: the obstacles between this machine and a working bus.
//! * [`gpio`]: GPIO lines through the kernel: chip selects, a chip's INT line.
//! * [`platform`]: how threads wait for a bus: futexes, optionally with priority inheritance.
//! * [`worker`]: threads that serve a bus, for example with real-time priority.
//! * [`shared`]: several processes on one controller's registers.
//! * [`Monotonic`]: the timer that `spidev` and `map` need.
//!
//! Every path is relative to a [`Root`], so that all of it also runs on a tree in a temporary
//! directory. The system calls that need unsafe code are in one module, `sys`.
//!
//! `platform`, `worker` and `shared` need no board: they are tested on the kernel that runs the
//! tests.
//!
//! # Not supported
//! A lock between processes for spidev: the kernel has its own. On other systems than Linux the
//! crate is empty.
#![cfg(target_os = "linux")]

pub mod bus_text;
pub mod discover;
pub mod gpio;
mod iomem;
pub mod map;
mod node;
pub mod platform;
mod release;
mod rights;
mod root;
pub mod shared;
mod soc;
pub mod spidev;
pub mod survey;
mod sys;
mod timer;
pub mod worker;

pub use rights::Group;
pub use root::Root;
pub use rustix::io::Errno;
pub use spidev::Node;
pub use sys::{MappedRegisters, SharedWords, is_memory_borrowed, process_number};
pub use timer::Monotonic;
