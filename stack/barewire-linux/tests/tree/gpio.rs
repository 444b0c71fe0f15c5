//! Chip selects beside a kernel that drives other pins of the same bank, and a chip's INT line.

use std::time::{Duration, Instant};

use barewire::bus::Bus;
use barewire::controller::Controller;
use barewire::spi::{Error, Mode, Settings, Transfer};
use barewire_linux::Errno;
use barewire_linux::bus_text::{parse_interrupt_line, parse_mem};
use barewire_linux::gpio::{Edge, GpioError, InterruptLine, Sensed};
use barewire_linux::map::{MapError, Mapped, MappedController};

use crate::fake::{Registers, Tree, alone};
use crate::kernel::FakeKernel;

const ECSPI1: u64 = 0x3082_0000;
const GPIO5: u64 = 0x3024_0000;
const GPIO4: u64 = 0x3023_0000;
const STATREG: u64 = 0x18;
const RR: u32 = 1 << 3;
const DR: u64 = 0;
const GDIR: u64 = 4;
const LED: u32 = 3;
const CS: u32 = 9;

const DIRECT: &str = "cs=gpio@0x30240000.9";
const KERNEL: &str = "cs=gpio@0x30240000:9";

/// An i.MX 8M Plus with two GPIO banks and an expander. A word always is in RXFIFO.
fn board() -> (Tree, Registers, FakeKernel) {
    let tree = Tree::new()
        .sparse("/dev/mem", ECSPI1 + 0x1_0000)
        .platform("30820000.spi", None)
        .gpio_chip("30240000.gpio", "gpio-mxc", "gpiochip4")
        .gpio_chip("30230000.gpio", "gpio-mxc", "gpiochip3")
        .file("/dev/gpiochip5", "");
    let memory = Registers::of(&tree, "/dev/mem");
    memory.set(ECSPI1 + STATREG, RR);
    // As the boot loader left it: the LED is an output, all pins are low.
    memory.set(GPIO5 + GDIR, 1 << LED);
    let kernel = FakeKernel::default()
        .with(&tree, "gpiochip4", "30240000.gpio", 32, Some(GPIO5))
        .with(&tree, "gpiochip3", "30230000.gpio", 32, Some(GPIO4))
        .with(&tree, "gpiochip5", "pca9535", 16, None);
    (tree, memory, kernel)
}

fn open(tree: &Tree, kernel: &FakeKernel, lines: &str) -> Result<Mapped, MapError> {
    let text = format!("0x30820000,reference-hz=80M,ignore-clock,{lines}");
    Mapped::open_with(&tree.root(), &alone(parse_mem(&text).expect("reads")), kernel)
}

fn start(tree: &Tree, kernel: &FakeKernel, lines: &str) -> MappedController {
    open(tree, kernel, lines).expect("opens").start()
}

fn refused(tree: &Tree, kernel: &FakeKernel, lines: &str) -> GpioError {
    match open(tree, kernel, lines).expect_err(lines) {
        MapError::Gpio(error) => error,
        other => panic!("{other:?}"),
    }
}

/// Runs a byte on chip select `line`.
fn exchange(bus: &Bus<MappedController>, settings: Settings) {
    let device = bus.device(&settings).expect("settings");
    let mut byte = [0x9f];
    assert_eq!(device.sync(&mut [Transfer::in_place(&mut byte)]), Ok(1));
}

fn at(line: u8) -> Settings {
    Settings::new(line, 20_000_000)
}

#[test]
fn a_bank_that_the_kernel_uses_is_refused_and_untouched() {
    let (tree, memory, kernel) = board();
    let kernel = kernel.used_by(0, LED, "LED", "heartbeat").used_by(0, 20, "", "reset");
    let before = memory.nonzero(&[GPIO5]);
    let error = refused(&tree, &kernel, DIRECT);
    let GpioError::BankInUse { address: GPIO5, path, users } = &error else { panic!("{error:?}") };
    assert_eq!(path, "/dev/gpiochip4");
    let users: Vec<_> = users.iter().map(ToString::to_string).collect();
    assert_eq!(users, ["3 LED (heartbeat)", "20 (reset)"]);
    let text = error.to_string();
    assert!(text.contains("native0") && text.contains("gpio@0x30240000:PIN"), "{text}");
    assert_eq!(memory.nonzero(&[GPIO5]), before, "nothing is written");
    assert_eq!(kernel.take_log(0), [""; 0], "nothing is requested");
    // A native line is allowed, and so is a pin of another bank.
    assert!(open(&tree, &kernel, "cs=native0").is_ok());
    assert!(open(&tree, &kernel, "cs=gpio@0x30230000.9").is_ok());
    // A pin that the kernel uses as a chip select is refused too.
    let (tree, _, kernel) = board();
    let kernel = kernel.used_by(0, CS, "", "spi0 CS0");
    assert!(matches!(refused(&tree, &kernel, DIRECT), GpioError::BankInUse { .. }));
    let error = refused(&tree, &kernel, KERNEL);
    assert!(matches!(error, GpioError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains("line 9 (spi0 CS0) of /dev/gpiochip4"), "{error}");
}

#[test]
fn a_free_bank_is_held_while_the_bus_is_open() {
    let (tree, memory, kernel) = board();
    let mapped = open(&tree, &kernel, DIRECT).expect("opens");
    assert!((0..32).all(|line| kernel.is_used(0, line)), "nobody can request a line later");
    assert!((0..32).all(|line| !kernel.is_used(1, line)), "the other bank is not ours");
    assert_eq!(memory.get(GPIO5 + DR), 0, "as is");
    kernel.take_log(0);
    let controller = mapped.start();
    assert_eq!(
        kernel.take_log(0),
        ["output 9 high"],
        "the kernel drives the line, and remembers it"
    );
    assert!(
        (0..32).all(|line| kernel.is_used(0, line)),
        "the lines stay used while the controller runs"
    );
    assert_eq!((memory.get(GPIO5 + DR), memory.get(GPIO5 + GDIR)), (1 << CS, 1 << CS | 1 << LED));
    let bus = Bus::new(controller);
    exchange(&bus, at(0));
    assert_eq!(kernel.take_log(0), [""; 0], "edges are register writes");
    assert_eq!(memory.get(GPIO5 + DR), 1 << CS);
    drop(bus);
    assert!((0..32).all(|line| !kernel.is_used(0, line)), "released");
    // The kernel's copy has the levels that we left, so its next write does not move our lines.
    kernel.drives(0, LED, true);
    kernel.turns(0, LED, true);
    assert_eq!(memory.get(GPIO5 + DR), 1 << CS | 1 << LED);
    assert_eq!(memory.get(GPIO5 + GDIR), 1 << CS | 1 << LED);
}

#[test]
fn a_line_of_the_kernel_is_unharmed_by_its_other_writes() {
    let (tree, memory, kernel) = board();
    let kernel = kernel.used_by(0, LED, "LED", "heartbeat");
    let mapped = open(&tree, &kernel, KERNEL).expect("opens");
    assert_eq!(mapped.mapped_len(), rustix::param::page_size(), "no bank is mapped");
    assert_eq!(kernel.take_log(0), ["request [9]"], "the line is requested as it is, and no other");
    let bus = Bus::new(mapped.start());
    assert_eq!(kernel.take_log(0), ["output 9 high"]);
    // Whenever a line of the bank moves, another driver blinks and turns a pin: so in the middle of the
    // message, while the chip is selected.
    kernel.meanwhile(0, |kernel| {
        let selected = kernel.take_log(0).contains(&"set 9 low".to_owned());
        kernel.drives(0, LED, selected);
        kernel.turns(0, 30, selected);
        SEEN.with_borrow_mut(|seen| seen.push(selected));
    });
    thread_local! {
        static SEEN: std::cell::RefCell<Vec<bool>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let device = bus.device(&at(0)).expect("settings");
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    SEEN.with_borrow(|seen| assert_eq!(*seen, [true, false], "one system call an edge"));
    assert_eq!(memory.get(GPIO5 + DR), 1 << CS, "inactive at the end");
    assert_eq!(memory.get(GPIO5 + GDIR), 1 << CS | 1 << LED, "and still an output");
    drop(bus);
    assert!(!kernel.is_used(0, CS) && kernel.is_used(0, LED));
}

/// The level that the kernel's next write leaves, for a test of the line's level in the middle of a
/// message.
fn level_after_a_blink(memory: &Registers, kernel: &FakeKernel) -> (bool, bool) {
    kernel.drives(0, LED, true);
    kernel.turns(0, 30, true);
    let set = |register| memory.get(GPIO5 + register) >> CS & 1 != 0;
    (set(DR), set(GDIR))
}

#[test]
fn sharing_a_bank_with_the_kernel_moves_the_chip_select() {
    let harm = |lines: &str| {
        let (tree, memory, kernel) = board();
        let kernel = kernel.used_by(0, LED, "LED", "heartbeat");
        let mut mapped = open(&tree, &kernel, lines).expect("opens");
        let warned = mapped.warnings().iter().any(|text| text.contains("unsafe-shared"));
        let controller = mapped.start();
        let set = |register| memory.get(GPIO5 + register) >> CS & 1 != 0;
        assert_eq!((set(DR), set(GDIR)), (true, true), "at rest, an output");
        let after = level_after_a_blink(&memory, &kernel);
        drop(controller);
        (warned, after)
    };
    // The kernel's cached value for an input is low: its write selects the chip without a message,
    // and then the line floats.
    assert_eq!(harm(&format!("{DIRECT},unsafe-shared")), (true, (false, false)));
    assert_eq!(harm(KERNEL), (false, (true, true)), "unharmed");
}

#[test]
fn a_bank_of_which_nothing_is_known_is_refused() {
    let driven = || Tree::new().sparse("/dev/mem", ECSPI1 + 0x1_0000);
    let kernel = FakeKernel::default();
    let unknown = |tree: &Tree, part: &str| {
        let error = refused(tree, &kernel, DIRECT);
        assert!(matches!(error, GpioError::BankUnknown { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("unsafe-shared"), "{text}");
        assert!(open(tree, &kernel, &format!("{DIRECT},unsafe-shared")).is_ok());
    };
    unknown(&driven().platform("30240000.gpio", Some("gpio-mxc")), "shows no GPIO chip");
    unknown(&driven().directory("/sys/bus/gpio/devices/gpiochip0"), "knows no device");
    let tree = driven();
    std::fs::remove_dir(tree.root().path("/sys/bus")).expect("empty");
    unknown(&tree, "sysfs is not mounted");
    // Nothing else writes a bank without a driver, or any bank under a kernel without GPIO.
    assert!(open(&driven().platform("30240000.gpio", None), &kernel, DIRECT).is_ok());
    assert!(open(&driven(), &kernel, DIRECT).is_ok());
    // A GPIO chip that cannot be opened may still be in use, so it is refused.
    let tree = driven().gpio_chip("30240000.gpio", "gpio-mxc", "gpiochip4");
    assert!(matches!(refused(&tree, &kernel, DIRECT), GpioError::NoNode { .. }));
}

#[test]
fn a_bank_is_not_driven_in_both_ways() {
    let (tree, _, kernel) = board();
    for lines in
        ["cs=gpio@0x30240000.9+gpio@0x30240000:8", "cs=gpio@30240000.gpio:8+gpio@0x30240000.9"]
    {
        let error = refused(&tree, &kernel, lines);
        assert_eq!(error, GpioError::BothWays { address: GPIO5 }, "{lines}");
    }
    assert!((0..32).all(|line| !kernel.is_used(0, line)), "nothing is held after a refusal");
    // Blocks that set and clear have both.
    let text = "0x30820000,controller=atmel,reference-hz=80M,ignore-clock,cs=gpio@0x30240000.9+gpio@0x30240000:8";
    assert!(Mapped::open_with(&tree.root(), &parse_mem(text).expect("reads"), &kernel).is_ok());
}

#[test]
fn of_a_bank_that_sets_and_clears_only_the_chip_select_is_held() {
    for (controller, lines) in [("bcm2835", 54), ("atmel", 32), ("pl022", 8)] {
        let tree = Tree::new().sparse("/dev/mem", ECSPI1 + 0x1_0000).gpio_chip(
            "30240000.gpio",
            "theirs",
            "gpiochip4",
        );
        let kernel = FakeKernel::default().with(&tree, "gpiochip4", "theirs", lines, None);
        let kernel = kernel.used_by(0, 3, "", "led");
        let text = format!(
            "0x30820000,controller={controller},reference-hz=80M,ignore-clock,cs=gpio@0x30240000"
        );
        let shared = |line: &str| parse_mem(&format!("{text}{line}")).expect("reads");
        let spec = |line: &str| alone(shared(line));
        let mapped = Mapped::open_with(&tree.root(), &spec(".5+gpio@0x30240000.6:high"), &kernel);
        let mapped = mapped.expect(controller);
        assert_eq!(kernel.take_log(0), ["request [5, 6]"], "{controller}");
        drop(mapped.start());
        assert_eq!(kernel.take_log(0), ["output 5 high", "output 6 low"], "{controller}");
        let error = Mapped::open_with(&tree.root(), &spec(".3"), &kernel).expect_err(controller);
        assert!(
            matches!(error, MapError::Gpio(GpioError::InUse { .. })),
            "{controller}: {error:?}"
        );
        assert!(Mapped::open_with(&tree.root(), &spec(".3,unsafe-shared"), &kernel).is_ok());
        // The chip select of several processes is held by none, and must be free of others all the same.
        let open = |line: &str| Mapped::open_with(&tree.root(), &shared(line), &kernel);
        let [one, other] = [open(".5"), open(".5")].map(|opened| opened.expect("shared"));
        assert_eq!(kernel.take_log(0), [""; 0], "{controller}");
        drop((one, other));
        let error = open(".3").expect_err(controller);
        assert!(
            matches!(error, MapError::Gpio(GpioError::InUse { .. })),
            "{controller}: {error:?}"
        );
    }
}

#[test]
fn chip_selects_lie_in_several_banks_chips_and_polarities() {
    let (tree, memory, kernel) = board();
    let lines =
        "cs=gpio@0x30240000.9+gpio@pca9535:2:high+gpio@0x30230000:1+gpio@0x30240000.12:high";
    let bus = Bus::new(start(&tree, &kernel, lines));
    assert_eq!(memory.get(GPIO5 + DR), 1 << 9, "one is low at rest, the other high");
    assert_eq!(memory.get(GPIO5 + GDIR), 1 << 9 | 1 << 12 | 1 << LED);
    assert_eq!(memory.get(GPIO4 + DR), 1 << 1);
    for chip in 0..3 {
        kernel.take_log(chip);
    }
    exchange(&bus, at(1).with_mode(Mode::CS_HIGH));
    assert_eq!(kernel.take_log(2), ["set 2 high", "set 2 low"]);
    assert_eq!(kernel.take_log(1), [""; 0]);
    exchange(&bus, at(2));
    assert_eq!(kernel.take_log(1), ["set 1 low", "set 1 high"]);
    exchange(&bus, at(0));
    exchange(&bus, at(3).with_mode(Mode::CS_HIGH));
    assert_eq!(memory.get(GPIO5 + DR), 1 << 9);
    assert_eq!(kernel.take_log(0), [""; 0]);
    // A device must know its line's polarity.
    let wrong = bus.device(&at(1)).map(drop);
    assert_eq!(wrong, Err(Error::CsPolarity { active_high: true }));
}

#[test]
fn every_controller_has_lines_of_the_kernel() {
    for (controller, reference) in [
        ("ecspi", "80M"),
        ("bcm2835", "400M"),
        ("pl022", "150M"),
        ("atmel", "132M"),
        ("dw-ssi", "200M"),
        ("sifive", "500M"),
        ("mcspi", "48M"),
        ("cadence", "166M"),
    ] {
        let (tree, memory, kernel) = board();
        let before = memory.nonzero(&[GPIO5]);
        let options = format!("controller={controller},reference-hz={reference},ignore-clock");
        let text = format!("0x30820000,{options},cs=gpio@pca9535:15:high");
        let spec = alone(parse_mem(&text).expect("reads"));
        let opened = Mapped::open_with(&tree.root(), &spec, &kernel).expect(controller);
        let mut controlled = opened.start();
        assert_eq!(kernel.take_log(2), ["request [15]", "output 15 low"], "{controller}");
        let settings = Settings::new(0, 1_000_000).with_mode(Mode::CS_HIGH);
        let (preset, _) = controlled.configure(&settings).expect("settings");
        let mut message = [Transfer::write(&[1])];
        controlled.plan(&preset, &mut message).expect("a message");
        // Whether the word comes is another test's affair.
        let _ = controlled.run(&preset, &mut message);
        let log = kernel.take_log(2);
        assert_eq!(log.first().map(String::as_str), Some("set 15 high"), "{controller}");
        assert_eq!(log.last().map(String::as_str), Some("set 15 low"), "{controller}");
        assert_eq!(memory.nonzero(&[GPIO5]), before, "{controller}: no bank is touched");
    }
}

#[test]
fn an_edge_that_fails_fails_its_message() {
    let (tree, _, kernel) = board();
    let bus = Bus::new(start(&tree, &kernel, KERNEL));
    let device = bus.device(&at(0)).expect("settings");
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    // The chip's driver is unbound.
    kernel.breaks(0, Errno::NODEV);
    for _ in 0..2 {
        let error = device.sync(&mut [Transfer::write(&[1])]).expect_err("nothing was selected");
        assert_eq!(error.error, Error::Os { errno: Errno::NODEV.raw_os_error() });
    }
    // A line that cannot be driven at the start makes the first message fail.
    let (tree, _, kernel) = board();
    let mapped = open(&tree, &kernel, KERNEL).expect("opens");
    kernel.breaks(0, Errno::IO);
    let bus = Bus::new(mapped.start());
    let device = bus.device(&at(0)).expect("settings");
    let error = device.sync(&mut [Transfer::write(&[1])]).expect_err("no output");
    assert_eq!(error.error, Error::Os { errno: Errno::IO.raw_os_error() });
}

#[test]
fn a_chip_that_there_is_not_is_told_with_those_there_are() {
    let (tree, _, kernel) = board();
    let text = refused(&tree, &kernel, "cs=gpio@pca9555:1").to_string();
    assert!(
        text.contains("\"pca9555\"; there are 30230000.gpio, 30240000.gpio, pca9535"),
        "{text}"
    );
    let error = refused(&tree, &kernel, "cs=gpio@0x30250000:1");
    assert!(matches!(error, GpioError::NoChip { .. }), "{error:?}");
    let error = refused(&tree, &kernel, "cs=gpio@pca9535:16");
    let path = "/dev/gpiochip5".to_owned();
    assert_eq!(error, GpioError::NoLine { path, offset: 16, lines: 16 });
    let kernel = kernel.with(&tree, "gpiochip6", "pca9535", 16, None);
    let tree = tree.file("/dev/gpiochip6", "");
    let error = refused(&tree, &kernel, "cs=gpio@pca9535:1");
    assert!(
        matches!(&error, GpioError::SeveralChips { names, .. } if names.len() == 2),
        "{error:?}"
    );
}

fn int_line(tree: &Tree, kernel: &FakeKernel, text: &str) -> InterruptLine {
    let (line, sense) = parse_interrupt_line("--int", text).expect("reads");
    InterruptLine::open(&tree.root(), kernel, &line, sense).expect("opens")
}

fn edge(sequence: u32, rising: bool) -> Edge {
    Edge { timestamp_ns: u64::from(sequence) * 1_000, rising, sequence }
}

#[test]
fn an_int_line_is_slept_for_only_at_rest() {
    let (tree, _, kernel) = board();
    let mut int = int_line(&tree, &kernel, "gpio@pca9535:7");
    assert_eq!(kernel.take_log(2), ["request [7]", "edges Low"]);
    // The line was low before the first wait, so no edge will come: the wait returns at once.
    assert_eq!(int.wait(Duration::from_secs(9)), Ok(Sensed::Active));
    assert_eq!((kernel.slept(2), int.last_edge()), (0, None));

    // High, low, high: each of the two stale edges wakes the waiter only briefly.
    kernel.moves(2, 7, true, edge(1, false));
    kernel.moves(2, 7, true, edge(2, false));
    let begun = Instant::now();
    assert_eq!(int.wait(Duration::from_millis(20)), Ok(Sensed::TimedOut));
    assert!(begun.elapsed() >= Duration::from_millis(20));
    assert_eq!(int.last_edge(), Some(edge(2, false)), "with the kernel's time");
    assert!(int.is_at_rest().expect("asked"));

    // While the level stays active, each wait returns at once, until the chip is served.
    kernel.moves(2, 7, false, edge(3, false));
    let slept = kernel.slept(2);
    for _ in 0..2 {
        assert_eq!(int.wait(Duration::ZERO), Ok(Sensed::Active));
    }
    assert_eq!(kernel.slept(2), slept);
}

#[test]
fn an_int_line_that_is_active_high_is_told_from_one_that_is_not() {
    let (tree, _, kernel) = board();
    let mut int = int_line(&tree, &kernel, "gpio@pca9535:7:high");
    assert_eq!(kernel.take_log(2), ["request [7]", "edges High"]);
    assert_eq!(int.wait(Duration::ZERO), Ok(Sensed::TimedOut));
    kernel.moves(2, 7, true, edge(1, true));
    assert_eq!(int.wait(Duration::ZERO), Ok(Sensed::Active));
    drop(int);
    assert!(!kernel.is_used(2, 7));
}

#[test]
fn an_int_line_that_a_kernel_driver_has_is_refused() {
    let (tree, _, kernel) = board();
    let kernel = kernel.used_by(2, 7, "", "mcp251xfd");
    let (line, sense) = parse_interrupt_line("--int", "gpio@pca9535:7").expect("reads");
    let error = InterruptLine::open(&tree.root(), &kernel, &line, sense).expect_err("theirs");
    assert!(error.to_string().contains("7 (mcp251xfd)"), "{error}");
}
