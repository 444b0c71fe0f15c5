//! The judge of `barewire bound`, alone: `cargo run -p barewire-sim --release --example bound -- SCHEDULES [SEED]`.
//!
//! It is what `cargo xtask faults` runs on a tree with a planted fault.

#[path = "../tests/it/bound.rs"]
mod bound;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|it| it.parse().expect("a number"));
    let (schedules, seed) = (numbers.next().unwrap_or(500), numbers.next().unwrap_or(1));
    bound::judge(schedules, seed);
}
