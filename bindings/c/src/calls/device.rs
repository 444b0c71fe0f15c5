//! Devices, and the messages whose caller waits for them.
//!
//! # Safety
//! Pointers are as the functions' documentation says. A device's reference to its bus lives as long as the bus beside it.
#![allow(unsafe_code, reason = "functions for C code, and a device beside its bus")]

use std::ffi::c_void;
use std::sync::Arc;

use barewire::bus::Device as CoreDevice;
use barewire::controller::Limits;
use barewire::spi::{Mode, Settings, Transfer};
use barewire_open::DynController;

use crate::border::{give, guard, put, take};
use crate::error::bw_error;
use crate::failure::Failure;
use crate::handle::Table;
use crate::shared::{BUSES, SharedBus};
use crate::transfers::{buffers, check, with_message};
use crate::types::{bw_bus, bw_device, bw_effective, bw_limits, bw_settings, bw_transfer};

/// The devices that are open.
pub(crate) static DEVICES: Table<Device> = Table::new(2, "device");

/// A device, with the bus that it borrows.
pub(crate) struct Device {
    pub(crate) core: CoreDevice<'static, DynController>,
    pub(crate) shared: Arc<SharedBus>,
}

impl Device {
    /// Runs a message, under the calling thread's lock if it has one.
    #[inline(always)]
    fn sync(&self, message: &mut [Transfer<'_>]) -> Result<usize, Failure> {
        let ran = match self.shared.is_locked_here() {
            false => self.core.sync(message),
            true => self.sync_locked(message),
        };
        ran.map_err(|error| Failure::of_message(&self.shared.bus, &error))
    }

    #[cold]
    fn sync_locked(
        &self,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, barewire::spi::MessageError> {
        match self.shared.with_lock(|locked| locked.sync(&self.core, message)) {
            Some(ran) => ran,
            None => self.core.sync(message),
        }
    }

    fn try_sync(&self, message: &mut [Transfer<'_>]) -> Result<usize, Failure> {
        let ran = match self.shared.is_locked_here() {
            false => self.core.try_sync(message),
            true => self.sync_locked(message),
        };
        ran.map_err(|error| Failure::of_message(&self.shared.bus, &error))
    }
}

const MODES: u32 = 0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40;

fn mode(bits: u32) -> Result<Mode, Failure> {
    if bits & !MODES != 0 {
        let text = format!("mode {bits:#x} has bits that are not known: {:#x}", bits & !MODES);
        return Err(Failure::new(bw_error::BW_ERROR_MODE, text));
    }
    let all = [
        (0x01, Mode::CPHA),
        (0x02, Mode::CPOL),
        (0x04, Mode::CS_HIGH),
        (0x08, Mode::LSB_FIRST),
        (0x20, Mode::LOOP),
        (0x40, Mode::NO_CS),
    ];
    let set = all.iter().filter(|(bit, _)| bits & bit != 0);
    Ok(set.fold(Mode::default(), |mode, (_, flag)| mode | *flag))
}

/// Opens a device on the bus and stores its handle in `*device`. The mode flags that its chip select needs are
/// added.
///
/// # Safety
/// `settings` is NULL or points at a struct whose `size` is set; `device` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_device_open(
    bus: *mut bw_bus,
    settings: *const bw_settings,
    device: *mut *mut bw_device,
) -> bw_error {
    guard(|| {
        let shared = BUSES.get(bus)?;
        // SAFETY: the caller's promise.
        let asked = unsafe { take(settings) }?;
        if device.is_null() {
            return Err(Failure::null("the place for the device's handle"));
        }
        if asked.reserved != 0 {
            let text = "bw_settings.reserved is not zero: set the whole struct to zero first";
            return Err(Failure::new(bw_error::BW_ERROR_ARGUMENT, text));
        }
        let settings = Settings {
            chip_select: asked.chip_select,
            mode: mode(asked.mode)? | shared.bus.mode(asked.chip_select),
            speed_hz: asked.speed_hz,
            bits_per_word: if asked.bits_per_word == 0 { 8 } else { asked.bits_per_word },
            cs_setup_ns: asked.cs_setup_ns,
            cs_hold_ns: asked.cs_hold_ns,
            cs_inactive_ns: asked.cs_inactive_ns,
            word_delay_ns: asked.word_delay_ns,
            poll_limit_ns: (asked.poll_limit_ns != 0).then_some(asked.poll_limit_ns),
        };
        // SAFETY: the device is dropped with its `SharedBus`, at the latest.
        let core = unsafe { shared.bus() };
        let opened = match shared.with_lock(|locked| locked.device(&settings)) {
            Some(opened) => opened,
            None => core.device(&settings),
        };
        let opened = opened.map_err(|error| Failure::of_error(&shared.bus, error))?;
        let core = opened.with_priority(asked.priority);
        let handle = DEVICES.insert(Device { core, shared: Arc::clone(&shared) })?;
        // SAFETY: not null, and the caller's promise.
        unsafe { device.write(handle.cast()) };
        Ok(())
    })
}

/// Closes a device. Its prepared messages and messages stay usable.
#[unsafe(no_mangle)]
pub extern "C" fn bw_device_close(device: *mut bw_device) -> bw_error {
    guard(|| {
        DEVICES.close(device)?.shared.sweep();
        Ok(())
    })
}

/// The settings as the hardware implements them.
///
/// # Safety
/// `effective` is NULL or points at a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_get_effective(
    device: *mut bw_device,
    effective: *mut bw_effective,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        let known = device.core.effective();
        let known = bw_effective {
            size: 0,
            speed_hz: known.speed_hz,
            cs_setup_ns: known.cs_setup_ns,
            cs_hold_ns: known.cs_hold_ns,
            cs_inactive_ns: known.cs_inactive_ns,
            word_delay_ns: known.word_delay_ns,
            quantum_ns: known.quantum_ns,
            word_rest_clocks: known.word_rest_clocks.into(),
            reserved: 0,
        };
        // SAFETY: the caller's promise.
        unsafe { give(known, effective) }
    })
}

/// What the controller can do.
///
/// # Safety
/// `limits` is NULL or points at a struct whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_get_limits(device: *mut bw_device, limits: *mut bw_limits) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        let known: &Limits = device.core.limits();
        let max_message_bytes = match known.max_message_bytes {
            usize::MAX => u64::MAX,
            bytes => bytes as u64,
        };
        let known = bw_limits {
            size: 0,
            max_speed_hz: known.max_speed_hz,
            min_speed_hz: known.min_speed_hz,
            bits_per_word_mask: known.bits_per_word_mask,
            timer_hz: known.timer_hz,
            max_delay_ns: known.max_delay_ns,
            max_message_bytes,
        };
        // SAFETY: the caller's promise.
        unsafe { give(known, limits) }
    })
}

/// Runs a message of `count` transfers and waits for it. `*length`, if `length` is not NULL, gets its length in bytes.
/// If it fails, `bw_last_failure` says at which transfer; CS is inactive in every case.
///
/// # Safety
/// `transfers` is NULL or valid for `count` of them. Their buffers are NULL or valid for `len` bytes, and nothing else uses
/// them during the call. `length` is NULL or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_sync(
    device: *mut bw_device,
    transfers: *const bw_transfer,
    count: usize,
    length: *mut usize,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        // SAFETY: the caller's promise.
        let ran = unsafe { with_message(transfers, count, |message| device.sync(message)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

/// `bw_sync` if the bus is free and nothing is queued, else `BW_ERROR_BUSY`. Never waits for another.
///
/// # Safety
/// As `bw_sync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_try_sync(
    device: *mut bw_device,
    transfers: *const bw_transfer,
    count: usize,
    length: *mut usize,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        // SAFETY: the caller's promise.
        let ran = unsafe { with_message(transfers, count, |message| device.try_sync(message)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(ran, length) };
        Ok(())
    })
}

/// Runs a message of one transfer: sends `len` bytes of `tx`, or zeros if it is NULL, and receives as many into `rx`, unless
/// it is NULL. Both may be the same buffer.
///
/// # Safety
/// `tx` and `rx` are NULL or valid for `len` bytes, and nothing else uses them during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_exchange(
    device: *mut bw_device,
    tx: *const c_void,
    rx: *mut c_void,
    len: usize,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        check(&plain(tx, rx, len), 0)?;
        // SAFETY: the caller's promise.
        device.sync(&mut [unsafe { buffers(tx, rx, len) }])?;
        Ok(())
    })
}

/// Runs a message of two transfers: sends `tx_len` bytes, then receives `rx_len`, as Linux's `spi_write_then_read`.
///
/// # Safety
/// `tx` and `rx` are valid for their lengths, or NULL if these are zero; nothing else uses them during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bw_write_then_read(
    device: *mut bw_device,
    tx: *const c_void,
    tx_len: usize,
    rx: *mut c_void,
    rx_len: usize,
) -> bw_error {
    guard(|| {
        let device = DEVICES.get(device)?;
        check(&plain(tx, std::ptr::null_mut(), tx_len), 0)?;
        check(&plain(std::ptr::null(), rx, rx_len), 1)?;
        // SAFETY: the caller's promise.
        let sent = unsafe { buffers(tx, std::ptr::null_mut(), tx_len) };
        // SAFETY: likewise.
        let received = unsafe { buffers(std::ptr::null(), rx, rx_len) };
        device.sync(&mut [sent, received])?;
        Ok(())
    })
}

/// A transfer with the device's settings.
#[inline(always)]
fn plain(tx: *const c_void, rx: *mut c_void, len: usize) -> bw_transfer {
    bw_transfer {
        tx,
        rx,
        len,
        speed_hz: 0,
        delay_ns: 0,
        word_delay_ns: 0,
        cs_change_delay_ns: 0,
        bits_per_word: 0,
        cs_change: 0,
        reserved: [0; 14],
    }
}
