//! `barewire adc stream`: samples as fast as the wire allows or at a fixed rate, and reports where
//! the time went.
//!
//! On a simulated board all of it runs three times, at the costs used and at both ends of their ranges
//! ([`crate::shared::costs`]).

use std::fmt::Write as _;

use barewire::chip::mcp3008::Input;
use barewire_lab::Band;
use barewire_lab::ours::beside;
use barewire_sim::Parts;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::capture::{Capture, Plan};
use super::plot::{self, Live};
use super::published;
use super::signal::{self, Signal};
use super::{AdcArgs, Which, name};
use crate::shared::costs::{Headline, LowHigh, Ranges, low_and_high};
use crate::shared::failure::Failure;
use crate::shared::output;
use crate::shared::progress::Progress;
use crate::shared::session::{self, Figures, Session};
use crate::shared::text::figure::{self, Unit};
use crate::shared::text::number;

/// Conversions of a message: more than this gain nothing.
const BATCH_MAX: u64 = 10_000;
/// The most samples of a run, a number that easily fits into memory.
const SAMPLES_MAX: u64 = 100_000_000;
/// Samples that a signal is judged by.
const JUDGED: usize = 20_000;
/// Rows of a histogram of intervals that differ little.
const ROWS_MAX: u64 = 12;
/// An interval is kept with three digits. Intervals above an hour count as an hour.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 3_600_000_000_000;

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    adc: AdcArgs,
    /// Samples of every input, for each batch size; rounded up to whole batches
    #[arg(long, value_name = "N", default_value = "10000", value_parser = samples)]
    samples: usize,
    /// Samples of every input that make one message; several: one run each
    #[arg(long, value_name = "N[,N…]", value_delimiter = ',', default_value = "1", value_parser = batch)]
    batch: Vec<usize>,
    /// Hold this many samples of every input a second; batches then come at N times the period
    #[arg(long, value_name = "HZ", value_parser = number::hertz)]
    rate: Option<u32>,
    /// Print the samples of the last run as CSV: seconds, and volts of each input
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Plot the first input, live where stderr is a terminal
    #[arg(long)]
    plot: bool,
}

fn count(text: &str, max: u64) -> Result<usize, String> {
    match number::count::<u64>(text)? {
        0 => Err("at least 1".into()),
        count if count > max => Err(format!("at most {max}")),
        count => Ok(count as usize),
    }
}

fn samples(text: &str) -> Result<usize, String> {
    count(text, SAMPLES_MAX)
}

fn batch(text: &str) -> Result<usize, String> {
    count(text, BATCH_MAX)
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    inputs: Vec<String>,
    rate_hz: Option<u32>,
    ceiling: Ceiling,
    rows: Vec<Row>,
    signals: Vec<Signal>,
    interrupted: bool,
    #[serde(skip)]
    plot: Option<String>,
    #[serde(skip)]
    csv: bool,
}

/// The highest rate that the wire allows without any software: clocks, tSUCS and tCSH of every input.
#[derive(Clone, Copy, Serialize)]
struct Ceiling {
    /// The minimum counts the clocks for which the controller rests after the last byte; the
    /// maximum does not.
    samples_per_s_min: f64,
    samples_per_s_max: f64,
}

/// One run.
#[derive(Serialize)]
struct Row {
    batch: usize,
    samples: usize,
    samples_per_s: f64,
    conversions_per_s: f64,
    #[serde(flatten)]
    parts: Option<Times>,
    interval: Interval,
    missed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_stock_samples_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_patched_samples_per_s: Option<f64>,
    /// barewire's by the costs that the lab fitted to the kernel of these two.
    #[serde(skip_serializing_if = "Option::is_none")]
    lab_samples_per_s: Option<Band>,
    /// The figure that it stands beside.
    #[serde(skip)]
    beside: Option<&'static str>,
    #[serde(skip_serializing_if = "Ranges::is_empty")]
    ranges: Ranges,
}

impl Row {
    const HEADLINES: [Headline<Self>; 13] = [
        ("samples_per_s", |row| Some(row.samples_per_s)),
        ("conversions_per_s", |row| Some(row.conversions_per_s)),
        ("clocks_us", |row| Some(row.parts?.clocks_us)),
        ("lead_us", |row| Some(row.parts?.lead_us)),
        ("lag_us", |row| Some(row.parts?.lag_us)),
        ("gap_us", |row| Some(row.parts?.gap_us)),
        ("software_us", |row| Some(row.parts?.software_us)),
        ("sum_us", |row| Some(row.parts?.sum_us)),
        ("missed", |row| Some(row.missed as f64)),
        ("interval_min_ns", |row| Some(row.interval.min_ns as f64)),
        ("interval_p50_ns", |row| Some(row.interval.p50_ns as f64)),
        ("interval_p99_ns", |row| Some(row.interval.p99_ns as f64)),
        ("interval_max_ns", |row| Some(row.interval.max_ns as f64)),
    ];
}

/// Mean times of one conversion; they add up to the time from one to the next.
#[derive(Clone, Copy, Serialize)]
struct Times {
    clocks_us: f64,
    lead_us: f64,
    lag_us: f64,
    gap_us: f64,
    software_us: f64,
    sum_us: f64,
}

/// Times from one sample of an input to its next, in nanoseconds.
#[derive(Serialize)]
struct Interval {
    min_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    histogram: Vec<Bucket>,
}

#[derive(Serialize)]
struct Bucket {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let adc = &args.adc;
    let inputs = adc.inputs()?;
    adc.settings()?;
    let request = adc.request()?;
    session::run(&request, |session| {
        let used = || stream(args, &inputs, session, true);
        if adc.tell.costs.is_some() || session.open.board().is_none() {
            return used().map(Report::with_lab);
        }
        let other = |costs| {
            session::rerun(&request, costs, |session| {
                stream(&args.untold(), &inputs, session, false)
            })
        };
        let (report, ends) = low_and_high(other, used)?;
        Ok(report.ranged(&ends).with_lab())
    })
}

impl Args {
    /// The same arguments, without the options that print samples.
    fn untold(&self) -> Self {
        Self { csv: false, plot: false, ..self.clone() }
    }
}

/// Takes the samples. With `measured`, refuses a rate that a trial does not reach; without it,
/// turns that come too late are counted as missed.
fn stream(
    args: &Args,
    inputs: &[Input],
    session: &Session,
    measured: bool,
) -> Result<Report, Failure> {
    let adc = &args.adc;
    let (device, which) = adc.open(session)?;
    let plan =
        |batch| Plan { part: adc.chip, inputs, batch, samples: args.samples, rate_hz: args.rate };
    let total: usize = args.batch.iter().map(|&batch| args.samples.next_multiple_of(batch)).sum();
    let progress = Progress::counting("sampling", total as u64, session.silent || args.plot);
    let top_v = adc.volts(f64::from(adc.chip.code_max()));
    let mut live =
        Live::new(args.plot && !session.silent, inputs.len(), adc.chip.code_max(), top_v);
    let mut rows = Vec::new();
    let mut last = Capture::default();
    for &batch in &args.batch {
        let plan = plan(batch);
        plan.check_rate(session, &device, measured)?;
        last = plan.take(session, &device, &progress, |codes| live.show(codes))?;
        rows.push(Row::of(&plan, &last, &which)?);
        if last.interrupted {
            break;
        }
    }
    drop((live, progress));
    if args.csv {
        output::text(&csv(adc, inputs, &last))?;
    }
    let judged = |(index, &input): (usize, &Input)| {
        let volts = |(at_s, code)| (at_s, adc.volts(f64::from(code)));
        let samples: Vec<_> = last.of_input(index, inputs.len()).take(JUDGED).map(volts).collect();
        signal::of(name(input), &samples)
    };
    let clocks = |rest_clocks| {
        let bytes = adc.chip.exchange_bytes() as f64;
        let all = bytes * (8.0 + f64::from(device.effective().word_rest_clocks)) - rest_clocks;
        let times_ns = f64::from(adc.chip.cs_setup_ns + adc.chip.cs_inactive_ns);
        let conversion_s = all / f64::from(which.effective_speed_hz) + times_ns / 1e9;
        1.0 / conversion_s / inputs.len() as f64
    };
    let interval_ns = rows.last().map(|row| row.interval.mean_ns);
    let code_max = adc.chip.code_max();
    let plot =
        args.plot.then(|| plot::draw(&last.codes, inputs.len(), code_max, top_v, interval_ns));
    Ok(Report {
        ceiling: Ceiling {
            samples_per_s_min: clocks(0.0),
            samples_per_s_max: clocks(device.effective().word_rest_clocks.into()),
        },
        which,
        inputs: inputs.iter().map(|&input| name(input)).collect(),
        rate_hz: args.rate,
        rows,
        signals: inputs.iter().enumerate().filter_map(judged).collect(),
        interrupted: last.interrupted,
        plot,
        csv: args.csv,
    })
}

/// A header, and a line for each sample.
fn csv(adc: &AdcArgs, inputs: &[Input], capture: &Capture) -> String {
    let mut text = String::from("seconds");
    for &input in inputs {
        let _ = write!(text, ",volts_{}", name(input));
    }
    text.push('\n');
    let codes = capture.codes.chunks_exact(inputs.len());
    for (codes, at_ns) in codes.zip(capture.at_ns.iter().step_by(inputs.len())) {
        let _ = write!(text, "{:.9}", at_ns / 1e9);
        for &code in codes {
            let _ = write!(text, ",{:.6}", adc.volts(f64::from(code)));
        }
        text.push('\n');
    }
    text
}

impl Row {
    fn of(plan: &Plan<'_>, capture: &Capture, which: &Which) -> Result<Self, Failure> {
        let samples_per_s = capture.samples_per_s(plan);
        // His loop did not pause.
        let published = published::of(which, plan.inputs.len(), plan.batch);
        let published = published.filter(|_| plan.rate_hz.is_none());
        Ok(Self {
            batch: plan.batch,
            samples: capture.codes.len() / plan.inputs.len(),
            samples_per_s,
            conversions_per_s: samples_per_s * plan.inputs.len() as f64,
            parts: Parts::of(&capture.selections, plan.conversions()).map(Times::of),
            interval: Interval::of(plan, capture)?,
            missed: capture.missed,
            published_stock_samples_per_s: published.map(|row| row.stock),
            published_patched_samples_per_s: published.map(|row| row.patched),
            lab_samples_per_s: None,
            beside: published.filter(|_| which.place.simulated).map(|row| row.id),
            ranges: Ranges::default(),
        })
    }
}

impl Times {
    fn of(parts: Parts) -> Self {
        let Parts { clocks_us, lead_us, lag_us, gap_us, software_us } = parts;
        Self { clocks_us, lead_us, lag_us, gap_us, software_us, sum_us: parts.sum_us() }
    }
}

impl Interval {
    fn of(plan: &Plan<'_>, capture: &Capture) -> Result<Self, Failure> {
        let failed = |error| Failure::Failed(format!("no histogram of intervals: {error}"));
        let mut histogram =
            Histogram::<u64>::new_with_bounds(1, LONGEST_NS, DIGITS).map_err(failed)?;
        let first: Vec<f64> = capture.at_ns.iter().copied().step_by(plan.inputs.len()).collect();
        for pair in first.windows(2) {
            histogram.saturating_record((pair[1] - pair[0]).round() as u64);
        }
        let span_ns = first.last().unwrap_or(&0.0) - first.first().unwrap_or(&0.0);
        Ok(Self {
            min_ns: histogram.min(),
            p50_ns: histogram.value_at_quantile(0.5),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
            mean_ns: span_ns / (first.len().max(2) - 1) as f64,
            histogram: Bucket::all(&histogram),
        })
    }
}

impl Bucket {
    /// Rows of equal width from the shortest interval to the longest, so that late samples stand apart.
    /// Where the longest is many times the shortest, each row is a tenth wider than the one before.
    fn all(histogram: &Histogram<u64>) -> Vec<Self> {
        let (min_ns, max_ns) = (histogram.min(), histogram.max());
        let width_ns = (max_ns - min_ns + 1).div_ceil(ROWS_MAX);
        let mut buckets: Vec<Self> = Vec::new();
        for step in histogram.iter_recorded() {
            let (value_ns, count) = (step.value_iterated_to(), step.count_at_value());
            if let Some(last) = buckets.last_mut().filter(|last| value_ns <= last.to_ns) {
                last.count += count;
                continue;
            }
            let (from_ns, to_ns) = if max_ns / 4 < min_ns.max(1) {
                let from_ns = min_ns + value_ns.saturating_sub(min_ns) / width_ns * width_ns;
                (from_ns, from_ns + width_ns - 1)
            } else {
                (value_ns, value_ns + value_ns / 10)
            };
            buckets.push(Self { from_ns, to_ns, count });
        }
        buckets
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        if self.csv {
            return String::new();
        }
        let mut text = self.heading();
        if let Some(plot) = &self.plot {
            text += plot;
        }
        text += &self.rates();
        text += &self.parts();
        self.rows.iter().for_each(|row| text += &row.sums(self.inputs.len()));
        text += &self.intervals();
        self.signals.iter().for_each(|signal| text += &signal_line(signal));
        text
    }

    fn verdict(&self) -> Result<(), Failure> {
        let missed: u64 = self.rows.iter().map(|row| row.missed).sum();
        if self.interrupted {
            return Err(Failure::Interrupted("stopped as asked".into()));
        }
        if missed > 0 {
            let rate = self.rate_hz.unwrap_or_default();
            return Err(Failure::Failed(format!(
                "the rate of {rate} a second was not held: {missed} turns were missed (the machine \
                 had other things to do: a real-time priority, a lower --rate or a larger --batch)"
            )));
        }
        Ok(())
    }
}

impl Report {
    fn heading(&self) -> String {
        let Which { place, chip, effective_speed_hz, .. } = &self.which;
        let Ceiling { samples_per_s_min, samples_per_s_max } = self.ceiling;
        let kind = place.kind();
        let mut text = format!(
            "{chip} on {}{kind}, {}, input {}\n",
            place.bus,
            figure::clock(u64::from(*effective_speed_hz)),
            self.inputs.join(", ")
        );
        let [min, max] = [samples_per_s_min, samples_per_s_max].map(|rate| rate as u64);
        let range = match min == max {
            true => figure::grouped(min),
            false => format!("{} to {}", figure::grouped(min), figure::grouped(max)),
        };
        let _ = writeln!(text, "ceiling by clocks, tSUCS and tCSH alone: {range} samples/s");
        text
    }

    /// Adds the rows' figures at low and high costs; unchanged if one of the three was
    /// interrupted, whose samples are others.
    fn ranged(self, ends: &LowHigh<Self>) -> Self {
        let LowHigh { low, high } = ends;
        if self.interrupted || low.interrupted || high.interrupted {
            return self;
        }
        let ends = low.rows.iter().zip(&high.rows);
        let ranged = |(row, (low, high)): (Row, (&Row, &Row))| {
            let ranges = Ranges::of(&row, low, high, &Row::HEADLINES);
            Row { ranges, ..row }
        };
        Self { rows: self.rows.into_iter().zip(ends).map(ranged).collect(), ..self }
    }

    /// The same with barewire's figures of the lab, which has costs of its own: once, whatever the costs of the runs.
    fn with_lab(mut self) -> Self {
        let ids: Vec<&str> = self.rows.iter().filter_map(|row| row.beside).collect();
        let beside = if ids.is_empty() { Vec::new() } else { beside(&ids) };
        for row in &mut self.rows {
            let found = beside.iter().find(|one| Some(one.id) == row.beside);
            row.lab_samples_per_s = found.map(|one| one.barewire);
        }
        self
    }

    /// Samples a second, and those that were published.
    fn rates(&self) -> String {
        let published = self.rows.iter().any(|row| row.published_stock_samples_per_s.is_some());
        let mut text = format!("\nbatch  {:<28}", "samples/s");
        let lab = self.rows.iter().any(|row| row.lab_samples_per_s.is_some());
        if published {
            text += "| spidev, published: as was, patched";
        }
        text += if lab { " | barewire by the lab's costs\n" } else { "\n" };
        for row in &self.rows {
            let grouped = |rate: f64| figure::grouped(rate.round() as u64);
            let rate = row.ranges.text("samples_per_s", row.samples_per_s, grouped);
            let _ = write!(text, "{:>5}  {rate:<28}", row.batch);
            if let (Some(stock), Some(patched)) =
                (row.published_stock_samples_per_s, row.published_patched_samples_per_s)
            {
                let grouped = |rate: f64| figure::grouped(rate.round() as u64);
                let theirs = format!("{}, {}", grouped(stock), grouped(patched));
                let _ = write!(text, "| {theirs:<34}");
                if let Some(Band { used, low, high }) = row.lab_samples_per_s {
                    let [used, low, high] = [used, low, high].map(grouped);
                    let _ = write!(text, "| {used} ({low}–{high})");
                }
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }

    /// The parts of one conversion's time, where they are known.
    fn parts(&self) -> String {
        const NAMES: [&str; 5] = ["clocks", "lead", "lag", "gap", "software"];
        if self.rows.iter().all(|row| row.parts.is_none()) {
            return "\n".into();
        }
        let mut lines =
            vec![format!("\nbatch  {}", NAMES.map(|name| format!("{name:<21}")).concat())];
        for row in &self.rows {
            let Some(Times { clocks_us, lead_us, lag_us, gap_us, software_us, .. }) = row.parts
            else {
                continue;
            };
            let cells = [
                ("clocks_us", clocks_us),
                ("lead_us", lead_us),
                ("lag_us", lag_us),
                ("gap_us", gap_us),
                ("software_us", software_us),
            ]
            .map(|(name, us)| row.ranges.text(name, us, |us| format!("{us:.3}")));
            let cells = cells.map(|cell| format!("{cell:<21}")).concat();
            lines.push(format!("{:>5}  {}", row.batch, cells.trim_end()));
        }
        lines[0] = format!("{}us", lines[0]);
        lines.join("\n") + "\n\n"
    }

    fn intervals(&self) -> String {
        let mut text = String::new();
        for Row { batch, interval, missed, ranges, .. } in &self.rows {
            let Interval { min_ns, p50_ns, p99_ns, max_ns, histogram, .. } = interval;
            let [min, p50, p99, max] = [
                ("interval_min_ns", min_ns),
                ("interval_p50_ns", p50_ns),
                ("interval_p99_ns", p99_ns),
                ("interval_max_ns", max_ns),
            ]
            .map(|(name, &ns)| {
                let unit = Unit::of_time(ns as f64);
                format!("{} {}", ranges.text(name, ns as f64, |ns| unit.number(ns)), unit.name)
            });
            let missed = ranges.text("missed", *missed as f64, |missed| format!("{missed}"));
            let _ = writeln!(
                text,
                "interval at batch {batch}: min {min}, p50 {p50}, p99 {p99}, max {max}, {missed} missed"
            );
            for Bucket { from_ns, to_ns, count } in histogram {
                let [from, to] = figure::times_apart([from_ns, to_ns].map(|&ns| ns as f64));
                let count = figure::grouped(*count);
                let _ = writeln!(text, "  {from:>9} to {to:>9} {count:>12}");
            }
        }
        text
    }
}

impl Row {
    /// Our sum in the article's form, beside the article's own sum.
    fn sums(&self, inputs: usize) -> String {
        let Some(Times { clocks_us, lead_us, lag_us, gap_us, software_us, .. }) = self.parts else {
            return String::new();
        };
        let count = self.batch * inputs;
        let gap_us = gap_us * count as f64 / (count.max(2) - 1) as f64;
        let one_us = clocks_us + lead_us + lag_us;
        let ends = self.ranges.ends("sum_us", |us| format!("{us:.2}"));
        let ours = sum(count, one_us, gap_us, software_us * count as f64, ends);
        let beside = self.published_patched_samples_per_s.map(|_| {
            let theirs =
                sum(count, published::TRANSFER_US, published::GAP_US, published::CALL_US, None);
            format!("  published, the delay removed: {theirs}")
        });
        ours + &beside.unwrap_or_default()
    }
}

/// `count` transfers of `one_us` with `gap_us` between them, and `call_us` until the next message;
/// `ends`: the range of the time that one takes.
fn sum(count: usize, one_us: f64, gap_us: f64, call_us: f64, ends: Option<String>) -> String {
    let ends = ends.map_or(String::new(), |ends| format!(" ({ends})"));
    if count == 1 {
        let all_us = one_us + call_us;
        return format!("1 transfer = {one_us:.2} + {call_us:.2} = {all_us:.2}{ends} us\n");
    }
    let spaced_us = one_us + gap_us;
    let all_us = spaced_us * (count - 1) as f64 + one_us + call_us;
    format!(
        "{count} transfers = ({spaced_us:.2} * {}) + {one_us:.2} + {call_us:.2} = {all_us:.1} us = {:.2}{ends} us per transfer\n",
        count - 1,
        all_us / count as f64,
    )
}

fn signal_line(signal: &Signal) -> String {
    let Signal { input, min_v, max_v, mean_v, sine, .. } = signal;
    let mut text = format!("input {input}: {min_v:.3} to {max_v:.3} V, mean {mean_v:.3} V");
    if let Some(sine) = sine {
        let _ = write!(
            text,
            ", sine of {:.3} Hz, amplitude {:.3} V (rest {:.1} mV rms)",
            sine.frequency_hz,
            sine.amplitude_v,
            sine.residual_rms_v * 1e3
        );
    }
    text.push('\n');
    text
}
