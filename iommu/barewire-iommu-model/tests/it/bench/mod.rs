//! A page table on the machine, each call judged by the naive map.
#![allow(unreachable_pub, reason = "a room of each test")]
#![allow(unsafe_code, reason = "who frees tables promises that their invalidation has completed")]

use std::mem::ManuallyDrop;
use std::ops::Range;

use barewire_iommu::{
    Access, Attributes, Config, Context, Facts, FlushError, Gather, Invalidate, Iova, MapError,
    MemoryType, PageTable, PhysAddr, Run, Segment, Shareability, Stage, Strategy, UnmapError,
};
use barewire_iommu_model::{FlushFailure, Machine, Meaning, Naive, Options, Shape};

/// The bytes of a group of pages with the Contiguous hint.
const GROUP: u64 = 16 << 12;

/// The access rights of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    /// As plain, but for the permissions.
    PlainReadOnly,
    ReadOnly,
    Registers,
}

impl Kind {
    fn named(self) -> (Access, MemoryType, Shareability) {
        match self {
            Self::Plain => (Access::ReadWrite, MemoryType::NormalWriteBack, Shareability::Inner),
            Self::PlainReadOnly => (Access::Read, MemoryType::NormalWriteBack, Shareability::Inner),
            Self::ReadOnly => (Access::Read, MemoryType::NormalNonCacheable, Shareability::Non),
            Self::Registers => (Access::ReadWrite, MemoryType::DeviceNGnRE, Shareability::Outer),
        }
    }

    pub fn attributes(self, stage: Stage) -> Attributes {
        let (access, memory, shareability) = self.named();
        Attributes::with(stage, access, memory, shareability)
    }

    pub fn meaning(self, stage: Stage) -> Meaning {
        let (access, memory, shareability) = self.named();
        Meaning::new(stage, access, memory, shareability)
    }
}

/// The table, the machine it is in, and its expected content.
pub struct Bench<'m> {
    pub machine: &'m Machine,
    pub config: Config,
    pub shape: Shape,
    pub context: Context,
    /// Not dropped if a judgement fails: broken tables might be walked for ever.
    pub table: ManuallyDrop<PageTable<&'m Machine>>,
    pub gather: Gather,
    pub map: Naive,
    /// Unmapped and not invalidated.
    pub pending: Vec<Range<u64>>,
    pub strategy: Strategy,
    /// Whether maps replace empty tables by blocks, and if so, how their flushes fail.
    pub replacing: Option<Option<FlushFailure>>,
}

/// A machine for a table of this kind, with its tables as high in memory as they may be.
pub fn machine(config: &Config, coherent: bool) -> Machine {
    let end = 1_u64 << config.output_bits;
    Machine::new(Options {
        coherent,
        bbml2: config.bbml2,
        ranges: true,
        memory: end / 2..end,
        ..Options::default()
    })
}

impl<'m> Bench<'m> {
    pub fn new(machine: &'m Machine, config: Config) -> Self {
        Self::of(
            machine,
            config,
            PageTable::new(config, machine).expect("there is memory for a root"),
        )
    }

    /// A table that uses the Contiguous hint.
    pub fn contiguous(machine: &'m Machine, config: Config) -> Self {
        let table = PageTable::new(config, machine).expect("there is memory for a root");
        Self::of(machine, config, table.with_contiguous())
    }

    fn of(machine: &'m Machine, config: Config, table: PageTable<&'m Machine>) -> Self {
        let table = ManuallyDrop::new(table);
        let shape = Shape::new(&config);
        let context = match config.stage {
            Stage::One => Context::Asid(3),
            Stage::Two => Context::Vmid(4),
        };
        machine.attach(context, table.root(), shape, Attributes::MAIR);
        Self {
            machine,
            config,
            shape,
            context,
            table,
            gather: Gather::new(),
            map: Naive::new(),
            pending: Vec::new(),
            strategy: Strategy::ByPage,
            replacing: None,
        }
    }

    pub fn page(&self) -> u64 {
        self.shape.span(3)
    }

    fn is_pending(&self, range: &Range<u64>) -> bool {
        self.pending.iter().any(|other| other.start < range.end && range.start < other.end)
    }

    /// Maps a list, after a flush if something there was not invalidated yet. A list that cannot be
    /// mapped must be refused for the right reason.
    pub fn map_sg(&mut self, iova: u64, list: &[(u64, u64)], kind: Kind) -> Result<(), MapError> {
        let segments: Vec<_> =
            list.iter().map(|&(phys, len)| Segment { phys: PhysAddr(phys), len }).collect();
        let len = list.iter().map(|piece| piece.1).sum();
        let (machine, context, strategy) = (self.machine, self.context, self.strategy);
        let (page_shift, replacing) = (self.shape.page_shift(), self.replacing);
        self.mapping(iova, list, len, kind, |part, attributes, gather| {
            let mapped = match replacing {
                None => part.map_sg(Iova(iova), &segments, attributes, gather),
                Some(failure) => {
                    let flush = |run: &Run| {
                        let facts = Facts { page_shift, has_ranges: true, live_entries: 0 };
                        let operations = strategy.operations(Some(&[*run]), &facts);
                        if failure != Some(FlushFailure::Before) {
                            machine.flush(context, operations.as_slice())?;
                        }
                        failure.map_or(Ok(()), |_| Err(FlushError::Timeout))
                    };
                    part.map_sg_replacing(Iova(iova), &segments, attributes, gather, flush)
                }
            }?;
            assert_eq!(mapped, len, "all of it is mapped");
            Ok(())
        })
    }

    pub fn map(&mut self, iova: u64, phys: u64, len: u64, kind: Kind) -> Result<(), MapError> {
        self.map_sg(iova, &[(phys, len)], kind)?;
        // And groups of pages.
        if self.table.geometry().is_contiguous() && (iova ^ phys).is_multiple_of(GROUP) {
            let mut at = iova.next_multiple_of(GROUP);
            while at + GROUP <= iova + len {
                let leaf = self.machine.walk(self.context, at).expect("it is mapped");
                assert!(leaf.level <= 2 || leaf.contiguous, "no hint where a group fits: {leaf:?}");
                at += GROUP;
            }
        }
        // Blocks wherever they fit, whatever was there before.
        let block = self.shape.span(2);
        if self.replacing == Some(None) && (iova ^ phys).is_multiple_of(block) {
            let mut at = iova.next_multiple_of(block);
            while at + block <= iova + len {
                let leaf = self.machine.walk(self.context, at).expect("it is mapped");
                assert!(leaf.level <= 2, "a page where a block fits: {leaf:?}");
                at += block;
            }
        }
        Ok(())
    }

    /// `count` leaves of level `level`.
    pub fn map_pages(
        &mut self,
        iova: u64,
        phys: u64,
        level: u32,
        count: u64,
        kind: Kind,
    ) -> Result<(), MapError> {
        let (shift, len) = (self.shape.shift(level), count * self.shape.span(level));
        self.mapping(iova, &[(phys, len)], len, kind, |part, attributes, gather| {
            part.map_pages(Iova(iova), PhysAddr(phys), shift, count, attributes, gather)
        })?;
        for at in (iova..iova + len).step_by(1 << shift) {
            let leaf = self.machine.walk(self.context, at).expect("it is mapped");
            assert!(leaf.level >= level, "no leaf is larger than asked for: {leaf:?}");
        }
        Ok(())
    }

    fn mapping(
        &mut self,
        iova: u64,
        list: &[(u64, u64)],
        len: u64,
        kind: Kind,
        call: impl FnOnce(
            &mut barewire_iommu::Part<'_, &'m Machine>,
            Attributes,
            &mut Gather,
        ) -> Result<(), MapError>,
    ) -> Result<(), MapError> {
        let all = iova..iova + len;
        if self.is_pending(&all) {
            self.flush().expect("nothing fails unasked");
        }
        let occupied = self.map.first(all.clone());
        // How much of the call a walker may see as done: the part before the entry that stops it.
        let mut next = self.map.clone();
        let mut at = iova;
        for &(phys, len) in list {
            let free = occupied.map_or(len, |occupied| len.min(occupied.saturating_sub(at)));
            if free > 0 {
                let meaning = kind.meaning(self.config.stage);
                next.map(at, phys, free, meaning).expect("it is free");
            }
            at += len;
        }
        self.machine.begin(self.context, next.clone());
        let attributes = kind.attributes(self.config.stage);
        let result = call(&mut self.table.whole(), attributes, &mut self.gather);
        match result {
            Ok(()) => {
                assert_eq!(occupied, None, "mapped over something");
                self.map = next;
            }
            Err(MapError::Occupied { iova, .. }) => {
                assert_eq!(Some(iova.0), occupied, "the error names what stands in the way");
            }
            Err(MapError::OutOfMemory(iova)) => {
                assert!(all.contains(&iova.0) && occupied.is_none_or(|at| iova.0 <= at));
            }
            Err(other) => panic!("{other:?}"),
        }
        self.machine.end(self.context, self.map.clone());
        if result.is_err() {
            self.pending.push(all);
            self.flush().expect("nothing fails unasked");
        }
        result
    }

    /// Whether `at` cuts a block or a group of pages.
    fn cut(&self, at: u64) -> bool {
        at < self.shape.input_end()
            && self.machine.walk(self.context, at).is_ok_and(|leaf| leaf.widened().iova < at)
    }

    /// Unmaps whatever is there.
    pub fn unmap(&mut self, iova: u64, len: u64) -> Result<(), UnmapError> {
        self.unmapping(iova, len, false)
    }

    /// Unmaps unless there is a hole.
    pub fn unmap_checked(&mut self, iova: u64, len: u64) -> Result<(), UnmapError> {
        self.unmapping(iova, len, true)
    }

    fn unmapping(&mut self, iova: u64, len: u64, checked: bool) -> Result<(), UnmapError> {
        let range = iova..iova + len;
        let hole = self.map.hole(range.clone()).filter(|_| checked);
        let cut = hole.is_none() && (self.cut(range.start) || self.cut(range.end));
        let mut next = self.map.clone();
        let there = next.unmap(range.clone());
        self.machine.begin(self.context, next.clone());
        let mut part = self.table.whole();
        let result = if checked {
            part.unmap_checked(Iova(iova), len, &mut self.gather)
        } else {
            part.unmap(Iova(iova), len, &mut self.gather)
        };
        match result {
            Ok(removed) => {
                assert_eq!(hole, None, "a hole was not seen");
                assert!(!cut || self.config.bbml2, "a block was cut");
                assert!((there..=len).contains(&removed), "{removed:#x} of {there:#x} removed");
                assert!(!checked || removed == len);
                self.map = next;
                self.pending.push(range);
            }
            Err(UnmapError::Hole { iova, .. }) => assert_eq!(Some(iova.0), hole),
            Err(UnmapError::PartOfBlock { iova, .. }) => {
                assert!(cut && !self.config.bbml2, "no block is cut");
                let leaf = self.machine.walk(self.context, iova.0).expect("a block is there");
                assert_eq!(leaf.iova, iova.0, "the leaf begins with the block");
            }
            Err(UnmapError::OutOfMemory(_)) => assert!(cut, "nothing to split"),
            Err(other) => panic!("{other:?}"),
        }
        self.machine.end(self.context, self.map.clone());
        result.map(drop)
    }

    /// Unmaps parts of blocks while devices make no accesses. The remaining mappings are
    /// invalidated before the devices continue.
    pub fn unmap_quiesced(&mut self, iova: u64, len: u64) -> Result<(), UnmapError> {
        let range = iova..iova + len;
        let mut next = self.map.clone();
        next.unmap(range.clone());
        self.machine.quiesce(self.context, true);
        self.machine.begin(self.context, next.clone());
        let (machine, context, page_shift) = (self.machine, self.context, self.shape.page_shift());
        let result = self.table.whole().unmap_quiesced(Iova(iova), len, &mut self.gather, |run| {
            let facts = Facts { page_shift, has_ranges: true, live_entries: 0 };
            let operations = Strategy::ByPage.operations(Some(&[*run]), &facts);
            machine.flush(context, operations.as_slice())
        });
        if result.is_ok() {
            self.map = next;
            self.pending.push(range);
        }
        self.machine.end(self.context, self.map.clone());
        if result.is_ok() {
            self.flush().expect("nothing fails unasked");
        }
        self.machine.quiesce(self.context, false);
        self.machine.settle(self.context);
        result.map(drop)
    }

    /// Changes the attributes of a range: refused unless all of it is mapped and no block is cut.
    pub fn protect(&mut self, iova: u64, len: u64, kind: Kind) -> Result<(), UnmapError> {
        let range = iova..iova + len;
        let (hole, cut) =
            (self.map.hole(range.clone()), self.cut(range.start) || self.cut(range.end));
        let (stage, strategy) = (self.config.stage, self.strategy);
        let (attributes, meaning) = (kind.attributes(stage), kind.meaning(stage));
        let mut next = self.map.clone();
        if hole.is_none() {
            for (at, piece) in self.map.common(&self.map, range.clone()).pieces() {
                next.unmap(at..at + piece.len);
                next.map(at, piece.output, piece.len, meaning).expect("just unmapped");
            }
        }
        self.machine.begin(self.context, next.clone());
        let (machine, context, page_shift) = (self.machine, self.context, self.shape.page_shift());
        let failure = self.replacing.flatten();
        let flush = |run: &Run| {
            let facts = Facts { page_shift, has_ranges: true, live_entries: 0 };
            let operations = strategy.operations(Some(&[*run]), &facts);
            if failure != Some(FlushFailure::Before) {
                machine.flush(context, operations.as_slice())?;
            }
            failure.map_or(Ok(()), |_| Err(FlushError::Timeout))
        };
        let result =
            self.table.whole().protect(Iova(iova), len, attributes, &mut self.gather, flush);
        match result {
            Ok(changed) => {
                assert!(hole.is_none() && !cut && changed <= len);
                self.map = next;
            }
            Err(UnmapError::Hole { iova, .. }) => assert_eq!(Some(iova.0), hole),
            Err(UnmapError::PartOfBlock { .. }) => assert!(cut && hole.is_none()),
            Err(UnmapError::Flush { .. }) => assert!(failure.is_some()),
            Err(other) => panic!("{other:?}"),
        }
        self.machine.end(self.context, self.map.clone());
        result.map(drop)
    }

    /// Unhooks empty tables. Nothing that is mapped changes. The next map flushes first: a new table in the
    /// place of one that is cached would need a break.
    pub fn reclaim(&mut self) -> usize {
        self.machine.begin(self.context, self.map.clone());
        let count = self.table.whole().reclaim(&mut self.gather);
        self.machine.end(self.context, self.map.clone());
        if count != 0 {
            self.pending.push(0..self.shape.input_end());
        }
        count
    }

    /// Invalidates all that is gathered, frees its tables, and has the judge look.
    pub fn flush(&mut self) -> Result<(), FlushError> {
        let facts = Facts {
            page_shift: self.shape.page_shift(),
            has_ranges: true,
            live_entries: self.map.bytes() / self.page(),
        };
        let operations = self.strategy.operations(self.gather.runs(), &facts);
        self.machine.flush(self.context, operations.as_slice())?;
        // SAFETY: the gather is this table's, and the invalidation has completed.
        unsafe { self.table.release(&mut self.gather) };
        self.machine.settle(self.context);
        for range in self.pending.drain(..) {
            if self.map.first(range.clone()).is_none() {
                self.machine.given_back(self.context, range);
            }
        }
        Ok(())
    }

    /// Checks that the table's own lookups agree with the naive map.
    pub fn check_lookups(&self) {
        let mut found = Naive::new();
        for range in self.table.ranges(Iova(0)..Iova(self.shape.input_end())) {
            let at = range.iova.0;
            let (phys, meaning) = self.map.get(at).expect("it is mapped");
            assert_eq!(phys, range.phys.0);
            assert_eq!(self.map.hole(at..at + range.len), None);
            found.map(at, phys, range.len, meaning).expect("in order");
            for iova in [at, at + range.len - 1] {
                let there = self.table.iova_to_phys(Iova(iova)).expect("it is mapped");
                assert_eq!(Some(there.phys.0), self.map.get(iova).map(|to| to.0));
            }
            let before = at.checked_sub(1).and_then(|iova| self.table.iova_to_phys(Iova(iova)));
            let mapped = at.checked_sub(1).and_then(|iova| self.map.get(iova));
            assert_eq!(before.map(|there| there.phys.0), mapped.map(|to| to.0));
        }
        assert_eq!(found.bytes(), self.map.bytes());
    }

    /// Every allocated table is hooked or waits in the gather.
    #[track_caller]
    pub fn check_tables(&self) {
        let (tables, waiting) = (self.machine.tables(), self.gather.tables());
        assert_eq!(tables, self.machine.hooked() + waiting, "tables are neither");
    }

    /// Unmaps all, flushes, drops the table: nothing is left anywhere.
    pub fn finish(mut self) {
        // By page, that would take a command for each page that could have been mapped.
        self.strategy = Strategy::ByContext;
        self.unmap(0, self.shape.input_end()).expect("all of it can be unmapped");
        self.flush().expect("nothing fails unasked");
        self.machine.assert_sound();
        self.check_tables();
        assert_eq!(self.machine.tables(), 1, "only the root is left");
        let Self { machine, context, table, .. } = self;
        machine.detach(context);
        machine.flush(context, &[barewire_iommu::Tlbi::Context]).expect("nothing fails unasked");
        drop(ManuallyDrop::into_inner(table));
        machine.assert_sound();
        assert_eq!(machine.tables(), 0);
    }
}
