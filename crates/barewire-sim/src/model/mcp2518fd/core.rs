//! What the chip is between its two wires: clocks, modes, time base, interrupts, message RAM.
//!
//! # Ordering
//! 1. [`Core::catch_up`] carries out what the chip does by itself, up to a time.
//! 2. Whatever changes a flag calls [`Core::update`] with the time, at the end.

use std::collections::VecDeque;

use super::TX_PREPARE_CLOCKS;
use super::fifo::{Fifo, Kind};
use super::filter::Filter;
use super::options::{ChipFaults, Options, PartKind};
use super::regs::{con, ecc, fifocon, int, iocon, osc, tscon};
use crate::chip::Ps;
use crate::model::can::{BitTimes, CanFrame, Counters, ErrorState};

const PS_PER_S: u128 = 1_000_000_000_000;
/// How long the oscillator takes to be stable.
const OSCILLATOR_STARTS_PS: Ps = 3_000_000_000;
/// How long the PLL takes to lock.
const PLL_LOCKS_PS: Ps = 1_000_000_000;
/// Bits with which a node integrates; in internal loopback it hears its own idle bus.
const INTEGRATION_BITS: u64 = 11;
/// Complaints kept until somebody takes them.
const COMPLAINTS_MAX: usize = 64;
/// Bytes of message RAM.
pub(super) const RAM_BYTES: usize = 2048;
/// How many FIFOs there are beside the queue; [`Core::fifos`] has the queue at place 0.
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
pub(super) struct Looped {
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
    oscillator_ready_at: Ps,
    pll_ready_at: Ps,
    // Modes.
    /// C1CON without OPMOD and BUSY.
    pub(super) con: u32,
    pub(super) opmod: Mode,
    /// The mode to come; when, unless the bus says so.
    pub(super) change: Option<(Mode, Ps)>,
    pub(super) in_frame: bool,
    // Bit times, time base.
    pub(super) nbtcfg: u32,
    pub(super) dbtcfg: u32,
    pub(super) tdc: u32,
    pub(super) tscon: u32,
    /// A time, and C1TBC then.
    tbc: (Ps, u32),
    tbc_overflow_at: Ps,
    // Interrupts.
    pub(super) int_enables: u32,
    pub(super) int_flags: u32,
    int_low_since: Option<Ps>,
    int_lows: Vec<(Ps, Option<Ps>)>,
    // Errors.
    pub(super) counters: Counters,
    /// C1TREC's state bits as they were.
    error_bits: u32,
    pub(super) bdiag: [u32; 2],
    // Message memory.
    pub(super) tef: Fifo,
    pub(super) fifos: Vec<Fifo>,
    pub(super) filters: [Filter; 32],
    pub(super) filhit: u32,
    pub(super) ram: Box<[u8; RAM_BYTES]>,
    /// Words written with ECC on: reading others with it finds an error.
    ecc_good: Box<[bool; RAM_BYTES / 4]>,
    // Sending.
    /// What is on the bus, or was offered last: FIFO and place.
    pub(super) sending: Option<(usize, u8)>,
    pub(super) current: Option<CanFrame>,
    pub(super) attempts_left: u8,
    pub(super) bandwidth_until: Ps,
    pub(super) looped: Option<Looped>,
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
    complaints: VecDeque<String>,
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
            int_lows: Vec::new(),
            counters: Counters::default(),
            error_bits: 0,
            bdiag: [0; 2],
            tef: Fifo::new(Kind::Tef),
            fifos,
            filters: [Filter::default(); 32],
            filhit: 0,
            // Anything may be in it at power-up.
            ram: Box::new([0xa5; RAM_BYTES]),
            ecc_good: Box::new([false; RAM_BYTES / 4]),
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
            complaints: VecDeque::new(),
        };
        core.lay_out();
        core.update(0);
        core
    }

    /// The RESET instruction, and waking up from low power mode: everything but RAM, and the clock.
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

    // Clocks.

    pub(super) fn now(&self) -> Ps {
        self.now
    }

    pub(super) fn sysclk_hz(&self) -> u64 {
        let times = if self.osc & osc::PLLEN != 0 { 10 } else { 1 };
        let divisor = if self.osc & osc::SCLKDIV != 0 { 2 } else { 1 };
        u64::from(self.options.oscillator_hz) * times / divisor
    }

    pub(super) fn clocks_ps(&self, clocks: u64) -> Ps {
        (u128::from(clocks) * PS_PER_S / u128::from(self.sysclk_hz().max(1))) as Ps
    }

    pub(super) fn oscillator_runs(&self) -> bool {
        self.osc & osc::OSCDIS == 0
            && !self.options.faults.oscillator_dead
            && self.now >= self.oscillator_ready_at
    }

    pub(super) fn read_osc(&self) -> u32 {
        let flag = |on: bool, bit| if on { bit } else { 0 };
        let locked = self.osc & osc::PLLEN != 0
            && self.oscillator_runs()
            && !self.options.faults.pll_dead
            && self.now >= self.pll_ready_at;
        self.osc
            | flag(self.osc & osc::SCLKDIV != 0, osc::SCLKRDY)
            | flag(self.oscillator_runs(), osc::OSCRDY)
            | flag(locked, osc::PLLRDY)
    }

    pub(super) fn write_osc(&mut self, value: u32, at: Ps) {
        let mut writable = osc::CLKODIV | osc::OSCDIS;
        if self.options.part == PartKind::Mcp2518Fd {
            writable |= osc::LPMEN;
        }
        let configuration = osc::PLLEN | osc::SCLKDIV;
        if self.opmod == Mode::Configuration || self.opmod == Mode::Sleep {
            writable |= configuration;
        } else if (value ^ self.osc) & configuration != 0 {
            self.complain(|| "OSC.PLLEN and SCLKDIV change in Configuration mode only".into());
        }
        let before = self.osc;
        self.osc = self.osc & !writable | value & writable;
        if self.osc & !before & osc::PLLEN != 0 {
            self.pll_ready_at = at.max(self.oscillator_ready_at) + PLL_LOCKS_PS;
        }
        if before & !self.osc & osc::OSCDIS != 0 {
            self.wake_up(at);
        }
    }

    fn wake_up(&mut self, at: Ps) {
        self.oscillator_ready_at = at + OSCILLATOR_STARTS_PS;
        if self.osc & osc::PLLEN != 0 {
            self.pll_ready_at = self.oscillator_ready_at + PLL_LOCKS_PS;
        }
        if self.opmod == Mode::Sleep {
            self.change = Some((Mode::Configuration, self.oscillator_ready_at));
            self.con = self.con & !(7 << con::REQOP) | 4 << con::REQOP;
        }
    }

    /// CS falls: in low power mode that wakes the chip up, all its registers lost.
    pub(super) fn selected(&mut self, at: Ps) {
        let low_power = osc::LPMEN | osc::OSCDIS;
        if self.opmod == Mode::Sleep && self.osc & low_power == low_power {
            self.reset(at, true);
            self.ram.fill(0xa5);
            self.ecc_good.fill(false);
        }
    }

    // Bit times.

    fn bit_ps(&self, brp: u32, quanta: u32) -> Ps {
        self.clocks_ps(u64::from(brp + 1) * u64::from(quanta))
    }

    pub(super) fn nominal_ps(&self) -> Ps {
        let cfg = self.nbtcfg;
        self.bit_ps(cfg >> 24, (cfg >> 16 & 0xff) + (cfg >> 8 & 0x7f) + 3)
    }

    pub(super) fn times(&self) -> BitTimes {
        let cfg = self.dbtcfg;
        BitTimes {
            nominal_ps: self.nominal_ps(),
            data_ps: self.bit_ps(cfg >> 24, (cfg >> 16 & 0x1f) + (cfg >> 8 & 0xf) + 3),
        }
    }

    /// From the beginning of a nominal bit to its sample point.
    pub(super) fn sample_ps(&self) -> Ps {
        self.bit_ps(self.nbtcfg >> 24, (self.nbtcfg >> 16 & 0xff) + 2)
    }

    // Modes.

    /// Whether the chip is on the bus or about to be, in which mode.
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
            // The bus says when.
            _ if !self.opmod.runs() && mode.runs() && mode != Mode::InternalLoopback => Ps::MAX,
            Mode::InternalLoopback => at + INTEGRATION_BITS * self.nominal_ps(),
            _ if self.in_frame || self.looped.is_some() => Ps::MAX,
            _ => at + self.nominal_ps(),
        };
        self.change = Some((mode, due));
    }

    /// The frame on the bus is over, as far as the chip is concerned.
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

    /// Gives every FIFO its place in RAM, one after the other.
    pub(super) fn lay_out(&mut self) {
        let mut offset = 0;
        if self.con & con::STEF != 0 {
            self.tef.offset = offset;
            offset += self.tef.bytes();
        }
        for (index, fifo) in self.fifos.iter_mut().enumerate() {
            if index == 0 && self.con & con::TXQEN == 0 {
                continue;
            }
            fifo.offset = offset;
            // Far beyond RAM it does not matter how far.
            offset = offset.saturating_add(fifo.bytes()).min(0x4000);
        }
    }

    // Time base.

    pub(super) fn tbc_at(&self, at: Ps) -> u32 {
        let (since, value) = self.tbc;
        if self.tscon & tscon::TBCEN == 0 {
            return value;
        }
        let prescaler = u128::from(self.tscon & tscon::TBCPRE) + 1;
        let elapsed = u128::from(at.saturating_sub(since)) * u128::from(self.sysclk_hz());
        value.wrapping_add((elapsed / PS_PER_S / prescaler) as u32)
    }

    pub(super) fn set_tbc(&mut self, value: u32, at: Ps) {
        self.tbc = (at, value);
        self.plan_overflow();
    }

    pub(super) fn write_tscon(&mut self, value: u32, at: Ps) {
        let running = self.tbc_at(at);
        let stops = self.tscon & !value & tscon::TBCEN != 0;
        self.tscon = value & tscon::ALL;
        self.set_tbc(if stops { 0 } else { running }, at);
    }

    fn plan_overflow(&mut self) {
        let (since, value) = self.tbc;
        self.tbc_overflow_at = Ps::MAX;
        if self.tscon & tscon::TBCEN != 0 {
            let ticks = (1_u128 << 32) - u128::from(value);
            let clocks = ticks * (u128::from(self.tscon & tscon::TBCPRE) + 1);
            let ps = (clocks * PS_PER_S).div_ceil(u128::from(self.sysclk_hz().max(1)));
            self.tbc_overflow_at = since.saturating_add(Ps::try_from(ps).unwrap_or(Ps::MAX));
        }
    }

    // What happens by itself.

    /// When something happens without anybody's doing.
    pub(super) fn due(&self) -> Ps {
        let mut due = self.tbc_overflow_at;
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

    /// Lets happen what is due by `now`; whether anything was, which the bus may have to know.
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
            // Most FIFOs allow no interrupt.
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

    /// Derives what follows from flags and counters, at the time of their change.
    pub(super) fn update(&mut self, at: Ps) {
        let bits = self.read_trec() >> 16;
        if self.opmod.runs() && bits != self.error_bits {
            self.int_flags |= int::CERRIF;
        }
        // Coming from Configuration mode TXBO falls, which is no news of the bus.
        self.error_bits = if self.opmod.runs() { bits } else { 0 };
        let asserted = self.flags() & self.int_enables >> 16 != 0;
        let faults = self.options.faults;
        let low = (asserted || faults.int_stuck_low) && !faults.int_never && !faults.absent;
        match (low, self.int_low_since) {
            (true, None) => {
                self.int_low_since = Some(at);
                self.int_lows.push((at, None));
            }
            (false, Some(_)) => {
                self.int_low_since = None;
                if let Some((_, end)) = self.int_lows.last_mut() {
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

    pub(super) fn take_int_lows(&mut self) -> Vec<(Ps, Option<Ps>)> {
        let lows = std::mem::take(&mut self.int_lows);
        if self.int_low_since.is_some() {
            // Its end is still to come.
            self.int_lows.extend(lows.last());
        }
        lows
    }

    pub(super) fn set_faults(&mut self, faults: ChipFaults) {
        self.options.faults = faults;
        self.update(self.now);
    }

    // Message RAM, by its own offsets.

    pub(super) fn ram_word(&mut self, offset: u16) -> u32 {
        let word = usize::from(offset) / 4;
        if self.ecccon & ecc::ECCEN != 0 && !self.ecc_good[word] {
            self.ecc_error(ecc::DEDIF, offset);
        }
        self.peek_ram(offset)
    }

    pub(super) fn peek_ram(&self, offset: u16) -> u32 {
        let place = usize::from(offset) & (RAM_BYTES - 4);
        let bytes = &self.ram[place..place + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    pub(super) fn write_ram(&mut self, offset: u16, value: u32) {
        let place = usize::from(offset) & (RAM_BYTES - 4);
        self.ram[place..place + 4].copy_from_slice(&value.to_le_bytes());
        self.ecc_good[place / 4] = self.ecccon & ecc::ECCEN != 0;
    }

    pub(super) fn ecc_error(&mut self, flag: u32, offset: u16) {
        let address = u32::from(offset) + 0x400;
        self.eccstat = self.eccstat & 0xffff | flag | address << ecc::ERRADDR;
        self.update(self.now);
    }

    pub(super) fn flip_ram(&mut self, address: u16, two: bool) {
        let offset = address.saturating_sub(0x400);
        let ecc_on = self.ecccon & ecc::ECCEN != 0;
        if two || !ecc_on {
            self.ram[usize::from(offset) % RAM_BYTES] ^= if two { 3 } else { 1 };
        }
        if ecc_on {
            self.ecc_error(if two { ecc::DEDIF } else { ecc::SECIF }, offset & 0x7fc);
        }
    }

    /// Whether an object lies in RAM: else the FIFOs were configured too large.
    pub(super) fn in_ram(&mut self, fifo: &Fifo, index: u8) -> bool {
        let end = usize::from(fifo.place(index)) + usize::from(fifo.object_bytes());
        let fits = end <= RAM_BYTES;
        if !fits {
            self.complain(|| {
                format!("a message object ends at RAM byte {end}, RAM has {RAM_BYTES}")
            });
        }
        fits
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
        if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push_back(detail());
        }
    }

    pub(super) fn take_complaint(&mut self) -> Option<String> {
        self.complaints.pop_front()
    }

    /// How often a message may be tried: C1CON.RTXAT and TXAT; `None` for no limit.
    pub(super) fn attempts(&self, fifo: &Fifo) -> Option<u8> {
        match fifo.con >> fifocon::TXAT & 3 {
            _ if self.con & con::RTXAT == 0 => None,
            0 => Some(1),
            1 => Some(3),
            _ => None,
        }
    }
}
