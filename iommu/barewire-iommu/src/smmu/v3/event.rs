//! The event queue: faults reported by the SMMU (IHI 0070, 7.2 and 7.3).
//!
//! # Ordering
//! 1. EVENTQ_PROD is read before the record: the SMMU writes a record before it moves PROD past it.
//! 2. The record is read before EVENTQ_CONS is written: the SMMU may overwrite what CONS releases.

use core::fmt;

use super::device::{Claim, Smmu};
use super::error::SmmuError;
use super::registers::{EVENTQ_CONS, EVENTQ_OVERFLOW, EVENTQ_PROD};
use crate::address::{Iova, PhysAddr};
use crate::format::Stage;
use crate::pool::Pool;
use crate::smmu::{Patience, Registers};
use crate::sync::atomic::{Ordering, fence};

/// Words of a record.
const WORDS: usize = 4;

/// The kind of an event, by the manual's names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// F_UUT: an unsupported upstream transaction.
    Uut,
    /// C_BAD_STREAMID: the StreamID is beyond the stream table.
    BadStreamId,
    /// F_STE_FETCH: the stream table cannot be read.
    SteFetch,
    /// C_BAD_STE: the stream's entry is invalid.
    BadSte,
    /// F_BAD_ATS_TREQ.
    BadAtsTreq,
    /// F_STREAM_DISABLED: the stream does not accept accesses with, or without, a SubstreamID.
    StreamDisabled,
    /// F_TRANSL_FORBIDDEN.
    TranslForbidden,
    /// C_BAD_SUBSTREAMID: the SubstreamID is beyond the context descriptors.
    BadSubstreamId,
    /// F_CD_FETCH: the context descriptor cannot be read.
    CdFetch,
    /// C_BAD_CD: the context descriptor is invalid.
    BadCd,
    /// F_WALK_EABT: a table cannot be read.
    WalkEabt,
    /// F_TRANSLATION: the address is not mapped.
    Translation,
    /// F_ADDR_SIZE: an address is too wide.
    AddrSize,
    /// F_ACCESS: the access flag is clear.
    Access,
    /// F_PERMISSION: the access is not permitted.
    Permission,
    /// F_TLB_CONFLICT: the TLB holds two translations for one address.
    TlbConflict,
    /// F_CFG_CONFLICT: the SMMU holds two entries for one stream.
    CfgConflict,
    /// E_PAGE_REQUEST.
    PageRequest,
    /// F_VMS_FETCH.
    VmsFetch,
    /// Another event number.
    Other(u8),
}

impl EventKind {
    const fn from_number(number: u8) -> Self {
        match number {
            0x01 => Self::Uut,
            0x02 => Self::BadStreamId,
            0x03 => Self::SteFetch,
            0x04 => Self::BadSte,
            0x05 => Self::BadAtsTreq,
            0x06 => Self::StreamDisabled,
            0x07 => Self::TranslForbidden,
            0x08 => Self::BadSubstreamId,
            0x09 => Self::CdFetch,
            0x0a => Self::BadCd,
            0x0b => Self::WalkEabt,
            0x10 => Self::Translation,
            0x11 => Self::AddrSize,
            0x12 => Self::Access,
            0x13 => Self::Permission,
            0x20 => Self::TlbConflict,
            0x21 => Self::CfgConflict,
            0x24 => Self::PageRequest,
            0x25 => Self::VmsFetch,
            other => Self::Other(other),
        }
    }

    /// The manual's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uut => "F_UUT",
            Self::BadStreamId => "C_BAD_STREAMID",
            Self::SteFetch => "F_STE_FETCH",
            Self::BadSte => "C_BAD_STE",
            Self::BadAtsTreq => "F_BAD_ATS_TREQ",
            Self::StreamDisabled => "F_STREAM_DISABLED",
            Self::TranslForbidden => "F_TRANSL_FORBIDDEN",
            Self::BadSubstreamId => "C_BAD_SUBSTREAMID",
            Self::CdFetch => "F_CD_FETCH",
            Self::BadCd => "C_BAD_CD",
            Self::WalkEabt => "F_WALK_EABT",
            Self::Translation => "F_TRANSLATION",
            Self::AddrSize => "F_ADDR_SIZE",
            Self::Access => "F_ACCESS",
            Self::Permission => "F_PERMISSION",
            Self::TlbConflict => "F_TLB_CONFLICT",
            Self::CfgConflict => "F_CFG_CONFLICT",
            Self::PageRequest => "E_PAGE_REQUEST",
            Self::VmsFetch => "F_VMS_FETCH",
            Self::Other(_) => "an event this driver does not know",
        }
    }

    /// Whether the record has stage, IPA and class: it is a fault of a walk.
    const fn is_walk(self) -> bool {
        matches!(
            self,
            Self::WalkEabt | Self::Translation | Self::AddrSize | Self::Access | Self::Permission
        )
    }

    /// Whether the record has the access's address and direction.
    const fn has_address(self) -> bool {
        self.is_walk()
            || matches!(
                self,
                Self::Uut | Self::BadAtsTreq | Self::TranslForbidden | Self::TlbConflict
            )
    }
}

/// The operation that faulted: CLASS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventClass {
    /// The fetch of a context descriptor.
    Cd,
    /// The fetch of a stage 1 descriptor.
    Ttd,
    /// The translation of the access itself.
    In,
}

/// A record of the event queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The stream of the access.
    pub sid: u32,
    /// The SubstreamID of the access.
    pub ssid: Option<u32>,
    /// The address of the access, if the record has it.
    pub iova: Option<Iova>,
    /// Whether it was a write, if the record has it.
    pub is_write: Option<bool>,
    /// The stage that faulted, in faults of a walk.
    pub stage: Option<Stage>,
    /// The operation that faulted, in faults of a walk.
    pub class: Option<EventClass>,
    /// The address that stage 2 could not translate; its lower 12 bits are 0.
    pub ipa: Option<PhysAddr>,
    /// The address that could not be read (F_STE_FETCH, F_CD_FETCH, F_WALK_EABT, F_VMS_FETCH).
    pub fetch: Option<PhysAddr>,
    /// The raw record.
    pub record: [u64; 4],
}

impl Event {
    /// Decodes a record.
    pub fn decode(record: [u64; 4]) -> Self {
        let [word0, word1, word2, word3] = record;
        let kind = EventKind::from_number(word0 as u8);
        let bit = |word: u64, bit: u32| word >> bit & 1 != 0;
        let is_walk = kind.is_walk();
        let at_stage2 = is_walk && bit(word1, 39);
        let is_fetch = matches!(
            kind,
            EventKind::SteFetch | EventKind::CdFetch | EventKind::WalkEabt | EventKind::VmsFetch
        );
        let class = match word1 >> 40 & 0b11 {
            0b00 => Some(EventClass::Cd),
            0b01 => Some(EventClass::Ttd),
            0b10 => Some(EventClass::In),
            _ => None,
        };
        Self {
            kind,
            sid: (word0 >> 32) as u32,
            ssid: bit(word0, 11).then_some((word0 >> 12) as u32 & 0xf_ffff),
            iova: kind.has_address().then_some(Iova(word2)),
            is_write: kind.has_address().then_some(!bit(word1, 35)),
            stage: is_walk.then_some(if at_stage2 { Stage::Two } else { Stage::One }),
            class: class.filter(|_| is_walk),
            // The fourth word is an IPA or, if a fetch failed, the address of the fetch.
            ipa: (at_stage2 && !is_fetch).then_some(PhysAddr(word3 & 0x00ff_ffff_ffff_f000)),
            fetch: is_fetch.then_some(PhysAddr(word3 & 0x00ff_ffff_ffff_fff8)),
            record,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: stream {:#x}", self.kind.name(), self.sid)?;
        if let EventKind::Other(number) = self.kind {
            write!(f, ", number {number:#x}")?;
        }
        if let Some(ssid) = self.ssid {
            write!(f, ", substream {ssid:#x}")?;
        }
        if let (Some(iova), Some(is_write)) = (self.iova, self.is_write) {
            write!(f, ", {} of {iova}", if is_write { "write" } else { "read" })?;
        }
        match self.stage {
            Some(Stage::One) => f.write_str(", at stage 1")?,
            Some(Stage::Two) => f.write_str(", at stage 2")?,
            None => {}
        }
        if let Some(ipa) = self.ipa {
            write!(f, ", IPA {ipa}")?;
        }
        if let Some(fetch) = self.fetch {
            write!(f, ", reading {fetch}")?;
        }
        Ok(())
    }
}

impl<'p, R: Registers, P: Pool, W: Patience> Smmu<'p, R, P, W> {
    /// The reader of faults that the SMMU reports. There is one reader at a time.
    ///
    /// # Errors
    /// [`SmmuError::Taken`].
    pub fn events(&self) -> Result<EventQueue<'_, 'p, R, P, W>, SmmuError> {
        self.claim(Claim::Events)?;
        Ok(EventQueue::new(self))
    }
}

/// Reads the events that the SMMU recorded. After it is dropped, another can be made, which
/// continues at the same place.
///
/// On an SMMU that does not snoop, [`Pool::clean`] must clean and also invalidate (DC CIVAC), since
/// the SMMU writes the records.
pub struct EventQueue<'s, 'p, R: Registers, P: Pool, W: Patience> {
    smmu: &'s Smmu<'p, R, P, W>,
    /// The last value written to EVENTQ_CONS.
    cons: u32,
    /// How many times events were lost because the queue was full.
    overflows: u32,
}

impl<'s, 'p, R: Registers, P: Pool, W: Patience> EventQueue<'s, 'p, R, P, W> {
    pub(super) fn new(smmu: &'s Smmu<'p, R, P, W>) -> Self {
        Self { smmu, cons: smmu.registers().read32(EVENTQ_CONS), overflows: 0 }
    }

    /// Returns the oldest unread event.
    pub fn pop(&mut self) -> Option<Event> {
        let (memory, log2) = self.smmu.event_memory();
        let registers = self.smmu.registers();
        let prod = registers.read32(EVENTQ_PROD);
        // Ordering 1: PROD was read before the records.
        fence(Ordering::Acquire);
        let wrap_and_index = (2 << log2) - 1;
        let is_empty = (prod ^ self.cons) & wrap_and_index == 0;
        let overflow = prod & EVENTQ_OVERFLOW;
        let is_overflow = overflow != self.cons & EVENTQ_OVERFLOW;
        if is_overflow {
            self.overflows = self.overflows.saturating_add(1);
        }
        let event = (!is_empty).then(|| {
            let first = (self.cons & ((1 << log2) - 1)) as usize * WORDS;
            memory.clean(first..first + WORDS);
            if !P::COHERENT {
                // The clean is complete after a barrier, and before that the caches may have the old record.
                self.smmu.pool().barrier();
            }
            Event::decode(core::array::from_fn(|word| memory.load_any(first + word)))
        });
        if event.is_some() || is_overflow {
            let index = self.cons.wrapping_add(event.is_some().into()) & wrap_and_index;
            self.cons = index | overflow;
            // Ordering 2: the records are read before CONS is written.
            self.smmu.pool().barrier();
            registers.write32(EVENTQ_CONS, self.cons);
        }
        event
    }

    /// How many times events were lost because the queue was full, since the last call.
    pub fn take_overflows(&mut self) -> u32 {
        core::mem::take(&mut self.overflows)
    }
}

impl<R: Registers, P: Pool, W: Patience> Drop for EventQueue<'_, '_, R, P, W> {
    fn drop(&mut self) {
        self.smmu.release(Claim::Events);
    }
}

impl<R: Registers, P: Pool, W: Patience> fmt::Debug for EventQueue<'_, '_, R, P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventQueue")
            .field("cons", &self.cons)
            .field("overflows", &self.overflows)
            .finish_non_exhaustive()
    }
}
