//! Properties of a controller's node that the kernel refuses, or that barewire cannot drive.
//!
//! Read first: Linux's `Documentation/devicetree/bindings/spi/spi-controller.yaml` and
//! `spi-peripheral-props.yaml`; what its log says of a refused chip: "cs36 >= max 4", "chipselect 0 already
//! in use", "has no valid 'reg' property", "has no valid 'spi-max-frequency' property".
//!
//! # How it works
//! 1. A node with `spi-slave` is a target: another host drives its bus.
//! 2. A controller has as many chip selects as the larger of the driver's number (`num-cs`, if the driver
//!    reads it) and the number of entries in `cs-gpios`.
//! 3. A chip's `reg` must be below that number, and no other chip's. A chip that the kernel has made a device
//!    of is below it, whatever is known of the driver here.
//! 4. A chip select without a GPIO line must be a line that the block has.
//! 5. Linux before 6.8 reads the first value of `reg` alone; later ones read up to four, and drivers address
//!    the first of them unless they know more. barewire selects one line for a chip, so it refuses several.
//! 6. Linux before 5.7 refuses a chip without `spi-max-frequency` (Chuanhong Guo, "spi: make
//!    spi-max-frequency optional", linux-spi, 28 February 2020, 20200228043636.559915-2-gch981213@gmail.com).

use crate::map::Block;
use crate::node;
use crate::root::Root;

use super::line::SelectAt;

/// Why a controller cannot be offered at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `spi-slave`: another host drives the bus.
    Target,
    /// `cs-gpios` cannot be followed.
    CsGpios {
        /// The first entry that is wrong, from 0.
        entry: usize,
        /// The error of the entry.
        why: BadEntry,
    },
}

/// An error of an entry of `cs-gpios`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadEntry {
    /// No node has its phandle.
    Dangling {
        /// The phandle.
        phandle: u32,
    },
    /// Its node has no `#gpio-cells`.
    NoGpioChip {
        /// The node's name.
        node: String,
    },
    /// Its node is disabled, so its lines never come.
    Disabled {
        /// The node's name.
        node: String,
    },
    /// The property ends in the middle of this entry.
    CutOff,
}

/// Why a chip's node is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no `reg`, or an empty one.
    NoReg,
    /// Its `reg` is no whole number of cells.
    CutOff {
        /// Bytes of `reg`.
        bytes: usize,
    },
    /// Its `reg` has several values.
    Several,
    /// Its `reg` is beyond the controller's chip selects.
    Beyond {
        /// The number of chip selects.
        selects: u32,
    },
    /// Its chip select has no GPIO line, and is beyond the block's own lines.
    NoLine {
        /// The number of the block's own lines.
        native: u32,
    },
    /// Another chip has its chip select.
    Taken {
        /// The other's node.
        by: String,
    },
    /// It has no `spi-max-frequency`, which this kernel asks for.
    NoFrequency,
}

/// A controller's rules for its chips.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    /// The lines of `cs-gpios`.
    lines: &'a [Option<SelectAt>],
    /// The number of chip selects.
    selects: u32,
    /// The number of the block's own lines.
    native: u32,
    /// Whether the kernel asks for `spi-max-frequency`.
    asks_frequency: bool,
}

impl<'a> Rules<'a> {
    pub(super) fn of(
        root: &Root,
        of_node: &str,
        block: Option<Block>,
        lines: &'a [Option<SelectAt>],
        version: (u64, u64),
    ) -> Self {
        let num_cs = node::cells(root, &format!("{of_node}/num-cs")).first().copied();
        // A chip select is a byte in all kernels, which is all that is known of another driver.
        let (own, native) = match block.map(Block::linux_selects) {
            Some(linux) => {
                let num_cs = num_cs.filter(|_| linux.reads_num_cs);
                (num_cs.unwrap_or(linux.default.into()), linux.native.into())
            }
            None => (num_cs.unwrap_or(256), 256),
        };
        let entries = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let asks_frequency = version != (0, 0) && version < (5, 7);
        Self { lines, selects: own.max(entries), native, asks_frequency }
    }

    /// The chip select of the chip at `path`. `taken` are chip selects of others, with their nodes;
    /// `has_device` says whether the kernel has a device with a chip select.
    pub(super) fn check(
        &self,
        root: &Root,
        path: &str,
        taken: &[(u32, String)],
        has_device: impl Fn(u32) -> bool,
    ) -> Result<u8, Refusal> {
        let bytes = root.bytes(format!("{path}/reg")).unwrap_or_default().len();
        let reg = node::cells(root, &format!("{path}/reg"));
        let [first, others @ ..] = reg.as_slice() else {
            return Err(if bytes == 0 { Refusal::NoReg } else { Refusal::CutOff { bytes } });
        };
        if bytes % 4 != 0 {
            return Err(Refusal::CutOff { bytes });
        }
        if !others.is_empty() {
            return Err(Refusal::Several);
        }
        if let Some((_, by)) = taken.iter().find(|(number, _)| number == first) {
            return Err(Refusal::Taken { by: by.clone() });
        }
        let beyond = Refusal::Beyond { selects: self.selects };
        let chip_select = u8::try_from(*first).map_err(|_| beyond.clone())?;
        let made = has_device(*first);
        if *first >= self.selects && !made {
            return Err(beyond);
        }
        let gpio = matches!(self.lines.get(usize::from(chip_select)), Some(Some(_)));
        if !gpio && *first >= self.native {
            return Err(Refusal::NoLine { native: self.native });
        }
        let has_frequency = !node::cells(root, &format!("{path}/spi-max-frequency")).is_empty();
        if self.asks_frequency && !has_frequency && !made {
            return Err(Refusal::NoFrequency);
        }
        Ok(chip_select)
    }
}
