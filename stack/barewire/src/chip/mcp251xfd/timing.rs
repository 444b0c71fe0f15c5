//! Bit timing: from bit rate and sample point to prescaler and segments.
//!
//! A bit is 1 + TSEG1 + TSEG2 time quanta, and a quantum is BRP system clocks. The sample point is
//! after 1 + TSEG1 (DS20005678, chapter "Bit time configuration").

use core::fmt;

use super::regs::{dbtcfg, nbtcfg, tdc};

/// The requested bit rate of a phase of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BitRate {
    /// Bits per second.
    pub bitrate_hz: u32,
    /// The sample point in thousandths of a bit. 0 means CiA's recommendation: 875 up to 500
    /// kbit/s, 800 up to 800, 750 above.
    pub sample_point_permille: u16,
}

impl BitRate {
    /// This bit rate, with CiA's sample point.
    #[must_use]
    pub const fn new(bitrate_hz: u32) -> Self {
        Self { bitrate_hz, sample_point_permille: 0 }
    }

    /// The same bit rate, with the sample point at `permille` thousandths of a bit.
    #[must_use]
    pub const fn with_sample_point_permille(self, permille: u16) -> Self {
        Self { sample_point_permille: permille, ..self }
    }

    const fn sample_point(&self) -> u32 {
        match (self.sample_point_permille, self.bitrate_hz) {
            (0, ..=500_000) => 875,
            (0, ..=800_000) => 800,
            (0, _) => 750,
            (permille, _) => permille as u32,
        }
    }
}

/// Why no bit timing is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TimingError {
    /// No prescaler and segments come within half a percent of the bit rate.
    BitRate {
        /// The requested bits per second.
        asked_hz: u32,
        /// The system clock, in hertz.
        sysclk_hz: u32,
    },
    /// The sample point is outside the bit.
    SamplePoint {
        /// The requested thousandths.
        permille: u16,
    },
}

impl fmt::Display for TimingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BitRate { asked_hz, sysclk_hz } => {
                write!(f, "{asked_hz} bit/s cannot be made of a system clock of {sysclk_hz} Hz")
            }
            Self::SamplePoint { permille } => {
                write!(f, "a sample point at {permille} thousandths of a bit: 1 to 999 there are")
            }
        }
    }
}

impl core::error::Error for TimingError {}

/// The limits of a phase's register.
struct Limits {
    tseg1_min: u32,
    tseg1_max: u32,
    tseg2_max: u32,
    sjw_max: u32,
}

const NOMINAL: Limits = Limits { tseg1_min: 2, tseg1_max: 256, tseg2_max: 128, sjw_max: 128 };
const DATA: Limits = Limits { tseg1_min: 1, tseg1_max: 32, tseg2_max: 16, sjw_max: 16 };
const BRP_MAX: u32 = 256;
/// The approximate difference at which two nodes of ISO 11898-1 still understand each other.
const ERROR_MAX_PERMILLE: u64 = 5;
/// TDCO has seven bits, including the sign.
const TDCO_MAX: u32 = 63;

/// A phase's timing, in time quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BitTiming {
    /// System clocks per quantum.
    pub brp: u32,
    /// Quanta between the first one and the sample point.
    pub tseg1: u32,
    /// Quanta after the sample point.
    pub tseg2: u32,
    /// The largest shift of the sample point, in quanta.
    pub sjw: u32,
}

impl BitTiming {
    /// The timing of arbitration, and of classic frames throughout.
    ///
    /// # Errors
    /// The errors of [`TimingError`].
    pub fn nominal(sysclk_hz: u32, rate: &BitRate) -> Result<Self, TimingError> {
        Self::find(sysclk_hz, rate, &NOMINAL)
    }

    /// The timing of an FD frame's data with bit rate switching.
    ///
    /// # Errors
    /// The errors of [`TimingError`].
    pub fn data(sysclk_hz: u32, rate: &BitRate) -> Result<Self, TimingError> {
        Self::find(sysclk_hz, rate, &DATA)
    }

    /// Chooses the nearest bit rate, then the nearest sample point, then the finest quantum.
    fn find(sysclk_hz: u32, rate: &BitRate, limits: &Limits) -> Result<Self, TimingError> {
        if rate.sample_point_permille > 999 {
            return Err(TimingError::SamplePoint { permille: rate.sample_point_permille });
        }
        let asked_hz = rate.bitrate_hz;
        let none = TimingError::BitRate { asked_hz, sysclk_hz };
        if asked_hz == 0 {
            return Err(none);
        }
        let mut best: Option<((u64, u32), Self)> = None;
        for brp in 1..=BRP_MAX {
            let (clock, quantum) = (u64::from(sysclk_hz), u64::from(brp) * u64::from(asked_hz));
            let quanta = ((clock + quantum / 2) / quantum) as u32;
            if quanta < limits.tseg1_min + 2 || quanta > 1 + limits.tseg1_max + limits.tseg2_max {
                continue;
            }
            // The error of the rate, in millionths.
            let error = clock.abs_diff(quantum * u64::from(quanta)) * 1_000_000 / clock.max(1);
            let wanted = quanta * rate.sample_point();
            let tseg1 = ((wanted + 500) / 1_000).saturating_sub(1);
            let least = limits.tseg1_min.max((quanta - 1).saturating_sub(limits.tseg2_max));
            let tseg1 = tseg1.clamp(least, limits.tseg1_max.min(quanta - 2));
            let tseg2 = quanta - 1 - tseg1;
            let off = ((1 + tseg1) * 1_000).abs_diff(wanted) / quanta;
            if best.is_none_or(|(least, _)| (error, off) < least) {
                let sjw = tseg2.min(tseg1).min(limits.sjw_max);
                best = Some(((error, off), Self { brp, tseg1, tseg2, sjw }));
            }
        }
        match best {
            Some(((error, _), timing)) if error <= ERROR_MAX_PERMILLE * 1_000 => Ok(timing),
            _ => Err(none),
        }
    }

    /// Bits per second, rounded down.
    #[must_use]
    pub const fn bitrate_hz(&self, sysclk_hz: u32) -> u32 {
        sysclk_hz / (self.brp * (1 + self.tseg1 + self.tseg2))
    }

    /// The sample point in thousandths of a bit, rounded down.
    #[must_use]
    pub const fn sample_point_permille(&self) -> u32 {
        (1 + self.tseg1) * 1_000 / (1 + self.tseg1 + self.tseg2)
    }

    /// C1NBTCFG.
    pub(super) const fn nominal_word(&self) -> u32 {
        let word = nbtcfg::BRP.put(0, self.brp - 1);
        let word = nbtcfg::TSEG1.put(word, self.tseg1 - 1);
        nbtcfg::SJW.put(nbtcfg::TSEG2.put(word, self.tseg2 - 1), self.sjw - 1)
    }

    /// C1DBTCFG.
    pub(super) const fn data_word(&self) -> u32 {
        let word = dbtcfg::BRP.put(0, self.brp - 1);
        let word = dbtcfg::TSEG1.put(word, self.tseg1 - 1);
        dbtcfg::SJW.put(dbtcfg::TSEG2.put(word, self.tseg2 - 1), self.sjw - 1)
    }

    /// C1TDC: the delay is measured, and the second sample point is at the same place in the bit as
    /// the first.
    pub(super) fn tdc_word(&self) -> u32 {
        const AUTOMATIC: u32 = 2;
        let offset = (self.brp * self.tseg1).min(TDCO_MAX);
        tdc::TDCO.put(tdc::TDCMOD.put(0, AUTOMATIC), offset)
    }
}
