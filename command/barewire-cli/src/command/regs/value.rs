//! A register's value for output: as JSON and as text.

use std::fmt::Write as _;

use barewire::regmap::{Access, Field, Format, Location};
use serde::Serialize;

/// A register and its value; the field names are an interface.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Value {
    name: String,
    address: u32,
    access: &'static str,
    value: String,
    /// After a reset, where that is known.
    reset: Option<String>,
    fields: Vec<FieldValue>,
    #[serde(skip)]
    raw: (u32, Option<u32>),
}

/// A field and its value.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct FieldValue {
    name: &'static str,
    lsb: u8,
    width: u8,
    value: u32,
    access: &'static str,
    /// Whether the chip sets or clears it.
    volatile: bool,
}

/// A register's value in hex, all digits of it.
pub(super) fn hex(format: &Format, value: u32) -> String {
    let digits = usize::from(format.val_bits).div_ceil(4);
    format!("{value:0digits$x}")
}

/// A field's value. Values below ten are written without `0x`, since decimal and hexadecimal are
/// the same.
pub(super) fn small(value: u32) -> String {
    if value < 10 { value.to_string() } else { format!("{value:#x}") }
}

impl Value {
    /// The value of a register with all its fields, from the highest, or with that one field.
    pub(super) fn new(
        format: &Format,
        at: Location<'_>,
        value: u32,
        only: Option<&'static Field>,
    ) -> Self {
        let register = at.register();
        let wanted = |field: &&Field| only.is_none_or(|only| only == *field);
        let fields = register.all_fields().iter().rev().filter(wanted);
        let written = register.access() != Access::ReadOnly;
        Self {
            name: at.to_string(),
            address: at.address(),
            access: match register.access() {
                Access::ReadWrite => "rw",
                Access::ReadOnly => "ro",
                Access::WriteOnly => "wo",
            },
            value: hex(format, value),
            reset: register.reset_value().map(|reset| hex(format, reset)),
            fields: fields
                .map(|field| FieldValue {
                    name: field.name(),
                    lsb: field.lsb(),
                    width: field.width(),
                    value: field.get(value),
                    access: if written && !field.is_read_only() { "rw" } else { "ro" },
                    volatile: field.is_volatile(),
                })
                .collect(),
            raw: (value, register.reset_value()),
        }
    }

    /// Whether it differs from its value after a reset; false if that is not known.
    pub(super) fn changed(&self) -> bool {
        self.raw.1.is_some_and(|reset| reset != self.raw.0)
    }

    /// A heading and a line for each field.
    pub(super) fn text(&self) -> String {
        let Self { name, address, value, access, .. } = self;
        let mut text = format!("{name} at {address:#05x} is {value}");
        if *access == "ro" {
            text += ", read only";
        }
        match &self.reset {
            None => {}
            Some(reset) if reset == value => text += ", as after a reset",
            Some(reset) => {
                let _ = write!(text, ", after a reset {reset}");
            }
        }
        text.push('\n');
        for field in &self.fields {
            let FieldValue { name, lsb, width, value, access: field_access, volatile } = *field;
            let bits = match width {
                1 => lsb.to_string(),
                _ => format!("{}:{lsb}", lsb + width - 1),
            };
            let note = match (field_access, volatile) {
                ("ro", _) if *access != "ro" => "  read only",
                (_, true) => "  changed by the chip",
                _ => "",
            };
            let value = small(value);
            let value = if note.is_empty() { value } else { format!("{value:<6}") };
            let _ = writeln!(text, "  {name:<10}{bits:>6}  {value}{note}");
        }
        text
    }

    /// One line: a star if it is not as after a reset, and the fields that are not zero.
    pub(super) fn line(&self) -> String {
        let set = self.fields.iter().filter(|field| field.value != 0);
        let set: Vec<String> = set
            .map(|field| match field.width {
                1 => field.name.into(),
                _ => format!("{}={}", field.name, small(field.value)),
            })
            .collect();
        let star = if self.changed() { '*' } else { ' ' };
        let Self { name, address, value, .. } = self;
        let line = format!("{star} {address:#05x}  {name:<11} {value}  {}", set.join(" "));
        format!("{}\n", line.trim_end())
    }
}
