//! The lock: several messages with no other between them.
#![allow(unsafe_code, reason = "functions for C code have names that are not mangled")]

use crate::border::guard;
use crate::error::bw_error;
use crate::shared::BUSES;
use crate::types::bw_bus;

/// Waits for the bus and locks it for the calling thread: until `bw_unlock` its messages run with no other between them,
/// and other threads' wait. A second call of the same thread, and one in a callback, returns `BW_ERROR_WOULD_DEADLOCK`.
/// A thread that ends releases its locks.
#[unsafe(no_mangle)]
pub extern "C" fn bw_lock(bus: *mut bw_bus) -> bw_error {
    guard(|| BUSES.get(bus)?.lock(false))
}

/// Locks the bus if it is free; else `BW_ERROR_BUSY`. Never waits.
#[unsafe(no_mangle)]
pub extern "C" fn bw_try_lock(bus: *mut bw_bus) -> bw_error {
    guard(|| BUSES.get(bus)?.lock(true))
}

/// Releases the lock. `BW_ERROR_NOT_LOCKED` if the calling thread does not hold it; another's stays.
#[unsafe(no_mangle)]
pub extern "C" fn bw_unlock(bus: *mut bw_bus) -> bw_error {
    guard(|| BUSES.get(bus)?.unlock())
}
