//! The chips that boards have behind their chip selects: a row's type, and how a board attaches it.
//!
//! # How it works
//! Each chip has a file: the type of its row ([`BoardChip`]), which the list `chips` of a
//! [`BoardSpec`](super::BoardSpec) holds, and the method of [`Board`](super::Board) that builds the
//! model and puts it behind the chip select. [`BoardSpec::chip`](super::BoardSpec::chip) finds a row
//! by its type.
//!
//! # Not supported
//! Two chips of one type on a board.

mod adc;
mod can;
mod flash;
mod touch;

use std::any::Any;
use std::fmt::Debug;

pub use adc::AdcSpec;
pub use can::CanSpec;
pub use flash::FlashSpec;
pub use touch::TouchSpec;

/// A chip on a board, as a row of [`BoardSpec::chips`](super::BoardSpec::chips).
pub trait BoardChip: Any + Debug + Sync {
    /// Its chip select.
    fn cs(&self) -> u8;
}
