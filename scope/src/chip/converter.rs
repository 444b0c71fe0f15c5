//! Analog-to-digital converters: the MCP3008's family, and the touch controller TSC2046.
//!
//! *Read first*: Microchip DS21295, DS21298 and DS21294, chapter *Serial communication*; Texas Instruments SBAS265, *Digital
//! interface*.

use barewire::chip::mcp3008::{PARTS, Part};

use super::Told;

/// A stream of bits, the highest of each byte first.
fn bit(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(bytes.get(at / 8)? >> (7 - at % 8) & 1))
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u32> {
    (at..at + len).try_fold(0, |number, at| Some(number << 1 | bit(bytes, at)?))
}

#[derive(Clone, Debug)]
pub(super) struct Adc {
    part: &'static Part,
}

impl Adc {
    pub(super) fn find(name: &str) -> Option<Self> {
        PARTS.iter().find(|part| part.name.eq_ignore_ascii_case(name)).map(|part| Self { part })
    }

    /// The first 1 is the start bit, wherever the program puts it.
    pub(super) fn tell(&mut self, mosi: &[u8], miso: &[u8]) -> Told {
        let Some(start) = (0..8 * mosi.len()).find(|&at| bit(mosi, at) == Some(1)) else {
            return Told::new("no start bit", "");
        };
        // SGL/DIFF, then the channel: of the MCP3002 one bit, and MSBF behind it; else three bits. The null bit comes a clock
        // and a half later, the code behind it.
        let (channel_bits, to_code) = if self.part.channels == 2 { (1, 5) } else { (3, 7) };
        let fields = bit(mosi, start + 1).zip(number(mosi, start + 2, channel_bits));
        let Some((single, channel)) = fields else { return Told::new("cut", "") };
        let kind = if single == 1 { "single-ended" } else { "differential" };
        let code = number(miso, start + to_code, self.part.bits.into());
        Told::new(
            format!("{kind} {channel}"),
            code.map_or_else(|| "no code".into(), |code| code.to_string()),
        )
    }
}

/// A message of control bytes, each followed by a code. Codes may overlap with the next control byte.
pub(super) fn touch(mosi: &[u8], miso: &[u8]) -> Told {
    let mut kinds: Vec<String> = Vec::new();
    let mut codes: Vec<String> = Vec::new();
    for (at, control) in mosi.iter().enumerate().filter(|(_, byte)| *byte & 0x80 != 0) {
        let input =
            ["TEMP0", "Y", "VBAT", "Z1", "Z2", "X", "AUX", "TEMP1"][usize::from(control >> 4 & 7)];
        let bits = if control & 8 == 0 { 12 } else { 8 };
        let reference = if control & 4 == 0 { "differential" } else { "single-ended" };
        let kind = format!("{input} {reference}, {bits} bits");
        if kinds.last() != Some(&kind) {
            kinds.push(kind);
        }
        codes.extend(number(miso, 8 * at + 9, bits).map(|code| code.to_string()));
    }
    if kinds.is_empty() {
        Told::new("no control byte", "")
    } else {
        Told::new(kinds.join("; "), codes.join(" "))
    }
}
