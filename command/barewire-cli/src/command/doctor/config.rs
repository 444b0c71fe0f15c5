//! The running kernel's configuration.

use std::fs::{self, File};
use std::io::Read;

use barewire_linux::Root;
use flate2::read::GzDecoder;

/// Far more than any configuration has.
const MOST: u64 = 4 << 20;

/// Its text: `/proc/config.gz`, or the file that a distribution puts beside the kernel.
pub(super) fn read(root: &Root, release: &str) -> Option<String> {
    let mut text = String::new();
    if let Ok(file) = File::open(root.path("/proc/config.gz"))
        && GzDecoder::new(file).take(MOST).read_to_string(&mut text).is_ok()
    {
        return Some(text);
    }
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/build/.config"),
    ];
    places.iter().find_map(|place| fs::read_to_string(root.path(place)).ok())
}
