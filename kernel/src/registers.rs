//! A block's registers: device memory; in user-mode Linux, which has none, calls of the C half.
#![allow(unsafe_code, reason = "calls of the module's C half")]

#[cfg(not(feature = "um"))]
pub(crate) use barewire::reg::MmioBlock as Block;
#[cfg(feature = "um")]
pub(crate) use called::Block;

#[cfg(feature = "um")]
mod called {
    use barewire::reg::Registers;

    unsafe extern "C" {
        /// Reads the register at an address that `ioremap` gave, or behind it.
        fn bw_register_read(register: *const u32) -> u32;
        /// Writes it.
        fn bw_register_write(register: *mut u32, value: u32);
    }

    /// `LEN` bytes of registers.
    #[derive(Debug)]
    pub(crate) struct Block<const LEN: u32>(*mut u32);

    impl<const LEN: u32> Block<LEN> {
        /// Takes the block at `base`.
        ///
        /// # Safety
        /// As long as the value lives, `base..base + LEN` is what `ioremap` gave for the block, and no other code uses it.
        pub(crate) unsafe fn new(base: *mut u32) -> Self {
            Self(base)
        }

        fn register(&self, offset: u32) -> *mut u32 {
            assert!(offset < LEN && offset.is_multiple_of(4), "no register of the block");
            self.0.wrapping_byte_add(offset as usize)
        }
    }

    impl<const LEN: u32> Registers for Block<LEN> {
        fn read(&mut self, offset: u32) -> u32 {
            // SAFETY: `new`'s caller promised the range.
            unsafe { bw_register_read(self.register(offset)) }
        }

        fn write(&mut self, offset: u32, value: u32) {
            // SAFETY: `new`'s caller promised the range.
            unsafe { bw_register_write(self.register(offset), value) }
        }
    }
}
