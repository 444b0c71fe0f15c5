//! The files by which the library runs messages on a mapped controller itself: a page and a text for each node.
//!
//! Read first: [`barewire_spidev_abi::direct`].
//!
//! # How it works
//! A bus that several processes may use (`mem:…` without `exclusive`) has one more user then: the program. This
//! process handles every other request, and checks that the controller is still ours. Through the page it stops the
//! programs' messages; if this process ends for any reason, they stop too.

use std::fs::{self, File};
use std::path::Path;

use barewire_linux::map::Watch;
use barewire_linux::shared::Lifeline;
use barewire_spidev_abi::Chip;
use barewire_spidev_abi::direct::{PAGE_BYTES, Page, files};
use rustix::time::Timespec;

use super::map::Map;
use crate::shared::failure::Failure;
use crate::shared::session::Session;

/// How often it is looked whether a controller is still ours.
pub(super) const LOOK_EVERY: Timespec =
    Timespec { tv_sec: 0, tv_nsec: Watch::INTERVAL.subsec_nanos() as _ };

/// A node whose messages the program may run.
#[derive(Debug)]
pub(super) struct Direct {
    lifeline: Lifeline,
}

impl Direct {
    /// Makes the files of that node, if its bus can be used by the program. To be called by the thread that
    /// serves: its end is the end of the node.
    pub(super) fn make(
        tree: &Path,
        map: &Map,
        session: &Session,
        chip: &Chip,
    ) -> Result<Option<Self>, Failure> {
        let is_mapped =
            ["mem:", "uio:", "barewire:"].iter().any(|scheme| map.bus.starts_with(scheme));
        // Without a lock, this process is the only user.
        if !is_mapped || session.open.chip_locks().is_none() {
            return Ok(None);
        }
        let failed = |error: std::io::Error| Failure::io("write a temporary directory", &error);
        let [page, text] = files(tree, map.node);
        page.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        let file = File::options().read(true).write(true).create_new(true).open(&page);
        let file = file.map_err(failed)?;
        file.set_len(PAGE_BYTES).map_err(failed)?;
        // On a system without such locks, the server runs all messages.
        let Ok(lifeline) = Lifeline::hold(&file) else { return Ok(None) };
        let direct = Self { lifeline };
        direct.with(|page| page.make(chip.setup(), direct.lifeline.word()));
        direct.publish(chip);
        fs::write(&text, &map.bus).map_err(failed)?;
        Ok(Some(direct))
    }

    fn with(&self, work: impl FnOnce(Page<'_>)) {
        if let Some(page) = Page::new(self.lifeline.words().words()) {
            work(page);
        }
    }

    /// Tells the program of the node's settings, if they changed.
    pub(super) fn publish(&self, chip: &Chip) {
        let now = chip.settings_now();
        self.with(|page| {
            if page.settings(page.generation()) != Some(now) {
                page.publish(&now);
            }
        });
    }

    /// Tells the program that an open file of the node was closed, and of the settings.
    pub(super) fn count_closed(&self, chip: &Chip) {
        self.with(|page| page.count_closed(&chip.settings_now()));
    }

    /// Says whether a chip of the bus is selected, or may be.
    pub(super) fn set_kept(&self, kept: bool) {
        self.with(|page| page.set_kept(kept));
    }

    /// Ends the program's own messages.
    pub(super) fn stop(&self) {
        self.with(|page| page.stop());
    }
}
