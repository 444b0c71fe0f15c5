//! BCM2835 beside its judges: what a sample of a converter costs, and the ninth clock of a byte behind which nothing is
//! sent.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::middleware::Pointer;
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{Charged, bcm2835};
use barewire_sim::model::echo::Echo;
use barewire_sim::profile::Profile;

use crate::blocks::BCM2835;

/// The chip's tCSH and tSUCS are checked at the wire.
#[test]
fn a_converter_is_read_more_than_115_000_times_a_second() {
    const SAMPLES: u64 = 1_000;
    let board = crate::board("rpi3");
    board.attach_adc().expect("the board has a converter");
    let bus = Bus::new(Charged::new(bcm2835(&board), board.clone()));
    let settings = MCP3008.settings(0, 3_600_000, 5_000).expect("its clock's limit");
    for settings in [settings, Settings { cs_setup_ns: 100, cs_inactive_ns: 270, ..settings }] {
        let device = bus.device(&settings).expect("opens");
        assert_eq!(device.effective().speed_hz, 3_571_428);
        let command = MCP3008.command(Input::Single(0)).expect("a channel");
        let bytes: [u8; 3] = command.bytes().try_into().expect("of 3 bytes");
        let mut sample = device.prepare(bytes).expect("prepares");
        sample.run().expect("runs");
        board.reset_marks();
        for _ in 0..SAMPLES {
            let rx = sample.run().expect("runs");
            MCP3008.decode(rx).expect("a converter answers");
        }
        let samples_per_s = SAMPLES * 1_000_000_000_000 / board.elapsed_ps();
        let writes: u64 = board.access_counts().iter().map(|block| block.writes).sum();
        assert_eq!(writes, 6 * SAMPLES, "two edges, three bytes and DONE");
        assert!(samples_per_s >= 115_000, "{samples_per_s}");
        assert!(board.violations().is_empty(), "{:#?}", board.violations());
    }
}

/// A block that ran dry has received its last byte a clock before DONE. Software that reads CS in this clock, and is then
/// ready to send more at any time around its end, waits for DONE first.
#[test]
fn a_block_that_ran_dry_is_given_more_after_done() {
    const CLOCK_PS: u64 = 20_000_000;
    const DONE_PS: u64 = 64 * 9 * CLOCK_PS;
    for way in BCM2835.ways {
        let mut board = BCM2835.board(way, 0);
        let Profile { register_read_ps, register_write_ps, .. } = board.profile();
        let (read_ps, write_ps) = (register_read_ps.value, register_write_ps.value);
        // It reads the FIFO's 64 bytes in between.
        let mut late_ps = DONE_PS - 100 * (read_ps + write_ps);
        while late_ps < DONE_PS {
            assert!(board.attach(0, Rc::new(RefCell::new(Echo::default()))));
            let bus = Bus::new(Pointer((way.start)(&board, None)));
            let device = bus.device(&Settings::new(0, 50_000)).expect("opens");
            device.sync(&mut [Transfer::write(&[0])]).expect("configures");
            // The access after the select and the FIFO's 64 bytes is late.
            board.stall_after(67, late_ps);
            let tx: Vec<u8> = (1..=66).collect();
            let mut rx = tx.clone();
            assert_eq!(device.sync(&mut [Transfer::in_place(&mut rx)]), Ok(66));
            assert_eq!(rx[1..], tx[..65], "{}, {late_ps} ps late", way.name);
            assert_eq!(board.harms_total(), 0, "{}: {:#?}", way.name, board.violations());
            late_ps += write_ps;
            board = BCM2835.board(way, 0);
        }
    }
}
