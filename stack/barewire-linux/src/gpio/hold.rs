//! Lines that are held while a bank's registers are written directly.

use rustix::io::Errno;

use super::chip::{self, Opened};
use super::error::{GpioError, LineUser};
use super::kernel::{Kernel, Lines};
use crate::root::Root;
use crate::soc;

/// The lines of a chip that a request takes at most.
const REQUEST_MAX: u32 = 64;

/// Who uses line `offset`; `None` if nobody does.
pub(super) fn user_of(opened: &Opened, offset: u32) -> Result<Option<LineUser>, GpioError> {
    let info = opened.chip.line(offset);
    let info =
        info.map_err(|errno| GpioError::of_call(&opened.path, "asked who uses its lines", errno))?;
    Ok(info.used.then_some(LineUser { offset, name: info.name, consumer: info.consumer }))
}

/// Requests `offsets` of an open chip as they are.
///
/// # Errors
/// [`GpioError::NoLine`]; [`GpioError::InUse`], with the first that is; [`GpioError::Os`].
pub(crate) fn request(opened: &Opened, offsets: &[u32]) -> Result<Box<dyn Lines>, GpioError> {
    for &offset in offsets {
        opened.check(offset)?;
        if let Some(user) = user_of(opened, offset)? {
            return Err(GpioError::InUse { path: opened.path.clone(), user });
        }
    }
    let path = opened.path.clone();
    opened.chip.request(offsets).map_err(|errno| match (errno, offsets) {
        // Somebody was faster, or has it in a way that the line's information does not tell.
        (Errno::BUSY, &[offset, ..]) => {
            let user = LineUser { offset, name: String::new(), consumer: String::new() };
            GpioError::InUse { path, user }
        }
        _ => GpioError::of_call(&path, "asked for its lines", errno),
    })
}

/// Makes the bank at `address` safe to be written directly: finds the kernel's chip there, and holds
/// lines of it for as long as what it returns lives. `None` if the kernel has no such chip.
///
/// `alone`: the bank has no set and clear registers, so that nobody else may use any line of it; all of
/// its first `pins` lines are held then, up to 64. Else only the `offsets`, in the order given, are held.
/// Of the lines returned bit `n` is `offsets[n]`, or, with `alone`, line `n`.
///
/// # Errors
/// * [`GpioError::BankInUse`] if a line is in use, with `alone`; else [`GpioError::InUse`].
/// * [`GpioError::BankUnknown`], with `alone`, if that cannot be found out.
/// * [`GpioError::NoPermission`] and the like if the chip cannot be opened.
pub fn hold(
    root: &Root,
    kernel: &dyn Kernel,
    address: u64,
    pins: u32,
    alone: bool,
    offsets: &[u32],
) -> Result<Option<Box<dyn Lines>>, GpioError> {
    let Some(opened) = chip::open_at(root, kernel, address)? else {
        // Whoever else drives pins of a bank that sets and clears them is no danger.
        return if alone { nobody(root, address).map(|()| None) } else { Ok(None) };
    };
    if !alone {
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
        // Somebody was faster.
        Err(Errno::BUSY) => Err(refused(in_use()?)),
        Err(errno) => Err(GpioError::of_call(&opened.path, "asked for its lines", errno)),
    }
}

/// Refuses a bank without a chip of the kernel, unless that shows that the kernel does not write it.
fn nobody(root: &Root, address: u64) -> Result<(), GpioError> {
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
