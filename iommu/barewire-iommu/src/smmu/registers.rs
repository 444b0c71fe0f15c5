//! Access to registers: memory-mapped, or through a socket.

/// A block of registers, addressed by byte offset from its base.
///
/// # For implementors
/// 1. Order: accesses by one CPU reach the block in program order, each exactly once and as a
///    whole.
/// 2. Threads: several CPUs may call at the same time.
/// 3. Memory is not ordered: a driver puts a [`Pool::barrier`](crate::Pool::barrier) between its
///    stores to memory and the register write that announces them, and a fence after a register
///    read that announces the device's stores.
///
/// ```
/// use barewire_iommu::smmu::Registers;
///
/// /// A block that stays mapped.
/// struct Mmio(*mut u32);
///
/// impl Registers for Mmio {
///     fn read32(&self, offset: u32) -> u32 {
///         // SAFETY: the creator of `Mmio` promised that the block is mapped.
///         unsafe { self.0.byte_add(offset as usize).read_volatile() }
///     }
///
///     fn write32(&self, offset: u32, value: u32) {
///         // SAFETY: as above.
///         unsafe { self.0.byte_add(offset as usize).write_volatile(value) }
///     }
/// }
/// ```
pub trait Registers {
    /// Reads the register at `offset`, a multiple of 4.
    fn read32(&self, offset: u32) -> u32;

    /// Writes the register at `offset`, a multiple of 4.
    fn write32(&self, offset: u32, value: u32);

    /// Reads the register at `offset`, a multiple of 8.
    fn read64(&self, offset: u32) -> u64 {
        let low = self.read32(offset);
        u64::from(low) | u64::from(self.read32(offset + 4)) << 32
    }

    /// Writes the register at `offset`, a multiple of 8. If it is written in halves, the lower half
    /// comes last, because it starts the operation.
    fn write64(&self, offset: u32, value: u64) {
        self.write32(offset + 4, (value >> 32) as u32);
        self.write32(offset, value as u32);
    }
}

impl<R: Registers + ?Sized> Registers for &R {
    fn read32(&self, offset: u32) -> u32 {
        (**self).read32(offset)
    }

    fn write32(&self, offset: u32, value: u32) {
        (**self).write32(offset, value);
    }

    fn read64(&self, offset: u32) -> u64 {
        (**self).read64(offset)
    }

    fn write64(&self, offset: u32, value: u64) {
        (**self).write64(offset, value);
    }
}
