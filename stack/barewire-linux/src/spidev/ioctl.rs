//! spidev's ioctls: a trait, which tests implement, and the kernel's on a [`Node`].
//!
//! # Safety
//! 1. Argument: an ioctl number is only sent with the argument that the kernel expects for it. The
//!    numbers are chosen here, from a [`Setting`] or the length of a [`Message`], never by a
//!    caller.
//! 2. Buffers: the kernel reads and writes the buffers whose addresses are in a [`Message`]. Only
//!    `spidev::message` makes one, from buffers that stay borrowed for as long as the message
//!    lives.
//! 3. File: the numbers mean these operations only on a spidev node, so [`Node::new`] takes only
//!    files that [`Spidev::open`](super::Spidev::open) has identified as one.
#![allow(unsafe_code, reason = "ioctl, with the raw memory it is about")]

use core::ffi::c_void;
use std::fmt;
use std::fs::File;
use std::marker::PhantomData;
use std::ptr;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, ioctl};

use super::abi;
use super::message::Message;

/// A setting of spidev to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `SPI_IOC_WR_MODE32`.
    Mode32(u32),
    /// `SPI_IOC_WR_BITS_PER_WORD`.
    BitsPerWord(u8),
    /// `SPI_IOC_WR_MAX_SPEED_HZ`.
    MaxSpeedHz(u32),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode32(mode) => {
                write!(f, "mode {:#x} (MODE_{})", mode, mode & 3)?;
                let flags =
                    [("CS_HIGH", 0x04), ("LSB_FIRST", 0x08), ("LOOP", 0x20), ("NO_CS", 0x40)];
                for (flag, bit) in flags {
                    if mode & bit != 0 {
                        write!(f, " with {flag}")?;
                    }
                }
                Ok(())
            }
            Self::BitsPerWord(bits) => write!(f, "words of {bits} bits"),
            Self::MaxSpeedHz(speed_hz) => write!(f, "a clock of {speed_hz} Hz"),
        }
    }
}

/// spidev's ioctls: the kernel's, or a test's.
pub trait Ioctl {
    /// `SPI_IOC_RD_MODE32`.
    ///
    /// # Errors
    /// The kernel's error.
    fn mode32(&mut self) -> Result<u32, Errno>;

    /// `SPI_IOC_RD_MAX_SPEED_HZ`.
    ///
    /// # Errors
    /// The kernel's error.
    fn max_speed_hz(&mut self) -> Result<u32, Errno>;

    /// `SPI_IOC_WR_MODE32`, `SPI_IOC_WR_BITS_PER_WORD` or `SPI_IOC_WR_MAX_SPEED_HZ`.
    ///
    /// # Errors
    /// The kernel's error.
    fn set(&mut self, setting: Setting) -> Result<(), Errno>;

    /// `SPI_IOC_MESSAGE(n)`, which returns the sum of the lengths.
    ///
    /// # Errors
    /// The kernel's error.
    fn message(&mut self, message: &Message<'_>) -> Result<usize, Errno>;
}

/// An ioctl with a pointer as its argument.
struct Call<'a> {
    opcode: Opcode,
    arg: *mut c_void,
    borrowed: PhantomData<&'a mut ()>,
}

impl<'a> Call<'a> {
    /// An ioctl during which the kernel reads `arg`.
    fn reads<T>(opcode: Opcode, arg: &'a T) -> Self {
        Self { opcode, arg: ptr::from_ref(arg).cast_mut().cast(), borrowed: PhantomData }
    }

    /// An ioctl during which the kernel writes `arg`.
    fn writes<T>(opcode: Opcode, arg: &'a mut T) -> Self {
        Self { opcode, arg: ptr::from_mut(arg).cast(), borrowed: PhantomData }
    }
}

// SAFETY: the argument is valid while the call exists (`borrowed`), the result is the call's return
// value, and memory is declared as changed, whether it is or not.
unsafe impl rustix::ioctl::Ioctl for Call<'_> {
    type Output = i32;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.arg
    }

    unsafe fn output_from_ptr(output: i32, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(output)
    }
}

/// An open spidev node.
#[derive(Debug)]
pub struct Node {
    file: File,
}

impl Node {
    /// Uses a file that is known to be a spidev node (module, Safety 3).
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }

    fn read_u32(&mut self, opcode: Opcode) -> Result<u32, Errno> {
        let mut value = 0;
        // SAFETY: an ioctl of spidev whose argument is a `u32` to write (Safety 1 and 3).
        unsafe { ioctl(&self.file, Call::writes::<u32>(opcode, &mut value)) }?;
        Ok(value)
    }
}

impl Ioctl for Node {
    fn mode32(&mut self) -> Result<u32, Errno> {
        self.read_u32(abi::SPI_IOC_RD_MODE32)
    }

    fn max_speed_hz(&mut self) -> Result<u32, Errno> {
        self.read_u32(abi::SPI_IOC_RD_MAX_SPEED_HZ)
    }

    fn set(&mut self, setting: Setting) -> Result<(), Errno> {
        let call = match &setting {
            Setting::Mode32(value) => Call::reads::<u32>(abi::SPI_IOC_WR_MODE32, value),
            Setting::BitsPerWord(value) => Call::reads::<u8>(abi::SPI_IOC_WR_BITS_PER_WORD, value),
            Setting::MaxSpeedHz(value) => Call::reads::<u32>(abi::SPI_IOC_WR_MAX_SPEED_HZ, value),
        };
        // SAFETY: each number is paired with the type spidev reads for it (Safety 1 and 3).
        unsafe { ioctl(&self.file, call) }.map(drop)
    }

    fn message(&mut self, message: &Message<'_>) -> Result<usize, Errno> {
        let transfers = message.transfers();
        let opcode = abi::spi_ioc_message(transfers.len());
        let call =
            Call { opcode, arg: transfers.as_ptr().cast_mut().cast(), borrowed: PhantomData };
        // SAFETY: the number contains the number of structs, which name borrowed buffers of the
        // lengths they state (Safety 1 to 3).
        let length = unsafe { ioctl(&self.file, call) }?;
        Ok(usize::try_from(length).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ioctls_reach_the_kernel_and_its_refusal_comes_back() {
        // /dev/null is no spidev: the kernel knows none of the numbers there.
        let file = File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
        let mut node = Node::new(file);
        assert_eq!(node.mode32(), Err(Errno::NOTTY));
        assert_eq!(node.max_speed_hz(), Err(Errno::NOTTY));
        assert_eq!(node.set(Setting::Mode32(0)), Err(Errno::NOTTY));
        assert_eq!(node.set(Setting::BitsPerWord(8)), Err(Errno::NOTTY));
        assert_eq!(node.set(Setting::MaxSpeedHz(1)), Err(Errno::NOTTY));
        assert_eq!(node.message(&Message::of_no_bytes()), Err(Errno::NOTTY));
    }
}
