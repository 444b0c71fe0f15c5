//! The system calls that need unsafe code, one file per kind: `door` (the kernel module's device), `futex` (sleeping, and waking by
//! address), `of_libc` (its
//! own mutexes), `pages` (of a file, as words),
//! `process` (noticing a fork), `record` (a lock on a file), `registers` (mapping them), `robust` (a lock in pages that outlives its
//! holder), `schedule` (real-time priority). spidev's ioctls are in `spidev::ioctl`, beside the messages whose addresses they carry.
//!
//! The rest of the crate is safe code on top. `rustix` makes the calls where it can, so few C
//! functions are declared here, and `errno` is rarely handled.

pub(crate) mod door;
pub(crate) mod futex;
#[cfg(any(test, target_env = "musl"))]
pub(crate) mod of_libc;
mod pages;
mod process;
pub(crate) mod record;
mod registers;
pub(crate) mod robust;
pub(crate) mod schedule;
mod window;

pub use pages::SharedWords;
pub(crate) use pages::page_size;
pub use process::{is_memory_borrowed, process_number};
pub use registers::MappedRegisters;

pub(crate) use window::Window;
