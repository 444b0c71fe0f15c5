//! Messages that wait by interrupt: the accesses and their order, and the state afterwards.

use core::cell::Cell;
use core::task::Poll;
use std::boxed::Box;

use super::*;
use crate::controller::testing::{Bell, Fatal, Steps};

type Clock<'c> = testing::Clock<'c, 19_200_000>;

const BELL: u32 = 0x3000;

/// A limit at which every transfer waits by interrupt.
fn eager() -> Bcm2835Config {
    Bcm2835Config { poll_limit_ns: 0, ..config(PIN_8) }
}

const ARMED_RXR: Access = Write(0x00, 0x482);
const ARMED_DONE: Access = Write(0x00, 0x282);
const SILENT: Access = Write(0x00, 0x82);
const THREE_QUARTERS: u32 = 0x000e_0082;
/// Twice the 64 bytes that may be in flight, and a millisecond.
const TIMEOUT_US: u32 = 1_323;
const TIMEOUT_TICKS: u64 = TIMEOUT_US as u64 * 192 / 10;

/// The driver brought up, and its first message selected.
fn selected() -> Vec<Access> {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    script.extend(CONFIGURED);
    script.push(FALLS);
    script
}

fn sent(bytes: usize) -> Vec<Access> {
    vec![Write(0x04, 0); bytes]
}

fn received(bytes: usize) -> Vec<Access> {
    vec![Read(0x04, 7); bytes]
}

/// Runs `drive` on a driver whose accesses must equal `script`.
fn hold(
    script: &[Access],
    config: Bcm2835Config,
    drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &Cell<u64>),
) {
    testing::hold_steps(
        script,
        &SETTINGS,
        |blocks, now| {
            let gpio = Bcm2835Gpio::new(blocks.at(GPIO));
            Box::new(Bcm2835::new(blocks.at(0), gpio, Clock::new(now), config))
        },
        drive,
    );
}

#[test]
fn two_hundred_bytes_are_four_interrupts() {
    let mut script = selected();
    script.extend(sent(64));
    script.push(ARMED_RXR);
    // Two more came while the 48 were read.
    script.extend([SILENT, Read(0x00, THREE_QUARTERS)]);
    script.extend(received(48));
    script.extend([Read(0x00, BYTE), Read(0x04, 7), Read(0x00, BYTE), Read(0x04, 7)]);
    script.push(Read(0x00, EMPTY));
    script.extend(sent(50));
    script.push(ARMED_RXR);
    script.extend([SILENT, Read(0x00, THREE_QUARTERS)]);
    script.extend(received(48));
    script.push(Read(0x00, EMPTY));
    script.extend(sent(48));
    script.push(ARMED_RXR);
    // Late: all 64 are there, and the block has nothing to send.
    script.extend([SILENT, Read(0x00, 0x001f_0082)]);
    script.extend(received(64));
    script.push(OVER);
    script.extend(sent(38));
    // The rest is sent: the end is next.
    script.push(ARMED_DONE);
    script.extend([SILENT, Read(0x00, ENDED)]);
    script.extend(received(38));
    script.extend([RISES, OVER]);
    hold(&script, eager(), |steps, _| {
        let mut rx = vec![0; 200];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        for _ in 0..3 {
            assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        }
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(200)));
        assert!(rx.iter().all(|&byte| byte == 7));
    });
}

#[test]
fn a_caller_who_blocks_lets_it_come_arms_sleeps_and_looks() {
    let sleep = [Write(BELL, 1), ARMED_DONE, Write(BELL + 4, TIMEOUT_US + 1)];
    let mut script = selected();
    script.extend(sent(2));
    script.extend(sleep);
    // Woken by an interrupt of another block.
    script.extend([SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY)]);
    script.extend(sleep);
    script.extend([SILENT, Read(0x00, ENDED)]);
    script.extend(received(2));
    script.extend([RISES, OVER]);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let gpio = Bcm2835Gpio::new(blocks.at(GPIO));
    let spi = Bcm2835::new(blocks.at(0), gpio, Clock::new(&now), eager())
        .with_interrupt(Bell(blocks.at(BELL)));
    let bus = Bus::new(spi);
    let mut rx = [0; 2];
    let device = bus.device(&SETTINGS).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::read(&mut rx)]), Ok(2));
    assert_eq!(rx, [7, 7]);
    blocks.end();
}

#[test]
fn what_does_not_come_in_time_is_given_up_deselected_and_reset() {
    let mut script = selected();
    script.extend(sent(64));
    script.extend([ARMED_RXR, SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY)]);
    script.extend([ARMED_RXR, SILENT, Read(0x00, EMPTY), Read(0x00, EMPTY), RISES]);
    script.extend(RESET);
    hold(&script, eager(), |steps, now| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending, "not yet");
        now.set(now.get() + TIMEOUT_TICKS);
        let unfinished = Unfinished::stopped(0, Stopped::TimedOut { timeout_us: TIMEOUT_US });
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn a_handler_that_comes_late_still_sees_that_the_block_was_in_time() {
    let mut script = selected();
    script.extend(sent(1));
    script.extend([ARMED_DONE, SILENT, Read(0x00, EMPTY), Read(0x00, ENDED), Read(0x04, 7)]);
    script.extend([RISES, OVER]);
    hold(&script, eager(), |steps, now| {
        let mut message = [Transfer::write(&[0])];
        steps.begin(&mut message);
        now.set(now.get() + TIMEOUT_TICKS);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(1)));
    });
}

#[test]
fn the_last_byte_may_come_before_done() {
    let mut script = selected();
    script.extend(sent(1));
    script.extend([ARMED_DONE, SILENT, Read(0x00, BYTE), Read(0x04, 7)]);
    script.extend([Read(0x00, EMPTY), Read(0x00, ENDED_EMPTY), RISES, OVER]);
    hold(&script, eager(), |steps, _| {
        let mut message = [Transfer::write(&[0])];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(1)));
    });
}

#[test]
fn an_abandoned_message_is_silenced_deselected_and_cleared() {
    let mut script = selected();
    script.extend(sent(64));
    script.extend([ARMED_RXR, Read(0x00, 0x0004_0482), SILENT]);
    script.extend([RISES, Read(GPIO, 1 << 24)]);
    script.extend(RESET);
    // The next message configures everything again.
    script.extend(CONFIGURED);
    script.push(FALLS);
    script.extend(sent(64));
    hold(&script, eager(), |steps, _| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        steps.driver.arm();
        steps.driver.reclaim();
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
    });
}

#[test]
fn short_transfers_of_a_long_message_are_polled_and_speeds_are_their_own() {
    let mut script = selected();
    script.extend(ONE_BYTE);
    script.extend([Write(0x00, 0x02), Write(0x08, 400), Write(0x00, 0x82), OVER]);
    script.extend(sent(64));
    script.push(ARMED_RXR);
    let config = Bcm2835Config { poll_limit_ns: 20_000, ..eager() };
    hold(&script, config, |steps, _| {
        let mut rx = vec![0; 512];
        let slow = Transfer::read(&mut rx).with_speed_hz(1_000_000);
        steps.begin(&mut [Transfer::write(&[9]), slow]);
        steps.driver.arm();
    });
}

#[test]
fn the_limit_counts_nine_clocks_a_byte_word_delays_and_own_speeds() {
    let config = Bcm2835Config { poll_limit_ns: 100_000, ..config(CE0) };
    let at = |settings| config.configure(&settings, 8_000_000).expect("opens").0;
    assert_eq!(at(SETTINGS).poll_bytes_max, 39, "2,520 ns a byte");
    let spaced = Settings { word_delay_ns: 600, ..SETTINGS };
    assert_eq!(at(spaced).poll_bytes_max, 31, "and 5 ticks of 125 ns");
    let always = Bcm2835Config { poll_limit_ns: ALWAYS_POLL, ..config };
    let (program, _) = always.configure(&SETTINGS, 8_000_000).expect("opens");
    assert_eq!(program.poll_bytes_max, usize::MAX);

    let config = Bcm2835Config { poll_limit_ns: 100_000, ..eager() };
    let spi = Bcm2835::new(Looped::default(), NoPins, Ticker::default(), config);
    let (program, _) = spi.configure(&SETTINGS).expect("opens");
    let bytes = [0; 112];
    let mut message = [
        Transfer::write(&bytes[..39]),
        Transfer::write(&bytes[..40]),
        // 900 ns a byte.
        Transfer::write(&bytes[..111]).with_speed_hz(10_000_000),
        Transfer::write(&bytes).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..32]).with_word_delay_ns(625),
        Transfer::write(&[]),
    ];
    spi.plan(&program, &mut message).expect("a good message");
    let waits = message.each_ref().map(|transfer| transfer.plan.by_interrupt());
    assert_eq!(waits, [false, true, false, true, true, false]);
}

#[test]
fn every_length_loops_back_by_interrupt() {
    let lengths: &[usize] =
        if cfg!(miri) { &[0, 1, 65] } else { &[0, 1, 2, 48, 63, 64, 65, 112, 128, 200] };
    for word_delay_ns in [0, 250] {
        let mut spi = Bcm2835::new(Looped::default(), NoPins, Ticker::default(), eager());
        let mut steps = Steps::new(&mut spi, &Settings { word_delay_ns, ..SETTINGS });
        for &len in lengths {
            steps.loop_back(len, word_delay_ns, |_| ());
        }
        let block = spi.release().0;
        assert_eq!((block.overruns, block.astray, block.cs), (0, 0, 0));
    }
}

#[test]
fn a_caller_that_dies_asleep_leaves_an_idle_block() {
    let spi =
        Bcm2835::new(Looped::default(), NoPins, Ticker::default(), eager()).with_interrupt(Fatal);
    let block = testing::die_asleep(spi, &SETTINGS).release().0;
    // At start, for the device, after the panic, at the end.
    assert_eq!((block.clears, block.cs), (4, 0));
}
