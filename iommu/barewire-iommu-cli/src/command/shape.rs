//! The shape of a table, as asked on the command line.

use barewire_iommu::{Config, Geometry, Granule, Stage};

use crate::shared::failure::Failure;
use crate::shared::number;

/// The shape of a table.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The smallest page: 4k, 16k or 64k
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = granule)]
    pub(super) granule: Granule,
    /// The stage of translation: 1 (a device's virtual addresses) or 2 (a virtual machine's)
    #[arg(long, value_name = "1|2", default_value = "1", value_parser = stage)]
    pub(super) stage: Stage,
    /// Bits of an IOVA, 32 to 48: 64 less T0SZ (SMMU_CD, SMMU_CBn_TCR)
    #[arg(long, value_name = "BITS", default_value_t = 48, value_parser = number::count::<u8>)]
    pub(super) input_bits: u8,
    /// Bits of a physical address: 32, 36, 40, 42, 44 or 48 (IPS, PS, PASize)
    #[arg(long, value_name = "BITS", default_value_t = 48, value_parser = number::count::<u8>)]
    pub(super) output_bits: u8,
}

pub(super) fn granule(text: &str) -> Result<Granule, String> {
    match text.to_lowercase().as_str() {
        "4k" => Ok(Granule::Size4K),
        "16k" => Ok(Granule::Size16K),
        "64k" => Ok(Granule::Size64K),
        _ => Err("granules are 4k, 16k and 64k".into()),
    }
}

pub(super) fn stage(text: &str) -> Result<Stage, String> {
    match text {
        "1" => Ok(Stage::One),
        "2" => Ok(Stage::Two),
        _ => Err("stages are 1 and 2".into()),
    }
}

impl Shape {
    pub(super) fn config(&self) -> Config {
        Config {
            granule: self.granule,
            stage: self.stage,
            input_bits: self.input_bits,
            output_bits: self.output_bits,
            ..Config::default()
        }
    }

    pub(super) fn geometry(&self) -> Result<Geometry, Failure> {
        Geometry::new(self.config())
            .map_err(|error| Failure::Usage(format!("{error} (--input-bits, --output-bits)")))
    }
}

/// The stage as its number.
pub(super) fn stage_number(stage: Stage) -> u8 {
    match stage {
        Stage::One => 1,
        Stage::Two => 2,
    }
}
