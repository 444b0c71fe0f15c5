//! The shipped stack on QEMU's board: core, ECSPI and SPI NOR against QEMU's models,
//! compared with QEMU's own backing file.

use barewire::chip::spi_nor::{JedecId, SpiNor, no_observer};
use barewire::controller::Controller;
use barewire::spi::{Settings, Transfer};
use barewire_qemu::{QemuBoard, QemuOptions, QemuTimer};

use crate::support::{Random, SIZE, on_file, open};

type Nor<'b, C> = SpiNor<barewire::bus::Device<'b, C>, QemuTimer>;

fn chip<'b, C: Controller>(
    board: &QemuBoard,
    bus: &'b barewire::bus::Bus<C>,
    speed_hz: u32,
) -> Nor<'b, C> {
    let device = bus.device(&Settings::new(0, speed_hz)).expect("opens");
    SpiNor::new(device, board.timer()).expect("identifies")
}

/// QEMU has nothing to complain about, is still there, and ends well.
fn settle(board: QemuBoard) {
    assert_eq!(board.misuse(), Ok(vec![]));
    assert_eq!(board.lost(), None);
    board.close().expect("ends well");
}

#[test]
fn the_chip_is_identified_at_every_kind_of_clock() {
    let Some(board) = open(&QemuOptions::default()) else { return };
    let bus = board.bus();
    // By XCH alone, by SMC, and with FAST_READ.
    for speed_hz in [1_000_000, 20_000_000, 50_000_000] {
        let mut chip = chip(&board, &bus, speed_hz);
        assert_eq!(chip.jedec_id(), JedecId([0xbf, 0x25, 0x41]));
        assert_eq!((chip.size(), chip.geometry().name), (SIZE as u64, Some("SST25VF016B")));
        assert_eq!(chip.uses_fast_read(), speed_hz > 25_000_000);
        let mut erased = [0; 7];
        chip.read(3, &mut erased).expect("reads");
        assert_eq!(erased, [0xff; 7], "a file made here is an erased chip");
        // The part powers up protected (status 0x1c); QEMU's does not model that.
        assert_eq!(chip.status(), Ok(0));
        assert!(chip.protection().expect("reads").is_none());
    }
    settle(board);
}

#[test]
fn unwatched_and_by_interrupt_it_is_the_same() {
    let Some(board) = open(&QemuOptions::default()) else { return };
    let bus = barewire::bus::Bus::new(board.bring_up());
    assert_eq!(chip(&board, &bus, 20_000_000).jedec_id(), JedecId([0xbf, 0x25, 0x41]));
    drop(bus);
    let line = board.interrupt().expect("the line");
    let bus = barewire::bus::Bus::new(board.bring_up_interrupt(0).expect("the line"));
    let mut chip = chip(&board, &bus, 20_000_000);
    let (data, mut scratch) = (Random::new(5).bytes(3_001), vec![0; 4096]);
    chip.write(77, &data, &mut scratch, &mut no_observer).expect("writes");
    chip.verify(77, &data, &mut scratch, &mut no_observer).expect("verifies");
    // RDR never comes there: RF and TC interrupt, at least once for each page or block.
    assert!(line.raises() > 16, "{}", line.raises());
    drop(chip);
    settle(board);
}

#[test]
fn a_misaligned_write_with_an_odd_tail_lands_in_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("a name, with a comma and ü.bin");
    let mut random = Random::new(1);
    let before = random.bytes(SIZE);
    std::fs::write(&path, &before).expect("writes");
    let Some(board) = open(&on_file(&path)) else { return };
    let bus = board.bus();
    let mut chip = chip(&board, &bus, 20_000_000);
    let mut scratch = vec![0; 4096];

    // Begins odd, covers a whole block on the way to an odd end.
    let (offset, data) = (0x1_f235, random.bytes((64 << 10) + 3));
    let written = chip.write(offset, &data, &mut scratch, &mut no_observer).expect("writes");
    assert_eq!(written.erased_bytes, 17 * 4096, "{written:?}");
    let mut back = vec![0; data.len()];
    chip.read(offset, &mut back).expect("reads");
    assert!(back == data);
    chip.verify(offset, &data, &mut scratch, &mut no_observer).expect("verifies");
    let again = chip.write(offset, &data, &mut scratch, &mut no_observer).expect("writes");
    assert_eq!((again.erases, again.programs), (0, 0), "what is there is left alone");
    drop(chip);
    settle(board);

    let mut expected = before;
    let start = offset as usize;
    expected[start..start + data.len()].copy_from_slice(&data);
    assert!(std::fs::read(&path).expect("reads") == expected, "the file differs, or a neighbour");
}

#[test]
fn erasing_by_sector_block_and_chip() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let mut expected = Random::new(2).bytes(SIZE);
    std::fs::write(&path, &expected).expect("writes");
    // The whole chip is read back, register by register: half a minute.
    let whole = std::env::var_os("BAREWIRE_WHOLE").map(|_| 0..SIZE);
    let parts = [0x1000..0x2000, 0x7000..0x3_1000, SIZE - 4096..SIZE];
    for range in parts.into_iter().chain(whole) {
        let Some(board) = open(&on_file(&path)) else { return };
        let bus = board.bus();
        let mut chip = chip(&board, &bus, 20_000_000);
        chip.erase(range.start as u64..range.end as u64, &mut no_observer).expect("erases");
        drop(chip);
        settle(board);
        expected[range.clone()].fill(0xff);
        assert!(std::fs::read(&path).expect("reads") == expected, "{range:x?}");
    }
}

#[test]
fn reads_of_any_length_equal_the_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let mut random = Random::new(3);
    let content = random.bytes(SIZE);
    std::fs::write(&path, &content).expect("writes");
    let Some(board) = open(&on_file(&path)) else { return };
    let bus = board.bus();
    for speed_hz in [5_000_000, 25_000_000, 50_000_000] {
        let mut chip = chip(&board, &bus, speed_hz);
        // Every length near a word, a FIFO and its double; then at random.
        let edges = (1..=9).chain(255..=258).chain(511..=514);
        let lens: Vec<usize> = edges.chain((0..40).map(|_| 1 + random.below(3_000))).collect();
        for len in lens {
            let offset = random.below(SIZE - len + 1);
            let mut back = vec![0; len];
            chip.read(offset as u64, &mut back).expect("reads");
            assert!(back == content[offset..offset + len], "{speed_hz} Hz {offset:#x}+{len}");
        }
        let mut last = [0];
        chip.read(SIZE as u64 - 1, &mut last).expect("reads");
        assert_eq!(last[0], content[SIZE - 1]);
    }
    settle(board);
}

#[test]
fn wider_words_and_messages_of_many_transfers() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("flash.bin");
    let content = Random::new(4).bytes(SIZE);
    std::fs::write(&path, &content).expect("writes");
    let Some(board) = open(&on_file(&path)) else { return };
    let bus = board.bus();
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("opens");
    let (mut a, mut b, mut c) = ([0; 6], [0; 8], [0; 300]);
    let mut message = [
        Transfer::write(&[0x03]),
        Transfer::write(&[0x00, 0x10]),
        Transfer::write(&[0x00]),
        Transfer::read(&mut a).with_bits_per_word(16),
        Transfer::read(&mut b).with_bits_per_word(32),
        Transfer::read(&mut c),
    ];
    assert_eq!(device.sync(&mut message), Ok(1 + 2 + 1 + 6 + 8 + 300));
    // Words lie in memory in the CPU's order, and on the wire most significant byte first.
    let mut at = 0x1000;
    let mut next = |len| {
        at += len;
        &content[at - len..at]
    };
    for pair in a.chunks(2) {
        let word = next(2);
        assert_eq!(u16::from_ne_bytes([pair[0], pair[1]]), u16::from_be_bytes([word[0], word[1]]));
    }
    for four in b.chunks(4) {
        let word = next(4).try_into().expect("four");
        assert_eq!(u32::from_ne_bytes(four.try_into().expect("four")), u32::from_be_bytes(word));
    }
    assert_eq!(c, next(300));
    settle(board);
}

#[test]
fn two_boards_run_beside_each_other() {
    let (Some(one), Some(two)) = (open(&QemuOptions::default()), open(&QemuOptions::default()))
    else {
        return;
    };
    let (bus_one, bus_two) = (one.bus(), two.bus());
    let (mut chip_one, mut chip_two) =
        (chip(&one, &bus_one, 20_000_000), chip(&two, &bus_two, 20_000_000));
    let mut scratch = vec![0; 4096];
    chip_one.write(5, b"one", &mut scratch, &mut no_observer).expect("writes");
    chip_two.write(5, b"two", &mut scratch, &mut no_observer).expect("writes");
    let mut back = [0; 3];
    chip_one.read(5, &mut back).expect("reads");
    assert_eq!(&back, b"one");
    chip_two.read(5, &mut back).expect("reads");
    assert_eq!(&back, b"two");
    drop((chip_one, chip_two));
    settle(one);
    settle(two);
}
