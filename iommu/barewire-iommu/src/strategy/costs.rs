//! The costs of invalidations: issuing them, and refilling the TLB afterwards.
//!
//! # How it works
//! Invalidating by address costs the processor one command per address. Invalidating the context
//! costs the device: it must fetch every cached translation that it still uses again. These two
//! costs are the trade-off between latency and over-invalidation. In one unit:
//!
//! ```text
//! by page     addresses × address_ps + wait_ps
//! by range    ranges    × range_ps   + wait_ps
//! by context  context_ps             + wait_ps + min(live entries, tlb_entries) × miss_ps
//! ```
//!
//! A live entry that no device uses is not in the TLB, and the entries of other contexts take room
//! there. So the last term is an upper bound.

use core::fmt;

use super::{Facts, Method};
use crate::address::Iova;
use crate::gather::Run;
use crate::tlbi::{Context, FlushError, Invalidate, Tlbi};

/// The costs of invalidations, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A command for one address.
    pub address_ps: u32,
    /// A range command.
    pub range_ps: u32,
    /// A command for the whole context.
    pub context_ps: u32,
    /// Waiting for completion, for any command.
    pub wait_ps: u32,
    /// A TLB miss: a walk that would not have been necessary without the invalidation.
    pub miss_ps: u32,
    /// The number of entries in one device's TLB.
    pub tlb_entries: u32,
}

impl Default for Costs {
    /// - `address_ps` 125,000 and `context_ps` 3,170,000: fitted to the table in S. P. Ranjan's
    ///   patch "iommu/arm-smmu: Optimize ->tlb_flush_walk() for qcom implementation" (v3, 23 June
    ///   2021, for an SM8150 with an SMMUv2,
    ///   <https://lore.kernel.org/r/20210623134201.16140-1-saiprakash.ranjan@codeaurora.org>).
    ///   Waiting is part of both, so `wait_ps` is 0.
    /// - `range_ps` equals `address_ps`: a guess that all commands cost the same.
    /// - `miss_ps` 290,000: four reads of a cold walk, added up in Intel's Agilex 5 HPS manual
    ///   (814346, "Calculating Page Table Walks") for its SMMUv3.
    /// - `tlb_entries` 64: a small TLB next to the device. A guess; replace it if you can.
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

/// The predicted cost of one method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prediction {
    /// The number of commands, without the final sync.
    pub commands: u64,
    /// The processor's time to issue them and wait.
    pub flush_ps: u64,
    /// The device's time to refetch translations that did not need invalidation.
    pub refill_ps: u64,
}

/// The decision of [`Strategy::Adaptive`](super::Strategy::Adaptive), and the costs that it
/// compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The cheapest method. Of equals, the one that invalidates least.
    pub method: Method,
    /// The cost by page.
    pub by_page: Prediction,
    /// The cost by range, if the hardware has ranges.
    pub by_range: Option<Prediction>,
    /// The cost by context.
    pub by_context: Prediction,
}

impl Prediction {
    /// The sum of both.
    pub fn total_ps(&self) -> u64 {
        self.flush_ps.saturating_add(self.refill_ps)
    }
}

impl Choice {
    /// The predicted cost of the chosen method.
    pub fn prediction(&self) -> Prediction {
        match (self.method, self.by_range) {
            (Method::Pages, _) => self.by_page,
            (Method::Ranges, Some(by_range)) => by_range,
            (Method::Ranges | Method::Context, _) => self.by_context,
        }
    }
}

impl Costs {
    /// Whether a run is exactly one address, and no other method can be cheaper for any number of pages
    /// that stay mapped, because every method waits equally long.
    #[inline]
    pub(super) fn is_one_page(&self, run: &Run, facts: &Facts) -> bool {
        run.end.0.wrapping_sub(run.start.0) == 1 << run.step(facts.page_shift)
            && self.address_ps <= self.context_ps
            && (!facts.has_ranges || self.address_ps <= self.range_ps)
    }

    /// The operation of the [`cheapest`](Self::cheapest) method for one run.
    #[inline]
    pub(super) fn operation(&self, run: &Run, facts: &Facts) -> Tlbi {
        let addresses = run.addresses(facts.page_shift);
        match self.cheapest_of(addresses, || run.ranges(facts.page_shift), facts) {
            Method::Pages => run.by_addresses(facts.page_shift, addresses),
            Method::Ranges => run.by_range(facts.page_shift),
            Method::Context => Tlbi::Context,
        }
    }

    /// The method that [`choice`](Self::choice) chooses, without the costs to show.
    #[inline]
    pub(super) fn cheapest(&self, runs: &[Run], facts: &Facts) -> Method {
        let addresses = runs.iter().map(|run| run.addresses(facts.page_shift)).sum();
        let ranges = || runs.iter().map(|run| run.ranges(facts.page_shift)).sum();
        self.cheapest_of(addresses, ranges, facts)
    }

    /// The cheapest method for this many addresses, or range commands if the hardware has them. All wait
    /// equally long.
    #[inline]
    fn cheapest_of(&self, addresses: u64, ranges: impl Fn() -> u64, facts: &Facts) -> Method {
        let total = |count: u64, each_ps: u32| count.saturating_mul(u64::from(each_ps));
        let (mut method, mut least) = (Method::Pages, total(addresses, self.address_ps));
        if facts.has_ranges {
            let by_range = total(ranges(), self.range_ps);
            if by_range < least {
                (method, least) = (Method::Ranges, by_range);
            }
        }
        // No overflow: both factors of the refill have 32 bits.
        if u64::from(self.context_ps) + self.refill_ps(facts.live_entries) < least {
            method = Method::Context;
        }
        method
    }

    /// Predicts the cost of each method for `runs`, and chooses the cheapest.
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
        Choice { method: self.cheapest(runs, facts), by_page, by_range, by_context }
    }

    /// The devices' loss when a context in which `live_entries` stay mapped is invalidated as a
    /// whole.
    pub fn refill_ps(&self, live_entries: u64) -> u64 {
        live_entries.min(u64::from(self.tlb_entries)) * u64::from(self.miss_ps)
    }

    /// The number of addresses from which invalidating the context is cheaper than invalidating
    /// each address. `None` if an address costs nothing.
    pub fn crossover_addresses(&self, live_entries: u64) -> Option<u64> {
        let context_ps = u64::from(self.context_ps) + self.refill_ps(live_entries);
        Some(context_ps.checked_div(u64::from(self.address_ps))? + 1)
    }

    /// Returns these costs with the commands' costs replaced by measured ones, each the minimum of
    /// a few tries. Misses and the size of the TLB stay as they are: a processor cannot measure
    /// them.
    ///
    /// The measurement invalidates the first addresses of `context`, then all of it, so do it
    /// before the context is used. `now_ps` reads a clock in picoseconds.
    ///
    /// # Errors
    /// The error of a flush.
    pub fn measure(
        self,
        invalidate: &impl Invalidate,
        context: Context,
        page_shift: u32,
        mut now_ps: impl FnMut() -> u64,
    ) -> Result<Self, FlushError> {
        const TRIES: u32 = 8;
        /// The cost of an address is the difference of two flushes, of which one has this many more
        /// addresses.
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

/// Prints one line: the chosen method, and the predicted costs of the others.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: by page {}", self.method, self.by_page)?;
        if let Some(by_range) = self.by_range {
            write!(f, ", by range {by_range}")?;
        }
        write!(f, ", by context {}", self.by_context)
    }
}
