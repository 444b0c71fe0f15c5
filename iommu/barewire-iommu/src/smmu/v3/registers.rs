//! Registers and fields, by the manual's names (IHI 0070, chapter 6).

/// SMMU_IDR0: stages, formats, tags.
pub(crate) const IDR0: u32 = 0x00;
pub(crate) const IDR0_S2P: u32 = 1 << 0;
pub(crate) const IDR0_S1P: u32 = 1 << 1;
/// TTF\[1\]: VMSAv8-64 tables.
pub(crate) const IDR0_TTF_AARCH64: u32 = 1 << 3;
pub(crate) const IDR0_COHACC: u32 = 1 << 4;
pub(crate) const IDR0_HYP: u32 = 1 << 9;
pub(crate) const IDR0_ASID16: u32 = 1 << 12;
pub(crate) const IDR0_VMID16: u32 = 1 << 18;
/// TTENDIAN, two bits: 0b11 is big-endian only.
pub(crate) const IDR0_TTENDIAN_SHIFT: u32 = 21;
/// STALL_MODEL, two bits.
pub(crate) const IDR0_STALL_MODEL_SHIFT: u32 = 24;
/// ST_LEVEL, two bits: 0b01 is linear and 2-level.
pub(crate) const IDR0_ST_LEVEL_SHIFT: u32 = 27;

/// SMMU_IDR1: sizes.
pub(crate) const IDR1: u32 = 0x04;
pub(crate) const IDR1_SSIDSIZE_SHIFT: u32 = 6;
pub(crate) const IDR1_EVENTQS_SHIFT: u32 = 16;
pub(crate) const IDR1_CMDQS_SHIFT: u32 = 21;
pub(crate) const IDR1_QUEUES_PRESET: u32 = 1 << 29;
pub(crate) const IDR1_TABLES_PRESET: u32 = 1 << 30;

/// SMMU_IDR3: features of later revisions.
pub(crate) const IDR3: u32 = 0x0c;
pub(crate) const IDR3_RIL: u32 = 1 << 10;
pub(crate) const IDR3_BBML_SHIFT: u32 = 11;

/// SMMU_IDR5: output size and granules.
pub(crate) const IDR5: u32 = 0x14;
pub(crate) const IDR5_GRAN4K: u32 = 1 << 4;
pub(crate) const IDR5_GRAN16K: u32 = 1 << 5;
pub(crate) const IDR5_GRAN64K: u32 = 1 << 6;

/// SMMU_IIDR: which implementation it is.
pub(crate) const IIDR: u32 = 0x18;

/// SMMU_CR0 and its acknowledgement.
pub(crate) const CR0: u32 = 0x20;
pub(crate) const CR0ACK: u32 = 0x24;
pub(crate) const CR0_SMMUEN: u32 = 1 << 0;
/// This driver does not set it, but firmware may have.
pub(crate) const CR0_PRIQEN: u32 = 1 << 1;
pub(crate) const CR0_EVENTQEN: u32 = 1 << 2;
pub(crate) const CR0_CMDQEN: u32 = 1 << 3;
/// All fields that SMMU_CR0ACK acknowledges: also ATSCHK, VMW and DPT_WALK_EN.
pub(crate) const CR0_ALL: u32 =
    CR0_SMMUEN | CR0_PRIQEN | CR0_EVENTQEN | CR0_CMDQEN | 1 << 4 | 0b111 << 6 | 1 << 10;

/// SMMU_CR1: attributes of accesses to tables and queues. IC, OC: 0b01 is write-back; SH: 0b11 is
/// inner.
pub(crate) const CR1: u32 = 0x28;
pub(crate) const CR1_WRITE_BACK_INNER: u32 = 0b11_01_01_11_01_01;
/// Non-cacheable, outer shareable.
pub(crate) const CR1_NON_CACHEABLE: u32 = 0b10_00_00_10_00_00;

/// SMMU_CR2. RECINVSID records C_BAD_STREAMID; PTM leaves broadcast TLB maintenance to CPUs.
pub(crate) const CR2: u32 = 0x2c;
pub(crate) const CR2_RECINVSID: u32 = 1 << 1;
pub(crate) const CR2_PTM: u32 = 1 << 2;

/// SMMU_GBPA: what happens to accesses while SMMUEN is 0.
pub(crate) const GBPA: u32 = 0x44;
pub(crate) const GBPA_ABORT: u32 = 1 << 20;
pub(crate) const GBPA_UPDATE: u32 = 1 << 31;

/// SMMU_IRQ_CTRL and its acknowledgement.
pub(crate) const IRQ_CTRL: u32 = 0x50;
pub(crate) const IRQ_CTRLACK: u32 = 0x54;
pub(crate) const IRQ_CTRL_GERROR_IRQEN: u32 = 1 << 0;
pub(crate) const IRQ_CTRL_EVENTQ_IRQEN: u32 = 1 << 2;

/// SMMU_GERROR: an error is active if its bit differs from GERRORN's.
pub(crate) const GERROR: u32 = 0x60;
pub(crate) const GERRORN: u32 = 0x64;
pub(crate) const GERROR_CMDQ_ERR: u32 = 1 << 0;

pub(crate) const STRTAB_BASE: u32 = 0x80;
pub(crate) const STRTAB_BASE_RA: u64 = 1 << 62;
pub(crate) const STRTAB_BASE_CFG: u32 = 0x88;
pub(crate) const STRTAB_BASE_CFG_SPLIT_SHIFT: u32 = 6;
pub(crate) const STRTAB_BASE_CFG_FMT_2LEVEL: u32 = 1 << 16;

pub(crate) const CMDQ_BASE: u32 = 0x90;
pub(crate) const CMDQ_PROD: u32 = 0x98;
pub(crate) const CMDQ_CONS: u32 = 0x9c;
/// SMMU_CMDQ_CONS.ERR, seven bits.
pub(crate) const CMDQ_CONS_ERR_SHIFT: u32 = 24;
pub(crate) const CMDQ_CONS_ERR_MASK: u32 = 0x7f;

pub(crate) const EVENTQ_BASE: u32 = 0xa0;
/// The event queue's indices are on page 1.
pub(crate) const EVENTQ_PROD: u32 = 0x1_00a8;
pub(crate) const EVENTQ_CONS: u32 = 0x1_00ac;
/// EVENTQ_PROD.OVFLG and EVENTQ_CONS.OVACKFLG.
pub(crate) const EVENTQ_OVERFLOW: u32 = 1 << 31;

/// Read-allocate of CMDQ_BASE, write-allocate of EVENTQ_BASE: the same bit.
pub(crate) const QUEUE_BASE_ALLOCATE: u64 = 1 << 62;
