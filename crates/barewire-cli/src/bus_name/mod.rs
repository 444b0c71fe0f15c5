//! What stands after `--bus`: a scheme, a colon, and what the scheme makes of the rest.
//!
//! Parsing is pure: nothing is opened here. A new scheme is one variant of [`BusName`], one row
//! of [`SCHEMES`], and one arm in `session::open`.

mod sim;

use std::fmt;

pub(crate) use sim::SimOptions;

use crate::text::near;

/// What is taken when nobody names a bus.
pub(crate) const DEFAULT: &str = "sim:imx8mp";

/// A bus by name, not yet opened.
#[derive(Clone, Debug)]
pub(crate) enum BusName {
    /// `sim:BOARD[,option…]`
    Sim(SimOptions),
}

type Parse = fn(&str) -> Result<BusName, String>;

/// The schemes there are.
const SCHEMES: &[(&str, Parse)] = &[("sim", |rest| sim::parse(rest).map(BusName::Sim))];

/// Reads a bus name.
pub(crate) fn parse(text: &str) -> Result<BusName, String> {
    let names: Vec<&str> = SCHEMES.iter().map(|(name, _)| *name).collect();
    let Some((scheme, rest)) = text.split_once(':') else {
        // A board without its scheme is the likeliest slip.
        let boards = sim::board_names();
        let board = text.split(',').next().unwrap_or(text);
        return Err(match near::nearest(board, &boards) {
            Some(board) => format!("no bus is called {text:?}: did you mean \"sim:{board}\"?"),
            None => format!(
                "no bus is called {text:?}: buses are {}",
                boards.map(|board| format!("sim:{board}")).join(", ")
            ),
        });
    };
    match SCHEMES.iter().find(|(name, _)| *name == scheme) {
        Some((_, parse)) => parse(rest),
        None => Err(near::unknown("kind of bus", scheme, &names)),
    }
}

impl fmt::Display for BusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BusName::Sim(options) => write!(f, "sim:{}", options.board.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sim::SimFaults;
    use super::*;

    fn sim(text: &str) -> SimOptions {
        match parse(text) {
            Ok(BusName::Sim(options)) => options,
            Err(error) => panic!("{text}: {error}"),
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
        let options = sim("sim:sabrelite,protect=0x1c,fault=stuck-busy+power-loss-program:7");
        assert_eq!(options.status, Some(0x1c));
        assert!(options.faults.chip.stuck_busy && !options.faults.timing_corrupts);
        assert_eq!(options.faults.chip.power_loss_in_program, Some(7));
        assert_eq!(sim("sim:imx8mp,protect=none").status, Some(0));
        assert!(sim("sim:imx8mp,fault=timing-corrupts").faults.timing_corrupts);
        let name = parse("sim:sabrelite,seed=3").expect("parses").to_string();
        assert_eq!(name, "sim:sabrelite", "options are no part of the name");
        assert!(parse(DEFAULT).is_ok());
    }

    #[test]
    fn unknown_names_come_with_the_near_one_and_the_list() {
        for (text, part) in [
            ("sim:imx8m", "did you mean \"imx8mp\"? (known: imx8mp, sabrelite)"),
            ("simm:imx8mp", "did you mean \"sim\"?"),
            ("imx8mp", "did you mean \"sim:imx8mp\"?"),
            ("sabrelite,seed=1", "did you mean \"sim:sabrelite\"?"),
            ("/dev/spidev0.0", "buses are sim:imx8mp, sim:sabrelite"),
            ("", "buses are sim:imx8mp"),
            ("sim:", "known: imx8mp"),
            ("sim:imx8mp,flahs=x", "did you mean \"flash\"? (known: flash, protect"),
            ("sim:imx8mp,", "no option \"\""),
            ("sim:imx8mp,flash=", "flash"),
            ("sim:imx8mp,flash", "flash=FILE"),
            ("sim:imx8mp,seed=1,seed=2", "twice"),
            ("sim:imx8mp,protect=some", "all, none or 0x and a status byte"),
            ("sim:imx8mp,protect=0x123", "all, none or 0x and a status byte"),
            ("sim:imx8mp,fault=stuck-bussy", "did you mean \"stuck-busy\"?"),
            ("sim:imx8mp,fault=stuck-busy:3", "takes no number"),
            ("sim:imx8mp,fault=power-loss-erase:x", "not a number"),
            ("sim:imx8mp,fault=", "no fault \"\""),
            ("sim:imx8mp,jitter-ns=1e3", "not a number"),
        ] {
            let error = error(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    /// SplitMix64: any generator with a fixed seed will do.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    #[test]
    fn no_string_makes_it_panic() {
        const PIECES: &[&str] = &[
            "sim",
            ":",
            "imx8mp",
            "sabrelite",
            ",",
            "=",
            "+",
            "flash",
            "protect",
            "fault",
            "seed",
            "jitter-ns",
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
        ];
        let mut state = 1;
        for _ in 0..20_000 {
            let mut text: String =
                if random(&mut state).is_multiple_of(2) { "sim:imx8mp," } else { "" }.into();
            for _ in 0..random(&mut state) % 12 {
                text += PIECES[random(&mut state) as usize % PIECES.len()];
            }
            if let Err(error) = parse(&text) {
                assert!(!error.is_empty(), "{text:?}");
            }
        }
    }
}
