//! SiFive SPI by its own select lines.
//!
//! QEMU's model transfers a byte before the write to TXDATA ends. It has one select line.

use barewire::controller::Controller;
use barewire::controller::gpio::NoGpio;
use barewire::controller::sifive::{SiFive, SiFiveConfig};

use super::{Lines, QemuBlock};

pub(crate) const BLOCK: QemuBlock = QemuBlock { name: "SiFive SPI", start };

fn start(lines: Lines) -> Box<dyn Controller> {
    let Lines { registers, timer, interrupt, reference_hz, chip_selects, poll_limit_ns, .. } =
        lines;
    let config = SiFiveConfig { reference_hz, chip_selects, poll_limit_ns };
    let driver = SiFive::new(registers, NoGpio, timer, config);
    match interrupt {
        None => Box::new(driver),
        Some(interrupt) => Box::new(driver.with_interrupt(interrupt)),
    }
}
