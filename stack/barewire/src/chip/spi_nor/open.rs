//! Opening a chip: its identity, its own description, and the mode in which it was found.
//!
//! # Ordering
//! 1. Settle: the chip may be busy with an operation that another user began. Meanwhile it answers nothing but
//!    its status.
//! 2. Id.
//! 3. SFDP. A signature that comes one byte late means that the chip takes four address bytes now, since
//!    another user left it in 4-byte mode, or always.
//! 4. Mode: leave 4-byte mode. The signature, read again, shows whether that worked; if not, that
//!    is noted.

use super::fault::Report;
use super::mode::exit;
use super::opcode::{RDID, RDSFDP};
use super::operation::{UnidentifiedChip, read_flags};
use super::sfdp::{Ask, SIGNATURE};
use super::{
    Addressing, Assume, Exit, Geometry, JedecId, NorError, Note, SfdpError, SpiNor, part, sfdp,
    symptom,
};
use crate::chip::{Port, Sharing, longest_data};
use crate::spi::Transfer;
use crate::time::Timer;

/// READ's maximum is not known before the chip is; RDSFDP's is 50 MHz or more (JESD216B).
const ADDRESS_BYTES: u8 = 3;

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Identifies the chip behind `port`; `timer` times its busy periods.
    ///
    /// # Errors
    /// [`NorError::NoChip`], [`NorError::StuckLow`], [`NorError::Shifted`], [`NorError::Unstable`],
    /// [`NorError::UnknownChip`], [`NorError::TooFast`], [`NorError::Occupied`], or an error of the bus.
    pub fn new(port: P, timer: T) -> Result<Self, NorError> {
        Self::assuming(port, timer, &Assume::default())
    }

    /// As [`SpiNor::new`], with the facts of `assume` in place of the chip's own.
    ///
    /// # Errors
    /// As [`SpiNor::new`].
    pub fn assuming(mut port: P, mut timer: T, assume: &Assume) -> Result<Self, NorError> {
        let begun = UnidentifiedChip::new(&mut port, &mut timer)?;
        let sharing = begun.sharing;
        let id = read_id(begun.port)?;
        let geometry = identify(id, assume, begun.port, &mut timer)?;
        if geometry.report == Report::FlagStatus {
            read_flags(begun.port)?;
        }
        drop(begun);
        let speed_hz = port.speed_hz();
        let fast_read = speed_hz > geometry.read_max_hz;
        let read_max_hz = (!geometry.has_fast_read).then_some(geometry.read_max_hz);
        let max_hz = geometry.max_hz.into_iter().chain(read_max_hz).min();
        if let Some(max_hz) = max_hz.filter(|max_hz| speed_hz > *max_hz) {
            return Err(NorError::TooFast { speed_hz, max_hz });
        }
        let mut this = Self {
            port,
            timer,
            id,
            geometry,
            fast_read,
            sharing,
            read_back: true,
            unsettled: false,
            ignored: None,
            upper: None,
            unlocked: false,
        };
        if sharing == Sharing::Alone {
            this.enter()?;
        }
        Ok(this)
    }
}

/// Steps 3 and 4.
fn identify(
    id: JedecId,
    assume: &Assume,
    port: &mut impl Port,
    timer: &mut impl Timer,
) -> Result<Geometry, NorError> {
    let parse =
        |bytes, port: &mut _| sfdp::parse(id, assume, |ask, into| answer(port, bytes, ask, into));
    if let Some(geometry) = part::never_with_sfdp(id) {
        return Ok(assumed(geometry, assume));
    }
    let mut parsed = parse(ADDRESS_BYTES, port)?;
    let late = parsed.is_err_and(is_late);
    if late {
        parsed = parse(ADDRESS_BYTES + 1, port)?;
    }
    let geometry = match (parsed, part::perhaps_without_sfdp(id)) {
        (Ok(geometry), _) => part::refine(id, geometry),
        (Err(_), Some(geometry)) => assumed(geometry, assume),
        (Err(sfdp), None) => return Err(symptom::of(id, read_id(port)?, sfdp)),
    };
    to_three_byte_mode(geometry, late, port, timer)
}

/// Applies the facts that a user may give for a part of the driver's own table.
fn assumed(geometry: Geometry, assume: &Assume) -> Geometry {
    Geometry { protection: assume.protection.unwrap_or(geometry.protection), ..geometry }
}

/// Step 4.
fn to_three_byte_mode(
    mut geometry: Geometry,
    late: bool,
    port: &mut impl Port,
    timer: &mut impl Timer,
) -> Result<Geometry, NorError> {
    if geometry.addressing == Addressing::FourByteOnly {
        return Ok(geometry);
    }
    if !late {
        // Some parts read SFDP with three address bytes in either mode. With opcodes of their own it does not
        // matter, and in 4-byte mode the driver enters it anyway.
        if geometry.addressing == Addressing::ThreeByte {
            if let Some(way) = geometry.exit.filter(|way| way.is_harmless()) {
                exit(port, timer, way)?;
            }
        }
        return Ok(geometry);
    }
    for way in [geometry.exit, Some(Exit::Ex4b)].into_iter().flatten() {
        exit(port, timer, way)?;
        if !takes_four(port)? {
            geometry.notes.add(Note::WasInFourByteMode);
            return Ok(geometry);
        }
    }
    geometry.notes.add(Note::StaysInFourByteMode);
    if geometry.addressing != Addressing::FourByteOpcodes {
        geometry.addressing = Addressing::FourByteOnly;
        geometry.reach = geometry.size;
    }
    Ok(geometry)
}

/// Whether the signature comes one byte late, with any byte before it.
fn is_late(error: SfdpError) -> bool {
    let SfdpError::Signature { actual } = error else { return false };
    actual.to_le_bytes()[1..] == SIGNATURE.to_le_bytes()[..3]
}

/// Whether the chip takes four address bytes now.
fn takes_four(port: &mut impl Port) -> Result<bool, NorError> {
    let mut first = [0; 4];
    answer(port, ADDRESS_BYTES, Ask::Sfdp { address: 0 }, &mut first)?;
    Ok(is_late(SfdpError::Signature { actual: u32::from_le_bytes(first) }))
}

/// Reads the registers that parsing asks for, with `mode` address bytes where the chip's mode
/// decides.
fn answer(port: &mut impl Port, mode: u8, ask: Ask, into: &mut [u8]) -> Result<(), NorError> {
    let (opcode, address, bytes, dummy) = match ask {
        // Address, then 8 dummy clocks.
        Ask::Sfdp { address } => (RDSFDP, address, mode, 1),
        Ask::Register { opcode, address, address_bytes, dummy_bytes } => {
            (opcode, address, address_bytes.unwrap_or(mode), dummy_bytes)
        }
    };
    let (bytes, dummy) = (usize::from(bytes), usize::from(dummy));
    let mut command = [0; 8];
    command[0] = opcode;
    command[1..=bytes].copy_from_slice(&address.to_be_bytes()[4 - bytes..]);
    let command = &mut command[..1 + bytes + dummy];
    let mut at = address;
    for piece in into.chunks_mut(longest_data(port)) {
        command[1..=bytes].copy_from_slice(&at.to_be_bytes()[4 - bytes..]);
        // A register may have any address, so this may wrap.
        at = at.wrapping_add(piece.len() as u32);
        port.run(&mut [Transfer::write(command), Transfer::read(piece)])?;
    }
    Ok(())
}

fn read_id(port: &mut impl Port) -> Result<JedecId, NorError> {
    let mut both = [RDID, 0, 0, 0];
    port.run(&mut [Transfer::in_place(&mut both)])?;
    match both {
        [_, 0xff, 0xff, 0xff] => Err(NorError::NoChip),
        [_, 0, 0, 0] => Err(NorError::StuckLow),
        [_, id @ ..] => Ok(JedecId(id)),
    }
}
