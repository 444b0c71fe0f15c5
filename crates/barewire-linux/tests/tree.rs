//! Discovery, opening and mapping on a directory tree that stands for `/`.

#[path = "tree/ecspi.rs"]
mod ecspi;
#[path = "tree/tree.rs"]
mod fake;
#[path = "tree/interrupt.rs"]
mod interrupt;
#[path = "tree/map.rs"]
mod map;
#[path = "tree/open.rs"]
mod open;
