//! Messages by the names of the chip that hears them.
//!
//! A chip here only listens. [`Told::kind`] groups messages that do the same; [`Told::detail`] adds what differs among
//! them: an address, a value, a code.

mod converter;
mod mcp251xfd;
mod nor;
mod sd;

use crate::decode::Message;

/// What a message is, by its chip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The kind of message: `READ, 256 bytes`.
    pub kind: String,
    /// This message: `0x001000`. Empty if there is no more to tell.
    pub detail: String,
}

impl Told {
    fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: kind.into(), detail: detail.into() }
    }
}

/// A chip that is known by name.
#[derive(Clone, Debug)]
pub struct Chip {
    name: &'static str,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Nor(nor::Nor),
    Can(mcp251xfd::Can),
    Adc(converter::Adc),
    Touch,
    Sd,
}

impl Chip {
    /// The names that [`Chip::find`] knows.
    pub const NAMES: [&'static str; 11] = [
        "nor",
        "mcp2517fd",
        "mcp2518fd",
        "mcp3002",
        "mcp3004",
        "mcp3008",
        "mcp3204",
        "mcp3208",
        "tsc2046",
        "ads7846",
        "sd",
    ];

    /// The chip of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = Self::NAMES.into_iter().find(|known| known.eq_ignore_ascii_case(name))?;
        let kind = match name {
            "nor" => Kind::Nor(nor::Nor::default()),
            "mcp2517fd" | "mcp2518fd" => Kind::Can(mcp251xfd::Can::new(name)),
            "tsc2046" | "ads7846" => Kind::Touch,
            "sd" => Kind::Sd,
            name => Kind::Adc(converter::Adc::find(name)?),
        };
        Some(Self { name, kind })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Takes the next message to the chip, whose words are bytes. It remembers what commands change: a flash chip's
    /// address width.
    pub fn tell(&mut self, message: &Message) -> Told {
        let bytes = |words: &[u32]| words.iter().map(|&word| word as u8).collect::<Vec<u8>>();
        let (mosi, miso) = (bytes(&message.mosi), bytes(&message.miso));
        match &mut self.kind {
            Kind::Nor(nor) => nor.tell(&mosi, &miso, message.words),
            Kind::Can(can) => can.tell(&mosi, &miso),
            Kind::Adc(adc) => adc.tell(&mosi, &miso),
            Kind::Touch => converter::touch(&mosi, &miso),
            Kind::Sd => sd::tell(&mosi, &miso),
        }
    }
}

/// Bytes as hex, the first of many.
fn hex(bytes: &[u8]) -> String {
    let shown: String = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 8 { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tell(chip: &mut Chip, mosi: &[u8], miso: &[u8]) -> (String, String) {
        let words = |bytes: &[u8]| bytes.iter().map(|&byte| byte.into()).collect();
        let message = Message {
            words: mosi.len() as u64,
            mosi: words(mosi),
            miso: words(miso),
            ..Message::default()
        };
        let Told { kind, detail } = chip.tell(&message);
        (kind, detail)
    }

    #[track_caller]
    fn check(name: &str, cases: &[(&[u8], &[u8], &str, &str)]) {
        let mut chip = Chip::find(name).expect("a chip");
        for (mosi, miso, kind, detail) in cases {
            assert_eq!(
                tell(&mut chip, mosi, miso),
                ((*kind).into(), (*detail).into()),
                "{mosi:02x?}"
            );
        }
    }

    #[test]
    fn every_name_is_a_chip() {
        Chip::NAMES
            .iter()
            .for_each(|name| assert_eq!(Chip::find(name).expect("a chip").name(), *name));
        assert!(Chip::find("nand").is_none() && Chip::find("NOR").is_some());
    }

    #[test]
    fn a_flash_chip_s_commands_have_addresses_and_lengths() {
        check(
            "nor",
            &[
                (&[0x9f, 0, 0, 0], &[0xff, 0xc2, 0x20, 0x15], "RDID, 3 bytes", "c22015"),
                (&[0x06], &[0xff], "WREN", ""),
                (&[0x05, 0, 0], &[0xff, 3, 3], "RDSR, 2 bytes", "0303"),
                (&[0x03, 0x12, 0x34, 0x56, 0, 0], &[0; 6], "READ, 2 bytes", "0x123456"),
                (&[0x0b, 0x12, 0x34, 0x56, 0, 0], &[0; 6], "FAST_READ, 1 byte", "0x123456"),
                (&[0x20, 0, 0x10, 0], &[0; 4], "SE", "0x001000"),
                // Four bytes of address from EN4B on, and for commands that always have them.
                (&[0xb7], &[0], "EN4B", ""),
                (&[0x02, 1, 2, 3, 4, 9], &[0; 6], "PP, 1 byte", "0x01020304"),
                (&[0xe9], &[0], "EX4B", ""),
                (&[0x13, 1, 2, 3, 4, 0], &[0; 6], "READ_4B, 1 byte", "0x01020304"),
                (&[0x03, 0x12], &[0; 2], "READ, cut", ""),
                (&[0x44, 1], &[0; 2], "44, 2 bytes", ""),
                (&[], &[], "no words", ""),
            ],
        );
    }

    #[test]
    fn a_can_controller_s_registers_have_names() {
        check(
            "mcp2518fd",
            &[
                (&[0, 0], &[0, 0], "RESET", ""),
                (&[0x3e, 0, 0, 0, 0, 0], &[0, 0, 0x68, 0x04, 0, 0], "READ OSC", "0x00000468"),
                (&[0x20, 0, 0x60, 0x07, 0x98, 0x04], &[0; 6], "WRITE C1CON", "0x04980760"),
                (&[0x20, 0x03, 0x04], &[0; 3], "WRITE C1CON, byte 3", "04"),
                (
                    &[0xb4, 0x00, 0x04, 0, 0, 0, 0, 0, 0],
                    &[0, 0, 0, 1, 2, 3, 4, 5, 6],
                    "READ_CRC RAM, 4 bytes",
                    "0x400: 01020304",
                ),
            ],
        );
    }

    #[test]
    fn converters_codes_are_told() {
        check(
            "mcp3008",
            &[
                (&[1, 0xb0, 0], &[0xff, 0xfa, 0xa5], "single-ended 3", "677"),
                (&[1, 0x10, 0], &[0, 0, 1], "differential 1", "1"),
            ],
        );
        check("mcp3208", &[(&[6, 0x40, 0], &[0xff, 0xea, 0xbc], "single-ended 1", "2748")]);
        // The start bit elsewhere, as some programs put it.
        check(
            "mcp3008",
            &[
                (&[0x60, 0, 0], &[0xfc, 0xaa, 0x80], "single-ended 0", "682"),
                (&[0, 0], &[0, 0], "no start bit", ""),
            ],
        );
        check("tsc2046", &[(&[0x93, 0, 0], &[0, 0x7f, 0xf8], "Y differential, 12 bits", "4095")]);
    }

    #[test]
    fn an_sd_card_s_commands_have_names() {
        check(
            "sd",
            &[
                (
                    &[0x40, 0, 0, 0, 0, 0x95, 0xff, 0xff],
                    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
                    "CMD0 GO_IDLE_STATE",
                    "0x00000000 → R1 01",
                ),
                (
                    &[0xff, 0x51, 0, 0, 2, 0, 0xff, 0xff],
                    &[0xff; 8],
                    "CMD17 READ_SINGLE_BLOCK",
                    "0x00000200",
                ),
                (&[0xff, 0xff], &[0xff; 2], "no command, 2 bytes", ""),
            ],
        );
    }
}
