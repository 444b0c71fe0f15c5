//! The accesses to a board's registers, in the order in which they were made.
//!
//! # How it works
//! The board notes each access ([`Board::start_accesses`](crate::Board::start_accesses)), and
//! [`Board::take_accesses`](crate::Board::take_accesses) hands over those noted so far.
//! [`Access::told`] formats one for people, with its register's name from the manual; [`listed`]
//! writes many, equal reads in a row as one line.

use std::fmt::Write as _;

use super::BoardSpec;
use crate::chip::{PS_PER_NS, Ps};

/// Enough for a polled message of 64 KiB.
pub const MANY_ACCESSES: usize = 1 << 22;

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// When it acted: a write on arrival, a read at the end of its round trip.
    pub at: Ps,
    /// The block: 0 is the controller, the GPIO banks follow in the order of [`BoardSpec::gpio`].
    pub block: u8,
    /// The register's offset in the block.
    pub offset: u32,
    /// The value written or read.
    pub value: u32,
    /// Whether it was a write.
    pub write: bool,
}

impl Access {
    /// The register, by its name or else its offset, an arrow (`<-` written, `->` read), and the value.
    #[must_use]
    pub fn told(&self, spec: &BoardSpec) -> String {
        let Self { block, offset, value, write, .. } = *self;
        let arrow = if write { "<-" } else { "->" };
        match spec.register_name(block, offset) {
            Some(register) => format!("{register:<11} {arrow} {value:08x}"),
            None => format!("{offset:<#11x} {arrow} {value:08x}"),
        }
    }
}

/// Lines in their order; consecutive equal reads become one, followed by their number.
pub fn folded(lines: &[String]) -> impl Iterator<Item = String> {
    let runs = lines.chunk_by(|one, next| one == next && one.contains("->"));
    runs.map(|run| match run.len() {
        1 => run[0].clone(),
        times => format!("{} x{times}", run[0]),
    })
}

/// The accesses as lines: nanoseconds since `begun_at`, the block, and what [`Access::told`] says of it; a read that is
/// repeated with the same result is one line, with the time of the first.
#[must_use]
pub fn listed(spec: &BoardSpec, accesses: &[Access], begun_at: Ps) -> String {
    let repeats =
        |one: &Access, next: &Access| !one.write && Access { at: one.at, ..*next } == *one;
    let mut text = String::new();
    for run in accesses.chunk_by(repeats) {
        let ns = run[0].at.saturating_sub(begun_at) / PS_PER_NS;
        let (block, told) = (spec.block_name(run[0].block), run[0].told(spec));
        let times = if run.len() > 1 { format!(" x{}", run.len()) } else { String::new() };
        let _ = writeln!(text, "{ns:>9} {block:<12} {told}{times}");
    }
    text
}

/// The log of a board.
#[derive(Debug, Default)]
pub(crate) struct AccessLog {
    noted: Vec<Access>,
    /// How many more accesses are recorded.
    room: usize,
}

impl AccessLog {
    pub(crate) fn start(&mut self, most: usize) {
        *self = Self { noted: Vec::new(), room: most };
    }

    pub(crate) fn take(&mut self) -> Vec<Access> {
        std::mem::take(&mut self.noted)
    }

    #[inline]
    pub(crate) fn note(&mut self, access: impl FnOnce() -> Access) {
        if self.room > 0 {
            self.room -= 1;
            self.noted.push(access());
        }
    }
}

#[cfg(test)]
mod tests {
    use barewire::reg::Registers as _;

    use super::*;
    use crate::{Board, BoardOptions};

    #[test]
    fn accesses_are_noted_from_the_start_on_up_to_the_limit() {
        let spec = BoardSpec::find("imx8mp").expect("a board");
        let board = Board::new(spec, BoardOptions::default());
        let (mut block, mut pins) = (board.controller(), board.gpio(0).expect("a bank"));
        block.write(0x1c, 1);
        assert_eq!(board.take_accesses(), []);
        board.start_accesses(6);
        let begun_at = board.engine().now_ps();
        block.write(0x1c, 7);
        let status = [block.read(0x18), block.read(0x18)];
        pins.write(0x04, 0x200);
        block.write(0x1c, 7);
        let taken = board.take_accesses();
        let told: Vec<_> =
            taken.iter().map(|it| (it.block, it.offset, it.value, it.write)).collect();
        let [first, second] = status.map(|status| (0, 0x18, status, false));
        let written = (0, 0x1c, 7, true);
        assert_eq!(told, [written, first, second, (1, 0x04, 0x200, true), written]);
        assert!(taken.is_sorted_by_key(|access| access.at));

        let text = listed(spec, &taken, begun_at);
        let lines: Vec<&str> = text.lines().map(|line| line[9..].trim()).collect();
        assert_eq!(lines[0], "ECSPI        PERIODREG   <- 00000007");
        assert_eq!(lines[1], format!("ECSPI        STATREG     -> {:08x} x2", status[0]));
        assert_eq!(lines[2], "i.MX GPIO    GDIR        <- 00000200");
        assert_eq!(lines[3..], [lines[0]]);

        // Recording continues after the accesses that were taken, up to the limit.
        assert_eq!(board.take_accesses(), []);
        let _ = [block.read(0x18), block.read(0x18)];
        assert_eq!(board.take_accesses().len(), 1);
    }

    #[test]
    fn writes_are_never_folded() {
        let lines = ["A <- 1", "A <- 1", "B -> 2", "B -> 2", "B -> 2", "B -> 3"].map(String::from);
        let folded: Vec<String> = folded(&lines).collect();
        assert_eq!(folded, ["A <- 1", "A <- 1", "B -> 2 x3", "B -> 3"]);
    }
}
