//! The interface between a board and its controller block, and what a board's row says of the block.
//!
//! A block does nothing between accesses: each access first processes everything that is due by
//! then.

use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

use super::shifter::Shift;
use crate::check::Rule;
use crate::chip::{PS_PER_S, Ps};
use crate::wire::Wire;

/// A controller block, with registers for the driver and pins on a wire.
pub trait ControllerBlock: Debug {
    /// Reads the register at `offset` at time `now`.
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32;

    /// Writes the register at `offset` at time `now`.
    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire);

    /// Processes everything that is due by `now`.
    fn catch_up(&mut self, now: Ps, wire: &mut Wire);

    /// The time of the next event without an access; [`Ps::MAX`] for never.
    fn due(&self) -> Ps;

    /// Whether the block raised its interrupt, as of the last access.
    fn interrupt(&self) -> bool;
}

/// A block's registers. [`ControllerBlock`] is implemented once, for all that have them.
pub(super) trait RegisterBlock: Shift + Debug {
    /// The block as reports name it.
    const NAME: &'static str;

    /// A register that only stores the written value, and the bits that it stores.
    fn stored(&mut self, offset: u32) -> Option<(&mut u32, u32)>;

    /// Reads any other register; `None` if there is none.
    fn get(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> Option<u32>;

    /// Writes any other register; false if there is none.
    fn set(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) -> bool;

    /// Whether the block ignores a write, which it reports.
    fn ignores(&mut self, _offset: u32, _value: u32, _now: Ps, _wire: &mut Wire) -> bool {
        false
    }

    /// A register was written: what the block does without another access begins.
    fn written(&mut self, _now: Ps, _wire: &mut Wire) {}

    /// The level of the interrupt.
    fn interrupts(&self) -> bool;
}

/// Processes what was due before an access, then the access, then what is due at once.
impl<B: RegisterBlock> ControllerBlock for B {
    fn read(&mut self, offset: u32, now: Ps, wire: &mut Wire) -> u32 {
        self.run_to(now, wire);
        if let Some((register, _)) = self.stored(offset) {
            return *register;
        }
        let value = self.get(offset, now, wire).unwrap_or_else(|| {
            let detail = format!("read of offset {offset:#x}, where {} has no register", B::NAME);
            wire.log().report(now, Rule::BadAccess, None, detail);
            0
        });
        self.run_to(now, wire);
        value
    }

    fn write(&mut self, offset: u32, value: u32, now: Ps, wire: &mut Wire) {
        self.run_to(now, wire);
        if self.ignores(offset, value, now, wire) {
            return;
        }
        if let Some((register, kept)) = self.stored(offset) {
            *register = value & kept;
        } else if !self.set(offset, value, now, wire) {
            let detail = format!("write to offset {offset:#x}, where {} has no register", B::NAME);
            wire.log().report(now, Rule::BadAccess, None, detail);
        }
        self.written(now, wire);
        self.run_to(now, wire);
    }

    fn catch_up(&mut self, now: Ps, wire: &mut Wire) {
        self.run_to(now, wire);
    }

    fn due(&self) -> Ps {
        self.next_event()
    }

    fn interrupt(&self) -> bool {
        self.interrupts()
    }
}

/// The bits whose conditions hold: a status or interrupt register of levels.
pub(super) fn levels<const N: usize>(bits: [(u32, bool); N]) -> u32 {
    bits.iter().filter(|(_, holds)| *holds).fold(0, |all, (bit, _)| all | bit)
}

/// A period of SCK, rounded up so that it is never faster than the divisor of a clock of `hz` says.
pub(super) fn sck_period(divisor: u64, hz: u64) -> Ps {
    (divisor * PS_PER_S).div_ceil(hz).max(2)
}

/// A kind of controller block, as data: each model has one, `KIND`, which the rows of boards name.
pub struct ControllerKind {
    /// The vendor's name.
    pub name: &'static str,
    /// The bytes of its register block, as the SoCs' memory maps and Linux's device trees have it.
    pub bytes: u32,
    /// Its registers by offset, with the manual's names.
    pub registers: RegisterNames,
    /// The block at reset, its reference clock in hertz, with what its manual leaves open.
    pub model: fn(u64, &BlockOptions) -> Box<dyn ControllerBlock>,
    /// Exchanges one word by the manual, in front of a chip that is selected by GPIO.
    #[cfg(test)]
    pub(crate) exchange: Exchange,
}

/// Registers' offsets and names.
pub type RegisterNames = &'static [(u32, &'static str)];

/// Exchanges a word of that many bits, most significant first, and returns the answer. Beyond 16 bits a
/// controller without longer words sends words of 16. The function at the end selects the chip.
#[cfg(test)]
pub(crate) type Exchange = fn(&mut dyn ByHand, u32, u32, &mut dyn FnMut()) -> u32;

/// A controller's registers, as a test without a driver has them.
#[cfg(test)]
pub(crate) trait ByHand {
    /// Reads the register at `offset`.
    fn read(&mut self, offset: u32) -> u32;

    /// Writes the register at `offset`.
    fn write(&mut self, offset: u32, value: u32);
}

/// Kinds are the same if their names are.
impl PartialEq for ControllerKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ControllerKind {}

impl Debug for ControllerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Where a manual leaves something open: how the blocks of a board are to behave, at most one value
/// of each type. A block whose type is missing behaves by that type's default; other blocks ignore it.
///
/// ```
/// use barewire_sim::model::BlockOptions;
/// use barewire_sim::model::bcm2835::Done;
///
/// let options = BlockOptions::default().with(Done::Needed);
/// assert_eq!(options.get::<Done>(), Done::Needed);
/// assert_eq!(BlockOptions::default().get::<Done>(), Done::default());
/// ```
#[derive(Clone, Default)]
pub struct BlockOptions(Vec<Arc<dyn Any + Send + Sync>>);

impl BlockOptions {
    /// These options with `option`, in place of an earlier one of its type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, option: T) -> Self {
        self.0.retain(|other| !other.is::<T>());
        self.0.push(Arc::new(option));
        self
    }

    /// The option of type `T`, or its default.
    #[must_use]
    pub fn get<T: Any + Copy + Default>(&self) -> T {
        self.0.iter().find_map(|option| option.downcast_ref::<T>()).copied().unwrap_or_default()
    }
}

impl Debug for BlockOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockOptions").field("count", &self.0.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_of_a_type_counts() {
        let options = BlockOptions::default().with(3_u8).with(5_u16).with(4_u8);
        assert_eq!((options.get::<u8>(), options.get::<u16>(), options.get::<u32>()), (4, 5, 0));
        assert_eq!(format!("{options:?}"), "BlockOptions { count: 2 }");
    }
}
