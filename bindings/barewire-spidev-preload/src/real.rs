//! The C library's own functions, found behind this library in the order of loading.

use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use rustix::io::Errno;

/// The address of the next function of that name, looked up once; null if there is none.
pub(crate) fn next(known: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let address = known.load(Ordering::Relaxed);
    if !address.is_null() {
        return address;
    }
    // SAFETY: the name ends in a zero byte.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    known.store(address, Ordering::Relaxed);
    address
}

/// Sets `errno`.
pub(crate) fn set_errno(errno: Errno) {
    // SAFETY: it has no conditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    unsafe { *place = errno.raw_os_error() };
}

/// A result as the C library returns it: -1 and `errno` for an error.
pub(crate) fn told<T: From<i8>>(result: Result<T, Errno>) -> T {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        T::from(-1)
    })
}

/// Calls the C library's own function of that name; without one, the call fails with `ENOSYS`, and the
/// value is `$none`.
macro_rules! call_real {
    ($name:ident($($value:expr => $type:ty),*) -> $result:ty, or $none:expr) => {{
        static KNOWN: core::sync::atomic::AtomicPtr<core::ffi::c_void> =
            core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
        const NAME: &core::ffi::CStr =
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("one zero byte"),
            };
        let address = $crate::real::next(&KNOWN, NAME);
        if address.is_null() {
            $crate::real::set_errno(rustix::io::Errno::NOSYS);
            $none
        } else {
            // SAFETY: the function of that name has this type.
            let function = unsafe {
                core::mem::transmute::<
                    *mut core::ffi::c_void,
                    unsafe extern "C" fn($($type),*) -> $result,
                >(address)
            };
            // SAFETY: the caller's arguments, by the contract of that function.
            unsafe { function($($value),*) }
        }
    }};
}
pub(crate) use call_real;
