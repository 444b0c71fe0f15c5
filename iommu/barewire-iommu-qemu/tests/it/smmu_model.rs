//! Where QEMU's SMMUv3 differs from the manual: each line of `src/virt/mod.rs`, so that a reader of
//! the other tests knows what they cannot show.

use barewire_iommu::smmu::v3::{Command, Disabled, EventKind, GlobalError, Scope, Settings, Smmu};
use barewire_iommu::smmu::{Polls, Registers};
use barewire_iommu::{Access, Config, Context, Gather, Granule, Iova, Segment, Stage, Tlbi};
use barewire_iommu_qemu::VirtMachine;

use crate::rig;
use crate::rig::{
    AttachedDevice, MESSAGE, NOTHING, Rig, Setup, at, at_phys, message, with_rig, with_setup,
    with_stage2,
};

const ASID: u16 = 7;
const IOVA: Iova = Iova(0x12_3440_0000);
const K4: u64 = 4 << 10;
const M2: u64 = 2 << 20;
/// Entries of the model's TLB.
const ENTRIES: u64 = 256;
const GBPA: u32 = 0x44;

/// Maps `IOVA` to page 1, has the device see it, and maps it to page 2.
fn remap(device: &mut AttachedDevice<'_, '_>) {
    let rig = device.rig;
    device.map(IOVA, rig.page(1), K4, Access::ReadWrite);
    assert_eq!(rig.read(IOVA), message(1));
    device.unmap(IOVA, K4);
    device.map(IOVA, rig.page(2), K4, Access::ReadWrite);
}

/// Runs a command by address that covers only what the other commands leave out.
fn run_one(rig: &Rig<'_>, command: Command) {
    rig.smmu.run(&[command]).expect("completes");
}

#[test]
fn line_1_a_full_tlb_is_emptied() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let others = at(IOVA, M2);
        for index in 0..ENTRIES {
            device.map(at(others, index * K4), VirtMachine::DATA, K4, Access::ReadWrite);
        }
        // Afterwards the TLB has the mailbox and the page that was remapped.
        device.flush(Context::Asid(ASID), &[Tlbi::Context]);
        remap(&mut device);
        let fetch = |index| rig.machine.edu().fetch(at(others, index * K4), 4).expect("fetches");
        (0..ENTRIES - 2).for_each(fetch);
        assert_eq!(rig.read(IOVA), message(1), "still the old translation after 256 entries");
        fetch(ENTRIES - 2);
        assert_eq!(rig.read(IOVA), message(2), "257");
    });
}

#[test]
fn line_2_no_walks_are_kept() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let list = [Segment { phys: rig.page(3), len: K4 }; 512];
        let attributes = device.attributes(Access::ReadWrite);
        let mapped = device.table().whole().map_sg(IOVA, &list, attributes, &mut Gather::new());
        assert_eq!(mapped, Ok(M2));
        assert_eq!(rig.read(IOVA), message(3));
        device.unmap(IOVA, M2);
        assert_eq!(device.gather.tables(), 1);
        assert_eq!(rig.read(IOVA), message(3), "a leaf is kept");
        rig.assert_unmapped(at(IOVA, K4));
        // A command for leaves only, and for one page: QEMU also drops entries of the table that
        // was unhooked.
        run_one(rig, Command::tlbi_nh_va(0, ASID, IOVA, true, None));
        rig.assert_unmapped(IOVA);
    });
}

#[test]
fn line_3_the_level_is_not_believed() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        remap(&mut device);
        let scope = Scope { granule: Granule::Size4K, num: 0, scale: 0, level: Some(2) };
        run_one(rig, Command::tlbi_nh_va(0, ASID, IOVA, true, Some(scope)));
        assert_eq!(rig.read(IOVA), message(2));
    });
}

#[test]
fn line_4_any_address_within_removes_a_block() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        let inside = at(IOVA, rig.page(5).0 - VirtMachine::DATA.0);
        device.map(IOVA, VirtMachine::DATA, M2, Access::ReadWrite);
        assert_eq!(rig.read(inside), message(5));
        device.unmap(IOVA, M2);
        assert_eq!(rig.read(inside), message(5), "stale");
        run_one(rig, Command::tlbi_nh_va(0, ASID, at(IOVA, M2), true, None));
        assert_eq!(rig.read(inside), message(5), "the next block's");
        run_one(rig, Command::tlbi_nh_va(0, ASID, at(IOVA, 17 * K4), true, None));
        rig.assert_unmapped(inside);
    });
}

/// A driver that looks only once finds everything done.
#[test]
fn line_5_commands_complete_at_once() {
    with_setup(Setup { patience: Polls(1), ..Setup::default() }, |rig| {
        let mut device = rig.attach_stage1(ASID);
        remap(&mut device);
        device.flush(Context::Asid(ASID), &[Tlbi::Context]);
        assert_eq!(rig.read(IOVA), message(2));
    });
}

#[test]
fn line_6_it_says_that_it_is_coherent() {
    with_rig(|rig| assert!(rig.smmu.features().coherent));
}

#[test]
fn line_7_vmids_count_where_there_is_stage_2() {
    with_rig(|rig| {
        let mut device = rig.attach_stage1(ASID);
        remap(&mut device);
        run_one(rig, Command::tlbi_nh_asid(9, ASID));
        let expected = if rig.smmu.features().stage2 { 1 } else { 2 };
        assert_eq!(rig.read(IOVA), message(expected), "VMID 9 is not VMID 0");
        run_one(rig, Command::tlbi_nh_asid(0, ASID));
        assert_eq!(rig.read(IOVA), message(2));
    });
}

#[test]
fn line_8_a_full_event_queue_is_an_abort() {
    with_setup(Setup { event_queue_log2: 2, ..Setup::default() }, |rig| {
        let _device = rig.attach_stage1(ASID);
        let fetch = |iova, len| rig.machine.edu().fetch(iova, len).expect("fetches");
        fetch(IOVA, 3 * 4);
        rig.assert_fault(EventKind::Translation, IOVA, 3 * 4, false);
        assert!(rig.smmu.handle_errors().is_empty());
        fetch(IOVA, 8 * 4);
        let errors = rig.smmu.handle_errors();
        assert_eq!(errors.iter().collect::<Vec<_>>(), [GlobalError::EventQueueAbort]);
        assert!(rig.smmu.handle_errors().is_empty(), "acknowledged");
        // The first events, which found room, are in the queue. After that it goes on working,
        // round and round.
        rig.assert_fault(EventKind::Translation, IOVA, 4 * 4, false);
        assert_eq!(rig.take_overflows(), 0);
        for round in 0..5 {
            fetch(at(IOVA, round * K4), MESSAGE);
            rig.assert_fault(EventKind::Translation, at(IOVA, round * K4), MESSAGE, false);
        }
    });
}

#[test]
fn line_9_a_transfer_is_as_many_events_as_words() {
    with_rig(|rig| {
        let _device = rig.attach_stage1(ASID);
        rig.machine.edu().fetch(at(IOVA, 8), 12).expect("fetches");
        let addresses: Vec<_> = rig.events().iter().map(|event| event.iova).collect();
        assert_eq!(addresses, [8, 12, 16].map(|offset| Some(at(IOVA, offset))));
    });
}

#[test]
fn line_10_not_every_fault_at_stage_2_is_recorded() {
    with_stage2(|rig| {
        let mut device = rig.attach(rig.config(Stage::Two, Granule::Size4K), 5);
        device.map(IOVA, rig.page(1), K4, Access::Read);
        rig.write(IOVA, [1; MESSAGE]);
        rig.assert_fault(EventKind::Permission, IOVA, MESSAGE, true);
        assert_eq!(rig.read(IOVA), message(1));
        rig.write(IOVA, [1; MESSAGE]);
        assert_eq!(rig.events(), [], "the TLB has it");
        assert_eq!(rig.message_at(rig::page_at(1)), message(1));

        let beyond = Iova(1 << rig.smmu.features().output_bits);
        assert_eq!(rig.read(beyond), NOTHING);
        assert_eq!(rig.events(), []);
    });
}

/// 40 bits and 4 KiB: two tables of 512 GiB each.
#[test]
fn line_11_of_several_root_tables_the_first_is_walked() {
    with_stage2(|rig| {
        let config = rig.config(Stage::Two, Granule::Size4K);
        let mut device = rig.attach(Config { input_bits: 40, ..config }, 5);
        assert_eq!(device.table().geometry().root_bytes(), 2 * 4096);
        let second = at(IOVA, 1 << 39);
        device.map(second, rig.page(2), K4, Access::ReadWrite);
        rig.assert_unmapped(second);
        device.map(IOVA, rig.page(1), K4, Access::ReadWrite);
        assert_eq!((rig.read(IOVA), rig.read(second)), (message(1), message(1)));
    });
}

#[test]
fn line_12_accesses_are_aborted_before_there_is_a_stream_table() {
    let Some(machine) = rig::open() else { return };
    let data = machine.data();
    let (here, there) = (VirtMachine::DATA, at_phys(VirtMachine::DATA, 4096));
    data.write(here, &message(1));
    let set_up = |disabled| {
        let settings = Settings { disabled, ..Settings::default() };
        Smmu::new(machine.smmu(), machine.pool(), settings).expect("an SMMUv3")
    };
    let smmu = set_up(Disabled::Bypass);
    machine.edu().fetch(Iova(here.0), MESSAGE).expect("fetches");
    smmu.shut_down().expect("stops");
    let smmu = set_up(Disabled::Abort);
    let has_gbpa = smmu.registers().read32(GBPA) != 0;
    machine.edu().store(Iova(there.0), MESSAGE).expect("stores");
    let found = data.read(there, MESSAGE);
    let expected = if has_gbpa { NOTHING } else { message(1) };
    assert_eq!(found, expected);
    smmu.shut_down().expect("stops");
    machine.close().expect("ends well");
}
