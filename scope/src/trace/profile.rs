//! Messages in, a board's profile out: medians, and how far single messages are from them.

use serde::Serialize;

use super::messages::{Message, Phase};

/// A phase over all messages of a shape.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseTime {
    /// Its name: `start to CS on`.
    pub phase: String,
    /// The median.
    pub median_us: f64,
    /// A quarter of the messages are below.
    pub q1_us: f64,
    /// A quarter of the messages are above.
    pub q3_us: f64,
}

/// Messages of one device with the same transfers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// The device.
    pub device: String,
    /// The lengths of the transfers in bytes.
    pub transfers: Vec<u64>,
    /// How many messages.
    pub messages: usize,
    /// Their phases, in order.
    pub phases: Vec<PhaseTime>,
    /// From submission to end.
    pub whole: PhaseTime,
    /// From the end to the next submission; none if that never happened.
    pub done_to_submit: Option<PhaseTime>,
    /// The sum of the phases' medians: what the profile says a message takes.
    pub profile_us: f64,
    /// The median of |a message's time - that|.
    pub residual_us: f64,
}

/// Time of a transfer as a line over its length, by least squares through the medians of each length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferCost {
    /// The time of a transfer of no bytes.
    pub fixed_us: f64,
    /// The time of each byte.
    pub us_per_byte: f64,
    /// For each length in bytes: the median, and how far the line is from it.
    pub residuals_us: Vec<(u64, f64, f64)>,
}

/// A board's properties, as found in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// By shape, the most frequent first.
    pub shapes: Vec<Shape>,
    /// Over all transfers; none if there are not two lengths.
    pub transfer: Option<TransferCost>,
}

impl Profile {
    /// The profile of these messages.
    #[must_use]
    pub fn of(messages: &[Message]) -> Self {
        let mut groups: Vec<Vec<Phased<'_>>> = Vec::new();
        for message in messages {
            let phased = Phased { message, phases: message.phases() };
            match groups.iter_mut().find(|group| group[0].is_like(&phased)) {
                Some(group) => group.push(phased),
                None => groups.push(vec![phased]),
            }
        }
        // Stable: among equals the first in the trace is first.
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        Self {
            shapes: groups.iter().map(|group| Shape::of(group)).collect(),
            transfer: TransferCost::of(messages),
        }
    }
}

/// A message with its phases.
struct Phased<'m> {
    message: &'m Message,
    phases: Vec<Phase>,
}

impl Phased<'_> {
    fn is_like(&self, other: &Self) -> bool {
        self.message.device == other.message.device
            && self.phases.len() == other.phases.len()
            && self.phases.iter().zip(&other.phases).all(|(one, other)| one.name == other.name)
    }
}

impl Shape {
    fn of(group: &[Phased<'_>]) -> Self {
        let first = &group[0];
        let of_each = |us: &dyn Fn(&Phased<'_>) -> f64| group.iter().map(us).collect::<Vec<_>>();
        let phases: Vec<PhaseTime> = (0..)
            .zip(&first.phases)
            .map(|(nth, phase)| PhaseTime::of(&phase.name, of_each(&|one| one.phases[nth].us)))
            .collect();
        let gap = |one: &Phased<'_>| Some(one.message.next_submit_ns? - one.message.done_ns());
        let gaps: Vec<f64> = group.iter().filter_map(gap).map(|ns| ns as f64 / 1e3).collect();
        let profile_us: f64 = phases.iter().map(|phase| phase.median_us).sum();
        let residuals = of_each(&|one| (one.message.us() - profile_us).abs());
        Self {
            device: first.message.device.clone(),
            transfers: first.message.lengths().collect(),
            messages: group.len(),
            phases,
            whole: PhaseTime::of("submit to done", of_each(&|one| one.message.us())),
            done_to_submit: (!gaps.is_empty()).then(|| PhaseTime::of("done to next submit", gaps)),
            profile_us,
            residual_us: quantile(&sorted(residuals), 0.5),
        }
    }
}

impl PhaseTime {
    fn of(phase: &str, times: Vec<f64>) -> Self {
        let times = sorted(times);
        Self {
            phase: phase.into(),
            median_us: quantile(&times, 0.5),
            q1_us: quantile(&times, 0.25),
            q3_us: quantile(&times, 0.75),
        }
    }
}

impl TransferCost {
    fn of(messages: &[Message]) -> Option<Self> {
        let mut by_len: std::collections::BTreeMap<u64, Vec<f64>> =
            std::collections::BTreeMap::new();
        for transfer in messages.iter().flat_map(|message| &message.transfers) {
            by_len.entry(transfer.len).or_default().push(transfer.us());
        }
        let points: Vec<(u64, f64)> =
            by_len.into_iter().map(|(len, times)| (len, quantile(&sorted(times), 0.5))).collect();
        if points.len() < 2 {
            return None;
        }
        let count = points.len() as f64;
        let mean_len = points.iter().map(|point| point.0 as f64).sum::<f64>() / count;
        let mean_us = points.iter().map(|point| point.1).sum::<f64>() / count;
        let along = |of: fn(f64, f64) -> f64| -> f64 {
            points.iter().map(|point| of(point.0 as f64 - mean_len, point.1 - mean_us)).sum()
        };
        let us_per_byte = along(|len, us| len * us) / along(|len, _| len * len);
        let fixed_us = mean_us - us_per_byte * mean_len;
        let residual =
            |(len, us): (u64, f64)| (len, us, us - (fixed_us + us_per_byte * len as f64));
        Some(Self {
            fixed_us,
            us_per_byte,
            residuals_us: points.into_iter().map(residual).collect(),
        })
    }
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

/// The quantile at that share of sorted values, interpolated between the two nearest; 0 without
/// values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = share * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}
