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
    /// More of the kernel's command line.
    pub(super) options: &'static str,
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
    Run { name, checks, chips, options: "" }
}

const EARLY: &str =
    "spi-imx deselects when the last word is received, half a period of SCK before its end";
const IMX: &[(&str, &str)] = &[("sck_idle", EARLY), ("cs_hold", EARLY)];

/// All boards.
pub(super) static BOARDS: [Board; 8] = [
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
        ],
        broken: IMX,
    },
    Board {
        name: "imx8mp",
        driver: Ok("spi-imx"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@2"]),
            run("adc", "adc", &["adc@2"]),
            run("touch", "touch", &["touch@3"]),
            run("nor+touch", "nor,touch", &["flash@0", "touch@3"]),
            run("can+adc", "can,adc", &["can@2", "adc@3"]),
            run("loopback", "loopback", &["jumper@0"]),
        ],
        broken: IMX,
    },
    Board {
        name: "rpi3",
        driver: Ok("spi-bcm2835"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@1"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3208"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@1", "touch@0"]),
            run("can+adc", "can,adc", &["can@0", "adc@1"]),
            run("loopback", "loopback", &["jumper@0"]),
        ],
        broken: &[],
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
        ],
        broken: &[],
    },
    Board {
        name: "sabrelite",
        driver: Ok("spi-imx"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3002"]),
            run("touch", "touch", &["touch@0"]),
            run("loopback", "loopback", &["jumper@0"]),
        ],
        broken: IMX,
    },
    Board {
        name: "sama5d36",
        driver: Ok("spi-atmel"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@0"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0=mcp3204"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@0", "touch@1"]),
            run("can+adc", "can,adc", &["can@0", "adc@1"]),
            run("loopback", "loopback", &["jumper@0"]),
        ],
        broken: &[],
    },
    Board {
        name: "unleashed",
        driver: Ok("spi-sifive"),
        runs: &[
            run("spidev", "spidev", &["spidev@0"]),
            run("nor", "nor", &["flash@1"]),
            run("can", "can", &["can@0"]),
            run("adc", "adc", &["adc@0"]),
            run("touch", "touch", &["touch@0"]),
            run("nor+touch", "nor,touch", &["flash@1", "touch@0"]),
            run("can+adc", "can,adc", &["can@0", "adc@1"]),
            run("loopback", "loopback", &["jumper@0"]),
        ],
        broken: &[],
    },
];
