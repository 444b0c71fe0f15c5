//! PENIRQ: samples until the pen is up.

use core::ops::ControlFlow;

use super::{Touch, TouchError, Tsc2046};
use crate::regmap::Frames;
use crate::time::Timer;

/// Samples in a row that find no pen while PENIRQ is low, before it is called stuck.
const UP_SAMPLES: u32 = 8;
/// Samples in a row that are inconsistent, before it is told.
const INCONSISTENT_SAMPLES: u32 = 8;
/// Samples in a row of either kind, taking turns: no pen comes and goes that often.
const FRUITLESS_SAMPLES: u32 = 64;

/// What was done while the pen was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Exchanges.
    pub samples: u32,
    /// Of them, those that found the pen.
    pub touches: u32,
    /// Of them, those whose repeats lay too far apart.
    pub inconsistent: u32,
    /// The pen was still down: the handler did not want more.
    pub still_down: bool,
}

impl<F: Frames<BYTES>, const BYTES: usize> Tsc2046<F, BYTES> {
    /// Serves PENIRQ, which is to be masked meanwhile: samples and lets `handle` know, until the pen
    /// is up and PENIRQ works again, or `handle` breaks.
    ///
    /// 1. A sample. PENIRQ means nothing until its last conversion has powered down.
    /// 2. The pen is down: `handle`, then [`Config::interval_us`](super::Config::interval_us) of rest.
    /// 3. It is up: `pen_irq_is_low` is asked, and if it is, once more after
    ///    [`Config::recheck_us`](super::Config::recheck_us). A line that has risen is the end; behind one
    ///    that stays low the pen may have come back, so it is sampled again, 8 times at most.
    /// 4. It went up or came down in between: it is sampled again, 8 times in a row at most.
    ///
    /// Where those of steps 3 and 4 take turns, 64 times in all without a touch between.
    ///
    /// # Errors
    /// [`TouchError::InterruptStuck`]; [`TouchError::Inconsistent`] of the last of them; those of
    /// [`Tsc2046::sample`].
    pub fn service(
        &mut self,
        timer: &mut impl Timer,
        mut pen_irq_is_low: impl FnMut() -> bool,
        mut handle: impl FnMut(&Touch) -> ControlFlow<()>,
    ) -> Result<Served, TouchError> {
        let mut served = Served::default();
        let (mut up, mut inconsistent, mut fruitless) = (0, 0, 0);
        loop {
            // Step 1.
            let read = self.read();
            served.samples += 1;
            fruitless += 1;
            match read {
                // Step 2.
                Ok(touch) => {
                    (up, inconsistent, fruitless) = (0, 0, 0);
                    served.touches += 1;
                    if handle(&touch).is_break() {
                        served.still_down = true;
                        return Ok(served);
                    }
                    timer.sleep_ns(u64::from(self.config.interval_us) * 1_000);
                }
                // Step 3.
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
                // Step 4.
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
