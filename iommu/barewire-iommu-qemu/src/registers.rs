//! The SMMU's registers, for its driver.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_iommu::smmu::Registers;
use barewire_qtest::Link;

/// The registers of the machine's SMMUv3. Clones access the same registers.
///
/// An access cannot fail: once the connection is lost, reads return 0 and writes do nothing.
#[derive(Clone, Debug)]
pub struct SmmuRegisters {
    link: Rc<RefCell<Link>>,
    base: u32,
}

impl SmmuRegisters {
    pub(crate) fn new(link: Rc<RefCell<Link>>, base: u32) -> Self {
        Self { link, base }
    }
}

impl Registers for SmmuRegisters {
    fn read32(&self, offset: u32) -> u32 {
        let mut word = [0];
        self.link.borrow_mut().read_n(self.base + offset, &mut word);
        word[0]
    }

    fn write32(&self, offset: u32, value: u32) {
        self.link.borrow_mut().write(self.base + offset, value);
    }

    fn read64(&self, offset: u32) -> u64 {
        self.link.borrow_mut().read_long(self.base + offset)
    }

    fn write64(&self, offset: u32, value: u64) {
        self.link.borrow_mut().write_long(self.base + offset, value);
    }
}
