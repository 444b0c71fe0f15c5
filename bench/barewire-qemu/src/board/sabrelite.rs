//! `sabrelite`: the SABRE Lite, i.MX 6 with ECSPI1 and an SST25VF016B on it.
//!
//! *Read first*: i.MX 6Dual/6Quad reference manual, "ECSPI"; SST25VF016B, datasheet.
//!
//! # Where QEMU's model differs from the manual
//! Tried with QEMU 7.2 and 10.0.
//! 1. A burst takes no time: XCH is clear when it is next looked at.
//! 2. TESTREG's RXCNT and TXCNT stay 0, so RX can be counted by STATREG's RR alone.
//! 3. LBC does nothing: no loopback. No chip select but the flash's is wired, and that one is a GPIO.
//! 4. The flash powers up unprotected, and does not know the 32 KiB erase (52h): it complains,
//!    and erases.

use barewire::controller::CsLine;

use crate::error::Version;
use crate::spec::{BoardSpec, InterruptTap, Medium, QEMU_ARM, Silicon, Storage};

/// The datasheet has the 32 KiB block erase (52h); QEMU's table of the part does not. It complains
/// and erases.
const ERASE_32K: &str = "M25P80: 32768 erase size not supported by device";

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "sabrelite",
    machine: "sabrelite",
    memory: "64M",
    program: QEMU_ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon::Ecspi {
        // ECSPI1; its root clock is PLL3 (480 MHz) divided by 8.
        base: 0x0200_8000,
        reference_hz: 60_000_000,
        // GPIO3_IO19.
        gpio_base: 0x020a_4000,
        cs: CsLine::Gpio { bit: 19, active_high: false },
    },
    interrupt: &[InterruptTap::In { path: "/machine/soc/a9mpcore/gic", line: 31 }],
    loopback: false,
    storage: Some(Storage { name: "SST25VF016B", size: 2 << 20, medium: Medium::Flash }),
    tolerated: &[ERASE_32K],
};
