//! Oscillator, PLL, bit times, and the time base counter.

use super::core::{Core, Mode, OSCILLATOR_STARTS_PS};
use super::options::PartKind;
use super::regs::{con, osc, tscon};
use crate::chip::Ps;
use crate::model::can::BitTimes;

const PS_PER_S: u128 = 1_000_000_000_000;
/// How long the PLL takes to lock.
const PLL_LOCKS_PS: Ps = 1_000_000_000;

impl Core {
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

    /// CS falls. In low power mode that wakes the chip, and all its registers are lost.
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

    /// From the start of a nominal bit to its sample point.
    pub(super) fn sample_ps(&self) -> Ps {
        self.bit_ps(self.nbtcfg >> 24, (self.nbtcfg >> 16 & 0xff) + 2)
    }

    // The time base.

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
}
