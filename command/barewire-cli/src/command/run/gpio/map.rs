//! `--map-gpio CHIP=BUS`: which GPIO chip's lines are the pins of which simulated board.

use std::str::FromStr;

use barewire_spidev_abi::gpio::ChipName;

use crate::shared::failure::Failure;

/// One `--map-gpio`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GpioMap {
    /// The chip.
    pub(crate) chip: ChipName,
    /// The bus, as `--bus` takes it: a simulated board.
    pub(crate) bus: String,
}

impl FromStr for GpioMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, bus) =
            text.split_once('=').ok_or("a map is CHIP=BUS, for example /dev/gpiochip0=sim:rpi3")?;
        let chip = ChipName::parse(path)
            .ok_or_else(|| format!("{path:?} is no GPIO chip: those are /dev/gpiochipN"))?;
        if !bus.starts_with("sim:") {
            return Err(format!(
                "{bus:?} is no simulated board: only a simulated board's pins can be mapped; a program \
                 reaches the machine's own lines without a map"
            ));
        }
        Ok(Self { chip, bus: bus.into() })
    }
}

/// Refuses two chips of one name, and two of one board: a line has one state.
pub(crate) fn check(maps: &[GpioMap]) -> Result<(), Failure> {
    for (index, map) in maps.iter().enumerate() {
        let path = map.chip.path();
        for before in &maps[..index] {
            if before.chip == map.chip {
                return Err(Failure::Usage(format!("--map-gpio {path}: it is mapped twice")));
            }
            if before.bus == map.bus {
                let other = before.chip.path();
                return Err(Failure::Usage(format!(
                    "--map-gpio {path}: the pins of {} are {other} already",
                    map.bus
                )));
            }
        }
    }
    Ok(())
}

/// A likely slip of the user: a GPIO chip is mapped to a board without a node, while a node is on such a
/// board under a different text.
pub(crate) fn likely_slip<'m>(gpio: &'m [GpioMap], buses: &[&'m str]) -> Option<String> {
    let board = |bus: &'m str| bus.split(',').next().unwrap_or(bus);
    let alone = gpio.iter().filter(|map| !buses.contains(&map.bus.as_str()));
    let mut pairs = alone.filter_map(|map| {
        let other = buses.iter().find(|bus| board(bus) == board(&map.bus))?;
        Some(format!(
            "the lines of {} are those of {}, another board than {other}, because the texts differ",
            map.chip.path(),
            map.bus
        ))
    });
    pairs.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_a_chip_and_a_simulated_board() {
        let map: GpioMap = "/dev/gpiochip4=sim:rpi5,seed=3".parse().expect("parses");
        assert_eq!(map, GpioMap { chip: ChipName(4), bus: "sim:rpi5,seed=3".into() });
        for text in [
            "/dev/gpiochip0",
            "/dev/gpiochip=sim:rpi3",
            "/dev/spidev0.0=sim:rpi3",
            "/dev/gpiochip0=mem:0x3f204000",
            "/dev/gpiochip0=qemu:sabrelite",
            "/dev/gpiochip0=rpi3",
        ] {
            assert!(text.parse::<GpioMap>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_chip_and_a_board_are_mapped_once() {
        let maps = |texts: &[&str]| -> Vec<GpioMap> {
            texts.iter().map(|text| text.parse().expect("parses")).collect()
        };
        let good = maps(&["/dev/gpiochip0=sim:rpi3", "/dev/gpiochip1=sim:rpi3,seed=1"]);
        assert_eq!(check(&good), Ok(()), "two boards");
        let name = maps(&["/dev/gpiochip0=sim:rpi3", "/dev/gpiochip0=sim:imx8mp"]);
        assert!(check(&name).is_err());
        let board = maps(&["/dev/gpiochip0=sim:rpi3", "/dev/gpiochip1=sim:rpi3"]);
        assert!(check(&board).is_err());
    }

    #[test]
    fn boards_that_differ_in_their_text_alone_are_told() {
        let map: Vec<GpioMap> = vec!["/dev/gpiochip0=sim:rpi3".parse().expect("parses")];
        assert_eq!(likely_slip(&map, &["sim:rpi3"]), None);
        assert_eq!(likely_slip(&map, &["sim:imx8mp", "sim:rpi3"]), None);
        assert_eq!(likely_slip(&map, &["sim:rpi5"]), None);
        let told = likely_slip(&map, &["sim:rpi3,oled=0:24:25"]).expect("a slip");
        assert!(told.contains("another board than sim:rpi3,oled=0:24:25"), "{told}");
    }
}
