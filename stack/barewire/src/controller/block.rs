//! The common bodies of [`Controller`]'s `run`, `run_exchange` and `start` for register blocks.
//!
//! A message takes the first of these paths that it can:
//!
//! 1. A single transfer that one load of the FIFO holds takes the block's shorter path ([`Short`]), inlined in the
//!    caller as far as the block wants. So does each transfer of a message of a few under one chip select.
//! 2. A message with a transfer that waits by interrupt puts its caller to sleep
//!    ([`run_blocking`]).
//! 3. Any other message is polled ([`run_message`]).

use core::task::Poll;

use super::waits::{Sleeps, run_blocking, waits};
use super::wire::{Short, run_all_short, run_short};
use super::{Plan, Program, Stepped, Unfinished, run_message, start_message};
use crate::spi::Transfer;

/// The body of [`Controller::run`](super::Controller::run).
// Inlined always: the caller knows what was prepared.
#[inline(always)]
pub(super) fn run<B: Short + Sleeps>(
    block: &mut B,
    program: &Program,
    message: &mut [Transfer<'_>],
) -> Result<usize, Unfinished> {
    if let Some(ran) = run_all_short(block, program, message) {
        return ran;
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

/// Runs any planned message.
#[inline(never)]
fn run_any<B: Sleeps>(
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

/// Runs any planned exchange. Not inlined, so that the caller of a short one has no [`Transfer`] in
/// memory.
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
