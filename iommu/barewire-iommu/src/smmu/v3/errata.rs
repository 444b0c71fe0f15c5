//! Errata of implementations, known by SMMU_IIDR (IHI 0070, 6.3.7).
//!
//! # Sources
//! Arm's errata notices need a registration. So the description of each erratum, and the revisions
//! that have it, are taken from the commit messages and the register checks of Linux:
//! - 1076982: Robin Murphy, *iommu/arm-smmu-v3: Work around MMU-600 erratum 1076982*, May 2023,
//!   commit f322e8af35c7,
//!   <https://lore.kernel.org/r/08adbe3d01024d8382a478325f73b56851f76e49.1683731256.git.robin.murphy@arm.com>.
//! - 2812531: Robin Murphy, *iommu/arm-smmu-v3: Document MMU-700 erratum 2812531*, May 2023, commit
//!   309a15cb16bb,
//!   <https://lore.kernel.org/r/330221cdfd0003cd51b6c04e7ff3566741ad8374.1683731256.git.robin.murphy@arm.com>.
//! - 1209401 and 2268618: Robin Murphy, *iommu/arm-smmu-v3: Document nesting-related errata*, May
//!   2023, commit 0bfbfc526c70,
//!   <https://lore.kernel.org/r/696da78d32bb4491f898f11b0bb4d850a8aa7c6a.1683731256.git.robin.murphy@arm.com>.
//! - That MMU-700 r1p1 has neither 2268618 nor 2812531: inferred from the pKVM hypervisor's SMMUv3
//!   driver (Linaro, 2022), whose `smmu_nesting_supported` excepts r1p1 from both. See also Robin
//!   Murphy, *iommu/arm-smmu-v3: Update Arm errata*, March 2026, commit 3b793983834e. The commit of
//!   2023 takes all revisions for affected. If in doubt, set
//!   [`Settings::errata`](super::Settings::errata).
//!
//! # Not supported
//! Cavium ThunderX2 erratum 74 (the registers of page 1 are on page 0) and 126 (no MSIs) are not
//! known by SMMU_IIDR. For 74, let [`Registers`] map offsets from 0x10000 to page 0; MSIs are not
//! used. HiSilicon 161010101 and 161010801 concern CMD_PREFETCH_CONFIG and MSIs, which this driver
//! does not use.

use core::fmt;

use super::registers::IIDR;
use crate::smmu::Registers;

/// SMMU_IIDR.Implementer of Arm: the JEP106 code.
const ARM: u16 = 0x43b;
const MMU_600: u16 = 0x483;
const MMU_700: u16 = 0x487;

/// Which implementation it is: SMMU_IIDR.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// ProductID, 12 bits.
    pub product: u16,
    /// Variant: the major revision, the 1 of r1p0.
    pub variant: u8,
    /// Revision: the minor revision, the 0 of r1p0.
    pub revision: u8,
    /// Implementer, 12 bits: 0x43b is Arm. 0 where the register is not implemented.
    pub implementer: u16,
}

impl Identity {
    /// Reads SMMU_IIDR.
    pub fn read(registers: &impl Registers) -> Self {
        Self::from_iidr(registers.read32(IIDR))
    }

    /// Decodes a value of SMMU_IIDR.
    pub const fn from_iidr(iidr: u32) -> Self {
        Self {
            product: (iidr >> 20) as u16,
            variant: (iidr >> 16 & 0xf) as u8,
            revision: (iidr >> 12 & 0xf) as u8,
            implementer: (iidr & 0xfff) as u16,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.implementer, self.product) {
            (ARM, MMU_600) => f.write_str("Arm MMU-600")?,
            (ARM, MMU_700) => f.write_str("Arm MMU-700")?,
            (implementer, product) => {
                write!(f, "SMMU of implementer {implementer:#x}, product {product:#x},")?;
            }
        }
        write!(f, " r{}p{}", self.variant, self.revision)
    }
}

/// An erratum, by Arm's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Erratum {
    /// MMU-600 before r1p0: no wake-up event (SEV) when a full command queue gets room.
    ///
    /// This driver polls and asks for no event. A [`Patience`](crate::smmu::Patience) that executes
    /// WFE between polls must have another source of events.
    Arm1076982,
    /// MMU-600 before r2p0: TLB invalidation with both stages active.
    ///
    /// This driver never configures both stages for one stream.
    Arm1209401,
    /// MMU-700 before r1p1: TLB invalidation with both stages active.
    ///
    /// This driver never configures both stages for one stream.
    Arm2268618,
    /// MMU-700 before r1p1: some sequences of commands need a CMD_SYNC between them.
    ///
    /// Every batch in the command queue then has at most 63 commands, all with the same opcode, and
    /// its own CMD_SYNC. The commands of another CPU come before the batch or after its CMD_SYNC.
    /// Broadcast TLB maintenance, whose order software does not know, is never accepted
    /// (SMMU_CR2.PTM is 1).
    Arm2812531,
}

impl Erratum {
    /// All that this driver knows.
    pub const ALL: [Self; 4] =
        [Self::Arm1076982, Self::Arm1209401, Self::Arm2268618, Self::Arm2812531];

    /// Arm's number.
    pub const fn number(self) -> u32 {
        match self {
            Self::Arm1076982 => 1_076_982,
            Self::Arm1209401 => 1_209_401,
            Self::Arm2268618 => 2_268_618,
            Self::Arm2812531 => 2_812_531,
        }
    }

    /// Whether an implementation has it.
    const fn concerns(self, identity: Identity) -> bool {
        let Identity { product, variant, revision, implementer } = identity;
        let before_r1p1 = variant < 1 || variant == 1 && revision < 1;
        implementer == ARM
            && match self {
                Self::Arm1076982 => product == MMU_600 && variant < 1,
                Self::Arm1209401 => product == MMU_600 && variant < 2,
                Self::Arm2268618 | Self::Arm2812531 => product == MMU_700 && before_r1p1,
            }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Erratum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (product, text) = match self {
            Self::Arm1076982 => ("MMU-600", "no event when the command queue gets room: not used"),
            Self::Arm1209401 => ("MMU-600", "invalidation with both stages: not used"),
            Self::Arm2268618 => ("MMU-700", "invalidation with both stages: not used"),
            Self::Arm2812531 => (
                "MMU-700",
                "commands need a CMD_SYNC between them: batches of at most 63, each with one",
            ),
        };
        write!(f, "Arm {product} erratum {}: {text}", self.number())
    }
}

/// A set of errata.
///
/// ```
/// use barewire_iommu::smmu::v3::{Errata, Erratum, Identity, Settings};
///
/// let identity = Identity::from_iidr(0x4871_043b);
/// assert_eq!(identity.to_string(), "Arm MMU-700 r1p0");
/// let errata = Errata::of(identity);
/// assert!(errata.contains(Erratum::Arm2812531));
/// // An implementation with the fix, whose SMMU_IIDR does not show it.
/// let errata = Some(errata.without(Erratum::Arm2812531));
/// let settings = Settings { errata, ..Settings::default() };
/// # let _ = settings;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Errata(u8);

impl Errata {
    /// No errata.
    pub const NONE: Self = Self(0);

    /// The errata known for an implementation.
    pub fn of(identity: Identity) -> Self {
        let known = Erratum::ALL.into_iter().filter(|erratum| erratum.concerns(identity));
        known.fold(Self::NONE, Self::with)
    }

    /// These and `erratum`.
    #[must_use]
    pub const fn with(self, erratum: Erratum) -> Self {
        Self(self.0 | erratum.bit())
    }

    /// These without `erratum`.
    #[must_use]
    pub const fn without(self, erratum: Erratum) -> Self {
        Self(self.0 & !erratum.bit())
    }

    /// Whether `erratum` is one of them.
    pub const fn contains(self, erratum: Erratum) -> bool {
        self.0 & erratum.bit() != 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Erratum> {
        Erratum::ALL.into_iter().filter(move |&erratum| self.contains(erratum))
    }
}

impl fmt::Debug for Errata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A line each.
impl fmt::Display for Errata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errata = self.iter();
        let Some(first) = errata.next() else { return f.write_str("no known erratum") };
        write!(f, "{first}")?;
        errata.try_for_each(|erratum| write!(f, "\n{erratum}"))
    }
}
