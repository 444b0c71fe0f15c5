//! The stream table: what happens to each device's accesses (IHI 0070, 3.3.1, 5.1 and 5.2).
//!
//! # Ordering
//! [`StreamTable::set`] changes an entry that the SMMU may be reading, in the steps of `entry`. When it
//! returns Ok, no access uses the old entry any more. The TLB keeps translations of the old entry's
//! tables under their ASID or VMID; the owner of those tables invalidates them.
//! 1. Without a gap: at any time the entry is the old one or the new one, for these changes:
//!    - from or to [`Stream::Abort`] and [`Stream::Bypass`], whatever the other is;
//!    - from stage 1 to stage 1, to other context descriptors;
//!    - from stage 2 to stage 2, if the root stays, or root alone changes.
//! 2. Through V = 0: accesses in between are aborted, with C_BAD_STE, for these changes:
//!    - between stage 1 and stage 2, since stage 1 uses S2VMID too, with 0;
//!    - from stage 2 to stage 2, if root and VMID, or root and shape, change.
//! 3. On a processor without 64-bit atomics, every change goes through V = 0.
//!
//! In a 2-level table, a second-level table is linked when its first stream is set, after all its
//! entries were written.

use core::fmt;

use super::command::Command;
use super::context_descriptor::ContextTable;
use super::device::{Claim, Smmu};
use super::entry::{self, Entry, Kind, WORDS};
use super::error::{SmmuError, Unsupported};
use super::features::{Features, check_address, granule_code, physical_size, walk_attributes};
use super::invalidate::STAGE1_VMID;
use super::registers::{
    CR0_SMMUEN, STRTAB_BASE, STRTAB_BASE_CFG, STRTAB_BASE_CFG_FMT_2LEVEL,
    STRTAB_BASE_CFG_SPLIT_SHIFT, STRTAB_BASE_RA,
};
use crate::address::PhysAddr;
use crate::format::{Geometry, Granule, Stage};
use crate::pool::Pool;
use crate::smmu::memory::{Links, Memory};
use crate::smmu::{Patience, Registers};

const V: u64 = 1;
const CONFIG: u64 = 0b111 << 1;
/// Config: all accesses are aborted.
const CONFIG_ABORT: u64 = 0b000 << 1;
const CONFIG_BYPASS: u64 = 0b100 << 1;
const CONFIG_S1: u64 = 0b101 << 1;
const CONFIG_S2: u64 = 0b110 << 1;
const S1CDMAX_SHIFT: u32 = 59;
/// S1DSS: accesses without SubstreamID use descriptor 0.
const S1DSS_SSID0: u64 = 0b10;
/// S1CIR, S1COR and S1CSH, as IR, OR and SH.
const S1_ATTRIBUTES_SHIFT: u32 = 2;
/// No stalls, even if the context descriptor asks for them.
const S1STALLD: u64 = 1 << 27;
/// SHCFG: the shareability of the incoming access is used.
const SHCFG_INCOMING: u64 = 0b01 << 44;
const S2T0SZ_SHIFT: u32 = 32;
const S2SL0_SHIFT: u32 = 38;
/// S2IR0, S2OR0 and S2SH0.
const S2_ATTRIBUTES_SHIFT: u32 = 40;
const S2TG_SHIFT: u32 = 46;
const S2PS_SHIFT: u32 = 48;
const S2AA64: u64 = 1 << 51;
/// Descriptors without access flag do not fault.
const S2AFFD: u64 = 1 << 53;
/// Faults are recorded.
const S2R: u64 = 1 << 58;
const S2VMID: u64 = 0xffff;

/// The fields of the second word that only stage 1 has: S1DSS, S1CIR, S1COR, S1CSH, S1STALLD.
const S1_FIELDS: u64 = 0xff | S1STALLD;

const KIND: Kind = Kind { valid: V, used };

/// The fields that have a meaning. S2VMID is also the tag of stage 1's translations.
fn used(words: &Entry) -> Entry {
    let plain = V | CONFIG;
    if words[0] & V == 0 {
        return [V, 0, 0, 0, 0, 0, 0, 0];
    }
    match words[0] & CONFIG {
        CONFIG_ABORT => [plain, 0, 0, 0, 0, 0, 0, 0],
        CONFIG_BYPASS => [plain, !S1_FIELDS, 0, 0, 0, 0, 0, 0],
        CONFIG_S1 => [!0, !0, S2VMID, 0, 0, 0, 0, 0],
        CONFIG_S2 => [plain, !S1_FIELDS, !0, !0, 0, 0, 0, 0],
        // Not written by this driver.
        _ => [!0; WORDS],
    }
}

/// The layout of a stream table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamLayout {
    /// One table of `1 << sid_bits` entries, 64 bytes each.
    Linear {
        /// The width of the StreamIDs.
        sid_bits: u8,
    },
    /// A table of pointers to tables of `1 << split` entries: with 8, one per PCI bus of 256
    /// devices. Only second-level tables with a stream in use are allocated.
    TwoLevel {
        /// The width of the StreamIDs.
        sid_bits: u8,
        /// 6, 8 or 10.
        split: u8,
    },
}

/// What happens to a stream's accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// They are aborted and not reported.
    Abort,
    /// They pass untranslated.
    Bypass,
    /// Stage 1, with the context descriptors of [`ContextTable::stream`]. Its translations have
    /// VMID 0.
    Stage1 {
        /// STE.S1ContextPtr. A multiple of the size of the descriptors, 64 bytes each.
        contexts: PhysAddr,
        /// STE.S1CDMax.
        substream_bits: u8,
    },
    /// Stage 2.
    Stage2 {
        /// The table's shape.
        geometry: Geometry,
        /// Its root: S2TTB. A multiple of [`Geometry::root_bytes`], and of 64.
        root: PhysAddr,
        /// The tag of its translations. Every table needs its own. VMID 0 is stage 1's: an SMMU that
        /// has stage 1 takes it for no stage 2 table ([`SmmuError::VmidOfStage1`]).
        vmid: u16,
    },
}

impl<R: Registers, P: Pool, W: Patience> ContextTable<'_, '_, R, P, W> {
    /// The value that makes a stream use this table.
    pub fn stream(&self) -> Stream {
        Stream::Stage1 { contexts: self.at(), substream_bits: self.substream_bits() }
    }
}

impl Stream {
    /// Encodes the entry.
    pub(super) fn words(&self, features: &Features) -> Result<Entry, SmmuError> {
        let mut words = [0; WORDS];
        let config = match *self {
            Self::Abort => CONFIG_ABORT,
            Self::Bypass => {
                words[1] = SHCFG_INCOMING;
                CONFIG_BYPASS
            }
            Self::Stage1 { contexts, substream_bits } => {
                if !features.stage1 {
                    return Err(SmmuError::Stage(Stage::One));
                }
                if substream_bits > features.substream_bits {
                    let ssid = (1u32 << substream_bits.min(31)) - 1;
                    return Err(SmmuError::SubstreamId { ssid, bits: features.substream_bits });
                }
                let bytes = (8 * WORDS as u64) << substream_bits;
                check_address("STE.S1ContextPtr", contexts, bytes, features.output_bits)?;
                words[0] = contexts.0 | u64::from(substream_bits) << S1CDMAX_SHIFT;
                words[1] = S1DSS_SSID0
                    | walk_attributes(features.coherent) << S1_ATTRIBUTES_SHIFT
                    | if features.may_stall { S1STALLD } else { 0 }
                    | SHCFG_INCOMING;
                CONFIG_S1
            }
            Self::Stage2 { geometry, root, vmid } => {
                features.check(&geometry, Stage::Two)?;
                let (bytes, bits) = (geometry.root_bytes(), geometry.config().output_bits);
                check_address("STE.S2TTB", root, bytes as u64, bits)?;
                if vmid == STAGE1_VMID && features.stage1 {
                    return Err(SmmuError::VmidOfStage1);
                }
                if u32::from(vmid) >> features.vmid_bits != 0 {
                    return Err(SmmuError::Tag { tag: vmid, bits: features.vmid_bits });
                }
                words[1] = SHCFG_INCOMING;
                words[2] = stage2_word(&geometry, features.coherent) | u64::from(vmid);
                words[3] = root.0;
                CONFIG_S2
            }
        };
        words[0] |= config | V;
        Ok(words)
    }
}

/// The third word of a stage 2 entry, without VMID.
fn stage2_word(geometry: &Geometry, coherent: bool) -> u64 {
    let config = geometry.config();
    // S2SL0 counts from the deepest level the root may have: 2, or 3 with large granules.
    let deepest = if config.granule == Granule::Size4K { 2 } else { 3 };
    let sl0 = u64::from(deepest - geometry.start_level());
    (64 - u64::from(config.input_bits)) << S2T0SZ_SHIFT
        | sl0 << S2SL0_SHIFT
        | walk_attributes(coherent) << S2_ATTRIBUTES_SHIFT
        | granule_code(config.granule) << S2TG_SHIFT
        | physical_size(config.output_bits) << S2PS_SHIFT
        | S2AA64
        | S2AFFD
        | S2R
}

impl<'p, R: Registers, P: Pool, W: Patience> Smmu<'p, R, P, W> {
    /// The stream table, empty: all streams are aborted. There is one.
    ///
    /// # Errors
    /// [`SmmuError::Taken`], [`SmmuError::Unsupported`], [`SmmuError::StreamId`],
    /// [`SmmuError::TableSize`], [`SmmuError::OutOfMemory`].
    pub fn streams(&self, layout: StreamLayout) -> Result<StreamTable<'_, 'p, R, P, W>, SmmuError> {
        self.claim(Claim::Streams)?;
        let table = StreamTable::new(self, layout);
        if table.is_err() {
            self.release(Claim::Streams);
        }
        table
    }
}

/// The stream table of an SMMU.
///
/// Its memory is not freed when it is dropped, since the SMMU continues to use it: see
/// [`StreamTable::disable`].
pub struct StreamTable<'s, 'p, R: Registers, P: Pool, W: Patience> {
    smmu: &'s Smmu<'p, R, P, W>,
    entries: Entries<'p, P>,
    sid_bits: u8,
    /// Whether a call failed: the SMMU may still use an entry that is no longer in memory.
    is_unsettled: bool,
}

enum Entries<'p, P: Pool> {
    Linear(Memory<'p, P>),
    TwoLevel { tables: Links<'p, P>, split: u8 },
}

impl<'s, 'p, R: Registers, P: Pool, W: Patience> StreamTable<'s, 'p, R, P, W> {
    pub(super) fn new(
        smmu: &'s Smmu<'p, R, P, W>,
        layout: StreamLayout,
    ) -> Result<Self, SmmuError> {
        let bits = smmu.features().stream_bits;
        let pool = smmu.pool();
        let sid_bits = match layout {
            StreamLayout::Linear { sid_bits } | StreamLayout::TwoLevel { sid_bits, .. } => sid_bits,
        };
        if sid_bits > bits {
            return Err(SmmuError::StreamId { sid: u32::MAX >> (32 - sid_bits.min(32)), bits });
        }
        let (entries, at, format) = match layout {
            StreamLayout::Linear { .. } => {
                let bytes = entry::table_bytes(sid_bits)?;
                let memory = Memory::new(pool, bytes).ok_or(SmmuError::OutOfMemory { bytes })?;
                abort_all(&memory, 1 << sid_bits);
                let at = memory.at();
                (Entries::Linear(memory), at, 0)
            }
            StreamLayout::TwoLevel { split, .. } => {
                if !smmu.features().two_level_streams {
                    return Err(SmmuError::Unsupported(Unsupported::TwoLevelStreams));
                }
                // The three values the SMMU has.
                let split = match split {
                    0..=6 => 6,
                    7..=8 => 8,
                    _ => 10,
                };
                let links = 1 << sid_bits.saturating_sub(split);
                let tables = Links::new(pool, links, (WORDS * 8) << split)
                    .ok_or(SmmuError::OutOfMemory { bytes: 8 * links })?;
                let at = tables.at();
                let format =
                    STRTAB_BASE_CFG_FMT_2LEVEL | u32::from(split) << STRTAB_BASE_CFG_SPLIT_SHIFT;
                (Entries::TwoLevel { tables, split }, at, format)
            }
        };
        pool.barrier();
        smmu.registers().write64(STRTAB_BASE, at.0 | STRTAB_BASE_RA);
        smmu.registers().write32(STRTAB_BASE_CFG, format | u32::from(sid_bits));
        Ok(Self { smmu, entries, sid_bits, is_unsettled: false })
    }

    /// Enables translation by this table.
    ///
    /// # Errors
    /// [`SmmuError::Timeout`], [`SmmuError::Flush`].
    pub fn enable(&mut self) -> Result<(), SmmuError> {
        self.smmu.set_enabled(true)
    }

    /// Disables translation by this table and frees its memory. Accesses are then treated as
    /// [`Disabled`](super::Disabled) says.
    ///
    /// # Errors
    /// [`SmmuError::Timeout`]. The memory is then kept, since the SMMU may still use it.
    pub fn disable(self) -> Result<(), SmmuError> {
        self.smmu.set_enabled(false)?;
        let stopped = self.smmu.stopped(CR0_SMMUEN)?;
        match self.entries {
            Entries::Linear(memory) => memory.free(&stopped),
            Entries::TwoLevel { tables, .. } => tables.free(&stopped),
        }
        self.smmu.release(Claim::Streams);
        Ok(())
    }

    /// Sets what happens to a stream's accesses. Most changes are made without a gap: an access meets
    /// the old setting or the new one. Between stage 1 and stage 2, and between stage 2 tables with
    /// another VMID, accesses in between are aborted; to let them pass or be aborted silently instead,
    /// set [`Stream::Bypass`] or [`Stream::Abort`] first.
    ///
    /// # Errors
    /// [`SmmuError::StreamId`]; an error for a table the SMMU does not support;
    /// [`SmmuError::OutOfMemory`]; [`SmmuError::Flush`], after which it is unknown which entry the
    /// SMMU uses.
    pub fn set(&mut self, sid: u32, stream: &Stream) -> Result<(), SmmuError> {
        if u64::from(sid) >> self.sid_bits != 0 {
            return Err(SmmuError::StreamId { sid, bits: self.sid_bits });
        }
        let words = stream.words(self.smmu.features())?;
        if self.is_unsettled {
            self.smmu.run(&[Command::CFGI_ALL])?;
        }
        self.is_unsettled = true;
        self.write(sid, &words)?;
        self.is_unsettled = false;
        Ok(())
    }

    /// Replaces the entry of a stream, which is within the table.
    fn write(&mut self, sid: u32, words: &Entry) -> Result<(), SmmuError> {
        match &mut self.entries {
            Entries::Linear(memory) => write(self.smmu, memory, sid, sid, words),
            Entries::TwoLevel { tables, split } => {
                let link = (sid >> *split) as usize;
                if tables.get(link).is_none() {
                    let bytes = (WORDS * 8) << *split;
                    let table = Memory::new(self.smmu.pool(), bytes)
                        .ok_or(SmmuError::OutOfMemory { bytes })?;
                    abort_all(&table, 1 << *split);
                    self.smmu.pool().barrier();
                    // Span: the whole table.
                    tables.set(link, table, u64::from(*split) + 1);
                    agree(self.smmu, sid, false)?;
                }
                let table = tables.get(link).ok_or(SmmuError::OutOfMemory { bytes: 0 })?;
                write(self.smmu, &table, sid & ((1 << *split) - 1), sid, words)
            }
        }
    }
}

/// Sets all entries of a table that the SMMU cannot reach yet to abort.
fn abort_all<P: Pool>(table: &Memory<'_, P>, entries: usize) {
    for entry in 0..entries {
        table.store(entry * WORDS, CONFIG_ABORT | V);
    }
    table.clean(0..entries * WORDS);
}

/// Replaces entry `index` of `table`, which is that of stream `sid`.
fn write<R: Registers, P: Pool, W: Patience>(
    smmu: &Smmu<'_, R, P, W>,
    table: &Memory<'_, P>,
    index: u32,
    sid: u32,
    words: &Entry,
) -> Result<(), SmmuError> {
    let first = index as usize * WORDS;
    entry::replace(table, first, KIND, words, || {
        table.clean(first..first + WORDS);
        agree(smmu, sid, true)
    })
}

/// Makes the SMMU drop its cached copy; with `leaf`, of the stream's entry only.
fn agree<R: Registers, P: Pool, W: Patience>(
    smmu: &Smmu<'_, R, P, W>,
    sid: u32,
    leaf: bool,
) -> Result<(), SmmuError> {
    // The queue's own barrier comes after this.
    smmu.run(&[Command::cfgi_ste(sid, leaf)]).map_err(SmmuError::Flush)
}

impl<R: Registers, P: Pool, W: Patience> fmt::Debug for StreamTable<'_, '_, R, P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.entries {
            Entries::Linear(_) => "linear",
            Entries::TwoLevel { .. } => "2-level",
        };
        write!(f, "StreamTable({form}, {} bits)", self.sid_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;
    use crate::address::PhysAddr;
    use crate::format::{Config, Geometry, Granule, Stage};
    use crate::smmu::v3::features::tests::all;
    use crate::smmu::v3::{Features, SmmuError};

    fn stage2(granule: Granule, input_bits: u8, output_bits: u8) -> Stream {
        let config = Config { granule, stage: Stage::Two, input_bits, output_bits, bbml2: false };
        let geometry = Geometry::new(config).unwrap();
        let root = PhysAddr(0x45_6789_0000 & ((1 << output_bits) - 1));
        Stream::Stage2 { geometry, root, vmid: 0xcafe }
    }

    /// Encoded by hand from 5.2, field by field.
    #[test]
    fn words_are_the_manual_s() {
        let words = |stream: Stream| stream.words(&all()).unwrap();
        assert_eq!(words(Stream::Abort), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(words(Stream::Bypass), [9, 0x1000_0000_0000, 0, 0, 0, 0, 0, 0]);
        let contexts = PhysAddr(0x12_3456_7040);
        // S1CDMax, S1ContextPtr, Config 5, V | SHCFG 1, S1STALLD, S1CSH 3, S1COR 1, S1CIR 1, S1DSS 2.
        let one = words(Stream::Stage1 { contexts, substream_bits: 0 });
        assert_eq!(one, [0x12_3456_704b, 0x1000_0800_00d6, 0, 0, 0, 0, 0, 0]);
        let contexts = PhysAddr(0x12_3456_7800);
        let many = words(Stream::Stage1 { contexts, substream_bits: 5 });
        assert_eq!(many[0], 0x2800_0012_3456_780b);
        let contexts = PhysAddr(0x12_3456_7040);
        let plain = Features { may_stall: false, coherent: false, ..all() };
        let one = Stream::Stage1 { contexts, substream_bits: 0 }.words(&plain).unwrap();
        assert_eq!(one[1], 0x1000_0000_0082);
    }

    /// S2R, S2AFFD, S2AA64, S2PS, S2TG, S2SH0 S2OR0 S2IR0, S2SL0, S2T0SZ, then S2VMID.
    #[test]
    fn stage_2_words_are_the_manual_s() {
        let words = |stream: Stream| stream.words(&all()).unwrap();
        let four = words(stage2(Granule::Size4K, 48, 48));
        assert_eq!(four, [13, 0x1000_0000_0000, 0x042d_3590_0000_cafe, 0x45_6789_0000, 0, 0, 0, 0]);
        // 32 bits: level 2, four concatenated tables.
        assert_eq!(words(stage2(Granule::Size4K, 32, 40))[2], 0x042a_3520_0000_cafe);
        // 40 bits: level 1, two concatenated tables.
        assert_eq!(words(stage2(Granule::Size4K, 40, 40))[2], 0x042a_3558_0000_cafe);
        // 16K, 36 bits: level 2. 64K, 42 bits: level 2, which S2SL0 encodes as 1.
        assert_eq!(words(stage2(Granule::Size16K, 36, 36))[2], 0x0429_b55c_0000_cafe);
        assert_eq!(words(stage2(Granule::Size64K, 42, 42))[2], 0x042b_7556_0000_cafe);
    }

    #[test]
    fn what_the_smmu_does_not_have_is_refused() {
        let refused = |stream: Stream, features: Features| stream.words(&features).unwrap_err();
        let config = Config { stage: Stage::Two, input_bits: 40, ..Config::default() };
        let two = stage2(Granule::Size4K, 40, 40);
        let none = Features { stage1: false, stage2: false, ..all() };
        assert_eq!(refused(two, none), SmmuError::Stage(Stage::Two));
        let geometry = Geometry::new(Config { output_bits: 32, ..config }).unwrap();
        let far = Stream::Stage2 { geometry, root: PhysAddr(1 << 32), vmid: 7 };
        assert_eq!(refused(far, all()), SmmuError::OutputBits { asked: 33, has: 32 });
        let geometry = Geometry::new(Config { bbml2: true, ..config }).unwrap();
        let splits = Stream::Stage2 { geometry, root: PhysAddr(0), vmid: 7 };
        assert!(splits.words(&all()).is_ok());
        for bbm_level in [0, 1, 3] {
            let features = Features { bbm_level, ..all() };
            assert_eq!(refused(splits, features), SmmuError::Bbml2, "{bbm_level}");
        }
        let one = Stream::Stage1 { contexts: PhysAddr(64), substream_bits: 9 };
        assert_eq!(refused(one, none), SmmuError::Stage(Stage::One));
        assert_eq!(refused(one, all()), SmmuError::SubstreamId { ssid: 511, bits: 8 });
        let small = Features { vmid_bits: 8, ..all() };
        assert_eq!(refused(two, small), SmmuError::Tag { tag: 0xcafe, bits: 8 });
        let short = Features { output_bits: 36, ..all() };
        assert_eq!(refused(two, short), SmmuError::InputBits { asked: 40, has: 36 });
    }
}
