//! The cases, as data.
//!
//! *Read first*: the crate's page. The shapes, lengths and offsets are those of Linux's
//! spi-loopback-test, so that a controller's driver there and here can be compared.

/// The page size that the page-crossing cases assume.
const PAGE: usize = 4096;
/// The lengths of every case.
pub const LENGTHS: &[usize] = &[
    0, 1, 2, 3, 7, 11, 16, 31, 32, 64, 97, 128, 251, 256, 1021, 1024, 1031, 4093, 4096, 4099,
    65_536, 65_537,
];
/// The lengths of the cases whose buffers have room for all.
pub const LENGTHS_MAX: &[usize] = &[
    0, 1, 2, 3, 7, 11, 16, 31, 32, 64, 97, 128, 251, 256, 1021, 1024, 1031, 4093, 4096, 4099,
    65_536, 65_537, 131_071, 131_072,
];
/// Offsets from 0 below this are tried.
const OFFSETS: usize = 4;

/// The place in its area where a buffer begins. The iteration's offset is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a fixed byte.
    At(usize),
    /// After a first buffer, which has the iteration's length.
    Second,
}

impl Place {
    pub(crate) fn at(self, len: usize) -> usize {
        match self {
            Place::At(at) => at,
            // Room for the largest offset between the two.
            Place::Second => len + OFFSETS,
        }
    }
}

/// One transfer of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Where its sent bytes are, if it sends.
    pub tx: Option<Place>,
    /// Where its received bytes go, if it receives.
    pub rx: Option<Place>,
    /// Its length; `None` is the iterated one.
    pub len: Option<usize>,
    /// The delay after it, in nanoseconds.
    pub delay_ns: u32,
}

/// A message's shape, and the part of it that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its name in reports.
    pub name: &'static str,
    /// Its transfers.
    pub shapes: &'static [Shape],
    /// The lengths iterated.
    pub lengths: &'static [usize],
    /// Whether offsets of sent bytes are varied.
    pub vary_tx: bool,
    /// Whether offsets of received bytes are varied.
    pub vary_rx: bool,
}

impl Case {
    /// The bytes of its message where `len` is the length iterated.
    #[must_use]
    pub fn bytes(&self, len: usize) -> usize {
        self.shapes.iter().map(|shape| shape.len.unwrap_or(len)).sum()
    }

    /// Every pair of offsets, sent and received.
    pub fn offsets(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let tx = if self.vary_tx { OFFSETS } else { 1 };
        let rx = if self.vary_rx { OFFSETS } else { 1 };
        (0..rx).flat_map(move |rx| (0..tx).map(move |tx| (tx, rx)))
    }
}

const fn tx(at: usize) -> Shape {
    Shape { tx: Some(Place::At(at)), rx: None, len: None, delay_ns: 0 }
}

const fn rx(at: usize) -> Shape {
    Shape { tx: None, rx: Some(Place::At(at)), len: None, delay_ns: 0 }
}

const fn both(at: usize) -> Shape {
    Shape { tx: Some(Place::At(at)), rx: Some(Place::At(at)), len: None, delay_ns: 0 }
}

const fn of_len(shape: Shape, len: usize) -> Shape {
    Shape { len: Some(len), ..shape }
}

const fn case(
    name: &'static str,
    shapes: &'static [Shape],
    lengths: &'static [usize],
    (vary_tx, vary_rx): (bool, bool),
) -> Case {
    Case { name, shapes, lengths, vary_tx, vary_rx }
}

const BOTH: (bool, bool) = (true, true);
const TX: (bool, bool) = (true, false);
const RX: (bool, bool) = (false, true);
const NEITHER: (bool, bool) = (false, false);

const SECOND_TX: Shape = Shape { tx: Some(Place::Second), rx: None, len: None, delay_ns: 0 };
const SECOND: Shape =
    Shape { tx: Some(Place::Second), rx: Some(Place::Second), len: None, delay_ns: 0 };
const MILLISECOND: u32 = 1_000_000;

/// Every case.
pub const CASES: &[Case] = &[
    case("full duplex at a page's start", &[both(0)], LENGTHS_MAX, BOTH),
    case("full duplex across a page's end", &[both(PAGE - 4)], LENGTHS, BOTH),
    case("send only", &[tx(0)], LENGTHS_MAX, TX),
    case("receive only", &[rx(0)], LENGTHS_MAX, RX),
    case("send twice, both vary", &[tx(0), SECOND_TX], LENGTHS, TX),
    case("send twice, the first varies", &[tx(64), of_len(tx(0), 1)], LENGTHS_MAX, TX),
    case("send twice, the second varies", &[of_len(tx(0), 16), tx(64)], LENGTHS_MAX, TX),
    case("send, then receive, both vary", &[tx(0), rx(0)], LENGTHS_MAX, TX),
    case("send, then receive 1, the first varies", &[tx(0), of_len(rx(0), 1)], LENGTHS_MAX, TX),
    case("send 1, then receive, the second varies", &[of_len(tx(0), 1), rx(0)], LENGTHS_MAX, TX),
    case("full duplex twice, both vary", &[both(0), SECOND], LENGTHS, TX),
    case("full duplex twice, the first varies", &[both(1024), of_len(both(0), 1)], LENGTHS_MAX, TX),
    case(
        "full duplex twice, the second varies",
        &[of_len(both(0), 1), both(1024)],
        LENGTHS_MAX,
        TX,
    ),
    case(
        "full duplex twice, 1 ms after each",
        &[Shape { delay_ns: MILLISECOND, ..both(0) }, Shape { delay_ns: MILLISECOND, ..SECOND }],
        LENGTHS_MAX,
        NEITHER,
    ),
    case(
        "three neighbours of 1, 512 and 1 bytes",
        &[of_len(both(0), 1), both(1), of_len(both(513), 1)],
        &[512],
        NEITHER,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_1801_iterations() {
        let iterations: usize =
            CASES.iter().map(|case| case.lengths.len() * case.offsets().count()).sum();
        assert_eq!((CASES.len(), iterations), (15, 1801));
    }
}
