//! Cadence SPI, as in Zynq-7000: registers, FIFOs and the exchange, in virtual time.
//!
//! *Read first*: Xilinx, *Zynq-7000 SoC Technical Reference Manual* (UG585), chapter 17, "SPI Controller", and
//! appendix B.30. For what it leaves open: Xilinx, *embeddedsw*, `spips`, `XSpiPs_PolledTransfer`, and Linux's
//! spi-cadence, whose comments tell what the block did.
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then, byte by byte (by
//! the rules in `shift`), and then acts on registers and FIFOs.
//!
//! - A byte that is on the wire still counts as one of the transmit FIFO. It leaves when it was received: both drivers
//!   above take an empty transmit FIFO for the end of the exchange.
//! - A byte is received at its last capture, half a period before it ends: the earliest that can be. The manual does
//!   not say when. A chip select that is deasserted at once comes too early, and the wire reports it.
//! - CLK_POL and CLK_PH are taken over when the block is enabled, and SCK moves then. Linux's spi-cadence found that
//!   a write to CONFIG alone does not do it. The divider is taken over by each byte.
//! - Under manual chip select the lines follow CONFIG's CS. Otherwise the line is active from the first byte
//!   until the transmit FIFO is empty.
//! - A byte on the wire is finished though the block is disabled. Then the FIFOs keep what they hold, or lose it:
//!   [`Disabled`].
//! - The thresholds have the 7 bits of the FIFOs' depth: Linux's spi-cadence measures the depth by that.
//! - A byte written to a full FIFO is lost; so is one that a full FIFO receives, which sets
//!   RX_OVERFLOW. The model reports both, and a read of an empty FIFO.
//!
//! # Not supported
//! Target mode, the external decoder of the lines, the mode fault (n_ss_in is always high), d_nss. A divider of 0 is
//! reported.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{Config, FIFO_BYTES, KEPT, RX_FULL, RX_REACHED, START, TX_BELOW, TX_FULL};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::{Driver, Wire};

/// Cadence SPI, as Zynq-7000 has it: three select lines.
pub const KIND: ControllerKind = ControllerKind {
    name: "Cadence SPI",
    bytes: 0x1000,
    registers: &[
        (0x00, "Config"),
        (0x04, "Intr_status"),
        (0x08, "Intrpt_en"),
        (0x0c, "Intrpt_dis"),
        (0x14, "En"),
        (0x18, "Delay"),
        (0x1c, "Tx_data"),
        (0x20, "Rx_data"),
        (0x28, "TX_thres"),
        (0x2c, "RX_thres"),
    ],
    model: |reference_hz, options| Box::new(Cadence::new(reference_hz, options.get())),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// What happens to the FIFOs while the block is disabled. The manual does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disabled {
    /// They keep their bytes.
    #[default]
    Keeps,
    /// They are emptied.
    Empties,
}

/// One block.
#[derive(Debug)]
pub struct Cadence {
    clk_hz: u64,
    disabled: Disabled,
    config: Config,
    enabled: bool,
    /// CONFIG when the block was enabled, for the mode.
    taken: Config,
    /// The manual start command was given, and there are bytes left of it.
    started: bool,
    latched: u32,
    int_mask: u32,
    delays: u32,
    slave_idle: u32,
    tx_level: u32,
    rx_level: u32,
    tx: Fifo,
    rx: Fifo,
    /// A byte of the transmit FIFO is on the wire.
    sending: bool,
    /// The line that is active.
    selected: Option<u8>,
    shifter: Shifter,
}

impl Cadence {
    /// The block at reset, with a reference clock of `clk_hz`, at least 1.
    #[must_use]
    pub fn new(clk_hz: u64, disabled: Disabled) -> Self {
        Self {
            clk_hz: clk_hz.max(1),
            disabled,
            config: Config(0x0002_0000),
            enabled: false,
            taken: Config(0),
            started: false,
            latched: 0,
            int_mask: 0,
            delays: 0,
            slave_idle: 0xff,
            tx_level: 1,
            rx_level: 1,
            tx: Fifo::new(FIFO_BYTES),
            rx: Fifo::new(FIFO_BYTES),
            sending: false,
            selected: None,
            shifter: Shifter::default(),
        }
    }

    /// The bytes of the transmit FIFO, with the one on the wire.
    fn tx_count(&self) -> usize {
        self.tx.count() + usize::from(self.sending)
    }

    fn status(&self) -> u32 {
        let count = self.tx_count();
        self.latched
            | levels([
                (TX_BELOW, count < self.tx_level as usize),
                (TX_FULL, count >= FIFO_BYTES),
                (RX_REACHED, self.rx.count() >= self.rx_level as usize),
                (RX_FULL, self.rx.is_full()),
            ])
    }

    fn push_tx(&mut self, byte: u32, now: Ps, wire: &mut Wire) {
        if self.tx_count() >= FIFO_BYTES || !self.tx.push(byte & 0xff) {
            let detail =
                format!("Tx_data written while the transmit FIFO is full: {byte:#x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
        }
    }

    fn pop_rx(&mut self, now: Ps, wire: &mut Wire) -> u32 {
        self.rx.pop().unwrap_or_else(|| {
            let detail = "Rx_data read while the receive FIFO is empty";
            wire.log().report(now, Rule::RxEmpty, None, detail);
            0
        })
    }

    fn write_config(&mut self, value: u32, now: Ps, wire: &mut Wire) {
        self.config = Config(value & KEPT);
        if self.config.decodes() {
            let detail = "PERI_SEL is set: an external decoder of the lines is not modelled";
            wire.log().report(now, Rule::BadAccess, None, detail);
        }
        self.started |= value & START != 0 && !self.tx.is_empty();
        if self.config.manual_cs() {
            self.select_line(self.config.line(), now, wire);
        } else if self.shifter.is_idle() {
            self.select_line(None, now, wire);
        }
    }

    fn enable(&mut self, enabled: bool, now: Ps, wire: &mut Wire) {
        if enabled && !self.enabled {
            self.taken = self.config;
            wire.set_sck(self.taken.pol(), now);
        }
        if !enabled && self.disabled == Disabled::Empties {
            self.tx.clear();
            self.rx.clear();
        }
        self.enabled = enabled;
    }

    /// Makes this line active, and no other.
    fn select_line(&mut self, line: Option<u8>, at: Ps, wire: &mut Wire) {
        if line == self.selected {
            return;
        }
        for (line, level) in [(self.selected, true), (line, false)] {
            if let Some(line) = line {
                wire.drive(Driver::Native(line), level, at);
            }
        }
        self.selected = line;
    }
}

impl RegisterBlock for Cadence {
    const NAME: &'static str = "Cadence SPI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        let level = FIFO_BYTES as u32 - 1;
        Some(match offset {
            regs::DELAYS => (&mut self.delays, u32::MAX),
            regs::SLAVE_IDLE => (&mut self.slave_idle, 0xff),
            regs::TX_LEVEL => (&mut self.tx_level, level),
            regs::RX_LEVEL => (&mut self.rx_level, level),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            regs::CONFIG => self.config.0,
            regs::STATUS => self.status(),
            regs::INT_MASK => self.int_mask,
            regs::ENABLE => self.enabled.into(),
            regs::RXD => self.pop_rx(now, wire),
            regs::MOD_ID => 0x0009_0106,
            // Write-only.
            regs::INT_EN | regs::INT_DIS | regs::TXD => 0,
            _ => return None,
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::CONFIG => self.write_config(value, now, wire),
            // The levels stay.
            regs::STATUS => self.latched &= !value,
            regs::INT_EN => self.int_mask |= value & 0x7f,
            regs::INT_DIS => self.int_mask &= !value,
            regs::ENABLE => self.enable(value & 1 != 0, now, wire),
            regs::TXD => self.push_tx(value, now, wire),
            // Read-only.
            regs::INT_MASK | regs::RXD | regs::MOD_ID => {}
            _ => return false,
        }
        true
    }

    fn written(&mut self, now: Ps, _wire: &mut Wire) {
        self.wake(now);
    }

    fn interrupts(&self) -> bool {
        self.status() & self.int_mask != 0
    }
}
