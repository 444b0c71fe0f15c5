//! Brings up a HiFive Unleashed's SPI0 on files, and checks the values that its registers would
//! have got.
//!
//! The offsets and values are the manual's, written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::map::MapError;
use barewire_linux::map::clock::ClockState;

use crate::fake::{Registers, Tree, open_alone};

const SPI0: u64 = 0x1004_0000;
const GPIO: u64 = 0x1006_0000;

// Offsets in the blocks.
const SCKDIV: u64 = 0x00;
const CSID: u64 = 0x10;
const CSDEF: u64 = 0x14;
const CSMODE: u64 = 0x18;
const FMT: u64 = 0x40;
const TXDATA: u64 = 0x48;
const RXDATA: u64 = 0x4c;
const FCTRL: u64 = 0x60;
const IE: u64 = 0x70;
const OUTPUT_EN: u64 = 0x08;
const OUTPUT_VAL: u64 = 0x0c;

const NATIVE: &str = "0x10040000,controller=sifive,reference-hz=500M,cs=native0";
const PIN_11: &str =
    "0x10040000,controller=sifive,reference-hz=500M,cs=gpio@0x10060000.11,unsafe-shared";

/// An Unleashed whose kernel has let go of SPI0. Its flash interface is on, as after a boot from
/// flash.
fn unleashed() -> Tree {
    let tree = Tree::new()
        .sparse("/dev/mem", GPIO + 0x1000)
        .file("/proc/device-tree/compatible", "sifive,hifive-unleashed-a00\0sifive,fu540\0")
        .platform("10040000.spi", None)
        .compatible("platform", "10040000.spi", "sifive,fu540-c000-spi\0sifive,spi0\0")
        .platform("10060000.gpio", Some("sifive_gpio"));
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SPI0 + FCTRL, 1);
    memory.set(SPI0 + IE, 3);
    memory.set(GPIO + OUTPUT_EN, 1);
    memory.set(GPIO + OUTPUT_VAL, 0x8001);
    tree
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = unleashed();
    let memory = Registers::of(&tree, "/dev/mem");
    let mapped = open_alone(&tree, PIN_11).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Always);
    assert_eq!((memory.get(SPI0 + IE), memory.get(GPIO + OUTPUT_EN)), (3, 1), "not touched");
    let started = mapped.start();
    assert_eq!([IE, FCTRL, CSMODE].map(|at| memory.get(SPI0 + at)), [0; 3]);
    assert_eq!(memory.get(GPIO + OUTPUT_VAL), 0x8801, "high, and its neighbours as they were");
    assert_eq!(memory.get(GPIO + OUTPUT_EN), 0x0801, "driven");
    drop(started);
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = unleashed();
    let memory = Registers::of(&tree, "/dev/mem");
    // A file clocks nothing: each read takes this byte.
    memory.set(SPI0 + RXDATA, 0xa5);
    let bus = Bus::new(open_alone(&tree, NATIVE).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 19_230_769, "500 MHz by 26");
    let mut received = [0; 3];
    device.sync(&mut [Transfer::exchange(&[0x9f, 1, 2], &mut received)]).expect("runs");
    assert_eq!(received, [0xa5; 3]);
    assert_eq!([SCKDIV, FMT, TXDATA].map(|at| memory.get(SPI0 + at)), [12, 8 << 16, 2]);
    assert_eq!([CSID, CSDEF, CSMODE].map(|at| memory.get(SPI0 + at)), [0, 1, 0], "released");
}

#[test]
fn a_byte_that_never_comes_is_a_timeout_and_the_line_is_released() {
    let tree = unleashed();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SPI0 + RXDATA, 1 << 31);
    let bus = Bus::new(open_alone(&tree, NATIVE).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("settings");
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no byte");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!([IE, CSMODE].map(|at| memory.get(SPI0 + at)), [0, 0]);
}

#[test]
fn a_controller_is_not_taken_for_another() {
    let text = NATIVE.replace("sifive", "pl022");
    let error = open_alone(&unleashed(), &text).expect_err("no PL022");
    assert!(matches!(error, MapError::OtherBlock { .. }), "{error:?}");
}
