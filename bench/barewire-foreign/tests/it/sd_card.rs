//! A foreign driver on our device, on QEMU's models: an SD card behind a PL022, and behind SiFive SPI.
//!
//! `embedded-sdmmc` checks the checksum of each block it reads, and selects the card anew for each
//! step of a command, often for one byte. It and QEMU's card do not agree on two things
//! (`barewire-qemu`, `board/lm3s6965evb.rs`; the card of `sifive_u_sd` is the same model): the card's R1 to CMD58, which [`Ready`] mends, and the
//! byte between R1 and a data token, which the driver leaves out for a single block: so blocks are
//! written in twos, before which it waits.

use barewire::bus::Bus;
use barewire::hal::{Delay, HalDevice};
use barewire::spi::Settings;
use barewire_qemu::{BoardError, QemuBoard, QemuController, QemuError, QemuOptions};
use embedded_hal::spi::{ErrorType, Operation, SpiDevice};
use embedded_sdmmc::embedded_sdmmc_types::sdcard::CardType;
use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCard};

/// The boards with a card, and its size in blocks.
const BOARDS: [(&str, usize); 2] = [("lm3s6965evb", 2_048), ("sifive_u_sd", 131_072)];

/// What the card holds at first.
fn byte(at: usize) -> u8 {
    (at * 7 + at / 509) as u8
}

/// The device under the driver, which mends one answer: QEMU's card says in the R1 of CMD58 that it
/// is idle, always, and the driver takes it at its word. Each of its transactions is one
/// operation.
struct Ready<D> {
    device: D,
    /// CMD58 was sent, and its R1 is still to come.
    awaited: bool,
}

impl<D: ErrorType> ErrorType for Ready<D> {
    type Error = D::Error;
}

impl<D: SpiDevice> SpiDevice for Ready<D> {
    fn transaction(&mut self, operations: &mut [Operation<'_, u8>]) -> Result<(), D::Error> {
        const CMD58: u8 = 0x40 | 58;
        const IDLE: u8 = 1;
        self.device.transaction(operations)?;
        match operations {
            [Operation::Write([CMD58, ..])] => self.awaited = true,
            [Operation::Transfer([r1], _)] if self.awaited && *r1 & 0x80 == 0 => {
                *r1 &= !IDLE;
                self.awaited = false;
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs the driver on each board's card. Skips where QEMU is not there.
fn drives(bring_up: impl Fn(&QemuBoard) -> QemuController) {
    BOARDS.iter().for_each(|(board, blocks)| drives_on(board, *blocks, &bring_up));
}

/// Runs the driver on a card, and compares the card's file with what it wrote.
fn drives_on(board: &str, blocks: usize, bring_up: impl FnOnce(&QemuBoard) -> QemuController) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("card.bin");
    let mut content: Vec<u8> = (0..blocks * Block::LEN).map(byte).collect();
    std::fs::write(&path, &content).expect("writes");
    let options = QemuOptions { flash: Some(path.clone()), ..QemuOptions::default() };
    let board = match QemuBoard::open(board, &options) {
        Ok(board) => board,
        Err(BoardError::Qemu(error @ (QemuError::Missing { .. } | QemuError::TooOld { .. }))) => {
            println!("SKIPPED: {board}: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let bus = Bus::new(board.watch(bring_up(&board)));
    let device = HalDevice::new(bus.device(&Settings::new(0, 400_000)).expect("opens"));
    let card = SdCard::new(Ready { device, awaited: false }, Delay::new(board.timer()));
    // CMD0, CMD59, CMD8, ACMD41, CMD58: identifies the card, with checksums switched on.
    assert_eq!(card.get_card_type(), Some(CardType::SD2));

    let block = |index: usize| index * Block::LEN..(index + 1) * Block::LEN;
    let read = |index: usize, n: usize| {
        let mut blocks = vec![Block::new(); n];
        card.read(&mut blocks, BlockIdx(index as u32)).expect("reads");
        blocks.iter().flat_map(|block| block.contents).collect::<Vec<u8>>()
    };
    for index in [0, 777, blocks - 1] {
        assert!(read(index, 1) == content[block(index)], "block {index}");
    }
    assert!(read(5, 3) == content[5 * Block::LEN..8 * Block::LEN], "three at once");

    let mut written = Block::new();
    written.contents.iter_mut().zip(0..).for_each(|(byte, at): (_, u32)| *byte = (at * 11) as u8);
    card.write(&[written.clone(), written.clone()], BlockIdx(9)).expect("writes");
    content[block(9)].copy_from_slice(&written.contents);
    content[block(10)].copy_from_slice(&written.contents);
    assert!(read(9, 2) == content[9 * Block::LEN..11 * Block::LEN], "two written at once");

    drop(card);
    drop(bus);
    assert_eq!((board.lost(), board.misuse()), (None, Ok(vec![])));
    board.close().expect("ends well");
    assert!(std::fs::read(&path).expect("reads") == content, "the file differs, or a neighbour");
}

#[test]
fn embedded_sdmmc_reads_and_writes_a_card() {
    drives(QemuBoard::bring_up);
}

#[test]
fn embedded_sdmmc_reads_and_writes_a_card_by_interrupt() {
    drives(|board| board.bring_up_interrupt(0).expect("the line"));
}
