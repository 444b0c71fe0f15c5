//! `/proc/iomem`: the addresses that are memory, and the claims on registers.
//!
//! Only a process with CAP_SYS_ADMIN sees the addresses; to others all are zero, and nothing is found.

use crate::root::Root;

const MEMORY: &str = "System RAM";

/// The names of the ranges that overlap `len` bytes at `address`.
fn overlapping(text: &str, address: u64, len: u32) -> impl Iterator<Item = &str> {
    let last = address.saturating_add(u64::from(len).saturating_sub(1));
    let hex = |text| u64::from_str_radix(text, 16).ok();
    text.lines().filter_map(move |line| {
        let (range, name) = line.trim().split_once(" : ")?;
        let (from, to) =
            range.split_once('-').and_then(|(from, to)| Some((hex(from)?, hex(to)?)))?;
        (from < to && address <= to && from <= last).then_some(name)
    })
}

fn text(root: &Root) -> String {
    root.text("/proc/iomem").unwrap_or_default()
}

/// Whether `len` bytes at `address` overlap main memory.
pub(crate) fn is_memory(root: &Root, address: u64, len: u32) -> bool {
    overlapping(&text(root), address, len).any(|name| name == MEMORY)
}

/// The owners of claims on any of `len` bytes at `address`.
pub(crate) fn claims(root: &Root, address: u64, len: u32) -> Vec<String> {
    overlapping(&text(root), address, len).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IOMEM: &str = "\
30820000-3082ffff : 30820000.spi spi@30820000
40000000-55ffffff : System RAM
  40210000-4141ffff : Kernel code
100000000-13fffffff : System RAM
bad line : System RAM
";

    fn is_memory(text: &str, address: u64, len: u32) -> bool {
        overlapping(text, address, len).any(|name| name == MEMORY)
    }

    #[test]
    fn main_memory_is_known_to_its_last_byte() {
        for (address, len, memory) in [
            (0x3082_0000, 0x40, false),
            (0x3fff_fffc, 4, false),
            (0x3fff_fffc, 8, true),
            (0x4000_0000, 4, true),
            (0x55ff_fffc, 4, true),
            (0x5600_0000, 4, false),
            (0x1_3fff_fffc, 4, true),
            (0, 4, false),
        ] {
            assert_eq!(is_memory(IOMEM, address, len), memory, "{address:#x}");
        }
        assert!(is_memory(IOMEM, 0x3000_0000, u32::MAX));
        let hidden = "00000000-00000000 : System RAM\n";
        assert!(!is_memory(hidden, 0, 4), "who may not know learns nothing");
    }

    #[test]
    fn claims_have_their_names() {
        let names = |address, len| overlapping(IOMEM, address, len).collect::<Vec<_>>();
        assert_eq!(names(0x3082_0040, 4), ["30820000.spi spi@30820000"]);
        assert_eq!(names(0x4021_0000, 4), ["System RAM", "Kernel code"]);
        assert!(names(0x3083_0000, 0x100).is_empty());
    }
}
