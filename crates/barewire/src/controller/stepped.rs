//! The shared loop in steps: a message that is left on the wire and gone on with.
//!
//! *Read first*: [`run_message`](super::run_message), whose order of events this keeps. Between two
//! steps the chip stays selected and [`Progress`] remembers the place; every other way out of a
//! step, a panic included, deselects the chip and has the block recover.
//!
//! # Ordering
//! 1. Transfers planned to be polled, and delays, are done within the step that reaches them.
//! 2. A transfer planned to wait by interrupt is begun, and the step ends.
//! 3. The next step goes on with it, and with what follows once it is over.

use core::task::Poll;

use super::wire::Selected;
use super::{Plan, Program, TimedOut, Unfinished, Wire};
use crate::spi::{Data, Transfer};

/// A wire whose transfers can be left and gone on with.
pub trait Stepped: Wire {
    /// Begins a transfer of at least one byte. The block's interrupt stays masked.
    fn begin(&mut self, program: &Program, plan: &Plan, data: &mut Data<'_>);

    /// Goes on with the transfer begun, without waiting for the wire.
    ///
    /// # Errors
    /// [`TimedOut`]; the loop then calls [`Wire::recover`].
    fn advance(
        &mut self,
        program: &Program,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), TimedOut>>;
}

/// How far a message has come between two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The transfer on the wire.
    transfer_index: usize,
    /// Bytes of those before it.
    actual_length: usize,
}

/// Begins a planned message on `wire`; `progress` is overwritten.
///
/// # Errors
/// As [`run_message`](super::run_message).
pub fn start_message<W: Stepped + ?Sized>(
    wire: &mut W,
    program: &Program,
    message: &mut [Transfer<'_>],
    progress: &mut Progress,
) -> Poll<Result<usize, Unfinished>> {
    *progress = Progress::default();
    go_on(Selected::new(wire, program), message, progress)
}

/// Goes on with the message that [`start_message`] began with the same arguments.
///
/// # Errors
/// As [`run_message`](super::run_message).
///
/// # Panics
/// If the message is not the one begun, or over.
pub fn resume_message<W: Stepped + ?Sized>(
    wire: &mut W,
    program: &Program,
    message: &mut [Transfer<'_>],
    progress: &mut Progress,
) -> Poll<Result<usize, Unfinished>> {
    let mut selected = Selected::again(wire, program);
    let transfer = &mut message[progress.transfer_index];
    match selected.wire.advance(program, &transfer.plan, &mut transfer.data) {
        Poll::Pending => {
            selected.keep();
            return Poll::Pending;
        }
        Poll::Ready(Err(timed_out)) => {
            return Poll::Ready(Err(Unfinished::timed_out(progress.transfer_index, timed_out)));
        }
        Poll::Ready(Ok(())) => finished(&mut selected, transfer, progress),
    }
    go_on(selected, message, progress)
}

fn finished<W: Stepped + ?Sized>(
    selected: &mut Selected<'_, W>,
    transfer: &Transfer<'_>,
    progress: &mut Progress,
) {
    progress.actual_length += transfer.data.len();
    progress.transfer_index += 1;
    selected.after(transfer);
}

fn go_on<W: Stepped + ?Sized>(
    mut selected: Selected<'_, W>,
    message: &mut [Transfer<'_>],
    progress: &mut Progress,
) -> Poll<Result<usize, Unfinished>> {
    let program = selected.program;
    while let Some(transfer) = message.get_mut(progress.transfer_index) {
        let (plan, data) = (&transfer.plan, &mut transfer.data);
        if plan.by_interrupt() {
            selected.wire.begin(program, plan, data);
            selected.keep();
            return Poll::Pending;
        }
        if let Err(timed_out) = selected.wire.exchange(program, plan, data) {
            return Poll::Ready(Err(Unfinished::timed_out(progress.transfer_index, timed_out)));
        }
        finished(&mut selected, transfer, progress);
    }
    selected.unsettled = false;
    drop(selected);
    Poll::Ready(Ok(progress.actual_length))
}
