//! The machine: its memory, its options, its parts.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use barewire_iommu::PhysAddr;
use barewire_qtest::{Launch, PrivateDir, Qemu, QemuError, QemuProgram, Version};

use crate::edu::Edu;
use crate::log;
use crate::pool::GuestPool;
use crate::ram::GuestRam;
use crate::registers::SmmuRegisters;

/// The oldest QEMU that was tried. Its SMMU has stage 1 only.
const NEEDED: Version = Version { major: 7, minor: 2 };

/// The address of the machine's memory, with `highmem=off`. QEMU's device tree is at its beginning.
const RAM: u64 = 0x4000_0000;
const RAM_BYTES: usize = 128 << 20;
/// The address of the processor's loop, clear of the device tree.
const LOOP: u64 = RAM + (4 << 20);
/// WFI and a branch back to it, as two words in memory.
const LOOP_WORDS: u64 = 0x17ff_ffff_d503_207f;
/// Tables and queues. The memory after them is for DMA.
const POOL: u64 = RAM + (8 << 20);
const POOL_BYTES: usize = 24 << 20;
const DATA: u64 = POOL + POOL_BYTES as u64;

const SMMU: u32 = 0x0905_0000;

/// Options for the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtOptions {
    /// The QEMU to run, instead of the one named by the environment or the default command.
    pub program: Option<PathBuf>,
    /// How long QEMU may take to answer.
    pub connect_timeout: Duration,
}

impl Default for VirtOptions {
    fn default() -> Self {
        Self { program: None, connect_timeout: Duration::from_secs(10) }
    }
}

/// A `virt` machine in a QEMU of its own. Dropping it ends QEMU.
#[derive(Debug)]
pub struct VirtMachine {
    qemu: Qemu,
    edu: Edu,
    pool: GuestPool,
    data: GuestRam,
}

impl VirtMachine {
    /// The first address of memory for DMA: a multiple of 32 MiB.
    pub const DATA: PhysAddr = PhysAddr(DATA);

    /// Starts the machine, waits until it answers, and sets its device up.
    ///
    /// # Errors
    /// - QEMU is missing, too old, or not QEMU.
    /// - QEMU ends, or does not answer in time.
    /// - The directory for temporary files cannot be used.
    ///
    /// No process is left running then.
    pub fn open(options: &VirtOptions) -> Result<Self, QemuError> {
        let dir = PrivateDir::new()?;
        let program = QemuProgram::AARCH64.find(options.program.as_deref(), NEEDED, &dir)?;
        let path = dir.join("ram");
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(QemuError::file(&path, "create"))?;
        file.set_len(RAM_BYTES as u64).map_err(QemuError::file(&path, "enlarge"))?;
        let map = |at, bytes| GuestRam::map(&file, &path, RAM, at - RAM, bytes);
        let pool = GuestPool::new(map(POOL, POOL_BYTES)?);
        let data = map(DATA, RAM_BYTES - (DATA - RAM) as usize)?;
        let memory = format!("{}M", RAM_BYTES >> 20);
        let more = [
            ["-object", &format!("memory-backend-file,id=ram,size={memory},mem-path=ram,share=on")],
            ["-accel", "tcg"],
            ["-icount", "shift=0,sleep=off"],
            // Without it the machine has a 32-bit processor.
            ["-cpu", "cortex-a57"],
            ["-device", &format!("loader,addr={LOOP:#x},data={LOOP_WORDS:#x},data-len=8")],
            ["-device", &format!("loader,addr={LOOP:#x},cpu-num=0")],
            ["-device", "edu,dma_mask=0xffffffffffffffff"],
        ];
        let mut more: Vec<String> = more.as_flattened().iter().map(|&s| s.to_owned()).collect();
        more.push("-nodefaults".into());
        let launch = Launch {
            program: &program,
            machine: "virt,iommu=smmuv3,highmem=off,memory-backend=ram",
            memory: &memory,
            drive: None,
            trace: Some(log::EVENTS),
            stopped: false,
            more: &more,
            connect_timeout: options.connect_timeout,
        };
        let qemu = Qemu::start(&launch, dir)?;
        // Both processes have it mapped, so the kernel frees it when the last of them ends, even if
        // this one is killed.
        std::fs::remove_file(&path).map_err(QemuError::file(&path, "remove"))?;
        let edu = Edu::find(qemu.link()).map_err(|error| qemu.lost().unwrap_or(error))?;
        Ok(Self { qemu, edu, pool, data })
    }

    /// The SMMU's registers.
    #[must_use]
    pub fn smmu(&self) -> SmmuRegisters {
        SmmuRegisters::new(self.qemu.link(), SMMU)
    }

    /// The device behind it.
    #[must_use]
    pub fn edu(&self) -> &Edu {
        &self.edu
    }

    /// Memory for tables and queues.
    #[must_use]
    pub fn pool(&self) -> &GuestPool {
        &self.pool
    }

    /// Memory for DMA, beginning at [`VirtMachine::DATA`].
    #[must_use]
    pub fn data(&self) -> &GuestRam {
        &self.data
    }

    /// The process id of QEMU, for messages and tests.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.qemu.pid()
    }

    /// Why QEMU no longer answers, if so.
    #[must_use]
    pub fn lost(&self) -> Option<QemuError> {
        self.qemu.lost()
    }

    /// The names of the commands that the SMMU's model has received, for example `TLBI_NH_VA`.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn commands(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| log::commands(&log))
    }

    /// QEMU's complaints: stream table entries, context descriptors and commands that it does not
    /// understand. Complaints that also became an event are left out.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn misuse(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| log::complaints(&log))
    }

    /// Ends QEMU in an orderly way.
    ///
    /// # Errors
    /// The error of [`VirtMachine::lost`]; QEMU does not end in time or not successfully. It has
    /// ended in any case.
    pub fn close(self) -> Result<(), QemuError> {
        self.qemu.close()
    }
}
