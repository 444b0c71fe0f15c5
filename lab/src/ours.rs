//! barewire on the experiments' own workloads, with the same way of waiting and by the same costs: simulated on the
//! bench's boards.
//!
//! *Read first*: `barewire_sim::scenario`, whose scenarios these are where there is one; [`crate::regime`].

use std::num::NonZeroU64;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::chip::spi_nor::SpiNor;
use barewire::controller::ALWAYS_POLL;
use barewire::spi::Settings;
use barewire_sim::bring_up::{Charged, SimInterrupt, any, any_interrupt};
use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::profile::Profile;
use barewire_sim::scenario::can_echo::{self, EchoFigures, Setup, Who};
use barewire_sim::scenario::sampling::{self, Sampling};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};
use serde::Serialize;

use crate::band::Band;
use crate::cost::{Checks, Costs};
use crate::experiment::{Experiment, Question, Workload};
use crate::figure::published;
use crate::kernel::{Path, Waiting};
use crate::memo::Memo;
use crate::regime::Regime;
use crate::replay::Runner;
use crate::workload::messages;

/// The clock of the thread's echo.
const ECHO_HZ: u32 = 16_000_000;

/// barewire's programs by one set of costs, and the runs done so far: figures of one run share it.
pub(crate) struct Ours<'c> {
    costs: &'c Costs,
    runs: Memo<Ran>,
    /// Replays unmaps, whose costs are the kernel's.
    unmaps: Runner,
}

/// The result of a run.
enum Ran {
    Echo(Box<EchoFigures>),
    Reads(Reads),
    Sampling(Sampling),
}

impl<'c> Ours<'c> {
    /// By `costs`.
    pub(crate) fn new(costs: &'c Costs) -> Self {
        Self { costs, runs: Memo::default(), unmaps: Runner::new(costs) }
    }

    /// By the costs used, and by each of `draws`.
    pub(crate) fn all(used: &'c Costs, draws: &'c [Costs]) -> Vec<Self> {
        std::iter::once(used).chain(draws).map(Self::new).collect()
    }

    /// barewire's figure beside that of `asked`, in the same unit, by the same costs as the kernel's. `None` if barewire
    /// takes no part in the experiment, or cannot wait that way.
    pub(crate) fn figure(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        match experiment.workload {
            Workload::Echo => self.echo(experiment, asked),
            Workload::Dd => self.dd(experiment, asked),
            Workload::Spidev => self.spidev(experiment, asked),
            Workload::Nor => self.nor(experiment, asked),
            Workload::Unmap => self.unmap(experiment, asked),
            Workload::Messages => {
                let own = experiment.own.as_ref()?;
                let message = own.message(&asked.message)?;
                let figures = messages::barewire(own, message, self.costs)?;
                Some(figures.iter().find(|(measure, _)| measure.name() == asked.metric)?.1)
            }
            Workload::Camera | Workload::Beside | Workload::Stated => None,
        }
    }

    fn board(&self, experiment: &Experiment) -> Option<(&'static BoardSpec, Profile)> {
        let spec = BoardSpec::find(&experiment.board).ok()?;
        Some((spec, self.costs.process(&spec.profile, experiment.workload.regime()?)))
    }

    fn run(&self, key: String, run: impl FnOnce() -> Option<Ran>) -> Option<Rc<Ran>> {
        self.runs.run(key, || run().ok_or(())).ok()
    }

    fn echo(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        let ran = self.run(format!("echo {}", experiment.name), || {
            let (spec, profile) = self.board(experiment)?;
            let frames = (experiment.frames, experiment.gap_us * 1_000_000);
            Some(Ran::Echo(Box::new(echoed(spec, profile, frames, ECHO_HZ)?)))
        })?;
        let Ran::Echo(echoed) = &*ran else { unreachable!("the key names the workload") };
        let processors = f64::from(experiment.processors);
        match asked.metric.as_str() {
            "gap" => Some(echoed.rx_eof_to_tx_sof?.p50_us),
            "int-low" => Some(echoed.int_low?.p50_us),
            "cs-to-clock" => Some(echoed.cs_to_clock?.p50_us),
            "cs-high" => Some(echoed.cs_high?.p50_us),
            "irq-thread" => Some(echoed.percent(echoed.receive_ps) / processors),
            "idle" => Some(100.0 - echoed.percent(echoed.cpu_ps) / processors),
            _ => None,
        }
    }

    /// The experiment's reads of `block` bytes.
    fn reads(
        &self,
        experiment: &Experiment,
        limit_ns: u32,
        block: usize,
        with_status: bool,
    ) -> Option<Reads> {
        let ran = self.run(format!("reads {} {limit_ns} {block}", experiment.name), || {
            let (spec, profile) = self.board(experiment)?;
            let speed_hz = experiment.speed_hz;
            Some(Ran::Reads(reads(spec, profile, limit_ns, speed_hz, block, with_status)?))
        })?;
        let Ran::Reads(reads) = *ran else { unreachable!("the key names the workload") };
        Some(reads)
    }

    /// The same reads, without dd and page cache around them.
    fn dd(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        const BLOCK: usize = 512;
        // A share of the processor includes the work around the reads.
        if asked.metric != "time" {
            return None;
        }
        let limit_ns = poll_limit_ns(Path::find(&asked.path).ok()?.waiting)?;
        let reads = self.reads(experiment, limit_ns, BLOCK, false)?;
        Some(reads.period_us * asked.scale.unwrap_or(1.0) / 1e6)
    }

    /// The same status and read, polled, without dd and mtd around them.
    fn nor(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        let (block, blocks) = (asked.block?, asked.blocks?);
        let reads = self.reads(experiment, ALWAYS_POLL, block, true)?;
        let time_us = (blocks - 1) as f64 * reads.period_us + reads.window_us;
        Some(if blocks > 1 { time_us / 1e3 } else { time_us })
    }

    /// A prepared message of that many conversions, by a process. It has no cs_change delay that could be taken away.
    fn spidev(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        // The block rests for a clock after each of three bytes but the last.
        const CLOCKS: f64 = 26.0;
        let batch = asked.batch.unwrap_or(1);
        let ran = self.run(format!("spidev {} {batch}", experiment.name), || {
            let (_, profile) =
                self.board(experiment).filter(|(spec, _)| spec.name == sampling::BOARD)?;
            let setup = sampling::Setup {
                board_options: BoardOptions { profile: Some(profile), ..BoardOptions::default() },
                software: sampling::Software::LinuxProcess,
                speed_hz: u32::try_from(experiment.speed_hz).ok()?,
                cs_inactive_ns: 0,
                batch,
                messages: (2_000 / batch).max(4),
            };
            Some(Ran::Sampling(setup.run()))
        })?;
        let Ran::Sampling(Sampling { samples_per_s, parts }) = *ran else {
            unreachable!("the key names the workload")
        };
        let n = batch as f64;
        match asked.metric.as_str() {
            "rate" => Some(samples_per_s),
            // To the first edge, half a clock after the first bit's beginning.
            "cs-setup" => Some(parts.lead_us + parts.clocks_us / CLOCKS / 2.0),
            "cs-hold" => Some(parts.lag_us),
            "ioctl-gap" => Some(parts.software_us * n),
            "cs-toggle" => (batch > 1).then(|| parts.gap_us * n / (n - 1.0)),
            "clocks" => Some(parts.clocks_us),
            "transfer" => Some(parts.lead_us + parts.clocks_us + parts.lag_us),
            _ => None,
        }
    }

    /// The same call with barewire's own flush: the costs are the same, whatever flushes.
    fn unmap(&self, experiment: &Experiment, asked: &Question) -> Option<f64> {
        let gathered = Question { path: "arm-smmu-gathered".into(), ..asked.clone() };
        Some(self.unmaps.take(experiment, &gathered).ok()?.value)
    }
}

/// barewire's figure with its band: the first of `all` has the costs used. Both ends are moved out as far as the kernels' are.
pub(crate) fn band(
    all: &[Ours<'_>],
    experiment: &Experiment,
    asked: &Question,
    (widened, unit): (f64, &str),
) -> Option<Band> {
    let (used, draws) = all.split_first()?;
    let of = |ours: &Ours<'_>| ours.figure(experiment, asked);
    Some(Band::over(of(used)?, draws.iter().filter_map(of)).widened(widened, unit))
}

/// barewire beside a published figure, as [`Lab::run`](crate::Lab::run) has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The published figure's id.
    pub id: &'static str,
    /// The unit of all of them.
    pub unit: String,
    /// The published figure.
    pub published: f64,
    /// The path that it was measured on.
    pub path: String,
    /// barewire's, simulated by the costs that the lab fitted to such kernels.
    pub barewire: Band,
    /// What its code did a moment before.
    pub regime: Regime,
}

/// What stands beside the published figures `ids`, without a run of the whole lab.
///
/// # Panics
/// If one is not a figure of the lab that barewire stands beside.
#[must_use]
pub fn beside(ids: &[&'static str]) -> Vec<Beside> {
    let (costs, draws) = (Costs::fitted(), Costs::drawn());
    let (experiments, figures) = (Experiment::all(), published());
    let (ours, widened) = (Ours::all(&costs, &draws), Checks::kept().bands_widened);
    let one = |&id: &&'static str| {
        let figure = figures.iter().find(|figure| figure.id == id)?;
        let of = |one: &Experiment| one.figure.iter().find(|asked| asked.id == id).cloned();
        let (experiment, asked) = experiments.iter().find_map(|one| Some((one, of(one)?)))?;
        let widened = (widened, &*figure.unit);
        Some(Beside {
            id,
            unit: figure.unit.clone(),
            published: figure.value,
            path: asked.path.clone(),
            barewire: band(&ours, experiment, &asked, widened)?,
            regime: experiment.workload.regime()?,
        })
    };
    let all = ids.iter().map(|id| one(id).unwrap_or_else(|| panic!("{id} has none beside it")));
    all.collect()
}

/// A process that UIO wakes receives, and another one echoes: that many frames, that far apart.
pub(crate) fn echoed(
    spec: &'static BoardSpec,
    profile: Profile,
    (frames, gap_ps): (u64, Ps),
    speed_hz: u32,
) -> Option<EchoFigures> {
    let mut setup = Setup::published(spec, Who::Sockets, NonZeroU64::new(frames)?, gap_ps);
    setup.board_options.profile = Some(profile);
    setup.speed_hz = speed_hz;
    // The kernels' paths have none either: they wake from an idle that has stopped the tick.
    setup.ticks = false;
    can_echo::run(setup, &mut |_| true).ok()
}

/// The limit of polling that waits as a kernel's driver does. barewire has no DMA.
pub(crate) fn poll_limit_ns(waiting: Waiting) -> Option<u32> {
    match waiting {
        Waiting::Polling => Some(ALWAYS_POLL),
        Waiting::Interrupts => Some(0),
        Waiting::Dma => None,
    }
}

/// Reads of a flash in a row, in the steady state.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    /// From one read to the next.
    pub(crate) period_us: f64,
    /// From chip select's first fall in one read to its last rise in it.
    pub(crate) window_us: f64,
}

/// Reads of `block` bytes by barewire's flash driver in a process, each after the status if asked.
pub(crate) fn reads(
    spec: &'static BoardSpec,
    profile: Profile,
    limit_ns: u32,
    speed_hz: u64,
    block: usize,
    with_status: bool,
) -> Option<Reads> {
    const READS: usize = 4;
    let board =
        Board::new(spec, BoardOptions { profile: Some(profile), ..BoardOptions::default() });
    board.attach_flash(None).ok()?;
    let controller = if limit_ns == ALWAYS_POLL {
        any(&board)
    } else {
        any_interrupt(&board, limit_ns, SimInterrupt::new(&board))
    };
    let charged = Charged::new(controller, board.clone()).for_linux_process();
    let bus = Bus::with_platform(charged, &SimPlatform);
    let speed_hz = u32::try_from(speed_hz).ok()?;
    let device = bus.device(&Settings::new(spec.flash().cs, speed_hz)).ok()?;
    let mut nor = SpiNor::new(device, board.timer()).ok()?;
    let mut data = vec![0; block];
    let mut read_all = || {
        for read in 0..=READS {
            // The first configures the block.
            if read == 1 {
                board.start_selections();
            }
            if with_status {
                nor.status().ok()?;
            }
            nor.read((read * block) as u64, &mut data).ok()?;
        }
        Some(())
    };
    let mut all = None;
    // A thread: outside one a sleep costs nothing.
    let process = Thread::new("process", || all = read_all()).on(0, 10);
    board.engine().run(vec![process]);
    all?;
    let wire = board.take_selections();
    let each = wire.len() / READS;
    let last = &wire[wire.len() - each..];
    let us = |ps: Ps| ps as f64 / 1e6;
    Some(Reads {
        period_us: us(last[0].selected_at - wire[0].selected_at) / (READS - 1) as f64,
        window_us: us(last[each - 1].deselected_at - last[0].selected_at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut each: impl FnMut(&Experiment, &Question, f64)) {
        let published = published();
        for experiment in &Experiment::all() {
            for asked in &experiment.figure {
                let figure = published.iter().find(|one| one.id == asked.id);
                each(experiment, asked, figure.expect("a figure").value);
            }
        }
    }

    #[test]
    fn barewire_is_not_slower_than_what_it_stands_beside() {
        let costs = Costs::fitted();
        let ours = Ours::new(&costs);
        all(|experiment, asked, published| {
            if !matches!(experiment.workload, Workload::Spidev | Workload::Nor | Workload::Unmap) {
                return;
            }
            let id = &*asked.id;
            let figure = ours.figure(experiment, asked);
            let figure = figure.unwrap_or_else(|| panic!("{id} has none"));
            match asked.metric.as_str() {
                "rate" => assert!(figure > published, "{id}: {figure} {published}"),
                _ => assert!(figure > 0.0, "{id}: {figure}"),
            }
            if experiment.workload == Workload::Nor {
                assert!(figure < published, "{id}: {figure} {published}");
            }
        });
    }

    #[test]
    fn a_program_that_sleeps_pays_for_its_interrupts() {
        let spec = BoardSpec::find("imx6dl").expect("a board");
        let used = Costs::fitted().process(&spec.profile, Regime::InALoop);
        let mut slow = used.clone();
        slow.irq_thread_ps.value += 50_000_000;
        let period = |profile: &Profile, limit_ns| {
            let reads = reads(spec, profile.clone(), limit_ns, 20_000_000, 512, false);
            reads.expect("it reads").period_us
        };
        assert!(period(&slow, 0) >= period(&used, 0) + 50.0);
        assert!((period(&slow, ALWAYS_POLL) - period(&used, ALWAYS_POLL)).abs() < 1e-9);
    }

    #[test]
    fn a_sample_is_its_parts() {
        let costs = Costs::fitted();
        let ours = Ours::new(&costs);
        let ellis = Experiment::all().into_iter().find(|one| one.name == "ellis").expect("it");
        let figure = |metric: &str, batch| {
            let asked =
                Question { metric: metric.into(), batch: Some(batch), ..Question::default() };
            ours.figure(&ellis, &asked).expect("a figure")
        };
        let n = 10.0;
        let sample_us = figure("transfer", 10)
            + (figure("cs-toggle", 10) * (n - 1.0) + figure("ioctl-gap", 10)) / n;
        assert!((sample_us - 1e6 / figure("rate", 10)).abs() < 1e-6);
        let half_a_clock_us = 0.14;
        let parts = figure("cs-setup", 1) + figure("clocks", 1) + figure("cs-hold", 1);
        assert!((parts - half_a_clock_us - figure("transfer", 1)).abs() < 1e-6);
        assert!((figure("clocks", 1) - 26.0 * 0.28).abs() < 1e-6);
    }
}
