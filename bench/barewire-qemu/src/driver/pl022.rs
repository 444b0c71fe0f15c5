//! PL022 with PL061.
//!
//! QEMU's model has no receive timeout: a transfer that ends with fewer than four frames in the FIFO is
//! found complete at its deadline.

use barewire::controller::Controller;
use barewire::controller::gpio::Pl061;
use barewire::controller::pl022::{Pl022, Pl022Config};

use super::{Lines, QemuBlock};

pub(crate) const BLOCK: QemuBlock = QemuBlock { name: "PL022", start };

fn start(lines: Lines) -> Box<dyn Controller> {
    let Lines { registers, gpio, timer, interrupt, reference_hz, chip_selects, poll_limit_ns } =
        lines;
    let config = Pl022Config { reference_hz, chip_selects, poll_limit_ns };
    let driver = Pl022::new(registers, Pl061::new(gpio), timer, config);
    match interrupt {
        None => Box::new(driver),
        Some(interrupt) => Box::new(driver.with_interrupt(interrupt)),
    }
}
