//! A controller's table of chip selects, which is the board's affair, and the line a device names.

use super::gpio::GpioBank;
use crate::spi::{Error, Mode, Settings};

/// One line of a controller's table of chip selects: a property of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsLine {
    /// No such line.
    Absent,
    /// The block's own line `channel`.
    Native {
        /// Which of its lines; how many there are is the block's affair.
        channel: u8,
        /// Its active level.
        active_high: bool,
    },
    /// Pin `bit` of the GPIO bank.
    Gpio {
        /// Which pin, 0 to 31.
        bit: u8,
        /// Its active level.
        active_high: bool,
    },
    /// A line whose driver may sleep: refused when a device on it is opened.
    Sleeping,
}

/// Who selects a device's chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Select {
    /// The block's own line `channel`.
    Native { channel: u8 },
    /// The pins of `mask`: one.
    Gpio { mask: u32 },
    /// Nobody ([`Mode::NO_CS`]).
    Nobody,
}

impl Select {
    /// The pin that is driven; 0 if none is.
    pub(super) fn gpio_mask(self) -> u32 {
        match self {
            Select::Gpio { mask } => mask,
            Select::Native { .. } | Select::Nobody => 0,
        }
    }
}

/// The line that `settings` name in `lines`, and whether it is active high.
///
/// # Errors
/// [`Error::NoSuchChipSelect`], [`Error::CsCanSleep`], [`Error::CsPolarity`].
pub(super) fn find(lines: &[CsLine], settings: &Settings) -> Result<(Select, bool), Error> {
    let Settings { chip_select, mode, .. } = *settings;
    if mode.contains(Mode::NO_CS) {
        return Ok((Select::Nobody, mode.contains(Mode::CS_HIGH)));
    }
    let (select, active_high) = match lines.get(usize::from(chip_select)) {
        None | Some(CsLine::Absent) => return Err(Error::NoSuchChipSelect { chip_select }),
        Some(CsLine::Sleeping) => return Err(Error::CsCanSleep),
        Some(&CsLine::Native { channel, active_high }) => (Select::Native { channel }, active_high),
        Some(&CsLine::Gpio { bit, active_high }) => {
            (Select::Gpio { mask: 1 << (bit & 31) }, active_high)
        }
    };
    if mode.contains(Mode::CS_HIGH) != active_high {
        return Err(Error::CsPolarity { active_high });
    }
    Ok((select, active_high))
}

/// The block's own lines that are wired, and whether each is active high.
pub(super) fn native(lines: &[CsLine]) -> impl Iterator<Item = (u8, bool)> {
    lines.iter().filter_map(|line| match *line {
        CsLine::Native { channel, active_high } => Some((channel, active_high)),
        _ => None,
    })
}

/// The lines of the block below `count` that no chip listens to, for chips which a GPIO selects, or
/// nobody.
pub(super) fn idle_channels(lines: &[CsLine], count: u8) -> impl Iterator<Item = u8> {
    (0..count).filter(|&channel| native(lines).all(|(used, _)| used != channel))
}

/// Drives every GPIO line inactive, as an output.
pub(super) fn deselect_all(lines: &[CsLine], gpio: &mut impl GpioBank) {
    for line in lines {
        if let CsLine::Gpio { bit, active_high } = *line {
            gpio.output(1 << (bit & 31), !active_high);
        }
    }
}
