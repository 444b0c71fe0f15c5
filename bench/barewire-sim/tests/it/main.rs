//! The integration tests of this crate: one program, so that the crate and what it needs are linked once.
//!
//! A module a subject: `cargo test -p barewire-sim --test it messages::` runs one of them.

mod accesses;
mod accesses_page;
mod atmel;
mod atmel_accesses;
mod atmel_messages;
mod bcm2835;
mod bring_up;
mod can;
mod conformance;
mod conforms;
mod converter;
mod driver;
mod dw_ssi;
mod examples;
mod flash;
mod flash_faults;
mod flash_parts;
mod flights;
mod hal;
mod interrupts;
mod interrupts_anywhere;
mod kept;
mod lines;
mod mcp251xfd;
mod messages;
mod native_select;
mod pl022;
mod processors;
mod processors_reference;
mod published;
mod random;
mod readings;
mod readout;
mod scenarios;
mod second_message;
mod selection;
mod short;
mod sifive;
mod snapshot;
mod threads;
mod threads_that_panic;
mod touch;
mod vcd_edges;
mod waiting;

/// Whether tests run whole which take minutes in a debug build: in an optimised one, and where
/// `BAREWIRE_WHOLE` is set, as CI does, whose tests are optimised and keep the debug checks.
fn runs_whole() -> bool {
    !cfg!(debug_assertions) || std::env::var_os("BAREWIRE_WHOLE").is_some()
}
