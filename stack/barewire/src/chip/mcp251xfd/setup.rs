//! Reset, identity, set-up, modes.

use super::access::Link;
use super::layout::Layout;
use super::regs::{
    C1CON, C1CON_AFTER_RESET, C1DBTCFG, C1FIFOCON, C1INT, C1NBTCFG, C1TDC, C1TEFCON, C1TSCON,
    C1TXQCON, CRC, FRAME_BYTES, OSC, con, crc, fifocon, int, osc, tefcon, tscon, txqcon,
};
use super::{BitTiming, CanError, Config, Mcp251xfd, Mode, Part, TxOrder};
use crate::regmap::Frames;
use crate::spi::Transfer;
use crate::time::{Timer, ticks_at_least};

/// Sixteen zero bits: RESET.
const RESET: [u8; 2] = [0, 0];
/// The byte of C1CON with REQOP and ABAT.
pub(super) const REQOP_BYTE: u16 = 0x003;
/// In that byte: stop transmitting. Without it the mode is not left before the FIFO is empty.
const ABAT_IN_BYTE: u8 = 1 << 3;
/// TOSCSTAB is 3 ms; this is twice that.
const OSCILLATOR_US: u32 = 6_000;
/// A frame of 64 bytes at 20 kbit/s, with some margin.
const CONFIGURATION_US: u32 = 50_000;
/// Eleven recessive bits come after every frame, even on a bus at full load.
const JOIN_US: u32 = 100_000;
/// The byte of CRC with CRCERRIE and FERRIE, and both bits: without them SPICRCIF stays clear.
const CRC_ENABLES_BYTE: u16 = 0xe0b;
const CRC_ENABLES: u8 = 3;
/// The number of attempts to set up a chip that receives corrupt writes.
const SETUP_ATTEMPTS: u32 = 3;
const POLL_NS: u64 = 50_000;
const OSC_MIN_HZ: u32 = 1_000_000;
const OSC_MAX_HZ: u32 = 40_000_000;
const TIMESTAMP_PRESCALER_MAX: u16 = 1_024;
/// FIFOs as elements of the register arrays.
const FIFO_1: u16 = 0;
pub(super) const FIFO_2: u16 = 1;

/// The checks that need no access.
pub(super) fn check(config: &Config, speed_hz: u32) -> Result<(), CanError> {
    let oscillator = &config.oscillator;
    let sysclk_hz = oscillator.sysclk_hz();
    if !(OSC_MIN_HZ..=OSC_MAX_HZ).contains(&oscillator.hz) || sysclk_hz > OSC_MAX_HZ {
        return Err(CanError::Oscillator { sysclk_hz });
    }
    let max_hz = oscillator.spi_max_hz();
    if speed_hz > max_hz {
        return Err(CanError::SpiTooFast { speed_hz, max_hz });
    }
    BitTiming::nominal(sysclk_hz, &config.nominal)?;
    if let Some(data) = &config.data {
        BitTiming::data(sysclk_hz, data)?;
    }
    Ok(())
}

/// Polls `ready` at intervals until it returns a value. `None` on timeout, after `timeout_us`.
fn wait<R>(
    timer: &mut impl Timer,
    timeout_us: u32,
    mut ready: impl FnMut() -> Result<Option<R>, CanError>,
) -> Result<Option<R>, CanError> {
    let begun = timer.now_ticks();
    let limit = ticks_at_least(u64::from(timeout_us) * 1_000, timer.frequency_hz());
    loop {
        // Poll once more after the timeout: the caller may have been kept from polling meanwhile.
        let over = timer.now_ticks().wrapping_sub(begun) > limit;
        if let Some(answer) = ready()? {
            return Ok(Some(answer));
        }
        if over {
            return Ok(None);
        }
        timer.sleep_ns(POLL_NS);
    }
}

fn stands_still(word: u32) -> bool {
    word == 0 || word == u32::MAX
}

impl<F: Frames<FRAME_BYTES>, T: Timer> Mcp251xfd<F, T> {
    /// Brings the chip from any state to configuration mode, sets everything up, then calls
    /// `further`.
    ///
    /// With CRC, if a write arrived corrupt, everything is repeated from the reset: a write with a
    /// corrupt address may have changed a register that the set-up does not write.
    pub(super) fn bring_up(
        &mut self,
        mut further: impl FnMut(&mut Self) -> Result<(), CanError>,
    ) -> Result<(), CanError> {
        let mut attempts = 1;
        loop {
            match self.bring_up_once().and_then(|()| further(self)) {
                Err(CanError::WriteCrc { .. }) if attempts < SETUP_ATTEMPTS => attempts += 1,
                result => return result,
            }
        }
    }

    fn bring_up_once(&mut self) -> Result<(), CanError> {
        self.link.crc = false;
        self.enables = 0;
        self.reset()?;
        if self.config.crc {
            self.link.crc = true;
            self.link.write_bytes(CRC_ENABLES_BYTE, &[CRC_ENABLES])?;
        }
        if let Err(error) = self.clock() {
            // The cause may be a corrupt write instead of the oscillator.
            return match self.check_writes() {
                Err(corrupt @ CanError::WriteCrc { .. }) => Err(corrupt),
                _ => Err(error),
            };
        }
        let layout = Layout::new(&self.config)?;
        self.set_up(&layout)?;
        self.check_writes()?;
        self.tx_go = self.tx_go_bytes();
        self.tx_free = layout.tx.objects;
        self.layout = layout;
        self.owed = 0;
        self.deferred = None;
        self.times = Default::default();
        Ok(())
    }

    /// RESET, which the data sheet allows only in configuration mode, and the check of the chip's
    /// identity.
    fn reset(&mut self) -> Result<(), CanError> {
        let Self { link, timer, .. } = self;
        link.write_bytes(REQOP_BYTE, &[Mode::Configuration as u8 | ABAT_IN_BYTE])?;
        // A chip whose MISO does not change is reported below. A chip that cannot leave its mode
        // because the CAN bus is stuck is reset nevertheless.
        wait(timer, CONFIGURATION_US, || {
            let con = link.read(&C1CON)?;
            let there = Mode::of(con::OPMOD.get(con)) == Mode::Configuration;
            Ok((there || stands_still(con)).then_some(()))
        })?;
        link.run(&mut [Transfer::write(&RESET)])?;
        let ready = osc::OSCRDY.mask();
        wait_osc(link, timer, |osc| osc & ready != 0)?;
        let actual = link.read(&C1CON)?;
        if stands_still(actual) {
            return Err(CanError::NoChip { received: actual });
        }
        let expected = C1CON_AFTER_RESET;
        if actual != expected {
            return Err(CanError::UnexpectedId { expected, actual });
        }
        Ok(())
    }

    /// Configures the oscillator and determines the part: only MCP2518FD has LPMEN.
    fn clock(&mut self) -> Result<(), CanError> {
        let Self { link, timer, config, .. } = self;
        let value = osc::PLLEN.put(osc::CLKODIV.mask(), config.oscillator.pll.into());
        let value = osc::SCLKDIV.put(value, config.oscillator.halved.into());
        link.write(&OSC, value | osc::LPMEN.mask())?;
        let read = link.read(&OSC)?;
        self.part = if read & osc::LPMEN.mask() != 0 { Part::Mcp2518fd } else { Part::Mcp2517fd };
        link.write(&OSC, value)?;
        let all = osc::OSCRDY.mask() | osc::PLLRDY.mask() | osc::SCLKRDY.mask();
        let ready = osc::OSCRDY.mask();
        let ready = osc::PLLRDY.put(ready, config.oscillator.pll.into());
        let ready = osc::SCLKRDY.put(ready, config.oscillator.halved.into());
        wait_osc(link, timer, |osc| osc & all == ready)
    }

    fn set_up(&mut self, layout: &Layout) -> Result<(), CanError> {
        let Self { link, config, filters, .. } = self;
        let sysclk_hz = config.oscillator.sysclk_hz();
        link.write(&C1NBTCFG, BitTiming::nominal(sysclk_hz, &config.nominal)?.nominal_word())?;
        if let Some(data) = &config.data {
            let data = BitTiming::data(sysclk_hz, data)?;
            link.write(&C1DBTCFG, data.data_word())?;
            link.write(&C1TDC, data.tdc_word())?;
        }
        let prescaler = config.timestamp_prescaler.clamp(1, TIMESTAMP_PRESCALER_MAX);
        link.write(&C1TSCON, tscon::TBCPRE.put(tscon::TBCEN.mask(), u32::from(prescaler) - 1))?;
        let queue = config.tx_order == TxOrder::Identifier;
        // STEF and TXQEN decide which FIFOs take memory.
        let con = con::TXQEN.put(C1CON_AFTER_RESET, queue.into());
        link.write(&C1CON, con::STEF.put(con, config.transmit_events.into()))?;
        if config.transmit_events {
            let tef = tefcon::TEFNEIE.mask() | tefcon::TEFTSEN.mask() | tefcon::FRESET.mask();
            link.write(&C1TEFCON, tefcon::FSIZE.put(tef, u32::from(layout.tef.objects) - 1))?;
        }
        // TX: unlimited attempts, since TXAT has no effect while RTXAT is clear.
        let payload = u32::from(config.payload as u8);
        let tx = txqcon::TXEN.mask() | txqcon::FRESET.mask() | txqcon::TXAT.mask();
        let tx = txqcon::FSIZE.put(tx, u32::from(layout.tx.objects) - 1);
        let tx = txqcon::PLSIZE.put(tx, payload);
        let rx = fifocon::TFNRFNIE.mask() | fifocon::RXOVIE.mask() | fifocon::RXTSEN.mask();
        let rx = fifocon::FSIZE.put(rx | fifocon::FRESET.mask(), u32::from(layout.rx.objects) - 1);
        link.write(C1FIFOCON.nth(FIFO_1), fifocon::PLSIZE.put(rx, payload))?;
        match queue {
            true => link.write(&C1TXQCON, tx)?,
            false => link.write(C1FIFOCON.nth(FIFO_2), tx)?,
        }
        for (index, filter) in (0..).zip(filters.iter()) {
            // The reset has disabled all filters.
            if filter.is_some() {
                link.set_filter(index, *filter)?;
            }
        }
        Ok(())
    }

    /// With CRC: checks that all writes since the reset, or since
    /// [`Found::spi_crc`](super::Found::spi_crc) was last reported, have arrived. A write that
    /// corrupts the enables is detected by the enables themselves.
    fn check_writes(&mut self) -> Result<(), CanError> {
        if !self.config.crc {
            return Ok(());
        }
        let actual = self.link.read(&CRC)?;
        let enables = crc::CRCERRIE.mask() | crc::FERRIE.mask();
        let flags = crc::CRCERRIF.mask() | crc::FERRIF.mask();
        match actual & (enables | flags) == enables {
            true => Ok(()),
            false => Err(CanError::WriteCrc { crc: actual }),
        }
    }

    /// Joins the bus in the configuration's mode.
    ///
    /// # Errors
    /// [`CanError::ModeTimeout`], [`CanError::Message`], [`CanError::Crc`]; [`CanError::WriteCrc`],
    /// after which only [`Mcp251xfd::restart`] helps.
    pub fn start(&mut self) -> Result<(), CanError> {
        self.change_mode(self.config.mode, self.config.mode as u8, JOIN_US)?;
        // The mode change has set a flag itself, which is cleared together with writing the
        // enables.
        let enables = self.wanted_enables();
        self.link.write(&C1INT, enables)?;
        self.check_writes()?;
        self.enables = enables;
        Ok(())
    }

    /// The interrupts enabled on the bus.
    fn wanted_enables(&self) -> u32 {
        let enables = int::RXIE.mask() | int::RXOVIE.mask() | int::CERRIE.mask();
        let enables = enables | int::SERRIE.mask() | int::MODIE.mask();
        let enables = int::IVMIE.put(enables, self.config.invalid_frames.into());
        let enables = int::TEFIE.put(enables, self.config.transmit_events.into());
        int::SPICRCIE.put(enables, self.config.crc.into())
    }

    /// Leaves the bus. Frames that wait to be sent are dropped, and so are received frames that
    /// were not read.
    ///
    /// # Errors
    /// [`CanError::ModeTimeout`], [`CanError::Message`], [`CanError::Crc`].
    pub fn stop(&mut self) -> Result<(), CanError> {
        let reqop = Mode::Configuration as u8 | ABAT_IN_BYTE;
        self.change_mode(Mode::Configuration, reqop, CONFIGURATION_US)?;
        // Entering the mode resets the FIFOs. ABAT stays set until it is cleared.
        self.link.write_bytes(REQOP_BYTE, &[Mode::Configuration as u8])?;
        self.link.write(&C1INT, 0)?;
        self.enables = 0;
        for ring in [&mut self.layout.tef, &mut self.layout.tx, &mut self.layout.rx] {
            ring.next = 0;
        }
        self.tx_free = self.layout.tx.objects;
        self.owed = 0;
        Ok(())
    }

    /// Brings the chip from any state, even bus-off, to a defined one and back on the bus: reset,
    /// set-up, start. Waiting frames are dropped, error counters are zero, and time stamps restart.
    ///
    /// With CRC, it is repeated up to 3 times while a write arrives corrupt.
    ///
    /// Without a restart the chip recovers from bus-off by itself after 128 times 11 recessive
    /// bits.
    ///
    /// # Errors
    /// As [`Mcp251xfd::new`] and [`Mcp251xfd::start`].
    pub fn restart(&mut self) -> Result<(), CanError> {
        self.bring_up(Self::start)
    }

    /// The mode the chip is in.
    ///
    /// # Errors
    /// [`CanError::Message`], [`CanError::Crc`].
    pub fn mode(&mut self) -> Result<Mode, CanError> {
        Ok(Mode::of(con::OPMOD.get(self.link.read(&C1CON)?)))
    }

    fn change_mode(&mut self, wanted: Mode, reqop: u8, timeout_us: u32) -> Result<(), CanError> {
        let Self { link, timer, .. } = self;
        link.write_bytes(REQOP_BYTE, &[reqop])?;
        let mut actual = wanted;
        let there = wait(timer, timeout_us, || {
            actual = Mode::of(con::OPMOD.get(link.read(&C1CON)?));
            Ok((actual == wanted).then_some(()))
        })?;
        there.ok_or(CanError::ModeTimeout { wanted, actual })
    }
}

fn wait_osc<F: Frames<FRAME_BYTES>>(
    link: &mut Link<F>,
    timer: &mut impl Timer,
    ready: impl Fn(u32) -> bool,
) -> Result<(), CanError> {
    let mut osc = 0;
    let waited = wait(timer, OSCILLATOR_US, || {
        osc = link.read(&OSC)?;
        Ok((!stands_still(osc) && ready(osc)).then_some(()))
    })?;
    match waited {
        Some(()) => Ok(()),
        None if stands_still(osc) => Err(CanError::NoChip { received: osc }),
        None => Err(CanError::OscillatorNotReady { osc, waited_us: OSCILLATOR_US }),
    }
}
