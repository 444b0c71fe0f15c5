//! The chip's surroundings, and its faults.

use crate::chip::{PS_PER_NS, Ps};

/// Faults of the chip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchFaults {
    /// There is no chip: DOUT and PENIRQ are never driven, and DIN is ignored.
    pub absent: bool,
    /// DOUT is shorted to ground: the chip works, but reads as zeros.
    pub dout_stuck_low: bool,
    /// PENIRQ is shorted to ground.
    pub pen_irq_stuck_low: bool,
}

/// Options for a chip and its panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchOptions {
    /// +VCC, in millivolts.
    pub supply_mv: u32,
    /// The resistance between X+ and X-, in ohms.
    pub x_plate_ohms: u32,
    /// The resistance between Y+ and Y-, in ohms.
    pub y_plate_ohms: u32,
    /// The time constant with which the wire of a plate that is not driven follows the driven
    /// plate, given by the plates' resistance and the noise capacitors on their wires.
    pub tau_ps: Ps,
    /// How long PENIRQ stays low after the pen is lifted, or after a measurement without a pen: the
    /// pull-up of 50 kΩ charges those capacitors up to the gate's threshold.
    pub release_ps: Ps,
    /// Every code is wrong by up to this much, in either direction.
    pub noise_codes: u16,
    /// The seed of that noise.
    pub seed: u64,
    /// The voltage at VBAT, in millivolts.
    pub battery_mv: u32,
    /// The voltage at AUX, in millivolts.
    pub aux_mv: u32,
    /// The chip's temperature, in thousandths of a kelvin.
    pub temperature_mk: u32,
    /// The faults.
    pub faults: TouchFaults,
}

impl Default for TouchOptions {
    /// A small panel at 3.3 V, with 10 nF on its wires charged through some 400 Ω. PENIRQ rises to
    /// 0.35 of the supply through 50 kΩ and the plate's 8 nF in 0.43 of their product.
    fn default() -> Self {
        Self {
            supply_mv: 3_300,
            x_plate_ohms: 500,
            y_plate_ohms: 400,
            tau_ps: 4_000 * PS_PER_NS,
            release_ps: 172_000 * PS_PER_NS,
            noise_codes: 2,
            seed: 1,
            battery_mv: 3_700,
            aux_mv: 1_000,
            temperature_mk: 298_150,
            faults: TouchFaults::default(),
        }
    }
}
