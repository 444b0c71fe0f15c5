//! Requests of any client to a simulated board: the server answers each, and never panics.
#![no_main]

#[path = "../../bench/barewire-mmio/tests/it/any.rs"]
mod any;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any::drive(bytes));
