//! The i.MX GPIO block.
//!
//! Read first: i.MX 6Dual/6Quad reference manual, chapter GPIO (memory map; DR and GDIR); the
//! block is the same in i.MX 7 and i.MX 8M. A bank has 32 pins. The module of [`DataRegister`] tells
//! what an edge costs, and what happens beside Linux, whose driver is `gpio-mxc`.
//!
//! # Not supported
//! i.MX RT's DR_SET and DR_CLEAR.

use super::DataRegister;

const DR: u32 = 0x00;
const GDIR: u32 = 0x04;

/// One bank of the i.MX GPIO block.
///
/// One data register for all pins: see [`Ownership`](super::Ownership). Under Linux, `gpio-mxc` writes
/// the whole register with values that it keeps in memory. If it writes another pin of the bank, a pin
/// that was changed here returns to its old level.
pub type ImxGpio<R> = DataRegister<R, DR, GDIR>;
