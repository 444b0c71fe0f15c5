//! The driver against registers that require an order of accesses.

mod interrupt;
mod short;

use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::bus::Bus;
use crate::controller::gpio::{ImxGpio, NoGpio, Ownership};
use crate::controller::testing::{self, Blocks, NoPins};
use crate::controller::{ALWAYS_POLL, CsLine};
use crate::reg::Access;
use crate::reg::Access::{Read, Write};
use crate::spi::{MODE_3, Mode};

type Ticker = testing::Ticker<8_000_000>;

const GPIO: u32 = 0x1000;
const GPIO_DR: u32 = GPIO;
const GPIO_GDIR: u32 = GPIO + 4;

const NATIVE: CsLine = CsLine::Native { channel: 0, active_high: false };
const PIN_9: CsLine = CsLine::Gpio { bit: 9, active_high: false };

fn config(line: CsLine) -> EcspiConfig {
    EcspiConfig {
        reference_hz: 80_000_000,
        chip_selects: [line, CsLine::Absent, CsLine::Sleeping, CsLine::Absent],
        poll_limit_ns: ALWAYS_POLL,
    }
}

/// RX_THRESHOLD, once after a reset: greater than 3.
const RDR_IS_FOUR: Access = Write(0x14, 0x0003_0000);

const RESET: [Access; 3] = [Write(0x08, 0x0070_00f0), Write(0x08, 0x0070_00f1), Write(0x10, 0)];

/// What the first message of a device adds: CONREG, CONFIGREG, PERIODREG, TESTREG.
fn configured(conreg: u32) -> [Access; 4] {
    [Write(0x08, 0x0070_0000 | conreg), Write(0x0c, 0), Write(0x1c, 0), Write(0x20, 0)]
}

#[test]
fn four_bytes_on_the_native_select_cost_three_accesses() {
    // Pre divider 4 (field 3), SMC, EN, all channels in controller mode; burst of 32 bits.
    let exchange = [Write(0x04, 0x9f00_0000), Read(0x18, 0x0b), Read(0x00, 0xffef_4019)];
    let mut script = Vec::from(RESET);
    script.extend(configured(0x30f1));
    script.push(Write(0x08, 0x01f0_30f9));
    script.extend(exchange);
    script.extend(exchange);
    let blocks = Blocks::on(&script);
    let ecspi = Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE));
    let bus = Bus::new(ecspi);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let mut id = device.prepare([0x9f, 0, 0, 0]).expect("prepares");
    assert_eq!(id.run(), Ok(&[0xff, 0xef, 0x40, 0x19]));
    assert_eq!(id.run(), Ok(&[0xff, 0xef, 0x40, 0x19]));
    blocks.end();
}

#[test]
fn without_a_chip_select_no_line_moves_that_a_chip_listens_to() {
    // Channel 1 (bit 18), since channel 0 has a chip; no access to the GPIO; two transfers.
    let mut script = Vec::from(RESET);
    script.extend([Write(0x08, 0x0074_30f1), Write(0x0c, 0), Write(0x1c, 0), Write(0x20, 0)]);
    script.push(Write(0x08, 0x0074_30f9));
    for byte in [0x9f, 0x05] {
        script.extend([Write(0x04, byte), Read(0x18, 0x08), Read(0x00, 0xff)]);
    }
    let blocks = Blocks::on(&script);
    let bus = Bus::new(Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    // Neither the line nor the polarity is checked.
    let settings = Settings::new(9, 20_000_000).with_mode(Mode::NO_CS | Mode::CS_HIGH);
    let device = bus.device(&settings).expect("opens");
    let mut message = [Transfer::write(&[0x9f]), Transfer::write(&[0x05])];
    device.sync(&mut message).expect("is not pulsed, so not refused");
    let long = [0; 513];
    let mut message = [Transfer::write(&long).with_word_delay_ns(1)];
    device.prepare_message(&mut message).expect("is planned");
    blocks.end();
}

#[test]
fn a_block_whose_every_line_has_a_chip_does_not_clock_without() {
    let native = |channel| CsLine::Native { channel, active_high: false };
    let chip_selects = [native(0), native(1), native(2), native(3)];
    let config = EcspiConfig { chip_selects, ..config(NATIVE) };
    let settings = Settings::new(0, 20_000_000).with_mode(Mode::NO_CS);
    assert_eq!(config.configure(&settings, 8_000_000), Err(Error::NoIdleChipSelect));
}

fn four_bytes_on_a_pin(ownership: Ownership, edges: [Vec<Access>; 2]) {
    let [falls, rises] = edges;
    let exchange = [Write(0x04, 0x0102_0304), Read(0x18, 8), Read(0x00, 0x0506_0708)];
    let mut script = match ownership {
        Ownership::Shared => vec![Read(GPIO_DR, 0), Write(GPIO_DR, 0x200)],
        Ownership::Exclusive => vec![Read(GPIO_DR, 0), Write(GPIO_DR, 0x200)],
    };
    script.extend([Read(GPIO_GDIR, 0), Write(GPIO_GDIR, 0x200)]);
    script.extend(RESET);
    script.extend(configured(0x30f1));
    script.extend(falls.clone());
    script.push(Write(0x08, 0x01f0_30f9));
    script.extend(exchange);
    script.extend(rises.clone());
    script.extend(falls);
    script.extend(exchange);
    script.extend(rises);
    let blocks = Blocks::on(&script);
    let gpio = ImxGpio::new(blocks.at(GPIO), ownership);
    let ecspi = Ecspi::new(blocks.at(0), gpio, Ticker::default(), config(PIN_9));
    let bus = Bus::new(ecspi);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    for _ in 0..2 {
        let mut both = [1, 2, 3, 4];
        device.sync(&mut [Transfer::in_place(&mut both)]).expect("runs");
        assert_eq!(both, [5, 6, 7, 8]);
    }
    blocks.end();
}

#[test]
fn a_pin_of_a_shared_bank_costs_two_accesses_an_edge() {
    four_bytes_on_a_pin(
        Ownership::Shared,
        [
            vec![Read(GPIO_DR, 0x8000_0200), Write(GPIO_DR, 0x8000_0000)],
            vec![Read(GPIO_DR, 0x8000_0000), Write(GPIO_DR, 0x8000_0200)],
        ],
    );
}

#[test]
fn a_pin_of_our_own_bank_costs_one_access_an_edge() {
    four_bytes_on_a_pin(
        Ownership::Exclusive,
        [vec![Write(GPIO_DR, 0)], vec![Write(GPIO_DR, 0x200)]],
    );
}

#[test]
fn five_bytes_start_filled_and_are_drained_as_they_come() {
    let mut script = Vec::from(RESET);
    script.extend(configured(0x30f1));
    script.extend([
        RDR_IS_FOUR,
        Write(0x08, 0x0270_30f1),
        Write(0x04, 0x03),
        Write(0x04, 0x0001_0203),
        Write(0x08, 0x0270_30f5),
        Read(0x18, TE),
        Read(0x18, TE | RR),
        Read(0x00, 0x11),
        Read(0x18, TE | RR),
        Read(0x00, 0x2233_4455),
        Read(0x08, 0x0270_30f5),
        Read(0x08, 0x0270_30f1),
    ]);
    let blocks = Blocks::on(&script);
    let bus = Bus::new(Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let mut rx = [0; 5];
    device.sync(&mut [Transfer::exchange(&[3, 0, 1, 2, 3], &mut rx)]).expect("runs");
    assert_eq!(rx, [0x11, 0x22, 0x33, 0x44, 0x55]);
    blocks.end();
}

/// 64 bytes at 20 MHz without a select line, up to the first poll.
fn sixty_four_bytes() -> Vec<Access> {
    let mut script = Vec::from(RESET);
    script.extend(configured(0x30f1));
    script.extend([RDR_IS_FOUR, Write(0x08, 0x1ff0_30f1)]);
    script.extend([Write(0x04, 0); 4]);
    script.push(Write(0x08, 0x1ff0_30f5));
    script.extend([Write(0x04, 0); 12]);
    script
}

fn receives_sixty_four_bytes(script: &[Access]) {
    let blocks = Blocks::on(script);
    let bus = Bus::new(Ecspi::new(blocks.at(0), NoPins, Ticker::default(), config(PIN_9)));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let mut rx = [0; 64];
    device.sync(&mut [Transfer::read(&mut rx)]).expect("runs");
    assert!(rx.chunks(4).all(|word| word == [1, 2, 3, 4]));
    blocks.end();
}

const WORD: Access = Read(0x00, 0x0102_0304);

#[test]
fn one_look_tells_of_one_four_or_all_words() {
    let mut script = sixty_four_bytes();
    script.extend([Read(0x18, RR), WORD]);
    script.push(Read(0x18, RDR | RR));
    script.extend([WORD; 4]);
    // RF says 64 words; no more are counted than are in flight.
    script.push(Read(0x18, TE | RF | RDR | RR));
    script.extend([WORD; 11]);
    script.push(Read(0x08, 0x1ff0_30f1));
    receives_sixty_four_bytes(&script);
}

#[test]
fn a_burst_that_ran_out_of_words_before_the_refill_is_started_again() {
    let mut script = sixty_four_bytes();
    // The first four words came, and XCH is clear: twelve words wait.
    script.push(Read(0x18, RDR | RR));
    script.extend([WORD; 4]);
    // The poll that ends the reading; then the first without result, since nothing is left to send.
    script.push(Read(0x18, 0));
    script.extend([Read(0x18, 0), Read(0x08, 0x1ff0_30f1), Read(0x18, 0)]);
    script.push(Write(0x08, 0x1ff0_30f5));
    for _ in 0..3 {
        script.push(Read(0x18, TE | RDR | RR));
        script.extend([WORD; 4]);
    }
    script.push(Read(0x08, 0x1ff0_30f1));
    receives_sixty_four_bytes(&script);
}

#[test]
fn a_burst_that_ended_meanwhile_is_not_started_again() {
    let mut script = sixty_four_bytes();
    // The thread slept between the poll and XCH: TXFIFO is empty now.
    script.extend([Read(0x18, 0), Read(0x08, 0x1ff0_30f1), Read(0x18, TE | RDR | RR)]);
    script.push(Read(0x18, TE | RDR | RR));
    for look in 0..4 {
        if look > 0 {
            script.push(Read(0x18, TE | RDR | RR));
        }
        script.extend([WORD; 4]);
    }
    script.push(Read(0x08, 0x1ff0_30f1));
    receives_sixty_four_bytes(&script);
}

#[test]
fn xch_is_asked_for_at_the_first_look_in_vain_and_at_each_sixteenth() {
    let mut script = sixty_four_bytes();
    for looks in [16, 16, 3] {
        script.extend([Read(0x18, 0), Read(0x08, 0x1ff0_30f5)]);
        script.extend(vec![Read(0x18, 0); looks - 1]);
    }
    for _ in 0..4 {
        script.push(Read(0x18, TE | RDR | RR));
        script.extend([WORD; 4]);
    }
    script.push(Read(0x08, 0x1ff0_30f1));
    receives_sixty_four_bytes(&script);
}

#[test]
fn on_its_own_line_a_burst_has_all_its_words_before_it_starts() {
    let mut script = Vec::from(RESET);
    script.extend(configured(0x30f1));
    script.extend([RDR_IS_FOUR, Write(0x08, 0x7ff0_30f1)]);
    script.extend([Write(0x04, 0); 64]);
    script.extend([Write(0x08, 0x7ff0_30f5), Read(0x18, TE | RF | RDR | RR)]);
    script.extend([WORD; 64]);
    script.push(Read(0x08, 0x7ff0_30f1));
    let blocks = Blocks::on(&script);
    let bus = Bus::new(Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    device.sync(&mut [Transfer::write(&[0; 256])]).expect("runs");
    blocks.end();
}

#[test]
fn an_active_high_line_of_the_block_gets_its_idle_level_first() {
    // SS_POL of channel 2 is written directly after EN, at the start and when a message is
    // abandoned.
    let reset = [RESET[0], RESET[1], Write(0x0c, 0x4000), RESET[2]];
    let mut script = Vec::from(reset);
    script.push(Write(0x10, 0));
    script.extend(reset);
    let line = CsLine::Native { channel: 2, active_high: true };
    let blocks = Blocks::on(&script);
    let mut ecspi = Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(line));
    ecspi.reclaim();
    blocks.end();
}

#[test]
fn a_slow_clock_ends_by_its_word_and_by_xch() {
    // 1 MHz from 80 MHz: pre 10 (field 9), post 8 (field 3).
    let mut script = Vec::from(RESET);
    script.extend(configured(0x93f1));
    // CONREG already has a burst of 8 bits.
    script.extend([
        Write(0x04, 0xaa),
        Write(0x08, 0x0070_93f5),
        // XCH has cleared already: that does not mean that the word was received.
        Read(0x18, TE),
        Read(0x18, TE | RR),
        Read(0x00, 0x55),
        // The received word does not mean that the burst is over.
        Read(0x08, 0x0070_93f5),
        Read(0x08, 0x0070_93f1),
    ]);
    let blocks = Blocks::on(&script);
    let bus = Bus::new(Ecspi::new(blocks.at(0), NoGpio, Ticker::default(), config(NATIVE)));
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("opens");
    let mut byte = [0xaa];
    device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
    assert_eq!(byte, [0x55]);
    blocks.end();
}

/// A block that loops back in no time, with FIFOs and counters and without select lines.
#[derive(Default)]
struct Looped {
    tx: VecDeque<u32>,
    rx: VecDeque<u32>,
    conreg: u32,
    /// Whether bursts never finish.
    wedged: bool,
    resets: u32,
    overruns: u32,
    longest_burst_bits: u32,
    /// FIFO words that the present burst still needs.
    burst_words: u32,
    /// Whether a burst without words continues only when XCH is written; else when a word is.
    needs_xch: bool,
    threshold: usize,
}

impl Registers for Looped {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x00 => self.rx.pop_front().unwrap_or(0xdead_beef),
            0x08 => self.conreg,
            0x18 => {
                let words = self.rx.len();
                u32::from(self.tx.is_empty())
                    | u32::from(words > 0) << 3
                    | u32::from(words > self.threshold) << 4
                    | u32::from(words == 64) << 5
            }
            0x20 => (self.rx.len() as u32) << 8 | self.tx.len() as u32,
            _ => 0,
        }
    }
    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            0x04 => {
                if self.tx.len() + self.rx.len() >= 64 {
                    self.overruns += 1;
                }
                self.tx.push_back(value);
            }
            0x08 => {
                self.conreg = value;
                self.longest_burst_bits = self.longest_burst_bits.max((value >> 20) + 1);
                if value & 4 != 0 && self.burst_words == 0 {
                    self.burst_words = ((value >> 20) + 1).div_ceil(32);
                }
                if value & 1 == 0 {
                    self.tx.clear();
                    self.rx.clear();
                    (self.burst_words, self.threshold) = (0, 0);
                    self.resets += 1;
                }
            }
            0x14 => self.threshold = (value >> 16 & 0x3f) as usize,
            _ => {}
        }
        if self.wedged {
            return;
        }
        if self.conreg & 8 != 0 {
            self.rx.append(&mut self.tx);
        }
        while self.conreg & 4 != 0 && !self.tx.is_empty() {
            self.rx.extend(self.tx.pop_front());
            self.burst_words -= 1;
            if self.burst_words == 0 || self.needs_xch && self.tx.is_empty() {
                self.conreg &= !4;
            }
        }
    }
}

fn looped(line: CsLine, needs_xch: bool) -> Bus<Ecspi<Looped, NoPins, Ticker>> {
    let block = Looped { needs_xch, ..Looped::default() };
    Bus::new(Ecspi::new(block, NoPins, Ticker::default(), config(line)))
}

/// Runs a message in pieces of one burst.
fn loop_back(line: CsLine, needs_xch: bool, bits: u8, len: usize) -> Looped {
    let bus = looped(line, needs_xch);
    let settings = Settings::new(0, 20_000_000).with_bits_per_word(bits);
    let device = bus.device(&settings).expect("opens");
    testing::loop_back(&device, len, settings);
    bus.into_inner().release().0
}

#[test]
fn every_length_loops_back_within_the_fifos() {
    let lengths: &[usize] = if cfg!(miri) {
        &[0, 1, 5, 256, 257, 512]
    } else {
        &[0, 1, 2, 3, 4, 5, 16, 17, 255, 256, 257, 260, 511, 512, 513, 1_100]
    };
    for needs_xch in [false, true] {
        for &len in lengths {
            let block = loop_back(PIN_9, needs_xch, 8, len);
            assert_eq!(block.overruns, 0, "{len} bytes");
            if len <= 256 {
                assert_eq!(loop_back(NATIVE, needs_xch, 8, len).overruns, 0, "{len} bytes");
            }
        }
        for bits in [16, 32] {
            for len in [4, 8, 252, 256, 260, 512] {
                loop_back(PIN_9, needs_xch, bits, len);
            }
        }
    }
}

#[test]
fn bursts_are_as_long_as_the_block_has_them() {
    assert_eq!(loop_back(PIN_9, false, 8, 513).longest_burst_bits, 4096);
    assert_eq!(loop_back(NATIVE, false, 8, 256).longest_burst_bits, 2048);
}

#[test]
fn a_wedged_block_times_out_and_is_reset() {
    for len in [4, 64, 512] {
        let wedged = Looped { wedged: true, ..Looped::default() };
        let bus = Bus::new(Ecspi::new(wedged, NoPins, Ticker::default(), config(PIN_9)));
        let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
        let mut rx = vec![0; len];
        let error = device
            .sync(&mut [Transfer::write(&[]).with_cs_change(), Transfer::read(&mut rx)])
            .expect_err("never ends");
        let Error::Timeout { timeout_us } = error.error else { panic!("{error}") };
        let wire_ns: u64 = if len == 4 { 32 * 50 } else { 2048 * 50 };
        assert_eq!(u64::from(timeout_us), (2 * wire_ns).div_ceil(1_000) + 1_000);
        assert_eq!((error.transfer_index, error.actual_length), (1, 0));
        assert_eq!(bus.into_inner().release().0.resets, 3, "at start, after the error, at the end");
    }
}

#[test]
fn a_message_after_a_timeout_configures_anew() {
    let mut block = Looped { wedged: true, ..Looped::default() };
    let bus = Bus::new(Ecspi::new(&mut block, NoGpio, Ticker::default(), config(NATIVE)));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    device.sync(&mut [Transfer::write(&[1])]).expect_err("wedged");
    let (regs, ..) = bus.into_inner().release();
    regs.wedged = false;
    let bus = Bus::new(Ecspi::new(regs, NoGpio, Ticker::default(), config(NATIVE)));
    let mut byte = [3];
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    device.sync(&mut [Transfer::in_place(&mut byte)]).expect("runs");
    assert_eq!(byte, [3], "no stale word was left in the FIFO");
}

#[test]
fn a_native_select_is_refused_rather_than_pulsed() {
    let bus = looped(NATIVE, false);
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let pulse = Error::NativeCsWouldPulse { max_bytes: 256 };
    let long = [0; 257];
    let error = device.sync(&mut [Transfer::write(&long)]).expect_err("more than TXFIFO holds");
    assert_eq!(error, MessageError::refused(pulse, 0));
    let error = device
        .sync(&mut [Transfer::write(&[1]), Transfer::write(&long[..64])])
        .expect_err("two bursts under one select, and too long to be joined");
    assert_eq!(error, MessageError::refused(pulse, 0));
    device
        .sync(&mut [Transfer::write(&[1]).with_cs_change(), Transfer::write(&[2])])
        .expect("the pulse was asked for");
    let error =
        device.sync(&mut [Transfer::write(&[1]).with_delay_ns(7)]).expect_err("risen by then");
    assert_eq!(error, MessageError::refused(Error::NativeCsDelay { asked_ns: 7, max_ns: 0 }, 0));
    let spaced = Settings { word_delay_ns: 1, ..Settings::new(0, 20_000_000) };
    let error = bus.device(&spaced).expect_err("words apart are bursts apart");
    assert_eq!(error, Error::NativeCsDelay { asked_ns: 1, max_ns: 0 });
}

#[test]
fn what_the_block_cannot_do_is_refused_at_opening() {
    let bus = looped(NATIVE, false);
    let refused = |settings: Settings| bus.device(&settings).expect_err("is refused");
    let good = Settings::new(0, 20_000_000);
    assert_eq!(refused(good.with_mode(Mode::LSB_FIRST)), Error::LsbFirst);
    assert_eq!(refused(good.with_mode(Mode::CS_HIGH)), Error::CsPolarity { active_high: false });
    assert_eq!(refused(good.with_bits_per_word(9)), Error::BitsPerWord { bits: 9 });
    assert_eq!(refused(Settings::new(0, 0)), Error::SpeedZero);
    assert_eq!(refused(Settings::new(0, 100)), Error::SpeedTooLow { asked_hz: 100, min_hz: 153 });
    assert_eq!(refused(Settings::new(1, 1_000_000)), Error::NoSuchChipSelect { chip_select: 1 });
    assert_eq!(refused(Settings::new(2, 1_000_000)), Error::CsCanSleep);
    assert_eq!(refused(Settings::new(9, 1_000_000)), Error::NoSuchChipSelect { chip_select: 9 });
}

#[test]
fn the_clock_is_never_faster_than_asked_and_the_divider_never_larger_than_needed() {
    let config = config(PIN_9);
    for asked_hz in [
        153,
        154,
        1_000,
        99_999,
        1_000_000,
        3_600_000,
        19_999_999,
        20_000_000,
        80_000_000,
        200_000_000,
    ] {
        let (program, effective) =
            config.configure(&Settings::new(0, asked_hz), 8_000_000).expect("is in range");
        assert!(effective.speed_hz <= asked_hz, "{asked_hz}");
        let divisor = divisor(program.plan.control);
        // Any smaller divisor of the block would be too fast.
        let smaller = (0..16)
            .flat_map(|post| (1..=16_u64).map(move |pre| pre << post))
            .filter(|&d| d < divisor)
            .max();
        if let Some(smaller) = smaller {
            assert!(80_000_000 > u64::from(asked_hz) * smaller, "{asked_hz}: {smaller} would do");
        }
    }
}

#[test]
fn delays_on_a_pin_are_ticks_of_125_ns() {
    let settings = Settings {
        cs_setup_ns: 1,
        cs_hold_ns: 126,
        cs_inactive_ns: 1_000,
        word_delay_ns: 250,
        ..Settings::new(0, 20_000_000)
    };
    let (program, effective) = config(PIN_9).configure(&settings, 8_000_000).expect("opens");
    assert_eq!(
        (program.cs_setup_ticks, program.cs_hold_ticks, program.cs_inactive_ticks),
        (1, 2, 8)
    );
    assert_eq!(
        (
            effective.cs_setup_ns,
            effective.cs_hold_ns,
            effective.cs_inactive_ns,
            effective.word_delay_ns
        ),
        (125, 250, 1_000, 250)
    );
    assert_eq!(effective.quantum_ns, 125);
}

#[test]
fn the_native_setup_time_is_counted_in_clocks() {
    let at = |cs_setup_ns| {
        let settings = Settings { cs_setup_ns, ..Settings::new(0, 20_000_000) };
        config(NATIVE).configure(&settings, 8_000_000)
    };
    let (program, effective) = at(100).expect("opens");
    assert!(effective.cs_setup_ns >= 100 && effective.cs_setup_ns < 200, "{effective:?}");
    assert!(program.regs[P_PERIODREG] >> 16 >= 2);
    let error = at(10_000).expect_err("beyond 63 clocks");
    assert!(
        matches!(error, Error::NativeCsDelay { asked_ns: 10_000, max_ns: 3_000..=3_150 }),
        "{error:?}"
    );
    let hold = Settings { cs_hold_ns: 24, ..Settings::new(0, 20_000_000) };
    let error = config(NATIVE).configure(&hold, 8_000_000).expect_err("half a clock less 2 ns");
    assert_eq!(error, Error::NativeCsDelay { asked_ns: 24, max_ns: 23 });
}

#[test]
fn the_mode_stands_in_every_channel() {
    let (program, _) = config(PIN_9)
        .configure(&Settings::new(0, 1_000_000).with_mode(MODE_3), 8_000_000)
        .expect("opens");
    assert_eq!(program.regs[P_CONFIGREG], 0x00f0_00ff);
}
