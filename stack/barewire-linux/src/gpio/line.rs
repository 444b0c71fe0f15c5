//! How a line is named: by its chip, and its number there.

use std::fmt;

/// A chip of GPIO lines, by what stays the same from boot to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpioChip {
    /// The one whose registers begin there.
    At(u64),
    /// The one of that label.
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
    /// Which chip.
    pub chip: GpioChip,
    /// Which of its lines, from 0.
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
