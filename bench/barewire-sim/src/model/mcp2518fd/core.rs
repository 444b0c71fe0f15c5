//! The chip's state: modes, interrupts, and everything its SPI and CAN sides share.
//!
//! # Ordering
//! 1. [`Core::catch_up`] processes events without SPI accesses, up to a time.
//! 2. Code that changes a flag calls [`Core::update`] with the time, at its end.

use super::TX_PREPARE_CLOCKS;
use super::fifo::{Fifo, Kind};
use super::filter::Filter;
use super::options::{ChipFaults, Options};
use super::regs::{con, ecc, fifocon, int, iocon, osc};
use crate::chip::Ps;
use crate::chip::complaints::Complaints;
use crate::model::can::{CanFrame, Counters, ErrorState};

/// The bits with which a node integrates. In internal loopback the chip hears its own idle bus.
const INTEGRATION_BITS: u64 = 11;
/// How long the oscillator takes to be stable.
pub(super) const OSCILLATOR_STARTS_PS: Ps = 3_000_000_000;
/// Complaints, kept until the wire takes them.
const COMPLAINTS_MAX: usize = 64;
/// Bytes of message RAM.
pub(super) const RAM_BYTES: usize = 2048;
/// The number of FIFOs besides the queue; [`Core::fifos`] has the queue at index 0.
const FIFOS: usize = 32;

/// OPMOD's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    NormalFd,
    Sleep,
    InternalLoopback,
    ListenOnly,
    Configuration,
    ExternalLoopback,
    Normal20,
    Restricted,
}

impl Mode {
    pub(super) fn from_bits(bits: u32) -> Self {
        match bits & 7 {
            0 => Self::NormalFd,
            1 => Self::Sleep,
            2 => Self::InternalLoopback,
            3 => Self::ListenOnly,
            4 => Self::Configuration,
            5 => Self::ExternalLoopback,
            6 => Self::Normal20,
            _ => Self::Restricted,
        }
    }

    /// Neither Configuration nor Sleep.
    pub(super) fn runs(self) -> bool {
        !matches!(self, Self::Configuration | Self::Sleep)
    }
}

/// A frame under way in internal loopback.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopedFrame {
    pub(super) frame: CanFrame,
    pub(super) sof: Ps,
    pub(super) fdf_ps: Ps,
    pub(super) eof: Ps,
}

/// The chip.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) options: Options,
    pub(super) now: Ps,
    // Clocks.
    pub(super) osc: u32,
    pub(super) oscillator_ready_at: Ps,
    pub(super) pll_ready_at: Ps,
    // Modes.
    /// C1CON without OPMOD and BUSY.
    pub(super) con: u32,
    pub(super) opmod: Mode,
    /// The requested mode and when it is reached; [`Ps::MAX`] if that depends on the bus.
    pub(super) change: Option<(Mode, Ps)>,
    pub(super) in_frame: bool,
    // Bit times, time base.
    pub(super) nbtcfg: u32,
    pub(super) dbtcfg: u32,
    pub(super) tdc: u32,
    pub(super) tscon: u32,
    /// A time, and the value of C1TBC then.
    pub(super) tbc: (Ps, u32),
    pub(super) tbc_overflow_at: Ps,
    // Interrupts.
    pub(super) int_enables: u32,
    pub(super) int_flags: u32,
    int_low_since: Option<Ps>,
    /// `None`: not kept.
    int_lows: Option<Vec<(Ps, Option<Ps>)>>,
    // Errors.
    pub(super) counters: Counters,
    /// C1TREC's state bits at the last update.
    error_bits: u32,
    pub(super) bdiag: [u32; 2],
    // Message memory.
    pub(super) tef: Fifo,
    pub(super) fifos: Vec<Fifo>,
    pub(super) filters: [Filter; 32],
    pub(super) filhit: u32,
    pub(super) ram: Box<[u8; RAM_BYTES]>,
    /// Words written with ECC on. With ECC on, a read of another word finds an error.
    pub(super) ecc_good: Box<[bool; RAM_BYTES / 4]>,
    /// How many words of RAM were read.
    pub(super) ram_words: u64,
    // Sending.
    /// The message on the bus or last offered: its FIFO and index.
    pub(super) sending: Option<(usize, u8)>,
    pub(super) current: Option<CanFrame>,
    pub(super) attempts_left: u8,
    pub(super) bandwidth_until: Ps,
    pub(super) looped: Option<LoopedFrame>,
    loop_free_at: Ps,
    pub(super) last_sent: Option<CanFrame>,
    pub(super) taken: u64,
    pub(super) dropped: u64,
    // Others.
    pub(super) iocon: u32,
    pub(super) crc: u32,
    pub(super) ecccon: u32,
    pub(super) eccstat: u32,
    pub(super) too_fast: bool,
    complaints: Complaints<COMPLAINTS_MAX>,
}

impl Core {
    pub(super) fn new(options: Options) -> Self {
        let ready_at = if options.starts_cold { OSCILLATOR_STARTS_PS } else { 0 };
        let mut fifos = vec![Fifo::new(Kind::Plain); FIFOS];
        fifos[0] = Fifo::new(Kind::Txq);
        let mut core = Self {
            options,
            now: 0,
            osc: osc::RESET,
            oscillator_ready_at: ready_at,
            pll_ready_at: Ps::MAX,
            con: con::RESET & (con::ALWAYS | con::CONFIGURATION),
            opmod: Mode::Configuration,
            change: None,
            in_frame: false,
            nbtcfg: 0x003e_0f0f,
            dbtcfg: 0x000e_0303,
            tdc: 0x0002_1000,
            tscon: 0,
            tbc: (0, 0),
            tbc_overflow_at: Ps::MAX,
            int_enables: 0,
            int_flags: 0,
            int_low_since: None,
            int_lows: None,
            counters: Counters::default(),
            error_bits: 0,
            bdiag: [0; 2],
            tef: Fifo::new(Kind::Tef),
            fifos,
            filters: [Filter::default(); 32],
            filhit: 0,
            // Undefined at power-up.
            ram: Box::new([0xa5; RAM_BYTES]),
            ecc_good: Box::new([false; RAM_BYTES / 4]),
            ram_words: 0,
            sending: None,
            current: None,
            attempts_left: 0,
            bandwidth_until: 0,
            looped: None,
            loop_free_at: 0,
            last_sent: None,
            taken: 0,
            dropped: 0,
            iocon: iocon::RESET,
            crc: 0,
            ecccon: 0,
            eccstat: 0,
            too_fast: false,
            complaints: Complaints::default(),
        };
        core.lay_out();
        core.update(0);
        core
    }

    /// The RESET instruction, and waking up from low power mode: resets everything but RAM and the
    /// clock.
    pub(super) fn reset(&mut self, at: Ps, clock_starts: bool) {
        let fresh = Self::new(Options { starts_cold: false, ..self.options.clone() });
        let old = std::mem::replace(self, fresh);
        self.now = at;
        self.options = old.options;
        self.oscillator_ready_at =
            if clock_starts { at + OSCILLATOR_STARTS_PS } else { old.oscillator_ready_at };
        self.tbc = (at, 0);
        self.ram = old.ram;
        self.ecc_good = old.ecc_good;
        self.int_lows = old.int_lows;
        self.int_low_since = old.int_low_since;
        self.taken = old.taken;
        self.dropped = old.dropped;
        self.complaints = old.complaints;
        self.update(at);
    }

    // Modes.

    /// The mode in which the chip is on the bus, or about to be.
    pub(super) fn bus_mode(&self) -> Option<Mode> {
        let wanted = match self.change {
            Some((mode, _)) if !self.opmod.runs() => mode,
            _ => self.opmod,
        };
        let on_bus = wanted.runs() && wanted != Mode::InternalLoopback;
        (on_bus && self.oscillator_runs()).then_some(wanted)
    }

    /// REQOP was written.
    pub(super) fn request(&mut self, mode: Mode, at: Ps) {
        if mode == self.opmod {
            self.change = None;
            return;
        }
        if self.opmod == Mode::Sleep {
            self.complain(|| "in Sleep mode OSC.OSCDIS wakes the chip up, not REQOP".into());
            return;
        }
        if self.opmod.runs() && mode.runs() {
            self.complain(|| {
                "a change between two modes of the bus goes through Configuration mode".into()
            });
            return;
        }
        let due = match mode {
            // This depends on the bus.
            _ if !self.opmod.runs() && mode.runs() && mode != Mode::InternalLoopback => Ps::MAX,
            Mode::InternalLoopback => at + INTEGRATION_BITS * self.nominal_ps(),
            _ if self.in_frame || self.looped.is_some() => Ps::MAX,
            _ => at + self.nominal_ps(),
        };
        self.change = Some((mode, due));
    }

    /// The frame on the bus is over for the chip.
    pub(super) fn frame_over(&mut self, at: Ps) {
        self.in_frame = false;
        if let Some((mode, Ps::MAX)) = self.change
            && self.opmod.runs()
        {
            self.enter(mode, at);
        }
    }

    pub(super) fn enter(&mut self, mode: Mode, at: Ps) {
        self.change = None;
        let left_configuration = self.opmod == Mode::Configuration && mode != Mode::Configuration;
        self.opmod = mode;
        if mode == Mode::Sleep {
            self.osc |= osc::OSCDIS;
        }
        if mode == Mode::Configuration {
            self.counters = Counters::default();
            self.tef.reset();
            self.fifos.iter_mut().for_each(Fifo::reset);
            self.sending = None;
            self.current = None;
            self.in_frame = false;
            self.con &= !con::ABAT;
        }
        if left_configuration {
            self.lay_out();
            self.loop_free_at = at;
        }
        self.int_flags |= int::MODIF;
        self.update(at);
    }

    // Events without SPI accesses.

    /// The time of the next event without an access.
    pub(super) fn due(&self) -> Ps {
        self.tbc_overflow_at.min(self.due_but_overflow())
    }

    /// The time at which a pin may next change. C1TBC overflows for ever, which would keep a
    /// waiting thread waiting; so its overflow does not count unless it changes a pin.
    pub(super) fn pin_due(&self) -> Ps {
        let told = self.int_enables >> 16 & int::TBCIF != 0;
        if told { self.due() } else { self.due_but_overflow() }
    }

    fn due_but_overflow(&self) -> Ps {
        let mut due = Ps::MAX;
        if let Some((_, at)) = self.change {
            due = due.min(at);
        }
        if self.opmod == Mode::InternalLoopback {
            due = due.min(match &self.looped {
                Some(looped) => looped.eof,
                None => self.wants_at().max(self.loop_free_at),
            });
        }
        if self.osc & osc::OSCDIS == 0 && self.now < self.oscillator_ready_at {
            due = due.min(self.oscillator_ready_at);
        }
        due
    }

    /// Processes everything that is due by `now`. Returns whether there was any event, which the
    /// bus may depend on.
    #[inline]
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
        if self.tbc_overflow_at <= at {
            self.set_tbc(0, self.tbc_overflow_at);
            self.int_flags |= int::TBCIF;
            self.update(at);
        }
        if let Some((mode, due)) = self.change
            && due <= at
        {
            if self.oscillator_runs() {
                self.enter(mode, at);
            } else {
                self.change = Some((mode, Ps::MAX));
            }
        }
        if self.opmod == Mode::InternalLoopback {
            self.step_loop(at);
        }
    }

    fn step_loop(&mut self, at: Ps) {
        if let Some(looped) = self.looped {
            if looped.eof <= at {
                self.looped = None;
                self.loop_free_at = at + 3 * self.nominal_ps();
                self.loop_ends(at, looped);
            }
        } else if self.wants_at().max(self.loop_free_at) <= at {
            self.loop_begins(at);
        }
    }

    pub(super) fn prepared_at(&self, at: Ps) -> Ps {
        at + self.clocks_ps(TX_PREPARE_CLOCKS)
    }

    // Errors.

    /// C1TREC.
    pub(super) fn read_trec(&self) -> u32 {
        let Counters { tec, rec } = self.counters;
        let bit = |on: bool, place: u32| u32::from(on) << place;
        let off = self.counters.state() == ErrorState::BusOff || !self.opmod.runs();
        let (warn_tx, warn_rx) = ((96..128).contains(&tec), (96..128).contains(&rec));
        bit(off, 21)
            | bit((128..256).contains(&tec), 20)
            | bit(rec > 127, 19)
            | bit(warn_tx, 18)
            | bit(warn_rx, 17)
            | bit(warn_tx || warn_rx, 16)
            | u32::from(tec.min(255)) << 8
            | u32::from(rec.min(255))
    }

    // Interrupts.

    /// C1INT's flags.
    pub(super) fn flags(&self) -> u32 {
        let flag = |on: bool, bit| if on { bit } else { 0 };
        let mut flags = self.int_flags;
        for fifo in &self.fifos {
            // Most FIFOs have no interrupt enabled.
            if fifo.con & fifocon::INTERRUPTS == 0 {
                continue;
            }
            let own = if fifo.sends() { int::TXIF } else { int::RXIF };
            flags |= flag(fifo.asks(), own)
                | flag(fifo.overflow_asks(), int::RXOVIF)
                | flag(fifo.attempts_ask(), int::TXATIF);
        }
        flags
            | flag(self.con & con::STEF != 0 && self.tef.asks(), int::TEFIF)
            | flag(self.crc >> 8 & self.crc & (3 << 16) != 0, int::SPICRCIF)
            | flag(self.eccstat & self.ecccon & (ecc::SECIF | ecc::DEDIF) != 0, int::ECCIF)
    }

    /// Derives dependent state from flags and counters, at the time of their change.
    pub(super) fn update(&mut self, at: Ps) {
        let bits = self.read_trec() >> 16;
        if self.opmod.runs() && bits != self.error_bits {
            self.int_flags |= int::CERRIF;
        }
        // When the chip leaves Configuration mode TXBO falls, which is no event of the bus.
        self.error_bits = if self.opmod.runs() { bits } else { 0 };
        let asserted = self.flags() & self.int_enables >> 16 != 0;
        let faults = self.options.faults;
        let low = (asserted || faults.int_stuck_low) && !faults.int_never && !faults.absent;
        match (low, self.int_low_since) {
            (true, None) => {
                self.int_low_since = Some(at);
                if let Some(lows) = &mut self.int_lows {
                    lows.push((at, None));
                }
            }
            (false, Some(_)) => {
                self.int_low_since = None;
                if let Some((_, end)) = self.int_lows.as_mut().and_then(|lows| lows.last_mut()) {
                    *end = Some(at);
                }
            }
            _ => {}
        }
    }

    pub(super) fn int_low_since(&self) -> Option<Ps> {
        self.int_low_since
    }

    pub(super) fn int0_low(&self) -> bool {
        let asks = self.flags() & self.int_enables >> 16 & int::TXIF != 0;
        asks && self.iocon & iocon::PM0 == 0
    }

    pub(super) fn int1_low(&self) -> bool {
        let asks = self.flags() & self.int_enables >> 16 & int::RXIF != 0;
        asks && self.iocon & iocon::PM1 == 0
    }

    pub(super) fn start_int_lows(&mut self) {
        self.int_lows = Some(self.int_low_since.map(|since| (since, None)).into_iter().collect());
    }

    pub(super) fn stop_int_lows(&mut self) {
        self.int_lows = None;
    }

    pub(super) fn take_int_lows(&mut self) -> Vec<(Ps, Option<Ps>)> {
        let Some(kept) = &mut self.int_lows else { return Vec::new() };
        let lows = std::mem::take(kept);
        if self.int_low_since.is_some() {
            // Its end is still to come.
            kept.extend(lows.last());
        }
        lows
    }

    pub(super) fn set_faults(&mut self, faults: ChipFaults) {
        self.options.faults = faults;
        self.update(self.now);
    }

    // For the chip's page.

    pub(super) fn error_counters(&self) -> Counters {
        self.counters
    }

    pub(super) fn taken_and_dropped(&self) -> (u64, u64) {
        (self.taken, self.dropped)
    }

    pub(super) fn last_sent(&self) -> Option<CanFrame> {
        self.last_sent
    }

    pub(super) fn clocked_too_fast(&mut self, too_fast: bool) {
        self.too_fast = too_fast;
    }

    #[cold]
    pub(super) fn complain(&mut self, detail: impl FnOnce() -> String) {
        self.complaints.add(detail);
    }

    pub(super) fn take_complaint(&mut self) -> Option<String> {
        self.complaints.take()
    }

    /// The number of attempts a message may have: C1CON.RTXAT and TXAT; `None` for no limit.
    pub(super) fn attempts(&self, fifo: &Fifo) -> Option<u8> {
        match fifo.con >> fifocon::TXAT & 3 {
            _ if self.con & con::RTXAT == 0 => None,
            0 => Some(1),
            1 => Some(3),
            _ => None,
        }
    }
}
