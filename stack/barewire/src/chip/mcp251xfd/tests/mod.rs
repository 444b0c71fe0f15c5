//! Tests without a chip. The tests of the driver on the simulated chip are in `barewire-sim`.

mod any;
mod any_bytes;
mod pure;
mod setup;

use std::vec;

use super::*;
use crate::chip::testing::Clock;
use crate::spi::{Error as SpiError, MessageError, Transfer};

const AT_40_MHZ: Oscillator = Oscillator::new(40_000_000);

fn classic() -> Config {
    Config::classic(AT_40_MHZ, BitRate::new(250_000))
}

fn fd() -> Config {
    let data = BitRate::new(2_000_000).with_sample_point_permille(800);
    Config::fd(AT_40_MHZ, BitRate::new(500_000).with_sample_point_permille(800), data)
}

fn standard(raw: u16) -> StandardId {
    StandardId::new(raw).expect("11 bits")
}

fn extended(raw: u32) -> ExtendedId {
    ExtendedId::new(raw).expect("29 bits")
}
