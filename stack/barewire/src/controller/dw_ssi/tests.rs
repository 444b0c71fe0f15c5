//! The driver against registers that require an order of accesses.

mod block;
mod interrupt;
mod native;
mod short;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::{NoGpio, Rp1Gpio};
use crate::controller::testing::{self, Blocks, NoPins};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Read, Write};
use crate::spi::{MODE_1, MODE_2, MODE_3, Mode};
use block::Looped;

type Ticker = testing::Ticker<8_000_000>;

// The databook's offsets, not the driver's.
const CTRLR0: u32 = 0x00;
const SSIENR: u32 = 0x08;
const SER: u32 = 0x10;
const BAUDR: u32 = 0x14;
const TXFTLR: u32 = 0x18;
const RXFTLR: u32 = 0x1c;
const RXFLR: u32 = 0x24;
const SR: u32 = 0x28;
const IMR: u32 = 0x2c;
const RISR: u32 = 0x34;
const ICR: u32 = 0x48;
const DMACR: u32 = 0x4c;
const DR: u32 = 0x60;

const GPIO: u32 = 0x10_0000;
const SELECT: Access = Write(GPIO + 0x1_3000, 1 << 8);
const DESELECT: Access = Write(GPIO + 0x1_2000, 1 << 8);
const CS_OUT: [Access; 4] =
    [DESELECT, Write(GPIO + 0x1_2004, 1 << 8), Read(GPIO + 0x2_0024, 0x56), Read(GPIO + 0x44, 5)];

const NATIVE: CsLine = CsLine::Native { channel: 0, active_high: false };
const PIN_8: CsLine = CsLine::Gpio { bit: 8, active_high: false };
const SETTINGS: Settings = Settings::new(0, 20_000_000);

fn config(line: CsLine) -> DwSsiConfig {
    DwSsiConfig {
        reference_hz: 200_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Sleeping, CsLine::Absent],
        native_lines: 2,
        poll_limit_ns: ALWAYS_POLL,
    }
}

/// Disabled, silent, no line, no DMA, flags cleared.
const RESET: [Access; 5] =
    [Write(SSIENR, 0), Write(IMR, 0), Write(SER, 0), Write(DMACR, 0), Read(ICR, 0)];

/// The accesses that probe a threshold register of a FIFO of `depth` words, which keeps its value
/// when a larger one is written.
fn threshold(register: u32, depth: u32) -> Vec<Access> {
    let (mut held, mut low, mut high) = (0, 1, 256);
    let mut script = Vec::new();
    while high - low > 1 {
        let value = (low + high) / 2;
        if value < depth {
            (held, low) = (value, value);
        } else {
            high = value;
        }
        script.extend([Write(register, value), Read(register, held)]);
    }
    script
}

/// The driver detects that the FIFOs hold 64 and 60 words, and that frames have up to 32 bits.
fn measured() -> Vec<Access> {
    let wide = [Write(CTRLR0, 0x001f_0000), Read(CTRLR0, 0x001f_0000)];
    [threshold(TXFTLR, 64), threshold(RXFTLR, 60), wide.to_vec()].concat()
}

/// What the first message of a device adds before its chip is selected: 20 MHz, frames of a byte.
const CONFIGURED: [Access; 5] = [
    Write(SSIENR, 0),
    Write(CTRLR0, 0x0007_0000),
    Write(BAUDR, 10),
    Write(SER, 1),
    Write(SSIENR, 1),
];

/// Frames of `bytes`.
const fn frames(bytes: u32) -> [Access; 3] {
    [Write(SSIENR, 0), Write(CTRLR0, (8 * bytes - 1) << 16), Write(SSIENR, 1)]
}

/// The driver brought up with a pin, and then `accesses`.
fn on_pin(accesses: &[Access]) -> Vec<Access> {
    [&CS_OUT, &RESET[..], &measured(), accesses].concat()
}

/// TFNF and TFE, with or without a word to read.
const IDLE: u32 = 0x06;
const IDLE_RFNE: u32 = 0x0e;
/// The last word has left the transmit FIFO, but its last bit is still in the block.
const BUSY: u32 = 0x07;
const BUSY_RFNE: u32 = 0x0f;
/// Words wait, but BUSY is not set yet.
const WAITING: u32 = 0x02;

/// Runs `run` with a device of `settings` on a driver whose accesses must equal `script`.
fn hold(
    script: &[Access],
    settings: &Settings,
    run: impl FnOnce(&crate::bus::Device<'_, dyn Controller + '_>),
) {
    let blocks = Blocks::on(script);
    let gpio = Rp1Gpio::new(blocks.at(GPIO));
    let dw_ssi = DwSsi::new(blocks.at(0), gpio, Ticker::default(), config(PIN_8));
    assert_eq!(dw_ssi.fifo_words(), 60);
    let bus = Bus::new(dw_ssi);
    let bus: &Bus<dyn Controller + '_> = &bus;
    run(&bus.device(settings).expect("opens"));
    blocks.end();
}

#[test]
fn four_bytes_cost_two_reads_beside_the_looks() {
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(4));
    script.extend([Write(DR, 0x9f01_0203), Read(SR, BUSY), Read(SR, IDLE_RFNE)]);
    script.extend([Read(DR, 0xff11_2233), DESELECT]);
    // The next message has nothing to configure.
    script.extend([SELECT, Write(DR, 0x9f01_0203), Read(SR, IDLE_RFNE)]);
    script.extend([Read(DR, 0xff11_2233), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        for _ in 0..2 {
            let mut bytes = [0x9f, 1, 2, 3];
            device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
            assert_eq!(bytes, [0xff, 0x11, 0x22, 0x33]);
        }
    });
}

#[test]
fn a_block_that_has_not_begun_is_not_taken_for_idle() {
    let mut script = on_pin(&CONFIGURED);
    script.extend([SELECT, Write(DR, 0x9f)]);
    // Not started; started; captured while the clock still runs; over.
    script.extend([WAITING, BUSY, BUSY_RFNE, IDLE_RFNE].map(|status| Read(SR, status)));
    script.extend([Read(DR, 0x55), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        let mut byte = [0x9f];
        device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
        assert_eq!(byte, [0x55]);
    });
}

#[test]
fn bytes_that_fill_no_frame_go_in_one_of_their_own() {
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(4));
    script.extend([0x0001_0203, 0x0405_0607].map(|word| Write(DR, word)));
    script.extend([Read(RXFLR, 1), Read(DR, 0), Read(SR, IDLE_RFNE), Read(DR, 0)]);
    script.extend(frames(3));
    script.extend([Write(DR, 0x08_090a), Read(SR, IDLE_RFNE), Read(DR, 0), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        device.sync(&mut [Transfer::write(&bytes)]).expect("runs");
    });
}

#[test]
fn as_much_is_sent_as_has_come_and_the_last_bit_is_awaited() {
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(4));
    // 62 frames on the smaller of two FIFOs.
    script.extend(vec![Write(DR, 0); 60]);
    script.extend([Read(RXFLR, 0), Read(RXFLR, 1), Read(DR, 0), Write(DR, 0)]);
    script.push(Read(RXFLR, 60));
    script.extend(vec![Read(DR, 0); 60]);
    script.extend([Write(DR, 0), Read(SR, BUSY), Read(SR, IDLE_RFNE), Read(DR, 0x0102_0304)]);
    script.push(DESELECT);
    hold(&script, &SETTINGS, |device| {
        let mut rx = [9; 62 * 4];
        device.sync(&mut [Transfer::read(&mut rx)]).expect("runs");
        assert_eq!((rx[243], &rx[244..]), (0, &[1, 2, 3, 4][..]));
    });
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(4));
    script.extend([Write(DR, 0), Write(DR, 0), Read(RXFLR, 2), Read(DR, 0), Read(DR, 0)]);
    script.extend([Read(SR, BUSY), Read(SR, IDLE), DESELECT]);
    hold(&script, &SETTINGS, |device| {
        device.sync(&mut [Transfer::write(&[0; 8])]).expect("runs");
    });
}

#[test]
fn a_delay_begins_when_the_edge_has_arrived() {
    let settings = Settings { cs_setup_ns: 1, cs_hold_ns: 1, cs_inactive_ns: 1, ..SETTINGS };
    let mut script = on_pin(&CONFIGURED);
    script.extend([SELECT, Read(SR, IDLE), Write(DR, 0x9f), Read(SR, IDLE_RFNE), Read(DR, 0)]);
    script.extend([DESELECT, Read(SR, IDLE)]);
    hold(&script, &settings, |device| {
        device.sync(&mut [Transfer::write(&[0x9f])]).expect("runs");
    });
}

#[test]
fn another_mode_is_set_before_the_chip_is_selected() {
    let mut script = on_pin(&CONFIGURED);
    let exchange = [SELECT, Write(DR, 0), Read(SR, IDLE_RFNE), Read(DR, 0), DESELECT];
    script.extend(exchange);
    script.extend([Write(SSIENR, 0), Write(CTRLR0, 0x0007_00c0), Write(SSIENR, 1)]);
    script.extend(exchange);
    // Another speed keeps the polarity.
    script.extend([SELECT, Write(SSIENR, 0), Write(BAUDR, 200), Write(SSIENR, 1)]);
    script.extend(&exchange[1..]);
    hold(&script, &SETTINGS, |device| {
        device.sync(&mut [Transfer::write(&[0])]).expect("runs");
        let other = device.bus().device(&SETTINGS.with_mode(MODE_3)).expect("opens");
        other.sync(&mut [Transfer::write(&[0])]).expect("runs");
        other.sync(&mut [Transfer::write(&[0]).with_speed_hz(1_000_000)]).expect("runs");
    });
}

#[test]
fn a_lost_word_is_an_overrun_and_the_block_is_reset_after_the_chip() {
    let mut script = on_pin(&CONFIGURED);
    script.extend([SELECT, Write(DR, 0)]);
    // The timer is read after 64 polls. The deadline is twice the wire time of 60 frames, 24 us,
    // plus a millisecond: 8,384 ticks.
    let vain = 64 + 8_385;
    script.extend(vec![Read(SR, IDLE); vain]);
    script.extend([Read(RISR, 1 << 3), DESELECT]);
    script.extend(RESET);
    hold(&script, &SETTINGS, |device| {
        let failed = device.sync(&mut [Transfer::write(&[0])]).expect_err("nothing came");
        assert_eq!(failed.error, Error::Overrun);
    });
}

#[test]
fn settings_that_the_block_cannot_do_are_refused() {
    let dw_ssi = DwSsi::new(Looped::default(), NoPins, Ticker::default(), config(PIN_8));
    let refused = |settings: Settings| dw_ssi.configure(&settings).expect_err("refused");
    assert_eq!(refused(SETTINGS.with_mode(Mode::LSB_FIRST)), Error::LsbFirst);
    assert_eq!(refused(Settings { speed_hz: 0, ..SETTINGS }), Error::SpeedZero);
    let slowest = Error::SpeedTooLow { asked_hz: 3_051, min_hz: 3_052 };
    assert_eq!(refused(Settings { speed_hz: 3_051, ..SETTINGS }), slowest);
    assert_eq!(refused(SETTINGS.with_bits_per_word(24)), Error::BitsPerWord { bits: 24 });
    assert_eq!(
        refused(SETTINGS.with_mode(Mode::CS_HIGH)),
        Error::CsPolarity { active_high: false }
    );
    assert_eq!(refused(Settings::new(2, 1_000_000)), Error::CsCanSleep);
    let (_, effective) = dw_ssi.configure(&Settings { speed_hz: 3_052, ..SETTINGS }).expect("slow");
    assert_eq!(effective.speed_hz, 3_051);
    // An odd divisor, 7, would be rounded down by the block.
    let (_, effective) =
        dw_ssi.configure(&Settings { speed_hz: 28_571_429, ..SETTINGS }).expect("opens");
    assert_eq!(effective.speed_hz, 25_000_000);
    let (_, effective) =
        dw_ssi.configure(&Settings { speed_hz: u32::MAX, ..SETTINGS }).expect("opens");
    assert_eq!(effective.speed_hz, 100_000_000);
}

#[test]
fn frames_of_16_bits_at_most_have_words_of_16_bits_at_most() {
    let narrow = Looped { wide: false, ..Looped::default() };
    let dw_ssi = DwSsi::new(narrow, NoPins, Ticker::default(), config(PIN_8));
    assert_eq!(dw_ssi.limits().bits_per_word_mask, 0x8080);
    let refused = dw_ssi.configure(&SETTINGS.with_bits_per_word(32)).expect_err("refused");
    assert_eq!(refused, Error::BitsPerWord { bits: 32 });
    let wide = DwSsi::new(Looped::default(), NoPins, Ticker::default(), config(PIN_8));
    assert_eq!(wide.limits().bits_per_word_mask, 0x8000_8080);
}

#[test]
fn what_is_sent_comes_back_whatever_its_length() {
    for wide in [true, false] {
        for depth in [2, 16, 64, 256] {
            let looped = Looped { wide, depth, ..Looped::default() };
            let bus = Bus::new(DwSsi::new(looped, NoPins, Ticker::default(), config(PIN_8)));
            for mode in [Mode::LOOP, MODE_1 | Mode::LOOP, MODE_2 | Mode::LOOP] {
                let device = bus.device(&SETTINGS.with_mode(mode)).expect("opens");
                for len in (0..40).chain([255, 256, 257, 1_023, 1_027]) {
                    testing::loop_back(&device, len, (wide, depth));
                }
            }
            let apart =
                bus.device(&Settings { word_delay_ns: 200, ..SETTINGS.with_mode(Mode::LOOP) });
            testing::loop_back(&apart.expect("opens"), 9, "apart");
            let words = SETTINGS.with_mode(Mode::LOOP).with_bits_per_word(16);
            for len in [2, 4, 6, 10, 62, 64] {
                testing::loop_back(&bus.device(&words).expect("opens"), len, "words of 16 bits");
            }
        }
    }
}

#[test]
#[should_panic(expected = "and no line 2")]
fn a_line_that_there_is_not_is_refused() {
    let line = CsLine::Native { channel: 2, active_high: false };
    let _ = DwSsi::new(Looped::default(), NoPins, Ticker::default(), config(line));
}

#[test]
fn a_block_that_somebody_left_is_disabled_after_the_chips_are() {
    let mut script = on_pin(&[]);
    script.push(Write(IMR, 0));
    script.extend(CS_OUT);
    script.extend(RESET);
    let blocks = Blocks::on(&script);
    let gpio = Rp1Gpio::new(blocks.at(GPIO));
    let mut dw_ssi = DwSsi::new(blocks.at(0), gpio, Ticker::default(), config(PIN_8));
    dw_ssi.reclaim();
    blocks.end();
}
