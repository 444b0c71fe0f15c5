//! Accesses of a block without any effect, to time them.
//!
//! *Read first*: the block's manual, on the registers named in the `FACTS` of its module.
//!
//! A write that must change nothing is one of three kinds: zeros to a register in which a one does something (sets a pin,
//! disables or clears an interrupt), a masked write whose mask has no pin, or what was read from the same register before.

/// A register's name in the manual and its offset in bytes.
type At = (&'static str, u32);

/// A read and a write of a block that have no effect while the block is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harmless {
    /// A register that may be read at any time: its name in the manual, and its offset in bytes.
    pub read: (&'static str, u32),
    /// The register to write.
    pub write: (&'static str, u32),
    /// What is written there; `None` is what was read there.
    pub value: Option<u32>,
}

impl Harmless {
    /// A write of `value`.
    pub(super) const fn new(read: At, write: At, value: u32) -> Self {
        Self { read, write, value: Some(value) }
    }

    /// A write of what is read.
    pub(super) const fn rewriting(read: At, write: At) -> Self {
        Self { read, write, value: None }
    }
}
