//! `barewire regs read`: registers, with their fields.

use barewire::regmap::{Access, RegmapError};
use serde::Serialize;

use super::value::Value;
use super::{RegsArgs, Which, name};
use crate::shared::failure::Failure;
use crate::shared::session::{self, Figures};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    regs: RegsArgs,
    /// Registers: a name (C1CON; of an array, one as C1FIFOCON2, or all as C1FIFOCON), an address
    /// (0xe04), or a field of either (C1CON.REQOP)
    #[arg(required = true, value_name = "REGISTER")]
    registers: Vec<String>,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    registers: Vec<Value>,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let map = args.regs.chip.map;
    let mut wanted = Vec::new();
    for text in &args.registers {
        wanted.extend(name::parse(map, text).map_err(Failure::Usage)?);
    }
    for named in &wanted {
        if named.at.register().access() == Access::WriteOnly {
            let error = RegmapError::NotReadable { address: named.at.address() };
            return Err(Failure::Usage(format!("{}: {error}", named.at)));
        }
    }
    let target = args.regs.target()?;
    session::run(&target.request(), |session| {
        let (mut registers, which) = target.open(session)?;
        let mut values = Vec::new();
        for named in &wanted {
            let value = registers.read(named.at)?;
            values.push(Value::new(map.format(), named.at, value, named.field));
        }
        Ok(Report { which, registers: values })
    })
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        self.registers.iter().map(Value::text).collect()
    }
}
