//! The driver against registers that require an order of accesses.

mod block;
mod interrupt;
mod native;
mod short;
mod trouble;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::{NoGpio, Pl061};
use crate::controller::testing::{self, Blocks, NoPins};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Read, Write};
use crate::spi::{MODE_1, MODE_2, MODE_3, Mode};
use block::{Looped, Pace};

type Ticker = testing::Ticker<8_000_000>;

const CR0: u32 = 0x00;
const CR1: u32 = 0x04;
const DR: u32 = 0x08;
const SR: u32 = 0x0c;
const CPSR: u32 = 0x10;
const IMSC: u32 = 0x14;
const RIS: u32 = 0x18;
const ICR: u32 = 0x20;
const DMACR: u32 = 0x24;

const GPIO: u32 = 0x1000;
const SELECT: Access = Write(GPIO + (8 << 2), 0);
const DESELECT: Access = Write(GPIO + (8 << 2), 8);
const CS_OUT: [Access; 4] =
    [DESELECT, Read(GPIO + 0x400, 0x80), Write(GPIO + 0x400, 0x88), DESELECT];

const NATIVE: CsLine = CsLine::Native { channel: 0, active_high: false };
const PIN_3: CsLine = CsLine::Gpio { bit: 3, active_high: false };
const SETTINGS: Settings = Settings::new(0, 20_000_000);

fn config(line: CsLine) -> Pl022Config {
    Pl022Config {
        reference_hz: 80_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Sleeping, CsLine::Absent],
        poll_limit_ns: ALWAYS_POLL,
    }
}

/// Silent, no DMA, found empty, disabled, flags cleared.
const RESET: [Access; 7] = [
    Write(IMSC, 0),
    Write(DMACR, 0),
    Read(SR, 0x03),
    Read(CR1, 0),
    Write(CR1, 0),
    Write(CR1, 0),
    Write(ICR, 3),
];

/// What the first message of a device adds: disabled, 80 MHz / (2 x 2), the format, enabled.
const fn configured(format: u32) -> [Access; 4] {
    [Write(CR1, 0), Write(CPSR, 2), Write(CR0, 0x0100 | format), Write(CR1, 2)]
}

/// TNF and TFE, with or without a received word, with or without a frame on the wire.
const IDLE_RNE: u32 = 0x07;
const BUSY: u32 = 0x13;
const BUSY_RNE: u32 = 0x17;
const IDLE: u32 = 0x03;

/// The driver brought up with a pin, and then `accesses`.
fn on_pin(accesses: &[Access]) -> Vec<Access> {
    [&CS_OUT, &RESET[..], accesses].concat()
}

/// Runs `run` with a device of `settings` on a driver whose accesses must equal `script`.
fn hold(
    script: &[Access],
    settings: &Settings,
    run: impl FnOnce(&crate::bus::Device<'_, dyn Controller + '_>),
) {
    let blocks = Blocks::on(script);
    let gpio = Pl061::new(blocks.at(GPIO));
    let pl022 = Pl022::new(blocks.at(0), gpio, Ticker::default(), config(PIN_3));
    let bus = Bus::new(pl022);
    let bus: &Bus<dyn Controller + '_> = &bus;
    run(&bus.device(settings).expect("opens"));
    blocks.end();
}

#[test]
fn a_byte_costs_a_handful_of_accesses() {
    let exchange = [SELECT, Write(DR, 0x9f), Read(SR, BUSY), Read(SR, IDLE_RNE), Read(DR, 0x55)];
    let mut script = on_pin(&configured(0x07));
    script.extend(exchange);
    // The block was at rest when its word came, so no further read is needed.
    script.push(DESELECT);
    script.extend([SELECT, Write(DR, 0x9f), Read(SR, BUSY_RNE), Read(DR, 0x56)]);
    // Captured, and the clock not yet over.
    script.extend([Read(SR, BUSY), Read(SR, IDLE), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        for came in [0x55, 0x56] {
            let mut byte = [0x9f];
            device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
            assert_eq!(byte, [came]);
        }
    });
}

#[test]
fn where_the_block_rests_between_frames_a_byte_is_a_frame() {
    for (mode, format) in [(Mode::default(), 0x07), (MODE_2, 0x47)] {
        let mut script = on_pin(&configured(format));
        script.push(SELECT);
        script.extend([3, 1, 2, 4].map(|byte| Write(DR, byte)));
        // All done: three are read, the last one once RNE shows it.
        script.extend([Read(SR, IDLE_RNE), Read(DR, 5), Read(DR, 6), Read(DR, 7)]);
        script.extend([Read(SR, IDLE_RNE), Read(DR, 8), DESELECT]);
        hold(&script, &SETTINGS.with_mode(mode), |device| {
            let mut bytes = [3, 1, 2, 4];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [5, 6, 7, 8]);
        });
    }
}

#[test]
fn where_frames_follow_at_once_bytes_go_two_a_frame() {
    for (mode, format) in [(MODE_1, 0x8f), (MODE_3, 0xcf)] {
        let mut script = on_pin(&configured(format));
        script.extend([SELECT, Write(DR, 0x0301), Write(DR, 0x0204)]);
        script.extend([Read(SR, BUSY_RNE), Read(DR, 0x0506), Read(SR, BUSY)]);
        script.extend([Read(SR, IDLE_RNE), Read(DR, 0x0708), DESELECT]);
        // A transfer of odd length sends its whole message as bytes; no chip is selected while that
        // is set.
        script.extend([Write(CR1, 0), Write(CR0, 0x0100 | format & !8), Write(CR1, 2)]);
        script.extend([SELECT, Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 2)]);
        script.extend([Write(DR, 3), Write(DR, 4), Read(SR, IDLE_RNE), Read(DR, 5)]);
        script.extend([Read(SR, IDLE_RNE), Read(DR, 6), DESELECT]);
        hold(&script, &SETTINGS.with_mode(mode), |device| {
            let mut bytes = [3, 1, 2, 4];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [5, 6, 7, 8]);
            let mut rx = [3, 4];
            let mut message = [Transfer::write(&[1]), Transfer::in_place(&mut rx)];
            device.sync(&mut message).expect("runs");
            assert_eq!(rx, [5, 6]);
        });
    }
}

#[test]
fn long_transfers_are_paced_by_fours() {
    let mut script = on_pin(&configured(0x07));
    script.push(SELECT);
    script.extend((0..8).map(|byte| Write(DR, byte)));
    script.extend([Read(RIS, 0x08), Read(RIS, 0x0c)]);
    script.extend((0x40..0x44).map(|byte| Read(DR, byte)));
    script.extend((8..11).map(|byte| Write(DR, byte)));
    // Seven in flight, and no more to send.
    script.extend([Read(SR, BUSY_RNE), Read(DR, 0x44), Read(SR, BUSY), Read(SR, IDLE_RNE)]);
    script.extend((0x45..0x4a).map(|byte| Read(DR, byte)));
    script.extend([Read(SR, IDLE_RNE), Read(DR, 0x4a), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        let mut bytes: Vec<u8> = (0..11).collect();
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, (0x40..0x4b).collect::<Vec<u8>>());
    });
}

#[test]
fn a_transfers_own_speed_and_words_are_set_with_the_block_disabled() {
    let mut script = on_pin(&configured(0x07));
    script.push(SELECT);
    // 1 MHz: 2 x 40.
    script.extend([Write(CR1, 0), Write(CR0, 0x2707), Write(CR1, 2)]);
    script.extend([Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 0)]);
    // 100 kHz does not fit the smallest prescaler: 4 x 200.
    script.extend([Write(CR1, 0), Write(CPSR, 4), Write(CR0, 0xc707), Write(CR1, 2)]);
    script.extend([Write(DR, 2), Read(SR, IDLE_RNE), Read(DR, 0)]);
    script.extend([Write(CR1, 0), Write(CPSR, 2), Write(CR0, 0x010f), Write(CR1, 2)]);
    script.extend([Write(DR, 0x1234), Read(SR, IDLE_RNE), Read(DR, 0), DESELECT]);
    // The next message has the device's settings again.
    script.extend([Write(CR1, 0), Write(CR0, 0x0107), Write(CR1, 2)]);
    script.extend([SELECT, Write(DR, 3), Read(SR, IDLE_RNE), Read(DR, 0), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        let word = 0x1234_u16.to_ne_bytes();
        let mut message = [
            Transfer::write(&[1]).with_speed_hz(1_000_000),
            Transfer::write(&[2]).with_speed_hz(100_000),
            Transfer::write(&word).with_bits_per_word(16),
        ];
        assert_eq!(device.sync(&mut message), Ok(4));
        assert_eq!(device.sync(&mut [Transfer::write(&[3])]), Ok(1));
    });
}

/// A new polarity settles before a chip is selected; a mode with the old polarity needs no wait.
#[test]
fn a_new_polarity_is_waited_for() {
    let mut pl022 = Pl022::new(Looped::default(), NoPins, Ticker::default(), config(PIN_3));
    let slow = Settings::new(0, 1_000_000);
    let mut waits = |settings: &Settings| {
        let (program, _) = pl022.configure(settings).expect("opens");
        let before = pl022.timer.0;
        pl022.select(&program);
        pl022.timer.0 - before
    };
    // 2 us are 16 ticks, the wait's first and last looks beyond them.
    assert_eq!(waits(&slow), 18, "what it was is not known");
    assert_eq!(waits(&slow), 0);
    assert_eq!(waits(&slow.with_mode(MODE_1)), 0);
    assert_eq!(waits(&slow.with_mode(MODE_3)), 18);
    assert_eq!(waits(&slow.with_mode(MODE_3 | Mode::LOOP)), 0);
}

#[test]
fn every_length_mode_and_word_loops_back_within_the_fifos() {
    let lengths: &[usize] = if cfg!(miri) {
        &[0, 1, 8, 17]
    } else {
        &[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256]
    };
    for pace in [Pace::AtOnce, Pace::PerLook] {
        for (number, bits, word_delay_ns) in
            [(0, 8, 0), (1, 8, 0), (2, 16, 0), (3, 16, 0), (3, 8, 500), (0, 16, 500)]
        {
            let block = Looped { pace, ..Looped::default() };
            let bus = Bus::new(Pl022::new(block, NoPins, Ticker::default(), config(PIN_3)));
            let mode = Mode::from_number(number).expect("a mode") | Mode::LOOP;
            let settings =
                Settings { word_delay_ns, ..SETTINGS.with_mode(mode).with_bits_per_word(bits) };
            let device = bus.device(&settings).expect("opens");
            for len in lengths.iter().map(|len| len.next_multiple_of(usize::from(bits / 8))) {
                let tx = testing::loop_back(&device, len, settings);
                assert_eq!(device.sync(&mut [Transfer::write(&tx)]), Ok(len));
                testing::loop_back_several(&device, [len, 4, len]);
                testing::loop_back_several(&device, [4, len, 8]);
            }
            let block = bus.into_inner().release().0;
            let in_flight_max = if word_delay_ns > 0 { 1 } else { 8 };
            assert_eq!((block.offences, block.in_flight_max), (0, in_flight_max), "{settings:?}");
            assert_eq!(block.wide > 0, bits == 16 || mode.number() == 1, "{settings:?}");
        }
    }
}

#[test]
fn what_the_block_cannot_do_is_refused_at_opening() {
    let bus = Bus::new(Pl022::new(Looped::default(), NoPins, Ticker::default(), config(PIN_3)));
    let refused = |settings: Settings| bus.device(&settings).expect_err("is refused");
    assert_eq!(refused(SETTINGS.with_mode(Mode::LSB_FIRST)), Error::LsbFirst);
    assert_eq!(
        refused(SETTINGS.with_mode(Mode::CS_HIGH)),
        Error::CsPolarity { active_high: false }
    );
    for bits in [0, 4, 9, 32] {
        assert_eq!(refused(SETTINGS.with_bits_per_word(bits)), Error::BitsPerWord { bits });
    }
    assert_eq!(refused(Settings::new(0, 0)), Error::SpeedZero);
    let too_low = Error::SpeedTooLow { asked_hz: 1_230, min_hz: 1_231 };
    assert_eq!(refused(Settings::new(0, 1_230)), too_low);
    assert_eq!(refused(Settings::new(1, 1_000_000)), Error::NoSuchChipSelect { chip_select: 1 });
    assert_eq!(refused(Settings::new(2, 1_000_000)), Error::CsCanSleep);
    assert_eq!(refused(Settings::new(9, 1_000_000)), Error::NoSuchChipSelect { chip_select: 9 });

    let device = bus.device(&SETTINGS).expect("opens");
    let words = [0; 4];
    let mut wide = [Transfer::write(&words).with_bits_per_word(32)];
    let error = device.sync(&mut wide).expect_err("is refused").error;
    assert_eq!(error, Error::BitsPerWord { bits: 32 });
    let mut slow = [Transfer::write(&words).with_speed_hz(1_230)];
    assert_eq!(device.sync(&mut slow).expect_err("is refused").error, too_low);
}

#[test]
fn the_clock_is_the_fastest_not_above_what_was_asked() {
    // Under Miri one of each: it is arithmetic, and most of it the test's own.
    let some = |all: usize| if cfg!(miri) { 1 } else { all };
    for reference_hz in [99_999_989, 24_000_000, 80_000_000, 150_000_000].into_iter().take(some(4))
    {
        let config = Pl022Config { reference_hz, ..config(PIN_3) };
        let min_hz = config.limits(1).min_speed_hz;
        let asked = [3_600_000, min_hz, 10_000, 99_999, 400_000, 19_999_999, 200_000_000];
        for asked_hz in asked.into_iter().take(some(7)) {
            let (program, effective) =
                config.configure(&Settings::new(0, asked_hz), 8_000_000).expect("is in range");
            let control = program.plan.control;
            assert!((2..=254).contains(&(control >> 16)) && control >> 16 & 1 == 0);
            let best = (2..=254_u32)
                .step_by(2)
                .flat_map(|prescaler| (1..=256).map(move |divisor| prescaler * divisor))
                .filter(|&product| u64::from(product) * u64::from(asked_hz) >= reference_hz.into())
                .min();
            assert_eq!(Some(divisor(control)), best, "{asked_hz} Hz of {reference_hz}");
            assert_eq!(effective.speed_hz, reference_hz / divisor(control));
            assert!(effective.speed_hz <= asked_hz);
        }
    }
    let limits = config(PIN_3).limits(8_000_000);
    assert_eq!((limits.max_speed_hz, limits.min_speed_hz), (40_000_000, 1_231));
}

#[test]
fn delays_on_a_pin_are_ticks_of_125_ns() {
    let settings = Settings {
        cs_setup_ns: 1,
        cs_hold_ns: 126,
        cs_inactive_ns: 1_000,
        word_delay_ns: 250,
        ..SETTINGS
    };
    let (program, effective) = config(PIN_3).configure(&settings, 8_000_000).expect("opens");
    assert_eq!(
        (program.cs_setup_ticks, program.cs_hold_ticks, program.cs_inactive_ticks),
        (1, 2, 8)
    );
    assert_eq!(program.plan.word_delay_ticks, 2);
    assert_eq!((effective.cs_setup_ns, effective.cs_hold_ns), (125, 250));
    assert_eq!((effective.cs_inactive_ns, effective.word_delay_ns), (1_000, 250));
}

#[test]
fn without_a_chip_select_no_pin_moves() {
    let mut script = on_pin(&configured(0x07));
    script.extend([Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 2)]);
    hold(&script, &SETTINGS.with_mode(Mode::NO_CS), |device| {
        assert_eq!(device.sync(&mut [Transfer::write(&[1])]), Ok(1));
    });
}

#[test]
fn an_active_high_pin_is_driven_the_other_way() {
    let mut script = vec![Write(GPIO + 0x20, 0), Read(GPIO + 0x400, 0x88)];
    script.extend(RESET);
    script.extend(configured(0x07));
    script.extend([DESELECT, Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 2), SELECT]);
    let blocks = Blocks::on(&script);
    let gpio = Pl061::new(blocks.at(GPIO));
    let config = config(CsLine::Gpio { bit: 3, active_high: true });
    let bus = Bus::new(Pl022::new(blocks.at(0), gpio, Ticker::default(), config));
    let device = bus.device(&SETTINGS.with_mode(Mode::CS_HIGH)).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[1])]), Ok(1));
    blocks.end();
}
