//! A driver on QEMU's model, polled and by its interrupt, compared with QEMU's own backing file.

use barewire::bus::Bus;
use barewire::chip::spi_nor::{JedecId, SpiNor, no_observer};
use barewire::controller::Controller;
use barewire::spi::Settings;
use barewire_qemu::QemuBoard;

use crate::support::{Random, on_file, open_board};

/// A board's flash chip.
pub(crate) struct Flash {
    pub id: JedecId,
    pub size: usize,
}

impl Flash {
    fn writes<C: Controller>(&self, board: &QemuBoard, bus: &Bus<C>, offset: u64, data: &[u8]) {
        let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
        let mut chip = SpiNor::new(device, board.timer()).expect("identifies");
        assert_eq!(chip.jedec_id(), self.id);
        assert_eq!(chip.size(), self.size as u64);
        let mut scratch = vec![0; 4096];
        chip.write(offset, data, &mut scratch, &mut no_observer).expect("writes");
        chip.verify(offset, data, &mut scratch, &mut no_observer).expect("verifies");
    }

    /// Writes at 1235h polled and at `high` by interrupt: both are in the file, and nothing else is.
    pub(crate) fn written_lands_in_the_file(&self, board: &str, high: u64) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("flash.bin");
        let Some(board) = open_board(board, &on_file(&path)) else { return };
        let mut random = Random::new(16);
        let (low, high) = ((0x1235, random.bytes(3_001)), (high, random.bytes(3_001)));
        self.writes(&board, &board.bus(), low.0, &low.1);
        let line = board.interrupt().expect("the line");
        let asleep = Bus::new(board.bring_up_interrupt(0).expect("the line"));
        self.writes(&board, &asleep, high.0, &high.1);
        assert!(line.raises() > 0);
        drop(asleep);
        assert_eq!(board.misuse(), Ok(vec![]));
        board.close().expect("ends well");
        let mut wanted = vec![0xff; self.size];
        for (offset, data) in [low, high] {
            wanted[offset as usize..][..data.len()].copy_from_slice(&data);
        }
        assert!(std::fs::read(&path).expect("reads") == wanted);
    }
}
