//! `tsc2046` on our device, before the simulated chip and its panel.
//!
//! It asks what the data sheet asks: 12 bits, against the driven plate, a conversion in 24 clocks under a
//! chip select of its own. So it needs a transaction to be one selection, and zeros on MOSI while it
//! reads: a 1 would be a start bit. Both are so here.
//!
//! It does not wait for the panel ("Touch screen settling"): each conversion is the first after its plate
//! began to be driven, three clocks before. With 10 nF on the wires it is right at 100 kHz and wrong at
//! 1 MHz. And it has no floor: without a pen, a code of noise over a code of noise may be a touch.

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::tsc2046::{Config, Tsc2046};
use barewire::hal::{HalDevice, OnSpiDevice};
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::model::tsc2046::{self as model, Stroke, TouchFaults, TouchOptions};
use barewire_sim::{Board, BoardOptions, BoardSpec, IntLine};
use tsc2046::{TouchPoint, Tsc2046 as Foreign};

const CS: u8 = 3;
const MS: u64 = 1_000_000_000;
/// The position of the pen, in codes, and its pressure.
const X: u16 = 1_000;
const Y: u16 = 3_000;
const OHMS: u32 = 300;
/// The pressure as the driver reports it: [`OHMS`] over the X plate's 500 Ω.
const Z: f32 = 0.6;
const THRESHOLD: f32 = 8.0;

struct Bench {
    board: Board,
    chip: Rc<RefCell<model::Tsc2046>>,
    line: IntLine,
    bus: Bus<Charged<AnyController>>,
}

impl Bench {
    /// A panel with a pen on it from 1 ms on.
    fn new(options: TouchOptions) -> Self {
        let spec = BoardSpec::find("imx8mp").expect("a board");
        let board = Board::new(spec, BoardOptions::default());
        let (chip, line) = board.attach_touch(Some(options)).expect("the board has one");
        let at = [X * 16, Y * 16];
        let stroke = Stroke { down_ps: MS, up_ps: 50 * MS, from: at, to: at, ohms: OHMS };
        chip.borrow().add_stroke(stroke);
        let bus = bus(&board);
        Self { board, chip, line, bus }
    }

    fn device(&self, speed_hz: u32) -> HalDevice<'_, Charged<AnyController>> {
        let settings = Tsc2046::settings(CS, speed_hz).expect("in range");
        HalDevice::new(self.bus.device(&settings).expect("opens"))
    }

    fn pass_to(&self, at: u64) {
        self.board.engine().spend_ps(at - self.board.engine().now_ps());
    }

    fn assert_no_violations(&self) {
        let violations = self.board.violations();
        assert!(violations.is_empty(), "{:#?}", &violations[..violations.len().min(5)]);
    }
}

fn assert_there(point: &TouchPoint) {
    let TouchPoint { x, y, z } = *point;
    assert!(x.abs_diff(X) <= 6 && y.abs_diff(Y) <= 6 && (z - Z).abs() < 0.05, "{point:?}");
}

fn fast_panel() -> TouchOptions {
    TouchOptions { tau_ps: 200_000, ..TouchOptions::default() }
}

#[test]
fn a_panel_without_capacitors_is_read_at_1_mhz() {
    let bench = Bench::new(fast_panel());
    let mut touch = Foreign::new(bench.device(1_000_000), true, THRESHOLD).expect("runs");
    bench.pass_to(2 * MS);
    for _ in 0..20 {
        assert_there(&touch.get_touch().expect("runs").expect("a touch"));
    }
    assert_eq!(bench.chip.borrow().conversions(), 1 + 20 * 4);
    bench.assert_no_violations();
}

#[test]
fn a_slow_panel_is_read_right_at_100_khz_and_wrong_at_1_mhz() {
    let read = |speed_hz| {
        let bench = Bench::new(TouchOptions::default());
        let mut touch = Foreign::new(bench.device(speed_hz), true, THRESHOLD).expect("runs");
        bench.pass_to(2 * MS);
        let point = touch.get_touch().expect("runs").expect("a touch");
        bench.assert_no_violations();
        point
    };
    assert_there(&read(100_000));
    // X begins at ground and has three clocks of 1 µs where the time constant is 4 µs.
    let hasty = read(1_000_000);
    assert!((500..560).contains(&hasty.x), "{hasty:?}");
    // Ours, on the same board at the same clock, throws conversions away first.
    const PANEL: Config = Config::DEFAULT;
    let bench = Bench::new(TouchOptions::default());
    bench.pass_to(2 * MS);
    let port = OnSpiDevice::new(bench.device(1_000_000), 1_000_000);
    let mut ours = Tsc2046::<_, { PANEL.message_bytes() }>::on_port(port, PANEL).expect("opens");
    let touch = ours.read().expect("it is down");
    assert!(touch.x.abs_diff(X) <= 4 && touch.y.abs_diff(Y) <= 4, "{touch:?}");
    bench.assert_no_violations();
}

#[test]
fn its_interrupt_pin_follows_the_pen_if_it_was_asked_for() {
    let bench = Bench::new(fast_panel());
    let mut touch = Foreign::new(bench.device(1_000_000), false, THRESHOLD).expect("runs");
    bench.pass_to(60 * MS);
    assert!(bench.line.is_high(), "low with the last position, whatever the pen does");
    touch.set_irq(true).expect("runs");
    bench.pass_to(61 * MS);
    assert!(!bench.line.is_high());
    let at = [X * 16, Y * 16];
    let (down_ps, up_ps) = (62 * MS, 63 * MS);
    let stroke = Stroke { down_ps, up_ps, from: at, to: at, ohms: OHMS };
    bench.chip.borrow().add_stroke(stroke);
    bench.pass_to(62 * MS);
    assert!(bench.line.is_high());
    assert_there(&touch.get_touch().expect("runs").expect("a touch"));
    bench.assert_no_violations();
}

#[test]
fn without_a_pen_it_takes_noise_for_one_now_and_then() {
    let touches = |noise_codes| {
        let bench = Bench::new(TouchOptions { noise_codes, ..fast_panel() });
        let mut touch = Foreign::new(bench.device(1_000_000), true, THRESHOLD).expect("runs");
        bench.pass_to(60 * MS);
        (0..100).filter(|_| touch.get_touch().expect("runs").is_some()).count()
    };
    assert_eq!(touches(0), 0, "0 times infinity is no touch");
    assert!((1..100).contains(&touches(2)));
}

/// The driver cannot detect a missing chip: all ones mean a pen at the far corner.
#[test]
fn a_missing_chip_is_a_touch() {
    let bench = Bench::new(fast_panel());
    let absent = TouchFaults { absent: true, ..TouchFaults::default() };
    bench.chip.borrow().set_faults(absent);
    let mut touch = Foreign::new(bench.device(1_000_000), true, THRESHOLD).expect("runs");
    let corner = TouchPoint { x: 4_095, y: 4_095, z: 0.0 };
    assert_eq!(touch.get_touch(), Ok(Some(corner)));
}
