//! ECSPI of i.MX with the i.MX GPIO block.
//!
//! QEMU's model sends the contents of TXFIFO at once when XCH is written. A burst that runs out of
//! words stops until XCH is written again. The model does not count its FIFOs and never sets RDR. The
//! driver needs none of these.

use barewire::controller::Controller;
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};

use super::{Lines, QemuBlock};

pub(crate) const BLOCK: QemuBlock = QemuBlock { name: "ECSPI", start };

fn start(lines: Lines) -> Box<dyn Controller> {
    let Lines { registers, gpio, timer, interrupt, reference_hz, chip_selects, poll_limit_ns } =
        lines;
    let config = EcspiConfig { reference_hz, chip_selects, poll_limit_ns };
    let driver = Ecspi::new(registers, ImxGpio::new(gpio, Ownership::Exclusive), timer, config);
    match interrupt {
        None => Box::new(driver),
        Some(interrupt) => Box::new(driver.with_interrupt(interrupt)),
    }
}
