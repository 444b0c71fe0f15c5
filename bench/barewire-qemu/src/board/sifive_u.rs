//! `sifive_u` and `sifive_u_sd`: the HiFive Unleashed, FU540-C000. SPI0 has an IS25WP256, SPI2 an SD
//! card.
//!
//! *Read first*: SiFive, *SiFive FU540-C000 Manual*, chapter "Serial Peripheral Interface (SPI)".
//!
//! # Where QEMU's model differs from the manual
//! Read in the model's source; the machine runs with QEMU 10.0.
//! 1. A byte takes no time, and TXDATA is never full.
//! 2. There is one select line. CSID and CSDEF refuse other lines.
//! 3. Every CSMODE that is not AUTO selects, OFF too. AUTO never selects, not even during a frame.
//! 4. SCKDIV, SCKMODE, the delays and TXMARK keep all 32 bits. Only TXMARK has an effect.
//! 5. Of FMT, only the direction has an effect. FMT is 0 after a reset, and DELAY0 is 0x1001.
//! 6. FCTRL and FFMT read 0. A write is reported as not implemented.

use barewire::controller::CsLine;
use barewire_qtest::{QemuProgram, Version};

use crate::driver::sifive;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Medium, Silicon, Storage};

const PLIC: &str = "/machine/unattached/device[0]";
const LINE_0: CsLine = CsLine::Native { channel: 0, active_high: false };

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "sifive_u",
    machine: "sifive_u,firmware=none",
    memory: "128M",
    program: QemuProgram::RISCV64,
    needed: Version { major: 10, minor: 0 },
    silicon: Silicon {
        block: &sifive::BLOCK,
        base: 0x1004_0000,
        // The manual's largest tlclk. The model has no clock.
        reference_hz: 500_000_000,
        gpio_base: 0x1006_0000,
        chip_selects: [LINE_0, CsLine::Absent, CsLine::Absent, CsLine::Absent],
    },
    interrupt: &[InterruptTap::In { path: PLIC, line: 51 }],
    loopback: false,
    storage: Some(Storage { name: "IS25WP256", size: 32 << 20, medium: Medium::Flash }),
    // FCTRL: the driver switches the flash interface off.
    tolerated: &["sifive_spi_write: direct-map"],
};

pub(super) const BOARD_SD: BoardSpec = BoardSpec {
    name: "sifive_u_sd",
    silicon: Silicon { base: 0x1005_0000, ..BOARD.silicon },
    interrupt: &[InterruptTap::In { path: PLIC, line: 6 }],
    storage: Some(Storage { name: "SD card", size: 64 << 20, medium: Medium::SdCard }),
    ..BOARD
};
