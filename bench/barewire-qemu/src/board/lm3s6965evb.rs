//! `lm3s6965evb`: the Stellaris LM3S6965 evaluation board, whose SSI0 is a PL022 with an SD card.
//!
//! *Read first*: LM3S6965 datasheet, "Synchronous Serial Interface" and "General-Purpose
//! Input/Outputs"; SD Physical Layer Simplified Specification, chapter 7 (SPI mode). Of the PL022's
//! model: `board/highbank.rs`.
//!
//! # How QEMU wires it
//! GPIO port D, line 0, goes to both chips of the bus. Low selects the SD card. High selects the
//! OLED (SSD0323), which takes *every* word sent meanwhile for a command, or data, by the level of
//! port C, line 7; it answers nothing, and complains about unknown commands on QEMU's standard
//! error. FFh, which a card is woken with, it lets pass.
//!
//! # Where QEMU's models differ from the manuals
//! Tried with QEMU 7.2 and 10.0 (7 to 9 with 10.0 alone); `tests/it/pl022.rs` holds every line but CMD9's.
//! 1. Port D's line 0 is high at reset, by the board's code, and GPIODATA says 0. The PL061 tells the
//!    chips of changes alone: **a line made an output and low selects nothing until it was high once**.
//!    A driver that puts its lines on their inactive level first never sees it.
//! 2. MISO reads 0 while no card is selected, where a real board's pull-up gives FFh.
//! 3. R1 comes with the second byte after a command. CMD0 is answered without 74 clocks before it,
//!    but the 8 clocks between an answer and the next command are needed.
//! 4. Clock gating (RCGC), GPIOAFSEL and GPIODEN do not matter.
//! 5. GPIODATA has the luminary PL061's mask in its address, as the PL061 has.
//! 6. A file is a card of its size, at least from 1 MiB on; that one is a standard capacity card,
//!    addressed by the byte.
//! 7. CMD58's R1 says idle, whatever the card is. CMD9, the card's size, is answered by 10.0 with an
//!    illegal command, and a complaint.
//! 8. A data token straight after a write's R1 is not seen: the specification has a byte between them
//!    (N_WR). The data is then taken for commands, and QEMU may abort over them.
//! 9. A chip gets a frame whole, and the card takes one for a byte, of whatever length it is. So two
//!    bytes in one frame of 16 bits, which on a wire are the same, are not understood; barewire's
//!    PL022 driver sends messages of even length so in modes 1 and 3. **Use mode 0.**

use crate::error::Version;
use crate::spec::{BoardSpec, GpioLine, InterruptTap, Medium, QEMU_ARM, Silicon, Storage};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "lm3s6965evb",
    machine: "lm3s6965evb",
    // Its own, whatever is said.
    memory: "64K",
    program: QEMU_ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon::Pl022 {
        base: 0x4000_8000,
        // The system clock's fastest; the model has none.
        reference_hz: 50_000_000,
        gpio_base: 0x4000_7000,
        cs: Some(GpioLine { bit: 0, active_high: false }),
    },
    // As for highbank: what has a name of its own in QEMU 10 has a number in 7.2.
    interrupt: &[
        InterruptTap::In { path: "/machine/soc/v7m", line: 7 },
        InterruptTap::In { path: "/machine/unattached/device[1]", line: 7 },
    ],
    loopback: true,
    storage: Some(Storage { name: "SD card", size: 1 << 20, medium: Medium::SdCard }),
    tolerated: &[],
};
