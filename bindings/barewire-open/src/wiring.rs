//! A simulated board's wiring where its name's options change it: selects, a jumper, wires between pins.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::board::LineError;
use barewire_sim::model::jumper::Jumper;
use barewire_sim::{Board, Pad};

use crate::OpenError;
use crate::name::WiringOptions;

/// Wires the board, whose chips are on it already.
pub(crate) fn wire(board: &Board, options: &WiringOptions) -> Result<(), OpenError> {
    let WiringOptions { selects, no_cs, jumper, wires } = options;
    if let Some(cs) = *jumper {
        if !board.attach(cs, Rc::new(RefCell::new(Jumper))) {
            return Err(refused("jumper", board, &LineError::NoChipSelect(cs)));
        }
        board.connect_jumper();
    }
    let lines = board.spec().cs.len();
    if let Some((cs, _)) =
        selects.iter().find(|(cs, _)| usize::from(*cs) < lines && !board.has_chip(*cs))
    {
        return Err(OpenError::Failed(format!(
            "option select: chip select {cs} of sim:{} has no chip to be selected: `barewire list` says \
             where the chips are",
            board.spec().name
        )));
    }
    if *no_cs || !selects.is_empty() {
        let pads: Vec<_> = selects.iter().map(|&(cs, bit)| (cs, pad(bit))).collect();
        let option = if selects.is_empty() { "no-cs" } else { "select" };
        board.give_selects(&pads, *no_cs).map_err(|error| refused(option, board, &error))?;
    }
    for &(from, to) in wires {
        let wired = board.connect_pads(pad(from), pad(to));
        wired.map_err(|error| refused("wire", board, &error))?;
    }
    Ok(())
}

fn pad(bit: u8) -> Pad {
    Pad { block: 0, bit }
}

/// The error in a user's words, with the remedy.
fn refused(option: &str, board: &Board, error: &LineError) -> OpenError {
    let name = board.spec().name;
    let why = match *error {
        LineError::NoPad(pad) => match board.pads_of(pad.block) {
            Some(pins @ 1..) => {
                format!("sim:{name} has no pin {}: its pins are 0 to {}", pad.bit, pins.min(32) - 1)
            }
            _ => format!("sim:{name} has no GPIO pins"),
        },
        LineError::ChipSelect(pad) => match board.line_at(pad) {
            Some(cs) => format!(
                "pin {} is the controller's line of chip select {cs}: use a free pin, or give the \
                 controller no lines (no-cs)",
                pad.bit
            ),
            None => format!("pin {} selects a chip already: use a free pin", pad.bit),
        },
        LineError::Driven(pad) => {
            format!("pin {} is wired to something else already: use a free pin", pad.bit)
        }
        LineError::NoPadOf(cs) => format!("{error}: give its chip one, select={cs}:PIN"),
        LineError::NoChipSelect(cs) => format!(
            "sim:{name} has no chip select {cs}: it has 0 to {}",
            board.spec().cs.len().saturating_sub(1)
        ),
        _ => error.to_string(),
    };
    OpenError::Failed(format!("option {option}: {why}"))
}
