//! A socket between two processes, as far as its costs go.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use barewire::chip::mcp251xfd::Frame;

use crate::Board;
use crate::chip::Ps;

/// System calls that find nothing to do, in a send or a receive that does not sleep. Assumption:
/// on x86-64 with Linux 6.18 a send of 16 bytes through an AF_UNIX datagram socket took 2.1 times a
/// futex wait on a changed word, the receive 1.9 times; to be replaced by a measurement on silicon.
const CALLS: u64 = 2;

/// The most frames on their way. If the process that is to receive them never gets the processor, further
/// frames are lost. Linux bounds such a queue too.
const FRAMES_MAX: usize = 1_024;

/// Frames on their way.
#[derive(Default)]
pub(super) struct Socket {
    frames: RefCell<VecDeque<Frame>>,
    /// How many were sent. A receiver sleeps on this word.
    sent: AtomicU32,
}

impl Socket {
    fn call(board: &Board) {
        board.engine().spend_ps(CALLS * board.profile().futex_call_ps.value);
    }

    /// Queues a frame, if there is room, and wakes its receiver, at the cost of a futex wake-up.
    pub(super) fn send(&self, board: &Board, frame: Frame) {
        Self::call(board);
        let mut frames = self.frames.borrow_mut();
        if frames.len() < FRAMES_MAX {
            frames.push_back(frame);
        }
        drop(frames);
        self.sent.fetch_add(1, Relaxed);
        board.engine().wake(&raw const self.sent);
    }

    /// Sleeps until the next frame comes; `None` if none comes for `stall_ps`.
    pub(super) fn receive(&self, board: &Board, stall_ps: Ps) -> Option<Frame> {
        Self::call(board);
        loop {
            let sent = self.sent.load(Relaxed);
            if let Some(frame) = self.frames.borrow_mut().pop_front() {
                return Some(frame);
            }
            if !board.engine().wait_timeout(&self.sent, sent, stall_ps) {
                return None;
            }
        }
    }
}
