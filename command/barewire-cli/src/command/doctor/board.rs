//! Doctor's facts about boards, by the strings of their device trees. Other boards get the generic
//! answer.

use barewire_linux::map::Block;
use barewire_linux::survey::{Controller, Machine, SelectAt};

use super::report::Step;

/// A family of boards with habits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Board {
    RaspberryPi,
    Other,
}

impl Board {
    pub(super) fn of(machine: &Machine) -> Self {
        match machine.compatible.iter().any(|name| name.starts_with("raspberrypi,")) {
            true => Self::RaspberryPi,
            false => Self::Other,
        }
    }

    /// How a chip gets a node of spidev that the tree does not have yet.
    pub(super) fn add_a_chip(self) -> &'static str {
        match self {
            Self::RaspberryPi => {
                "add `dtparam=spi=on` to config.txt (in /boot/firmware or /boot) and restart"
            }
            Self::Other => {
                "add a node for the chip to the device tree (contrib/overlays has an example)"
            }
        }
    }

    /// How the overlay in `file` (without its ending) is applied.
    pub(super) fn apply_overlay(self, machine: &Machine, file: &str) -> Step {
        let live = "/sys/kernel/config/device-tree/overlays";
        let compiled = Step::new("apply the overlay")
            .run(format!("dtc -@ -I dts -O dtb -o {file}.dtbo {file}.dtso"));
        match self {
            Self::RaspberryPi => {
                let mut step = compiled
                    .run(format!("cp {file}.dtbo /boot/firmware/overlays/"))
                    .run(format!("echo dtoverlay={file} >> /boot/firmware/config.txt"))
                    .run("reboot")
                    .undone_by(format!("sed -i /^dtoverlay={file}$/d /boot/firmware/config.txt"))
                    .undone_by("reboot");
                step.why =
                    "apply the overlay at the next start (before 2023 the directory is /boot)"
                        .into();
                step
            }
            Self::Other if machine.live_overlays => compiled
                .run(format!("mkdir {live}/{file}"))
                .run(format!("cat {file}.dtbo > {live}/{file}/dtbo"))
                .undone_by(format!("rmdir {live}/{file}")),
            Self::Other => {
                let mut step = compiled
                    .run(format!(
                        "dtc -q -I fs -O dtb -o running.dtb /proc/device-tree && fdtoverlay -i running.dtb -o {file}.dtb {file}.dtbo"
                    ))
                    .undone_by("let the boot loader load the tree that it loads now");
                step.why = format!(
                    "merge it with this board's tree, and let the boot loader load {file}.dtb (keep the old file)"
                );
                step
            }
        }
    }

    /// The pins that become inputs when a controller's driver is unbound, and how to give them back.
    pub(super) fn pins_step(self, controller: &Controller) -> Option<Step> {
        // SPI0 by its address in the peripherals' 16 MiB: GPIO 7 to 11.
        let is_spi0 = controller.device.address % 0x100_0000 == 0x20_4000;
        if controller.block() != Some(Block::Bcm2835) || !is_spi0 {
            return None;
        }
        // GPIO 8 and 7 are CE0 and CE1 by the same function.
        let native =
            controller.selects.iter().any(|select| matches!(select.at, SelectAt::Native { .. }));
        let (pins, first) = match native {
            true => ("the bus's pins and its chip selects CE0 and CE1", 7),
            false => (
                "the bus's pins (a chip select on a GPIO line becomes an output again when it is opened)",
                9,
            ),
        };
        let why = format!(
            "unbinding made inputs of {pins}: give them back to SPI0 (where there is no pinctrl, raspi-gpio takes the same words)"
        );
        let step = Step::new(why).run(format!("pinctrl set {first}-11 a0"));
        Some(
            step.undone_by(format!(
                "pinctrl set {first}-11 ip  # binding the driver sets them itself"
            )),
        )
    }
}
