//! A touch controller and a pen, which draws the same stroke every two seconds of the board's time.
//!
//! The stroke begins at 1 s, lasts 0.5 s, and goes from a quarter of the panel to three quarters along both
//! axes.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::model::tsc2046::{Stroke, TouchOptions, Tsc2046};

use super::{FitError, FittedChip, pads};

const PS_PER_MS: u64 = 1_000_000_000;
const STROKES: u64 = 500;

pub(super) fn fit(board: &Board, cs: u8) -> Result<FittedChip, FitError> {
    let chip = Tsc2046::new(TouchOptions::default());
    for number in 0..STROKES {
        let down_ps = (1_000 + 2_000 * number) * PS_PER_MS;
        chip.add_stroke(Stroke {
            down_ps,
            up_ps: down_ps + 500 * PS_PER_MS,
            from: [16_384; 2],
            to: [49_152; 2],
            ohms: 400,
        });
    }
    let source = chip.pen_irq();
    let pad = pads(board).find(|pad| board.connect_output(*pad, source.clone(), false).is_ok());
    let pad = pad.ok_or_else(|| FitError("the board has no free pad for PENIRQ".into()))?;
    let mut fitted = FittedChip::new(cs, "touch", "ti,ads7846", 1_000_000);
    fitted.line = Some(board.line_of(source));
    fitted.pad = Some((pad, "pendown-gpio"));
    fitted.properties.extend([
        "vcc-supply = <&touch_vcc>;".into(),
        "ti,x-max = /bits/ 16 <4095>;".into(),
        "ti,y-max = /bits/ 16 <4095>;".into(),
        "ti,pressure-max = /bits/ 16 <65535>;".into(),
        "ti,x-plate-ohms = /bits/ 16 <500>;".into(),
        "ti,settle-delay-usec = /bits/ 16 <40>;".into(),
        // Longer than PENIRQ stays low behind the pen: beside another chip's traffic the driver would report a
        // measurement without a pen.
        "ti,penirq-recheck-delay-usecs = /bits/ 16 <300>;".into(),
    ]);
    fitted.beside.push(
        "touch_vcc: touch-vcc { compatible = \"regulator-fixed\"; regulator-name = \"touch-vcc\"; };"
            .into(),
    );
    let chip = Rc::new(RefCell::new(chip));
    board.attach(cs, chip.clone());
    fitted.tell =
        Box::new(move || vec![format!("touch: {} conversions", chip.borrow().conversions())]);
    Ok(fitted)
}
