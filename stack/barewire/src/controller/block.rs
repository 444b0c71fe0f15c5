//! What the drivers of register blocks share of [`Controller`]: the bodies of `run`, `run_exchange` and
//! `start`.
//!
//! A message goes the first of these ways that is open to it:
//!
//! 1. A single transfer of a few bytes goes the block's shorter way ([`Short`]), compiled into the caller.
//! 2. A message with a transfer that waits by interrupt has its caller sleep ([`run_blocking`]).
//! 3. Any other message is polled ([`run_message`]).

use core::task::Poll;

use super::waits::{Sleeps, run_blocking, waits};
use super::wire::{Short, run_short};
use super::{Plan, Program, Stepped, Unfinished, run_message, start_message};
use crate::spi::Transfer;

/// The body of [`Controller::run`](super::Controller::run).
// Always: what is prepared is known where it is called.
#[inline(always)]
pub(super) fn run<B: Short + Sleeps>(
    block: &mut B,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    if let [Transfer { data, plan, .. }] = &mut *message {
        let len = data.len();
        if let Some((tx, rx)) = data.apart()
            && let Some(ran) = run_short(block, program, *plan, len, tx, rx)
        {
            return ran;
        }
    }
    run_any(block, program, message)
}

/// The body of [`Controller::run_exchange`](super::Controller::run_exchange).
#[inline(always)]
pub(super) fn run_exchange<B: Short + Sleeps>(
    block: &mut B,
    program: &Program,
    plan: &Plan,
    tx: &[u8],
    rx: &mut [u8],
) -> Result<usize, Unfinished> {
    match run_short(block, program, *plan, tx.len(), Some(tx), Some(&mut *rx)) {
        Some(ran) => ran,
        None => run_any_exchange(block, program, plan, tx, rx),
    }
}

/// Runs any planned message: the body of [`Controller::run`](super::Controller::run) of a block without
/// a shorter way.
#[inline(never)]
pub(super) fn run_any<B: Sleeps>(
    block: &mut B,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    if B::CAN_SLEEP && waits(message) {
        return run_blocking(block, program, message);
    }
    block.look_ahead(program, message);
    run_message(block, program, message)
}

/// Any planned exchange. Apart, so that no [`Transfer`] lies in the memory of a short one's caller.
#[inline(never)]
fn run_any_exchange<B: Sleeps>(
    block: &mut B,
    program: &Program,
    plan: &Plan,
    tx: &[u8],
    rx: &mut [u8],
) -> Result<usize, Unfinished> {
    run_any(block, program, &mut [Transfer::of_plan(tx, rx, *plan)])
}

/// The body of [`Controller::start`](super::Controller::start).
pub(super) fn start<B: Sleeps + Stepped>(
    block: &mut B,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Poll<Result<usize, Unfinished>> {
    if !waits(message) {
        return Poll::Ready(block.run(program, message));
    }
    block.look_ahead(program, message);
    start_message(block, program, message)
}
