//! `barewire flash id`: what the chip is.

use std::fmt::Write as _;

use barewire::chip::spi_nor::{
    Addressing, EraseType, Geometry, Programming, Protection, Region, StatusForm,
};
use serde::Serialize;

use super::{FlashArgs, Which, with_chip};
use crate::shared::failure::Failure;
use crate::shared::session::{self, ChipRequest, EndState, Figures, Request};
use crate::shared::text::figure;

/// Status register: write enable latch.
const WEL: u8 = 1 << 1;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    flash: FlashArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    max_speed_hz: Option<u32>,
    size: u64,
    page_size: u32,
    programming: &'static str,
    erase_types: Vec<Erase>,
    times_known: bool,
    regions: Vec<RegionOf>,
    address_bytes: u8,
    addressing: &'static str,
    /// The bytes within reach; less than the size if no way above 16 MiB is known.
    reach: u64,
    enter_four_byte_mode: Option<&'static str>,
    exit_four_byte_mode: Option<&'static str>,
    read_command: &'static str,
    /// SFDP's word 15, bits 22 to 20; null if it has none.
    quad_enable_requirement: Option<u8>,
    status_write: &'static str,
    protection_layout: &'static str,
    protection_bits: String,
    status: String,
    status_2: String,
    write_enabled: bool,
    protected: Option<ProtectionReport>,
    /// It is so since power-up: the next change opens it.
    locked_at_power_up: bool,
}

/// A part of the array, with the sizes that are erased there.
#[derive(Serialize)]
struct RegionOf {
    start: u64,
    end: u64,
    erase_sizes: Vec<u32>,
}

#[derive(Serialize)]
struct Erase {
    size: u32,
    opcode: String,
    typical_ns: u64,
    max_ns: u64,
}

#[derive(Serialize)]
struct ProtectionReport {
    start: u64,
    end: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    session::run(
        &Request::of(bus, EndState::Promised).for_chip(ChipRequest::Flash).that_only_reads(),
        |session| {
            with_chip(session, &args.flash, |chip, which| {
                let protection = chip.protection()?;
                Ok(Report::of(which, chip.geometry(), &protection, chip.uses_fast_read()))
            })
        },
    )
}

impl Report {
    fn of(which: Which, geometry: &Geometry, protection: &Protection, fast: bool) -> Self {
        let (addressing, read_commands) = match geometry.addressing {
            Addressing::ThreeByte => ("three-byte", ["03", "0b"]),
            Addressing::ExtendedAddress => ("extended-address", ["03", "0b"]),
            Addressing::FourByteOpcodes => ("four-byte-opcodes", ["13", "0c"]),
            Addressing::FourByteMode { .. } => ("four-byte-mode", ["03", "0b"]),
            Addressing::FourByteOnly => ("four-byte-only", ["03", "0b"]),
        };
        let enter = match geometry.addressing {
            Addressing::FourByteMode { enter } => Some(enter.name()),
            _ => None,
        };
        let region = |region: Region| RegionOf {
            start: region.start,
            end: region.end,
            erase_sizes: geometry.erase_types_of(region).map(|erase| erase.size).collect(),
        };
        let &Protection { status, status_2, start, end, power_up } = protection;
        Self {
            which,
            max_speed_hz: geometry.max_hz,
            size: geometry.size,
            page_size: geometry.page_size(),
            programming: match geometry.programming {
                Programming::Page { .. } => "page",
                Programming::AaiWord => "aai-word",
            },
            erase_types: geometry.erase_types().map(Erase::of).collect(),
            times_known: geometry.times_known,
            regions: geometry.regions().map(region).collect(),
            address_bytes: geometry.addressing.bytes(),
            addressing,
            reach: geometry.reach,
            enter_four_byte_mode: enter,
            exit_four_byte_mode: geometry.exit.map(|exit| exit.name()),
            read_command: read_commands[usize::from(fast)],
            quad_enable_requirement: geometry.quad_enable,
            status_write: status_write(geometry.status_form),
            protection_layout: geometry.protection.name(),
            protection_bits: format!("{:02x}", geometry.protection.bits()),
            status: format!("{status:02x}"),
            status_2: format!("{status_2:02x}"),
            write_enabled: status & WEL != 0,
            protected: (!protection.is_none()).then_some(ProtectionReport { start, end }),
            locked_at_power_up: power_up && !protection.is_none(),
        }
    }
}

/// The form of a status register write, for `--json` and people.
fn status_write(form: StatusForm) -> &'static str {
    match form {
        StatusForm::One => "01h, one byte",
        StatusForm::Both => "01h, two bytes",
        StatusForm::Separate => "01h and 31h",
        StatusForm::Volatile => "50h 01h, one byte",
        _ => "not known",
    }
}

impl Erase {
    fn of(erase: EraseType) -> Self {
        let EraseType { size, opcode, typical_ns, max_ns } = erase;
        Self { size, opcode: format!("{opcode:02x}"), typical_ns, max_ns }
    }
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let Which { place, chip_select, jedec_id, name, mode, effective_speed_hz, .. } =
            &self.which;
        let mut text = String::new();
        let mut row = |what: &str, is: String| {
            let _ = writeln!(text, "{what:<10} {is}");
        };
        let name = name.unwrap_or("a chip that describes itself (SFDP)");
        row("chip", format!("{name}, JEDEC id {jedec_id}"));
        row("size", format!("{} ({} bytes)", figure::size(self.size), self.size));
        row(
            "program",
            match self.programming {
                "page" => format!("pages of {}", figure::size(self.page_size.into())),
                _ => "words of 2 bytes (AAI)".into(),
            },
        );
        let erase = |erase: &Erase| {
            let (size, time) =
                (figure::size(erase.size.into()), figure::time(erase.typical_ns as f64));
            let time = if self.times_known { format!(" in {time}") } else { String::new() };
            format!("{size}{time} ({}h)", erase.opcode)
        };
        match &self.erase_types[..] {
            [] => row("erase", "no size is known for sure".into()),
            types => row("erase", types.iter().map(erase).collect::<Vec<_>>().join(", ")),
        }
        for region in self.regions.iter().filter(|_| self.regions.len() > 1) {
            let sizes = region.erase_sizes.iter().map(|size| figure::size((*size).into()));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            row("  region", format!("{:#x} to {:#x}: {sizes}", region.start, region.end));
        }
        let how = match self.addressing {
            "four-byte-opcodes" => " (by opcodes of their own)",
            "four-byte-mode" => " (in 4-byte mode)",
            "four-byte-only" => " (always)",
            "extended-address" => " (and the extended address register)",
            _ => "",
        };
        row(
            "addresses",
            format!("{} bytes{how}, read by {}h", self.address_bytes, self.read_command),
        );
        let ways = [("in by", self.enter_four_byte_mode), ("out by", self.exit_four_byte_mode)];
        let ways = ways.into_iter().filter_map(|(which, way)| Some(format!("{which} {}", way?)));
        let ways = ways.collect::<Vec<_>>().join(", ");
        if !ways.is_empty() {
            row("4-byte", format!("{ways}; reach {}", figure::size(self.reach)));
        }
        let limit = match self.max_speed_hz {
            Some(hz) => format!("the chip takes up to {}", figure::clock(hz.into())),
            None => "the chip's limit is not known".into(),
        };
        row(
            "clock",
            format!("{}, mode {mode}; {limit}", figure::clock((*effective_speed_hz).into())),
        );
        let enabled = if self.write_enabled { "write-enabled" } else { "write-disabled" };
        let protected = match &self.protected {
            None => "nothing is protected".into(),
            Some(ProtectionReport { start, end }) if self.locked_at_power_up => format!(
                "{start:#x} to {end:#x} is locked since power-up (the first change opens that)"
            ),
            Some(ProtectionReport { start, end }) => {
                format!("{start:#x} to {end:#x} is protected (--unprotect clears that)")
            }
        };
        row("status", format!("{}h: {enabled}, {protected}", self.status));
        let requirement = match self.quad_enable_requirement {
            Some(requirement) => format!("QER {requirement:03b}b"),
            None => "no QER".into(),
        };
        row(
            "protection",
            format!(
                "layout {} (bits {}h), {requirement}, status written by {}",
                self.protection_layout, self.protection_bits, self.status_write
            ),
        );
        row("bus", format!("{}, chip select {chip_select}{}", place.bus, place.kind()));
        text
    }
}
