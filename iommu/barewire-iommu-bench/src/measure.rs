//! Measures times. Every contestant runs in every round, so that a disturbance affects all of them.
//!
//! # How it works
//! The contestants of a job run one after the other. Each maps the list at several IOVAs, then
//! unmaps it there; both are timed separately and repeated a few times. The first repetition warms
//! caches and predictors and is not counted. The time of a call is the time of its batch, without
//! the cost of reading the clock, divided by the number of calls. Medians and minima are over
//! rounds. A ratio or difference to another contestant is taken in each round, within
//! the same millisecond; the median is over rounds. For short lists, rounds take turns at places of memory.

use core::ops::ControlFlow;
use std::time::Instant;

use crate::list::{Layout, SIZES, Size, TABLE_SPAN};
use crate::pool::{Lease, Tables};
use crate::row::{Op, Row};
use crate::stats::{median, minimum, rounded};
#[cfg(target_pointer_width = "64")]
use crate::subject::{Aarch64Paging, Generic, Multiarch};
use crate::subject::{
    Barewire, FloorReady, FloorTables, Implementation, Job, Subject, TableWork, Unmapping,
    WholeDomain,
};

/// The number of places of each contestant whose lists are no longer than a table. A call for a page takes a few
/// nanoseconds, and half as much again in about one place of ten: where a load has the page offset of a store
/// that is under way, a processor may make it wait, depending on more bits of both addresses (see
/// [`BASE`](crate::subject::BASE)). No choice of addresses excludes that for a stack, a heap and tables, so that
/// the median is over places.
const PLACES: usize = 5;

/// The batches of a round, besides the first one, which warms up.
const BATCHES: usize = 3;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of rounds; more give steadier results.
    pub rounds: u32,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Measured {
    /// A row for each contestant and operation.
    pub rows: Vec<Row>,
    /// The number of rounds that it took.
    pub rounds: u32,
    /// Whether the medians settled: those of both halves of the rounds differ by 2 % at most.
    pub settled: bool,
}

/// The fewest rounds of which a median says something.
const SETTLING: u32 = 20;
/// How many times the rounds that were asked for may be made until the medians settle.
const TIMES_MAX: u32 = 4;
/// By how much the medians of two halves may differ.
const TOLERANCE: f64 = 0.02;

/// The subject of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RowName {
    implementation: Implementation,
    op: Op,
    strategy: Option<&'static str>,
}

impl RowName {
    fn each<const N: usize>(implementation: Implementation, ops: [Op; N]) -> Vec<Self> {
        ops.map(|op| Self { implementation, op, strategy: None }).into()
    }
}

/// A contestant of a job, its times by round, and the rows they go to.
struct Contestant {
    /// The same in several places of memory, which take turns.
    places: Vec<Box<dyn Subject>>,
    maps: Vec<RowName>,
    unmaps: Vec<RowName>,
    map_ns: Vec<f64>,
    unmap_ns: Vec<f64>,
    invalidations: Option<u64>,
}

/// A job and its contestants.
struct Contest {
    job: Job,
    contestants: Vec<Contestant>,
    /// The index of the contestant that is the floor.
    floor: usize,
    /// The index of the strictest floor for maps.
    strict: usize,
}

impl Contest {
    fn new(size: Size, layout: Layout, by_leaf: bool) -> Self {
        let job = Job::new(size, layout, by_leaf);
        let mut contest = Self { job, contestants: Vec::new(), floor: 0, strict: 0 };
        contest.floors();
        contest.ours();
        if !by_leaf {
            contest.peers();
        }
        contest
    }

    fn join<S: Subject + 'static>(
        &mut self,
        make: impl Fn() -> S,
        maps: Vec<RowName>,
        unmaps: Vec<RowName>,
    ) {
        let places = if self.job.size.bytes <= TABLE_SPAN { PLACES } else { 1 };
        self.contestants.push(Contestant {
            places: (0..places).map(|_| Box::new(make()) as Box<dyn Subject>).collect(),
            maps,
            unmaps,
            map_ns: Vec::new(),
            unmap_ns: Vec::new(),
            invalidations: None,
        });
    }

    fn floors(&mut self) {
        use Implementation::{FloorA, FloorB, FloorBUnzeroed, FloorDrop, FloorLeaf};
        let maps = |floor| RowName::each(floor, [Op::MapSg, Op::MapTable]);
        let unmaps = |floor| RowName::each(floor, [Op::Unmap, Op::UnmapTable]);
        let job = self.job.clone();
        let ready = || FloorReady::new(&job);
        if self.job.by_leaf {
            self.join(ready, Vec::new(), RowName::each(FloorLeaf, [Op::UnmapLeaf]));
        } else if self.job.is_whole_tables() {
            // The floor for single leaves is no floor where whole tables are removed.
            self.join(ready, maps(FloorA), Vec::new());
            self.join(|| FloorTables::new(false), maps(FloorBUnzeroed), Vec::new());
            self.join(|| FloorTables::new(true), maps(FloorB), unmaps(FloorDrop));
            (self.strict, self.floor) = (1, 2);
        } else {
            self.join(ready, maps(FloorA), unmaps(FloorLeaf));
        }
    }

    fn ours(&mut self) {
        let by_leaf = self.job.by_leaf;
        let unmappings = if by_leaf { &[Unmapping::Gathered][..] } else { &Unmapping::ALL };
        let op = if by_leaf { Op::UnmapLeaf } else { Op::Unmap };
        for &unmapping in unmappings {
            let invalidations = invalidations(&mut Barewire::new(unmapping), &self.job);
            // Mapping does not depend on the way of unmapping.
            let maps = if !by_leaf && unmapping == Unmapping::Gathered {
                RowName::each(Implementation::Barewire, [Op::MapSg])
            } else {
                Vec::new()
            };
            let strategy = Some(unmapping.name());
            let implementation = Implementation::Barewire;
            self.join(
                || Barewire::new(unmapping),
                maps,
                vec![RowName { implementation, op, strategy }],
            );
            self.contestants.last_mut().expect("just joined").invalidations = Some(invalidations);
        }
        if !by_leaf {
            let named = |op| RowName::each(Implementation::Barewire, [op]);
            self.join(
                || TableWork::<Tables>::new(Tables),
                named(Op::MapTable),
                named(Op::UnmapTable),
            );
            self.join(WholeDomain::<false>::new, named(Op::DomainMap), named(Op::DomainUnmap));
        }
    }

    /// The other crates neither gather nor choose nor release: all they do is table work.
    #[cfg(target_pointer_width = "64")]
    fn peers(&mut self) {
        let maps = |peer| RowName::each(peer, [Op::MapSg, Op::MapTable]);
        let unmaps = |peer| RowName::each(peer, [Op::Unmap, Op::UnmapTable]);
        let [one, other, third] = Implementation::PEERS;
        self.join(Aarch64Paging::new, maps(one), unmaps(one));
        self.join(Multiarch::new, maps(other), unmaps(other));
        self.join(Generic::new, maps(third), unmaps(third));
    }

    #[cfg(not(target_pointer_width = "64"))]
    fn peers(&mut self) {}

    fn round(&mut self, clock: &Clock) {
        for contestant in &mut self.contestants {
            let place = contestant.map_ns.len() % contestant.places.len();
            let (map_ns, unmap_ns) = time(&mut *contestant.places[place], &self.job, clock);
            contestant.map_ns.push(map_ns);
            contestant.unmap_ns.push(unmap_ns);
        }
    }

    /// Whether the medians of the first and of the second half of the rounds are about the same.
    fn is_settled(&self, clock: &Clock) -> bool {
        self.contestants.iter().all(|one| {
            let (slots, batches) = batches(&*one.places[0], &self.job);
            let tick_ns = clock.tick_ns / (slots * batches) as f64;
            [&one.map_ns, &one.unmap_ns].into_iter().all(|ns| halves_agree(ns, tick_ns))
        })
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        self.contestants.iter().flat_map(move |one| {
            let maps = one.maps.iter().map(move |&named| self.row(named, &one.map_ns, None));
            let count = one.invalidations;
            let unmaps = one.unmaps.iter().map(move |&named| self.row(named, &one.unmap_ns, count));
            maps.chain(unmaps)
        })
    }

    fn row(&self, named: RowName, ns: &[f64], invalidations: Option<u64>) -> Row {
        let RowName { implementation, op, strategy } = named;
        let [floor, strict] = [self.floor, self.strict].map(|index| {
            // Only maps have two floors.
            let maps = is_map(op).then(|| &self.contestants[index]);
            let one = maps.unwrap_or(&self.contestants[self.floor]);
            let (rows, ns) =
                if is_map(op) { (&one.maps, &one.map_ns) } else { (&one.unmaps, &one.unmap_ns) };
            (rows[0].implementation, ns)
        });
        let ratio = |to: &[f64]| median_of(ns, to, |ns, to| ns / to);
        let ours = implementation == Implementation::Barewire;
        let peer = ours.then(|| self.best_peer(op)).flatten();
        let base = base(op).and_then(|base| Some((base.op, self.times(base)?)));
        let table = table_work(op).and_then(|table| self.times(table));
        let on_top = |base: &[f64]| median_of(ns, base, |ns, base| ns - base);
        Row {
            implementation,
            op,
            size: self.job.size.name,
            bytes: self.job.size.bytes,
            layout: self.job.layout,
            strategy,
            ns_median: rounded(median(ns.to_vec())),
            ns_min: rounded(minimum(ns)),
            floor: floor.0,
            ratio_to_floor: ratio(floor.1),
            strict_floor: strict.0,
            ratio_to_strict_floor: ratio(strict.1),
            best_peer: peer.map(|(peer, _)| peer),
            ratio_to_best_peer: peer.map(|(_, peer)| ratio(peer)),
            on_top_of: base.map(|(op, _)| op),
            ns_on_top: base.map(|(_, base)| on_top(base)),
            ns_on_top_of_table: table.map(on_top),
            invalidations,
        }
    }

    /// The times of what a row is about.
    fn times(&self, named: RowName) -> Option<&[f64]> {
        self.contestants.iter().find_map(|one| {
            if one.maps.contains(&named) {
                Some(&one.map_ns[..])
            } else {
                one.unmaps.contains(&named).then_some(&one.unmap_ns[..])
            }
        })
    }

    /// The other crate whose table work takes the least time.
    fn best_peer(&self, op: Op) -> Option<(Implementation, &[f64])> {
        if !matches!(op, Op::MapTable | Op::UnmapTable) {
            return None;
        }
        let peers = Implementation::PEERS;
        let times = peers.into_iter().filter_map(|implementation| {
            Some((implementation, self.times(RowName { implementation, op, strategy: None })?))
        });
        let of = |ns: &[f64]| median(ns.to_vec());
        times.min_by(|one, other| of(one.1).total_cmp(&of(other.1)))
    }
}

fn is_map(op: Op) -> bool {
    matches!(op, Op::MapSg | Op::MapTable | Op::DomainMap)
}

/// The row that an operation of a domain is compared with: the same operation without the domain.
fn base(op: Op) -> Option<RowName> {
    match op {
        Op::DomainUnmap => {
            let (implementation, strategy) =
                (Implementation::Barewire, Some(Unmapping::Gathered.name()));
            Some(RowName { implementation, op: Op::Unmap, strategy })
        }
        _ => table_work(op),
    }
}

/// The table work of a domain's operation.
fn table_work(op: Op) -> Option<RowName> {
    let op = match op {
        Op::DomainMap => Op::MapTable,
        Op::DomainUnmap => Op::UnmapTable,
        _ => return None,
    };
    Some(RowName { implementation: Implementation::Barewire, op, strategy: None })
}

/// The median of `what` over the rounds of two contestants.
fn median_of(one: &[f64], other: &[f64], what: impl Fn(f64, f64) -> f64) -> f64 {
    rounded(median(one.iter().zip(other).map(|(&one, &other)| what(one, other)).collect()))
}

/// The commands of one unmap: of one call, or of all pieces of one list.
fn invalidations(ours: &mut Barewire, job: &Job) -> u64 {
    ours.map(job, 1);
    ours.counts();
    ours.unmap(job, 1);
    ours.counts().invalidations()
}

/// The lists of a batch, and the batches of a round that count.
fn batches(subject: &dyn Subject, job: &Job) -> (usize, usize) {
    let slow = subject.is_slow() && job.layout == Layout::Scattered && job.size.bytes >= TABLE_SPAN;
    if slow { (1, 1) } else { (job.slots(), BATCHES) }
}

/// The nanoseconds of one map and of one unmap (of all pieces, if there are several).
fn time(subject: &mut dyn Subject, job: &Job, clock: &Clock) -> (f64, f64) {
    let (slots, batches) = batches(subject, job);
    let (mut map_ns, mut unmap_ns) = (0.0, 0.0);
    for batch in 0..=batches {
        let begun = Instant::now();
        subject.map(job, slots);
        let mapped = Instant::now();
        subject.unmap(job, slots);
        let unmapped = Instant::now();
        subject.settle();
        if batch > 0 {
            map_ns += mapped.duration_since(begun).as_nanos() as f64 - clock.read_ns;
            unmap_ns += unmapped.duration_since(mapped).as_nanos() as f64 - clock.read_ns;
        }
    }
    let calls = (slots * batches) as f64;
    // A time below the clock's cost counts as nearly zero, so that no ratio divides by 0.
    ((map_ns / calls).max(0.01), (unmap_ns / calls).max(0.01))
}

/// The clock that everything is timed by.
struct Clock {
    /// The cost of reading it, which every batch includes once.
    read_ns: f64,
    /// The least by which two times differ that are not equal.
    tick_ns: f64,
}

impl Clock {
    fn measure() -> Self {
        const READS: u32 = 1_000;
        let mut tick_ns = f64::MAX;
        let passes = (0..20).map(|_| {
            let begun = Instant::now();
            let mut last = begun;
            for _ in 0..READS {
                let now = core::hint::black_box(Instant::now());
                if now > last {
                    tick_ns = tick_ns.min(now.duration_since(last).as_nanos() as f64);
                }
                last = now;
            }
            begun.elapsed().as_nanos() as f64 / f64::from(READS)
        });
        let read_ns = minimum(&passes.collect::<Vec<_>>());
        Self { read_ns, tick_ns }
    }
}

/// Whether the medians of both halves differ by [`TOLERANCE`] at most, or by no more than the clock tells apart.
/// One value agrees with itself.
fn halves_agree(ns: &[f64], tick_ns: f64) -> bool {
    let (first, second) = ns.split_at(ns.len() / 2);
    if first.is_empty() {
        return true;
    }
    let (first, second) = (median(first.to_vec()), median(second.to_vec()));
    (first - second).abs() <= (TOLERANCE * first.max(second)).max(tick_ns)
}

/// Measures everything. `progress` is called with the number of finished rounds, up to those that were
/// asked for, and may stop the measurement. From 20 rounds on it goes on until the medians settle, for up to
/// four times as many.
///
/// Call it from a thread that stays on its processor.
///
/// # Errors
/// The value with which `progress` stopped it.
///
/// # Panics
/// If this thread holds a [`Lease`].
pub fn measure<B>(
    options: Options,
    mut progress: impl FnMut(u32) -> ControlFlow<B>,
) -> ControlFlow<B, Measured> {
    let _lease = Lease::take();
    let clock = Clock::measure();
    let mut contests: Vec<Contest> =
        [(Layout::Scattered, false), (Layout::Contiguous, false), (Layout::Scattered, true)]
            .into_iter()
            .flat_map(|(layout, by_leaf)| SIZES.map(|size| Contest::new(size, layout, by_leaf)))
            .collect();
    let (mut rounds, mut wanted) = (0, options.rounds);
    let may_go_on = options.rounds >= SETTLING;
    let most = options.rounds.saturating_mul(TIMES_MAX);
    let settled = loop {
        while rounds < wanted {
            for contest in &mut contests {
                contest.round(&clock);
            }
            rounds += 1;
            progress(rounds.min(options.rounds))?;
        }
        let settled = contests.iter().all(|contest| contest.is_settled(&clock));
        if settled || !may_go_on || wanted >= most {
            break settled;
        }
        wanted = wanted.saturating_add(options.rounds / 2).min(most);
    };
    let rows = contests.iter().flat_map(Contest::rows).collect();
    ControlFlow::Continue(Measured { rows, rounds, settled })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_rounds_own() {
        let (ours, floor) = ([3.0, 40.0, 5.0], [1.0, 20.0, 2.0]);
        assert_eq!(median_of(&ours, &floor, |ns, floor| ns / floor), 2.5);
        assert_eq!(median_of(&ours, &floor, |ns, floor| ns - floor), 3.0);
    }

    #[test]
    fn medians_settle_when_both_halves_agree() {
        assert!(halves_agree(&[5.0], 0.0));
        assert!(halves_agree(&[100.0, 101.0, 900.0, 101.0, 99.0, 101.0], 0.0));
        let differ = [100.0, 100.0, 100.0, 103.0, 103.0, 103.0];
        assert!(!halves_agree(&differ, 2.9));
        assert!(halves_agree(&differ, 3.0), "the clock may tell no more");
    }

    #[cfg_attr(miri, ignore = "too many tables")]
    #[test]
    fn rows_name_what_they_are_compared_with() {
        let _lease = Lease::take();
        let mut contest = Contest::new(SIZES[0], Layout::Scattered, false);
        let (mut map_ns, mut peers) = (100.0, 0);
        for one in &mut contest.contestants {
            // Each faster than the one before it, so the last peer is the best.
            map_ns -= 7.0;
            peers += usize::from(one.maps.iter().any(|named| named.op == Op::MapTable));
            (one.map_ns, one.unmap_ns) = (vec![map_ns; 3], vec![2.0 * map_ns; 3]);
        }
        let ours = |op| {
            let mut rows = contest.rows();
            rows.find(|row| row.implementation == Implementation::Barewire && row.op == op)
                .expect("a row of ours")
        };
        // The floor and ours alone where the other crates do not compile.
        if peers > 2 {
            assert_eq!(ours(Op::MapTable).best_peer, Some(Implementation::PageTableGeneric));
        }
        let domain = ours(Op::DomainUnmap);
        // It runs two after the gathered unmap.
        assert_eq!((domain.on_top_of, domain.ns_on_top), (Some(Op::Unmap), Some(-28.0)));
        assert_eq!(domain.ns_on_top_of_table, Some(-14.0));
        let domain = ours(Op::DomainMap);
        assert_eq!((domain.on_top_of, domain.ns_on_top), (Some(Op::MapTable), Some(-7.0)));
        assert!(ours(Op::MapSg).best_peer.is_none(), "table work alone has a best peer");
    }
}
