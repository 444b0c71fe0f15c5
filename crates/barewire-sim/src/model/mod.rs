//! What stands behind the registers and on the wire, each written from its maker's manual.

pub mod atmel;
mod block;
pub mod echo;
pub mod ecspi;
pub mod gpio;
pub mod nor;
pub mod pl022;

pub use block::ControllerBlock;
