//! The encodings of commands (IHI 0070, chapter 4).

use crate::address::Iova;
use crate::format::Granule;

const CFGI_STE: u64 = 0x03;
const CFGI_STE_RANGE: u64 = 0x04;
const CFGI_CD: u64 = 0x05;
const CFGI_CD_ALL: u64 = 0x06;
const TLBI_NH_ALL: u64 = 0x10;
const TLBI_NH_ASID: u64 = 0x11;
const TLBI_NH_VA: u64 = 0x12;
const TLBI_S12_VMALL: u64 = 0x28;
const TLBI_S2_IPA: u64 = 0x2a;
const TLBI_NSNH_ALL: u64 = 0x30;
const SYNC: u64 = 0x46;

/// CMD_CFGI_STE_RANGE.Range of all StreamIDs: CMD_CFGI_ALL.
const ALL_STREAMS: u64 = 31;
const LEAF: u64 = 1;

/// A command: two words of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Command(pub [u64; 2]);

/// The range and level fields of an invalidation by address (4.4.1.1); only if SMMU_IDR3.RIL is
/// set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scope {
    /// TG: the granule of the tables.
    pub granule: Granule,
    /// NUM, 5 bits: the range is `(num + 1) << scale` granules. Bits above are not written.
    pub num: u8,
    /// SCALE, 5 bits. Bits above are not written.
    pub scale: u8,
    /// TTL, 1 to 3: the level of all leaves in the range; `None`, or 0 in its low two bits, for any level.
    ///
    /// Any level with `num` and `scale` both 0 has no encoding: TG without a range and without a level is
    /// reserved, and the SMMU may refuse the command (CERROR_ILL). Such a command is written without
    /// the scope, which is one granule at any level.
    pub level: Option<u8>,
}

impl Scope {
    /// NUM and SCALE, in the first word.
    const fn extent(scope: Option<Self>) -> u64 {
        match scope {
            Some(Self { num, scale, .. }) => {
                (num as u64 & 0x1f) << 12 | (scale as u64 & 0x1f) << 20
            }
            None => 0,
        }
    }

    /// TG and TTL, in the second word.
    const fn hint(scope: Option<Self>) -> u64 {
        let Some(Self { granule, level, .. }) = scope else { return 0 };
        let ttl = match level {
            Some(level) => level as u64 & 0b11,
            None => 0,
        };
        if Self::extent(scope) == 0 && ttl == 0 {
            return 0;
        }
        let tg = match granule {
            Granule::Size4K => 0b01,
            Granule::Size16K => 0b10,
            Granule::Size64K => 0b11,
        };
        tg << 10 | ttl << 8
    }
}

impl Command {
    /// CMD_SYNC whose completion only SMMU_CMDQ_CONS shows (CS is SIG_NONE).
    pub const SYNC: Self = Self([SYNC, 0]);

    /// CMD_CFGI_ALL: all stream table entries and context descriptors.
    pub const CFGI_ALL: Self = Self([CFGI_STE_RANGE, ALL_STREAMS]);

    /// CMD_TLBI_NSNH_ALL: all translations but EL2's.
    pub const TLBI_NSNH_ALL: Self = Self([TLBI_NSNH_ALL, 0]);

    /// CMD_CFGI_STE; with `leaf`, level 1 descriptors may stay cached.
    pub const fn cfgi_ste(sid: u32, leaf: bool) -> Self {
        Self([CFGI_STE | (sid as u64) << 32, leaf as u64])
    }

    /// CMD_CFGI_CD: one context descriptor of a stream.
    pub const fn cfgi_cd(sid: u32, ssid: u32, leaf: bool) -> Self {
        Self([CFGI_CD | (ssid as u64 & 0xf_ffff) << 12 | (sid as u64) << 32, leaf as u64])
    }

    /// CMD_CFGI_CD_ALL: all context descriptors of a stream.
    pub const fn cfgi_cd_all(sid: u32) -> Self {
        Self([CFGI_CD_ALL | (sid as u64) << 32, 0])
    }

    /// CMD_TLBI_NH_ALL: all stage 1 translations of a VMID.
    pub const fn tlbi_nh_all(vmid: u16) -> Self {
        Self([TLBI_NH_ALL | (vmid as u64) << 32, 0])
    }

    /// CMD_TLBI_NH_ASID: all of an ASID.
    pub const fn tlbi_nh_asid(vmid: u16, asid: u16) -> Self {
        Self([TLBI_NH_ASID | (vmid as u64) << 32 | (asid as u64) << 48, 0])
    }

    /// CMD_TLBI_NH_VA.
    pub const fn tlbi_nh_va(
        vmid: u16,
        asid: u16,
        iova: Iova,
        leaf: bool,
        scope: Option<Scope>,
    ) -> Self {
        let tags = (vmid as u64) << 32 | (asid as u64) << 48;
        Self([TLBI_NH_VA | tags | Scope::extent(scope), Self::address(iova, leaf, scope)])
    }

    /// CMD_TLBI_S12_VMALL: everything of a VMID, at both stages.
    pub const fn tlbi_s12_vmall(vmid: u16) -> Self {
        Self([TLBI_S12_VMALL | (vmid as u64) << 32, 0])
    }

    /// CMD_TLBI_S2_IPA.
    pub const fn tlbi_s2_ipa(vmid: u16, ipa: Iova, leaf: bool, scope: Option<Scope>) -> Self {
        let tag = (vmid as u64) << 32;
        // Above bit 51 the address is reserved.
        let ipa = Iova(ipa.0 & ((1 << 52) - 1));
        Self([TLBI_S2_IPA | tag | Scope::extent(scope), Self::address(ipa, leaf, scope)])
    }

    /// The kind of command.
    pub(super) const fn opcode(self) -> u8 {
        self.0[0] as u8
    }

    const fn address(iova: Iova, leaf: bool, scope: Option<Scope>) -> u64 {
        let leaf = if leaf { LEAF } else { 0 };
        iova.0 & !0xfff | leaf | Scope::hint(scope)
    }
}
