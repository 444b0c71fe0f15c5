//! Chip drivers: the stack's own, on a device that keeps its bus.
//!
//! How it works: a driver is used by one thread at a time, without the interpreter. Long operations are cut into
//! pieces, between which other threads run and Ctrl-C is honoured.

mod adc;
mod can;
mod flash;

pub(crate) use adc::Mcp3008;
pub(crate) use can::{CanFrame, Mcp251xFd};
pub(crate) use flash::Flash;
