//! The chip's state, which its SPI side and its PENIRQ pin share.

use super::options::TouchOptions;
use super::panel::{Drive, Panel, Pen, Stroke, decay};
use crate::chip::complaints::Complaints;
use crate::chip::{PS_PER_NS, Ps};
use crate::random::SplitMix64;

/// The most complaints kept until they are taken.
const COMPLAINTS_MAX: usize = 64;
/// The reference, in microvolts.
const REFERENCE_UV: f64 = 2_500_000.0;
/// The time constant with which it rises. Assumption: without a capacitor at VREF.
const REFERENCE_TAU_PS: Ps = 5_000 * PS_PER_NS;
/// The thermometer diode at 25 °C, and its change per kelvin.
const DIODE_UV: f64 = 600_000.0;
const DIODE_UV_PER_K: f64 = 2_100.0;
const ROOM_K: f64 = 298.15;
/// Kelvins for each microvolt between the two diode currents.
const K_PER_UV: f64 = 2.573 / 1_000.0;

/// The input selected by A2 to A0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The diode at its lower current.
    Temp0,
    /// The position along Y, at X+.
    Y,
    /// VBAT, divided by four.
    Battery,
    /// X+ with Y+ against X-.
    Z1,
    /// Y- with Y+ against X-.
    Z2,
    /// The position along X, at Y+.
    X,
    /// AUX.
    Aux,
    /// The diode at its higher current.
    Temp1,
}

impl Input {
    /// Tables 1 and 2 of the data sheet.
    pub(super) fn selected(address: u8) -> Self {
        match address & 7 {
            0 => Self::Temp0,
            1 => Self::Y,
            2 => Self::Battery,
            3 => Self::Z1,
            4 => Self::Z2,
            5 => Self::X,
            6 => Self::Aux,
            _ => Self::Temp1,
        }
    }

    pub(super) fn drive(self) -> Drive {
        match self {
            Self::X => Drive::X,
            Self::Y => Drive::Y,
            Self::Z1 | Self::Z2 => Drive::Z,
            Self::Temp0 | Self::Temp1 | Self::Battery | Self::Aux => Drive::Off,
        }
    }
}

/// The state of PENIRQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PenIrq {
    /// It follows the pen.
    Follows,
    /// Held, regardless of the pen: low for positions.
    Held { low: bool },
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: TouchOptions,
    panel: Panel,
    /// In order, without overlap.
    strokes: Vec<Stroke>,
    /// The time up to which events were processed.
    at: Ps,
    /// The time PENIRQ was last read.
    looked_at: Ps,
    pen_irq: PenIrq,
    /// The time at which the pull-up has charged its wire.
    low_until: Ps,
    low_since: Option<Ps>,
    reference_since: Option<Ps>,
    random: SplitMix64,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Core {
    pub(super) fn new(options: TouchOptions) -> Self {
        let panel = Panel::new(options.x_plate_ohms, options.y_plate_ohms, options.tau_ps);
        let mut this = Self {
            panel,
            strokes: Vec::new(),
            at: 0,
            looked_at: 0,
            pen_irq: PenIrq::Follows,
            low_until: 0,
            low_since: None,
            reference_since: None,
            random: SplitMix64::new(options.seed),
            complaints: Complaints::default(),
            options,
        };
        this.move_pen_irq();
        this
    }

    pub(super) fn add_stroke(&mut self, stroke: Stroke) {
        let free_from = self.strokes.last().map_or(0, |last| last.up_ps + 1).max(self.at);
        assert!(
            free_from <= stroke.down_ps && stroke.down_ps < stroke.up_ps,
            "a stroke lands after {free_from} ps and leaves later: {stroke:?}"
        );
        self.strokes.push(stroke);
    }

    pub(super) fn set_faults(&mut self, faults: super::TouchFaults) {
        self.options.faults = faults;
        self.move_pen_irq();
    }

    fn stroke(&self, at: Ps) -> Option<&Stroke> {
        let next = self.strokes.partition_point(|stroke| stroke.up_ps <= at);
        self.strokes.get(next).filter(|stroke| stroke.down_ps <= at)
    }

    fn pen(&self, at: Ps) -> Option<Pen> {
        self.stroke(at).map(|stroke| Pen::of(stroke, at))
    }

    /// The time of the next event, by the pen or the pull-up.
    fn next_event(&self) -> Ps {
        let next = self.strokes.partition_point(|stroke| stroke.up_ps <= self.at);
        let edge =
            self.strokes.get(next).map_or(Ps::MAX, |stroke| match stroke.down_ps > self.at {
                true => stroke.down_ps,
                false => stroke.up_ps,
            });
        if self.low_until > self.at { edge.min(self.low_until) } else { edge }
    }

    /// Processes all events until `now`.
    pub(super) fn catch_up(&mut self, now: Ps) {
        while self.at < now {
            let next = self.next_event().min(now);
            // The pen is present until it leaves, so use its state just before the event.
            let pen = self.pen(next - 1);
            self.panel.pass(next - self.at, pen);
            self.at = next;
            if self.pen_irq == PenIrq::Follows && pen.is_some() && self.pen(next).is_none() {
                self.low_until = next + self.options.release_ps;
            }
            self.move_pen_irq();
        }
    }

    /// The time at which the pin may next change.
    pub(super) fn settle(&mut self, now: Ps) -> Ps {
        self.catch_up(now);
        self.looked_at = now;
        match self.low_since {
            // An edge of the clock that has begun.
            Some(since) if since > now => since,
            _ => self.next_event(),
        }
    }

    pub(super) fn low_since(&self) -> Option<Ps> {
        self.low_since.filter(|&since| since <= self.looked_at)
    }

    fn move_pen_irq(&mut self) {
        let faults = self.options.faults;
        let low = match self.pen_irq {
            _ if faults.pen_irq_stuck_low => true,
            _ if faults.absent => false,
            PenIrq::Held { low } => low,
            PenIrq::Follows => {
                let pulls = self.pen(self.at).is_some_and(|pen| self.panel.pulls(pen));
                pulls || self.at < self.low_until
            }
        };
        self.low_since = if low { self.low_since.or(Some(self.at)) } else { None };
    }

    /// Starts to sample `input`.
    pub(super) fn acquire(&mut self, input: Input, at: Ps) {
        self.catch_up(at);
        self.panel.drive = input.drive();
        self.pen_irq = PenIrq::Held { low: input.drive() != Drive::Off };
        self.move_pen_irq();
    }

    /// Switches the reference on or off.
    pub(super) fn power_reference(&mut self, on: bool, at: Ps) {
        self.reference_since = on.then(|| self.reference_since.unwrap_or(at));
    }

    /// Converts the level of `input` at `at` to a code of `bits`.
    pub(super) fn hold(&mut self, input: Input, single_ended: bool, bits: u32, at: Ps) -> u16 {
        self.catch_up(at);
        let whole = f64::from(1_u32 << bits);
        let fraction = if single_ended {
            let reference = self.reference_uv(at);
            if reference < REFERENCE_UV * 0.9 {
                self.complain(|| {
                    format!("{input:?} was converted against {reference:.0} uV of reference")
                });
            }
            self.level_uv(input) / reference.max(1.0)
        } else {
            self.level(input)
        };
        let code = (fraction * whole) as i64 + self.noise(bits);
        if single_ended {
            self.panel.drive = Drive::Off;
        }
        code.clamp(0, (1 << bits) - 1) as u16
    }

    /// The level of a pin, as a fraction of the driven voltage.
    fn level(&self, input: Input) -> f64 {
        match input {
            Input::X => self.panel.y_plus,
            Input::Y | Input::Z1 => self.panel.x_plus,
            Input::Z2 => self.panel.y_minus,
            // Only the panel has differential inputs; for the others there is no reference.
            Input::Temp0 | Input::Temp1 | Input::Battery | Input::Aux => 1.0,
        }
    }

    fn level_uv(&self, input: Input) -> f64 {
        let options = &self.options;
        let kelvin = f64::from(options.temperature_mk) / 1_000.0;
        let diode = DIODE_UV - (kelvin - ROOM_K) * DIODE_UV_PER_K;
        match input {
            Input::Temp0 => diode,
            Input::Temp1 => diode + kelvin / K_PER_UV,
            Input::Battery => f64::from(options.battery_mv) * 250.0,
            Input::Aux => f64::from(options.aux_mv) * 1_000.0,
            _ => self.level(input) * f64::from(options.supply_mv) * 1_000.0,
        }
    }

    fn reference_uv(&self, at: Ps) -> f64 {
        self.reference_since.map_or(0.0, |since| {
            let times = at.saturating_sub(since) as f64 / REFERENCE_TAU_PS as f64;
            REFERENCE_UV * (1.0 - decay(times))
        })
    }

    fn noise(&mut self, bits: u32) -> i64 {
        let span = 2 * u64::from(self.options.noise_codes) + 1;
        let code = (self.random.next_u64() % span) as i64 - i64::from(self.options.noise_codes);
        code >> (12 - bits)
    }

    /// Ends the conversion. `stay_on`: the drivers stay on.
    pub(super) fn end_conversion(&mut self, stay_on: bool, at: Ps) {
        self.catch_up(at);
        if stay_on {
            return;
        }
        self.panel.drive = Drive::PenDetect;
        self.pen_irq = PenIrq::Follows;
        self.low_until = at + self.options.release_ps;
        self.move_pen_irq();
    }

    #[cold]
    pub(super) fn complain(&mut self, what: impl FnOnce() -> String) {
        self.complaints.add(what);
    }

    pub(super) fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}
