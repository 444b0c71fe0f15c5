//! NOR reads on a SAMA5D36-EK: the status register, then the data, as mtd reads a block.
//!
//! The figures beside are Cyrille Pitchen's, "performance regression when using the common message
//! queuing infrastructure", 2016: the same board and chip, on a scope from the chip select's fall
//! before Read Status to its rise after the data.
//!
//! # Not supported
//! mtd's and `dd`'s own work between two blocks, which the thread's longer figure includes; DMA,
//! which Linux's driver used.

use barewire::bus::Bus;
use barewire::chip::spi_nor::SpiNor;
use barewire::spi::Settings;

use crate::bring_up::{Charged, any};
use crate::chip::PS_PER_NS;
use crate::{Board, BoardOptions, BoardSpec, SimPlatform};

/// The board, by its name.
pub const BOARD: &str = "sama5d36";

/// The times of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// The clock that was made.
    pub speed_hz: u32,
    /// From the first fall of the chip select to its last rise.
    pub time_ns: u64,
    /// The time in which SCK ran.
    pub clock_ns: u64,
}

/// Reads `blocks` of `block_bytes` one after the other at a clock of up to `speed_hz`, asking the
/// status before each.
///
/// # Panics
/// If a read fails or is wrong, or a rule of the wire is broken.
#[must_use]
pub fn run(speed_hz: u32, block_bytes: usize, blocks: usize) -> Reads {
    let board =
        Board::new(BoardSpec::find(BOARD).expect("the board is there"), BoardOptions::default());
    let part = (board.spec().flash().part)();
    let content: Vec<u8> = (0..part.size).map(|index| (index * 7 + index / 251) as u8).collect();
    let flash = board.attach_flash(Some(content)).expect("the part's size");
    let charged = Charged::new(any(&board), board.clone()).for_linux_process();
    let bus = Bus::with_platform(charged, &SimPlatform);
    let settings = Settings::new(board.spec().flash().cs, speed_hz);
    let device = bus.device(&settings).expect("opens");
    let mut nor = SpiNor::new(device, board.timer()).expect("identifies");
    board.reset_marks();
    board.start_selections();
    let mut block = vec![0; block_bytes];
    for index in 0..blocks {
        let at = index * block_bytes;
        nor.status().expect("answers");
        nor.read(at as u64, &mut block).expect("reads");
        assert!(block == flash.borrow().content()[at..at + block_bytes], "block {index}");
    }
    let clock_ns = board.wire_use().clock_ps / PS_PER_NS;
    let selections = board.take_selections();
    assert!(board.violations().is_empty(), "{:#?}", board.violations());
    let (first, last) = (selections.first(), selections.last());
    let (first, last) = (first.expect("a selection"), last.expect("a selection"));
    let time_ns = (last.deselected_at - first.selected_at) / PS_PER_NS;
    Reads { speed_hz: device.effective().speed_hz, time_ns, clock_ns }
}
