//! A controller's table of chip selects, which the board defines, and the line that a device names.

use super::gpio::GpioBank;
use crate::spi::{Error, Mode, Settings};
use crate::time::Timer;

/// One line of a controller's table of chip selects. The board defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CsLine {
    /// No such line.
    Absent,
    /// The block's native line `channel`.
    Native {
        /// The number of the line; the block determines how many there are.
        channel: u8,
        /// Its active level.
        active_high: bool,
    },
    /// Pin `bit` of the GPIO bank.
    Gpio {
        /// The pin, 0 to 31.
        bit: u8,
        /// Its active level.
        active_high: bool,
    },
    /// A line whose driver may sleep: opening a device on it fails.
    Sleeping,
}

/// The line that selects a device's chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Select {
    /// The block's native line `channel`.
    Native { channel: u8 },
    /// The pin of `mask`, which has one bit.
    Gpio { mask: u32 },
    /// No line ([`Mode::NO_CS`]).
    None,
}

impl Select {
    /// The mask of the pin that is driven; 0 if none is.
    pub(super) fn gpio_mask(self) -> u32 {
        match self {
            Select::Gpio { mask } => mask,
            Select::Native { .. } | Select::None => 0,
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
        return Ok((Select::None, mode.contains(Mode::CS_HIGH)));
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

/// The native lines that are wired to chips, and whether each is active high.
pub(super) fn native(lines: &[CsLine]) -> impl Iterator<Item = (u8, bool)> {
    lines.iter().filter_map(|line| match *line {
        CsLine::Native { channel, active_high } => Some((channel, active_high)),
        _ => None,
    })
}

/// The native lines below `count` to which no chip is wired: for chips that a GPIO selects or that
/// have no select line.
pub(super) fn idle_channels(lines: &[CsLine], count: u8) -> impl Iterator<Item = u8> {
    (0..count).filter(|&channel| native(lines).all(|(used, _)| used != channel))
}

/// How long every line has been at rest since the driver was brought up or reclaimed its block:
/// either may have moved a line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// The tick at which the rest began.
    begun: u64,
    /// Whole ticks known to have passed since then.
    known_ticks: u32,
}

impl Rest {
    /// A rest that begins now.
    pub(super) fn begin(timer: &mut impl Timer) -> Self {
        Self { begun: timer.now_ticks(), known_ticks: 0 }
    }

    /// Waits until the rest has lasted `ticks` whole ticks. Reads the timer only if that many are
    /// not known to have passed.
    #[inline]
    pub(super) fn at_least(&mut self, ticks: u32, timer: &mut impl Timer) {
        if ticks > self.known_ticks {
            self.look(ticks, timer);
        }
    }

    #[cold]
    fn look(&mut self, ticks: u32, timer: &mut impl Timer) {
        // The first tick had partly passed.
        let passed = timer.now_ticks().wrapping_sub(self.begun).saturating_sub(1);
        timer.wait_ticks(u64::from(ticks).saturating_sub(passed));
        self.known_ticks = u32::try_from(passed).unwrap_or(u32::MAX).max(ticks);
    }
}

/// Drives every GPIO line inactive, as an output.
pub(super) fn deselect_all(lines: &[CsLine], gpio: &mut impl GpioBank) {
    for line in lines {
        if let CsLine::Gpio { bit, active_high } = *line {
            gpio.output(1 << (bit & 31), !active_high);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    /// A counter that counts its reads.
    #[derive(Debug, Default)]
    struct Ticker(u64);

    impl Timer for Ticker {
        fn frequency_hz(&self) -> u32 {
            1_000_000
        }
        fn now_ticks(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }
    }

    /// A counter whose value the test sets.
    #[derive(Debug)]
    struct Clock<'c>(&'c Cell<u64>);

    impl Timer for Clock<'_> {
        fn frequency_hz(&self) -> u32 {
            1_000_000
        }
        fn now_ticks(&mut self) -> u64 {
            self.0.get()
        }
        fn wait_ticks(&mut self, ticks: u64) {
            self.0.set(self.0.get() + ticks + 1);
        }
    }

    #[test]
    fn a_rest_is_waited_for_once_and_never_short() {
        let now = Cell::new(100);
        let mut timer = Clock(&now);
        let mut rest = Rest::begin(&mut timer);
        rest.at_least(0, &mut timer);
        assert_eq!(now.get(), 100);
        now.set(104);
        // 3 whole ticks have passed of 10; a wait of 7 ends 8 edges later.
        rest.at_least(10, &mut timer);
        assert_eq!(now.get(), 112);
        rest.at_least(10, &mut timer);
        assert_eq!(now.get(), 112);
        // The lines have rested 11 ticks of the 20 by then.
        rest.at_least(20, &mut timer);
        assert_eq!(now.get(), 122);
    }

    #[test]
    fn a_line_is_refused_by_what_it_is() {
        let pin = CsLine::Gpio { bit: 33, active_high: true };
        let lines = [pin, CsLine::Sleeping, CsLine::Absent];
        let found = |chip_select, mode| {
            find(&lines, &Settings::new(chip_select, 1_000_000).with_mode(mode))
        };
        assert_eq!(found(0, Mode::CS_HIGH), Ok((Select::Gpio { mask: 2 }, true)));
        assert_eq!(found(0, Mode::default()), Err(Error::CsPolarity { active_high: true }));
        assert_eq!(found(1, Mode::default()), Err(Error::CsCanSleep));
        for chip_select in [2, 3] {
            let none = Err(Error::NoSuchChipSelect { chip_select });
            assert_eq!(found(chip_select, Mode::default()), none);
            assert_eq!(found(chip_select, Mode::NO_CS), Ok((Select::None, false)));
        }
    }

    #[test]
    fn what_has_passed_is_not_looked_for_again() {
        let mut timer = Ticker(0);
        let mut rest = Rest::begin(&mut timer);
        timer.0 = 1 << 40;
        rest.at_least(7, &mut timer);
        let looked_at = timer.0;
        rest.at_least(u32::MAX, &mut timer);
        assert_eq!(timer.0, looked_at);
    }
}
