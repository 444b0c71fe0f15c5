//! Errors of a domain. Nothing is lost: an error hands back what the caller passed in.

use core::fmt;

use super::mapped::{Held, Mapped};
use crate::format::{ConfigError, Stage};
use crate::iova::ClaimError;
use crate::table::{MapError, UnmapError};
use crate::tlbi::Context;

/// Why a domain could not be created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DomainError {
    /// The table's configuration is not possible.
    Config(ConfigError),
    /// The tag does not fit the stage: stage 1 takes an ASID, stage 2 a VMID.
    Context {
        /// The table's stage.
        stage: Stage,
        /// The tag that was passed.
        context: Context,
    },
}

/// Why a mapping failed. Nothing is mapped then.
#[derive(Debug)]
#[non_exhaustive]
pub enum DomainMapError {
    /// The allocator has no gap of this many bytes.
    Exhausted(u64),
    /// The allocator refused the addresses that the caller asked for.
    Claim(ClaimError),
    /// The table refused the mapping.
    Table(MapError),
    /// The table failed half way, and then an invalidation failed too: of the mapped half, or of the
    /// empty tables that were to be freed for another attempt.
    Held {
        /// Why the table failed.
        error: MapError,
        /// The range and tables that still need invalidation.
        held: Held,
    },
}

/// Why a mapping was not unmapped, or is not known to be unmapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum DomainUnmapError {
    /// The mapping belongs to another domain.
    Foreign(Mapped),
    /// The table refused. The mapping is unchanged.
    Table {
        /// The mapping.
        mapped: Mapped,
        /// Why it refused.
        error: UnmapError,
    },
    /// The range is unmapped, but its invalidation failed: see [`Held`].
    Held(Held),
}

impl fmt::Display for DomainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Context { stage: Stage::One, context } => {
                write!(f, "a stage 1 domain is known by its ASID, not by {context:?}")
            }
            Self::Context { stage: Stage::Two, context } => {
                write!(f, "a stage 2 domain is known by its VMID, not by {context:?}")
            }
        }
    }
}

impl fmt::Display for DomainMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted(size) => write!(
                f,
                "no gap of {size:#x} bytes among the IOVAs: unmap something, flush what waits, or \
                 give the allocator a larger window"
            ),
            Self::Claim(error) => error.fmt(f),
            Self::Table(error) => error.fmt(f),
            Self::Held { error, held } => write!(f, "{error}; and {}", held.error()),
        }
    }
}

impl fmt::Display for DomainUnmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(mapped) => {
                write!(f, "the mapping at {} is another domain's: unmap it there", mapped.iova())
            }
            Self::Table { error, .. } => error.fmt(f),
            Self::Held(held) => write!(
                f,
                "{} is unmapped, but {}: its memory may still be reached; retry",
                held.range().start,
                held.error()
            ),
        }
    }
}

impl core::error::Error for DomainError {}
impl core::error::Error for DomainMapError {}
impl core::error::Error for DomainUnmapError {}

impl From<ConfigError> for DomainError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
