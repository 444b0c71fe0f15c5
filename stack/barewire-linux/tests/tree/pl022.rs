//! Brings up Highbank's PL022 on files, and checks the values that its registers would have got.
//!
//! The offsets and values are the manuals', written out here and not imported.

use barewire::bus::Bus;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::map::MapError;
use barewire_linux::map::clock::ClockState;

use crate::fake::{Registers, Tree, open_alone};

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
        .cells("/sys/bus/amba/devices/fff00000.spi/of_node/clocks", &[9, 9])
        .file("/sys/bus/amba/devices/fff00000.spi/of_node/clock-names", "sspclk\0apb_pclk\0")
        .cells("/proc/device-tree/clocks/pclk/phandle", &[9])
        .cells("/proc/device-tree/clocks/pclk/#clock-cells", &[0])
        .cells("/proc/device-tree/clocks/pclk/clock-frequency", &[150_000_000])
        .file("/proc/device-tree/clocks/pclk/compatible", "fixed-clock\0")
}

#[test]
fn its_clock_is_what_its_node_says() {
    let error = open_alone(&highbank(), &PIN_OF_BANK.replace("150M", "100M")).expect_err("150 MHz");
    let text = error.to_string();
    assert!(text.contains("is 150000000 Hz (the kernel's clock pclk), not 100000000 Hz"), "{text}");
    // The function's clock is gated by a clock of its own, the bus's is fixed.
    let gated = |count: &str| {
        highbank()
            .cells("/sys/bus/amba/devices/fff00000.spi/of_node/clocks", &[10, 9])
            .cells("/proc/device-tree/clocks/sspgate@5/phandle", &[10])
            .cells("/proc/device-tree/clocks/sspgate@5/#clock-cells", &[0])
            .clock("sspgate", count, "150000000\n")
    };
    let error = open_alone(&gated("0\n"), PIN_OF_BANK).expect_err("off").to_string();
    assert!(error.contains("(clk_enable_count of sspgate is 0)"), "{error}");
    let mapped = open_alone(&gated("1\n"), PIN_OF_BANK).expect("on");
    assert_eq!(mapped.clock().to_string(), "clk_enable_count of sspgate is 1");
    // Highbank never gates the clock, so the node's `clocks` do not matter.
    let soc = gated("0\n").file("/proc/device-tree/compatible", "calxeda,highbank\0");
    assert_eq!(open_alone(&soc, PIN_OF_BANK).expect("ungated").clock(), ClockState::Always);
    // debugfs is not mounted.
    let root = gated("1\n");
    std::fs::remove_dir_all(root.root().path("/sys/kernel/debug")).expect("gone");
    let error = open_alone(&root, PIN_OF_BANK).expect_err("unknown");
    assert!(matches!(error, MapError::Clock { state: ClockState::Unknown, .. }), "{error:?}");
}

#[test]
fn a_primecells_range_is_its_resource() {
    let tree = highbank().file(
        "/sys/bus/amba/devices/fff00000.spi/resource",
        "\t00000000fff00000\t00000000fff00fff\t0000000000000200\n",
    );
    let inside = PIN_OF_BANK.replace("0xfff00000", "0xfff00800");
    let error = open_alone(&tree, &inside).expect_err("inside").to_string();
    assert!(error.contains("inside fff00000.spi (0xfff00000 to 0xfff00fff)"), "{error}");
    assert!(error.ends_with(&format!("write mem:{PIN_OF_BANK},exclusive")), "{error}");
    assert!(open_alone(&tree, PIN_OF_BANK).is_ok());
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = highbank();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(SSP + SSPIMSC, 0xf);
    memory.set(SSP + SSPCR1, 2);
    memory.set(GPIO + GPIODIR, 1);
    let before = memory.nonzero(&[SSP, GPIO]);
    let mut mapped = open_alone(&tree, PIN_OF_BANK).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Always, "a fixed clock");
    assert!(mapped.warnings().is_empty(), "{:?}", mapped.warnings());
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
    let bus = Bus::new(open_alone(&tree, PIN_OF_BANK).expect("mapped").start());
    let device = bus.device(&Settings::new(0, 20_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 18_750_000, "150 MHz by 2 and 4");
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no word");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(GPIO + PIN_3), 1 << 3, "CS is inactive again");
    assert_eq!(memory.get(SSP + SSPCR1), 0, "and the block disabled");

    // The status says that a word was received. The registers are a file, so the data register
    // returns the word written to it.
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
    let mapped = open_alone(&tree, text).expect("mapped");
    let bus = Bus::new(mapped.start());
    assert!(bus.device(&Settings::new(0, 1_000_000)).is_ok());
    assert_eq!(Registers::of(&tree, "/dev/mem").nonzero(&[GPIO]), []);
}

#[test]
fn a_primecell_has_its_driver_on_its_own_bus() {
    let tree = Tree::new().amba("fff00000.spi", Some("ssp-pl022"));
    let text = open_alone(&tree, PIN_OF_BANK).expect_err("bound").to_string();
    let command = "`echo fff00000.spi > /sys/bus/amba/drivers/ssp-pl022/unbind`";
    assert!(text.contains(command), "{text}");
    // Its node's name in old trees.
    let tree = Tree::new().amba("fff00000.ssp", Some("ssp-pl022"));
    assert!(matches!(open_alone(&tree, PIN_OF_BANK), Err(MapError::Bound { .. })));

    let tree = highbank();
    let text = "0xfff10000,controller=pl022,reference-hz=150M,cs=native0";
    let text = open_alone(&tree, text).expect_err("a watchdog").to_string();
    assert!(text.contains("fff10000.watchdog, which is no SPI controller"), "{text}");
    let text = "0xfff00000,controller=atmel,reference-hz=150M,cs=native0";
    let error = open_alone(&tree, text).expect_err("another block");
    assert!(matches!(error, MapError::OtherBlock { .. }), "{error:?}");
}
