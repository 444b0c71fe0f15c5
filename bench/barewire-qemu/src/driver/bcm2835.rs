//! SPI0 of the BCM2835 and its successors, with their GPIO block.

use barewire::controller::Controller;
use barewire::controller::bcm2835::{Bcm2835, Bcm2835Config};
use barewire::controller::gpio::Bcm2835Gpio;

use super::{Lines, QemuBlock};

pub(crate) const BLOCK: QemuBlock = QemuBlock { name: "BCM2835 SPI0", start };

fn start(lines: Lines) -> Box<dyn Controller> {
    let Lines { registers, gpio, timer, interrupt, reference_hz, chip_selects, poll_limit_ns } =
        lines;
    let config = Bcm2835Config { core_hz: reference_hz, chip_selects, poll_limit_ns };
    let driver = Bcm2835::new(registers, Bcm2835Gpio::new(gpio), timer, config);
    match interrupt {
        None => Box::new(driver),
        Some(interrupt) => Box::new(driver.with_interrupt(interrupt)),
    }
}
