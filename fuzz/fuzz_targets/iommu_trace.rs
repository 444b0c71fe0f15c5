//! Any line is an event that makes sense, something else, or refused.
#![no_main]
#![allow(dead_code, reason = "the room is shared with the command")]

#[path = "../../iommu/barewire-iommu-cli/src/command/replay/trace/mod.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use trace::{Call, Event};

/// Every range is of at least a byte, and within 64 bits.
fn sound(call: &Call) {
    let range = |addr: u64, size: u64| {
        assert!(size > 0 && addr.checked_add(size - 1).is_some());
    };
    match *call {
        Call::Map { addr, size, phys } => {
            range(addr, size);
            if let Some(phys) = phys {
                range(phys, size);
            }
        }
        Call::Unmap { addr, size } => range(addr, size),
        Call::MapList { ref segments, ref phys, .. } => {
            assert!(!segments.is_empty() && !phys.is_empty());
            segments.iter().for_each(|&(addr, size)| range(addr, size));
        }
        Call::UnmapList { ref phys } => assert!(!phys.is_empty()),
        Call::Failed => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    for line in String::from_utf8_lossy(bytes).split('\n') {
        match trace::parse(line).map(|line| line.event) {
            Ok(Event::Map { iova, phys, size }) => {
                assert!(size > 0);
                assert!(iova.checked_add(size - 1).is_some());
                assert!(phys.checked_add(size - 1).is_some());
            }
            Ok(Event::Unmap { iova, size, unmapped }) => {
                assert!(size > 0 && unmapped <= size);
                assert!(iova.checked_add(size - 1).is_some());
            }
            Ok(Event::Dma { device, call }) => {
                assert!(!device.is_empty());
                sound(&call);
            }
            Ok(Event::Named { device, .. }) => assert!(!device.contains(' ')),
            Ok(Event::Passed(_) | Event::Lost(_) | Event::Blank | Event::Other) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
