//! Cadence SPI by its own select lines.
//!
//! QEMU's model transfers a byte before the write to TX_DATA ends.

use barewire::controller::Controller;
use barewire::controller::cadence::{Cadence, CadenceConfig};
use barewire::controller::gpio::NoGpio;

use super::{Lines, QemuBlock};

pub(crate) const BLOCK: QemuBlock = QemuBlock { name: "Cadence SPI", start };

fn start(lines: Lines) -> Box<dyn Controller> {
    let Lines { registers, timer, interrupt, reference_hz, chip_selects, poll_limit_ns, .. } =
        lines;
    let config = CadenceConfig { reference_hz, chip_selects, poll_limit_ns };
    let driver = Cadence::new(registers, NoGpio, timer, config);
    match interrupt {
        None => Box::new(driver),
        Some(interrupt) => Box::new(driver.with_interrupt(interrupt)),
    }
}
