//! SFDP of any bytes ends in a geometry that makes sense or in an error.
#![no_main]

use std::convert::Infallible;

use barewire::chip::spi_nor::sfdp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|image: &[u8]| {
    let Ok(parsed) = sfdp::parse(|address, into: &mut [u8]| {
        for (offset, byte) in into.iter_mut().enumerate() {
            *byte = image.get(address as usize + offset).copied().unwrap_or(0xff);
        }
        Ok::<(), Infallible>(())
    });
    if let Ok(chip) = parsed {
        assert!(chip.size > 0 && chip.page_size().is_power_of_two());
        assert!(u64::from(chip.erase_size()) <= chip.size);
    }
});
