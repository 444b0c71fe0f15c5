//! Writing: changes only what differs, and reads back what was changed.
//!
//! # How it works
//! The range is split into pieces of one block each (the largest erase size up to 64 KiB at its
//! address), and each piece into sectors (the smallest erase size there).
//! 1. Compare: each sector is read. It is equal, or needs programming (bits are only cleared), or
//!    needs an erase.
//! 2. Block: if the piece covers its block, one block erase may replace the sectors' erases, if it
//!    takes less time including the additional programming.
//! 3. Keep: if a sector is written in part and needs an erase, its other bytes are kept in the
//!    scratch buffer from step 1. If power fails between its erase and its programming, they are
//!    lost.
//! 4. Program: pages without a bit to clear are skipped.
//! 5. Verify: every changed sector is read back and compared. If the chip may have ignored an erase, the driver
//!    notices that before it programs over the old content.

use core::ops::{ControlFlow, Range};

use super::erase::ERASED;
use super::opcode::{AAI_WP, PP, PP_4B, WRDI};
use super::{
    Addressing, Block, COMMAND_MAX, Command, NorError, Observer, Programming, SpiNor,
    first_difference, go_on,
};
use crate::chip::{Port, longest_data};
use crate::spi::Transfer;
use crate::time::Timer;

/// While writing, no block larger than this is erased at once, unless that place has no smaller block.
const BLOCK_MAX: u64 = 64 << 10;

/// The result of a write. Of the bytes that were to be written, each is unchanged, programmed or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Written {
    /// The number of bytes in sectors that held them already.
    pub unchanged_bytes: u64,
    /// The number of bytes programmed, of those that were to be written.
    pub programmed_bytes: u64,
    /// The number of bytes that were not sent, although others of their sector were: the chip held
    /// them already, or they equal an erased byte.
    pub skipped_bytes: u64,
    /// The number of bytes programmed again around those, because their sector had to be erased.
    pub restored_bytes: u64,
    /// The number of bytes erased.
    pub erased_bytes: u64,
    /// The number of erase commands.
    pub erases: u32,
    /// The number of program commands.
    pub programs: u32,
}

/// An observer that never stops.
pub fn no_observer(_done: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The action that a sector needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Program,
    Erase,
}

impl Need {
    fn of(old: &[u8], new: &[u8]) -> Self {
        if old == new {
            Need::Nothing
        } else if old.iter().zip(new).all(|(old, new)| old & new == *new) {
            Need::Program
        } else {
            Need::Erase
        }
    }
}

impl<P: Port, T: Timer> SpiNor<P, T> {
    /// Writes `data` at `offset`, erasing and programming only what differs, and verifies it.
    ///
    /// `scratch` holds at least [`super::Geometry::scratch_size`] bytes. `observer` is
    /// called with the number of bytes of `data` done, after each sector, or after a block that is
    /// erased as a whole.
    ///
    /// # Errors
    /// Before anything is changed: [`NorError::OutOfRange`], [`NorError::OutOfReach`],
    /// [`NorError::Protected`] and [`NorError::ScratchTooSmall`]. Then [`NorError::NoErase`] (at a place that
    /// needs an erase), [`NorError::Verify`], [`NorError::Failed`], [`NorError::Ignored`],
    /// [`NorError::StaysBusy`], [`NorError::Gone`], [`NorError::Interrupted`] (between sectors or blocks),
    /// [`NorError::Occupied`], or an error of the bus. If the chip still answers, it is
    /// write-disabled in every case.
    pub fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        scratch: &mut [u8],
        observer: Observer<'_>,
    ) -> Result<Written, NorError> {
        let range = self.check_range(offset, data.len() as u64)?;
        let needed = self.geometry.scratch_size();
        if scratch.len() < needed as usize {
            return Err(NorError::ScratchTooSmall { len: scratch.len(), needed });
        }
        let mut written = Written::default();
        if data.is_empty() {
            return Ok(written);
        }
        self.check_protection(&range)?;
        let mut address = offset;
        while address < range.end {
            let (sector, _) = self.geometry.piece_at(address);
            let block = self.geometry.blocks_at(address).rfind(|block| block.len <= BLOCK_MAX);
            let block_end = block.map_or(sector.end, |block| block.end());
            let piece_end = block_end.min(range.end);
            let piece = &data[(address - offset) as usize..(piece_end - offset) as usize];
            let before = address - offset;
            let mut done = |bytes: u64| observer(before + bytes);
            let whole = block.filter(|block| block.len == piece.len() as u64);
            let wrote = match whole.filter(|block| block.end() > sector.end) {
                Some(block) => self.write_block(&block, piece, scratch, &mut written, &mut done),
                None => self.write_sectors(address, piece, scratch, &mut written, &mut done),
            };
            wrote.map_err(|error| match error {
                NorError::Interrupted { done } => NorError::Interrupted { done: before + done },
                error => error,
            })?;
            address = piece_end;
        }
        let sent = written.unchanged_bytes + written.programmed_bytes;
        written.skipped_bytes = data.len() as u64 - sent;
        Ok(written)
    }

    /// Programs `data` at `offset` without erasing, so bits are only cleared, and reads back that they are.
    ///
    /// # Errors
    /// [`NorError::OutOfRange`], [`NorError::OutOfReach`] and [`NorError::Protected`], before anything is
    /// changed; [`NorError::Verify`], [`NorError::Failed`], [`NorError::Ignored`], [`NorError::StaysBusy`],
    /// [`NorError::Gone`], an error of the bus.
    pub fn program_only(&mut self, offset: u64, data: &[u8]) -> Result<(), NorError> {
        let range = self.check_range(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.check_protection(&range)?;
        // The operation is as long as programming a sector: another user of a shared chip waits for
        // it.
        let mut at = offset;
        while at < range.end {
            let (sector, _) = self.geometry.piece_at(at);
            let end = sector.end.min(range.end);
            let piece = &data[(at - offset) as usize..(end - offset) as usize];
            self.operation(|chip| {
                chip.program_pages(at, piece, None, &(at..end), &mut Written::default())?;
                chip.read_back_in_pieces(at, piece, bit_is_cleared)
            })?;
            at = end;
        }
        Ok(())
    }

    /// Writes a whole block: by its own erase, as one operation, if that is faster (step 2),
    /// otherwise sector by sector.
    fn write_block(
        &mut self,
        block: &Block,
        data: &[u8],
        scratch: &mut [u8],
        written: &mut Written,
        observer: Observer<'_>,
    ) -> Result<(), NorError> {
        if self.operation(|chip| chip.write_whole(block, data, scratch, written))? {
            // Called between operations, since the observer may use the chip itself.
            return go_on(observer, data.len() as u64);
        }
        self.write_sectors(block.start, data, scratch, written, observer)
    }

    /// Returns whether the block was written as a whole. If not, nothing was changed.
    fn write_whole(
        &mut self,
        block: &Block,
        data: &[u8],
        scratch: &mut [u8],
        written: &mut Written,
    ) -> Result<bool, NorError> {
        let Some(sector) = self.geometry.sector_at(block.start) else { return Ok(false) };
        // A block is in one region, so its sectors are of one size.
        let sectors =
            || data.chunks(sector.len as usize).zip((block.start..).step_by(sector.len as usize));
        let mut erases = 0;
        let mut kept_pages = 0;
        for (new, at) in sectors() {
            let old = &mut scratch[..new.len()];
            self.fetch(at, old)?;
            match Need::of(old, new) {
                Need::Erase => erases += 1,
                Need::Nothing | Need::Program => kept_pages += self.pages_to_program(new),
            }
        }
        let by_sector_ns = erases * sector.erase.typical_ns;
        let by_block_ns = block.erase.typical_ns + kept_pages * self.geometry.program_typical_ns;
        if erases == 0 || by_sector_ns <= by_block_ns {
            return Ok(false);
        }
        self.erase_to_write(block, written)?;
        for (new, at) in sectors() {
            self.program_pages(at, new, None, &(at..at + new.len() as u64), written)?;
            self.read_back(at, new, scratch)?;
        }
        Ok(true)
    }

    /// Erases a block whose content is in a buffer. The data written afterwards is read back. The blank block is
    /// read back only if the chip may have ignored the erase.
    fn erase_to_write(&mut self, block: &Block, written: &mut Written) -> Result<(), NorError> {
        self.erase_block_unseen(block)?;
        if self.ignored.is_some() {
            self.check_blank(block)?;
        }
        written.erases += 1;
        written.erased_bytes += block.len;
        Ok(())
    }

    fn pages_to_program(&self, data: &[u8]) -> u64 {
        let pages = data.chunks(self.geometry.page_size() as usize);
        pages.filter(|page| page.iter().any(|&byte| byte != ERASED)).count() as u64
    }

    /// Sector by sector.
    fn write_sectors(
        &mut self,
        address: u64,
        data: &[u8],
        scratch: &mut [u8],
        written: &mut Written,
        observer: Observer<'_>,
    ) -> Result<(), NorError> {
        let end = address + data.len() as u64;
        let mut at = address;
        while at < end {
            let (sector, _) = self.geometry.piece_at(at);
            let piece_end = sector.end.min(end);
            let piece = &data[(at - address) as usize..(piece_end - address) as usize];
            self.operation(|chip| chip.write_sector(at, piece, scratch, written))?;
            at = piece_end;
            go_on(observer, at - address)?;
        }
        Ok(())
    }

    /// Writes `new` at `at`, inside one sector, within an operation, so that another user's changes to the
    /// same sector are kept.
    fn write_sector(
        &mut self,
        at: u64,
        new: &[u8],
        scratch: &mut [u8],
        written: &mut Written,
    ) -> Result<(), NorError> {
        let (sector, block) = self.geometry.piece_at(at);
        let (sector, len) = (sector.start, (sector.end - sector.start) as usize);
        let scratch = &mut scratch[..len];
        let inside = (at - sector) as usize..(at - sector) as usize + new.len();
        let range = at..at + new.len() as u64;
        self.fetch(at, &mut scratch[inside.clone()])?;
        match Need::of(&scratch[inside.clone()], new) {
            Need::Nothing => {
                written.unchanged_bytes += new.len() as u64;
                return Ok(());
            }
            Need::Program => {
                self.program_pages(at, new, Some(&scratch[inside.clone()]), &range, written)?;
                return self.read_back(at, new, scratch);
            }
            Need::Erase => {}
        }
        let block = block.ok_or(NorError::NoErase { address: at })?;
        // The bytes around the new ones are kept (step 3).
        let (before, after) = (0..inside.start, inside.end..scratch.len());
        self.fetch(sector, &mut scratch[before])?;
        self.fetch(sector + inside.end as u64, &mut scratch[after])?;
        scratch[inside].copy_from_slice(new);
        self.erase_to_write(&block, written)?;
        self.program_pages(sector, scratch, None, &range, written)?;
        // The scratch buffer holds the expected bytes, so the sector is read back in small pieces.
        self.read_back_in_pieces(sector, scratch, bytes_are_equal)
    }

    /// Programs what differs from `new`: compared with `old` if it is given, otherwise with the
    /// erased state (step 4). Bytes outside `wanted` are restored.
    fn program_pages(
        &mut self,
        address: u64,
        new: &[u8],
        old: Option<&[u8]>,
        wanted: &Range<u64>,
        written: &mut Written,
    ) -> Result<(), NorError> {
        let page_size = u64::from(self.geometry.page_size());
        let end = address + new.len() as u64;
        let mut at = address;
        while at < end {
            let page_end = ((at / page_size + 1) * page_size).min(end);
            let page = (at - address) as usize..(page_end - address) as usize;
            let differs = |index: &usize| match old {
                Some(old) => old[*index] != new[*index],
                None => new[*index] != ERASED,
            };
            if let Some(first) = page.clone().find(differs) {
                if let Some(last) = page.clone().rfind(differs) {
                    let bytes = &new[first..=last];
                    let (begin, sent) = (address + first as u64, bytes.len() as u64);
                    written.programs += self.program(begin, bytes)?;
                    let end = (begin + sent).min(wanted.end);
                    let inside = end.saturating_sub(begin.max(wanted.start));
                    written.programmed_bytes += inside;
                    written.restored_bytes += sent - inside;
                }
            }
            at = page_end;
        }
        Ok(())
    }

    /// Programs `bytes`, which are inside one page. Returns the number of commands.
    fn program(&mut self, address: u64, bytes: &[u8]) -> Result<u32, NorError> {
        match self.geometry.programming {
            Programming::Page { .. } => {
                let (mut at, mut programs) = (address, 0);
                for piece in bytes.chunks(longest_data(&self.port)) {
                    self.program_page(at, piece)?;
                    at += piece.len() as u64;
                    programs += 1;
                }
                Ok(programs)
            }
            Programming::AaiWord => self.program_words(address, bytes),
        }
    }

    fn program_page(&mut self, address: u64, bytes: &[u8]) -> Result<(), NorError> {
        let command = self.program_command(address);
        let (typical_ns, max_ns) = (self.geometry.program_typical_ns, self.geometry.program_max_ns);
        self.reach(address)?;
        let mut enabled = self.write_enable(address)?;
        let mut message = [Transfer::write(command.as_slice()), Transfer::write(bytes)];
        enabled.chip().port.run(&mut message)?;
        enabled.finish(typical_ns, max_ns, address)
    }

    pub(super) fn program_command(&self, address: u64) -> Command {
        let opcode = match self.geometry.addressing {
            Addressing::FourByteOpcodes => PP_4B,
            _ => PP,
        };
        self.command(opcode, address)
    }

    /// Programs even-aligned pairs by AAI, and odd ends by single bytes.
    fn program_words(&mut self, address: u64, bytes: &[u8]) -> Result<u32, NorError> {
        let head = (address % 2) as usize;
        let pairs = (bytes.len() - head) / 2 * 2;
        let (head, rest) = bytes.split_at(head);
        let (pairs, tail) = rest.split_at(pairs);
        let mut programs = 0;
        if !head.is_empty() {
            self.program_page(address, head)?;
            programs += 1;
        }
        let at = address + head.len() as u64;
        if !pairs.is_empty() {
            self.program_aai(at, pairs)?;
            programs += pairs.len() as u32 / 2;
        }
        if !tail.is_empty() {
            self.program_page(at + pairs.len() as u64, tail)?;
            programs += 1;
        }
        Ok(programs)
    }

    /// A run of words: the first with its address, the rest without; WRDI ends it.
    fn program_aai(&mut self, address: u64, pairs: &[u8]) -> Result<(), NorError> {
        let command = self.command(AAI_WP, address);
        let (typical_ns, max_ns) = (self.geometry.program_typical_ns, self.geometry.program_max_ns);
        // The chip stays enabled from word to word. Dropping the guard ends that.
        let mut enabled = self.write_enable(address)?;
        for (index, pair) in pairs.chunks_exact(2).enumerate() {
            // One short transfer per word: its bytes cost less than a second transfer.
            let start = if index == 0 { command.as_slice() } else { &[AAI_WP] };
            let mut bytes = [0; COMMAND_MAX + 2];
            bytes[..start.len()].copy_from_slice(start);
            bytes[start.len()..][..2].copy_from_slice(pair);
            enabled.chip().port.run(&mut [Transfer::write(&bytes[..start.len() + 2])])?;
            enabled.wait_ready((typical_ns, max_ns), address + 2 * index as u64)?;
        }
        enabled.chip().port.run(&mut [Transfer::write(&[WRDI])])?;
        enabled.finish(0, max_ns, address)
    }

    /// Compares with `expected`, through `scratch` (step 5).
    fn read_back(
        &mut self,
        address: u64,
        expected: &[u8],
        scratch: &mut [u8],
    ) -> Result<(), NorError> {
        if !self.read_back {
            return Ok(());
        }
        let actual = &mut scratch[..expected.len()];
        self.fetch(address, actual)?;
        match first_difference(expected, actual) {
            None => Ok(()),
            Some(at) => Err(self.differs(address + at as u64, expected[at], actual[at])),
        }
    }

    /// As `is` says of an expected and an actual byte.
    fn read_back_in_pieces(
        &mut self,
        address: u64,
        expected: &[u8],
        is: fn(u8, u8) -> bool,
    ) -> Result<(), NorError> {
        if !self.read_back {
            return Ok(());
        }
        let mut actual = [0; 256];
        for (piece, at) in expected.chunks(actual.len()).zip((address..).step_by(256)) {
            let actual = &mut actual[..piece.len()];
            self.fetch(at, actual)?;
            let wrong = piece.iter().zip(&*actual).position(|(one, other)| !is(*one, *other));
            if let Some(place) = wrong {
                return Err(self.differs(at + place as u64, piece[place], actual[place]));
            }
        }
        Ok(())
    }
}

fn bytes_are_equal(expected: u8, actual: u8) -> bool {
    expected == actual
}

/// Whether a byte that was programmed over another has every bit cleared that was to be cleared.
pub(super) fn bit_is_cleared(programmed: u8, actual: u8) -> bool {
    actual & !programmed == 0
}
