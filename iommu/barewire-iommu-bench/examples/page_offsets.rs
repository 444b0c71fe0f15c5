//! Which part of the time of a map and an unmap of a page is chance: tables with the same contents in 400
//! places of memory, and IOVAs whose entries lie at the same offset in the tables of all levels, or at others.
//!
//! A processor that compares only the low 12 bits of addresses before a load may pass a store (AMD, *Software
//! Optimization Guide for AMD64 Processors*, 25112 rev. 3.06, 5.5) lets the next walk wait for a leaf. In which
//! places it does depends on more bits of both addresses.
//!
//! `cargo run --profile counted -p barewire-iommu-bench --example page_offsets`

use core::hint::black_box;
use std::time::Instant;

use barewire_iommu::{
    Access, Attributes, Config, Gather, Iova, PageTable, PhysAddr, Segment, Stage,
};
use barewire_iommu_bench::list::PAGE;
use barewire_iommu_bench::pool::{Lease, Tables};
use barewire_iommu_bench::stats::median;

const PLACES: usize = 400;
const ROUNDS: usize = 60;
/// Pages that are mapped one after the other.
const PAGES: u64 = 64;

#[inline(never)]
fn map(table: &mut PageTable<Tables>, base: u64) {
    for page in 0..PAGES {
        let segment = Segment { phys: PhysAddr((1 << 32) + page * 2 * PAGE), len: PAGE };
        let attributes = Attributes::new(Stage::One, Access::ReadWrite);
        let mut gather = Gather::new();
        let iova = Iova(base + page * PAGE);
        table.whole().map_sg(iova, &[segment], attributes, &mut gather).expect("it is free");
        black_box(&mut gather);
    }
}

#[inline(never)]
fn unmap(table: &mut PageTable<Tables>, base: u64) {
    for page in 0..PAGES {
        let mut gather = Gather::new();
        table.whole().unmap(Iova(base + page * PAGE), PAGE, &mut gather).expect("it is mapped");
        black_box(&mut gather);
    }
}

/// A line of the table: nanoseconds of a call in the places, from the fastest to the slowest.
fn line(what: &str, mut ns: Vec<f64>) {
    ns.sort_by(f64::total_cmp);
    let at = |percent: usize| ns[(PLACES - 1) * percent / 100];
    let usual = at(50);
    let slow = ns.iter().filter(|ns| **ns > 1.25 * usual).count();
    print!("{what:<24}");
    [0, 50, 80, 95, 100].map(at).iter().for_each(|ns| print!("{ns:>8.2}"));
    println!("{:>7.1} %", 100.0 * slow as f64 / PLACES as f64);
}

fn main() {
    let _lease = Lease::take();
    println!("ns of a call in {PLACES} places (slow: 1.25 x the median of all places)\n");
    println!("indices, operation       fastest  median     80%     95% slowest   slow");
    for [l0, l1, l2, l3] in [[1, 0, 0, 0], [1, 300, 200, 0], [300, 500, 352, 0]] {
        let base = l0 << 39 | l1 << 30 | l2 << 21 | l3 << 12;
        let mut places: Vec<_> = (0..PLACES)
            .map(|_| PageTable::new(Config::default(), Tables).expect("the pool has tables"))
            .collect();
        let mut times = vec![[const { Vec::new() }; 2]; PLACES];
        for _ in 0..ROUNDS {
            for (table, times) in places.iter_mut().zip(&mut times) {
                // The first time only fills the caches.
                for pass in 0..2 {
                    let begun = Instant::now();
                    map(table, base);
                    let mapped = Instant::now();
                    unmap(table, base);
                    let unmapped = mapped.elapsed();
                    if pass > 0 {
                        let took = [mapped.duration_since(begun), unmapped];
                        for (times, took) in times.iter_mut().zip(took) {
                            times.push(took.as_nanos() as f64 / PAGES as f64);
                        }
                    }
                }
            }
        }
        for (op, name) in ["map", "unmap"].iter().enumerate() {
            let ns = times.iter().map(|of| median(of[op].clone())).collect();
            line(&format!("{l0} {l1} {l2} {l3}  {name}"), ns);
        }
    }
}
