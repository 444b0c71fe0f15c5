//! The operations against what they are for.

mod against_map;
mod blocks;
mod errors;
mod undo;
