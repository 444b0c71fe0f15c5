//! A block of QEMU's registers as barewire's [`Registers`].
//!
//! # How it works
//! Every block of a board shares one connection, so that accesses to several blocks (a chip
//! select by GPIO, then the controller) keep their order.
//!
//! An access cannot fail. Once the connection is lost, reads return 0 and writes do nothing. The
//! driver then times out, or sees an idle block full of zeros. So check
//! [`QemuBoard::lost`](crate::QemuBoard::lost) after each message, even a successful one;
//! [`WatchedController`](crate::WatchedController) does this.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::reg::Registers;
use barewire_qtest::Link;

/// A block of 32-bit registers inside QEMU. Clones reach the same block.
#[derive(Clone, Debug)]
pub struct QemuRegisters {
    link: Rc<RefCell<Link>>,
    base: u32,
}

impl QemuRegisters {
    pub(crate) fn new(link: Rc<RefCell<Link>>, base: u32) -> Self {
        Self { link, base }
    }
}

impl Registers for QemuRegisters {
    fn read(&mut self, offset: u32) -> u32 {
        let mut word = [0];
        self.read_n(offset, &mut word);
        word[0]
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.link.borrow_mut().write(self.base + offset, value);
    }

    fn read_n(&mut self, offset: u32, into: &mut [u32]) {
        self.link.borrow_mut().read_n(self.base + offset, into);
    }

    fn write_n(&mut self, offset: u32, from: &[u32]) {
        let mut link = self.link.borrow_mut();
        for &word in from {
            link.write(self.base + offset, word);
        }
    }

    fn discard_n(&mut self, offset: u32, n: usize) {
        let mut link = self.link.borrow_mut();
        for _ in 0..n {
            link.discard(self.base + offset);
        }
    }
}
