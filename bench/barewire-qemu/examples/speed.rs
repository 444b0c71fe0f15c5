//! How fast QEMU's board is on this machine: informs, and gates nothing.
//!
//! `cargo run --release -p barewire-qemu --example speed`

use std::error::Error;
use std::time::Instant;

use barewire::chip::spi_nor::{SpiNor, no_observer};
use barewire::reg::Registers;
use barewire::spi::Settings;
use barewire_qemu::{QemuBoard, QemuOptions};

/// GPIO3's data register and ECSPI1's status: neither does anything when touched.
const GPIO3: u32 = 0x020a_4000;
const ECSPI1: u32 = 0x0200_8000;
const STATREG: u32 = 0x18;

fn main() -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let board = QemuBoard::open("sabrelite", &QemuOptions::default())?;
    let bus = board.bus();
    let mut chip = SpiNor::new(bus.device(&Settings::new(0, 20_000_000))?, board.timer())?;
    println!("start to identified chip: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);

    let (mut gpio, mut ecspi) = (board.registers(GPIO3), board.registers(ECSPI1));
    let high = gpio.read(0);
    rate("posted writes", 300_000, || {
        for _ in 0..300_000 {
            gpio.write(0, high);
        }
        gpio.read(0);
    });
    for run in [64, 16, 1] {
        let mut words = vec![0; run];
        let runs = 64_000 / run;
        rate(&format!("reads in runs of {run}"), runs * run, || {
            for _ in 0..runs {
                ecspi.read_n(STATREG, &mut words);
            }
        });
    }

    let data: Vec<u8> =
        (0..64_u32 << 10).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut scratch = vec![0; 4096];
    seconds("64 KiB write, read back included", || {
        chip.write(0x1_0000, &data, &mut scratch, &mut no_observer).map(|_| ())
    })?;
    seconds("64 KiB verify", || chip.verify(0x1_0000, &data, &mut scratch, &mut no_observer))?;
    let mut whole = vec![0; 2 << 20];
    seconds("whole chip read, 2 MiB", || chip.read(0, &mut whole))?;
    seconds("whole chip erase", || chip.erase(0..2 << 20, &mut no_observer))?;
    drop(chip);
    let begun = Instant::now();
    board.close()?;
    println!("close: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

fn rate(what: &str, count: usize, work: impl FnOnce()) {
    let begun = Instant::now();
    work();
    println!("{what}: {:.0} a second", count as f64 / begun.elapsed().as_secs_f64());
}

fn seconds<E>(what: &str, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let begun = Instant::now();
    work()?;
    println!("{what}: {:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}
