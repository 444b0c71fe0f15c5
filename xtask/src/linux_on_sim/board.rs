//! The boards and their runs, as data.
//!
//! A board is one of `barewire-sim`'s, by its name. Its chip selects are the simulator's numbers.

/// A boot of user-mode Linux on a board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    /// The name after `BOARD/`.
    pub(super) name: &'static str,
    /// The guest's checks, with commas.
    pub(super) checks: &'static str,
    /// The chips, as `KIND@CS`.
    pub(super) chips: &'static [&'static str],
    /// Whether this project's module drives the controller, in place of Linux's driver.
    pub(super) module: bool,
    /// More of the kernel's command line.
    pub(super) options: &'static str,
    /// What the kernel's log must say; empty: nothing.
    pub(super) log: &'static str,
}

/// A simulated board.
#[derive(Debug)]
pub(super) struct Board {
    /// Its name, and the simulator's.
    pub(super) name: &'static str,
    /// Linux's driver of its controller; `None`: why there is none.
    pub(super) driver: Result<&'static str, &'static str>,
    pub(super) runs: &'static [Run],
    /// Rules of the wire that Linux's driver breaks on the model, each with the reason that this is known and
    /// settled (docs/judges.md, *Differences*).
    pub(super) broken: &'static [(&'static str, &'static str)],
}

const fn run(name: &'static str, checks: &'static str, chips: &'static [&'static str]) -> Run {
    Run { name, checks, chips, module: false, options: "", log: "" }
}

/// A run of this project's module.
const fn module(name: &'static str, checks: &'static str, chips: &'static [&'static str]) -> Run {
    Run { module: true, ..run(name, checks, chips) }
}

/// A run of this project's module in which nothing sleeps. spi-loopback-test wants a message to last as long as its bits; the
/// kernel's time stands still in an interrupt handler, where the module ends a message that slept.
const fn polled(name: &'static str, checks: &'static str, chips: &'static [&'static str]) -> Run {
    Run { options: "poll_limit=1000000", ..module(name, checks, chips) }
}

/// Runs that take long, and that resemble other runs: CI leaves them out.
pub(super) const NOT_IN_CI: [&str; 25] = [
    "beaglebone/loopback",
    "beaglebone/module-loopback",
    "imx6dl/loopback",
    "imx8mp/can-fast",
    "imx8mp/can-slow",
    "imx8mp/nor-is25wp256",
    "imx8mp/nor-mt25qu256a",
    "imx8mp/nor-s25fl512s",
    "imx8mp/nor-s25fs256t",
    "imx8mp/nor-w25q256fv",
    "imx8mp/module-loopback",
    "rpi3/loopback",
    "rpi3/module-loopback",
    "rpi3/module-nor",
    "rpi5/loopback",
    "rpi5/module-loopback",
    "sabrelite/loopback",
    "sama5d36/loopback",
    "sama5d36/module-loopback",
    "sama5d36/module-nor",
    "sama5d36/nor+touch",
    "unleashed/loopback",
    "unleashed/module-loopback",
    "zynq/loopback",
    "zynq/module-loopback",
];

/// The runs for which CI asks many frames, and how many.
pub(super) const LONG_CAN: [(&str, u32); 2] =
    [("imx8mp/can", 20_000), ("rpi5/module-can", 100_000)];

/// Known on every board. A guest's instructions take no time, so the delays that they make on silicon are missing here.
pub(super) const BROKEN: &[(&str, &str)] = &[
    (
        "cs_inactive on",
        "nothing but accesses takes time between two messages, which on silicon are a microsecond apart",
    ),
    (
        "TSC2046: Aux was converted",
        "ads7846 makes a conversion of AUX when it is bound, to power the reference down again",
    ),
];

const EARLY: &str = "the driver deselects when the last word is received, up to half a period of SCK before the end \
     of its cell; on silicon its own instructions take longer, but at the slowest clocks";
const SOON: &[(&str, &str)] = &[("sck_idle on", EARLY), ("cs_hold on", EARLY)];
const ATMEL: &[(&str, &str)] = &[
    ("sck_idle on", EARLY),
    ("cs_hold on", EARLY),
    (
        "clock_without_cs:",
        "at a change of polarity the driver sends a word with no chip selected, so that SPCK takes its new level",
    ),
];
const DW: &[(&str, &str)] = &[
    ("sck_idle on", "the driver sets the mode after the core has asserted a chip select by GPIO"),
    ("disabled: SER written while BUSY", EARLY),
];
const MCSPI: &[(&str, &str)] = &[
    ("sck_idle on", EARLY),
    ("cs_hold on", EARLY),
    (
        "disabled: CH",
        "the driver restores the device's divisor when the last word is received: as above",
    ),
];

/// All boards.
pub(super) static BOARDS: [Board; 10] = [
    Board {
        name: "beaglebone",
        driver: Ok("spi-omap2-mcspi"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@1"]),
            run("can", "can", &["can@2"]),
            run("adc", "adc", &["adc@0"]),
            run("touch", "touch", &["touch@3"]),
            run("nor+touch", "nor,touch", &["flash@1", "touch@3"]),
            run("can+adc", "can,adc", &["can@2", "adc@0"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-spidev", "spidev", &["spidev@0"]),
            // An empty FIFO is a bit that is set.
            Run { options: "mute=2", ..module("module-mute", "mute", &["spidev@0"]) },
            module("module-nor", "nor", &["flash@1"]),
            module("module-can", "can", &["can@2"]),
            polled("module-loopback", "loopback", &["jumper@0"]),
        ],
        broken: MCSPI,
    },
    Board {
        name: "highbank",
        driver: Err(
            "Linux's spi-pl022 needs ARM_AMBA, which user-mode Linux cannot have; QEMU judges PL022",
        ),
        runs: &[run("spidev", "spidev", &[])],
        broken: &[],
    },
    Board {
        name: "imx6dl",
        driver: Ok("spi-imx"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0"]),
            run("touch", "touch", &["touch@0"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-can", "can", &["can@0"]),
        ],
        broken: SOON,
    },
    Board {
        name: "imx8mp",
        driver: Ok("spi-imx"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            // Parts that 6.1 knows, and writes rightly; the others are in docs/judges.md.
            run("nor-w25q256fv", "nor", &["flash@0=w25q256fv"]),
            run("nor-s25fl064l", "nor", &["flash@0=s25fl064l"]),
            run("nor-s25fl512s", "nor", &["flash@0=s25fl512s"]),
            run("nor-s25fs256t", "nor", &["flash@0=s25fs256t"]),
            run("nor-is25wp256", "nor", &["flash@0=is25wp256"]),
            run("nor-mx25l3233f", "nor", &["flash@0=mx25l3233f"]),
            run("nor-mt25qu256a", "nor", &["flash@0=mt25qu256a"]),
            run("nor-mt25ql02g", "nor", &["flash@0=mt25ql02g"]),
            run("nor-zd25q128c", "nor", &["flash@0=zd25q128c"]),
            run("can", "can", &["can@2"]),
            Run {
                options: "rate=125000 data_rate=1000000",
                ..run("can-slow", "can", &["can@2=125000/1000000"])
            },
            Run {
                options: "rate=1000000 data_rate=5000000",
                ..run("can-fast", "can", &["can@2=1000000/5000000"])
            },
            run("can-flags", "can-errors", &["can@2=500000/2000000,flags"]),
            Run {
                log: "CRC read error at address",
                ..run("can-crc", "can-errors", &["can@2=500000/2000000,crc"])
            },
            Run {
                log: "CRC read error at address",
                ..run("can-errata", "can-errors", &["can@2=500000/2000000,errata"])
            },
            Run {
                log: "Single ECC Error detected",
                ..run("can-ecc", "can-errors", &["can@2=500000/2000000,ecc"])
            },
            Run {
                log: "bus-off, scheduling restart",
                ..run("can-off", "can-off", &["can@2=500000/2000000,off"])
            },
            run("can-utils", "can-utils", &["can@2"]),
            run("can-flood", "can-flood", &["can@2=500000/2000000,flood"]),
            run("adc", "adc", &["adc@2"]),
            run("touch", "touch", &["touch@3"]),
            run("nor+touch", "nor,touch", &["flash@0", "touch@3"]),
            run("can+adc", "can,adc", &["can@2", "adc@3"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-spidev", "spidev", &["spidev@0"]),
            module("module-mute", "mute", &["spidev@0"]),
            module("module-nor", "nor", &["flash@0"]),
            module("module-can", "can", &["can@2"]),
            module("module-loopback", "loopback", &["jumper@0"]),
        ],
        broken: SOON,
    },
    Board {
        name: "rpi3",
        driver: Ok("spi-bcm2835"),
        // spi-bcm2835 drives chip selects by GPIO only, and the board has one of those.
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3208"]),
            run("touch", "touch", &["touch@0"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-spidev", "spidev", &["spidev@0"]),
            module("module-mute", "mute", &["spidev@0"]),
            module("module-nor", "nor", &["flash@0"]),
            module("module-can", "can", &["can@0"]),
            polled("module-loopback", "loopback", &["jumper@0"]),
        ],
        broken: SOON,
    },
    Board {
        name: "rpi5",
        driver: Ok("spi-dw-mmio"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@2"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3004"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@2", "touch@0"]),
            run("can+adc", "can,adc", &["can@0", "adc@2"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-spidev", "spidev", &["spidev@0"]),
            module("module-mute", "mute", &["spidev@0"]),
            module("module-nor", "nor", &["flash@2"]),
            module("module-can", "can", &["can@0"]),
            polled("module-loopback", "loopback", &["jumper@0"]),
        ],
        broken: DW,
    },
    Board {
        name: "sabrelite",
        driver: Ok("spi-imx"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            // Another part in the place of the board's: Linux leaves the SST25VF016B locked (docs/judges.md).
            run("nor", "nor", &["flash@0=w25q32jv"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3002"]),
            run("touch", "touch", &["touch@0"]),
            run("loopback", "loopback", &["jumper@0"]),
            module("module-can", "can", &["can@0"]),
        ],
        broken: SOON,
    },
    Board {
        name: "sama5d36",
        driver: Ok("spi-atmel"),
        runs: &[
            // Below 517,647 Hz the driver goes on with SCBR = 0, which the manual forbids.
            Run { options: "slowest=600000", ..run("spidev", "spidev", &["spidev@0"]) },
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3204"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@0", "touch@1"]),
            run("can+adc", "can,adc", &["can@0", "adc@1"]),
            run("loopback", "loopback", &["jumper@0"]),
            Run { options: "slowest=600000", ..module("module-spidev", "spidev", &["spidev@0"]) },
            module("module-mute", "mute", &["spidev@0"]),
            module("module-nor", "nor", &["flash@0"]),
            module("module-can", "can", &["can@0"]),
            module("module-loopback", "loopback", &["jumper@0"]),
        ],
        broken: ATMEL,
    },
    Board {
        name: "unleashed",
        driver: Ok("spi-sifive"),
        // spi-sifive takes no chip select by GPIO.
        runs: &[
            run("spidev", "spidev", &["spidev@1"]),
            run("nor", "nor", &["flash@1"]),
            run("can", "can", &["can@1"]),
            run("adc", "adc", &["adc@1"]),
            run("touch", "touch", &["touch@1"]),
            // The clock that the block makes of this one is so much slower that the module's shortest time for a byte
            // has passed when the byte's last bit was captured: the guest's instructions take no time.
            run("loopback", "loopback", &["jumper@1=24900000"]),
            // On a GPIO, which spi-sifive does not take: on its native lines the block changes no speed within a message.
            module("module-spidev", "spidev", &["spidev@0"]),
            Run { options: "mute=2", ..module("module-mute", "mute", &["spidev@0"]) },
            module("module-nor", "nor", &["flash@1"]),
            module("module-can", "can", &["can@1"]),
            module("module-loopback", "loopback", &["jumper@1=24900000"]),
        ],
        broken: &[],
    },
    Board {
        name: "zynq",
        driver: Ok("spi-cadence"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@1"]),
            run("can", "can", &["can@2"]),
            run("adc", "adc", &["adc@3=mcp3208"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@1", "touch@0"]),
            run("can+adc", "can,adc", &["can@2", "adc@3"]),
            run("loopback", "loopback", &["jumper@1"]),
            // The slowest clock is 651 kHz, at which spi-cadence goes on where the module refuses.
            Run { options: "slowest=700000", ..module("module-spidev", "spidev", &["spidev@0"]) },
            module("module-mute", "mute", &["spidev@0"]),
            module("module-nor", "nor", &["flash@1"]),
            module("module-can", "can", &["can@2"]),
            polled("module-loopback", "loopback", &["jumper@1"]),
        ],
        broken: SOON,
    },
];
