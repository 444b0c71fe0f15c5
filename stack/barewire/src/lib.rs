//! SPI at the cost of the wire: a transfer costs its clocks and a handful of register accesses,
//! even on a shared bus.
//!
//! The crate is the whole stack, `no_std` and without `alloc`. Its modules form layers,
//! without circular dependencies:
//!
//! * [`chip`]: drivers of chips behind the bus ([`chip::spi_nor`], [`chip::mcp3008`],
//!   [`chip::mcp251xfd`], [`chip::tsc2046`]).
//! * [`bus`]: one controller, its lock and queue, and the paths that run messages.
//!   [`bus::Device::sync`] runs any message. [`bus::Prepared`] is validated and turned into
//!   register values once; each run then costs one atomic to acquire the bus, the register
//!   accesses, and one atomic to release it. [`bus::Queued`] is submitted, and its owner continues.
//! * [`controller`]: drivers of SPI blocks, behind the [`Controller`](controller::Controller) trait
//!   ([`controller::ecspi`] for i.MX 6, 7 and 8, [`controller::bcm2835`] for the Raspberry Pi,
//!   [`controller::pl022`] for ARM's PrimeCell, [`controller::atmel`] for SAM and SAMA5,
//!   [`controller::dw_ssi`] for the Raspberry Pi 5 and other DesignWare blocks).
//! * [`hal`]: `embedded-hal` in both directions. Its drivers run on this crate's devices and buses,
//!   and this crate's chip drivers run on its devices. Timers and pins implement its traits.
//! * [`middleware`]: controllers that wrap any controller; [`trace`]: the events that they report.
//! * [`reg`]: registers in memory, in a test's script, or behind any other [`reg::Registers`].
//! * [`regmap`]: a chip's registers by name, over SPI.
//! * [`spi`]: the data types of SPI: mode, settings, transfer, error.
//! * [`time`]: ticks, and delays that are never shorter than asked.
//!
//! ```
//! use barewire::bus::Bus;
//! use barewire::controller::null::Null;
//! use barewire::spi::{Settings, Transfer};
//!
//! let bus = Bus::new(Null::new());
//! let device = bus.device(&Settings::new(0, 20_000_000))?;
//!
//! // Any message, the caller waits.
//! let mut id = [0; 3];
//! device.sync(&mut [Transfer::write(&[0x9f]), Transfer::read(&mut id)])?;
//!
//! // A register access known in advance: validated here, once.
//! let mut status = device.prepare([0x05, 0x00])?;
//! let [_, _busy] = *status.run()?;
//! # Ok::<(), barewire::spi::Error>(())
//! ```
//!
//! # Features
//! None is on by default.
//!
//! * `portable-atomic`: atomics of the crate [portable-atomic] in place of the processor's. For
//!   processors without compare-and-swap: Cortex-M0 (thumbv6m: RP2040), riscv32imc. The program
//!   chooses that crate's backend: its feature `critical-section` (needed where two cores share
//!   memory, as on the RP2040), or `--cfg portable_atomic_unsafe_assume_single_core`.
//!
//! * `defmt`: `defmt::Format` on errors, settings and all other plain data.
//! * `embassy`: `SetConfig` of the crate embassy-embedded-hal on [`hal::HalDevice`], for other settings
//!   between two messages.
//! * `embedded-storage-async`: `chip::spi_nor::AsyncStorage`, NOR flash by that crate's traits.
//! * `words16`: `hal::HalDevice16`, an `embedded-hal` `SpiDevice<u16>`, blocking and async.
//!
//! [portable-atomic]: https://docs.rs/portable-atomic/latest/portable_atomic/
//!
//! # Not supported
//! Least significant bit first, which only [`controller::sifive`] supports; dual and quad SPI, target mode.
#![no_std]

// Only this error: the modules below would add one for each use of a missing atomic.
#[cfg(not(any(target_has_atomic = "ptr", feature = "portable-atomic")))]
compile_error!(
    "this processor has no compare-and-swap, which the bus is made of: turn on barewire's feature \
     `portable-atomic`, and choose a backend for that crate where the program is linked (its feature \
     `critical-section`, or `--cfg portable_atomic_unsafe_assume_single_core` for one core)"
);

// All targets where panics unwind have `std`, and `bus::panics` needs its `catch_unwind`.
#[cfg(any(panic = "unwind", test, loom, shuttle))]
extern crate std;

#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod bus;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod chip;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod controller;
#[cfg(test)]
mod formats;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod hal;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod middleware;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod reg;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod regmap;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod spi;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod time;
#[cfg(any(target_has_atomic = "ptr", feature = "portable-atomic"))]
pub mod trace;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
