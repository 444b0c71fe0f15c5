//! Published figures of a kernel, for comparison.
//!
//! S. P. Ranjan, "\[PATCHv3\] iommu/arm-smmu: Optimize ->tlb_flush_walk() for qcom implementation",
//! linux-arm-kernel, 23 June 2021,
//! <https://lore.kernel.org/r/20210623134201.16140-1-saiprakash.ranjan@codeaurora.org>. The figures
//! are iommu_map_sg and iommu_unmap on Qualcomm's SM8150 (an SMMUv2), averages of ten iterations,
//! before and after walks were flushed by ASID instead of by address.

use crate::list::{SIZES, Size};

/// A line of the table, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishedLine {
    /// The size.
    pub size: Size,
    /// iommu_map_sg, before the patch.
    pub map_sg_before_us: f64,
    /// iommu_unmap, before the patch: walks are flushed by address.
    pub unmap_before_us: f64,
    /// iommu_map_sg, after the patch.
    pub map_sg_after_us: f64,
    /// iommu_unmap, after the patch: walks are flushed by ASID.
    pub unmap_after_us: f64,
}

const fn line(size: Size, us: [f64; 4]) -> PublishedLine {
    PublishedLine {
        size,
        map_sg_before_us: us[0],
        unmap_before_us: us[1],
        map_sg_after_us: us[2],
        unmap_after_us: us[3],
    }
}

/// The 32 figures.
pub const PUBLISHED: [PublishedLine; 8] = [
    line(SIZES[0], [2.067, 1.854, 1.723, 1.765]),
    line(SIZES[1], [9.598, 8.802, 9.880, 8.869]),
    line(SIZES[2], [148.890, 130.718, 155.364, 135.223]),
    line(SIZES[3], [305.864, 67.291, 303.906, 5.385]),
    line(SIZES[4], [1793.604, 390.838, 1786.557, 21.250]),
    line(SIZES[5], [2386.848, 518.187, 2391.890, 27.437]),
    line(SIZES[6], [3563.296, 775.989, 3570.895, 39.937]),
    line(SIZES[7], [4747.171, 1033.364, 4755.234, 51.797]),
];
