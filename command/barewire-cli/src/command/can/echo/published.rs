//! The figures of David Jander's "A new SPI API for fast, low-latency regmap peripheral access"
//! (linux-spi, 2022): an MCP2518FD at an i.MX8MP, 250 kbit/s, canecho there and cangen elsewhere.
//!
//! The times are from an oscilloscope; for most of them the author gives one figure and no spread. The shares of
//! processor time are from top: that of the interrupt thread that receives, and idle time; the lab takes them as shares
//! of the board's four processors, and says why. They and barewire's beside them are [`barewire_lab`]'s.

use barewire_lab::ours::{Beside, beside};

/// The kernels.
pub(super) const KERNELS: [&str; 3] = ["A", "B", "C"];

/// A line: its name, and the figure of each kernel.
type Line = (&'static str, [&'static str; 3]);

/// Of frames that come one by one.
const TIMES: [Line; 4] = [
    ("RX EOF to TX SOF", ["jander-rfc-gap-A", "jander-rfc-gap-B", "jander-rfc-gap-C"]),
    ("interrupt line low", ["jander-rfc-irq-A", "jander-rfc-irq-B", "jander-rfc-irq-C"]),
    ("CS to first clock", ["jander-rfc-cs2clk-A", "jander-rfc-cs2clk-B", "jander-rfc-cs2clk-C"]),
    (
        "CS high, 1st to 2nd access",
        ["jander-rfc-cshigh-A", "jander-rfc-cshigh-B", "jander-rfc-cshigh-C"],
    ),
];

/// Of a full bus.
const SHARES: [Line; 2] = [
    ("receiving, of 4 processors", ["jander-rfc-cpu-A", "jander-rfc-cpu-B", "jander-rfc-cpu-C"]),
    ("idle, of 4 processors", ["jander-rfc-idle-A", "jander-rfc-idle-B", "jander-rfc-idle-C"]),
];

/// Lines of published figures with what stands beside them.
pub(super) type Lines = Vec<(&'static str, Vec<Beside>)>;

fn lines(lines: &[Line]) -> Lines {
    lines.iter().map(|(name, ids)| (*name, beside(ids))).collect()
}

/// Those of frames that come one by one.
pub(super) fn times() -> Lines {
    lines(&TIMES)
}

/// Those of a full bus.
pub(super) fn shares() -> Lines {
    lines(&SHARES)
}
