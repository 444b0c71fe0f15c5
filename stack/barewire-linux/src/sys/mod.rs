//! The system calls that need unsafe code, a file for each kind: how a process notices its `fork`,
//! a `futex` by its address, a `mutex` in a file, the `pages` of a file as words, a `record` lock on a
//! file, a controller's `registers`, how a thread is `schedule`d. spidev's ioctls are in
//! `spidev::ioctl`, beside the messages whose addresses they carry.
//!
//! Everything else of the crate is safe code on top. `rustix` makes the calls where it can, so that few
//! declarations of C functions and no `errno` are ours.

pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod mutex;
mod pages;
pub(crate) mod record;
mod registers;
pub(crate) mod schedule;
mod window;

pub use pages::SharedWords;
pub use registers::MappedRegisters;

pub(crate) use window::Window;
