//! Messages that wait by interrupt: the accesses and their order, and the state afterwards.

use core::cell::Cell;
use core::task::Poll;
use std::boxed::Box;

use super::*;
use crate::controller::testing::{Bell, Fatal, Steps};

type Clock<'c> = testing::Clock<'c, 8_000_000>;

const BELL: u32 = 0x2000;

/// A pin, and a limit at which every transfer waits by interrupt.
fn eager() -> Pl022Config {
    Pl022Config { poll_limit_ns: 0, ..config(PIN_3) }
}

/// Four words, or a lost one.
const ARMED: Access = Write(IMSC, 5);
const SILENT: Access = Write(IMSC, 0);
const FOUR: Access = Read(RIS, 0x0c);
const FEWER: Access = Read(RIS, 0x08);
/// 8 frames of 10 clocks and 2 at 20 MHz, twice, and a millisecond.
const TIMEOUT_US: u32 = 1_009;
const TIMEOUT_TICKS: u64 = 3 * 8_000;

/// The driver brought up, its first message selected, and `words` sent.
fn launched(words: usize) -> Vec<Access> {
    let mut script = on_pin(&configured(0x07));
    script.push(SELECT);
    script.extend(vec![Write(DR, 0); words]);
    script
}

fn read(words: usize) -> Vec<Access> {
    vec![Read(DR, 7); words]
}

/// Runs `drive` on a driver whose accesses must equal `script`.
fn hold(
    script: &[Access],
    config: Pl022Config,
    drive: impl FnOnce(&mut Steps<'_, dyn Controller + '_>, &Cell<u64>),
) {
    testing::hold_steps(
        script,
        &SETTINGS,
        |blocks, now| {
            let gpio = Pl061::new(blocks.at(GPIO));
            Box::new(Pl022::new(blocks.at(0), gpio, Clock::new(now), config))
        },
        drive,
    );
}

#[test]
fn words_are_read_by_fours_and_the_last_interrupt_is_the_last_words() {
    let mut script = launched(8);
    script.extend([ARMED, SILENT, FOUR]);
    script.extend(read(4));
    // Fewer than four more. Four are sent, and eight are in flight.
    script.push(FEWER);
    script.extend(vec![Write(DR, 0); 4]);
    script.extend([ARMED, SILENT, FOUR]);
    // Served late: eight had come and the clock had stopped. Of six still to come, two are read.
    script.extend(read(4));
    script.push(FOUR);
    script.extend(read(2));
    script.extend(vec![Write(DR, 0); 2]);
    script.extend([ARMED, SILENT, FOUR]);
    script.extend(read(4));
    script.extend([Read(SR, BUSY), Read(SR, IDLE), DESELECT]);
    hold(&script, eager(), |steps, _| {
        let mut rx = [0; 14];
        let mut message = [Transfer::read(&mut rx)];
        steps.begin(&mut message);
        for _ in 0..2 {
            assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        }
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(14)));
        assert_eq!(rx, [7; 14]);
    });
}

#[test]
fn so_many_are_read_that_four_are_left() {
    let mut script = launched(6);
    script.extend([ARMED, SILENT, FOUR]);
    script.extend(read(2));
    script.extend([FEWER, ARMED, SILENT, FOUR]);
    script.extend(read(4));
    script.extend([Read(SR, BUSY), Read(SR, IDLE), DESELECT]);
    hold(&script, eager(), |steps, _| {
        let mut message = [Transfer::write(&[0; 6])];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(6)));
    });
}

#[test]
fn a_caller_who_blocks_lets_it_come_arms_sleeps_and_looks() {
    let sleep = [Write(BELL, 1), ARMED, Write(BELL + 4, TIMEOUT_US + 1)];
    let mut script = launched(4);
    script.extend(sleep);
    // Woken by an interrupt of another block: nothing came, nothing was lost, still nothing came.
    script.extend([SILENT, FEWER, FEWER, FEWER]);
    script.extend(sleep);
    script.extend([SILENT, FOUR]);
    script.extend(read(4));
    script.extend([Read(SR, IDLE), DESELECT]);
    let (blocks, now) = (Blocks::on(&script), Cell::new(0));
    let pl022 = Pl022::new(blocks.at(0), Pl061::new(blocks.at(GPIO)), Clock::new(&now), eager());
    let bus = Bus::new(pl022.with_interrupt(Bell(blocks.at(BELL))));
    let device = bus.device(&SETTINGS).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[0; 4])]), Ok(4));
    blocks.end();
}

/// The accesses after an error: deselect the chip first, then silence, empty and disable the block.
fn given_up() -> Vec<Access> {
    let mut script = vec![DESELECT, Write(IMSC, 0), Write(DMACR, 0), Read(SR, BUSY_RNE)];
    script.extend([Read(DR, 7), Read(CR0, 0x0107), Read(CPSR, 2), Read(SR, BUSY)]);
    script.extend([Read(SR, IDLE_RNE), Read(DR, 7), Read(SR, IDLE)]);
    script.extend([Read(CR1, 2), Write(CR1, 0), Write(CR1, 0), Write(ICR, 3)]);
    script
}

#[test]
fn what_does_not_come_in_time_is_given_up_deselected_and_let_out() {
    let mut script = launched(8);
    script.extend([ARMED, SILENT, FEWER, FEWER, FEWER]);
    script.extend([ARMED, SILENT, FEWER, FEWER, FEWER]);
    script.extend(given_up());
    // The next message configures everything again.
    script.extend(configured(0x07));
    script.push(SELECT);
    script.extend(vec![Write(DR, 0); 4]);
    hold(&script, eager(), |steps, now| {
        let mut message = [Transfer::write(&[0; 9])];
        steps.begin(&mut message);
        assert_eq!(steps.interrupt(&mut message), Poll::Pending, "not yet");
        now.set(TIMEOUT_TICKS);
        let stopped = Stopped::TimedOut { timeout_us: TIMEOUT_US };
        let unfinished = Unfinished::stopped(0, stopped);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Err(unfinished)));
        let mut message = [Transfer::write(&[0; 4])];
        steps.begin(&mut message);
    });
}

#[test]
fn a_handler_that_comes_late_still_sees_that_the_block_was_in_time() {
    let mut script = launched(4);
    script.extend([ARMED, SILENT, FEWER, FEWER, FOUR]);
    script.extend(read(4));
    script.extend([Read(SR, IDLE), DESELECT]);
    hold(&script, eager(), |steps, now| {
        let mut message = [Transfer::write(&[0; 4])];
        steps.begin(&mut message);
        now.set(TIMEOUT_TICKS);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Ok(4)));
    });
}

#[test]
fn an_overrun_is_told_at_once_though_words_are_there() {
    let mut script = launched(8);
    script.extend([ARMED, SILENT, Read(RIS, 0x0d), Read(RIS, 0x0d)]);
    script.extend(given_up());
    hold(&script, eager(), |steps, _| {
        let mut message = [Transfer::write(&[0; 9])];
        steps.begin(&mut message);
        let unfinished = Unfinished::stopped(0, Stopped::Overrun);
        assert_eq!(steps.interrupt(&mut message), Poll::Ready(Err(unfinished)));
    });
}

#[test]
fn an_abandoned_message_is_silenced_deselected_and_let_out() {
    let mut script = launched(8);
    script.extend([ARMED, SILENT]);
    script.extend(CS_OUT);
    script.extend(&given_up()[1..]);
    hold(&script, eager(), |steps, _| {
        let mut message = [Transfer::write(&[0; 9])];
        steps.begin(&mut message);
        steps.driver.arm();
        steps.driver.reclaim();
    });
}

#[test]
fn the_limit_counts_wire_time_word_delays_and_own_speeds() {
    let config = Pl022Config { poll_limit_ns: 100_000, ..config(PIN_3) };
    let pl022 = Pl022::new(Looped::default(), NoPins, Ticker::default(), config);
    let (program, _) = pl022.configure(&SETTINGS).expect("opens");
    assert_eq!(program.poll_bytes_max, 200, "10 clocks of 50 ns a byte");
    let (dense, _) = pl022.configure(&SETTINGS.with_mode(MODE_3)).expect("opens");
    assert_eq!(dense.poll_bytes_max, 250, "8 clocks of 50 ns a byte");
    let spaced = Settings { word_delay_ns: 600, ..SETTINGS };
    let (apart, _) = pl022.configure(&spaced).expect("opens");
    assert_eq!(apart.poll_bytes_max, 88, "500 ns of clocks and 5 ticks of 125 ns a byte");
    let bytes = [0; 201];
    let mut message = [
        Transfer::write(&bytes[..200]),
        Transfer::write(&bytes),
        Transfer::write(&bytes[..100]).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..101]).with_speed_hz(10_000_000),
        Transfer::write(&bytes[..89]).with_word_delay_ns(600),
        Transfer::write(&[]),
    ];
    pl022.plan(&program, &mut message).expect("a good message");
    let waits = message.each_ref().map(|transfer| transfer.plan.by_interrupt());
    assert_eq!(waits, [false, true, false, true, true, false]);
}

#[test]
fn short_transfers_of_a_long_message_are_polled() {
    let mut script = launched(0);
    script.extend([Write(DR, 3), Write(DR, 1), Read(SR, IDLE_RNE), Read(DR, 0)]);
    script.extend([Read(SR, IDLE_RNE), Read(DR, 0)]);
    script.extend(vec![Write(DR, 0); 8]);
    let config = Pl022Config { poll_limit_ns: 20_000, ..eager() };
    hold(&script, config, |steps, _| {
        let mut rx = [0; 64];
        steps.begin(&mut [Transfer::write(&[3, 1]), Transfer::read(&mut rx)]);
    });
}

/// Sends frames until the block interrupts. Returns whether its timeout was the cause.
fn interrupts(block: &mut Looped) -> bool {
    let mut steps = 0;
    while block.ris() & block.imsc == 0 {
        if !block.step() {
            block.idle();
        }
        steps += 1;
        assert!(steps < 20, "it never interrupts: {:#x} of {:#x}", block.imsc, block.ris());
    }
    block.ris() & block.imsc == 2
}

#[test]
fn every_length_loops_back_by_interrupt() {
    let lengths: &[usize] =
        if cfg!(miri) { &[0, 1, 9, 22] } else { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 256, 601] };
    for (number, bits, word_delay_ns) in [(0, 8, 0), (1, 8, 0), (3, 16, 0), (1, 8, 250)] {
        let block = Looped { pace: Pace::Told, ..Looped::default() };
        let mut pl022 = Pl022::new(block, NoPins, Ticker::default(), eager());
        let mode = Mode::from_number(number).expect("a mode");
        let settings =
            Settings { word_delay_ns, ..SETTINGS.with_mode(mode).with_bits_per_word(bits) };
        let mut steps = Steps::new(&mut pl022, &settings);
        for len in lengths.iter().map(|len| len.next_multiple_of(usize::from(bits / 8))) {
            let before = steps.driver.regs.frames;
            let mut timeouts = 0;
            steps.loop_back(len, settings, |pl022| {
                timeouts += usize::from(interrupts(&mut pl022.regs));
            });
            let frames = steps.driver.regs.frames - before;
            assert!(frames < 4 || word_delay_ns > 0 || timeouts == 0, "{len}: RXIM is faster");
        }
        let block = pl022.release().0;
        assert_eq!(
            (block.offences, block.in_flight_max),
            (0, if word_delay_ns > 0 { 1 } else { 8 })
        );
    }
}

/// An emulated block without a timeout interrupt has done its work by the deadline.
#[test]
fn a_tail_that_nobody_announces_is_found_at_the_deadline() {
    struct Sleeper<'c>(&'c Cell<u64>);
    impl Interrupt for Sleeper<'_> {
        fn enable(&mut self) {}
        fn wait(&mut self, timeout_us: u32) -> bool {
            self.0.set(self.0.get() + u64::from(timeout_us) * 8);
            false
        }
    }
    let now = Cell::new(0);
    let pl022 = Pl022::new(Looped::default(), NoPins, Clock::new(&now), eager());
    let bus = Bus::new(pl022.with_interrupt(Sleeper(&now)));
    let device = bus.device(&SETTINGS).expect("opens");
    for len in [1, 3, 4, 30] {
        let mut bytes = vec![9; len];
        assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(len));
    }
}

#[test]
fn without_somebody_to_wake_the_caller_a_message_is_polled() {
    let pl022 = Pl022::new(Looped::default(), NoPins, Ticker::default(), eager());
    testing::runs_without_interrupt(pl022, &SETTINGS);
}

#[test]
fn a_caller_that_dies_asleep_leaves_an_idle_block() {
    let block = Looped { pace: Pace::PerLook, ..Looped::default() };
    let pl022 = Pl022::new(block, NoPins, Ticker::default(), eager()).with_interrupt(Fatal);
    let block = testing::die_asleep(pl022, &SETTINGS).release().0;
    assert_eq!((block.tx.len(), block.rx.len(), block.imsc), (0, 0, 0));
}
