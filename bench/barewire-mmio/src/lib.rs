//! Simulated boards for another program's drivers: their registers, pads, interrupts and time, over a Unix
//! socket and a shared page.
//!
//! *Read first*: docs/mmio.md for the protocol, docs/judges.md for what is done with it: Linux's own drivers
//! run on this project's models.
//!
//! # How it works
//! - [`message`] has the protocol's messages, [`page`] the memory that carries them fast.
//! - [`fitting`] puts chips on a board, [`machine`] carries requests out on it.
//! - [`server`] serves a machine to one client after the other; [`client`] is the other end, with bodies of
//!   barewire's own traits.
//! - [`tree`] writes a board's device tree from the simulator's table.
//!
//! The folder `linux/` has the other end for user-mode Linux, and a configuration of it.
//!
//! # Not supported
//! Several clients at once; DMA.

pub mod client;
pub mod fitting;
pub mod machine;
pub mod message;
pub mod page;
pub mod server;
mod socket;
pub mod tree;

pub use client::Client;
pub use fitting::{ChipName, FitError};
pub use machine::Machine;
pub use server::{End, Server};

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
