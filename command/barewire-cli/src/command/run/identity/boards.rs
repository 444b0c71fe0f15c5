//! The boards that programs can be told, as data.
//!
//! Read first: Raspberry Pi's documentation, "Raspberry Pi revision codes", "New-style revision codes in use"; Linux's device-tree
//! sources, in which `compatible`, `soc/ranges` and the names of lines stand; Linux's `drivers/pinctrl/bcm/pinctrl-bcm2835.c`,
//! which has the labels and the numbers of lines of Raspberry Pi's chips.
//!
//! A Raspberry Pi's firmware puts the full name in the place of `model`. The nodes are those that programs follow to the
//! addresses of a Raspberry Pi's registers, no more: the registers themselves are out of reach.

use Property::{Cells, Strings};

/// A board as it names itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Its name in `--as`.
    pub(super) name: &'static str,
    /// The buses that are this board.
    pub(super) buses: &'static [&'static str],
    pub(super) model: &'static str,
    pub(super) compatible: &'static [&'static str],
    /// `Hardware` in `/proc/cpuinfo`. Kernels for 64-bit Arm print none, except Raspberry Pi's.
    pub(super) hardware: Option<&'static str>,
    pub(super) raspberry_pi: Option<RaspberryPi>,
    /// More files, by their path without the first slash.
    pub(super) files: &'static [(&'static str, &'static [u8])],
}

/// What the firmware of a Raspberry Pi adds, and the chip of its header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RaspberryPi {
    pub(super) revision: u32,
    /// Made up: all boards of a kind have the same.
    pub(super) serial: u64,
    /// The properties below the root, by their path.
    pub(super) properties: &'static [(&'static str, Property)],
    pub(super) gpio: ToldChip,
    /// Whether Raspberry Pi's older kernels have the driver `gpiomem-bcm2835` there.
    pub(super) gpiomem_driver: bool,
}

/// The value of a property of the device tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Property {
    Cells(&'static [u32]),
    Strings(&'static [&'static str]),
}

/// A GPIO chip as the board's kernel has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToldChip {
    pub(crate) label: &'static str,
    pub(crate) lines: u32,
    /// The names of the header's lines, which are the first. The others have no name here.
    pub(crate) names: &'static [&'static str; 28],
    /// Its node in the device tree.
    pub(super) node: &'static str,
}

/// What a Raspberry Pi's kernel says of any SoC: the string is fixed there (github.com/raspberrypi/bookworm-feedback,
/// issue 129).
const RASPBERRY_PI_HARDWARE: &str = "BCM2835";

/// The header's lines by their numbers.
#[rustfmt::skip]
const NUMBERED: &[&str; 28] = &[
    "ID_SDA", "ID_SCL", "GPIO2", "GPIO3", "GPIO4", "GPIO5", "GPIO6", "GPIO7", "GPIO8", "GPIO9", "GPIO10", "GPIO11", "GPIO12", "GPIO13",
    "GPIO14", "GPIO15", "GPIO16", "GPIO17", "GPIO18", "GPIO19", "GPIO20", "GPIO21", "GPIO22", "GPIO23", "GPIO24", "GPIO25", "GPIO26",
    "GPIO27",
];

/// The header's lines of a Raspberry Pi 3, some by their use.
#[rustfmt::skip]
const NAMED: &[&str; 28] = &[
    "ID_SDA", "ID_SCL", "SDA1", "SCL1", "GPIO_GCLK", "GPIO5", "GPIO6", "SPI_CE1_N", "SPI_CE0_N", "SPI_MISO", "SPI_MOSI", "SPI_SCLK",
    "GPIO12", "GPIO13", "TXD1", "RXD1", "GPIO16", "GPIO17", "GPIO18", "GPIO19", "GPIO20", "GPIO21", "GPIO22", "GPIO23", "GPIO24",
    "GPIO25", "GPIO26", "GPIO27",
];

/// The chip's node below `soc`.
const SOC_GPIO: &str = "soc/gpio@7e200000";

/// The ranges of `soc`: the SoC's own address, the processor's, the length.
const BCM2837: &[(&str, Property)] = &[
    ("#address-cells", Cells(&[1])),
    ("#size-cells", Cells(&[1])),
    ("aliases/gpio", Strings(&["/soc/gpio@7e200000"])),
    ("soc/compatible", Strings(&["simple-bus"])),
    ("soc/#address-cells", Cells(&[1])),
    ("soc/#size-cells", Cells(&[1])),
    (
        "soc/ranges",
        Cells(&[0x7e00_0000, 0x3f00_0000, 0x0100_0000, 0x4000_0000, 0x4000_0000, 0x1000]),
    ),
    ("soc/gpio@7e200000/compatible", Strings(&["brcm,bcm2835-gpio"])),
    ("soc/gpio@7e200000/reg", Cells(&[0x7e20_0000, 0xb4])),
];

/// The same with 64-bit addresses for the processor.
const BCM2711: &[(&str, Property)] = &[
    ("#address-cells", Cells(&[2])),
    ("#size-cells", Cells(&[1])),
    ("aliases/gpio", Strings(&["/soc/gpio@7e200000"])),
    ("soc/compatible", Strings(&["simple-bus"])),
    ("soc/#address-cells", Cells(&[1])),
    ("soc/#size-cells", Cells(&[1])),
    (
        "soc/ranges",
        Cells(&[
            0x7e00_0000,
            0,
            0xfe00_0000,
            0x0180_0000, //
            0x7c00_0000,
            0,
            0xfc00_0000,
            0x0200_0000, //
            0x4000_0000,
            0,
            0xff80_0000,
            0x0080_0000,
        ]),
    ),
    ("soc/gpio@7e200000/compatible", Strings(&["brcm,bcm2711-gpio"])),
    ("soc/gpio@7e200000/reg", Cells(&[0x7e20_0000, 0xb4])),
];

const BCM2837_CHIP: ToldChip =
    ToldChip { label: "pinctrl-bcm2835", lines: 54, names: NUMBERED, node: SOC_GPIO };

/// All of them.
pub(super) const IDENTITIES: &[Identity] = &[
    Identity {
        name: "pi3",
        buses: &["sim:rpi3", "qemu:raspi3b"],
        model: "Raspberry Pi 3 Model B Rev 1.2",
        // arch/arm/boot/dts/broadcom/bcm2837-rpi-3-b.dts.
        compatible: &["raspberrypi,3-model-b", "brcm,bcm2837"],
        hardware: Some(RASPBERRY_PI_HARDWARE),
        raspberry_pi: Some(RaspberryPi {
            // 3B, 1.2, 1 GB, Sony UK.
            revision: 0x00a0_2082,
            serial: 0x0000_0000_ba4e_0003,
            properties: BCM2837,
            gpio: ToldChip { names: NAMED, ..BCM2837_CHIP },
            gpiomem_driver: true,
        }),
        files: &[],
    },
    Identity {
        name: "pi4",
        buses: &[],
        model: "Raspberry Pi 4 Model B Rev 1.4",
        // arch/arm/boot/dts/broadcom/bcm2711-rpi-4-b.dts.
        compatible: &["raspberrypi,4-model-b", "brcm,bcm2711"],
        hardware: Some(RASPBERRY_PI_HARDWARE),
        raspberry_pi: Some(RaspberryPi {
            // 4B, 1.4, 4 GB, Sony UK.
            revision: 0x00c0_3114,
            serial: 0x1000_0000_ba4e_0004,
            properties: BCM2711,
            gpio: ToldChip { label: "pinctrl-bcm2711", lines: 58, names: NUMBERED, node: SOC_GPIO },
            gpiomem_driver: true,
        }),
        files: &[],
    },
    Identity {
        name: "pi5",
        buses: &["sim:rpi5"],
        model: "Raspberry Pi 5 Model B Rev 1.0",
        // arch/arm64/boot/dts/broadcom/bcm2712-rpi-5-b.dts.
        compatible: &["raspberrypi,5-model-b", "brcm,bcm2712"],
        hardware: Some(RASPBERRY_PI_HARDWARE),
        raspberry_pi: Some(RaspberryPi {
            // 5, 1.0, 4 GB, Sony UK.
            revision: 0x00c0_4170,
            serial: 0x1000_0000_ba4e_0005,
            // Newer kernels name its node `soc@107c000000`, so that no program finds a `soc`.
            properties: &[(
                "axi/pcie@1000120000/rp1/gpio@d0000/compatible",
                Strings(&["raspberrypi,rp1-gpio"]),
            )],
            gpio: ToldChip {
                label: "pinctrl-rp1",
                lines: 54,
                names: NUMBERED,
                node: "axi/pcie@1000120000/rp1/gpio@d0000",
            },
            gpiomem_driver: false,
        }),
        files: &[],
    },
    Identity {
        name: "pi-zero-2w",
        buses: &[],
        model: "Raspberry Pi Zero 2 W Rev 1.0",
        // arch/arm/boot/dts/broadcom/bcm2837-rpi-zero-2-w.dts.
        compatible: &["raspberrypi,model-zero-2-w", "brcm,bcm2837"],
        hardware: Some(RASPBERRY_PI_HARDWARE),
        raspberry_pi: Some(RaspberryPi {
            // Zero 2 W, 1.0, 512 MB, Sony UK.
            revision: 0x0090_2120,
            serial: 0x0000_0000_ba4e_0002,
            properties: BCM2837,
            gpio: BCM2837_CHIP,
            gpiomem_driver: true,
        }),
        files: &[],
    },
    Identity {
        name: "imx8mp-evk",
        buses: &["sim:imx8mp"],
        model: "NXP i.MX8MPlus EVK board",
        // arch/arm64/boot/dts/freescale/imx8mp-evk.dts.
        compatible: &["fsl,imx8mp-evk", "fsl,imx8mp"],
        hardware: None,
        raspberry_pi: None,
        files: &[],
    },
    Identity {
        name: "sabrelite",
        buses: &["sim:sabrelite", "qemu:sabrelite"],
        model: "Freescale i.MX6 Quad SABRE Lite Board",
        // arch/arm/boot/dts/nxp/imx/imx6q-sabrelite.dts.
        compatible: &["fsl,imx6q-sabrelite", "fsl,imx6q"],
        // arch/arm/mach-imx/mach-imx6q.c.
        hardware: Some("Freescale i.MX6 Quad/DualLite (Device Tree)"),
        raspberry_pi: None,
        files: &[],
    },
    Identity {
        name: "beaglebone",
        buses: &["sim:beaglebone"],
        model: "TI AM335x BeagleBone Black",
        // arch/arm/boot/dts/ti/omap/am335x-boneblack.dts.
        compatible: &["ti,am335x-bone-black", "ti,am335x-bone", "ti,am33xx"],
        // arch/arm/mach-omap2/board-generic.c.
        hardware: Some("Generic AM33XX (Flattened Device Tree)"),
        raspberry_pi: None,
        // BeagleBone Black's System Reference Manual, "EEPROM": a header, the board's name, its version: Rev. C.
        files: &[("sys/bus/nvmem/devices/0-00500/nvmem", b"\xaa\x55\x33\xeeA335BNLT00C0")],
    },
];
