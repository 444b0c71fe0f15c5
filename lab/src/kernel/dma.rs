//! A DMA engine as set-up and rate: what a user knows of the one on the board.
//!
//! *Read first*: [`super`].
//!
//! # How it works
//! The driver spends the set-up, starts the engine and sleeps. A thread stands for the engine's channels: it moves a byte each
//! way, at most one in the time of a byte, and then raises its interrupt. The handler wakes the driver.
//!
//! # Not supported
//! Descriptors, memory, bursts, and several users of one engine.

use barewire_sim::chip::Ps;
use barewire_sim::engine::Thread;
use barewire_sim::{Board, IntLine};

use super::Word;
use crate::machine::Machine;

/// The engine.
pub struct Dma {
    board: Board,
    /// Mapping, descriptors and the start, and unmapping after it.
    setup_ps: Ps,
    /// From one byte to the next, at least.
    byte_ps: Ps,
    request: IntLine,
    line: IntLine,
    done: Word,
}

impl Dma {
    /// An engine of `board`.
    #[must_use]
    pub fn new(board: &Board, setup_ps: Ps, byte_ps: Ps) -> Self {
        let (request, line) = (board.line(), board.line());
        Self { board: board.clone(), setup_ps, byte_ps, request, line, done: Word::default() }
    }

    /// A transfer, from its set-up to the woken driver.
    pub fn transfer(&self, machine: &Machine) {
        machine.delay("set up DMA", self.setup_ps);
        self.request.raise();
        machine.wait("DMA, its interrupt and wake-up", false, || {
            self.done.wait(self.board.engine());
        });
        machine.charge("completion", &["completion"]);
    }

    /// The engine and its handler; `step` moves what can be moved, and says whether all is done.
    pub fn threads<'a>(
        &'a self,
        machine: &'a Machine,
        step: impl Fn() -> bool + 'a,
    ) -> Vec<Thread<'a>> {
        let engine = self.board.engine();
        let handler = move || {
            while self.line.wait(None) {
                self.line.lower();
                machine.charge("interrupt entry", &["interrupt-entry"]);
                machine.charge("tasklet", &["tasklet"]);
                machine.waking("complete", || self.done.raise(engine));
            }
        };
        let channels = move || {
            while self.request.wait(None) {
                self.request.lower();
                machine.wait("DMA", false, || {
                    loop {
                        let next_at = engine.now_ps() + self.byte_ps;
                        if step() {
                            break;
                        }
                        engine.spend_ps(next_at.saturating_sub(engine.now_ps()).max(1));
                    }
                    self.line.raise();
                });
            }
        };
        vec![
            Thread::new("dma interrupt", handler).interrupt(0),
            Thread::new("DMA", channels).interrupt(9),
        ]
    }
}
