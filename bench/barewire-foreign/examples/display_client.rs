//! The crates `ssd1306`, `linux-embedded-hal` and `gpio-cdev` on a display behind `/dev/spidev0.0`, its D/C and
//! RESET at lines 24 and 25 of `/dev/gpiochip0`: a client of `barewire run`, which knows nothing of barewire.
//! Its argument is the file for the picture, a bitmap.

use display_interface_spi::SPIInterface;
use linux_embedded_hal::gpio_cdev::{Chip, LineHandle, LineRequestFlags};
use linux_embedded_hal::spidev::SpidevOptions;
use linux_embedded_hal::{CdevPin, Delay, SpidevDevice};
use ssd1306::Ssd1306;
use ssd1306::mode::DisplayConfig;
use ssd1306::prelude::{DisplayRotation, DisplaySize128x64};

/// The dots of a ring and a diagonal.
fn lit(x: u32, y: u32) -> bool {
    let (dx, dy) = (x.abs_diff(64), y.abs_diff(32));
    (600..900).contains(&(dx * dx + dy * dy)) || x == 2 * y
}

fn main() {
    let mut chip = Chip::new("/dev/gpiochip0").expect("opens");
    let mut output = |line: u32| {
        let line = chip.get_line(line).expect("there is one");
        let handle: LineHandle =
            line.request(LineRequestFlags::OUTPUT, 1, "display_client").expect("free");
        CdevPin::new(handle).expect("an output")
    };
    let (dc, mut reset) = (output(24), output(25));
    let mut spi = SpidevDevice::open("/dev/spidev0.0").expect("opens");
    let options = SpidevOptions::new().bits_per_word(8).max_speed_hz(8_000_000).build();
    spi.0.configure(&options).expect("configures");

    let interface = SPIInterface::new(spi, dc);
    let mut display = Ssd1306::new(interface, DisplaySize128x64, DisplayRotation::Rotate0)
        .into_buffered_graphics_mode();
    display.reset(&mut reset, &mut Delay).expect("resets");
    display.init().expect("initialises");
    let mut bitmap = b"P4\n128 64\n".to_vec();
    for y in 0..64 {
        for eight in 0..16 {
            let mut byte = 0;
            for x in 8 * eight..8 * eight + 8 {
                display.set_pixel(x, y, lit(x, y));
                byte = byte << 1 | u8::from(lit(x, y));
            }
            bitmap.push(byte);
        }
    }
    display.flush().expect("sends");
    let path = std::env::args().nth(1).expect("a file's name");
    std::fs::write(path, bitmap).expect("written");
}
