//! The SMMUv3 driver on a fake SMMU that is written from the manual: bring-up, structures, faults.

mod smmu_fake;

use barewire_iommu::smmu::v3::{Command, Settings, Smmu, Stream, StreamLayout};
use barewire_iommu::{Context, Invalidate, Iova, Tlbi};
use smmu_fake::{Fake, Options, Ram};

#[test]
fn smoke() {
    let ram = Ram::new(1 << 20);
    let fake = Fake::new(&ram, Options::default());
    let smmu = Smmu::new(&fake, &ram, Settings::default()).unwrap();
    let mut streams = smmu.streams(StreamLayout::TwoLevel { sid_bits: 16, split: 8 }).unwrap();
    streams.set(0x1234, &Stream::Bypass).unwrap();
    streams.enable().unwrap();
    fake.take_executed();
    smmu.flush(
        Context::Asid(7),
        &[Tlbi::Pages { iova: Iova(0x1000), stride: 12, count: 200, leaf: true, level: Some(3) }],
    )
    .unwrap();
    assert_eq!(fake.take_executed().len(), 200);
    smmu.run(&[Command::CFGI_ALL]).unwrap();
}
