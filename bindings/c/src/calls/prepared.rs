//! Prepared messages: validated once, run many times over the caller's buffers.
//!
//! # Safety
//! Pointers are as the functions' documentation says.
#![allow(unsafe_code, reason = "functions for C code, and messages beside their bus")]

use std::sync::Arc;

use barewire::spi::MessageError;
use barewire_open::{DynController, OwnedMessage, OwnedPrepared};

use crate::border::{guard, put};
use crate::calls::device::DEVICES;
use crate::error::bw_error;
use crate::failure::Failure;
use crate::handle::{Table, Use};
use crate::shared::SharedBus;
use crate::transfers::{all, check};
use crate::types::{bw_device, bw_prepared, bw_transfer};

/// The prepared messages.
pub(crate) static PREPARED: Table<Prepared> = Table::new(3, "prepared message");

pub(crate) struct Prepared {
    // Dropped before the bus.
    core: OwnedPrepared<'static, DynController>,
    shared: Arc<SharedBus>,
}

// SAFETY: every access goes through `get_alone`, which is exclusive; a shared reference gives none.
unsafe impl Sync for Prepared {}

/// A message over the caller's buffers.
///
/// # Safety
/// The conditions of the functions that call it.
pub(crate) unsafe fn message_of(
    transfers: *const bw_transfer,
    count: usize,
) -> Result<OwnedMessage, Failure> {
    let mut message = OwnedMessage::new();
    // SAFETY: the caller's promise.
    for (index, transfer) in unsafe { all(transfers, count) }?.iter().enumerate() {
        check(transfer, index)?;
        let (tx, rx) = (transfer.tx.cast(), transfer.rx.cast());
        // SAFETY: the caller's promise.
        message = unsafe { message.with_borrowed(tx, rx, transfer.len, transfer.shape()) };
    }
    Ok(message)
}

/// Prepares a message: validates it and computes its register values, once. Stores its handle in `*prepared`. The
/// transfers are copied; their buffers are not: each run sends what is in `tx` then, and receives into `rx`.
///
/// # Safety
/// `transfers` is NULL or valid for `count` of them. Their buffers are NULL or valid for `len` bytes until
/// `bw_prepared_free`, and nothing else uses them during a run. `prepared` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_prepare(
    device: *mut bw_device,
    transfers: *const bw_transfer,
    count: usize,
    prepared: *mut *mut bw_prepared,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        if prepared.is_null() {
            return Err(Failure::null("the place for the prepared message's handle"));
        }
        // SAFETY: the caller's promise.
        let message = unsafe { message_of(transfers, count) }?;
        let core = message.prepared(&device.core);
        let core = core.map_err(|error| Failure::of_message(&device.shared.bus, &error))?;
        let handle = PREPARED.insert(Prepared { core, shared: Arc::clone(&device.shared) })?;
        // SAFETY: not null, and the caller's promise.
        unsafe { prepared.write(handle.cast()) };
        Ok(())
    })
}

/// Uses a prepared message alone.
#[inline(always)]
fn run(
    handle: *mut bw_prepared,
    run: impl FnOnce(&mut Prepared) -> Result<usize, MessageError>,
) -> Result<usize, Failure> {
    let used: Use<Prepared> = PREPARED.get_alone(handle)?;
    // SAFETY: no other call uses it.
    let prepared = unsafe { &mut *used.as_ptr() };
    run(prepared).map_err(|error| Failure::of_message(&used.shared.bus, &error))
}

/// Runs a prepared message and waits for it. `*length`, if `length` is not NULL, gets its length in bytes. If another
/// thread runs it, `BW_ERROR_BUSY`.
///
/// # Safety
/// The message's buffers are as `bw_prepare` says. `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_prepared_run(
    prepared: *mut bw_prepared,
    length: *mut usize,
) -> bw_error {
    guard(|| {
        let ran = run(prepared, |prepared| {
            if prepared.shared.is_locked_here() {
                return prepared.run_locked();
            }
            prepared.core.run()
        })?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

impl Prepared {
    #[cold]
    fn run_locked(&mut self) -> Result<usize, MessageError> {
        let bound = self.core.bound();
        match self.shared.with_lock(|locked| locked.run_message(bound)) {
            Some(ran) => ran,
            None => bound.run(),
        }
    }
}

/// `bw_prepared_run` if the bus is free and nothing is queued, else `BW_ERROR_BUSY`. Never waits for another.
///
/// # Safety
/// As `bw_prepared_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_prepared_try_run(
    prepared: *mut bw_prepared,
    length: *mut usize,
) -> bw_error {
    guard(|| {
        let ran = run(prepared, |prepared| {
            if prepared.shared.is_locked_here() {
                return prepared.run_locked();
            }
            prepared.core.bound().try_run()
        })?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

/// Frees a prepared message. If another thread runs it, it is freed, and its buffers are in use, until that ends.
#[unsafe(no_mangle)]
pub extern "C" fn bw_prepared_free(prepared: *mut bw_prepared) -> bw_error {
    guard(|| PREPARED.close(prepared).map(drop))
}
