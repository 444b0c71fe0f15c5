//! Walks and lists for readers, and for programs.

use std::fmt::Write as _;

use barewire_iommu::explain::{
    Fault, Field, Kind, Outcome, Permits, Span, Step, Walk, Walker, What, fields,
};
use barewire_iommu::{Descriptor, Iova, PhysAddr};
use serde::Serialize;

use super::super::descriptor::{self, FieldJson};
use super::super::shape::{Shape, stage_number};
use crate::shared::figure;

/// The table's shape. These names, as all below, are an interface.
#[derive(Serialize)]
pub(super) struct Table {
    root: u64,
    granule: u64,
    stage: u8,
    input_bits: u8,
    output_bits: u8,
    start_level: u32,
    root_entries: usize,
}

#[derive(Serialize)]
pub(super) struct Walks {
    table: Table,
    walks: Vec<WalkJson>,
}

#[derive(Serialize)]
struct WalkJson {
    iova: u64,
    steps: Vec<StepJson>,
    result: &'static str,
    level: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mapped: Option<MappedJson>,
}

#[derive(Serialize)]
struct StepJson {
    level: u32,
    table: u64,
    index: usize,
    entry: u64,
    descriptor: String,
    kind: &'static str,
    address: Option<u64>,
    fields: Vec<FieldJson>,
}

#[derive(Serialize)]
struct MappedJson {
    phys: u64,
    leaf_size: u64,
    #[serde(flatten)]
    permits: PermitsJson,
}

#[derive(Serialize)]
struct PermitsJson {
    readable: bool,
    writable: bool,
    unprivileged: bool,
}

impl From<Permits> for PermitsJson {
    fn from(permits: Permits) -> Self {
        let Permits { readable, writable, unprivileged } = permits;
        Self { readable, writable, unprivileged }
    }
}

#[derive(Serialize)]
pub(super) struct Spans {
    table: Table,
    spans: Vec<SpanJson>,
}

#[derive(Serialize)]
struct SpanJson {
    iova: u64,
    size: u64,
    entries: u64,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phys: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    permits: Option<PermitsJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Vec<FieldJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
}

fn table(shape: &Shape, walker: &Walker, root: u64) -> Table {
    let geometry = walker.geometry();
    Table {
        root,
        granule: geometry.page_bytes(),
        stage: stage_number(shape.stage),
        input_bits: shape.input_bits,
        output_bits: shape.output_bits,
        start_level: geometry.start_level(),
        root_entries: geometry.entries(geometry.start_level()),
    }
}

pub(super) fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Translation => "translation",
        Fault::AddressSize => "address size",
        Fault::AccessFlag => "access flag",
    }
}

fn fault_result(fault: Fault) -> &'static str {
    match fault {
        Fault::Translation => "translation_fault",
        Fault::AddressSize => "address_size_fault",
        Fault::AccessFlag => "access_flag_fault",
    }
}

/// Where a table, block or page is, as a walker takes it.
fn address(walker: &Walker, step: &Step) -> Option<PhysAddr> {
    step.kind.address(step.descriptor, step.level, walker.geometry())
}

pub(super) fn walks_json(
    shape: &Shape,
    walker: &Walker,
    root: u64,
    walks: &[(Iova, Walk)],
) -> Walks {
    let step = |step: &Step| StepJson {
        level: step.level,
        table: step.table.0,
        index: step.index,
        entry: step.entry.0,
        descriptor: format!("{:016x}", step.descriptor.0),
        kind: descriptor::kind_name(step.kind),
        address: address(walker, step).map(|at| at.0),
        fields: descriptor::json(step.descriptor, step.kind, shape.stage),
    };
    let one = |(iova, walk): &(Iova, Walk)| {
        let last_level = walk.steps().last().map(|step| step.level);
        let (result, level, mapped) = match walk.outcome {
            Outcome::Mapped(to) => {
                let mapped =
                    MappedJson { phys: to.phys.0, leaf_size: to.size, permits: to.permits.into() };
                ("mapped", last_level, Some(mapped))
            }
            Outcome::Fault { fault, level } => (fault_result(fault), Some(level), None),
            Outcome::Unreadable { level, .. } => ("unreadable", Some(level), None),
        };
        let steps = walk.steps().iter().map(step).collect();
        WalkJson { iova: iova.0, steps, result, level, mapped }
    };
    Walks { table: table(shape, walker, root), walks: walks.iter().map(one).collect() }
}

fn heading(shape: &Shape, walker: &Walker, root: u64) -> String {
    let geometry = walker.geometry();
    let start = geometry.start_level();
    format!(
        "root {root:#x}: stage {}, granule {}, {} bits in, {} out; {} entries at level {start}\n",
        stage_number(shape.stage),
        figure::size(geometry.page_bytes()),
        shape.input_bits,
        shape.output_bits,
        geometry.entries(start),
    )
}

pub(super) fn walks_text(
    shape: &Shape,
    walker: &Walker,
    root: u64,
    walks: &[(Iova, Walk)],
) -> String {
    let mut text = heading(shape, walker, root);
    for (iova, walk) in walks {
        let _ = writeln!(text, "\n{iova}");
        for step in walk.steps() {
            let size = match step.kind {
                Kind::Block | Kind::Page => {
                    format!(", {}", figure::size(walker.geometry().span(step.level)))
                }
                _ => String::new(),
            };
            let at = address(walker, step).map_or(String::new(), |at| format!(" at {at}"));
            let _ = writeln!(
                text,
                "  level {}  table {}  entry {} at {}: {:#018x}  {}{at}{size}",
                step.level,
                step.table,
                step.index,
                step.entry,
                step.descriptor.0,
                descriptor::kind_name(step.kind),
            );
            // All of a leaf's fields, but of a table only what is set: hardly anything ever is.
            let told = |field: &Field| step.kind != Kind::Table || field.value != 0;
            for line in descriptor::lines(step.descriptor, step.kind, shape.stage, told) {
                let _ = writeln!(text, "             {line}");
            }
        }
        let _ = match walk.outcome {
            Outcome::Mapped(to) => {
                writeln!(text, "  -> {}, {}", to.phys, permits_text(to.permits))
            }
            Outcome::Fault { fault, level } => {
                let why = why(fault, walk, *iova, walker);
                writeln!(text, "  -> {} fault at level {level}: {why}", fault_name(fault))
            }
            Outcome::Unreadable { level, entry } => {
                writeln!(text, "  -> unknown: the level {level} entry at {entry} is in no dump")
            }
        };
    }
    text
}

fn why(fault: Fault, walk: &Walk, iova: Iova, walker: &Walker) -> &'static str {
    let kind = walk.steps().last().map(|step| step.kind);
    match (fault, kind) {
        (Fault::Translation, None) if iova.0 >= walker.geometry().input_end() => {
            "the IOVA has more bits than the table takes"
        }
        (Fault::Translation, Some(Kind::Reserved)) => "this level has no such descriptor",
        (Fault::Translation, _) => "nothing is mapped",
        (Fault::AddressSize, None) => "the root has more bits than output addresses",
        (Fault::AddressSize, Some(_)) => "its address has more bits than output addresses",
        (Fault::AccessFlag, _) => "AF is clear",
    }
}

fn permits_text(permits: Permits) -> String {
    let access = match (permits.readable, permits.writable) {
        (true, true) => "read-write",
        (true, false) => "read-only",
        (false, true) => "write-only",
        (false, false) => "no access",
    };
    let who = if permits.unprivileged { "" } else { ", privileged only" };
    format!("{access}{who}")
}

pub(super) fn spans_json(shape: &Shape, walker: &Walker, root: u64, spans: &[Span]) -> Spans {
    let one = |span: &Span| {
        let mut json = SpanJson {
            iova: span.iova.0,
            size: span.size,
            entries: span.entries,
            what: "mapped",
            level: None,
            phys: None,
            attributes: None,
            permits: None,
            fields: None,
            descriptor: None,
            at: None,
        };
        match span.what {
            What::Mapped { phys, attributes, permits } => {
                json.permits = Some(permits.into());
                json.phys = Some(phys.0);
                json.attributes = Some(format!("{attributes:016x}"));
                json.fields =
                    Some(descriptor::json(Descriptor(attributes), Kind::Page, shape.stage));
            }
            What::Fault { fault, level, descriptor } => {
                json.what = fault_result(fault);
                json.level = Some(level);
                json.descriptor = Some(format!("{:016x}", descriptor.0));
            }
            What::Unreadable { entry } => {
                json.what = "unreadable";
                json.at = Some(entry.0);
            }
            What::Loop { table, level } => {
                json.what = "loop";
                json.level = Some(level);
                json.at = Some(table.0);
            }
            What::Stopped => json.what = "stopped",
        }
        json
    };
    Spans { table: table(shape, walker, root), spans: spans.iter().map(one).collect() }
}

pub(super) fn spans_text(shape: &Shape, walker: &Walker, root: u64, spans: &[Span]) -> String {
    let mut text = heading(shape, walker, root);
    for span in spans {
        let last = span.iova.0 + (span.size - 1);
        let _ = write!(text, "{:#014x}-{last:#014x}  ", span.iova.0);
        let leaves = match span.entries {
            1 => "1 leaf".into(),
            many => format!("{} leaves", figure::grouped(many)),
        };
        let _ = match span.what {
            What::Mapped { phys, attributes, permits } => {
                let permits = permits_text(permits);
                let told: Vec<String> = fields(Descriptor(attributes), Kind::Page, shape.stage)
                    .filter(|field| field.value != 0)
                    .map(|field| {
                        let width = field.bits as usize;
                        format!("{}={:0width$b}", field.name, field.value)
                    })
                    .collect();
                let size = figure::size(span.size);
                let told = told.join(" ");
                writeln!(text, "-> {:#014x}  {size}, {leaves}, {permits}  {told}", phys.0)
            }
            What::Fault { fault, level, descriptor } => {
                let name = fault_name(fault);
                writeln!(text, "{name} fault at level {level}, descriptor {:#018x}", descriptor.0)
            }
            What::Unreadable { entry } => writeln!(text, "unknown: {entry} is in no dump"),
            What::Loop { table, level } => {
                writeln!(text, "a loop: level {level} leads back to the table at {table}")
            }
            What::Stopped => writeln!(text, "not looked at"),
        };
    }
    let mapped = spans.iter().filter(|span| matches!(span.what, What::Mapped { .. }));
    let bytes: u64 = mapped.map(|span| span.size).sum();
    let _ = writeln!(text, "{} mapped", figure::size(bytes));
    text
}
