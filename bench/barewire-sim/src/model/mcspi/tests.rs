//! McSPI compared with the manual: registers, channels, the FIFO, words, lines and their times.

use super::regs::{CH0CONF, IRQENABLE, IRQSTATUS, MODULCTRL, SYSCONFIG, XFERLEVEL};
use super::*;
use crate::chip::PS_PER_S;
use crate::model::{ByHand, ControllerBlock as _, rig};
use crate::wire::Driver;

/// A divisor of 5 at 50 MHz: a cycle of 20 ns, a period of 100 ns.
const CLK_HZ: u64 = 50_000_000;
const CYCLE: Ps = PS_PER_S / CLK_HZ;
const PERIOD: Ps = 5 * CYCLE;
const HALF: Ps = PERIOD / 2;
/// CHxCONF: a divisor of 5, words of 8 bits, active low, MOSI on SPIDAT[1].
const BYTES: u32 = 1 << 29 | 4 << 2 | 7 << 7 | 1 << 6 | 1 << 16;
const FORCE: u32 = Conf::FORCE;
const FFEW: u32 = Conf::FFEW;
const FFER: u32 = Conf::FFER;

type Rig = rig::Rig<Mcspi>;

const fn conf(channel: u32) -> u32 {
    CH0CONF + 0x14 * channel
}

const fn ctrl(channel: u32) -> u32 {
    conf(channel) + 8
}

const STAT: u32 = 0x130;
const TX: u32 = 0x138;
const RX: u32 = 0x13c;

impl Rig {
    fn new() -> Self {
        let mut rig = Self::with(Mcspi::new(CLK_HZ), &[0, 1].map(Driver::Native));
        rig.wire.start_selections();
        rig
    }

    /// A controller whose channel 0 has `more`, is selected, and enabled.
    fn on(more: u32) -> Self {
        let mut rig = Self::new();
        for (offset, value) in [
            (conf(0), BYTES),
            (conf(1), BYTES),
            (MODULCTRL, SINGLE),
            (conf(0), BYTES | more | FORCE),
        ] {
            rig.write(offset, value);
        }
        rig.write(ctrl(0), 1);
        rig
    }

    fn stat(&mut self, bits: u32) -> bool {
        self.read(STAT) & bits == bits
    }
}

#[test]
fn reset_values_and_writable_bits() {
    let mut rig = Rig::new();
    for channel in 0..4 {
        rig.reads(&[(conf(channel), 0x0006_0000), (ctrl(channel), 0), (conf(channel) + 4, 0)]);
    }
    rig.reads(&[(MODULCTRL, 4), (XFERLEVEL, 0), (IRQSTATUS, 0), (0x114, 1)]);
    rig.keeps(&[(IRQENABLE, 0x0003_777f), (0x120, 1), (0x124, 0xfff), (XFERLEVEL, u32::MAX)]);
    rig.keeps(&[(ctrl(3), 0xff01), (conf(3), 0x3fff_ffff)]);
    for offset in [0x114, STAT, RX, 0x000] {
        rig.write(offset, u32::MAX);
    }
    assert!(rig.rules().is_empty());
    for offset in [0x100, 0x10c, 0x180, 0x12d] {
        rig.read(offset);
        rig.write(offset, 0);
    }
    assert_eq!(rig.rules(), [Rule::BadAccess; 8]);
    rig.write(MODULCTRL, SINGLE);
    rig.write(SYSCONFIG, SOFTRESET);
    rig.reads(&[(MODULCTRL, 4), (SYSCONFIG, 0)]);
}

#[test]
fn epol_is_zero_after_a_reset_and_selects_once_the_block_is_a_controller() {
    let mut rig = Rig::new();
    assert_eq!(rig.selections(0), 0, "an input, pulled up");
    rig.write(MODULCTRL, SINGLE);
    assert_eq!(
        (rig.selections(0), rig.selections(1)),
        (1, 1),
        "low: inactive where high is active"
    );
    rig.write(MODULCTRL, 4);
    for channel in 0..2 {
        rig.write(conf(channel), BYTES);
    }
    rig.write(MODULCTRL, SINGLE);
    assert_eq!((rig.selections(0), rig.selections(1)), (1, 1));
    rig.write(conf(1), BYTES | FORCE);
    assert_eq!((rig.selections(0), rig.selections(1)), (1, 2));
}

#[test]
fn a_word_is_received_half_a_period_before_it_ends() {
    for mode in 0..4 {
        let mut rig = Rig::on(mode);
        assert!(rig.stat(stat::TXS) && rig.read(IRQSTATUS) == irq::tx_empty(0));
        rig.write(TX, 0x5a);
        assert!(!rig.stat(stat::TXS));
        let ends = CYCLE + 8 * PERIOD;
        rig.by(CYCLE);
        assert!(rig.stat(stat::TXS), "in the shift register");
        assert_eq!(rig.until(|rig| rig.stat(stat::RXS)), ends - HALF, "mode {mode}");
        assert!(!rig.stat(stat::EOT));
        assert_eq!(rig.until(|rig| rig.stat(stat::EOT)), ends);
        let events = irq::tx_empty(0) | irq::rx_full(0);
        rig.reads(&[(RX, 0), (IRQSTATUS, events)]);
        assert!(!rig.stat(stat::RXS));
        rig.write(IRQSTATUS, events);
        rig.write(ctrl(0), 0);
        rig.write(conf(0), BYTES | mode);
        assert_eq!(rig.received(0), [0x5a]);
        assert_eq!(rig.read(IRQSTATUS), 0);
        assert!(rig.rules().is_empty());
    }
}

#[test]
fn no_word_is_sent_while_there_is_no_room_for_the_one_that_comes() {
    let mut rig = Rig::on(0);
    rig.write(TX, 1);
    rig.by(2 * CYCLE).write(TX, 2);
    rig.by(100 * PERIOD);
    assert_eq!(rig.received(0), [1], "what came with the first is still in the register");
    rig.write(TX, 3);
    assert_eq!(rig.rules(), [Rule::TxFull]);
    rig.read(RX);
    rig.by(200 * PERIOD);
    assert_eq!(rig.received(0), [1, 2]);
}

#[test]
fn the_fifo_is_split_and_words_follow_without_a_gap() {
    let mut rig = Rig::on(FFEW | FFER);
    assert!(rig.stat(stat::TXFFE | stat::RXFFE | stat::EOT) && !rig.stat(stat::TXS));
    for byte in 0..32 {
        assert!(!rig.stat(stat::TXFFF));
        rig.write(TX, byte);
    }
    assert!(rig.stat(stat::TXFFF));
    rig.by(CYCLE + 31 * 8 * PERIOD - 1);
    assert!(!rig.stat(stat::TXFFE));
    rig.by(CYCLE + 31 * 8 * PERIOD);
    assert!(rig.stat(stat::TXFFE) && !rig.stat(stat::RXFFF), "the last is in the shift register");
    rig.by(CYCLE + 32 * 8 * PERIOD - HALF);
    assert!(rig.stat(stat::RXFFF));
    rig.write(TX, 32);
    rig.by(CYCLE + 100 * 8 * PERIOD);
    assert!(!rig.stat(stat::TXFFE), "no room");
    assert_eq!((rig.read(RX), rig.read(RX)), (0, 0));
    rig.by(CYCLE + 110 * 8 * PERIOD);
    assert_eq!(rig.received(0), (0..33).collect::<Vec<u8>>());
    rig.write(ctrl(0), 0);
    assert!(!rig.stat(stat::RXFFE), "kept");
    rig.write(ctrl(0), 1);
    assert!(rig.stat(stat::RXFFE | stat::TXFFE));
    assert!(rig.rules().is_empty());
    rig.read(RX);
    assert_eq!(rig.rules(), [Rule::RxEmpty]);
}

#[test]
fn a_wider_word_takes_more_of_the_fifo_and_two_claims_disable_it() {
    for (bits, words) in [(4, 32), (8, 32), (9, 16), (16, 16), (17, 8), (32, 8)] {
        let mut rig = Rig::on(0);
        rig.write(ctrl(0), 0);
        rig.write(conf(0), BYTES & !(0x1f << 7) | (bits - 1) << 7 | FFEW | FFER);
        (1..words).for_each(|_| rig.write(TX, 0));
        assert!(!rig.stat(stat::TXFFF));
        rig.write(TX, 0);
        assert!(rig.stat(stat::TXFFF), "{bits} bits");
        rig.write(conf(1), BYTES | FFER);
        assert!(!rig.stat(stat::TXFFE) && !rig.stat(stat::TXFFF));
    }
}

#[test]
fn levels_interrupt_and_eow_halts() {
    let mut rig = Rig::on(FFEW | FFER);
    rig.write(ctrl(0), 0);
    rig.write(IRQSTATUS, u32::MAX);
    rig.write(XFERLEVEL, 6 << 16 | 1 << 8 | 29);
    rig.write(ctrl(0), 1);
    assert_eq!(rig.read(IRQSTATUS), irq::tx_empty(0));
    rig.write(IRQENABLE, irq::rx_full(0) | irq::EOW);
    rig.write_each(TX, 0..8);
    let received = |words: u64| CYCLE + words * 8 * PERIOD - HALF;
    rig.by(received(2) - 1);
    assert!(!rig.block.interrupt());
    rig.by(received(2));
    assert!(rig.block.interrupt());
    rig.by(received(5)).write(IRQSTATUS, irq::rx_full(0));
    assert!(!rig.block.interrupt(), "not before the level was read");
    rig.read(RX);
    assert!(!rig.block.interrupt());
    rig.read(RX);
    assert!(rig.block.interrupt(), "three are there");
    rig.write(IRQSTATUS, irq::rx_full(0));
    rig.by(received(100));
    assert_eq!((rig.read(IRQSTATUS) & irq::EOW, rig.received(0).len()), (irq::EOW, 6));
    rig.write(ctrl(0), 0);
    rig.write(ctrl(0), 1);
    rig.write(TX, 9);
    rig.by(received(200));
    assert_eq!(rig.received(0)[6..], [9], "enabled anew");
    assert!(rig.rules().is_empty());
}

#[test]
fn one_direction_alone() {
    // Transmit only: RX is overwritten. Receive only: the word that was written once is sent again.
    let mut rig = Rig::on(2 << 12);
    for (at, byte) in [(0, 1), (20, 2)] {
        rig.by(at * PERIOD).write(TX, byte);
    }
    rig.by(40 * PERIOD);
    assert_eq!((rig.received(0), rig.read(RX)), (vec![1, 2], 1));
    assert_eq!(rig.read(IRQSTATUS) & irq::rx_full(0), 0);
    rig.write(ctrl(0), 0);
    rig.write(conf(0), BYTES | FORCE | 1 << 12);
    rig.write(ctrl(0), 1);
    rig.write(TX, 7);
    for at in [60, 80] {
        rig.by(at * PERIOD).read(RX);
    }
    rig.by(81 * PERIOD).write(ctrl(0), 0);
    rig.by(100 * PERIOD);
    assert_eq!(rig.received(0), [1, 2, 7, 7, 7], "the word under way is finished");
    assert!(rig.rules().is_empty());
}

#[test]
fn settings_are_taken_when_the_manual_allows_it() {
    let mut rig = Rig::on(0);
    rig.write(conf(0), BYTES | FORCE | 2);
    assert_eq!((rig.read(conf(0)), rig.rules()), (BYTES | FORCE, vec![Rule::Disabled]));
    rig.write(TX, 1);
    rig.by(2 * CYCLE).write(conf(0), BYTES & !(4 << 2) | FORCE);
    rig.write(ctrl(0), 0x101);
    assert_eq!(rig.rules(), [Rule::Disabled; 3]);
    rig.by(20 * PERIOD).write(ctrl(0), 0);
    rig.write(conf(0), BYTES | FORCE | 2);
    assert_eq!(rig.rules()[3..], [Rule::SckIdle], "the polarity moves at once");
}

#[test]
fn a_word_without_a_line_or_a_length_is_reported() {
    for (conf_0, modulctrl, expected) in [
        (BYTES, SINGLE, &[Rule::BadAccess][..]),
        (BYTES & !(0x1f << 7) | FORCE, SINGLE, &[Rule::BadAccess]),
        (BYTES | FORCE, MS, &[]),
    ] {
        let mut rig = Rig::on(0);
        rig.write_pairs(&[(conf(0), conf_0), (MODULCTRL, modulctrl), (TX, 1)]);
        rig.by(20 * PERIOD);
        assert_eq!(rig.rules(), expected, "{conf_0:#x} {modulctrl}");
    }
}

/// Exchanges one word by the manual: see [`ControllerKind`].
pub(super) fn exchange(spi: &mut dyn ByHand, bits: u32, word: u32, cs: &mut dyn FnMut()) -> u32 {
    // Channel 0, words of `bits`, a divisor of 16, its own line on no pin.
    let conf_0 = 4 << 2 | (bits - 1) << 7 | 1 << 6 | 1 << 16 | FORCE;
    for (offset, value) in [(conf(1), 1 << 6), (conf(0), conf_0), (MODULCTRL, SINGLE)] {
        spi.write(offset, value);
    }
    cs();
    for (offset, value) in [(ctrl(0), 1), (TX, word)] {
        spi.write(offset, value);
    }
    while spi.read(STAT) & (stat::RXS | stat::EOT) != stat::RXS | stat::EOT {}
    spi.read(RX)
}
