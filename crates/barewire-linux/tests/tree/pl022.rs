//! Highbank's PL022 brought up on files: what its registers would have been told.
//!
//! The offsets and values are the manuals', written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::bus_text::parse_mem;
use barewire_linux::map::clock::ClockState;
use barewire_linux::map::{MapError, Mapped};

use crate::fake::{Registers, Tree};

const SSP: u64 = 0xfff0_0000;
const GPIO: u64 = 0xfff3_0000;

// Offsets in the blocks.
const SSPCR0: u64 = 0x00;
const SSPCR1: u64 = 0x04;
const SSPDR: u64 = 0x08;
const SSPSR: u64 = 0x0c;
const SSPCPSR: u64 = 0x10;
const SSPIMSC: u64 = 0x14;
const SSPICR: u64 = 0x20;
const GPIODIR: u64 = 0x400;
/// The window of pin 3 alone in GPIODATA.
const PIN_3: u64 = (1 << 3) << 2;

/// The receive FIFO has a word.
const RNE: u32 = 1 << 2;

const PIN_OF_BANK: &str = "0xfff00000,controller=pl022,reference-hz=150M,cs=gpio@0xfff30000.3";

/// A Highbank whose kernel has let go of its SSP.
fn highbank() -> Tree {
    Tree::new()
        .sparse("/dev/mem", GPIO + 0x1000)
        .amba("fff00000.spi", None)
        .compatible("amba", "fff00000.spi", "arm,pl022\0arm,primecell\0")
        .amba("fff30000.gpio", Some("pl061_gpio"))
        .amba("fff10000.watchdog", Some("sp805-wdt"))
}

fn open(tree: &Tree, text: &str) -> Result<Mapped, MapError> {
    Mapped::open(&tree.root(), &parse_mem(text).expect("reads"))
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = highbank();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SSP + SSPIMSC, 0xf);
    memory.set(SSP + SSPCR1, 2);
    memory.set(GPIO + GPIODIR, 1);
    let before = memory.nonzero(&[SSP, GPIO]);
    let mapped = open(&tree, PIN_OF_BANK).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Unknown);
    assert!(mapped.warnings()[0].contains("cannot be checked"), "{:?}", mapped.warnings());
    assert_eq!(mapped.mapped_len(), 2 * 0x1000_usize.next_multiple_of(rustix::param::page_size()));
    assert_eq!(memory.nonzero(&[SSP, GPIO]), before, "mapped, not touched");

    let started = mapped.start();
    let expected = [(SSP + SSPICR, 3), (GPIO + PIN_3, 1 << 3), (GPIO + GPIODIR, 1 << 3 | 1)];
    assert_eq!(memory.nonzero(&[SSP, GPIO]), expected, "disabled, masked, and CS high");
    drop(started);
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = highbank();
    let memory = Registers::of(&tree, "/dev/mem");
    let bus = Bus::new(open(&tree, PIN_OF_BANK).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 18_750_000, "150 MHz by 2 and 4");
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no word");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(GPIO + PIN_3), 1 << 3, "CS is inactive again");
    assert_eq!(memory.get(SSP + SSPCR1), 0, "and the block disabled");

    // A word is there: a file's data register gives back what it was given.
    memory.set(SSP + SSPSR, RNE);
    let mut bytes = [0x05];
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(1));
    assert_eq!((bytes, memory.get(SSP + SSPDR)), ([0x05], 0x05));
    assert_eq!(memory.get(SSP + SSPCR0), 0x0307, "by 4, words of 8 bits, mode 0");
    assert_eq!((memory.get(SSP + SSPCPSR), memory.get(SSP + SSPCR1)), (2, 2));
    assert_eq!(memory.get(GPIO + PIN_3), 1 << 3);
}

#[test]
fn its_own_line_needs_no_bank() {
    let tree = highbank();
    let text = "0xfff00000,controller=pl022,reference-hz=150M,cs=native0";
    let mapped = open(&tree, text).expect("mapped");
    let bus = Bus::new(mapped.start());
    assert!(bus.device(&Settings::new(0, 1_000_000)).is_ok());
    assert_eq!(Registers::of(&tree, "/dev/mem").nonzero(&[GPIO]), []);
}

#[test]
fn a_primecell_has_its_driver_on_its_own_bus() {
    let tree = Tree::new().amba("fff00000.spi", Some("ssp-pl022"));
    let text = open(&tree, PIN_OF_BANK).expect_err("bound").to_string();
    let command = "`echo fff00000.spi > /sys/bus/amba/drivers/ssp-pl022/unbind`";
    assert!(text.contains(command), "{text}");
    // Its node's name in old trees.
    let tree = Tree::new().amba("fff00000.ssp", Some("ssp-pl022"));
    assert!(matches!(open(&tree, PIN_OF_BANK), Err(MapError::Bound { .. })));

    let tree = highbank();
    let text = "0xfff10000,controller=pl022,reference-hz=150M,cs=native0";
    let text = open(&tree, text).expect_err("a watchdog").to_string();
    assert!(text.contains("fff10000.watchdog, which is no SPI controller"), "{text}");
    let text = "0xfff00000,controller=atmel,reference-hz=150M,cs=native0";
    let error = open(&tree, text).expect_err("another block");
    assert!(matches!(error, MapError::OtherBlock { .. }), "{error:?}");
}
