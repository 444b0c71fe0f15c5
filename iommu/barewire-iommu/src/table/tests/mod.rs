//! The operations against what they are for.
#![allow(unsafe_code, reason = "no hardware walks here")]

mod against_map;
mod blocks;
mod errors;
mod undo;

use super::PageTable;
use crate::gather::Gather;
use crate::pool::Pool;

/// Gives unhooked tables back.
fn release<P: Pool>(table: &PageTable<P>, gather: &mut Gather) {
    // SAFETY: no walker is there.
    unsafe { table.release(gather) };
}
