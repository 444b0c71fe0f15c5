//! The crate `rppal`: which Raspberry Pi it takes itself to run on, and the id of the flash behind `/dev/spidev0.1`. A
//! client of `barewire run`, which knows nothing of barewire.

use rppal::spi::{Bus, Mode, Segment, SlaveSelect, Spi};
use rppal::system::DeviceInfo;

fn main() {
    let info = DeviceInfo::new().expect("a Raspberry Pi");
    println!("{}, {}", info.model(), info.soc());
    let spi = Spi::new(Bus::Spi0, SlaveSelect::Ss1, 8_000_000, Mode::Mode0).expect("opens");
    let mut id = [0; 3];
    let command = Segment::with_write(&[0x9f]);
    spi.transfer_segments(&[command, Segment::with_read(&mut id)]).expect("runs");
    println!("the id {id:02x?}");
}
