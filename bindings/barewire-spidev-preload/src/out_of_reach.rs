//! Files by which a program reaches GPIO lines around the character device: the registers as memory, and the
//! interface of `/sys/class/gpio`, which Linux has had since before the device.
//!
//! Where a GPIO chip is mapped, opening them fails with `EPERM`, and the program's user is told why: such a
//! program would move the machine's own pins, and none of the board's.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use crate::paths::{absolute, plain, tree_has};
use crate::say::say_once;

/// Whether that is such a file, and a GPIO chip is mapped.
pub(crate) fn refuses(directory: i32, path: &CStr) -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    static MAPPED: OnceLock<bool> = OnceLock::new();
    // Most paths end here, without a look at the working directory.
    let bytes = path.to_bytes();
    if !bytes.windows(3).any(|part| matches!(part, b"mem" | b"pio")) {
        return false;
    }
    if !*MAPPED.get_or_init(|| tree_has("/sys/bus/gpio")) {
        return false;
    }
    let Some(path) = absolute(directory, path).and_then(|path| plain(&path)) else { return false };
    let gpiomem = path.strip_prefix("dev/gpiomem");
    let registers = path == "dev/mem"
        || gpiomem.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    if !registers && !path.starts_with("sys/class/gpio/") {
        return false;
    }
    say_once(
        &SAID,
        format_args!(
            "this program opens /{path} for its GPIO lines: that is out of reach of `barewire run`, which maps \
             the character device /dev/gpiochipN alone. Use a library that takes that: gpiod, lgpio, gpiozero \
             with GPIOZERO_PIN_FACTORY=lgpio, or rpi-lgpio in the place of RPi.GPIO"
        ),
    );
    true
}
