//! The judge of trouble: a block that stops, a processor that is late, a caller that dies and a message that is
//! abandoned, each at every place where it can happen. The chip is released, and the next message is whole.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::middleware::Pointer;
use barewire::reg::Registers;
use barewire::spi::{Error, Settings, Transfer};
use barewire_sim::Board;
use barewire_sim::bring_up::any_interrupt;
use barewire_sim::model::echo::Echo;

use crate::blocks::{Block, Claim, Overfill, on_every_block};
use crate::driver::{EACH, Waits, on_bus};

const SETTINGS: Settings = Settings::new(0, 20_000_000);
/// Longer than any message may take.
const LATE_PS: u64 = 20_000_000_000;

fn attach(board: &Board) -> Rc<RefCell<Echo>> {
    let chip = Rc::new(RefCell::new(Echo::default()));
    assert!(board.attach(0, chip.clone()));
    chip
}

/// The next message is whole, and under one select.
fn is_whole(bus: &Bus<dyn Controller + '_>, chip: &RefCell<Echo>, what: &str) {
    let (before, selections) = (chip.borrow().received().len(), chip.borrow().selections());
    let device = bus.device(&SETTINGS).expect("opens");
    for len in [5_u8, 40] {
        let tx: Vec<u8> = (1..=len).collect();
        let mut rx = tx.clone();
        assert_eq!(device.sync(&mut [Transfer::in_place(&mut rx)]), Ok(tx.len()), "{what}");
        assert_eq!(rx[1..], tx[..tx.len() - 1], "{what}: wrong bytes came back");
    }
    assert_eq!(chip.borrow().selections(), selections + 2, "{what}: wrong number of selections");
    let received = chip.borrow().received()[before..].to_vec();
    let sent: Vec<u8> = (1..=5).chain(1..=40).collect();
    assert_eq!(received, sent, "{what}: what the chip heard");
}

fn a_block_that_stops_anywhere_is_given_up_and_runs_again(block: &'static Block) {
    for way in block.ways {
        let polled = [(Waits::Polling, 5), (Waits::Polling, block.longer)];
        let asleep = (!way.polled_only).then_some((Waits::Asleep(0), block.longer));
        for (waits, len) in polled.into_iter().chain(asleep) {
            let mut stops = 0;
            for place in 0.. {
                // All places of short messages, and every third place of longer ones, whose accesses repeat.
                let place = if len > 5 { 3 * place } else { place };
                let what =
                    format!("{}, {waits:?}, {len} bytes, stopped at access {place}", way.name);
                let taped = block.taped(way);
                let chip = attach(&taped.board);
                let stopped = on_bus(way.start, &taped.board, waits, |bus| {
                    let device = bus.device(&SETTINGS).expect("opens");
                    taped.tape.stop_after(place);
                    let mut bytes = vec![7; len];
                    let ran = device.sync(&mut [
                        Transfer::write(&[]).with_cs_change(),
                        Transfer::in_place(&mut bytes),
                    ]);
                    let stopped = taped.tape.go_on();
                    match ran {
                        Ok(ran) => assert_eq!(ran, len, "{what}"),
                        Err(error) => {
                            assert!(stopped, "{what}: {error:?}");
                            let Error::Timeout { timeout_us } = error.error else {
                                panic!("{what}: {error:?}");
                            };
                            assert!(
                                (1_000..2_000).contains(&timeout_us),
                                "{what}: {timeout_us} us"
                            );
                            assert_eq!(
                                (error.transfer_index, error.actual_length),
                                (1, 0),
                                "{what}"
                            );
                            stops += 1;
                        }
                    }
                    if !stopped || block.forgets {
                        is_whole(bus, &chip, &what);
                    }
                    stopped
                });
                if !stopped.0 {
                    break;
                }
                if !block.forgets {
                    // The block has sent the words that the stopped message left. A driver that is
                    // started again finds a working block.
                    on_bus(way.start, &taped.board, Waits::Polling, |bus| {
                        is_whole(bus, &chip, &what)
                    });
                }
            }
            assert!(stops > 0, "{}, {waits:?}, {len} bytes: it never stopped", way.name);
        }
    }
}
on_every_block! { a_block_that_stops_anywhere_is_given_up_and_runs_again }

fn a_processor_that_is_late_anywhere_loses_nothing(block: &'static Block) {
    for way in block.ways.iter().filter(|way| !way.polled_only) {
        for (waits, len) in EACH.iter().flat_map(|&waits| [(waits, 5), (waits, block.longer)]) {
            for place in 0.. {
                let place = if len > 5 { 3 * place } else { place };
                let what = format!("{}, {waits:?}, {len} bytes, late at access {place}", way.name);
                let board = block.board(way, 0);
                let chip = attach(&board);
                let (ended, _) = on_bus(way.start, &board, waits, |bus| {
                    let device = bus.device(&SETTINGS).expect("opens");
                    board.stall_after(place, LATE_PS);
                    let tx: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                    let mut rx = tx.clone();
                    let ran = device.sync(&mut [Transfer::in_place(&mut rx)]);
                    let ended = board.is_stall_to_come();
                    assert_eq!(ran, Ok(len), "{what}");
                    assert_eq!(rx[1..], tx[..len - 1], "{what}");
                    is_whole(bus, &chip, &what);
                    ended
                });
                assert_eq!(board.harms_total(), 0, "{what}: {:#?}", board.violations());
                if ended {
                    break;
                }
            }
        }
    }
}
on_every_block! { a_processor_that_is_late_anywhere_loses_nothing }

fn a_caller_that_dies_asleep_anywhere_leaves_an_idle_block(block: &'static Block) {
    for place in 0.. {
        let what = format!("killed in sleep {place}");
        let taped = block.taped(block.usual());
        let chip = attach(&taped.board);
        let bus = Bus::new(any_interrupt(&taped.board, 0, taped.interrupt()));
        let bus: &Bus<dyn Controller + '_> = &bus;
        let device = bus.device(&SETTINGS).expect("opens");
        let bytes = vec![0; block.longer];
        taped.tape.die_after(place);
        let ran = catch_unwind(AssertUnwindSafe(|| device.sync(&mut [Transfer::write(&bytes)])));
        assert_eq!(ran.is_ok(), taped.tape.live_on(), "{what}");
        is_whole(bus, &chip, &what);
        if ran.is_ok() {
            assert!(place > 0, "it never slept");
            return;
        }
    }
}
on_every_block! { a_caller_that_dies_asleep_anywhere_leaves_an_idle_block }

fn a_message_abandoned_anywhere_leaves_an_idle_block(block: &'static Block) {
    for way in block.ways.iter().filter(|way| !way.polled_only) {
        for place in 0.. {
            let what = format!("{}, abandoned after {place} interrupts", way.name);
            let board = block.board(way, 0);
            let chip = attach(&board);
            let mut driver = (way.start)(&board, Some(0));
            let (preset, _) = driver.configure(&SETTINGS).expect("opens");
            let mut rx = vec![0; block.longer];
            let mut message = [Transfer::read(&mut rx)];
            driver.plan(&preset, &mut message).expect("a good message");
            let mut polled = driver.start(&preset, &mut message);
            for _ in 0..place {
                if polled.is_ready() {
                    break;
                }
                driver.arm();
                assert!(board.wait_interrupt(Some(LATE_PS)), "{what}: it never interrupts");
                polled = driver.resume(&preset, &mut message);
            }
            let ended = polled.is_ready();
            if let Poll::Ready(ran) = polled {
                assert_eq!(ran, Ok(block.longer), "{what}");
            }
            driver.arm();
            driver.reclaim();
            assert!(!board.wait_interrupt(Some(1_000_000)), "{what}: it interrupts nobody");
            let bus = Bus::new(Pointer(driver));
            is_whole(&bus, &chip, &what);
            if ended {
                break;
            }
        }
    }
}
on_every_block! { a_message_abandoned_anywhere_leaves_an_idle_block }

/// A bus polls messages that would wait by interrupt if its caller has none to sleep for.
fn a_message_that_would_wait_runs_without_an_interrupt(block: &'static Block) {
    let board = block.board(block.usual(), 0);
    let chip = attach(&board);
    let bus = Bus::new(any_interrupt(&board, 0, barewire::controller::NoInterrupt));
    is_whole(&bus, &chip, block.name);
    assert_eq!(board.violations_total(), 0, "{:#?}", board.violations());
}
on_every_block! { a_message_that_would_wait_runs_without_an_interrupt }

/// An emulated block may lack an interrupt that the driver awaits. It has done its work by the deadline.
fn a_block_that_never_interrupts_is_looked_at_by_the_deadline(block: &'static Block) {
    let taped = block.taped(block.usual());
    let chip = attach(&taped.board);
    taped.tape.mute();
    let bus = Bus::new(any_interrupt(&taped.board, 0, taped.interrupt()));
    is_whole(&bus, &chip, block.name);
    assert_eq!(taped.board.harms_total(), 0, "{:#?}", taped.board.violations());
}
on_every_block! { a_block_that_never_interrupts_is_looked_at_by_the_deadline }

/// A status bit that reports the end before all words were received is not believed.
fn an_end_without_words_is_not_believed(block: &'static Block) {
    let Some((offset, bits, while_clear)) = block.early else { return };
    for waits in [Waits::Polling, Waits::Asleep(0)] {
        let taped = block.taped(block.usual());
        let chip = attach(&taped.board);
        on_bus(block.usual().start, &taped.board, waits, |bus| {
            taped.tape.claim(Claim { offset, bits, while_clear, when_stopped: false });
            is_whole(bus, &chip, block.name);
        });
    }
}
on_every_block! { an_end_without_words_is_not_believed }

/// If no more words arrive, the driver asks the block whether it lost one. The next message is complete.
fn a_lost_word_is_an_overrun(block: &'static Block) {
    let Some((offset, bit)) = block.lost else { return };
    for (waits, len) in [(Waits::Polling, 1), (Waits::Polling, block.longer), (Waits::Asleep(0), 3)]
    {
        let taped = block.taped(block.usual());
        let chip = attach(&taped.board);
        on_bus(block.usual().start, &taped.board, waits, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            device.sync(&mut [Transfer::write(&[1])]).expect("runs");
            taped.tape.claim(Claim { offset, bits: bit, while_clear: 0, when_stopped: true });
            taped.tape.stop_after(0);
            let mut bytes = vec![7; len];
            let mut message = [Transfer::write(&[]), Transfer::in_place(&mut bytes)];
            let error = device.sync(&mut message).expect_err("a word is lost");
            let what = format!("{waits:?}, {len} bytes");
            assert_eq!((error.error, error.transfer_index), (Error::Overrun, 1), "{what}");
            assert!(taped.tape.go_on());
            is_whole(bus, &chip, &what);
        });
    }
}
on_every_block! { a_lost_word_is_an_overrun }

/// Words of another program fill the receive FIFO, against all rules. A message that is longer than the FIFO loses
/// words and fails with an error that says so. The next message is complete.
fn an_overrun_is_told_and_drained(block: &'static Block) {
    let Some(Overfill { words, busy: (offset, bit) }) = block.overfill else { return };
    for waits in [Waits::Polling, Waits::Asleep(0)] {
        let board = block.board(block.usual(), 0);
        let chip = attach(&board);
        on_bus(block.usual().start, &board, waits, |bus| {
            let device = bus.device(&SETTINGS).expect("opens");
            device.sync(&mut [Transfer::write(&[1])]).expect("runs");
            let mut regs = board.controller();
            for _ in 0..2 {
                (0..words).for_each(|_| regs.write(block.data_out, 0xee));
                while regs.read(offset) & bit != 0 {}
            }
            let mut bytes = vec![7; block.longer];
            let error = device.sync(&mut [Transfer::in_place(&mut bytes)]).expect_err("lost some");
            assert_eq!(error.error, Error::Overrun, "{waits:?}");
            is_whole(bus, &chip, "after an overrun");
        });
    }
}
on_every_block! { an_overrun_is_told_and_drained }
