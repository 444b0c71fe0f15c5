//! A touch controller's driver over a chip that answers any bytes: no call goes on for ever, and what
//! it says makes sense.
#![no_main]

#[path = "../../stack/barewire/src/chip/tsc2046/tests/any.rs"]
mod any;

use barewire::chip::Port;
use barewire::chip::tsc2046::{Aux, Config, Filter, TouchError, Tsc2046, temperature_millikelvin};
use barewire::spi::{Error as SpiError, MessageError, Transfer};
use barewire::time::Timer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any::drive(bytes));
