//! A descriptor for readers, and for programs.

use barewire_iommu::explain::{Field, Kind, fields};
use barewire_iommu::{Descriptor, Stage};
use serde::Serialize;

/// A field. These names are an interface.
#[derive(Serialize)]
pub(super) struct FieldJson {
    name: &'static str,
    value: u8,
    meaning: Option<&'static str>,
}

/// All of its fields for programs.
pub(super) fn json(descriptor: Descriptor, kind: Kind, stage: Stage) -> Vec<FieldJson> {
    let one = |Field { name, value, meaning, .. }| FieldJson { name, value, meaning };
    fields(descriptor, kind, stage).map(one).collect()
}

/// The kind's name. It is an interface too.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "invalid",
        Kind::Reserved => "reserved",
        Kind::Table => "table",
        Kind::Block => "block",
        Kind::Page => "page",
    }
}

/// The fields that `told` chooses for readers, in lines of a hundred columns or so.
pub(super) fn lines(
    descriptor: Descriptor,
    kind: Kind,
    stage: Stage,
    told: impl Fn(&Field) -> bool,
) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for field in fields(descriptor, kind, stage).filter(told) {
        let word = text(&field);
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 86 => {
                line.push_str("  ");
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// A field as `SH=11 (inner shareable)`.
fn text(field: &Field) -> String {
    let Field { name, value, bits, meaning } = field;
    let width = *bits as usize;
    match meaning {
        Some(meaning) => format!("{name}={value:0width$b} ({meaning})"),
        None => format!("{name}={value:0width$b}"),
    }
}
