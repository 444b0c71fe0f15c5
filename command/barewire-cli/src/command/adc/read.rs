//! `barewire adc read`: each input once.

use std::fmt::Write as _;

use barewire::chip::mcp3008::Mcp3008;
use serde::Serialize;

use super::{AdcArgs, Which, name};
use crate::shared::failure::Failure;
use crate::shared::session::{self, Figures};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    adc: AdcArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    readings: Vec<Reading>,
}

#[derive(Serialize)]
struct Reading {
    input: String,
    code: u16,
    volts: f64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let adc = &args.adc;
    let inputs = adc.inputs()?;
    // Checked before a bus is opened, so that a clock that the chip does not take is refused early.
    adc.settings()?;
    session::run(&adc.request()?, |session| {
        let (device, which) = adc.open(session)?;
        let mut converter = Mcp3008::new(device, adc.chip);
        let mut codes = vec![0; inputs.len()];
        session.begin_figures();
        converter.scan(&inputs, &mut codes)?;
        let reading = |(&input, &code)| Reading {
            input: name(input),
            code,
            volts: adc.volts(f64::from(code)),
        };
        Ok(Report { which, readings: inputs.iter().zip(&codes).map(reading).collect() })
    })
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let mut text = String::from("input   code     volts\n");
        for Reading { input, code, volts } in &self.readings {
            let _ = writeln!(text, "{input:<6} {code:>5} {volts:>9.4}");
        }
        text
    }
}
