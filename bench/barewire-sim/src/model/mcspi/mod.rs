//! McSPI: channels, the FIFO and the exchange, in virtual time.
//!
//! *Read first*: TI, *AM335x and AMIC110 Sitara Processors Technical Reference Manual* (SPRUH73), chapter 24:
//! 24.3.2 "Master Mode" (rules 1 to 3 of the arbiter, "Keep SPIEN Active Mode", "FIFO Buffer Management") and
//! 24.4 (registers).
//!
//! # How it works
//! The model does nothing between accesses. Each access first processes everything due by then, word by word (by
//! the rules in `shift`), and then acts on registers and FIFOs. SPIDAT\[1\] is wired to MOSI and SPIDAT\[0\] to
//! MISO.
//!
//! Where the manual is ambiguous, the model takes the reading that exposes a driver's mistake:
//! - A word appears in the receive register or FIFO at its last capture, half a period before its last cell ends,
//!   and EOT is set when that ends. So a chip select that is released as soon as the last word is received
//!   comes too early at slow clocks, and the wire reports it.
//! - EOT "is meaningless when using the buffer": it is set, always. TXS and RXS are clear then.
//! - SPICLK takes POL of a channel when its CHxCONF is written and no other channel is enabled, and when it is enabled. It moves
//!   before SPIEN does.
//! - EPOL, TURBO, PHA and POL of an enabled channel are not taken, and reported; WL, CLKD, CLKG and EXTCLK are
//!   reported while a word is sent.
//! - A disabled channel is not scheduled any more. The word in the shift register is finished.
//! - Enabling a channel empties its registers and the FIFO. Disabling it does not.
//! - RX_FULL of the FIFO is raised again only after the processor has read as many bytes as the level.
//! - RX of an empty FIFO reads a pattern, and is reported, as is TX of a full one.
//! - While MS is set, SPIEN is an input, which the board pulls up.
//!
//! # Ordering
//! 1. Load: a cycle of the functional clock after there is work, or at the boundary of the word before, a channel
//!    is scheduled: its word leaves the register or FIFO and the first cell begins.
//! 2. Capture: at the last sampling edge the word is received.
//! 3. Boundary: EOT is set, and step 1 follows if there is work.
//!
//! # Not supported
//! Targets (MS), the system test, TX_UNDERFLOW (in a controller "a harmless warning"), SPIEN that the block moves by itself (a word of a channel without FORCE is reported unless
//! there are three pins), TCS, start bits, turbo mode, INITDLY, DMA, wake-up: their bits are stored.

mod regs;
mod shift;
#[cfg(test)]
mod tests;

use regs::{
    CHANNELS, Conf, FIFO_BYTES, MS, PIN34, Register, SINGLE, SOFTRESET, SYSTEM_TEST,
    channel_register, irq, stat,
};

use crate::check::Rule;
use crate::chip::Ps;
use crate::model::ControllerKind;
use crate::model::block::{RegisterBlock, levels};
use crate::model::fifo::Fifo;
use crate::model::shifter::Shifter;
use crate::wire::{Driver, Wire};

/// McSPI of OMAP4 and later.
pub const KIND: ControllerKind = ControllerKind {
    name: "McSPI",
    bytes: 0x400,
    registers: &[
        (0x118, "IRQSTATUS"),
        (0x11c, "IRQENABLE"),
        (0x128, "MODULCTRL"),
        (0x12c, "CH0CONF"),
        (0x130, "CH0STAT"),
        (0x134, "CH0CTRL"),
        (0x138, "TX0"),
        (0x13c, "RX0"),
        (0x140, "CH1CONF"),
        (0x144, "CH1STAT"),
        (0x148, "CH1CTRL"),
        (0x14c, "TX1"),
        (0x150, "RX1"),
        (0x154, "CH2CONF"),
        (0x15c, "CH2CTRL"),
        (0x168, "CH3CONF"),
        (0x170, "CH3CTRL"),
        (0x17c, "XFERLEVEL"),
    ],
    model: |reference_hz, _| Box::new(Mcspi::new(reference_hz)),
    #[cfg(test)]
    exchange: tests::exchange,
};

/// What RX holds while nothing was received.
pub const UNDEFINED_RX: u32 = 0xa5a5_a5a5;

/// A channel.
#[derive(Clone, Debug)]
struct Channel {
    conf: Conf,
    ctrl: u32,
    /// A register, or its part of the FIFO.
    tx: Fifo,
    rx: Fifo,
    eot: bool,
    /// Receive only: the word that was written once.
    primed: Option<u32>,
    /// Bytes to be read before RX_FULL is raised again.
    to_read: usize,
    /// Words until EOW; `None` if they are not counted.
    words_left: Option<u32>,
}

impl Channel {
    fn new() -> Self {
        Self {
            conf: Conf::RESET,
            ctrl: 0,
            tx: Fifo::new(1),
            rx: Fifo::new(1),
            eot: false,
            primed: None,
            to_read: 0,
            words_left: None,
        }
    }

    fn enabled(&self) -> bool {
        self.ctrl & 1 != 0
    }

    /// Cycles of the functional clock in one of SPICLK.
    fn divisor(&self) -> u64 {
        let (clkd, extclk) = (self.conf.0 >> 2 & 0xf, self.ctrl >> 8 & 0xff);
        match self.conf.has(Conf::CLKG) {
            false => 1 << clkd,
            true => u64::from(extclk << 4 | clkd) + 1,
        }
    }
}

/// One block.
#[derive(Debug)]
pub struct Mcspi {
    fclk_hz: u64,
    sysconfig: u32,
    irqstatus: u32,
    irqenable: u32,
    wakeupenable: u32,
    syst: u32,
    modulctrl: u32,
    channels: [Channel; CHANNELS],
    xferlevel: u32,
    /// The channel whose word is being sent, or was sent last.
    sending: usize,
    shifter: Shifter,
}

impl Mcspi {
    /// The block at reset, with a functional clock of `fclk_hz` (at least 1).
    #[must_use]
    pub fn new(fclk_hz: u64) -> Self {
        Self {
            fclk_hz: fclk_hz.max(1),
            sysconfig: 0,
            irqstatus: 0,
            irqenable: 0,
            wakeupenable: 0,
            syst: 0,
            modulctrl: MS,
            channels: std::array::from_fn(|_| Channel::new()),
            xferlevel: 0,
            sending: 0,
            shifter: Shifter::default(),
        }
    }

    /// Whether the channel sends from the FIFO, and receives into it: not if two channels claim it.
    fn buffered(&self, channel: usize) -> [bool; 2] {
        let claims = |channel: &Channel| channel.conf.claims().contains(&true);
        match self.channels.iter().filter(|channel| claims(channel)).count() {
            1 => self.channels[channel].conf.claims(),
            _ => [false; 2],
        }
    }

    /// The bytes of each direction, and the bytes of a word.
    fn capacity(&self, channel: usize) -> ([usize; 2], usize) {
        let word = self.channels[channel].conf.word_bytes();
        let buffered = self.buffered(channel);
        let part = if buffered == [true; 2] { FIFO_BYTES / 2 } else { FIFO_BYTES };
        (buffered.map(|buffered| if buffered { part } else { word }), word)
    }

    /// "The FIFO buffer pointers are reset when the channel is enabled or FIFO configuration changes."
    fn empty(&mut self, channel: usize) {
        let ([tx, rx], word) = self.capacity(channel);
        let words = self.xferlevel >> 16;
        let counted = self.buffered(channel).contains(&true) && words > 0;
        let channel = &mut self.channels[channel];
        (channel.tx, channel.rx) = (Fifo::new(tx / word), Fifo::new(rx / word));
        (channel.primed, channel.to_read) = (None, 0);
        channel.words_left = counted.then_some(words);
    }

    fn status(&self, index: usize) -> u32 {
        let Channel { tx, rx, eot, .. } = &self.channels[index];
        let [sends, receives] = self.buffered(index);
        let ready = self.channels[index].enabled() && tx.is_empty();
        levels([
            (stat::RXS, !receives && !rx.is_empty()),
            (stat::TXS, !sends && ready),
            (stat::EOT, sends || receives || *eot),
            (stat::TXFFE, sends && tx.is_empty()),
            (stat::TXFFF, sends && tx.is_full()),
            (stat::RXFFE, receives && rx.is_empty()),
            (stat::RXFFF, receives && rx.is_full()),
        ])
    }

    /// The transmit register or FIFO has room again.
    fn sent_from(&mut self, index: usize) {
        let (capacity, word) = self.capacity(index);
        let held = word * self.channels[index].tx.count();
        let needed = match self.buffered(index) {
            [true, _] => (self.xferlevel & 0xff) as usize + 1,
            _ => word,
        };
        if capacity[0] - held >= needed && self.channels[index].conf.trm() != Conf::RECEIVES_ONLY {
            self.irqstatus |= irq::tx_empty(index);
        }
    }

    /// Words are in the receive register or FIFO.
    fn received_into(&mut self, index: usize) {
        let level = match self.buffered(index) {
            [_, true] => (self.xferlevel >> 8 & 0xff) as usize + 1,
            _ => 1,
        };
        let channel = &mut self.channels[index];
        let held = channel.conf.word_bytes() * channel.rx.count();
        if held >= level && channel.to_read == 0 {
            channel.to_read = level;
            self.irqstatus |= irq::rx_full(index);
        }
    }

    fn pop_rx(&mut self, index: usize, now: Ps, wire: &mut Wire) -> u32 {
        let channel = &mut self.channels[index];
        let Some(word) = channel.rx.pop() else {
            let detail = format!("RX{index} read while nothing was received");
            wire.log().report(now, Rule::RxEmpty, None, detail);
            return UNDEFINED_RX;
        };
        channel.to_read = channel.to_read.saturating_sub(channel.conf.word_bytes());
        if !channel.rx.is_empty() {
            self.received_into(index);
        }
        // There is room again.
        self.start(now);
        word
    }

    fn push_tx(&mut self, index: usize, value: u32, now: Ps, wire: &mut Wire) {
        let channel = &mut self.channels[index];
        if channel.conf.trm() == Conf::RECEIVES_ONLY {
            channel.primed = Some(value);
        } else if !channel.tx.push(value) {
            let detail = format!("TX{index} written while it is full: {value:#x} is lost");
            wire.log().report(now, Rule::TxFull, None, detail);
        }
    }

    fn is_controller(&self) -> bool {
        self.modulctrl & (MS | SYSTEM_TEST) == 0
    }

    /// Drives every SPIEN as its channel says.
    fn drive(&self, now: Ps, wire: &mut Wire) {
        for (line, channel) in (0..).zip(&self.channels) {
            let active = self.modulctrl & SINGLE != 0 && channel.conf.has(Conf::FORCE);
            let level = match self.modulctrl & PIN34 {
                _ if !self.is_controller() => true,
                0 => active != channel.conf.has(Conf::EPOL),
                _ => false,
            };
            wire.drive(Driver::Native(line), level, now);
        }
    }

    fn set_clock(&self, index: usize, now: Ps, wire: &mut Wire) {
        if self.is_controller() && self.shifter.is_idle() {
            wire.set_sck(self.channels[index].conf.has(Conf::POL), now);
        }
    }

    fn write_conf(&mut self, index: usize, value: u32, now: Ps, wire: &mut Wire) {
        let Channel { conf: Conf(before), .. } = self.channels[index];
        let busy = !self.shifter.is_idle() && self.sending == index;
        let mut value = value & Conf::BITS;
        let refused = if self.channels[index].enabled() { Conf::WHILE_DISABLED } else { 0 };
        let wrong = refused | if busy { Conf::BETWEEN_WORDS } else { 0 };
        if (before ^ value) & wrong != 0 {
            let detail = format!("CH{index}CONF {before:#x} written with {value:#x} too early");
            wire.log().report(now, Rule::Disabled, None, detail);
            value = value & !refused | before & refused;
        }
        let capacities = |block: &Self| [0, 1, 2, 3].map(|other| block.capacity(other));
        let old = capacities(self);
        self.channels[index].conf = Conf(value);
        let new = capacities(self);
        (0..CHANNELS).filter(|&other| old[other] != new[other]).for_each(|other| self.empty(other));
        let others = self.channels.iter().enumerate().filter(|(other, _)| *other != index);
        if !others.into_iter().any(|(_, other)| other.enabled()) {
            self.set_clock(index, now, wire);
        }
        self.drive(now, wire);
    }

    fn write_ctrl(&mut self, index: usize, value: u32, now: Ps, wire: &mut Wire) {
        let channel = &mut self.channels[index];
        let (value, was_enabled) = (value & 0xff01, channel.enabled());
        let sent = !self.shifter.is_idle() && self.sending == index;
        if sent && (channel.ctrl ^ value) & 0xff00 != 0 {
            let detail = format!("CH{index}CTRL's EXTCLK changed while a word is sent");
            wire.log().report(now, Rule::Disabled, None, detail);
        }
        channel.ctrl = value;
        if channel.enabled() && !was_enabled {
            channel.eot = false;
            self.empty(index);
            self.sent_from(index);
            self.set_clock(index, now, wire);
        }
    }

    fn reset(&mut self, now: Ps, wire: &mut Wire) {
        wire.abort_run(now);
        *self = Self::new(self.fclk_hz);
        self.drive(now, wire);
    }
}

impl RegisterBlock for Mcspi {
    const NAME: &'static str = "McSPI";

    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)> {
        Some(match offset {
            regs::IRQENABLE => (&mut self.irqenable, irq::ALL),
            regs::WAKEUPENABLE => (&mut self.wakeupenable, 1),
            regs::SYST => (&mut self.syst, 0xfff),
            regs::XFERLEVEL => (&mut self.xferlevel, u32::MAX),
            _ => return None,
        })
    }

    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32> {
        Some(match offset {
            // Scheme 1 and the function of McSPI. The manual does not define the other bits.
            regs::REVISION => 0x4030_0000,
            regs::SYSCONFIG => self.sysconfig,
            // The reset is done.
            regs::SYSSTATUS => 1,
            regs::IRQSTATUS => self.irqstatus,
            regs::MODULCTRL => self.modulctrl,
            _ => match channel_register(offset)? {
                (index, Register::Conf) => self.channels[index].conf.0,
                (index, Register::Stat) => self.status(index),
                (index, Register::Ctrl) => self.channels[index].ctrl,
                // Write-only.
                (_, Register::Tx) => 0,
                (index, Register::Rx) => self.pop_rx(index, now, wire),
            },
        })
    }

    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool {
        match offset {
            regs::SYSCONFIG if value & SOFTRESET != 0 => self.reset(now, wire),
            regs::SYSCONFIG => self.sysconfig = value & 0x31d,
            regs::IRQSTATUS => self.irqstatus &= !value,
            regs::MODULCTRL => {
                self.modulctrl = value & 0x1ff;
                self.drive(now, wire);
            }
            // Read-only.
            regs::REVISION | regs::SYSSTATUS => {}
            _ => match channel_register(offset) {
                None => return false,
                Some((index, Register::Conf)) => self.write_conf(index, value, now, wire),
                Some((index, Register::Ctrl)) => self.write_ctrl(index, value, now, wire),
                Some((index, Register::Tx)) => self.push_tx(index, value, now, wire),
                Some((_, Register::Stat | Register::Rx)) => {}
            },
        }
        true
    }

    fn written(&mut self, now: Ps, _wire: &mut Wire) {
        self.start(now);
    }

    fn interrupts(&self) -> bool {
        self.irqstatus & self.irqenable != 0
    }
}
