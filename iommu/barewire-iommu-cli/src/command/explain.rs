//! `barewire-iommu explain`: the fields of descriptors.

use std::fmt::Write as _;

use barewire_iommu::explain::Kind;
use barewire_iommu::{Config, Descriptor, Geometry, Granule, Stage};
use serde::Serialize;

use super::descriptor::{self, FieldJson};
use super::shape::{self, stage_number};
use crate::shared::failure::Failure;
use crate::shared::{figure, output};

const EXAMPLES: &str = "\
Examples:
  barewire-iommu explain --level 3 0x0060000050001f43
  barewire-iommu explain --level 2 --stage 2 --granule 64k --json 6000000000007fd 80002003";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The level of the table that the descriptors are in, 0 to 3: the same bits mean another thing at another level
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: u32,
    /// The smallest page: 4k, 16k or 64k
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = shape::granule)]
    granule: Granule,
    /// The stage of translation: 1 (a device's virtual addresses) or 2 (a virtual machine's)
    #[arg(long, value_name = "1|2", default_value = "1", value_parser = shape::stage)]
    stage: Stage,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// Descriptors of 64 bits in hexadecimal, with or without 0x
    #[arg(value_name = "DESCRIPTOR", required = true, value_parser = descriptor)]
    descriptors: Vec<Descriptor>,
}

/// The printed result. Scripts rely on the names.
#[derive(Serialize)]
struct Explanation {
    level: u32,
    granule: u64,
    stage: u8,
    descriptors: Vec<One>,
}

#[derive(Serialize)]
struct One {
    descriptor: String,
    kind: &'static str,
    address: Option<u64>,
    fields: Vec<FieldJson>,
}

fn level(text: &str) -> Result<u32, String> {
    let level = text.parse().ok().filter(|level| (0..=3).contains(level));
    level.ok_or_else(|| "levels are 0 to 3".into())
}

fn descriptor(text: &str) -> Result<Descriptor, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let digits: String = digits.chars().filter(|&digit| digit != '_').collect();
    // `from_str_radix` takes a sign, which has no meaning here.
    let is_number = digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let value = u64::from_str_radix(&digits, 16).ok().filter(|_| is_number);
    value.map(Descriptor).ok_or_else(|| {
        "a descriptor is 64 bits in hexadecimal: 0x0060000050001f43 or 60000050001f43".into()
    })
}

/// Explains.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Args { level, granule, stage, .. } = *args;
    let config = Config { granule, stage, ..Config::default() };
    let geometry = Geometry::new(config).map_err(|error| Failure::Failed(error.to_string()))?;
    if level < geometry.start_level() {
        return Err(Failure::Usage(format!(
            "walks of such tables begin at level {} or below it (--level, --granule, --stage)",
            geometry.start_level()
        )));
    }
    if args.json {
        output::json(&json(args, &geometry))
    } else {
        output::text(&text(args, &geometry))
    }
}

fn json(args: &Args, geometry: &Geometry) -> Explanation {
    let one = |&descriptor: &Descriptor| {
        let kind = Kind::of(descriptor, args.level, geometry);
        One {
            descriptor: format!("{:016x}", descriptor.0),
            kind: descriptor::kind_name(kind),
            address: kind.address(descriptor, args.level, geometry).map(|at| at.0),
            fields: descriptor::json(descriptor, kind, args.stage),
        }
    };
    Explanation {
        level: args.level,
        granule: geometry.page_bytes(),
        stage: stage_number(args.stage),
        descriptors: args.descriptors.iter().map(one).collect(),
    }
}

fn text(args: &Args, geometry: &Geometry) -> String {
    let granule = figure::size(geometry.page_bytes());
    let mut text =
        format!("level {}, stage {}, granule {granule}\n", args.level, stage_number(args.stage));
    for &descriptor in &args.descriptors {
        let kind = Kind::of(descriptor, args.level, geometry);
        let _ = write!(text, "\n{:#018x}  {}", descriptor.0, descriptor::kind_name(kind));
        if let Some(at) = kind.address(descriptor, args.level, geometry) {
            let _ = write!(text, " at {at}");
        }
        text.push_str(&match kind {
            Kind::Invalid => ": bit 0 is clear, a walk faults here\n".into(),
            Kind::Reserved => ": this level has no such descriptor, a walk faults here\n".into(),
            Kind::Table => "\n".into(),
            Kind::Block | Kind::Page => format!(", {}\n", figure::size(geometry.span(args.level))),
        });
        for line in descriptor::lines(descriptor, kind, args.stage, |_| true) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_hexadecimal_of_64_bits() {
        for (text, value) in
            [("0", 0), ("0x1f43", 0x1f43), ("0XFFFF_ffff_ffff_ffff", u64::MAX), ("403", 0x403)]
        {
            assert_eq!(descriptor(text), Ok(Descriptor(value)), "{text}");
        }
        for text in ["", "0x", "_", "+1", "1g", "0x1_0000_0000_0000_0000", "0x0x1", "é"] {
            assert!(descriptor(text).is_err(), "{text}");
        }
    }
}
