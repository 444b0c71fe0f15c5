//! Why a domain did not do it. Nothing is lost: what was given comes back in the error.

use core::fmt;

use super::mapped::{Held, Mapped};
use crate::format::{ConfigError, Stage};
use crate::iova::ClaimError;
use crate::table::{MapError, UnmapError};
use crate::tlbi::Context;

/// Why there is no such domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum DomainError {
    /// There is no such table.
    Config(ConfigError),
    /// Stage 1 is tagged with an ASID, stage 2 with a VMID.
    Context {
        /// The table's stage.
        stage: Stage,
        /// The tag that was to be its.
        context: Context,
    },
}

/// Why nothing was mapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum DomainMapError {
    /// The allocator has no gap of this many bytes.
    Exhausted(u64),
    /// The allocator did not give the addresses asked for.
    Claim(ClaimError),
    /// The table refused.
    Table(MapError),
    /// The table failed half way, and the invalidation of what it had mapped failed too.
    Held {
        /// Why it failed half way.
        error: MapError,
        /// What is to be invalidated.
        held: Held,
    },
}

/// Why a mapping was not unmapped, or is not known to be.
#[derive(Debug)]
#[non_exhaustive]
pub enum DomainUnmapError {
    /// It is another domain's.
    Foreign(Mapped),
    /// The table refused: it is mapped as before.
    Table {
        /// The mapping.
        mapped: Mapped,
        /// Why.
        error: UnmapError,
    },
    /// It is unmapped, but its invalidation failed: see [`Held`].
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
