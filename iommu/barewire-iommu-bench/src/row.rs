//! A row of the result. Its names are an interface: scripts read them.

use serde::Serialize;

use crate::list::Layout;
use crate::subject::Implementation;

/// The operation that was timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Maps a list in one call.
    MapSg,
    /// Unmaps all of it in one call.
    Unmap,
    /// Unmaps all of it in calls that each cover less than a table: leaf by leaf, and the tables
    /// stay.
    UnmapLeaf,
}

impl Op {
    /// The name in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::MapSg => "map_sg",
            Self::Unmap => "unmap",
            Self::UnmapLeaf => "unmap_leaf",
        }
    }
}

/// The times of one operation.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The contestant.
    #[serde(rename = "impl")]
    pub implementation: Implementation,
    /// The operation.
    pub op: Op,
    /// The size.
    pub size: &'static str,
    /// The size in bytes.
    pub bytes: u64,
    /// The layout of the pages.
    pub layout: Layout,
    /// For barewire's unmap, how it invalidates.
    pub strategy: Option<&'static str>,
    /// Nanoseconds for the whole size, the median of all rounds.
    pub ns_median: f64,
    /// Nanoseconds of the best round.
    pub ns_min: f64,
    /// The floor it is compared with.
    pub floor: Implementation,
    /// The median of each round's ratio to the floor.
    pub ratio_to_floor: f64,
    /// Commands to the TLB.
    pub invalidations: Option<u64>,
}
