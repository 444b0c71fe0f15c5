//! The chip's state: registers, modes, interrupts, and the events without SPI accesses.

use super::filter::Id;
use super::regs::*;
use super::{OST_CLOCKS, TX_PREPARE_CLOCKS};
use crate::chip::Ps;
use crate::chip::complaints::Complaints;
use crate::model::can::{CanFrame, Counters, ErrorState};

/// The most complaints kept until they are taken.
const COMPLAINTS_MAX: usize = 16;
/// Recessive bits after which a node takes part.
const INTEGRATION_BITS: u64 = 11;
const INTERMISSION_BITS: u64 = 3;

/// OPMOD and REQOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Normal,
    Sleep,
    Loopback,
    ListenOnly,
    Configuration,
}

impl Mode {
    fn from_bits(bits: u8) -> Option<Self> {
        let modes =
            [Self::Normal, Self::Sleep, Self::Loopback, Self::ListenOnly, Self::Configuration];
        modes.get(usize::from(bits)).copied()
    }

    fn bits(self) -> u8 {
        self as u8
    }

    /// On the CAN bus.
    pub(super) fn on_bus(self) -> bool {
        matches!(self, Self::Normal | Self::ListenOnly)
    }
}

/// A transmit buffer.
#[derive(Clone, Debug)]
pub(super) struct TxBuffer {
    pub(super) ctrl: u8,
    pub(super) bytes: [u8; BUFFER],
    /// The earliest time at which it may be on the bus.
    pub(super) ready_at: Ps,
    /// Set if an abort was requested: the transmission ends if the frame on the bus fails. The
    /// value says whether ABTF is set then.
    pub(super) aborting: Option<bool>,
}

/// A receive buffer.
#[derive(Clone, Debug)]
pub(super) struct RxBuffer {
    pub(super) ctrl: u8,
    pub(super) bytes: [u8; BUFFER],
}

/// The chip.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) oscillator_hz: u32,
    pub(super) now: Ps,
    /// The oscillator starts until this time, after a reset.
    pub(super) starts_until: Ps,
    pub(super) canctrl: u8,
    pub(super) opmod: Mode,
    /// The requested mode and when it is reached; [`Ps::MAX`] if that depends on the bus.
    change: Option<(Mode, Ps)>,
    pub(super) in_frame: bool,
    /// CNF3, CNF2, CNF1, in the order of their addresses.
    pub(super) cnf: [u8; 3],
    pub(super) filters: [Id; 6],
    pub(super) masks: [Id; 2],
    pub(super) tx: [TxBuffer; 3],
    pub(super) rx: [RxBuffer; 2],
    pub(super) caninte: u8,
    pub(super) canintf: u8,
    /// RX1OVR and RX0OVR.
    pub(super) overflows: u8,
    /// The other bits of EFLG, at the last update.
    state_flags: u8,
    pub(super) bfpctrl: u8,
    pub(super) txrtsctrl: u8,
    pub(super) counters: Counters,
    /// The buffer whose frame is on the bus, or was last offered.
    pub(super) sending: Option<usize>,
    looped: Option<(CanFrame, Ps)>,
    loop_free_at: Ps,
    int_low_since: Option<Ps>,
    pub(super) taken: u64,
    pub(super) dropped: u64,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Core {
    pub(super) fn new(oscillator_hz: u32) -> Self {
        // Bytes that are undefined after reset have an unhelpful value.
        let tx = TxBuffer { ctrl: 0, bytes: [0xa5; BUFFER], ready_at: 0, aborting: None };
        let rx = RxBuffer { ctrl: 0, bytes: [0xa5; BUFFER] };
        Self {
            oscillator_hz,
            now: 0,
            starts_until: 0,
            canctrl: canctrl::RESET,
            opmod: Mode::Configuration,
            change: None,
            in_frame: false,
            cnf: [0; 3],
            filters: [[0xff, sidl::USED, 0xff, 0xff]; 6],
            masks: [[0; 4]; 2],
            tx: [tx.clone(), tx.clone(), tx],
            rx: [rx.clone(), rx],
            caninte: 0,
            canintf: 0,
            overflows: 0,
            state_flags: 0,
            bfpctrl: 0,
            txrtsctrl: 0,
            counters: Counters::default(),
            sending: None,
            looped: None,
            loop_free_at: 0,
            int_low_since: None,
            taken: 0,
            dropped: 0,
            complaints: Complaints::default(),
        }
    }

    /// The RESET instruction, executed with its last bit.
    pub(super) fn reset(&mut self) {
        let fresh = Self::new(self.oscillator_hz);
        let old = std::mem::replace(self, fresh);
        self.now = old.now;
        self.starts_until = old.now + self.clocks_ps(OST_CLOCKS);
        // Filters and buffers are undefined after reset: they keep their values.
        (self.filters, self.tx, self.rx) = (old.filters, old.tx, old.rx);
        self.tx.iter_mut().for_each(|buffer| (buffer.ctrl, buffer.aborting) = (0, None));
        self.rx.iter_mut().for_each(|buffer| buffer.ctrl = 0);
        (self.taken, self.dropped) = (old.taken, old.dropped);
        self.complaints = old.complaints;
        self.int_low_since = old.int_low_since;
        self.update(self.now);
    }

    fn clocks_ps(&self, clocks: u64) -> Ps {
        clocks * 1_000_000_000_000 / u64::from(self.oscillator_hz)
    }

    // Bit times.

    /// PropSeg, PS1 and PS2 in quanta.
    fn segments(&self) -> (u64, u64, u64) {
        let [cnf3, cnf2, _] = self.cnf.map(u64::from);
        let (prop, ps1) = ((cnf2 & 7) + 1, (cnf2 >> 3 & 7) + 1);
        // Without BTLMODE PS2 is the larger of PS1 and the information processing time.
        let ps2 = if cnf2 & 0x80 != 0 { (cnf3 & 7) + 1 } else { ps1.max(2) };
        (prop, ps1, ps2)
    }

    /// A bit: one quantum for synchronization and the segments, each of 2 x (BRP + 1) clocks.
    pub(super) fn bit_ps(&self) -> Ps {
        let (prop, ps1, ps2) = self.segments();
        let quantum = 2 * (u64::from(self.cnf[2] & 0x3f) + 1);
        self.clocks_ps((1 + prop + ps1 + ps2) * quantum)
    }

    /// Checks the data sheet's rules for the segments.
    fn check_segments(&mut self) {
        let (prop, ps1, ps2) = self.segments();
        let sjw = u64::from(self.cnf[2] >> 6) + 1;
        if ps2 < 2 {
            self.complain(|| "PS2 has one quantum, PHSEG2 is at least 1".into());
        }
        if prop + ps1 < ps2 {
            self.complain(|| format!("PropSeg {prop} + PS1 {ps1} are less than PS2 {ps2}"));
        }
        if ps2 <= sjw {
            self.complain(|| format!("PS2 {ps2} is not above SJW {sjw}"));
        }
    }

    // Modes.

    /// The present mode on the bus, or the one about to be entered.
    pub(super) fn bus_mode(&self) -> Option<Mode> {
        let wanted = match self.change {
            Some((mode, _)) if !self.opmod.on_bus() => mode,
            _ => self.opmod,
        };
        wanted.on_bus().then_some(wanted)
    }

    /// CANCTRL was written.
    pub(super) fn control(&mut self, value: u8) {
        let at = self.now;
        let had = std::mem::replace(&mut self.canctrl, value);
        if value & canctrl::ABAT != 0 && had & canctrl::ABAT == 0 {
            (0..3).for_each(|index| self.abort(index, true));
        }
        let Some(mode) = Mode::from_bits(value >> canctrl::REQOP_SHIFT) else {
            self.complain(|| format!("no mode has REQOP {}", value >> canctrl::REQOP_SHIFT));
            return;
        };
        if mode == self.opmod {
            self.change = None;
            return;
        }
        if self.opmod == Mode::Sleep {
            self.complain(|| "waking up from Sleep mode is not simulated, but by RESET".into());
            return;
        }
        if self.opmod == Mode::Configuration {
            self.check_segments();
        }
        let due = match mode {
            // This depends on the bus: when the chip has joined it, or when its own frames are
            // sent.
            mode if mode.on_bus() && !self.opmod.on_bus() => Ps::MAX,
            _ if self.is_pending() || self.in_frame || self.looped.is_some() => Ps::MAX,
            Mode::Loopback => at + INTEGRATION_BITS * self.bit_ps(),
            _ => at + self.bit_ps(),
        };
        self.change = Some((mode, due));
    }

    /// Whether a frame waits to be sent and may be sent.
    fn is_pending(&self) -> bool {
        let sends = matches!(self.opmod, Mode::Normal | Mode::Loopback);
        sends && self.tx.iter().any(|buffer| buffer.ctrl & txctrl::TXREQ != 0)
    }

    /// The frame on the bus is over.
    pub(super) fn frame_over(&mut self, at: Ps) {
        self.in_frame = false;
        self.may_leave(at);
    }

    /// A mode is left when no frame waits to be sent any more.
    pub(super) fn may_leave(&mut self, at: Ps) {
        if let Some((mode, Ps::MAX)) = self.change
            && (self.opmod.on_bus() || self.opmod == Mode::Loopback)
            && (self.opmod.on_bus() || !mode.on_bus())
            && !(self.is_pending() || self.in_frame || self.looped.is_some())
        {
            self.enter(mode, at);
        }
    }

    /// The bus was idle long enough for the chip to take part.
    pub(super) fn joined_bus(&mut self, at: Ps) {
        self.in_frame = false;
        if let Some((mode, _)) = self.change
            && !self.opmod.on_bus()
        {
            self.enter(mode, at);
        }
    }

    fn enter(&mut self, mode: Mode, at: Ps) {
        self.change = None;
        self.opmod = mode;
        self.loop_free_at = at;
        if mode == Mode::Configuration {
            self.counters = Counters::default();
            self.sending = None;
        }
        self.update(at);
    }

    // Events without SPI accesses.

    /// The time of the next event without an access.
    pub(super) fn due(&self) -> Ps {
        let change = self.change.map_or(Ps::MAX, |(_, at)| at);
        let looped = match (self.opmod, &self.looped) {
            (Mode::Loopback, Some((_, eof))) => *eof,
            (Mode::Loopback, None) => self.wants_at().max(self.loop_free_at),
            _ => Ps::MAX,
        };
        change.min(looped)
    }

    /// Processes everything that is due by `now`. Returns whether there was any event, which the
    /// bus may depend on.
    pub(super) fn catch_up(&mut self, now: Ps) -> bool {
        let mut stepped = false;
        while self.due() <= now {
            let at = self.due().max(self.now);
            self.now = at;
            self.step(at);
            stepped = true;
        }
        self.now = self.now.max(now);
        stepped
    }

    fn step(&mut self, at: Ps) {
        if let Some((mode, due)) = self.change
            && due <= at
        {
            self.enter(mode, at);
            return;
        }
        match self.looped.take() {
            Some((frame, _)) => {
                self.loop_free_at = at + INTERMISSION_BITS * self.bit_ps();
                self.take_frame(&frame);
                self.message_sent();
                self.frame_over(at);
                self.update(at);
            }
            None => {
                if let Some(frame) = self.attempt(at) {
                    let bits = u64::from(frame.shape().nominal_bits);
                    self.looped = Some((frame, at + bits * self.bit_ps()));
                }
            }
        }
    }

    /// The earliest time at which a frame requested now may be on the bus.
    pub(super) fn prepared_at(&self) -> Ps {
        self.now + self.clocks_ps(TX_PREPARE_CLOCKS)
    }

    // Interrupts and errors.

    /// EFLG.
    pub(super) fn eflg(&self) -> u8 {
        self.overflows | self.state_flags
    }

    fn states(&self) -> u8 {
        let Counters { tec, rec } = self.counters;
        let flag = |on: bool, bit| if on { bit } else { 0 };
        flag(tec >= 96 || rec >= 96, eflg::EWARN)
            | flag(rec >= 96, eflg::RXWAR)
            | flag(tec >= 96, eflg::TXWAR)
            | flag(rec >= 128, eflg::RXEP)
            | flag(tec >= 128, eflg::TXEP)
            | flag(self.counters.state() == ErrorState::BusOff, eflg::TXBO)
    }

    /// Derives dependent state from flags and counters, at the time of their change.
    pub(super) fn update(&mut self, at: Ps) {
        let states = self.states();
        if states & !self.state_flags != 0 {
            self.canintf |= int::ERR;
        }
        self.state_flags = states;
        let low = self.canintf & self.caninte != 0;
        self.int_low_since = match (low, self.int_low_since) {
            (true, None) => Some(at),
            (true, since) => since,
            (false, _) => None,
        };
    }

    pub(super) fn int_low_since(&self) -> Option<Ps> {
        self.int_low_since
    }

    /// CANSTAT: the mode, and the first cause of the interrupt.
    pub(super) fn canstat(&self) -> u8 {
        let causes = self.canintf & self.caninte;
        let order =
            [int::ERR, int::WAK, int::TX0, int::TX0 << 1, int::TX0 << 2, int::RX0, int::RX0 << 1];
        let code = order.iter().position(|flag| causes & flag != 0).map_or(0, |place| place + 1);
        self.opmod.bits() << canctrl::REQOP_SHIFT | (code as u8) << 1
    }

    #[cold]
    pub(super) fn complain(&mut self, detail: impl FnOnce() -> String) {
        self.complaints.add(detail);
    }

    pub(super) fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }
}
