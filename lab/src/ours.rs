//! barewire on the experiments' own workloads, with the same way of waiting: simulated on the board's profile.
//!
//! *Read first*: `barewire_sim::scenario`, whose scenarios these are where there is one.

use std::num::NonZeroU64;

use barewire::bus::Bus;
use barewire::chip::spi_nor::SpiNor;
use barewire::controller::ALWAYS_POLL;
use barewire::spi::Settings;
use barewire_sim::bring_up::{Charged, SimInterrupt, any, any_interrupt};
use barewire_sim::profile::CostLevel;
use barewire_sim::scenario::can_echo::{self, Setup, Who};
use barewire_sim::{Board, BoardOptions, BoardSpec, SimPlatform};

use crate::experiment::{Asked, Experiment, Workload};

/// barewire's figure beside that of `asked`, in the same unit, with the bench's own costs at `level`; `None` where barewire
/// has no part in it, or no such way of waiting.
#[must_use]
pub fn ours(experiment: &Experiment, asked: &Asked, level: CostLevel) -> Option<f64> {
    match experiment.workload {
        Workload::Echo => echo(experiment, asked, level),
        Workload::Dd => dd(experiment, asked, level),
        _ => None,
    }
}

/// A process that UIO wakes receives, another one echoes.
fn echo(experiment: &Experiment, asked: &Asked, level: CostLevel) -> Option<f64> {
    let spec = BoardSpec::find(&experiment.board).ok()?;
    let frames = NonZeroU64::new(experiment.frames)?;
    let mut setup = Setup::published(spec, Who::Sockets, frames, experiment.gap_us * 1_000_000);
    setup.board_options.profile = Some(spec.profile.at(level));
    let echoed = can_echo::run(setup, &mut |_| true).ok()?;
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

/// The same reads by barewire's flash driver, without dd and page cache around them.
fn dd(experiment: &Experiment, asked: &Asked, level: CostLevel) -> Option<f64> {
    const BLOCK: usize = 512;
    const READS: u64 = 4;
    // barewire has no DMA, and a share of the processor is that of what is around the reads too.
    let limit_ns = match asked.path.rsplit('-').next() {
        Some("poll") => ALWAYS_POLL,
        Some("irq") => 0,
        _ => return None,
    };
    if asked.metric != "time" {
        return None;
    }
    let spec = BoardSpec::find(&experiment.board).ok()?;
    let profile = Some(spec.profile.at(level));
    let board = Board::new(spec, BoardOptions { profile, ..BoardOptions::default() });
    board.attach_flash(None).ok()?;
    let controller = if limit_ns == ALWAYS_POLL {
        any(&board)
    } else {
        any_interrupt(&board, limit_ns, SimInterrupt::new(&board))
    };
    let charged = Charged::new(controller, board.clone()).for_linux_process();
    let bus = Bus::with_platform(charged, &SimPlatform);
    let speed_hz = u32::try_from(experiment.speed_hz).ok()?;
    let device = bus.device(&Settings::new(spec.flash().cs, speed_hz)).ok()?;
    let mut nor = SpiNor::new(device, board.timer()).ok()?;
    let mut block = [0; BLOCK];
    let mut time_ps = 0;
    for read in 0..=READS {
        // The first configures the block.
        if read == 1 {
            time_ps = board.engine().now_ps();
        }
        nor.read(read * BLOCK as u64, &mut block).ok()?;
    }
    let read_us = (board.engine().now_ps() - time_ps) as f64 / 1e6 / READS as f64;
    Some(read_us * asked.scale.unwrap_or(1.0) / 1e6)
}
