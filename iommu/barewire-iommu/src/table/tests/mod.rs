//! Tests of the operations.
#![allow(unsafe_code, reason = "no hardware walks here")]

mod against_map;
mod blocks;
mod errors;
mod pages;
mod runs;
mod undo;

use super::PageTable;
use crate::gather::Gather;
use crate::pool::Pool;

/// Returns unhooked tables to the pool.
fn release<P: Pool>(table: &PageTable<P>, gather: &mut Gather) {
    // SAFETY: no hardware walks here.
    unsafe { table.release(gather) };
}
