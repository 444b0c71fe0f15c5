#![doc = "placeholder"]
#![no_std]
#[cfg(test)]
extern crate std;
pub mod reg;
pub mod time;
