//! What invalidations cost, and what they cost afterwards.
//!
//! # How it works
//! Invalidating by address costs the processor: one command for each. Invalidating the context costs
//! the device: everything it still uses is fetched again, as far as it was cached. That is the trade
//! between latency and over-invalidation, in one unit:
//!
//! ```text
//! by page     addresses × address_ps + wait_ps
//! by range    ranges    × range_ps   + wait_ps
//! by context  context_ps             + wait_ps + min(live entries, tlb_entries) × miss_ps
//! ```
//!
//! Live entries that no device is using are not in its TLB, and others' entries take room there; so
//! the last term is the most it can be.

use core::fmt;

use super::{Facts, Method};
use crate::address::Iova;
use crate::gather::Run;
use crate::tlbi::{Context, FlushError, Invalidate, Tlbi};

/// What invalidations cost, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A command for one address.
    pub address_ps: u32,
    /// A range command.
    pub range_ps: u32,
    /// A command for the whole context.
    pub context_ps: u32,
    /// Waiting for completion, whatever was issued.
    pub wait_ps: u32,
    /// A miss in the TLB: a walk that was not necessary before.
    pub miss_ps: u32,
    /// Entries of one device's TLB.
    pub tlb_entries: u32,
}

impl Default for Costs {
    /// - `address_ps` 125,000 and `context_ps` 3,170,000: fitted to the table of S. P. Ranjan's
    ///   patch "Optimize ->tlb_flush_walk() for qcom implementation" (v3, 23 June 2021; SM8150, an
    ///   SMMUv2). Waiting is part of both, and `wait_ps` hence 0.
    /// - `range_ps` as `address_ps`: a command is a command. A guess.
    /// - `miss_ps` 290,000: four reads of a cold walk as Intel's Agilex 5 HPS manual (814346,
    ///   "Calculating Page Table Walks") adds them up for its SMMUv3.
    /// - `tlb_entries` 64: a small TLB next to the device. A guess, and best replaced.
    fn default() -> Self {
        Self {
            address_ps: 125_000,
            range_ps: 125_000,
            context_ps: 3_170_000,
            wait_ps: 0,
            miss_ps: 290_000,
            tlb_entries: 64,
        }
    }
}

/// What one method would cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prediction {
    /// Commands, without the one that waits.
    pub commands: u64,
    /// The processor's time to issue them and wait.
    pub flush_ps: u64,
    /// The device's time to fetch anew what was not to be invalidated.
    pub refill_ps: u64,
}

/// What [`Strategy::Adaptive`](super::Strategy::Adaptive) decided, and by what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The cheapest; of equals the one that invalidates least.
    pub method: Method,
    /// By page.
    pub by_page: Prediction,
    /// By range, where there are ranges.
    pub by_range: Option<Prediction>,
    /// By context.
    pub by_context: Prediction,
}

impl Prediction {
    /// All of it.
    pub fn total_ps(&self) -> u64 {
        self.flush_ps.saturating_add(self.refill_ps)
    }
}

impl Choice {
    /// What the chosen method would cost.
    pub fn prediction(&self) -> Prediction {
        match (self.method, self.by_range) {
            (Method::Pages, _) => self.by_page,
            (Method::Ranges, Some(by_range)) => by_range,
            (Method::Ranges | Method::Context, _) => self.by_context,
        }
    }
}

impl Costs {
    /// What each method would cost for `runs`, and which is cheapest.
    pub fn choice(&self, runs: &[Run], facts: &Facts) -> Choice {
        let commands = |count: u64, each_ps: u32, refill_ps: u64| Prediction {
            commands: count,
            flush_ps: count
                .saturating_mul(u64::from(each_ps))
                .saturating_add(u64::from(self.wait_ps)),
            refill_ps,
        };
        let addresses = runs.iter().map(|run| run.addresses(facts.page_shift)).sum();
        let by_page = commands(addresses, self.address_ps, 0);
        let by_range = facts.has_ranges.then(|| {
            let ranges = runs.iter().map(|run| run.ranges(facts.page_shift)).sum();
            commands(ranges, self.range_ps, 0)
        });
        let by_context = commands(1, self.context_ps, self.refill_ps(facts.live_entries));
        let mut method = Method::Pages;
        let mut least = by_page.total_ps();
        if let Some(by_range) = by_range
            && by_range.total_ps() < least
        {
            method = Method::Ranges;
            least = by_range.total_ps();
        }
        if by_context.total_ps() < least {
            method = Method::Context;
        }
        Choice { method, by_page, by_range, by_context }
    }

    /// What the devices lose when a context with `live_entries` more is invalidated whole.
    pub fn refill_ps(&self, live_entries: u64) -> u64 {
        live_entries.min(u64::from(self.tlb_entries)) * u64::from(self.miss_ps)
    }

    /// The number of addresses from which on the context is cheaper than naming them;
    /// `None` if naming them costs nothing.
    pub fn crossover_addresses(&self, live_entries: u64) -> Option<u64> {
        let context_ps = u64::from(self.context_ps) + self.refill_ps(live_entries);
        Some(context_ps.checked_div(u64::from(self.address_ps))? + 1)
    }

    /// These costs with those of commands measured, as the least of a few tries; misses and the
    /// TLB's size are no processor's to measure and stay.
    ///
    /// What is flushed are the first addresses of `context`, then all of it: do it before the
    /// context is used. `now_ps` is a clock in picoseconds.
    ///
    /// # Errors
    /// The flush's.
    pub fn measure(
        self,
        invalidate: &impl Invalidate,
        context: Context,
        page_shift: u32,
        mut now_ps: impl FnMut() -> u64,
    ) -> Result<Self, FlushError> {
        const TRIES: u32 = 8;
        /// More addresses in the longer of two flushes, whose difference they are.
        const MORE: u64 = 64;
        let iova = Iova(0);
        let pages =
            |count| Tlbi::Pages { iova, stride: page_shift, count, leaf: true, level: None };
        let mut least = |operation: Tlbi| {
            let mut least = u64::MAX;
            for _ in 0..TRIES {
                let begin = now_ps();
                invalidate.flush(context, &[operation])?;
                least = least.min(now_ps().saturating_sub(begin));
            }
            Ok(least)
        };
        let one = least(pages(1))?;
        let address = least(pages(1 + MORE))?.saturating_sub(one) / MORE;
        let wait = one.saturating_sub(address);
        let whole = least(Tlbi::Context)?.saturating_sub(wait);
        let range = if invalidate.has_ranges() {
            least(Tlbi::Range { iova, page_shift, pages: 1, leaf: true, level: None })?
                .saturating_sub(wait)
        } else {
            u64::from(self.range_ps)
        };
        let ps = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Ok(Self {
            address_ps: ps(address),
            range_ps: ps(range),
            context_ps: ps(whole),
            wait_ps: ps(wait),
            ..self
        })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pages => "by page",
            Self::Ranges => "by range",
            Self::Context => "by context",
        })
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |f: &mut fmt::Formatter<'_>, ps: u64| {
            write!(f, "{}.{:02} µs", ps / 1_000_000, ps % 1_000_000 / 10_000)
        };
        write!(f, "{} command{} ", self.commands, if self.commands == 1 { "" } else { "s" })?;
        us(f, self.flush_ps)?;
        if self.refill_ps > 0 {
            f.write_str(" and ")?;
            us(f, self.refill_ps)?;
            f.write_str(" of misses")?;
        }
        Ok(())
    }
}

/// One line: what was chosen and what the others would have cost.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: by page {}", self.method, self.by_page)?;
        if let Some(by_range) = self.by_range {
            write!(f, ", by range {by_range}")?;
        }
        write!(f, ", by context {}", self.by_context)
    }
}
