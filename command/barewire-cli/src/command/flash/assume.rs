//! Facts about a chip, given by the user in place of the chip's own.

use barewire::chip::spi_nor::{Assume, Enter, Exit, Layout};

use crate::shared::text::number;

#[derive(clap::Args, Clone, Debug)]
pub(super) struct AssumeArgs {
    /// The chip's size, instead of the one that it gives
    #[arg(long, value_name = "N", value_parser = number::bytes, help_heading = "What the chip does not say")]
    size: Option<u64>,
    /// The size of its blocks, where its table names several sizes by one opcode
    #[arg(long, value_name = "N", value_parser = erase_size, help_heading = "What the chip does not say")]
    erase_size: Option<u32>,
    /// The layout of its protection bits
    #[arg(long, value_name = "LAYOUT", value_parser = layout, help_heading = "What the chip does not say")]
    protection: Option<Layout>,
    /// The opcodes by which it enters 4-byte mode: b7, 06+b7, or 17 (bank register)
    #[arg(long, value_name = "OPCODES", value_parser = four_byte_mode, help_heading = "What the chip does not say")]
    four_byte_mode: Option<(Enter, Exit)>,
}

impl AssumeArgs {
    pub(super) fn assumed(&self) -> Assume {
        let mut assume = Assume::default();
        assume.size = self.size;
        assume.erase_size = self.erase_size;
        assume.protection = self.protection;
        assume.four_byte_mode = self.four_byte_mode;
        assume
    }
}

fn erase_size(text: &str) -> Result<u32, String> {
    let size = number::bytes(text)?;
    let power = |size: &u32| size.is_power_of_two();
    let size = u32::try_from(size).ok().filter(power);
    size.ok_or_else(|| "a power of two up to 2G".into())
}

fn layout(text: &str) -> Result<Layout, String> {
    Layout::named(text).ok_or_else(|| {
        let names: Vec<_> = Layout::NAMED.iter().map(|(name, _)| *name).collect();
        format!("one of {}", names.join(", "))
    })
}

fn four_byte_mode(text: &str) -> Result<(Enter, Exit), String> {
    Enter::named(text).ok_or_else(|| "one of b7, 06+b7, 17".into())
}
