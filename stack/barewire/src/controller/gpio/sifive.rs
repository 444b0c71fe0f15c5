//! SiFive's GPIO block, of the FU540-C000, the FU740-C000 and the FE310.
//!
//! Read first: SiFive, *SiFive FU540-C000 Manual*, chapter "General Purpose Input/Output Controller
//! (GPIO)" (memory map; `output_en` and `output_val`). A bank has 16 pins, 32 in the FE310. The module
//! of [`DataRegister`] tells what an edge costs, and what happens beside Linux, whose driver is
//! `gpio-sifive`.
//!
//! # Not supported
//! Pins that `out_xor` inverts: it is 0 after a reset. Setting `iof_en` of the FE310, which gives pins
//! to other blocks.

use super::DataRegister;

/// Output pin enable.
const OUTPUT_EN: u32 = 0x08;
/// Output value.
const OUTPUT_VAL: u32 = 0x0c;

/// SiFive's GPIO block.
///
/// One data register for all pins: see [`Ownership`](super::Ownership). Under Linux, `gpio-sifive`
/// writes the whole register with values that it keeps in memory, as described at
/// [`ImxGpio`](super::ImxGpio).
pub type SiFiveGpio<R> = DataRegister<R, OUTPUT_VAL, OUTPUT_EN>;
