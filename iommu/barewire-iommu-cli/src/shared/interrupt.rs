//! Ctrl-C: the first asks, and the verb stops after its current piece; the second exits.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::shared::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Takes SIGINT, SIGTERM and SIGHUP over. Before this, they end the program at once.
pub(crate) fn install() -> Result<(), Failure> {
    let handler = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(Failure::Interrupted.code().into());
        }
    };
    ctrlc::set_handler(handler)
        .map_err(|error| Failure::Failed(format!("cannot listen for Ctrl-C: {error}")))
}

/// The error of a loop that was asked to stop.
pub(crate) fn check() -> Result<(), Failure> {
    if ASKED.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}
