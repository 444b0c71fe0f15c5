//! Prints a board's messages after a command, on stderr.

use std::time::Duration;

use barewire_open::SimBoard;

use super::{EndState, Figures, Session, TellArgs};
use crate::shared::failure::Failure;
use crate::shared::output::note;

/// Violations and complaints shown; the rest are counted.
const SHOWN: usize = 5;
/// Status register 1: an operation is in progress.
const BUSY: u8 = 1;

/// The failure of a wire whose rules were broken.
pub(super) fn broken_rules(total: u64) -> Failure {
    let times = if total == 1 { "once" } else { &format!("{total} times") };
    Failure::Failed(format!("the wire's rules were broken {times}: the data is not to be trusted"))
}

/// Prints the board's messages. Fails if a rule was broken, unless a served program broke it.
pub(super) fn simulated(
    session: &Session,
    tell: &TellArgs,
    settled: EndState,
    figures: Option<&Figures>,
    took: Duration,
    done: bool,
) -> Result<(), Failure> {
    let (Some(simulated), Some(figures)) = (session.open.board(), figures) else {
        return Ok(());
    };
    if !tell.quiet && figures.virtual_ns > 0 {
        let took = match took.as_secs_f64() {
            ..0.1 => String::new(),
            seconds => format!(" (took {seconds:.1} s here)"),
        };
        note!("{}{took}", figures.summary());
    }
    let (violations, total) = simulated.harms();
    if total > 0 {
        // Of a command that failed it is likely a consequence, and its error says more.
        let what = if done { "RULES OF THE WIRE BROKEN" } else { "rules of the wire broken" };
        note!("{what}: {total}");
        for violation in violations.iter().take(SHOWN) {
            note!("  at {violation}");
        }
        if total > SHOWN as u64 {
            note!("  … and {} more", total - SHOWN as u64);
        }
    }
    let left = left_open(simulated).filter(|_| settled == EndState::Promised);
    if let Some(left) = left {
        note!("THE CHIP WAS LEFT {left}");
    }
    match left {
        Some(left) => Err(Failure::Failed(format!("the chip was left {left}"))),
        None if total > 0 && settled != EndState::AsServed => Err(broken_rules(total)),
        None => Ok(()),
    }
}

/// In what state the flash chip is left, if that is not unselected and write-disabled.
fn left_open(board: &SimBoard) -> Option<&'static str> {
    let flash = board.flash.borrow();
    // A busy chip keeps its latch until it is done, and hears no command until then.
    if flash.selected() {
        Some("SELECTED")
    } else if flash.write_enabled() && flash.status() & BUSY == 0 {
        Some("WRITE-ENABLED")
    } else {
        None
    }
}

/// Says what the models of an emulated board complained about, if it is one. Fails if the command promises to
/// keep to the chip's rules; the user's own bytes may break them.
pub(super) fn emulated(
    tell: &TellArgs,
    settled: EndState,
    misuse: Option<&[String]>,
) -> Result<(), Failure> {
    let Some(misuse) = misuse else { return Ok(()) };
    if !tell.quiet {
        note!("run on QEMU's own model of the board: registers and data are proved, not timing");
    }
    if misuse.is_empty() {
        return Ok(());
    }
    note!("QEMU'S MODELS COMPLAIN: {}", misuse.len());
    for complaint in misuse.iter().take(SHOWN) {
        note!("  {complaint}");
    }
    if misuse.len() > SHOWN {
        note!("  … and {} more", misuse.len() - SHOWN);
    }
    match settled {
        EndState::Promised => Err(Failure::Failed(format!(
            "QEMU's models complained ({}): registers or chip were used against their rules",
            misuse.len()
        ))),
        EndState::AsSent | EndState::AsServed => Ok(()),
    }
}
