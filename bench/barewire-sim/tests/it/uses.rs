//! Programs that leave something out: a bus with one user, plain messages, polling alone. On every driver the wire carries the
//! same as for a program that may use everything.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::{Bus, Device, Plain, Uses};
use barewire::controller::pl022::{Pl022, Pl022Config};
use barewire::controller::{ALWAYS_POLL, Controller, CsLine, PollOnly};
use barewire::hal::HalDevice;
use barewire::spi::{Error, Settings, Transfer};
use barewire::time::NoDelays;
use barewire_sim::BoardSpec;
use barewire_sim::board::boards;
use barewire_sim::bring_up;
use barewire_sim::model::echo::Echo;
use barewire_sim::wire::Driver;
use barewire_sim::{Board, BoardOptions};
use embedded_hal::spi::{Operation, SpiDevice};

/// What a run of messages showed: what the chip heard, how often it was selected, what came back.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    heard: Vec<u8>,
    selections: u64,
    answers: Vec<Vec<u8>>,
}

/// Plain messages of many lengths, by each call that a bus with one user has.
fn plain<C: Controller + ?Sized, U: Uses>(device: &Device<'_, C, U>) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    for len in (1..=20).chain([31, 32, 33, 64, 65, 130]) {
        let tx: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
        let (mut rx, mut more) = (vec![0; len], vec![0; 5]);
        assert_eq!(device.sync(&mut [Transfer::exchange(&tx, &mut rx)]), Ok(len));
        answers.push(rx.clone());
        let mut several =
            [Transfer::write(&tx), Transfer::read(&mut more), Transfer::in_place(&mut rx)];
        assert_eq!(device.sync(&mut several), Ok(2 * len + 5));
        assert_eq!(device.try_sync(&mut several), Ok(2 * len + 5));
        let mut prepared = device.prepare_message(&mut several).expect("plain");
        assert_eq!(prepared.run(), Ok(2 * len + 5));
        answers.extend([rx, more]);
    }
    let mut access = device.prepare([0x9f, 1, 2, 3]).expect("plain");
    for _ in 0..3 {
        answers.push(access.run().expect("answers").to_vec());
    }
    answers
}

/// Transactions of `embedded-hal`, with delays.
fn transactions(device: &mut impl SpiDevice) -> Vec<Vec<u8>> {
    let (mut four, mut more) = ([0; 4], [0; 64]);
    device.transfer(&mut four, &[0x9f, 0, 0, 0]).expect("answers");
    let mut operations = [
        Operation::DelayNs(1_000),
        Operation::Write(&[3, 0, 0, 0]),
        Operation::DelayNs(20_000),
        Operation::Read(&mut more),
    ];
    device.transaction(&mut operations).expect("answers");
    device.transaction(&mut []).expect("selects");
    vec![four.to_vec(), more.to_vec()]
}

const SETTINGS: Settings = Settings::new(0, 1_000_000);

fn seen<C>(
    spec: &'static BoardSpec,
    driver: impl FnOnce(&Board) -> C,
    run: impl FnOnce(C) -> Vec<Vec<u8>>,
) -> Seen {
    let board = Board::new(spec, BoardOptions::default());
    let echo = Rc::new(RefCell::new(Echo::default()));
    board.attach(0, Rc::clone(&echo) as _);
    let answers = run(driver(&board));
    assert_eq!(board.violations_total(), 0, "{}: {:?}", spec.name, board.violations());
    let echo = echo.borrow();
    Seen { heard: echo.received().to_vec(), selections: echo.selections(), answers }
}

/// Compares a driver's programs on one board.
fn compare<C: Controller, P: Controller>(
    spec: &'static BoardSpec,
    driver: impl Fn(&Board) -> C + Copy,
    poll_only: impl Fn(C) -> P,
) {
    let any = |run: fn(&Device<'_, C>) -> Vec<Vec<u8>>| {
        seen(spec, driver, |controller| {
            run(&Bus::new(controller).device(&SETTINGS).expect("opens"))
        })
    };
    let one_user = seen(spec, driver, |controller| {
        plain(&Bus::alone(poll_only(controller)).device(&SETTINGS).expect("opens"))
    });
    let of_plain = seen(spec, driver, |controller| {
        plain(&Bus::with_uses(poll_only(controller), Plain).device(&SETTINGS).expect("opens"))
    });
    let expected = any(|device| plain(device));
    assert!(expected.heard.len() > 1_000 && expected.selections > 100, "{}", spec.name);
    assert_eq!(one_user, expected, "{}", spec.name);
    assert_eq!(of_plain, expected, "{}", spec.name);

    let by_hal = seen(spec, driver, |controller| {
        let bus = Bus::alone(poll_only(controller));
        transactions(&mut HalDevice::new(bus.device(&SETTINGS).expect("opens")))
    });
    assert_eq!(by_hal, any(|device| transactions(&mut HalDevice::new(*device))), "{}", spec.name);
}

macro_rules! drivers {
    ($($driver:ident),+ $(,)?) => {
        $(#[test]
        fn $driver() {
            let kind = &barewire_sim::model::$driver::KIND;
            let boards = boards().filter(|spec| spec.kind == kind);
            let mut compared = 0;
            for spec in boards {
                compare(spec, bring_up::$driver, |controller| controller.with_interrupt(PollOnly));
                compared += 1;
            }
            assert!(compared > 0, "no board has the block");
        })+
    };
}

drivers!(atmel, bcm2835, cadence, dw_ssi, ecspi, mcspi, pl022, sifive);

/// A board with a chip that echoes.
fn board(name: &str) -> Board {
    let spec = boards().find(|spec| spec.name == name).expect("a board");
    let board = Board::new(spec, BoardOptions::default());
    board.attach(0, Rc::new(RefCell::new(Echo::default())));
    board
}

#[test]
fn a_controller_that_polls_only_ignores_limits() {
    let bus = Bus::new(bring_up::ecspi_interrupt(&board("imx8mp"), 0).with_interrupt(PollOnly));
    let settings = Settings { poll_limit_ns: Some(0), ..SETTINGS };
    let device = bus.device(&settings).expect("opens");
    assert_eq!(device.sync(&mut [Transfer::write(&[7; 300])]), Ok(300));
    let mut queued = Box::pin(device.queued([7; 300]).expect("plain"));
    queued.as_mut().enqueue().expect("idle");
    assert_eq!(queued.as_mut().wait(), Some(Ok(300)));
}

#[test]
fn a_timer_without_delays_refuses_them_and_still_ends_what_hangs() {
    let board = board("highbank");
    let Driver::Gpio { bit, .. } = board.spec().cs[0].driver else { panic!("a GPIO") };
    let line = CsLine::Gpio { bit, active_high: board.spec().cs[0].active_high };
    let config = Pl022Config {
        reference_hz: u32::try_from(board.profile().reference_hz.value).expect("it fits"),
        chip_selects: [line, CsLine::Absent, CsLine::Absent, CsLine::Absent],
        poll_limit_ns: ALWAYS_POLL,
    };
    let (regs, gpio, timer) = bring_up::pl022(&board).release();
    let bus = Bus::alone(Pl022::polled(regs, gpio, NoDelays(timer), config));
    assert_eq!(bus.device(&SETTINGS).expect("opens").limits().max_delay_ns, 0);
    for settings in [
        Settings { cs_setup_ns: 1, ..SETTINGS },
        Settings { cs_hold_ns: 1, ..SETTINGS },
        Settings { cs_inactive_ns: 1, ..SETTINGS },
        Settings { word_delay_ns: 1, ..SETTINGS },
    ] {
        assert_eq!(bus.device(&settings).err(), Some(Error::DelayTooLong { asked_ns: 1 }));
    }
    let device = bus.device(&SETTINGS).expect("opens");
    let write = || Transfer::write(&[1]);
    for transfer in [
        write().with_delay_ns(2),
        write().with_word_delay_ns(2),
        write().with_cs_change().with_cs_change_delay_ns(2),
    ] {
        let refused = device.sync(&mut [transfer, write()]).unwrap_err();
        assert_eq!(refused.error, Error::DelayTooLong { asked_ns: 2 });
    }
    assert_eq!(device.sync(&mut [write().with_cs_change(), write().with_speed_hz(500_000)]), Ok(2));
    assert!(plain(&device).len() > 50);
}
