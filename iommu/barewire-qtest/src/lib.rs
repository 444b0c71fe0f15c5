//! A QEMU process and the registers of its machine, driven from the host.
//!
//! # How it works
//! - `program` finds QEMU and checks its version: [`QemuProgram`].
//! - `process` starts it in a [`PrivateDir`], and ends it: [`Launch`], [`Qemu`].
//! - `link` accesses the machine's registers over a socket: [`Link`].
//! - `error` says what went wrong, and how to fix it: [`QemuError`].
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use barewire_qtest::{Launch, PrivateDir, Qemu, QemuProgram, Version};
//!
//! let dir = PrivateDir::new()?;
//! let program = QemuProgram::ARM.find(None, Version { major: 7, minor: 2 }, &dir)?;
//! let launch = Launch {
//!     program: &program,
//!     machine: "sabrelite",
//!     memory: "64M",
//!     drive: None,
//!     trace: None,
//!     stopped: true,
//!     more: &[],
//!     connect_timeout: Duration::from_secs(10),
//! };
//! let qemu = Qemu::start(&launch, dir)?;
//! let mut status = [0];
//! qemu.link().borrow_mut().read_n(0x0200_8018, &mut status);
//! qemu.close()?;
//! # Ok::<(), barewire_qtest::QemuError>(())
//! ```
//!
//! # Not supported
//! - Machines and boards: their options are the caller's.
//! - Systems without Unix sockets; guests.

mod error;
mod link;
mod private_dir;
mod process;
mod program;

pub use error::{QemuError, Version};
pub use link::{Irq, Link};
pub use private_dir::PrivateDir;
pub use process::{Launch, Qemu};
pub use program::QemuProgram;
