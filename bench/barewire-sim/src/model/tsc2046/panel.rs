//! The panel: two resistive plates, a pen that connects them, and wires that take time to charge.
//!
//! *Read first*: SBAS265, figures of the position and pressure measurements, "Touch screen settling".
//!
//! # How it works
//! Levels are fractions of the supply. A driver sets its wire at once. The wires of plates that are
//! not driven follow through the pen with a time constant or, without a pen, keep their level.

use crate::chip::Ps;

/// A stroke of the pen: it lands, moves evenly, and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stroke {
    /// When it lands.
    pub down_ps: Ps,
    /// When it leaves.
    pub up_ps: Ps,
    /// The position where it lands: X from X- to X+ and Y from Y- to Y+, in 65,536ths.
    pub from: [u16; 2],
    /// The position where it leaves.
    pub to: [u16; 2],
    /// The resistance of the touch, in ohms.
    pub ohms: u32,
}

impl Stroke {
    /// The position at a time in between, in 65,536ths.
    #[must_use]
    pub fn at(&self, now: Ps) -> [u16; 2] {
        let whole = i128::from(self.up_ps.saturating_sub(self.down_ps).max(1));
        let done = i128::from(now.saturating_sub(self.down_ps)).min(whole);
        std::array::from_fn(|axis| {
            let (from, to) = (i128::from(self.from[axis]), i128::from(self.to[axis]));
            (from + (to - from) * done / whole) as u16
        })
    }
}

/// The switches that are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drive {
    /// None.
    Off,
    /// Y- to ground, X+ to the pull-up: PENIRQ.
    PenDetect,
    /// X+ and X-.
    X,
    /// Y+ and Y-.
    Y,
    /// Y+ and X-.
    Z,
}

/// The pen at one moment: positions as fractions, and ohms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    x: f64,
    y: f64,
    ohms: f64,
}

impl Pen {
    pub(super) fn of(stroke: &Stroke, now: Ps) -> Self {
        let [x, y] = stroke.at(now).map(|at| f64::from(at) / 65_536.0);
        Self { x, y, ohms: f64::from(stroke.ohms) }
    }
}

/// The plates, and the levels of their wires.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    x_plate: f64,
    y_plate: f64,
    tau_ps: Ps,
    pub(super) drive: Drive,
    pub(super) x_plus: f64,
    pub(super) y_plus: f64,
    pub(super) y_minus: f64,
}

/// The internal pull-up, typical.
const PULL_UP: f64 = 50_000.0;
/// The largest resistance between X+ and Y- at which PENIRQ is low.
const PEN_IRQ_MAX_OHMS: f64 = 21_000.0;

impl Panel {
    pub(super) fn new(x_plate_ohms: u32, y_plate_ohms: u32, tau_ps: Ps) -> Self {
        let (x_plate, y_plate) = (f64::from(x_plate_ohms), f64::from(y_plate_ohms));
        let drive = Drive::PenDetect;
        Self { x_plate, y_plate, tau_ps, drive, x_plus: 1.0, y_plus: 0.0, y_minus: 0.0 }
    }

    /// The resistance from X+ to Y- through the pen.
    fn across(&self, pen: Pen) -> f64 {
        (1.0 - pen.x) * self.x_plate + pen.ohms + pen.y * self.y_plate
    }

    /// Whether the pen pulls X+ low enough for PENIRQ.
    pub(super) fn pulls(&self, pen: Pen) -> bool {
        self.across(pen) < PEN_IRQ_MAX_OHMS
    }

    /// Lets `elapsed` pass. The pen is taken to have had its final position all the time.
    pub(super) fn pass(&mut self, elapsed: Ps, pen: Option<Pen>) {
        let tau_ps = self.tau_ps.max(1);
        let left = decay(elapsed as f64 / tau_ps as f64);
        let towards = |level: &mut f64, target: f64| *level = target + (*level - target) * left;
        match (self.drive, pen) {
            (Drive::Off, _) => {}
            (Drive::PenDetect, pen) => {
                // Without a pen only the pull-up charges the wire: much slower.
                match pen {
                    Some(pen) => {
                        let across = self.across(pen);
                        towards(&mut self.x_plus, across / (across + PULL_UP));
                    }
                    None => {
                        let slow = PULL_UP / self.x_plate.max(1.0);
                        let left = decay(elapsed as f64 / tau_ps as f64 / slow);
                        self.x_plus = 1.0 + (self.x_plus - 1.0) * left;
                    }
                }
                towards(&mut self.y_plus, 0.0);
                self.y_minus = 0.0;
            }
            (Drive::X, pen) => {
                self.x_plus = 1.0;
                if let Some(pen) = pen {
                    towards(&mut self.y_plus, pen.x);
                    towards(&mut self.y_minus, pen.x);
                }
            }
            (Drive::Y, pen) => {
                (self.y_plus, self.y_minus) = (1.0, 0.0);
                if let Some(pen) = pen {
                    towards(&mut self.x_plus, pen.y);
                }
            }
            (Drive::Z, Some(pen)) => {
                self.y_plus = 1.0;
                let total = (1.0 - pen.y) * self.y_plate + pen.ohms + pen.x * self.x_plate;
                towards(&mut self.x_plus, pen.x * self.x_plate / total);
                towards(&mut self.y_minus, (pen.ohms + pen.x * self.x_plate) / total);
            }
            (Drive::Z, None) => {
                self.y_plus = 1.0;
                towards(&mut self.x_plus, 0.0);
                towards(&mut self.y_minus, 1.0);
            }
        }
    }
}

/// `e` to the power of `-times`, computed by additions and multiplications only, so that every
/// machine rounds it alike.
pub(super) fn decay(times: f64) -> f64 {
    if times > 40.0 {
        return 0.0;
    }
    let part = times / 1_024.0;
    let mut power = 1.0 - part * (1.0 - part / 2.0 * (1.0 - part / 3.0 * (1.0 - part / 4.0)));
    for _ in 0..10 {
        power *= power;
    }
    power
}
