//! The TSC2046's driver against the simulated chip and panel, over the bus path and the ECSPI driver.

mod beside_flash;
mod faults;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::tsc2046::{Aux, Axis, Config, Served, Touch, TouchError, Tsc2046};
use barewire::regmap::OnDevice;
use barewire_sim::bring_up::{AnyController, Charged, bus};
use barewire_sim::chip::Ps;
use barewire_sim::model::tsc2046::{self as model, Stroke, TouchFaults, TouchOptions};
use barewire_sim::{Board, IntLine};

type SimBus = Bus<Charged<AnyController>>;

/// The panel of [`TouchOptions`]: nine time constants of 4 µs are what 12 bits need.
const CONFIG: Config = Config {
    x_plate_ohms: 500,
    settle: Config::settle_for(9 * 4_000, SPEED_HZ),
    interval_us: 2_000,
    recheck_us: 200,
    ..Config::DEFAULT
};
const BYTES: usize = CONFIG.message_bytes();
type Driver<'b> = Tsc2046<OnDevice<'b, Charged<AnyController>, BYTES>, BYTES>;

/// Where the board has its touch controller.
const CS: u8 = 3;
/// The thread's.
const SPEED_HZ: u32 = 1_000_000;
const US: Ps = 1_000_000;
const MS: Ps = 1_000 * US;

fn driver(bus: &SimBus) -> Driver<'_> {
    let settings = Tsc2046::settings(CS, SPEED_HZ).expect("in range");
    let device = bus.device(&settings).expect("opens");
    Tsc2046::new(device.with_priority(7), CONFIG).expect("in range")
}

/// A board with the chip and nothing else.
struct Rig {
    board: Board,
    chip: Rc<RefCell<model::Tsc2046>>,
    line: IntLine,
    bus: SimBus,
}

impl Rig {
    fn with(options: TouchOptions) -> Self {
        let board = crate::board("imx8mp");
        let (chip, line) = board.attach_touch(Some(options)).expect("the board has one");
        let bus = bus(&board);
        Self { board, chip, line, bus }
    }

    fn new() -> Self {
        Self::with(TouchOptions::default())
    }

    /// A pen that stays where it lands, from now on, for the given time.
    fn press(&self, [x, y]: [u16; 2], ohms: u32, for_ps: Ps) -> Stroke {
        let down_ps = self.board.engine().now_ps() + 10 * US;
        let at = [x * 16, y * 16];
        let stroke = Stroke { down_ps, up_ps: down_ps + for_ps, from: at, to: at, ohms };
        self.chip.borrow().add_stroke(stroke);
        stroke
    }

    fn pass(&self, ps: Ps) {
        self.board.engine().spend_ps(ps);
    }

    /// The result of `read` without a chip, or with a broken wire.
    fn reads_with(&self, faults: TouchFaults) -> Result<Touch, TouchError> {
        self.chip.borrow().set_faults(faults);
        driver(&self.bus).read()
    }

    fn assert_clean(&self) {
        assert!(self.board.violations().is_empty(), "{:#?}", self.board.violations());
    }
}
