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
//! then waits until the chip is ready, and sends WRDI, before it begins. What a dropped erase or program
//! left in its own range is undefined; all else is as it was.
//!
//! # Not supported
//! Chips shared with other processes. Programming of words (AAI): such a chip is programmed byte by
//! byte. Identifying the chip without blocking: [`SpiNor::new`] does it before, in a few short messages.

use core::ops::Range;
use core::task::Poll;

use embedded_hal_async::delay::DelayNs;
use embedded_storage_async::nor_flash::{ErrorType, MultiwriteNorFlash, NorFlash, ReadNorFlash};

use super::opcode::{CE, RDSR, RDSR2, WRDI, WREN};
use super::wait::Wait;
use super::{Geometry, NorError, Programming, SpiNor, Storage};
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
    /// A change was begun and is not known to be over.
    unsettled: bool,
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
        Ok(Self { chip, delay, unsettled: false })
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

    /// Waits until the chip is ready.
    async fn ready(&mut self, mut wait: Wait) -> Result<(), NorError> {
        self.sleep_ns(wait.first_ns).await;
        loop {
            let late = wait.is_late(&mut self.chip.timer);
            let status = self.register(RDSR).await?;
            if let Poll::Ready(over) = wait.judge(status, late) {
                return over;
            }
            self.sleep_ns(wait.next_ns()).await;
        }
    }

    /// Waits for a change that a dropped or failed future began, and clears the latch.
    async fn settle(&mut self) -> Result<(), NorError> {
        if self.unsettled {
            let Geometry { chip_erase_max_ns, .. } = self.chip.geometry;
            let times = (0, chip_erase_max_ns);
            let wait = Wait::new(&self.chip.geometry, &mut self.chip.timer, times, 0, 0);
            self.ready(wait).await?;
            self.run(&mut [Transfer::write(&[WRDI])]).await?;
            self.unsettled = false;
        }
        Ok(())
    }

    /// Begins an operation on `range` that changes it.
    async fn begin(&mut self, range: &Range<u64>) -> Result<(), NorError> {
        self.settle().await?;
        let status = self.register(RDSR).await?;
        let needed = self.chip.geometry.protection.needs_status_2();
        let status_2 = if needed { self.register(RDSR2).await? } else { 0 };
        self.chip.protection_of(status, status_2).check(range)
    }

    /// One change: *Ordering*, 1 to 3.
    async fn change(
        &mut self,
        address: u64,
        message: &mut [Transfer<'_>],
        times: (u64, u64),
    ) -> Result<(), NorError> {
        self.unsettled = true;
        self.run(&mut [Transfer::write(&[WREN])]).await?;
        let status = self.register(RDSR).await?;
        let bits = self.chip.geometry.enabled(status, address)?;
        self.run(message).await?;
        let wait = Wait::new(&self.chip.geometry, &mut self.chip.timer, times, bits, address);
        self.ready(wait).await?;
        self.unsettled = false;
        Ok(())
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
        let mut at = u64::from(offset);
        self.chip.check_range(at, bytes.len() as u64)?;
        self.settle().await?;
        for piece in bytes.chunks_mut(longest_data(&self.chip.port)) {
            let (command, len) = (self.chip.read_command(at), piece.len() as u64);
            let mut message = [Transfer::write(command.as_slice()), Transfer::read(piece)];
            self.run(&mut message).await?;
            at += len;
        }
        Ok(())
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
        let len = self.chip.check_erase(&range)?;
        if len == 0 {
            return Ok(());
        }
        self.begin(&range).await?;
        if len == self.chip.size() {
            let Geometry { chip_erase_typical_ns, chip_erase_max_ns, .. } = self.chip.geometry;
            let times = (chip_erase_typical_ns, chip_erase_max_ns);
            return self.change(0, &mut [Transfer::write(&[CE])], times).await;
        }
        let mut at = range.start;
        while at < range.end {
            let erase = self.chip.largest_erase(at, range.end - at);
            let command = self.chip.command(erase.opcode, at);
            let times = (erase.typical_ns, erase.max_ns);
            self.change(at, &mut [Transfer::write(command.as_slice())], times).await?;
            at += u64::from(erase.size);
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
        Ok(())
    }
}

/// As for [`Storage`].
impl<P: Port + AsyncPort, T: Timer, D: DelayNs, const ERASE: usize> MultiwriteNorFlash
    for AsyncStorage<P, T, D, ERASE>
{
}
