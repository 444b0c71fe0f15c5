//! GPIO lines through the kernel: chip selects, a chip's INT line, and lines that are only held.
//!
//! Tested: on a replacement of the kernel ([`Kernel`] is a trait) that writes cached values as
//! `gpio-mxc` does; on the kernel's own `gpio-sim`, if the test machine has it; by hand, on
//! `gpio-mxc` of Linux 6.1 in an emulated i.MX 8M Plus (end of this crate's README). Not tested: a
//! real GPIO block.
//!
//! Read first: the kernel's `Documentation/userspace-api/gpio/chardev.rst` (character device, version 2,
//! Linux 5.10 and later).
//!
//! # Which kind of chip select to choose
//! | chip select | cost of an edge | beside the kernel's GPIO driver |
//! |---|---|---|
//! | the controller's native line, `native0` | nothing (the block drives it), or one register write | safe: no GPIO is touched |
//! | a line through the kernel, `gpio@0x30240000:9` | one system call | safe |
//! | a bank's registers, `gpio@0x30240000.9` | one register write | safe: an unsafe use is refused when the bus is opened |
//! | a bank's registers with `unsafe-shared` | on i.MX a read and a write, else one write | on i.MX wrong as soon as the kernel writes the bank |
//!
//! The time of that system call on a board has not been measured. On the emulated board it takes
//! 1,500 instructions, of which an empty system call takes 330.
//!
//! # Why registers are not simply shared
//! i.MX's GPIO block has one data register for 32 pins, and Linux's driver writes values to it that
//! it keeps in memory: see [`ImxGpio`](barewire::controller::gpio::ImxGpio). Its next write to any
//! pin of the bank undoes changes that another program made in the registers. So [`hold()`] checks
//! every line of such a bank. If one is in use, the bank is refused. Otherwise it requests all
//! lines "as is" and keeps them while the bus is open, so that no other user in the kernel can get
//! one.
//!
//! The other three blocks set and clear pins without touching their neighbours. There, only the
//! chip selects are requested. Requesting more would do harm: on a Raspberry Pi, releasing a line
//! makes its pin an input (`bcm2835_pmx_gpio_disable_free`); on Atmel's PIO, requesting a line
//! takes its pin from its peripheral (`at91_gpio_request_enable`), even from SPI.
//!
//! In each case the kernel makes the chip select an output, under its own lock. So barewire writes
//! no function or direction register that it would share with other pins.
//!
//! # Ordering
//! 1. When the bus is opened, the line is requested "as is": neither level nor direction changes.
//!    (On Atmel's PIO the kernel gives the pin to the PIO controller at this point.)
//! 2. When the controller is started, the kernel makes the line an output at its inactive level.
//! 3. When the bus is closed, the line is released. On a Raspberry Pi the pin then becomes an
//!    input, unless the kernel has `pinctrl_bcm2835.persist_gpio_outputs=y`: the chip select needs
//!    a pull-up.
//!
//! # Not supported
//! Version 1 of the interface; lines by name; chips by number, which changes with the order in
//! which the kernel finds them; one line for several processes, which the kernel does not allow.

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
pub use kernel::{CharacterDevices, ChipInfo, Edge, Kernel, KernelChip, LineInfo, Lines, Sense};
pub use line::{GpioChip, GpioLine};
pub use pins::{CsFault, KernelPins};

pub(crate) use chip::{OpenChip, names_at, open_at, open_chip};
pub(crate) use hold::{refuse_used, request};

/// The consumer name that the kernel shows for a held line.
pub(crate) const CONSUMER: &str = "barewire";
