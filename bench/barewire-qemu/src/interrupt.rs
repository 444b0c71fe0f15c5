//! A controller's interrupt line, as QEMU reports it.
//!
//! # How it works
//! qtest can report the inputs of an interrupt controller or the outputs of a device. Then a line
//! `IRQ raise N` or `IRQ lower N` comes before the answer to the command that moved it. So the
//! level is known once everything posted is answered. Only one device of a machine can be reported.
//! Its interrupts still reach their destination.
//!
//! # Not supported
//! - The level before the reports begin: a line that is up already is reported at its next change.
//! - Interrupts caused by time, since time stands still.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::controller::Interrupt;
use barewire::time::Timer;
use barewire_qtest::Link;

use crate::error::BoardError;
use crate::timer::QemuTimer;

/// An object of QEMU whose interrupt line can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptTap {
    /// An input of an interrupt controller.
    In {
        /// The controller's path.
        path: &'static str,
        /// The input.
        line: u32,
    },
    /// The first interrupt output of a device. QEMU 7.2 accepts this, but reports nothing.
    Out {
        /// The device's path.
        path: &'static str,
    },
}

/// The interrupt line of a board's controller. Clones watch the same line.
///
/// As barewire's [`Interrupt`] it never sleeps. The models run in no time, so a line that is not up
/// after everything posted was executed will not go up. [`Interrupt::wait`] then advances the
/// board's clock by the allowed time, so that the driver's time limit expires.
#[derive(Clone, Debug)]
pub struct QemuInterrupt {
    link: Rc<RefCell<Link>>,
    line: u32,
    timer: QemuTimer,
}

impl QemuInterrupt {
    /// Makes QEMU report the line of the controller of the board called `board`: the first of `taps`
    /// that this QEMU has.
    pub(crate) fn tap(
        link: Rc<RefCell<Link>>,
        board: &'static str,
        taps: &[InterruptTap],
        timer: QemuTimer,
    ) -> Result<Self, BoardError> {
        let mut said = String::new();
        for tap in taps {
            let (command, line) = match *tap {
                InterruptTap::In { path, line } => (format!("irq_intercept_in {path}"), line),
                InterruptTap::Out { path } => (format!("irq_intercept_out {path} sysbus-irq"), 0),
            };
            match link.borrow_mut().try_command(&command) {
                Ok(None) => return Ok(Self { link: Rc::clone(&link), line, timer }),
                Ok(Some(refusal)) => said = refusal,
                Err(error) => return Err(error.into()),
            }
        }
        Err(BoardError::Interrupt { board, said })
    }

    /// Whether the line is up after everything posted was executed. `false` on a lost connection.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.settled(|link| link.irq(self.line).raised)
    }

    /// How many times the line rose.
    #[must_use]
    pub fn raises(&self) -> u64 {
        self.settled(|link| link.irq(self.line).raises)
    }

    fn settled<T>(&self, look: impl FnOnce(&Link) -> T) -> T {
        let mut link = self.link.borrow_mut();
        link.settle();
        look(&link)
    }
}

impl Interrupt for QemuInterrupt {
    /// Does nothing: the line is never masked.
    fn enable(&mut self) {}

    fn wait(&mut self, timeout_us: u32) -> bool {
        let raised = self.is_raised();
        if !raised {
            self.timer.sleep_ns(u64::from(timeout_us) * 1_000);
        }
        raised
    }
}
