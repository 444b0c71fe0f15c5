//! A panic: the C half deselects all chips, gives the controller up for good, and says BUG.
#![allow(unsafe_code, reason = "calls of the module's C half")]

use core::panic::PanicInfo;

unsafe extern "C" {
    /// Ends this task.
    fn bw_panicked(file: *const u8, length: usize, line: u32) -> !;
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    // The message would need formatting, which is most of a module's size.
    let (file, line) = info.location().map_or(("?", 0), |at| (at.file(), at.line()));
    // SAFETY: the bytes of a string that lives for ever.
    unsafe { bw_panicked(file.as_ptr(), file.len(), line) }
}
