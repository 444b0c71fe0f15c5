//! A node that sends frames from an iterator, and passes received frames to a callback.
//!
//! # How it works
//! The iterator returns a frame and the time from which it is to be sent. A frame that the bus
//! could not carry yet waits; the next one is requested when it is sent. So the iterator may be
//! endless.
//!
//! A sender with limited patience ([`Feed::with_patience`]) checks the time whenever its frame was
//! not sent. When its patience is over it sends nothing more, like a program whose `write` failed.

use std::fmt;

use super::confine::Counters;
use super::frame::CanFrame;
use super::node::{BusError, CanNode, Link, Span};
use crate::chip::Ps;

/// The source of the frames, each with the time from which it is to be sent.
type Frames = Box<dyn Iterator<Item = (Ps, CanFrame)>>;
/// The callback for received frames.
type Hear = Box<dyn FnMut(&CanFrame, Span)>;

/// A node that sends frames from an iterator and acknowledges every frame.
pub struct Feed {
    name: &'static str,
    counters: Counters,
    frames: Frames,
    /// The next frame: from when it is to be sent, and since when it is first in the queue.
    head: Option<(Ps, CanFrame)>,
    since: Ps,
    patience: Option<Ps>,
    gave_up: Option<CanFrame>,
    sent: u64,
    received: u64,
    hear: Option<Hear>,
}

impl Feed {
    /// Creates a node that sends `frames`, one after the other.
    pub fn new(
        name: &'static str,
        frames: impl IntoIterator<Item = (Ps, CanFrame)> + 'static,
    ) -> Self {
        let mut frames: Frames = Box::new(frames.into_iter());
        let head = frames.next();
        Self {
            name,
            counters: Counters::default(),
            since: head.map_or(0, |(at, _)| at),
            frames,
            head,
            patience: None,
            gave_up: None,
            sent: 0,
            received: 0,
            hear: None,
        }
    }

    /// Limits how long a frame waits for the bus to `patience`.
    #[must_use]
    pub fn with_patience(self, patience: Ps) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// Calls `hear` with each received frame and its time on the bus.
    #[must_use]
    pub fn with_ears(self, hear: impl FnMut(&CanFrame, Span) + 'static) -> Self {
        Self { hear: Some(Box::new(hear)), ..self }
    }

    /// The number of frames sent.
    #[must_use]
    pub fn sent_frames(&self) -> u64 {
        self.sent
    }

    /// The number of frames received.
    #[must_use]
    pub fn received_frames(&self) -> u64 {
        self.received
    }

    /// Whether it has nothing more to send.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.head.is_none()
    }

    /// The frame that waited too long, if any.
    #[must_use]
    pub fn gave_up(&self) -> Option<CanFrame> {
        self.gave_up
    }

    /// Its counters.
    #[must_use]
    pub fn error_counters(&self) -> Counters {
        self.counters
    }

    fn look_at_clock(&mut self, at: Ps) {
        let Some((_, frame)) = self.head else { return };
        if self.patience.is_some_and(|patience| at.saturating_sub(self.since) > patience) {
            self.gave_up = Some(frame);
            self.head = None;
        }
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed")
            .field("name", &self.name)
            .field("sent", &self.sent)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

impl CanNode for Feed {
    fn name(&self) -> &str {
        self.name
    }

    fn link(&self) -> Link {
        Link::ACTIVE
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn wants(&self) -> Ps {
        self.head.map_or(Ps::MAX, |(at, _)| at)
    }

    fn offer(&mut self, _at: Ps) -> Option<CanFrame> {
        self.head.map(|(_, frame)| frame)
    }

    fn lost_arbitration(&mut self, at: Ps) {
        self.look_at_clock(at);
    }

    fn error(&mut self, at: Ps, error: BusError) {
        if error.sending {
            self.look_at_clock(at);
        }
    }

    fn sent(&mut self, at: Ps, _span: Span) {
        self.sent += 1;
        self.head = self.frames.next();
        self.since = self.head.map_or(0, |(from, _)| from.max(at));
    }

    fn received(&mut self, _at: Ps, frame: &CanFrame, span: Span) {
        self.received += 1;
        if let Some(hear) = &mut self.hear {
            hear(frame, span);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::super::{BitTimes, CanBus};
    use super::*;

    const MS: Ps = 1_000_000_000;

    fn bus() -> CanBus {
        CanBus::new(BitTimes::from_rates(250_000, 1_000_000))
    }

    fn frames() -> impl Iterator<Item = (Ps, CanFrame)> + 'static {
        (0..).map(|n: u32| (Ps::from(n) * 10 * MS, CanFrame::new(n % 0x800, &[n as u8])))
    }

    #[test]
    fn frames_of_an_endless_iterator_are_heard_in_order_and_not_before_their_time() {
        let bus = bus();
        let heard = Rc::new(RefCell::new(Vec::new()));
        let ears = heard.clone();
        let listener = Feed::new("listener", [])
            .with_ears(move |frame, span| ears.borrow_mut().push((span.sof, frame.id)));
        bus.add(listener);
        let far = Rc::new(RefCell::new(Feed::new("far", frames())));
        bus.attach(far.clone());
        bus.catch_up(95 * MS);
        let heard = heard.borrow();
        assert_eq!(
            heard.iter().map(|&(_, id)| id).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
        for (n, &(sof, _)) in (1..).zip(&heard[1..]) {
            assert_eq!(sof, n * 10 * MS);
        }
        assert_eq!((far.borrow().sent_frames(), far.borrow().is_done()), (10, false));
    }

    #[test]
    fn a_frame_that_nobody_takes_is_given_up_after_the_patience_and_not_before() {
        for (patience, ms, gave_up) in
            [(20 * MS, 19, false), (20 * MS, 30, true), (Ps::MAX, 900, false)]
        {
            let bus = bus();
            let far = Feed::new("far", frames()).with_patience(patience);
            let far = Rc::new(RefCell::new(far));
            bus.attach(far.clone());
            bus.catch_up(ms * MS);
            let far = far.borrow();
            assert_eq!(far.gave_up().is_some(), gave_up, "{ms} ms");
            assert_eq!((far.sent_frames(), far.is_done()), (0, gave_up));
        }
    }
}
