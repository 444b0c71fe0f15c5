//! Messages that wait by interrupt: the accesses and their order, and the state afterwards.

use core::cell::Cell;
use core::task::Poll;
use std::boxed::Box;

use super::super::regs::TC;
use super::*;
use crate::controller::testing::{Bell, Fatal, Steps};

const SETTINGS: Settings = Settings::new(0, 20_000_000);

type Clock<'c> = testing::Clock<'c, 8_000_000>;

const BELL: u32 = 0x2000;

/// A pin, and a limit at which every transfer waits by interrupt.
fn eager() -> EcspiConfig {
    EcspiConfig { poll_limit_ns: 0, ..config(PIN_9) }
}

const SELECT: Access = Write(GPIO_DR, 0);
const DESELECT: Access = Write(GPIO_DR, 0x200);
const CS_OUT: [Access; 4] =
    [Read(GPIO_DR, 0), DESELECT, Read(GPIO_GDIR, 0), Write(GPIO_GDIR, 0x200)];
/// RDR and RF; once all is sent, TC too.
const ARMED: Access = Write(0x10, 0x30);
const ARMED_FOR_THE_END: Access = Write(0x10, 0xb0);
const SILENT: Access = Write(0x10, 0);
const TIMEOUT_TICKS: u64 = 2 * 8_000 + 2 * 2048 * 8 / 20;

/// The driver brought up, and its first message selected.
fn selected() -> Vec<Access> {
    let mut script = Vec::from(CS_OUT);
    script.extend(RESET);
    script.extend(configured(0x30f1));
    script.push(SELECT);
    script
}

/// A burst of `bytes` started: TC cleared, 4 words before XCH, as many as fit after it.
fn launched(bytes: u32) -> Vec<Access> {
    let conreg = (bytes * 8 - 1) << 20 | 0x30f1;
    let words = bytes.div_ceil(4).min(64) as usize;
    let mut script = vec![Write(0x18, 0x80), Write(0x08, conreg)];
    script.extend(vec![Write(0x04, 0); words.min(4)]);
    script.push(Write(0x08, conreg | 4));
    script.extend(vec![Write(0x04, 0); words.saturating_sub(4)]);
    script
}

/// CONREG of a running burst of `bytes`, as read after each refill.
fn runs(bytes: u32) -> Access {
    Read(0x08, (bytes * 8 - 1) << 20 | 0x30f5)
}

fn ended(bytes: u32) -> Access {
    Read(0x08, (bytes * 8 - 1) << 20 | 0x30f1)
}

/// RDR set, `words` read, and `more` sent.
fn served(words: u32, more: usize) -> Vec<Access> {
    let mut script = vec![SILENT, Read(0x18, RDR | RR)];
    script.extend(vec![Read(0x00, 0x0102_0304); words as usize]);
    script.extend(vec![Write(0x04, 0); more]);
    script
}

const fn threshold(words: u32) -> Access {
    Write(0x14, (words - 1) << 16)
}

/// Runs `drive` on a driver whose accesses must equal `script`.
fn hold(
    script: &[Access],
    config: EcspiConfig,
    drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &Cell<u64>),
) {
    testing::hold_steps(
        script,
        &SETTINGS,
        |blocks, now| {
            let gpio = ImxGpio::new(blocks.at(GPIO), Ownership::Exclusive);
            Box::new(Ecspi::new(blocks.at(0), gpio, Clock::new(now), config))
        },
        drive,
    );
}

#[test]
fn six_hundred_bytes_are_two_bursts_and_four_interrupts() {
    let mut script = selected();
    script.extend(launched(512));
    script.extend([threshold(32), runs(512), ARMED]);
    script.extend(served(32, 32));
    script.extend([runs(512), ARMED]);
    script.extend(served(32, 32));
    // All sent: the threshold is the number of words in flight.
    script.extend([threshold(64), runs(512), ARMED_FOR_THE_END]);
    script.extend(served(64, 0));
    // The last word was received, but the last clock is not over.
    script.extend([runs(512), ended(512)]);
    script.extend(launched(88));
    script.extend([threshold(22), runs(88), ARMED_FOR_THE_END]);
    script.extend(served(22, 0));
    script.extend([ended(88), DESELECT]);
    hold(&script, eager(), |steps, _| {
        let mut rx = vec![0; 600];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        for _ in 0..3 {
            assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        }
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(600)));
        assert!(rx.chunks(4).all(|word| word == [1, 2, 3, 4]));
    });
}

#[test]
fn without_rdr_tc_ends_a_burst_by_looks_and_xch_is_set_again() {
    // As QEMU's model does: a burst stops without words, RDR is never set, TC is set at each stop.
    let word = Read(0x00, 0x0102_0304);
    let mut script = selected();
    script.extend(launched(24));
    script.extend([threshold(6), ended(24), Read(0x18, TC | RR), Write(0x08, 0x0bf0_30f5)]);
    script.extend([ARMED_FOR_THE_END, SILENT]);
    // TC is early: four of six have come.
    script.extend([Read(0x18, TC | TE | RR), Write(0x18, TC)]);
    script.extend([word, Read(0x18, TE | RR), word, Read(0x18, TE | RR)]);
    script.extend([word, Read(0x18, TE | RR), word, Read(0x18, TE), threshold(2)]);
    script.extend([ARMED_FOR_THE_END, SILENT]);
    script.extend([Read(0x18, TC | TE | RR), Write(0x18, TC)]);
    script.extend([word, Read(0x18, TE | RR), word, Read(0x18, TE), ended(24), DESELECT]);
    hold(&script, eager(), |steps, _| {
        let mut rx = vec![0; 24];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(24)));
        assert!(rx.chunks(4).all(|word| word == [1, 2, 3, 4]));
    });
}

#[test]
fn a_caller_who_blocks_lets_it_come_arms_sleeps_and_looks() {
    // 8 bytes at 20 MHz: twice 3.2 us and 1 ms, and one for what was rounded off.
    let sleep = [Write(BELL, 1), ARMED_FOR_THE_END, Write(BELL + 4, 1_008)];
    let mut script = selected();
    script.extend(launched(8));
    script.push(threshold(2));
    script.extend(sleep);
    // Woken by an interrupt of another block.
    script.extend([SILENT, Read(0x18, 0), Read(0x18, RR)]);
    script.extend(sleep);
    script.extend(served(2, 0));
    script.extend([Read(0x08, 0x03f0_30f1), DESELECT]);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let gpio = ImxGpio::new(blocks.at(GPIO), Ownership::Exclusive);
    let ecspi = Ecspi::new(blocks.at(0), gpio, Clock::new(&now), eager())
        .with_interrupt(Bell(blocks.at(BELL)));
    let bus = Bus::new(ecspi);
    let mut rx = [0; 8];
    let device = bus.device(&SETTINGS).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::read(&mut rx)]), Ok(8));
    assert_eq!(rx, [1, 2, 3, 4, 1, 2, 3, 4]);
    blocks.end();
}

#[test]
fn what_does_not_come_in_time_is_given_up_deselected_and_reset() {
    let mut script = selected();
    script.extend(launched(512));
    script.extend([threshold(32), runs(512), ARMED, SILENT, Read(0x18, 0), Read(0x18, 0)]);
    script.extend([ARMED, SILENT, Read(0x18, 0), Read(0x18, TC | TE | RR), DESELECT]);
    script.extend(RESET);
    hold(&script, eager(), |steps, now| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending, "not yet");
        now.set(TIMEOUT_TICKS);
        let unfinished = Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 1_205 });
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn a_handler_that_comes_late_still_sees_that_the_block_was_in_time() {
    let mut script = selected();
    script.extend(launched(8));
    script.extend([threshold(2), ARMED_FOR_THE_END, SILENT, Read(0x18, 0), Read(0x18, RDR | RR)]);
    script.extend([Read(0x00, 7), Read(0x00, 8), Read(0x08, 0x03f0_30f1), DESELECT]);
    hold(&script, eager(), |steps, now| {
        let mut message = [Transfer::write(&[0; 8])];
        steps.begin(&mut message);
        now.set(TIMEOUT_TICKS);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(8)));
    });
}

#[test]
fn an_abandoned_message_is_silenced_deselected_and_reset() {
    let mut script = selected();
    script.extend(launched(512));
    script.extend([threshold(32), runs(512), ARMED, SILENT]);
    script.extend([DESELECT, Read(GPIO_GDIR, 0x200), Write(GPIO_GDIR, 0x200)]);
    script.extend(RESET);
    // The next message configures everything again, and sets the threshold.
    script.extend(configured(0x30f1));
    script.push(SELECT);
    script.extend(launched(128));
    script.extend([threshold(32), runs(128)]);
    hold(&script, eager(), |steps, _| {
        let mut rx = vec![0; 512];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        steps.driver.arm();
        steps.driver.reclaim();
        let mut message = [Transfer::read(&mut rx[..128])];
        steps.begin(&mut message);
    });
}

#[test]
fn short_transfers_of_a_long_message_are_polled() {
    let mut script = selected();
    script.extend([Write(0x08, 0x01f0_30f9), Write(0x04, 0x0301_0203)]);
    script.extend([Read(0x18, 8), Read(0x00, 0)]);
    script.extend(launched(512));
    script.extend([threshold(32), runs(512)]);
    let config = EcspiConfig { poll_limit_ns: 20_000, ..eager() };
    hold(&script, config, |steps, _| {
        let mut rx = vec![0; 512];
        steps.begin(&mut [Transfer::write(&[3, 1, 2, 3]), Transfer::read(&mut rx)]);
    });
}

#[test]
fn the_limit_counts_wire_time_word_delays_and_own_speeds() {
    let config = EcspiConfig { poll_limit_ns: 100_000, ..config(PIN_9) };
    let mut ecspi = Ecspi::new(Looped::default(), NoPins, Ticker::default(), config);
    let (program, _) = ecspi.configure(&SETTINGS).expect("opens");
    assert_eq!(program.poll_bytes_max, 250);
    let spaced = Settings { word_delay_ns: 600, ..SETTINGS };
    let (apart, _) = ecspi.configure(&spaced).expect("opens");
    assert_eq!(apart.poll_bytes_max, 97, "400 ns of clocks and 5 ticks of 125 ns a byte");
    let bytes = [0; 251];
    let mut message = [
        Transfer::write(&bytes[..250]),
        Transfer::write(&bytes),
        Transfer::write(&bytes[..125]).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..126]).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..98]).with_word_delay_ns(600),
        Transfer::write(&[]),
    ];
    ecspi.plan(&program, &mut message).expect("a good message");
    let waits = message.each_ref().map(|transfer| transfer.plan.by_interrupt());
    assert_eq!(waits, [false, true, false, true, true, false]);
    ecspi.reclaim();
    let always = EcspiConfig { poll_limit_ns: ALWAYS_POLL, ..config };
    let (program, _) = always.configure(&SETTINGS, 8_000_000).expect("opens");
    assert_eq!(program.poll_bytes_max, usize::MAX);
}

#[test]
fn every_length_loops_back_by_interrupt() {
    let lengths: &[usize] =
        if cfg!(miri) { &[0, 1, 257, 600] } else { &[0, 1, 4, 5, 255, 256, 257, 512, 513, 600] };
    for (bits, word_delay_ns) in [(8, 0), (16, 0), (32, 0), (8, 250), (32, 250)] {
        let mut ecspi = Ecspi::new(Looped::default(), NoPins, Ticker::default(), eager());
        let settings = Settings { word_delay_ns, ..SETTINGS.with_bits_per_word(bits) };
        let mut steps = Steps::new(&mut ecspi, &settings);
        for len in lengths.iter().map(|len| len.next_multiple_of(usize::from(bits / 8))) {
            steps.loop_back(len, settings, |_| ());
        }
        assert_eq!(ecspi.release().0.overruns, 0);
    }
}

#[test]
fn without_somebody_to_wake_the_caller_a_message_is_polled() {
    let ecspi = Ecspi::new(Looped::default(), NoPins, Ticker::default(), eager());
    testing::runs_without_interrupt(ecspi, &SETTINGS);
}

#[test]
fn a_caller_that_dies_asleep_leaves_an_idle_block() {
    let ecspi =
        Ecspi::new(Looped::default(), NoPins, Ticker::default(), eager()).with_interrupt(Fatal);
    let block = testing::die_asleep(ecspi, &SETTINGS).release().0;
    assert_eq!(block.resets, 3, "at start, after the death, at the end");
}
