//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-foreign --test it can::` runs one of them.

mod can;
mod devices;
mod drivers;
mod executor;
mod sd_card;
mod touch;
