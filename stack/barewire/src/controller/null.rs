//! The null controller: a wire that takes no time, to measure everything else.
//!
//! Its three wire operations are real calls that the compiler cannot inline, so a bench counts the
//! instructions around a driver's register work. It has no select line; a device without a chip
//! select ([`Mode::NO_CS`](crate::spi::Mode::NO_CS)) costs as much as any other.

use super::wire::SelectedChip;
use super::{
    Controller, Limits, Plan, Preset, Stopped, Unfinished, Wire, plan_message, run_message,
    word_bytes,
};
use crate::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// Its ticks are nanoseconds.
const TIMER_HZ: u32 = 1_000_000_000;

/// A controller without registers. It counts the bytes sent; the received bytes are zeros.
#[derive(Debug, Default)]
pub struct Null {
    cs_active: bool,
    selections: u64,
    bytes: u64,
}

impl Null {
    /// A null controller, deselected.
    #[must_use]
    pub const fn new() -> Self {
        Self { cs_active: false, selections: 0, bytes: 0 }
    }

    /// Whether CS is active.
    #[must_use]
    pub fn cs_active(&self) -> bool {
        self.cs_active
    }

    /// How often CS became active.
    #[must_use]
    pub fn selections(&self) -> u64 {
        self.selections
    }

    /// Bytes clocked.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Wire for Null {
    #[inline(never)]
    fn select(&mut self, _preset: &Preset) {
        self.cs_active = true;
        self.selections += 1;
    }

    #[inline(never)]
    fn deselect(&mut self, _preset: &Preset) {
        self.cs_active = false;
    }

    #[inline(never)]
    fn exchange(
        &mut self,
        _preset: &Preset,
        _plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        self.bytes += data.len() as u64;
        if let Some(first) = data.rx_mut().and_then(<[u8]>::first_mut) {
            *first = 0;
        }
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _ticks: u32) {}
}

impl Controller for Null {
    fn limits(&self) -> Limits {
        Limits::new(1, u32::MAX, 1 << 7 | 1 << 15 | 1 << 31, TIMER_HZ)
    }

    fn may_use_its_bus(&self) -> bool {
        false
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        if settings.speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        let plan = Plan::new(0, 0, word_bytes(settings.bits_per_word)?);
        let preset = Preset::by_timer(settings, TIMER_HZ, plan, [0; 4])?;
        let effective = Effective::by_timer(settings.speed_hz, settings, TIMER_HZ);
        Ok((preset, effective))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        plan_message(preset, TIMER_HZ, message, |_| Ok(0))
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }

    #[inline(always)]
    fn run_exchange(
        &mut self,
        preset: &Preset,
        tx: &[u8],
        rx: &mut [u8],
    ) -> Result<usize, Unfinished> {
        // As the drivers do: without a transfer in memory.
        let mut selected = SelectedChip::new(self, preset);
        let mut data = Data::exchange(tx, rx);
        if let Err(stopped) = selected.wire.exchange(preset, &preset.plan, &mut data) {
            return Err(Unfinished::stopped(0, stopped));
        }
        selected.unsettled = false;
        Ok(data.len())
    }

    fn reclaim(&mut self) {
        self.cs_active = false;
    }
}
