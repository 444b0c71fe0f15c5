//! Brings up an ECSPI on files, and checks the values that its registers would have got.
//!
//! The offsets and values are the reference manual's, written out here and not imported.

use std::task::Poll;

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Error, Settings, Transfer};
use barewire_linux::bus_text::{parse_mem, parse_uio};
use barewire_linux::map::clock::ClockState;
use barewire_linux::map::{MapError, MapSpec, Mapped, SpecError};
use barewire_linux::shared::{ProcessShared, SharedError};

use crate::fake::{Registers, Tree, alone};

const ECSPI1: u64 = 0x3082_0000;
const GPIO5: u64 = 0x3024_0000;
const CCGR7: u64 = 0x3038_4070;
const ROOT_101: u64 = 0x3038_b280;
const ROOT_ENABLE: u32 = 1 << 28;

// Offsets in the blocks.
const RXDATA: u64 = 0x00;
const TXDATA: u64 = 0x04;
const CONREG: u64 = 0x08;
const CONFIGREG: u64 = 0x0c;
const INTREG: u64 = 0x10;
const DMAREG: u64 = 0x14;
const STATREG: u64 = 0x18;
const RDR: u32 = 1 << 4;
const RF: u32 = 1 << 5;
const DR: u64 = 0;
const GDIR: u64 = 4;

/// Enabled, four channels as controllers, a burst of eight bits.
const CONREG_IDLE: u32 = 0x0070_00f1;
const RR: u32 = 1 << 3;
const TC: u32 = 1 << 7;

const MEM: &str = "0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9";
const UIO: &str = "uio0,reference-hz=80M,cs=gpio@0x30240000.9,ignore-clock";

/// An i.MX 8M Plus whose kernel has let go of ECSPI1, whose clock runs.
fn imx8mp() -> Tree {
    imx8mp_bound(None)
}

/// An i.MX 8M Plus with `driver` bound to ECSPI1.
fn imx8mp_bound(driver: Option<&str>) -> Tree {
    let tree = Tree::new()
        .sparse("/dev/mem", ECSPI1 + 0x1_0000)
        .file("/proc/device-tree/compatible", "fsl,imx8mp-evk\0fsl,imx8mp\0")
        .platform("30820000.spi", driver)
        .platform("30240000.gpio", None)
        .platform("30280000.watchdog", Some("imx2-wdt"));
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(CCGR7, 3);
    memory.set(ROOT_101, ROOT_ENABLE);
    tree
}

fn mem(text: &str) -> MapSpec {
    parse_mem(text).expect("reads")
}

fn uio(text: &str) -> MapSpec {
    parse_uio(text).expect("reads")
}

#[test]
fn nothing_is_touched_until_the_start_and_then_as_the_manual_says() {
    let tree = imx8mp();
    let memory = Registers::of(&tree, "/dev/mem");
    // Other pins of the bank are the kernel's: one output is high.
    memory.set(GPIO5 + DR, 0x8000_0001);
    memory.set(GPIO5 + GDIR, 0x0000_0001);
    memory.set(ECSPI1 + INTREG, 0xff);
    let blocks = [ECSPI1, GPIO5];
    let before = memory.nonzero(&blocks);

    let mut mapped = Mapped::open(&tree.root(), &alone(mem(MEM))).expect("mapped");
    assert!(matches!(mapped.clock(), ClockState::Running(_)), "{:?}", mapped.clock());
    assert!(mapped.warnings().is_empty(), "{:?}", mapped.warnings());
    assert_eq!(mapped.mapped_len(), 2 * rustix::param::page_size(), "a page for each block");
    assert_eq!(memory.nonzero(&blocks), before, "mapped, not touched");

    let ecspi = mapped.start();
    let expected =
        [(ECSPI1 + CONREG, CONREG_IDLE), (GPIO5 + DR, 0x8000_0201), (GPIO5 + GDIR, 0x0000_0201)];
    assert_eq!(memory.nonzero(&blocks), expected, "INTREG is cleared, the rest untouched");
    drop(ecspi);
    assert_eq!(memory.get(CCGR7), 3, "the gate is only read");
}

#[test]
fn a_message_runs_on_the_mapped_registers() {
    let tree = imx8mp();
    let memory = Registers::of(&tree, "/dev/mem");
    let ecspi = Mapped::open(&tree.root(), &alone(mem(MEM))).expect("mapped").start();
    let bus = Bus::new(ecspi);
    // Line 1 is the GPIO; at 20 MHz TXDATA's write starts the burst.
    let device = bus.device(&Settings::new(1, 20_000_000)).expect("settings");
    assert_eq!(device.effective().speed_hz, 20_000_000);

    // No word ever comes: a file clocks none.
    let timed_out = device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("no word");
    assert!(matches!(timed_out.error, Error::Timeout { .. }), "{timed_out}");
    assert_eq!(memory.get(ECSPI1 + TXDATA), 0x9f);
    assert_eq!(memory.get(GPIO5 + DR), 1 << 9, "CS is inactive again");
    assert_eq!(memory.get(ECSPI1 + CONREG), CONREG_IDLE, "and the block is reset");

    // A word is there.
    memory.set(ECSPI1 + STATREG, RR);
    memory.set(ECSPI1 + RXDATA, 0xbf);
    let mut bytes = [0x05];
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut bytes)]), Ok(1));
    assert_eq!(bytes, [0xbf]);
    assert_eq!(memory.get(ECSPI1 + TXDATA), 0x05);
    assert_eq!(memory.get(ECSPI1 + CONFIGREG), 0, "mode 0, lines active low");
    // 80 MHz by 4, started by the word (SMC), on channel 1: line 0 of the table owns SS0.
    let conreg = memory.get(ECSPI1 + CONREG);
    assert_eq!(conreg & (3 << 18 | 1 << 3 | 1), 1 << 18 | 1 << 3 | 1, "{conreg:#x}");
    assert_eq!(memory.get(GPIO5 + DR), 1 << 9);
}

#[test]
fn a_controller_without_gpio_lines_needs_no_bank() {
    let tree = imx8mp();
    let spec = mem("0x30820000,reference-hz=80M,cs=native0+native3");
    let mapped = Mapped::open(&tree.root(), &alone(spec)).expect("mapped");
    assert_eq!(mapped.mapped_len(), rustix::param::page_size());
    let bus = Bus::new(mapped.start());
    for line in [0, 1] {
        assert!(bus.device(&Settings::new(line, 1_000_000)).is_ok());
    }
    let missing = bus.device(&Settings::new(2, 1_000_000)).map(drop);
    assert_eq!(missing, Err(Error::NoSuchChipSelect { chip_select: 2 }));
    assert_eq!(Registers::of(&tree, "/dev/mem").nonzero(&[GPIO5]), []);
}

#[test]
fn a_bound_controller_is_refused_and_untouched() {
    let tree = imx8mp().platform("30820000.ecspi", Some("spi_imx"));
    let memory = Registers::of(&tree, "/dev/mem");
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("bound");
    let text = error.to_string();
    assert!(text.contains("`echo 30820000.ecspi > /sys/bus/platform/drivers/spi_imx/unbind`"));
    assert_eq!(memory.nonzero(&[ECSPI1, GPIO5]), []);

    // The driver is checked before /dev/mem is opened, so the error names it without rights too.
    let tree = Tree::new().platform("30820000.spi", Some("spi_imx"));
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("bound");
    assert!(matches!(error, MapError::Bound { .. }), "{error:?}");
}

#[test]
fn a_mistyped_address_is_no_reason_to_unbind_a_watchdog() {
    let tree = imx8mp();
    let open = |text| Mapped::open(&tree.root(), &mem(text)).expect_err(text).to_string();
    let text = open("0x30280000,reference-hz=80M,cs=native0");
    assert!(text.contains("30280000.watchdog, which is no SPI controller"), "{text}");
    let text = open("0x30820000,reference-hz=80M,cs=gpio@0x30280000.1");
    assert!(text.contains("30280000.watchdog, which is no GPIO bank"), "{text}");
}

#[test]
fn a_closed_gate_is_refused_unless_told_otherwise() {
    let tree = imx8mp();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(CCGR7, 0);
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("gated");
    let text = error.to_string();
    assert!(text.contains("CCM_CCGR7 at 0x30384070") && text.contains("ignore-clock"), "{text}");

    let spec = mem(&format!("{MEM},ignore-clock"));
    let mut mapped = Mapped::open(&tree.root(), &spec).expect("told to");
    assert!(mapped.warnings()[0].contains("clock is off"));
    assert_eq!(memory.nonzero(&[ECSPI1, GPIO5]), [], "still to be decided");
}

#[test]
fn an_unknown_soc_is_refused_unless_told_otherwise() {
    let tree = Tree::new().sparse("/dev/mem", ECSPI1 + 0x1_0000);
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("unknown");
    let MapError::Clock { address: ECSPI1, state: ClockState::Unknown, remedy } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        *remedy,
        "mem:0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9,ignore-clock"
    );
    let text = error.to_string();
    assert!(text.contains("debugfs") && text.ends_with(remedy), "{text}");
    let spec = mem(remedy.strip_prefix("mem:").expect("as it was"));
    let mut mapped = Mapped::open(&tree.root(), &spec).expect("told to");
    assert_eq!(mapped.clock(), ClockState::Unknown);
    assert!(mapped.warnings()[0].contains("cannot be checked"));
}

#[test]
fn a_root_clock_that_is_off_is_refused_though_the_gate_is_open() {
    let tree = imx8mp();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(ROOT_101, !ROOT_ENABLE);
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("off").to_string();
    assert!(error.contains("is off (CCM_TARGET_ROOT at 0x3038b280, ENABLE)"), "{error}");
    // i.MX 6 has no such register.
    memory.set(ROOT_101, 0);
    let tree = Tree::new()
        .sparse("/dev/mem", 0x020c_5000)
        .file("/proc/device-tree/compatible", "fsl,imx6q\0");
    Registers::of(&tree, "/dev/mem").set(0x020c_406c, 3);
    let spec = mem("0x02008000,reference-hz=60M,cs=native0");
    let mapped = Mapped::open(&tree.root(), &spec).expect("runs");
    assert!(matches!(mapped.clock(), ClockState::Running(_)), "{:?}", mapped.clock());
}

#[test]
fn a_clock_that_the_kernel_counts_no_users_of_is_refused_though_its_registers_say_on() {
    let counted = |count: &str| imx8mp().clock("ecspi1_root_clk", count, "80000000\n");
    let error = Mapped::open(&counted("0\n").root(), &mem(MEM)).expect_err("off").to_string();
    assert!(error.contains("(clk_enable_count of ecspi1_root_clk is 0)"), "{error}");
    assert!(error.ends_with("cs=native0+gpio@0x30240000.9,ignore-clock"), "{error}");
    let mapped = Mapped::open(&counted("1\n").root(), &mem(MEM)).expect("on");
    assert!(matches!(mapped.clock(), ClockState::Running(_)), "{:?}", mapped.clock());

    // The count is enough where the registers cannot be read.
    let tree = with_uio(Tree::new()).file("/proc/device-tree/compatible", "fsl,imx8mp\0").clock(
        "ecspi1_root_clk",
        "2\n",
        "80000000\n",
    );
    let mapped = Mapped::open(&tree.root(), &uio("uio0,reference-hz=80M,cs=native0"));
    let state = mapped.expect("on").clock();
    assert_eq!(state.to_string(), "clk_enable_count of ecspi1_root_clk is 2");
}

#[test]
fn another_rate_than_the_kernels_is_refused_with_both() {
    let tree = imx8mp().clock("ecspi1_root_clk", "1\n", "24000000\n");
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("24 MHz");
    let text = error.to_string();
    assert!(text.contains("is 24000000 Hz (the kernel's clock ecspi1_root_clk)"), "{text}");
    assert!(text.contains("not 80000000 Hz"), "{text}");
    let right = "mem:0x30820000,reference-hz=24M,cs=native0+gpio@0x30240000.9";
    assert!(text.contains(&format!("write {right}, or")), "{text}");
    let right = right.strip_prefix("mem:").expect("a bus");
    let mut mapped = Mapped::open(&tree.root(), &mem(right)).expect("24 MHz");
    assert!(mapped.warnings().is_empty(), "{:?}", mapped.warnings());
    let mut mapped =
        Mapped::open(&tree.root(), &mem(&format!("{MEM},ignore-clock"))).expect("told to");
    let warnings = mapped.warnings();
    assert!(
        warnings[0].contains("24000000 Hz") && warnings[0].contains("80000000"),
        "{warnings:?}"
    );

    // Off and of another rate: the text to write has the right one.
    let tree = imx8mp().clock("ecspi1_root_clk", "0\n", "24000000\n");
    let error = Mapped::open(&tree.root(), &mem(MEM)).expect_err("off").to_string();
    assert!(
        error.ends_with("reference-hz=24M,cs=native0+gpio@0x30240000.9,ignore-clock"),
        "{error}"
    );
}

#[test]
fn a_uio_device_whose_bus_keeps_the_clock_passes_for_those_who_may_read_no_counts() {
    const SIMPLE: &str = "simple-pm-bus\0";
    const NODE: &str = "/spi@30820000";
    // The node of the kernel's driver, which the overlay disables, has the clocks that the controller needs.
    let under = |compatible: &str, clocks: &[u32], status: &str, release: &str, needed: &[u32]| {
        let bus = "/sys/devices/barewire-uio-30820000";
        let tree = with_uio(Tree::new())
            .bus("", [1, 1], None)
            .node(NODE, "fsl,imx8mp-ecspi\0", &[0x3082_0000, 0x1_0000])
            .file("/proc/device-tree/spi@30820000/status", "disabled\0")
            .cells("/proc/device-tree/spi@30820000/clocks", needed)
            .cells("/proc/device-tree/ccm/phandle", &[2])
            .cells("/proc/device-tree/ccm/#clock-cells", &[1])
            .cells("/proc/device-tree/pclk/phandle", &[3])
            .cells("/proc/device-tree/pclk/#clock-cells", &[0])
            .file("/proc/device-tree/pclk/compatible", "fixed-clock\0")
            .file("/proc/sys/kernel/osrelease", release)
            .directory(&format!("{bus}/30820000.spi"))
            .file(&format!("{bus}/power/runtime_status"), status)
            .file(&format!("{bus}/of_node/compatible"), compatible)
            .cells(&format!("{bus}/of_node/clocks"), clocks)
            .link(
                "/sys/class/uio/uio0/device",
                "../../../devices/barewire-uio-30820000/30820000.spi",
            );
        Mapped::open(&tree.root(), &uio("uio0,reference-hz=80M,cs=native0"))
    };
    const OWN: [u32; 4] = [2, 189, 2, 189];
    let newer = "6.12.9-arm64\n";
    let held = under(SIMPLE, &[2, 189], "active\n", newer, &OWN).expect("held");
    assert_eq!(held.clock(), ClockState::Held);
    for (case, open) in [
        ("another bus", under("simple-bus\0", &OWN, "active\n", newer, &OWN)),
        ("no clocks", under(SIMPLE, &[], "active\n", newer, &OWN)),
        ("asleep", under(SIMPLE, &OWN, "suspended\n", newer, &OWN)),
        ("too old to keep clocks", under(SIMPLE, &OWN, "active\n", "6.1.0-50-arm64\n", &OWN)),
        ("no node tells which clocks", under(SIMPLE, &OWN, "active\n", newer, &[])),
        ("a clock that cannot be followed", under(SIMPLE, &[9, 1], "active\n", newer, &OWN)),
    ] {
        let error = open.expect_err(case);
        assert!(matches!(error, MapError::Clock { state: ClockState::Unknown, .. }), "{case}");
    }
    assert!(under(SIMPLE, &OWN, "active\n", "6.3.0\n", &OWN).is_ok());
    // Every clock of the controller's must be kept, but for one that is never off; and its own, not another's.
    assert!(under(SIMPLE, &[2, 189], "active\n", newer, &[2, 189, 3]).is_ok());
    for (kept, needed) in [([2, 190], [2, 189]), ([2, 189], [2, 190])] {
        let both = [needed, kept].concat();
        for (kept, needed) in [(&kept, needed.as_slice()), (&kept, both.as_slice())] {
            let error = under(SIMPLE, kept, "active\n", newer, needed).expect_err("another's");
            let other = matches!(error, MapError::Clock { state: ClockState::OtherHeld, .. });
            assert!(other && error.to_string().contains("keeps other clocks"), "{error}");
        }
    }
}

/// ECSPI1 and GPIO5 with their nodes, whose registers are 64 KiB each.
fn with_nodes(driver: Option<&str>) -> Tree {
    imx8mp_bound(driver)
        .reg("platform", "30820000.spi", &[0x3082_0000, 0x1_0000])
        .compatible("platform", "30820000.spi", "fsl,imx8mp-ecspi\0fsl,imx6ul-ecspi\0")
        .reg("platform", "30240000.gpio", &[0x3024_0000, 0x1_0000])
        .reg("platform", "30280000.watchdog", &[0x3028_0000, 0x1_0000])
        .platform("30800000.bus", Some("simple-pm-bus"))
        .reg("platform", "30800000.bus", &[0x3080_0000, 0x40_0000])
        .file("/sys/bus/platform/devices/30800000.bus/of_node/ranges", "")
}

#[test]
fn an_address_inside_a_controller_is_refused_with_its_beginning() {
    for inside in ["0x3081ffe0", "0x30820001", "0x30820004", "0x30821000", "0x3082fffc"] {
        for driver in [None, Some("spi_imx")] {
            let tree = with_nodes(driver);
            let text = format!("{inside},reference-hz=80M,cs=native0");
            let error = Mapped::open(&tree.root(), &mem(&text)).expect_err(inside);
            assert!(matches!(error, MapError::NotBase { .. }), "{inside}: {error:?}");
            let text = error.to_string();
            let within = "inside 30820000.spi (0x30820000 to 0x3082ffff";
            assert!(text.contains(within), "{text}");
            assert_eq!(text.contains("driver spi_imx has"), driver.is_some(), "{text}");
            assert!(text.ends_with("write mem:0x30820000,reference-hz=80M,cs=native0"), "{text}");
        }
    }
    // Before and behind it is nothing that the kernel knows.
    for outside in ["0x3081ffc0", "0x30830000"] {
        let text = format!("{outside},reference-hz=80M,cs=native0,ignore-clock");
        let opened = Mapped::open(&with_nodes(Some("spi_imx")).root(), &mem(&text));
        assert!(opened.is_ok(), "{outside}: {opened:?}");
    }
    let error = Mapped::open(&with_nodes(Some("spi_imx")).root(), &mem(MEM)).expect_err("bound");
    assert!(matches!(error, MapError::Bound { .. }), "{error:?}");
    assert!(Mapped::open(&with_nodes(None).root(), &mem(MEM)).is_ok());
}

#[test]
fn an_address_inside_a_gpio_bank_is_refused_with_its_beginning() {
    let open = |bank: &str| {
        let text = format!("0x30820000,reference-hz=80M,cs=native0+gpio@{bank}.9");
        Mapped::open(&with_nodes(None).root(), &mem(&text))
    };
    for inside in ["0x30240004", "0x30241000", "0x3023fff0"] {
        let text = open(inside).expect_err(inside).to_string();
        assert!(text.contains("inside 30240000.gpio (0x30240000 to 0x3024ffff)"), "{text}");
        assert!(text.ends_with(&format!("write mem:{MEM}")), "{text}");
    }
    let error = open("0x30280004").expect_err("a watchdog");
    assert!(matches!(error, MapError::OtherDevice { .. }), "{error:?}");
    assert!(open("0x30240000").is_ok());
}

#[test]
fn a_driver_that_comes_back_is_seen_and_fails_the_next_message() {
    let tree = with_nodes(None);
    let root = tree.root();
    let mapped = Mapped::open(&root, &alone(mem(MEM))).expect("mapped");
    let watch = mapped.watch();
    let bus = Bus::new(mapped.start());
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(ECSPI1 + STATREG, RR);
    let device = bus.device(&Settings::new(1, 20_000_000)).expect("settings");
    let message = || device.sync(&mut [Transfer::in_place(&mut [1])]);
    assert_eq!(message(), Ok(1));
    assert_eq!(watch.still_ours(), Ok(()));
    assert_eq!(watch.final_check(), Ok(()));

    let tree = tree.platform("30820000.spi", Some("spi_imx"));
    let error = watch.still_ours().expect_err("taken");
    let text = error.to_string();
    assert!(text.contains("driver spi_imx was bound to 30820000.spi"), "{text}");
    assert!(text.contains("drivers/spi_imx/unbind`"), "{text}");
    let failed = message().expect_err("not ours").error;
    assert!(matches!(failed, Error::Os { .. }), "{failed:?}");

    // Gone again, as after a probe that failed: there is no link, and yet it was there.
    std::fs::remove_file(root.path("/sys/bus/platform/devices/30820000.spi/driver")).expect("gone");
    let error = watch.still_ours().expect_err("was taken");
    assert!(matches!(error, MapError::TakenBack { driver: None, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("(spi_imx by its compatible) was bound to 30820000.spi"), "{text}");
    drop(tree);
}

/// A process that opens the bus after the replacement uses another lock, so the first one must
/// stop.
#[test]
fn a_lock_that_is_replaced_is_seen_and_fails_the_next_message() {
    type Change = fn(&std::path::Path);
    let changes: [(&str, Change); 4] = [
        ("removed", |lock| std::fs::remove_file(lock).expect("removed")),
        ("replaced", |lock| {
            let copy = lock.with_extension("copy");
            std::fs::copy(lock, &copy).expect("copied");
            std::fs::rename(copy, lock).expect("renamed");
        }),
        ("overwritten", |lock| std::fs::write(lock, [7; 4096]).expect("written")),
        ("shortened", |lock| {
            let file = std::fs::OpenOptions::new().write(true).open(lock).expect("opened");
            // To all but a byte: what is mapped stays readable.
            file.set_len(4095).expect("shortened");
        }),
    ];
    for (how, change) in changes {
        let tree = with_nodes(None);
        let mapped = Mapped::open(&tree.root(), &alone(mem(MEM))).expect("mapped");
        let watch = mapped.watch();
        let bus = Bus::new(mapped.start());
        Registers::of(&tree, "/dev/mem").set(ECSPI1 + STATREG, RR);
        let device = bus.device(&Settings::new(1, 20_000_000)).expect("settings");
        let message = || device.sync(&mut [Transfer::in_place(&mut [1])]);
        assert_eq!((message(), watch.still_ours()), (Ok(1), Ok(())), "{how}");
        change(&tree.root().path("/run/lock/barewire-30820000.lock"));
        let text = watch.still_ours().expect_err(how).to_string();
        assert!(text.contains("was removed, replaced or overwritten"), "{how}: {text}");
        assert!(message().is_err(), "{how}");
        assert!(watch.final_check().is_err(), "{how}");
    }
}

#[test]
fn a_device_that_the_kernel_learns_of_later_is_seen_at_the_end() {
    let tree = Tree::new().sparse("/dev/mem", ECSPI1 + 0x1_0000);
    let spec = mem("0x30820000,reference-hz=80M,cs=native0,ignore-clock");
    let watch = Mapped::open(&tree.root(), &spec).expect("mapped").watch();
    assert_eq!(watch.final_check(), Ok(()));
    let _tree = tree.platform("30820000.spi", Some("spi_imx"));
    assert_eq!(watch.still_ours(), Ok(()), "there was no device to look at");
    assert!(watch.final_check().is_err());
}

#[test]
fn first_reads_name_a_register_of_every_block_and_read_it() {
    let tree = imx8mp();
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(ECSPI1 + STATREG, 3);
    memory.set(GPIO5 + GDIR, 0x201);
    let mut mapped = Mapped::open(&tree.root(), &alone(mem(MEM))).expect("mapped");
    let told = mapped
        .first_reads()
        .into_iter()
        .map(|mut read| (read.register, read.address, read.of, read.read()));
    let expected = [
        ("STATREG", 0x3082_0018, "the controller", 3),
        ("GPIO_GDIR", 0x3024_0004, "the GPIO bank of a chip select", 0x201),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn a_wrong_specification_opens_nothing() {
    let wrong = MapSpec { reference_hz: 0, ..mem(MEM) };
    let error = Mapped::open(&Tree::new().root(), &wrong).expect_err("0 Hz");
    assert_eq!(error, MapError::Spec(SpecError::ReferenceHzZero));
    let error = Mapped::open(&Tree::new().root(), &mem(MEM)).expect_err("no /dev/mem");
    assert!(matches!(error, MapError::NoSuchDevice { .. }), "{error:?}");
}

/// ECSPI1 as the first block of a UIO device.
fn with_uio(tree: Tree) -> Tree {
    let page = rustix::param::page_size() as u64;
    tree.sparse("/dev/uio0", 2 * page).file("/sys/class/uio/uio0/name", "spi\n").uio_map(
        "uio0",
        0,
        ["0x30820000\n", "0x10000\n", "0x0\n"],
    )
}

#[test]
fn uio_with_a_bank_of_its_own_needs_no_dev_mem() {
    let page = rustix::param::page_size() as u64;
    // The bank has no driver, so nothing else writes it.
    let tree = with_uio(Tree::new())
        .uio_map("uio0", 1, ["0x30240000\n", "0x10000\n", "0x0\n"])
        .platform("30820000.spi", Some("uio_pdrv_genirq"))
        .platform("30240000.gpio", None);
    let mapped = Mapped::open(&tree.root(), &alone(uio(UIO))).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Unknown);
    let ecspi = mapped.start();
    let registers = Registers::of(&tree, "/dev/uio0");
    let expected = [(CONREG, CONREG_IDLE), (page + DR, 1 << 9), (page + GDIR, 1 << 9)];
    assert_eq!(registers.nonzero(&[0, page]), expected);
    drop(ecspi);
}

#[test]
fn uio_without_the_bank_takes_it_from_dev_mem_or_says_what_to_do() {
    let tree = with_uio(imx8mp());
    let mapped = Mapped::open(&tree.root(), &alone(uio(UIO))).expect("mapped");
    assert!(matches!(mapped.clock(), ClockState::Running(_)), "/dev/mem is there to look");
    let ecspi = mapped.start();
    let memory = Registers::of(&tree, "/dev/mem");
    assert_eq!(memory.nonzero(&[ECSPI1, GPIO5]), [(GPIO5 + DR, 1 << 9), (GPIO5 + GDIR, 1 << 9)]);
    assert_eq!(Registers::of(&tree, "/dev/uio0").get(CONREG), CONREG_IDLE);
    drop(ecspi);

    let tree = with_uio(Tree::new());
    let error = Mapped::open(&tree.root(), &uio(UIO)).expect_err("no bank");
    assert!(matches!(error, MapError::GpioBank { address: GPIO5, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("not a map of /dev/uio0") && text.contains("second `reg`"), "{text}");
    assert!(
        Mapped::open(&tree.root(), &uio("uio0,reference-hz=80M,cs=native0,ignore-clock")).is_ok()
    );
}

#[test]
fn a_uio_device_whose_controller_the_kernel_has_is_refused() {
    let tree = with_uio(imx8mp()).platform("30820000.ecspi", Some("spi_imx"));
    let error = Mapped::open(&tree.root(), &uio(UIO)).expect_err("bound");
    assert!(matches!(error, MapError::Bound { .. }), "{error:?}");
    let error = Mapped::open(&tree.root(), &uio("uio7,reference-hz=1,cs=native0"));
    assert!(matches!(error, Err(MapError::NoSuchDevice { .. })), "{error:?}");
}

#[test]
fn a_limit_to_polling_takes_the_interrupt_mode_to_the_registers() {
    let tree = with_uio(Tree::new());
    let spec = uio("uio0,reference-hz=80M,cs=native0,ignore-clock,poll-limit-us=0");
    let mut ecspi = Mapped::open(&tree.root(), &alone(spec)).expect("mapped").start();
    let registers = Registers::of(&tree, "/dev/uio0");
    let (preset, _) = ecspi.configure(&Settings::new(0, 20_000_000)).expect("settings");
    let mut message = [Transfer::write(&[1; 8])];
    ecspi.plan(&preset, &mut message).expect("a good message");
    assert_eq!(ecspi.start(&preset, &mut message), Poll::Pending);
    assert_eq!(registers.get(DMAREG), 1 << 16, "two words are more than one");
    assert_eq!(registers.get(STATREG), TC, "TC was told to clear");
    assert_eq!(registers.get(INTREG), 0, "not armed yet");
    ecspi.arm();
    assert_eq!(registers.get(INTREG), RDR | RF | TC, "RXFIFO's threshold, and the burst's end");
    // Somebody else's interrupt.
    registers.set(STATREG, 0);
    assert_eq!(ecspi.resume(&preset, &mut message), Poll::Pending);
    assert_eq!(registers.get(INTREG), 0, "silenced");
    // Two words come, and the burst ends.
    registers.set(STATREG, RDR);
    registers.set(CONREG, CONREG_IDLE);
    assert_eq!(ecspi.resume(&preset, &mut message), Poll::Ready(Ok(8)));
    ecspi.reclaim();
    assert_eq!(registers.get(INTREG), 0);
    assert_eq!(registers.get(CONREG), CONREG_IDLE);
}

#[test]
fn a_limit_to_polling_is_refused_without_an_interrupt() {
    let spec = MapSpec { poll_limit_us: Some(5), ..mem(MEM) };
    let error = Mapped::open(&Tree::new().root(), &spec).expect_err("/dev/mem has none");
    assert_eq!(error, MapError::Spec(SpecError::NoInterrupt));
}

#[test]
fn a_shared_controller_is_brought_up_and_driven_under_its_lock() {
    let tree = imx8mp();
    let root = tree.root();
    // Without a word, and with the one that says so.
    let shared = |options: &str| mem(&format!("{MEM},{options}"));
    let open = |options| {
        let mut mapped = Mapped::open(&root, &shared(options)).expect("mapped");
        let lock = mapped.take_lock().expect("shared");
        assert_eq!(lock.path(), root.path("/run/lock/barewire-30820000.lock"));
        assert!(mapped.take_lock().is_none(), "there is one");
        ProcessShared::bring_up(lock, || mapped.start()).expect("free")
    };
    let memory = Registers::of(&tree, "/dev/mem");
    let (one, other) = (Bus::new(open("unsafe-shared")), Bus::new(open("shared,unsafe-shared")));
    let fails = |bus: &Bus<ProcessShared<_>>| {
        let device = bus.device(&Settings::new(1, 20_000_000)).expect("settings");
        device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("a file clocks no word");
    };
    fails(&one);
    memory.set(ECSPI1 + INTREG, 0xff);
    fails(&one);
    fails(&other);
    assert_eq!(memory.get(ECSPI1 + INTREG), 0, "INTREG is reset when the user changes");

    let mut named =
        Mapped::open(&root, &shared("unsafe-shared,shared=/run/lock/mine")).expect("mapped");
    assert_eq!(named.take_lock().expect("shared").path(), root.path("/run/lock/mine"));
    let error =
        Mapped::open(&root, &shared("unsafe-shared,shared=/gone/mine")).expect_err("nowhere");
    assert!(matches!(error, MapError::Lock(SharedError::NoDirectory { .. })), "{error}");
}

#[test]
fn one_that_is_alone_and_one_that_is_not_keep_each_other_out() {
    let tree = imx8mp();
    let root = tree.root();
    let open = |options: &str| Mapped::open(&root, &mem(&format!("{MEM},unsafe-shared{options}")));
    let me = format!("process {}", std::process::id());
    let shared = open("").expect("nobody else is there");
    let error = open(",exclusive").expect_err("another is there");
    assert!(matches!(error, MapError::Lock(SharedError::InUse { .. })), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&me) && text.contains("leave exclusive out"), "{text}");
    drop(shared);
    // It stays so until the controller is dropped.
    let alone = open(",exclusive").expect("nobody else is there");
    assert!(alone.chip_locks().is_none());
    let bus = Bus::new(alone.start());
    for options in ["", ",shared", ",exclusive"] {
        let error = open(options).expect_err("another is alone").to_string();
        assert!(error.contains(&me) && error.contains("exclusive"), "{options}: {error}");
    }
    drop(bus);
    drop(open("").expect("nobody else is there"));
}

#[test]
fn a_process_that_maps_the_controller_without_the_lock_is_refused() {
    let maps = |tree: &Tree, path: &str| {
        let line = format!("7f00-17f00 rw-s 30820000 00:05 4    {path}\n");
        std::fs::write(tree.root().path("/proc/4000000/maps"), line).expect("written");
    };
    let tree = imx8mp().file("/proc/4000000/maps", "");
    for options in ["unsafe-shared", "unsafe-shared,exclusive"] {
        let spec = mem(&format!("{MEM},{options}"));
        let open = || Mapped::open(&tree.root(), &spec);
        maps(&tree, "/dev/mem");
        let error = open().expect_err("a stranger");
        assert!(matches!(error, MapError::Stranger { address: ECSPI1, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("process 4000000") && text.contains("end that process"), "{text}");
        let joined = Mapped::join(&tree.root(), &spec).expect("a process that joins does not look");
        joined.watch().final_check().expect("it does not look at the end either");
        drop(joined);
        maps(&tree, "/dev/null");
        let watch = open().expect("none is there").watch();
        watch.final_check().expect("nor at the end");
        // A process that mapped the registers after the bus was opened, and still does.
        maps(&tree, "/dev/mem");
        let error = watch.final_check().expect_err("a stranger");
        assert!(matches!(error, MapError::Stranger { .. }), "{error:?}");
    }
}

#[test]
#[should_panic(expected = "take its lock")]
fn a_shared_controller_is_not_started_without_its_lock() {
    let tree = imx8mp();
    let spec = mem(&format!("{MEM},unsafe-shared"));
    drop(Mapped::open(&tree.root(), &spec).expect("mapped").start());
}
