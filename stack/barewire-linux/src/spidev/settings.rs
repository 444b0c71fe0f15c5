//! Settings for spidev: how they are stored in a [`Preset`], checked, and applied.

use barewire::controller::{ALWAYS_POLL, Limits, Plan, Preset, Selection, delay_ticks, word_bytes};
use barewire::spi::{Effective, Error, Mode, Settings, Transfer};
use barewire::time::effective_ns;
use rustix::io::Errno;

use super::error::SpidevError;
use super::ioctl::{Ioctl, Setting};

/// spidev's delays are whole microseconds.
pub(super) const TIMER_HZ: u32 = 1_000_000;
/// The longest delay that `delay_usecs` holds.
const DELAY_MAX_US: u32 = u16::MAX as u32;
/// The longest delay that `word_delay_usecs` holds.
const WORD_DELAY_MAX_US: u32 = u8::MAX as u32;

/// spidev does not report the controller's clocks. The kernel limits a clock that is too fast; one
/// that is too slow shows in a message's duration.
pub(super) const LIMITS: Limits = Limits::new(1, u32::MAX, 1 << 7 | 1 << 15 | 1 << 31, TIMER_HZ)
    .with_max_delay_ns(DELAY_MAX_US * 1_000);

/// The flags that barewire names, and so sets and clears.
const OURS: u8 = Mode::CPHA.bits()
    | Mode::CPOL.bits()
    | Mode::CS_HIGH.bits()
    | Mode::LSB_FIRST.bits()
    | Mode::LOOP.bits()
    | Mode::NO_CS.bits();

/// `SPI_READY`: no device tree sets it, so another program left it set.
const LEFT_BEHIND: u32 = 0x80;

/// The bits of a node's mode that barewire keeps: the chip's wiring (3WIRE, dual, quad). It comes
/// from the device tree and would be lost for good if it were overwritten.
pub(super) fn kept(mode32: u32) -> u32 {
    mode32 & !(u32::from(OURS) | LEFT_BEHIND)
}

/// The indices of the settings in a preset's registers.
const P_MODE: usize = 0;
const P_BITS: usize = 1;
pub(super) const P_SPEED: usize = 2;

/// The settings in force, as far as they were set here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AppliedSettings([Option<u32>; 3]);

impl AppliedSettings {
    /// Applies the preset's settings, by one ioctl for each that differs.
    pub(super) fn apply(
        &mut self,
        preset: &Preset,
        ioctl: &mut impl Ioctl,
    ) -> Result<(), (Setting, Errno)> {
        for (index, applied) in self.0.iter_mut().enumerate() {
            let wanted = preset.regs[index];
            if *applied == Some(wanted) {
                continue;
            }
            let setting = match index {
                P_MODE => Setting::Mode32(wanted),
                P_BITS => Setting::BitsPerWord(wanted as u8),
                _ => Setting::MaxSpeedHz(wanted),
            };
            // The kernel keeps the old value if it refuses the new one.
            ioctl.set(setting).map_err(|errno| (setting, errno))?;
            *applied = Some(wanted);
        }
        Ok(())
    }
}

/// Why settings were refused.
pub(super) struct SettingsRefusal {
    pub(super) whole: Option<SpidevError>,
    pub(super) nearest: Error,
}

impl From<Error> for SettingsRefusal {
    fn from(nearest: Error) -> Self {
        Self { whole: None, nearest }
    }
}

/// A delay in microseconds, if it fits its field.
fn field(what: &'static str, ns: u32, max_us: u32) -> Result<u32, SettingsRefusal> {
    let asked_us = delay_ticks(ns, TIMER_HZ)?;
    fits(what, asked_us.into(), max_us, ns)
        .map_err(|(whole, nearest)| SettingsRefusal { whole: Some(whole), nearest })?;
    Ok(asked_us)
}

fn fits(
    what: &'static str,
    asked_us: u64,
    max_us: u32,
    asked_ns: u32,
) -> Result<(), (SpidevError, Error)> {
    if asked_us <= max_us.into() {
        return Ok(());
    }
    let whole = SpidevError::Delay { what, asked_us, max_us };
    Err((whole, Error::DelayTooLong { asked_ns }))
}

/// Turns settings into a preset.
pub(super) fn configure(
    settings: &Settings,
    kept_mode: u32,
) -> Result<(Preset, Effective), SettingsRefusal> {
    if settings.speed_hz == 0 {
        return Err(Error::SpeedZero.into());
    }
    if settings.chip_select != 0 {
        let chip_select = settings.chip_select;
        return Err(Error::NoSuchChipSelect { chip_select }.into());
    }
    let word_bytes = word_bytes(settings.bits_per_word)?;
    let cs_setup_ticks = field("cs_setup", settings.cs_setup_ns, DELAY_MAX_US)?;
    let cs_hold_ticks = field("cs_hold", settings.cs_hold_ns, DELAY_MAX_US)?;
    let cs_inactive_ticks = delay_ticks(settings.cs_inactive_ns, TIMER_HZ)?;
    let word_delay_ticks = field("word_delay", settings.word_delay_ns, WORD_DELAY_MAX_US)?;
    let mut regs = [0; 4];
    regs[P_MODE] = u32::from(settings.mode.bits()) | kept_mode;
    regs[P_BITS] = settings.bits_per_word.into();
    regs[P_SPEED] = settings.speed_hz;
    let preset = Preset {
        plan: Plan::new(0, word_delay_ticks, word_bytes),
        // The size of a message must be checked against bufsiz.
        asks: true,
        poll_bytes_max: usize::MAX,
        poll_limit_ns: ALWAYS_POLL,
        // No limit here: the kernel splits or refuses transfers itself.
        max_transfer_bytes: usize::MAX,
        regs,
        cs_mask: 0,
        cs_active_high: false,
        cs_setup_ticks,
        cs_hold_ticks,
        cs_inactive_ticks,
        // It does not keep CS active: the kernel could, but the ioctl would have to ask for it.
        selection: Selection::default()
            .with_waits(cs_setup_ticks | cs_hold_ticks | cs_inactive_ticks != 0),
    };
    let effective = |ns: u32| effective_ns(ns.into(), TIMER_HZ);
    let effective = Effective {
        speed_hz: settings.speed_hz,
        cs_setup_ns: effective(settings.cs_setup_ns),
        cs_hold_ns: effective(settings.cs_hold_ns),
        cs_inactive_ns: effective(settings.cs_inactive_ns),
        word_delay_ns: effective(settings.word_delay_ns),
        word_rest_clocks: 0,
        quantum_ns: 1000,
    };
    Ok((preset, effective))
}

/// Checks that a transfer's own delays fit their fields, together with the delays that share them.
pub(super) fn check_delays(
    preset: &Preset,
    transfer: &Transfer<'_>,
) -> Result<(), (SpidevError, Error)> {
    let us = |ns: u32| u64::from(ns.div_ceil(1000));
    let delay_us = us(transfer.delay_ns) + u64::from(preset.cs_hold_ticks);
    fits("a transfer's delay with cs_hold", delay_us, DELAY_MAX_US, transfer.delay_ns)?;
    let word_delay_us = us(transfer.word_delay_ns);
    fits("word_delay", word_delay_us, WORD_DELAY_MAX_US, transfer.word_delay_ns)
}
