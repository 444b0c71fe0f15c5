//! Registers: memory-mapped, or at the other end of a socket.

/// A block of registers, addressed by byte offset from its base.
///
/// # For implementors
/// 1. Accesses by one CPU reach the block in program order, each once and whole.
/// 2. Several CPUs may call at the same time.
/// 3. Nothing is promised about ordinary memory: drivers put a [`Pool::barrier`](crate::Pool::barrier)
///    between stores to it and the register write that tells of them, and a fence after a register
///    read that tells of the device's stores.
///
/// ```
/// use barewire_iommu::smmu::Registers;
///
/// /// A mapped block, for good.
/// struct Mmio(*mut u32);
///
/// impl Registers for Mmio {
///     fn read32(&self, offset: u32) -> u32 {
///         // SAFETY: whoever made it promised that the block is mapped.
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

    /// Writes the register at `offset`, a multiple of 8. In halves, the lower is written last: it is
    /// what sets off an operation.
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
