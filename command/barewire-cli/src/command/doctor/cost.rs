//! What a short message costs by each way to this controller, as counted in QEMU's guests (docs/instructions.md).

use barewire_linux::map::Block;
use barewire_linux::survey::{Controller, SelectAt};

use super::report::{Finding, Level};
use crate::shared::text::figure;

/// Instructions of a message of 4 bytes, of `guests/instructions.txt`.
struct MessageCount {
    board: &'static str,
    /// `spidev-4`
    spidev: u32,
    /// `chardev-locked-prepared-4`: the select by the kernel's GPIO lines.
    kernel_line: u32,
    /// `locked-prepared-4`: the controller's own line, or the bank's registers.
    registers: u32,
    /// `prepared-4`: the same with `exclusive`.
    exclusive: u32,
}

impl MessageCount {
    fn of(block: Block) -> Option<&'static Self> {
        let board = match block {
            Block::Ecspi if cfg!(target_pointer_width = "32") => "sabrelite",
            Block::Ecspi => "imx8mp-evk",
            Block::Bcm2835 => "raspi3b",
            Block::Pl022 => "highbank",
            _ => return None,
        };
        COUNTED.iter().find(|counted| counted.board == board)
    }
}

const COUNTED: [MessageCount; 4] = [
    MessageCount {
        board: "highbank",
        spidev: 14_580,
        kernel_line: 2_990,
        registers: 357,
        exclusive: 225,
    },
    MessageCount {
        board: "imx8mp-evk",
        spidev: 5_301,
        kernel_line: 3_530,
        registers: 246,
        exclusive: 108,
    },
    MessageCount {
        board: "raspi3b",
        spidev: 4_669,
        kernel_line: 3_435,
        registers: 286,
        exclusive: 154,
    },
    MessageCount {
        board: "sabrelite",
        spidev: 5_162,
        kernel_line: 2_985,
        registers: 288,
        exclusive: 142,
    },
];

/// The costs, and for a select on a GPIO line when the bank's registers may be written.
pub(super) fn finding(controller: &Controller) -> Option<Finding> {
    let block = controller.block()?;
    let counted = MessageCount::of(block)?;
    let MessageCount { board, spidev, kernel_line, registers, exclusive } = counted;
    let grouped = |count: &u32| figure::grouped(u64::from(*count));
    let mut text = format!(
        "instructions of a 4-byte message, counted in QEMU ({board}): spidev {}, registers {} ({} with `exclusive`)",
        grouped(spidev),
        grouped(registers),
        grouped(exclusive)
    );
    let gpio = controller.selects.iter().find_map(|select| match &select.at {
        SelectAt::Gpio { address, offset, .. } => Some((address, offset)),
        _ => None,
    });
    if let Some((address, offset)) = gpio {
        let when = match block {
            Block::Ecspi => {
                "only where no kernel driver drives another line of that bank, because Linux writes the whole bank from memory"
            }
            _ => "which disturbs no other line of that bank",
        };
        text += &format!(
            "; {} with the select through the kernel, so write cs=gpio@{address:#x}.{offset} (the bank's registers), {when}",
            grouped(kernel_line)
        );
    }
    Some(Finding::new(Level::Ok, "cost", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_the_reviewed_table() {
        let table = include_str!("../../../../../guests/instructions.txt");
        for MessageCount { board, spidev, kernel_line, registers, exclusive } in &COUNTED {
            for (path, told) in [
                ("spidev-4", spidev),
                ("chardev-locked-prepared-4", kernel_line),
                ("locked-prepared-4", registers),
                ("prepared-4", exclusive),
            ] {
                let mut rows =
                    table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
                let row = rows.find(|row| row[..2] == [*board, path]).expect("a row");
                let counted: u32 = row[2].parse().expect("a count");
                // The page and this say what the kernel's rows were when they were written.
                let near = told.abs_diff(counted) <= (counted / 20).max(6);
                assert!(near, "{board} {path}: {told} told, {counted} counted");
            }
        }
    }
}
