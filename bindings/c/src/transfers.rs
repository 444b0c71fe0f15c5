//! Transfers from C.
//!
//! # Safety
//! A transfer's buffers are as the function's documentation says: null, or valid for its length while the call lasts.
#![allow(unsafe_code, reason = "buffers from C")]

use std::ffi::c_void;
use std::slice;

use barewire::spi::Transfer;

use crate::error::bw_error;
use crate::failure::Failure;
use crate::types::bw_transfer;

/// Messages of up to this many transfers are made on the stack.
const ON_STACK: usize = 4;

/// The transfers of a message.
///
/// # Safety
/// Null, or valid for reads of `count` transfers.
#[inline]
pub(crate) unsafe fn all<'t>(
    transfers: *const bw_transfer,
    count: usize,
) -> Result<&'t [bw_transfer], Failure> {
    if transfers.is_null() && count > 0 {
        return Err(Failure::null("transfers"));
    }
    if count == 0 || count > isize::MAX as usize / size_of::<bw_transfer>() {
        return Err(wrong_count(count));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { slice::from_raw_parts(transfers, count) })
}

#[cold]
fn wrong_count(count: usize) -> Failure {
    match count {
        0 => Failure::new(bw_error::BW_ERROR_EMPTY, "a message needs at least one transfer"),
        _ => Failure::new(
            bw_error::BW_ERROR_ARGUMENT,
            format!("count is {count}: no array has so many transfers"),
        ),
    }
}

/// Refuses a transfer that no bus can accept. `index` goes into the error.
#[inline]
pub(crate) fn check(transfer: &bw_transfer, index: usize) -> Result<(), Failure> {
    let (tx, rx, len) = (transfer.tx.addr(), transfer.rx.addr(), transfer.len);
    let apart = tx == rx || tx == 0 || rx == 0 || tx.abs_diff(rx) >= len;
    if apart
        && len <= isize::MAX as usize
        && u128::from_ne_bytes(reserved(transfer)) == 0
        && (len == 0 || tx | rx != 0)
    {
        return Ok(());
    }
    Err(refused(transfer, index))
}

#[inline]
fn reserved(transfer: &bw_transfer) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..transfer.reserved.len()].copy_from_slice(&transfer.reserved);
    bytes
}

#[cold]
fn refused(transfer: &bw_transfer, index: usize) -> Failure {
    let len = transfer.len;
    let (code, text) = if len > isize::MAX as usize {
        (bw_error::BW_ERROR_LENGTH, format!("transfer {index}: no buffer has {len} bytes"))
    } else if transfer.reserved != [0; 14] {
        let text =
            format!("transfer {index}: reserved is not zero: set the whole struct to zero first");
        (bw_error::BW_ERROR_ARGUMENT, text)
    } else if transfer.tx.is_null() && transfer.rx.is_null() {
        let text =
            format!("transfer {index}: tx and rx are NULL, and len is {len}: give one of them");
        (bw_error::BW_ERROR_NULL, text)
    } else {
        let text = format!("transfer {index}: tx and rx overlap: use one buffer for both, or two");
        (bw_error::BW_ERROR_OVERLAP, text)
    };
    let mut failure = Failure::new(code, text);
    failure.transfer_index = index;
    failure
}

/// The buffers of one transfer, which [`check`] accepts.
///
/// # Safety
/// The module's.
#[inline]
pub(crate) unsafe fn buffers<'t>(tx: *const c_void, rx: *mut c_void, len: usize) -> Transfer<'t> {
    if len == 0 {
        return Transfer::write(&[]);
    }
    if rx.is_null() {
        // SAFETY: the module's.
        return Transfer::write(unsafe { slice::from_raw_parts(tx.cast(), len) });
    }
    // SAFETY: the module's.
    let received = unsafe { slice::from_raw_parts_mut(rx.cast(), len) };
    if tx.is_null() {
        Transfer::read(received)
    } else if tx.addr() == rx.addr() {
        Transfer::in_place(received)
    } else {
        // SAFETY: the module's; it does not overlap.
        Transfer::exchange(unsafe { slice::from_raw_parts(tx.cast(), len) }, received)
    }
}

/// Makes a message and runs it.
///
/// # Safety
/// The module's, and of [`all`].
#[inline(always)]
pub(crate) unsafe fn with_message<R>(
    transfers: *const bw_transfer,
    count: usize,
    run: impl Fn(&mut [Transfer<'_>]) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // SAFETY: the caller's promise.
    let transfers = unsafe { all(transfers, count) }?;
    let one = |index: usize| -> Result<Transfer<'_>, Failure> {
        let transfer = &transfers[index];
        check(transfer, index)?;
        // SAFETY: the caller's promise.
        Ok(transfer.shape().of(unsafe { buffers(transfer.tx, transfer.rx, transfer.len) }))
    };
    match transfers.len() {
        1 => run(&mut [one(0)?]),
        2 => run(&mut [one(0)?, one(1)?]),
        3 => run(&mut [one(0)?, one(1)?, one(2)?]),
        ON_STACK => run(&mut [one(0)?, one(1)?, one(2)?, one(3)?]),
        many => run(&mut (0..many).map(one).collect::<Result<Vec<_>, _>>()?),
    }
}
