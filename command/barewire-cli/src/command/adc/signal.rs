//! The signal behind an input's samples: its range, and the sine that fits it best.
//!
//! # How it works
//! 1. The mean's crossings, with a hysteresis of an eighth of the range, give a first frequency:
//!    turns between the first and the last rising one.
//! 2. At a given frequency the best sine is found by linear least squares in sine, cosine and mean,
//!    at the times at which the samples were really taken, however uneven.
//! 3. The frequency with the least residual is searched around the first one, closer and closer.
//!
//! # Not supported
//! Signals of several frequencies: the sine that is found is then the one nearest to the crossings.

use serde::Serialize;

/// An input's signal.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Signal {
    pub(super) input: String,
    pub(super) min_v: f64,
    pub(super) max_v: f64,
    pub(super) mean_v: f64,
    /// Root mean square of the deviation from the mean.
    pub(super) ac_rms_v: f64,
    /// The sine that fits best, if the signal turns at least twice.
    #[serde(flatten)]
    pub(super) sine: Option<Sine>,
}

/// A sine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Sine {
    pub(super) frequency_hz: f64,
    /// Half of peak to peak.
    pub(super) amplitude_v: f64,
    /// The sine's mean. It differs from the samples' mean if the samples do not cover whole
    /// periods.
    pub(super) offset_v: f64,
    /// The root mean square of the samples minus the sine.
    pub(super) residual_rms_v: f64,
}

/// Steps of a search on either side of its middle, and how often it is made closer.
const STEPS: i32 = 8;
const CLOSER: u32 = 10;

/// The signal of `input` in samples of time in seconds and volts.
pub(super) fn of(input: String, samples: &[(f64, f64)]) -> Option<Signal> {
    let count = samples.len() as f64;
    let (&(first_s, first_v), &(last_s, _)) = (samples.first()?, samples.last()?);
    let mut signal =
        Signal { input, min_v: first_v, max_v: first_v, mean_v: 0.0, ac_rms_v: 0.0, sine: None };
    for &(_, volts) in samples {
        signal.min_v = signal.min_v.min(volts);
        signal.max_v = signal.max_v.max(volts);
        signal.mean_v += volts;
    }
    signal.mean_v /= count;
    let squares = samples.iter().map(|&(_, volts)| (volts - signal.mean_v).powi(2));
    signal.ac_rms_v = (squares.sum::<f64>() / count).sqrt();
    if let Some(frequency_hz) = frequency(samples, &signal) {
        signal.sine = fit_near(samples, frequency_hz, last_s - first_s);
    }
    Some(signal)
}

/// From the crossings of the mean; `None` below two turns.
fn frequency(samples: &[(f64, f64)], signal: &Signal) -> Option<f64> {
    let hysteresis = (signal.max_v - signal.min_v) / 8.0;
    let mut armed = false;
    let mut crossings: Vec<f64> = Vec::new();
    for &(at_s, volts) in samples {
        if volts < signal.mean_v - hysteresis {
            armed = true;
        } else if armed && volts >= signal.mean_v {
            armed = false;
            crossings.push(at_s);
        }
    }
    let (first, last) = (crossings.first()?, crossings.last()?);
    let turns = crossings.len() - 1;
    (turns >= 2 && last > first).then(|| turns as f64 / (last - first))
}

/// The best sine within a turn's share of `frequency_hz`.
fn fit_near(samples: &[(f64, f64)], frequency_hz: f64, span_s: f64) -> Option<Sine> {
    let mut best = fit(samples, frequency_hz)?;
    // The residual has its neighbouring minima 1 / span away.
    let mut step_hz = 0.5 / span_s / f64::from(STEPS);
    for _ in 0..CLOSER {
        let middle_hz = best.frequency_hz;
        for step in -STEPS..=STEPS {
            if let Some(sine) = fit(samples, middle_hz + f64::from(step) * step_hz)
                && sine.residual_rms_v < best.residual_rms_v
            {
                best = sine;
            }
        }
        step_hz /= f64::from(STEPS);
    }
    Some(best)
}

/// Least squares: `offset + a * sin + b * cos`. `None` where they cannot be told apart.
fn fit(samples: &[(f64, f64)], frequency_hz: f64) -> Option<Sine> {
    let (origin_s, _) = *samples.first()?;
    let mut normal = [[0.0; 4]; 3];
    let mut squares = 0.0;
    for &(at_s, volts) in samples {
        let angle = std::f64::consts::TAU * frequency_hz * (at_s - origin_s);
        let (sin, cos) = angle.sin_cos();
        let terms = [1.0, sin, cos];
        for (row, term) in normal.iter_mut().zip(terms) {
            for (cell, other) in row.iter_mut().zip(terms) {
                *cell += term * other;
            }
            row[3] += term * volts;
        }
        squares += volts * volts;
    }
    let rights = normal.map(|row| row[3]);
    let [offset_v, a, b] = solve(normal)?;
    let explained = offset_v * rights[0] + a * rights[1] + b * rights[2];
    let residual = ((squares - explained) / samples.len() as f64).max(0.0);
    let (amplitude_v, residual_rms_v) = (a.hypot(b), residual.sqrt());
    Some(Sine { frequency_hz, amplitude_v, offset_v, residual_rms_v })
}

/// Gauss's elimination with the largest pivot.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for column in 0..3 {
        let pivot = (column..3)
            .max_by(|&one, &other| rows[one][column].abs().total_cmp(&rows[other][column].abs()))?;
        rows.swap(column, pivot);
        let top = rows[column];
        if top[column].abs() < 1e-12 {
            return None;
        }
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column {
                let factor = row[column] / top[column];
                row.iter_mut().zip(top).for_each(|(cell, above)| *cell -= factor * above);
            }
        }
    }
    Some([0, 1, 2].map(|index| rows[index][3] / rows[index][index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(
        count: usize,
        interval_s: impl Fn(usize) -> f64,
        volts: impl Fn(f64) -> f64,
    ) -> Vec<(f64, f64)> {
        let mut at_s = 0.25;
        (0..count)
            .map(|index| {
                at_s += interval_s(index);
                (at_s, volts(at_s))
            })
            .collect()
    }

    #[test]
    fn a_sine_is_found_in_uneven_samples_of_broken_turns() {
        let sine = |at_s: f64| 1.65 + 1.2 * (std::f64::consts::TAU * 123.4 * at_s + 0.7).sin();
        // Ten close together, then a pause.
        let uneven = |index: usize| if index.is_multiple_of(10) { 90e-6 } else { 8e-6 };
        let signal = of("0".into(), &sampled(5_000, uneven, sine)).expect("samples");
        let found = signal.sine.expect("turns");
        assert!((found.frequency_hz - 123.4).abs() < 1e-4, "{found:?}");
        assert!((found.amplitude_v - 1.2).abs() < 1e-6 && (found.offset_v - 1.65).abs() < 1e-6);
        assert!(found.residual_rms_v < 1e-6);
        assert!((signal.max_v - 2.85).abs() < 1e-3 && (signal.min_v - 0.45).abs() < 1e-3);
    }

    #[test]
    fn codes_of_ten_bits_still_give_it() {
        let step = 5.0 / 1024.0;
        let coded = |at_s: f64| {
            let volts: f64 = 2.5 + 2.0 * (std::f64::consts::TAU * 1_000.0 * at_s).sin();
            (volts / step).floor() * step
        };
        let signal = of("0".into(), &sampled(20_000, |_| 8.2e-6, coded)).expect("samples");
        let found = signal.sine.expect("turns");
        assert!((found.frequency_hz - 1_000.0).abs() < 0.01, "{found:?}");
        assert!((found.amplitude_v - 2.0).abs() < step, "{found:?}");
    }

    #[test]
    fn what_does_not_turn_has_no_frequency() {
        let constant = of("0".into(), &sampled(100, |_| 1e-3, |_| 1.5)).expect("samples");
        assert_eq!((constant.min_v, constant.max_v, constant.sine), (1.5, 1.5, None));
        let ramp = of("0".into(), &sampled(100, |_| 1e-3, |at_s| at_s)).expect("samples");
        assert_eq!(ramp.sine, None);
        assert!(of("0".into(), &[]).is_none());
        assert!(of("0".into(), &[(0.0, 1.0)]).expect("one sample").sine.is_none());
    }
}
