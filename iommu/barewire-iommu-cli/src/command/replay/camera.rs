//! The thread's camera as a trace: about 100 MB mapped and unmapped a second.
//!
//! *Read first*: S. P. Ranjan's patch "Optimize ->tlb_flush_walk() for qcom implementation" (v3, 23
//! June 2021): frames are dropped because unmapping about 100 MB a second takes more than 100 ms.
//! It says no more of the camera, so all else is assumed:
//!
//! - 30 frames a second, for one second.
//! - A frame is an NV12 picture of 1920 by 1088 (765 pages of 4 KiB) and 192 KiB of statistics (48
//!   pages), each a buffer of its own: 99.9 MB a second.
//! - Every page lies somewhere else in memory, so the tracer sees a map for each.
//! - A buffer is mapped when the driver queues it, three frames before it is done and unmapped.
//! - IOVAs are aligned to the next power of two, as Linux's allocator does for DMA, and are used
//!   again after six frames.

use std::fmt::Write as _;

use super::trace::Event;

/// Assumptions in a line, for the report.
pub(super) const ABOUT: &str = "generated: 1 s of 30 frames/s, each an NV12 picture of 765 pages and \
    192 KiB of statistics, 4 KiB pages scattered, mapped 3 frames before they are unmapped";

const FRAMES: u64 = 30;
const FRAMES_PER_SECOND: u64 = 30;
const PAGE: u64 = 4096;
/// Pages of each buffer of a frame, and the power of two its IOVA is aligned to.
const BUFFERS: [(u64, u64); 2] = [(765, 4 << 20), (48, 256 << 10)];
/// Frames under way.
const DEPTH: u64 = 3;
/// Frames until an IOVA is used again.
const ROTATION: u64 = 6;
const BEGIN_NS: u64 = 100_000_000_000;

/// The events, in order.
pub(super) fn events() -> impl Iterator<Item = (u64, Event<'static>)> {
    (0..FRAMES + DEPTH).flat_map(|frame| {
        // The tracer writes microseconds.
        let time_ns = BEGIN_NS + frame * 1_000_000 / FRAMES_PER_SECOND * 1_000;
        let done = frame.checked_sub(DEPTH).into_iter().flat_map(unmaps);
        let queued = Some(frame).filter(|&frame| frame < FRAMES).into_iter().flat_map(maps);
        // Two microseconds for each event: what the trace of one CPU may look like.
        (0..).zip(done.chain(queued)).map(move |(n, event)| (time_ns + 2_000 * n, event))
    })
}

/// The IOVA of a frame's buffer: rotations from the top of 32 bits down, each kind in its own room.
fn iova(frame: u64, buffer: usize) -> u64 {
    let above: u64 = BUFFERS[..buffer].iter().map(|(_, aligned)| ROTATION * aligned).sum();
    (1 << 32) - above - (frame % ROTATION + 1) * BUFFERS[buffer].1
}

fn maps(frame: u64) -> impl Iterator<Item = Event<'static>> {
    (0..BUFFERS.len()).flat_map(move |buffer| {
        (0..BUFFERS[buffer].0).map(move |page| {
            // Odd multiples wander through 4 GiB without ever being neighbours.
            let number = (frame * 813 + buffer as u64 * 765 + page) * 0x9e37_79b1 % (1 << 20);
            Event::Map {
                iova: iova(frame, buffer) + page * PAGE,
                phys: (1 << 32) + number * PAGE,
                size: PAGE,
            }
        })
    })
}

fn unmaps(frame: u64) -> impl Iterator<Item = Event<'static>> {
    (0..BUFFERS.len()).map(move |buffer| {
        let size = BUFFERS[buffer].0 * PAGE;
        Event::Unmap { iova: iova(frame, buffer), size, unmapped: size }
    })
}

/// The events in the format of the kernel's tracer.
pub(super) fn text() -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for (time_ns, event) in events() {
        let (seconds, us) = (time_ns / 1_000_000_000, time_ns / 1_000 % 1_000_000);
        let _ = write!(text, "          camera-1     [000] ..... {seconds:5}.{us:06}: ");
        let _ = match event {
            Event::Map { iova, phys, size } => writeln!(
                text,
                "map: IOMMU: iova={iova:#018x} - {:#018x} paddr={phys:#018x} size={size}",
                iova + size
            ),
            Event::Unmap { iova, size, unmapped } => writeln!(
                text,
                "unmap: IOMMU: iova={iova:#018x} - {:#018x} size={size} unmapped_size={unmapped}",
                iova + size
            ),
            _ => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::trace;
    use super::*;

    #[test]
    fn about_100_mb_a_second_in_the_tracer_s_words() {
        let mut events = events();
        let mut bytes = [0_u64; 2];
        for line in text().lines() {
            let parsed = trace::parse(line).expect(line);
            match parsed.event {
                Event::Map { size, .. } => bytes[0] += size,
                Event::Unmap { unmapped, .. } => bytes[1] += unmapped,
                _ => continue,
            }
            let generated = events.next().map(|(time_ns, event)| (Some(time_ns), event));
            assert_eq!(generated, Some((parsed.time_ns, parsed.event)));
        }
        assert_eq!(events.next(), None);
        assert_eq!(bytes, [30 * 813 * 4096; 2]);
        assert_eq!(bytes[0], 99_901_440);
    }
}
