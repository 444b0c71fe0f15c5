//! Words of 16 bits by `SpiDevice<u16>`: a flash chip hears their upper byte first, on each controller that
//! has them; and a device that takes other settings by embassy's trait.

use barewire::hal::HalDevice16;
use barewire::spi::{Error, Settings};
use barewire_sim::model::nor::{Nor, Part};
use embassy_embedded_hal::SetConfig;
use embedded_hal::spi::{Operation, SpiDevice};
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;

use super::{BOARDS, Bench, block_on};

fn bench(board: &str) -> Bench<Nor> {
    let part = Part::w25q32jv();
    let content = (0..part.size).map(|index| index as u8).collect();
    Bench::new(board, Nor::new(part, content).expect("the part's size"))
}

#[test]
fn words_are_sent_and_received_upper_byte_first() {
    let mut tried = 0;
    for board in BOARDS {
        let bench = bench(board);
        let settings = Settings::new(0, 1_000_000).with_bits_per_word(16);
        let device = match bench.bus.device(&settings) {
            Err(Error::BitsPerWord { bits: 16 }) => continue,
            device => device.expect("opens"),
        };
        tried += 1;
        let mut words = HalDevice16::new(device).expect("16 bits");
        // JEDEC identification: 9F, then EF 40 16 comes in.
        let mut id = [0x9f00, 0];
        SpiDevice::transfer_in_place(&mut words, &mut id).expect("runs");
        assert_eq!([id[0] & 0xff, id[1]], [0xef, 0x4016], "{board}");
        // Read data (03) at 0x012345, in three operations.
        let mut data = [0; 3];
        let mut operations = [
            Operation::Write(&[0x0301, 0x2345]),
            Operation::DelayNs(50),
            Operation::Read(&mut data),
        ];
        block_on(AsyncSpiDevice::transaction(&mut words, &mut operations)).expect("runs");
        assert_eq!(data, [0x4546, 0x4748, 0x494a], "{board}");
        bench.assert_no_violations();
    }
    assert!(tried >= 3, "ECSPI, PL022 and DW_apb_ssi have words of 16 bits");
}

#[test]
fn a_device_takes_other_settings_between_messages() {
    for board in BOARDS {
        let bench = bench(board);
        let mut device = bench.device(1_000_000);
        let id = |device: &mut _| {
            let mut id = [0; 3];
            let operations = &mut [Operation::Write(&[0x9f]), Operation::Read(&mut id)];
            SpiDevice::transaction(device, operations).expect("runs");
            id
        };
        assert_eq!(id(&mut device), [0xef, 0x40, 0x16], "{board}");
        let before = *device.device().settings();
        let slow_ns = bench.board.engine().now_ps();
        assert!(device.set_config(&Settings { speed_hz: 0, ..before }).is_err());
        device.set_config(&Settings { speed_hz: 10_000_000, ..before }).expect("it can");
        assert!(device.device().effective().speed_hz > 5_000_000, "{board}");
        let begun = bench.board.engine().now_ps();
        assert_eq!(begun, slow_ns, "settings take no time on the wire");
        assert_eq!(id(&mut device), [0xef, 0x40, 0x16], "{board}");
        // 32 clocks at 1 MHz are 32 us; at 5 to 10 MHz less than 7.
        assert!(bench.board.engine().now_ps() - begun < 25_000_000, "{board}");
        bench.assert_no_violations();
    }
}
