//! The driver against registers that require an order of accesses.

mod interrupt;
mod short;

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::{Bcm2835Gpio, NoGpio};
use crate::controller::testing::{self, Blocks, NoPins, Shared};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Barrier, Read, Write};
use crate::spi::{MODE_3, Mode};

type Ticker = testing::Ticker<19_200_000>;

/// A timer on the script: a wait is a write of its ticks. It is read when a driver is brought up,
/// and when the first device with delays is selected.
struct Waits<'f, 's>(Shared<'f, 's>, u32);

impl Timer for Waits<'_, '_> {
    fn frequency_hz(&self) -> u32 {
        19_200_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.1 += 1;
        assert!(self.1 <= 2, "nothing takes that long");
        0
    }
    fn wait_ticks(&mut self, ticks: u64) {
        if ticks > 0 {
            self.0.write(0, ticks as u32);
        }
    }
}

const GPIO: u32 = 0x1000;
const TIMER: u32 = 0x2000;

const CE0: CsLine = CsLine::Native { channel: 0, active_high: false };
const PIN_8: CsLine = CsLine::Gpio { bit: 8, active_high: false };
const FALLS: Access = Write(GPIO + 0x28, 1 << 8);
const RISES: Access = Write(GPIO + 0x1c, 1 << 8);
/// Pin 8 is high, then an output.
const CS_OUT: [Access; 3] = [RISES, Read(GPIO, 0), Write(GPIO, 1 << 24)];
const RESET: [Access; 2] = [Write(0x00, 0x1_0030), Write(0x0c, 0)];
/// What the first message of a device in MODE_0 at 3.6 MHz adds: CS, CLK, CS.
const CONFIGURED: [Access; 3] = [Write(0x00, 0x32), Write(0x08, 112), Write(0x00, 0x82)];
/// One clock of 280 ns.
const SETTLED: Access = Write(TIMER, 6);

// CS as it is read.
const EMPTY: u32 = 0x0004_0082;
const BYTE: u32 = 0x0006_0082;
const ENDED: u32 = 0x0007_0082;
const ENDED_EMPTY: u32 = 0x0005_0082;
/// The end of a transfer: DONE is written, the rest of CS stays.
const OVER: Access = Write(0x00, 0x1_0082);

fn config(line: CsLine) -> Bcm2835Config {
    Bcm2835Config {
        core_hz: 400_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Sleeping, CsLine::Absent],
        poll_limit_ns: ALWAYS_POLL,
    }
}

const SETTINGS: Settings = Settings::new(0, 3_600_000);

type Scripted<'f, 's> =
    Bcm2835<Shared<'f, 's>, Bcm2835Gpio<Shared<'f, 's>>, Waits<'f, 's>, NoInterrupt>;

/// Runs `drive` on a bus whose driver's accesses, including waits, must equal `script`.
fn hold(script: &[Access], config: Bcm2835Config, drive: impl FnOnce(&Bus<Scripted<'_, '_>>)) {
    let blocks = Blocks::on(script);
    let gpio = Bcm2835Gpio::new(blocks.at(GPIO));
    drive(&Bus::new(Bcm2835::new(blocks.at(0), gpio, Waits(blocks.at(TIMER), 0), config)));
    blocks.end();
}

/// The driver brought up with pin 8, and its first device configured.
fn brought_up() -> Vec<Access> {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.push(SETTLED);
    script
}

/// Each byte read while the next is on the wire; the last one half a clock before DONE.
const THREE_BYTES: [Access; 11] = [
    Write(0x04, 0x01),
    Write(0x04, 0x80),
    Write(0x04, 0x00),
    Read(0x00, EMPTY),
    Read(0x00, BYTE),
    Read(0x04, 0xff),
    Read(0x00, BYTE),
    Read(0x04, 0xfa),
    Read(0x00, BYTE),
    Read(0x04, 0x55),
    Read(0x00, ENDED_EMPTY),
];

#[test]
fn between_two_messages_of_three_bytes_nothing_but_the_pin_and_done_is_written() {
    let mut script = brought_up();
    for _ in 0..2 {
        script.extend([Barrier, FALLS, Barrier]);
        script.extend(THREE_BYTES);
        script.extend([Barrier, RISES, Barrier, OVER]);
    }
    hold(&script, config(PIN_8), |bus| {
        let device = bus.device(&SETTINGS).expect("opens");
        let effective = device.effective();
        assert_eq!((effective.speed_hz, effective.word_rest_clocks), (3_571_428, 1));
        let mut sample = device.prepare([0x01, 0x80, 0x00]).expect("prepares");
        assert_eq!(sample.run(), Ok(&[0xff, 0xfa, 0x55]));
        assert_eq!(sample.run(), Ok(&[0xff, 0xfa, 0x55]));
    });
}

#[test]
fn on_the_block_s_own_line_ta_is_chip_select() {
    let mut script = Vec::from(RESET);
    script.extend([Write(0x00, 0x30), Write(0x08, 112), SETTLED]);
    for _ in 0..2 {
        script.push(Write(0x00, 0x80));
        script.extend(THREE_BYTES);
        script.push(Write(0x00, 0x1_0000));
    }
    hold(&script, config(CE0), |bus| {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut sample = device.prepare([0x01, 0x80, 0x00]).expect("prepares");
        assert_eq!(sample.run(), Ok(&[0xff, 0xfa, 0x55]));
        assert_eq!(sample.run(), Ok(&[0xff, 0xfa, 0x55]));
    });
}

#[test]
fn a_line_that_is_active_high_has_its_polarity_all_the_time() {
    let ce1 = CsLine::Native { channel: 1, active_high: true };
    let script = [
        Write(0x00, 0x41_0030),
        Write(0x0c, 0),
        Write(0x00, 0x40_003d),
        Write(0x08, 112),
        SETTLED,
        Write(0x00, 0x40_008d),
        Write(0x04, 7),
        Read(0x00, ENDED),
        Read(0x04, 8),
        Write(0x00, 0x41_000d),
    ];
    hold(&script, config(ce1), |bus| {
        let mode = MODE_3 | Mode::CS_HIGH;
        let device = bus.device(&SETTINGS.with_mode(mode)).expect("opens");
        let mut byte = [7];
        device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
        assert_eq!(byte, [8]);
    });
}

#[test]
fn a_look_says_how_much_has_come() {
    let mut script = brought_up();
    script.push(FALLS);
    // First a FIFO's worth; each read makes room for more.
    script.extend(vec![Write(0x04, 0); 64]);
    script.push(Read(0x00, 0x000e_0082));
    script.extend(vec![Read(0x04, 1); 48]);
    script.extend(vec![Write(0x04, 0); 48]);
    script.push(Read(0x00, BYTE));
    script.extend([Read(0x04, 2), Write(0x04, 0)]);
    // Late: the block has stalled.
    script.push(Read(0x00, 0x001e_0082));
    script.extend(vec![Read(0x04, 3); 64]);
    // The block ran dry, so DONE is awaited and written before more is sent.
    script.extend([Read(0x00, EMPTY), Read(0x00, ENDED_EMPTY), OVER]);
    script.extend(vec![Write(0x04, 0); 64]);
    script.push(Read(0x00, ENDED));
    script.extend(vec![Read(0x04, 4); 64]);
    script.push(OVER);
    script.extend(vec![Write(0x04, 0); 23]);
    // DONE with the last bytes: no further read is needed.
    script.push(Read(0x00, ENDED));
    script.extend(vec![Read(0x04, 5); 23]);
    script.extend([RISES, OVER]);
    hold(&script, config(PIN_8), |bus| {
        let device = bus.device(&SETTINGS).expect("opens");
        let mut rx = [0; 200];
        device.sync(&mut [Transfer::read(&mut rx)]).expect("runs");
        let counts = [1, 2, 3, 4, 5].map(|value| rx.iter().filter(|&&byte| byte == value).count());
        assert_eq!(counts, [48, 1, 64, 64, 23]);
    });
}

#[test]
fn done_without_a_byte_is_not_believed() {
    let mut script = brought_up();
    script.extend([FALLS, Write(0x04, 9), Read(0x00, ENDED_EMPTY), Read(0x00, ENDED)]);
    script.extend([Read(0x04, 6), RISES, OVER]);
    hold(&script, config(PIN_8), |bus| {
        let device = bus.device(&SETTINGS).expect("opens");
        device.sync(&mut [Transfer::write(&[9])]).expect("runs");
    });
}

/// A byte, DONE with it.
const ONE_BYTE: [Access; 3] = [Write(0x04, 9), Read(0x00, ENDED), Read(0x04, 6)];

#[test]
fn another_device_s_registers_are_written_before_its_chip_is_selected() {
    let pin_25 = |high| Write(GPIO + if high { 0x1c } else { 0x28 }, 1 << 25);
    let mut script = Vec::from(CS_OUT);
    script.extend([pin_25(true), Read(GPIO + 8, 0), Write(GPIO + 8, 1 << 15)]);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.push(SETTLED);
    script.push(FALLS);
    script.extend(ONE_BYTE);
    script.extend([RISES, OVER]);
    // MODE_3 at 1 MHz: SCK moves, and settles for a clock.
    script.extend([Write(0x00, 0x3e), Write(0x08, 400), Write(0x00, 0x8e), Write(TIMER, 20)]);
    script.push(pin_25(false));
    script.extend(ONE_BYTE);
    script.extend([pin_25(true), Write(0x00, 0x1_008e)]);
    // MODE_2 at 3.6 MHz: it stays high.
    script.extend([Write(0x00, 0x3a), Write(0x08, 112), Write(0x00, 0x8a), FALLS]);
    script.extend(ONE_BYTE);
    script.extend([RISES, Write(0x00, 0x1_008a)]);
    let mut config = config(PIN_8);
    config.chip_selects[1] = CsLine::Gpio { bit: 25, active_high: false };
    hold(&script, config, |bus| {
        let second = Settings::new(1, 1_000_000).with_mode(MODE_3);
        for settings in [SETTINGS, second, SETTINGS.with_mode(Mode::CPOL)] {
            let device = bus.device(&settings).expect("opens");
            device.sync(&mut [Transfer::write(&[9])]).expect("runs");
        }
    });
}

#[test]
fn a_transfer_s_own_speed_is_set_while_ta_is_clear_and_set_back() {
    let mut script = brought_up();
    script.push(FALLS);
    script.extend(ONE_BYTE);
    script.extend([Write(0x00, 0x02), Write(0x08, 40), Write(0x00, 0x82), OVER]);
    script.extend(ONE_BYTE);
    script.extend([Write(0x00, 0x02), Write(0x08, 112), Write(0x00, 0x82), OVER]);
    script.extend(ONE_BYTE);
    script.extend([RISES, OVER]);
    hold(&script, config(PIN_8), |bus| {
        let device = bus.device(&SETTINGS).expect("opens");
        let fast = Transfer::write(&[9]).with_speed_hz(10_000_000);
        let mut message = [Transfer::write(&[9]), fast, Transfer::write(&[9])];
        device.sync(&mut message).expect("runs");
    });
}

#[test]
fn cs_drops_between_transfers_and_every_wait_is_the_timer_s() {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    // Bring-up may have moved the line, so cs_inactive is waited.
    script.push(Write(TIMER, 6));
    script.extend(CONFIGURED);
    script.push(SETTLED);
    // 100 ns are 2 ticks of 52 ns, 270 ns are 6, and 1 us are 20 of which 6 are waited already.
    let select = [FALLS, Write(TIMER, 2)];
    let deselect = [Write(TIMER, 1), RISES, OVER, Write(TIMER, 6)];
    script.extend(select);
    script.extend(ONE_BYTE);
    script.extend(deselect);
    script.push(Write(TIMER, 14));
    script.extend(select);
    script.extend(ONE_BYTE);
    script.extend([Write(TIMER, 4), OVER]);
    script.extend(ONE_BYTE);
    script.extend(deselect);
    hold(&script, config(PIN_8), |bus| {
        let settings =
            Settings { cs_setup_ns: 100, cs_hold_ns: 50, cs_inactive_ns: 270, ..SETTINGS };
        let device = bus.device(&settings).expect("opens");
        let effective = device.effective();
        assert_eq!((effective.cs_setup_ns, effective.cs_hold_ns), (105, 53));
        assert_eq!((effective.cs_inactive_ns, effective.quantum_ns), (313, 53));
        let first = Transfer::write(&[9]).with_cs_change_delay_ns(1_000);
        let second = Transfer::write(&[9, 9]).with_word_delay_ns(200);
        device.sync(&mut [first, second]).expect("runs");
    });
}

#[test]
fn without_chip_select_only_the_block_is_driven() {
    let mut script = brought_up();
    for _ in 0..2 {
        script.extend(ONE_BYTE);
        script.push(OVER);
    }
    hold(&script, config(PIN_8), |bus| {
        let device = bus.device(&SETTINGS.with_mode(Mode::NO_CS)).expect("opens");
        device.sync(&mut [Transfer::write(&[9])]).expect("runs");
        device.sync(&mut [Transfer::write(&[9])]).expect("runs");
    });
}

/// A block that loops back in no time.
#[derive(Default)]
struct Looped {
    rx: VecDeque<u32>,
    cs: u32,
    cdiv: u32,
    /// Whether bytes are never received.
    wedged: bool,
    clears: u32,
    overruns: u32,
    /// Bytes that were written while TA was clear.
    astray: u32,
}

impl Registers for Looped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x00 => {
                let done = if self.cs & 0x80 != 0 && !self.wedged { 0x1_0000 } else { 0 };
                self.cs | done | if self.rx.is_empty() { 0 } else { 0x2_0000 }
            }
            0x04 => self.rx.pop_front().unwrap_or(0xdead_beef),
            _ => 0,
        }
    }
    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            0x00 => {
                self.cs = value & 0xe0_06cf;
                if value & 0x30 == 0x30 {
                    self.rx.clear();
                    self.clears += 1;
                }
            }
            0x04 if self.cs & 0x80 == 0 => self.astray += 1,
            0x04 if self.wedged => {}
            0x04 if self.rx.len() == 64 => self.overruns += 1,
            0x04 => self.rx.push_back(value & 0xff),
            0x08 => self.cdiv = value,
            _ => {}
        }
    }
}

fn looped(line: CsLine) -> Bus<Bcm2835<Looped, NoGpio, Ticker>> {
    Bus::new(Bcm2835::new(Looped::default(), NoGpio, Ticker::default(), config(line)))
}

#[test]
fn every_length_loops_back_within_the_fifos() {
    let bus = looped(CE0);
    let device = bus.device(&SETTINGS).expect("opens");
    let lengths: &[usize] =
        if cfg!(miri) { &[0, 1, 65] } else { &[0, 1, 2, 3, 47, 48, 49, 63, 64, 65, 128, 1_000] };
    for &len in lengths {
        testing::loop_back(&device, len, SETTINGS);
    }
    let block = bus.into_inner().release().0;
    assert_eq!((block.overruns, block.astray, block.cdiv), (0, 0, 112));
}

/// The shorter path is for chips on a GPIO, once the block is configured.
#[test]
fn loads_of_the_fifo_and_several_of_them_loop_back_within_it() {
    let pin = CsLine::Gpio { bit: 3, active_high: false };
    let bus = Bus::new(Bcm2835::new(Looped::default(), NoPins, Ticker::default(), config(pin)));
    let device = bus.device(&SETTINGS).expect("opens");
    for len in [1, 4, 5, 16, 17, 48, 49, 63, 64, 65] {
        testing::loop_back(&device, len, SETTINGS);
        testing::loop_back_several(&device, [len, 4, 5]);
        testing::loop_back_several(&device, [2, len, len]);
    }
    let block = bus.into_inner().release().0;
    assert_eq!((block.overruns, block.astray), (0, 0));
}

#[test]
fn a_wedged_block_times_out_is_deselected_and_reset() {
    for len in [3, 64, 512] {
        let wedged = Looped { wedged: true, ..Looped::default() };
        let bus = Bus::new(Bcm2835::new(wedged, NoGpio, Ticker::default(), config(CE0)));
        let device = bus.device(&SETTINGS).expect("opens");
        let mut rx = vec![0; len];
        let error = device
            .sync(&mut [Transfer::write(&[]).with_cs_change(), Transfer::read(&mut rx)])
            .expect_err("never ends");
        // Twice a FIFO's worth and a millisecond.
        let wire_ns = 64 * 9 * 280;
        let timeout_us = 1_000 + (2_u32 * wire_ns).div_ceil(1_000);
        assert_eq!(error.error, Error::Timeout { timeout_us });
        assert_eq!((error.transfer_index, error.actual_length), (1, 0));
        let block = bus.into_inner().release().0;
        // At start, for the device, after the error, at the end.
        assert_eq!((block.clears, block.cs), (4, 0));
    }
}

/// A timer on which years pass between two reads.
struct Years(u64);

impl Timer for Years {
    fn frequency_hz(&self) -> u32 {
        19_200_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.0 += 1 << 40;
        self.0
    }
}

#[test]
fn after_a_timeout_cs_rises_first_and_the_next_message_configures_anew() {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.extend([FALLS, Write(0x04, 9)]);
    script.extend(vec![Read(0x00, EMPTY); 65]);
    script.push(RISES);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.push(FALLS);
    script.extend(ONE_BYTE);
    script.extend([RISES, OVER]);
    let blocks = Blocks::on(&script);
    let gpio = Bcm2835Gpio::new(blocks.at(GPIO));
    let bus = Bus::new(Bcm2835::new(blocks.at(0), gpio, Years(0), config(PIN_8)));
    let device = bus.device(&SETTINGS).expect("opens");
    let error = device.sync(&mut [Transfer::write(&[9])]).expect_err("nothing comes").error;
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    device.sync(&mut [Transfer::write(&[9])]).expect("runs");
    blocks.end();
}

#[test]
fn whoever_had_the_block_is_silenced_deselected_and_cleared() {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    // TA, MODE_3, INTR and INTD, and what a reclaim must not write back: DMAEN, CLEAR, status.
    script.extend([Read(0x00, 0x001f_17be), Write(0x00, 0x8e)]);
    script.extend([RISES, Read(GPIO, 1 << 24)]);
    script.extend(RESET);
    let blocks = Blocks::on(&script);
    let gpio = Bcm2835Gpio::new(blocks.at(GPIO));
    Bcm2835::new(blocks.at(0), gpio, Ticker::default(), config(PIN_8)).reclaim();
    blocks.end();
}

#[test]
fn what_the_block_cannot_do_is_refused_at_opening() {
    let bus = looped(CE0);
    let refused = |settings: Settings| bus.device(&settings).expect_err("is refused");
    let good = SETTINGS;
    assert_eq!(refused(good.with_mode(Mode::LSB_FIRST)), Error::LsbFirst);
    assert_eq!(refused(good.with_mode(Mode::LOOP)), Error::NoLoopback);
    assert_eq!(refused(good.with_mode(Mode::CS_HIGH)), Error::CsPolarity { active_high: false });
    for bits in [0, 7, 9, 16, 32] {
        assert_eq!(refused(good.with_bits_per_word(bits)), Error::BitsPerWord { bits });
    }
    assert_eq!(refused(Settings::new(0, 0)), Error::SpeedZero);
    let too_low = Error::SpeedTooLow { asked_hz: 6_103, min_hz: 6_104 };
    assert_eq!(refused(Settings::new(0, 6_103)), too_low);
    assert_eq!(refused(Settings::new(1, 1_000_000)), Error::NoSuchChipSelect { chip_select: 1 });
    assert_eq!(refused(Settings::new(2, 1_000_000)), Error::CsCanSleep);
    assert_eq!(refused(Settings::new(9, 1_000_000)), Error::NoSuchChipSelect { chip_select: 9 });
}

#[test]
fn what_a_transfer_cannot_do_is_refused_before_anything_is_clocked() {
    let bus = looped(CE0);
    let device = bus.device(&SETTINGS).expect("opens");
    let refused = |transfer| device.sync(&mut [transfer]).expect_err("is refused").error;
    let wide = Transfer::write(&[1, 2]).with_bits_per_word(16);
    assert_eq!(refused(wide), Error::BitsPerWord { bits: 16 });
    let slow = Transfer::write(&[1]).with_speed_hz(1_000_000);
    assert_eq!(refused(slow), Error::NativeCsSpeed { asked_hz: 1_000_000 });
    let too_slow = Transfer::write(&[1]).with_speed_hz(1);
    assert_eq!(refused(too_slow), Error::SpeedTooLow { asked_hz: 1, min_hz: 6_104 });
    let same = Transfer::write(&[1]).with_speed_hz(3_580_000);
    device.sync(&mut [same]).expect("the same divider needs nothing written");
}

#[test]
#[should_panic(expected = "CE0 and CE1")]
fn a_third_line_of_the_block_is_a_mistake() {
    looped(CsLine::Native { channel: 2, active_high: false });
}

#[test]
fn the_clock_is_never_faster_than_asked_and_the_divider_even() {
    let config = config(CE0);
    for (asked_hz, cdiv, speed_hz) in [
        (u32::MAX, 2, 200_000_000),
        (200_000_000, 2, 200_000_000),
        (199_999_999, 4, 100_000_000),
        (133_333_334, 4, 100_000_000),
        (20_000_000, 20, 20_000_000),
        (3_600_000, 112, 3_571_428),
        (1_000_000, 400, 1_000_000),
        (6_105, 65_522, 6_104),
        (6_104, 65_532, 6_103),
        (6_103, 0, 0),
    ] {
        match config.configure(&Settings::new(0, asked_hz), 19_200_000) {
            Ok((program, effective)) => {
                assert_eq!((program.plan.control, effective.speed_hz), (cdiv, speed_hz));
            }
            Err(_) => assert_eq!(speed_hz, 0, "{asked_hz} Hz is in range"),
        }
    }
    // 65,536 exactly: CDIV 0.
    let config = Bcm2835Config { core_hz: 65_536_000, ..config };
    let (program, effective) = config.configure(&Settings::new(0, 1_000), 8).expect("in range");
    assert_eq!((program.plan.control, effective.speed_hz), (0, 1_000));
    assert_eq!(config.limits(8).min_speed_hz, 1_000);
}
