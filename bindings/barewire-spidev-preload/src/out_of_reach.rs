//! Files by which a program reaches pins around the mapped chips: registers as memory, a Raspberry Pi's firmware
//! (`/dev/vcio`), and the interface of `/sys/class/gpio`, which Linux has had since before the GPIO character device.
//!
//! If the program is told which board is mapped, or a GPIO chip is mapped, opening registers or the firmware fails with
//! `EPERM`: a program that takes the machine for a Raspberry Pi would map that board's addresses, which are something else
//! here. Where a GPIO chip is mapped, `/sys/class/gpio` is refused too: it would move the machine's own pins, and none of the
//! board's. The program's user is told why.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use crate::paths::{absolute, is_board_told, plain, tree_has};
use crate::say::say_once;

/// Whether that is such a file.
pub(crate) fn refuses(directory: i32, path: &CStr) -> bool {
    static SAID: AtomicBool = AtomicBool::new(false);
    static MAPPED: OnceLock<bool> = OnceLock::new();
    // Most paths end here, without a look at the working directory.
    let bytes = path.to_bytes();
    if !bytes.windows(3).any(|part| matches!(part, b"mem" | b"cio" | b"pio")) {
        return false;
    }
    let mapped = *MAPPED.get_or_init(|| tree_has("/sys/bus/gpio"));
    if !mapped && !is_board_told() {
        return false;
    }
    let Some(path) = absolute(directory, path).and_then(|path| plain(&path)) else { return false };
    let gpiomem = path.strip_prefix("dev/gpiomem");
    let registers = ["dev/mem", "dev/vcio"].contains(&path.as_str())
        || gpiomem.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let exported = mapped && path.starts_with("sys/class/gpio/");
    if !registers && !exported {
        return false;
    }
    let how = if mapped {
        "Use a library that takes that"
    } else {
        "Map it with --map-gpio, and use a library that takes it"
    };
    say_once(
        &SAID,
        format_args!(
            "this program opens /{path} for its pins: that is out of reach of `barewire run`, which maps \
             the character device /dev/gpiochipN alone. {how}: gpiod, lgpio, gpiozero \
             with GPIOZERO_PIN_FACTORY=lgpio, or rpi-lgpio in the place of RPi.GPIO"
        ),
    );
    true
}
