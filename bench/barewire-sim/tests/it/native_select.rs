//! A short write and its read on a controller's own chip select, which is active for one burst: one
//! exchange on the wire.

use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use barewire::bus::Bus;
use barewire::hal::HalDevice;
use barewire::spi::{Error, MessageError, Mode, Settings, Transfer};
use barewire_sim::Board;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::echo::Echo;
use embedded_hal::spi::{Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

/// The board's controller, and a chip on its own line that answers each byte by the one before.
fn native(name: &str, cs: u8) -> (Board, Bus<Charged<AnyController>>) {
    let board = crate::board(name);
    assert!(board.attach(cs, Rc::new(RefCell::new(Echo::default()))), "{name} has the line");
    let bus = bus(&board);
    (board, bus)
}

/// The chip's answer to `tx` followed by `zeros`, in one transfer.
fn answer(
    bus: &Bus<Charged<AnyController>>,
    settings: &Settings,
    tx: &[u8],
    zeros: usize,
) -> Vec<u8> {
    let mut bytes = [tx, &vec![0; zeros]].concat();
    let device = bus.device(settings).expect("opens");
    device.sync(&mut [Transfer::in_place(&mut bytes)]).expect("one transfer");
    bytes.split_off(tx.len())
}

#[test]
fn drivers_for_embedded_hal_run_on_a_native_line() {
    // ECSPI: a burst of any length that is joined. PL022 in mode 3, DW_apb_ssi: what the FIFO holds. SiFive SPI
    // and McSPI: their lines stay active for the message, as Cadence SPI's.
    let mode_3 = Mode::from_number(3).expect("a mode");
    for (name, cs, settings) in [
        ("beaglebone", 1, Settings::new(1, 20_000_000)),
        ("imx8mp", 1, Settings::new(1, 20_000_000)),
        ("imx6dl", 1, Settings::new(1, 5_000_000)),
        ("highbank", 1, Settings::new(1, 1_000_000).with_mode(mode_3)),
        ("rpi5", 1, Settings::new(1, 20_000_000)),
        ("unleashed", 1, Settings::new(1, 20_000_000)),
        ("zynq", 3, Settings::new(3, 20_000_000)),
    ] {
        let (board, bus) = native(name, cs);
        let expected = answer(&bus, &settings, &[0x9f, 0x5a], 3);
        let device = bus.device(&settings).expect("opens");
        board.start_selections();

        let mut rx = [0; 3];
        let mut hal = HalDevice::new(device);
        let operations = &mut [Operation::Write(&[0x9f, 0x5a]), Operation::Read(&mut rx)];
        SpiDevice::transaction(&mut hal, operations).expect(name);
        assert_eq!(rx, expected[..], "{name}");

        rx = [0; 3];
        {
            let operations = &mut [Operation::Write(&[0x9f, 0x5a]), Operation::Read(&mut rx)];
            let mut future = pin!(AsyncSpiDevice::transaction(&mut hal, operations));
            let mut context = Context::from_waker(Waker::noop());
            assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(Ok(())), "{name}");
        }
        assert_eq!(rx, expected[..], "{name}, as a future");

        rx = [0; 3];
        let message = &mut [Transfer::write(&[0x9f, 0x5a]), Transfer::read(&mut rx)];
        assert_eq!(device.try_sync(message), Ok(5), "{name}");
        assert_eq!(rx, expected[..], "{name}, without waiting");

        rx = [0; 3];
        let message = &mut [Transfer::write(&[0x9f, 0x5a]), Transfer::read(&mut rx)];
        assert_eq!(bus.lock().sync(&device, message), Ok(5), "{name}");
        assert_eq!(rx, expected[..], "{name}, in a lock");

        assert_eq!(board.take_selections().len(), 4, "{name}: selected once for each");
        assert_eq!(board.violations_total(), 0, "{name}: {:?}", board.violations());
    }
}

#[test]
fn what_no_burst_holds_is_refused_as_before() {
    for (name, cs, settings, max_bytes, len) in [
        ("imx8mp", 1, Settings::new(1, 20_000_000), 256, 64),
        // Mode 0: the line stays active for one word only, of two bytes at most.
        ("highbank", 1, Settings::new(1, 1_000_000), 1, 2),
    ] {
        let (board, bus) = native(name, cs);
        let device = bus.device(&settings).expect("opens");
        let (tx, mut rx) = ([1], vec![0xee; len]);
        let refused = device.sync(&mut [Transfer::write(&tx), Transfer::read(&mut rx)]);
        let pulse = Error::NativeCsWouldPulse { max_bytes };
        assert_eq!(refused, Err(MessageError::refused(pulse, 0)), "{name}");
        assert!(rx.iter().all(|&byte| byte == 0xee), "{name}: untouched");
        board.start_selections();
        assert_eq!(board.take_selections().len(), 0, "{name}");
    }
}
