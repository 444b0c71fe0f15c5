//! What the tests of the SMMU share: the machine with our driver on it, and devices attached to our
//! tables.
//!
//! # Safety
//! The one unsafe call frees tables after their invalidation, which is what these tests check.

#![allow(
    unsafe_code,
    reason = "a gather's tables are given back when their invalidation is complete"
)]

use std::cell::RefCell;

use barewire_iommu::smmu::Polls;
use barewire_iommu::smmu::v3::{
    ContextDescriptor, Event, EventKind, EventQueue, GlobalErrors, Settings, Smmu, Stream,
    StreamLayout, StreamTable,
};
use barewire_iommu::{
    Access, Attributes, Config, Context, Facts, FlushError, Gather, Granule, Invalidate, Iova,
    Operations, PageTable, PhysAddr, Stage, Strategy, Tlbi,
};
use barewire_iommu_qemu::{GuestPool, QemuError, SmmuRegisters, VirtMachine, VirtOptions};

/// The driver, as it runs here.
pub(crate) type Mmu<'p> = Smmu<'p, SmmuRegisters, GuestPool>;
/// A table in the machine's memory.
pub(crate) type Table<'p> = PageTable<&'p GuestPool>;

/// Where every device's mailbox is mapped: the way to and from its buffer. Low, so that it is in the
/// first of several root tables.
pub(crate) const MAILBOX: Iova = Iova(0x0800_0000);
/// Bytes of a test's message.
pub(crate) const MESSAGE: usize = 16;
/// The device's buffer after a read that failed.
pub(crate) const NOTHING: [u8; MESSAGE] = [0; MESSAGE];
/// A transfer that faults goes on. Each piece of this many bytes makes an event.
const FAULT_BYTES: usize = 4;
/// Between two pages of data: a page of any granule.
const PAGE: u64 = 64 << 10;

pub(crate) fn at(iova: Iova, offset: u64) -> Iova {
    Iova(iova.0 + offset)
}

pub(crate) fn at_phys(phys: PhysAddr, offset: u64) -> PhysAddr {
    PhysAddr(phys.0 + offset)
}

/// The address of page `index` of the data's 1000 pages. Number 0 is the mailbox.
pub(crate) fn page_at(index: u64) -> PhysAddr {
    assert!((1..1000).contains(&index));
    at_phys(VirtMachine::DATA, index * PAGE)
}

/// Bytes of a page and of a block at level 2.
pub(crate) fn leaves(granule: Granule) -> (u64, u64) {
    let page = granule.bytes();
    (page, page * page / 8)
}

/// The machine, or `None` and a line that says what is skipped where QEMU is not there.
pub(crate) fn open() -> Option<VirtMachine> {
    match VirtMachine::open(&VirtOptions::default()) {
        Ok(machine) => Some(machine),
        Err(error @ (QemuError::Missing { .. } | QemuError::TooOld { .. })) => {
            println!("SKIPPED: virt: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The machine with our driver running on it.
pub(crate) struct Rig<'r> {
    pub(crate) machine: &'r VirtMachine,
    pub(crate) smmu: &'r Mmu<'r>,
    streams: RefCell<StreamTable<'r, 'r, SmmuRegisters, GuestPool, Polls>>,
    events: RefCell<EventQueue<'r, 'r, SmmuRegisters, GuestPool, Polls>>,
}

/// How a rig is set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) command_queue_log2: u8,
    pub(crate) event_queue_log2: u8,
    pub(crate) layout: StreamLayout,
    pub(crate) patience: Polls,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            command_queue_log2: 6,
            event_queue_log2: 5,
            layout: StreamLayout::Linear { sid_bits: 8 },
            patience: Polls(10_000),
        }
    }
}

/// Runs `test` on a machine of its own and looks afterwards that QEMU has nothing to complain about
/// and that all memory came back.
pub(crate) fn with_rig(test: impl FnOnce(&Rig<'_>)) {
    with_setup(Setup::default(), test);
}

/// The same, with another set-up.
pub(crate) fn with_setup(setup: Setup, test: impl FnOnce(&Rig<'_>)) {
    let Some(machine) = open() else { return };
    let settings = Settings {
        command_queue_log2: setup.command_queue_log2,
        event_queue_log2: setup.event_queue_log2,
        patience: setup.patience,
        ..Settings::default()
    };
    let smmu = Smmu::new(machine.smmu(), machine.pool(), settings).expect("an SMMUv3");
    drive(&machine, &smmu, setup, test);
    smmu.shut_down().expect("stops");
    assert_eq!(machine.lost(), None);
    machine.close().expect("ends well");
}

fn drive<'r>(
    machine: &'r VirtMachine,
    smmu: &'r Mmu<'r>,
    setup: Setup,
    test: impl FnOnce(&Rig<'r>),
) {
    let mut streams = smmu.streams(setup.layout).expect("a stream table");
    streams.enable().expect("enabled");
    let events = RefCell::new(smmu.events().expect("an event queue"));
    let rig = Rig { machine, smmu, streams: RefCell::new(streams), events };
    test(&rig);
    assert_eq!(rig.events(), [], "events that nobody asked for");
    assert_eq!(smmu.handle_errors(), GlobalErrors::NONE, "SMMU_GERROR");
    rig.streams.into_inner().disable().expect("disabled");
}

/// [`with_rig`] where there is stage 2; a line that says so where there is none.
pub(crate) fn with_stage2(test: impl FnOnce(&Rig<'_>)) {
    with_rig(|rig| {
        if rig.smmu.features().stage2 {
            test(rig);
        } else {
            println!("SKIPPED: virt: this QEMU's SMMU has no stage 2: QEMU 8.1 or later has");
        }
    });
}

impl<'r> Rig<'r> {
    /// The events that the SMMU has recorded since the last call.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.events.borrow_mut();
        std::iter::from_fn(|| events.pop()).collect()
    }

    /// Asserts that all recorded events are about an access of `len` bytes at `iova`.
    pub(crate) fn assert_fault(&self, kind: EventKind, iova: Iova, len: usize, is_write: bool) {
        let events = self.events();
        let told: Vec<_> = events
            .iter()
            .map(|event| (event.kind, event.sid, event.iova, event.is_write))
            .collect();
        let has_address = events.first().is_some_and(|event| event.iova.is_some());
        let expected: Vec<_> = (0..len as u64)
            .step_by(FAULT_BYTES)
            .map(|offset| {
                let (at, write) =
                    (has_address.then(|| at(iova, offset)), has_address.then_some(is_write));
                (kind, self.sid(), at, write)
            })
            .collect();
        assert_eq!(told, expected);
    }

    /// The device cannot read at `iova`, and the SMMU says so.
    pub(crate) fn assert_unmapped(&self, iova: Iova) {
        assert_eq!(self.read(iova), NOTHING, "{iova}");
        self.assert_fault(EventKind::Translation, iova, MESSAGE, false);
    }

    /// How many events were lost.
    pub(crate) fn take_overflows(&self) -> u32 {
        self.events.borrow_mut().take_overflows()
    }

    /// The device's StreamID.
    pub(crate) fn sid(&self) -> u32 {
        self.machine.edu().stream()
    }

    /// Sets how the SMMU treats the device's accesses.
    pub(crate) fn set_stream(&self, stream: &Stream) {
        self.streams.borrow_mut().set(self.sid(), stream).expect("the stream is set");
    }

    /// The facts by which strategies choose.
    pub(crate) fn facts(&self, page_shift: u32) -> Facts {
        Facts { page_shift, has_ranges: self.smmu.has_ranges(), live_entries: 1 }
    }

    /// Puts a message of its own in a page of data.
    pub(crate) fn page(&self, index: u64) -> PhysAddr {
        let at = page_at(index);
        self.machine.data().write(at, &message(index));
        at
    }

    /// The message that the device reads at `iova`.
    pub(crate) fn read(&self, iova: Iova) -> [u8; MESSAGE] {
        let edu = self.machine.edu();
        edu.fetch(iova, MESSAGE).expect("fetches");
        edu.store(MAILBOX, MESSAGE).expect("stores");
        self.message_at(VirtMachine::DATA)
    }

    /// Has the device write at `iova`.
    pub(crate) fn write(&self, iova: Iova, bytes: [u8; MESSAGE]) {
        self.machine.data().write(VirtMachine::DATA, &bytes);
        let edu = self.machine.edu();
        edu.fetch(MAILBOX, MESSAGE).expect("fetches");
        edu.store(iova, MESSAGE).expect("stores");
    }

    /// The message in memory at `at`.
    pub(crate) fn message_at(&self, at: PhysAddr) -> [u8; MESSAGE] {
        self.machine.data().read(at, MESSAGE).try_into().expect("as long as a message")
    }

    /// The commands the model took during `work`, without CMD_SYNC.
    pub(crate) fn commands(&self, work: impl FnOnce()) -> Vec<String> {
        let before = self.machine.commands().expect("the log").len();
        work();
        let all = self.machine.commands().expect("the log");
        all.into_iter().skip(before).filter(|name| name != "SYNC").collect()
    }

    /// Asserts that QEMU's complaints are the expected ones.
    pub(crate) fn assert_misuse(&self, expected: &[&str]) {
        let misuse = self.machine.misuse().expect("the log");
        let known = misuse.iter().zip(expected).all(|(found, part)| found.contains(part));
        assert!(misuse.len() == expected.len() && known, "{misuse:?}");
    }

    /// The largest configuration that the SMMU walks with this granule.
    pub(crate) fn config(&self, stage: Stage, granule: Granule) -> Config {
        self.smmu.features().config(stage, granule).expect("the SMMU has it")
    }

    /// A new table with only the mailbox in it, and no device attached.
    pub(crate) fn prepare(&self, config: Config, tag: u16) -> AttachedDevice<'_, 'r> {
        let table = PageTable::new(config, self.machine.pool()).expect("a table");
        let context = match config.stage {
            Stage::One => Context::Asid(tag),
            Stage::Two => Context::Vmid(tag),
        };
        let mut attached =
            AttachedDevice { rig: self, table: Some(table), context, gather: Gather::new() };
        attached.map(MAILBOX, VirtMachine::DATA, config.granule.bytes(), Access::ReadWrite);
        attached
    }

    /// The device behind such a table.
    pub(crate) fn attach(&self, config: Config, tag: u16) -> AttachedDevice<'_, 'r> {
        let mut attached = self.prepare(config, tag);
        attached.switch();
        attached
    }

    /// The same for stage 1 with pages of 4 KiB.
    pub(crate) fn attach_stage1(&self, asid: u16) -> AttachedDevice<'_, 'r> {
        self.attach(self.config(Stage::One, Granule::Size4K), asid)
    }
}

/// The message in a page of data.
pub(crate) fn message(index: u64) -> [u8; MESSAGE] {
    let mut bytes = *b"page 0000 of 999";
    bytes[5..9].copy_from_slice(format!("{index:04}").as_bytes());
    bytes
}

/// A device attached to a table.
pub(crate) struct AttachedDevice<'a, 'r> {
    pub(crate) rig: &'a Rig<'r>,
    table: Option<Table<'r>>,
    pub(crate) context: Context,
    pub(crate) gather: Gather,
}

impl<'r> AttachedDevice<'_, 'r> {
    pub(crate) fn table(&mut self) -> &mut Table<'r> {
        self.table.as_mut().expect("there until it is dropped")
    }

    /// Makes the device go by this table.
    pub(crate) fn switch(&mut self) {
        if let Context::Vmid(vmid) = self.context {
            let table = self.table();
            let (geometry, root) = (*table.geometry(), table.root());
            self.rig.set_stream(&Stream::Stage2 { geometry, root, vmid });
        } else {
            let mut contexts = self.rig.smmu.contexts(0).expect("a context table");
            contexts.set(0, Some(&self.descriptor()), &[]).expect("a context descriptor");
            self.rig.set_stream(&contexts.stream());
        }
    }

    /// The context descriptor of a stage 1 table.
    pub(crate) fn descriptor(&self) -> ContextDescriptor {
        let table = self.table.as_ref().expect("there until it is dropped");
        let Context::Asid(asid) = self.context else { panic!("a stage 2 table") };
        ContextDescriptor { geometry: *table.geometry(), root: table.root(), asid }
    }

    /// The operations that a strategy chooses for the gather.
    pub(crate) fn operations(&mut self, strategy: Strategy) -> Operations {
        let facts = self.rig.facts(self.table().geometry().page_shift());
        strategy.operations(self.gather.runs(), &facts)
    }

    pub(crate) fn map(&mut self, iova: Iova, phys: PhysAddr, size: u64, access: Access) {
        let attributes = self.attributes(access);
        let mut gather = Gather::new();
        let mapped = self.table().whole().map(iova, phys, size, attributes, &mut gather);
        assert_eq!(mapped, Ok(()));
        assert!(gather.is_empty());
    }

    pub(crate) fn attributes(&mut self, access: Access) -> Attributes {
        Attributes::new(self.table().geometry().config().stage, access)
    }

    /// Unmaps, and leaves the invalidation to the caller.
    pub(crate) fn unmap(&mut self, iova: Iova, size: u64) -> u64 {
        let mut gather = std::mem::take(&mut self.gather);
        let unmapped = self.table().whole().unmap(iova, size, &mut gather).expect("unmapped");
        self.gather = gather;
        unmapped
    }

    /// Runs the given invalidations, and no others.
    pub(crate) fn flush(&mut self, context: Context, operations: &[Tlbi]) {
        self.try_flush(context, operations).expect("flushed");
    }

    pub(crate) fn try_flush(
        &mut self,
        context: Context,
        operations: &[Tlbi],
    ) -> Result<(), FlushError> {
        self.rig.smmu.flush(context, operations)
    }

    /// Releases the unhooked tables.
    ///
    /// The invalidation is what is tested, so it may have been left out: then a walk through one of
    /// these tables finds traps.
    pub(crate) fn release(&mut self) {
        let mut gather = std::mem::take(&mut self.gather);
        // SAFETY: the gather is this table's. No reference of ours leads to the tables; the
        // emulated devices may still read them, which cannot harm this process.
        unsafe { self.table().release(&mut gather) };
    }
}

impl Drop for AttachedDevice<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.rig.set_stream(&Stream::Abort);
        let context = self.context;
        self.flush(context, &[Tlbi::Context]);
        self.release();
        self.table = None;
    }
}
