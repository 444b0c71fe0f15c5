//! `embedded-hal` both ways on the simulated board: times in virtual time, bytes at the chip, and
//! embedded-hal-bus's own devices as the judge of ours.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::spi_nor::{JedecId, SpiNor, no_observer};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::hal::{BankPin, Delay, HalBus, HalDevice, OnSpiDevice};
use barewire::middleware::{Fault, FaultInjector, When};
use barewire::spi::{Error, Settings};
use barewire_sim::bring_up::{self, AnyController, Charged, bus};
use barewire_sim::chip::{Chip, Clocking, PS_PER_NS, Ps, WireLimits};
use barewire_sim::model::echo::{Echo, NO_LIMITS};
use barewire_sim::model::nor::Nor;
use barewire_sim::{Board, Rule, SimRegisters, SimTimer};
use embedded_hal::delay::DelayNs;
use embedded_hal::spi::{Operation, SpiBus, SpiDevice};
use embedded_hal_async::delay::DelayNs as AsyncDelayNs;
use embedded_hal_async::spi::SpiDevice as AsyncSpiDevice;
use embedded_hal_bus::spi::{ExclusiveDevice, RefCellDevice};
use proptest::prelude::*;

use crate::block_on;

const SETTINGS: Settings = Settings::new(0, 20_000_000);
/// The pin of the board's first chip select.
const CS_BIT: u8 = 9;
/// One tick of the board's timer.
const QUANTUM_NS: u64 = 125;

type SimBus = Bus<Charged<AnyController>>;
type Pin = BankPin<ImxGpio<SimRegisters>>;

fn attached<C: Chip + 'static>(board: &Board, chip: C) -> Rc<RefCell<C>> {
    let chip = Rc::new(RefCell::new(chip));
    assert!(board.attach(0, chip.clone()));
    chip
}

fn cs_pin(board: &Board) -> Pin {
    let gpio = board.gpio(0).expect("the board has a GPIO block");
    BankPin::new(ImxGpio::new(gpio, Ownership::Shared), CS_BIT, true)
}

/// A chip that writes down when it was selected, clocked and deselected.
#[derive(Debug, Default)]
struct Stopwatch(Vec<(char, Ps)>);

impl Chip for Stopwatch {
    fn name(&self) -> &'static str {
        "stopwatch"
    }
    fn limits(&self) -> WireLimits {
        NO_LIMITS
    }
    fn select(&mut self, at: Ps) {
        self.0.push(('s', at));
    }
    fn deselect(&mut self, at: Ps) {
        self.0.push(('d', at));
    }
    fn exchange(&mut self, clocking: Clocking, _mosi: u32, bits: u32) -> u32 {
        self.0.push(('c', clocking.at));
        self.0.push(('e', clocking.at + u64::from(bits) * clocking.period));
        0
    }
}

/// The events of a transaction, with the times between them in nanoseconds.
fn timed(operations: &mut [Operation<'_, u8>], as_future: bool) -> (String, Vec<u64>) {
    let board = crate::board("imx8mp");
    let chip = attached(&board, Stopwatch::default());
    let bus = bus(&board);
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    if as_future {
        block_on(AsyncSpiDevice::transaction(&mut device, operations)).expect("runs");
    } else {
        SpiDevice::transaction(&mut device, operations).expect("runs");
    }
    assert!(board.violations().is_empty(), "{:?}", board.violations());
    let events = &chip.borrow().0;
    let gaps = events.windows(2).map(|pair| (pair[1].1 - pair[0].1) / PS_PER_NS).collect();
    (events.iter().map(|event| event.0).collect(), gaps)
}

#[test]
fn delays_of_a_transaction_last_what_was_asked_and_little_more() {
    // Around a delay: the accesses that move CS or move and await a word, and two timer reads.
    let around = |asked: u64, passed: u64| {
        let most = asked.next_multiple_of(QUANTUM_NS) + QUANTUM_NS + 4_000;
        assert!((asked..=most).contains(&passed), "asked {asked} ns, took {passed}");
    };
    for asked in [1, 124, 125, 126, 999, 1_000, 10_001, 5_000_000, u32::MAX] {
        for as_future in [false, true] {
            let delay = || Operation::DelayNs(asked);
            let asked = u64::from(asked);
            let (events, gaps) = timed(&mut [delay(), Operation::Write(&[1])], as_future);
            assert_eq!(events, "sced");
            around(asked, gaps[0]);
            let operations = &mut [Operation::Write(&[1]), delay(), Operation::Write(&[2])];
            let (events, gaps) = timed(operations, as_future);
            assert_eq!(events, "sceced");
            around(asked, gaps[2]);
            let (events, gaps) = timed(&mut [Operation::Write(&[1]), delay()], as_future);
            assert_eq!(events, "sced");
            around(asked, gaps[2]);
            let (events, gaps) = timed(&mut [delay(), delay(), delay()], as_future);
            assert_eq!(events, "sd");
            around(3 * asked, gaps[0]);
        }
    }
}

#[test]
fn a_delay_without_one_costs_nothing() {
    let (_, with) = timed(&mut [Operation::Write(&[1]), Operation::DelayNs(0)], false);
    let (_, without) = timed(&mut [Operation::Write(&[1])], false);
    assert_eq!(with, without);
}

#[test]
fn the_timer_s_delays_last_what_was_asked_to_a_tick() {
    let board = crate::board("imx8mp");
    let engine = board.engine();
    let mut delay = Delay::new(board.timer());
    let mut passed = |wait: &dyn Fn(&mut Delay<SimTimer>)| {
        let begun = engine.now_ps();
        wait(&mut delay);
        (engine.now_ps() - begun) / PS_PER_NS
    };
    // The wait covers whole ticks after the current one, and the timer is read before and after.
    let most = |asked: u64| asked.next_multiple_of(QUANTUM_NS) + QUANTUM_NS + 1_000;
    for asked in [1, 125, 126, 10_000_001, u32::MAX] {
        let blocking = passed(&|delay| DelayNs::delay_ns(delay, asked));
        let asked = u64::from(asked);
        assert!((asked..=most(asked)).contains(&blocking), "{asked} {blocking}");
    }
    for asked in [1, 4_294_968, 3_600_000_000] {
        let blocking = passed(&|delay| DelayNs::delay_us(delay, asked));
        let asked = u64::from(asked) * 1_000;
        assert!((asked..=most(asked)).contains(&blocking), "{asked} {blocking}");
    }
    for asked in [1, 126, 100_000] {
        let polled = passed(&|delay| block_on(AsyncDelayNs::delay_ns(delay, asked)));
        let asked = u64::from(asked);
        assert!((asked..=most(asked)).contains(&polled), "{asked} {polled}");
    }
    let blocking = passed(&|delay| DelayNs::delay_ms(delay, u32::MAX));
    let asked = u64::from(u32::MAX) * 1_000_000;
    assert!((asked..=most(asked)).contains(&blocking), "{asked} {blocking}");
}

#[test]
fn a_failed_transaction_leaves_the_chip_unselected() {
    let board = crate::board("imx8mp");
    let chip = attached(&board, Stopwatch::default());
    let faulty = FaultInjector::new(bring_up::any(&board), Fault::Timeout, When::Transfer(1));
    let bus = Bus::new(faulty);
    let mut device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
    let operations = &mut [Operation::Write(&[1]), Operation::Write(&[2]), Operation::Write(&[3])];
    let error = SpiDevice::transaction(&mut device, operations).expect_err("times out");
    assert!(matches!(error.error, Error::Timeout { .. }), "{error}");
    assert_eq!((error.transfer_index, error.actual_length), (1, 1));
    let events: String = chip.borrow().0.iter().map(|event| event.0).collect();
    assert_eq!(events, "sced");
    assert_eq!(SpiDevice::write(&mut device, &[4]), Ok(()));
    assert!(board.violations().is_empty(), "{:?}", board.violations());
}

#[test]
fn a_bus_alone_selects_nobody() {
    let board = crate::board("imx8mp");
    let chips = [0, 1].map(|cs| {
        let chip = Rc::new(RefCell::new(Echo::default()));
        assert!(board.attach(cs, chip.clone()));
        chip
    });
    let bus = bus(&board);
    let mut spi = HalBus::new(bus.lock(), &SETTINGS).expect("opens");
    let mut rx = [0; 600];
    SpiBus::write(&mut spi, &[1, 2, 3]).expect("runs");
    SpiBus::transfer(&mut spi, &mut rx, &[1]).expect("runs");
    assert_eq!(rx, [0xff; 600], "nobody answers");
    drop(spi);
    for chip in chips {
        assert_eq!(chip.borrow().selections(), 0);
    }
    let rules: Vec<Rule> = board.violations().iter().map(|violation| violation.rule).collect();
    assert!(rules.iter().all(|rule| *rule == Rule::ClockWithoutCs), "{rules:?}");
    assert_eq!(board.wire_use().bits, 8 * 603);
}

/// One operation, as numbers.
#[derive(Clone, Debug)]
enum Step {
    Read(usize),
    Write(Vec<u8>),
    Transfer(usize, Vec<u8>),
    InPlace(Vec<u8>),
    Delay(u32),
}

fn a_step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..9);
    prop_oneof![
        (0_usize..9).prop_map(Step::Read),
        bytes().prop_map(Step::Write),
        (0_usize..9, bytes()).prop_map(|(read, write)| Step::Transfer(read, write)),
        bytes().prop_map(Step::InPlace),
        (0_u32..3_000).prop_map(Step::Delay),
    ]
}

/// Runs `steps` on a device of any kind. Returns the bytes that the chip received, the number of
/// selections, and the bytes that came back.
fn made_of(
    steps: &[Step],
    transact: impl FnOnce(&Board, &SimBus, &mut [Operation<'_, u8>]),
) -> (Vec<u8>, u64, Vec<Vec<u8>>) {
    let board = crate::board("imx8mp");
    let chip = attached(&board, Echo::default());
    let bus = bus(&board);
    let buffer = |step: &Step| match step {
        Step::Read(len) | Step::Transfer(len, _) => vec![0; *len],
        Step::InPlace(bytes) => bytes.clone(),
        _ => Vec::new(),
    };
    let mut buffers: Vec<Vec<u8>> = steps.iter().map(buffer).collect();
    let both = steps.iter().zip(&mut buffers);
    let mut operations: Vec<Operation<'_, u8>> = both
        .map(|(step, buffer)| match step {
            Step::Read(_) => Operation::Read(buffer),
            Step::Write(bytes) => Operation::Write(bytes),
            Step::Transfer(_, bytes) => Operation::Transfer(buffer, bytes),
            Step::InPlace(_) => Operation::TransferInPlace(buffer),
            Step::Delay(ns) => Operation::DelayNs(*ns),
        })
        .collect();
    transact(&board, &bus, &mut operations);
    assert!(board.violations().is_empty(), "{:?}", board.violations());
    let chip = chip.borrow();
    (chip.received().to_vec(), chip.selections(), buffers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The chip sees the same transaction from each device: ours, and embedded-hal-bus's over our
    /// bus, pin and delay; blocking and async.
    #[test]
    fn our_device_does_what_a_foreign_one_does_on_our_bus(
        steps in prop::collection::vec(a_step(), 0..8),
    ) {
        let ours = made_of(&steps, |_, bus, operations| {
            let device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
            SpiDevice::transaction(&mut device.with_room::<32>(), operations).expect("runs");
        });
        prop_assert_eq!(ours.1, 1, "one selection");
        let ours_async = made_of(&steps, |_, bus, operations| {
            let device = HalDevice::new(bus.device(&SETTINGS).expect("opens"));
            let mut device = device.with_room::<32>();
            block_on(AsyncSpiDevice::transaction(&mut device, operations)).expect("runs");
        });
        prop_assert_eq!(&ours, &ours_async);
        let exclusive = |board: &Board, bus: &'_ SimBus, run: &mut dyn FnMut(&mut Exclusive<'_>)| {
            let spi = HalBus::new(bus.lock(), &SETTINGS).expect("opens");
            let delay = Delay::new(board.timer());
            run(&mut ExclusiveDevice::new(spi, cs_pin(board), delay).expect("cannot fail"));
        };
        let foreign = made_of(&steps, |board, bus, operations| {
            exclusive(board, bus, &mut |device| {
                SpiDevice::transaction(device, operations).expect("runs");
            });
        });
        prop_assert_eq!(&ours, &foreign);
        let foreign_async = made_of(&steps, |board, bus, operations| {
            exclusive(board, bus, &mut |device| {
                block_on(AsyncSpiDevice::transaction(device, operations)).expect("runs");
            });
        });
        prop_assert_eq!(&ours, &foreign_async);
    }
}

type Exclusive<'b> = ExclusiveDevice<HalBus<'b, Charged<AnyController>>, Pin, Delay<SimTimer>>;

/// Our flash driver on any foreign device: it identifies, writes and reads back.
fn flash_works_on(run: impl FnOnce(&Board, &SimBus)) {
    let board = crate::board("imx8mp");
    let flash: Rc<RefCell<Nor>> = board.attach_flash(None).expect("the part's size");
    let bus = bus(&board);
    run(&board, &bus);
    assert!(board.violations().is_empty(), "{:?}", board.violations());
    let flash = flash.borrow();
    assert!(!flash.selected() && !flash.write_enabled());
    assert_eq!(flash.content()[4_090..4_090 + DATA.len()], *DATA);
}

const DATA: &[u8] = b"across a sector's end";

fn write_and_read<S: SpiDevice>(spi: S, board: &Board) {
    let mut port = OnSpiDevice::new(spi, SETTINGS.speed_hz);
    let mut chip = SpiNor::new(&mut port, board.timer()).expect("identifies");
    assert_eq!(chip.jedec_id(), JedecId([0xef, 0x40, 0x19]));
    chip.write(4_090, DATA, &mut [0; 4096], &mut no_observer).expect("writes");
    let mut back = [0; DATA.len()];
    chip.read(4_090, &mut back).expect("reads");
    assert_eq!(back, DATA);
    drop(chip);
    assert!(port.take_error().is_none());
}

#[test]
fn our_flash_driver_runs_on_foreign_devices() {
    flash_works_on(|board, bus| {
        write_and_read(HalDevice::new(bus.device(&SETTINGS).expect("opens")), board);
    });
    flash_works_on(|board, bus| {
        let spi = HalBus::new(bus.lock(), &SETTINGS).expect("opens");
        let delay = Delay::new(board.timer());
        write_and_read(
            ExclusiveDevice::new(spi, cs_pin(board), delay).expect("cannot fail"),
            board,
        );
    });
    flash_works_on(|board, bus| {
        let spi = RefCell::new(HalBus::new(bus.lock(), &SETTINGS).expect("opens"));
        let delay = Delay::new(board.timer());
        write_and_read(RefCellDevice::new(&spi, cs_pin(board), delay).expect("cannot fail"), board);
    });
}
