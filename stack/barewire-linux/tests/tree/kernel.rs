//! A kernel's GPIO side for tests: chips, their lines, the users of the lines, and a driver that
//! writes cached values.
//!
//! Written from Linux 6.12's `drivers/gpio/gpio-mmio.c` as `gpio-mxc` uses it: data and direction are read
//! once, when the driver is loaded; each change of a line writes all 32 from what is remembered.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use barewire_linux::Errno;
use barewire_linux::gpio::{ChipInfo, Edge, Kernel, KernelChip, LineInfo, Lines, Sense};

use crate::fake::{Registers, Tree};

const DR: u64 = 0;
const GDIR: u64 = 4;

/// The driver's registers, and what it remembers of them.
struct Mmio {
    memory: Registers,
    base: u64,
    data: u32,
    direction: u32,
}

struct FakeChip {
    node: PathBuf,
    label: String,
    lines: Vec<LineInfo>,
    mmio: Option<Mmio>,
    /// Levels of lines without registers.
    levels: u64,
    edges: VecDeque<Edge>,
    /// Edges for which a caller slept.
    slept: u32,
    /// The error of the next calls on lines.
    broken: Option<Errno>,
    /// Called by the kernel when a line is driven: another driver's interrupt, say.
    meanwhile: Option<fn(&FakeKernel)>,
    log: Vec<String>,
}

impl FakeChip {
    fn set(&mut self, offset: u32, high: bool) {
        let bit = 1 << offset;
        self.levels = if high { self.levels | bit } else { self.levels & !bit };
        if let Some(mmio) = &mut self.mmio {
            mmio.data = if high { mmio.data | bit as u32 } else { mmio.data & !bit as u32 };
            mmio.memory.set(mmio.base + DR, mmio.data);
        }
    }

    fn direct(&mut self, offset: u32, output: bool) {
        if let Some(mmio) = &mut self.mmio {
            let bit = 1 << offset;
            mmio.direction = if output { mmio.direction | bit } else { mmio.direction & !bit };
            mmio.memory.set(mmio.base + GDIR, mmio.direction);
        }
    }
}

/// The kernel. Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct FakeKernel(Arc<Mutex<Vec<FakeChip>>>);

impl std::fmt::Debug for FakeKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FakeKernel")
    }
}

impl FakeKernel {
    fn chips(&self) -> MutexGuard<'_, Vec<FakeChip>> {
        self.0.lock().expect("no test panics while it has the kernel")
    }

    /// A chip with `count` lines whose node is `/dev/NAME`. With `base` its registers are those of i.MX,
    /// in `/dev/mem`, and read now.
    pub(crate) fn with(
        self,
        tree: &Tree,
        name: &str,
        label: &str,
        count: usize,
        base: Option<u64>,
    ) -> Self {
        let mmio = base.map(|base| {
            let memory = Registers::of(tree, "/dev/mem");
            let (data, direction) = (memory.get(base + DR), memory.get(base + GDIR));
            Mmio { memory, base, data, direction }
        });
        self.chips().push(FakeChip {
            node: tree.root().path(format!("/dev/{name}")),
            label: label.into(),
            lines: vec![LineInfo::default(); count],
            mmio,
            levels: 0,
            edges: VecDeque::new(),
            slept: 0,
            broken: None,
            meanwhile: None,
            log: Vec::new(),
        });
        self
    }

    fn on<R>(&self, chip: usize, with: impl FnOnce(&mut FakeChip) -> R) -> R {
        with(&mut self.chips()[chip])
    }

    /// A kernel driver takes a line.
    pub(crate) fn used_by(self, chip: usize, offset: u32, name: &str, consumer: &str) -> Self {
        let info = LineInfo { name: name.into(), consumer: consumer.into(), used: true };
        self.on(chip, |chip| chip.lines[offset as usize] = info);
        self
    }

    /// Whether a process has a line.
    pub(crate) fn is_used(&self, chip: usize, offset: u32) -> bool {
        self.on(chip, |chip| chip.lines[offset as usize].used)
    }

    /// A kernel driver drives a line.
    pub(crate) fn drives(&self, chip: usize, offset: u32, high: bool) {
        self.on(chip, |chip| chip.set(offset, high));
    }

    /// A kernel driver turns a line.
    pub(crate) fn turns(&self, chip: usize, offset: u32, output: bool) {
        self.on(chip, |chip| chip.direct(offset, output));
    }

    /// Sets the action to take whenever a process drives a line of the chip.
    pub(crate) fn meanwhile(&self, chip: usize, act: fn(&FakeKernel)) {
        self.on(chip, |chip| chip.meanwhile = Some(act));
    }

    /// Every call on lines fails from now on.
    pub(crate) fn breaks(&self, chip: usize, errno: Errno) {
        self.on(chip, |chip| chip.broken = Some(errno));
    }

    /// The accesses of processes to a chip's lines since the last call.
    pub(crate) fn take_log(&self, chip: usize) -> Vec<String> {
        self.on(chip, |chip| std::mem::take(&mut chip.log))
    }

    /// A line moves from outside, and that is an edge.
    pub(crate) fn moves(&self, chip: usize, offset: u32, high: bool, edge: Edge) {
        self.on(chip, |chip| {
            let bit = 1 << offset;
            chip.levels = if high { chip.levels | bit } else { chip.levels & !bit };
            chip.edges.push_back(edge);
        });
    }

    /// How often a caller waited for an edge.
    pub(crate) fn slept(&self, chip: usize) -> u32 {
        self.on(chip, |chip| chip.slept)
    }
}

impl Kernel for FakeKernel {
    fn open(&self, path: &Path) -> Result<Box<dyn KernelChip>, Errno> {
        let found = self.chips().iter().position(|chip| chip.node == path);
        let index = found.ok_or(Errno::NOENT)?;
        Ok(Box::new(OpenChip { kernel: self.clone(), index }))
    }
}

#[derive(Debug)]
struct OpenChip {
    kernel: FakeKernel,
    index: usize,
}

impl OpenChip {
    fn take(&self, offsets: &[u32]) -> Result<Box<dyn Lines>, Errno> {
        self.kernel.on(self.index, |chip| {
            let lines = &mut chip.lines;
            if offsets.iter().any(|&offset| lines[offset as usize].used) {
                return Err(Errno::BUSY);
            }
            for &offset in offsets {
                let name = std::mem::take(&mut lines[offset as usize].name);
                let consumer = "barewire".into();
                lines[offset as usize] = LineInfo { name, consumer, used: true };
            }
            chip.log.push(format!("request {offsets:?}"));
            Ok(())
        })?;
        let (kernel, index) = (self.kernel.clone(), self.index);
        Ok(Box::new(OpenLines { kernel, index, offsets: offsets.to_vec() }))
    }
}

impl KernelChip for OpenChip {
    fn info(&self) -> Result<ChipInfo, Errno> {
        self.kernel.on(self.index, |chip| {
            Ok(ChipInfo { label: chip.label.clone(), lines: chip.lines.len() as u32 })
        })
    }

    fn line(&self, offset: u32) -> Result<LineInfo, Errno> {
        let line = self.kernel.on(self.index, |chip| chip.lines.get(offset as usize).cloned());
        line.ok_or(Errno::INVAL)
    }

    fn request(&self, offsets: &[u32]) -> Result<Box<dyn Lines>, Errno> {
        self.take(offsets)
    }

    fn request_edges(&self, offset: u32, sense: Sense) -> Result<Box<dyn Lines>, Errno> {
        let lines = self.take(&[offset])?;
        self.kernel.on(self.index, |chip| chip.log.push(format!("edges {sense:?}")));
        Ok(lines)
    }
}

#[derive(Debug)]
struct OpenLines {
    kernel: FakeKernel,
    index: usize,
    offsets: Vec<u32>,
}

impl OpenLines {
    /// Calls `with` for each line of `mask`, with its level in `high`.
    fn each(
        &self,
        what: &str,
        mask: u64,
        high: u64,
        with: impl Fn(&mut FakeChip, u32, bool),
    ) -> Result<(), Errno> {
        let meanwhile = self.kernel.on(self.index, |chip| {
            if let Some(errno) = chip.broken {
                return Err(errno);
            }
            for (bit, &offset) in self.offsets.iter().enumerate() {
                if mask >> bit & 1 != 0 {
                    let high = high >> bit & 1 != 0;
                    chip.log.push(format!("{what} {offset} {}", if high { "high" } else { "low" }));
                    with(chip, offset, high);
                }
            }
            Ok(chip.meanwhile)
        })?;
        if let Some(act) = meanwhile {
            act(&self.kernel);
        }
        Ok(())
    }
}

impl Lines for OpenLines {
    fn output(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        self.each("output", mask, high, |chip, offset, high| {
            chip.set(offset, high);
            chip.direct(offset, true);
        })
    }

    fn set(&mut self, mask: u64, high: u64) -> Result<(), Errno> {
        self.each("set", mask, high, FakeChip::set)
    }

    fn levels(&mut self, mask: u64) -> Result<u64, Errno> {
        self.kernel.on(self.index, |chip| {
            let bits = self.offsets.iter().enumerate();
            Ok(bits.fold(0, |levels, (bit, &offset)| levels | (chip.levels >> offset & 1) << bit)
                & mask)
        })
    }

    fn edge(&mut self, timeout: Duration) -> Result<Option<Edge>, Errno> {
        let waited = self.kernel.on(self.index, |chip| {
            chip.slept += 1;
            chip.edges.pop_front()
        });
        if waited.is_none() {
            std::thread::sleep(timeout);
        }
        Ok(waited)
    }
}

impl Drop for OpenLines {
    fn drop(&mut self) {
        self.kernel.on(self.index, |chip| {
            for &offset in &self.offsets {
                chip.lines[offset as usize].used = false;
            }
        });
    }
}
