//! `sabrelite`: the SABRE Lite, i.MX 6 with ECSPI1 and an SST25VF016B on it.
//!
//! *Read first*: i.MX 6Dual/6Quad reference manual, "ECSPI"; SST25VF016B, datasheet.
//!
//! # Where QEMU's model differs from the manual
//! Tried with QEMU 7.2 and 10.0.
//! 1. A burst takes no time: XCH is clear at the next read.
//! 2. TESTREG's RXCNT and TXCNT stay 0, so received words can be detected only by STATREG's RR.
//! 3. LBC has no effect: there is no loopback. Only the flash's chip select is connected, and it is
//!    a GPIO line.
//! 4. The flash powers up unprotected. It does not know the 32 KiB erase (52h): it reports an
//!    error, and erases.

use barewire_qtest::{QemuProgram, Version};

use crate::driver::ecspi;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Medium, Silicon, Storage, gpio_lines};

/// The datasheet has the 32 KiB block erase (52h), but QEMU's table of the part does not. QEMU
/// reports an error, and erases.
const ERASE_32K: &str = "M25P80: 32768 erase size not supported by device";

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "sabrelite",
    machine: "sabrelite",
    memory: "64M",
    program: QemuProgram::ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon {
        block: &ecspi::BLOCK,
        // ECSPI1; its root clock is PLL3 (480 MHz) divided by 8.
        base: 0x0200_8000,
        reference_hz: 60_000_000,
        // GPIO3_IO19.
        gpio_base: 0x020a_4000,
        chip_selects: gpio_lines(&[19]),
    },
    interrupt: &[InterruptTap::In { path: "/machine/soc/a9mpcore/gic", line: 31 }],
    loopback: false,
    storage: Some(Storage { name: "SST25VF016B", size: 2 << 20, medium: Medium::Flash }),
    tolerated: &[ERASE_32K],
};
