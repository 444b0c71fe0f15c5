//! From a trace to counts: follows each task's stack of calls through calls, jumps, exceptions and switches.
//!
//! # How it works
//! A run of instructions belongs to the function at the top of the running task's stack. What the run before ended
//! with says how the stack changes on the way to it:
//!
//! 1. An exception's vector: the exception is pushed, with what the interrupted run ended with. From user space it is
//!    the first of the stack.
//! 2. The end of an exception: it is popped with all above it, and the interrupted run goes on as if it had not been.
//! 3. A call: the function is pushed, with the address that it returns to. A call's target that no function begins
//!    at is a veneer; it takes the name of the function that it jumps to.
//! 4. A return: the calls to the one with this return address are popped. After the switch of stacks, the next task's
//!    stack is taken first.
//! 5. A jump to the beginning of another function is a tail call: pushed, and popped with its caller. A jump back
//!    into a caller by tail call (a function's cold part) pops.
//!
//! Where a return address is not on the stack, since the trace began behind the call, the function that it leads to
//! becomes the whole stack. That is counted: [`Walk::lost`].

use std::collections::HashMap;

use super::symbols::{Function, Symbols};
use super::trace::{End, Line};
use super::tree::{Interval, Node, Of, ROOT, Tree};

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: Node,
    /// Where it returns to. `None` if unknown.
    returns_to: Option<u64>,
    /// It was jumped to, and returns with the one below.
    is_tail: bool,
    /// What the run ended with that this exception interrupted.
    interrupted: Option<Before>,
    /// A call's target without a name yet.
    is_veneer: bool,
}

/// A call of which nothing more is known.
const CALL: Frame =
    Frame { node: ROOT, returns_to: None, is_tail: false, interrupted: None, is_veneer: false };

/// The end of a run.
#[derive(Clone, Copy, Debug)]
struct Before {
    next: u64,
    end: End,
}

/// A processor's state.
#[derive(Clone, Debug, Default)]
struct Cpu {
    task: u64,
    /// `None` in user space, and at first.
    before: Option<Before>,
    /// The switch of stacks that has begun, to this task.
    switching_to: Option<u64>,
}

/// Follows a trace.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) tree: Tree,
    pub(super) symbols: Symbols,
    pub(super) intervals: Vec<Interval>,
    /// Runs whose place on the stack had to be guessed, of those behind a mark with a name.
    pub(super) lost: u64,
    /// All runs behind marks with a name.
    pub(super) runs: u64,
    cpus: HashMap<usize, Cpu>,
    stacks: HashMap<u64, Vec<Frame>>,
    /// The vectors: arm64's table, and arm's high ones.
    vectors: Option<u64>,
    exceptions: [Function; 2],
    switch: [Option<Function>; 2],
    is_named: bool,
}

const SYNC: usize = 0;
const IRQ: usize = 1;
/// arm's vectors and their code, in two pages at the end of the address space.
const HIGH_VECTORS: std::ops::Range<u64> = 0xffff_0000..0xffff_0020;

impl Walk {
    pub(super) fn new(mut symbols: Symbols, vectors: Option<u64>) -> Self {
        let exceptions = [symbols.name("[sync]"), symbols.name("[irq]")];
        let switch = ["cpu_switch_to", "__switch_to"].map(|name| symbols.find(name));
        // arm64 has both: the inner one switches.
        let switch = if switch[0].is_some() { [switch[0], None] } else { [None, switch[1]] };
        Self {
            tree: Tree::default(),
            symbols,
            intervals: Vec::new(),
            lost: 0,
            runs: 0,
            cpus: HashMap::new(),
            stacks: HashMap::new(),
            vectors,
            exceptions,
            switch,
            is_named: false,
        }
    }

    /// Takes the next line.
    pub(super) fn take(&mut self, line: Line) {
        match line {
            Line::Mark(label) => {
                if label.is_empty() {
                    // What runs until the next mark is not in the trace.
                    self.cpus.clear();
                    self.stacks.clear();
                }
                self.is_named = !label.is_empty() && label != "-";
                self.intervals.push(Interval { label, ..Interval::default() });
            }
            Line::User { cpu, instructions } => {
                let cpu = self.cpus.entry(cpu).or_insert_with(|| new_cpu(cpu));
                cpu.before = None;
                self.stacks.entry(cpu.task).or_default().clear();
                if let Some(interval) = self.intervals.last_mut() {
                    interval.user += instructions;
                }
            }
            Line::Switch { cpu, previous, next } => {
                let cpu = self.cpus.entry(cpu).or_insert_with(|| new_cpu(cpu));
                if cpu.task != previous {
                    // The task that ran when the trace began.
                    let stack = self.stacks.remove(&cpu.task).unwrap_or_default();
                    self.stacks.insert(previous, stack);
                    cpu.task = previous;
                }
                cpu.switching_to = Some(next);
            }
            Line::Run { cpu, at, instructions, next, end } => {
                self.runs += u64::from(self.is_named);
                let mut state = self.cpus.remove(&cpu).unwrap_or_else(|| new_cpu(cpu));
                let mut stack = self.stacks.remove(&state.task).unwrap_or_default();
                self.go_to(at, &mut state, &mut stack);
                let node = stack.last().map_or(ROOT, |frame| frame.node);
                if let Some(interval) = self.intervals.last_mut() {
                    interval.counts.entry(node).or_default().0 += instructions;
                }
                // arm's stubs leave the exception's mode by what looks like its end.
                let end = match end {
                    End::Resume if at >> 32 == 0 && at >= HIGH_VECTORS.start => End::Other,
                    end => end,
                };
                state.before = Some(Before { next, end });
                self.stacks.insert(state.task, stack);
                self.cpus.insert(cpu, state);
            }
        }
    }

    /// The exception whose vector that is.
    fn exception(&self, at: u64) -> Option<Function> {
        if HIGH_VECTORS.contains(&at) {
            return Some(self.exceptions[if at & 0x1f >= 0x18 { IRQ } else { SYNC }]);
        }
        let offset = at.checked_sub(self.vectors?)?;
        // Sixteen vectors of 128 bytes: four each of sync, irq, fiq and error. An entry's code may go on behind a jump.
        (offset < 0x800 && offset.is_multiple_of(0x80))
            .then(|| self.exceptions[if offset % 0x200 == 0 { SYNC } else { IRQ }])
    }

    fn push(&mut self, stack: &mut Vec<Frame>, of: Of, frame: Frame) {
        let above = stack.last().map_or(ROOT, |frame| frame.node);
        let node = self.tree.below(above, of);
        if let Some(interval) = self.intervals.last_mut() {
            interval.counts.entry(node).or_default().1 += 1;
        }
        stack.push(Frame { node, ..frame });
    }

    /// Makes the stack what it is at `at`.
    fn go_to(&mut self, at: u64, cpu: &mut Cpu, stack: &mut Vec<Frame>) {
        // An exception's vector.
        if let Some(exception) = self.exception(at) {
            let interrupted = match cpu.before {
                // The next one was pending already: nothing ran between the two.
                Some(Before { end: End::Resume, .. }) => self.pop_exception(stack),
                before => before,
            };
            self.push(stack, Of::Exception(exception), Frame { interrupted, ..CALL });
            return;
        }
        let Some((function, is_first)) = self.symbols.at(at) else { return };
        let before = match cpu.before {
            // The end of an exception.
            Some(Before { end: End::Resume, .. }) => self.pop_exception(stack),
            before => before,
        };
        let Some(before) = before else {
            self.guess(stack, function);
            return;
        };
        // Straight on: arm's calls and returns may be conditional.
        if before.next == at && !(before.end == End::Call && is_first) {
            return;
        }
        match before.end {
            // A call.
            End::Call => {
                let frame = Frame { returns_to: Some(before.next), is_veneer: !is_first, ..CALL };
                self.push(stack, Of::Call(function), frame);
            }
            // A return.
            End::Return => self.return_to(at, function, cpu, stack),
            // An interrupt between the end of an exception and what it returns to.
            End::Resume => self.guess(stack, function),
            // A jump: a tail call, or back into a caller.
            End::Other => {
                let Some(top) = stack.last().copied() else {
                    self.guess(stack, function);
                    return;
                };
                let is_own = |frame: &Frame| self.tree.of(frame.node) == Of::Call(function);
                if is_own(&top) {
                    return;
                }
                if top.is_veneer {
                    stack.pop();
                    self.push(stack, Of::Call(function), Frame { is_veneer: !is_first, ..top });
                } else if is_first {
                    let frame = Frame { returns_to: top.returns_to, is_tail: true, ..CALL };
                    self.push(stack, Of::Call(function), frame);
                } else {
                    let tails = stack.iter().rev().take_while(|frame| frame.is_tail).count();
                    let lowest = stack.len() - 1 - tails.min(stack.len() - 1);
                    if let Some(place) = (lowest..stack.len()).rev().find(|&at| is_own(&stack[at]))
                    {
                        stack.truncate(place + 1);
                    }
                    // Else a label of assembly within what runs.
                }
            }
        }
    }

    /// Ends the innermost exception; what the run ended with that it interrupted.
    fn pop_exception(&self, stack: &mut Vec<Frame>) -> Option<Before> {
        let is_exception = |frame: &Frame| matches!(self.tree.of(frame.node), Of::Exception(_));
        let place = stack.iter().rposition(is_exception)?;
        let interrupted = stack[place].interrupted;
        stack.truncate(place);
        interrupted
    }

    fn return_to(&mut self, at: u64, function: Function, cpu: &mut Cpu, stack: &mut Vec<Frame>) {
        let top = stack.last().map(|frame| self.tree.of(frame.node));
        let is_switch = self.switch.iter().flatten().any(|f| top == Some(Of::Call(*f)));
        if let Some(next) = cpu.switching_to.filter(|_| is_switch) {
            self.stacks.insert(cpu.task, std::mem::take(stack));
            cpu.task = next;
            cpu.switching_to = None;
            *stack = self.stacks.remove(&next).unwrap_or_default();
        }
        let mut place = None;
        for (index, frame) in stack.iter().enumerate().rev() {
            if frame.returns_to == Some(at) && !frame.is_tail {
                place = Some(index);
                break;
            }
            if matches!(self.tree.of(frame.node), Of::Exception(_)) {
                break;
            }
        }
        match place {
            Some(place) => stack.truncate(place),
            None => self.guess(stack, function),
        }
    }

    /// The function becomes the only one on the stack, or in the exception.
    fn guess(&mut self, stack: &mut Vec<Frame>, function: Function) {
        let is_exception = |frame: &Frame| matches!(self.tree.of(frame.node), Of::Exception(_));
        let kept = stack.iter().rposition(is_exception).map_or(0, |place| place + 1);
        let is_own = |frame: &Frame| self.tree.of(frame.node) == Of::Call(function);
        if stack.len() == kept + 1 && is_own(&stack[kept]) {
            return;
        }
        self.lost += u64::from(self.is_named);
        stack.truncate(kept);
        self.push(stack, Of::Call(function), CALL);
    }
}

/// A processor of whose task nothing is known: a number that is no address.
fn new_cpu(cpu: usize) -> Cpu {
    Cpu { task: cpu as u64, ..Cpu::default() }
}
