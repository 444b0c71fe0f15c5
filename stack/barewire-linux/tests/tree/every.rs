//! Rules for every controller that can be mapped.

use std::task::Poll;

use barewire::controller::Controller;
use barewire::spi::{Settings, Transfer};
use barewire_linux::bus_text::parse_uio;
use barewire_linux::map::{Block, MapError, MapSpec, Mapped, MappedController};

use crate::fake::{Registers, Tree, alone};

/// A controller and the lengths of its registers and of its GPIO bank's, as the manuals have them;
/// a register that a message by interrupt arms, and one that holds a value at rest.
struct Case {
    controller: &'static str,
    registers_len: u64,
    bank_len: u64,
    armed: u64,
    at_rest: (u64, u32),
}

const CASES: [Case; Block::ALL.len()] = [
    // INTREG; CONREG.
    case("ecspi", [0x40, 0x20], 0x10, (0x08, 0x0070_00f1)),
    // CS; CS.
    case("bcm2835", [0x18, 0xb4], 0x00, (0x00, 0x0001_0030)),
    // SSPIMSC; SSPICR.
    case("pl022", [0x1000, 0x1000], 0x14, (0x20, 3)),
    // SPI_IER; SPI_MR.
    case("atmel", [0x100, 0x100], 0x14, (0x04, 0x31)),
    // IMR; SSIENR.
    case("dw-ssi", [0x100, 0x3_0000], 0x2c, (0x08, 0)),
    // ie; delay0.
    case("sifive", [0x78, 0x44], 0x70, (0x28, 0x0001_0001)),
    // IRQENABLE; MODULCTRL.
    case("mcspi", [0x1a4, 0x198], 0x11c, (0x128, 1)),
    // Intrpt_en_reg0; Config_reg0: a controller that selects no line, at a quarter of the clock.
    case("cadence", [0x30, 0x20c], 0x08, (0x00, 0x7c09)),
];

const fn case(
    controller: &'static str,
    [registers_len, bank_len]: [u64; 2],
    armed: u64,
    at_rest: (u64, u32),
) -> Case {
    Case { controller, registers_len, bank_len, armed, at_rest }
}

impl Case {
    /// A UIO device with the controller and its bank, of the manual's lengths.
    fn whole(&self) -> Tree {
        self.tree(self.registers_len, self.bank_len)
    }

    /// The same with other lengths.
    fn tree(&self, registers_len: u64, bank_len: u64) -> Tree {
        let page = rustix::param::page_size() as u64;
        let bank = bank_len;
        let [registers_len, bank_len] = [registers_len, bank_len].map(|len| format!("{len:#x}\n"));
        Tree::new()
            .sparse("/dev/uio0", page + bank.next_multiple_of(page))
            .uio_map("uio0", 0, ["0x10000000\n", &registers_len, "0x0\n"])
            .uio_map("uio0", 1, ["0x20000000\n", &bank_len, "0x0\n"])
    }

    fn spec(&self, options: &str) -> MapSpec {
        let controller = self.controller;
        let text = format!(
            "uio0,controller={controller},reference-hz=80M,cs=gpio@0x20000000.5,ignore-clock{options}"
        );
        alone(parse_uio(&text).expect("reads"))
    }

    fn open(&self, tree: &Tree, options: &str) -> Result<Mapped, MapError> {
        Mapped::open(&tree.root(), &self.spec(options))
    }

    fn started(&self, tree: &Tree, options: &str) -> MappedController {
        self.open(tree, options).expect("mapped").start()
    }

    /// Settings that every block accepts.
    fn settings() -> Settings {
        Settings::new(0, 1_000_000)
    }
}

/// With the length of [`CASES`], this finds a block that has no case.
#[test]
fn every_block_has_a_case() {
    assert_eq!(CASES.each_ref().map(|case| case.controller), Block::ALL.map(Block::name));
}

#[test]
fn windows_that_are_too_short_are_refused() {
    for case in &CASES {
        let &Case { controller, registers_len, bank_len, .. } = case;
        assert!(case.open(&case.whole(), "").is_ok(), "{controller}");
        for (tree, address, len) in [
            (case.tree(registers_len - 4, bank_len), 0x1000_0000, registers_len),
            (case.tree(registers_len, bank_len - 4), 0x2000_0000, bank_len),
        ] {
            let error = case.open(&tree, "").expect_err(controller);
            let short = MapError::Range { address, len: len as u32, available: Some(len - 4) };
            assert_eq!(error, short, "{controller}");
        }
    }
}

#[test]
fn a_controller_is_at_rest_once_started_and_once_reclaimed() {
    for case in &CASES {
        let &Case { controller, at_rest: (at, value), .. } = case;
        let tree = case.whole();
        let registers = Registers::of(&tree, "/dev/uio0");
        let mut started = case.started(&tree, "");
        assert_eq!(registers.get(at), value, "{controller}");
        registers.set(at, !value);
        started.reclaim();
        assert_eq!(registers.get(at), value, "{controller}, reclaimed");
        let limits = started.limits();
        assert!((20_000_000..=80_000_000).contains(&limits.max_speed_hz), "{controller}");
    }
}

#[test]
fn a_limit_to_polling_takes_the_interrupt_to_every_controllers_registers() {
    for case in &CASES {
        let &Case { controller, armed, .. } = case;
        let tree = case.whole();
        let registers = Registers::of(&tree, "/dev/uio0");
        let begin = |options| {
            let mut started = case.started(&tree, options);
            let (preset, _) = started.configure(&Case::settings()).expect("settings");
            let mut message = [Transfer::write(&[1; 8])];
            started.plan(&preset, &mut message).expect("a good message");
            let begun = started.start(&preset, &mut message);
            if options.is_empty() {
                assert!(begun.is_ready(), "{controller}: polled unless told");
                return;
            }
            assert_eq!(begun, Poll::Pending, "{controller}");
            let silent = registers.get(armed);
            started.arm();
            assert_ne!(registers.get(armed), silent, "{controller}: armed");
            started.reclaim();
        };
        begin("");
        begin(",poll-limit-us=0");
    }
}

#[test]
fn a_kernel_driver_is_an_obstacle_to_every_controller() {
    for case in &CASES {
        let controller = case.controller;
        let tree = case.whole().platform("10000000.spi", Some("theirs"));
        let error = case.open(&tree, "").expect_err(controller);
        assert!(matches!(error, MapError::Bound { .. }), "{controller}: {error:?}");
        let tree = case.whole().platform("10000000.spi", Some("uio_pdrv_genirq")).compatible(
            "platform",
            "10000000.spi",
            "generic-uio\0",
        );
        assert!(case.open(&tree, "").is_ok(), "{controller}");
    }
}
