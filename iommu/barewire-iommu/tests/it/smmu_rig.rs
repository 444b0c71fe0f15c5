//! An SMMU that is up, and what tests write into its tables.

use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{ContextDescriptor, Settings, Smmu, Stream};
use barewire_iommu::{Config, Geometry, Granule, PhysAddr, Stage};

use crate::smmu_fake::{Fake, Options, Ram};

/// Runs `test` on an SMMU that has just been brought up.
pub(crate) fn with_smmu(
    options: Options,
    test: impl FnOnce(&Fake<'_>, &Ram, &Smmu<'_, &Fake<'_>, Ram>),
) {
    let ram = Ram::new(1 << 18);
    let fake = Fake::new(&ram, options);
    let settings = Settings { patience: Polls(100), ..Settings::default() };
    let smmu = Smmu::new(&fake, &ram, settings).expect("it comes up");
    fake.state().executed.clear();
    test(&fake, &ram, &smmu);
}

fn geometry(stage: Stage, granule: Granule) -> Geometry {
    let config = Config { stage, granule, input_bits: 40, output_bits: 40, bbml2: false };
    Geometry::new(config).unwrap()
}

pub(crate) fn descriptor(root: u64, asid: u16) -> ContextDescriptor {
    let geometry = geometry(Stage::One, Granule::Size4K);
    ContextDescriptor { geometry, root: PhysAddr(root), asid }
}

pub(crate) fn stage2(root: u64, vmid: u16) -> Stream {
    let geometry = geometry(Stage::Two, Granule::Size16K);
    Stream::Stage2 { geometry, root: PhysAddr(root), vmid }
}
