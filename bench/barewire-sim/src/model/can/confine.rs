//! Fault confinement: a node's error counters and its error state.
//!
//! *Read first*: ISO 11898-1:2015, 12.1.4. Rules are named by their letters there.

/// The error state of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorState {
    /// Takes part, with active error flags.
    #[default]
    Active,
    /// Takes part, with passive error flags.
    Passive,
    /// Takes no part in the bus.
    BusOff,
}

/// TEC and REC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The transmit error counter; above 255 is bus off.
    pub tec: u16,
    /// The receive error counter.
    pub rec: u16,
}

/// Above this value a counter makes its node passive.
const PASSIVE_ABOVE: u16 = 127;
/// Above this value TEC makes its node bus off.
const BUS_OFF_ABOVE: u16 = 255;
/// The value of REC after a passive receiver accepts a frame: the standard allows 119 to 127.
const REC_AFTER_PASSIVE: u16 = 119;
/// REC does not count above this value.
const REC_MAX: u16 = 255;

impl Counters {
    /// The error state.
    #[must_use]
    pub fn state(&self) -> ErrorState {
        if self.tec > BUS_OFF_ABOVE {
            ErrorState::BusOff
        } else if self.tec > PASSIVE_ABOVE || self.rec > PASSIVE_ABOVE {
            ErrorState::Passive
        } else {
            ErrorState::Active
        }
    }

    /// Rules a) and b): by 1, or by 8 where the node saw a dominant bit after its own error flag.
    pub(super) fn receiver_error(&mut self, by: u16) {
        self.rec = (self.rec + by).min(REC_MAX);
    }

    /// Rule c): the sender of an error flag.
    pub(super) fn sender_error(&mut self) {
        self.tec = (self.tec + 8).min(BUS_OFF_ABOVE + 1);
    }

    /// Rule g).
    pub(super) fn sent(&mut self) {
        self.tec = self.tec.saturating_sub(1);
    }

    /// Rule h).
    pub(super) fn received(&mut self) {
        self.rec = match self.rec {
            0 => 0,
            rec if rec > PASSIVE_ABOVE => REC_AFTER_PASSIVE,
            rec => rec - 1,
        };
    }
}
