//! Errors of the SMMUv3 driver.

use core::fmt;

use crate::address::PhysAddr;
use crate::format::{Granule, Stage};
use crate::tlbi::FlushError;

/// Why a call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SmmuError {
    /// A register did not reach the expected value in time.
    Timeout {
        /// Its offset.
        register: u32,
        /// The expected bits.
        expected: u32,
        /// The last value read.
        actual: u32,
    },
    /// The implementation lacks a feature that this driver needs.
    Unsupported(Unsupported),
    /// The pool has no memory of this size.
    OutOfMemory {
        /// Its size in bytes.
        bytes: usize,
    },
    /// A table of `1 << bits` entries is larger than any allocation of this processor.
    TableSize {
        /// The width of its StreamIDs or SubstreamIDs.
        bits: u8,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The StreamID is too large for the stream table or the SMMU.
    StreamId {
        /// The StreamID.
        sid: u32,
        /// The width of StreamIDs.
        bits: u8,
    },
    /// The SubstreamID is too large for the context table, or the table for SMMU_IDR1.SSIDSIZE.
    SubstreamId {
        /// The SubstreamID, or the last one of the table.
        ssid: u32,
        /// The width of SubstreamIDs.
        bits: u8,
    },
    /// The SMMU does not translate at this stage, or the table is for the other stage.
    Stage(Stage),
    /// The SMMU does not walk tables of this granule.
    Granule(Granule),
    /// The table's input addresses are wider than the SMMU's.
    InputBits {
        /// The width of the table's.
        asked: u8,
        /// The width of the SMMU's.
        has: u8,
    },
    /// The table's output addresses, or a pointer, are wider than the SMMU's, or the root's address than the
    /// table's output addresses.
    OutputBits {
        /// The width of that address.
        asked: u8,
        /// The width that there is.
        has: u8,
    },
    /// The table is for hardware that lets a block be replaced by a table ([`Config::bbml2`](crate::Config)),
    /// and SMMU_IDR3.BBML is not 2.
    Bbml2,
    /// The ASID or VMID is too large.
    Tag {
        /// The tag.
        tag: u16,
        /// The width the SMMU compares.
        bits: u8,
    },
    /// VMID 0 for a stage 2 table, on an SMMU that has stage 1 too: there 0 is the tag of stage 1's
    /// translations.
    VmidOfStage1,
    /// An address is no multiple of what the register's field can hold.
    Unaligned {
        /// The field, by the manual's name.
        field: &'static str,
        /// The address.
        at: PhysAddr,
        /// It must be a multiple of this many bytes: the size of what it leads to, at least 64.
        to: u64,
    },
    /// The only stream table, or the only reader of events, is in use.
    Taken,
    /// A configuration command did not complete.
    Flush(FlushError),
}

/// A missing feature, or one the implementation insists on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unsupported {
    /// SMMU_IDR0.TTF: no VMSAv8-64 tables.
    NoAarch64Tables,
    /// SMMU_IDR0.TTENDIAN: big-endian tables only.
    BigEndian,
    /// SMMU_IDR0.STALL_MODEL: every fault stalls, and this driver does not resume.
    StallForced,
    /// SMMU_IDR1.TABLES_PRESET or QUEUES_PRESET: tables or queues at fixed addresses.
    Preset,
    /// SMMU_IDR0.ST_LEVEL: no 2-level stream table.
    TwoLevelStreams,
    /// SMMU_IDR0.COHACC: it does not snoop the caches, and the pool says that it does
    /// ([`Pool::COHERENT`](crate::Pool::COHERENT)).
    Coherent,
}

impl fmt::Display for SmmuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Timeout { register, expected, actual } => write!(
                f,
                "the SMMU's register {register:#x} is {actual:#x} and has not become {expected:#x} in time: \
                 give it more patience, or look whether it is clocked"
            ),
            Self::Unsupported(what) => what.fmt(f),
            Self::OutOfMemory { bytes } => {
                write!(f, "the pool has no {bytes} bytes in one piece: make it larger")
            }
            Self::TableSize { bits, bytes } => write!(
                f,
                "a table for {bits} bits takes {bytes} bytes, more than this processor can address: \
                 use a 2-level stream table, or fewer bits"
            ),
            Self::StreamId { sid, bits } => {
                write!(
                    f,
                    "StreamID {sid:#x} has more than {bits} bits: ask for a larger stream table"
                )
            }
            Self::SubstreamId { ssid, bits } => {
                write!(f, "SubstreamID {ssid:#x} has more than {bits} bits")
            }
            Self::Stage(Stage::One) => f.write_str("no stage 1 here: use a stage 2 table"),
            Self::Stage(Stage::Two) => f.write_str("no stage 2 here: use a stage 1 table"),
            Self::Granule(granule) => {
                write!(f, "the SMMU has no {} KiB granule: use another", granule.bytes() >> 10)
            }
            Self::InputBits { asked, has } => {
                write!(f, "tables of {asked} input bits: the SMMU translates {has}")
            }
            Self::OutputBits { asked, has } => {
                write!(f, "{asked} bits of physical address: the SMMU, or its table, has {has}")
            }
            Self::Bbml2 => f.write_str(
                "the table splits blocks in place, and this SMMU's BBML is not 2: configure it without bbml2",
            ),
            Self::Tag { tag, bits } => {
                write!(f, "ASID or VMID {tag:#x}: the SMMU compares {bits} bits")
            }
            Self::VmidOfStage1 => f.write_str(
                "VMID 0 is the tag of stage 1's translations on this SMMU: give the stage 2 table another",
            ),
            Self::Unaligned { field, at, to } => {
                write!(f, "{field} {:#x} is no multiple of {to:#x}: align the table to its size", at.0)
            }
            Self::Taken => f.write_str("there is one of these to an SMMU, and it is taken"),
            Self::Flush(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAarch64Tables => "the SMMU walks no VMSAv8-64 tables",
            Self::BigEndian => "the SMMU walks big-endian tables only",
            Self::StallForced => "the SMMU stalls every fault, which this driver never resumes",
            Self::Preset => "the SMMU's tables or queues are at fixed addresses",
            Self::TwoLevelStreams => "the SMMU has no 2-level stream table: use a linear one",
            Self::Coherent => {
                "the SMMU does not snoop the caches: use a pool that cleans them, whose COHERENT is false"
            }
        })
    }
}

impl core::error::Error for SmmuError {}

impl From<FlushError> for SmmuError {
    fn from(error: FlushError) -> Self {
        Self::Flush(error)
    }
}
