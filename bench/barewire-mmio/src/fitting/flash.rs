//! A NOR flash, erased.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::model::nor::{Nor, Part};

use super::{FitError, FittedChip};

pub(super) fn fit(board: &Board, cs: u8, part: Option<&str>) -> Result<FittedChip, FitError> {
    let part = match part {
        Some(name) => {
            Part::named(name).ok_or_else(|| FitError(format!("no part is called {name:?}")))?
        }
        None => (board.spec().flash().part)(),
    };
    let (name, size) = (part.name, part.size);
    let nor = Nor::new(part, vec![0xff; size]).map_err(|error| FitError(error.to_string()))?;
    let nor = Rc::new(RefCell::new(nor));
    board.attach(cs, nor.clone());
    let tell = move || {
        let nor = nor.borrow();
        let written = nor.content().iter().filter(|&&byte| byte != 0xff).count();
        vec![format!("flash {name}: {size} bytes, {written} not erased")]
    };
    let mut fitted = FittedChip::new(cs, "flash", "jedec,spi-nor", 20_000_000);
    fitted.tell = Box::new(tell);
    Ok(fitted)
}
