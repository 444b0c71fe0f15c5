//! `barewire regs write`: whole registers or fields of them, in the order given, and read back.

use std::fmt::Write as _;

use barewire::regmap::{Access, Field, Map, Register, RegmapError};
use serde::Serialize;

use super::name::{self, NamedRegister};
use super::registers::Registers;
use super::value::{hex, small};
use super::{RegsArgs, Which};
use crate::shared::failure::Failure;
use crate::shared::session::{self, Figures};
use crate::shared::text::number;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    regs: RegsArgs,
    /// Do not read back
    #[arg(long)]
    no_verify: bool,
    /// A register and its value (OSC=0x460), or a field and its value (C1CON.REQOP=4), whose register
    /// is read, changed and written
    #[arg(required = true, value_name = "REGISTER=VALUE")]
    assignments: Vec<String>,
}

/// A value for a register or a field, which fits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Assignment {
    to: NamedRegister,
    value: u32,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    writes: Vec<Write>,
    /// Whether all values read back are as written, except for bits that the chip changes itself.
    verified: Option<bool>,
    #[serde(skip)]
    hint: &'static str,
}

#[derive(Serialize)]
struct Write {
    /// The value as the user gave it.
    to: String,
    name: String,
    address: u32,
    /// The register's value before, if a field was changed.
    before: Option<String>,
    /// Null if it was so already.
    written: Option<String>,
    /// Null if it was not read back.
    read: Option<String>,
    differences: Vec<Difference>,
}

/// A field that reads otherwise than it was written.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    /// Null for bits of no field.
    field: Option<&'static str>,
    written: u32,
    read: u32,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Why {
    /// It cannot be written.
    ReadOnly,
    /// The chip sets or clears it.
    Volatile,
    /// Bits without a name.
    NotImplemented,
    /// The difference has none of these causes.
    Unexpected,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let map = args.regs.chip.map;
    let assignments: Vec<Assignment> = args
        .assignments
        .iter()
        .map(|text| parse(map, text).map_err(|error| Failure::Usage(format!("{text}: {error}"))))
        .collect::<Result<_, _>>()?;
    let target = args.regs.target()?;
    session::run(&target.request(), |session| {
        let (mut registers, which) = target.open(session)?;
        let mut writes = Vec::new();
        for (assignment, text) in assignments.iter().zip(&args.assignments) {
            writes.push(assignment.write(&mut *registers, map, text, !args.no_verify)?);
        }
        let unexpected = |write: &Write| write.unexpected().next().is_some();
        let verified = (!args.no_verify).then(|| !writes.iter().any(unexpected));
        Ok(Report { which, writes, verified, hint: target.chip.hint })
    })
}

/// Refuses values that are certainly wrong.
fn parse(map: &'static Map, text: &str) -> Result<Assignment, String> {
    let Some((to, value)) = text.split_once('=') else {
        return Err("write REGISTER=VALUE or REGISTER.FIELD=VALUE".into());
    };
    let to = match name::parse(map, to.trim())?[..] {
        [one] => one,
        [first, ..] => {
            return Err(format!("these are several registers: name one, as {}", first.at));
        }
        [] => unreachable!("a name is of a register"),
    };
    let (register, address) = (to.at.register(), to.at.address());
    let value = number::bytes(value.trim())?;
    if register.access() == Access::ReadOnly {
        return Err(RegmapError::NotWritable { address }.to_string());
    }
    let (what, bits) = match to.field {
        None => (to.at.to_string(), map.format().val_bits),
        Some(field) if field.is_read_only() => {
            return Err(format!(
                "{}.{} is read only: writing does not move it",
                to.at,
                field.name()
            ));
        }
        Some(field) if register.access() == Access::WriteOnly => {
            let name = field.name();
            return Err(format!("{} cannot be read, so {name} not be changed alone", to.at));
        }
        Some(field) => (format!("{}.{}", to.at, field.name()), field.width()),
    };
    match u32::try_from(value).ok().filter(|&value| value <= u32::MAX >> (32 - bits)) {
        Some(value) => Ok(Assignment { to, value }),
        None => Err(format!("{value:#x} does not fit {what}: it has {bits} bits")),
    }
}

impl Assignment {
    fn write(
        &self,
        registers: &mut dyn Registers,
        map: &Map,
        text: &str,
        verify: bool,
    ) -> Result<Write, Failure> {
        let Self { to: NamedRegister { at, field }, value } = *self;
        let before = field.map(|_| registers.read(at)).transpose()?;
        let written = match (field, before) {
            (Some(field), Some(before)) => field.put(before, value),
            _ => value,
        };
        // A bit that the chip clears itself is written again, even if it reads as asked.
        let same = before == Some(written) && field.is_some_and(|field| !field.is_volatile());
        if !same {
            registers.write(at, written)?;
        }
        let verify = verify && at.register().access() != Access::WriteOnly;
        let read = verify.then(|| registers.read(at)).transpose()?;
        let hex = |value: u32| hex(map.format(), value);
        Ok(Write {
            to: text.split('=').next().unwrap_or_default().trim().into(),
            name: at.to_string(),
            address: at.address(),
            before: before.map(hex),
            written: (!same).then(|| hex(written)),
            read: read.map(hex),
            differences: read.map_or(vec![], |read| differences(at.register(), written, read)),
        })
    }
}

/// Field by field, from the highest.
fn differences(register: &Register, written: u32, read: u32) -> Vec<Difference> {
    let differs = |field: &&Field| field.get(written) != field.get(read);
    let fields = register.all_fields();
    let whole = fields.is_empty();
    let mut found: Vec<_> = fields
        .iter()
        .rev()
        .filter(differs)
        .map(|field| Difference {
            field: Some(field.name()),
            written: field.get(written),
            read: field.get(read),
            why: match (field.is_read_only(), field.is_volatile()) {
                (true, _) => Why::ReadOnly,
                (_, true) => Why::Volatile,
                _ => Why::Unexpected,
            },
        })
        .collect();
    let named = fields.iter().fold(0, |named, field| named | field.mask());
    let [written, read] = [written, read].map(|value| value & !named);
    if written != read {
        let why = match (whole, register.is_volatile()) {
            (true, true) => Why::Volatile,
            (true, false) => Why::Unexpected,
            (false, _) => Why::NotImplemented,
        };
        found.push(Difference { field: None, written, read, why });
    }
    found
}

impl Write {
    fn unexpected(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.why == Why::Unexpected)
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let mut text = String::new();
        for Write { name, before, written, read, differences, .. } in &self.writes {
            let mut parts = Vec::new();
            parts.extend(before.as_ref().map(|before| format!("was {before}")));
            parts.push(written.as_ref().map_or("not written: it is so", String::as_str).into());
            if let (Some(written), Some(part)) = (written, parts.last_mut()) {
                *part = format!("written {written}");
            }
            parts.extend(read.as_ref().map(|read| format!("reads {read}")));
            let _ = writeln!(text, "{name} {}", parts.join(", "));
            for Difference { field, written, read, why } in differences {
                let [written, read] = [*written, *read].map(small);
                let field = field.unwrap_or("other bits");
                let why = match why {
                    Why::ReadOnly => "read only",
                    Why::Volatile => "the chip changes it itself",
                    Why::NotImplemented => "not implemented",
                    Why::Unexpected => "NOT AS WRITTEN",
                };
                let _ = writeln!(text, "  {field}: written {written}, reads {read}: {why}");
            }
        }
        text
    }

    fn verdict(&self) -> Result<(), Failure> {
        let wrong: Vec<&str> = self
            .writes
            .iter()
            .filter(|write| write.unexpected().next().is_some())
            .map(|write| write.name.as_str())
            .collect();
        match wrong[..] {
            [] => Ok(()),
            _ => Err(Failure::Failed(format!(
                "{} not as written; {}",
                match wrong.len() {
                    1 => format!("{} reads", wrong[0]),
                    _ => format!("{} read", wrong.join(" and ")),
                },
                self.hint
            ))),
        }
    }
}
