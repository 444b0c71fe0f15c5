//! barewire on the experiments' own workloads, with the same way of waiting: simulated on the board's profile.
//!
//! *Read first*: `barewire_sim::scenario`, whose scenarios these are where there is one.

use std::num::NonZeroU64;

use barewire::bus::Bus;
use barewire::chip::spi_nor::SpiNor;
use barewire::controller::ALWAYS_POLL;
use barewire::spi::Settings;
use barewire_sim::bring_up::{Charged, SimInterrupt, any, any_interrupt};
use barewire_sim::chip::Ps;
use barewire_sim::profile::{CostLevel, Profile};
use barewire_sim::scenario::can_echo::{self, EchoFigures, Setup, Who};
use barewire_sim::scenario::sampling;
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

use crate::cost::Costs;
use crate::experiment::{Experiment, Question, Workload};
use crate::kernel::{Path, Waiting};
use crate::replay::Runner;
use crate::workload::messages;

/// The clock of the thread's echo.
const ECHO_HZ: u32 = 16_000_000;

/// barewire's figure beside that of `asked`, in the same unit, with the bench's own costs at `level`; an unmap has
/// those of `kernel`, the lab's. `None` if barewire takes no part in the experiment, or cannot wait that way.
#[must_use]
pub fn ours(
    experiment: &Experiment,
    asked: &Question,
    level: CostLevel,
    kernel: &Costs,
) -> Option<f64> {
    match experiment.workload {
        Workload::Echo => echo(experiment, asked, level),
        Workload::Dd => dd(experiment, asked, level),
        Workload::Spidev => spidev(experiment, asked, level),
        Workload::Nor => nor(experiment, asked, level),
        Workload::Unmap => unmap(experiment, asked, kernel),
        Workload::Messages => {
            let own = experiment.own.as_ref()?;
            let message = own.message(&asked.message)?;
            let figures = messages::barewire(own, message, &kernel.at(level))?;
            Some(figures.iter().find(|(measure, _)| measure.name() == asked.metric)?.1)
        }
        Workload::Camera | Workload::Beside | Workload::Stated => None,
    }
}

fn board(experiment: &Experiment, level: CostLevel) -> Option<(&'static BoardSpec, Profile)> {
    let spec = BoardSpec::find(&experiment.board).ok()?;
    Some((spec, spec.profile.at(level)))
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
    can_echo::run(setup, &mut |_| true).ok()
}

fn echo(experiment: &Experiment, asked: &Question, level: CostLevel) -> Option<f64> {
    let (spec, profile) = board(experiment, level)?;
    let frames = (experiment.frames, experiment.gap_us * 1_000_000);
    let echoed = echoed(spec, profile, frames, ECHO_HZ)?;
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

/// The limit of polling that waits as a kernel's driver does. barewire has no DMA.
pub(crate) fn poll_limit_ns(waiting: Waiting) -> Option<u32> {
    match waiting {
        Waiting::Polling => Some(ALWAYS_POLL),
        Waiting::Interrupts => Some(0),
        Waiting::Dma => None,
    }
}

/// Reads of a flash in a row, in the steady state.
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
    let wire = board.take_selections();
    let each = wire.len() / READS;
    let last = &wire[wire.len() - each..];
    let us = |ps: Ps| ps as f64 / 1e6;
    Some(Reads {
        period_us: us(last[0].selected_at - wire[0].selected_at) / (READS - 1) as f64,
        window_us: us(last[each - 1].deselected_at - last[0].selected_at),
    })
}

/// The same reads, without dd and page cache around them.
fn dd(experiment: &Experiment, asked: &Question, level: CostLevel) -> Option<f64> {
    const BLOCK: usize = 512;
    // A share of the processor includes the work around the reads.
    if asked.metric != "time" {
        return None;
    }
    let (spec, profile) = board(experiment, level)?;
    let limit_ns = poll_limit_ns(Path::find(&asked.path).ok()?.waiting)?;
    let reads = reads(spec, profile, limit_ns, experiment.speed_hz, BLOCK, false)?;
    Some(reads.period_us * asked.scale.unwrap_or(1.0) / 1e6)
}

/// The same status and read, polled, without dd and mtd around them.
fn nor(experiment: &Experiment, asked: &Question, level: CostLevel) -> Option<f64> {
    let (spec, profile) = board(experiment, level)?;
    let (block, blocks) = (asked.block?, asked.blocks?);
    let reads = reads(spec, profile, ALWAYS_POLL, experiment.speed_hz, block, true)?;
    let time_us = (blocks - 1) as f64 * reads.period_us + reads.window_us;
    Some(if blocks > 1 { time_us / 1e3 } else { time_us })
}

/// A prepared message of that many conversions, by a process. It has no cs_change delay that could be taken away.
fn spidev(experiment: &Experiment, asked: &Question, level: CostLevel) -> Option<f64> {
    // The block rests for a clock after each of three bytes but the last.
    const CLOCKS: f64 = 26.0;
    let (_, profile) = board(experiment, level).filter(|(spec, _)| spec.name == sampling::BOARD)?;
    let batch = asked.batch.unwrap_or(1);
    let setup = sampling::Setup {
        board_options: BoardOptions { profile: Some(profile), ..BoardOptions::default() },
        software: sampling::Software::LinuxProcess,
        speed_hz: u32::try_from(experiment.speed_hz).ok()?,
        cs_inactive_ns: 0,
        batch,
        messages: (2_000 / batch).max(4),
    };
    let sampling::Sampling { samples_per_s, parts } = setup.run();
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

/// The same call with barewire's own flush: the costs are the kernel's, whatever flushes.
fn unmap(experiment: &Experiment, asked: &Question, kernel: &Costs) -> Option<f64> {
    let gathered = Question { path: "arm-smmu-gathered".into(), ..asked.clone() };
    Some(Runner::new(kernel).take(experiment, &gathered).ok()?.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::published;

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
        let kernel = Costs::fitted();
        all(|experiment, asked, published| {
            if !matches!(experiment.workload, Workload::Spidev | Workload::Nor | Workload::Unmap) {
                return;
            }
            let id = &*asked.id;
            let figure = ours(experiment, asked, CostLevel::Used, &kernel);
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
    fn a_sample_is_its_parts() {
        let kernel = Costs::fitted();
        let ellis = Experiment::all().into_iter().find(|one| one.name == "ellis").expect("it");
        let figure = |metric: &str, batch| {
            let asked =
                Question { metric: metric.into(), batch: Some(batch), ..Question::default() };
            ours(&ellis, &asked, CostLevel::Used, &kernel).expect("a figure")
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
