//! The wire's checkers: they compare what happened with the limits of datasheets and manuals.
//!
//! *Read first*: the AC characteristics of any SPI chip's datasheet, for the three CS times.
//!
//! # How it works
//! Every breach becomes a [`Violation`] in the [`Log`]. It is reported and has no other effect: a
//! timing violation corrupts data only under [`Faults::timing_corrupts`].
//!
//! - `LineCheck`, one per chip, checks a line's times, clock and mode.
//! - [`crate::wire::Wire`] checks what concerns several lines, and SCK's level.
//! - The controller's model checks its FIFO limits.
//! - A chip checks its own protocol; its complaints are collected here.
//!
//! # Not supported
//! Data set-up and hold times against SCK, rise times, SCK duty cycle: the models clock with a duty
//! cycle of one half, and data changes midway between two sampling edges.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::chip::{PS_PER_NS, Ps, SetupEdge, WireLimits};

/// How many violations are kept; beyond that they are only counted.
pub const KEPT_VIOLATIONS: usize = 1_000;

/// Faults of the wire that a test may switch on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// A violation of `cs_setup`, `cs_inactive` or the clock limit inverts MISO until the chip is
    /// deselected.
    pub timing_corrupts: bool,
}

/// The rule that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The time from CS active to the first SCK edge was shorter than the chip's minimum.
    CsSetup,
    /// The time from the last SCK edge to CS inactive was shorter than the chip's minimum.
    CsHold,
    /// CS was inactive for less than the chip's minimum.
    CsInactive,
    /// Two chips were selected at once.
    OneCs,
    /// SCK was faster than the chip's maximum.
    MaxClock,
    /// SCK was not at its idle level at an edge of CS, or left that level outside a word while a
    /// chip was selected. The chip counts that as a clock.
    SckIdle,
    /// CS changed in the middle of a word.
    MidWord,
    /// SCK ran while no CS was active.
    ClockWithoutCs,
    /// The chip does not support the controller's SPI mode.
    Mode,
    /// A received word was lost: RXFIFO was full.
    RxOverrun,
    /// RXDATA was read while RXFIFO was empty: the manual leaves the value undefined.
    RxEmpty,
    /// A word to send was lost: TXFIFO was full.
    TxFull,
    /// A burst stopped because TXFIFO was empty. That costs time but no data, see [`Rule::harms`].
    TxUnderrun,
    /// A register was written where the block ignores that: while it is disabled, or while it is enabled
    /// and must not be.
    Disabled,
    /// An access outside all registers, or not to the first byte of one.
    BadAccess,
    /// A rule of the chip's own protocol.
    Chip,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 16] = [
        Self::CsSetup,
        Self::CsHold,
        Self::CsInactive,
        Self::OneCs,
        Self::MaxClock,
        Self::SckIdle,
        Self::MidWord,
        Self::ClockWithoutCs,
        Self::Mode,
        Self::RxOverrun,
        Self::RxEmpty,
        Self::TxFull,
        Self::TxUnderrun,
        Self::Disabled,
        Self::BadAccess,
        Self::Chip,
    ];

    /// The rule's name, for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CsSetup => "cs_setup",
            Self::CsHold => "cs_hold",
            Self::CsInactive => "cs_inactive",
            Self::OneCs => "one_cs",
            Self::MaxClock => "max_clock",
            Self::SckIdle => "sck_idle",
            Self::MidWord => "mid_word",
            Self::ClockWithoutCs => "clock_without_cs",
            Self::Mode => "mode",
            Self::RxOverrun => "rx_overrun",
            Self::RxEmpty => "rx_empty",
            Self::TxFull => "tx_full",
            Self::TxUnderrun => "tx_underrun",
            Self::Disabled => "disabled",
            Self::BadAccess => "bad_access",
            Self::Chip => "chip",
        }
    }
}

impl Rule {
    /// Whether breaking the rule may corrupt data. A burst that stops ([`Rule::TxUnderrun`]) is
    /// only late.
    #[must_use]
    pub fn harms(self) -> bool {
        self != Self::TxUnderrun
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When, in virtual picoseconds.
    pub at_ps: Ps,
    /// The broken rule.
    pub rule: Rule,
    /// The chip select concerned.
    pub cs: Option<u8>,
    /// The required time in nanoseconds; 0 if the rule is not about a time.
    pub required_ns: u64,
    /// The actual time in nanoseconds, rounded down; 0 if the rule is not about a time.
    pub actual_ns: u64,
    /// The details, in words.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns: {}", self.at_ps / PS_PER_NS, self.rule)?;
        if let Some(cs) = self.cs {
            write!(f, " on cs{cs}")?;
        }
        write!(f, ": {}", self.detail)?;
        if self.required_ns > 0 {
            write!(f, " (required {} ns, actual {} ns)", self.required_ns, self.actual_ns)?;
        }
        Ok(())
    }
}

/// A rule that was broken on a chip select, however often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The first breach.
    pub first: Violation,
    /// The number of breaches.
    pub times: u64,
}

/// The violations of a wire: the first [`KEPT_VIOLATIONS`], and the count of all.
///
/// A handle: all clones are one log. Every method returns owned data and borrows the log only until
/// it returns, so it may be called at any moment, inside a chip's callback too.
#[derive(Clone, Debug, Default)]
pub struct Log(Rc<RefCell<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    kept: Vec<Violation>,
    /// One for each rule and chip select.
    broken: Vec<BrokenRule>,
    total: u64,
    harms: u64,
}

impl Log {
    /// The violations kept, oldest first.
    #[must_use]
    pub fn kept(&self) -> Vec<Violation> {
        self.0.borrow().kept.clone()
    }

    /// Each rule that was broken on each chip select, in the order of the first breaches. It counts the
    /// violations that are not kept too.
    #[must_use]
    pub fn broken(&self) -> Vec<BrokenRule> {
        self.0.borrow().broken.clone()
    }

    /// The number of violations, including those not kept.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.borrow().total
    }

    /// The number of violations that [harm](Rule::harms).
    #[must_use]
    pub fn harms(&self) -> u64 {
        self.0.borrow().harms
    }

    /// Deletes all violations.
    pub fn clear(&self) {
        *self.0.borrow_mut() = Entries::default();
    }

    /// Adds a violation that is not about a time.
    #[cold]
    pub fn report(&self, at_ps: Ps, rule: Rule, cs: Option<u8>, detail: impl Into<String>) {
        let detail = detail.into();
        self.add(Violation { at_ps, rule, cs, required_ns: 0, actual_ns: 0, detail });
    }

    #[cold]
    fn add(&self, violation: Violation) {
        let mut entries = self.0.borrow_mut();
        let harms = violation.rule.harms();
        entries.total += 1;
        entries.harms += u64::from(harms);
        let same = |one: &&mut BrokenRule| {
            (one.first.rule, one.first.cs) == (violation.rule, violation.cs)
        };
        match entries.broken.iter_mut().find(same) {
            Some(one) => one.times += 1,
            None => entries.broken.push(BrokenRule { first: violation.clone(), times: 1 }),
        }
        let kept = &mut entries.kept;
        if kept.len() == KEPT_VIOLATIONS && harms {
            // If the log is full, the last violation that only cost time makes room.
            let Some(index) = kept.iter().rposition(|kept| !kept.rule.harms()) else { return };
            kept.remove(index);
        }
        if kept.len() < KEPT_VIOLATIONS {
            kept.push(violation);
        }
    }
}

/// The checks of one chip's line.
#[derive(Debug)]
pub(crate) struct LineCheck {
    cs: u8,
    limits: WireLimits,
    setup_edge: SetupEdge,
    min_period_ps: Ps,
    selected_at: Ps,
    released_at: Option<Ps>,
    last_edge: Ps,
    clocked: bool,
    clock_reported: bool,
    mode_wrong: bool,
    timing_broken: bool,
}

impl LineCheck {
    pub(crate) fn new(cs: u8, limits: WireLimits, setup_edge: SetupEdge) -> Self {
        // Rounded down: a clock of exactly the limit is allowed.
        let min_period_ps =
            1_000_000_000_000_u64.checked_div(u64::from(limits.max_clock_hz)).unwrap_or(0);
        Self {
            cs,
            limits,
            setup_edge,
            min_period_ps,
            selected_at: 0,
            released_at: None,
            last_edge: 0,
            clocked: false,
            clock_reported: false,
            mode_wrong: false,
            timing_broken: false,
        }
    }

    /// A timing rule was broken in this selection.
    pub(crate) fn timing_broken(&self) -> bool {
        self.timing_broken
    }

    pub(crate) fn select(&mut self, at: Ps, log: &Log) {
        self.selected_at = at;
        self.clocked = false;
        self.clock_reported = false;
        self.mode_wrong = false;
        self.timing_broken = false;
        if let Some(released_at) = self.released_at {
            let actual = at.saturating_sub(released_at);
            let required_ns = self.limits.cs_inactive_ns;
            self.timing_broken |= self.time(log, at, Rule::CsInactive, required_ns, actual);
        }
    }

    /// No bit was clocked in this selection yet.
    #[inline]
    pub(crate) fn unclocked(&self) -> bool {
        !self.clocked
    }

    /// Bits are clocked, from `first_edge` to `last_edge`. Returns false if the chip does not
    /// support the mode.
    #[inline]
    pub(crate) fn clock(
        &mut self,
        first_edge: Ps,
        last_edge: Ps,
        period: Ps,
        mode: u8,
        log: &Log,
    ) -> bool {
        self.last_edge = last_edge;
        if !self.clocked {
            self.first_clock(first_edge, period, mode, log);
        }
        if period < self.min_period_ps && !self.clock_reported {
            self.too_fast(first_edge, period, log);
        }
        !self.mode_wrong
    }

    fn first_clock(&mut self, first_edge: Ps, period: Ps, mode: u8, log: &Log) {
        self.clocked = true;
        let late = self.setup_edge == SetupEdge::Sampling && mode & 1 != 0;
        let counted = first_edge + if late { period / 2 } else { 0 };
        let actual = counted.saturating_sub(self.selected_at);
        let required_ns = self.limits.cs_setup_ns;
        self.timing_broken |= self.time(log, counted, Rule::CsSetup, required_ns, actual);
        self.mode_wrong = self.limits.modes >> mode & 1 == 0;
        if self.mode_wrong {
            let modes: Vec<u8> = (0..4).filter(|mode| self.limits.modes >> mode & 1 != 0).collect();
            let detail = format!("clocked in mode {mode}, the chip understands {modes:?}");
            log.report(first_edge, Rule::Mode, Some(self.cs), detail);
        }
    }

    #[cold]
    fn too_fast(&mut self, at: Ps, period: Ps, log: &Log) {
        self.clock_reported = true;
        self.timing_broken = true;
        let actual_hz = 1_000_000_000_000_u64.checked_div(period).unwrap_or(u64::MAX);
        log.add(Violation {
            at_ps: at,
            rule: Rule::MaxClock,
            cs: Some(self.cs),
            required_ns: self.min_period_ps.div_ceil(PS_PER_NS),
            actual_ns: period / PS_PER_NS,
            detail: format!(
                "SCK at {actual_hz} Hz, the chip's limit is {} Hz",
                self.limits.max_clock_hz
            ),
        });
    }

    pub(crate) fn deselect(&mut self, at: Ps, log: &Log) {
        self.released_at = Some(at);
        if self.clocked {
            let actual = at.saturating_sub(self.last_edge);
            self.time(log, at, Rule::CsHold, self.limits.cs_hold_ns, actual);
        }
    }

    fn time(&self, log: &Log, at: Ps, rule: Rule, required_ns: u64, actual_ps: Ps) -> bool {
        let broken = actual_ps < required_ns.saturating_mul(PS_PER_NS);
        if broken {
            let detail = match rule {
                Rule::CsSetup => match self.setup_edge {
                    SetupEdge::First => "first SCK edge too soon after CS became active",
                    SetupEdge::Sampling => "SCK sampled too soon after CS became active",
                },
                Rule::CsHold => "CS became inactive too soon after the last SCK edge",
                _ => "CS became active again too soon",
            };
            log.add(Violation {
                at_ps: at,
                rule,
                cs: Some(self.cs),
                required_ns,
                actual_ns: actual_ps / PS_PER_NS,
                detail: detail.into(),
            });
        }
        broken
    }
}

#[cfg(test)]
mod tests;
