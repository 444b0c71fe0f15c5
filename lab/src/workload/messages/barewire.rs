//! barewire on the messages of a user's experiment: prepared once, sent by a process with mapped registers.
//!
//! *Read first*: [`super`].

use std::cell::RefCell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::controller::ALWAYS_POLL;
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{Charged, SimInterrupt, any, any_interrupt};
use barewire_sim::engine::Thread;
use barewire_sim::model::echo::Echo;
use barewire_sim::{Board, BoardOptions, SimPlatform};

use super::{Timing, WARM_UP, count};
use crate::cost::Costs;
use crate::kernel::Waiting;
use crate::own::{Measure, Message, OwnExperiment};

/// barewire's figures beside the kernel's: the same transfers, the same costs, cold or warm alike, and the same way of
/// waiting where barewire has it. It has no DMA, and waits at no cs_change unless the chip needs it. A share of the processor is not
/// counted. None if barewire's driver refuses the message on that chip select.
#[must_use]
pub fn barewire(
    own: &OwnExperiment,
    message: &Message,
    costs: &Costs,
) -> Option<Vec<(Measure, f64)>> {
    let profile = Some(costs.process(&own.profile, own.regime(message)));
    let board = Board::new(own.spec, BoardOptions { profile, ..BoardOptions::default() });
    board.attach(own.cs, Rc::new(RefCell::new(Echo::default())));
    let controller = match own.path(message).waiting {
        Waiting::Polling => any(&board),
        Waiting::Interrupts => any_interrupt(&board, 0, SimInterrupt::new(&board)),
        Waiting::Dma => return None,
    };
    let charged = Charged::new(controller, board.clone()).for_linux_process();
    let bus = Bus::with_platform(charged, &SimPlatform);
    let speed_hz = u32::try_from(message.speed_hz).ok()?;
    let settings = Settings::new(own.cs, speed_hz).with_poll_limit_ns(ALWAYS_POLL);
    let settings = match own.path(message).waiting {
        Waiting::Polling => settings,
        _ => settings.with_poll_limit_ns(0),
    };
    let device = bus.device(&settings).ok()?;
    let clock_hz = device.effective().speed_hz.into();
    let lengths: Vec<usize> =
        std::iter::repeat_n(&message.lengths, message.batch).flatten().copied().collect();
    let sent: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![0x5a; length]).collect();
    let mut received = sent.clone();
    let of_a_part = message.lengths.len();
    let delay_ns = u32::try_from(message.delay_ns).ok()?;
    let mut transfers: Vec<Transfer<'_>> = Vec::new();
    for (nth, (tx, rx)) in sent.iter().zip(&mut received).enumerate() {
        let transfer = Transfer::exchange(tx, rx).with_delay_ns(delay_ns);
        let ends_part = (nth + 1) % of_a_part == 0 && nth + 1 < lengths.len();
        transfers.push(match message.cs_change && ends_part {
            true => transfer.with_cs_change(),
            false => transfer,
        });
    }
    let mut prepared = device.prepare_message(&mut transfers).ok()?;
    let engine = board.engine();
    let (mut begun_at, mut calls) = (0, Vec::new());
    let mut run_all = || {
        for _ in 0..WARM_UP {
            prepared.run().ok()?;
        }
        board.start_selections();
        begun_at = engine.now_ps();
        for nth in 0..count(message) as u64 {
            engine.sleep_until((begun_at + nth * message.every_ps).max(engine.now_ps()));
            let from = engine.now_ps();
            prepared.run().ok()?;
            calls.push((from, engine.now_ps()));
        }
        Some(())
    };
    let mut all = None;
    // A thread: outside one a sleep costs nothing.
    let process = Thread::new("process", || all = run_all()).on(0, 10);
    engine.run(vec![process]);
    all?;
    let ends_at = (begun_at + calls.len() as u64 * message.every_ps).max(engine.now_ps());
    let wire = board.take_selections();
    let window = (begun_at, ends_at);
    let timing = Timing { window, calls, wire, ticks: Vec::new(), clock_hz };
    let figure = |measure| {
        let measured = timing.measured(own, message, measure)?;
        (!matches!(measure, Measure::RefillGap | Measure::Rests))
            .then(|| (measure, measured.value(measured.intervals.mean_us())))
    };
    Some(Measure::ALL.into_iter().filter_map(figure).collect())
}
