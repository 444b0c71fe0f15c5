//! The judge of chip selects: on every block a line falls before the first clock and rises after the last. A
//! native line that is active for one burst only does not pulse.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::spi::{Error, MODE_0, MODE_1, MODE_2, MODE_3, Settings, Transfer};
use barewire_sim::chip::WireLimits;
use barewire_sim::model::echo::{Echo, NO_LIMITS};
use barewire_sim::model::jumper::Jumper;

use crate::blocks::{Block, on_every_block};
use crate::driver::{EACH, on_bus};

/// The last word is there half a clock before the last clock is over: at a slow clock that is longer
/// than any access, and a chip select that moved before would be seen.
fn a_slow_clock_is_over_before_its_chip_is_released(block: &'static Block) {
    let native: &[u8] = if block.holds { &[0, 1] } else { &[0] };
    for (waits, &cs) in EACH.iter().flat_map(|&waits| native.iter().map(move |cs| (waits, cs))) {
        for mode in [MODE_0, MODE_1, MODE_2, MODE_3] {
            let board = block.board(block.usual(), 0);
            assert!(board.attach(cs, Rc::new(RefCell::new(Jumper))));
            on_bus(block.usual().start, &board, waits, |bus| {
                let settings = Settings::new(cs, block.slow_hz).with_mode(mode);
                let device = bus.device(&settings).expect("opens");
                for len in [1, 2, 3, 4, 5, 8, 9, 16] {
                    let mut bytes: Vec<u8> = (1..=len).collect();
                    board.start_selections();
                    let ran = device.sync(&mut [Transfer::in_place(&mut bytes)]);
                    assert_eq!((ran, bytes), (Ok(len.into()), (1..=len).collect()));
                    assert_eq!(
                        board.take_selections().len(),
                        1,
                        "it has risen when a message returns"
                    );
                }
            });
            assert!(board.violations().is_empty(), "{waits:?} {mode:?}: {:#?}", board.violations());
        }
    }
}
on_every_block! { a_slow_clock_is_over_before_its_chip_is_released }

/// Messages alternate between a chip on the GPIO and one on the block's own line, at other clocks and
/// modes. Each hears its own bytes, each message under one select.
fn two_chips_take_turns(block: &'static Block) {
    if !block.has_both_lines() {
        return;
    }
    for waits in EACH {
        let board = block.board(block.usual(), 0);
        let chips = [0, 1].map(|cs| {
            let chip = Rc::new(RefCell::new(Echo::default()));
            assert!(board.attach(cs, chip.clone()));
            chip
        });
        on_bus(block.usual().start, &board, waits, |bus| {
            let settings =
                [Settings::new(0, 20_000_000).with_mode(MODE_3), Settings::new(1, 1_000_000)];
            let devices = settings.map(|settings| bus.device(&settings).expect("opens"));
            for turn in 0..4 {
                for (device, base) in devices.iter().zip([0, 100]) {
                    let bytes: Vec<u8> = (0..20).map(|byte| base + turn * 20 + byte).collect();
                    assert_eq!(device.sync(&mut [Transfer::write(&bytes)]), Ok(20));
                }
            }
        });
        for (chip, base) in chips.iter().zip([0, 100]) {
            let chip = chip.borrow();
            assert_eq!(chip.received(), (base..base + 80).collect::<Vec<u8>>());
            assert_eq!(chip.selections(), 4);
        }
        assert!(board.violations().is_empty(), "{waits:?}: {:#?}", board.violations());
    }
}
on_every_block! { two_chips_take_turns }

/// On a line that is active for one burst, an accepted message runs under one select, however slow the
/// processor is or however long an interrupt takes. Between two selects the line rests as long as asked.
fn what_is_taken_on_the_blocks_own_line_does_not_pulse(block: &'static Block) {
    for burst in block.bursts {
        for (speed_hz, jitter_ns) in [(1_000_000, 0), (75_000_000, 0), (75_000_000, 5_000)] {
            for waits in EACH {
                let board = block.board(block.usual(), jitter_ns);
                let limits = WireLimits { cs_inactive_ns: 2_000, ..NO_LIMITS };
                let chip = Rc::new(RefCell::new(Echo::new(limits)));
                assert!(board.attach(1, chip.clone()));
                let settings = Settings {
                    cs_inactive_ns: 2_000,
                    ..Settings::new(1, speed_hz)
                        .with_mode(burst.mode)
                        .with_bits_per_word(burst.bits)
                };
                on_bus(block.usual().start, &board, waits, |bus| {
                    let device = bus.device(&settings).expect("opens");
                    for &len in burst.taken {
                        let bytes: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
                        let mut message =
                            [Transfer::write(&bytes).with_cs_change(), Transfer::write(&bytes)];
                        assert_eq!(device.sync(&mut message), Ok(2 * len));
                    }
                    for &(len, max_bytes) in burst.refused {
                        let mut beyond = [Transfer::write(&[0; 260][..len])];
                        let error = device.sync(&mut beyond).expect_err("would pulse").error;
                        assert_eq!(error, Error::NativeCsWouldPulse { max_bytes }, "{len}");
                    }
                });
                assert_eq!(chip.borrow().selections(), 2 * burst.taken.len() as u64);
                assert!(board.violations().is_empty(), "{waits:?}: {:#?}", board.violations());
            }
        }
    }
}
on_every_block! { what_is_taken_on_the_blocks_own_line_does_not_pulse }
