//! The thread's camera: a second of video, whose buffers are unmapped as they are done.
//!
//! *Read first*: the thread's last paragraph before the sign-off. It says that frequent unmaps of about 100 MB/s take more
//! than 100 ms, and that frames are dropped. All else is assumed:
//!
//! - 30 frames a second, each an NV12 picture of 1920 by 1088 (765 pages) and 192 KiB of statistics (48 pages): 99.9 MB/s.
//! - Each buffer is one call, of single pages, and begins where a table does.
//! - Three or four frames are mapped at any time.
//!
//! # Not explained
//! Flushed by address it takes 6 to 7 ms, at the low ends of the costs and at the high ones. 100 ms would be 4 us for each
//! invalidation instead of 0.13. Suspected: the SMMU waits for realtime clients such as the camera (the thread names
//! `wait-for-safe`), and the table was measured while no camera ran.

use std::fmt;

use super::table::{PAGE, TABLE_SPAN, WorkCounts, with_table};
use super::{Costs, Flush, IOVA, StepCount, unmap_steps};

/// Why it takes so much less than the thread says, in short.
pub const UNEXPLAINED: &str = "100 ms are not explained: they would be 4 us for each invalidation, which the thread's table has \
     at 0.13; suspected: the SMMU waits for realtime clients such as the camera";

const FRAMES: u64 = 30;
/// Frames that are mapped before the first is done.
const DEPTH: u64 = 3;
/// The pages of a frame's buffers.
const BUFFERS: [u64; 2] = [765, 48];
/// The room of a buffer.
const SLOT: u64 = 2 * TABLE_SPAN;

/// The time of unmapping in a second of video.
#[derive(Clone, Debug, PartialEq)]
pub struct Camera {
    /// The bytes unmapped.
    pub bytes: u64,
    /// The calls of iommu_unmap.
    pub calls: u64,
    /// The invalidations.
    pub invalidations: u64,
    /// The steps, which add up to the time.
    pub steps: Vec<StepCount>,
}

impl Camera {
    /// The time in iommu_unmap, in milliseconds for each second of video.
    #[must_use]
    pub fn unmap_ms_per_s(&self) -> f64 {
        self.steps.iter().map(|step| step.ps).sum::<f64>() / 1e9
    }
}

impl fmt::Display for Camera {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mb, ms) = (self.bytes as f64 / 1e6, self.unmap_ms_per_s());
        let Self { calls, invalidations, .. } = self;
        write!(
            f,
            "{ms:.2} ms in iommu_unmap per second of video: {mb:.1} MB in {calls} calls, {invalidations} invalidations"
        )
    }
}

/// A second of the camera.
#[must_use]
pub fn camera(costs: &Costs, flush: Flush) -> Camera {
    let mut counted = WorkCounts::default();
    let slots = (DEPTH + 1) * BUFFERS.len() as u64;
    // A frame's buffers by their IOVA and size. A queued frame takes the room of the frame that was finished before it.
    let buffers = |frame: u64| {
        let first = frame % (DEPTH + 1) * BUFFERS.len() as u64;
        BUFFERS.into_iter().zip(first..).map(|(pages, slot)| (IOVA + slot * SLOT, pages * PAGE))
    };
    let mut bytes = 0;
    with_table(slots * SLOT, |table| {
        for frame in 0..FRAMES + DEPTH {
            // The last frames are mapped and never unmapped: the video goes on, and their pages make a
            // flush by ASID dearer.
            for (iova, size) in buffers(frame) {
                table.map(iova, size, &mut WorkCounts::default());
            }
            for (iova, size) in frame.checked_sub(DEPTH).into_iter().flat_map(buffers) {
                table.unmap(iova, size, (flush, costs.for_strategy()), &mut counted);
                bytes += size;
            }
        }
    });
    let (calls, invalidations) = (counted.calls, counted.invalidations());
    Camera { bytes, calls, invalidations, steps: unmap_steps(&counted, costs) }
}
