//! Calls each function with arguments that a C program may pass by mistake. It returns an error
//! code and a sentence, and no object is lost.
#![allow(unsafe_code, reason = "calls the functions as C code does")]

use std::ffi::{CStr, c_char, c_void};
use std::mem::zeroed;
use std::ptr::{self, null, null_mut};

use barewire_c::bw_error::*;
use barewire_c::*;

/// What a failed call said.
fn said() -> String {
    // SAFETY: a string, valid until the next failure.
    unsafe { CStr::from_ptr(bw_last_error()) }.to_string_lossy().into_owned()
}

#[track_caller]
fn fails(error: bw_error, expected: bw_error, part: &str) {
    assert_eq!(error, expected, "{}", said());
    assert!(said().contains(part), "{:?} has no {part:?}", said());
    let mut failure = bw_failure { size: size_of::<bw_failure>() as u32, ..Default::default() };
    // SAFETY: its size is set.
    assert_eq!(unsafe { bw_last_failure(&raw mut failure) }, BW_OK);
    assert_eq!(failure.error, expected as i32);
}

fn open(name: &CStr) -> *mut bw_bus {
    let mut bus = null_mut();
    // SAFETY: a string, and a place for the handle.
    let error = unsafe { bw_bus_open(name.as_ptr(), None, null_mut(), &raw mut bus) };
    assert_eq!(error, BW_OK, "{}", said());
    bus
}

fn settings() -> bw_settings {
    bw_settings {
        size: size_of::<bw_settings>() as u32,
        speed_hz: 20_000_000,
        ..Default::default()
    }
}

fn open_device(bus: *mut bw_bus, settings: &bw_settings) -> Result<*mut bw_device, bw_error> {
    let mut device = null_mut();
    // SAFETY: its size is set, and a place for the handle.
    match unsafe { bw_device_open(bus, settings, &raw mut device) } {
        BW_OK => Ok(device),
        error => Err(error),
    }
}

fn transfer(tx: &[u8], rx: &mut [u8]) -> bw_transfer {
    // SAFETY: zeros are a transfer.
    let zero: bw_transfer = unsafe { zeroed() };
    bw_transfer { tx: tx.as_ptr().cast(), rx: rx.as_mut_ptr().cast(), len: rx.len(), ..zero }
}

fn sync(device: *mut bw_device, transfers: &[bw_transfer]) -> bw_error {
    // SAFETY: the tests' buffers are as they say, or are refused before they are used.
    unsafe { bw_sync(device, transfers.as_ptr(), transfers.len(), null_mut()) }
}

#[test]
fn a_bus_needs_a_name_and_a_place() {
    let mut bus = null_mut();
    let place = &raw mut bus;
    // SAFETY: null is an error.
    let error = unsafe { bw_bus_open(null(), None, null_mut(), place) };
    fails(error, BW_ERROR_NULL, "the bus's name is NULL");
    // SAFETY: likewise.
    let error = unsafe { bw_bus_open(c"null:".as_ptr(), None, null_mut(), null_mut()) };
    fails(error, BW_ERROR_NULL, "the place for the bus's handle");
    for (name, code, part) in [
        (c"sim:imx8", BW_ERROR_NAME, "did you mean"),
        (c"", BW_ERROR_NAME, "buses are"),
        (c"\xff", BW_ERROR_NAME, "is not UTF-8"),
        (c"spidev:/dev/spidev99.9", BW_ERROR_OPEN, "/dev/spidev99.9"),
    ] {
        // SAFETY: strings.
        fails(unsafe { bw_bus_open(name.as_ptr(), None, null_mut(), place) }, code, part);
    }
    assert!(bus.is_null(), "nothing was stored");
}

#[test]
fn handles_that_are_none_are_errors_in_each_function() {
    let bus = open(c"null:");
    let device = open_device(bus, &settings()).expect("a device");
    for (rubbish, code) in [(0_usize, BW_ERROR_NULL), (device.addr(), BW_ERROR_HANDLE)] {
        let bus: *mut bw_bus = ptr::without_provenance_mut(rubbish);
        let prepared: *mut bw_prepared = ptr::without_provenance_mut(rubbish);
        let message: *mut bw_message = ptr::without_provenance_mut(rubbish);
        let (mut text, mut ns) = ([0 as c_char; 8], 0);
        for error in [
            bw_bus_close(bus),
            bw_delay_ns(bus, 1),
            bw_set_counting(bus, 1),
            bw_lock(bus),
            bw_try_lock(bus),
            bw_unlock(bus),
            bw_prepared_free(prepared),
            bw_message_free(message),
            // SAFETY: the handles are refused first; the rest is valid or null.
            unsafe { bw_bus_name(bus, text.as_mut_ptr(), text.len()) },
            // SAFETY: likewise.
            unsafe { bw_now_ns(bus, &raw mut ns) },
            // SAFETY: likewise.
            unsafe { bw_get_statistics(bus, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_get_simulated(bus, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_get_violation(bus, 0, null_mut(), 0) },
            // SAFETY: likewise.
            unsafe { bw_device_open(bus, null(), null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_prepared_run(prepared, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_prepared_try_run(prepared, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_submit(message) },
            // SAFETY: likewise.
            unsafe { bw_poll(message, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_wait(message, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_cancel(message, null_mut()) },
        ] {
            fails(error, code, "its open function stored");
        }
    }
    for (rubbish, code) in [(0, BW_ERROR_NULL), (bus.addr(), BW_ERROR_HANDLE)] {
        let device: *mut bw_device = ptr::without_provenance_mut(rubbish);
        for error in [
            bw_device_close(device),
            sync(device, &[]),
            // SAFETY: the handle is refused first.
            unsafe { bw_try_sync(device, null(), 1, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_exchange(device, null(), null_mut(), 1) },
            // SAFETY: likewise.
            unsafe { bw_write_then_read(device, null(), 1, null_mut(), 1) },
            // SAFETY: likewise.
            unsafe { bw_get_effective(device, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_get_limits(device, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_prepare(device, null(), 1, null_mut()) },
            // SAFETY: likewise.
            unsafe { bw_message_new(device, null(), 1, None, null_mut(), null_mut()) },
        ] {
            fails(error, code, "device");
        }
    }
    assert_eq!((bw_device_close(device), bw_bus_close(bus)), (BW_OK, BW_OK));
    fails(bw_device_close(device), BW_ERROR_CLOSED, "this device was closed");
    fails(bw_bus_close(bus), BW_ERROR_CLOSED, "this bus was closed");
}

#[test]
fn transfers_that_no_bus_can_run_are_refused() {
    let bus = open(c"sim:imx8mp");
    let device = open_device(bus, &settings()).expect("a device");
    let (tx, mut rx) = ([0x9f, 0, 0, 0], [7; 8]);
    let good = transfer(&tx, &mut rx[..4]);
    // SAFETY: refused.
    let error = unsafe { bw_sync(device, null(), 1, null_mut()) };
    fails(error, BW_ERROR_NULL, "transfers is NULL");
    fails(sync(device, &[]), BW_ERROR_EMPTY, "at least one transfer");
    // SAFETY: refused by the number alone.
    let error = unsafe { bw_sync(device, &raw const good, usize::MAX, null_mut()) };
    fails(error, BW_ERROR_ARGUMENT, "no array has so many");
    let nowhere = bw_transfer { tx: null(), rx: null_mut(), ..good };
    fails(sync(device, &[good, nowhere]), BW_ERROR_NULL, "transfer 1: tx and rx are NULL");
    let long = bw_transfer { len: usize::MAX, ..good };
    fails(
        sync(device, &[bw_transfer { rx: null_mut(), ..long }]),
        BW_ERROR_LENGTH,
        "no buffer has",
    );
    let mut overlapping = bw_transfer { tx: rx.as_ptr().cast::<c_void>(), ..good };
    overlapping.rx = rx[1..].as_mut_ptr().cast();
    fails(sync(device, &[overlapping]), BW_ERROR_OVERLAP, "overlap");
    let mut reserved = good;
    reserved.reserved[13] = 1;
    fails(sync(device, &[reserved]), BW_ERROR_ARGUMENT, "reserved is not zero");
    let nine = bw_transfer { bits_per_word: 9, ..good };
    fails(sync(device, &[good, nine]), BW_ERROR_BITS_PER_WORD, "9 bits");
    let mut failure = bw_failure { size: size_of::<bw_failure>() as u32, ..Default::default() };
    // SAFETY: its size is set.
    assert_eq!(unsafe { bw_last_failure(&raw mut failure) }, BW_OK);
    assert_eq!((failure.transfer_index, failure.actual_length), (1, 0));
    let change = bw_transfer { cs_change: 1, ..good };
    fails(sync(device, &[change]), BW_ERROR_CS_CHANGE, "cs_change on the last transfer");
    let odd = bw_transfer { bits_per_word: 16, len: 3, ..good };
    fails(sync(device, &[odd]), BW_ERROR_LENGTH, "16-bit words");
    assert_eq!(rx, [7; 8], "nothing was received");

    // Unusual calls that are correct: no bytes, one buffer for both directions, a `length` that is
    // returned.
    assert_eq!(sync(device, &[bw_transfer { len: 0, delay_ns: 100, ..nowhere }, good]), BW_OK);
    let mut both = tx;
    let at = both.as_mut_ptr();
    // SAFETY: a buffer of four bytes.
    assert_eq!(unsafe { bw_exchange(device, at.cast(), at.cast(), 4) }, BW_OK);
    assert_eq!(both[1..], [0xef, 0x40, 0x19]);
    assert_eq!(rx[1..4], [0xef, 0x40, 0x19]);
    let mut length = 0;
    let five = [good; 5];
    // SAFETY: five transfers into one buffer, one after the other.
    assert_eq!(unsafe { bw_sync(device, five.as_ptr(), 5, &raw mut length) }, BW_OK, "{}", said());
    assert_eq!(length, 20);
    let mut id = [0_u8; 3];
    // SAFETY: buffers of these lengths.
    let error =
        unsafe { bw_write_then_read(device, tx.as_ptr().cast(), 1, id.as_mut_ptr().cast(), 3) };
    assert_eq!((error, id), (BW_OK, [0xef, 0x40, 0x19]));
    assert_eq!(bw_bus_close(bus), BW_OK);
    fails(sync(device, &[good]), BW_ERROR_CLOSED, "the bus sim:imx8mp was closed");
    assert_eq!(bw_device_close(device), BW_OK);
}

#[test]
fn structs_of_other_sizes_are_told_apart() {
    let bus = open(c"null:");
    for (size, part) in [(0, "set it to sizeof(bw_settings)"), (31, "is 31"), (4097, "is 4097")] {
        let wrong = bw_settings { size, ..settings() };
        fails(open_device(bus, &wrong).expect_err("refused"), BW_ERROR_SIZE, part);
    }
    // A later version's struct: its new fields must be zero.
    let mut later = [0_u32; 10];
    later[0] = 40;
    later[2] = 1_000_000;
    let mut device = null_mut();
    // SAFETY: 40 bytes, as its size says.
    let error = unsafe { bw_device_open(bus, later.as_ptr().cast(), &raw mut device) };
    assert_eq!(error, BW_OK, "{}", said());
    later[9] = 1;
    // SAFETY: likewise.
    let error = unsafe { bw_device_open(bus, later.as_ptr().cast(), &raw mut device) };
    fails(error, BW_ERROR_SIZE, "a field at byte 36 that this library does not know");
    let mut statistics = [u64::MAX; 31];
    statistics[0] = 8 * 31;
    // SAFETY: 248 bytes, as its size says.
    let error = unsafe { bw_get_statistics(bus, statistics.as_mut_ptr().cast()) };
    fails(error, BW_ERROR_NOT_COUNTING, "counting is off: call bw_set_counting");
    assert_eq!(statistics[1], u64::MAX, "a zero would look like a count");
    assert_eq!(bw_set_counting(bus, 1), BW_OK);
    // SAFETY: 248 bytes, as its size says.
    assert_eq!(unsafe { bw_get_statistics(bus, statistics.as_mut_ptr().cast()) }, BW_OK);
    assert_eq!(
        (statistics[0] as u32, statistics[29]),
        (232, u64::MAX),
        "the size says how much was written"
    );
    let mut limits = bw_limits { size: 1, ..Default::default() };
    // SAFETY: its size is refused.
    fails(unsafe { bw_get_limits(device, &raw mut limits) }, BW_ERROR_SIZE, "bw_limits");
    let mut effective = bw_effective { size: 56, ..Default::default() };
    // SAFETY: its size is set.
    assert_eq!(unsafe { bw_get_effective(device, &raw mut effective) }, BW_OK);
    assert_eq!(effective.speed_hz, 1_000_000);
    let mut simulated = bw_simulated { size: 48, ..Default::default() };
    // SAFETY: likewise.
    let error = unsafe { bw_get_simulated(bus, &raw mut simulated) };
    fails(error, BW_ERROR_NOT_SIMULATED, "null: is no simulated board");
    assert_eq!((bw_device_close(device), bw_bus_close(bus)), (BW_OK, BW_OK));
}

#[test]
fn settings_that_no_device_has_are_refused() {
    let bus = open(c"sim:imx8mp");
    for (wrong, code, part) in [
        (bw_settings { speed_hz: 0, ..settings() }, BW_ERROR_SPEED, "speed_hz is 0"),
        (bw_settings { mode: 0x100, ..settings() }, BW_ERROR_MODE, "not known: 0x100"),
        (bw_settings { reserved: 1, ..settings() }, BW_ERROR_ARGUMENT, "reserved"),
        (bw_settings { bits_per_word: 9, ..settings() }, BW_ERROR_BITS_PER_WORD, "9 bits"),
        (bw_settings { chip_select: 99, ..settings() }, BW_ERROR_CHIP_SELECT, "chip select 99"),
        (bw_settings { mode: BW_CS_HIGH, ..settings() }, BW_ERROR_CHIP_SELECT, "CS_HIGH"),
    ] {
        fails(open_device(bus, &wrong).expect_err("refused"), code, part);
    }
    let mut small = [1 as c_char; 5];
    // SAFETY: a buffer of that size.
    assert_eq!(unsafe { bw_bus_name(bus, small.as_mut_ptr(), 5) }, BW_OK);
    assert_eq!(small.map(|c| c as u8), *b"sim:\0", "cut");
    // SAFETY: refused.
    let error = unsafe { bw_bus_name(bus, small.as_mut_ptr(), 0) };
    fails(error, BW_ERROR_ARGUMENT, "has no bytes");
    // SAFETY: refused.
    let error = unsafe { bw_get_violation(bus, 0, small.as_mut_ptr(), 5) };
    fails(error, BW_ERROR_ARGUMENT, "there is no violation 0");
    assert_eq!(bw_bus_close(bus), BW_OK);
}

#[test]
fn messages_are_used_in_their_order() {
    let bus = open(c"sim:imx8mp");
    let device = open_device(bus, &settings()).expect("a device");
    let (tx, mut rx) = ([0x9f, 0, 0, 0], [0; 4]);
    let one = transfer(&tx, &mut rx);
    let (mut message, mut prepared) = (null_mut(), null_mut());
    // SAFETY: the buffers live as long as the handles.
    let error = unsafe { bw_message_new(device, &one, 1, None, null_mut(), &raw mut message) };
    assert_eq!(error, BW_OK);
    // SAFETY: likewise.
    assert_eq!(unsafe { bw_prepare(device, &one, 1, &raw mut prepared) }, BW_OK);
    let nine = bw_transfer { bits_per_word: 9, ..one };
    let mut none = null_mut();
    // SAFETY: refused.
    let error = unsafe { bw_prepare(device, &nine, 1, &raw mut none) };
    fails(error, BW_ERROR_BITS_PER_WORD, "9 bits");
    // SAFETY: the message is alive.
    fails(unsafe { bw_poll(message, null_mut()) }, BW_ERROR_NOT_SUBMITTED, "call bw_submit");
    // SAFETY: likewise.
    fails(unsafe { bw_wait(message, null_mut()) }, BW_ERROR_NOT_SUBMITTED, "call bw_submit");
    // SAFETY: likewise.
    fails(unsafe { bw_cancel(message, null_mut()) }, BW_ERROR_NOT_SUBMITTED, "call bw_submit");
    assert_eq!(bw_lock(bus), BW_OK);
    fails(bw_lock(bus), BW_ERROR_WOULD_DEADLOCK, "unlock it first");
    // SAFETY: likewise.
    assert_eq!(unsafe { bw_submit(message) }, BW_OK);
    // SAFETY: likewise.
    fails(unsafe { bw_submit(message) }, BW_ERROR_BUSY, "wait for it, or cancel it");
    // SAFETY: likewise.
    fails(unsafe { bw_poll(message, null_mut()) }, BW_ERROR_PENDING, "has not run yet");
    // SAFETY: likewise.
    fails(unsafe { bw_wait(message, null_mut()) }, BW_ERROR_WOULD_DEADLOCK, "wait for itself");
    // SAFETY: likewise.
    assert_eq!(unsafe { bw_prepared_run(prepared, null_mut()) }, BW_OK, "by the lock's thread");
    assert_eq!(sync(device, &[one]), BW_OK);
    let other = open_device(bus, &settings()).expect("a device, under the lock");
    assert_eq!(bw_device_close(other), BW_OK);
    let mut removed = -1;
    // SAFETY: likewise.
    assert_eq!(unsafe { bw_cancel(message, &raw mut removed) }, BW_OK);
    assert_eq!((removed, bw_unlock(bus)), (1, BW_OK));
    fails(bw_unlock(bus), BW_ERROR_NOT_LOCKED, "does not hold");
    let mut length = 0;
    for _ in 0..3 {
        // SAFETY: likewise.
        assert_eq!(unsafe { bw_submit(message) }, BW_OK);
        // SAFETY: likewise.
        assert_eq!(unsafe { bw_wait(message, &raw mut length) }, BW_OK);
        // SAFETY: likewise.
        assert_eq!(unsafe { bw_poll(message, &raw mut length) }, BW_OK, "it stays known");
    }
    assert_eq!((length, rx[1]), (4, 0xef));
    // The device's messages go on without its handle, and fail once the bus is closed.
    assert_eq!(bw_device_close(device), BW_OK);
    // SAFETY: likewise.
    assert_eq!(unsafe { bw_prepared_run(prepared, null_mut()) }, BW_OK);
    assert_eq!(bw_bus_close(bus), BW_OK);
    // SAFETY: likewise.
    fails(unsafe { bw_prepared_run(prepared, null_mut()) }, BW_ERROR_CLOSED, "was closed");
    // SAFETY: likewise.
    fails(unsafe { bw_submit(message) }, BW_ERROR_CLOSED, "was closed");
    assert_eq!((bw_prepared_free(prepared), bw_message_free(message)), (BW_OK, BW_OK));
    fails(bw_prepared_free(prepared), BW_ERROR_CLOSED, "this prepared message was closed");
    fails(bw_message_free(message), BW_ERROR_CLOSED, "this message was closed");
}

unsafe extern "C-unwind" fn panics(_: *mut c_void, _: *const c_char) {
    panic!("in a note");
}

#[test]
fn a_panic_ends_at_the_border() {
    let dir = std::env::temp_dir().join(format!("barewire-c-{}", std::process::id()));
    let name = format!("sim:imx8mp,flash={}\0", dir.display());
    let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a string");
    let mut bus = null_mut();
    // SAFETY: a string, and a place for the handle. The file is missing, which is a note.
    let error = unsafe { bw_bus_open(name.as_ptr(), Some(panics), null_mut(), &raw mut bus) };
    let _ = std::fs::remove_file(dir);
    fails(error, BW_ERROR_PANIC, "in a note");
    assert!(bus.is_null());
}

#[test]
fn versions_and_names_are_text() {
    for (number, name) in [(0, c"BW_OK"), (3, c"BW_ERROR_CLOSED"), (-1, c"BW_ERROR_?")] {
        // SAFETY: a string of the library.
        assert_eq!(unsafe { CStr::from_ptr(bw_error_name(number)) }, name);
    }
    // SAFETY: likewise.
    let version = unsafe { CStr::from_ptr(bw_version()) }.to_str().expect("text");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let parts: Vec<u32> = version.split('.').map(|part| part.parse().expect("a number")).collect();
    assert_eq!(bw_version_number(), parts[0] << 16 | parts[1] << 8 | parts[2]);
    assert_eq!(bw_version_number(), BW_VERSION);
}
