//! Atmel's SPI beside its judges: what a late caller loses, and delays as the wire has them.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::controller::atmel::{PeripheralSelect, Pipe};
use barewire::middleware::Pointer;
use barewire::spi::{Error, Mode, Settings, Transfer};
use barewire_sim::bring_up::{atmel, atmel_with};
use barewire_sim::chip::WireLimits;
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;

use crate::blocks::ATMEL;
use crate::driver::{Waits, on_bus};

#[test]
fn a_late_handler_loses_a_word_only_where_nobody_waits_for_it() {
    for (way, lost) in [(0, false), (2, false), (4, true)] {
        let (way, pipe) = (&ATMEL.ways[way], ATMEL.ways[way].name);
        let board = crate::board("sama5d36");
        board.attach(0, Rc::new(RefCell::new(Echo::default())));
        on_bus(way.start, &board, Waits::ByHandler(0), |bus| {
            // The handler's way to the block is longer than a word of 16 bits at 33 MHz.
            let device = bus.device(&Settings::new(0, 33_000_000)).expect("opens");
            let tx: Vec<u8> = (0..64).collect();
            let mut rx = [0xee; 64];
            let ran = device.sync(&mut [Transfer::exchange(&tx, &mut rx)]);
            if lost {
                assert_eq!(ran.expect_err("a word is lost").error, Error::Overrun);
                // The model noted the word, as it should; the chip saw a whole word and CS after it.
                board.clear_violations();
            } else {
                assert_eq!(ran, Ok(64), "{pipe}");
                assert_eq!((rx[0], &rx[1..]), (0, &tx[..63]));
            }
            // The block works as before, also polled and with slow accesses.
            let slow = bus.device(&Settings::new(0, 600_000)).expect("opens");
            let mut rx = [0xee; 64];
            assert_eq!(slow.sync(&mut [Transfer::exchange(&tx, &mut rx)]), Ok(64), "{pipe}");
            assert_eq!(rx[1..], tx[..63]);
            assert!(board.violations().is_empty(), "{pipe}: {:#?}", board.violations());
        });
    }
}

#[test]
fn a_polling_caller_kept_from_the_block_loses_a_word_only_where_nobody_waits_for_it() {
    for (way, lost) in [(0, false), (2, false), (4, true)] {
        let (way, pipe) = (&ATMEL.ways[way], ATMEL.ways[way].name);
        let board = crate::board("sama5d36");
        board.attach(0, Rc::new(RefCell::new(Echo::default())));
        let bus = Bus::new(Pointer((way.start)(&board, None)));
        let device = bus.device(&Settings::new(0, 33_000_000)).expect("opens");
        let ran = RefCell::new(None);
        let caller = Thread::new("caller", || {
            let mut rx = [0; 512];
            *ran.borrow_mut() = Some(device.sync(&mut [Transfer::read(&mut rx)]));
        });
        // Comes in the middle of the message, and takes the processor for ten words.
        let other = Thread::new("other", || {
            board.engine().sleep_until(board.engine().now_ps() + 40_000_000);
            board.engine().spend_ps(5_000_000);
        });
        board.engine().run(vec![caller.on(0, 1), other.on(0, 9)]);
        let ran = ran.into_inner().expect("has run").map_err(|error| error.error);
        assert_eq!(ran, if lost { Err(Error::Overrun) } else { Ok(512) }, "{pipe}");
        board.clear_violations();
        let mut rx = [0; 16];
        assert_eq!(device.sync(&mut [Transfer::read(&mut rx)]), Ok(16), "{pipe}");
        assert!(board.violations().is_empty(), "{pipe}: {:#?}", board.violations());
    }
}

/// Two chips, one on each kind of line. Their limits are exactly those of their devices' settings.
#[test]
fn two_chips_in_turn_have_their_times_and_modes() {
    for select in [PeripheralSelect::Fixed, PeripheralSelect::Variable] {
        let board = crate::board("sama5d36");
        let bus = Bus::new(atmel_with(&board, Pipe::WaitDataRead, select));
        for (times, mode) in (0..16_u8).map(|n| (usize::from(n / 4), n % 4)) {
            let asked =
                [(0, 0, 0, 0), (700, 300, 1_500, 0), (1_900, 0, 1_900, 900), (0, 1, 9, 70_000)];
            let (cs_setup_ns, cs_hold_ns, cs_inactive_ns, word_delay_ns) = asked[times];
            let limits = |modes| WireLimits {
                modes,
                cs_setup_ns: cs_setup_ns.into(),
                cs_hold_ns: cs_hold_ns.into(),
                cs_inactive_ns: cs_inactive_ns.into(),
                max_clock_hz: 33_000_000,
            };
            // Of the other polarity and phase, so that the clock's level changes between them.
            let modes = [mode, 3 - mode];
            for cs in [0, 1] {
                let chip = Echo::new(limits(1 << modes[usize::from(cs)]));
                board.attach(cs, Rc::new(RefCell::new(chip)));
            }
            let [pin, own] = [0, 1].map(|chip_select| {
                let number = modes[usize::from(chip_select)];
                let settings = Settings {
                    mode: Mode::from_number(number).expect("0 to 3"),
                    cs_setup_ns,
                    cs_hold_ns,
                    cs_inactive_ns,
                    word_delay_ns,
                    ..Settings::new(chip_select, 33_000_000)
                };
                bus.device(&settings).expect("opens")
            });
            for device in [&pin, &own, &own, &pin, &own] {
                let mut bytes = [1, 2, 3, 4, 5];
                let begun_ps = board.engine().now_ps();
                let mut message = [
                    Transfer::write(&[9]),
                    Transfer::write(&[9, 8]).with_cs_change(),
                    Transfer::in_place(&mut bytes),
                ];
                device.sync(&mut message).expect("runs");
                let took_ps = board.engine().now_ps() - begun_ps;
                let gaps_ps = 5 * u64::from(word_delay_ns) * 1_000;
                assert!(took_ps >= gaps_ps, "{took_ps} of {gaps_ps}");
            }
            assert!(
                board.violations().is_empty(),
                "{select:?} {times} {mode} {:#?}",
                board.violations()
            );
        }
    }
}

#[test]
fn the_controller_a_board_needs_is_this_one() {
    let board = crate::board("sama5d36");
    let limits = atmel(&board).limits();
    assert_eq!(limits, barewire_sim::bring_up::any(&board).limits());
    assert_eq!(limits.max_speed_hz, 66_000_000);
}
