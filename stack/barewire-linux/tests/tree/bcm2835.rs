//! Brings up a Raspberry Pi 3's SPI0 on files, and checks the values that its registers would have
//! got.
//!
//! The offsets and values are the manual's, written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::clock::ClockState;
use barewire_linux::map::{MapError, Mapped};
use barewire_linux::shared::ProcessShared;

use crate::fake::{Registers, Tree, open_alone};

const SPI0: u64 = 0x3f20_4000;
const GPIO: u64 = 0x3f20_0000;

// Offsets in the blocks.
const CS: u64 = 0x00;
const FIFO: u64 = 0x04;
const CLK: u64 = 0x08;
const DLEN: u64 = 0x0c;
const GPFSEL0: u64 = 0x00;
const GPFSEL1: u64 = 0x04;
const GPSET0: u64 = 0x1c;
const GPCLR0: u64 = 0x28;

/// CLEAR of both FIFOs, and DONE.
const CS_RESET: u32 = 0x0001_0030;

const CE0_BY_GPIO: &str = "0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8";

/// A Pi 3 whose kernel has let go of SPI0, and whose pins are SPI0's again.
fn pi3() -> Tree {
    let tree = Tree::new()
        .sparse("/dev/mem", SPI0 + 0x1000)
        .file("/proc/device-tree/compatible", "raspberrypi,3-model-b\0brcm,bcm2837\0")
        .platform("3f204000.spi", None)
        .compatible("platform", "3f204000.spi", "brcm,bcm2835-spi\0")
        .platform("3f200000.gpio", Some("pinctrl-bcm2835"));
    let memory = Registers::of(&tree, "/dev/mem");
    // Pins 7 to 9 and 10 to 11 have ALT0, pin 0 is another user's output.
    memory.set(GPIO + GPFSEL0, 0x2480_0001 | 0b100 << 21);
    memory.set(GPIO + GPFSEL1, 0b100_100);
    tree
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = pi3();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SPI0 + DLEN, 7);
    let before = memory.nonzero(&[SPI0, GPIO]);
    let mut mapped = open_alone(&tree, CE0_BY_GPIO).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Always);
    assert!(mapped.warnings().is_empty(), "{:?}", mapped.warnings());
    assert_eq!(mapped.mapped_len(), 2 * rustix::param::page_size(), "a page for each block");
    assert_eq!(memory.nonzero(&[SPI0, GPIO]), before, "mapped, not touched");

    let started = mapped.start();
    let fsel0 = before[1].1 & !(0b111 << 24) | 0b001 << 24;
    let expected = [
        (SPI0 + CS, CS_RESET),
        (GPIO + GPFSEL0, fsel0),
        (GPIO + GPFSEL1, 0b100_100),
        (GPIO + GPSET0, 1 << 8),
    ];
    assert_eq!(memory.nonzero(&[SPI0, GPIO]), expected, "pin 8 is high, then an output");
    drop(started);
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = pi3();
    let memory = Registers::of(&tree, "/dev/mem");
    let bus = Bus::new(open_alone(&tree, CE0_BY_GPIO).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 1_000_000);
    // No byte is ever received, because the registers are a file.
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no byte");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(SPI0 + FIFO), 0x9f);
    assert_eq!(memory.get(SPI0 + CLK), 400, "400 MHz by 400");
    assert_eq!((memory.get(GPIO + GPCLR0), memory.get(GPIO + GPSET0)), (1 << 8, 1 << 8));
    assert_eq!(memory.get(SPI0 + CS), CS_RESET, "and the block is reset");
}

#[test]
fn ce0_and_ce1_need_no_gpio_block() {
    let tree = pi3();
    let text = "0x3f204000,controller=bcm2835,reference-hz=400M,cs=native0+native1";
    let mapped = open_alone(&tree, text).expect("mapped");
    assert_eq!(mapped.mapped_len(), rustix::param::page_size());
    let bus = Bus::new(mapped.start());
    for line in [0, 1] {
        assert!(bus.device(&Settings::new(line, 1_000_000)).is_ok());
    }
    let missing = bus.device(&Settings::new(2, 1_000_000)).map(drop);
    assert_eq!(missing, Err(Error::NoSuchChipSelect { chip_select: 2 }));
}

#[test]
fn pins_that_left_with_the_kernels_driver_are_told() {
    let tree = pi3();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(GPIO + GPFSEL1, 0);
    let mut mapped = open_alone(&tree, CE0_BY_GPIO).expect("mapped");
    let warnings = mapped.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("pinctrl set 9-11 a0"), "{warnings:?}");
    assert_eq!(memory.get(GPIO + GPFSEL1), 0, "told, not changed");
}

#[test]
fn a_controller_is_not_taken_for_another() {
    let tree = pi3();
    let text = "0x3f204000,reference-hz=400M,cs=gpio@0x3f200000.8";
    let error = open_alone(&tree, text).expect_err("no ECSPI");
    assert!(matches!(error, MapError::OtherBlock { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("3f204000.spi") && text.ends_with("write controller=bcm2835"), "{text}");
    // Where the device tree says nothing, the user is believed.
    let tree = Tree::new().sparse("/dev/mem", SPI0 + 0x1000).platform("3f204000.spi", None);
    assert!(open_alone(&tree, CE0_BY_GPIO).is_ok());
}

#[test]
fn a_bound_controller_is_refused_with_its_own_driver() {
    let tree = Tree::new().platform("3f204000.spi", Some("spi-bcm2835"));
    let text = open_alone(&tree, CE0_BY_GPIO).expect_err("bound").to_string();
    let command = "`echo 3f204000.spi > /sys/bus/platform/drivers/spi-bcm2835/unbind`";
    assert!(text.contains(command), "{text}");
}

#[test]
fn a_shared_controller_is_brought_up_under_its_lock() {
    let tree = pi3();
    let spec = parse_mem(CE0_BY_GPIO).expect("reads");
    let mut mapped = Mapped::open(&tree.root(), &spec).expect("mapped");
    let lock = mapped.take_lock().expect("shared");
    assert_eq!(lock.path(), tree.root().path("/run/lock/barewire-3f204000.lock"));
    let bus = Bus::new(ProcessShared::bring_up(lock, || mapped.start()).expect("free"));
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("settings");
    device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("a file clocks no byte");
    assert_eq!(Registers::of(&tree, "/dev/mem").get(SPI0 + CS), CS_RESET);
}
