//! Brings up a Raspberry Pi 5's SPI0 on files, and checks the values that its registers would have
//! got.
//!
//! The offsets and values are the manuals', written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::map::MapError;
use barewire_linux::map::clock::ClockState;

use crate::fake::{Registers, Tree, open_alone};

const SPI0: u64 = 0x1f_0005_0000;
const GPIO: u64 = 0x1f_000d_0000;

// Offsets in the blocks.
const CTRLR0: u64 = 0x00;
const SSIENR: u64 = 0x08;
const SER: u64 = 0x10;
const BAUDR: u64 = 0x14;
const IMR: u64 = 0x2c;
const DR: u64 = 0x60;
const GPIO8_CTRL: u64 = 0x44;
const RIO_OUT_SET: u64 = 0x1_2000;
const RIO_OUT_CLR: u64 = 0x1_3000;
const RIO_OE_SET: u64 = 0x1_2004;
const GPIO8_PAD: u64 = 0x2_0024;

const CE0_BY_GPIO: &str = "0x1f00050000,controller=dw-ssi,reference-hz=200M,cs=gpio@0x1f000d0000.8";

/// A Pi 5 whose kernel has let go of SPI0.
fn pi5() -> Tree {
    let tree = Tree::new()
        .sparse("/dev/mem", GPIO + 0x3_0000)
        .file("/proc/device-tree/compatible", "raspberrypi,5-model-b\0brcm,bcm2712\0")
        .platform("1f00050000.spi", None)
        .compatible("platform", "1f00050000.spi", "snps,dw-apb-ssi\0")
        .platform("1f000d0000.gpio", Some("pinctrl-rp1"));
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SPI0 + IMR, 0x3f);
    // GPIO 8 is SPI0's CE0, its pad pulled up.
    memory.set(GPIO + GPIO8_CTRL, 0x80);
    memory.set(GPIO + GPIO8_PAD, 0xda);
    tree
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manuals_say() {
    let tree = pi5();
    let memory = Registers::of(&tree, "/dev/mem");
    let mut mapped = open_alone(&tree, CE0_BY_GPIO).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Always);
    assert!(mapped.warnings().is_empty(), "{:?}", mapped.warnings());
    assert_eq!((memory.get(SPI0 + IMR), memory.get(GPIO + RIO_OUT_SET)), (0x3f, 0), "not touched");
    let started = mapped.start();
    assert_eq!((memory.get(SPI0 + IMR), memory.get(SPI0 + SSIENR)), (0, 0));
    assert_eq!(memory.get(GPIO + RIO_OUT_SET), 1 << 8, "high");
    assert_eq!(memory.get(GPIO + RIO_OE_SET), 1 << 8, "driven");
    assert_eq!(memory.get(GPIO + GPIO8_PAD), 0x5a, "enabled, its pull kept");
    assert_eq!(memory.get(GPIO + GPIO8_CTRL), 0x85, "by SYS_RIO");
    drop(started);
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = pi5();
    let memory = Registers::of(&tree, "/dev/mem");
    let bus = Bus::new(open_alone(&tree, CE0_BY_GPIO).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 1_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 1_000_000);
    // No word ever comes: a file clocks none.
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f, 1, 2, 3])]).expect_err("no word");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(SPI0 + DR), 0x9f01_0203, "four bytes in a frame");
    assert_eq!(memory.get(SPI0 + CTRLR0), 31 << 16, "of 32 bits");
    assert_eq!(memory.get(SPI0 + BAUDR), 200, "200 MHz by 200");
    assert_eq!(memory.get(GPIO + RIO_OUT_CLR), 1 << 8, "selected");
    assert_eq!((memory.get(SPI0 + SSIENR), memory.get(SPI0 + SER)), (0, 0), "and reset");
}

#[test]
fn a_controller_is_not_taken_for_another() {
    let text = CE0_BY_GPIO.replace("dw-ssi", "atmel");
    let error = open_alone(&pi5(), &text).expect_err("no SPI of Atmel's");
    assert!(matches!(error, MapError::OtherBlock { .. }), "{error:?}");
}
