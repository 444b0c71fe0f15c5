//! The memory for the tables of a strategy, for all devices.
//!
//! # Safety
//! An arena borrows its memory.
#![allow(unsafe_code, reason = "an arena is promised its memory")]

use std::ptr::NonNull;

use barewire_iommu::{Arena, Link, PhysAddr};

use crate::shared::failure::Failure;

/// The tables' address as a walker sees it. Any address that is aligned for the largest root will
/// do.
pub(super) const BASE: u64 = 1 << 20;

/// The memory of an arena.
pub(super) struct Memory {
    words: Vec<u64>,
    links: Vec<Link>,
}

impl Memory {
    pub(super) fn new(tables: usize, table_bytes: usize) -> Self {
        let links = (0..tables).map(|_| Link::new()).collect();
        // Zeroes, which the system maps when they are used and not before.
        Self { words: vec![0; tables * table_bytes / 8], links }
    }

    pub(super) fn arena(&mut self, table_bytes: usize) -> Result<Arena<'_>, Failure> {
        let start = NonNull::from(&mut self.words[..]).cast();
        // SAFETY: as many bytes as links say, initialised, borrowed as long as the arena is.
        unsafe { Arena::new(start, PhysAddr(BASE), table_bytes, &self.links) }
            .map_err(|error| Failure::Usage(format!("{error} (--tables-mib)")))
    }
}
