//! Messages that wait by interrupt: the accesses and their order, and the state afterwards.

use core::cell::Cell;
use core::task::Poll;
use std::boxed::Box;

use super::*;
use crate::controller::testing::{Bell, Fatal, Steps};

type Clock<'c> = testing::Clock<'c, 8_000_000>;

const BELL: u32 = 0x20_0000;
/// RXF and RXO.
const ARMED: Access = Write(IMR, 0x18);
const SILENT: Access = Write(IMR, 0);

/// A pin, and a limit at which every transfer waits by interrupt.
fn eager() -> DwSsiConfig {
    DwSsiConfig { poll_limit_ns: 0, ..config(PIN_8) }
}

/// The driver brought up, its first message selected, and `words` of four bytes sent.
fn launched(words: usize) -> Vec<Access> {
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(4));
    script.extend(vec![Write(DR, 0); words]);
    script
}

/// Runs `drive` on a driver whose accesses must equal `script`.
fn hold(script: &[Access], drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &Cell<u64>)) {
    testing::hold_steps(
        script,
        &SETTINGS,
        |blocks, now| {
            let gpio = Rp1Gpio::new(blocks.at(GPIO));
            Box::new(DwSsi::new(blocks.at(0), gpio, Clock::new(now), eager()))
        },
        drive,
    );
}

#[test]
fn half_a_fifo_interrupts_and_then_the_last_word() {
    let mut script = launched(60);
    // Half of 60 words.
    script.extend([Write(RXFTLR, 29), ARMED, SILENT, Read(RXFLR, 31)]);
    script.extend(vec![Read(DR, 7); 31]);
    // One more has come meanwhile; 32 are sent, the last 4 of them of another go.
    script.extend([Read(RXFLR, 1), Read(DR, 7), Read(RXFLR, 0)]);
    script.extend(vec![Write(DR, 0); 4]);
    // All is sent, and half of the FIFO interrupts again; then the last of 2 words.
    script.extend([ARMED, SILENT, Read(RXFLR, 30)]);
    script.extend(vec![Read(DR, 7); 30]);
    script.extend([Read(RXFLR, 0), Write(RXFTLR, 1), ARMED, SILENT, Read(RXFLR, 2)]);
    script.extend([Read(DR, 7), Read(DR, 7), Read(SR, BUSY), Read(SR, IDLE)]);
    // 3 bytes are left: one frame, polled.
    script.extend(frames(3));
    script.extend([Write(DR, 0), Read(SR, IDLE_RFNE), Read(DR, 0x01_0203), DESELECT]);
    hold(&script, |steps, _| {
        let mut rx = [0; 64 * 4 + 3];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(259)));
        assert_eq!((rx[255], &rx[256..]), (7, &[1, 2, 3][..]));
    });
}

#[test]
fn a_single_frame_waits_too() {
    let mut script = on_pin(&CONFIGURED);
    script.push(SELECT);
    script.extend(frames(3));
    script.extend([Write(DR, 0x01_0203), Write(RXFTLR, 0), ARMED, SILENT, Read(RXFLR, 1)]);
    script.extend([Read(DR, 0x04_0506), Read(SR, IDLE), DESELECT]);
    hold(&script, |steps, _| {
        let mut bytes = [1, 2, 3];
        let mut message = [Transfer::in_place(&mut bytes)];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(3)));
        assert_eq!(bytes, [4, 5, 6]);
    });
}

#[test]
fn a_lost_word_ends_the_message_at_once() {
    let mut script = launched(2);
    script.extend([Write(RXFTLR, 1), ARMED, SILENT, Read(RXFLR, 0), Read(RISR, 1 << 3)]);
    script.push(DESELECT);
    script.extend(RESET);
    hold(&script, |steps, _| {
        let mut message = [Transfer::write(&[0; 8])];
        steps.begin(&mut message);
        let Poll::Ready(Err(unfinished)) = steps.interrupt(&mut message) else { panic!("goes on") };
        assert_eq!(unfinished.error(), Error::Overrun);
    });
}

#[test]
fn what_never_comes_is_a_timeout() {
    let mut script = launched(2);
    script.extend([Write(RXFTLR, 1), ARMED, SILENT, Read(RXFLR, 0), Read(RISR, 0), Read(RXFLR, 0)]);
    // Not late yet; then late.
    script.extend([ARMED, SILENT, Read(RXFLR, 0), Read(RISR, 0), Read(RXFLR, 0), DESELECT]);
    script.extend(RESET);
    hold(&script, |steps, now| {
        let mut message = [Transfer::write(&[0; 8])];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        now.set(now.get() + 3 * 8_000);
        let Poll::Ready(Err(unfinished)) = steps.interrupt(&mut message) else { panic!("goes on") };
        // 60 frames of 32 clocks at 20 MHz, twice, and a millisecond.
        assert_eq!(unfinished.error(), Error::Timeout { timeout_us: 1_192 });
    });
}

#[test]
fn a_caller_sleeps_between_two_steps() {
    let mut script = launched(2);
    let sleep = [Write(BELL, 1), ARMED, Write(BELL + 4, 1_193)];
    script.push(Write(RXFTLR, 1));
    script.extend(sleep);
    script.extend([SILENT, Read(RXFLR, 2), Read(DR, 0), Read(DR, 0), Read(SR, IDLE), DESELECT]);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let gpio = Rp1Gpio::new(blocks.at(GPIO));
    let dw_ssi = DwSsi::new(blocks.at(0), gpio, Clock::new(&now), eager());
    let bus = Bus::new(dw_ssi.with_interrupt(Bell(blocks.at(BELL))));
    let device = bus.device(&SETTINGS).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[0; 8])]), Ok(8));
    blocks.end();
}

#[test]
fn a_message_that_would_wait_runs_without_an_interrupt() {
    let dw_ssi = DwSsi::new(Looped::default(), NoPins, Ticker::default(), eager());
    testing::runs_without_interrupt(dw_ssi, &SETTINGS.with_mode(Mode::LOOP));
}

#[test]
fn what_waits_comes_back_whatever_its_length() {
    for wide in [true, false] {
        let looped = Looped { wide, ..Looped::default() };
        let mut dw_ssi = DwSsi::new(looped, NoPins, Ticker::default(), eager());
        let mut steps = Steps::new(&mut dw_ssi, &SETTINGS.with_mode(Mode::LOOP));
        for len in (1..40).chain([255, 256, 257, 1_023]) {
            steps.loop_back(len, wide, |_| {});
        }
    }
}

#[test]
fn who_dies_asleep_leaves_a_block_at_rest() {
    let mut script = launched(16);
    script.extend([Write(RXFTLR, 15), ARMED, SILENT]);
    script.extend(CS_OUT);
    script.extend(RESET);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let gpio = Rp1Gpio::new(blocks.at(GPIO));
    let dw_ssi = DwSsi::new(blocks.at(0), gpio, Clock::new(&now), eager());
    testing::die_asleep(dw_ssi.with_interrupt(Fatal), &SETTINGS);
    blocks.end();
}
