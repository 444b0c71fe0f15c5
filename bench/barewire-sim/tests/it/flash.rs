//! The shipped stack on simulated boards: flash chips through core, ECSPI and SPI NOR.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::spi_nor::{JedecId, NorError, SpiNor, no_observer};
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_sim::board::board_names;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::nor::Nor;
use barewire_sim::{Board, SimTimer};

type BoardNor<'b> = SpiNor<barewire::bus::Device<'b, Charged<AnyController>>, SimTimer>;

struct Bench {
    board: Board,
    flash: Rc<RefCell<Nor>>,
    bus: Bus<Charged<AnyController>>,
}

impl Bench {
    fn new(name: &str) -> Self {
        let board = crate::board(name);
        let flash = board.attach_flash(None).expect("the part's size");
        let bus = bus(&board);
        Self { board, flash, bus }
    }

    fn chip(&self, speed_hz: u32) -> Result<BoardNor<'_>, NorError> {
        let chip_select = self.board.spec().flash().cs;
        let device = self.bus.device(&Settings::new(chip_select, speed_hz)).expect("opens");
        SpiNor::new(device, self.board.timer())
    }

    /// No rule was broken, the chip is unselected and write-disabled.
    fn assert_settled(&self) {
        let violations = self.board.violations();
        assert!(violations.is_empty(), "{:#?}", &violations[..violations.len().min(5)]);
        let flash = self.flash.borrow();
        assert!(!flash.selected() && !flash.write_enabled());
    }
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(len)
    .collect()
}

#[test]
fn every_board_identifies_its_chip() {
    for (board, id, size, name) in [
        ("beaglebone", [0xef, 0x40, 0x19], 32 << 20, "W25Q256JV"),
        ("highbank", [0xef, 0x40, 0x19], 32 << 20, "W25Q256JV"),
        ("imx6dl", [0xef, 0x40, 0x16], 4 << 20, "W25Q32JV"),
        ("rpi3", [0xef, 0x40, 0x16], 4 << 20, "W25Q32JV"),
        ("rpi5", [0xef, 0x40, 0x16], 4 << 20, "W25Q32JV"),
        ("sama5d36", [0x01, 0x02, 0x20], 64 << 20, "S25FL512S"),
        ("unleashed", [0xef, 0x40, 0x19], 32 << 20, "W25Q256JV"),
        ("zynq", [0xef, 0x40, 0x16], 4 << 20, "W25Q32JV"),
        ("imx8mp", [0xef, 0x40, 0x19], 32 << 20, "W25Q256JV"),
        ("sabrelite", [0xbf, 0x25, 0x41], 2 << 20, "SST25VF016B"),
    ] {
        let bench = Bench::new(board);
        let chip = bench.chip(20_000_000).expect("identifies");
        assert_eq!((chip.jedec_id(), chip.size()), (JedecId(id), size));
        assert_eq!(chip.geometry().name, Some(name));
        drop(chip);
        bench.assert_settled();
    }
}

#[test]
fn writes_at_every_edge_read_back() {
    for name in board_names() {
        let bench = Bench::new(name);
        let mut chip = bench.chip(20_000_000).expect("identifies");
        chip.unprotect().expect("the status register is writable");
        let size = chip.size();
        // The largest erase unit of any board's chip: S25FL512S's sectors.
        let mut scratch = vec![0; 256 << 10];
        let cases: [(u64, usize); 12] = [
            (0, 0),
            (0, 1),
            (1, 1),
            (0, 256),
            (0, 257),
            (255, 2),
            (4095, 2),
            (100, 5000),
            (65_535, 65_538),
            (131_072, 65_536),
            (size - 1, 1),
            (size - 4097, 4097),
        ];
        for (case, &(offset, len)) in cases.iter().enumerate() {
            let data = pattern(len, case as u64 + 1);
            let mut model = bench.flash.borrow().content().to_vec();
            model[offset as usize..offset as usize + len].copy_from_slice(&data);
            chip.write(offset, &data, &mut scratch, &mut no_observer)
                .unwrap_or_else(|error| panic!("{name} {offset:#x}+{len}: {error}"));
            let mut back = vec![0; len];
            chip.read(offset, &mut back).expect("reads");
            assert!(back == data, "{name} {offset:#x}+{len}");
            let content = bench.flash.borrow().content().to_vec();
            assert!(content == model, "{name} {offset:#x}+{len}: a neighbour changed");
        }
        drop(chip);
        bench.assert_settled();
    }
}

#[test]
fn a_mebibyte_at_20_mhz_uses_the_bus_98_percent_inside_transfers() {
    let bench = Bench::new("imx8mp");
    let mut chip = bench.chip(20_000_000).expect("identifies");
    bench.board.reset_marks();
    let mut into = vec![0; 1 << 20];
    for (piece, offset) in into.chunks_mut(64 << 10).zip((0..).step_by(64 << 10)) {
        chip.read(offset, piece).expect("reads");
    }
    let wire_use = bench.board.wire_use();
    eprintln!(
        "{wire_use:?} {} {}",
        wire_use.bus_use_in_transfers(),
        wire_use.bus_use(bench.board.elapsed_ps())
    );
    eprintln!(
        "{:?} {}",
        bench.board.access_counts(),
        bench.bus.device(&Settings::new(0, 20_000_000)).unwrap().effective().speed_hz
    );
    // 1.2 us from a burst of 256 bytes to the next, three accesses of 0.3 to 0.4 us.
    assert!(wire_use.bus_use_in_transfers() >= 0.985, "{wire_use:?}");
    drop(chip);
    bench.assert_settled();
}

#[allow(dead_code, reason = "checks a coercion at compile time")]
fn a_simulated_bus_is_a_bus<'b>(
    bus: &'b Bus<Charged<AnyController>>,
) -> &'b Bus<dyn Controller + 'b> {
    bus
}
