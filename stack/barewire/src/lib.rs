//! SPI at the cost of the wire: a transfer costs its clocks and a handful of register accesses,
//! whoever else shares the bus.
//!
//! The crate is the whole stack, `no_std` and without `alloc`. Its folders are its headings, and
//! each only looks down:
//!
//! * [`chip`]: drivers of chips behind the bus ([`chip::spi_nor`], [`chip::mcp3008`],
//!   [`chip::mcp251xfd`], [`chip::tsc2046`]).
//! * [`bus`]: one controller, its lock and queue, and the paths through them.
//!   [`bus::Device::sync`] takes any message; [`bus::Prepared`] is validated and turned into
//!   register values once, and then costs one atomic in, the register accesses, one atomic out;
//!   [`bus::Queued`] is submitted, and its owner goes on.
//! * [`controller`]: the silicon, behind the [`Controller`](controller::Controller) trait
//!   ([`controller::ecspi`] for i.MX 6, 7 and 8, [`controller::bcm2835`] for the Raspberry Pi,
//!   [`controller::pl022`] for ARM's PrimeCell, [`controller::atmel`] for SAM and SAMA5,
//!   [`controller::dw_ssi`] for the Raspberry Pi 5 and other DesignWare blocks).
//! * [`hal`]: `embedded-hal` both ways: its drivers on our devices and buses, our chip drivers on
//!   its devices; our timers and pins as its own.
//! * [`middleware`]: controllers that wrap any controller; [`trace`]: the events they tell.
//! * [`reg`]: registers in memory, as a script, or wherever a [`reg::Registers`] leads.
//! * [`regmap`]: a chip's registers by name, over SPI.
//! * [`spi`]: the nouns of the wire: mode, settings, transfer, error.
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
//! * `words16`: `hal::HalDevice16`, an `embedded-hal` `SpiDevice<u16>`, blocking and async.
//!
//! [portable-atomic]: https://docs.rs/portable-atomic/latest/portable_atomic/
//!
//! # Not supported
//! Least significant bit first (no block here has it), dual and quad wires, a controller as
//! target.
#![no_std]

// Alone: the modules below would add an error for each use of what is not there.
#[cfg(not(any(target_has_atomic = "ptr", feature = "portable-atomic")))]
compile_error!(
    "this processor has no compare-and-swap, which the bus is made of: turn on barewire's feature \
     `portable-atomic`, and choose a backend for that crate where the program is linked (its feature \
     `critical-section`, or `--cfg portable_atomic_unsafe_assume_single_core` for one core)"
);

// Where panics unwind there is a `std`, and `bus::panics` needs its `catch_unwind`.
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
