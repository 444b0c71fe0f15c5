//! The shortest path of all: an exchange whose chip the C half selects by itself, for `module/api.c`.
//!
//! # Safety
//! As [`abi`](crate::abi): the C half's promises.
#![allow(unsafe_code, reason = "the C half calls these with pointers")]

use core::slice;

use barewire::controller::{Controller, Preset, Unfinished};

use crate::abi::{EIO, Slot, errno};
use crate::host::{Host, any};

/// Whether [`bw_exchange_selected`] takes `len` bytes with the block as it is configured now. It takes each shorter exchange too.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_takes_selected(slot: &Slot, preset: &Preset, len: usize) -> bool {
    let Some(host) = &slot.host else { return false };
    any!(host, controller => controller.takes_selected(preset, len))
}

/// Exchanges `len` bytes with a chip that the caller has selected. Returns 0 or a negative error. After an error the caller
/// deselects the chip and calls [`bw_reclaim`].
///
/// # Safety
/// The module's page. `len` bytes at `tx` and at `rx`, apart.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_exchange_selected(
    slot: &mut Slot,
    preset: &Preset,
    tx: *const u8,
    rx: *mut u8,
    len: usize,
) -> i32 {
    // SAFETY: promised.
    let tx = unsafe { slice::from_raw_parts(tx, len) };
    // SAFETY: promised.
    let rx = unsafe { slice::from_raw_parts_mut(rx, len) };
    #[cfg(feature = "provoke")]
    assert!(tx != [0xbd, 0, 0], "as provoked");
    // A function for each block: none saves the registers that another needs.
    match &mut slot.host {
        Some(Host::Ecspi(block)) => ecspi(block, preset, tx, rx),
        Some(Host::Bcm2835(block)) => bcm2835(block, preset, tx, rx),
        Some(Host::Pl022(block)) => pl022(block, preset, tx, rx),
        None => EIO,
    }
}

macro_rules! of_block {
    ($($name:ident: $block:ty;)+) => {$(
        #[inline(never)]
        fn $name(block: &mut $block, preset: &Preset, tx: &[u8], rx: &mut [u8]) -> i32 {
            match block.exchange_selected(preset, tx, rx) {
                Some(Ok(())) => 0,
                ended => failed(ended),
            }
        }
    )+};
}

of_block! {
    ecspi: crate::host::Ecspi;
    bcm2835: crate::host::Bcm2835;
    pl022: crate::host::Pl022;
}

#[cold]
fn failed(ended: Option<Result<(), Unfinished>>) -> i32 {
    match ended {
        Some(Err(unfinished)) => errno(unfinished.error()),
        // `bw_takes_selected` was not asked.
        _ => EIO,
    }
}

/// Makes the block idle after an error: FIFOs empty, chips deselected, its configuration forgotten.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_reclaim(slot: &mut Slot) {
    if let Some(host) = &mut slot.host {
        any!(host, controller => controller.reclaim());
    }
}
