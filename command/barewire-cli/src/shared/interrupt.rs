//! Ctrl-C: the first asks, and the command stops after its current piece; the second exits.

use std::ops::ControlFlow;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::shared::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Takes SIGINT, SIGTERM and SIGHUP over. Before this, they end the program at once.
pub(crate) fn install() -> Result<(), Failure> {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::Failed(format!("cannot listen for Ctrl-C: {error}")))
}

/// Whether the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// Begins anew: what was asked is done, and the command has more to do, which another Ctrl-C stops.
pub(crate) fn acknowledge() {
    ASKED.store(false, Ordering::Relaxed);
}

/// The answer of an observer: stop after Ctrl-C.
pub(crate) fn flow() -> ControlFlow<()> {
    if asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The error of a loop that was asked to stop.
pub(crate) fn check() -> Result<(), Failure> {
    if asked() { Err(Failure::Interrupted("stopped as asked".into())) } else { Ok(()) }
}
