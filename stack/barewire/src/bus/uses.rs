//! What a program uses of its bus, as a type: the linker leaves out the rest.
//!
//! A program whose bus has one user at a time needs no queue; one that never sleeps needs no interrupts. Both would
//! pay for them in flash: the linker keeps what a bus could be asked at run time. A [`Uses`] says it when the program
//! is compiled. The code size of each is in docs/library.md.

use super::platform::{Platform, Spin};

/// What a program uses of its bus. What is false here is not in the program.
///
/// A platform that is known when the program is compiled, for example one that waits by `WFE`:
///
/// ```
/// use barewire::bus::platform::{AtomicU32, Platform, WaitWord};
/// use barewire::bus::{Bus, Uses};
/// use barewire::controller::null::Null;
///
/// struct Wfe;
///
/// impl Platform for Wfe {
///     fn wait(&self, _word: WaitWord<'_>, _expected: u32) {
///         // asm!("wfe")
///     }
///     fn wake(&self, _word: *const AtomicU32) {
///         // asm!("sev")
///     }
/// }
///
/// impl Uses for Wfe {
///     const STATISTICS: bool = false;
///     type Platform = Self;
///
///     fn platform(&self) -> &Self {
///         self
///     }
/// }
///
/// static BUS: Bus<Null, Wfe> = Bus::with_uses(Null::new(), Wfe);
/// ```
///
/// What a type leaves out cannot be asked for. A bus that does not count has no statistics:
///
/// ```compile_fail
/// # use barewire::{bus::Bus, controller::null::Null};
/// let _ = Bus::alone(Null::new()).statistics();
/// ```
///
/// A bus with one user has no queue for a future to wait in:
///
/// ```compile_fail
/// # use barewire::{bus::Bus, controller::null::Null, spi::{Settings, Transfer}};
/// let bus = Bus::alone(Null::new());
/// let device = bus.device(&Settings::new(0, 1_000_000)).unwrap();
/// let _ = device.transact(&mut [Transfer::write(&[1])]);
/// ```
pub trait Uses: Send + Sync {
    /// Whether callers wait for the bus, and messages are submitted. If not, a call that finds the bus taken
    /// returns [`Error::Busy`](crate::spi::Error::Busy); [`Bus::lock`](super::Bus::lock) panics then, and a program that
    /// submits a message, or uses a future, does not compile.
    const QUEUE: bool = true;
    /// Whether the bus may be one of [`Pump::Interrupt`](super::Pump::Interrupt).
    const INTERRUPT: bool = true;
    /// Whether messages are planned by the controller: those with a clock, a word length or a delay of one transfer, and those
    /// on a native line that would pulse. If not, such a message, and a device on such a line, is refused.
    const PLANS: bool = true;
    /// Whether the bus counts messages when told to. If not, a program that asks for
    /// [`Bus::statistics`](super::Bus::statistics) does not compile.
    const STATISTICS: bool = true;
    /// Whether the platform may have [priority inheritance](Platform::inheritance) and tells contexts apart, and the
    /// controller [may use its bus](crate::controller::Controller::may_use_its_bus): for operating systems, by
    /// [`Bus::with_platform`](super::Bus::with_platform) alone.
    const CONTEXTS: bool = false;

    /// How threads wait.
    type Platform: Platform + ?Sized;

    /// The platform: always the same.
    fn platform(&self) -> &Self::Platform;
}

/// Any platform, chosen at run time: everything may be used.
// Not the reference itself: a future with a lifetime in a trait's bound is not `Send`.
#[derive(Clone, Copy)]
pub struct AnyPlatform(pub(super) &'static dyn Platform);

impl Uses for AnyPlatform {
    const CONTEXTS: bool = true;

    type Platform = dyn Platform;

    #[inline(always)]
    fn platform(&self) -> &(dyn Platform + 'static) {
        self.0
    }
}

/// Callers wait by spinning; nothing is counted.
impl Uses for Spin {
    const STATISTICS: bool = false;

    type Platform = Self;

    fn platform(&self) -> &Self {
        self
    }
}

/// The bus has one user at a time: see [`Bus::alone`](super::Bus::alone).
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Alone;

impl Uses for Alone {
    const QUEUE: bool = false;
    const INTERRUPT: bool = false;
    const STATISTICS: bool = false;

    type Platform = Spin;

    fn platform(&self) -> &Spin {
        &Spin
    }
}

/// As [`Alone`], and every message is plain: each transfer has its device's clock, word length and delays.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Plain;

impl Uses for Plain {
    const QUEUE: bool = false;
    const INTERRUPT: bool = false;
    const PLANS: bool = false;
    const STATISTICS: bool = false;

    type Platform = Spin;

    fn platform(&self) -> &Spin {
        &Spin
    }
}
