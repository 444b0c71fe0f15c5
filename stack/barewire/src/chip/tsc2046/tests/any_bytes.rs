//! Runs the fuzz target's module on fixed strings of bytes.

use super::any::drive;
use crate::chip::testing::bytes;

#[test]
fn whatever_the_chip_answers_every_call_ends_with_sense_or_an_error() {
    let rounds = if cfg!(miri) { 2 } else { 3_000 };
    drive(&[]);
    for seed in 1..=rounds {
        for plain in [0, 128, 230] {
            drive(&bytes(seed, plain));
        }
    }
}
