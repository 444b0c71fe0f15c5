//! Whether the converter is the part of `--chip`. Reading a converter as another part gives values that look
//! plausible and are wrong. For example, an MCP3008 sends 10 bits and then repeats them backwards; read as an
//! MCP3208, the first two repeated bits count as data.
//!
//! # How it works
//! A simulated board knows its converter. Any other is asked with `--probe`: see
//! [`barewire::chip::mcp3008::probe()`] for what the answer can tell and what not.

use barewire::chip::mcp3008::{Part, Probed, probe, probe_settings};
use barewire::spi::Mode;
use barewire_sim::board::spec::ChipSpec;

use super::AdcArgs;
use crate::shared::bus_name::{self, BusName};
use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::session::Session;

impl AdcArgs {
    /// Refuses a part that a simulated board does not have there.
    pub(super) fn check_board(&self) -> Result<(), Failure> {
        let bus = bus_name::parse(&self.bus).map_err(Failure::Usage)?;
        let BusName::Sim(options) = &bus else { return Ok(()) };
        let there = options.board.chip_at(self.chip_select()).and_then(ChipSpec::adc);
        match there.map(|adc| adc.part.name()).filter(|part| *part != self.chip.name) {
            Some(part) => Err(Failure::Failed(format!(
                "the converter of {bus} is an {part}; read as an {}, its codes would be wrong (--chip)",
                self.chip.name
            ))),
            None => Ok(()),
        }
    }

    /// Asks which part it is; the names of those that answer alike, none if it cannot be told. Fails if it is
    /// another one than `--chip`.
    pub(super) fn probe(
        &self,
        session: &Session,
        mode: Mode,
    ) -> Result<Vec<&'static str>, Failure> {
        let speed_hz = self.settings()?.speed_hz;
        let settings = probe_settings(self.chip_select(), speed_hz, self.vdd)?;
        let settings = settings.with_mode(settings.mode | mode);
        let mut device = session.open.bus().device(&settings)?;
        let alike = verdict(probe(&mut device)?, self.chip)?;
        if !session.silent {
            note!("--probe: {}", told(&alike, self.chip));
        }
        Ok(alike)
    }
}

fn told(alike: &[&str], chip: &Part) -> String {
    match alike {
        [] => format!(
            "the part cannot be told: every code is 0, so all inputs are at ground, or MISO is held low; taken \
             for an {}",
            chip.name
        ),
        [only] => format!("an {only}"),
        _ => format!("{}, which answer alike", alike.join(" or ")),
    }
}

/// The parts that the converter can be; none if that cannot be told.
fn verdict(probed: Probed, chip: &Part) -> Result<Vec<&'static str>, Failure> {
    match probed {
        Probed::Unknown => Ok(Vec::new()),
        Probed::OneOf(parts) => {
            let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
            if names.contains(&chip.name) {
                return Ok(names);
            }
            Err(Failure::Failed(format!(
                "the converter answers as an {} does; read as an {}, its codes would be wrong (--chip)",
                names.join(" or "),
                chip.name
            )))
        }
        Probed::NoPart { received: [a, b, c, d] } => Err(Failure::Failed(format!(
            "no converter of this family answers (received {a:02x} {b:02x} {c:02x} {d:02x}): check its chip \
             select, MISO and supply"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use barewire::chip::mcp3008::{MCP3002, MCP3004, MCP3008, MCP3204, MCP3208};

    use super::*;

    #[test]
    fn a_probe_fails_for_every_part_but_those_that_answer() {
        static ALIKE: [&Part; 2] = [&MCP3004, &MCP3008];
        let ten = Probed::OneOf(&ALIKE);
        for chip in [&MCP3004, &MCP3008] {
            assert_eq!(verdict(ten, chip), Ok(vec!["MCP3004", "MCP3008"]));
        }
        for chip in [&MCP3002, &MCP3204, &MCP3208] {
            let Err(Failure::Failed(error)) = verdict(ten, chip) else { panic!("{}", chip.name) };
            let expected =
                format!("answers as an MCP3004 or MCP3008 does; read as an {}", chip.name);
            assert!(error.contains(&expected), "{error}");
        }
        assert_eq!(verdict(Probed::Unknown, &MCP3208), Ok(vec![]));
        let nothing = verdict(Probed::NoPart { received: [0xff; 4] }, &MCP3208);
        assert!(matches!(nothing, Err(Failure::Failed(error)) if error.contains("ff ff ff ff")));
    }

    #[test]
    fn what_cannot_be_told_is_said() {
        assert_eq!(told(&["MCP3002"], &MCP3002), "an MCP3002");
        assert_eq!(
            told(&["MCP3004", "MCP3008"], &MCP3008),
            "MCP3004 or MCP3008, which answer alike"
        );
        assert!(told(&[], &MCP3208).contains("cannot be told"));
    }
}
