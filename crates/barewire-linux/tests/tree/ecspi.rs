//! An ECSPI brought up on files: what its registers would have been told.
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

use crate::fake::{Registers, Tree};

const ECSPI1: u64 = 0x3082_0000;
const GPIO5: u64 = 0x3024_0000;
const CCGR7: u64 = 0x3038_4070;

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
const UIO: &str = "uio0,reference-hz=80M,cs=gpio@0x30240000.9";

/// An i.MX 8M Plus whose kernel has let go of ECSPI1, whose clock runs.
fn imx8mp() -> Tree {
    let tree = Tree::new()
        .sparse("/dev/mem", ECSPI1 + 0x1_0000)
        .file("/proc/device-tree/compatible", "fsl,imx8mp-evk\0fsl,imx8mp\0")
        .platform("30820000.spi", None)
        .platform("30240000.gpio", None)
        .platform("30280000.watchdog", Some("imx2-wdt"));
    Registers::of(&tree, "/dev/mem").set(CCGR7, 3);
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

    let mapped = Mapped::open(&tree.root(), &mem(MEM)).expect("mapped");
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
    let ecspi = Mapped::open(&tree.root(), &mem(MEM)).expect("mapped").start();
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
    let mapped = Mapped::open(&tree.root(), &spec).expect("mapped");
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

    // The same without /dev/mem: whoever has no rights learns of the driver first.
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
    let mapped = Mapped::open(&tree.root(), &spec).expect("told to");
    assert!(mapped.warnings()[0].contains("clock is off"));
    assert_eq!(memory.nonzero(&[ECSPI1, GPIO5]), [], "still to be decided");
}

#[test]
fn an_unknown_soc_is_warned_of_and_not_refused() {
    let tree = Tree::new().sparse("/dev/mem", ECSPI1 + 0x1_0000);
    let mapped = Mapped::open(&tree.root(), &mem(MEM)).expect("mapped");
    assert_eq!(mapped.clock(), ClockState::Unknown);
    assert!(mapped.warnings()[0].contains("cannot be checked"));
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
    // The bank has no driver: nobody else writes it.
    let tree = with_uio(Tree::new())
        .uio_map("uio0", 1, ["0x30240000\n", "0x10000\n", "0x0\n"])
        .platform("30820000.spi", Some("uio_pdrv_genirq"))
        .platform("30240000.gpio", None);
    let mapped = Mapped::open(&tree.root(), &uio(UIO)).expect("mapped");
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
    let mapped = Mapped::open(&tree.root(), &uio(UIO)).expect("mapped");
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
    assert!(text.contains("no block of /dev/uio0") && text.contains("second `reg`"), "{text}");
    assert!(Mapped::open(&tree.root(), &uio("uio0,reference-hz=80M,cs=native0")).is_ok());
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
    let spec = uio("uio0,reference-hz=80M,cs=native0,poll-limit-us=0");
    let mut ecspi = Mapped::open(&tree.root(), &spec).expect("mapped").start();
    let registers = Registers::of(&tree, "/dev/uio0");
    let (program, _) = ecspi.configure(&Settings::new(0, 20_000_000)).expect("settings");
    let mut message = [Transfer::write(&[1; 8])];
    ecspi.plan(&program, &mut message).expect("a good message");
    assert_eq!(ecspi.start(&program, &mut message), Poll::Pending);
    assert_eq!(registers.get(DMAREG), 1 << 16, "two words are more than one");
    assert_eq!(registers.get(STATREG), TC, "TC was told to clear");
    assert_eq!(registers.get(INTREG), 0, "not armed yet");
    ecspi.arm();
    assert_eq!(registers.get(INTREG), RDR | RF | TC, "RXFIFO's threshold, and the burst's end");
    // Somebody else's interrupt.
    registers.set(STATREG, 0);
    assert_eq!(ecspi.resume(&program, &mut message), Poll::Pending);
    assert_eq!(registers.get(INTREG), 0, "silenced");
    // Two words come, and the burst ends.
    registers.set(STATREG, RDR);
    registers.set(CONREG, CONREG_IDLE);
    assert_eq!(ecspi.resume(&program, &mut message), Poll::Ready(Ok(8)));
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
    let tree = imx8mp().file("/run/lock/other.lock", "");
    let root = tree.root();
    let unshared = Mapped::open(&root, &mem(MEM)).expect("mapped");
    assert!(unshared.lock().expect("none is wanted").is_none());

    let open = || {
        let mapped =
            Mapped::open(&root, &mem(&format!("{MEM},shared,unsafe-shared"))).expect("mapped");
        let lock = mapped.lock().expect("opens").expect("one is wanted");
        assert_eq!(lock.path(), root.path("/run/lock/barewire-30820000.lock"));
        ProcessShared::bring_up(lock, || mapped.start()).expect("free")
    };
    let memory = Registers::of(&tree, "/dev/mem");
    let (one, other) = (Bus::new(open()), Bus::new(open()));
    let fails = |bus: &Bus<ProcessShared<_>>| {
        let device = bus.device(&Settings::new(1, 20_000_000)).expect("settings");
        device.sync(&mut [Transfer::write(&[0x9f])]).expect_err("a file clocks no word");
    };
    fails(&one);
    memory.set(ECSPI1 + INTREG, 0xff);
    fails(&one);
    fails(&other);
    assert_eq!(memory.get(ECSPI1 + INTREG), 0, "reset when the user changed");

    let named = mem(&format!("{MEM},unsafe-shared,shared=/run/lock/mine"));
    let lock = Mapped::open(&root, &named).expect("mapped").lock();
    assert_eq!(lock.expect("opens").expect("wanted").path(), root.path("/run/lock/mine"));
    let nowhere = mem(&format!("{MEM},unsafe-shared,shared=/gone/mine"));
    let error = Mapped::open(&root, &nowhere).expect("mapped").lock().expect_err("nowhere");
    assert!(matches!(error, SharedError::NoDirectory { .. }), "{error}");
}
