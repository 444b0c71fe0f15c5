//! The crates `spidev` and `linux-embedded-hal` on a W25Q32JV behind `/dev/spidev0.0`: a client of `barewire
//! run`, which knows nothing of barewire.

use embedded_hal::spi::{Operation, SpiDevice};
use linux_embedded_hal::SpidevDevice;
use linux_embedded_hal::spidev::{SpiModeFlags, Spidev, SpidevOptions, SpidevTransfer};

const NODE: &str = "/dev/spidev0.0";
const ID: [u8; 3] = [0xef, 0x40, 0x16];

fn main() {
    let mut spi = Spidev::open(NODE).expect("opens");
    let options = SpidevOptions::new()
        .bits_per_word(8)
        .lsb_first(false)
        .max_speed_hz(8_000_000)
        .mode(SpiModeFlags::SPI_MODE_0)
        .build();
    spi.configure(&options).expect("configures");
    let read = spi.query_configuration().expect("reads back");
    assert_eq!((read.max_speed_hz, read.bits_per_word), (Some(8_000_000), Some(8)));
    let mut rx = [0; 4];
    spi.transfer(&mut SpidevTransfer::read_write(&[0x9f, 0, 0, 0], &mut rx)).expect("runs");
    assert_eq!(rx[1..], ID);
    let mut id = [0; 3];
    let mut parts = [SpidevTransfer::write(&[0x9f]), SpidevTransfer::read(&mut id)];
    spi.transfer_multiple(&mut parts).expect("runs");
    assert_eq!(id, ID);

    let mut device = SpidevDevice::open(NODE).expect("opens");
    let mut id = [0; 3];
    device.transaction(&mut [Operation::Write(&[0x9f]), Operation::Read(&mut id)]).expect("runs");
    assert_eq!(id, ID);
    let mut both = [0x9f, 0, 0, 0];
    device.transfer_in_place(&mut both).expect("runs");
    assert_eq!(both[1..], ID);
    println!("the id, four times");
}
