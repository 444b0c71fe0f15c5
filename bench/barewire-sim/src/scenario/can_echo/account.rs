//! The account of a run: takes each event as it comes, and keeps counts and sums.
//!
//! # Ordering
//! 1. Frames, selections, and intervals of the pin each come in the order of their times.
//! 2. A selection that began before a service is added before that service.

use super::EchoFigures;
use super::frames::{FrameAccount, Tally};
use super::times::Times;
use crate::Violation;
use crate::chip::Ps;
use crate::model::can::{NodeId, Record};
use crate::selection::Selection;

/// Time and accesses that a part of the code used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) time_ps: Ps,
    pub(super) wire_ps: Ps,
    pub(super) accesses: u64,
}

impl Usage {
    pub(super) fn add(&mut self, since: Self, now: Self) {
        self.time_ps += now.time_ps - since.time_ps;
        self.wire_ps += now.wire_ps - since.wire_ps;
        self.accesses += now.accesses - since.accesses;
    }
}

/// Figures collected during a run.
#[derive(Debug, Default)]
pub(super) struct RunFigures {
    pub(super) elapsed_ps: Ps,
    pub(super) idle_ps: Ps,
    /// All services, from the interrupt that ends a wait to the next wait, including what they
    /// send.
    pub(super) serving: Usage,
    /// Sending by services.
    pub(super) sending: Usage,
    /// Sending by other code.
    pub(super) others: Usage,
    /// Frames for which the chip had no free place to send from.
    pub(super) dropped: u64,
    /// How often a look at the chip found something other than a frame.
    pub(super) strange: u64,
    pub(super) interrupted: bool,
}

/// What the measurement between a service's first two accesses waits for.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// The next service.
    Service,
    /// The first access of the service that began then.
    First { begun: Ps },
    /// The second access; the first one ended then.
    Second { ended: Ps },
}

/// The account while the run goes on.
#[derive(Debug)]
pub(super) struct Account {
    frames: FrameAccount,
    int_low: Times,
    cs_to_clock: Times,
    cs_high: Times,
    awaited: Awaited,
    services: u64,
    /// From the beginning of a bit's cell to its first edge.
    half_a_clock_ps: Ps,
}

impl Account {
    /// An account without events. Node `far` sends the frames to echo.
    pub(super) fn new(far: NodeId, half_a_clock_ps: Ps) -> Self {
        Self {
            frames: FrameAccount::new(far),
            int_low: Times::default(),
            cs_to_clock: Times::default(),
            cs_high: Times::default(),
            awaited: Awaited::Service,
            services: 0,
            half_a_clock_ps,
        }
    }

    /// A frame was on the CAN bus.
    pub(super) fn frame(&mut self, record: &Record) {
        self.frames.add(record);
    }

    /// The interrupt pin was low. An interval that has no end yet is added when it has one.
    pub(super) fn int_low(&mut self, (from, until): (Ps, Option<Ps>)) {
        if let Some(until) = until {
            self.int_low.add(until - from);
        }
    }

    /// A service of the interrupt begins.
    pub(super) fn service(&mut self, begun: Ps) {
        self.services += 1;
        self.awaited = Awaited::First { begun };
    }

    /// The chip was selected.
    pub(super) fn selection(&mut self, one: &Selection) {
        self.cs_to_clock.add(one.first_clock_at + self.half_a_clock_ps - one.selected_at);
        match self.awaited {
            Awaited::First { begun } if one.selected_at >= begun => {
                self.awaited = Awaited::Second { ended: one.deselected_at };
            }
            Awaited::Second { ended } => {
                self.cs_high.add(one.selected_at - ended);
                self.awaited = Awaited::Service;
            }
            Awaited::First { .. } | Awaited::Service => {}
        }
    }

    /// The result. `kernel_ps` of each interrupt are charged to the processor, not to a thread.
    pub(super) fn close(
        self,
        ran: &RunFigures,
        kernel_ps: Ps,
        violations: Vec<Violation>,
    ) -> EchoFigures {
        let interrupts = self.services;
        let tally = self.frames.tally(ran.interrupted);
        EchoFigures {
            frames: Tally { dropped: ran.dropped, ..tally },
            rx_eof_to_tx_sof: self.frames.times().spread(),
            int_low: self.int_low.spread(),
            cs_to_clock: self.cs_to_clock.spread(),
            cs_high: self.cs_high.spread(),
            elapsed_ps: ran.elapsed_ps,
            cpu_ps: ran.elapsed_ps - ran.idle_ps + interrupts * kernel_ps,
            receive_ps: ran.serving.time_ps - ran.sending.time_ps,
            send_ps: ran.sending.time_ps + ran.others.time_ps,
            wire_ps: ran.serving.wire_ps + ran.others.wire_ps,
            receive_wire_ps: ran.serving.wire_ps - ran.sending.wire_ps,
            accesses: ran.serving.accesses + ran.others.accesses,
            receive_accesses: ran.serving.accesses - ran.sending.accesses,
            strange: ran.strange,
            interrupts,
            interrupted: ran.interrupted,
            violations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::can::{BitTimes, CanBus};

    fn selection(selected_at: Ps) -> Selection {
        Selection {
            selected_at,
            first_clock_at: selected_at + 5,
            last_clock_at: selected_at + 80,
            deselected_at: selected_at + 90,
        }
    }

    #[test]
    fn the_gap_is_between_the_first_two_accesses_of_each_service() {
        let bus = CanBus::new(BitTimes::from_rates(250_000, 250_000));
        let mut account = Account::new(bus.add_listener(), 2);
        // Before any service, in one, in one with a single access, and in the last.
        account.selection(&selection(0));
        account.service(1_000);
        for at in [1_000, 1_100, 1_900] {
            account.selection(&selection(at));
        }
        account.service(2_000);
        account.selection(&selection(2_000));
        account.service(3_000);
        for at in [3_010, 3_120] {
            account.selection(&selection(at));
        }
        assert_eq!(account.services, 3);
        assert_eq!(account.cs_to_clock.count(), 7);
        assert_eq!(account.cs_to_clock.longest(), Some(7));
        let gaps = &account.cs_high;
        assert_eq!((gaps.count(), gaps.shortest(), gaps.longest()), (2, Some(10), Some(20)));
    }

    #[test]
    fn the_pin_counts_when_its_interval_has_ended() {
        let bus = CanBus::new(BitTimes::from_rates(250_000, 250_000));
        let mut account = Account::new(bus.add_listener(), 2);
        for low in [(10, Some(30)), (40, None), (40, Some(45))] {
            account.int_low(low);
        }
        let low = &account.int_low;
        assert_eq!((low.count(), low.shortest(), low.longest()), (2, Some(5), Some(20)));
    }
}
