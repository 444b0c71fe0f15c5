//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-qemu --test on_qemu flash::` runs one of them.

mod bad_input;
mod bcm2835_driver;
mod cadence;
mod conformance;
mod flash;
mod interrupt;
mod lands;
mod pl022;
mod pl022_driver;
mod raspi3b;
mod sifive;
mod sifive_driver;
mod support;
mod trace;
