//! The costs of a call, a page and an invalidation, each with its source.

use barewire_iommu::Costs;
use serde::Serialize;

use crate::shared::number;

/// Prices, each with its default and where that is from.
#[derive(clap::Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Costs (in ns, fractions allowed)")]
pub(super) struct CostArgs {
    /// A call of unmap [default: 1350, fitted]
    #[arg(long, value_name = "NS", value_parser = ps)]
    call_ns: Option<u32>,
    /// Clearing a leaf entry of a table that stays in use [default: 390, fitted]
    #[arg(long, value_name = "NS", value_parser = ps)]
    page_ns: Option<u32>,
    /// An invalidation by address [default: 125, fitted]
    #[arg(long, value_name = "NS", value_parser = ps)]
    address_ns: Option<u32>,
    /// An invalidation by range [default: 125, assumed]
    #[arg(long, value_name = "NS", value_parser = ps)]
    range_ns: Option<u32>,
    /// An invalidation of the context [default: 3170, fitted]
    #[arg(long, value_name = "NS", value_parser = ps)]
    context_ns: Option<u32>,
    /// Waiting for the completion of a flush [default: 0, included in the others]
    #[arg(long, value_name = "NS", value_parser = ps)]
    wait_ns: Option<u32>,
    /// A TLB refill that an exact invalidation would have avoided [default: 290, assumed]
    #[arg(long, value_name = "NS", value_parser = ps)]
    miss_ns: Option<u32>,
    /// Leaves the TLB holds [default: 64, assumed]
    #[arg(long, value_name = "N", value_parser = entries)]
    tlb_entries: Option<u32>,
}

/// Prices in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    pub(super) call_ps: u64,
    pub(super) page_ps: u64,
    /// The costs that a strategy weighs.
    pub(super) strategy: Costs,
    /// Whether adaptive may use ranges.
    pub(super) has_ranges: bool,
}

/// A price as reported.
#[derive(Serialize, Debug)]
pub(super) struct Price {
    pub(super) name: &'static str,
    pub(super) value: f64,
    /// `fitted`, `assumed` or `given`.
    pub(super) basis: &'static str,
    pub(super) source: &'static str,
}

const TABLE: &str = "the table of S. P. Ranjan's patch \"Optimize ->tlb_flush_walk() for qcom \
    implementation\" (v3, 23 June 2021; SM8150)";
const LIKE_ADDRESS: &str = "as one by address: a command is a command";
const WITHIN: &str = "part of the others, which the table cannot tell apart";
const AGILEX: &str = "four reads of a cold walk in Intel's Agilex 5 HPS manual (814346)";
const SMALL: &str = "a small TLB next to the device";
const CALL_PS: u32 = 1_350_000;
const PAGE_PS: u32 = 390_000;

impl CostArgs {
    pub(super) fn prices(&self, has_ranges: bool) -> Prices {
        let default = Costs::default();
        let strategy = Costs {
            address_ps: self.address_ns.unwrap_or(default.address_ps),
            range_ps: self.range_ns.or(self.address_ns).unwrap_or(default.range_ps),
            context_ps: self.context_ns.unwrap_or(default.context_ps),
            wait_ps: self.wait_ns.unwrap_or(default.wait_ps),
            miss_ps: self.miss_ns.unwrap_or(default.miss_ps),
            tlb_entries: self.tlb_entries.unwrap_or(default.tlb_entries),
        };
        Prices {
            call_ps: self.call_ns.unwrap_or(CALL_PS).into(),
            page_ps: self.page_ns.unwrap_or(PAGE_PS).into(),
            strategy,
            has_ranges,
        }
    }

    /// The costs, as reported.
    pub(super) fn told(&self, prices: &Prices) -> Vec<Price> {
        let ns = |ps: u64| ps as f64 / 1e3;
        let costs = &prices.strategy;
        [
            ("call_ns", self.call_ns, ns(prices.call_ps), "fitted", TABLE),
            ("page_ns", self.page_ns, ns(prices.page_ps), "fitted", TABLE),
            ("address_ns", self.address_ns, ns(costs.address_ps.into()), "fitted", TABLE),
            ("context_ns", self.context_ns, ns(costs.context_ps.into()), "fitted", TABLE),
            ("range_ns", self.range_ns, ns(costs.range_ps.into()), "assumed", LIKE_ADDRESS),
            ("wait_ns", self.wait_ns, ns(costs.wait_ps.into()), "assumed", WITHIN),
            ("miss_ns", self.miss_ns, ns(costs.miss_ps.into()), "assumed", AGILEX),
            ("tlb_entries", self.tlb_entries, costs.tlb_entries.into(), "assumed", SMALL),
        ]
        .map(|(name, given, value, basis, source)| match given {
            Some(_) => Price { name, value, basis: "given", source: "the command line" },
            None => Price { name, value, basis, source },
        })
        .into()
    }
}

/// Nanoseconds with up to three decimals, as picoseconds.
fn ps(text: &str) -> Result<u32, String> {
    let parsed = text.parse::<f64>().ok().filter(|ns| (0.0..=4_000_000.0).contains(ns));
    let ns = parsed.ok_or("nanoseconds are a number from 0 to 4000000: 125 or 0.5")?;
    Ok((ns * 1e3).round() as u32)
}

fn entries(text: &str) -> Result<u32, String> {
    number::within(text, 0..=1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_decimals_but_no_more_than_a_picosecond() {
        assert_eq!([ps("125"), ps("0.5"), ps("0.0004")], [Ok(125_000), Ok(500), Ok(0)]);
        for text in ["", "-1", "x", "inf", "NaN", "4000001"] {
            assert!(ps(text).is_err(), "{text}");
        }
    }
}
