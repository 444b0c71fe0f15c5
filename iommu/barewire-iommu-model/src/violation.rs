//! What the judge reports.

use std::fmt;

use barewire_iommu::Context;

use crate::descriptor::Flaw;

/// Something that hardware would have punished, some day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A table was freed that is not allocated.
    FreeOfFreed {
        /// Which.
        table: u64,
    },
    /// Something was freed that never was a table, or not with these bytes.
    FreeOfUnknown {
        /// What.
        table: u64,
        /// How long it was said to be.
        bytes: usize,
    },
    /// An entry was read or written in a table that is freed.
    AccessToFreed {
        /// Which.
        table: u64,
    },
    /// An entry was read or written in what never was a table.
    AccessToUnknown {
        /// What.
        table: u64,
    },
    /// An entry beyond a table's end.
    OutOfTable {
        /// Which table.
        table: u64,
        /// Which entry.
        index: usize,
    },
    /// A table that a walker can reach was written by plain stores.
    Unpublished {
        /// Which.
        table: u64,
    },
    /// A table was freed that is hooked.
    FreedHooked {
        /// Which.
        table: u64,
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
    },
    /// A table was freed that walks may still go through: they are cached.
    FreedCached {
        /// Which.
        table: u64,
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
    },
    /// A walker was sent to memory that is no table.
    NoTable {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// Where to.
        table: u64,
    },
    /// A table is hooked in two places.
    HookedTwice {
        /// Which.
        table: u64,
        /// Where last.
        iova: u64,
    },
    /// A walker met an entry that nobody should have written.
    Malformed {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// Its level.
        level: u32,
        /// The entry.
        raw: u64,
        /// What is wrong with it.
        flaw: Flaw,
    },
    /// A live valid entry was replaced by another valid one: no break before make.
    Replaced {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// Its level.
        level: u32,
        /// What stood there.
        old: u64,
        /// What stands there.
        new: u64,
    },
    /// A translation was made while a TLB may hold another one for the same address: it was broken,
    /// but not invalidated, before.
    Conflict {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// What may be cached: its level, and the descriptor or the table's address.
        cached: (u32, u64),
        /// What was made.
        made: (u32, u64),
    },
    /// After some store a walker saw what is neither the old translation nor the new.
    Torn {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// The level of what it saw.
        level: u32,
        /// What it saw.
        raw: u64,
    },
    /// After some store a walker missed a translation that the operation does not concern.
    Lost {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
    },
    /// After the operation, a walk is not what it should be.
    Differs {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// Where it should lead.
        expected: Option<u64>,
        /// Where it leads.
        found: Option<u64>,
    },
    /// All is flushed, and a device still gets somewhere through a cached translation.
    Stale {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// The level of the cached entry.
        level: u32,
        /// The cached entry.
        raw: u64,
    },
    /// All is flushed, and walks may still go through a table that is not hooked there.
    StaleWalk {
        /// Whose.
        context: Context,
        /// Where.
        iova: u64,
        /// The table's level.
        level: u32,
        /// The table.
        table: u64,
    },
    /// A page was given back to its owner while the device can reach it.
    GivenBack {
        /// Whose.
        context: Context,
        /// Where the device reaches it.
        iova: u64,
    },
    /// A store was never cleaned to where a walker that does not snoop can see it.
    NotCleaned {
        /// The table.
        table: u64,
        /// The entry.
        index: usize,
    },
    /// An operation ended without a barrier after its last store: what a device is told next may
    /// overtake it.
    NoBarrier {
        /// Whose.
        context: Context,
    },
    /// A command that this hardware does not have, or no hardware.
    Command {
        /// Why.
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
