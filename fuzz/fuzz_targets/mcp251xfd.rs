//! A CAN controller's driver over a chip that answers any bytes: no call goes on for ever, and a
//! restart on a chip that answers brings it back.
#![no_main]

#[path = "../../stack/barewire/src/chip/mcp251xfd/tests/any.rs"]
mod any;

use barewire::chip::Port;
use barewire::chip::mcp251xfd::{
    BitRate, Config, ExtendedId, Filter, Frame, Id, Mcp251xfd, Mode, Oscillator, Part, Payload,
    Received, StandardId, TxOrder,
};
use barewire::spi::{Error as SpiError, MessageError, Transfer};
use barewire::time::Timer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| any::drive(bytes));
