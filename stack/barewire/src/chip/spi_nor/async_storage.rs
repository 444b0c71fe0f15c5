//! The traits of `embedded-storage-async`: the chip's busy time is awaited, and other devices use the bus
//! meanwhile.
//!
//! # How it works
//! A change is: WREN, RDSR (was the latch set?), the command, then RDSR at intervals until the chip is
//! ready. Each is one message on the bus, awaited as every [`AsyncPort`] awaits it. Between two
//! questions the future awaits its source of delays.
//!
//! # Ordering
//! 1. Mark: before WREN the chip is marked as unsettled.
//! 2. Change: WREN, the command, the wait.
//! 3. Unmark: the chip is ready, and has cleared its latch itself.
//!
//! A future that is dropped between 1 and 3, or that fails, leaves the mark. The next operation
//! then waits until the chip is ready, and sends WRDI, before it begins. After a dropped erase or
//! program, the content of its own range is undefined; all other content is unchanged.
//!
//! # Not supported
//! Chips shared with other processes. Programming of words (AAI): such a chip is programmed byte by
//! byte. Identifying the chip, and opening what it protects at power-up, without blocking: that is done in a few
//! short messages, once.

use core::ops::Range;
use core::task::Poll;

use embedded_hal_async::delay::DelayNs;
use embedded_storage_async::nor_flash::{ErrorType, MultiwriteNorFlash, NorFlash, ReadNorFlash};

use super::erase::{ERASED, PIECE};
use super::fault::Report;
use super::opcode::{RDFSR, RDSR, RDSR2, WRDI, WREAR, WREN};
use super::wait::Wait;
use super::write::bit_is_cleared;
use super::{Block, Geometry, Layout, NorError, Programming, SpiNor, Storage, WEL};
use crate::chip::{AsyncPort, Port, Sharing, longest_data};
use crate::spi::Transfer;
use crate::time::Timer;

/// A flash chip for `embedded-storage-async`. `ERASE` is as in [`Storage`]; a write only programs.
///
/// Every future may be dropped at any moment: see the [module](super)'s guarantee for a dropped message,
/// and the next operation waits for what the chip was told to do.
#[derive(Debug)]
pub struct AsyncStorage<P: Port, T: Timer, D, const ERASE: usize = 4096> {
    chip: SpiNor<P, T>,
    delay: D,
}

impl<P: Port, T: Timer, D, const ERASE: usize> AsyncStorage<P, T, D, ERASE> {
    /// Takes the chip. `delay` is awaited while the chip is busy.
    ///
    /// # Errors
    /// [`NorError::Misaligned`] if the chip does not erase blocks of `ERASE` bytes.
    /// [`NorError::Shared`] if other processes use the chip.
    pub fn new(chip: SpiNor<P, T>, delay: D) -> Result<Self, NorError> {
        if chip.sharing == Sharing::Shared {
            return Err(NorError::Shared);
        }
        let chip = Storage::<P, T, ERASE>::new(chip)?.release();
        Ok(Self { chip, delay })
    }
}

impl<P: Port + AsyncPort, T: Timer, D: DelayNs, const ERASE: usize> AsyncStorage<P, T, D, ERASE> {
    async fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), NorError> {
        Ok(self.chip.port.run_async(message).await?)
    }

    async fn register(&mut self, opcode: u8) -> Result<u8, NorError> {
        let mut both = [opcode, 0];
        self.run(&mut [Transfer::in_place(&mut both)]).await?;
        Ok(both[1])
    }

    async fn sleep_ns(&mut self, ns: u64) {
        // A minute is more than a `u32` of nanoseconds.
        let (ms, ns) = (ns / 1_000_000, ns % 1_000_000);
        if ms > 0 {
            self.delay.delay_ms(u32::try_from(ms).unwrap_or(u32::MAX)).await;
        }
        if ns > 0 {
            self.delay.delay_ns(ns as u32).await;
        }
    }

    /// Waits until the chip is ready. Returns its status. Clears the failures that the chip reports.
    async fn ready(&mut self, mut wait: Wait) -> Result<u8, NorError> {
        let report = self.chip.geometry.report;
        self.sleep_ns(wait.first_ns).await;
        loop {
            let late = wait.is_late(&mut self.chip.timer);
            let status = self.register(RDSR).await?;
            let mut judged = wait.judge(status, late);
            if judged == Poll::Ready(Ok(())) && report == Report::FlagStatus {
                judged = wait.judge_flags(self.register(RDFSR).await?, status, late);
            }
            match judged {
                Poll::Ready(Ok(())) => return Ok(status),
                Poll::Ready(Err(error)) => {
                    if let (NorError::Failed { .. }, Some(clear)) = (error, report.clear()) {
                        self.run(&mut [Transfer::write(&[clear])]).await?;
                    }
                    return Err(error);
                }
                Poll::Pending => self.sleep_ns(wait.next_ns()).await,
            }
        }
    }

    /// Waits for a change that a dropped or failed future began, and clears the latch.
    async fn settle(&mut self) -> Result<(), NorError> {
        self.chip.ignored = None;
        if self.chip.unsettled {
            let times = (0, self.chip.geometry.chip_erase_max_ns);
            let wait = Wait::new(&self.chip.geometry, &mut self.chip.timer, times, 0, 0);
            match self.ready(wait).await {
                // An error of an earlier change. Its caller has had the error or is gone.
                Ok(_) | Err(NorError::Failed { .. }) => {}
                Err(error) => return Err(error),
            }
            self.run(&mut [Transfer::write(&[WRDI])]).await?;
            self.chip.unsettled = false;
        }
        Ok(())
    }

    /// Begins an operation on `range` that changes it.
    async fn begin(&mut self, range: &Range<u64>) -> Result<(), NorError> {
        self.settle().await?;
        let layout = self.chip.geometry.protection;
        let status = self.register(RDSR).await?;
        let status_2 = if layout.needs_status_2() { self.register(RDSR2).await? } else { 0 };
        let protection = self.chip.protection_of(status, status_2);
        if protection.power_up && protection.covers_any(range) || layout == Layout::SstBlocks {
            return self.chip.check_protection(range);
        }
        protection.check(range)
    }

    /// Sets the extended address register, if the part is addressed so.
    async fn reach(&mut self, address: u64) -> Result<(), NorError> {
        if let Some(upper) = self.chip.upper_due(address) {
            self.chip.upper = None;
            for command in [&[WREN][..], &[WREAR, upper], &[WRDI]] {
                self.run(&mut [Transfer::write(command)]).await?;
            }
            self.chip.upper = Some(upper);
        }
        Ok(())
    }

    /// One change: *Ordering*, 1 to 3.
    async fn change(
        &mut self,
        address: u64,
        message: &mut [Transfer<'_>],
        times: (u64, u64),
    ) -> Result<(), NorError> {
        self.reach(address).await?;
        self.chip.unsettled = true;
        self.run(&mut [Transfer::write(&[WREN])]).await?;
        let before = self.register(RDSR).await?;
        self.chip.geometry.enabled(before, address)?;
        self.run(message).await?;
        let wait = Wait::new(&self.chip.geometry, &mut self.chip.timer, times, before, address);
        let status = self.ready(wait).await?;
        if status & WEL != 0 {
            self.run(&mut [Transfer::write(&[WRDI])]).await?;
            self.chip.ignored = Some(status);
        }
        self.chip.unsettled = false;
        if status & WEL != 0 && !self.chip.read_back {
            return Err(NorError::Ignored { address, status });
        }
        Ok(())
    }

    async fn fetch(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), NorError> {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            self.reach(at).await?;
            let (piece, after) = rest.split_at_mut(self.chip.longest_read(at, rest.len()));
            let (command, len) = (self.chip.read_command(at), piece.len() as u64);
            let mut message = [Transfer::write(command.as_slice()), Transfer::read(piece)];
            self.run(&mut message).await?;
            at += len;
            rest = after;
        }
        Ok(())
    }

    /// Reads back: each byte from `start` is as `is` says of its place.
    async fn check(
        &mut self,
        range: Range<u64>,
        expected: impl Fn(u64) -> u8,
        is: fn(u8, u8) -> bool,
    ) -> Result<(), NorError> {
        let mut at = range.start;
        while self.chip.read_back && at < range.end {
            let mut piece = [0; PIECE];
            let len = (range.end - at).min(PIECE as u64) as usize;
            self.fetch(at, &mut piece[..len]).await?;
            for (address, &actual) in (at..).zip(&piece[..len]) {
                let expected = expected(address);
                if !is(expected, actual) {
                    return Err(self.chip.differs(address, expected, actual));
                }
            }
            at += len as u64;
        }
        Ok(())
    }

    /// Erases one block and reads back that it is blank.
    async fn erase_block(&mut self, block: Block) -> Result<(), NorError> {
        let Block { start, erase, .. } = block;
        let command = self.chip.command(erase.opcode, start);
        let times = (erase.typical_ns, erase.max_ns);
        self.change(start, &mut [Transfer::write(command.as_slice())], times).await?;
        self.check(start..block.end(), |_| ERASED, |_, actual| actual == ERASED).await
    }
}

impl<P: Port, T: Timer, D, const ERASE: usize> ErrorType for AsyncStorage<P, T, D, ERASE> {
    type Error = NorError;
}

impl<P: Port + AsyncPort, T: Timer, D: DelayNs, const ERASE: usize> ReadNorFlash
    for AsyncStorage<P, T, D, ERASE>
{
    const READ_SIZE: usize = 1;

    async fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorError> {
        let offset = u64::from(offset);
        self.chip.check_range(offset, bytes.len() as u64)?;
        self.settle().await?;
        self.fetch(offset, bytes).await
    }

    fn capacity(&self) -> usize {
        usize::try_from(self.chip.size()).unwrap_or(usize::MAX)
    }
}

impl<P: Port + AsyncPort, T: Timer, D: DelayNs, const ERASE: usize> NorFlash
    for AsyncStorage<P, T, D, ERASE>
{
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = ERASE;

    async fn erase(&mut self, from: u32, to: u32) -> Result<(), NorError> {
        let range = u64::from(from)..u64::from(to);
        if self.chip.check_erase(&range)? == 0 {
            return Ok(());
        }
        self.begin(&range).await?;
        // Block by block, also the whole chip: the bus is free in between, and each block is seen to be blank.
        let mut at = range.start;
        while at < range.end {
            let block = self.chip.block_from(at, range.end)?;
            self.erase_block(block).await?;
            at = block.end();
        }
        Ok(())
    }

    async fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorError> {
        let mut at = u64::from(offset);
        let range = at..at + bytes.len() as u64;
        self.chip.check_range(at, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.begin(&range).await?;
        let Geometry { programming, program_typical_ns, program_max_ns, .. } = self.chip.geometry;
        let page_size = match programming {
            Programming::Page { .. } => u64::from(self.chip.geometry.page_size()),
            Programming::AaiWord => 1,
        };
        let longest = longest_data(&self.chip.port) as u64;
        while at < range.end {
            let page_end = (at / page_size + 1) * page_size;
            let end = page_end.min(range.end).min(at.saturating_add(longest));
            let piece = &bytes[(at - range.start) as usize..(end - range.start) as usize];
            let command = self.chip.program_command(at);
            let mut message = [Transfer::write(command.as_slice()), Transfer::write(piece)];
            self.change(at, &mut message, (program_typical_ns, program_max_ns)).await?;
            at = end;
        }
        let programmed = |at: u64| bytes[(at - range.start) as usize];
        self.check(range.clone(), programmed, bit_is_cleared).await
    }
}

/// As for [`Storage`].
impl<P: Port + AsyncPort, T: Timer, D: DelayNs, const ERASE: usize> MultiwriteNorFlash
    for AsyncStorage<P, T, D, ERASE>
{
}
