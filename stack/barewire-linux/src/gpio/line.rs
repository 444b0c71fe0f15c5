//! Names of GPIO lines: a chip, and a number on it.

use std::fmt;

/// A GPIO chip, identified by what does not change from boot to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpioChip {
    /// The chip whose registers are at this address.
    At(u64),
    /// The chip with this label.
    Labelled(String),
}

impl fmt::Display for GpioChip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => write!(f, "{address:#x}"),
            Self::Labelled(label) => f.write_str(label),
        }
    }
}

/// A line of a chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioLine {
    /// The chip.
    pub chip: GpioChip,
    /// The number of the line, from 0.
    pub offset: u32,
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gpio@{}:{}", self.chip, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_as_it_is_read() {
        let line = GpioLine { chip: GpioChip::At(0x3024_0000), offset: 9 };
        assert_eq!(line.to_string(), "gpio@0x30240000:9");
        let line = GpioLine { chip: GpioChip::Labelled("pinctrl-bcm2711".into()), offset: 25 };
        assert_eq!(line.to_string(), "gpio@pinctrl-bcm2711:25");
    }
}
