//! Injects faults into chosen transfers, to test that the layers above detect them.

use crate::controller::{Controller, Preset, Stopped, Unfinished};
use crate::middleware::Layer;
use crate::spi::Transfer;

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Fault {
    /// The transfer times out: earlier transfers run, this one and the rest do not.
    Timeout,
    /// MISO reads low throughout the transfer.
    StuckLow,
    /// MISO reads high throughout the transfer.
    StuckHigh,
    /// One received bit is inverted: bit `bit % 8` (7 is the first on the wire) of byte `bit / 8`,
    /// modulo the transfer's length.
    BitFlip {
        /// The bit's index in the transfer.
        bit: usize,
    },
}

/// The transfers that fail. They are counted over all messages, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum When {
    /// None.
    Never,
    /// Only this one.
    Transfer(u64),
    /// This one and all later ones.
    From(u64),
    /// One in `one_in` on average, chosen by `seed`. Equal seeds choose equal transfers.
    Random {
        /// The seed.
        seed: u64,
        /// The average distance between faults; 0 counts as 1.
        one_in: u32,
    },
}

impl When {
    fn chooses(self, transfer: u64) -> bool {
        match self {
            When::Never => false,
            When::Transfer(chosen) => transfer == chosen,
            When::From(first) => transfer >= first,
            When::Random { seed, one_in } => {
                // SplitMix64 of the transfer's number. It has no state, so any part of a run can be
                // repeated.
                let mut mixed =
                    seed.wrapping_add((transfer + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                (mixed ^ mixed >> 31) % u64::from(one_in.max(1)) == 0
            }
        }
    }
}

/// A controller that injects faults into chosen transfers.
#[derive(Debug)]
pub struct FaultInjector<C> {
    inner: C,
    fault: Fault,
    when: When,
    transfers: u64,
    injected: u64,
}

impl<C> FaultInjector<C> {
    /// Wraps `inner`, and injects `fault` into the transfers that `when` selects.
    pub const fn new(inner: C, fault: Fault, when: When) -> Self {
        Self { inner, fault, when, transfers: 0, injected: 0 }
    }

    /// The number of faults so far.
    pub const fn injected(&self) -> u64 {
        self.injected
    }

    /// Returns the wrapped controller.
    pub fn into_inner(self) -> C {
        self.inner
    }
}

impl<C: Controller> FaultInjector<C> {
    /// Runs the transfers before `index` only. CS is released afterwards as usual.
    fn time_out(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
        index: usize,
    ) -> Result<usize, Unfinished> {
        if index > 0 {
            self.inner.run(preset, &mut message[..index])?;
        }
        Err(Unfinished::stopped(index, Stopped::TimedOut { timeout_us: 0 }))
    }

    fn spoil(&self, transfer: &mut Transfer<'_>) {
        let Some(rx) = transfer.data.rx_mut() else { return };
        match self.fault {
            Fault::Timeout => {}
            Fault::StuckLow => rx.fill(0x00),
            Fault::StuckHigh => rx.fill(0xff),
            Fault::BitFlip { bit } => {
                if let Some(index) = (bit / 8).checked_rem(rx.len()) {
                    rx[index] ^= 1 << (bit % 8);
                }
            }
        }
    }
}

impl<C: Controller> Layer for FaultInjector<C> {
    crate::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let (first, when) = (self.transfers, self.when);
        self.transfers += message.len() as u64;
        let chosen = move |index: &usize| when.chooses(first + *index as u64);
        if self.fault == Fault::Timeout {
            if let Some(index) = (0..message.len()).find(chosen) {
                self.injected += 1;
                return self.time_out(preset, message, index);
            }
        }
        let ran = self.inner.run(preset, message)?;
        for index in (0..message.len()).filter(chosen) {
            self.injected += 1;
            self.spoil(&mut message[index]);
        }
        Ok(ran)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::bus::Bus;
    use crate::controller::null::Null;
    use crate::spi::Settings;

    fn received(fault: Fault, when: When) -> [[u8; 2]; 3] {
        let bus = Bus::new(FaultInjector::new(Null::new(), fault, when));
        let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
        let mut rx = [[0x0f; 2]; 3];
        for rx in &mut rx {
            device.sync(&mut [Transfer::read(rx)]).expect("runs");
        }
        rx
    }

    // The null controller writes 0 to the first byte and leaves the second.
    #[test]
    fn a_fault_happens_to_the_chosen_transfer_alone() {
        let good = [0x00, 0x0f];
        assert_eq!(received(Fault::StuckHigh, When::Never), [good; 3]);
        assert_eq!(received(Fault::StuckHigh, When::Transfer(1)), [good, [0xff; 2], good]);
        assert_eq!(received(Fault::StuckLow, When::From(1)), [good, [0; 2], [0; 2]]);
        let flip = Fault::BitFlip { bit: 8 + 4 };
        assert_eq!(received(flip, When::Transfer(2)), [good, good, [0x00, 0x1f]]);
    }

    #[test]
    fn the_same_seed_chooses_the_same_transfers() {
        let chosen = |seed| -> Vec<u64> {
            (0..1_000).filter(|&n| When::Random { seed, one_in: 10 }.chooses(n)).collect()
        };
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
        assert!((50..200).contains(&chosen(1).len()), "{}", chosen(1).len());
    }

    #[test]
    fn a_timeout_clocks_what_was_before_it_and_frees_the_bus() {
        let injector = FaultInjector::new(Null::new(), Fault::Timeout, When::Transfer(2));
        let bus = Bus::new(injector);
        let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
        let mut message = [(); 3].map(|()| Transfer::write(&[1, 2]));
        let error = device.sync(&mut message).expect_err("the third times out");
        assert_eq!((error.transfer_index, error.actual_length), (2, 4));
        device.try_sync(&mut [Transfer::write(&[1])]).expect("the bus is free");
        let injector = bus.into_inner();
        assert_eq!(injector.injected(), 1);
        let null = injector.into_inner();
        assert_eq!(null.bytes(), 5);
        assert!(!null.cs_active());
    }
}
