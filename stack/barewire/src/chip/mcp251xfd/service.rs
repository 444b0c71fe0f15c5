//! The interrupt: what there is to do, done.

use super::regs::{C1BDIAG1, C1CON, C1INT, C1TREC, FRAME_BYTES, bdiag1, con, int, trec};
use super::{CanError, Mcp251xfd, Mode, OUT_OF_STEP, Received, Transmitted};
use crate::regmap::{Field, Frames};
use crate::time::Timer;

/// Flags that stay set until they are cleared here; the others are set as long as their cause is.
const CLEARABLE: u32 =
    int::MODIF.mask() | int::SERRIF.mask() | int::CERRIF.mask() | int::IVMIF.mask();
/// Whose cause is attended to even if an access fails in between; the FIFOs' flags come again.
const OWED: u32 = CLEARABLE | int::RXOVIF.mask() | int::SPICRCIF.mask();
/// C1INT's lower half.
const FLAGS: u16 = 0x01c;
/// FIFO 1's status, the byte with RXOVIF; its other bits are not written.
const FIFO_1_STATUS: u16 = 0x060;
const ALL_BUT_RXOVIF: u8 = 0xf7;
/// The byte of CRC that has CRCERRIF and FERRIF.
const CRC_FLAGS: u16 = 0xe0a;
/// Looks that find nothing while INT is low, before it is called stuck.
const IDLE_LOOKS: u32 = 3;
/// Looks at C1INT with other enables than were written, before the chip is called gone.
const STRANGE_LOOKS: u32 = 3;
/// Looks of one [`Mcp251xfd::serve`].
const BUDGET: u32 = 64;

/// How close to bus-off a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorState {
    /// Below 96 errors.
    Active,
    /// From 96.
    Warning,
    /// From 128: it no longer disturbs others.
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
pub struct ErrorCounters {
    /// TEC.
    pub transmit: u8,
    /// REC.
    pub receive: u8,
    /// What they make of the node.
    pub state: ErrorState,
}

/// What was wrong with frames since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    /// Another bit on the bus than was sent.
    pub bit: bool,
    /// Nobody acknowledged.
    pub acknowledge: bool,
    /// A bit that must be recessive was not.
    pub form: bool,
    /// Six equal bits.
    pub stuff: bool,
    /// Another checksum.
    pub crc: bool,
}

/// What one look at the chip found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// A frame was received.
    pub frame: bool,
    /// A frame went out, if events are configured.
    pub transmitted: Option<Transmitted>,
    /// Frames were lost: FIFO 1 was full.
    pub overflow: bool,
    /// The error state has changed.
    pub state: Option<ErrorState>,
    /// The chip is in another mode than it was started in.
    pub mode: Option<Mode>,
    /// Frames were invalid.
    pub invalid: Option<Invalid>,
    /// The chip could not keep up with its own memory (SERRIF): a frame is lost, or it no longer
    /// transmits, which `mode` says.
    pub system_error: bool,
    /// The chip received an access with a wrong CRC.
    pub spi_crc: bool,
}

impl Found {
    /// Whether there was nothing.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What [`Mcp251xfd::serve`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Frames received.
    pub frames: u32,
    /// Looks at C1INT.
    pub looks: u32,
    /// Whether it stopped because others want the processor too, with INT still low.
    pub more: bool,
}

fn is(word: u32, field: Field) -> bool {
    word & field.mask() != 0
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Looks at the chip once and does what is to be done; a frame goes to `received`.
    ///
    /// 1. C1INT.
    /// 2. A frame is taken ([`Received`]), an event of transmission too.
    /// 3. Errors, which are rare: their flags are cleared, then what they are about is read.
    ///
    /// # Errors
    /// [`CanError::Gone`], [`CanError::Message`], [`CanError::Crc`]. What was not done is there to be
    /// found by the next call. An access that fails after something was found fails that next call, if
    /// it fails again: what was found is told, once.
    #[inline]
    pub fn service(&mut self, received: &mut Received) -> Result<Found, CanError> {
        let mut found = Found::default();
        if self.owed != 0 {
            self.make_up(&mut found)?;
            if !found.is_nothing() {
                return Ok(found);
            }
        }
        // Step 1.
        let pending = self.look()?;
        // Step 2.
        if is(pending, int::RXIF) {
            self.take_frame(received)?;
            found.frame = true;
        }
        if pending & !int::RXIF.mask() != 0 {
            self.attend(pending, &mut found)?;
        }
        Ok(found)
    }

    /// Serves the interrupt: looks, and lets `handle` know of each look that found something, as long
    /// as `int_is_low` says so, 64 times at most.
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

    /// What is not a received frame.
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

    /// What an access that failed has left to do.
    #[cold]
    #[inline(never)]
    fn make_up(&mut self, found: &mut Found) -> Result<(), CanError> {
        self.get_in_step()?;
        let settled = self.settle(found);
        told_later(settled, found)
    }

    /// Attends to the causes that are owed. One that was attended to is so no longer.
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
        // Ones leave a flag as it is.
        self.link.write_bytes(FLAGS, &(!(clear as u16)).to_le_bytes())?;
        if is(clear, int::CERRIF) {
            let counters = self.error_counters()?;
            self.owed &= !int::CERRIF.mask();
            found.state = Some(counters.state);
            // Whatever waited to go out may have been dropped.
            if counters.state == ErrorState::BusOff {
                self.tx_free = 0;
            }
        }
        if is(clear, int::IVMIF) {
            found.invalid = Some(self.take_invalid()?);
            self.owed &= !int::IVMIF.mask();
        }
        // Erratum DS80000792 1: a transmit buffer that ran dry leaves the chip in restricted or
        // listen-only mode, which is no mode to go on in. SERRIF may be seen before MODIF.
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

    /// After an access that failed: where the FIFOs stand is the chip's to say.
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

/// A failure is told by itself. Beside something that was found it waits: what it left to do is owed,
/// and what was found would be lost with it.
fn told_later(result: Result<(), CanError>, found: &Found) -> Result<(), CanError> {
    if found.is_nothing() { result } else { Ok(()) }
}

/// C1INT's upper half: what may interrupt.
const ENABLES: u32 = 0xffff_0000;
