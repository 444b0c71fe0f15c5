//! Models of controllers, GPIO blocks and chips, each written from its vendor's manual.

pub mod adc;
pub mod atmel;
pub mod bcm2835;
mod block;
pub mod cadence;
pub mod can;
pub mod dw_ssi;
pub mod echo;
pub mod ecspi;
mod fifo;
pub mod gpio;
pub mod jumper;
pub mod max7219;
pub mod mcp2515;
pub mod mcp2518fd;
pub mod mcspi;
pub mod nor;
pub mod pl022;
#[cfg(test)]
mod rig;
mod shifter;
pub mod sifive;
pub mod signal;
pub mod ssd1306;
pub mod tsc2046;

#[cfg(test)]
pub(crate) use block::ByHand;
pub use block::{BlockOptions, ControllerBlock, ControllerKind, RegisterNames};
