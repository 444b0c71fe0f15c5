//! Tests of the operations.
#![allow(unsafe_code, reason = "no hardware walks here")]

mod against_map;
mod blocks;
mod errors;
mod lists;
mod pages;
mod parts;
mod protect;
mod runs;
mod undo;
mod whole;

use super::Part;
use crate::gather::Gather;
use crate::pool::Pool;

/// Returns unhooked tables to the pool.
fn release<P: Pool>(part: &Part<'_, P>, gather: &mut Gather) {
    // SAFETY: no hardware walks here.
    unsafe { part.release(gather) };
}
