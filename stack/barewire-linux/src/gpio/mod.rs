//! GPIO lines through the kernel: chip selects, a chip's INT line, and lines that are only held.
//!
//! Tested: on a stand-in for the kernel ([`Kernel`] is a trait) that writes cached values as `gpio-mxc`
//! does; on the kernel's own `gpio-sim` where the machine that runs the tests has it; by hand, on
//! `gpio-mxc` of Linux 6.1 in an emulated i.MX 8M Plus (this crate's README, at its end). Not tested: a
//! real GPIO block.
//!
//! Read first: the kernel's `Documentation/userspace-api/gpio/chardev.rst` (character device, version 2,
//! Linux 5.10 and later).
//!
//! # Which way to choose for a chip select
//! | way | an edge costs | beside the kernel's GPIO driver |
//! |---|---|---|
//! | the controller's own line, `native0` | nothing (the block does it), or one register write | safe: no GPIO is touched |
//! | a line of the kernel's, `gpio@0x30240000:9` | one system call | safe |
//! | a bank's registers, `gpio@0x30240000.9` | one register write | safe: what is unsafe is refused when the bus is opened |
//! | the same with `unsafe-shared` | on i.MX a read and a write, else one write | on i.MX wrong as soon as the kernel writes the bank |
//!
//! How long that system call takes on a board has not been measured. On the emulated board it is 1,500
//! instructions, 330 of which an empty one takes too.
//!
//! # Why registers are not simply shared
//! i.MX's GPIO block has one data register for 32 pins. Linux's driver for it writes values that it keeps
//! in memory: see [`ImxGpio`](barewire::controller::gpio::ImxGpio). Whatever was changed in the registers
//! behind its back is undone by its next write to any pin of the bank. So [`hold()`] looks at every line of
//! such a bank, refuses it if one is in use, and else requests all of them "as is" and keeps them while
//! the bus is open. Nothing in the kernel can use one then.
//!
//! The other three blocks set and clear pins without touching their neighbours. Of them only the chip
//! selects are requested. Requesting more would do harm: releasing a line makes its pin an input on a
//! Raspberry Pi (`bcm2835_pmx_gpio_disable_free`), and requesting it takes it from its peripheral on
//! Atmel's (`at91_gpio_request_enable`), SPI's own pins included.
//!
//! In each case the kernel makes the chip select an output, under its own lock, so that no function or
//! direction register that holds other pins too is written here.
//!
//! # Ordering
//! 1. A line is requested "as is" when the bus is opened: neither level nor direction changes. (On
//!    Atmel's PIO the kernel gives the pin to the PIO controller then.)
//! 2. When the controller is started, the kernel makes it an output at its inactive level.
//! 3. It is released when the bus is closed. On a Raspberry Pi the pin is an input from then on, unless
//!    the kernel was told `pinctrl_bcm2835.persist_gpio_outputs=y`: chips want a pull-up at their select.
//!
//! # Not supported
//! Version 1 of the interface; lines by their names; numbers of chips, which change with the order in
//! which the kernel finds them; one line for several processes, which the kernel does not have.

mod chip;
mod error;
mod hold;
mod interrupt;
mod kernel;
mod line;
mod pins;

pub use error::{GpioError, LineUser};
pub use hold::hold;
pub use interrupt::{InterruptLine, Sensed};
pub use kernel::{CharacterDevices, Chip, ChipInfo, Edge, Kernel, LineInfo, Lines, Sense};
pub use line::{GpioChip, GpioLine};
pub use pins::{CsFault, KernelPins};

pub(crate) use chip::{Opened, open_at, open_chip};
pub(crate) use hold::request;

/// What the kernel tells others who holds a line.
pub(crate) const CONSUMER: &str = "barewire";
