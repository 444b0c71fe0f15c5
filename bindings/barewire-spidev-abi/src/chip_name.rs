//! The names of GPIO chips' nodes.

/// A chip's node, `/dev/gpiochipN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChipName(
    /// Its number, `N`.
    pub u16,
);

impl ChipName {
    /// Reads `/dev/gpiochipN`; `None` if `path` is another.
    #[must_use]
    pub fn parse(path: &str) -> Option<Self> {
        let number = path.strip_prefix("/dev/gpiochip")?;
        // Only the number as the kernel writes it: no sign, no leading zero.
        let plain = number == "0" || number.starts_with(|c| ('1'..='9').contains(&c));
        plain.then(|| number.parse().ok().map(Self))?
    }

    /// The kernel's name of the chip.
    #[must_use]
    pub fn name(self) -> String {
        format!("gpiochip{}", self.0)
    }

    /// The node's path.
    #[must_use]
    pub fn path(self) -> String {
        format!("/dev/gpiochip{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_have_the_kernels_names() {
        for (path, expected) in [
            ("/dev/gpiochip0", Some(0)),
            ("/dev/gpiochip65535", Some(65_535)),
            ("/dev/gpiochip65536", None),
            ("/dev/gpiochip00", None),
            ("/dev/gpiochip+1", None),
            ("/dev/gpiochip", None),
            ("/dev/gpiochip0 ", None),
            ("/dev/gpiomem", None),
            ("gpiochip0", None),
        ] {
            let chip = ChipName::parse(path);
            assert_eq!(chip, expected.map(ChipName), "{path}");
            assert!(chip.is_none_or(|chip| chip.path() == path));
        }
    }
}
