//! The shared loop in steps: a message is left in flight and continued later.
//!
//! *Read first*: [`run_message`](super::run_message); this keeps its order of events. Between two
//! steps the chip stays selected and [`Progress`] remembers the position. Any other exit from a
//! step, including a panic, deselects the chip and makes the block recover.
//!
//! # Ordering
//! 1. Transfers that are planned to be polled, and delays, are completed within the step that
//!    reaches them.
//! 2. A transfer that is planned to wait by interrupt is started, and the step ends.
//! 3. The next step continues that transfer and, when it is over, the rest of the message.

use core::task::Poll;

use super::wire::SelectedChip;
use super::{Plan, Preset, Stopped, Unfinished, Wire};
use crate::spi::{Data, Transfer};

/// A wire whose transfers can be left in flight and continued.
pub trait Stepped: Wire {
    /// The position in the message between two steps.
    fn progress(&mut self) -> &mut Progress;

    /// Starts a transfer of at least one byte. The block's interrupt stays masked.
    fn begin(&mut self, preset: &Preset, plan: &Plan, data: &mut Data<'_>);

    /// Continues the transfer that was started, without waiting for the wire.
    ///
    /// # Errors
    /// [`Stopped`]; the loop then calls [`Wire::recover`].
    fn advance(
        &mut self,
        preset: &Preset,
        plan: &Plan,
        data: &mut Data<'_>,
    ) -> Poll<Result<(), Stopped>>;
}

/// The position in a message between two steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// The transfer on the wire.
    transfer_index: usize,
    /// Bytes of the transfers before it.
    actual_length: usize,
}

/// Starts a planned message on `wire`.
///
/// # Errors
/// As [`run_message`](super::run_message).
pub fn start_message<W: Stepped + ?Sized>(
    wire: &mut W,
    preset: &Preset,
    message: &mut [Transfer<'_>],
) -> Poll<Result<usize, Unfinished>> {
    go_on(SelectedChip::new(wire, preset), message, Progress::default())
}

/// Continues the message that [`start_message`] started with these arguments.
///
/// # Errors
/// As [`run_message`](super::run_message).
///
/// A message that is over has ended: the chip is deselected again.
pub fn resume_message<W: Stepped + ?Sized>(
    wire: &mut W,
    preset: &Preset,
    message: &mut [Transfer<'_>],
) -> Poll<Result<usize, Unfinished>> {
    let mut progress = *wire.progress();
    let mut selected = SelectedChip::again(wire, preset);
    let Some(transfer) = message.get_mut(progress.transfer_index) else {
        return go_on(selected, message, progress);
    };
    match selected.wire.advance(preset, &transfer.plan, &mut transfer.data) {
        Poll::Pending => {
            selected.keep();
            return Poll::Pending;
        }
        Poll::Ready(Err(stopped)) => {
            return Poll::Ready(Err(Unfinished::stopped(progress.transfer_index, stopped)));
        }
        Poll::Ready(Ok(())) => finished(&mut selected, transfer, &mut progress),
    }
    go_on(selected, message, progress)
}

fn finished<W: Stepped + ?Sized>(
    selected: &mut SelectedChip<'_, W>,
    transfer: &Transfer<'_>,
    progress: &mut Progress,
) {
    progress.actual_length += transfer.data.len();
    progress.transfer_index += 1;
    selected.after(transfer);
}

fn go_on<W: Stepped + ?Sized>(
    mut selected: SelectedChip<'_, W>,
    message: &mut [Transfer<'_>],
    mut progress: Progress,
) -> Poll<Result<usize, Unfinished>> {
    let preset = selected.preset;
    while let Some(transfer) = message.get_mut(progress.transfer_index) {
        let (plan, data) = (&transfer.plan, &mut transfer.data);
        if plan.by_interrupt() {
            *selected.wire.progress() = progress;
            selected.wire.begin(preset, plan, data);
            selected.keep();
            return Poll::Pending;
        }
        if let Err(stopped) = selected.wire.exchange(preset, plan, data) {
            return Poll::Ready(Err(Unfinished::stopped(progress.transfer_index, stopped)));
        }
        finished(&mut selected, transfer, &mut progress);
    }
    selected.unsettled = false;
    drop(selected);
    Poll::Ready(Ok(progress.actual_length))
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::vec::Vec;

    use super::*;
    use crate::controller::Controller;
    use crate::controller::null::Null;
    use crate::spi::Settings;

    /// The steps of a transfer: `advance` returns them in turn.
    type Script<'s> = &'s [Poll<Result<(), Stopped>>];

    struct Logged<'s> {
        script: Script<'s>,
        log: Vec<&'static str>,
        /// Panics in the call of this name.
        fatal: &'static str,
        progress: Progress,
    }

    impl<'s> Logged<'s> {
        fn new(script: Script<'s>, fatal: &'static str) -> Self {
            Self { script, log: Vec::new(), fatal, progress: Progress::default() }
        }

        fn note(&mut self, what: &'static str) {
            self.log.push(what);
            assert_ne!(what, self.fatal);
        }
    }

    impl Wire for Logged<'_> {
        fn select(&mut self, _: &Preset) {
            self.note("select");
        }
        fn deselect(&mut self, _: &Preset) {
            self.note("deselect");
        }
        fn exchange(&mut self, _: &Preset, _: &Plan, _: &mut Data<'_>) -> Result<(), Stopped> {
            self.note("exchange");
            Ok(())
        }
        fn recover(&mut self) {
            self.note("recover");
        }
        fn wait_ticks(&mut self, _: u32) {
            self.note("wait");
        }
    }

    impl Stepped for Logged<'_> {
        fn progress(&mut self) -> &mut Progress {
            &mut self.progress
        }
        fn begin(&mut self, _: &Preset, _: &Plan, _: &mut Data<'_>) {
            self.note("begin");
        }
        fn advance(&mut self, _: &Preset, _: &Plan, _: &mut Data<'_>) -> Poll<Result<(), Stopped>> {
            self.note("advance");
            let (first, rest) = self.script.split_first().expect("not over");
            self.script = rest;
            *first
        }
    }

    /// Runs write(1), a long cs_change write(3), a delayed write(1), a long write(2) in steps.
    fn run(wire: &mut Logged<'_>) -> Poll<Result<usize, Unfinished>> {
        let (preset, _) = Null::new().configure(&Settings::new(0, 1)).expect("opens");
        let mut message = [
            Transfer::write(&[1]),
            Transfer::write(&[1, 2, 3]).with_cs_change(),
            Transfer::write(&[1]).with_delay_ns(1),
            Transfer::write(&[1, 2]),
        ];
        Null::new().plan(&preset, &mut message).expect("a good message");
        for index in [1, 3] {
            message[index].plan = message[index].plan.with_interrupt(true);
        }
        let mut polled = start_message(wire, &preset, &mut message);
        while polled.is_pending() && !wire.script.is_empty() {
            wire.log.push("-");
            polled = resume_message(wire, &preset, &mut message);
        }
        polled
    }

    const DONE: Poll<Result<(), Stopped>> = Poll::Ready(Ok(()));

    #[test]
    fn steps_keep_the_order_of_the_loop() {
        let script = [Poll::Pending, DONE, DONE];
        let mut wire = Logged::new(&script, "");
        assert_eq!(run(&mut wire), Poll::Ready(Ok(7)));
        let log = "select exchange begin - advance - advance deselect select exchange wait begin \
            - advance deselect";
        assert_eq!(wire.log, log.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_message_left_stays_selected() {
        let mut wire = Logged::new(&[Poll::Pending], "");
        assert_eq!(run(&mut wire), Poll::Pending);
        assert!(!wire.log.contains(&"deselect"));
    }

    #[test]
    fn an_error_releases_cs_and_says_where() {
        let stopped = Stopped::TimedOut { timeout_us: 5 };
        let script = [DONE, Poll::Ready(Err(stopped))];
        let mut wire = Logged::new(&script, "");
        assert_eq!(run(&mut wire), Poll::Ready(Err(Unfinished::stopped(3, stopped))));
        assert_eq!(wire.log[wire.log.len() - 3..], ["advance", "deselect", "recover"]);
    }

    #[test]
    fn a_panic_in_any_step_releases_cs() {
        for fatal in ["exchange", "begin", "advance", "wait"] {
            let mut wire = Logged::new(&[DONE, DONE], fatal);
            let died = catch_unwind(AssertUnwindSafe(|| run(&mut wire)));
            assert!(died.is_err(), "{fatal}");
            assert_eq!(wire.log[wire.log.len() - 3..], [fatal, "deselect", "recover"]);
        }
    }
}
