//! Each static is as large as a type: `cargo xtask size` reads the sizes of the symbols.
#![no_std]
#![no_main]

use barewire::bus::platform::Spin;
use barewire::bus::{Bus, Device, Plain, Prepared};
use cortex_m_rt::entry;
use firmware_size::Interrupted;
use panic_halt as _;

macro_rules! sizes {
    ($($name:ident: $Type:ty),* $(,)?) => {
        $(#[used]
        #[unsafe(no_mangle)]
        static $name: [u8; size_of::<$Type>()] = [0; size_of::<$Type>()];)*
    };
}

sizes! {
    RAM_CONTROLLER: firmware_size::Plain,
    RAM_BUS_PLAIN: Bus<firmware_size::Plain, Plain>,
    RAM_BUS_SPIN: Bus<Interrupted, Spin>,
    RAM_BUS_ANY: Bus<Interrupted>,
    RAM_DEVICE: Device<'static, firmware_size::Plain, Plain>,
    RAM_PREPARED_4: Prepared<'static, firmware_size::Plain, 4, Plain>,
}

#[entry]
fn main() -> ! {
    loop {
        core::hint::black_box(());
    }
}
