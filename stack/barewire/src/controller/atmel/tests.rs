//! The driver against registers that require an order of accesses, and against a block that loses
//! words where the real one would.

mod interrupt;
mod piped;
mod short;

use std::vec;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::{AtmelPio, NoGpio};
use crate::controller::testing::{self, Blocks, NoPins, Shared};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Read, Write};
use crate::spi::{MODE_1, MODE_2, MODE_3, Mode};

type Ticker = testing::Ticker<TIMER_HZ>;

const PIO: u32 = 0x1000;
const NATIVE_0: CsLine = CsLine::Native { channel: 0, active_high: false };
const NATIVE_2: CsLine = CsLine::Native { channel: 2, active_high: false };
const PIN_13: CsLine = CsLine::Gpio { bit: 13, active_high: false };
const PIN_14: CsLine = CsLine::Gpio { bit: 14, active_high: false };
/// 44 MHz: a third of the peripheral clock.
const FAST: Settings = Settings::new(0, 44_000_000);
const TIMER_HZ: u32 = 8_000_000;

fn config(first: CsLine) -> AtmelConfig {
    AtmelConfig {
        reference_hz: 132_000_000,
        chip_selects: [first, CsLine::Absent, CsLine::Sleeping, CsLine::Absent],
        pipe: Pipe::WaitDataRead,
        peripheral_select: PeripheralSelect::Fixed,
        poll_limit_ns: ALWAYS_POLL,
    }
}

/// Reset twice, interrupts off, MSTR with MODFDIS and WDRBT, enabled.
const RESET: [Access; 5] = [
    Write(0x00, 0x80),
    Write(0x00, 0x80),
    Write(0x18, 0x209),
    Write(0x04, 0x31),
    Write(0x00, 0x01),
];
const FALL: Access = Write(PIO + 0x34, 0x2000);
const RISE: Access = Write(PIO + 0x30, 0x2000);
const PIN_OUT: [Access; 3] = [RISE, Write(PIO + 0x10, 0x2000), Write(PIO, 0x2000)];
/// SR with TDRE; with RDRF while the shift register works; with all three bits of the end.
const FREE: Access = Read(0x10, 0x1_0002);
const FULL: Access = Read(0x10, 0x1_0003);
const OVER: Access = Read(0x10, 0x1_0203);
const NOTHING_YET: Access = Read(0x10, 0x1_0000);

/// The driver brought up with a pin of PIO.
fn brought_up() -> Vec<Access> {
    let mut script = Vec::from(PIN_OUT);
    script.extend(RESET);
    script
}

/// Runs `drive` on a driver with `config` whose accesses must equal `script`.
fn hold<'s>(
    script: &'s [Access],
    config: AtmelConfig,
    drive: impl FnOnce(&Bus<Atmel<Shared<'_, 's>, AtmelPio<Shared<'_, 's>>, Ticker>>),
) {
    let blocks = Blocks::on(script);
    let gpio = AtmelPio::new(blocks.at(PIO));
    let bus = Bus::new(Atmel::new(blocks.at(0), gpio, Ticker::default(), config));
    drive(&bus);
    blocks.end();
}

#[test]
fn two_bytes_on_a_pin_cost_five_accesses() {
    let exchange = [FALL, Write(0x0c, 0x9f00), NOTHING_YET, OVER, Read(0x08, 0xe_1234), RISE];
    let mut script = brought_up();
    // The first message selects the line and sets the divider, for 16 bits.
    script.push(Write(0x04, 0x000e_0031));
    script.push(FALL);
    script.push(Write(0x30, 0x038a));
    script.extend(&exchange[1..]);
    script.extend(exchange);
    hold(&script, config(PIN_13), |bus| {
        let device = bus.device(&FAST).expect("opens");
        let mut register = device.prepare([0x9f, 0]).expect("prepares");
        assert_eq!(register.run(), Ok(&[0x12, 0x34]));
        assert_eq!(register.run(), Ok(&[0x12, 0x34]));
    });
}

#[test]
fn a_word_of_a_long_transfer_costs_three_accesses() {
    let mut script = brought_up();
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x038a)]);
    // Two words in a row: TDRE between them.
    script.extend([Write(0x0c, 0x0102), NOTHING_YET, FREE, Write(0x0c, 0x0304)]);
    // From here on only RDRF.
    script.extend([FULL, Read(0x08, 0x1112), Write(0x0c, 0x0506)]);
    script.extend([FULL, Read(0x08, 0x1314), Write(0x0c, 0x0708)]);
    script.extend([FULL, Read(0x08, 0x1516)]);
    script.extend([NOTHING_YET, FULL, Read(0x08, 0x1718), NOTHING_YET, OVER, RISE]);
    hold(&script, config(PIN_13), |bus| {
        let mut rx = [0; 8];
        let tx = [1, 2, 3, 4, 5, 6, 7, 8];
        let device = bus.device(&FAST).expect("opens");
        device.sync(&mut [Transfer::exchange(&tx, &mut rx)]).expect("runs");
        assert_eq!(rx, [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    });
}

#[test]
fn a_slow_word_leaves_its_register_half_a_clock_after_it_came() {
    let mut script = brought_up();
    // 8.8 MHz: the fifteenth of the peripheral clock.
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x0f8a)]);
    script.extend([FREE, Write(0x0c, 0x0102), FREE, Write(0x0c, 0x0304)]);
    // RDRF, the word read, TDR still taken.
    let taken = [Read(0x10, 0x1_0001), Read(0x08, 0x1112), NOTHING_YET, FREE];
    script.extend(taken);
    script.push(Write(0x0c, 0x0506));
    // Free at once.
    script.extend([FULL, Read(0x08, 0x1314), OVER, Read(0x08, 0x1516), RISE]);
    hold(&script, config(PIN_13), |bus| {
        let mut bytes = [1, 2, 3, 4, 5, 6];
        let device = bus.device(&Settings::new(0, 9_000_000)).expect("opens");
        device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("runs");
        assert_eq!(bytes, [0x11, 0x12, 0x13, 0x14, 0x15, 0x16]);
    });
}

#[test]
fn an_odd_command_and_an_even_answer_change_the_word_between() {
    let mut script = brought_up();
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x030a)]);
    script.extend([Write(0x0c, 0x9f), OVER, Read(0x08, 0xff)]);
    script.extend([Write(0x30, 0x038a), Write(0x0c, 0), OVER, Read(0x08, 0x0102), RISE]);
    hold(&script, config(PIN_13), |bus| {
        let mut id = [0; 2];
        let device = bus.device(&FAST).expect("opens");
        device.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)]).expect("runs");
        assert_eq!(id, [1, 2]);
    });
}

#[test]
fn the_blocks_own_line_rises_by_lastxfer_and_only_if_it_fell() {
    let mut script = Vec::from(RESET);
    script.extend([Write(0x04, 0x000b_0031), Write(0x38, 0x030a)]);
    let byte = [Write(0x0c, 5), OVER, Read(0x08, 0x66), Write(0x00, 0x0100_0000)];
    script.extend(byte);
    // The message with an empty transfer only: nothing.
    script.extend(byte);
    script.extend(byte);
    hold(&script, config(NATIVE_2), |bus| {
        let device = bus.device(&FAST).expect("opens");
        device.sync(&mut [Transfer::write(&[5])]).expect("runs");
        device.sync(&mut [Transfer::write(&[])]).expect("runs");
        device
            .sync(&mut [Transfer::write(&[5]).with_cs_change(), Transfer::write(&[5])])
            .expect("runs");
    });
}

/// Two chips on pins 13 and 14 in turn, after each has had a message.
fn alternate(peripheral_select: PeripheralSelect, script: &[Access]) {
    let chip_selects = [PIN_13, PIN_14, CsLine::Absent, CsLine::Absent];
    let config = AtmelConfig { chip_selects, peripheral_select, ..config(PIN_13) };
    hold(script, config, |bus| {
        let first = bus.device(&FAST).expect("opens");
        let second = bus.device(&Settings::new(1, 22_000_000)).expect("opens");
        for device in [&first, &second, &first, &second] {
            device.sync(&mut [Transfer::write(&[5])]).expect("runs");
        }
    });
}

const FALL_14: Access = Write(PIO + 0x34, 0x4000);
const RISE_14: Access = Write(PIO + 0x30, 0x4000);

fn two_pins() -> Vec<Access> {
    let mut script = Vec::from(PIN_OUT);
    script.extend([RISE_14, Write(PIO + 0x10, 0x4000), Write(PIO, 0x4000)]);
    script
}

#[test]
fn a_change_of_device_costs_a_write_where_mr_names_the_line() {
    let mut script = two_pins();
    script.extend(RESET);
    let word = [Write(0x0c, 5), OVER, Read(0x08, 0)];
    let (first, second) = (Write(0x04, 0x000e_0031), Write(0x04, 0x000d_0031));
    for new in [true, false] {
        script.extend([first, FALL]);
        script.extend(new.then_some(Write(0x30, 0x030a)));
        script.extend(word);
        script.extend([RISE, second, FALL_14]);
        script.extend(new.then_some(Write(0x34, 0x060a)));
        script.extend(word);
        script.push(RISE_14);
    }
    alternate(PeripheralSelect::Fixed, &script);
}

#[test]
fn a_change_of_device_costs_nothing_where_the_word_names_the_line() {
    let mut script = two_pins();
    script.extend(RESET.map(|access| match access {
        Write(0x04, mr) => Write(0x04, mr | 2),
        other => other,
    }));
    for new in [true, false] {
        script.push(FALL);
        script.extend(new.then_some(Write(0x30, 0x030a)));
        script.extend([Write(0x0c, 0x000e_0005), OVER, Read(0x08, 0), RISE, FALL_14]);
        script.extend(new.then_some(Write(0x34, 0x060a)));
        script.extend([Write(0x0c, 0x000d_0005), OVER, Read(0x08, 0), RISE_14]);
    }
    alternate(PeripheralSelect::Variable, &script);
}

#[test]
fn the_polarity_stands_in_every_csr_before_the_chip_is_selected() {
    let mut script = brought_up();
    script.push(Write(0x04, 0x000e_0031));
    // CPOL, and CPHA's inverse clear.
    script.extend([Write(0x30, 0x0309), Write(0x34, 1), Write(0x38, 1), Write(0x3c, 1)]);
    script.extend([FREE, FALL, Write(0x0c, 5), OVER, Read(0x08, 0), RISE]);
    script.extend([Write(0x30, 0x030a), Write(0x34, 0), Write(0x38, 0), Write(0x3c, 0)]);
    script.extend([FREE, FALL, Write(0x0c, 5), OVER, Read(0x08, 0), RISE]);
    hold(&script, config(PIN_13), |bus| {
        for mode in [MODE_3, crate::spi::MODE_0] {
            let device = bus.device(&FAST.with_mode(mode)).expect("opens");
            device.sync(&mut [Transfer::write(&[5])]).expect("runs");
        }
    });
}

#[test]
fn a_line_of_another_dlybcs_waits_out_the_one_before() {
    // 1 us of the first device is 132 periods; the second asks for none.
    let mut script = Vec::from(RESET);
    let message = [Write(0x0c, 5), OVER, Read(0x08, 0), Write(0x00, 0x0100_0000)];
    script.extend([Write(0x04, 0x840e_0031), Write(0x30, 0x030a)]);
    script.extend(message);
    script.extend(message);
    script.push(Write(0x04, 0x000b_0031));
    script.push(Write(0x38, 0x030a));
    script.extend(message);
    let blocks = Blocks::on(&script);
    let chip_selects = [NATIVE_0, NATIVE_2, CsLine::Absent, CsLine::Absent];
    let config = AtmelConfig { chip_selects, ..config(NATIVE_0) };
    let mut block = Atmel::new(blocks.at(0), NoGpio, Ticker::default(), config);
    let mut run = |settings| {
        let (program, _) = block.configure(&settings).expect("opens");
        let mut message = [Transfer::write(&[5])];
        block.plan(&program, &mut message).expect("a good message");
        block.run(&program, &mut message).expect("runs");
        block.timer.0
    };
    let first = Settings { cs_inactive_ns: 1_000, ..FAST };
    let ran = run(first);
    assert!(ran > 8, "8 ticks of 125 ns since the block was reset");
    assert_eq!(run(first), ran, "then the block waits, not we");
    assert!(run(Settings { chip_select: 1, ..FAST }) > ran + 8);
    blocks.end();
}

#[test]
fn what_never_comes_is_given_up_deselected_and_reset() {
    struct Strides(u64);
    impl Timer for Strides {
        fn frequency_hz(&self) -> u32 {
            TIMER_HZ
        }
        fn now_ticks(&mut self) -> u64 {
            self.0 += 5_000;
            self.0
        }
    }
    let mut script = brought_up();
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x030a), Write(0x0c, 5)]);
    // 64 polls before the timer is read, and two more until it is past a millisecond.
    script.extend(vec![NOTHING_YET; 66]);
    script.push(RISE);
    script.extend(RESET);
    // The next message configures everything again.
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x030a)]);
    script.extend([Write(0x0c, 5), OVER, Read(0x08, 7), RISE]);
    let blocks = Blocks::on(&script);
    let gpio = AtmelPio::new(blocks.at(PIO));
    let block = blocks.at(0);
    let bus = Bus::new(Atmel::new(block, gpio, Strides(0), config(PIN_13)));
    let device = bus.device(&FAST).expect("opens");
    let mut byte = [5];
    let error = device.sync(&mut [Transfer::in_place(&mut byte)]).expect_err("never comes");
    // Twice two words of 182 ns, plus 1 ms.
    assert_eq!(error, MessageError::refused(Error::Timeout { timeout_us: 1_001 }, 0));
    device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
    assert_eq!(byte, [7]);
    blocks.end();
}

#[test]
fn what_the_block_cannot_do_is_refused_at_opening() {
    let refused = |config: AtmelConfig, settings: Settings| {
        config.configure(&settings, TIMER_HZ).expect_err("is refused")
    };
    let pin = config(PIN_13);
    assert_eq!(refused(pin, FAST.with_mode(Mode::LSB_FIRST)), Error::LsbFirst);
    assert_eq!(
        refused(pin, FAST.with_mode(Mode::CS_HIGH)),
        Error::CsPolarity { active_high: false }
    );
    for bits in [9, 32] {
        assert_eq!(refused(pin, FAST.with_bits_per_word(bits)), Error::BitsPerWord { bits });
    }
    assert_eq!(refused(pin, Settings::new(0, 0)), Error::SpeedZero);
    let too_low = Error::SpeedTooLow { asked_hz: 517_647, min_hz: 517_648 };
    assert_eq!(refused(pin, Settings::new(0, 517_647)), too_low);
    for chip_select in [1, 9] {
        let settings = Settings::new(chip_select, 1_000_000);
        assert_eq!(refused(pin, settings), Error::NoSuchChipSelect { chip_select });
    }
    assert_eq!(refused(pin, Settings::new(2, 1_000_000)), Error::CsCanSleep);
    // The block has no fifth native line, and none that is active high.
    let fifth = config(CsLine::Native { channel: 4, active_high: false });
    assert_eq!(refused(fifth, FAST), Error::NoSuchChipSelect { chip_select: 0 });
    let high = config(CsLine::Native { channel: 0, active_high: true });
    let error = refused(high, FAST.with_mode(Mode::CS_HIGH));
    assert_eq!(error, Error::CsPolarity { active_high: false });
    let long = Settings { cs_setup_ns: 1_932, ..FAST };
    let error = Error::NativeCsDelay { asked_ns: 1_932, max_ns: 1_931 };
    assert_eq!(refused(config(NATIVE_0), long), error);
    let full = AtmelConfig {
        chip_selects: [0, 1, 2, 3].map(|channel| CsLine::Native { channel, active_high: false }),
        ..pin
    };
    assert_eq!(refused(full, FAST.with_mode(Mode::NO_CS)), Error::NoIdleChipSelect);
}

#[test]
fn a_transfer_of_its_own_is_refused_by_the_same_rules() {
    let block = Atmel::new(piped::Piped::default(), NoPins, Ticker::default(), config(PIN_13));
    let (program, _) = block.configure(&FAST).expect("opens");
    let bytes = [0; 4];
    let refused = |transfer: Transfer<'_>| {
        block.plan(&program, &mut [transfer]).expect_err("is refused").error
    };
    let transfer = || Transfer::write(&bytes);
    let too_low = Error::SpeedTooLow { asked_hz: 1, min_hz: 517_648 };
    assert_eq!(refused(transfer().with_speed_hz(1)), too_low);
    let too_wide = Error::BitsPerWord { bits: 32 };
    assert_eq!(refused(transfer().with_bits_per_word(32)), too_wide);
    let odd = Transfer::write(&bytes[..3]).with_bits_per_word(16);
    assert_eq!(refused(odd), Error::Length { len: 3, word_bytes: 2 });
}

#[test]
fn a_chip_on_a_pin_has_a_line_of_the_block_that_no_chip_is_on() {
    let chip_selects = [PIN_13, NATIVE_0, PIN_14, NATIVE_2];
    let config = AtmelConfig { chip_selects, ..config(PIN_13) };
    let channel = |chip_select, mode| {
        let settings = Settings::new(chip_select, 1_000_000).with_mode(mode);
        config.configure(&settings, TIMER_HZ).expect("opens").0.regs[P_CHANNEL]
    };
    let none = crate::spi::MODE_0;
    assert_eq!([0, 1, 2, 3].map(|chip_select| channel(chip_select, none)), [1, 0, 3, 2]);
    assert_eq!(channel(0, Mode::NO_CS), 1);
}

#[test]
fn the_clock_is_never_faster_than_asked_and_the_divider_never_larger_than_needed() {
    for (asked_hz, divisor) in [
        (517_648, 255),
        (1_000_000, 132),
        (23_000_000, 6),
        (26_400_000, 5),
        (43_999_999, 4),
        (44_000_000, 3),
        (66_000_000, 2),
        // Errata: no divisor of 1.
        (132_000_000, 2),
        (u32::MAX, 2),
    ] {
        let settings = Settings::new(0, asked_hz);
        let (program, effective) =
            config(PIN_13).configure(&settings, TIMER_HZ).expect("is in range");
        assert_eq!(program.plan.control >> 8 & 0xff, divisor, "{asked_hz}");
        assert_eq!(effective.speed_hz, 132_000_000 / divisor);
        assert!(effective.speed_hz <= asked_hz);
    }
    let limits = config(PIN_13).limits(TIMER_HZ);
    assert_eq!((limits.max_speed_hz, limits.min_speed_hz), (66_000_000, 517_648));
    assert_eq!(limits.bits_per_word_mask, 0x8080);
}

#[test]
fn the_phase_is_nchpas_inverse() {
    let csr = |mode| {
        let (program, _) =
            config(PIN_13).configure(&FAST.with_mode(mode), TIMER_HZ).expect("opens");
        program.plan.control & 3
    };
    assert_eq!([crate::spi::MODE_0, MODE_1, MODE_2, MODE_3].map(csr), [2, 0, 3, 1]);
    let (program, _) =
        config(PIN_13).configure(&FAST.with_mode(Mode::LOOP), TIMER_HZ).expect("opens");
    assert_eq!(program.regs[P_MR], 0x000e_00b1);
}

#[test]
fn delays_of_the_blocks_own_line_are_the_blocks_where_they_fit() {
    let asked = Settings {
        cs_setup_ns: 100,
        cs_hold_ns: 130,
        cs_inactive_ns: 50,
        word_delay_ns: 300,
        ..FAST
    };
    let (program, effective) = config(NATIVE_0).configure(&asked, TIMER_HZ).expect("opens");
    // DLYBCT 2 steps of 32 periods, DLYBS 14 periods, DLYBCS 7.
    assert_eq!(program.plan.control, 0x020e_030a);
    assert_eq!(program.regs[P_MR], 0x070e_0031);
    assert_eq!(
        (program.cs_setup_ticks, program.cs_hold_ticks, program.cs_inactive_ticks),
        (0, 2, 0)
    );
    assert_eq!(program.plan.word_delay_ticks, 0);
    assert_eq!((effective.cs_setup_ns, effective.cs_hold_ns), (106, 250));
    assert_eq!((effective.cs_inactive_ns, effective.word_delay_ns), (53, 484));
    // Without delays: half a clock, and the minimum of six periods.
    let (_, effective) = config(NATIVE_0).configure(&FAST, TIMER_HZ).expect("opens");
    assert_eq!((effective.cs_setup_ns, effective.cs_inactive_ns), (11, 45));
    // Too long for the block: the timer makes them.
    let long = Settings { cs_inactive_ns: 2_000, word_delay_ns: 62_000, ..FAST };
    let (program, effective) = config(NATIVE_0).configure(&long, TIMER_HZ).expect("opens");
    assert_eq!((program.regs[P_MR], program.plan.control), (0x000e_0031, 0x030a));
    assert_eq!((program.cs_inactive_ticks, program.plan.word_delay_ticks), (16, 496));
    assert_eq!((effective.cs_inactive_ns, effective.word_delay_ns), (2_000, 62_000));
}

#[test]
fn delays_on_a_pin_are_the_timers_but_between_words() {
    let asked = Settings {
        cs_setup_ns: 1,
        cs_hold_ns: 126,
        cs_inactive_ns: 1_000,
        word_delay_ns: 1,
        ..FAST
    };
    let (program, effective) = config(PIN_13).configure(&asked, TIMER_HZ).expect("opens");
    assert_eq!((program.plan.control, program.regs[P_MR]), (0x0100_030a, 0x000e_0031));
    assert_eq!(
        (program.cs_setup_ticks, program.cs_hold_ticks, program.cs_inactive_ticks),
        (1, 2, 8)
    );
    assert_eq!((effective.cs_setup_ns, effective.cs_hold_ns), (125, 250));
    assert_eq!((effective.cs_inactive_ns, effective.word_delay_ns), (1_000, 242));
    assert_eq!(effective.quantum_ns, 125);
}

#[test]
fn of_two_word_delays_the_longer_counts_whoever_makes_it() {
    let block = Atmel::new(piped::Piped::default(), NoPins, Ticker::default(), config(PIN_13));
    // The device's delay, the transfer's delay, steps of DLYBCT, ticks of the timer.
    for (device_ns, transfer_ns, steps, ticks) in [
        (0, 300, 2, 0),
        (300, 100, 2, 0),
        (100, 300, 2, 0),
        (300, 62_000, 0, 496),
        (62_000, 300, 0, 496),
        (62_000, 63_000, 0, 504),
    ] {
        let settings = Settings { word_delay_ns: device_ns, ..FAST };
        let (program, _) = block.configure(&settings).expect("opens");
        let mut message = [Transfer::write(&[1, 2]).with_word_delay_ns(transfer_ns)];
        block.plan(&program, &mut message).expect("a good message");
        let plan = message[0].plan;
        let actual = (plan.control >> 24, plan.word_delay_ticks);
        assert_eq!(actual, (steps, ticks), "{device_ns} and {transfer_ns}");
    }
}
