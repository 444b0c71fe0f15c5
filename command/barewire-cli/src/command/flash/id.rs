//! `barewire flash id`: what the chip is.

use std::fmt::Write as _;

use barewire::chip::spi_nor::{Addressing, EraseType, Programming};
use serde::Serialize;

use super::{FlashArgs, Which, with_chip};
use crate::shared::failure::Failure;
use crate::shared::session::{self, Figures, Request, Settled, Wanted};
use crate::shared::text::figure;

/// Status register: write enable latch.
const WEL: u8 = 1 << 1;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    flash: FlashArgs,
}

/// The result; its field names are an interface.
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
    address_bytes: u8,
    addressing: &'static str,
    read_command: &'static str,
    status: String,
    write_enabled: bool,
    protected: Option<Protected>,
}

#[derive(Serialize)]
struct Erase {
    size: u32,
    opcode: String,
    typical_ns: u64,
    max_ns: u64,
}

#[derive(Serialize)]
struct Protected {
    start: u64,
    end: u64,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bus = &args.flash.bus;
    session::run(&Request::of(bus, Settled::Promised).for_chip(Wanted::Flash), |session| {
        with_chip(session, &args.flash, |chip, which| {
            let protection = chip.protection()?;
            let geometry = chip.geometry();
            let (addressing, read_commands) = match geometry.addressing {
                Addressing::ThreeByte => ("three-byte", ["03", "0b"]),
                Addressing::FourByteOpcodes => ("four-byte-opcodes", ["13", "0c"]),
                Addressing::FourByteMode { .. } => ("four-byte-mode", ["03", "0b"]),
            };
            Ok(Report {
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
                address_bytes: geometry.addressing.bytes(),
                addressing,
                read_command: read_commands[usize::from(chip.uses_fast_read())],
                status: format!("{:02x}", protection.status),
                write_enabled: protection.status & WEL != 0,
                protected: (!protection.is_none())
                    .then_some(Protected { start: protection.start, end: protection.end }),
            })
        })
    })
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
        row("erase", self.erase_types.iter().map(erase).collect::<Vec<_>>().join(", "));
        let how = match self.addressing {
            "four-byte-opcodes" => " (by opcodes of their own)",
            "four-byte-mode" => " (in 4-byte mode)",
            _ => "",
        };
        row(
            "addresses",
            format!("{} bytes{how}, read by {}h", self.address_bytes, self.read_command),
        );
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
            Some(Protected { start, end }) => {
                format!("{start:#x} to {end:#x} is protected (--unprotect clears that)")
            }
        };
        row("status", format!("{}h: {enabled}, {protected}", self.status));
        row("bus", format!("{}, chip select {chip_select}{}", place.bus, place.kind()));
        text
    }
}
