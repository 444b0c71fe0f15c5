//! Nothing: the vectors and the start of any program.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use panic_halt as _;

#[entry]
fn main() -> ! {
    loop {
        core::hint::black_box(());
    }
}
