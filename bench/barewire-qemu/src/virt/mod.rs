//! QEMU's `virt` machine with an SMMUv3 and a device that does DMA behind it.
//!
//! *Read first*: IHI 0070 (SMMUv3); QEMU's documentation, "'virt' generic virtual platform" and
//! "EDU device".
//!
//! # How it works
//! 1. The machine's memory is a file that this process maps ([`GuestRam`]): tables and queues are
//!    written where the SMMU's model reads them ([`GuestPool`]).
//! 2. The SMMU's registers are reached over qtest ([`SmmuRegisters`]), by the driver that ships.
//! 3. The device ([`Edu`]) reads and writes memory when told, through the SMMU.
//! 4. Its DMA needs time to pass, so the machine's processor runs: it waits for an interrupt for
//!    ever, in a loop of two instructions, and with `-icount sleep=off` time jumps to the next event.
//!
//! # Where QEMU's SMMUv3 differs from the manual, or from what hardware may do
//! Tried with QEMU 7.2 and 10.0; `tests/it/smmu_model.rs` holds every line.
//! 1. **Its TLB has 256 entries and forgets all of them when a 257th is to go in.** So a stale entry
//!    is only seen where few pages were touched since.
//! 2. **It keeps no walks**: a table that was unhooked is never walked again, whatever was invalidated.
//!    To name leaves alone does what to name everything does.
//! 3. **It does not believe TTL**: an entry of another level is removed all the same.
//! 4. An invalidation by address removes a block if any address within is named.
//! 5. Commands complete in the write of SMMU_CMDQ_PROD: what waits too little is not seen here.
//! 6. SMMU_IDR0.COHACC is set and nothing is cached: missing cache maintenance is not seen here.
//! 7. Stage 2 came with QEMU 8.1 (SMMU_IDR0.S2P). Before, VMIDs in commands are not looked at.
//! 8. An event that finds the queue full sets SMMU_GERROR.EVENTQ_ABT_ERR and never
//!    EVENTQ_PROD.OVFLG.
//! 9. A transfer that faults goes on in pieces of 4 bytes, and each is an event.
//! 10. **At stage 2 some faults are not recorded**, though the access is aborted: one that an entry of
//!     the TLB does not allow, and one at an address beyond SMMU_IDR5.OAS.
//! 11. **Of a stage 2 root of several tables only the first is walked**, with the index within each: an
//!     address of the second finds what the first has there.
//! 12. QEMU 7.2's has no SMMU_GBPA: before its stream table is enabled, accesses pass.
//!
//! A model that keeps all that hardware may keep is barewire-iommu's own affair.
//!
//! # Not supported
//! Stages nested, SubstreamIDs (the model has none), PRI, ATS, MSIs.

mod edu;
mod log;
mod pool;
mod ram;
mod registers;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use barewire_iommu::PhysAddr;

use crate::error::{QemuError, Version};
use crate::private_dir::PrivateDir;
use crate::process::{Launch, Qemu};
use crate::spec::QEMU_AARCH64;

pub use edu::{EDU_BUFFER_BYTES, Edu};
pub use pool::GuestPool;
pub use ram::GuestRam;
pub use registers::SmmuRegisters;

/// The oldest QEMU that was tried. Its SMMU has stage 1 only.
const NEEDED: Version = Version { major: 7, minor: 2 };

/// Where the machine has its memory, with `highmem=off`; QEMU's device tree lies at its beginning.
const RAM: u64 = 0x4000_0000;
const RAM_BYTES: usize = 128 << 20;
/// What its processor runs: clear of the device tree.
const LOOP: u64 = RAM + (4 << 20);
/// WFI, and back to it: as the two words lie in memory.
const LOOP_WORDS: u64 = 0x17ff_ffff_d503_207f;
/// Tables and queues; after them comes what DMA is to reach.
const POOL: u64 = RAM + (8 << 20);
const POOL_BYTES: usize = 24 << 20;
const DATA: u64 = POOL + POOL_BYTES as u64;

const SMMU: u32 = 0x0905_0000;
/// PCI's configuration space, and where BARs may point.
const ECAM: u32 = 0x3f00_0000;
const MMIO: u32 = 0x1000_0000;

/// What a user may choose of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtOptions {
    /// Another QEMU than the environment's or the command's.
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
    /// Where memory for DMA begins: a multiple of 32 MiB.
    pub const DATA: PhysAddr = PhysAddr(DATA);

    /// Starts the machine, waits until it answers, and sets its device up.
    ///
    /// # Errors
    /// A QEMU that is missing, too old, or none; one that ends or does not answer in time; a
    /// directory for temporary files that cannot be used. Nothing is left running.
    pub fn open(options: &VirtOptions) -> Result<Self, QemuError> {
        let dir = PrivateDir::new()?;
        let program = QEMU_AARCH64.find(options.program.as_deref(), NEEDED, &dir)?;
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
            // Without it the processor is one of 32 bits.
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
        // Both have it mapped. So it goes with the last of them, whatever becomes of this process.
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

    /// Memory for DMA: from [`VirtMachine::DATA`] on.
    #[must_use]
    pub fn data(&self) -> &GuestRam {
        &self.data
    }

    /// QEMU's process, for messages and tests.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.qemu.pid()
    }

    /// Why QEMU no longer answers, if so.
    #[must_use]
    pub fn lost(&self) -> Option<QemuError> {
        self.qemu.lost()
    }

    /// The names of the commands that the SMMU's model has taken: `TLBI_NH_VA`, say.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn commands(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| log::commands(&log))
    }

    /// What QEMU has complained about: stream table entries, context descriptors and commands that
    /// it does not understand. What became an event is left out.
    ///
    /// # Errors
    /// QEMU's log cannot be read.
    pub fn misuse(&self) -> Result<Vec<String>, QemuError> {
        self.qemu.log().map(|log| log::complaints(&log))
    }

    /// Ends QEMU in an orderly way.
    ///
    /// # Errors
    /// [`VirtMachine::lost`]'s; a QEMU that does not end in time or not well. It is gone all the same.
    pub fn close(self) -> Result<(), QemuError> {
        self.qemu.close()
    }
}
