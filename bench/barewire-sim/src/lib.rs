//! A simulated bench for barewire: virtual time, register models written from the manuals, a wire
//! with checkers, and boards made of them.
//!
//! *Read first*: `ARCHITECTURE.md` for where the bench stands in the house; the i.MX 6Dual/Quad reference manual,
//! chapters ECSPI and GPIO, before working on [`model`].
//!
//! # How it works
//! - [`engine`] keeps the time, in picoseconds, and switches between simulated threads; [`platform`]
//!   lets a bus's threads wait for each other on it.
//! - [`profile`] says what an access and an instruction cost on a board, each with its source.
//! - [`model`] holds the register blocks and the chips. A model never imports a driver's
//!   constants: else both share one misreading.
//! - [`wire`] joins them: chip selects, SCK, MOSI, MISO. [`check`] watches it, [`vcd`] writes it.
//! - [`board`] puts one of each together and hands out bodies of `barewire`'s `Registers` and
//!   `Timer`, so that the shipped driver runs on it unchanged. [`mod@line`] is a chip's INT pin.
//! - [`near`] finds the name that a mistyped one meant.
//! - [`scenario`] runs small programs on a board whose times are worth printing.
//!
//! Nothing here reads a clock, a random source or a file: the same options give the same trace,
//! and [`board::Board::trace_hash`] says so in one number.
//!
//! # Not supported
//! DMA, caches and memory. The models say under the same heading what they
//! leave out of their blocks.

pub mod board;
pub mod bound;
pub mod bring_up;
pub mod check;
pub mod chip;
pub mod engine;
pub mod line;
pub mod model;
pub mod near;
pub mod platform;
pub mod profile;
pub mod random;
mod run;
pub mod scenario;
pub mod selection;
pub mod vcd;
pub mod wire;

pub use board::{Board, BoardOptions, BoardSpec, Pad, SimRegisters, SimTimer};
pub use check::{BrokenRule, Faults, Rule, Violation};
pub use engine::{Engine, relax_current};
pub use line::IntLine;
pub use platform::SimPlatform;
pub use selection::{Parts, Selection};
pub use wire::WireUse;
