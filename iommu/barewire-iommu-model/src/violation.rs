//! The reports of the judge.

use std::fmt;

use barewire_iommu::Context;

use crate::descriptor::Flaw;

/// A mistake that hardware may punish at some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A table was freed that is not allocated.
    FreeOfFreed {
        /// The table.
        table: u64,
    },
    /// Memory was freed that was never a table, or not one of this size.
    FreeOfUnknown {
        /// The address.
        table: u64,
        /// The size that was passed.
        bytes: usize,
    },
    /// An entry was read or written in a table that was freed.
    AccessToFreed {
        /// The table.
        table: u64,
    },
    /// An entry was read or written in memory that was never a table.
    AccessToUnknown {
        /// The address.
        table: u64,
    },
    /// An entry beyond the end of a table was read or written.
    OutOfTable {
        /// The table.
        table: u64,
        /// The index of the entry.
        index: usize,
    },
    /// A table that a walker can reach was written by plain stores.
    Unpublished {
        /// The table.
        table: u64,
    },
    /// A table was freed while an entry still leads to it.
    FreedHooked {
        /// The table.
        table: u64,
        /// The context.
        context: Context,
        /// The first IOVA it translates.
        iova: u64,
    },
    /// A table was freed while a TLB may still walk through it.
    FreedCached {
        /// The table.
        table: u64,
        /// The context.
        context: Context,
        /// The first IOVA it translates.
        iova: u64,
    },
    /// An entry leads to memory that is not a table.
    NoTable {
        /// The context.
        context: Context,
        /// The first IOVA of the entry.
        iova: u64,
        /// The address in the entry.
        table: u64,
    },
    /// Two entries lead to the same table.
    HookedTwice {
        /// The table.
        table: u64,
        /// The first IOVA of the second entry.
        iova: u64,
    },
    /// A walker read an entry that software should not have written.
    Malformed {
        /// The context.
        context: Context,
        /// The first IOVA of the entry.
        iova: u64,
        /// Its level.
        level: u32,
        /// The entry.
        raw: u64,
        /// The flaw.
        flaw: Flaw,
    },
    /// A live valid entry was replaced by another valid one without break-before-make.
    Replaced {
        /// The context.
        context: Context,
        /// The first IOVA of the entry.
        iova: u64,
        /// Its level.
        level: u32,
        /// The old entry.
        old: u64,
        /// The new entry.
        new: u64,
    },
    /// A translation was made while a TLB may hold another one for the same address: the old entry
    /// was cleared but not invalidated before.
    Conflict {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
        /// The entry that may be cached: its level, and the descriptor or the table's address.
        cached: (u32, u64),
        /// The new entry, in the same form.
        made: (u32, u64),
    },
    /// After some store a walker saw neither the old translation nor the new one.
    Torn {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
        /// The level of the entry it saw.
        level: u32,
        /// The entry it saw.
        raw: u64,
    },
    /// After some store a translation was missing that the operation does not change.
    Lost {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
    },
    /// After the operation a walk has the wrong result.
    Differs {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
        /// The expected output address.
        expected: Option<u64>,
        /// The actual output address.
        found: Option<u64>,
    },
    /// Everything is flushed, but a device still uses a cached translation.
    Stale {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
        /// The level of the cached entry.
        level: u32,
        /// The cached entry.
        raw: u64,
    },
    /// Everything is flushed, but walks may still go through a table that is not hooked there.
    StaleWalk {
        /// The context.
        context: Context,
        /// The first IOVA.
        iova: u64,
        /// The table's level.
        level: u32,
        /// The table.
        table: u64,
    },
    /// Pages with the Contiguous hint that are no group: not all 16 have it, or they lead elsewhere.
    Group {
        /// The context.
        context: Context,
        /// The first IOVA of the group.
        iova: u64,
    },
    /// A page was returned to its owner while the device can reach it.
    GivenBack {
        /// The context.
        context: Context,
        /// The IOVA at which the device reaches it.
        iova: u64,
    },
    /// A store was never cleaned, so a walker that does not snoop may not see it.
    NotCleaned {
        /// The table.
        table: u64,
        /// The entry.
        index: usize,
    },
    /// An operation ended without a barrier after its last store. A device that is started next may
    /// overtake the store.
    NoBarrier {
        /// The context.
        context: Context,
    },
    /// A command that this hardware, or any hardware, does not have.
    Command {
        /// The reason.
        why: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FreeOfFreed { table } => write!(f, "table {table:#x} was freed twice"),
            Self::FreeOfUnknown { table, bytes } => {
                write!(f, "{bytes} bytes at {table:#x} were freed and never allocated so")
            }
            Self::AccessToFreed { table } => write!(f, "table {table:#x} was used when free"),
            Self::AccessToUnknown { table } => write!(f, "{table:#x} was used and is no table"),
            Self::OutOfTable { table, index } => {
                write!(f, "entry {index} is beyond the end of table {table:#x}")
            }
            Self::Unpublished { table } => {
                write!(f, "table {table:#x} was filled by plain stores while walkers reach it")
            }
            Self::FreedHooked { table, context, iova } => {
                write!(f, "table {table:#x} was freed and is hooked at {iova:#x} of {context:?}")
            }
            Self::FreedCached { table, context, iova } => write!(
                f,
                "table {table:#x} was freed and walks of {iova:#x} of {context:?} may go through it"
            ),
            Self::NoTable { context, iova, table } => {
                write!(f, "the walk of {iova:#x} of {context:?} leads to {table:#x}, no table")
            }
            Self::HookedTwice { table, iova } => {
                write!(f, "table {table:#x} is hooked at {iova:#x} and elsewhere")
            }
            Self::Malformed { context, iova, level, raw, flaw } => {
                write!(f, "level {level} at {iova:#x} of {context:?} holds {raw:#x}: {flaw:?}")
            }
            Self::Replaced { context, iova, level, old, new } => write!(
                f,
                "level {level} at {iova:#x} of {context:?} went from {old:#x} to {new:#x} without \
                 a break"
            ),
            Self::Conflict { context, iova, cached, made } => write!(
                f,
                "at {iova:#x} of {context:?} level {} {:#x} was made while level {} {:#x} may be \
                 cached",
                made.0, made.1, cached.0, cached.1
            ),
            Self::Torn { context, iova, level, raw } => write!(
                f,
                "a walk of {iova:#x} of {context:?} saw {raw:#x} at level {level}: neither old nor \
                 new"
            ),
            Self::Lost { context, iova } => write!(
                f,
                "a walk of {iova:#x} of {context:?} faulted, whose translation should have stayed"
            ),
            Self::Differs { context, iova, expected, found } => write!(
                f,
                "{iova:#x} of {context:?} leads to {found:x?} and should lead to {expected:x?}"
            ),
            Self::Stale { context, iova, level, raw } => write!(
                f,
                "{iova:#x} of {context:?} still goes through {raw:#x}, cached from level {level}"
            ),
            Self::StaleWalk { context, iova, level, table } => write!(
                f,
                "walks of {iova:#x} of {context:?} may still go through table {table:#x} of level \
                 {level}, which is not hooked there"
            ),
            Self::Group { context, iova } => {
                write!(
                    f,
                    "the pages at {iova:#x} of {context:?} have the Contiguous hint, and are no group"
                )
            }
            Self::GivenBack { context, iova } => {
                write!(f, "a page was given back while {iova:#x} of {context:?} leads to it")
            }
            Self::NotCleaned { table, index } => {
                write!(f, "entry {index} of table {table:#x} was never cleaned")
            }
            Self::NoBarrier { context } => {
                write!(f, "an operation on {context:?} ended without a barrier after its stores")
            }
            Self::Command { why } => f.write_str(why),
        }
    }
}
