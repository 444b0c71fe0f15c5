//! The effect of bring-up on the chip selects of every board, and the waits of the first message
//! after it.
//!
//! A board is as it is at reset, every pin an input that the board pulls to where nothing is selected;
//! or as boot code leaves it, its pins outputs at that level; or as a previous owner that
//! died left it, with a chip selected.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::reg::Registers;
use barewire::spi::{Settings, Transfer};
use barewire_sim::board::boards;
use barewire_sim::bring_up::any;
use barewire_sim::chip::WireLimits;
use barewire_sim::model::BlockOptions;
use barewire_sim::model::echo::{Echo, NO_LIMITS};
use barewire_sim::model::gpio::pl061::{self, InputLevel};
use barewire_sim::wire::Driver;
use barewire_sim::{Board, BoardOptions, BoardSpec};

use crate::vcd_edges;

/// The inactive time asked of every line.
const CS_INACTIVE_NS: u32 = 2_000;

/// The previous owner of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// None since reset.
    Reset,
    /// Boot code that made the lines outputs, inactive.
    Boot,
}

/// The board of `spec`, a chip on line `cs` that reports a selection that comes too soon.
fn board(spec: &'static BoardSpec, cs: u8, input_level: InputLevel) -> Board {
    let board = Board::new(
        spec,
        BoardOptions {
            blocks: BlockOptions::default().with(input_level),
            ..BoardOptions::default()
        },
    );
    let limits = WireLimits { cs_inactive_ns: CS_INACTIVE_NS.into(), ..NO_LIMITS };
    assert!(board.attach(cs, Rc::new(RefCell::new(Echo::new(limits)))));
    board
}

/// Makes the board's GPIO lines outputs, inactive but for the first if it is to be `selected`: by
/// the manuals of the blocks.
fn leave(board: &Board, selected: bool) {
    let (mut pins, mut high) = (0, 0);
    for cs in board.spec().cs {
        if let Driver::Gpio { bit, .. } = cs.driver {
            pins |= 1_u32 << bit;
            let is_first = pins.count_ones() == 1;
            high |= u32::from(cs.active_high == (selected && is_first)) << bit;
        }
    }
    let mut gpio = board.gpio(0).expect("every board has a bank");
    (board.spec().gpio[0].kind.drive)(&mut |at, value| gpio.write(at, value), pins, high);
}

/// Brings the driver up on `board`, and sends a byte to the chip on line `cs`. Returns how often each
/// line moved by bring-up, and what the wire complains of.
fn first_message(board: &Board, cs: u8, again: bool) -> (Vec<usize>, Vec<String>) {
    board.clear_violations();
    board.start_vcd();
    let mut controller = any(board);
    if again {
        controller.reclaim();
    }
    let moved =
        vcd_edges::of_lines(&board.take_vcd().expect("was begun").vcd, board.spec().cs.len());
    let bus = Bus::new(controller);
    let settings = Settings { cs_inactive_ns: CS_INACTIVE_NS, ..Settings::new(cs, 20_000_000) };
    let device = bus.device(&settings).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[0x5a])]), Ok(1));
    board.cpu_work(10_000);
    (moved, board.violations().iter().map(|violation| format!("{violation:?}")).collect())
}

fn lines() -> impl Iterator<Item = (&'static BoardSpec, u8)> {
    boards().flat_map(|spec| (0..spec.cs.len()).map(move |cs| (spec, cs as u8)))
}

#[test]
fn bring_up_moves_no_chip_select() {
    for (spec, cs) in lines() {
        for before in [Before::Reset, Before::Boot] {
            for input_level in [InputLevel::Kept, InputLevel::Lost] {
                // Where an input's level is lost no order of accesses keeps the line: see below.
                let is_pl061 = *spec.gpio[0].kind == pl061::KIND;
                if is_pl061 && before == Before::Reset && input_level == InputLevel::Lost {
                    continue;
                }
                for again in [false, true] {
                    let board = board(spec, cs, input_level);
                    if before == Before::Boot {
                        leave(&board, false);
                    }
                    let (moved, complaints) = first_message(&board, cs, again);
                    let what = (spec.name, cs, before, input_level, again);
                    assert!(moved.iter().all(|&edges| edges == 0), "{what:?}: {moved:?}");
                    assert!(complaints.is_empty(), "{what:?}: {complaints:#?}");
                }
            }
        }
    }
}

#[test]
fn a_line_that_bring_up_had_to_release_rests_before_the_first_message() {
    for (spec, cs) in lines() {
        for again in [false, true] {
            let board = board(spec, cs, InputLevel::Lost);
            leave(&board, true);
            let (moved, complaints) = first_message(&board, cs, again);
            let mut released = vec![0; spec.cs.len()];
            let first = spec.cs.iter().position(|cs| matches!(cs.driver, Driver::Gpio { .. }));
            released[first.expect("every board has one")] = 1;
            assert_eq!(moved, released, "{} cs{cs}", spec.name);
            assert!(complaints.is_empty(), "{} cs{cs}: {complaints:#?}", spec.name);
        }
    }
}

/// The only chip select that cannot stay at its level during bring-up: a PL061 pin that was an
/// input, on a block that loses levels written to inputs. It falls and rises once before the first
/// message.
#[test]
fn an_input_of_a_pl061_that_loses_its_level_pulses_once_and_rests() {
    for again in [false, true] {
        let board = board(BoardSpec::find("highbank").expect("a board"), 0, InputLevel::Lost);
        let (moved, complaints) = first_message(&board, 0, again);
        assert_eq!(moved, [2, 0]);
        assert!(complaints.is_empty(), "{complaints:#?}");
    }
}
