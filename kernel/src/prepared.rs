//! The shortest path of all: an exchange whose chip the C half selects by itself, for `module/api.c`.
//!
//! # Safety
//! As [`abi`](crate::abi): the C half's promises.
#![allow(unsafe_code, reason = "the C half calls these with pointers")]

use core::hint::unreachable_unchecked;

use barewire::controller::{Controller, Preset};

use crate::abi::{EIO, Slot, buffers, ended};
use crate::host::{self, Host, any};

/// Whether the block's function below takes `len` bytes, with the block as it is configured now. It takes each shorter exchange
/// too.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_takes_selected(
    slot: &Slot,
    preset: &Preset,
    len: usize,
) -> bool {
    let Some(host) = &slot.host else { return false };
    any!(host, controller => controller.takes_selected(preset, len))
}

/// For each block, a function that exchanges `len` bytes with a chip that the caller has selected: none saves the registers that
/// another needs. [`bw_takes_selected`] was true for the preset and the length, and nothing else was done with the block since.
/// Returns 0 or a negative error. After an error the caller deselects the chip and calls [`bw_reclaim`].
macro_rules! of_block {
    ($($name:ident $rest:ident: $block:ident, $short:expr;)+) => {$(
        /// # Safety
        /// The module's page. `len` bytes at `tx` and at `rx`, apart. [`bw_takes_selected`] was true for the preset and `len`, and the
        /// block is of this kind.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            slot: &mut Slot,
            preset: &Preset,
            tx: *const u8,
            rx: *mut u8,
            len: usize,
        ) -> i32 {
            // SAFETY: promised.
            let (tx, rx) = unsafe { buffers(tx, rx, len) };
            #[cfg(feature = "provoke")]
            assert!(tx != [0xbd, 0, 0], "as provoked");
            let Some(Host::$block(block)) = &mut slot.host else {
                // SAFETY: promised: `bw_takes_selected` looked at the host, which is of this block.
                unsafe { unreachable_unchecked() }
            };
            // A short one is inlined, and calls nothing that returns here.
            match $short {
                Some(len) if tx.len() > len => $rest(block, preset, tx, rx, false),
                _ if block.exchange_selected(preset, tx, rx) => 0,
                _ => $rest(block, preset, tx, rx, true),
            }
        }

        #[inline(never)]
        fn $rest(block: &mut host::$block, preset: &Preset, tx: &[u8], rx: &mut [u8], begun: bool) -> i32 {
            if !begun && block.exchange_selected(preset, tx, rx) {
                return 0;
            }
            ended(block.rest_selected(preset, tx, rx))
        }
    )+};
}

of_block! {
    bw_exchange_ecspi ecspi: Ecspi, Some(4);
    bw_exchange_bcm2835 bcm2835: Bcm2835, None::<usize>;
    bw_exchange_pl022 pl022: Pl022, None::<usize>;
}

/// The same for every other block, without a function of its own.
///
/// # Safety
/// The module's page. `len` bytes at `tx` and at `rx`, apart.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_exchange_other(
    slot: &mut Slot,
    preset: &Preset,
    tx: *const u8,
    rx: *mut u8,
    len: usize,
) -> i32 {
    // SAFETY: promised.
    let (tx, rx) = unsafe { buffers(tx, rx, len) };
    let Some(host) = &mut slot.host else { return EIO };
    any!(host, block => {
        if block.exchange_selected(preset, tx, rx) {
            return 0;
        }
        ended(block.rest_selected(preset, tx, rx))
    })
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
