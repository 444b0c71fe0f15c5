//! Context descriptors: the stage 1 table of a stream (IHI 0070, 5.4).
//!
//! # Ordering
//! [`ContextTable::set`] changes a descriptor that the SMMU may be reading, in the steps of `entry`.
//! 1. Without a gap: at any time the descriptor is the old one or the new one, if either is none, or
//!    if they differ in the root alone, or in anything but the root.
//! 2. Through V = 0: if root and anything else change, for example root and ASID, accesses in between
//!    are aborted, with C_BAD_CD.
//! 3. On a processor without 64-bit atomics, every change goes through V = 0.

use core::fmt;

use super::command::Command;
use super::device::Smmu;
use super::entry::{self, Kind, WORDS};
use super::error::SmmuError;
use super::features::{Features, check_address, granule_code, physical_size, walk_attributes};
use crate::address::PhysAddr;
use crate::format::{Attributes, Geometry, Stage};
use crate::pool::Pool;
use crate::smmu::memory::Memory;
use crate::smmu::{Patience, Registers};
use crate::tlbi::FlushError;

const V: u64 = 1 << 31;

/// All of a valid descriptor has a meaning.
const KIND: Kind = Kind {
    valid: V,
    used: |words| if words[0] & V == 0 { [V, 0, 0, 0, 0, 0, 0, 0] } else { [!0; WORDS] },
};

/// No walks for the upper half of the address space.
const EPD1: u64 = 1 << 30;
/// Descriptors without access flag do not fault: this crate does not use the flag.
const AFFD: u64 = 1 << 35;
const AA64: u64 = 1 << 41;
/// Faults are recorded.
const R: u64 = 1 << 45;
/// Faulting accesses are aborted, not read as zero.
const A: u64 = 1 << 46;
/// The CPUs' broadcast invalidations by ASID do not affect the entries.
const ASET: u64 = 1 << 47;

/// A stage 1 table, and the tag of its translations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextDescriptor {
    /// The table's shape.
    pub geometry: Geometry,
    /// Its root: TTB0. A multiple of [`Geometry::root_bytes`], and of 64.
    pub root: PhysAddr,
    /// The tag of its translations. Every table needs its own.
    pub asid: u16,
}

impl ContextDescriptor {
    /// Encodes the descriptor.
    ///
    /// # Errors
    /// The SMMU does not support the table.
    pub(super) fn words(&self, features: &Features) -> Result<[u64; WORDS], SmmuError> {
        features.check(&self.geometry, Stage::One)?;
        let (bytes, bits) = (self.geometry.root_bytes(), self.geometry.config().output_bits);
        check_address("CD.TTB0", self.root, bytes as u64, bits)?;
        if u32::from(self.asid) >> features.asid_bits != 0 {
            return Err(SmmuError::Tag { tag: self.asid, bits: features.asid_bits });
        }
        let config = self.geometry.config();
        let t0sz = 64 - u64::from(config.input_bits);
        let word0 = t0sz
            | granule_code(config.granule) << 6
            | walk_attributes(features.coherent) << 8
            | EPD1
            | V
            | physical_size(config.output_bits) << 32
            | AFFD
            | AA64
            | R
            | A
            | ASET
            | u64::from(self.asid) << 48;
        Ok([word0, self.root.0, 0, Attributes::MAIR, 0, 0, 0, 0])
    }
}

/// The context descriptors of a stream: one, or one per SubstreamID.
///
/// Its memory is not freed when it is dropped, since streams may still point there.
pub struct ContextTable<'s, 'p, R: Registers, P: Pool, W: Patience> {
    smmu: &'s Smmu<'p, R, P, W>,
    memory: Memory<'p, P>,
    log2: u8,
    /// Whether a call failed: the SMMU may still use a descriptor that is no longer in memory.
    is_unsettled: bool,
}

impl<'p, R: Registers, P: Pool, W: Patience> Smmu<'p, R, P, W> {
    /// Creates an empty table of `1 << substream_bits` context descriptors. Use 0 for streams
    /// without SubstreamIDs. In a larger table, accesses without a SubstreamID use descriptor 0.
    ///
    /// # Errors
    /// [`SmmuError::Stage`], [`SmmuError::SubstreamId`], [`SmmuError::TableSize`],
    /// [`SmmuError::OutOfMemory`].
    pub fn contexts(&self, substream_bits: u8) -> Result<ContextTable<'_, 'p, R, P, W>, SmmuError> {
        if !self.features().stage1 {
            return Err(SmmuError::Stage(Stage::One));
        }
        if substream_bits > self.features().substream_bits {
            let ssid = (1u32 << substream_bits.min(31)) - 1;
            return Err(SmmuError::SubstreamId { ssid, bits: self.features().substream_bits });
        }
        let bytes = entry::table_bytes(substream_bits)?;
        let memory = Memory::new(self.pool(), bytes).ok_or(SmmuError::OutOfMemory { bytes })?;
        Ok(ContextTable { smmu: self, memory, log2: substream_bits, is_unsettled: false })
    }
}

impl<R: Registers, P: Pool, W: Patience> ContextTable<'_, '_, R, P, W> {
    /// The address, for STE.S1ContextPtr.
    pub fn at(&self) -> PhysAddr {
        self.memory.at()
    }

    /// log2 of the number of descriptors, for STE.S1CDMax.
    pub fn substream_bits(&self) -> u8 {
        self.log2
    }

    /// Sets or removes the descriptor of a SubstreamID (0 if there are none). `streams` lists the
    /// streams that use the table already.
    ///
    /// If only the root changes, or only ASID and shape, accesses never see an invalid descriptor;
    /// otherwise those in between are aborted. To change the root alone, keep the ASID and invalidate
    /// it afterwards: until then the SMMU may use translations of either table.
    ///
    /// Translations cached under the old table's ASID stay. Invalidate that ASID before it is used
    /// again.
    ///
    /// # Errors
    /// [`SmmuError::SubstreamId`]; an error for a table the SMMU does not support;
    /// [`SmmuError::Flush`], after which it is unknown which descriptor the SMMU uses.
    pub fn set(
        &mut self,
        ssid: u32,
        descriptor: Option<&ContextDescriptor>,
        streams: &[u32],
    ) -> Result<(), SmmuError> {
        if ssid >> self.log2 != 0 {
            return Err(SmmuError::SubstreamId { ssid, bits: self.log2 });
        }
        let first = ssid as usize * WORDS;
        let new = match descriptor {
            Some(descriptor) => descriptor.words(self.smmu.features())?,
            // The other fields stay: without V they have no meaning.
            None => core::array::from_fn(|word| {
                let word_now = self.memory.load(first + word);
                if word == 0 { word_now & !V } else { word_now }
            }),
        };
        if self.is_unsettled {
            self.smmu.run(&[Command::CFGI_ALL])?;
        }
        self.is_unsettled = true;
        entry::replace(&self.memory, first, KIND, &new, || self.agree(ssid, streams))?;
        self.is_unsettled = false;
        Ok(())
    }

    /// Makes the SMMU drop its cached copy.
    fn agree(&self, ssid: u32, streams: &[u32]) -> Result<(), FlushError> {
        let first = ssid as usize * WORDS;
        self.memory.clean(first..first + WORDS);
        self.smmu.pool().barrier();
        if streams.is_empty() {
            return Ok(());
        }
        let commands = streams.iter().map(|&sid| Command::cfgi_cd(sid, ssid, true));
        self.smmu.run_counted(streams.len() as u64, commands)
    }
}

impl<R: Registers, P: Pool, W: Patience> fmt::Debug for ContextTable<'_, '_, R, P, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContextTable({} descriptors, {:?})", 1u32 << self.log2, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::ContextDescriptor;
    use crate::address::PhysAddr;
    use crate::format::{Config, Geometry, Granule};
    use crate::smmu::v3::SmmuError;
    use crate::smmu::v3::features::tests::all;

    fn descriptor(granule: Granule, input_bits: u8, output_bits: u8) -> ContextDescriptor {
        let config = Config { granule, input_bits, output_bits, ..Config::default() };
        let geometry = Geometry::new(config).unwrap();
        ContextDescriptor {
            geometry,
            root: PhysAddr(0x12_3456_7000 & ((1 << output_bits) - 1)),
            asid: 0xbeef,
        }
    }

    /// Encoded by hand from 5.4, field by field.
    #[test]
    fn words_are_the_manual_s() {
        let word = |granule, input, output, coherent| {
            let features = crate::smmu::v3::Features { coherent, ..all() };
            descriptor(granule, input, output).words(&features).unwrap()
        };
        let words = word(Granule::Size4K, 48, 48, true);
        // ASID, ASET A R, AA64, AFFD, IPS 5 | V, EPD1, SH0 3, OR0 1, IR0 1, TG0 0, T0SZ 16.
        assert_eq!(words[0], 0xbeef_e20d_c000_3510);
        assert_eq!(words[1], 0x12_3456_7000);
        assert_eq!(words[2..], [0, 0x04_ff_44, 0, 0, 0, 0]);
        assert_eq!(word(Granule::Size16K, 40, 36, true)[0], 0xbeef_e209_c000_3598);
        assert_eq!(word(Granule::Size64K, 32, 42, false)[0], 0xbeef_e20b_c000_2060);
    }

    #[test]
    fn what_the_smmu_does_not_have_is_refused() {
        let features = crate::smmu::v3::Features { asid_bits: 8, output_bits: 40, ..all() };
        let refused = descriptor(Granule::Size4K, 39, 40).words(&features);
        assert_eq!(refused, Err(SmmuError::Tag { tag: 0xbeef, bits: 8 }));
        let refused = descriptor(Granule::Size4K, 39, 42).words(&features);
        assert_eq!(refused, Err(SmmuError::OutputBits { asked: 42, has: 40 }));
        let features = crate::smmu::v3::Features { granule_64k: false, ..all() };
        let refused = descriptor(Granule::Size64K, 39, 40).words(&features);
        assert_eq!(refused, Err(SmmuError::Granule(Granule::Size64K)));
        let features = crate::smmu::v3::Features { output_bits: 36, ..all() };
        let root = PhysAddr(0x12_3456_7000);
        let far = ContextDescriptor { root, ..descriptor(Granule::Size4K, 39, 36) };
        let too_far = Err(SmmuError::OutputBits { asked: 37, has: 36 });
        assert_eq!(far.words(&features), too_far);
        // Where the SMMU reaches, but not the table.
        assert_eq!(far.words(&all()), too_far);
    }
}
