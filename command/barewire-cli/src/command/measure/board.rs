//! The simulated board beside which a machine stands.

use barewire_linux::map::Block;
use barewire_sim::BoardSpec;

use crate::shared::failure::Failure;

/// The shipped board whose controller is that block, on the SoC nearest to the machine's.
pub(super) fn like(block: Block, compatible: &[String]) -> &'static str {
    let has = |soc: &str| compatible.iter().any(|name| name.contains(soc));
    match block {
        Block::Ecspi if has("imx6dl") => "imx6dl",
        Block::Ecspi if has("imx6") => "sabrelite",
        Block::Ecspi => "imx8mp",
        Block::Bcm2835 => "rpi3",
        Block::Pl022 => "highbank",
        Block::Atmel => "sama5d36",
        Block::DwSsi => "rpi5",
        Block::SiFive => "unleashed",
        Block::Mcspi => "beaglebone",
        Block::Cadence => "zynq",
    }
}

/// That board.
pub(super) fn spec(name: &str) -> Result<&'static BoardSpec, Failure> {
    barewire_open::name::sim_board(name).map_err(Failure::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::measure::simulated;

    #[test]
    fn every_block_has_a_board_that_has_it() {
        for block in Block::ALL {
            for compatible in ["", "fsl,imx6q-sabrelite", "fsl,imx6dl-board"] {
                let name = like(block, &[compatible.into()]);
                let spec = BoardSpec::find(name).expect("a shipped board");
                assert_eq!(simulated::block(spec), Some(block), "{name}");
            }
        }
    }
}
