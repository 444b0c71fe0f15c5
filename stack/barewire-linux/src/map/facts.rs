//! The interface of a block's own module. It gives its [`Facts`], and gets the [`Parts`] and the
//! [`Board`] from which its driver is made.

use barewire::controller::CsLine;
use barewire::controller::atmel::Pipe;

use super::MappedInterrupt;
use super::cs::Selects;
use super::harmless::Harmless;
use crate::sys::MappedRegisters;

/// The facts of a block that hold on every board.
pub(super) struct Facts {
    /// Its name in a bus's text.
    pub(super) name: &'static str,
    /// The machines that have it, as text for a list.
    pub(super) machines: &'static str,
    /// Bytes of its registers.
    pub(super) registers_len: u32,
    /// Bytes of a GPIO bank's registers.
    pub(super) bank_len: u32,
    /// A register that can be read at any time without an effect: its name and offset.
    pub(super) first_read: (&'static str, u32),
    /// Such a register of a GPIO bank.
    pub(super) bank_first_read: (&'static str, u32),
    /// Accesses of the controller that have no effect, to time them.
    pub(super) harmless: Harmless,
    /// The same of a GPIO bank.
    pub(super) bank_harmless: Harmless,
    /// Linux's driver.
    pub(super) linux_driver: &'static str,
    /// The chip selects that Linux's driver makes of a device-tree node.
    pub(super) linux_selects: LinuxSelects,
    /// The number of its native lines.
    pub(super) native_lines: u8,
    /// The number of a GPIO bank's pins.
    pub(super) bank_pins: u8,
    /// Whether the bank has one data register for all pins, without set and clear registers, so
    /// that Linux's driver writes all pins at once.
    pub(super) written_whole: bool,
    /// Whether its native line falls for every chip's messages, so that a chip on it must be the
    /// only one.
    pub(super) native_exclusive: bool,
    /// Whether its clock is never gated.
    pub(super) always_clocked: bool,
    /// Whether some versions have no FIFO, so that [`MapSpec::pipe`](super::MapSpec::pipe) is an
    /// option.
    pub(super) has_pipe: bool,
    /// Its clock's name in `/sys/kernel/debug/clk`, if that is equal on all machines.
    pub(super) kernel_clock: Option<&'static str>,
    /// Reads in the GPIO bank whether the pins carry the signals of the controller at the address,
    /// and returns a warning if not. Writes nothing.
    pub(super) pins_warning: Option<fn(u64, &mut MappedRegisters) -> Option<String>>,
    /// Whether a string in a device tree's `compatible` names the block.
    pub(super) is_compatible: fn(&str) -> bool,
    /// Whether one names its family's GPIO bank.
    pub(super) is_bank: fn(&str) -> bool,
}

/// The chip selects that Linux's driver has before `cs-gpios` adds to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinuxSelects {
    /// Their number if there is no `num-cs`. If the driver asks the block, the most that the block
    /// can have.
    pub(crate) default: u8,
    /// Whether the driver reads `num-cs`.
    pub(crate) reads_num_cs: bool,
    /// The most lines of its own that the block can have on any machine.
    pub(crate) native: u8,
}

/// The board's properties, as the core's drivers need them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Board {
    pub(super) reference_hz: u32,
    pub(super) chip_selects: [CsLine; 4],
    pub(super) poll_limit_ns: u32,
    pub(super) pipe: Pipe,
    /// McSPI: MOSI is on SPIDAT\[0\].
    pub(super) d0_sends: bool,
}

/// The parts of a controller.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) registers: MappedRegisters,
    pub(super) selects: Selects,
    pub(super) interrupt: MappedInterrupt,
}
