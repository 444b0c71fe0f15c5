//! Which part of the family answers, told by the place and the width of its code.
//!
//! # Read first
//! Section 5.0 of DS21295 (MCP3004/3008), DS21298 (MCP3204/3208) and DS21294 (MCP3002), with figures 5-1
//! and 5-2: the bits on DOUT if the clock continues after B0.
//!
//! # How it works
//! The parts have no identity. But after B0 each sends its code again from B1 up to its most significant
//! bit, then zeros. So the bits behind the null bit are a palindrome with B0 in its middle. In clocks from
//! the start bit:
//!
//! | part | null bit | B0 | the last bit of the palindrome |
//! |---|---|---|---|
//! | MCP3002 | 4 | 14 | 23 |
//! | MCP3004, MCP3008 | 6 | 16 | 25 |
//! | MCP3204, MCP3208 | 6 | 18 | 29 |
//!
//! A selection of 32 clocks holds all of that, and two zeros. The answer fits a row if the null bit is 0, the
//! palindrome is one, and zeros follow. A palindrome about one clock that is also one about another, with zeros
//! behind it, is zero throughout. So an answer whose code is not 0 fits its own row and no other, whatever
//! DOUT reads before the null bit, where nothing drives it.
//!
//! [`probe`] asks each channel, because a code of 0 fits every row.
//!
//! The MCP3002 takes D2 as ODD/SIGN and D1 as MSBF, and one level of MSBF replaces its second code with zeros.
//! DS21294 contradicts itself on which level. The probe accepts both, and asks half of the channels with each
//! level.
//!
//! # Not supported
//! 1. A chip whose codes are all 0: no part is told. A MISO line that is held low looks the same.
//! 2. MCP3004 and MCP3008, MCP3204 and MCP3208: D2 is a don't care in those with four channels, and every bit on the wire
//!    is the same.
//! 3. Parts that this driver does not know. An MCP3202 below a quarter of its reference can answer as an
//!    MCP3008 does.

use super::{AdcError, MCP3002, MCP3004, MCP3008, MCP3204, MCP3208, PARTS, Part};
use crate::chip::Port;
use crate::spi::{Settings, Transfer};

/// The parts, in groups that answer alike.
static ALIKE: [&[&Part]; 3] = [&[&MCP3002], &[&MCP3004, &MCP3008], &[&MCP3204, &MCP3208]];
/// Start bit and SGL/DIFF, in clocks 0 and 1.
const SINGLE: u32 = 0b11 << 30;
/// Where D0 is, in clock 4.
const SELECT_SHIFT: u32 = 27;
/// As many as the larger parts have; the smaller ones take some bits of a number for others.
const CHANNELS: u32 = 8;

/// The result of [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Probed {
    /// The chip answers like these parts, which no bit on the wire tells apart, and like no other.
    OneOf(&'static [&'static Part]),
    /// Every code was 0, which all parts answer alike: the inputs are at ground, or MISO is held low.
    Unknown,
    /// No part of the family answers so.
    NoPart {
        /// The answer that fits none.
        received: [u8; 4],
    },
}

/// Settings with which every part can be asked: the clock is the requested one, or less if a part of
/// the family takes less at its supply.
///
/// # Errors
/// [`AdcError::Supply`].
pub fn probe_settings(
    chip_select: u8,
    speed_hz: u32,
    supply_mv: u32,
) -> Result<Settings, AdcError> {
    let mut all = Settings::new(chip_select, speed_hz);
    for part in PARTS {
        all.speed_hz = all.speed_hz.min(part.max_speed_hz(supply_mv)?);
    }
    for part in PARTS {
        let of_part = part.settings(chip_select, all.speed_hz, supply_mv)?;
        all.cs_setup_ns = all.cs_setup_ns.max(of_part.cs_setup_ns);
        all.cs_inactive_ns = all.cs_inactive_ns.max(of_part.cs_inactive_ns);
    }
    Ok(all)
}

/// Asks the chip behind `port`, which has the settings of [`probe_settings`], for a conversion of every
/// channel, and tells which parts answer like that.
///
/// # Errors
/// [`AdcError::Message`].
pub fn probe<P: Port>(port: &mut P) -> Result<Probed, AdcError> {
    let mut fitting = [true; ALIKE.len()];
    for channel in 0..CHANNELS {
        let mut received = (SINGLE | channel << SELECT_SHIFT).to_be_bytes();
        port.run(&mut [Transfer::in_place(&mut received)])?;
        let answer = u32::from_be_bytes(received);
        for (fits, parts) in fitting.iter_mut().zip(ALIKE) {
            *fits &= is_of(parts[0], answer);
        }
        if fitting == [false; ALIKE.len()] {
            return Ok(Probed::NoPart { received });
        }
    }
    let mut rows = ALIKE.into_iter().zip(fitting).filter_map(|(parts, fits)| fits.then_some(parts));
    match (rows.next(), rows.next()) {
        (Some(parts), None) => Ok(Probed::OneOf(parts)),
        _ => Ok(Probed::Unknown),
    }
}

/// Whether `part` can have answered so; clock 0 is the most significant bit.
fn is_of(part: &Part, answer: u32) -> bool {
    let from_null = answer << part.start_to_null;
    let from_code = from_null << 1;
    let code = from_code >> (32 - u32::from(part.bits));
    let behind = from_code << part.bits;
    // B0 is not sent twice.
    let again = code.reverse_bits() << 1;
    let ends_with_b0 = part.channels == 2 && behind == 0;
    from_null >> 31 == 0 && (behind == again || ends_with_b0)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::spi::MessageError;

    /// An answer of 32 clocks as the data sheets' figures draw it: undriven, the null bit, the code, the code
    /// again without B0 if it `repeats`, zeros.
    fn answer(undriven: &[u32], bits: u32, code: u32, repeats: bool) -> u32 {
        let mut drawn: Vec<u32> = undriven.to_vec();
        drawn.push(0);
        drawn.extend((0..bits).rev().map(|bit| code >> bit & 1));
        if repeats {
            drawn.extend((1..bits).map(|bit| code >> bit & 1));
        }
        drawn.resize(32, 0);
        drawn.iter().fold(0, |word, bit| word << 1 | bit)
    }

    /// The values that an undriven DOUT may have in `clocks`: all patterns of the last two, after ones or zeros.
    fn undriven(clocks: usize) -> impl Iterator<Item = Vec<u32>> {
        (0..8).map(move |pattern: u32| {
            let mut levels = std::vec![pattern >> 2; clocks];
            levels[clocks - 2] = pattern >> 1 & 1;
            levels[clocks - 1] = pattern & 1;
            levels
        })
    }

    /// The rows of [`ALIKE`] that an answer fits.
    fn fits(answer: u32) -> [bool; 3] {
        ALIKE.map(|parts| is_of(parts[0], answer))
    }

    #[test]
    fn every_code_but_0_is_told_from_those_of_all_other_parts() {
        for (clocks, bits, only) in [
            (4, 10, [true, false, false]),
            (6, 10, [false, true, false]),
            (6, 12, [false, false, true]),
        ] {
            for levels in undriven(clocks) {
                for code in 1..1 << bits {
                    let answer = answer(&levels, bits, code, true);
                    assert_eq!(fits(answer), only, "{bits} bits, {code:#x}: {answer:032b}");
                }
            }
        }
    }

    #[test]
    fn a_code_of_0_fits_all_parts() {
        assert_eq!(fits(0), [true; 3]);
        // A bit that no chip drives can only exclude the parts that would have driven it.
        assert_eq!(fits(answer(&[1; 6], 12, 0, true)), [false, true, true]);
    }

    #[test]
    fn an_mcp3002_is_told_whichever_level_of_msbf_repeats_its_code() {
        for code in 1..1 << 10 {
            let once = answer(&[1; 4], 10, code, false);
            assert!(fits(once)[0], "{code:#x}");
            for repeats_where in [0_u32, 1] {
                let mut chip = AnsweringChip(|channel: u32| {
                    answer(&[1; 4], 10, code, channel >> 1 & 1 == repeats_where)
                });
                assert_eq!(probe(&mut chip), Ok(Probed::OneOf(ALIKE[0])), "{code:#x}");
            }
        }
    }

    /// A chip that answers each channel as the function says.
    struct AnsweringChip<F>(F);

    impl<F: FnMut(u32) -> u32> Port for AnsweringChip<F> {
        fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
            let [transfer] = message else { panic!("one selection") };
            let sent = transfer.data.tx().expect("sends");
            let sent = u32::from_be_bytes(sent.try_into().expect("32 clocks"));
            // Start bit, SGL/DIFF, D2 to D0; the rest is a don't care.
            assert_eq!((sent >> 30, sent & 0x07ff_ffff), (0b11, 0));
            let answer = (self.0)(sent >> 27 & 7).to_be_bytes();
            transfer.data.rx_mut().expect("receives").copy_from_slice(&answer);
            Ok(())
        }

        fn speed_hz(&self) -> u32 {
            1_000_000
        }
    }

    #[test]
    fn one_channel_that_is_not_at_ground_tells_the_part() {
        for live in 0..8 {
            let at = |channel, code| if channel == live { code } else { 0 };
            let mut ten =
                AnsweringChip(|channel: u32| answer(&[1; 6], 10, at(channel, 0x2a5), true));
            assert_eq!(probe(&mut ten), Ok(Probed::OneOf(ALIKE[1])));
            let mut twelve =
                AnsweringChip(|channel: u32| answer(&[0; 6], 12, at(channel, 1), true));
            assert_eq!(probe(&mut twelve), Ok(Probed::OneOf(ALIKE[2])));
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        assert_eq!(probe(&mut AnsweringChip(|_| 0)), Ok(Probed::Unknown));
        assert_eq!(
            probe(&mut AnsweringChip(|_| answer(&[1; 6], 10, 0, true))),
            Ok(Probed::Unknown)
        );
        assert_eq!(
            probe(&mut AnsweringChip(|_| u32::MAX)),
            Ok(Probed::NoPart { received: [0xff; 4] })
        );
        // A flash's answer to something else, and two parts that answer in turn.
        let received = [0xff, 0xef, 0x40, 0x19];
        let mut flash = AnsweringChip(|_| u32::from_be_bytes(received));
        assert_eq!(probe(&mut flash), Ok(Probed::NoPart { received }));
        let mut both =
            AnsweringChip(|channel: u32| answer(&[1; 6], 10 + (channel & 1) * 2, 0x155, true));
        assert!(matches!(probe(&mut both), Ok(Probed::NoPart { .. })));
        let error = MessageError::refused(crate::spi::Error::Busy, 0);
        struct Broken(MessageError);
        impl Port for Broken {
            fn run(&mut self, _: &mut [Transfer<'_>]) -> Result<(), MessageError> {
                Err(self.0)
            }
            fn speed_hz(&self) -> u32 {
                1
            }
        }
        assert_eq!(probe(&mut Broken(error)), Err(AdcError::Message(error)));
    }

    #[test]
    fn every_part_takes_the_settings() {
        for (supply_mv, hz) in [(5_000, 2_000_000), (3_300, 1_000_000)] {
            let settings = probe_settings(3, 3_600_000, supply_mv).expect("a good supply");
            assert_eq!((settings.chip_select, settings.speed_hz), (3, hz));
            assert_eq!(settings.cs_inactive_ns, 500);
            assert!(PARTS.iter().all(|part| part.settings(3, hz, supply_mv).is_ok()));
        }
        let slow = probe_settings(0, 20_000, 5_000).expect("a good supply");
        assert_eq!(slow.speed_hz, 20_000, "what is asked is not exceeded");
        assert!(matches!(probe_settings(0, 1, 1_800), Err(AdcError::Supply { .. })));
    }
}
