//! Buses: open, close, time, figures.
//!
//! # Safety
//! Pointers are as the functions' documentation says.
#![allow(unsafe_code, reason = "functions for C code")]

use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, PoisonError};

use barewire::time::Timer;
use barewire_open::{AnyBus, OpenError, OpenOptions, name};

use crate::border::{give, guard, put_text, text};
use crate::error::bw_error;
use crate::failure::Failure;
use crate::shared::{BUSES, SharedBus};
use crate::types::{bw_bus, bw_note_fn, bw_simulated, bw_statistics};

const NS_PER_S: u128 = 1_000_000_000;

/// Opens the bus of that name, for example `sim:rpi3`, `null:`, `spidev:/dev/spidev0.0` or `mem:…`, and stores its handle
/// in `*bus`. `note`, which may be NULL, gets notes and warnings for people, and which process is waited for.
///
/// # Safety
/// `name` is NULL or a string; `bus` is NULL or valid for a write. `note` is as its type says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_bus_open(
    name: *const c_char,
    note: bw_note_fn,
    user: *mut c_void,
    bus: *mut *mut bw_bus,
) -> bw_error {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "the bus's name") }?;
        if bus.is_null() {
            return Err(Failure::null("the place for the bus's handle"));
        }
        let mut tell = |text: &str| {
            if let (Some(note), Ok(text)) = (note, CString::new(text)) {
                // SAFETY: the caller's promise.
                unsafe { note(user, text.as_ptr()) };
            }
        };
        let name = name::parse(name).map_err(OpenError::Name)?;
        let opened = AnyBus::open_with(&name, OpenOptions::default(), &mut tell)?;
        let handle = BUSES.insert(SharedBus::new(opened))?;
        // SAFETY: not null, and the caller's promise.
        unsafe { bus.write(handle.cast()) };
        Ok(())
    })
}

/// Closes a bus: waits for the message on the wire and for another thread's lock, releases the controller, and keeps
/// what a simulated flash chip has in its file. Queued messages, and later ones of any thread, fail with
/// `BW_ERROR_CLOSED`. Its devices, prepared messages and messages keep their handles, and are to be closed too.
///
/// A lock that the calling thread holds is released first. If the call fails with `BW_ERROR_OPEN`, the bus is closed all
/// the same, and the text says what could not be kept.
#[unsafe(no_mangle)]
pub extern "C" fn bw_bus_close(bus: *mut bw_bus) -> bw_error {
    guard(|| {
        let used = BUSES.close(bus)?;
        let shared = Arc::clone(&used);
        drop(used);
        if shared.is_locked_here() {
            shared.unlock()?;
        }
        let closed = shared.bus.close();
        shared.sweep();
        Ok(closed?)
    })
}

/// The bus's name without options, as text in a buffer of `size` bytes; cut, if there is less room.
///
/// # Safety
/// `name` is NULL or valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_bus_name(bus: *mut bw_bus, name: *mut c_char, size: usize) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        // SAFETY: the caller's promise.
        unsafe { put_text(shared.bus.name(), name, size) }
    })
}

/// Waits at least that many nanoseconds of the bus's time: on a simulated board its time passes, and none of the
/// process's; else up to 20 µs are spun and more is slept.
#[unsafe(no_mangle)]
pub extern "C" fn bw_delay_ns(bus: *mut bw_bus, delay_ns: u64) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        shared.bus.timer().sleep_ns(delay_ns);
        Ok(())
    })
}

/// The bus's time in nanoseconds, from some moment on.
///
/// # Safety
/// `now_ns` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_now_ns(bus: *mut bw_bus, now_ns: *mut u64) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        if now_ns.is_null() {
            return Err(Failure::null("now_ns"));
        }
        let mut clock = shared.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let (ticks, hz) = (u128::from(clock.now_ticks()), u128::from(clock.frequency_hz()));
        let ns = u64::try_from(ticks * NS_PER_S / hz.max(1)).unwrap_or(u64::MAX);
        // SAFETY: not null, and the caller's promise.
        unsafe { now_ns.write(ns) };
        Ok(())
    })
}

/// Turns counting on, if `counting` is not zero, or off. It is off at first; when off it costs next to nothing.
#[unsafe(no_mangle)]
pub extern "C" fn bw_set_counting(bus: *mut bw_bus, counting: i32) -> bw_error {
    guard(|| {
        BUSES.get(bus)?.bus.set_counting(counting != 0);
        Ok(())
    })
}

/// The counts of messages since counting was switched on, taken at one moment between two messages. `BW_ERROR_NOT_COUNTING`
/// while it is off: zeros would look like a count.
///
/// # Safety
/// `statistics` is NULL or points at a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_get_statistics(
    bus: *mut bw_bus,
    statistics: *mut bw_statistics,
) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        if !shared.bus.is_counting() {
            let text = "counting is off: call bw_set_counting(bus, 1) before the messages that are to be counted";
            return Err(Failure::new(bw_error::BW_ERROR_NOT_COUNTING, text));
        }
        let counted = shared.bus.statistics();
        let counted = bw_statistics {
            size: 0,
            reserved: 0,
            messages: counted.messages,
            transfers: counted.transfers,
            errors: counted.errors,
            timedout: counted.timedout,
            spi_sync: counted.spi_sync,
            spi_sync_immediate: counted.spi_sync_immediate,
            spi_async: counted.spi_async,
            bytes: counted.bytes,
            bytes_rx: counted.bytes_rx,
            bytes_tx: counted.bytes_tx,
            transfer_bytes_histo: counted.transfer_bytes_histo,
            transfers_split_maxsize: counted.transfers_split_maxsize,
        };
        // SAFETY: the caller's promise.
        unsafe { give(counted, statistics) }
    })
}

/// What a simulated board counted since it was opened; `BW_ERROR_NOT_SIMULATED` for another bus.
///
/// # Safety
/// `simulated` is NULL or points at a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_get_simulated(
    bus: *mut bw_bus,
    simulated: *mut bw_simulated,
) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        let figures = shared.bus.simulated().ok_or_else(|| not_simulated(&shared))?;
        let counted = bw_simulated {
            size: 0,
            reserved: 0,
            virtual_ns: figures.virtual_ns,
            bits: figures.bits,
            register_reads: figures.register_reads,
            register_writes: figures.register_writes,
            violations: figures.violations,
        };
        // SAFETY: the caller's promise.
        unsafe { give(counted, simulated) }
    })
}

/// The first violations on a simulated board's wire, in words: number `index`, in a buffer of `size` bytes.
/// `BW_ERROR_ARGUMENT` if there are not so many.
///
/// # Safety
/// `violation` is NULL or valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_get_violation(
    bus: *mut bw_bus,
    index: usize,
    violation: *mut c_char,
    size: usize,
) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        let figures = shared.bus.simulated().ok_or_else(|| not_simulated(&shared))?;
        let texts = figures.violation_texts;
        let found = texts.get(index).ok_or_else(|| {
            let text = format!("there is no violation {index}: {} are kept", texts.len());
            Failure::new(bw_error::BW_ERROR_ARGUMENT, text)
        })?;
        // SAFETY: the caller's promise.
        unsafe { put_text(found, violation, size) }
    })
}

fn not_simulated(shared: &SharedBus) -> Failure {
    let text = format!("{} is no simulated board: open sim:…", shared.bus.name());
    Failure::new(bw_error::BW_ERROR_NOT_SIMULATED, text)
}
