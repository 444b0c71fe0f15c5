//! Discovery, opening and mapping on a directory tree that stands for `/`.

#[path = "tree/atmel.rs"]
mod atmel;
#[path = "tree/bcm2835.rs"]
mod bcm2835;
#[path = "tree/dw_ssi.rs"]
mod dw_ssi;
#[path = "tree/ecspi.rs"]
mod ecspi;
#[path = "tree/every.rs"]
mod every;
#[path = "tree/tree.rs"]
mod fake;
#[path = "tree/gpio.rs"]
mod gpio;
#[path = "tree/interrupt.rs"]
mod interrupt;
#[path = "tree/kernel.rs"]
mod kernel;
#[path = "tree/map.rs"]
mod map;
#[path = "tree/nodes.rs"]
mod nodes;
#[path = "tree/open.rs"]
mod open;
#[path = "tree/pl022.rs"]
mod pl022;
#[path = "tree/sifive.rs"]
mod sifive;
