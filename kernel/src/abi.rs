//! The functions and structures of `module/barewire.h`.
//!
//! # Safety
//! Two transfers of one message may have the same memory, as clients of Linux's may ask. Each has its own slices; the library reads
//! and writes those of one transfer at a time, and never holds on to bytes of another.
#![allow(unsafe_code, reason = "the C half calls these with pointers")]

use core::ffi::c_void;
use core::mem::{MaybeUninit, size_of};
use core::slice;
use core::task::Poll;

use barewire::controller::{CsLine, Preset, Unfinished};
use barewire::spi::{Error, Mode, Settings, Transfer};

use crate::host::{Board, Host};
use crate::linux::{Context, Lines};

/// `bw_run` and `bw_resume`: the message waits for the block's interrupt.
pub(crate) const PENDING: i32 = 1;
/// `bw_exchange`: not a message for it.
const NOT_PLAIN: i32 = -11;
pub(crate) const EIO: i32 = -5;
const EINVAL: i32 = -22;
const ETIMEDOUT: i32 = -110;

/// A controller, in memory of the C half.
pub(crate) struct Slot {
    /// `None` before `bw_init` and after `bw_leave`.
    pub(crate) host: Option<Host>,
    /// The message that waits for its interrupt.
    preset: *const Preset,
    message: *mut Transfer<'static>,
    transfers: usize,
}

/// `struct bw_board`.
#[repr(C)]
pub(crate) struct RawBoard {
    registers: *mut u32,
    context: Context,
    block: u32,
    reference_hz: u32,
    poll_limit_ns: u32,
    native_lines: u8,
    d0_sends: u8,
    lines: [RawLine; 4],
}

/// `struct bw_line`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawLine {
    kind: u8,
    channel: u8,
    active_high: u8,
}

/// `struct bw_settings`.
#[repr(C)]
pub(crate) struct RawSettings {
    speed_hz: u32,
    cs_setup_ns: u32,
    cs_hold_ns: u32,
    cs_inactive_ns: u32,
    word_delay_ns: u32,
    poll_limit_ns: u32,
    chip_select: u8,
    mode: u8,
    bits_per_word: u8,
}

/// `struct bw_transfer`.
#[repr(C)]
pub(crate) struct RawTransfer {
    tx: *const u8,
    rx: *mut u8,
    len: u32,
    speed_hz: u32,
    word_delay_ns: u32,
    delay_ns: u32,
    cs_change_delay_ns: u32,
    bits_per_word: u8,
    cs_change: u8,
}

/// `struct bw_sizes`.
#[repr(C)]
pub(crate) struct Sizes {
    host: usize,
    preset: usize,
    transfer: usize,
}

/// `struct bw_limits`.
#[repr(C)]
pub(crate) struct RawLimits {
    min_speed_hz: u32,
    max_speed_hz: u32,
    bits_per_word_mask: u32,
}

/// The memory that the C half gives.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn bw_sizes() -> Sizes {
    Sizes {
        host: size_of::<Slot>(),
        preset: size_of::<Preset>(),
        transfer: size_of::<Transfer<'_>>(),
    }
}

/// Brings a block up: all chips deselected, FIFOs empty, interrupts masked. `slot` need not be initialised.
///
/// # Safety
/// The module's page. The registers are the block's, mapped as device memory until `bw_leave`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_init(slot: *mut Slot, board: &RawBoard) -> i32 {
    let lines = Lines(board.context);
    let line = |raw: RawLine| match raw.kind {
        1 => CsLine::Native { channel: raw.channel, active_high: raw.active_high != 0 },
        2 => CsLine::Gpio { bit: raw.channel, active_high: true },
        _ => CsLine::Absent,
    };
    let (registers, block) = (board.registers, board.block);
    let board = Board {
        reference_hz: board.reference_hz,
        chip_selects: board.lines.map(line),
        poll_limit_ns: board.poll_limit_ns,
        native_lines: board.native_lines,
        d0_sends: board.d0_sends != 0,
    };
    if registers.is_null() || !registers.is_aligned() || board.reference_hz == 0 {
        return EINVAL;
    }
    // SAFETY: promised.
    let Some(host) = (unsafe { Host::new(block, registers, lines, board) }) else { return EINVAL };
    let made = Slot {
        host: Some(host),
        preset: core::ptr::null(),
        message: core::ptr::null_mut(),
        transfers: 0,
    };
    // SAFETY: memory of this size; what it held needs no drop.
    unsafe { slot.write(made) };
    0
}

/// Makes the block silent and leaves it.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_leave(slot: &mut Slot) {
    if let Some(host) = slot.host.take() {
        host.leave();
    }
}

/// What the block can do.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_limits(slot: &Slot, limits: &mut RawLimits) {
    if let Some(host) = &slot.host {
        let can = host.limits();
        *limits = RawLimits {
            min_speed_hz: can.min_speed_hz,
            max_speed_hz: can.max_speed_hz,
            bits_per_word_mask: can.bits_per_word_mask,
        };
    }
}

/// Turns a chip's settings into register values, in `preset`. Returns its clock in hertz, or a negative error.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_configure(
    slot: &Slot,
    preset: *mut Preset,
    raw: &RawSettings,
) -> i64 {
    let Some(host) = &slot.host else { return EIO.into() };
    let flags = [Mode::CPHA, Mode::CPOL, Mode::CS_HIGH, Mode::LSB_FIRST, Mode::LOOP, Mode::NO_CS];
    let mode = flags
        .into_iter()
        .filter(|flag| raw.mode & flag.bits() != 0)
        .fold(Mode::default(), |mode, flag| mode | flag);
    let settings = Settings {
        cs_setup_ns: raw.cs_setup_ns,
        cs_hold_ns: raw.cs_hold_ns,
        cs_inactive_ns: raw.cs_inactive_ns,
        word_delay_ns: raw.word_delay_ns,
        poll_limit_ns: Some(raw.poll_limit_ns),
        ..Settings::new(raw.chip_select, raw.speed_hz)
            .with_mode(mode)
            .with_bits_per_word(raw.bits_per_word)
    };
    match host.configure(&settings) {
        Ok((made, effective)) => {
            // SAFETY: memory of this size; a preset needs no drop.
            unsafe { preset.write(made) };
            effective.speed_hz.into()
        }
        Err(error) => errno(error).into(),
    }
}

/// Runs a message of one exchange with the chip's settings, polled: the shortest path. Returns 0, a negative error, or
/// `-EAGAIN` if it is no message for this path; nothing was done then.
///
/// # Safety
/// The module's page. `len` bytes at `tx` and at `rx`, apart.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_exchange(
    slot: &mut Slot,
    preset: &Preset,
    tx: *const u8,
    rx: *mut u8,
    len: usize,
) -> i32 {
    let Some(host) = &mut slot.host else { return EIO };
    if !preset.takes_exchange(len) {
        return NOT_PLAIN;
    }
    // SAFETY: promised.
    let (tx, rx) = unsafe { buffers(tx, rx, len) };
    ended(host.exchange(preset, tx, rx))
}

/// The two buffers of an exchange.
///
/// # Safety
/// `len` bytes at `tx` and at `rx`, apart, as long as they are used.
#[inline(always)]
pub(crate) unsafe fn buffers<'m>(
    tx: *const u8,
    rx: *mut u8,
    len: usize,
) -> (&'m [u8], &'m mut [u8]) {
    // SAFETY: promised.
    let tx = unsafe { slice::from_raw_parts(tx, len) };
    // SAFETY: promised.
    let rx = unsafe { slice::from_raw_parts_mut(rx, len) };
    (tx, rx)
}

/// Runs a message of `count` transfers. Returns 0, [`PENDING`] if `may_wait`, or a negative error. `memory` has room for
/// as many transfers, and is the message's until it ends.
///
/// # Safety
/// The module's page. The buffers of each transfer are valid until the message ends, and apart or the same.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_run(
    slot: &mut Slot,
    preset: &Preset,
    raw: *const RawTransfer,
    count: usize,
    memory: *mut MaybeUninit<Transfer<'static>>,
    may_wait: bool,
) -> i32 {
    // SAFETY: promised.
    let raw = unsafe { slice::from_raw_parts(raw, count) };
    // SAFETY: promised.
    let places = unsafe { slice::from_raw_parts_mut(memory, count) };
    for (place, raw) in places.iter_mut().zip(raw) {
        // SAFETY: promised.
        place.write(unsafe { transfer(raw) });
    }
    let message = memory.cast::<Transfer<'static>>();
    // SAFETY: all were written; the memory is the message's.
    let all = unsafe { slice::from_raw_parts_mut(message, count) };
    #[cfg(feature = "provoke")]
    if all.first().is_some_and(|first| first.data().tx() == Some(&[0xbd, 0, 0])) {
        crate::linux::PROVOKED.store(true, core::sync::atomic::Ordering::Relaxed);
    }
    let Some(host) = &mut slot.host else { return EIO };
    match host.run(preset, all, may_wait) {
        Err(refused) => errno(refused),
        Ok(Poll::Ready(ran)) => ended(ran),
        Ok(Poll::Pending) => {
            (slot.preset, slot.message, slot.transfers) = (preset, message, count);
            PENDING
        }
    }
}

/// Continues the message that waits: after the block's interrupt, or to see whether its time is over.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_resume(slot: &mut Slot) -> i32 {
    let Some(host) = &mut slot.host else { return EIO };
    // SAFETY: as `bw_run` left them; both live until the message ends.
    let preset = unsafe { &*slot.preset };
    // SAFETY: likewise.
    let message = unsafe { slice::from_raw_parts_mut(slot.message, slot.transfers) };
    match host.resume(preset, message) {
        Poll::Ready(ran) => ended(ran),
        Poll::Pending => PENDING,
    }
}

/// Unmasks the block's interrupt for the message that waits.
///
/// # Safety
/// The module's page.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn bw_arm(slot: &mut Slot) {
    if let Some(host) = &mut slot.host {
        host.arm();
    }
}

/// A transfer as the library has it. Fields of 0 are the chip's.
///
/// # Safety
/// The buffers are valid as long as the transfer is used, and apart or the same.
#[inline(always)]
unsafe fn transfer(raw: &RawTransfer) -> Transfer<'static> {
    let len = raw.len as usize;
    // SAFETY: promised.
    let tx = || unsafe { slice::from_raw_parts(raw.tx, len) };
    // SAFETY: promised.
    let rx = || unsafe { slice::from_raw_parts_mut(raw.rx, len) };
    let mut transfer = match (raw.tx.is_null() || len == 0, raw.rx.is_null() || len == 0) {
        (true, true) => Transfer::write(&[]),
        (false, true) => Transfer::write(tx()),
        (true, false) => Transfer::read(rx()),
        (false, false) if raw.tx == raw.rx.cast_const() => Transfer::in_place(rx()),
        (false, false) => Transfer::exchange(tx(), rx()),
    };
    transfer.speed_hz = raw.speed_hz;
    transfer.word_delay_ns = raw.word_delay_ns;
    transfer.delay_ns = raw.delay_ns;
    transfer.cs_change_delay_ns = raw.cs_change_delay_ns;
    transfer.bits_per_word = raw.bits_per_word;
    transfer.cs_change = raw.cs_change != 0;
    transfer
}

#[inline(always)]
pub(crate) fn ended<T>(ran: Result<T, Unfinished>) -> i32 {
    match ran {
        Ok(_) => 0,
        Err(unfinished) => errno(unfinished.error()),
    }
}

#[cold]
fn errno(error: Error) -> i32 {
    match error {
        Error::Timeout { .. } => ETIMEDOUT,
        Error::Overrun | Error::Aborted => EIO,
        Error::Os { errno } => -errno,
        // Refused before anything was clocked.
        _ => EINVAL,
    }
}

// `Context` is only passed through.
const _: () = assert!(size_of::<Context>() == size_of::<*mut c_void>());
