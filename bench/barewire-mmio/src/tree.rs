//! A board's device tree for user-mode Linux, from the simulator's table and the chips fitted.
//!
//! *Read first*: Linux's bindings `spi-controller.yaml` and those of each block; docs/judges.md, *Trees*.
//!
//! # How it works
//! The tree has the controller under Linux's own name for it, with a fixed clock of the board's reference
//! frequency, one interrupt controller (`barewire,lines`), and the board's GPIO banks: i.MX's for Linux's own
//! driver, any other as `barewire,pads`, whose pads the client drives by messages.
//!
//! Linux numbers chip selects by the controller's native lines, and some drivers select the native line of that
//! number beside a GPIO. So a native line with a chip keeps its number, and a chip select by GPIO gets the lowest
//! number that is left.

use std::fmt::Write as _;

use barewire_sim::model::gpio::imx;
use barewire_sim::wire::Driver;

use crate::Machine;

/// What Linux calls a controller, by the simulator's name of its kind.
struct Binding {
    kind: &'static str,
    compatible: &'static str,
    /// The names of its clocks, all of which are the reference clock.
    clock_names: &'static str,
    clocks: usize,
    /// Further properties.
    properties: &'static str,
}

/// The bindings; a kind without one has no driver that user-mode Linux can have.
const BINDINGS: [Binding; 7] = [
    Binding {
        kind: "ECSPI",
        compatible: "fsl,imx51-ecspi",
        clock_names: "\"ipg\", \"per\"",
        clocks: 2,
        properties: "",
    },
    Binding {
        kind: "DW_apb_ssi",
        compatible: "snps,dw-apb-ssi",
        clock_names: "\"ssi_clk\"",
        clocks: 1,
        properties: "num-cs = <4>; ",
    },
    Binding {
        kind: "BCM2835 SPI0",
        compatible: "brcm,bcm2835-spi",
        clock_names: "\"spi\"",
        clocks: 1,
        properties: "",
    },
    Binding {
        kind: "Atmel SPI",
        compatible: "atmel,at91rm9200-spi",
        clock_names: "\"spi_clk\"",
        clocks: 1,
        properties: "",
    },
    // As many channels as the block has, not as the SoC has pins for: the driver uses a channel for a chip select by GPIO too.
    Binding {
        kind: "McSPI",
        compatible: "ti,omap4-mcspi",
        clock_names: "\"fck\"",
        clocks: 1,
        properties: "ti,spi-num-cs = <4>; ",
    },
    Binding {
        kind: "SiFive SPI",
        compatible: "sifive,spi0",
        clock_names: "\"bus\"",
        clocks: 1,
        properties: "",
    },
    Binding {
        kind: "Cadence SPI",
        compatible: "cdns,spi-r1p6",
        clock_names: "\"ref_clk\", \"pclk\"",
        clocks: 2,
        properties: "num-cs = <4>; is-decoded-cs = <0>; ",
    },
];

/// There is no driver in user-mode Linux for the board's controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDriver {
    /// The controller's kind.
    pub kind: &'static str,
}

impl std::fmt::Display for NoDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "user-mode Linux has no driver for {}", self.kind)
    }
}

impl std::error::Error for NoDriver {}

/// Linux's numbers of the fitted chips' chip selects, beside the simulator's.
#[must_use]
pub fn linux_numbers(machine: &Machine) -> Vec<(u8, u32)> {
    let native = |cs: u8| match machine.board().spec().cs[usize::from(cs)].driver {
        Driver::Native(line) => Some(u32::from(line)),
        Driver::Gpio { .. } => None,
    };
    let fitted = || machine.chips().iter().map(|chip| chip.cs);
    let natives: Vec<u32> = fitted().filter_map(native).collect();
    let mut free = (0..).filter(|number| !natives.contains(number));
    fitted().map(|cs| (cs, native(cs).or_else(|| free.next()).unwrap_or_default())).collect()
}

/// Linux's name of the board's GPIO bank in the tree.
fn bank_label(block: u8) -> String {
    format!("bank{block}")
}

/// The device tree's source.
///
/// # Errors
/// [`NoDriver`].
pub fn source(machine: &Machine) -> Result<String, NoDriver> {
    let spec = machine.board().spec();
    let kind = spec.kind.name;
    let binding = BINDINGS.iter().find(|binding| binding.kind == kind).ok_or(NoDriver { kind })?;
    let mut text = format!(
        "/dts-v1/;\n\n/ {{\n\tmodel = \"barewire sim:{0}\";\n\tcompatible = \"barewire,{0}\";\n\
         \t#address-cells = <2>;\n\t#size-cells = <2>;\n\n\tlines: lines {{ compatible = \"barewire,lines\"; \
         interrupt-controller; #interrupt-cells = <1>; }};\n\n\treference: reference {{ compatible = \
         \"fixed-clock\"; #clock-cells = <0>; clock-frequency = <{1}>; }};\n",
        spec.name,
        machine.board().profile().reference_hz.value,
    );
    for line in machine.chips().iter().flat_map(|chip| &chip.beside) {
        _ = writeln!(text, "\n\t{line}");
    }
    text += "\n\tsoc {\n\t\tcompatible = \"simple-bus\";\n\t\t#address-cells = <2>;\n\
             \t\t#size-cells = <2>;\n\t\tranges;\n\t\tinterrupt-parent = <&lines>;\n";
    for (block, bank) in (0..).zip(spec.gpio) {
        let (label, base) = (bank_label(block), bank.base);
        let pads = machine.board().pads_of(block).unwrap_or(0).min(32);
        let compatible = match *bank.kind == imx::KIND {
            // Its interrupt is not connected: a line that is never asserted.
            true => format!(
                "compatible = \"fsl,imx35-gpio\"; {} interrupts = <11>;",
                reg(base, bank.kind.bytes)
            ),
            false => format!(
                "compatible = \"barewire,pads\"; barewire,bank = <{block}>; ngpios = <{pads}>;"
            ),
        };
        _ = write!(
            text,
            "\n\t\t{label}: gpio@{base:x} {{\n\t\t\t{compatible}\n\t\t\tgpio-controller;\n\
             \t\t\t#gpio-cells = <2>;\n\t\t}};\n"
        );
    }
    let clocks = ["<&reference>"].repeat(binding.clocks).join(", ");
    _ = write!(
        text,
        "\n\t\tspi@{:x} {{\n\t\t\tcompatible = \"{}\";\n\t\t\t{}\n\t\t\tinterrupts = <0>;\n\
         \t\t\tclocks = {clocks};\n\t\t\tclock-names = {};\n\t\t\t{}{}\n\
         \t\t\t#address-cells = <1>;\n\t\t\t#size-cells = <0>;\n",
        spec.controller_base,
        binding.compatible,
        reg(spec.controller_base, spec.kind.bytes),
        binding.clock_names,
        binding.properties,
        chip_selects(machine),
    );
    text += &chips(machine);
    text += "\t\t};\n\t};\n};\n";
    Ok(text)
}

fn reg(base: u64, bytes: u32) -> String {
    format!("reg = <{:#x} {:#x} 0 {bytes:#x}>;", base >> 32, base & 0xffff_ffff)
}

/// `cs-gpios`, by Linux's numbers.
fn chip_selects(machine: &Machine) -> String {
    let numbers = linux_numbers(machine);
    let most = numbers.iter().map(|(_, number)| number + 1).max().unwrap_or(0);
    let entries = (0..most).map(|number| {
        let at = numbers.iter().find(|(_, other)| *other == number);
        let cs = at.map(|(cs, _)| &machine.board().spec().cs[usize::from(*cs)]);
        match cs.map(|cs| (cs.driver, cs.active_high)) {
            Some((Driver::Gpio { block, bit }, active_high)) => {
                format!("<&{} {bit} {}>", bank_label(block), u8::from(!active_high))
            }
            _ => "<0>".into(),
        }
    });
    let entries: Vec<String> = entries.collect();
    match entries.is_empty() {
        true => String::new(),
        false => format!("cs-gpios = {};", entries.join(", ")),
    }
}

fn chips(machine: &Machine) -> String {
    let spec = machine.board().spec();
    let numbers = linux_numbers(machine);
    let mut lines = 1_u32..;
    let mut text = String::new();
    for (chip, (_, number)) in machine.chips().iter().zip(numbers) {
        let at = usize::from(chip.cs);
        _ = write!(
            text,
            "\n\t\t\t{}@{number} {{\n\t\t\t\tcompatible = \"{}\";\n\t\t\t\treg = <{number}>;\n\
             \t\t\t\tspi-max-frequency = <{}>;\n",
            chip.node, chip.compatible, chip.max_hz
        );
        if spec.cs[at].active_high {
            text += "\t\t\t\tspi-cs-high;\n";
        }
        if chip.line.is_some() {
            let line = lines.next().unwrap_or_default();
            _ = writeln!(text, "\t\t\t\tinterrupts-extended = <&lines {line}>;");
        }
        if let Some((pad, property)) = &chip.pad {
            let (bank, bit) = (bank_label(pad.block), pad.bit);
            _ = writeln!(text, "\t\t\t\t{property} = <&{bank} {bit} 1>;");
        }
        for property in &chip.properties {
            _ = writeln!(text, "\t\t\t\t{property}");
        }
        text += "\t\t\t};\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use barewire_sim::board::boards;
    use barewire_sim::{Board, BoardOptions, BoardSpec};

    use super::*;
    use crate::fitting::KINDS;

    #[test]
    fn every_board_whose_controller_has_a_driver_has_a_tree() {
        for spec in boards() {
            for (kind, _) in KINDS {
                let board = Board::new(spec, BoardOptions::default());
                let chips = [format!("{kind}@0").parse().expect("a chip")];
                let machine = Machine::new(board, &chips).expect("it fits");
                let Ok(text) = source(&machine) else {
                    assert_eq!(spec.name, "highbank");
                    continue;
                };
                assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
                assert!(text.contains(&format!("spi@{:x} {{", spec.controller_base)));
            }
        }
    }

    #[test]
    fn native_lines_keep_their_numbers() {
        for (name, chips, expected) in [
            ("sabrelite", &["spidev@0", "spidev@1"][..], &[(0, 1), (1, 0)][..]),
            ("sabrelite", &["spidev@0"], &[(0, 0)]),
            ("imx8mp", &["spidev@1", "spidev@0", "spidev@3"], &[(1, 1), (0, 0), (3, 2)]),
            ("rpi5", &["flash@2", "touch@0"], &[(2, 0), (0, 1)]),
        ] {
            let board =
                Board::new(BoardSpec::find(name).expect("a board"), BoardOptions::default());
            let chips: Vec<_> = chips.iter().map(|chip| chip.parse().expect("a chip")).collect();
            let machine = Machine::new(board, &chips).expect("it fits");
            assert_eq!(linux_numbers(&machine), expected, "{name}");
        }
    }
}
