//! Any bytes end in messages or in an error. A fuzz target of this repository drives the same function.

use std::fs;
use std::path::Path;

use barewire_scope::{Options, Scope};

/// Reads `bytes` as a capture at `path`. What is read must make sense.
pub(crate) fn drive(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("written");
    let options = Options { glitch_ns: f64::from(bytes.len() as u32 % 3), ..Options::default() };
    let Ok(mut scope) = Scope::open(path, options) else { return };
    let (mut messages, mut end) = (0, 0);
    let more = loop {
        let more = scope.step(&mut |wires, message, _| {
            assert!(message.start <= message.end && message.end >= end);
            assert!(
                message
                    .clocked
                    .is_none_or(|(first, last)| message.start <= first && last <= message.end)
            );
            assert!(
                message.bits_over < wires.word_bits && message.mosi.len() as u64 <= message.words
            );
            (messages, end) = (messages + 1, message.end);
        });
        if !matches!(more, Ok(true)) {
            break more;
        }
    };
    if let (Ok(_), Some(summary)) = (more, scope.finish()) {
        assert_eq!(summary.messages, messages);
        assert!(summary.selected <= summary.duration && summary.clocked <= summary.selected);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::wave::{CS, Shape, Wave, sigrok};

    fn files() -> Vec<Vec<u8>> {
        let names = ["SCK", "MOSI", "MISO", "CS"];
        let mut wave = Wave::new(1 << CS);
        wave.message(&Shape::USUAL, &[0x9f, 0, 0, 0], &[0xff, 0xc2, 0x20, 0x15]);
        wave.message(&Shape::USUAL, &[0x06], &[0xff]);
        let end = wave.at + 9;
        let csv = wave.saleae_csv(&names, -5).into_bytes();
        let sr = sigrok(&names, 1, "1 MHz", &wave.samples(1, end), 100);
        vec![
            wave.vcd(&names, end).into_bytes(),
            csv,
            sr,
            wave.saleae_binary(0, 0, end),
            wave.saleae_binary(0, 1, end),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        /// Files in which bytes are changed, left out or cut.
        #[test]
        fn a_changed_file_is_read_or_refused(
            which in 0_usize..5,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 0..6),
        ) {
            let mut bytes = files()[which].clone();
            for (at, value, how) in changes {
                let at = at.index(bytes.len().max(1));
                match how {
                    0 if at < bytes.len() => bytes[at] = value,
                    1 if at < bytes.len() => drop(bytes.remove(at)),
                    _ if value < 40 => bytes.truncate(at),
                    _ => bytes.insert(at, value),
                }
            }
            let dir = tempfile::tempdir().expect("a directory");
            super::drive(&dir.path().join("capture"), &bytes);
        }
    }
}
