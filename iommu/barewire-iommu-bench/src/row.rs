//! A row of the result: its names are an interface.

use serde::Serialize;

use crate::list::Layout;
use crate::subject::Implementation;

/// What was timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A list in one call.
    MapSg,
    /// All of it in one call.
    Unmap,
    /// All of it by calls that each cover less than a table: leaf by leaf, in tables that stay.
    UnmapLeaf,
}

impl Op {
    /// As the JSON writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::MapSg => "map_sg",
            Self::Unmap => "unmap",
            Self::UnmapLeaf => "unmap_leaf",
        }
    }
}

/// What one operation took.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Who did it.
    #[serde(rename = "impl")]
    pub implementation: Implementation,
    /// What.
    pub op: Op,
    /// How much.
    pub size: &'static str,
    /// The same in bytes.
    pub bytes: u64,
    /// How it lies.
    pub layout: Layout,
    /// Of barewire's unmap: what its invalidations were.
    pub strategy: Option<&'static str>,
    /// Nanoseconds of the whole size, the median of all rounds.
    pub ns_median: f64,
    /// Of the best round.
    pub ns_min: f64,
    /// The floor it is held against.
    pub floor: Implementation,
    /// The median of each round's own ratio.
    pub ratio_to_floor: f64,
    /// Commands to the TLB.
    pub invalidations: Option<u64>,
}
