//! The driver against registers that hold it to an order of accesses.

mod short;

use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::NoGpio;
use crate::controller::testing::{self, Bell, Blocks, NoPins};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Read, Write};
use crate::spi::{MODE_3, Mode};

type Ticker = testing::Ticker<1_000_000>;

const BELL: u32 = 0x1000;
const NATIVE_0: CsLine = CsLine::Native { channel: 0, active_high: false };
const SETTINGS: Settings = Settings::new(0, 20_000_000);
const NONE: u32 = 0x8000_0000;

fn config(poll_limit_ns: u32) -> SiFiveConfig {
    SiFiveConfig {
        reference_hz: 500_000_000,
        chip_selects: [
            NATIVE_0,
            CsLine::Native { channel: 1, active_high: true },
            CsLine::Sleeping,
            CsLine::Absent,
        ],
        poll_limit_ns,
    }
}

/// The manual's offsets, not the driver's: silent, OFF, no flash interface, of four lines line 1 active
/// high, the delays of a reset, one byte that was left, and AUTO.
const RESET: [Access; 11] = [
    Write(0x70, 0),
    Write(0x18, 3),
    Write(0x60, 0),
    Read(0x14, 0b1111),
    Write(0x14, 0b1101),
    Write(0x28, 0x0001_0001),
    Write(0x2c, 1),
    Read(0x00, 3),
    Read(0x4c, 0x55),
    Read(0x4c, NONE),
    Write(0x18, 0),
];
/// 20 MHz of 500 MHz is a divisor of 26: SCKDIV 12.
const CONFIGURED: [Access; 5] =
    [Write(0x00, 12), Write(0x04, 0), Write(0x40, 0x0008_0000), Write(0x10, 0), Write(0x18, 2)];

#[track_caller]
fn hold(
    script: &[Access],
    poll_limit_ns: u32,
    run: impl FnOnce(&Bus<SiFive<testing::Shared<'_, '_>, NoGpio, Ticker, Bell<'_, '_>>>),
) {
    let blocks = Blocks::on(script);
    let sifive = SiFive::new(blocks.at(0), NoGpio, Ticker::default(), config(poll_limit_ns));
    run(&Bus::new(sifive.with_interrupt(Bell(blocks.at(BELL)))));
    blocks.end();
}

#[test]
fn a_read_of_rxdata_asks_and_takes_and_hold_lasts_for_the_message() {
    let mut script = Vec::from(RESET);
    script.extend(CONFIGURED);
    script.extend([Write(0x48, 0x9f), Read(0x4c, NONE), Read(0x4c, 0xff)]);
    script.extend([Write(0x48, 0), Write(0x48, 0), Read(0x4c, 0x9d), Read(0x4c, 0x70)]);
    script.push(Write(0x18, 0));
    hold(&script, ALWAYS_POLL, |bus| {
        let mut id = [0; 2];
        let device = bus.device(&SETTINGS).expect("opens");
        device.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)]).expect("runs");
        assert_eq!(id, [0x9d, 0x70]);
    });
}

#[test]
fn no_more_than_eight_bytes_are_in_flight() {
    let mut script = Vec::from(RESET);
    script.extend(CONFIGURED);
    script.extend((0..8).map(|byte| Write(0x48, byte)));
    script.extend([Read(0x4c, 0), Write(0x48, 8), Read(0x4c, NONE)]);
    script.extend((1..9).map(|byte| Read(0x4c, byte)));
    script.push(Write(0x18, 0));
    hold(&script, ALWAYS_POLL, |bus| {
        let mut bytes = [0, 1, 2, 3, 4, 5, 6, 7, 8];
        let device = bus.device(&SETTINGS).expect("opens");
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    });
}

#[test]
fn settings_that_the_block_cannot_do_are_refused() {
    let sifive = SiFive::new(Empty, NoPins, Ticker::default(), config(ALWAYS_POLL));
    let refused = |settings: Settings| sifive.configure(&settings).expect_err("refused");
    assert_eq!(refused(SETTINGS.with_mode(Mode::LOOP)), Error::NoLoopback);
    assert_eq!(refused(Settings { speed_hz: 0, ..SETTINGS }), Error::SpeedZero);
    let slow = Error::SpeedTooLow { asked_hz: 61_035, min_hz: 61_036 };
    assert_eq!(refused(Settings { speed_hz: 61_035, ..SETTINGS }), slow);
    assert_eq!(refused(SETTINGS.with_bits_per_word(16)), Error::BitsPerWord { bits: 16 });
    let setup = Error::NativeCsDelay { asked_ns: 1, max_ns: 0 };
    assert_eq!(refused(Settings { cs_setup_ns: 1, ..SETTINGS }), setup);
    let (_, effective) = sifive.configure(&SETTINGS.with_mode(MODE_3)).expect("opens");
    assert_eq!(effective.speed_hz, 19_230_769);
}

#[test]
fn a_speed_of_a_transfer_is_refused_while_the_block_holds_its_line() {
    let sifive = SiFive::new(Empty, NoPins, Ticker::default(), config(ALWAYS_POLL));
    let (program, _) = sifive.configure(&SETTINGS).expect("opens");
    let plan = |speed_hz| {
        let mut message = [Transfer { speed_hz, ..Transfer::write(&[0]) }];
        sifive.plan(&program, &mut message).map_err(|refused| refused.error)
    };
    // The same divisor is no change: 500 MHz by 26 is 19.23 MHz.
    assert_eq!(plan(19_500_000), Ok(()));
    assert_eq!(plan(10_000_000), Err(Error::NativeCsSpeed { asked_hz: 10_000_000 }));
}

#[test]
fn a_gpio_selects_and_the_clock_changes_between_transfers() {
    let mut lines = config(ALWAYS_POLL);
    lines.chip_selects[1] = CsLine::Gpio { bit: 4, active_high: false };
    let mut script = Vec::from(RESET);
    // The table has no line that is active high now.
    script[4] = Write(0x14, 0b1111);
    // The clock while CSMODE is AUTO. Then no line of the block moves.
    script.extend([Write(0x00, 12), Write(0x04, 0), Write(0x40, 0x0008_0000), Write(0x18, 3)]);
    script.extend([Write(0x48, 0x9f), Read(0x4c, 0xff)]);
    // 10 MHz is a divisor of 50. The block takes it in AUTO.
    script.extend([Write(0x18, 0), Write(0x00, 24), Write(0x18, 3)]);
    script.extend([Write(0x48, 0), Read(0x4c, 0x9d)]);
    // A chip on the block's own line: the clock it had, and the line for the message.
    script.extend([Write(0x18, 0), Write(0x00, 12), Write(0x10, 0), Write(0x18, 2)]);
    script.extend([Write(0x48, 5), Read(0x4c, 6), Write(0x18, 0)]);
    let blocks = Blocks::on(&script);
    let sifive = SiFive::new(blocks.at(0), NoPins, Ticker::default(), lines);
    let bus = Bus::new(sifive);
    let device = bus.device(&Settings::new(1, 20_000_000)).expect("opens");
    let mut id = [0];
    let slow = Transfer { speed_hz: 10_000_000, ..Transfer::read(&mut id) };
    device.sync(&mut [Transfer::write(&[0x9f]), slow]).expect("runs");
    assert_eq!(id, [0x9d]);
    let native = bus.device(&SETTINGS).expect("opens");
    native.sync(&mut [Transfer::write(&[5])]).expect("runs");
    blocks.end();
}

#[test]
fn the_line_has_risen_when_a_message_returns() {
    let mut lines = config(ALWAYS_POLL);
    lines.reference_hz = 8_000_000;
    let mut script = Vec::from(RESET);
    // 1 kHz of 8 MHz is a divisor of 8000: SCKDIV 3999, and a clock lasts 1000 us.
    script.extend([Write(0x00, 3999), Write(0x04, 0), Write(0x40, 0x0008_0000)]);
    script.extend([Write(0x10, 0), Write(0x18, 2)]);
    script.extend([Write(0x48, 1), Read(0x4c, 2), Write(0x18, 0)]);
    let blocks = Blocks::on(&script);
    let mut sifive = SiFive::new(blocks.at(0), NoPins, Ticker::default(), lines);
    let (program, _) = sifive.configure(&Settings::new(0, 1_000)).expect("opens");
    let mut byte = [1];
    let mut message = [Transfer::in_place(&mut byte)];
    sifive.plan(&program, &mut message).expect("plans");
    let before = sifive.timer.0;
    sifive.run(&program, &mut message).expect("runs");
    // 2 clocks after the byte and 4 after AUTO.
    assert!(sifive.timer.0 - before >= 6_000);
    blocks.end();
}

/// A block that never has a byte.
struct Empty;

impl Registers for Empty {
    fn read(&mut self, _offset: u32) -> u32 {
        NONE
    }
    fn write(&mut self, _offset: u32, _value: u32) {}
    fn barrier(&mut self) {}
}

#[test]
fn half_a_fifo_is_awaited_asleep() {
    let mut script = Vec::from(RESET);
    script.extend(CONFIGURED);
    script.extend([Write(0x48, 7), Write(0x48, 8), Write(0x54, 1), Write(BELL, 1)]);
    script.push(Write(0x70, 2));
    script.extend([Write(BELL + 4, SLEEP_US), Write(0x70, 0), Read(0x4c, 1), Read(0x4c, 2)]);
    script.push(Write(0x18, 0));
    // Twice the wire time of 8 frames of 10 clocks, 8.3 us, and a millisecond, in whole microseconds, and one more.
    hold(&script, 0, |bus| {
        let mut bytes = [7, 8];
        let device = bus.device(&SETTINGS).expect("opens");
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [1, 2]);
    });
}

const SLEEP_US: u32 = 1_010;
