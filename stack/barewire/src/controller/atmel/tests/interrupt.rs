//! Messages that wait by interrupt: the accesses and their order, and the state afterwards.

use core::cell::Cell;
use core::task::Poll;
use std::boxed::Box;

use super::piped::Piped;
use super::*;
use crate::controller::testing::{Bell, Fatal, Steps};

type Clock<'c> = testing::Clock<'c, TIMER_HZ>;

const BELL: u32 = 0x2000;

/// A limit at which every transfer waits by interrupt.
fn eager(pipe: Pipe) -> AtmelConfig {
    AtmelConfig { poll_limit_ns: 0, pipe, ..config(PIN_13) }
}

const SILENT: Access = Write(0x18, 0x209);
const ARMED: Access = Write(0x14, 0x009);
const ARMED_FOR_THE_END: Access = Write(0x14, 0x200);

/// The driver brought up and six bytes started: two of the three words.
fn begun() -> Vec<Access> {
    let mut script = brought_up();
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x038a)]);
    script.extend([Write(0x0c, 0), FREE, Write(0x0c, 0)]);
    script
}

/// Starts a read of six bytes on a driver whose accesses must equal `script`; `drive` makes the
/// further calls.
fn hold_read(
    script: &[Access],
    drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &mut [Transfer<'_>], &Cell<u64>),
) -> [u8; 6] {
    let mut rx = [0; 6];
    testing::hold_steps(
        script,
        &FAST,
        |blocks, now| {
            let gpio = AtmelPio::new(blocks.at(PIO));
            let config = eager(Pipe::WaitDataRead);
            Box::new(Atmel::new(blocks.at(0), gpio, Clock::new(now), config))
        },
        |steps, now| {
            let mut message = [Transfer::read(&mut rx)];
            steps.begin(&mut message);
            drive(steps, &mut message, now);
        },
    );
    rx
}

#[test]
fn three_words_are_three_interrupts_the_last_of_them_at_the_end() {
    let mut script = begun();
    script.push(ARMED);
    script.extend([SILENT, FULL, Read(0x08, 0x0102), NOTHING_YET, Write(0x0c, 0)]);
    script.push(ARMED);
    script.extend([SILENT, FULL, Read(0x08, 0x0304), FREE]);
    script.push(ARMED_FOR_THE_END);
    script.extend([SILENT, OVER, Read(0x08, 0x0506), RISE]);
    let rx = hold_read(&script, |steps, message, _| {
        for _ in 0..2 {
            assert_eq!(steps.interrupt(message), Poll::Pending);
        }
        assert_eq!(steps.interrupt(message), Poll::Ready(Ok(6)));
    });
    assert_eq!(rx, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn what_does_not_come_in_time_is_given_up_deselected_and_reset() {
    let mut script = begun();
    script.extend([ARMED, SILENT, NOTHING_YET, NOTHING_YET]);
    script.extend([ARMED, SILENT, NOTHING_YET, NOTHING_YET, RISE]);
    script.extend(RESET);
    hold_read(&script, |steps, message, now| {
        assert_eq!(steps.interrupt(message), Poll::Pending, "not yet");
        now.set(8_100);
        // Twice two words of 364 ns, and 1 ms.
        let unfinished = Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 1_002 });
        assert_eq!(steps.interrupt(message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn a_handler_that_comes_late_still_sees_that_the_block_was_in_time() {
    let mut script = begun();
    script.extend([SILENT, NOTHING_YET, FULL, Read(0x08, 1), NOTHING_YET, Write(0x0c, 0)]);
    hold_read(&script, |steps, message, now| {
        now.set(8_100);
        assert_eq!(steps.resume(message), Poll::Pending);
    });
}

#[test]
fn a_word_lost_ends_the_message_at_once() {
    let mut script = begun();
    // OVRES with RDRF: RDR holds the second word; the first is lost.
    script.extend([ARMED, SILENT, Read(0x10, 0x1_000b), RISE]);
    script.extend(RESET);
    hold_read(&script, |steps, message, _| {
        let unfinished = Unfinished::stopped(0, Stopped::Overrun);
        assert_eq!(steps.interrupt(message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn an_abandoned_message_is_silenced_deselected_and_reset() {
    let mut script = begun();
    script.extend([ARMED, SILENT]);
    script.extend(PIN_OUT);
    script.extend(RESET);
    // The next message configures everything again.
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x038a)]);
    script.extend([Write(0x0c, 0), FREE, Write(0x0c, 0)]);
    hold_read(&script, |steps, message, _| {
        steps.driver.arm();
        steps.driver.reclaim();
        assert_eq!(steps.start(message), Poll::Pending);
    });
}

#[test]
fn a_caller_who_blocks_lets_it_come_arms_sleeps_and_looks() {
    let mut script = brought_up();
    script.extend([Write(0x04, 0x000e_0031), FALL, Write(0x30, 0x038a), Write(0x0c, 0)]);
    // Twice two words of 364 ns, 1 ms, and one for what was rounded off.
    let sleep = [Write(BELL, 1), ARMED_FOR_THE_END, Write(BELL + 4, 1_003)];
    script.extend(sleep);
    // Woken by an interrupt of another block.
    script.extend([SILENT, NOTHING_YET, NOTHING_YET]);
    script.extend(sleep);
    script.extend([SILENT, OVER, Read(0x08, 0x0708), RISE]);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let gpio = AtmelPio::new(blocks.at(PIO));
    let atmel = Atmel::new(blocks.at(0), gpio, Clock::new(&now), eager(Pipe::WaitDataRead));
    let bus = Bus::new(atmel.with_interrupt(Bell(blocks.at(BELL))));
    let mut rx = [0; 2];
    let device = bus.device(&FAST).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::read(&mut rx)]), Ok(2));
    assert_eq!(rx, [7, 8]);
    blocks.end();
}

#[test]
fn the_limit_counts_wire_time_word_delays_and_own_speeds() {
    let config = AtmelConfig { poll_limit_ns: 100_000, ..config(PIN_13) };
    let block = Atmel::new(Piped::new(1), NoPins, Ticker::default(), config);
    let (program, _) = block.configure(&FAST).expect("opens");
    assert_eq!(program.poll_bytes_max, 549, "8 clocks of 22.7 ns a byte");
    let (apart, _) = block.configure(&Settings { word_delay_ns: 600, ..FAST }).expect("opens");
    assert_eq!(apart.poll_bytes_max, 109, "and three steps of 242.4 ns");
    let bytes = [0; 551];
    let mut message = [
        Transfer::write(&bytes[..549]),
        Transfer::write(&bytes[..550]),
        Transfer::write(&bytes[..275]).with_speed_hz(22_000_000),
        Transfer::write(&bytes[..274]).with_speed_hz(22_000_000),
        Transfer::write(&bytes[..110]).with_word_delay_ns(600),
        Transfer::write(&[]),
    ];
    block.plan(&program, &mut message).expect("a good message");
    let waits = message.each_ref().map(|transfer| transfer.plan.by_interrupt());
    assert_eq!(waits, [false, true, true, false, true, false]);
    let always = AtmelConfig { poll_limit_ns: ALWAYS_POLL, ..config };
    let (program, _) = always.configure(&FAST, TIMER_HZ).expect("opens");
    assert_eq!(program.poll_bytes_max, usize::MAX);
}

#[test]
fn every_length_loops_back_by_interrupt() {
    for pipe in [Pipe::WaitDataRead, Pipe::OneWord] {
        for (bits, word_delay_ns) in [(8, 0), (16, 0), (8, 300), (8, 70_000), (16, 300)] {
            let mut block = Atmel::new(Piped::new(1), NoPins, Ticker::default(), eager(pipe));
            let settings = Settings { word_delay_ns, ..FAST.with_bits_per_word(bits) };
            let mut steps = Steps::new(&mut block, &settings);
            for len in [0, 1, 2, 3, 8, 17, 64] {
                let len = if bits == 16 { 2 * len } else { len };
                steps.loop_back(len, (pipe, settings), |_| ());
            }
            assert_eq!(block.release().0.overwritten, 0);
        }
    }
}

#[test]
fn a_handler_too_late_for_two_words_loses_one_and_says_so() {
    let mut block = Atmel::new(Piped::new(1), NoPins, Ticker::default(), eager(Pipe::TwoWords));
    block.regs.deaf_from = Some(3);
    let mut steps = Steps::new(&mut block, &FAST);
    let mut rx = [0; 32];
    for expected in [Err(Unfinished::stopped(0, Stopped::Overrun)), Ok(32)] {
        let polled = steps.run(&mut [Transfer::read(&mut rx)], |_| ());
        assert_eq!(polled, Poll::Ready(expected));
    }
    assert_eq!(block.release().0.resets, 4, "twice at start, twice after the error");
}

#[test]
fn without_somebody_to_wake_the_caller_a_message_is_polled() {
    let block = Atmel::new(Piped::new(1), NoPins, Ticker::default(), eager(Pipe::WaitDataRead));
    testing::runs_without_interrupt(block, &FAST);
}

#[test]
fn a_caller_that_dies_asleep_leaves_an_idle_block() {
    let block = Atmel::new(Piped::new(1), NoPins, Ticker::default(), eager(Pipe::WaitDataRead));
    let block = testing::die_asleep(block.with_interrupt(Fatal), &FAST).release().0;
    // The step that panicked resets the block, and reclaiming it may reset it again.
    assert!(block.resets >= 4, "{}", block.resets);
}
