//! The boards as data: QEMU's arguments, the kernel and device tree that they boot, and the number
//! of boots.
//!
//! What the guest's scripts must know of a board (bus texts, drivers, what to skip) stands in
//! `guests/boards/NAME.sh`; device tree fragments in `guests/dts/`.

use crate::kernel_object::{self, Machine};
use crate::static_build;

/// Debian's architectures of the guests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arch {
    Arm64,
    Armhf,
}

impl Arch {
    /// The Rust target of the static command.
    pub(super) fn target(self) -> &'static str {
        match self {
            Self::Arm64 => static_build::ARM64,
            Self::Armhf => static_build::ARMHF,
        }
    }

    /// The Rust target of the library that `barewire run` loads.
    pub(super) fn library(self) -> &'static str {
        match self {
            Self::Arm64 => static_build::LIBRARY_ARM64,
            Self::Armhf => static_build::LIBRARY_ARMHF,
        }
    }

    /// The loader of dynamically linked programs, in `/lib`.
    pub(super) fn loader(self) -> &'static str {
        match self {
            Self::Arm64 => "ld-linux-aarch64.so.1",
            Self::Armhf => "ld-linux-armhf.so.3",
        }
    }

    /// What the kernel's half of a module is built for.
    pub(super) fn machine(self) -> Machine {
        match self {
            Self::Arm64 => kernel_object::ARM64,
            Self::Armhf => kernel_object::ARM,
        }
    }

    /// What `uname -m` says there.
    pub(super) fn machine_name(self) -> &'static str {
        match self {
            Self::Arm64 => "aarch64",
            Self::Armhf => "armv7l",
        }
    }

    /// The prefix of the cross compiler's programs.
    pub(super) fn cross(self) -> &'static str {
        self.machine().cross
    }

    /// Linux's name of the architecture.
    pub(super) fn linux(self) -> &'static str {
        self.machine().linux
    }

    pub(super) fn qemu(self) -> &'static str {
        match self {
            Self::Arm64 => "qemu-system-aarch64",
            Self::Armhf => "qemu-system-arm",
        }
    }
}

/// Debian's kernels that guests boot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flavour {
    /// The 6.1 of the release.
    Stock,
    /// Backports' 6.12.
    Newer,
    /// The 6.1 with PREEMPT_RT.
    RealTime,
}

impl Flavour {
    /// For people.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Stock => "Linux 6.1",
            Self::Newer => "Linux 6.12",
            Self::RealTime => "Linux 6.1 with PREEMPT_RT (linux-image-6.1.0-…-rt-arm64)",
        }
    }
}

/// A board that QEMU has.
#[derive(Debug)]
pub(crate) struct Board {
    /// QEMU's name of it, and ours.
    pub(crate) name: &'static str,
    pub(super) arch: Arch,
    /// Arguments of QEMU that are the board's own.
    pub(super) machine: &'static [&'static str],
    /// The kernel's console, and the options for its early output.
    pub(super) console: &'static str,
    /// Debian's device tree.
    pub(super) tree: &'static str,
    pub(super) flash_bytes: usize,
    /// Where the flash is wired to, as `guests/wire.c` wants it; if empty, the board's code wires
    /// it.
    pub(super) wiring: Option<&'static str>,
    /// The controller's registers and the bank's of its chip select: first address and size, as `guests/wire.c` wants them.
    pub(super) registers: [&'static str; 2],
    /// The modules that the kernel's own drivers need.
    pub(super) modules: &'static [&'static str],
    /// Whether it has a second processor for two processes at once.
    pub(super) processors: u8,
    pub(super) boots: &'static [&'static Boot],
    /// Those of `cargo xtask kernel`.
    pub(super) module_boots: &'static [&'static Boot],
    /// Those of `cargo xtask guests --priced`.
    pub(super) priced_boots: &'static [&'static Boot],
}

/// One boot of a board: a script, and the machine it wants.
#[derive(Debug)]
pub(super) struct Boot {
    pub(super) name: &'static str,
    /// The script is `guests/checks/SCRIPT.sh`.
    pub(super) script: &'static str,
    /// The fragment of the device tree is `guests/dts/BOARD-TREE.dtsi`.
    pub(super) tree: &'static str,
    /// Where the flash is wired to, if not where the board says.
    pub(super) wiring: Option<&'static str>,
    /// Whether the board's overlay of `contrib/overlays` is merged with the tree.
    pub(super) merged: bool,
    /// Arguments of the kernel.
    pub(super) kernel_args: &'static str,
    /// Modules beside the board's.
    pub(super) modules: &'static [&'static str],
    /// Count instructions: one is a nanosecond of the guest. Slower, and one processor.
    pub(super) counted: bool,
    /// Count accesses to the board's registers.
    pub(super) accesses: bool,
    pub(super) kernel: Flavour,
    /// With the program that judges the bus on a busy machine.
    pub(super) judged: bool,
    /// Write down what the kernel runs, and count its steps: with all processors, unlike other counts, and nothing of
    /// ours.
    pub(super) stepped: bool,
    /// Write down what operations between marks count, for the price list.
    pub(super) priced: bool,
    /// Seconds after which the guest is given up.
    pub(super) timeout_s: u64,
}

impl Boot {
    const fn new(name: &'static str, timeout_s: u64) -> Self {
        Self {
            name,
            script: name,
            tree: "spi",
            wiring: None,
            merged: false,
            kernel_args: "iomem=relaxed",
            modules: &[],
            counted: false,
            accesses: false,
            kernel: Flavour::Stock,
            judged: false,
            stepped: false,
            priced: false,
            timeout_s,
        }
    }

    /// UIO's platform driver is built out of tree: the kernels lack it.
    const fn uio(name: &'static str, tree: &'static str, kernel: Flavour) -> Self {
        Self { tree, kernel, modules: &["uio"], ..Self::new(name, 600) }
    }
}

/// Beside the kernel's driver, with the kernel's arguments as a distribution has them.
const KERNEL: Boot =
    Boot { kernel_args: "", modules: &["vcan", "can-raw"], ..Boot::new("kernel", 600) };
/// Uses only the commands that `barewire doctor` prints.
const DOCTOR: Boot = Boot { kernel_args: "", ..Boot::new("doctor", 600) };
/// The driver is unbound and the registers are mapped.
const MAPPED: Boot = Boot::new("mapped", 900);
/// Two processes on one controller and one chip.
const PROCESSES: Boot = Boot::new("processes", 600);
/// Programs of spidev's, on mapped registers of their own.
const RUN: Boot = Boot::new("run", 900);
/// Processes of two PID namespaces.
const NAMESPACES: Boot = Boot::new("namespaces", 600);
const UIO: Boot = Boot::uio("uio", "uio", Flavour::Stock);
/// The shipped overlay, merged with Debian's tree as docs/boards.md says.
const OVERLAY: Boot =
    Boot { merged: true, kernel_args: "", ..Boot::uio("overlay", "bare", Flavour::Newer) };
/// ECSPI1's pads are UART3's on this board; ECSPI2 is the one on its header.
const IMX8MP_OVERLAY: Boot =
    Boot { wiring: Some("w25q256:/machine/soc/spi2/spi:fl0:0:/machine/soc/gpio5:-:13"), ..OVERLAY };
/// Random stack offsets would make a system call's count differ from call to call, and random layouts a program's
/// from start to start.
const COUNT: Boot = Boot {
    kernel_args: "iomem=relaxed randomize_kstack_offset=off norandmaps",
    counted: true,
    ..Boot::new("count", 600)
};
/// The kernel's own paths on the newer kernel, for the comparison that `barewire demo` draws.
const COUNT_NEWER: Boot = Boot {
    name: "count-newer",
    script: "count-newer",
    tree: "spba",
    kernel: Flavour::Newer,
    ..COUNT
};
/// The kernel's own steps, by function. Addresses as kallsyms has them, and the other arguments as for [`COUNT`].
const STEPS: Boot = Boot {
    kernel_args: "nokaslr randomize_kstack_offset=off norandmaps",
    counted: true,
    stepped: true,
    ..Boot::new("steps", 600)
};
/// By the same script on the newer kernel.
const STEPS_NEWER: Boot =
    Boot { name: "steps-newer", tree: "spba", kernel: Flavour::Newer, ..STEPS };
/// Threads and processes of all priorities on one controller, on a kernel with PREEMPT_RT that is kept busy.
const LOAD: Boot = Boot { kernel: Flavour::RealTime, judged: true, ..Boot::new("load", 900) };
/// Not together with instructions, since it makes each load and store slow.
const ACCESSES: Boot = Boot { accesses: true, ..Boot::new("accesses", 600) };
/// This project's kernel module in place of the kernel's driver.
const MODULE: Boot = Boot { kernel_args: "", ..Boot::new("module", 900) };
/// With a controller in whose page another block has registers.
const IMX8MP_MODULE: Boot = Boot { tree: "crowded", ..MODULE };
/// What clients in the kernel cost with either driver.
const MODULE_COUNT: Boot =
    Boot { name: "module-count", script: "module-count", modules: &["regmap-spi"], ..COUNT };
const MODULE_ACCESSES: Boot =
    Boot { name: "module-accesses", script: "module-accesses", ..ACCESSES };
/// The same on the newer kernel, in whose tree i.MX 8M Plus's ECSPIs are elsewhere.
const MODULE_NEWER: Boot =
    Boot { name: "module-newer", tree: "spba", kernel: Flavour::Newer, ..MODULE };
/// The same interface to clients on a kernel with PREEMPT_RT.
const MODULE_RT: Boot =
    Boot { kernel: Flavour::RealTime, kernel_args: "", ..Boot::new("module-rt", 600) };
const MODULE_COUNT_NEWER: Boot =
    Boot { name: "module-count-newer", tree: "spba", kernel: Flavour::Newer, ..MODULE_COUNT };

/// The kernel's paths, the module's and mapped registers between marks, on the first processor: what runs on another is no
/// part of what is counted. Addresses and layouts as for [`COUNT`].
const PRICED: Boot = Boot {
    kernel_args: "iomem=relaxed nokaslr randomize_kstack_offset=off norandmaps",
    counted: true,
    priced: true,
    ..Boot::new("priced", 900)
};
/// Debian's tree of 6.1 leaves ECSPI1 at 24 MHz.
const IMX8MP_PRICED: Boot = Boot { tree: "priced", ..PRICED };
const PRICED_NEWER: Boot =
    Boot { name: "priced-newer", script: "priced", tree: "spba", kernel: Flavour::Newer, ..PRICED };

/// All of them.
pub(crate) const BOARDS: [&Board; 4] = [&HIGHBANK, &RASPI3B, &SABRELITE, &IMX8MP_EVK];

const IMX8MP_EVK: Board = Board {
    name: "imx8mp-evk",
    arch: Arch::Arm64,
    machine: &["-m", "1G", "-serial", "null", "-serial", "stdio"],
    console: "console=ttymxc1,115200",
    tree: "freescale/imx8mp-evk.dtb",
    flash_bytes: 32 << 20,
    wiring: Some("w25q256:/machine/soc/spi1/spi:fl0:0:/machine/soc/gpio5:-:9"),
    registers: ["30820000:10000", "30240000:10000"],
    modules: &["gpio-mxc", "imx2_wdt", "spi-imx", "spi-nor", "mtdblock"],
    processors: 2,
    boots: &[
        &KERNEL,
        &DOCTOR,
        &MAPPED,
        &PROCESSES,
        &LOAD,
        &RUN,
        &IMX8MP_OVERLAY,
        &COUNT,
        &COUNT_NEWER,
        &ACCESSES,
        &STEPS,
        &STEPS_NEWER,
    ],
    module_boots: &[
        &IMX8MP_MODULE,
        &MODULE_NEWER,
        &MODULE_RT,
        &MODULE_COUNT,
        &MODULE_COUNT_NEWER,
        &MODULE_ACCESSES,
    ],
    priced_boots: &[&IMX8MP_PRICED, &PRICED_NEWER],
};

const SABRELITE: Board = Board {
    name: "sabrelite",
    arch: Arch::Armhf,
    machine: &["-m", "512M", "-serial", "null", "-serial", "stdio"],
    console: "console=ttymxc1,115200",
    tree: "imx6q-sabrelite.dtb",
    flash_bytes: 2 << 20,
    wiring: None,
    registers: ["2008000:4000", "20a4000:4000"],
    modules: &["imx2_wdt", "gpio-mxc", "spi-imx", "spi-nor", "mtdblock"],
    processors: 2,
    boots: &[&KERNEL, &MAPPED, &PROCESSES, &NAMESPACES, &COUNT, &ACCESSES, &STEPS],
    module_boots: &[&MODULE, &MODULE_COUNT, &MODULE_ACCESSES],
    priced_boots: &[],
};

const RASPI3B: Board = Board {
    name: "raspi3b",
    arch: Arch::Arm64,
    machine: &["-serial", "stdio"],
    console: "console=ttyAMA0,115200 earlycon=pl011,mmio32,0x3f201000",
    tree: "broadcom/bcm2837-rpi-3-b.dtb",
    flash_bytes: 32 << 20,
    wiring: Some(
        "w25q256:/machine/soc/peripherals/bcm2835-spi0/spi:fl0:0:/machine/soc/peripherals/gpio:-:8",
    ),
    registers: ["3f204000:1000", "3f200000:1000"],
    modules: &["bcm2835_wdt", "spi-bcm2835", "spi-nor", "mtdblock"],
    // The model has four and takes no fewer.
    processors: 4,
    boots: &[
        &KERNEL,
        &DOCTOR,
        &MAPPED,
        &PROCESSES,
        &NAMESPACES,
        &UIO,
        &OVERLAY,
        &COUNT,
        &ACCESSES,
        &STEPS,
    ],
    module_boots: &[&MODULE, &MODULE_COUNT, &MODULE_ACCESSES],
    priced_boots: &[&PRICED],
};

const HIGHBANK: Board = Board {
    name: "highbank",
    arch: Arch::Armhf,
    machine: &["-m", "512M", "-serial", "stdio"],
    console: "console=ttyAMA0,115200 earlycon=pl011,0xfff36000",
    tree: "highbank.dtb",
    flash_bytes: 32 << 20,
    wiring: Some(
        "w25q256:/machine/unattached/device[10]/ssi:fl0:0:/machine/unattached/device[5]:-:0",
    ),
    registers: ["fff39000:1000", "fff30000:1000"],
    modules: &["spi-pl022", "spi-nor", "mtdblock"],
    processors: 1,
    boots: &[&KERNEL, &MAPPED, &PROCESSES, &UIO, &COUNT, &ACCESSES],
    module_boots: &[&MODULE, &MODULE_COUNT, &MODULE_ACCESSES],
    priced_boots: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_and_fragment_that_a_board_names_is_there() {
        let guests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests");
        let there = |path: String| assert!(guests.join(&path).is_file(), "no guests/{path}");
        for board in BOARDS {
            there(format!("boards/{}.sh", board.name));
            for boot in board.boots.iter().chain(board.module_boots).chain(board.priced_boots) {
                there(format!("checks/{}.sh", boot.script));
                there(format!("dts/{}-{}.dtsi", board.name, boot.tree));
            }
        }
    }

    #[test]
    fn each_board_counts_instructions_once() {
        for board in BOARDS {
            let counts =
                |boot: &&&Boot| boot.counted && !boot.stepped && boot.kernel == Flavour::Stock;
            assert_eq!(board.boots.iter().filter(counts).count(), 1, "{}", board.name);
        }
    }
}
