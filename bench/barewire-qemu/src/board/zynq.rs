//! `zynq`: `xilinx-zynq-a9`, a Zynq-7000. SPI0 has an N25Q128 on each of four lines; the file is that of SS0.
//!
//! *Read first*: Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), chapter 17 and appendix B.30.
//!
//! # Where QEMU's model differs from the manual
//! Tried with QEMU 10.0. `tests/on_qemu/cadence.rs` tests every line.
//! 1. A byte takes no time: it is received before the write to Tx_data has ended.
//! 2. En_reg0 is stored, and has no other effect: a disabled block sends.
//! 3. CS has a line for each of its four bits, each by itself.
//! 4. Polarity, phase, divider and delays are stored and ignored, and so is the role: a target sends too.
//! 5. Both thresholds keep all 32 bits.
//! 6. A read of an empty receive FIFO gives 0. The status has a bit more: bit 8, the transmit FIFO is empty. A read of
//!    it clears RX_OVERFLOW.
//!
//! The N25Q128 has no SFDP, which silicon of today has.

use barewire::controller::CsLine;
use barewire_qtest::{QemuProgram, Version};

use crate::driver::cadence;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Medium, Silicon, Storage};

const fn line(channel: u8) -> CsLine {
    CsLine::Native { channel, active_high: false }
}

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "zynq",
    machine: "xilinx-zynq-a9",
    memory: "128M",
    program: QemuProgram::ARM,
    needed: Version { major: 10, minor: 0 },
    silicon: Silicon {
        block: &cadence::BLOCK,
        base: 0xe000_6000,
        // The manual's largest. The model has no clock.
        reference_hz: 166_666_666,
        gpio_base: 0xe000_a000,
        chip_selects: [line(0), line(1), line(2), CsLine::Absent],
    },
    // Interrupt 58; the first 32 are not inputs.
    interrupt: &[InterruptTap::In { path: "/machine/unattached/device[3]/gic", line: 26 }],
    loopback: false,
    storage: Some(Storage { name: "N25Q128", size: 16 << 20, medium: Medium::Flash }),
    // The driver asks for SFDP.
    tolerated: &["M25P80: Unknown cmd 5a"],
};
