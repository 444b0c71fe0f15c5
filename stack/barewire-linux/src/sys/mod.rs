//! The system calls that need unsafe code, one file per kind: `foreign` (another libc's
//! mutex), `futex` (sleeping, and
//! waking by address), `mutex` (in a file), `pages` (of a file, as words), `process` (noticing a fork), `record` (a lock on a
//! file), `registers` (mapping them), `schedule` (real-time priority). spidev's ioctls are in
//! `spidev::ioctl`, beside the messages whose addresses they carry.
//!
//! The rest of the crate is safe code on top. `rustix` makes the calls where it can, so few C
//! functions are declared here, and `errno` is rarely handled.

#[cfg(all(target_env = "gnu", target_pointer_width = "64"))]
mod foreign;
pub(crate) mod futex;
pub(crate) mod mutex;
pub(crate) mod owner;
mod pages;
mod process;
pub(crate) mod record;
mod registers;
pub(crate) mod schedule;
mod window;

pub use pages::SharedWords;
pub use process::process_number;
pub use registers::MappedRegisters;

pub(crate) use window::Window;
