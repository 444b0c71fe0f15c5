//! An ioctl's number, decoded as spidev decodes it.
//!
//! # How it works
//! A number has four fields: direction, size, letter and number, whose places differ between
//! architectures ([`FIELDS`]). The kernel compares a number as a whole with those of the settings, so
//! another size or direction makes it unknown. Only a message's number has a free size: that of its
//! transfers.

use rustix::io::Errno;

use crate::transfer::TRANSFER_BYTES;

/// spidev's letter.
const LETTER: u32 = b'k' as u32;

/// Where the fields are, and what the directions are called: `asm-generic/ioctl.h`, or the
/// architecture's own.
struct Fields {
    size_bits: u32,
    read: u32,
    write: u32,
}

const FIELDS: Fields = if cfg!(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc",
    target_arch = "sparc64"
)) {
    Fields { size_bits: 13, read: 2, write: 4 }
} else {
    Fields { size_bits: 14, read: 2, write: 1 }
};

/// The number of an ioctl whose argument the kernel writes.
pub(crate) const fn read(letter: u32, index: u32, bytes: usize) -> u32 {
    ((FIELDS.read << FIELDS.size_bits | bytes as u32) << 8 | letter) << 8 | index
}

/// The number of one whose argument it reads and writes.
pub(crate) const fn read_write(letter: u32, index: u32, bytes: usize) -> u32 {
    read(letter, index, bytes) | FIELDS.write << FIELDS.size_bits << 16
}

/// A setting, by the number of its ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The low byte of the mode.
    Mode,
    /// Whether the least significant bit goes first.
    LsbFirst,
    /// Bits of a word.
    BitsPerWord,
    /// The clock, in hertz.
    MaxSpeedHz,
    /// The whole mode.
    Mode32,
}

impl Setting {
    /// Bytes of its argument.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Mode | Self::LsbFirst | Self::BitsPerWord => 1,
            Self::MaxSpeedHz | Self::Mode32 => 4,
        }
    }
}

/// A program's request to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `SPI_IOC_RD_…`.
    Read(Setting),
    /// `SPI_IOC_WR_…`.
    Write(Setting),
    /// `SPI_IOC_MESSAGE(n)` with that many transfers.
    Message(usize),
}

impl Request {
    /// The number of a message of one transfer.
    pub const MESSAGE_OF_ONE: u32 =
        (FIELDS.write << FIELDS.size_bits | TRANSFER_BYTES as u32) << 16 | LETTER << 8;

    /// Decodes an ioctl's number.
    ///
    /// # Errors
    /// `ENOTTY` for a number that is not spidev's; `EINVAL` for a message whose size is not a
    /// multiple of a transfer's.
    pub fn decode(number: u32) -> Result<Self, Errno> {
        let size = number >> 16 & ((1 << FIELDS.size_bits) - 1);
        let direction = number >> 16 >> FIELDS.size_bits;
        let (letter, index) = (number >> 8 & 0xff, number & 0xff);
        if letter != LETTER {
            return Err(Errno::NOTTY);
        }
        let setting = match index {
            0 if direction == FIELDS.write => {
                let size = size as usize;
                let whole = size.is_multiple_of(TRANSFER_BYTES);
                return if whole {
                    Ok(Self::Message(size / TRANSFER_BYTES))
                } else {
                    Err(Errno::INVAL)
                };
            }
            1 => Setting::Mode,
            2 => Setting::LsbFirst,
            3 => Setting::BitsPerWord,
            4 => Setting::MaxSpeedHz,
            5 => Setting::Mode32,
            _ => return Err(Errno::NOTTY),
        };
        if size as usize != setting.bytes() {
            Err(Errno::NOTTY)
        } else if direction == FIELDS.read {
            Ok(Self::Read(setting))
        } else if direction == FIELDS.write {
            Ok(Self::Write(setting))
        } else {
            Err(Errno::NOTTY)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The numbers that the kernel's headers give on architectures with the generic layout of ioctl
    // numbers.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))]
    #[test]
    fn numbers_are_the_kernels() {
        for (number, expected) in [
            (0x8001_6b01, Ok(Request::Read(Setting::Mode))),
            (0x4001_6b01, Ok(Request::Write(Setting::Mode))),
            (0x8001_6b02, Ok(Request::Read(Setting::LsbFirst))),
            (0x4001_6b02, Ok(Request::Write(Setting::LsbFirst))),
            (0x8001_6b03, Ok(Request::Read(Setting::BitsPerWord))),
            (0x4001_6b03, Ok(Request::Write(Setting::BitsPerWord))),
            (0x8004_6b04, Ok(Request::Read(Setting::MaxSpeedHz))),
            (0x4004_6b04, Ok(Request::Write(Setting::MaxSpeedHz))),
            (0x8004_6b05, Ok(Request::Read(Setting::Mode32))),
            (0x4004_6b05, Ok(Request::Write(Setting::Mode32))),
            (0x4000_6b00, Ok(Request::Message(0))),
            (0x4020_6b00, Ok(Request::Message(1))),
            (0x7fe0_6b00, Ok(Request::Message(511))),
            (0x4021_6b00, Err(Errno::INVAL)),
            (0x401f_6b00, Err(Errno::INVAL)),
            // The wrong direction, size, number or letter.
            (0x8020_6b00, Err(Errno::NOTTY)),
            (0xc020_6b00, Err(Errno::NOTTY)),
            (0x0000_6b00, Err(Errno::NOTTY)),
            (0xc001_6b01, Err(Errno::NOTTY)),
            (0x8004_6b01, Err(Errno::NOTTY)),
            (0x8001_6b05, Err(Errno::NOTTY)),
            (0x8001_6b06, Err(Errno::NOTTY)),
            (0x4020_6b06, Err(Errno::NOTTY)),
            (0x8001_6a01, Err(Errno::NOTTY)),
            (0x5401, Err(Errno::NOTTY)),
        ] {
            assert_eq!(Request::decode(number), expected, "{number:#x}");
        }
        assert_eq!(Request::decode(Request::MESSAGE_OF_ONE), Ok(Request::Message(1)));
    }
}
