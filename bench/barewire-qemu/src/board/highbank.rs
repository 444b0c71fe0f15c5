//! `highbank`: the Calxeda ECX-1000, for its PL022. No chip is connected to it.
//!
//! *Read first*: Arm PrimeCell Synchronous Serial Port (PL022) technical reference manual,
//! chapter 3; PrimeCell GPIO (PL061) technical reference manual.
//!
//! # Where QEMU's PL022 differs from the manual
//! Tried with QEMU 7.2 and 10.0, which behave alike; `lm3s6965evb` has the same model.
//! `tests/it/pl022.rs` tests every line.
//! 1. No time: with SSE set and room in RX FIFO, a word written to SSPDR is received before the
//!    write has ended. So BSY is set only while words wait.
//! 2. No overrun: when RX FIFO holds 8 frames, transmission stops. Up to 8 more words wait in TX
//!    FIFO and are sent when SSPDR is read. RORRIS is never set. Words written to a full TX FIFO
//!    are lost without a message.
//! 3. No receive timeout: RTRIS is never set. A driver that waits for the last frames of a transfer
//!    (fewer than 4) by RTIM only waits for ever.
//! 4. RXRIS is set at 4 frames or more and TXRIS at 4 or fewer, as in the manual. Since TX FIFO
//!    empties at once, TXRIS is clear only with RX FIFO full or SSE clear.
//! 5. SSPICR accepts writes, which have no effect: the bits it could clear are never set.
//! 6. Of SSPCR0 only DSS has an effect. SSPCR0 and SSPIMSC are stored with all 32 bits. FRF, SPO,
//!    SPH, SCR and SSPCPSR are stored and ignored. **Until SSPCR0 is written, words have 0 bits**:
//!    they are sent, and looped back, as 0.
//! 7. LBM loops back. Clearing SSE keeps both FIFOs. Words written then wait until it is set again.
//! 8. MS with SSE is reported on QEMU's standard error and ignored: the block stays controller.
//! 9. SSPDMACR reads as 0; writing another value is reported.
//! 10. SSPDR of an empty FIFO reads as 0, without a message. With no chip, or none selected, 0 is
//!     received.
//! 11. SSPFSSOUT does not exist: a chip select is a GPIO line, or none.
//!
//! PL061: a line is driven when GPIODIR says so. A write to GPIODATA before that is lost.
//!
//! # Not supported
//! A chip: QEMU's board code connects none here. Of the other boards with a PL022 only
//! `lm3s6965evb` has a chip (`mps2-an385` and similar boards have five or more PL022s without one;
//! `versatilepb` and `realview-eb` have no PL022).

use barewire::controller::CsLine;
use barewire_qtest::{QemuProgram, Version};

use crate::driver::pl022;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Silicon};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "highbank",
    machine: "highbank",
    memory: "64M",
    program: QemuProgram::ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon {
        block: &pl022::BLOCK,
        base: 0xfff3_9000,
        // The device tree's pclk. The model has no clock.
        reference_hz: 150_000_000,
        // The first of four PL061.
        gpio_base: 0xfff3_0000,
        chip_selects: [CsLine::Absent; 4],
    },
    // Device numbers count what the board's code creates; QEMU 8 created fewer.
    interrupt: &[
        InterruptTap::In { path: "/machine/unattached/device[1]/gic", line: 23 },
        InterruptTap::In { path: "/machine/unattached/device[2]/gic", line: 23 },
    ],
    loopback: true,
    storage: None,
    tolerated: &[],
};
