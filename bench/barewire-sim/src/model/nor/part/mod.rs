//! The flash chips as data: what each says of itself, and apart from that what it does.
//!
//! Read first: the datasheets, dumps and reports named in each vendor's file and in [`Part::source`]. Revisions number
//! their tables differently, so tables are cited by name.
//!
//! A [`Part`] has no behaviour: the state machine in `../mod.rs` implements each [`Op`], so two parts differ only in
//! their tables. A part's description of itself is its SFDP: bytes that were read from a chip and published, or else
//! those in its datasheet. Its behaviour is everything else here: the opcodes it obeys (`command.rs`), its
//! protection, status bits and erase map (`layout.rs`), its address mode, locks and times. Nothing here derives one
//! from the other. Where no source tells what a part does, it does what its SFDP says, and its file says so.
//!
//! To add a part, add a function to its vendor's file and a row to `ALL` in `catalog.rs`.
//!
//! Not supported:
//! - the dual, quad, QPI, octal and DTR instructions;
//! - security registers and OTP arrays;
//! - suspend and resume;
//! - individual block locks (but SST26's) and the advanced sector protection;
//! - volatile status register writes; writing only status register 3 (11h) of the W25Q256JV and W25Q32JV;
//! - the S25FL512S's latency code, FREEZE, BPNV, AutoBoot, ECC and BRAC (B9h), and the rest of its
//!   ID-CFI;
//! - the WP# and HOLD# pins (both held high).

mod adesto;
mod boya;
mod catalog;
mod command;
mod gigadevice;
mod infineon;
mod issi;
mod layout;
mod macronix;
mod micron;
mod spansion;
mod sst;
mod winbond;
mod zetta;

use super::sfdp::{self, Sfdp};
use crate::chip::{PS_PER_NS, Ps, WireLimits};
use command::*;
pub(super) use command::{AddressWidth, Command, EraseUnit, Op, StatusRegister};
use layout::Scale;
pub(super) use layout::{EraseMap, ErrorBits, Protection, Refusal, StatusLayout};

const PS_PER_US: Ps = 1_000 * PS_PER_NS;
const PS_PER_MS: Ps = 1_000 * PS_PER_US;
const PS_PER_S: Ps = 1_000 * PS_PER_MS;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The duration of an internal operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The datasheet's typical time. The model takes that long.
    pub typical_ps: Ps,
    /// The datasheet's maximum.
    pub max_ps: Ps,
}

impl Span {
    const ZERO: Self = Self::new(0, 0);

    const fn new(typical_ps: Ps, max_ps: Ps) -> Self {
        Self { typical_ps, max_ps }
    }
}

/// The times of a part's internal operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// One page, byte or word program.
    pub program: Span,
    /// One 4 KiB sector erase, or one of 8 KiB.
    pub sector_erase: Span,
    /// One 32 KiB block erase.
    pub block32_erase: Span,
    /// One 64 KiB block erase, or one of 128 KiB.
    pub block64_erase: Span,
    /// One 256 KiB block erase.
    pub block256_erase: Span,
    /// One erase of the whole array, or of a die of a stack.
    pub chip_erase: Span,
    /// One write of the status register.
    pub write_status: Span,
    /// From a software reset until the chip accepts a command.
    pub reset: Span,
    /// From the release from power-down until the chip accepts a command.
    pub release_power_down: Span,
}

/// A flash chip's description.
#[derive(Clone, Debug)]
pub struct Part {
    /// The vendor's name of the part.
    pub name: &'static str,
    /// The size of the array in bytes; a power of two.
    pub size: usize,
    /// The largest number of bytes in a program command, within an aligned page of that size. More bytes wrap.
    pub page_size: usize,
    /// The answer to 9Fh: manufacturer, memory type, capacity.
    pub jedec_id: [u8; 3],
    /// The device id in the answers to 90h and ABh.
    pub device_id: u8,
    /// The answer to 4Bh, if the part has it. On silicon every chip has its own.
    pub unique_id: Option<[u8; 8]>,
    /// The datasheet's limits for the wire.
    pub limits: WireLimits,
    /// The durations of the internal operations.
    pub times: Times,
    /// What the part does that its SFDP does not say, in a short phrase; empty if nothing is known.
    pub beyond_sfdp: &'static str,
    /// Where its SFDP and the facts beside it come from.
    pub source: &'static str,
    /// The answer to 9Fh repeats after its third byte. Otherwise MISO is not driven after it.
    pub(super) jedec_id_repeats: bool,
    /// The bytes after the third in the answer to 9Fh, before MISO is no longer driven.
    pub(super) jedec_id_tail: &'static [u8],
    /// The opcodes that it obeys, in groups.
    pub(super) commands: &'static [&'static [Command]],
    pub(super) status: StatusLayout,
    pub(super) protection: Protection,
    pub(super) map: EraseMap,
    /// The chip is in 4-byte mode after power-up and reset.
    pub(super) four_byte_at_power_up: bool,
    /// The non-volatile configuration register as delivered, if the part has one. With bit 0 clear the chip
    /// powers up in 4-byte mode.
    pub(super) nonvolatile: Option<u16>,
    /// Configuration registers 2 and 3 as delivered, for parts that read registers by address.
    pub(super) configuration: [u8; 2],
    /// The dummy bytes of 65h for volatile registers. For non-volatile ones there is one.
    pub(super) any_register_dummy: u8,
    /// The block protection register after power-up, highest byte first; empty if there is none.
    pub(super) locks: &'static [u8],
    /// Reading the flag status register ends a program or an erase. Until then the next one is ignored.
    pub(super) flag_status_must_be_read: bool,
    pub(super) sfdp: SfdpBytes,
}

/// What a part answers to 5Ah.
#[derive(Clone, Debug)]
pub(super) enum SfdpBytes {
    None,
    /// Computed from a description; 256 bytes, then they repeat.
    Built(Box<Sfdp>),
    /// Bytes as published, in hexadecimal: where each piece begins, and what it holds. Later pieces replace
    /// earlier ones; all other bytes are FFh.
    Pieces(&'static [(usize, &'static str)]),
}

impl SfdpBytes {
    /// The bytes, and the number of bytes after which they repeat.
    pub(super) fn bytes(&self) -> (Vec<u8>, usize) {
        match self {
            Self::None => (Vec::new(), sfdp::LENGTH),
            Self::Built(sfdp) => (sfdp.build(), sfdp::LENGTH),
            // 5Ah has 24 address bits.
            Self::Pieces(pieces) => (sfdp::placed(pieces), 1 << 24),
        }
    }
}

/// The protocol's limits that nearly all parts have: modes 0 and 3; CS times of the W25Q256JV's datasheet, which are
/// longer than those of most others.
const fn limits(max_clock_hz: u32) -> WireLimits {
    WireLimits { modes: 0b1001, cs_setup_ns: 5, cs_hold_ns: 5, cs_inactive_ns: 50, max_clock_hz }
}

impl Part {
    /// A part of `size` bytes with the features that most parts have, and no others: pages of 256 bytes, 3-byte
    /// addresses, one status register without protection. Its times are the W25Q256JV's, a chip erase in proportion
    /// to the size: where a vendor's file does not replace them, they are no facts about the part.
    fn plain(name: &'static str, jedec_id: [u8; 3], size: usize) -> Self {
        let blocks = (size / (64 * KIB)) as Ps;
        Self {
            name,
            size,
            page_size: 256,
            jedec_id,
            device_id: jedec_id[2].wrapping_sub(1),
            unique_id: None,
            limits: limits(104_000_000),
            times: Times {
                program: Span::new(400 * PS_PER_US, 3 * PS_PER_MS),
                sector_erase: Span::new(45 * PS_PER_MS, 400 * PS_PER_MS),
                block32_erase: Span::new(120 * PS_PER_MS, 1_600 * PS_PER_MS),
                block64_erase: Span::new(150 * PS_PER_MS, 2_000 * PS_PER_MS),
                block256_erase: Span::new(520 * PS_PER_MS, 2_600 * PS_PER_MS),
                chip_erase: Span::new(150 * PS_PER_MS * blocks, 800 * PS_PER_MS * blocks),
                write_status: Span::new(10 * PS_PER_MS, 15 * PS_PER_MS),
                reset: Span::new(30 * PS_PER_US, 30 * PS_PER_US),
                release_power_down: Span::new(3 * PS_PER_US, 3 * PS_PER_US),
            },
            beyond_sfdp: "",
            source: "",
            jedec_id_repeats: false,
            jedec_id_tail: &[],
            commands: &[COMMON, READ_PROGRAM, ERASES, CHIP_ERASE],
            status: StatusLayout {
                writable: [0; 3],
                one_time_2: 0,
                factory: [0; 3],
                write_bytes: 1,
                one_byte_clears_2: false,
                volatile_1: false,
                busy: 1 << 0,
                aai_mode: 0,
                four_byte_mode: 0,
                refusal: Refusal::KeepsWel,
            },
            protection: Protection::NONE,
            map: EraseMap::Uniform,
            four_byte_at_power_up: false,
            nonvolatile: None,
            configuration: [0; 2],
            any_register_dummy: 1,
            locks: &[],
            flag_status_must_be_read: false,
            sfdp: SfdpBytes::None,
        }
    }

    /// The part with the datasheet's maximum time for every operation.
    #[must_use]
    pub fn at_max_times(mut self) -> Self {
        let times = &mut self.times;
        for span in [
            &mut times.program,
            &mut times.sector_erase,
            &mut times.block32_erase,
            &mut times.block64_erase,
            &mut times.block256_erase,
            &mut times.chip_erase,
            &mut times.write_status,
            &mut times.reset,
            &mut times.release_power_down,
        ] {
            span.typical_ps = span.max_ps;
        }
        self
    }

    /// All opcodes that the part obeys.
    pub(super) fn commands(&self) -> impl Iterator<Item = Command> {
        self.commands.iter().copied().flatten().copied()
    }
}
