//! `raspi3b`: the Raspberry Pi 3B, for its BCM2835 SPI0. No chip is connected to it.
//!
//! *Read first*: BCM2835 ARM Peripherals, chapters 10 (SPI) and 6 (GPIO), and their errata,
//! <https://elinux.org/BCM2835_datasheet_errata>.
//!
//! # Where QEMU's BCM2835 SPI0 differs from the manual
//! Tried with QEMU 10.0; 7.2 has no such model. `tests/it/raspi3b.rs` tests every line.
//! 1. No time: with TA set and room in RX FIFO, a byte written to FIFO is received before the write
//!    has ended. So DONE is clear only while bytes wait in TX FIFO (3).
//! 2. The FIFOs hold 64 bytes each. Words are bytes; the upper 24 bits are ignored. RXR is set from
//!    48 bytes on. That matches the silicon; section 10.6 says 16 and 12.
//! 3. With RX FIFO full, bytes wait in TX FIFO: DONE clears, and after 64 more bytes TXD clears.
//!    **They move only when FIFO is read or written, and before that access takes effect.** So
//!    after one read there is room, but the waiting byte still waits. A driver that then polls CS
//!    for DONE without reading more waits for ever; so does one that has cleared RX FIFO. A driver
//!    that keeps at most 64 bytes under way is not affected. Bytes written to a full TX FIFO are
//!    lost without a message.
//! 4. **CLEAR does not clear itself.** It reads back as written. Each later write of CS that has it
//!    set, for example a read-modify-write, clears the FIFOs again. Follow a write with CLEAR by
//!    one without.
//! 5. DONE is set as soon as TA is, before a byte was sent. The manual says so too (10.6.2, b).
//! 6. RXR clears with TA. It is set again by the next access to FIFO, not with TA.
//! 7. INTD and INTR work, by level: the line is INTD and DONE, or INTR and RXR. It is updated when
//!    CS is written and when FIFO is accessed. INTD with TA interrupts at once (5). Clearing TA
//!    lowers the line.
//! 8. A byte written to FIFO with TA clear is lost. In the manual it sets DLEN and half of CS, for
//!    DMA. RX FIFO keeps its bytes, RXD and RXF while TA is clear, and can be read.
//! 9. CS (the lines), CPOL, CPHA, CSPOL0 to 2, REN, ADCS and the reserved bits 26 to 31 are stored
//!    and have no effect. LEN and DMAEN are stored and reported on QEMU's standard error.
//! 10. CLK keeps its 16 bits, odd or not, and has no effect; so do DLEN, and LTOH's 4 bits. DC
//!     keeps all 32 bits.
//! 11. An empty FIFO reads 0, without a message. With no chip 0 is received.
//! 12. CE0 and CE1 do not exist: no chip is connected to them.
//!
//! GPIO: GPLEV shows what GPSET and GPCLR wrote, whatever the pin's function in GPFSEL. GPSET and
//! GPCLR read 0.
//!
//! # Not supported
//! A chip: QEMU's board code connects none.

use barewire_qtest::{QemuProgram, Version};

use crate::driver::bcm2835;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Silicon, gpio_lines};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "raspi3b",
    machine: "raspi3b",
    // The machine accepts no other size. The memory is not accessed.
    memory: "1G",
    program: QemuProgram::AARCH64,
    needed: Version { major: 10, minor: 0 },
    silicon: Silicon {
        block: &bcm2835::BLOCK,
        base: 0x3f20_4000,
        // As the manual assumes; the model has no clock.
        reference_hz: 250_000_000,
        gpio_base: 0x3f20_0000,
        // The header's CE0 and CE1, as outputs.
        chip_selects: gpio_lines(&[8, 7]),
    },
    interrupt: &[InterruptTap::Out { path: "/machine/soc/peripherals/bcm2835-spi0" }],
    loopback: false,
    storage: None,
    tolerated: &[],
};
