//! The i.MX ECSPI: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: i.MX 6Dual/Quad reference manual, chapter ECSPI (registers, burst length, SS
//! waveforms); i.MX 6 data sheet, ECSPI timing (CS lead, lag and pulse width of at least half an
//! SCLK period). The block of i.MX 7 and 8M is the same.
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then,
//! word by word (by the rules in `shift`), and then acts on registers and FIFOs.
//!
//! XCH with an empty TXFIFO clears at once, and no exchange begins: the manual is silent, but the interrupt
//! handler of Linux's spi-imx relies on it whenever a message is longer than a burst.
//!
//! Where the manual contradicts what users and other drivers saw there is a switch, see
//! [`Readings`]. The default is the manual's text, and a driver must be correct under each reading.
//! Where the manual is silent, the model takes the reading that exposes a driver's mistake:
//! - A received word appears in RXFIFO at its last sampling edge, half a period before the end of
//!   its cell. XCH clears and TC sets half a period after that end. So a chip select that is
//!   released as soon as the last word is received comes too early, and the wire reports it.
//! - RXDATA of an empty RXFIFO reads a pattern. The manual says nothing about the bits above a
//!   burst's remainder; here they are what the shift register held.
//! - EN = 0 resets all registers but CONREG, and they ignore writes until EN = 1 ("this bit must be
//!   set before writing to other registers").
//! - Between bursts SCLK's idle level follows CONFIGREG one SCLK period later (the manual is
//!   silent; Linux's spi-imx driver records the observation and waits two periods for it).
//!
//! # Ordering
//! 1. Assert: SCLK takes the idle level of the mode, then SS is asserted.
//! 2. Lead: CSD_CTL clocks later, and at least half a period later, comes the first edge of SCLK.
//! 3. Words follow each other without a gap while TXFIFO has them. Otherwise SCLK stalls with SS
//!    asserted.
//! 4. Lag: half a period after the last cell SS is negated, for at least half a period and
//!    SAMPLE_PERIOD wait states. Then SCLK and MOSI take the levels of SCLK_CTL and DATA_CTL.
//! 5. End: XCH clears and TC sets, or the next burst begins with step 1.
//!
//! Under [`Dry::NeedsXch`], and always with SS_CTL = 1 ("the SPI transfer will automatically stop
//! when the TXFIFO is empty"), a burst that has no word in step 3 goes through step 4, TC sets and
//! XCH clears. The next XCH goes through steps 1 and 2 and sends the rest of the burst.
//!
//! # Not supported
//! - Another controller that clocks.
//! - Hardware trigger (HT) and MSGDATA.
//! - SPI_RDY (DRCTL).
//! - DMA requests.
//!
//! A burst requested with one of them never starts.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{Configreg, Conreg, FIFO_WORDS, Periodreg, stat};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::{Driver, Wire};
use shift::Burst;

/// ECSPI of i.MX 6, 7 and 8M. Its options are [`Readings`].
pub const KIND: ControllerKind = ControllerKind {
    name: "ECSPI",
    bytes: 0x4000,
    registers: &[
        (0x00, "RXDATA"),
        (0x04, "TXDATA"),
        (0x08, "CONREG"),
        (0x0c, "CONFIGREG"),
        (0x10, "INTREG"),
        (0x14, "DMAREG"),
        (0x18, "STATREG"),
        (0x1c, "PERIODREG"),
        (0x20, "TESTREG"),
    ],
    model: |reference_hz, options| Box::new(Ecspi::with_readings(reference_hz, options.get())),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// The value of RXDATA while RXFIFO is empty.
pub const UNDEFINED_RXDATA: u32 = 0xa55a_a55a;

/// When a bit reports the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// When the last word has left the shift register: the manual's text on XCH and TC.
    #[default]
    WordEnd,
    /// When TXFIFO is empty: the last word is in the shift register, and its clocks are still to
    /// come.
    FifoEmpty,
}

/// What happens to a burst that has run out of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dry {
    /// Its clock stops until the next word; SS stays asserted.
    #[default]
    Stalls,
    /// It stops until XCH is written again; SS is negated meanwhile.
    NeedsXch,
}

/// The block's behaviour where the manual's text, other drivers and users' measurements disagree.
/// The default is the manual's text.
///
/// Sources: Mark Siggins, "iMX6 Solo SPI: XCH behaviour in master mode", NXP community, December 2014,
/// <https://community.nxp.com/thread/336850> (XCH clears early); NXP's support in "iMX8MM, Cortex-M4,
/// ECSPI with GPIO chipselect", NXP community, March 2023,
/// <https://community.nxp.com/t5/i-MX-Processors/iMX8MM-Cortex-M4-ECSPI-with-GPIO-chipselect-how-to-detect-when/td-p/1622686>
/// (the same, TC no better); Linux's spi-imx and
/// NuttX's driver for i.MX 6 (XCH is written after each refill).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// When XCH clears.
    pub xch: Over,
    /// When TC sets.
    pub tc: Over,
    /// What happens to a burst without words, if SS_CTL = 0.
    pub dry: Dry,
    /// The additional delay of a burst's first clock after CSD_CTL, in picoseconds.
    pub start_delay_ps: Ps,
}

impl Readings {
    /// All combinations, the default first. Those with a start delay have `start_delay_ps`.
    #[must_use]
    pub fn each(start_delay_ps: Ps) -> [Self; 16] {
        std::array::from_fn(|bits| {
            let over = |bit: usize| if bits & bit == 0 { Over::WordEnd } else { Over::FifoEmpty };
            Self {
                xch: over(1),
                tc: over(2),
                dry: if bits & 4 == 0 { Dry::Stalls } else { Dry::NeedsXch },
                start_delay_ps: if bits & 8 == 0 { 0 } else { start_delay_ps },
            }
        })
    }
}

/// One ECSPI.
#[derive(Debug)]
pub struct Ecspi {
    reference_hz: u64,
    readings: Readings,
    conreg: Conreg,
    configreg: Configreg,
    intreg: u32,
    dmareg: u32,
    periodreg: Periodreg,
    loopback: bool,
    /// RO and TC.
    sticky: u32,
    tx: Fifo,
    rx: Fifo,
    burst: Burst,
    shifter: Shifter,
}

impl Ecspi {
    /// The block at reset, as in the manual's text, with a reference clock of `reference_hz` (at
    /// least 1).
    #[must_use]
    pub fn new(reference_hz: u64) -> Self {
        Self::with_readings(reference_hz, Readings::default())
    }

    /// The block at reset, according to `readings`, with a reference clock of `reference_hz` (at
    /// least 1).
    #[must_use]
    pub fn with_readings(reference_hz: u64, readings: Readings) -> Self {
        Self {
            reference_hz: reference_hz.max(1),
            readings,
            conreg: Conreg::default(),
            configreg: Configreg::default(),
            intreg: 0,
            dmareg: 0,
            periodreg: Periodreg::default(),
            loopback: false,
            sticky: 0,
            tx: Fifo::new(FIFO_WORDS),
            rx: Fifo::new(FIFO_WORDS),
            burst: Burst::default(),
            shifter: Shifter::default(),
        }
    }

    fn status(&self) -> u32 {
        let (tx, rx) = (self.tx.count() as u32, self.rx.count() as u32);
        // The text of TDR in STATREG contradicts that of TDREN in INTREG; the reset value of 3
        // (TXFIFO empty, TX_THRESHOLD 0) only agrees with "not more than TX_THRESHOLD words".
        let levels = levels([
            (stat::TE, tx == 0),
            (stat::TDR, tx <= self.dmareg & 0x3f),
            (stat::TF, self.tx.is_full()),
            (stat::RR, rx > 0),
            (stat::RDR, rx > self.dmareg >> 16 & 0x3f),
            (stat::RF, self.rx.is_full()),
        ]);
        levels | self.sticky
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        match self.rx.pop() {
            Some(word) => word,
            None => {
                wire.log().report(now, Rule::RxEmpty, None, "RXDATA read while RXFIFO is empty");
                UNDEFINED_RXDATA
            }
        }
    }

    fn push_tx(&mut self, word: u32, now: Ps, wire: &mut Wire) {
        if !self.tx.push(word) {
            let detail = format!("TXDATA written while TXFIFO is full: {word:#010x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
            return;
        }
        if self.conreg.smc() {
            self.start(false, now);
        }
        self.resume(now);
    }

    fn write_conreg(&mut self, value: Conreg, now: Ps, wire: &mut Wire) {
        let was_enabled = self.conreg.en();
        self.conreg = Conreg(value.0 & !Conreg::XCH);
        if !value.en() {
            if was_enabled {
                self.reset(now, wire);
            }
            return;
        }
        self.rest(now, wire);
        let asked = if value.smc() { !self.tx.is_empty() } else { value.0 & Conreg::XCH != 0 };
        if asked {
            self.start(!value.smc(), now);
        }
    }

    /// EN = 0: everything but CONREG is as at reset.
    fn reset(&mut self, now: Ps, wire: &mut Wire) {
        wire.abort_run(now);
        *self =
            Self { conreg: self.conreg, ..Self::with_readings(self.reference_hz, self.readings) };
        self.rest(now, wire);
    }

    /// Outside a burst the lines take the levels that the registers give them.
    fn rest(&mut self, now: Ps, wire: &mut Wire) {
        let asserted = self.asserted();
        for channel in 0..4 {
            if asserted != Some(channel) {
                let level = !self.configreg.ss_pol(channel);
                wire.drive(Driver::Native(channel as u8), level, now);
            }
        }
        if asserted.is_none() {
            let channel = self.conreg.channel_select();
            if !self.settling() {
                wire.set_sck(self.configreg.sclk_rests(channel), now);
            }
            wire.set_mosi(self.configreg.data_rests(channel), now);
        }
    }
}

impl RegisterBlock for Ecspi {
    const NAME: &'static str = "the ECSPI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        Some(match offset {
            regs::INTREG => (&mut self.intreg, 0xff),
            regs::DMAREG => (&mut self.dmareg, 0xbfbf_00bf),
            regs::PERIODREG => (&mut self.periodreg.0, 0x003f_ffff),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::RXDATA if self.conreg.en() => self.pop_rx(now, wire),
            regs::CONREG => self.conreg.0 | if self.xch() { Conreg::XCH } else { 0 },
            regs::CONFIGREG => self.configreg.0,
            regs::STATREG => self.status(),
            regs::TESTREG => {
                let loopback = if self.loopback { regs::LBC } else { 0 };
                loopback | (self.rx.count() << 8 | self.tx.count()) as u32
            }
            regs::RXDATA | regs::TXDATA | regs::MSGDATA => 0,
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::CONREG => self.write_conreg(Conreg(value), now, wire),
            regs::TXDATA => self.push_tx(value, now, wire),
            regs::CONFIGREG => {
                self.configreg = Configreg(value & 0x1fff_ffff);
                self.follow(now);
                self.rest(now, wire);
            }
            regs::STATREG => self.sticky &= !value,
            regs::TESTREG => self.loopback = value & regs::LBC != 0,
            // Read-only, and the FIFO of an unsupported mode.
            regs::RXDATA | regs::MSGDATA => {}
            _ => return false,
        }
        true
    }

    fn ignores(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        let Some(name) = regs::name(offset) else { return false };
        let ignores = !self.conreg.en() && offset != regs::CONREG;
        // To write a register's reset value loses nothing.
        if ignores && (value != 0 || offset == regs::TXDATA) {
            let detail = format!("{name} written while EN = 0: {value:#010x} is ignored");
            wire.log().report(now, Rule::Disabled, None, detail);
        }
        ignores
    }

    fn interrupts(&self) -> bool {
        self.status() & self.intreg != 0
    }
}
