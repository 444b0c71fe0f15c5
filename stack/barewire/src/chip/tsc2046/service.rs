//! PENIRQ: samples until the pen is up.

use core::ops::ControlFlow;

use super::{Touch, TouchError, Tsc2046};
use crate::regmap::Frames;
use crate::time::Timer;

/// The number of consecutive samples without a pen while PENIRQ is low, before it is called stuck.
const UP_SAMPLES: u32 = 8;
/// The number of consecutive inconsistent samples, before an error is returned.
const INCONSISTENT_SAMPLES: u32 = 8;
/// The number of consecutive samples of either kind in any order: no pen goes up and down that
/// often.
const FRUITLESS_SAMPLES: u32 = 64;

/// The result of [`Tsc2046::service`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Served {
    /// The number of exchanges.
    pub samples: u32,
    /// The number of samples that found the pen.
    pub touches: u32,
    /// The number of samples whose repeats differed too much.
    pub inconsistent: u32,
    /// The pen was still down: the handler stopped.
    pub still_down: bool,
}

impl<F: Frames<BYTES>, const BYTES: usize> Tsc2046<F, BYTES> {
    /// Serves PENIRQ, whose interrupt must be masked meanwhile. Samples and calls `handle` until
    /// the pen is up and PENIRQ works again, or until `handle` breaks.
    ///
    /// 1. Sample: take a sample. PENIRQ is meaningless until its last conversion has powered down.
    /// 2. Down: if the pen is down, call `handle`, then wait for
    ///    [`Config::interval_us`](super::Config::interval_us).
    /// 3. Up: if the pen is up, call `pen_irq_is_low`; if it returns true, call it again after
    ///    [`Config::recheck_us`](super::Config::recheck_us). If the line has risen, return. If it
    ///    stays low the pen may be down again, so sample again, at most 8 times in a row.
    /// 4. Between: if the pen went up or came down during the sample, sample again, at most 8 times
    ///    in a row.
    ///
    /// If steps 3 and 4 alternate, there are at most 64 samples in a row without a touch.
    ///
    /// # Errors
    /// [`TouchError::InterruptStuck`]; [`TouchError::Inconsistent`] if the last sample in a row
    /// was inconsistent; the errors of [`Tsc2046::sample`].
    pub fn service(
        &mut self,
        timer: &mut impl Timer,
        mut pen_irq_is_low: impl FnMut() -> bool,
        mut handle: impl FnMut(&Touch) -> ControlFlow<()>,
    ) -> Result<Served, TouchError> {
        let mut served = Served::default();
        let (mut up, mut inconsistent, mut fruitless) = (0, 0, 0);
        loop {
            // Step 1, sample.
            let read = self.read();
            served.samples += 1;
            fruitless += 1;
            match read {
                // Step 2, down.
                Ok(touch) => {
                    (up, inconsistent, fruitless) = (0, 0, 0);
                    served.touches += 1;
                    if handle(&touch).is_break() {
                        served.still_down = true;
                        return Ok(served);
                    }
                    timer.sleep_ns(u64::from(self.config.interval_us) * 1_000);
                }
                // Step 3, up.
                Err(TouchError::PenUp { .. }) => {
                    inconsistent = 0;
                    if !pen_irq_is_low() {
                        return Ok(served);
                    }
                    timer.sleep_ns(u64::from(self.config.recheck_us) * 1_000);
                    if !pen_irq_is_low() {
                        return Ok(served);
                    }
                    up += 1;
                    if up == UP_SAMPLES || fruitless >= FRUITLESS_SAMPLES {
                        return Err(TouchError::InterruptStuck { samples: fruitless });
                    }
                }
                // Step 4, between.
                Err(error @ TouchError::Inconsistent { .. }) => {
                    up = 0;
                    served.inconsistent += 1;
                    inconsistent += 1;
                    if inconsistent == INCONSISTENT_SAMPLES || fruitless >= FRUITLESS_SAMPLES {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}
