//! `highbank`: the Calxeda ECX-1000, for its PL022, on which there is nothing.
//!
//! *Read first*: Arm PrimeCell Synchronous Serial Port (PL022) technical reference manual,
//! chapter 3; PrimeCell GPIO (PL061) technical reference manual.
//!
//! # Where QEMU's PL022 differs from the manual
//! Tried with QEMU 7.2 and 10.0, which are the same; `lm3s6965evb` has the same model.
//! `tests/it/pl022.rs` holds every line.
//! 1. A frame takes no time: where SSE is set and RX FIFO has room, a word written to SSPDR is
//!    received before the write has ended. So BSY is seen only while words wait.
//! 2. RX FIFO never overruns. When it holds 8 frames, transmission stops; up to 8 more words wait
//!    in TX FIFO, and go when SSPDR is read. RORRIS is never set. Words written to a full TX FIFO
//!    are lost without a word.
//! 3. The receive timeout does not exist: RTRIS is never set. A driver that waits for the last
//!    frames of a transfer (fewer than 4) by RTIM alone waits for ever.
//! 4. RXRIS is set at 4 frames or more and TXRIS at 4 or fewer, as in the manual. Since TX FIFO
//!    empties at once, TXRIS is clear only with RX FIFO full or SSE off.
//! 5. SSPICR is accepted and changes nothing: nothing that it could clear is ever set.
//! 6. Of SSPCR0 only DSS counts, and it is stored with all 32 bits, as is SSPIMSC. FRF, SPO, SPH,
//!    SCR and SSPCPSR are stored and ignored. **Until SSPCR0 is written words have no bits**: they
//!    are sent, and looped back, as 0.
//! 7. LBM loops back. SSE off keeps both FIFOs; words written then wait, and go when it is set.
//! 8. MS with SSE is complained about on QEMU's standard error, and ignored: it stays controller.
//! 9. SSPDMACR reads as 0; a write that is not 0 is complained about.
//! 10. SSPDR of an empty FIFO reads as 0, without a complaint. With nothing on the bus, or nothing
//!     selected, 0 is received.
//! 11. SSPFSSOUT does not exist: a chip select is a GPIO line, or none.
//!
//! PL061: a line is driven when GPIODIR says so; a write to GPIODATA before that is lost.
//!
//! # Not supported
//! A chip: no board code of QEMU's wires one here, nor on any other board with a PL022 but
//! `lm3s6965evb` (`mps2-an385` and its like have five and more of them, and nothing on any;
//! `versatilepb` and `realview-eb` have none).

use crate::error::Version;
use crate::spec::{BoardSpec, InterruptTap, QEMU_ARM, Silicon};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "highbank",
    machine: "highbank",
    memory: "64M",
    program: QEMU_ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon::Pl022 {
        base: 0xfff3_9000,
        // The device tree's pclk; the model has no clock.
        reference_hz: 150_000_000,
        // The first of four PL061.
        gpio_base: 0xfff3_0000,
        cs: None,
    },
    // Device numbers count what the board's code makes, and QEMU 8 made less.
    interrupt: &[
        InterruptTap::In { path: "/machine/unattached/device[1]/gic", line: 23 },
        InterruptTap::In { path: "/machine/unattached/device[2]/gic", line: 23 },
    ],
    loopback: true,
    storage: None,
    tolerated: &[],
};
