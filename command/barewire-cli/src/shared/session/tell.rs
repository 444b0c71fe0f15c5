//! Prints a board's messages after a command, on stderr.

use std::time::Duration;

use barewire_open::SimBoard;
use barewire_sim::BrokenRule;

use super::{EndState, Figures, Session, TellArgs};
use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::text::figure;

/// Complaints shown; the rest are counted.
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
    let total = simulated.board.harms_total();
    if total > 0 {
        // Of a command that failed it is likely a consequence, and its error says more.
        let what = if done { "RULES OF THE WIRE BROKEN" } else { "rules of the wire broken" };
        note!("{what}: {total}");
        broken_by_chip(simulated);
        if settled == EndState::AsServed && !tell.quiet {
            note_other_chips(session, simulated);
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

/// Prints each rule that was broken, once for a chip.
fn broken_by_chip(simulated: &SimBoard) {
    for BrokenRule { first, times } in simulated.harmful_rules() {
        match times {
            1 => note!("  at {first}"),
            times => note!("  at {first}, and {} times more", figure::grouped(times - 1)),
        }
    }
}

/// Says how another chip takes the place of one whose rules were broken: a program for a display that is mapped to a
/// converter's chip select breaks the converter's rules.
fn note_other_chips(session: &Session, simulated: &SimBoard) {
    let mut chip_selects: Vec<u8> =
        simulated.harmful_rules().iter().filter_map(|one| one.first.cs).collect();
    chip_selects.sort_unstable();
    chip_selects.dedup();
    let flash_cs = simulated.board.spec().first_flash().map(|flash| flash.cs);
    for cs in chip_selects {
        let Some(chip) = simulated.board.chip_name(cs) else { continue };
        let instead = match Some(cs) == flash_cs {
            true => {
                "flash-part=PART puts another flash there (`barewire list --flash-parts`)".into()
            }
            false => format!("oled={cs}:DC:RES puts an SSD1306 display there"),
        };
        let spec = simulated.board.spec();
        let instead = match spec.is_shipped() {
            true => instead,
            false => format!("{} says which chip is there", spec.name),
        };
        note!(
            "  cs{cs} of {} has the {chip}. If the program is for another chip, change the map: {instead}",
            session.place.bus
        );
    }
}

/// In what state the flash chip is left, if that is not unselected and write-disabled.
fn left_open(board: &SimBoard) -> Option<&'static str> {
    let flash = board.flash()?.borrow();
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
