//! Errata of SMMUv2 implementations that concern TLB operations.
//!
//! # Sources
//! The vendors' notices need a registration. So the descriptions are taken from Linux's list
//! (`Documentation/arch/arm64/silicon-errata.rst`), and from these commit messages:
//! - MMU-500: Robin Murphy, *iommu/arm-smmu: Clarify MMU-500 CPRE workaround*, October 2024, commit
//!   0dfe314cdd0d,
//!   <https://lore.kernel.org/r/dfa82171b5248ad7cf1f25592101a6eec36b8c9a.1728400877.git.robin.murphy@arm.com>.
//! - Cavium 27704: *iommu/arm-smmu: Workaround for ThunderX erratum #27704*, commit 1bd37a6835be.
//! - Marvell 582743: Hanna Hawa, *iommu/arm-smmu: Workaround for Marvell Armada-AP806 SoC erratum
//!   #582743*, July 2020, commit f2d9848aeb9f,
//!   <https://lore.kernel.org/r/20200715070649.18733-3-tn@semihalf.com>.
//!
//! # Not supported
//! MMU-500's errata 562869 and 1047329: they concern two stages for one stream, which this crate does not
//! configure.

use core::fmt;

use super::{IDR1, IDR1_NUMCB, bank_offset};
use crate::smmu::Registers;

/// SMMU_sACR, whose contents are the implementation's. MMU-500: CACHE_LOCK protects ACTLR, from r2p0 on.
const SACR: u32 = 0x10;
const SACR_CACHE_LOCK: u32 = 1 << 26;
/// SMMU_IDR7: the revision.
const IDR7: u32 = 0x3c;
const IDR7_MAJOR_SHIFT: u32 = 4;
const IDR7_MAJOR: u32 = 0xf;
/// SMMU_CBn_ACTLR, in a context bank's page. MMU-500: CPRE is the next-page prefetcher.
const ACTLR: u32 = 0x4;
const ACTLR_CPRE: u32 = 1 << 1;

/// An erratum. Which of them an implementation has is known by its name in the firmware's description of
/// the machine, and not by a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Erratum {
    /// Arm MMU-500, 841119, 826419 and others: the next-page prefetcher brings translations back into the
    /// TLB beside an invalidation. Call [`disable_prefetch`] before devices are attached, and after each
    /// loss of power.
    ArmMmu500Prefetch,
    /// Cavium ThunderX (CN88xx) 27704: the SMMUs of a system share ASIDs and VMIDs. The tag of each table
    /// must be unique in the system, not in its SMMU alone.
    Cavium27704,
    /// Marvell Armada AP806 582743: the registers cannot be accessed with 64 bits. Operations by address
    /// of VMSAv8-64 tables are 64 bits wide, and two halves are not the same: no [`ContextBank`] works
    /// there.
    ///
    /// [`ContextBank`]: super::ContextBank
    Marvell582743,
}

impl Erratum {
    /// All that this driver knows.
    pub const ALL: [Self; 3] = [Self::ArmMmu500Prefetch, Self::Cavium27704, Self::Marvell582743];

    /// The errata of an implementation, by its `compatible` in a device tree. The first name that is known
    /// decides.
    pub fn of(compatible: &[&str]) -> &'static [Self] {
        const MARVELL: &[Erratum] = &[Erratum::ArmMmu500Prefetch, Erratum::Marvell582743];
        let of = |name: &&str| match *name {
            "marvell,ap806-smmu-500" => Some(MARVELL),
            "cavium,smmu-v2" => Some(&[Self::Cavium27704][..]),
            "arm,mmu-500" => Some(&[Self::ArmMmu500Prefetch][..]),
            _ => None,
        };
        compatible.iter().find_map(of).unwrap_or(&[])
    }
}

impl fmt::Display for Erratum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ArmMmu500Prefetch => {
                "Arm MMU-500 errata 841119, 826419 and others: disable the prefetcher"
            }
            Self::Cavium27704 => {
                "Cavium ThunderX erratum 27704: give each table an ASID or VMID that no SMMU of the \
                 system uses elsewhere"
            }
            Self::Marvell582743 => {
                "Marvell AP806 erratum 582743: no 64-bit accesses, so no VMSAv8-64 tables here"
            }
        })
    }
}

/// The prefetcher of a context bank could not be disabled: Secure software left SMMU_SACR.CACHE_LOCK set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefetchError {
    /// The context bank.
    pub bank: u8,
}

impl fmt::Display for PrefetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "context bank {} keeps its prefetcher: have the firmware clear SMMU_SACR.CACHE_LOCK",
            self.bank
        )
    }
}

impl core::error::Error for PrefetchError {}

/// Disables the next-page prefetcher of an MMU-500's context banks ([`Erratum::ArmMmu500Prefetch`]). The
/// registers begin with the global space. Only for an MMU-500: elsewhere these bits mean something else.
///
/// 1. Unlock: from r2p0 on, SMMU_sACR.CACHE_LOCK protects SMMU_CBn_ACTLR.
/// 2. Disable: CPRE is cleared in each bank, and read back.
///
/// # Errors
/// [`PrefetchError`], for the first bank that did not take it. Later banks are tried nevertheless.
pub fn disable_prefetch(registers: &impl Registers) -> Result<(), PrefetchError> {
    // Step 1: unlock.
    if registers.read32(IDR7) >> IDR7_MAJOR_SHIFT & IDR7_MAJOR >= 2 {
        registers.write32(SACR, registers.read32(SACR) & !SACR_CACHE_LOCK);
    }
    // Step 2: disable.
    let idr1 = registers.read32(IDR1);
    let mut result = Ok(());
    for bank in 0..idr1 & IDR1_NUMCB {
        let at = bank_offset(idr1, bank) + ACTLR;
        registers.write32(at, registers.read32(at) & !ACTLR_CPRE);
        if registers.read32(at) & ACTLR_CPRE != 0 && result.is_ok() {
            result = Err(PrefetchError { bank: bank as u8 });
        }
    }
    result
}
