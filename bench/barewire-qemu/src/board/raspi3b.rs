//! `raspi3b`: the Raspberry Pi 3B, for its BCM2835 SPI0, on which there is nothing.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapters 10 (SPI) and 6 (GPIO), and their errata at
//! elinux.org.
//!
//! # Where QEMU's BCM2835 SPI0 differs from the manual
//! Tried with QEMU 10.0; 7.2 has no such model. `tests/it/raspi3b.rs` holds every line.
//! 1. A byte takes no time: where TA is set and RX FIFO has room, a byte written to FIFO is received
//!    before the write has ended. So DONE is clear only while bytes wait in TX FIFO (3).
//! 2. FIFOs hold 64 bytes each; the words are bytes, the upper 24 bits ignored. RXR is set from 48
//!    bytes on. That is the silicon; section 10.6 speaks of 16 and 12.
//! 3. With RX FIFO full, bytes wait in TX FIFO: DONE clears, TXD after 64 more. **They move only when
//!    FIFO is read or written, and then before that access takes effect.** So after one read there is
//!    room, and the waiting byte still waits; who then polls CS for DONE without reading on waits for
//!    ever, as does who has cleared RX FIFO. A driver that keeps no more than 64 bytes under way
//!    never sees it. Bytes written to a full TX FIFO are lost without a word.
//! 4. **CLEAR does not clear itself.** It reads back as written, and each later write of CS that has
//!    it, a read-modify-write say, clears the FIFOs again. A write with CLEAR wants one without.
//! 5. DONE is set as soon as TA is, before anything was sent. So says the manual (10.6.2, b).
//! 6. RXR clears with TA, and comes back with the next access of FIFO, not with TA.
//! 7. INTD and INTR work, by level: the line is INTD with DONE or INTR with RXR, looked at when CS is
//!    written and FIFO is accessed. INTD with TA interrupts at once (5); TA off silences it.
//! 8. A byte written to FIFO with TA clear is lost; the manual has it set DLEN and half of CS, for DMA.
//!    RX FIFO keeps its bytes, RXD and RXF while TA is clear, and can be read.
//! 9. CS (the lines), CPOL, CPHA, CSPOL0 to 2, REN, ADCS and the reserved bits 26 to 31 are stored and
//!    read back, and mean nothing. LEN and DMAEN are stored and complained about.
//! 10. CLK keeps its 16 bits, odd or not, and means nothing; likewise DLEN, and LTOH's 4 bits. DC keeps
//!     all 32.
//! 11. FIFO read while it is empty is 0, without a complaint. With nothing on the bus 0 is received.
//! 12. CE0 and CE1 do not exist, as nothing hangs on them.
//!
//! GPIO: GPLEV is what GPSET and GPCLR made it, whatever the pin's function in GPFSEL; reading GPSET
//! and GPCLR is 0.
//!
//! # Not supported
//! A chip: QEMU's board code wires none.

use crate::error::Version;
use crate::spec::{BoardSpec, GpioLine, InterruptTap, QEMU_AARCH64, Silicon};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "raspi3b",
    machine: "raspi3b",
    // The machine takes no other size; it is not touched.
    memory: "1G",
    program: QEMU_AARCH64,
    needed: Version { major: 10, minor: 0 },
    silicon: Silicon::Bcm2835 {
        base: 0x3f20_4000,
        // As the manual assumes it; the model has no clock.
        reference_hz: 250_000_000,
        gpio_base: 0x3f20_0000,
        // The header's CE0 and CE1, as outputs.
        cs: [GpioLine { bit: 8, active_high: false }, GpioLine { bit: 7, active_high: false }],
    },
    interrupt: &[InterruptTap::Out { path: "/machine/soc/peripherals/bcm2835-spi0" }],
    loopback: false,
    storage: None,
    tolerated: &[],
};
