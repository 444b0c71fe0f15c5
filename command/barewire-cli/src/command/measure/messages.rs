//! Messages on a bus of any kind, and who answers them.

use std::hint::black_box;

use barewire::bus::{Bus, Device};
use barewire::controller::Controller;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_lab::measured::Quantiles;
use barewire_open::LocalBus;

use super::rounds::{Collected, Effort, Now, timed};
use crate::shared::failure::Failure;

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// A flash chip, which is asked for its identity.
    Flash,
    /// A wire from MOSI to MISO.
    Loopback,
    /// Nobody: no chip is selected.
    Nobody,
}

impl Answers {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flash => "flash",
            Self::Loopback => "loopback",
            Self::Nobody => "nobody",
        }
    }

    /// The first byte of a message.
    fn first(self) -> u8 {
        match self {
            // JEDEC's read identification.
            Self::Flash => 0x9f,
            Self::Loopback | Self::Nobody => 0xa5,
        }
    }

    /// Looks at an answer of `tx`.
    fn check(self, tx: &[u8], rx: &[u8]) -> Result<(), Failure> {
        let said = |what: String| Err(Failure::Failed(what));
        match self {
            Self::Flash => match rx.get(1..4) {
                Some([0, 0, 0] | [0xff, 0xff, 0xff]) => said(
                    "no chip answers 9F with an identification: --flash needs a flash chip behind --cs".into(),
                ),
                _ => Ok(()),
            },
            Self::Loopback if tx != rx => said(format!(
                "{:02x?} came back for {:02x?}: --loopback needs a wire from MOSI to MISO",
                &rx[..rx.len().min(4)],
                &tx[..tx.len().min(4)]
            )),
            Self::Loopback | Self::Nobody => Ok(()),
        }
    }
}

/// A message's length in bytes, and the figure that it is.
pub(super) type Timed = (usize, &'static str);

/// Those of a bus of barewire's.
pub(super) const LENGTHS: [Timed; 3] = [(4, "message-4"), (64, "message-64"), (256, "message-256")];
/// Those of the kernel's spidev.
pub(super) const SPIDEV: [Timed; 2] = [(4, "spidev-4"), (64, "spidev-64")];

/// The slow message: its clocks are longer than all else, where there are clocks.
const SLOW_HZ: u32 = 100_000;
const SLOW_BYTES: usize = 16;
const SLOW: &str = "message-slow";

/// A bus with what answers on it.
pub(super) struct Asked<'b> {
    pub(super) bus: &'b LocalBus,
    pub(super) answers: Answers,
    pub(super) chip_select: u8,
    pub(super) speed_hz: u32,
}

impl Asked<'_> {
    fn device(
        &self,
        speed_hz: u32,
        selects: bool,
    ) -> Result<Device<'_, dyn Controller + '_>, Failure> {
        let mode = match self.answers != Answers::Nobody && selects {
            true => self.bus.mode(self.chip_select),
            false => Mode::NO_CS,
        };
        let settings = Settings::new(self.chip_select, speed_hz).with_mode(mode);
        Ok(self.bus.bus().device(&settings)?)
    }

    fn tx(&self, len: usize) -> Vec<u8> {
        let pattern = (0..len).map(|at| if self.answers == Answers::Flash { 0 } else { at as u8 });
        std::iter::once(self.answers.first()).chain(pattern).take(len).collect()
    }

    /// Times `lengths`, and what selecting takes.
    pub(super) fn time(
        &self,
        lengths: &[Timed],
        (now, effort): (Now<'_>, Effort),
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let device = self.device(self.speed_hz, true)?;
        collected.effective_speed_hz = Some(device.effective().speed_hz);
        let each = (effort.rounds, effort.calls);
        for &(len, id) in lengths {
            let (tx, mut rx) = (self.tx(len), vec![0; len]);
            device.sync(&mut [Transfer::exchange(&tx, &mut rx)])?;
            self.answers.check(&tx, &rx)?;
            let (first, mut rx) = (rx, vec![0; len]);
            let mut message = [Transfer::exchange(&tx, &mut rx)];
            collected
                .time(id, now, each, || Ok(device.sync(black_box(&mut message)).map(drop)?))?;
            if self.answers != Answers::Nobody && rx != first {
                return Err(Failure::Failed(format!(
                    "{id}: the answer changed: {:02x?}, then {:02x?}",
                    &first[..4],
                    &rx[..4]
                )));
            }
        }
        Ok(())
    }

    /// Times a prepared access, and what selecting adds to it.
    pub(super) fn time_prepared(
        &self,
        (now, effort): (Now<'_>, Effort),
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let tx: [u8; 4] = self.tx(4).try_into().expect("four bytes");
        let each = (effort.rounds, effort.calls);
        let device = self.device(self.speed_hz, true)?;
        let mut prepared = device.prepare(tx)?;
        let selected =
            timed(now, each.0, each.1, || Ok(black_box(&mut prepared).run().map(drop)?))?;
        if self.answers != Answers::Nobody {
            let device = self.device(self.speed_hz, false)?;
            let mut alone = device.prepare(tx)?;
            let without =
                timed(now, each.0, each.1, || Ok(black_box(&mut alone).run().map(drop)?))?;
            let pairs = selected.iter().zip(&without);
            collected.add("message-select", pairs.map(|(with, without)| with - without).collect());
        }
        collected.add("message-4-prepared", selected);
        Ok(())
    }

    /// Times a slow message, whose clocks alone take 1.28 ms.
    pub(super) fn time_slow(
        &self,
        (now, effort): (Now<'_>, Effort),
        collected: &mut Collected,
    ) -> Result<(), Failure> {
        let device = match self.device(SLOW_HZ, true) {
            Ok(device) => device,
            Err(error) => {
                collected.miss(SLOW, error.to_string());
                return Ok(());
            }
        };
        let (tx, mut rx) = (self.tx(SLOW_BYTES), vec![0; SLOW_BYTES]);
        let mut message = [Transfer::exchange(&tx, &mut rx)];
        let rounds = effort.waits.min(20);
        let all = timed(now, rounds, 1, || Ok(device.sync(black_box(&mut message)).map(drop)?))?;
        let clocks_ns = SLOW_BYTES as f64 * 8e9 / f64::from(device.effective().speed_hz);
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        collected.of_clocks = Some(least / clocks_ns);
        collected.add(SLOW, all);
        Ok(())
    }
}

/// Rounds of a message of 16 bytes at 1 MHz to nobody, long enough to sleep for.
pub(super) fn long<C: Controller + ?Sized>(
    bus: &Bus<C>,
    chip_select: u8,
    now: Now<'_>,
    rounds: usize,
) -> Result<Vec<f64>, Failure> {
    let settings = Settings::new(chip_select, 1_000_000).with_mode(Mode::NO_CS);
    let device = bus.device(&settings)?;
    let mut bytes = [0xa5; 16];
    let mut message = [Transfer::in_place(&mut bytes)];
    timed(now, rounds, 1, || Ok(device.sync(black_box(&mut message)).map(drop)?))
}

/// How much longer a message takes that sleeps until the interrupt than one that polls.
pub(super) fn asleep(polled: Vec<f64>, slept: &[f64]) -> Vec<f64> {
    let median = Quantiles::of(polled).map_or(0.0, |polled| polled.median);
    slept.iter().map(|ns| (ns - median).max(0.0)).collect()
}
