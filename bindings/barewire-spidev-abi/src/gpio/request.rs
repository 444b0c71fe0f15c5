//! An ioctl's number, decoded as the GPIO character device decodes it: as a whole.

use rustix::io::Errno;

use super::layout;
use crate::request::{read, read_write};

/// What a program asks of a chip or of lines. Those of version 1 are marked so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpioRequest {
    /// `GPIO_GET_CHIPINFO_IOCTL`.
    ChipInfo,
    /// `GPIO_GET_LINEINFO_UNWATCH_IOCTL`.
    Unwatch,
    /// `GPIO_V2_GET_LINEINFO_IOCTL`.
    LineInfo,
    /// `GPIO_V2_GET_LINEINFO_WATCH_IOCTL`.
    Watch,
    /// `GPIO_V2_GET_LINE_IOCTL`.
    Lines,
    /// `GPIO_V2_LINE_SET_CONFIG_IOCTL`.
    SetConfig,
    /// `GPIO_V2_LINE_GET_VALUES_IOCTL`.
    GetValues,
    /// `GPIO_V2_LINE_SET_VALUES_IOCTL`.
    SetValues,
    /// Version 1: `GPIO_GET_LINEINFO_IOCTL`.
    LineInfo1,
    /// Version 1: `GPIO_GET_LINEINFO_WATCH_IOCTL`.
    Watch1,
    /// Version 1: `GPIO_GET_LINEHANDLE_IOCTL`.
    Handle1,
    /// Version 1: `GPIO_GET_LINEEVENT_IOCTL`.
    Event1,
    /// Version 1: `GPIOHANDLE_GET_LINE_VALUES_IOCTL`.
    GetValues1,
    /// Version 1: `GPIOHANDLE_SET_LINE_VALUES_IOCTL`.
    SetValues1,
    /// Version 1: `GPIOHANDLE_SET_CONFIG_IOCTL`.
    SetConfig1,
}

/// An ioctl's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Bytes of the structure.
    pub bytes: usize,
    /// Whether it is read from the program.
    pub read: bool,
}

/// The letter of GPIO's ioctls.
const LETTER: u32 = 0xb4;

/// The ioctls' numbers, with their requests.
const ALL: [(u32, GpioRequest); 15] = {
    use GpioRequest as G;
    [
        (1, G::ChipInfo),
        (2, G::LineInfo1),
        (3, G::Handle1),
        (4, G::Event1),
        (5, G::LineInfo),
        (6, G::Watch),
        (7, G::Lines),
        (8, G::GetValues1),
        (9, G::SetValues1),
        (10, G::SetConfig1),
        (11, G::Watch1),
        (12, G::Unwatch),
        (13, G::SetConfig),
        (14, G::GetValues),
        (15, G::SetValues),
    ]
};

impl GpioRequest {
    /// Whether a number is of this kind at all.
    #[must_use]
    pub fn has_letter(number: u32) -> bool {
        number >> 8 & 0xff == LETTER
    }

    /// Decodes an ioctl's number.
    ///
    /// # Errors
    /// `EINVAL` for one that is not GPIO's, as the kernel's GPIO nodes say.
    pub fn decode(number: u32) -> Result<Self, Errno> {
        let found = ALL.iter().find(|(index, request)| {
            let Argument { bytes, read: reads } = request.argument();
            let encode = if reads { read_write } else { read };
            encode(LETTER, *index, bytes) == number
        });
        found.map(|(_, request)| *request).ok_or(Errno::INVAL)
    }

    /// Its argument, which is written back where the answer has bytes.
    #[must_use]
    pub fn argument(self) -> Argument {
        let bytes = match self {
            Self::ChipInfo => layout::CHIP_INFO,
            Self::Unwatch => 4,
            Self::LineInfo | Self::Watch => layout::LINE_INFO,
            Self::Lines => layout::LINE_REQUEST,
            Self::SetConfig => layout::LINE_CONFIG,
            Self::GetValues | Self::SetValues => layout::LINE_VALUES,
            Self::LineInfo1 | Self::Watch1 => layout::LINE_INFO_1,
            Self::Handle1 => layout::HANDLE_REQUEST,
            Self::Event1 => layout::EVENT_REQUEST,
            Self::GetValues1 | Self::SetValues1 => layout::HANDLE_DATA,
            Self::SetConfig1 => layout::HANDLE_CONFIG,
        };
        Argument { bytes, read: self != Self::ChipInfo }
    }

    /// Whether it makes a new open file, whose number is the last field of the structure.
    #[must_use]
    pub fn makes_a_file(self) -> bool {
        matches!(self, Self::Lines | Self::Handle1 | Self::Event1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The numbers as the kernel's headers make them where the fields are the generic ones.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "arm"))]
    #[test]
    fn numbers_are_the_kernels() {
        use GpioRequest as G;
        for (number, expected) in [
            (0x8044_b401, Ok(G::ChipInfo)),
            (0xc048_b402, Ok(G::LineInfo1)),
            (0xc16c_b403, Ok(G::Handle1)),
            (0xc030_b404, Ok(G::Event1)),
            (0xc100_b405, Ok(G::LineInfo)),
            (0xc100_b406, Ok(G::Watch)),
            (0xc250_b407, Ok(G::Lines)),
            (0xc040_b408, Ok(G::GetValues1)),
            (0xc040_b409, Ok(G::SetValues1)),
            (0xc054_b40a, Ok(G::SetConfig1)),
            (0xc048_b40b, Ok(G::Watch1)),
            (0xc004_b40c, Ok(G::Unwatch)),
            (0xc110_b40d, Ok(G::SetConfig)),
            (0xc010_b40e, Ok(G::GetValues)),
            (0xc010_b40f, Ok(G::SetValues)),
            // The wrong size, direction, number and letter.
            (0xc24f_b407, Err(Errno::INVAL)),
            (0x8250_b407, Err(Errno::INVAL)),
            (0xc044_b401, Err(Errno::INVAL)),
            (0xc010_b410, Err(Errno::INVAL)),
            (0xc010_b30f, Err(Errno::INVAL)),
            (0x5401, Err(Errno::INVAL)),
        ] {
            assert_eq!(GpioRequest::decode(number), expected, "{number:#x}");
        }
    }
}
