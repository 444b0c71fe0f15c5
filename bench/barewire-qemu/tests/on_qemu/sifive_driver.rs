//! The driver of SiFive SPI on QEMU's `sifive_u`, compared with QEMU's own backing file.

use barewire::bus::Bus;
use barewire::chip::spi_nor::{JedecId, SpiNor, no_observer};
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_qemu::{QemuBoard, QemuOptions};

use crate::support::{Random, on_file, open_board};

const SIZE: usize = 32 << 20;

fn writes<C: Controller>(board: &QemuBoard, bus: &Bus<C>, offset: u64, data: &[u8]) {
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let mut chip = SpiNor::new(device, board.timer()).expect("identifies");
    assert_eq!(chip.jedec_id(), JedecId([0x9d, 0x70, 0x19]));
    assert_eq!(chip.size(), SIZE as u64);
    let mut scratch = vec![0; 4096];
    chip.write(offset, data, &mut scratch, &mut no_observer).expect("writes");
    chip.verify(offset, data, &mut scratch, &mut no_observer).expect("verifies");
}

#[test]
fn polled_and_by_interrupt_a_write_lands_in_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let Some(board) = open_board("sifive_u", &on_file(&path)) else { return };
    let mut random = Random::new(16);
    // The second is above 16 MiB, where addresses have four bytes.
    let (low, high) = ((0x1235, random.bytes(3_001)), (0x180_0103, random.bytes(3_001)));
    writes(&board, &board.bus(), low.0, &low.1);
    let line = board.interrupt().expect("the line");
    let asleep = Bus::new(board.bring_up_interrupt(0).expect("the line"));
    writes(&board, &asleep, high.0, &high.1);
    assert!(line.raises() > 0);
    drop(asleep);
    assert_eq!(board.misuse(), Ok(vec![]));
    board.close().expect("ends well");
    let mut wanted = vec![0xff; SIZE];
    for (offset, data) in [low, high] {
        wanted[offset as usize..][..data.len()].copy_from_slice(&data);
    }
    assert!(std::fs::read(&path).expect("reads") == wanted);
}

#[test]
fn the_board_with_a_card_starts() {
    let Some(board) = open_board("sifive_u_sd", &QemuOptions::default()) else { return };
    drop(board.bus());
    assert_eq!(board.misuse(), Ok(vec![]));
    board.close().expect("ends well");
}
