//! Holds lines while a bank's registers are written directly.

use rustix::io::Errno;

use super::chip::{self, OpenChip};
use super::error::{GpioError, LineUser};
use super::kernel::{Kernel, Lines};
use crate::root::Root;
use crate::soc;

/// The most lines of one request.
const REQUEST_MAX: u32 = 64;

/// The user of line `offset`; `None` if it is free.
pub(super) fn user_of(opened: &OpenChip, offset: u32) -> Result<Option<LineUser>, GpioError> {
    let info = opened.chip.line(offset);
    let info =
        info.map_err(|errno| GpioError::of_call(&opened.path, "asked who uses its lines", errno))?;
    Ok(info.used.then_some(LineUser { offset, name: info.name, consumer: info.consumer }))
}

/// Requests `offsets` of an open chip without changing the lines.
///
/// # Errors
/// [`GpioError::NoLine`]; [`GpioError::InUse`] for the first line in use; [`GpioError::Os`].
pub(crate) fn request(opened: &OpenChip, offsets: &[u32]) -> Result<Box<dyn Lines>, GpioError> {
    check_free(opened, offsets)?;
    let path = opened.path.clone();
    opened.chip.request(offsets).map_err(|errno| match (errno, offsets) {
        // Another process requested it meanwhile, or it is used in a way that its information does
        // not show.
        (Errno::BUSY, &[offset, ..]) => {
            let user = LineUser { offset, name: String::new(), consumer: String::new() };
            GpioError::InUse { path, user }
        }
        _ => GpioError::of_call(&path, "asked for its lines", errno),
    })
}

/// Fails if one of `offsets` does not exist or is in use.
fn check_free(opened: &OpenChip, offsets: &[u32]) -> Result<(), GpioError> {
    for &offset in offsets {
        opened.check(offset)?;
        if let Some(user) = user_of(opened, offset)? {
            return Err(GpioError::InUse { path: opened.path.clone(), user });
        }
    }
    Ok(())
}

/// Refuses `offsets` of the bank at `address` that are in use, if the kernel has a chip for it.
///
/// # Errors
/// [`GpioError::NoLine`], [`GpioError::InUse`]; those of opening the chip.
pub(crate) fn refuse_used(
    root: &Root,
    kernel: &dyn Kernel,
    address: u64,
    offsets: &[u32],
) -> Result<(), GpioError> {
    chip::open_at(root, kernel, address)?.map_or(Ok(()), |opened| check_free(&opened, offsets))
}

/// Makes the bank at `address` safe to be written directly: finds the kernel's chip for it, and
/// holds lines of it until the returned value is dropped. `None` if the kernel has no such chip.
///
/// With `exclusive`, for a bank without set and clear registers, no other program may use any line.
/// The first `pins` lines, at most 64, are held, and bit `n` of the returned lines is line `n`.
/// Otherwise only `offsets` are held, and bit `n` is `offsets[n]`.
///
/// # Errors
/// * [`GpioError::BankInUse`] with `exclusive`, or else [`GpioError::InUse`], if a line is in use.
/// * [`GpioError::BankUnknown`], with `exclusive`, if the kernel does not tell which lines are in
///   use.
/// * [`GpioError::NoPermission`] and others if the chip cannot be opened.
pub fn hold(
    root: &Root,
    kernel: &dyn Kernel,
    address: u64,
    pins: u32,
    exclusive: bool,
    offsets: &[u32],
) -> Result<Option<Box<dyn Lines>>, GpioError> {
    let Some(opened) = chip::open_at(root, kernel, address)? else {
        // In a bank with set and clear registers, other writers do no harm.
        return if exclusive { check_unused(root, address).map(|()| None) } else { Ok(None) };
    };
    if !exclusive {
        return request(&opened, offsets).map(Some);
    }
    let lines: Vec<u32> = (0..pins.min(opened.info.lines).min(REQUEST_MAX)).collect();
    let in_use = || -> Result<Vec<LineUser>, GpioError> {
        let users = lines.iter().map(|&offset| user_of(&opened, offset));
        users.filter_map(Result::transpose).collect()
    };
    let refused = |users| GpioError::BankInUse { address, path: opened.path.clone(), users };
    let users = in_use()?;
    if !users.is_empty() {
        return Err(refused(users));
    }
    for &offset in offsets {
        opened.check(offset)?;
    }
    match opened.chip.request(&lines) {
        Ok(lines) => Ok(Some(lines)),
        // Another process requested a line meanwhile.
        Err(Errno::BUSY) => Err(refused(in_use()?)),
        Err(errno) => Err(GpioError::of_call(&opened.path, "asked for its lines", errno)),
    }
}

/// Refuses a bank without a kernel GPIO chip, unless sysfs shows that the kernel does not write it.
fn check_unused(root: &Root, address: u64) -> Result<(), GpioError> {
    let unknown = |why| Err(GpioError::BankUnknown { address, why });
    let devices = soc::devices(root, |other| other == address);
    if devices.iter().any(|device| device.has_rival(root)) {
        return unknown("a kernel driver has it, and shows no GPIO chip in sysfs");
    }
    if devices.is_empty() && chip::any(root) {
        return unknown("the kernel knows no device at that address, and has GPIO chips");
    }
    if !root.path("/sys/bus").is_dir() {
        return unknown("sysfs is not mounted");
    }
    Ok(())
}
