//! Brings up a SAMA5D3's SPI0 on files, and checks the values that its registers would have got.
//!
//! The offsets and values are the datasheet's, written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::map::MapError;
use barewire_linux::map::clock::ClockState;

use crate::fake::{Registers, Tree, open_alone};

const SPI0: u64 = 0xf000_4000;
/// In the middle of a page that it shares with the other banks.
const PIOD: u64 = 0xffff_f800;
const PIO_PAGE: u64 = 0xffff_f000;

// Offsets in the blocks.
const CR: u64 = 0x00;
const MR: u64 = 0x04;
const RDR: u64 = 0x08;
const TDR: u64 = 0x0c;
const SR: u64 = 0x10;
const IDR: u64 = 0x18;
const CSR0: u64 = 0x30;
const PER: u64 = 0x00;
const OER: u64 = 0x10;
const SODR: u64 = 0x30;
const CODR: u64 = 0x34;

const PD13: u32 = 1 << 13;
/// MSTR, MODFDIS and WDRBT.
const MR_IDLE: u32 = 0x31;
/// RDRF, OVRES and TXEMPTY.
const ALL_INTERRUPTS: u32 = 0x209;

const PIN_OF_BANK: &str = "0xf0004000,controller=atmel,reference-hz=132M,cs=gpio@0xfffff800.13";

/// A SAMA5D36 whose kernel has let go of SPI0.
fn sama5d36() -> Tree {
    Tree::new()
        .sparse("/dev/mem", PIO_PAGE + 0x1000)
        .platform("f0004000.spi", None)
        .compatible("platform", "f0004000.spi", "atmel,at91rm9200-spi\0")
        .platform("fffff800.gpio", Some("gpio-at91"))
        .cells("/sys/bus/platform/devices/f0004000.spi/of_node/clocks", &[7, 2, 24])
        .file("/sys/bus/platform/devices/f0004000.spi/of_node/clock-names", "spi_clk\0")
        .file("/proc/device-tree/ahb/pmc@fffffc00/compatible", "atmel,sama5d3-pmc\0syscon\0")
        .cells("/proc/device-tree/ahb/pmc@fffffc00/#clock-cells", &[2])
        .cells("/proc/device-tree/ahb/pmc@fffffc00/phandle", &[7])
        .clock("spi0_clk", "1\n", "132000000\n")
}

#[test]
fn its_clock_is_the_kernels_count_of_the_pmcs() {
    let off = sama5d36().clock("spi0_clk", "0\n", "132000000\n");
    let error = open_alone(&off, PIN_OF_BANK).expect_err("off").to_string();
    assert!(error.contains("(clk_enable_count of spi0_clk is 0)"), "{error}");
    let half = sama5d36().clock("spi0_clk", "1\n", "66000000\n");
    let error = open_alone(&half, PIN_OF_BANK).expect_err("half").to_string();
    assert!(error.contains("is 66000000 Hz") && error.contains("reference-hz=66M,"), "{error}");
    // Another peripheral's number is no SPI controller's.
    let path = "/sys/bus/platform/devices/f0004000.spi/of_node/clocks";
    let error = open_alone(&sama5d36().cells(path, &[7, 2, 23]), PIN_OF_BANK).expect_err("unknown");
    assert!(matches!(error, MapError::Clock { state: ClockState::Unknown, .. }), "{error:?}");
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = sama5d36();
    let memory = Registers::of(&tree, "/dev/mem");
    let mapped = open_alone(&tree, PIN_OF_BANK).expect("mapped");
    assert_eq!(mapped.clock().to_string(), "clk_enable_count of spi0_clk is 1");
    assert_eq!(memory.nonzero(&[SPI0, PIO_PAGE]), [], "mapped, not touched");

    let started = mapped.start();
    let expected = [
        (SPI0 + CR, 1),
        (SPI0 + MR, MR_IDLE),
        (SPI0 + IDR, ALL_INTERRUPTS),
        (PIOD + PER, PD13),
        (PIOD + OER, PD13),
        (PIOD + SODR, PD13),
    ];
    assert_eq!(memory.nonzero(&[SPI0, PIO_PAGE]), expected, "reset, enabled, and CS high");
    drop(started);
}

#[test]
fn a_pipe_of_one_word_waits_for_no_read() {
    let tree = sama5d36();
    let memory = Registers::of(&tree, "/dev/mem");
    for (pipe, mr) in [("wait-data-read", MR_IDLE), ("one-word", 0x11), ("two-words", 0x11)] {
        let text = format!("{PIN_OF_BANK},pipe={pipe}");
        drop(open_alone(&tree, &text).expect("mapped").start());
        assert_eq!(memory.get(SPI0 + MR), mr, "{pipe}");
    }
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = sama5d36();
    let memory = Registers::of(&tree, "/dev/mem");
    let bus = Bus::new(open_alone(&tree, PIN_OF_BANK).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 44_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 44_000_000);
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no word");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(SPI0 + MR), MR_IDLE, "reset");

    // RDRF, TDRE and TXEMPTY: a word is there, and all is over.
    memory.set(SPI0 + SR, 0x203);
    memory.set(SPI0 + RDR, 0xbf);
    let mut bytes = [0x05];
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(1));
    assert_eq!((bytes, memory.get(SPI0 + TDR)), ([0xbf], 0x05));
    assert_eq!(memory.get(SPI0 + MR), MR_IDLE | 0xe << 16, "a line that nobody hears");
    assert_eq!(memory.get(SPI0 + CSR0), 0x030a, "132 MHz by 3, CSAAT, mode 0");
    assert_eq!((memory.get(PIOD + CODR), memory.get(PIOD + SODR)), (PD13, PD13));
}

#[test]
fn a_bound_controller_is_refused() {
    let tree = Tree::new().platform("f0004000.spi", Some("atmel_spi"));
    let error = open_alone(&tree, PIN_OF_BANK).expect_err("bound");
    assert!(matches!(error, MapError::Bound { .. }), "{error:?}");
}
