//! Text in and out: numbers, hex, near names, figures for people.

pub(crate) mod figure;
pub(crate) mod hex;

pub(crate) use barewire_open::{near, number};
