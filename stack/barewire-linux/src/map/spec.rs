//! The specification of a mapped controller: its block, the way to it, its clock, its lines.

use std::fmt;
use std::path::PathBuf;

use barewire::controller::atmel::Pipe;
use barewire::controller::{ALWAYS_POLL, CsLine};

use super::block::Block;
use super::facts::Board;
use crate::gpio::{GpioChip, GpioLine};

/// The way to the registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// A UIO device whose first map is the controller.
    Uio {
        /// Its node, as `uio0` or `/dev/uio0`.
        device: String,
    },
    /// The kernel module's driver `barewire-user`, which says what the controller is: [`MapSpec::block`],
    /// [`MapSpec::reference_hz`], and the chip selects if there are none.
    Door {
        /// Its node, as `barewire0`.
        device: String,
    },
    /// `/dev/mem`.
    DevMem {
        /// The address of the controller's registers.
        address: u64,
    },
}

/// A chip select: where its line is, and its active level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsPin {
    /// The location of its line.
    pub at: CsLineAt,
    /// Whether it is active high; most chips are active low.
    pub active_high: bool,
}

impl From<CsLineAt> for CsPin {
    /// An active-low chip select at `at`.
    fn from(at: CsLineAt) -> Self {
        Self { at, active_high: false }
    }
}

/// The location of a chip select's line. [`gpio`](crate::gpio) says which kind to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsLineAt {
    /// A native line of the controller.
    Native {
        /// Its number, from 0; the block determines how many there are.
        channel: u8,
    },
    /// A pin of a GPIO bank, driven through the bank's registers.
    Gpio {
        /// The address of the bank's registers.
        address: u64,
        /// The pin, 0 to 31, or 0 to 7 of a PL061.
        bit: u8,
    },
    /// A GPIO line driven through the kernel, of any GPIO chip.
    Kernel(GpioLine),
    /// A chip select of the device tree, by its number: a native line, or a GPIO that the kernel module drives. For
    /// [`Via::Door`] only.
    Door {
        /// The number, from 0.
        line: u8,
    },
}

/// The location of the lock between the processes that use a controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LockAt {
    /// `/run/lock/barewire-ADDRESS.lock`, with the address of the controller's registers in
    /// hexadecimal: one lock for UIO and `/dev/mem`.
    #[default]
    Default,
    /// A file. All processes must name the same one.
    File(PathBuf),
}

/// The facts needed to bring a controller up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// The kind of controller.
    pub block: Block,
    /// The way to its registers.
    pub via: Via,
    /// Its reference clock, in hertz, above zero: ECSPI_CLK_ROOT, the Raspberry Pi's core clock,
    /// SSPCLK, Atmel's peripheral clock. It is checked if the kernel reports the rate: if it is
    /// half the real rate, every bus clock is twice as fast as asked for.
    pub reference_hz: u32,
    /// Its chip selects; a device names one by its index.
    pub chip_selects: [Option<CsPin>; 4],
    /// How many words are in flight in a block without a FIFO, such as [`Block::Atmel`]. `None`
    /// means [`Pipe::WaitDataRead`]. A block with a FIFO refuses this.
    pub pipe: Option<Pipe>,
    /// Continue even if the clock is off, its state unknown, or its rate different.
    pub ignore_clock: bool,
    /// Transfers that take longer than this on the wire, in microseconds, wait for the UIO device's
    /// interrupt; with `None` all are polled.
    pub poll_limit_us: Option<u32>,
    /// The lock between processes. Each message holds it, unless the bus is `exclusive`.
    pub lock: LockAt,
    /// Hold the lock exclusively while the bus is open: no other process can open the bus, and no message
    /// needs the lock.
    pub exclusive: bool,
    /// Write GPIO banks' registers even if others use the bank. The user asserts that no other
    /// program changes pins of the bank while the bus is open. See [`gpio`](crate::gpio).
    pub unsafe_shared: bool,
    /// Device-tree nodes whose registers are used although the tree does not say that they are the controller's, or a GPIO bank's;
    /// [`MapSpec::NO_NODE`] for an address that it gives to no node. Names as [`MapSpec::node_name`] writes them.
    pub nodes: Vec<String>,
}

/// Why a [`MapSpec`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// It names no chip select.
    NoChipSelect,
    /// The controller has no such native line.
    Channel {
        /// The line asked for.
        channel: u8,
        /// The last one.
        last: u8,
    },
    /// A GPIO bank has no such pin.
    Pin {
        /// The pin asked for.
        bit: u8,
        /// The last one.
        last: u8,
    },
    /// The controller's native line falls for every chip's messages, and another chip is on the
    /// bus.
    NativeAlone {
        /// The controller.
        block: Block,
    },
    /// Two chip selects are on one line.
    SameLine {
        /// The first of the two, from 0.
        first: usize,
        /// The other.
        second: usize,
    },
    /// The device tree has no such chip select.
    NoSuchSelect {
        /// The number asked for.
        line: u8,
    },
    /// A chip select by its number in the device tree is for `/dev/barewireN`.
    NotByNumber,
    /// Registers of GPIO banks should be shared, but drive no chip select.
    NoBankToShare,
    /// The reference clock is 0 Hz.
    ReferenceHzZero,
    /// The number of words in flight was given for a controller with a FIFO.
    Pipe {
        /// The controller.
        block: Block,
    },
    /// Polling is limited, but there is no interrupt for longer transfers.
    NoInterrupt,
    /// The limit to polling is too long.
    PollLimit {
        /// The limit asked for, in microseconds.
        us: u32,
    },
}

/// The numbers up to `last`, as text.
struct UpTo(u8);

impl fmt::Display for UpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("its only one is 0"),
            last => write!(f, "they are 0 to {last}"),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoChipSelect => {
                f.write_str("there is no chip select: name one, native0 or gpio@0xBANK:PIN")
            }
            Self::Channel { channel, last } => {
                write!(f, "the controller has no line {channel} of its own: {}", UpTo(*last))
            }
            Self::Pin { bit, last } => {
                write!(f, "a GPIO bank has no pin {bit}: {}", UpTo(*last))
            }
            Self::NativeAlone { block } => write!(
                f,
                "the native line of {block} falls whichever chip is addressed: native0 must be the only chip select, or not be used"
            ),
            Self::SameLine { first, second } => {
                write!(f, "chip selects {first} and {second} are the same line: name each line once")
            }
            Self::NoSuchSelect { line } => write!(
                f,
                "the controller's device-tree node has no chip select {line}: neither a GPIO in cs-gpios nor a chip there; leave cs out for those that it has"
            ),
            Self::NotByNumber => f.write_str(
                "line0 is a chip select of the device tree, which the kernel module drives: it is for barewire:N; write native0 or gpio@0xBANK:PIN",
            ),
            Self::NoBankToShare => f.write_str(
                "unsafe-shared is for chip selects by a bank's registers (gpio@0xBANK.PIN), and there is none: leave it out",
            ),
            Self::ReferenceHzZero => f.write_str(
                "the reference clock is 0 Hz: give the clock of the block (`clk_summary` in /sys/kernel/debug/clk)",
            ),
            Self::Pipe { block } => {
                let with = Block::ALL.into_iter().filter(|other| other.facts().has_pipe);
                let names: Vec<&str> = with.map(Block::name).collect();
                write!(
                    f,
                    "{block} has a FIFO and loses no words: leave pipe out, which is for {} only",
                    names.join(", ")
                )
            }
            Self::NoInterrupt => f.write_str(
                "there is a limit to polling, but /dev/mem has no interrupt to wait for beyond it: leave poll-limit-us out, or map the controller through UIO",
            ),
            Self::PollLimit { us } => write!(
                f,
                "a limit to polling of {us} µs is too long: at most {} µs, or leave it out to poll always",
                MapSpec::POLL_LIMIT_US_MAX
            ),
        }
    }
}

impl std::error::Error for SpecError {}

impl MapSpec {
    /// The largest [`MapSpec::poll_limit_us`]: a longer one exceeds 32 bits in nanoseconds.
    pub const POLL_LIMIT_US_MAX: u32 = (ALWAYS_POLL - 1) / 1_000;

    /// In [`MapSpec::nodes`]: an address that the device tree gives to no node.
    pub const NO_NODE: &str = "none";

    /// The name of the device-tree node at `path`, as [`MapSpec::nodes`] has it: the last part of its path, with `_` for `,` and `+`, which separate
    /// in a bus's text.
    #[must_use]
    pub fn node_name(path: &str) -> String {
        path.rsplit('/').next().unwrap_or_default().replace([',', '+'], "_")
    }

    /// A specification without options: polled, shared with other processes, and refused if the clock is not known to
    /// run.
    #[must_use]
    pub fn new(
        block: Block,
        via: Via,
        reference_hz: u32,
        chip_selects: [Option<CsPin>; 4],
    ) -> Self {
        Self {
            block,
            via,
            reference_hz,
            chip_selects,
            pipe: None,
            ignore_clock: false,
            poll_limit_us: None,
            lock: LockAt::Default,
            exclusive: false,
            unsafe_shared: false,
            nodes: Vec::new(),
        }
    }

    /// Checks the specification by itself.
    ///
    /// # Errors
    /// Every variant of [`SpecError`].
    pub fn check(&self) -> Result<(), SpecError> {
        if let Some(us) = self.poll_limit_us.filter(|&us| us > Self::POLL_LIMIT_US_MAX) {
            return Err(SpecError::PollLimit { us });
        }
        if self.is_incomplete() {
            return self.check_same();
        }
        if self.reference_hz == 0 {
            return Err(SpecError::ReferenceHzZero);
        }
        if self.pipe.is_some() && !self.block.facts().has_pipe {
            return Err(SpecError::Pipe { block: self.block });
        }
        if self.poll_limit_us.is_some() && matches!(self.via, Via::DevMem { .. }) {
            return Err(SpecError::NoInterrupt);
        }
        self.check_lines()
    }

    /// Whether the kernel is still to be asked what the controller is.
    fn is_incomplete(&self) -> bool {
        matches!(self.via, Via::Door { .. }) && self.reference_hz == 0
    }

    fn check_lines(&self) -> Result<(), SpecError> {
        let facts = self.block.facts();
        let mut native = false;
        for pin in self.lines() {
            match pin.at {
                CsLineAt::Native { channel } if channel >= facts.native_lines => {
                    return Err(SpecError::Channel { channel, last: facts.native_lines - 1 });
                }
                CsLineAt::Native { .. } => native = true,
                CsLineAt::Gpio { bit, .. } if bit >= facts.bank_pins => {
                    return Err(SpecError::Pin { bit, last: facts.bank_pins - 1 });
                }
                CsLineAt::Door { .. } if !matches!(self.via, Via::Door { .. }) => {
                    return Err(SpecError::NotByNumber);
                }
                CsLineAt::Gpio { .. } | CsLineAt::Kernel(_) | CsLineAt::Door { .. } => {}
            }
        }
        self.check_same()?;
        if self.unsafe_shared && self.banks().next().is_none() {
            return Err(SpecError::NoBankToShare);
        }
        match self.lines().count() {
            0 => Err(SpecError::NoChipSelect),
            2.. if native && facts.native_exclusive => {
                Err(SpecError::NativeAlone { block: self.block })
            }
            _ => Ok(()),
        }
    }

    fn check_same(&self) -> Result<(), SpecError> {
        for (second, pin) in self.chip_selects.iter().enumerate() {
            let Some(pin) = pin else { continue };
            let same = |other: &Option<CsPin>| other.as_ref().is_some_and(|o| o.at == pin.at);
            if let Some(first) = self.chip_selects[..second].iter().position(same) {
                return Err(SpecError::SameLine { first, second });
            }
        }
        Ok(())
    }

    fn lines(&self) -> impl Iterator<Item = &CsPin> {
        self.chip_selects.iter().flatten()
    }

    /// The addresses of the GPIO banks whose registers drive chip selects, without repetition.
    pub(super) fn banks(&self) -> impl Iterator<Item = u64> {
        let bank = |pin: &Option<CsPin>| match pin.as_ref()?.at {
            CsLineAt::Gpio { address, .. } => Some(address),
            _ => None,
        };
        let all = self.chip_selects.iter().enumerate();
        all.filter_map(move |(index, pin)| {
            let address = bank(pin)?;
            let before = self.chip_selects[..index].iter().filter_map(bank);
            before.into_iter().all(|other| other != address).then_some(address)
        })
    }

    /// The same chip selects, those by a bank's registers through the kernel.
    pub(super) fn with_lines_of_the_kernel(&self) -> Self {
        let mut spec = Self { unsafe_shared: false, ..self.clone() };
        for pin in spec.chip_selects.iter_mut().flatten() {
            if let CsLineAt::Gpio { address, bit } = pin.at {
                let chip = GpioChip::At(address);
                pin.at = CsLineAt::Kernel(GpioLine { chip, offset: bit.into() });
            }
        }
        spec
    }

    /// Replaces the bank address `from` by `to`.
    pub(super) fn move_bank(&mut self, from: u64, to: u64) {
        for pin in self.chip_selects.iter_mut().flatten() {
            if let CsLineAt::Gpio { address, .. } = &mut pin.at {
                if *address == from {
                    *address = to;
                }
            }
        }
    }

    /// The pins of the bank at `address` that are chip selects, and whether each is active high.
    pub(super) fn bits_of(&self, address: u64) -> Vec<(u8, bool)> {
        let bits = self.lines().filter_map(|pin| match pin.at {
            CsLineAt::Gpio { address: at, bit } if at == address => Some((bit, pin.active_high)),
            _ => None,
        });
        bits.collect()
    }

    /// The same with a node that may be used.
    pub(super) fn with_node(&self, name: String) -> Self {
        let mut spec = self.clone();
        spec.nodes.push(name);
        spec
    }

    /// The chip selects driven through the kernel.
    pub(super) fn kernel_lines(&self) -> impl Iterator<Item = &GpioLine> {
        self.lines().filter_map(|pin| match &pin.at {
            CsLineAt::Kernel(line) => Some(line),
            _ => None,
        })
    }

    pub(super) fn board(&self) -> Board {
        let mut chip_selects = [CsLine::Absent; 4];
        for (index, (line, pin)) in (0..).zip(chip_selects.iter_mut().zip(&self.chip_selects)) {
            let Some(CsPin { at, active_high }) = pin else { continue };
            let active_high = *active_high;
            *line = match *at {
                CsLineAt::Native { channel } => CsLine::Native { channel, active_high },
                // The pins of `CsGpio` are numbered by chip select.
                _ => CsLine::Gpio { bit: index, active_high },
            };
        }
        Board {
            reference_hz: self.reference_hz,
            chip_selects,
            poll_limit_ns: self.poll_limit_us.map_or(ALWAYS_POLL, |us| us * 1_000),
            pipe: self.pipe.unwrap_or(Pipe::WaitDataRead),
            d0_sends: false,
        }
    }
}

/// The bus's text without its options: `uio:uio0`, `barewire:0`, `mem:0x30820000`.
impl fmt::Display for MapSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Via::Uio { device } => write!(f, "uio:{device}"),
            Via::Door { device } => {
                write!(f, "barewire:{}", device.strip_prefix("barewire").unwrap_or(device))
            }
            Via::DevMem { address } => write!(f, "mem:{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(block: Block, chip_selects: [Option<CsPin>; 4]) -> MapSpec {
        MapSpec::new(block, Via::DevMem { address: 0x3082_0000 }, 80_000_000, chip_selects)
    }

    fn gpio(address: u64, bit: u8) -> Option<CsPin> {
        Some(CsLineAt::Gpio { address, bit }.into())
    }

    fn native(channel: u8) -> Option<CsPin> {
        Some(CsLineAt::Native { channel }.into())
    }

    #[test]
    fn a_specification_is_checked_to_its_first_and_last_line() {
        let check = |lines| spec(Block::Ecspi, lines).check();
        assert_eq!(check([native(0), native(3), gpio(0, 0), gpio(0, 31)]), Ok(()));
        assert_eq!(check([None, None, None, native(2)]), Ok(()), "gaps are lines left out");
        assert_eq!(check([const { None }; 4]), Err(SpecError::NoChipSelect));
        assert_eq!(check([gpio(0x10, 1), native(0), gpio(0x20, 1), None]), Ok(()), "two banks");
        let same = Err(SpecError::SameLine { first: 0, second: 2 });
        assert_eq!(check([gpio(0x10, 1), native(0), gpio(0x10, 1), None]), same);
        assert_eq!(check([native(1), None, native(1), None]), same);
        let stopped =
            MapSpec { reference_hz: 0, ..spec(Block::Ecspi, [native(0), None, None, None]) };
        assert_eq!(stopped.check(), Err(SpecError::ReferenceHzZero));
    }

    #[test]
    fn each_block_has_its_lines_and_its_bank_its_pins() {
        for (block, last_line, last_pin) in [
            (Block::Ecspi, 3, 31),
            (Block::Bcm2835, 1, 31),
            (Block::Pl022, 0, 7),
            (Block::Atmel, 3, 31),
            (Block::DwSsi, 1, 27),
            (Block::SiFive, 0, 15),
            (Block::Mcspi, 3, 31),
            (Block::Cadence, 2, 31),
        ] {
            let check = |line: Option<CsPin>| spec(block, [line, None, None, None]).check();
            assert_eq!(check(native(0)), Ok(()), "{block}");
            assert_eq!(check(native(last_line)), Ok(()), "{block}");
            let channel = last_line + 1;
            let error = SpecError::Channel { channel, last: last_line };
            assert_eq!(check(native(channel)), Err(error), "{block}");
            assert_eq!(check(gpio(0, 0)), Ok(()), "{block}");
            assert_eq!(check(gpio(0, last_pin)), Ok(()), "{block}");
            let bit = last_pin + 1;
            assert_eq!(check(gpio(0, bit)), Err(SpecError::Pin { bit, last: last_pin }), "{block}");
        }
        let error = SpecError::Channel { channel: 1, last: 0 }.to_string();
        assert!(error.ends_with("no line 1 of its own: its only one is 0"), "{error}");
    }

    #[test]
    fn a_line_that_falls_for_every_chip_is_the_only_one() {
        let block = Block::Pl022;
        let alone = Err(SpecError::NativeAlone { block });
        assert_eq!(spec(block, [native(0), gpio(0, 1), None, None]).check(), alone);
        assert_eq!(spec(block, [gpio(0, 1), None, None, native(0)]).check(), alone);
        assert_eq!(spec(block, [gpio(0, 1), gpio(0, 2), None, None]).check(), Ok(()));
        assert_eq!(spec(Block::Bcm2835, [native(0), gpio(0, 1), None, None]).check(), Ok(()));
    }

    #[test]
    fn only_a_block_without_fifo_has_a_pipe() {
        for block in Block::ALL {
            let spec =
                MapSpec { pipe: Some(Pipe::OneWord), ..spec(block, [native(0), None, None, None]) };
            if block == Block::Atmel {
                assert_eq!(spec.check(), Ok(()));
                assert_eq!(spec.board().pipe, Pipe::OneWord);
            } else {
                assert_eq!(spec.check(), Err(SpecError::Pipe { block }));
            }
        }
        let usual = spec(Block::Atmel, [native(0), None, None, None]);
        assert_eq!(usual.board().pipe, Pipe::WaitDataRead);
    }

    #[test]
    fn a_limit_to_polling_needs_an_interrupt_and_has_an_end() {
        let memory = spec(Block::Ecspi, [native(0), None, None, None]);
        let limited = |us| MapSpec { poll_limit_us: Some(us), ..memory.clone() };
        assert_eq!(limited(10).check(), Err(SpecError::NoInterrupt));
        let through_uio = |us| MapSpec { via: Via::Uio { device: "uio0".into() }, ..limited(us) };
        assert_eq!(through_uio(0).check(), Ok(()));
        assert_eq!(through_uio(0).board().poll_limit_ns, 0);
        assert_eq!(memory.board().poll_limit_ns, ALWAYS_POLL);
        let max = MapSpec::POLL_LIMIT_US_MAX;
        assert_eq!(through_uio(max).check(), Ok(()));
        assert_eq!(through_uio(max).board().poll_limit_ns, max * 1_000);
        let us = max + 1;
        assert_eq!(through_uio(us).check(), Err(SpecError::PollLimit { us }));
    }

    fn kernel(offset: u32) -> Option<CsPin> {
        let chip = crate::gpio::GpioChip::At(0x3024_0000);
        Some(CsLineAt::Kernel(GpioLine { chip, offset }).into())
    }

    #[test]
    fn lines_keep_their_places() {
        let high =
            Some(CsPin { at: CsLineAt::Gpio { address: 0x3024_0000, bit: 9 }, active_high: true });
        let spec = spec(Block::Ecspi, [None, native(2), high, kernel(40)]);
        assert_eq!(spec.check(), Ok(()));
        let lines = [
            CsLine::Absent,
            CsLine::Native { channel: 2, active_high: false },
            CsLine::Gpio { bit: 2, active_high: true },
            CsLine::Gpio { bit: 3, active_high: false },
        ];
        assert_eq!(spec.board().chip_selects, lines);
        assert_eq!(spec.banks().collect::<Vec<_>>(), [0x3024_0000]);
        assert_eq!(spec.bits_of(0x3024_0000), [(9, true)]);
        assert_eq!(spec.kernel_lines().count(), 1);
    }

    #[test]
    fn a_bank_is_named_once_however_many_selects_it_has() {
        let spec = spec(Block::Ecspi, [gpio(1, 3), gpio(2, 3), gpio(1, 4), None]);
        assert_eq!(spec.banks().collect::<Vec<_>>(), [1, 2]);
        assert_eq!(spec.bits_of(1), [(3, false), (4, false)]);
    }

    #[test]
    fn only_registers_of_a_bank_are_shared_unsafely() {
        for (line, expected) in [
            (native(0), Err(SpecError::NoBankToShare)),
            (kernel(1), Err(SpecError::NoBankToShare)),
            (gpio(1, 1), Ok(())),
        ] {
            let lines = [line, None, None, None];
            let spec = MapSpec { unsafe_shared: true, ..spec(Block::Ecspi, lines) };
            assert_eq!(spec.check(), expected, "{:?}", spec.chip_selects[0]);
        }
    }
}
