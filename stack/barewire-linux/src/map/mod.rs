//! A controller's registers in this process, for barewire's own drivers.
//!
//! **Experimental until it has run on a board.** Tested under Linux 6.1 in QEMU's guests, and on a
//! directory tree that stands in for `/sys`, `/proc` and `/dev`: ordinary files are the registers, a
//! FIFO is the interrupt. Not tested: real registers, real interrupts, real clocks.
//!
//! Read first: the kernel's `Documentation/driver-api/uio-howto.rst`; this crate's README.
//!
//! | access | needs | provides |
//! |---|---|---|
//! | [`Uio`] | a device-tree node that UIO drives; permission for `/dev/uioN` | registers and the interrupt |
//! | [`DevMem`] | `/dev/mem`, `CAP_SYS_RAWIO` | registers |
//! | [`Via::Door`] | the controller bound to this project's kernel module; permission for `/dev/barewireN` | registers, the interrupt, GPIO chip selects; its clock runs |
//!
//! The first two map only the pages that contain a block, and both refuse a controller to which a kernel
//! driver is bound ([`bound`]): two drivers on one FIFO lose words. Nothing prevents the kernel's
//! driver from being bound later; a [`Watch`] notices it. Once that driver is unbound, the kernel
//! has no user of the controller's clock, and a gated block does not answer: an access ends in a
//! bus error or hangs the machine. [`clock`] checks the clock where it can.
//!
//! [`Mapped`] does all of this for the controllers that barewire drives, each with its GPIO chip
//! selects, from a [`MapSpec`]:
//!
//! | block | controllers | chip selects | how it is known that the clock runs |
//! |---|---|---|---|
//! | [`ecspi`] | ECSPI of i.MX 6, 7, 8M | four native lines, i.MX GPIO | its clock gate's registers, and the kernel's count of its users |
//! | [`bcm2835`] | SPI0 of the Raspberry Pi up to the 4 | CE0 and CE1, BCM2835 GPIO | it always runs |
//! | [`pl022`] | PrimeCell SSP | PL061; or the native line, and then no other chip | its device-tree node says that it is fixed, or the kernel's count |
//! | [`dw_ssi`] | DW_apb_ssi: SPI of the Raspberry Pi 5 | two native lines, RP1's GPIO | on a Pi 5 it always runs |
//! | [`sifive`] | SiFive SPI: HiFive Unleashed and Unmatched | one native line, SiFive GPIO | it always runs |
//! | [`mcspi`] | McSPI: AM335x (BeagleBone), AM437x, AM62x, AM64x | four native lines, OMAP4's GPIO | the kernel's count, by its device-tree node |
//! | [`cadence`] | Cadence SPI: Zynq-7000 and UltraScale+ | three native lines, bank 0 of Zynq-7000's GPIO | the kernel's count, by its device-tree node |
//! | [`atmel`] | SPI of SAMA5D3, SAM9, AT91 | four native lines, PIO | the kernel's count, by its device-tree node |
//!
//! Any other block is mapped without a driver:
//!
//! ```no_run
//! use barewire::reg::Registers as _;
//! use barewire_linux::Root;
//! use barewire_linux::map::{DevMem, clock};
//!
//! let root = Root::system();
//! let memory = DevMem::open(&root)?;
//! let state = clock::check(&root, 0x3082_0000, Some(&memory));
//! if let Some(warning) = state.warning() {
//!     eprintln!("warning: {warning}");
//! }
//! let mut ecspi1 = memory.map_controller(0x3082_0000, 0x40)?;
//! let _conreg = ecspi1.read(0x08);
//! # Ok::<(), barewire_linux::map::MapError>(())
//! ```
//!
//! # Not supported
//! DMA memory; PCI devices' `resourceN` files; `vfio-platform`.

pub mod atmel;
pub mod bcm2835;
mod block;
pub mod bound;
pub mod cadence;
pub mod clock;
mod clock_state;
mod cs;
mod cs_open;
pub(crate) mod device;
mod devmem;
pub(crate) mod door;
pub mod dw_ssi;
pub mod ecspi;
mod error;
mod facts;
mod harmless;
mod in_use;
mod interrupt;
mod kernel_clock;
pub mod mapped;
pub mod mcspi;
pub mod pl022;
pub mod sifive;
mod spec;
mod stranger;
pub(crate) mod text;
pub(crate) mod uio;
mod watch;

pub use block::Block;
pub use clock_state::KernelClock;
pub use cs::CsGpio;
pub use devmem::DevMem;
pub use error::{MapError, WrongNode};
pub use harmless::Harmless;
pub use in_use::{MappedBlock, MappedController, MappedUser};
pub use interrupt::MappedInterrupt;
pub use mapped::{FirstRead, Mapped};
pub use spec::{CsLineAt, CsPin, LockAt, MapSpec, SpecError, Via};
pub use uio::{Uio, UioMap};
pub use watch::Watch;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;

use crate::root::Root;

/// Opens a device for mapping: for reading and writing, with O_SYNC, without which `/dev/mem` would
/// be mapped as cached memory.
fn open_device(root: &Root, path: &str) -> Result<File, Errno> {
    let flags = rustix::fs::OFlags::SYNC.bits() as i32;
    let opened =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(root.path(path));
    opened.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}
