//! BCM2835 beside its judges: what a sample of a converter costs.

use barewire::bus::Bus;
use barewire::chip::mcp3008::{Input, MCP3008};
use barewire::spi::Settings;
use barewire_sim::bring_up::{Charged, bcm2835};
use barewire_sim::{Board, BoardOptions, BoardSpec};

/// The chip's tCSH and tSUCS are checked at the wire.
#[test]
fn a_converter_is_read_more_than_115_000_times_a_second() {
    const SAMPLES: u64 = 1_000;
    let spec = BoardSpec::find("rpi3").expect("a board");
    let board = Board::new(spec, BoardOptions::default());
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
