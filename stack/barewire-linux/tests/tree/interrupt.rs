//! Messages that sleep for a UIO device's interrupt.
//!
//! A FIFO is the device: what the driver writes to let the interrupt come, it reads as the count
//! of one that came.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use barewire::bus::Bus;
use barewire::controller::CsLine;
use barewire::controller::Interrupt;
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::GpioBank;
use barewire::reg::Registers;
use barewire::spi::{Settings, Transfer};
use barewire_linux::Monotonic;
use barewire_linux::map::{MappedInterrupt, Uio};

use crate::fake::Tree;

fn device() -> (Tree, Uio) {
    let tree = Tree::new().fifo("/dev/uio0").directory("/sys/class/uio/uio0/maps");
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    (tree, uio)
}

/// A block that receives each word only after the driver has polled a few times.
#[derive(Default)]
struct Slow {
    sent: VecDeque<u32>,
    come: VecDeque<u32>,
    threshold: usize,
    looks: u32,
    armed: u32,
}

impl Registers for Slow {
    fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x00 => self.come.pop_front().expect("only what has come is read"),
            0x18 => {
                self.looks += 1;
                if self.looks % 3 == 0 {
                    self.come.append(&mut self.sent);
                }
                u32::from(self.sent.is_empty())
                    | u32::from(!self.come.is_empty()) << 3
                    | u32::from(self.come.len() > self.threshold) << 4
            }
            _ => 0,
        }
    }
    fn write(&mut self, offset: u32, value: u32) {
        match offset {
            0x04 => self.sent.push_back(value),
            0x10 => self.armed += u32::from(value != 0),
            0x14 => self.threshold = (value >> 16) as usize,
            _ => {}
        }
    }
}

struct NoPins;

impl GpioBank for NoPins {
    fn drive(&mut self, _mask: u32, _high: bool) {}
    fn output(&mut self, _mask: u32, _high: bool) {}
}

#[test]
fn a_message_sleeps_until_the_interrupt_and_looks_again_if_it_was_none() {
    let (_tree, uio) = device();
    // The interrupt came, and was masked, before the first wait: its count is in the FIFO.
    let interrupt = MappedInterrupt::of(uio).expect("can be masked");
    let pin = CsLine::Gpio { bit: 0, active_high: false };
    let config = EcspiConfig {
        reference_hz: 80_000_000,
        chip_selects: [pin, CsLine::Absent, CsLine::Absent, CsLine::Absent],
        poll_limit_ns: 0,
    };
    let ecspi = Ecspi::new(Slow::default(), NoPins, Monotonic::new(), config);
    let bus = Bus::new(ecspi.with_interrupt(interrupt));
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("settings");
    let mut bytes: Vec<u8> = (0..600).map(|i| i as u8).collect();
    let sent = bytes.clone();
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(600));
    assert_eq!(bytes, sent);
    let block = bus.into_inner().release().0;
    assert!(block.armed > 3, "{} times", block.armed);
}

#[test]
fn nobody_sleeps_longer_than_asked() {
    let (tree, uio) = device();
    let mut interrupt = MappedInterrupt::of(uio).expect("can be masked");
    assert!(interrupt.wait(1_000_000), "what masked it");
    let begun = Instant::now();
    assert!(!interrupt.wait(20_000));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let kernel = File::options().read(true).write(true).open(tree.root().path("/dev/uio0"));
    kernel.expect("opened").write_all(&7_u32.to_ne_bytes()).expect("written");
    assert!(interrupt.wait(1_000_000));
}

#[test]
fn a_device_that_went_wrong_is_not_spun_on() {
    // A file at its end is a UIO device that answers EIO.
    let tree = Tree::new().file("/dev/uio0", "").directory("/sys/class/uio/uio0/maps");
    let uio = Uio::open(&tree.root(), "uio0").expect("opened");
    let mut interrupt = MappedInterrupt::of(uio).expect("a file takes anything");
    let begun = Instant::now();
    assert!(!interrupt.wait(1_000_000), "nothing came");
    assert!(begun.elapsed() >= Duration::from_micros(50));
}
