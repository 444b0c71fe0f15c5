//! `--map NODE=BUS[,cs=N]`: which node is which chip select of which bus.

use std::str::FromStr;

use barewire_spidev_abi::NodeName;

use crate::shared::failure::Failure;

/// One `--map`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    /// The node.
    pub(crate) node: NodeName,
    /// The bus, as `--bus` takes it.
    pub(crate) bus: String,
    /// The chip select on it: the node's own unless told.
    pub(crate) chip_select: u8,
}

impl FromStr for Map {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (path, bus) = text
            .split_once('=')
            .ok_or("a map is NODE=BUS[,cs=N], for example /dev/spidev0.0=sim:rpi3,cs=1")?;
        let node = NodeName::parse(path)
            .ok_or_else(|| format!("{path:?} is no spidev node: those are /dev/spidevB.C"))?;
        let mut chip_select = node.chip_select;
        // The `cs=` of a mapped controller names lines, not a number.
        let mut options = Vec::new();
        for option in bus.split(',') {
            match option.strip_prefix("cs=").map(str::parse) {
                Some(Ok(number)) => chip_select = number,
                _ => options.push(option),
            }
        }
        Ok(Self { node, bus: options.join(","), chip_select })
    }
}

/// Refuses two nodes of one name, and two of one chip: each has settings of its own.
pub(super) fn check(maps: &[Map]) -> Result<(), Failure> {
    for (index, map) in maps.iter().enumerate() {
        let path = map.node.path();
        for before in &maps[..index] {
            if before.node == map.node {
                return Err(Failure::Usage(format!("--map {path}: this node is mapped twice")));
            }
            if before.bus == map.bus && before.chip_select == map.chip_select {
                return Err(Failure::Usage(format!(
                    "--map {path}: chip select {} of {} is {} already",
                    map.chip_select,
                    map.bus,
                    before.node.path(),
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Result<Map, String> {
        text.parse()
    }

    #[test]
    fn a_map_has_a_node_a_bus_and_a_chip_select() {
        for (text, bus, chip_select) in [
            ("/dev/spidev0.1=sim:rpi3", "sim:rpi3", 1),
            ("/dev/spidev0.0=sim:rpi3,cs=1", "sim:rpi3", 1),
            ("/dev/spidev0.0=sim:rpi3,cs=2,flash=x,seed=1", "sim:rpi3,flash=x,seed=1", 2),
            (
                "/dev/spidev0.0=mem:0x3f204000,cs=gpio@0x3f200000.8,cs=0",
                "mem:0x3f204000,cs=gpio@0x3f200000.8",
                0,
            ),
            ("/dev/spidev0.0=uio:uio0,cs=native0", "uio:uio0,cs=native0", 0),
        ] {
            let map = map(text).expect("parses");
            assert_eq!((map.bus.as_str(), map.chip_select), (bus, chip_select), "{text}");
        }
        for text in ["/dev/spidev0.0", "/dev/null=sim:rpi3", "/dev/spidev0=sim:rpi3", "sim:rpi3"] {
            assert!(map(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_node_and_a_chip_are_mapped_once() {
        let maps = |texts: &[&str]| -> Vec<Map> {
            texts.iter().map(|text| map(text).expect("parses")).collect()
        };
        assert_eq!(check(&maps(&["/dev/spidev0.0=sim:rpi3", "/dev/spidev0.1=sim:rpi3"])), Ok(()));
        assert_eq!(
            check(&maps(&["/dev/spidev0.0=sim:rpi3,seed=1", "/dev/spidev1.0=sim:rpi3,seed=2"])),
            Ok(()),
            "two boards"
        );
        let twice = maps(&["/dev/spidev0.0=sim:rpi3", "/dev/spidev0.0=sim:imx8mp"]);
        assert!(check(&twice).is_err());
        let chip = maps(&["/dev/spidev0.0=sim:rpi3", "/dev/spidev1.0=sim:rpi3"]);
        assert!(check(&chip).is_err());
    }
}
