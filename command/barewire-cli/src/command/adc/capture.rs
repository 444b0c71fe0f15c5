//! Taking samples: one prepared message for a batch of conversions, run again and again.
//!
//! # How it works
//! 1. A batch is one message, its conversions separated by `cs_change`, prepared once. The bytes
//!    sent never change, so a run costs the bus path and the wire.
//! 2. At a fixed rate each batch starts at its time on a fixed grid. Without a rate it follows the
//!    previous batch at once.
//! 3. On a simulated board the time of a sample is known to the picosecond, from the chip select's
//!    edge. Elsewhere a clock is read before and after each batch, and its conversions
//!    are spread evenly over the time between.

use barewire::bus::Device;
use barewire::chip::mcp3008::{AdcError, Command, Input, Part};
use barewire::controller::Controller;
use barewire::spi::Transfer;
use barewire::time::Pacer;
use barewire_sim::Selection;

use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::progress::Progress;
use crate::shared::session::Session;

/// Instructions of a simulated process for each conversion, besides the bus path. Assumption:
/// some loads, a shift, a test, a store and the loop; to be replaced by a count.
const INSTRUCTIONS_PER_CONVERSION: u64 = 20;

/// The samples to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<'p> {
    pub(super) part: &'static Part,
    pub(super) inputs: &'p [Input],
    /// Samples of every input a message.
    pub(super) batch: usize,
    /// Samples of every input.
    pub(super) samples: usize,
    /// Samples of every input a second, if the rate is held.
    pub(super) rate_hz: Option<u32>,
}

/// The samples taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Capture {
    /// Codes in the order of conversion: the inputs in turn.
    pub(super) codes: Vec<u16>,
    /// When each was taken, in nanoseconds from the first.
    pub(super) at_ns: Vec<f64>,
    /// From the beginning of the first batch to the end of the last, in nanoseconds.
    pub(super) elapsed_ns: f64,
    /// Turns that did not take place.
    pub(super) missed: u64,
    /// The chip's selections, where they are known.
    pub(super) selections: Vec<Selection>,
    /// Ctrl-C came first.
    pub(super) interrupted: bool,
}

impl Plan<'_> {
    /// Conversions of a message.
    pub(super) fn conversions(&self) -> usize {
        self.batch * self.inputs.len()
    }

    fn commands(&self) -> Result<Vec<Command>, AdcError> {
        self.inputs.iter().map(|&input| self.part.command(input)).collect()
    }

    /// Takes the samples; `watch` is shown the codes after each batch.
    pub(super) fn take(
        &self,
        session: &Session,
        device: &Device<'_, dyn Controller + '_>,
        progress: &Progress,
        mut watch: impl FnMut(&[u16]),
    ) -> Result<Capture, Failure> {
        let commands = self.commands()?;
        let bytes = self.part.exchange_bytes();
        let mut received = vec![0; bytes * self.conversions()];
        let mut message: Vec<Transfer<'_>> = received
            .chunks_mut(bytes)
            .zip(commands.iter().cycle())
            .map(|(rx, command)| Transfer::exchange(command.bytes(), rx).with_cs_change())
            .collect();
        if let Some(last) = message.last_mut() {
            last.cs_change = false;
        }
        let mut prepared = device.prepare_message(&mut message)?;
        let mut timer = session.open.timer();
        let mut capture = Capture::default();
        let batches = self.samples.div_ceil(self.batch);
        capture.codes.reserve(batches * self.conversions());
        let every = u32::try_from(self.batch).unwrap_or(u32::MAX);
        // The first message configures the block, which is not what is measured.
        prepared.run()?;
        session.begin_figures();
        let mut pacer = self.rate_hz.map(|rate_hz| Pacer::new(&mut *timer, every, rate_hz));
        let simulated = session.open.board().map(|simulated| &simulated.board);
        if let Some(board) = simulated {
            board.start_selections();
        }
        let mut stamps = Vec::with_capacity(if simulated.is_some() { 2 } else { batches });
        for batch in 0..batches {
            if let Some(pacer) = &mut pacer {
                pacer.wait(&mut *timer);
            }
            if simulated.is_none() || batch == 0 {
                stamps.push(timer.now_ticks());
            }
            prepared.run()?;
            if simulated.is_none() {
                stamps.push(timer.now_ticks());
            }
            for index in 0..self.conversions() {
                let rx = prepared.rx(index).unwrap_or_default();
                capture.codes.push(self.part.decode(rx)?);
            }
            if let Some(board) = simulated {
                board.cpu_work(INSTRUCTIONS_PER_CONVERSION * self.conversions() as u64);
            }
            watch(&capture.codes);
            progress.set(((batch + 1) * self.batch) as u64);
            if interrupt::asked() {
                capture.interrupted = true;
                break;
            }
        }
        let ended = timer.now_ticks();
        let ns = 1e9 / f64::from(timer.frequency_hz());
        capture.elapsed_ns = ended.wrapping_sub(stamps[0]) as f64 * ns;
        capture.missed = pacer.map_or(0, |pacer| pacer.missed());
        match simulated {
            Some(board) => capture.date_by_selections(board.take_selections()),
            None => capture.date_by_stamps(&stamps, ns, self.conversions()),
        }
        Ok(capture)
    }

    /// Refuses a rate that cannot be held, and names one that can: above what the wire allows, or, if
    /// `measured` is set, above what short trials hold here.
    pub(super) fn check_rate(
        &self,
        session: &Session,
        device: &Device<'_, dyn Controller + '_>,
        measured: bool,
    ) -> Result<(), Failure> {
        let Some(asked_hz) = self.rate_hz else { return Ok(()) };
        let wire_hz = self.part.max_rate_hz(device.effective()) / self.inputs.len() as u32;
        if !measured {
            let max_hz = wire_hz;
            let over = asked_hz > max_hz;
            return if over { Err(AdcError::TooOften { asked_hz, max_hz }.into()) } else { Ok(()) };
        }
        let trial = |rate_hz, samples| {
            let plan = Plan { rate_hz, samples, ..*self };
            let progress = Progress::counting("trying", samples as u64, true);
            Ok::<_, Failure>((plan.take(session, device, &progress, |_| ())?, plan))
        };
        let (free, plan) = trial(None, WARM_UP_BATCHES * self.batch)?;
        let fastest_hz = wire_hz.min(free.samples_per_s(&plan) as u32);
        let holds = |rate_hz: u32| {
            let samples = WARM_UP_BATCHES * self.batch + (rate_hz / TRIALS_PER_S) as usize;
            Ok::<_, Failure>(trial(Some(rate_hz), samples)?.0.missed == 0)
        };
        if asked_hz <= fastest_hz && holds(asked_hz)? {
            return Ok(());
        }
        let mut max_hz = fastest_hz.min(asked_hz.saturating_sub(1)).max(1);
        for _ in 0..TRIALS_MAX {
            if interrupt::asked() || holds(max_hz)? {
                break;
            }
            max_hz = (max_hz - max_hz.div_ceil(50)).max(1);
        }
        interrupt::check()?;
        Err(AdcError::TooOften { asked_hz, max_hz }.into())
    }
}

/// The number of batches from which the rate without pauses is measured.
const WARM_UP_BATCHES: usize = 64;
/// A trial of a rate takes this share of a second: five of Linux's ticks at 250 Hz, which are what a rate
/// fails by.
const TRIALS_PER_S: u32 = 50;
/// Each trial of a lower rate is 2 % lower.
const TRIALS_MAX: u32 = 40;

impl Capture {
    fn date_by_selections(&mut self, selections: Vec<Selection>) {
        let Some(first) = selections.first().map(|first| first.selected_at) else { return };
        let since = |selection: &Selection| (selection.selected_at - first) as f64 / 1e3;
        self.at_ns = selections.iter().map(since).collect();
        self.selections = selections;
    }

    fn date_by_stamps(&mut self, stamps: &[u64], ns_per_tick: f64, conversions: usize) {
        let first = stamps[0];
        for pair in stamps.chunks_exact(2) {
            let [begin, end] =
                [pair[0], pair[1]].map(|stamp| stamp.wrapping_sub(first) as f64 * ns_per_tick);
            let each = (end - begin) / conversions as f64;
            self.at_ns.extend((0..conversions).map(|index| begin + each * index as f64));
        }
    }

    /// Samples per second and input, from the first sample to the last. Work before the first and
    /// after the last does not count.
    pub(super) fn samples_per_s(&self, plan: &Plan<'_>) -> f64 {
        let conversions = plan.conversions();
        let batches = self.codes.len() / conversions;
        // Counts whole batches, each with the work that follows it, so not the last batch.
        match (batches, self.at_ns.get((batches.max(1) - 1) * conversions)) {
            (2.., Some(last_ns)) if *last_ns > 0.0 => {
                ((batches - 1) * plan.batch) as f64 / (last_ns / 1e9)
            }
            _ => (batches * plan.batch) as f64 / (self.elapsed_ns.max(1.0) / 1e9),
        }
    }

    /// When, in seconds from the first conversion, and what code input `index` of `inputs` had.
    pub(super) fn of_input(&self, index: usize, inputs: usize) -> impl Iterator<Item = (f64, u16)> {
        let dated = self.at_ns.iter().zip(&self.codes).map(|(ns, &code)| (ns / 1e9, code));
        dated.skip(index).step_by(inputs)
    }
}
