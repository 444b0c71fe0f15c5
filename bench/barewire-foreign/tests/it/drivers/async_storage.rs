//! Our flash driver under the traits of `embedded-storage-async`: random changes, dropped futures, a
//! second device on the bus meanwhile, and `sequential-storage`, unmodified, on top.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use barewire::bus::Device;
use barewire::chip::spi_nor::{AsyncStorage, NorError, SpiNor};
use barewire::chip::{AsyncPort, Port, Sharing};
use barewire::spi::{MessageError, Settings, Transfer};
use barewire_sim::bring_up::{AnyController, Charged};
use barewire_sim::model::echo::Echo;
use barewire_sim::model::nor::{Nor, Part};
use barewire_sim::{Board, SimTimer};
use embedded_hal_async::delay::DelayNs;
use embedded_storage_async::nor_flash::{MultiwriteNorFlash, NorFlash, ReadNorFlash};
use sequential_storage::cache::Cache;
use sequential_storage::map::{MapConfig, MapStorage};

use super::{BOARDS, Bench, block_on};

const SECTOR: u32 = 4_096;
const FLASH: Settings = Settings::new(0, 20_000_000);

type Controller = Charged<AnyController>;
type Storage<'b> = AsyncStorage<Turns<'b>, SimTimer, Later>;

/// A delay in virtual time, which passes with the second poll of the future that awaits it.
struct Later(Board);

impl DelayNs for Later {
    async fn delay_ns(&mut self, ns: u32) {
        turn().await;
        self.0.engine().spend_ps(u64::from(ns) * 1_000);
    }
}

/// Pending once.
async fn turn() {
    let mut polled = false;
    std::future::poll_fn(|_| {
        let now = if polled { Poll::Ready(()) } else { Poll::Pending };
        polled = true;
        now
    })
    .await;
}

/// A chip whose every message takes a turn before and after it, as on a bus that others use. With
/// `shared`, other processes are among them.
struct Turns<'b> {
    device: Device<'b, Controller>,
    shared: bool,
}

impl Port for Turns<'_> {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.device.run(message)
    }

    fn speed_hz(&self) -> u32 {
        self.device.speed_hz()
    }

    fn begin(&mut self) -> Result<Sharing, MessageError> {
        Ok(if self.shared { Sharing::Shared } else { Sharing::Alone })
    }
}

impl AsyncPort for Turns<'_> {
    async fn run_async(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        turn().await;
        let ran = self.device.run_async(message).await;
        turn().await;
        ran
    }
}

fn bench(board: &str, part: Part) -> Bench<Nor> {
    let content = vec![0; part.size];
    Bench::new(board, Nor::new(part, content).expect("the part's size"))
}

fn chip(bench: &Bench<Nor>, shared: bool) -> SpiNor<Turns<'_>, SimTimer> {
    let device = bench.bus.device(&FLASH).expect("opens");
    SpiNor::new(Turns { device, shared }, bench.board.timer()).expect("identifies")
}

fn storage(bench: &Bench<Nor>) -> Storage<'_> {
    let mut chip = chip(bench, false);
    chip.unprotect().expect("SST25VF016B powers up protected");
    AsyncStorage::new(chip, Later(bench.board.clone())).expect("erases 4 KiB")
}

fn data(len: usize, seed: u32) -> Vec<u8> {
    (0..len as u32).map(|index| (index * 7 + seed * 31 + index / 251) as u8).collect()
}

async fn holds(storage: &mut Storage<'_>, offset: u32, wanted: &[u8]) -> bool {
    let mut back = vec![0; wanted.len()];
    storage.read(offset, &mut back).await.expect("reads");
    back == wanted
}

#[test]
fn changes_are_those_of_the_trait_on_every_controller() {
    for board in BOARDS {
        for part in [Part::w25q32jv(), Part::w25q256jv(), Part::sst25vf016b()] {
            let bench = bench(board, part);
            let mut flash = storage(&bench);
            let size = flash.capacity() as u32;
            block_on(async {
                // The last sectors are above 16 MiB where the chip has them.
                let (from, to) = (size - 3 * SECTOR, size - SECTOR);
                flash.erase(from, to).await.expect("erases");
                assert!(holds(&mut flash, from, &[0xff; 2 * SECTOR as usize]).await);
                assert!(holds(&mut flash, to, &[0; 9]).await, "the sector behind it");
                // In the middle of a page, over the sector's border.
                let (offset, bytes) = (from + SECTOR - 300, data(613, 1));
                flash.write(offset, &bytes).await.expect("writes");
                assert!(holds(&mut flash, offset, &bytes).await);
                assert!(holds(&mut flash, offset + 613, &[0xff; 64]).await);
                // Twice: bits are only cleared.
                flash.write(offset, &[0x0f]).await.expect("writes");
                assert!(holds(&mut flash, offset, &[bytes[0] & 0x0f]).await);
            });
            drop(flash);
            bench.assert_no_violations();
            let chip = bench.chip.borrow();
            assert!(!chip.selected() && !chip.write_enabled());
        }
    }
}

#[test]
fn a_future_that_is_dropped_anywhere_leaves_a_chip_that_can_be_used() {
    for part in [Part::w25q32jv(), Part::w25q256jv()] {
        let bench = bench("imx8mp", part);
        let mut flash = storage(&bench);
        let bytes = data(700, 2);
        block_on(flash.erase(0, SECTOR)).expect("erases");
        block_on(flash.write(0, &bytes)).expect("writes");
        for polls in 0.. {
            let mut over = true;
            // An erase, and programs of five pages, on their own sectors.
            {
                let mut erase = pin!(flash.erase(SECTOR, 2 * SECTOR));
                over &= polled(erase.as_mut(), polls);
            }
            block_on(flash.erase(2 * SECTOR, 3 * SECTOR)).expect("erases after a dropped erase");
            {
                let more = data(1_200, 3);
                let mut write = pin!(flash.write(2 * SECTOR + 7, &more));
                over &= polled(write.as_mut(), polls);
            }
            let own = data(300, polls as u32);
            block_on(async {
                assert!(holds(&mut flash, 0, &bytes).await, "{polls}: another sector");
                assert!(!bench.chip.borrow().write_enabled(), "{polls}");
                flash.erase(3 * SECTOR, 4 * SECTOR).await.expect("erases after a dropped write");
                flash.write(3 * SECTOR, &own).await.expect("writes");
                assert!(holds(&mut flash, 3 * SECTOR, &own).await, "{polls}");
            });
            bench.assert_no_violations();
            if over {
                assert!(polls > 40, "it was dropped in between: {polls}");
                break;
            }
        }
    }
}

/// Polls that many times. Returns whether the future ended.
fn polled<F: Future>(mut future: std::pin::Pin<&mut F>, times: usize) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    (0..times).any(|_| future.as_mut().poll(&mut cx).is_ready())
}

#[test]
fn another_device_uses_the_bus_while_the_chip_is_busy() {
    let bench = bench("imx8mp", Part::w25q32jv());
    let echo = std::rc::Rc::new(std::cell::RefCell::new(Echo::default()));
    assert!(bench.board.attach(2, echo.clone()));
    let other = bench.bus.device(&Settings::new(2, 1_000_000)).expect("opens");
    let mut flash = storage(&bench);
    let mut messages = 0_u32;
    let mut erase = pin!(flash.erase(SECTOR, 8 * SECTOR));
    let mut cx = Context::from_waker(Waker::noop());
    while erase.as_mut().poll(&mut cx).is_pending() {
        messages += 1;
        other.sync(&mut [Transfer::write(&[messages as u8])]).expect("runs");
    }
    assert!(messages > 3, "{messages}");
    assert_eq!(echo.borrow().received(), (1..=messages).map(|n| n as u8).collect::<Vec<u8>>());
    bench.assert_no_violations();
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_changed() {
    let bench = bench("imx8mp", Part::w25q32jv());
    let mut flash = storage(&bench);
    let size = flash.capacity() as u32;
    block_on(async {
        let misaligned = flash.erase(1, SECTOR).await;
        assert!(matches!(misaligned, Err(NorError::Misaligned { address: 1, .. })));
        let beyond = flash.erase(size, size + SECTOR).await;
        assert!(matches!(beyond, Err(NorError::OutOfRange { .. })), "{beyond:?}");
        let beyond = flash.write(size - 1, &[0, 0]).await;
        assert!(matches!(beyond, Err(NorError::OutOfRange { .. })), "{beyond:?}");
        let beyond = flash.read(size, &mut [0]).await;
        assert!(matches!(beyond, Err(NorError::OutOfRange { .. })), "{beyond:?}");
        assert_eq!(flash.erase(SECTOR, SECTOR).await, Ok(()));
        assert_eq!(flash.write(size, &[]).await, Ok(()));
    });
    drop(flash);
    let large = AsyncStorage::<_, _, _, 8_192>::new(chip(&bench, false), ());
    assert!(matches!(large, Err(NorError::Misaligned { address: 8_192, .. })));
    let shared = AsyncStorage::<_, _, _>::new(chip(&bench, true), ());
    assert!(matches!(shared, Err(NorError::Shared)));
    assert!(bench.chip.borrow().content().iter().all(|&byte| byte == 0));
}

fn assert_multiwrite(_: &impl MultiwriteNorFlash) {}

#[test]
fn sequential_storage_keeps_its_map_on_it() {
    let bench = bench("imx8mp", Part::w25q32jv());
    let mut flash = storage(&bench);
    assert_multiwrite(&flash);
    block_on(async {
        flash.erase(0x1000, 0x5000).await.expect("erases");
        let config = const { MapConfig::new(0x1000..0x5000) };
        let mut map = MapStorage::<u8, _, _>::new(flash, config, Cache::new_uncached());
        let mut buffer = [0; 128];
        // More than its four sectors hold: old pages are erased.
        for round in 0..60_u32 {
            for key in 0..20_u8 {
                let value = round * 1_000 + u32::from(key);
                map.store_item(&mut buffer, &key, &value).await.expect("stores");
            }
        }
        for key in 0..20_u8 {
            let value = map.fetch_item::<u32>(&mut buffer, &key).await.expect("fetches");
            assert_eq!(value, Some(59_000 + u32::from(key)));
        }
        assert_eq!(map.fetch_item::<u32>(&mut buffer, &20).await.expect("fetches"), None);
    });
    bench.assert_no_violations();
}
