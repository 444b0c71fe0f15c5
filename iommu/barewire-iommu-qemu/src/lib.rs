//! QEMU's `virt` machine with an SMMUv3, and a device behind it that does DMA, on which barewire-iommu runs
//! unchanged.
//!
//! *Read first*: IHI 0070 (SMMUv3); QEMU's documentation, "'virt' generic virtual platform" and
//! "EDU device".
//!
//! # How it works
//! 1. Memory: the machine's memory is a file that this process maps ([`GuestRam`]). Tables and
//!    queues are written where the SMMU's model reads them ([`GuestPool`]).
//! 2. Registers: the shipped driver accesses the SMMU's registers over qtest ([`SmmuRegisters`]).
//! 3. Device: the device ([`Edu`]) reads and writes memory through the SMMU on command.
//! 4. Time: DMA needs time to pass, so the machine's processor runs. It waits for an interrupt for
//!    ever, in a loop of two instructions. With `-icount sleep=off`, time jumps to the next event.
//!
//! # Where QEMU's SMMUv3 differs from the manual, or from what hardware may do
//! Tried with QEMU 7.2 and 10.0; `tests/it/smmu_model.rs` tests every line.
//! 1. **Its TLB has 256 entries and drops all of them when a 257th is added.** So a stale entry is
//!    only seen if few pages were accessed since.
//! 2. **It does not cache table descriptors**: an unhooked table is never walked again, even
//!    without invalidation. An invalidation with the leaf hint has the same effect as one without.
//! 3. **It does not check TTL**: an entry of another level is removed all the same.
//! 4. An invalidation by address removes a block if it contains the address.
//! 5. Commands complete in the write of SMMU_CMDQ_PROD, so a wait that is too short is not
//!    detected.
//! 6. SMMU_IDR0.COHACC is set and there are no caches, so missing cache maintenance is not
//!    detected.
//! 7. Stage 2 came with QEMU 8.1 (SMMU_IDR0.S2P). Earlier versions ignore VMIDs in commands.
//! 8. An event that finds the queue full sets SMMU_GERROR.EVENTQ_ABT_ERR and never
//!    EVENTQ_PROD.OVFLG.
//! 9. A transfer that faults continues in pieces of 4 bytes, each with an event of its own.
//! 10. **At stage 2 some faults are not recorded**, though the access is aborted: an access that an
//!     entry of the TLB does not permit, and one to an address beyond SMMU_IDR5.OAS.
//! 11. **Of a stage 2 root of several tables only the first is walked**, with the index within each
//!     table: an address of the second table gets the translation from the first.
//! 12. QEMU 7.2's SMMU has no SMMU_GBPA: accesses pass until its stream table is enabled.
//!
//! barewire-iommu-model is the model that caches everything hardware may cache.
//!
//! ```no_run
//! use barewire_iommu::smmu::v3::{Settings, Smmu};
//! use barewire_iommu_qemu::{VirtMachine, VirtOptions};
//!
//! let machine = VirtMachine::open(&VirtOptions::default())?;
//! let smmu = Smmu::new(machine.smmu(), machine.pool(), Settings::default())?;
//! println!("stage 2: {}", smmu.features().stage2);
//! smmu.shut_down()?;
//! machine.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not supported
//! Stages nested, SubstreamIDs (the model has none), PRI, ATS, MSIs.

mod edu;
mod log;
mod machine;
mod pool;
mod ram;
mod registers;

pub use barewire_qtest::{QemuError, Version};

pub use edu::{EDU_BUFFER_BYTES, Edu};
pub use machine::{VirtMachine, VirtOptions};
pub use pool::GuestPool;
pub use ram::GuestRam;
pub use registers::SmmuRegisters;
