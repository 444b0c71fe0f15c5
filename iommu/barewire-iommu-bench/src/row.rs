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
    /// The table work of [`MapSg`](Self::MapSg) alone.
    MapTable,
    /// The table work of [`Unmap`](Self::Unmap) alone: nothing is chosen, flushed or released.
    UnmapTable,
    /// `Domain::map_sg`.
    DomainMap,
    /// `Domain::unmap`, strict.
    DomainUnmap,
}

impl Op {
    /// The name in the JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::MapSg => "map_sg",
            Self::Unmap => "unmap",
            Self::UnmapLeaf => "unmap_leaf",
            Self::MapTable => "map_table",
            Self::UnmapTable => "unmap_table",
            Self::DomainMap => "domain_map",
            Self::DomainUnmap => "domain_unmap",
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
    /// The strictest floor for this operation.
    pub strict_floor: Implementation,
    /// The median of each round's ratio to the strictest floor.
    pub ratio_to_strict_floor: f64,
    /// For barewire's table work, the other crate with the smallest median.
    pub best_peer: Option<Implementation>,
    /// The median of each round's ratio to it.
    pub ratio_to_best_peer: Option<f64>,
    /// Of a domain's row: the operation without a domain that it is compared with.
    pub on_top_of: Option<Op>,
    /// The median of each round's difference to it, in nanoseconds.
    pub ns_on_top: Option<f64>,
    /// The difference to the row of table work alone, so this one contains flush, choice and
    /// release.
    pub ns_on_top_of_table: Option<f64>,
    /// Commands to the TLB.
    pub invalidations: Option<u64>,
}
