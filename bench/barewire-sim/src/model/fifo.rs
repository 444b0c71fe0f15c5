//! A FIFO of a controller block.

use std::collections::VecDeque;

/// A queue of at most `depth` words.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    words: VecDeque<u32>,
    depth: usize,
}

impl Fifo {
    pub(super) fn new(depth: usize) -> Self {
        Self { words: VecDeque::with_capacity(depth), depth }
    }

    pub(super) fn count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.words.len() >= self.depth
    }

    /// Adds a word. Returns false if it was lost.
    #[must_use]
    pub(super) fn push(&mut self, word: u32) -> bool {
        let fits = !self.is_full();
        if fits {
            self.words.push_back(word);
        }
        fits
    }

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.words.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
    }
}
