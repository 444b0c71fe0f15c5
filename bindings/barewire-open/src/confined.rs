//! Values that share counted references among themselves, used by one thread at a time.
//!
//! # How it works
//! A simulated board, and a board in QEMU, is a graph of `Rc`s. Such a graph may move to another thread as a
//! whole, if no reference to a part of it stays behind. [`ConfinedGraph`] sees to that: the graph is made by a
//! closure that is `Send` and used by closures that are `Send` and return something that is, so that no `Rc`
//! gets in or out. A mutex makes the uses exclusive.
//!
//! # Safety
//! One hole is left: a thread-local variable could carry an `Rc`. So [`ConfinedGraph::new`] is unsafe, and its caller
//! promises that the type's code keeps nothing of the graph in thread-locals and does not depend on the thread
//! that runs it.
#![allow(unsafe_code, reason = "a graph of `Rc`s moves between threads as a whole")]

use std::sync::{Mutex, PoisonError};

struct Graph<T>(T);

// SAFETY: all references into the graph are inside it, by the module's Safety.
unsafe impl<T> Send for Graph<T> {}

/// A graph of counted references, used by one thread at a time.
pub(crate) struct ConfinedGraph<T>(Mutex<Graph<T>>);

impl<T> ConfinedGraph<T> {
    /// Makes the graph.
    ///
    /// # Safety
    /// The code of `T` keeps no part of the graph in a thread-local variable, and works on any thread.
    pub(crate) unsafe fn new<E: Send>(
        make: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<Self, E> {
        Ok(Self(Mutex::new(Graph(make()?))))
    }

    /// Uses the graph; waits while another thread does.
    pub(crate) fn with<R: Send>(&self, work: impl FnOnce(&mut T) -> R + Send) -> R {
        // A panic of a controller leaves the models as they are: the bus has told its caller.
        let mut graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut graph.0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::thread;

    use super::*;

    struct Pair {
        one: Rc<Cell<u32>>,
        other: Rc<Cell<u32>>,
    }

    fn pair() -> ConfinedGraph<Pair> {
        let make = || {
            let one = Rc::new(Cell::new(0));
            Ok::<_, ()>(Pair { other: Rc::clone(&one), one })
        };
        // SAFETY: a `Pair` has no thread-locals.
        unsafe { ConfinedGraph::new(make) }.expect("made")
    }

    #[test]
    fn threads_use_it_in_turn_and_drop_it_anywhere() {
        let pair = Arc::new(pair());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let pair = Arc::clone(&pair);
                thread::spawn(move || {
                    for _ in 0..50 {
                        pair.with(|pair| {
                            let clone = Rc::clone(&pair.one);
                            clone.set(pair.other.get() + 1);
                        });
                    }
                })
            })
            .collect();
        let sum = pair.with(|pair| pair.one.get());
        assert!(sum <= 200);
        drop(pair.clone());
        let last = thread::spawn(move || {
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            pair.with(|pair| pair.other.get())
        });
        assert_eq!(last.join().expect("no panic"), 200);
    }

    #[test]
    fn a_panic_does_not_lock_others_out() {
        let pair = Arc::new(pair());
        let panicking = Arc::clone(&pair);
        let ended = thread::spawn(move || panicking.with(|_| panic!("in a message"))).join();
        assert!(ended.is_err());
        assert_eq!(pair.with(|pair| pair.one.get()), 0);
    }
}
