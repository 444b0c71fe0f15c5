//! A driver for `embedded-hal`, which knows nothing of barewire, on a simulated Raspberry Pi.
//!
//! `cargo run -p barewire-sim --example hal_driver`. On Linux the same driver takes a device of
//! spidev or of mapped registers: only the bus is made differently.

use std::error::Error;

use barewire::bus::Bus;
use barewire::hal::HalDevice;
use barewire::spi::Settings;
use barewire_sim::model::signal::Signal;
use barewire_sim::{Board, BoardOptions, BoardSpec, bring_up};
use embedded_hal::spi::SpiDevice;

/// An MCP3008: eight channels of ten bits (Microchip DS21295, "Serial communication").
struct Mcp3008<S>(S);

impl<S: SpiDevice> Mcp3008<S> {
    /// A conversion of `channel`, from 0 to 1023.
    fn read(&mut self, channel: u8) -> Result<u16, S::Error> {
        let mut bytes = [1, 0x80 | channel << 4, 0];
        self.0.transfer_in_place(&mut bytes)?;
        Ok(u16::from(bytes[1] & 3) << 8 | u16::from(bytes[2]))
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let board = Board::new(BoardSpec::find("rpi3")?, BoardOptions::default());
    let chip = board.attach_adc().ok_or("the board has an ADC")?;
    // A quarter of the reference voltage, 5 V.
    chip.borrow_mut().set_input(0, Signal::Constant { level_uv: 1_250_000 });
    let bus: Bus<_> = bring_up::bus(&board);
    // T_CSH: 270 ns between two conversions. Without it the board complains, as silicon may not.
    let settings = Settings { cs_inactive_ns: 270, ..Settings::new(0, 3_600_000) };
    let device = bus.device(&settings)?;

    let mut adc = Mcp3008(HalDevice::new(device));
    let begun_ps = board.engine().now_ps();
    let samples: Vec<u16> = (0..4).map(|_| adc.read(0)).collect::<Result<_, _>>()?;
    let took_ns = (board.engine().now_ps() - begun_ps) / 1_000;
    println!("channel 0: {samples:?}, {} ns a sample (simulated)", took_ns / 4);
    assert_eq!(samples, [256; 4]);
    assert!(board.violations().is_empty(), "{:?}", board.violations());
    Ok(())
}
