//! Any line is an event that makes sense, something else, or refused.
#![no_main]
#![allow(dead_code, reason = "the room is shared with the command")]

#[path = "../../command/barewire-cli/src/command/iommu/replay/trace.rs"]
mod trace;

use libfuzzer_sys::fuzz_target;
use trace::Event;

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
            Ok(Event::Lost(_) | Event::Blank | Event::Other) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
