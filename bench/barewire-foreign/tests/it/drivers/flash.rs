//! `w25q32jv`, whose chip is the W25Q32JV.

use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::hal::{BankPin, Delay, HalBus};
use barewire::spi::Settings;
use barewire_sim::model::nor::{Nor, Part};
use embedded_hal_bus::spi::ExclusiveDevice;
use embedded_storage::nor_flash::{NorFlash, ReadNorFlash};
use embedded_storage_async::nor_flash::{
    NorFlash as AsyncNorFlash, ReadNorFlash as AsyncReadNorFlash,
};
use w25q32jv::W25q32jv;

use super::{BOARDS, Bench, JumperedBoard, block_on};

const SPEED_HZ: u32 = 20_000_000;
/// The pin of the board's first chip select.
const CS_BIT: u8 = 9;

fn bench(board: &str) -> Bench<Nor> {
    let part = Part::w25q32jv();
    // Only the blocks that the driver erases are blank.
    let content = vec![0; part.size];
    Bench::new(board, Nor::new(part, content).expect("the part's size"))
}

/// Begins in the middle of a page and ends in the middle of the third.
fn data() -> Vec<u8> {
    (0..600_u32).map(|index| (index * 7 + 1) as u8).collect()
}

const OFFSET: u32 = 0x1_2000 + 200;

fn assert_written(bench: &Bench<Nor>) {
    bench.assert_no_violations();
    let chip = bench.chip.borrow();
    let (start, end) = (OFFSET as usize, OFFSET as usize + data().len());
    assert!(chip.content()[start..end] == data());
    assert!(chip.content()[0x1_2000..start].iter().all(|&byte| byte == 0xff), "erased");
    assert!(chip.content()[end..0x1_3000].iter().all(|&byte| byte == 0xff), "erased");
    assert!(chip.content()[..0x1_2000].iter().all(|&byte| byte == 0), "not touched");
    assert!(chip.content()[0x1_3000..].iter().all(|&byte| byte == 0), "not touched");
    assert!(!chip.selected() && !chip.write_enabled());
}

#[test]
fn it_erases_writes_and_reads_on_our_device() {
    for board in BOARDS {
        let bench = bench(board);
        let mut flash =
            W25q32jv::new(bench.device(SPEED_HZ), JumperedBoard, JumperedBoard).expect("pins");
        let unique_id = Part::w25q32jv().unique_id.expect("the part has one");
        assert_eq!(flash.device_id().expect("reads"), unique_id);
        // The driver verifies itself.
        NorFlash::erase(&mut flash, 0x1_2000, 0x1_3000).expect("erases");
        NorFlash::write(&mut flash, OFFSET, &data()).expect("writes");
        let mut back = vec![0; data().len()];
        ReadNorFlash::read(&mut flash, OFFSET, &mut back).expect("reads");
        assert!(back == data());
        assert_written(&bench);
    }
}

#[test]
fn it_erases_writes_and_reads_as_futures() {
    for board in BOARDS {
        let bench = bench(board);
        let mut flash =
            W25q32jv::new(bench.device(SPEED_HZ), JumperedBoard, JumperedBoard).expect("pins");
        block_on(async {
            AsyncNorFlash::erase(&mut flash, 0x1_2000, 0x1_3000).await.expect("erases");
            AsyncNorFlash::write(&mut flash, OFFSET, &data()).await.expect("writes");
            let mut back = vec![0; data().len()];
            AsyncReadNorFlash::read(&mut flash, OFFSET, &mut back).await.expect("reads");
            assert!(back == data());
        });
        assert_written(&bench);
    }
}

#[test]
fn it_is_pending_while_its_messages_are_on_the_wire() {
    for board in BOARDS {
        let part = Part::w25q32jv();
        let content = vec![0; part.size];
        let bench = Bench::handled(board, Nor::new(part, content).expect("the part's size"));
        let mut flash =
            W25q32jv::new(bench.device(SPEED_HZ), JumperedBoard, JumperedBoard).expect("pins");
        let ((), pending) = bench.await_handled(async {
            AsyncNorFlash::erase(&mut flash, 0x1_2000, 0x1_3000).await.expect("erases");
            AsyncNorFlash::write(&mut flash, OFFSET, &data()).await.expect("writes");
            let mut back = vec![0; data().len()];
            AsyncReadNorFlash::read(&mut flash, OFFSET, &mut back).await.expect("reads");
            assert!(back == data());
        });
        println!("FIGURE: w25q32jv on {board}: pending {pending} times (simulated)");
        // A page is longer than any block's FIFO.
        assert!(pending > 10, "{board}: {pending}");
        assert_written(&bench);
    }
}

#[test]
fn it_erases_writes_and_reads_on_a_foreign_device_on_our_bus() {
    let bench = bench("imx8mp");
    let spi = HalBus::new(bench.bus.lock(), &Settings::new(0, SPEED_HZ)).expect("opens");
    let gpio = bench.board.gpio(0).expect("the board has a GPIO block");
    let cs = BankPin::new(ImxGpio::new(gpio, Ownership::Shared), CS_BIT, true);
    let delay = Delay::new(bench.board.timer());
    let device = ExclusiveDevice::new(spi, cs, delay).expect("cannot fail");
    let mut flash = W25q32jv::new(device, JumperedBoard, JumperedBoard).expect("pins");
    NorFlash::erase(&mut flash, 0x1_2000, 0x1_3000).expect("erases");
    NorFlash::write(&mut flash, OFFSET, &data()).expect("writes");
    let mut back = vec![0; data().len()];
    ReadNorFlash::read(&mut flash, OFFSET, &mut back).expect("reads");
    assert!(back == data());
    assert_written(&bench);
}
