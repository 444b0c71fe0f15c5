//! Compares the frames on the CAN bus, and the accesses on the wire, with the expected ones.

use std::collections::VecDeque;

use super::Echoed;
use super::threads::Ran;
use crate::Violation;
use crate::chip::Ps;
use crate::model::can::{CanFrame, NodeId, Record};
use crate::selection::Selection;

/// What a time was, over many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The middle one; of two the shorter.
    pub p50_us: f64,
    /// The longest.
    pub max_us: f64,
}

impl Spread {
    fn of(mut times: Vec<Ps>) -> Option<Self> {
        times.sort_unstable();
        let us = |ps: Ps| ps as f64 / 1_000_000.0;
        let max_us = us(*times.last()?);
        Some(Self { p50_us: us(times[(times.len() - 1) / 2]), max_us })
    }
}

/// The outcome of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The far node's frames that were acknowledged.
    pub sent: u64,
    /// Of those echoed.
    pub echoed: u64,
    /// Of those not; of an interrupted run, of those before the last one echoed.
    pub lost: u64,
    /// Echoed, but not in their turn.
    pub reordered: u64,
    /// On the bus, and an echo of nothing.
    pub unasked: u64,
    /// Destroyed by an error, from any sender.
    pub destroyed: u64,
    /// Of the lost: no place was free to send them from.
    pub dropped: u64,
}

/// The records of the wires.
pub(super) struct Heard {
    pub(super) records: Vec<Record>,
    /// The node that sends the frames to echo.
    pub(super) far: NodeId,
    pub(super) selections: Vec<Selection>,
    pub(super) int_lows: Vec<(Ps, Option<Ps>)>,
    /// From the beginning of a bit's cell to its first edge.
    pub(super) half_a_clock_ps: Ps,
}

/// Whether `echo` is that of `frame`.
fn is_echo(echo: &CanFrame, frame: &CanFrame) -> bool {
    let largest = if frame.extended { (1 << 29) - 1 } else { 0x7ff };
    let mut expected = *frame;
    expected.id = frame.id.checked_sub(1).unwrap_or(largest);
    *echo == expected
}

impl Tally {
    /// Counts the far node's frames by outcome, and returns the time from each frame's end to the start
    /// of its echo. In an `interrupted` run, frames after the last echoed one do not count as lost.
    #[must_use]
    pub fn of(records: &[Record], far: NodeId, interrupted: bool) -> (Self, Vec<Ps>) {
        let (mut tally, mut times, mut open) = (Self::default(), Vec::new(), VecDeque::new());
        let mut last_echoed = 0;
        for record in records {
            if !record.is_taken() {
                tally.destroyed += 1;
            } else if record.sender == far {
                tally.sent += 1;
                open.push_back(record);
            } else {
                let asked = open.iter().position(|asked| is_echo(&record.frame, &asked.frame));
                let Some(asked) = asked.and_then(|at| {
                    tally.reordered += u64::from(at != 0);
                    open.remove(at)
                }) else {
                    tally.unasked += 1;
                    continue;
                };
                tally.echoed += 1;
                last_echoed = last_echoed.max(asked.eof);
                times.push(record.sof - asked.eof);
            }
        }
        let lost = |asked: &&&Record| !interrupted || asked.eof < last_echoed;
        tally.lost = open.iter().filter(lost).count() as u64;
        (tally, times)
    }
}

/// Chip select high between the first and the second access of each service.
fn first_gaps(selections: &[Selection], services: &[Ps]) -> Vec<Ps> {
    let mut gaps = Vec::new();
    let mut ends = services.iter().skip(1).chain([&Ps::MAX]);
    for &begun in services {
        let end = *ends.next().unwrap_or(&Ps::MAX);
        let first = selections.partition_point(|one| one.selected_at < begun);
        if let Some([one, two]) = selections.get(first..first + 2)
            && two.selected_at < end
        {
            gaps.push(two.selected_at - one.deselected_at);
        }
    }
    gaps
}

/// The whole account. `kernel_ps` of each interrupt are charged to the processor, not to a thread.
pub(super) fn account(
    heard: &Heard,
    ran: &Ran,
    kernel_ps: Ps,
    violations: Vec<Violation>,
) -> Echoed {
    let (tally, eof_to_sof) = Tally::of(&heard.records, heard.far, ran.interrupted);
    let interrupts = ran.services.len() as u64;
    let lead = |one: &Selection| one.first_clock_at + heard.half_a_clock_ps - one.selected_at;
    let lows = heard.int_lows.iter().filter_map(|&(from, until)| Some(until? - from));
    Echoed {
        frames: Tally { dropped: ran.dropped, ..tally },
        rx_eof_to_tx_sof: Spread::of(eof_to_sof),
        int_low: Spread::of(lows.collect()),
        cs_to_clock: Spread::of(heard.selections.iter().map(lead).collect()),
        cs_high: Spread::of(first_gaps(&heard.selections, &ran.services)),
        elapsed_ps: ran.elapsed_ps,
        cpu_ps: ran.elapsed_ps - ran.idle_ps + interrupts * kernel_ps,
        receive_ps: ran.serving.time_ps - ran.sending.time_ps,
        send_ps: ran.sending.time_ps + ran.others.time_ps,
        wire_ps: ran.serving.wire_ps + ran.others.wire_ps,
        receive_wire_ps: ran.serving.wire_ps - ran.sending.wire_ps,
        accesses: ran.serving.accesses + ran.others.accesses,
        receive_accesses: ran.serving.accesses - ran.sending.accesses,
        strange: ran.strange,
        interrupts,
        interrupted: ran.interrupted,
        violations,
    }
}
