//! A leaf's permissions and memory type (D8.4 to D8.6), by the manual's names.

use super::config::Stage;
use super::descriptor::Descriptor;

/// The accesses a mapping permits to devices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    ReadWrite,
    /// Write only. Only stage 2 has it (S2AP = 0b10); stage 1 permits reads too.
    Write,
}

/// The memory type: an index into MAIR at stage 1, MemAttr at stage 2.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryType {
    /// Normal, write-back cacheable. MAIR index 1 of `Attributes::MAIR`.
    NormalWriteBack,
    /// Normal, non-cacheable. MAIR index 0.
    NormalNonCacheable,
    /// Device-nGnRE, for registers. MAIR index 2.
    DeviceNGnRE,
}

/// SH\[1:0\].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shareability {
    /// SH = 0b00.
    Non,
    /// SH = 0b10.
    Outer,
    /// SH = 0b11.
    Inner,
}

const ACCESS_FLAG: u64 = 1 << 10;
const NOT_GLOBAL: u64 = 1 << 11;
/// Stage 1: AP\[2\] is read only. AP\[1\] allows unprivileged access, which most devices make.
const AP_READ_ONLY: u64 = 1 << 7;
const AP_UNPRIVILEGED: u64 = 1 << 6;
const STAGE1_UXN: u64 = 1 << 54;
const STAGE1_PXN: u64 = 1 << 53;
const STAGE2_XN: u64 = 1 << 54;

/// A leaf's upper and lower attributes, computed once.
///
/// [`Part::protect`](crate::Part::protect) changes those of a live mapping.
///
/// At stage 2 the memory type is MemAttr as it is without FEAT_S2FWB, and combines with the memory type
/// of the access or of stage 1: the weaker one wins. `smmu::v3` leaves STE.S2FWB at 0, also where the
/// SMMU has it. A table that CPUs walk too must be walked with HCR_EL2.FWB at 0: with FWB the same bits
/// mean other types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attributes {
    bits: u64,
    stage: Stage,
}

impl Attributes {
    /// The MAIR value that [`MemoryType`] relies on: index 0 normal non-cacheable (0x44), 1 normal
    /// write-back (0xff), 2 Device-nGnRE (0x04).
    pub const MAIR: u64 = 0x04_ff_44;

    /// The bits that say which accesses are permitted: AP\[2:1\] or S2AP, at the same place.
    pub(crate) const PERMISSIONS: u64 = 0b11 << 6;

    /// Normal cacheable memory, inner shareable, not executable: right for DMA buffers.
    pub const fn new(stage: Stage, access: Access) -> Self {
        Self::with(stage, access, MemoryType::NormalWriteBack, Shareability::Inner)
    }

    /// Not global, not executable, access flag set, unprivileged access allowed.
    pub const fn with(
        stage: Stage,
        access: Access,
        memory: MemoryType,
        shareability: Shareability,
    ) -> Self {
        let sh = match shareability {
            Shareability::Non => 0,
            Shareability::Outer => 0b10,
            Shareability::Inner => 0b11,
        } << 8;
        let rest = match stage {
            Stage::One => {
                let index = match memory {
                    MemoryType::NormalNonCacheable => 0,
                    MemoryType::NormalWriteBack => 1,
                    MemoryType::DeviceNGnRE => 2,
                };
                let ap = match access {
                    Access::Read => AP_READ_ONLY,
                    Access::ReadWrite | Access::Write => 0,
                };
                index << 2 | ap | AP_UNPRIVILEGED | NOT_GLOBAL | STAGE1_UXN | STAGE1_PXN
            }
            Stage::Two => {
                let mem_attr = match memory {
                    MemoryType::NormalNonCacheable => 0b0101,
                    MemoryType::NormalWriteBack => 0b1111,
                    MemoryType::DeviceNGnRE => 0b0001,
                };
                let s2ap = match access {
                    Access::Read => 0b01,
                    Access::Write => 0b10,
                    Access::ReadWrite => 0b11,
                };
                mem_attr << 2 | s2ap << 6 | STAGE2_XN
            }
        };
        Self { bits: rest | sh | ACCESS_FLAG, stage }
    }

    /// The descriptor bits, without address and type.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The stage these attributes are for.
    pub const fn stage(self) -> Stage {
        self.stage
    }

    /// Takes the attributes from a leaf's descriptor. Its address, its type and its Contiguous bit are none.
    pub const fn from_descriptor(bits: u64, stage: Stage) -> Self {
        Self { bits: Descriptor(bits).attributes(), stage }
    }
}
