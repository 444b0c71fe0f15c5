//! The packets that files read: the state of lines that they watch, and events.

use rustix::io::Errno;

use super::super::Pins;
use super::super::config::{flag, told_1};
use super::super::edges::Now;
use super::super::layout::{self, FilledStruct};
use super::queue::{LossOrder, Queue};
use super::{GpioChip, GpioError, Kind, LineState, User};
use crate::protocol::OpenId;

/// Packets of a file that watches lines' states, as many as the kernel keeps.
const WATCHER_PACKETS: usize = 32;
/// An open file of the chip that watches lines' states.
pub(super) struct Watcher {
    /// Which version's structures it reads: that of its first watch.
    version: u8,
    pub(super) lines: u64,
    pub(super) queue: Queue,
}

/// `gpio_v2_line_changed_type`, the same in version 1.
#[derive(Clone, Copy)]
pub(super) enum LineChange {
    Requested = 1,
    Released = 2,
    Config = 3,
}

impl<P: Pins> GpioChip<P> {
    /// A file of the chip watches a line's state from now on.
    pub(super) fn watch(&mut self, file: OpenId, line: u32, version: u8) -> Result<(), GpioError> {
        let queue = Queue::new(WATCHER_PACKETS);
        let watcher = self.watchers.entry(file).or_insert(Watcher { version, lines: 0, queue });
        if watcher.version != version {
            return Err(Errno::PERM.into());
        }
        if watcher.lines >> line & 1 != 0 {
            return Err(Errno::BUSY.into());
        }
        watcher.lines |= 1 << line;
        Ok(())
    }

    /// `struct gpio_v2_line_info` of a line.
    pub(super) fn info(&self, line: u32) -> Vec<u8> {
        let LineState { name, user, consumer, flags, debounce_us } = &self.lines[line as usize];
        let used = if *user == User::Nobody { 0 } else { flag::USED };
        let info = FilledStruct::new(layout::LINE_INFO)
            .name(0, name.as_bytes())
            .name(layout::NAME, consumer)
            .u32(64, line)
            .u64(72, flags | used);
        match debounce_us {
            0 => info.0,
            // One attribute, the debounce period's.
            period => info.u32(68, 1).u32(80, 3).u32(88, *period).0,
        }
    }

    /// Version 1's, `struct gpioline_info`.
    pub(super) fn info_1(&self, line: u32) -> Vec<u8> {
        let LineState { name, user, consumer, flags, .. } = &self.lines[line as usize];
        let used = if *user == User::Nobody { 0 } else { flag::USED };
        FilledStruct::new(layout::LINE_INFO_1)
            .u32(0, line)
            .u32(4, told_1(flags | used))
            .name(8, name.as_bytes())
            .name(8 + layout::NAME, consumer)
            .0
    }

    /// Reports a line's state to the files that watch it.
    pub(super) fn tell(&mut self, line: u32, changed: LineChange, now: &Now) {
        if self.watchers.values().all(|watcher| watcher.lines >> line & 1 == 0) {
            return;
        }
        let (info, info_1) = (self.info(line), self.info_1(line));
        for watcher in self.watchers.values_mut().filter(|watcher| watcher.lines >> line & 1 != 0) {
            let packet = match watcher.version {
                1 => FilledStruct::new(layout::LINE_INFO_CHANGED_1)
                    .bytes(0, &info_1)
                    .u64(72, now.monotonic_ns)
                    .u32(80, changed as u32),
                _ => FilledStruct::new(layout::LINE_INFO_CHANGED)
                    .bytes(0, &info)
                    .u64(256, now.monotonic_ns)
                    .u32(264, changed as u32),
            };
            watcher.queue.push(packet.0, &LossOrder::Newest);
        }
    }

    /// Looks at the lines that are watched, and keeps their events.
    pub fn look(&mut self, now: &Now) {
        for request in self.requests.values_mut() {
            for requested in &mut request.lines {
                let Some(watched) = &mut requested.watched else { continue };
                let line = requested.line;
                let changes = watched.look(&self.pins.look(line), now);
                let flags = self.lines[line as usize].flags;
                for change in changes {
                    let rising = change.level != (flags & flag::ACTIVE_LOW != 0);
                    let edge = if rising { flag::EDGE_RISING } else { flag::EDGE_FALLING };
                    if flags & edge == 0 {
                        continue;
                    }
                    let id = if rising { 1 } else { 2 };
                    let packet = match request.kind {
                        Kind::Lines => {
                            request.sequence = request.sequence.wrapping_add(1);
                            requested.sequence = requested.sequence.wrapping_add(1);
                            let at_ns = match flags & flag::REALTIME {
                                0 => change.at_ns,
                                _ => now.realtime_of(change.at_ns),
                            };
                            FilledStruct::new(layout::LINE_EVENT)
                                .u64(0, at_ns)
                                .u32(8, id)
                                .u32(12, line)
                                .u32(16, request.sequence)
                                .u32(20, requested.sequence)
                        }
                        _ => FilledStruct::new(layout::EVENT_DATA).u64(0, change.at_ns).u32(8, id),
                    };
                    let lost = match request.kind {
                        Kind::Lines => LossOrder::Oldest,
                        _ => LossOrder::Newest,
                    };
                    request.queue.push(packet.0, &lost);
                }
            }
        }
    }

    /// Passes on the packets that are kept, oldest first, each with the file that reads it, until `send` says
    /// that it could not be sent: then the file's are kept.
    pub fn deliver(&mut self, send: &mut dyn FnMut(OpenId, &[u8]) -> bool) {
        let requests = self.requests.iter_mut().map(|(file, one)| (*file, &mut one.queue));
        let watchers = self.watchers.iter_mut().map(|(file, one)| (*file, &mut one.queue));
        for (file, queue) in requests.chain(watchers) {
            while let Some(packet) = queue.packets.front() {
                if !send(file, packet) {
                    break;
                }
                queue.packets.pop_front();
            }
        }
    }

    /// Whether packets are kept.
    pub fn has_packets(&self) -> bool {
        let requests = self.requests.values().map(|one| &one.queue);
        let mut queues = requests.chain(self.watchers.values().map(|one| &one.queue));
        queues.any(|queue| !queue.packets.is_empty())
    }
}
