//! One of Microchip's converters at 3.3 V, its inputs at fixed voltages: channel `n` of `N` has
//! `(2n + 1) / 2N` of the reference, so each code is far from its neighbours'.

use std::cell::RefCell;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::model::adc::{Adc, AdcPart};
use barewire_sim::model::signal::Signal;

use super::{FitError, FittedChip};

const SUPPLY_MV: u32 = 3_300;

pub(super) fn fit(board: &Board, cs: u8, part: Option<&str>) -> Result<FittedChip, FitError> {
    let name = part.unwrap_or("mcp3008");
    let found = AdcPart::ALL.into_iter().find(|part| part.name().eq_ignore_ascii_case(name));
    let part = found.ok_or_else(|| {
        let names: Vec<&str> = AdcPart::ALL.iter().map(|part| part.name()).collect();
        FitError(format!(
            "no converter is called {name:?}; there are {}",
            names.join(", ").to_lowercase()
        ))
    })?;
    let mut adc =
        Adc::new(part, SUPPLY_MV, SUPPLY_MV).map_err(|error| FitError(error.to_string()))?;
    let channels = i64::from(part.channels());
    for channel in 0..part.channels() {
        let level_uv = i64::from(SUPPLY_MV) * 1_000 * (2 * i64::from(channel) + 1) / (2 * channels);
        adc.set_input(channel, Signal::Constant { level_uv });
    }
    let adc = Rc::new(RefCell::new(adc));
    board.attach(cs, adc.clone());
    let compatible = match part {
        AdcPart::Mcp3002 => "microchip,mcp3002",
        AdcPart::Mcp3004 => "microchip,mcp3004",
        AdcPart::Mcp3008 => "microchip,mcp3008",
        AdcPart::Mcp3204 => "microchip,mcp3204",
        AdcPart::Mcp3208 => "microchip,mcp3208",
    };
    let mut fitted = FittedChip::new(cs, "adc", compatible, 1_000_000);
    fitted.properties.push("vref-supply = <&adc_vref>;".into());
    fitted.beside.push(format!(
        "adc_vref: adc-vref {{ compatible = \"regulator-fixed\"; regulator-name = \"adc-vref\"; \
         regulator-min-microvolt = <{0}>; regulator-max-microvolt = <{0}>; }};",
        SUPPLY_MV * 1_000
    ));
    fitted.tell =
        Box::new(move || vec![format!("adc {part}: {} conversions", adc.borrow().conversions())]);
    Ok(fitted)
}
