//! The data types of SPI, without I/O: mode, device settings, transfer, error.

mod device;
mod error;
mod mode;
pub(crate) mod plan;
mod transfer;

pub use device::{Effective, Settings};
pub use error::{Error, MessageError};
pub use mode::{MODE_0, MODE_1, MODE_2, MODE_3, Mode};
pub(crate) use transfer::{Buffers, Direction};
pub use transfer::{Data, Transfer};
