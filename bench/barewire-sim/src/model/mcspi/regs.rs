//! McSPI's registers as the manual lays them out.
//!
//! *Read first*: the manual that [`super`] names, section 24.4. This file is written from there, not from a
//! driver.

pub(super) const REVISION: u32 = 0x000;
pub(super) const SYSCONFIG: u32 = 0x110;
pub(super) const SYSSTATUS: u32 = 0x114;
pub(super) const IRQSTATUS: u32 = 0x118;
pub(super) const IRQENABLE: u32 = 0x11c;
pub(super) const WAKEUPENABLE: u32 = 0x120;
pub(super) const SYST: u32 = 0x124;
pub(super) const MODULCTRL: u32 = 0x128;
/// Channel 0's first register; each channel has five.
pub(super) const CH0CONF: u32 = 0x12c;
pub(super) const XFERLEVEL: u32 = 0x17c;

/// A channel's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    Conf,
    Stat,
    Ctrl,
    Tx,
    Rx,
}

pub(super) const CHANNELS: usize = 4;

/// The channel and its register at an offset.
pub(super) fn channel_register(offset: u32) -> Option<(usize, Register)> {
    use Register::{Conf, Ctrl, Rx, Stat, Tx};
    let at = offset.checked_sub(CH0CONF).filter(|at| at.is_multiple_of(4))? as usize / 4;
    let register = [Conf, Stat, Ctrl, Tx, Rx][at % 5];
    (at / 5 < CHANNELS).then_some((at / 5, register))
}

/// SYSCONFIG: resets the block.
pub(super) const SOFTRESET: u32 = 1 << 1;

/// The bits of IRQSTATUS and IRQENABLE: three or four for each channel, and two of the block.
pub(super) mod irq {
    pub(in super::super) const ALL: u32 = 0x0003_777f;
    pub(in super::super) const EOW: u32 = 1 << 17;

    pub(in super::super) const fn tx_empty(channel: usize) -> u32 {
        1 << (4 * channel)
    }

    pub(in super::super) const fn rx_full(channel: usize) -> u32 {
        4 << (4 * channel)
    }
}

/// The bits of CHxSTAT.
pub(super) mod stat {
    pub(in super::super) const RXS: u32 = 1 << 0;
    pub(in super::super) const TXS: u32 = 1 << 1;
    pub(in super::super) const EOT: u32 = 1 << 2;
    pub(in super::super) const TXFFE: u32 = 1 << 3;
    pub(in super::super) const TXFFF: u32 = 1 << 4;
    pub(in super::super) const RXFFE: u32 = 1 << 5;
    pub(in super::super) const RXFFF: u32 = 1 << 6;
}

/// MODULCTRL: one channel is used; FORCE drives its line.
pub(super) const SINGLE: u32 = 1 << 0;
/// MODULCTRL: no select lines.
pub(super) const PIN34: u32 = 1 << 1;
/// MODULCTRL: a target; as at reset.
pub(super) const MS: u32 = 1 << 2;
/// MODULCTRL: the system test.
pub(super) const SYSTEM_TEST: u32 = 1 << 3;

/// CHxCONF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conf(pub(super) u32);

impl Conf {
    pub(super) const RESET: Self = Self(0x0006_0000);
    pub(super) const BITS: u32 = 0x3fff_ffff;
    /// SPICLK is high at rest.
    pub(super) const POL: u32 = 1 << 1;
    /// SPIEN is active low.
    pub(super) const EPOL: u32 = 1 << 6;
    /// Nothing is sent on SPIDAT\[1\].
    pub(super) const DPE1: u32 = 1 << 17;
    /// SPIDAT\[1\] is received.
    pub(super) const IS: u32 = 1 << 18;
    pub(super) const FORCE: u32 = 1 << 20;
    pub(super) const FFEW: u32 = 1 << 27;
    pub(super) const FFER: u32 = 1 << 28;
    pub(super) const CLKG: u32 = 1 << 29;
    /// EPOL, TURBO, PHA and POL, which "can be loaded only when the channel is disabled".
    pub(super) const WHILE_DISABLED: u32 = Self::EPOL | 1 << 19 | 0b11;
    /// WL, CLKD and CLKG: changed "when no transfer occurs".
    pub(super) const BETWEEN_WORDS: u32 = 0x1f << 7 | 0xf << 2 | Self::CLKG;
    /// TRM: receive only, and transmit only.
    pub(super) const RECEIVES_ONLY: u32 = 1;
    pub(super) const SENDS_ONLY: u32 = 2;

    pub(super) fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    pub(super) fn trm(self) -> u32 {
        self.0 >> 12 & 3
    }

    /// The bits of a word: WL + 1. Words of 1 to 3 bits are reserved.
    pub(super) fn word_bits(self) -> u32 {
        (self.0 >> 7 & 0x1f) + 1
    }

    /// Bytes that a word takes in the FIFO.
    pub(super) fn word_bytes(self) -> usize {
        match self.word_bits() {
            ..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// FFEW and FFER.
    pub(super) fn claims(self) -> [bool; 2] {
        [Self::FFEW, Self::FFER].map(|bit| self.has(bit))
    }
}

/// The bytes of the FIFO that all channels share.
pub(super) const FIFO_BYTES: usize = 64;
