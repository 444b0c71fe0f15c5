//! py-spidev's class over barewire's buses.
//!
//! Read first: py-spidev's README, 3.8. Its behaviour is judged by running the same questions with it
//! (`tests/differential.py`).
//!
//! # How it works
//! `node` has the nodes: which bus and chip select stands behind `/dev/spidevB.C`, and the settings
//! that all openers share, as the kernel keeps them. `class` has the class, `open` the state of an
//! open object. `values` and `list` read what a caller gives, and overwrite a caller's list.

mod class;
mod kernel;
mod list;
mod node;
mod open;
mod values;

pub(crate) use class::SpiDev;
pub(crate) use node::{map_node, maps, unmap_node};
