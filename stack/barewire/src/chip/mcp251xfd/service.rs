//! The interrupt handler's work.

use super::regs::{C1BDIAG1, C1CON, C1INT, C1TREC, FRAME_BYTES, bdiag1, con, int, trec};
use super::{CanError, Mcp251xfd, Mode, OUT_OF_STEP, Received, Transmitted};
use crate::regmap::{Field, Frames};
use crate::time::Timer;

/// Flags that stay set until they are cleared here. The others are set as long as their cause
/// exists.
const CLEARABLE: u32 =
    int::MODIF.mask() | int::SERRIF.mask() | int::CERRIF.mask() | int::IVMIF.mask();
/// Flags whose work must be done even if an access fails in between. The FIFOs' flags return by
/// themselves.
const OWED: u32 = CLEARABLE | int::RXOVIF.mask() | int::SPICRCIF.mask();
/// C1INT's lower half.
const FLAGS: u16 = 0x01c;
/// The byte of FIFO 1's status with RXOVIF; the other bits are not written.
const FIFO_1_STATUS: u16 = 0x060;
const ALL_BUT_RXOVIF: u8 = 0xf7;
/// The byte of CRC with CRCERRIF and FERRIF.
const CRC_FLAGS: u16 = 0xe0a;
/// The number of reads of C1INT without a flag while INT is low, before INT is called stuck.
const IDLE_LOOKS: u32 = 3;
/// The number of reads of C1INT with wrong enables, before the chip is called gone.
const STRANGE_LOOKS: u32 = 3;
/// The largest number of reads of C1INT in one [`Mcp251xfd::serve`].
const BUDGET: u32 = 64;

/// How close to bus-off a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ErrorState {
    /// Below 96 errors.
    Active,
    /// From 96.
    Warning,
    /// From 128: it sends no active error flags.
    Passive,
    /// From 256 transmit errors: off the bus.
    BusOff,
}

impl ErrorState {
    fn of(word: u32) -> Self {
        match () {
            () if trec::TXBO.get(word) != 0 => Self::BusOff,
            () if trec::TXBP.get(word) != 0 || trec::RXBP.get(word) != 0 => Self::Passive,
            () if trec::EWARN.get(word) != 0 => Self::Warning,
            () => Self::Active,
        }
    }
}

/// The error counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorCounters {
    /// TEC.
    pub transmit: u8,
    /// REC.
    pub receive: u8,
    /// The resulting error state.
    pub state: ErrorState,
}

/// Errors in frames since the last report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Invalid {
    /// A bit on the bus differed from the one sent.
    pub bit: bool,
    /// No node acknowledged.
    pub acknowledge: bool,
    /// A bit that must be recessive was not.
    pub form: bool,
    /// Six equal bits.
    pub stuff: bool,
    /// A wrong CRC.
    pub crc: bool,
}

/// The result of one [`Mcp251xfd::service`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Found {
    /// A frame was received.
    pub frame: bool,
    /// A frame was sent, if events are configured.
    pub transmitted: Option<Transmitted>,
    /// Frames were lost: FIFO 1 was full.
    pub overflow: bool,
    /// The error state has changed.
    pub state: Option<ErrorState>,
    /// The chip is in another mode than the configured one.
    pub mode: Option<Mode>,
    /// Frames were invalid.
    pub invalid: Option<Invalid>,
    /// The chip could not keep up with its own memory (SERRIF). A frame was lost, or the chip no
    /// longer transmits, which `mode` reports.
    pub system_error: bool,
    /// The chip received an access with a wrong CRC.
    pub spi_crc: bool,
}

impl Found {
    /// Whether there was nothing to do.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// The result of [`Mcp251xfd::serve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Served {
    /// The number of frames received.
    pub frames: u32,
    /// The number of reads of C1INT.
    pub looks: u32,
    /// Whether it stopped at its limit, with INT still low, to let other code run.
    pub more: bool,
}

fn is(word: u32, field: Field) -> bool {
    word & field.mask() != 0
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Reads the chip's flags once and does the work; a received frame is stored in `received`.
    ///
    /// 1. Flags: read C1INT.
    /// 2. Frames: take a received frame ([`Received`]), and an event of transmission.
    /// 3. Errors, which are rare: clear their flags, then read their causes.
    ///
    /// # Errors
    /// [`CanError::Gone`], [`CanError::Message`], [`CanError::Crc`]. Unfinished work is found again
    /// by the next call. If an access fails after an event was found, the event is returned now.
    /// The access is retried on the next call, which returns any error.
    #[inline]
    pub fn service(&mut self, received: &mut Received) -> Result<Found, CanError> {
        let mut found = Found::default();
        if self.owed != 0 {
            self.make_up(&mut found)?;
            if !found.is_nothing() {
                return Ok(found);
            }
        }
        // Step 1, flags.
        let pending = self.look()?;
        // Step 2, frames.
        if is(pending, int::RXIF) {
            self.take_frame(received)?;
            found.frame = true;
        }
        if pending & !int::RXIF.mask() != 0 {
            self.attend(pending, &mut found)?;
        }
        Ok(found)
    }

    /// Serves the interrupt: calls [`Mcp251xfd::service`] while `int_is_low` returns true, at most
    /// 64 times, and `handle` for each result that is not empty.
    ///
    /// # Errors
    /// [`CanError::InterruptStuck`]; those of [`Mcp251xfd::service`] and of `handle`.
    pub fn serve(
        &mut self,
        mut int_is_low: impl FnMut() -> bool,
        mut handle: impl FnMut(&mut Self, &Received, &Found) -> Result<(), CanError>,
    ) -> Result<Served, CanError> {
        let mut served = Served::default();
        let mut received = Received::EMPTY;
        let mut idle = 0;
        while int_is_low() {
            if served.looks == BUDGET {
                served.more = true;
                break;
            }
            let found = self.service(&mut received)?;
            served.looks += 1;
            if found.is_nothing() {
                idle += 1;
                if idle == IDLE_LOOKS {
                    return Err(CanError::InterruptStuck { interrupts: self.interrupts });
                }
                continue;
            }
            idle = 0;
            served.frames += u32::from(found.frame);
            handle(self, &received, &found)?;
        }
        Ok(served)
    }

    /// The flags that are set and enabled.
    #[inline]
    fn look(&mut self) -> Result<u32, CanError> {
        self.interrupts = self.link.read(&C1INT)?;
        if self.interrupts & ENABLES != self.enables {
            self.look_again()?;
        }
        Ok(self.interrupts & self.interrupts >> 16)
    }

    #[cold]
    fn look_again(&mut self) -> Result<(), CanError> {
        for _ in 1..STRANGE_LOOKS {
            self.interrupts = self.link.read(&C1INT)?;
            if self.interrupts & ENABLES == self.enables {
                return Ok(());
            }
        }
        Err(CanError::Gone { interrupts: self.interrupts })
    }

    /// Handles everything but received frames.
    #[cold]
    #[inline(never)]
    fn attend(&mut self, pending: u32, found: &mut Found) -> Result<(), CanError> {
        self.owed |= pending & OWED;
        let attended = self.attend_to_event(pending, found).and_then(|()| self.settle(found));
        told_later(attended, found)
    }

    fn attend_to_event(&mut self, pending: u32, found: &mut Found) -> Result<(), CanError> {
        if is(pending, int::TEFIF) {
            found.transmitted = Some(self.take_event()?);
        }
        Ok(())
    }

    /// Does the work that a failed access has left over.
    #[cold]
    #[inline(never)]
    fn make_up(&mut self, found: &mut Found) -> Result<(), CanError> {
        self.get_in_step()?;
        let settled = self.settle(found);
        told_later(settled, found)
    }

    /// Handles the causes that are still to be done. Each is removed when it is done.
    fn settle(&mut self, found: &mut Found) -> Result<(), CanError> {
        if is(self.owed, int::RXOVIF) {
            self.link.write_bytes(FIFO_1_STATUS, &[ALL_BUT_RXOVIF])?;
            self.owed &= !int::RXOVIF.mask();
            found.overflow = true;
        }
        if is(self.owed, int::SPICRCIF) {
            self.link.write_bytes(CRC_FLAGS, &[0])?;
            self.owed &= !int::SPICRCIF.mask();
            found.spi_crc = true;
        }
        let clear = self.owed & CLEARABLE;
        if clear == 0 {
            return Ok(());
        }
        // Writing 1 leaves a flag unchanged.
        self.link.write_bytes(FLAGS, &(!(clear as u16)).to_le_bytes())?;
        if is(clear, int::CERRIF) {
            let counters = self.error_counters()?;
            self.owed &= !int::CERRIF.mask();
            found.state = Some(counters.state);
            // Frames that waited to be sent may have been dropped.
            if counters.state == ErrorState::BusOff {
                self.tx_free = 0;
            }
        }
        if is(clear, int::IVMIF) {
            found.invalid = Some(self.take_invalid()?);
            self.owed &= !int::IVMIF.mask();
        }
        // Erratum DS80000792 1: after a transmit buffer underflow the chip is in restricted or
        // listen-only mode and must not stay there. SERRIF may be set before MODIF.
        if clear & (int::MODIF.mask() | int::SERRIF.mask()) != 0 {
            let mode = Mode::of(con::OPMOD.get(self.link.read(&C1CON)?));
            self.owed &= !(int::MODIF.mask() | int::SERRIF.mask());
            found.mode = (mode != self.config.mode).then_some(mode);
            found.system_error = is(clear, int::SERRIF);
        }
        Ok(())
    }

    fn take_invalid(&mut self) -> Result<Invalid, CanError> {
        let word = self.link.read(&C1BDIAG1)?;
        self.link.write(&C1BDIAG1, 0)?;
        let any = |fields: &[Field]| fields.iter().any(|&field| is(word, field));
        use bdiag1 as b;
        Ok(Invalid {
            bit: any(&[b::NBIT0ERR, b::NBIT1ERR, b::DBIT0ERR, b::DBIT1ERR]),
            acknowledge: any(&[b::NACKERR]),
            form: any(&[b::NFORMERR, b::DFORMERR]),
            stuff: any(&[b::NSTUFERR, b::DSTUFERR]),
            crc: any(&[b::NCRCERR, b::DCRCERR]),
        })
    }

    /// The error counters.
    ///
    /// # Errors
    /// [`CanError::Message`], [`CanError::Crc`].
    pub fn error_counters(&mut self) -> Result<ErrorCounters, CanError> {
        let word = self.link.read(&C1TREC)?;
        let (transmit, receive) = (trec::TEC.get(word) as u8, trec::REC.get(word) as u8);
        Ok(ErrorCounters { transmit, receive, state: ErrorState::of(word) })
    }

    /// After a failed access: asks the chip for the state of its FIFOs.
    #[inline]
    pub(super) fn get_in_step(&mut self) -> Result<(), CanError> {
        if self.owed & OUT_OF_STEP != 0 { self.find_all() } else { Ok(()) }
    }

    #[cold]
    fn find_all(&mut self) -> Result<(), CanError> {
        self.find_rx()?;
        self.find_tx()?;
        self.find_tef()?;
        self.tx_free = 0;
        self.owed &= !OUT_OF_STEP;
        Ok(())
    }
}

/// Returns an error only if nothing was found. Otherwise the error waits: its work is still to be
/// done, and the result would be lost with the error.
fn told_later(result: Result<(), CanError>, found: &Found) -> Result<(), CanError> {
    if found.is_nothing() { result } else { Ok(()) }
}

/// C1INT's upper half: the enables.
const ENABLES: u32 = 0xffff_0000;
