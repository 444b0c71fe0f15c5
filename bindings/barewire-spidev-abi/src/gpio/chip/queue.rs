//! Packets that wait until a file's connection has room.

use std::collections::VecDeque;

/// Packets that wait to be sent.
pub(super) struct Queue {
    pub(super) packets: VecDeque<Vec<u8>>,
    max: usize,
}

/// Which packet is lost when a queue is full.
pub(super) enum LossOrder {
    Oldest,
    Newest,
}

impl Queue {
    pub(super) fn new(max: usize) -> Self {
        Self { packets: VecDeque::new(), max }
    }

    pub(super) fn push(&mut self, packet: Vec<u8>, lost: &LossOrder) {
        if self.packets.len() >= self.max {
            match lost {
                LossOrder::Oldest => drop(self.packets.pop_front()),
                LossOrder::Newest => return,
            }
        }
        self.packets.push_back(packet);
    }
}
