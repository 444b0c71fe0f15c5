//! `barewire-iommu walk`: what a walker does with an IOVA in a dumped table.

mod dump;
mod tell;

use barewire_iommu::explain::{Outcome, Walk, Walker, What};
use barewire_iommu::{Iova, PhysAddr};

use super::shape::Shape;
use crate::shared::failure::Failure;
use crate::shared::number;
use crate::shared::output;
use dump::{DumpFile, Memory};

const EXAMPLES: &str = "\
Without an IOVA, the command lists everything that is mapped, adjacent ranges merged, and every error in the table.

Exit codes: 0 every IOVA is mapped (or the list is whole), 3 one faults, 1 an entry is in no dump \
or the list is not whole, 2 wrong usage.

Examples:
  barewire-iommu walk --dump tables.bin@0x80000000 --root 0x80010000 0xfffff000
  barewire-iommu walk --dump low.bin@0 --dump high.bin@0x100000000 --ttbr 0x0001000080010000 --json
  barewire-iommu walk --dump vm.bin@0x40000000 --root 0x40000000 --stage 2 --input-bits 40";

#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("where").required(true).args(["root", "ttbr"])))]
pub(crate) struct Args {
    /// Physical memory: a file of raw bytes and the address of its first; several may be given
    #[arg(long, value_name = "FILE@0xBASE", required = true, value_parser = dump::asked)]
    dump: Vec<DumpFile>,
    /// The physical address of the root table
    #[arg(long, value_name = "ADDRESS", value_parser = number::bytes)]
    root: Option<u64>,
    /// The root table as a value of TTBR0 or S2TTB; the ASID (bits 48 up) and CnP (bit 0) are ignored
    #[arg(long, value_name = "VALUE", value_parser = number::bytes)]
    ttbr: Option<u64>,
    #[command(flatten)]
    shape: Shape,
    /// Read at most this many entries for the list (K, M: by 1024); a table of 4 KiB has 512
    #[arg(long, value_name = "N", default_value = "16M", value_parser = number::bytes)]
    entries_max: u64,
    /// Print the result as one line of JSON
    #[arg(long)]
    json: bool,
    /// IOVAs to explain
    #[arg(value_name = "IOVA", value_parser = number::bytes)]
    iovas: Vec<u64>,
}

/// Bits of TTBR0 that are an address: bit 0 is CnP, 63 to 48 an ASID.
const TTBR_ADDRESS: u64 = 0x0000_ffff_ffff_fffe;

/// Explains.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let root = match (args.root, args.ttbr) {
        (Some(root), _) => root,
        (None, ttbr) => ttbr.unwrap_or_default() & TTBR_ADDRESS,
    };
    let walker = Walker::new(args.shape.geometry()?, PhysAddr(root)).map_err(|error| {
        Failure::Usage(format!(
            "{error}: is it another granule, stage or number of input bits? (--root, --granule, \
             --stage, --input-bits)"
        ))
    })?;
    let mut memory = Memory::open(&args.dump)?;
    if args.iovas.is_empty() {
        list(args, &walker, root, &mut memory)
    } else {
        explain(args, &walker, root, &mut memory)
    }
}

fn explain(args: &Args, walker: &Walker, root: u64, memory: &mut Memory) -> Result<(), Failure> {
    let walks: Vec<(Iova, Walk)> = args
        .iovas
        .iter()
        .map(|&iova| (Iova(iova), walker.explain(Iova(iova), |at| memory.read(at.0))))
        .collect();
    memory.check()?;
    if args.json {
        output::json(&tell::walks_json(&args.shape, walker, root, &walks))?;
    } else {
        output::text(&tell::walks_text(&args.shape, walker, root, &walks))?;
    }
    for (_, walk) in &walks {
        if let Outcome::Unreadable { level, entry } = walk.outcome {
            return Err(outside(memory, level, entry));
        }
    }
    let mut faults = walks.iter().filter_map(|(iova, walk)| match walk.outcome {
        Outcome::Fault { fault, level } => Some((iova, fault, level)),
        _ => None,
    });
    match faults.next() {
        None => Ok(()),
        Some((iova, fault, level)) => {
            let more = match faults.count() {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            let fault = tell::fault_name(fault);
            Err(Failure::Fault(format!("{iova}: {fault} fault at level {level}{more}")))
        }
    }
}

fn list(args: &Args, walker: &Walker, root: u64, memory: &mut Memory) -> Result<(), Failure> {
    let spans: Vec<_> = walker.spans(|at| memory.read(at.0), args.entries_max).collect();
    memory.check()?;
    if args.json {
        output::json(&tell::spans_json(&args.shape, walker, root, &spans))?;
    } else {
        output::text(&tell::spans_text(&args.shape, walker, root, &spans))?;
    }
    let missing = spans.iter().find_map(|span| match span.what {
        What::Unreadable { entry } => Some(outside(memory, level_of(walker, span), entry)),
        What::Stopped => Some(Failure::Failed(format!(
            "{} entries have been read, and the list ends before {}: give --entries-max more, or \
             these bytes are no table",
            args.entries_max, span.iova
        ))),
        _ => None,
    });
    missing.map_or(Ok(()), Err)
}

/// The level whose entries are as large as the span's.
fn level_of(walker: &Walker, span: &barewire_iommu::explain::Span) -> u32 {
    let each = span.size / span.entries.max(1);
    (0..=3).find(|&level| walker.geometry().span(level) == each).unwrap_or_default()
}

fn outside(memory: &Memory, level: u32, entry: PhysAddr) -> Failure {
    Failure::Failed(format!(
        "the level {level} entry at {entry} is in no dump (there is {}): dump that memory too, or \
         --root and the table's shape are not right",
        memory.extent()
    ))
}
