//! `lm3s6965evb`: the Stellaris LM3S6965 evaluation board, whose SSI0 is a PL022 with an SD card.
//!
//! *Read first*: LM3S6965 datasheet, "Synchronous Serial Interface" and "General-Purpose
//! Input/Outputs"; SD Physical Layer Simplified Specification, chapter 7 (SPI mode). For the
//! PL022's model see `board/highbank.rs`.
//!
//! # How QEMU wires it
//! GPIO port D, line 0, goes to both chips of the bus. Low selects the SD card. High selects the
//! OLED (SSD0323), which takes *every* word sent then for a command or for data, depending on port
//! C, line 7. The OLED answers nothing and reports unknown commands on QEMU's standard error. It
//! ignores FFh, which wakes a card.
//!
//! # Where QEMU's models differ from the manuals
//! Tried with QEMU 7.2 and 10.0 (7 to 9 with 10.0 only). `tests/it/pl022.rs` tests every line but
//! CMD9's.
//! 1. After reset, port D's line 0 is high by the board's code, but GPIODATA reads 0. The PL061
//!    tells the chips about changes only: **a line made an output and low selects nothing until it
//!    was high once**. A driver that first sets its lines inactive is not affected.
//! 2. MISO reads 0 while no card is selected, where a real board's pull-up gives FFh.
//! 3. R1 comes with the second byte after a command. CMD0 is answered without 74 clocks before it,
//!    but the 8 clocks between an answer and the next command are needed.
//! 4. Clock gating (RCGC), GPIOAFSEL and GPIODEN have no effect.
//! 5. GPIODATA has a mask in its address, as on the PL061.
//! 6. Any file of 1 MiB or more is a card of its size. One of 1 MiB is a standard capacity card,
//!    addressed by byte.
//! 7. CMD58's R1 always says idle. QEMU 10.0 answers CMD9, the card's size, with *illegal command*
//!    and a message.
//! 8. A data token right after a write's R1 is not recognised: the specification has a byte between
//!    them (N_WR). The data is then taken for commands, and QEMU may abort because of them.
//! 9. QEMU passes a chip whole frames, and the card reads a frame of any length as one byte. So the
//!    card does not understand two bytes in one frame of 16 bits, although the wire is the same.
//!    barewire's PL022 driver sends messages of even length that way in modes 1 and 3. **Use mode
//!    0.**

use barewire_qtest::{QemuProgram, Version};

use crate::driver::pl022;
use crate::interrupt::InterruptTap;
use crate::spec::{BoardSpec, Medium, Silicon, Storage, gpio_lines};

pub(super) const BOARD: BoardSpec = BoardSpec {
    name: "lm3s6965evb",
    machine: "lm3s6965evb",
    // The board has this size, whatever the option says.
    memory: "64K",
    program: QemuProgram::ARM,
    needed: Version { major: 7, minor: 2 },
    silicon: Silicon {
        block: &pl022::BLOCK,
        base: 0x4000_8000,
        // The system clock's maximum; the model has no clock.
        reference_hz: 50_000_000,
        gpio_base: 0x4000_7000,
        chip_selects: gpio_lines(&[0]),
    },
    // As for highbank: what has a name in QEMU 10 has a number in 7.2.
    interrupt: &[
        InterruptTap::In { path: "/machine/soc/v7m", line: 7 },
        InterruptTap::In { path: "/machine/unattached/device[1]", line: 7 },
    ],
    loopback: true,
    storage: Some(Storage { name: "SD card", size: 1 << 20, medium: Medium::SdCard }),
    tolerated: &[],
};
