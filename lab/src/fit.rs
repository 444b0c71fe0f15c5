//! Costs moved to the fit set: within their ranges, as little as the figures allow.
//!
//! *Read first*: `lab/scoring.toml`, the fit set; [`crate::cost`].
//!
//! # How it works
//! Each assumed cost has a range, taken as the middle 90 % of a log-normal distribution around its value. Each figure
//! of the fit set is taken to be right within 2 %. The fit is the most probable set of costs: found by Gauss-Newton
//! steps on the logarithms. Slopes come from running each figure again with one cost slightly higher. A cost's range
//! after the fit is the middle 90 % of its fitted distribution, and never exceeds the assumed range.
//!
//! Bands are made of whole sets of costs. Each set is the same fit to figures and assumed costs that were moved at random
//! by as much as they may be off, so that costs which a figure determines only together stay correlated.

use std::collections::{BTreeMap, BTreeSet};

use barewire_sim::random::SplitMix64;
use serde::Serialize;

use crate::cost::{Cost, Costs, FittedValue};
use crate::error::LabError;
use crate::experiment::{Experiment, Question};
use crate::replay::Runner;

/// How far a figure of the fit set is taken to be off, as a logarithm.
const FIGURE_SIGMA: f64 = 0.02;
/// Half of the middle 90 % of a normal distribution, in standard deviations.
const HALF_90: f64 = 1.645;
/// Steps at most; the fits here need about six.
const STEPS: usize = 12;
/// The step by which a cost is raised to find its effect, as a logarithm.
const PROBE: f64 = 0.02;
/// A step that lessens the sum by less than this part ends the fit.
const ENOUGH: f64 = 1e-3;
/// Sets of costs drawn for bands. With the costs used, that makes seventeen runs: the range from their smallest to
/// their largest result contains a further result with probability 15/17.
const DRAWS: usize = 16;
/// Fits to shuffled figures.
const SHUFFLES: usize = 6;
/// Sets of costs drawn at random, without any fit.
const RANDOM: usize = 40;
/// How often a step is halved.
const HALVINGS: i32 = 6;

/// A cost before and after the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedCost {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// As assumed.
    pub prior: f64,
    /// The low end assumed.
    pub prior_low: f64,
    /// The high end assumed.
    pub prior_high: f64,
    /// As fitted.
    pub value: f64,
    /// The low end left.
    pub low: f64,
    /// The high end left.
    pub high: f64,
}

/// A figure of the fit set after the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Residual {
    /// Its id.
    pub id: String,
    /// As published, or as given.
    pub published: f64,
    /// As replayed.
    pub replayed: f64,
    /// (replayed - published) / published.
    pub error: f64,
}

/// A fit, with measures of its worth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// The costs that could move.
    pub costs: Vec<FittedCost>,
    /// The fit set.
    pub residuals: Vec<Residual>,
    /// Sets of costs that the fit set leaves as probable, by name.
    pub draws: Vec<BTreeMap<String, f64>>,
    /// The score of the costs as assumed, without any fit, on all predicted effects but a user's own figures.
    pub unfitted: Option<f64>,
    /// For each thread, the score on its effects if the fit leaves the thread out.
    pub leave_one_out: Vec<(String, f64)>,
    /// Figures of other boards by costs that were fitted to one board's.
    pub across_boards: Vec<Residual>,
    /// The scores, on all predicted effects, of fits to shuffled figures.
    pub shuffled: Vec<f64>,
    /// The scores on all predicted effects of costs drawn at random from their assumed ranges.
    pub random: Vec<f64>,
    /// Each thread's figures by the fit that leaves the thread out, by id.
    pub left_out: Vec<(String, f64)>,
    /// How far bands are moved out for four of five of these figures to be in them; a factor.
    pub bands_widened: f64,
}

/// How much of a fit's validation is repeated. Each takes as long as the fit itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Sets of costs that bands run.
    pub draws: usize,
    /// Fits to shuffled figures.
    pub shuffles: usize,
    /// Sets of costs drawn at random, without any fit.
    pub random: usize,
}

impl Extent {
    /// All that `fitted.toml` has.
    pub const WHOLE: Self = Self { draws: DRAWS, shuffles: SHUFFLES, random: RANDOM };
}

/// A figure to fit to.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// Its experiment.
    pub experiment: &'a Experiment,
    /// How the experiment answers it.
    pub asked: &'a Question,
    /// The value to reach.
    pub value: f64,
}

/// A cost that may move, and the standard deviation of its logarithm.
struct Free<'a> {
    cost: &'a Cost,
    low: f64,
    high: f64,
    sigma: f64,
}

impl Free<'_> {
    /// Its value `x` standard deviations from the assumed one, or the end of its range.
    fn at(&self, x: f64) -> f64 {
        (self.cost.value * (x * self.sigma).exp()).clamp(self.low, self.high)
    }

    /// `x`, or where the range ends.
    fn within(&self, x: f64) -> f64 {
        (self.at(x) / self.cost.value).ln() / self.sigma
    }
}

/// Moves `costs` to `targets`.
///
/// # Errors
/// If a target cannot be replayed.
pub fn fit(
    costs: &Costs,
    targets: &[Target<'_>],
) -> Result<(Vec<FittedCost>, Vec<Residual>), LabError> {
    let free = free(costs);
    let used = used(costs, targets)?;
    let (x, slopes) = most_probable(costs, &free, targets, &used, &vec![0.0; free.len()])?;
    let left = deviations(&slopes, free.len());
    let fitted = free.iter().enumerate().map(|(place, free)| {
        let (value, half) = (free.at(x[place]), HALF_90 * left[place] * free.sigma);
        FittedCost {
            name: free.cost.name.clone(),
            unit: free.cost.unit.clone(),
            prior: free.cost.value,
            prior_low: free.low,
            prior_high: free.high,
            value,
            low: (value * (-half).exp()).max(free.low),
            high: (value * half.exp()).min(free.high),
        }
    });
    Ok((fitted.collect(), residuals(&moved_to(costs, &free, &x), targets)?))
}

/// The differences of `targets` replayed at `costs`.
pub(crate) fn residuals(costs: &Costs, targets: &[Target<'_>]) -> Result<Vec<Residual>, LabError> {
    let residuals = targets.iter().zip(replay_all(costs, targets)?);
    let residual = |(target, replayed): (&Target<'_>, f64)| Residual {
        id: target.asked.id.clone(),
        published: target.value,
        replayed,
        error: (replayed - target.value) / target.value,
    };
    Ok(residuals.map(residual).collect())
}

/// The costs that may move.
fn free(costs: &Costs) -> Vec<Free<'_>> {
    let free = costs.iter().filter_map(|cost| {
        let (low, high) = (cost.low?, cost.high?);
        (low < high).then(|| Free { cost, low, high, sigma: (high / low).ln() / (2.0 * HALF_90) })
    });
    free.collect()
}

/// The costs that each target asks for.
fn used(costs: &Costs, targets: &[Target<'_>]) -> Result<Vec<BTreeSet<String>>, LabError> {
    let used = |target: &Target<'_>| {
        let runner = Runner::new(costs);
        runner.take(target.experiment, target.asked)?;
        Ok(runner.used())
    };
    targets.iter().map(used).collect()
}

fn moved_to(costs: &Costs, free: &[Free<'_>], x: &[f64]) -> Costs {
    let mut costs = costs.clone();
    for (free, &x) in free.iter().zip(x) {
        costs.set(&free.cost.name, free.at(x));
    }
    costs
}

/// Draws that many sets of costs from the fit's distribution. Each set is a fit to figures and
/// assumed costs that were moved at random within their uncertainty.
///
/// # Errors
/// As [`fit`].
pub fn draws(
    costs: &Costs,
    targets: &[Target<'_>],
    count: usize,
) -> Result<Vec<BTreeMap<String, f64>>, LabError> {
    let free = free(costs);
    let used = used(costs, targets)?;
    let mut random = SplitMix64::new(1);
    let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let mut normal =
        move || (-2.0 * (1.0 - uniform()).ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let centre: Vec<f64> = free.iter().map(|_| normal()).collect();
        let mut targets = targets.to_vec();
        for target in &mut targets {
            target.value *= (FIGURE_SIGMA * normal()).exp();
        }
        let (x, _) = most_probable(costs, &free, &targets, &used, &centre)?;
        let value = |(free, x): (&Free<'_>, f64)| (free.cost.name.clone(), rounded(free.at(x)));
        all.push(free.iter().zip(x).map(value).collect());
    }
    Ok(all)
}

/// That many sets of costs, each cost drawn evenly over the logarithms of its assumed range.
#[must_use]
pub fn random(costs: &Costs, count: usize) -> Vec<Costs> {
    let mut random = SplitMix64::new(2);
    let mut draw = || {
        let mut drawn = costs.fresh();
        for Free { cost, low, high, .. } in free(costs) {
            let part = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            drawn.set(&cost.name, low * (high / low).powf(part));
        }
        drawn
    };
    (0..count).map(|_| draw()).collect()
}

/// Returns the most probable costs, in standard deviations from the assumed ones, with `centre` as the middle of the
/// assumed distribution. Also returns the slopes there: the change of each target, in its standard deviations, for
/// one standard deviation of each cost.
fn most_probable(
    costs: &Costs,
    free: &[Free<'_>],
    targets: &[Target<'_>],
    used: &[BTreeSet<String>],
    centre: &[f64],
) -> Result<(Vec<f64>, Vec<Vec<f64>>), LabError> {
    let n = free.len();
    let mut x: Vec<f64> = free.iter().zip(centre).map(|(free, &x)| free.within(x)).collect();
    let mut slopes = vec![vec![0.0; n]; targets.len()];
    let mut now = moved_to(costs, free, &x);
    let mut values = replay_all(&now, targets)?;
    for _ in 0..STEPS {
        let least = objective(&values, targets, &x, centre);
        for (place, free) in free.iter().enumerate() {
            let name = &free.cost.name;
            let users: Vec<usize> =
                (0..targets.len()).filter(|&at| used[at].contains(name)).collect();
            let mut probe = now.clone();
            probe.set(name, now.get(name) * PROBE.exp());
            let some: Vec<Target<'_>> = users.iter().map(|&at| targets[at].clone()).collect();
            for (&at, probed) in users.iter().zip(replay_all(&probe, &some)?) {
                slopes[at][place] = (probed / values[at]).ln() / PROBE * free.sigma / FIGURE_SIGMA;
            }
        }
        // The normal equations of: slopes dx = residual, and x + dx = centre, both in standard deviations.
        let mut right: Vec<f64> = centre.iter().zip(&x).map(|(centre, x)| centre - x).collect();
        for (slope, (target, value)) in slopes.iter().zip(targets.iter().zip(&values)) {
            let residual = (target.value / value).ln() / FIGURE_SIGMA;
            for (right, slope) in right.iter_mut().zip(slope) {
                *right += slope * residual;
            }
        }
        let dx = solve(normal_matrix(&slopes, n), right);
        // The slopes are valid only for small steps, and polling makes figures jump. So a step that does not reduce
        // the sum is halved.
        let halved = |part: f64| {
            let next = x
                .iter()
                .zip(&dx)
                .zip(free)
                .map(|((x, dx), free)| free.within(x + part * dx.clamp(-HALF_90, HALF_90)));
            next.collect::<Vec<f64>>()
        };
        let mut lessened = false;
        for halving in 0..HALVINGS {
            let next = halved(0.5_f64.powi(halving));
            let there = moved_to(costs, free, &next);
            let reached = replay_all(&there, targets)?;
            lessened = objective(&reached, targets, &next, centre) < least * (1.0 - ENOUGH);
            if lessened {
                (x, now, values) = (next, there, reached);
                break;
            }
        }
        if !lessened {
            break;
        }
    }
    Ok((x, slopes))
}

/// The costs of a fit, as `fitted.toml` has them: those about which the fit set says anything.
#[must_use]
pub fn moved(costs: &[FittedCost]) -> Vec<FittedValue> {
    let told = |cost: &&FittedCost| {
        let narrower = (cost.high / cost.low).ln() < 0.98 * (cost.prior_high / cost.prior_low).ln();
        narrower || (cost.value / cost.prior).ln().abs() > 0.02
    };
    costs
        .iter()
        .filter(told)
        .map(|cost| FittedValue {
            name: cost.name.clone(),
            value: rounded(cost.value),
            low: rounded(cost.low).min(rounded(cost.value)).max(cost.prior_low),
            high: rounded(cost.high).max(rounded(cost.value)).min(cost.prior_high),
        })
        .collect()
}

/// Four digits: no figure of the fit set has more.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// All targets with `costs`.
fn replay_all(costs: &Costs, targets: &[Target<'_>]) -> Result<Vec<f64>, LabError> {
    let runner = Runner::new(costs);
    let value =
        |target: &Target<'_>| Ok(runner.take(target.experiment, target.asked)?.value.max(1e-9));
    targets.iter().map(value).collect()
}

/// The function that the fit minimises: the sum of squared errors of figures and costs, in their standard deviations.
fn objective(values: &[f64], targets: &[Target<'_>], x: &[f64], centre: &[f64]) -> f64 {
    let figures = values
        .iter()
        .zip(targets)
        .map(|(value, target)| (target.value / value).ln() / FIGURE_SIGMA);
    figures.chain(x.iter().zip(centre).map(|(x, centre)| x - centre)).map(|off| off * off).sum()
}

/// 1 plus the slopes' products.
fn normal_matrix(slopes: &[Vec<f64>], n: usize) -> Vec<Vec<f64>> {
    let product = |i: usize, j: usize| slopes.iter().map(|slope| slope[i] * slope[j]).sum::<f64>();
    (0..n).map(|i| (0..n).map(|j| product(i, j) + f64::from(u8::from(i == j))).collect()).collect()
}

/// Solves by Cholesky's decomposition; the matrix is symmetric and its diagonal at least 1.
fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    factor(&mut matrix);
    let n = right.len();
    for i in 0..n {
        let sum: f64 = (0..i).map(|k| matrix[i][k] * right[k]).sum();
        right[i] = (right[i] - sum) / matrix[i][i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|k| matrix[k][i] * right[k]).sum();
        right[i] = (right[i] - sum) / matrix[i][i];
    }
    right
}

fn factor(matrix: &mut [Vec<f64>]) {
    for i in 0..matrix.len() {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let value = matrix[i][j] - sum;
            matrix[i][j] = if i == j { value.max(1e-12).sqrt() } else { value / matrix[j][j] };
        }
    }
}

/// The standard deviation of each cost after the fit, as a part of that before it.
fn deviations(slopes: &[Vec<f64>], n: usize) -> Vec<f64> {
    let matrix = normal_matrix(slopes, n);
    let unit = |place: usize| (0..n).map(|at| f64::from(u8::from(at == place))).collect::<Vec<_>>();
    (0..n).map(|place| solve(matrix.clone(), unit(place))[place].max(0.0).sqrt()).collect()
}

/// The targets with their values exchanged among them at random, seeded by `seed`. Each value is
/// first converted to the microseconds of one operation.
#[must_use]
pub fn shuffled<'a>(
    targets: &[Target<'a>],
    units: &BTreeMap<String, String>,
    seed: u64,
) -> Vec<Target<'a>> {
    let mut random = SplitMix64::new(seed);
    let mut dealt = targets.to_vec();
    // A figure of many in seconds or milliseconds is many of some microseconds.
    let many = |target: &Target<'_>| {
        let unit = units.get(&target.asked.id).map_or(1.0, |unit| match unit.as_str() {
            "s" => 1e-6,
            "ms" => 1e-3,
            _ => 1.0,
        });
        unit * target.asked.scale.unwrap_or(1.0)
    };
    for place in (1..dealt.len()).rev() {
        let other = (random.next_u64() % (place as u64 + 1)) as usize;
        let (a, b) =
            (dealt[place].value / many(&dealt[place]), dealt[other].value / many(&dealt[other]));
        dealt[place].value = b * many(&dealt[place]);
        dealt[other].value = a * many(&dealt[other]);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let x = solve(
            vec![vec![4.0, 1.0, 0.5], vec![1.0, 3.0, 0.25], vec![0.5, 0.25, 2.0]],
            vec![6.0, 5.5, 4.5],
        );
        let back = [
            4.0 * x[0] + x[1] + 0.5 * x[2],
            x[0] + 3.0 * x[1] + 0.25 * x[2],
            0.5 * x[0] + 0.25 * x[1] + 2.0 * x[2],
        ];
        for (back, right) in back.into_iter().zip([6.0, 5.5, 4.5]) {
            assert!((back - right).abs() < 1e-9, "{back} {right}");
        }
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(
            [rounded(1_234_567.0), rounded(0.012_345_6), rounded(6.0)],
            [1_235_000.0, 0.012_35, 6.0]
        );
    }

    #[test]
    fn a_figure_says_the_more_of_a_cost_the_more_it_depends_on_it() {
        let left = deviations(&[vec![3.0, 0.0, 0.5]], 3);
        assert!(left[0] < 0.5 && left[1] == 1.0 && left[0] < left[2] && left[2] < 1.0, "{left:?}");
    }
}
