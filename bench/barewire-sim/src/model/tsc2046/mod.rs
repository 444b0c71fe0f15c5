//! Texas Instruments' TSC2046, and its predecessor ADS7846: a controller for four-wire touch
//! screens.
//!
//! *Read first*: SBAS265 (TSC2046) with its tables 1 to 4 and figures 9, 13 and 14, SBAS125 (ADS7846);
//! [`Chip`], which this implements.
//!
//! # How it works
//! There are no bytes: a high DIN begins a control byte at any clock. Clocks from there:
//!
//! | clock | DIN | DOUT | |
//! |---|---|---|---|
//! | 0 | start | | |
//! | 1 to 4 | A2, A1, A0, MODE | | with the fall of 4 the drivers come on and the input is sampled |
//! | 5 to 7 | SER/DFR, PD1, PD0 | | with the fall of 7 it is held |
//! | 8 | | 0 | BUSY |
//! | 9 to 20 | | the code | with the fall of 19 (bit 1) the conversion is over |
//! | then | a start, from 15 on | zeros | |
//!
//! With MODE set the code has 8 bits, and everything after it comes four clocks earlier.
//!
//! The panel is made of resistors and of wires that need time to charge ([`TouchOptions::tau_ps`]),
//! so a sample that is taken too early is wrong. With PD0 set the drivers stay on from one
//! conversion to the next. With PD0 clear they are switched off at the end, and PENIRQ follows the
//! pen: it is low while the pen connects X+ and Y- by less than 21 kΩ, and for a time afterwards
//! ([`TouchOptions::release_ps`]). While a position is sampled PENIRQ is held low, while another
//! input is sampled high, until a conversion ends with PD0 clear.
//!
//! # Assumptions
//! Where the data sheets leave the behaviour open, or their exact text was not available, and a
//! driver could notice:
//! - DOUT is low whenever it has no bit to send, from CS's fall on.
//! - A start before clock 15 (11) is ignored, with a complaint.
//! - PD1 switches the reference at the end of the control byte. The reference rises in some 25 us.
//! - With PD0 set PENIRQ stays as the conversion held it.
//! - If CS rises during a conversion, the conversion ends without the effect of PD0, with a
//!   complaint.
//! - Without a pen, the wire of a plate that is not driven keeps its charge. So X reads low and Y
//!   high then.
//!
//! # Not supported
//! - An external reference.
//! - The MCU's own load on PENIRQ.
//! - Mode 1,1.
//! - Linearity, offset and gain.

mod core;
mod options;
mod panel;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

pub use self::core::Input;
pub use options::{TouchFaults, TouchOptions};
pub use panel::Stroke;

use self::core::Core;
use crate::chip::{Chip, Clocking, PS_PER_NS, Pin as ChipPin, Ps, SetupEdge, WireLimits};
use crate::line::Source;

/// tACQ.
const ACQUIRE_PS: Ps = 1_500 * PS_PER_NS;
/// The last clock of the control byte; with its fall the input is held.
const HOLD_CLOCK: u32 = 7;
/// The clock of BUSY.
const BUSY_CLOCK: u32 = 8;

/// PENIRQ; it is asserted while it is low.
pub struct Pin(Rc<RefCell<Core>>);

impl Source for Pin {
    fn settle(&self, now: Ps) -> Ps {
        self.0.borrow_mut().settle(now)
    }

    fn asserted_since(&self) -> Option<Ps> {
        self.0.borrow().low_since()
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin(PENIRQ)")
    }
}

/// The command of the last start bit.
#[derive(Clone, Copy, Debug)]
struct Command {
    /// The last clock, from the start bit.
    clock: u32,
    control: u8,
}

impl Command {
    const START: Self = Self { clock: 0, control: 1 };

    fn input(self) -> Input {
        Input::selected(self.control >> 4)
    }

    fn bits(self) -> u32 {
        if self.control & 0b1000 == 0 { 12 } else { 8 }
    }

    fn single_ended(self) -> bool {
        self.control & 0b100 != 0
    }

    /// The first clock in which another start is accepted.
    fn next_start(self) -> u32 {
        if self.bits() == 12 { 15 } else { 11 }
    }
}

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The input.
    pub input: Input,
    /// The falling edge that held it.
    pub at_ps: Ps,
    /// The code.
    pub code: u16,
}

/// The chip and its panel.
pub struct Tsc2046 {
    core: Rc<RefCell<Core>>,
    command: Option<Command>,
    /// The clocks left in the conversion in progress, and whether the drivers stay on after it.
    converting: Option<(u32, bool)>,
    /// The code being sent, its number of bits, and the clock since BUSY.
    out: Option<(u16, u32, u32)>,
    held: u64,
    last: Option<Held>,
}

impl Tsc2046 {
    /// Creates a chip at power-up, powered down; PENIRQ works.
    #[must_use]
    pub fn new(options: TouchOptions) -> Self {
        let core = Rc::new(RefCell::new(Core::new(options)));
        Self { core, command: None, converting: None, out: None, held: 0, last: None }
    }

    /// The PENIRQ pin.
    #[must_use]
    pub fn pen_irq(&self) -> Rc<Pin> {
        Rc::new(Pin(self.core.clone()))
    }

    /// Adds a stroke. It must be in the future and after all strokes added before.
    ///
    /// # Panics
    /// If it is not.
    pub fn add_stroke(&self, stroke: Stroke) {
        self.core.borrow_mut().add_stroke(stroke);
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: TouchFaults) {
        self.core.borrow_mut().set_faults(faults);
    }

    /// The number of conversions.
    #[must_use]
    pub fn conversions(&self) -> u64 {
        self.held
    }

    /// The last conversion.
    #[must_use]
    pub fn last_held(&self) -> Option<Held> {
        self.last
    }

    /// One clock cell: takes DIN, returns DOUT.
    fn cell(&mut self, at: Ps, period: Ps, din: bool) -> bool {
        let fall = at + period;
        let dout = self.dout();
        // First the end of the previous conversion: the next input is sampled from that edge on at
        // the earliest.
        self.convert(fall);
        let Some(mut command) = self.command else {
            self.command = din.then_some(Command::START);
            return dout;
        };
        command.clock += 1;
        let clock = command.clock;
        if clock < BUSY_CLOCK {
            command.control = command.control << 1 | u8::from(din);
        }
        self.command = Some(command);
        match clock {
            4 => self.acquire(Input::selected(command.control >> 1), fall, period),
            HOLD_CLOCK => self.hold(command, fall),
            _ if clock >= BUSY_CLOCK && din => self.start_again(command),
            _ => {}
        }
        dout
    }

    /// DOUT's level in this clock.
    fn dout(&mut self) -> bool {
        let Some((code, bits, clock)) = &mut self.out else { return false };
        let nth = *clock;
        *clock += 1;
        (1..=*bits).contains(&nth) && *code >> (*bits - nth) & 1 != 0
    }

    fn acquire(&mut self, input: Input, at: Ps, period: Ps) {
        let mut core = self.core.borrow_mut();
        core.acquire(input, at);
        if 3 * period < ACQUIRE_PS {
            core.complain(|| {
                format!("{input:?} is sampled for {} ps, {ACQUIRE_PS} are needed", 3 * period)
            });
        }
    }

    fn hold(&mut self, command: Command, at: Ps) {
        let (input, bits) = (command.input(), command.bits());
        let mut core = self.core.borrow_mut();
        core.power_reference(command.control & 0b10 != 0, at);
        let code = core.hold(input, command.single_ended(), bits, at);
        self.out = Some((code, bits, 0));
        self.converting = Some((bits, command.control & 1 != 0));
        self.held += 1;
        self.last = Some(Held { input, at_ps: at, code });
    }

    /// A clock of a conversion: BUSY, then one per bit up to bit 1.
    fn convert(&mut self, fall: Ps) {
        let Some((left, stay_on)) = &mut self.converting else { return };
        *left -= 1;
        if *left == 0 {
            self.core.borrow_mut().end_conversion(*stay_on, fall);
            self.converting = None;
        }
    }

    /// DIN is high after a control byte.
    fn start_again(&mut self, command: Command) {
        let (clock, first) = (command.clock, command.next_start());
        if clock >= first {
            self.command = Some(Command::START);
            return;
        }
        self.core.borrow_mut().complain(|| {
            format!("a start in clock {clock} of a conversion is not heard before clock {first}")
        });
    }
}

impl Chip for Tsc2046 {
    fn name(&self) -> &'static str {
        "TSC2046"
    }

    /// Timing specifications, at +VCC of 2.7 V and above.
    fn limits(&self) -> WireLimits {
        WireLimits {
            modes: 0b0001, // Figure 9: DCLK rests low; DIN is read at its rise, DOUT changes at its fall.
            cs_setup_ns: 100, // tCSS.
            cs_hold_ns: 10, // tCSH.
            cs_inactive_ns: 0, // None given.
            max_clock_hz: 2_500_000, // tCH and tCL, 200 ns each; tACQ is held for each conversion.
        }
    }

    /// tCSS ends with the first rising edge.
    fn setup_edge(&self) -> SetupEdge {
        SetupEdge::Sampling
    }

    fn select(&mut self, at: Ps) {
        self.core.borrow_mut().catch_up(at);
        self.command = None;
        self.converting = None;
        self.out = None;
    }

    fn deselect(&mut self, at: Ps) {
        let mut core = self.core.borrow_mut();
        core.catch_up(at);
        let control = self.command.filter(|command| command.clock < BUSY_CLOCK);
        if !core.options.faults.absent && (self.converting.is_some() || control.is_some()) {
            let clock = self.command.map_or(0, |command| command.clock);
            core.complain(|| format!("CS rose after clock {clock} of a conversion"));
        }
        drop(core);
        self.command = None;
        self.converting = None;
        self.out = None;
    }

    fn exchange(&mut self, clocking: Clocking, mosi: u32, bits: u32) -> u32 {
        let Clocking { mut at, period } = clocking;
        let faults = self.core.borrow().options.faults;
        if faults.absent {
            return u32::MAX >> (32 - bits);
        }
        let mut miso = 0;
        for bit in (0..bits).rev() {
            let dout = self.cell(at, period, mosi >> bit & 1 != 0);
            miso = miso << 1 | u32::from(dout);
            at += period;
        }
        if faults.dout_stuck_low { 0 } else { miso }
    }

    fn pins(&self) -> Vec<ChipPin> {
        vec![ChipPin::ActiveLow("PENIRQ", self.pen_irq())]
    }

    fn take_complaint(&mut self) -> Option<String> {
        self.core.borrow_mut().take_complaint()
    }
}

impl fmt::Debug for Tsc2046 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tsc2046").field("last", &self.last).finish_non_exhaustive()
    }
}
