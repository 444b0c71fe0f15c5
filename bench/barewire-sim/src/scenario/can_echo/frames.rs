//! Compares the frames on the CAN bus with those asked for, as they come.

use std::collections::VecDeque;

use super::times::Times;
use crate::chip::Ps;
use crate::model::can::{CanFrame, NodeId, Record};

/// The most frames that wait for their echo. If another one comes, the oldest is lost. The chip and both
/// sockets hold fewer.
pub const WAITING_MAX: usize = 4_096;

/// The outcome of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The far node's frames that were acknowledged.
    pub sent: u64,
    /// Of those echoed.
    pub echoed: u64,
    /// Of the frames sent, those not echoed; of an interrupted run, only those before the last one
    /// echoed.
    pub lost: u64,
    /// Echoed, but not in their turn.
    pub reordered: u64,
    /// On the bus, and an echo of nothing.
    pub unasked: u64,
    /// Destroyed by an error, from any sender.
    pub destroyed: u64,
    /// Of the lost frames, those whose echo found no free place.
    pub dropped: u64,
}

/// A frame of the far node that was not echoed yet.
#[derive(Clone, Debug)]
struct Waiting {
    frame: CanFrame,
    eof: Ps,
}

/// The far node's frames, counted by outcome, and the time from each one's end to the start of its echo.
#[derive(Clone, Debug)]
pub struct FrameAccount {
    far: NodeId,
    tally: Tally,
    times: Times,
    waiting: VecDeque<Waiting>,
    /// Frames for which no echo is expected any more.
    given_up: u64,
    /// Of those, the ones before the last frame echoed.
    overtaken: u64,
    last_echoed: Ps,
}

/// Whether `echo` is that of `frame`.
fn is_echo(echo: &CanFrame, frame: &CanFrame) -> bool {
    let largest = if frame.extended { (1 << 29) - 1 } else { 0x7ff };
    let mut expected = *frame;
    expected.id = frame.id.checked_sub(1).unwrap_or(largest);
    *echo == expected
}

impl FrameAccount {
    /// An empty account; node `far` sends the frames to echo.
    #[must_use]
    pub fn new(far: NodeId) -> Self {
        Self {
            far,
            tally: Tally::default(),
            times: Times::default(),
            waiting: VecDeque::new(),
            given_up: 0,
            overtaken: 0,
            last_echoed: 0,
        }
    }

    /// Adds the next frame on the bus.
    pub fn add(&mut self, record: &Record) {
        if !record.is_taken() {
            self.tally.destroyed += 1;
        } else if record.sender == self.far {
            self.tally.sent += 1;
            if self.waiting.len() == WAITING_MAX {
                self.waiting.pop_front();
                self.given_up += 1;
            }
            self.waiting.push_back(Waiting { frame: record.frame, eof: record.eof });
        } else {
            self.echo(record);
        }
    }

    fn echo(&mut self, echo: &Record) {
        let asked = self.waiting.iter().position(|asked| is_echo(&echo.frame, &asked.frame));
        let Some((at, asked)) = asked.and_then(|at| Some((at, self.waiting.remove(at)?))) else {
            self.tally.unasked += 1;
            return;
        };
        self.tally.reordered += u64::from(at != 0);
        self.tally.echoed += 1;
        self.last_echoed = self.last_echoed.max(asked.eof);
        // Every frame given up so far is older than each that waits.
        self.overtaken = self.given_up;
        self.times.add(echo.sof - asked.eof);
    }

    /// The counts. In an `interrupted` run, frames after the last echoed one do not count as lost.
    #[must_use]
    pub fn tally(&self, interrupted: bool) -> Tally {
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|asked| !interrupted || asked.eof < self.last_echoed);
        let given_up = if interrupted { self.overtaken } else { self.given_up };
        Tally { lost: given_up + waiting.count() as u64, ..self.tally }
    }

    /// The times from each echoed frame's end to the start of its echo.
    #[must_use]
    pub fn times(&self) -> &Times {
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::can::{BitTimes, CanBus, Feed, Outcome};

    const GAP: Ps = 1_000;

    /// Frame number `n`, unlike all others of a test.
    fn frame(n: u64) -> CanFrame {
        CanFrame::new(0x100, &n.to_le_bytes()[..2])
    }

    fn record(sender: NodeId, frame: CanFrame, at: Ps) -> Record {
        Record { frame, sender, sof: at, eof: at + 100, outcome: Outcome::Taken }
    }

    /// An account, and the ids of the far node and of the one that echoes.
    fn account() -> (FrameAccount, NodeId, NodeId) {
        let bus = CanBus::new(BitTimes::from_rates(250_000, 250_000));
        let [far, ours] = ["far", "ours"].map(|name| bus.add(Feed::new(name, [])));
        (FrameAccount::new(far), far, ours)
    }

    fn echo(n: u64) -> CanFrame {
        let mut echo = frame(n);
        echo.id -= 1;
        echo
    }

    #[test]
    fn outcomes_are_counted() {
        let (mut account, far, ours) = account();
        for n in 0..4 {
            account.add(&record(far, frame(n), n * GAP));
        }
        account.add(&record(ours, echo(0), 10 * GAP));
        account.add(&record(ours, echo(2), 11 * GAP));
        account.add(&record(ours, echo(9), 12 * GAP));
        let broken = Outcome::Error(crate::model::can::ErrorKind::Form);
        account.add(&Record { outcome: broken, ..record(far, frame(4), 13 * GAP) });
        let expected = Tally {
            sent: 4,
            echoed: 2,
            lost: 2,
            reordered: 1,
            unasked: 1,
            destroyed: 1,
            dropped: 0,
        };
        assert_eq!(account.tally(false), expected);
        // Frame 3 came after the last one echoed.
        assert_eq!(account.tally(true), Tally { lost: 1, ..expected });
        assert_eq!(account.times().longest(), Some(10 * GAP - 100));
        assert_eq!(account.times().shortest(), Some(9 * GAP - 100));
    }

    #[test]
    fn frames_that_are_never_echoed_take_no_more_memory_and_are_lost() {
        let (mut account, far, ours) = account();
        let sent = WAITING_MAX as u64 + 10;
        for n in 0..sent {
            account.add(&record(far, frame(n), n * GAP));
        }
        assert_eq!(account.waiting.len(), WAITING_MAX);
        assert_eq!(account.tally(false).lost, sent);
        // Nothing was echoed, so no frame is before the last one echoed.
        assert_eq!(account.tally(true).lost, 0);
        account.add(&record(ours, echo(10), sent * GAP));
        assert_eq!((account.tally(false).lost, account.tally(true).lost), (sent - 1, 10));
    }
}
