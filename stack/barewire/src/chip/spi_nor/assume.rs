//! A user's facts about a chip whose own description is wrong, contradicts itself, or says nothing.

use super::address::{Enter, Exit};
use super::layout::Layout;

/// Facts that replace the chip's own description. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct Assume {
    /// The size in bytes.
    pub size: Option<u64>,
    /// The size of the blocks in bytes, where SFDP names several by one opcode. Each place is erased by this one
    /// or by a type with an opcode of its own.
    pub erase_size: Option<u32>,
    /// The layout of the protection bits.
    pub protection: Option<Layout>,
    /// The way into 4-byte mode and out of it.
    pub four_byte_mode: Option<(Enter, Exit)>,
}
