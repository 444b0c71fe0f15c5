//! A bus's name: a scheme, a colon, and the rest, which each scheme parses in its own way.
//!
//! Parsing is pure: nothing is opened here. A new scheme is one variant of [`BusName`], one row
//! of `SCHEMES`, a file in `kind`, and one arm each where `AnyBus` and `LocalBus` are opened.

mod oled;
mod qemu;
mod sim;
mod spidev;
mod wiring;

use std::fmt;
use std::str::Split;

use barewire_linux::bus_text;
use barewire_linux::map::MapSpec;
pub use oled::OledOptions;
pub use qemu::QemuName;
pub use sim::{FileUse, SimOptions, board as sim_board};
pub use spidev::SpidevName;
pub use wiring::WiringOptions;

use crate::files::NamedFile;
use crate::near;

/// A bus by name, not yet opened.
#[derive(Clone, Debug)]
pub enum BusName {
    /// `sim:BOARD[,option…]`
    Sim(SimOptions),
    /// `qemu:BOARD[,flash=FILE]`
    Qemu(QemuName),
    /// `spidev:/dev/spidevB.C`
    Spidev(SpidevName),
    /// `barewire:…`, `uio:…` or `mem:…`: a controller's registers in this process.
    Mapped(MapSpec),
    /// `null:`: a controller without registers, on which everything else is measured.
    Null,
}

type Parse = fn(&str) -> Result<BusName, String>;

/// The schemes there are.
const SCHEMES: &[(&str, Parse)] = &[
    ("sim", |rest| sim::parse(rest).map(BusName::Sim)),
    ("qemu", |rest| qemu::parse(rest).map(BusName::Qemu)),
    ("spidev", |rest| spidev::parse(rest).map(BusName::Spidev)),
    ("barewire", |rest| mapped(bus_text::parse_door(rest))),
    ("uio", |rest| mapped(bus_text::parse_uio(rest))),
    ("mem", |rest| mapped(bus_text::parse_mem(rest))),
    ("null", |rest| match rest {
        "" => Ok(BusName::Null),
        _ => Err(format!("no option {rest:?}: the null bus has none")),
    }),
];

fn mapped(spec: Result<MapSpec, bus_text::BusTextError>) -> Result<BusName, String> {
    spec.map(BusName::Mapped).map_err(|error| error.to_string())
}

/// Reads a bus name.
///
/// # Errors
/// The reason why the name is refused, with a similar known name if there is one.
pub fn parse(text: &str) -> Result<BusName, String> {
    let names: Vec<&str> = SCHEMES.iter().map(|(name, _)| *name).collect();
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(without_scheme(text));
    };
    match SCHEMES.iter().find(|(name, _)| *name == scheme) {
        Some((_, parse)) => parse(rest),
        None => Err(near::unknown("kind of bus", scheme, &names)),
    }
}

/// The error for a name without a scheme. The likeliest slip is a board or a node named without
/// one.
fn without_scheme(text: &str) -> String {
    let name = text.split(',').next().unwrap_or(text);
    if let Some(node) = spidev::node_in(name) {
        return format!("no bus is called {text:?}: did you mean \"spidev:{node}\"?");
    }
    let boards = barewire_sim::board::board_names();
    match near::nearest(name, &boards) {
        Some(board) => format!("no bus is called {text:?}: did you mean \"sim:{board}\"?"),
        None => {
            let sim = boards.iter().map(|board| format!("sim:{board}"));
            let qemu = qemu::board_names().into_iter().map(|board| format!("qemu:{board}"));
            let known: Vec<String> =
                sim.chain(qemu).chain(["spidev:/dev/spidevB.C".into()]).collect();
            format!("no bus is called {text:?}: buses are {}", known.join(", "))
        }
    }
}

impl BusName {
    /// The files that its options name.
    pub fn files(&self) -> Vec<NamedFile<'_>> {
        match self {
            BusName::Sim(options) => options.files(),
            BusName::Qemu(name) => {
                name.flash.iter().map(|path| NamedFile { by: "flash=", path }).collect()
            }
            BusName::Spidev(_) | BusName::Mapped(_) | BusName::Null => Vec::new(),
        }
    }
}

/// Reads `option[=value]`s, each of them `known` and given at most once.
fn read_options(
    parts: Split<'_, char>,
    known: &[&str],
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let mut given = Vec::new();
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        if !known.contains(&key) {
            return Err(near::unknown("option", key, known));
        }
        if given.contains(&key) {
            return Err(format!("option {key} is given twice"));
        }
        given.push(key);
        set(key, value).map_err(|error| format!("option {key}: {error}"))?;
    }
    Ok(())
}

impl fmt::Display for BusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusName::Sim(options) => write!(f, "sim:{}", options.board.name),
            BusName::Qemu(name) => write!(f, "qemu:{}", name.board.name),
            BusName::Spidev(name) => write!(f, "spidev:{}", name.path.display()),
            BusName::Mapped(spec) => spec.fmt(f),
            BusName::Null => f.write_str("null:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use barewire_linux::map::Block;

    use barewire_sim::model::bcm2835::Done;
    use barewire_sim::model::gpio::pl061::InputLevel;

    use super::sim::SimFaults;
    use barewire_sim::model::ecspi::Readings;

    use barewire_sim::random::SplitMix64;

    use super::*;

    fn sim(text: &str) -> SimOptions {
        match parse(text) {
            Ok(BusName::Sim(options)) => options,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn error(text: &str) -> String {
        parse(text).expect_err(text)
    }

    #[test]
    fn options_are_read() {
        let options = sim("sim:imx8mp,flash=a b.bin,protect=all,jitter-ns=20,seed=0x10");
        assert_eq!(options.board.name, "imx8mp");
        assert_eq!(options.flash.as_deref(), Some(std::path::Path::new("a b.bin")));
        assert_eq!((options.status, options.jitter_ns, options.seed), (Some(0x3c), 20, 16));
        assert_eq!(options.faults, SimFaults::default());
        let options = sim("sim:rpi3,done=needed").board_options();
        assert_eq!((options.blocks.get(), options.blocks.get()), (Done::Needed, InputLevel::Lost));
        let options = sim("sim:highbank,input-level=kept").board_options();
        assert_eq!(
            (options.blocks.get(), options.blocks.get()),
            (Done::ReadOnly, InputLevel::Kept)
        );
        let options = sim("sim:sabrelite,protect=0x1c,fault=stuck-busy+power-loss-program:7");
        assert_eq!(options.status, Some(0x1c));
        assert!(options.faults.chip.stuck_busy && !options.faults.timing_corrupts);
        assert_eq!(options.faults.chip.power_loss_in_program, Some(7));
        assert_eq!(sim("sim:imx8mp,protect=none").status, Some(0));
        let options = sim("sim:imx8mp,protect=all,flash-part=mt25qu256a");
        assert_eq!(
            (options.of_flash(&options.board.flash()).0.name, options.status),
            ("MT25QU256A", Some(0x5c))
        );
        let options = sim("sim:imx8mp");
        assert_eq!(options.of_flash(&options.board.flash()).0.name, "W25Q256JV");
        assert!(sim("sim:imx8mp,fault=timing-corrupts").faults.timing_corrupts);
        let text = "sim:sabrelite,xch=fifo-empty,tc=fifo-empty,dry=needs-xch,start-delay-ns=700";
        assert_eq!(sim(text).ecspi, Readings::each(700_000)[15]);
        assert_eq!(sim("sim:imx8mp,xch=word-end,dry=stalls").ecspi, Readings::default());
        assert_eq!(sim(text).board_options().blocks.get::<Readings>(), sim(text).ecspi);
        let name = parse("sim:sabrelite,seed=3").expect("parses").to_string();
        assert_eq!(name, "sim:sabrelite", "options are no part of the name");
    }

    #[test]
    fn the_other_kinds_are_read() {
        match parse("qemu:sabrelite,flash=a b.bin") {
            Ok(BusName::Qemu(QemuName { board, flash: Some(path) })) => {
                assert_eq!((board.name, path.as_path()), ("sabrelite", "a b.bin".as_ref()));
            }
            other => panic!("{other:?}"),
        }
        match parse("spidev:/dev/spidev3.1") {
            Ok(BusName::Spidev(SpidevName { path })) => {
                assert_eq!(path.as_path(), std::path::Path::new("/dev/spidev3.1"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mapped_controllers_are_read() {
        let text = "mem:0x30820000,reference-hz=80M,cs=gpio@0x30240000.9";
        let name = parse(text).expect("parses");
        assert!(matches!(name, BusName::Mapped(_)));
        assert_eq!(name.to_string(), "mem:0x30820000");
        assert!(parse("uio:uio0,reference-hz=60M,cs=native0").is_ok());
        for text in ["barewire:0", "barewire:/dev/barewire0,shared"] {
            assert_eq!(parse(text).expect("parses").to_string(), "barewire:0");
        }
        assert!(error("barewire:0,reference-hz=80M").contains("the kernel knows it"));
        assert!(error("barewire:uio0").contains("write 0 or /dev/barewire0"));
        assert!(error("barewir:0").contains("did you mean \"barewire\"?"));
        assert!(error("mem:0x30820000,cs=line0,reference-hz=80M").contains("is for barewire:N"));
        assert!(error("mem:0x30820000,refrence-hz=80M").contains("reference-hz"));
        let text = "mem:0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8";
        match parse(text) {
            Ok(BusName::Mapped(spec)) => assert_eq!(spec.block, Block::Bcm2835),
            other => panic!("{other:?}"),
        }
        assert!(error("uio:uio0,controller=bcm2853").contains("did you mean \"bcm2835\"?"));
        assert!(error("uio:uio0,controler=atmel").contains("did you mean \"controller\"?"));
    }

    #[test]
    fn unknown_names_come_with_the_near_one_and_the_list() {
        for (text, part) in [
            ("sim:imx8m", "did you mean \"imx8mp\"? (known: beaglebone, "),
            ("simm:imx8mp", "did you mean \"sim\"?"),
            ("imx8mp", "did you mean \"sim:imx8mp\"?"),
            ("sabrelite,seed=1", "did you mean \"sim:sabrelite\"?"),
            ("/dev/spidev0.0", "did you mean \"spidev:/dev/spidev0.0\"?"),
            ("spidev1.0", "did you mean \"spidev:/dev/spidev1.0\"?"),
            ("/dev/null", "sim:zynq, qemu:sabrelite, qemu:highbank, "),
            ("qemu:sabrelight", "no QEMU board \"sabrelight\": did you mean \"sabrelite\"?"),
            ("qemu:", "known: sabrelite"),
            ("qemu:sabrelite,flsh=x", "did you mean \"flash\"?"),
            ("qemu:sabrelite,flash=", "flash=FILE"),
            ("qemu:sabrelite,flash=a,flash=b", "twice"),
            ("spidev:", "name a node: spidev:/dev/spidevB.C"),
            ("spidev:0.1", "did you mean \"spidev:/dev/spidev0.1\"?"),
            ("spidev:spidev2.0", "did you mean \"spidev:/dev/spidev2.0\"?"),
            ("spidev:/dev/spidev0.0,split", "no option \"split\": a spidev node has none"),
            ("", "buses are sim:beaglebone"),
            ("sim:", "known: beaglebone"),
            ("sim:imx8mp,flahs=x", "did you mean \"flash\"? (known: flash, flash-part, protect"),
            ("sim:imx8mp,", "no option \"\""),
            ("sim:imx8mp,flash=", "flash"),
            ("sim:imx8mp,flash", "flash=FILE"),
            ("sim:imx8mp,flash-part=sst26vf64b", "did you mean \"sst26vf064b\"? (known: w25q32jv"),
            ("sim:imx8mp,flash-part", "no flash part \"\""),
            ("sim:imx8mp,seed=1,seed=2", "twice"),
            ("sim:imx8mp,protect=some", "all, none or 0x and a status byte"),
            ("sim:imx8mp,protect=0x123", "all, none or 0x and a status byte"),
            ("sim:imx8mp,fault=stuck-bussy", "did you mean \"stuck-busy\"?"),
            ("sim:imx8mp,fault=stuck-busy:3", "takes no number"),
            ("sim:imx8mp,fault=power-loss-erase:x", "not a number"),
            ("sim:imx8mp,fault=", "no fault \"\""),
            ("sim:imx8mp,done=needed", "done is about BCM2835's SPI0, which imx8mp has not"),
            ("sim:rpi3,done=maybe", "is neither read-only nor needed"),
            ("sim:rpi3,input-level=kept", "input-level is about PL061, which rpi3 has not"),
            ("sim:highbank,input-level=high", "is neither lost nor kept"),
            ("sim:imx8mp,jitter-ns=1e3", "not a number"),
            ("sim:imx8mp,jitter-ns=1000001", "more than 1000000"),
            ("sim:imx8mp,xch=never", "\"never\" is not word-end or fifo-empty"),
            ("sim:imx8mp,tc=", "\"\" is not word-end or fifo-empty"),
            ("sim:imx8mp,dry=up", "\"up\" is not stalls or needs-xch"),
            ("sim:imx8mp,start-delay-ns=1000001", "more than 1000000"),
            ("sim:rpi3,xch=fifo-empty", "about ECSPI, which rpi3 has not"),
            ("sim:rpi3,oled=0:24", "option oled: \"\" is no number of a GPIO pin"),
            ("sim:rpi3,select=1", "option select: \"\" is no number of a GPIO pin: write CS:PIN"),
            (
                "sim:rpi3,select=1:40",
                "pin 40 is out of a program's reach: a GPIO chip has the pins 0 to 31",
            ),
            ("sim:rpi3,select=0:25+1:25", "pin 25 is given twice: two chips would answer at once"),
            ("sim:rpi3,no-cs=1", "option no-cs: it takes no value"),
            ("sim:rpi3,jumper", "option jumper: \"\" is no number of a chip select"),
            ("sim:rpi3,wire=20:21+21:22", "pin 21 cannot follow one pin and be another's"),
            (
                "sim:sabrelite,jumper=0,flash=x",
                "jumper=0 is in the place of the flash: leave flash= out",
            ),
        ] {
            let error = error(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn no_string_makes_it_panic() {
        const PIECES: &[&str] = &[
            "sim",
            "qemu",
            "spidev",
            "/dev/spidev",
            "0.",
            "split-with-cs-held",
            ":",
            "imx8mp",
            "sabrelite",
            ",",
            "=",
            "+",
            "flash",
            "flash-part=",
            "mx25l3233f",
            "protect",
            "fault",
            "seed",
            "costs",
            "jitter-ns",
            "xch",
            "dry",
            "fifo-empty",
            "start-delay-ns",
            "all",
            "none",
            "0x",
            "3c",
            "stuck-busy",
            "power-loss-program",
            "9",
            "é",
            "\0",
            " ",
            "18446744073709551616",
            "-",
            "K",
            "timing-corrupts",
            "select=",
            "no-cs",
            "jumper=",
            "wire=",
            "barewire",
            "line",
            "uio",
            "mem",
            "uio0",
            "controller",
            "controller=",
            "ecspi",
            "bcm2835",
            "pl022",
            "atmel",
            "pipe",
            "pipe=one-word",
            "reference-hz=1",
            "cs=",
            "native",
            "gpio@0x1000.",
            "gpio@0x1000:",
            "gpio@label:",
            ":high",
            "unsafe-shared",
            "node=",
            "poll-limit-us",
            "ignore-clock",
            "shared",
            "exclusive",
        ];
        const BEGINNINGS: [&str; 4] =
            ["", "sim:imx8mp,", "uio:uio0,cs=native0,", "mem:0x3f204000,controller="];
        // Any generator with a fixed seed will do.
        let mut random = SplitMix64::new(1);
        for _ in 0..20_000 {
            let beginning = random.next_u64() as usize % BEGINNINGS.len();
            let mut text = String::from(BEGINNINGS[beginning]);
            for _ in 0..random.next_u64() % 12 {
                text += PIECES[random.next_u64() as usize % PIECES.len()];
            }
            if let Err(error) = parse(&text) {
                assert!(!error.is_empty(), "{text:?}");
            }
        }
    }
}
