//! Who called whom, and with how many instructions: one tree for a whole trace, and counts on it for each operation.

use std::collections::HashMap;

use super::symbols::{Function, Symbols};

/// A place in the tree: a function, as called by the place above it.
pub(super) type Node = u32;

/// What a place stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// The beginning of a stack.
    Root,
    Call(Function),
    /// What an exception began: no part of what it interrupted.
    Exception(Function),
}

/// The tree of all calls of a trace.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<(Node, Of)>,
    below: HashMap<(Node, Of), Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![(ROOT, Of::Root)], below: HashMap::new() }
    }
}

/// The beginning of every stack.
pub(super) const ROOT: Node = 0;

impl Tree {
    /// The place of `of` when it is called at `above`.
    pub(super) fn below(&mut self, above: Node, of: Of) -> Node {
        *self.below.entry((above, of)).or_insert_with(|| {
            self.nodes.push((above, of));
            (self.nodes.len() - 1) as Node
        })
    }

    pub(super) fn of(&self, node: Node) -> Of {
        self.nodes[node as usize].1
    }

    /// From a place up to the beginning of its stack.
    fn up(&self, node: Node) -> impl Iterator<Item = (Node, Of)> + '_ {
        let mut at = Some(node);
        std::iter::from_fn(move || {
            let node = at?;
            let (above, of) = self.nodes[node as usize];
            at = (of != Of::Root).then_some(above);
            Some((node, of))
        })
    }
}

/// The counts of one operation: what ran between two marks.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    pub(super) label: String,
    /// Instructions of user space.
    pub(super) user: u64,
    /// By place: own instructions, and how often it was called.
    pub(super) counts: HashMap<Node, (u64, u64)>,
}

/// Which instructions of an operation: all that ran in `what` and what it called, without exceptions that came
/// meanwhile, less what ran in `without`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'q> {
    /// Functions, or exceptions; of one in another, the outer counts.
    pub(super) what: &'q [&'q str],
    /// Only where one of these is above; anywhere if empty.
    pub(super) under: &'q [&'q str],
    /// Not what these and what they call did.
    pub(super) without: &'q [&'q str],
}

/// Instructions, and calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) instructions: u64,
    pub(super) calls: u64,
}

impl Interval {
    /// The answer to a query.
    pub(super) fn sum(&self, tree: &Tree, symbols: &Symbols, query: &Query<'_>) -> Sum {
        let find = |names: &[&str]| -> Vec<Function> {
            names.iter().filter_map(|name| symbols.find(name)).collect()
        };
        let (what, under, without) = (find(query.what), find(query.under), find(query.without));
        let mut sum = Sum::default();
        for (&node, &(own, calls)) in &self.counts {
            // From the place up: an exception ends what belongs together, unless it is asked for itself.
            let (mut outermost, mut is_excluded, mut is_within) = (None, false, under.is_empty());
            let mut is_interrupted = false;
            for (at, of) in tree.up(node) {
                let (Of::Call(function) | Of::Exception(function)) = of else { break };
                if outermost.is_none() && without.contains(&function) {
                    is_excluded = true;
                }
                if !is_interrupted && what.contains(&function) {
                    outermost = Some(at);
                }
                if outermost.is_some() && outermost != Some(at) && under.contains(&function) {
                    is_within = true;
                }
                if matches!(of, Of::Exception(_)) {
                    is_interrupted = true;
                }
            }
            let Some(outermost) = outermost.filter(|_| is_within) else { continue };
            if !is_excluded {
                sum.instructions += own;
            }
            if outermost == node {
                sum.calls += calls;
            }
        }
        sum
    }

    /// The tree of this operation as text, for people: total, own, calls, name.
    pub(super) fn describe(&self, tree: &Tree, symbols: &Symbols) -> String {
        let mut totals: HashMap<Node, u64> = HashMap::new();
        for (&node, &(own, _)) in &self.counts {
            for (at, _) in tree.up(node) {
                *totals.entry(at).or_default() += own;
            }
        }
        let mut text = format!("{}: {} in user space\n", self.label, self.user);
        self.write_below(ROOT, 0, tree, symbols, &totals, &mut text);
        text
    }

    fn write_below(
        &self,
        node: Node,
        depth: usize,
        tree: &Tree,
        symbols: &Symbols,
        totals: &HashMap<Node, u64>,
        text: &mut String,
    ) {
        use std::fmt::Write;
        let is_below = |&&at: &&Node| at != ROOT && tree.nodes[at as usize].0 == node;
        let mut children: Vec<Node> = totals.keys().filter(is_below).copied().collect();
        children.sort_unstable();
        for child in children {
            let (own, calls) = self.counts.get(&child).copied().unwrap_or_default();
            let name = match tree.of(child) {
                Of::Root => "",
                Of::Call(function) | Of::Exception(function) => symbols.of(function),
            };
            let indent = 2 * depth;
            let _ =
                writeln!(text, "{:>7} {own:>6} {calls:>4} {:indent$}{name}", totals[&child], "");
            self.write_below(child, depth + 1, tree, symbols, totals, text);
        }
    }
}
