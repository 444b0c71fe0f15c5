//! An experiment made of a logic analyzer's capture: its messages with the time that chip select is active, on a board and a
//! kernel that the user names.

use std::collections::BTreeMap;

use barewire_lab::report::number;
use barewire_scope::Counts;
use barewire_scope::capture::Tick;
use barewire_scope::decode::{Message, Wires};

use super::traced::{BYTES_MAX, Kind, MESSAGES_MAX, Names, Origin, SPEED_HZ, message};

/// A message has a clock of its own if it differs from the first kind's by more than this share.
const OTHER_CLOCK: f64 = 0.05;

/// Messages of one chip select and length. Times are ticks.
#[derive(Debug, Default)]
struct Alike {
    count: u64,
    active: Counts,
    period: Counts,
    sck_hz: Counts,
}

/// Messages by chip select and bytes.
#[derive(Debug, Default)]
pub(in crate::command::lab) struct Captured {
    kinds: BTreeMap<(Option<usize>, u64), Alike>,
    /// The begin of the message before, by chip select.
    begun: BTreeMap<Option<usize>, u64>,
    /// Cut by the capture's border, or without a whole byte.
    left_out: u64,
}

impl Captured {
    /// Counts a message.
    pub(in crate::command::lab) fn add(&mut self, wires: &Wires, message: &Message, tick: Tick) {
        let bits = message.words * u64::from(wires.word_bits) + u64::from(message.bits_over);
        let before = self.begun.insert(message.select, message.start);
        if message.cut || bits == 0 || !bits.is_multiple_of(8) {
            self.left_out += 1;
            return;
        }
        let alike = self.kinds.entry((message.select, bits / 8)).or_default();
        alike.count += 1;
        if message.select.is_some() {
            alike.active.add(message.end - message.start);
        }
        if let Some(before) = before {
            alike.period.add(message.start - before);
        }
        if let Some(hz) = tick.hz(message.sck.0, message.sck.1) {
            alike.sck_hz.add(hz);
        }
    }

    /// The experiment's text, with the names of the chip selects.
    ///
    /// # Errors
    /// If the capture has no message that the lab can have, or does not tell the clock.
    pub(in crate::command::lab) fn text(
        &self,
        origin: Origin<'_>,
        tick: Tick,
        select: impl Fn(usize) -> String,
    ) -> Result<String, String> {
        let Origin { file, board, kernel, speed_hz: given } = origin;
        let mut kinds: Vec<_> =
            self.kinds.iter().filter(|((_, bytes), _)| *bytes <= BYTES_MAX).collect();
        kinds.sort_by_key(|(_, alike)| std::cmp::Reverse(alike.count));
        kinds.truncate(MESSAGES_MAX);
        let Some((_, first)) = kinds.first() else {
            return Err(format!("{file} has no whole message of 1 to {BYTES_MAX} bytes"));
        };
        let clock = |alike: &Alike| {
            let hz = alike.sck_hz.percentile(50).map(|hz| hz as f64);
            hz.filter(|hz| (SPEED_HZ[0]..=SPEED_HZ[1]).contains(hz))
        };
        let (speed_hz, why) = match (given, clock(first)) {
            (Some(hz), _) => (hz, "as given"),
            (None, Some(hz)) => (hz.round() as u64, "by the capture"),
            _ => return Err(format!("{file} does not tell SPI's clock: name it with --speed-hz")),
        };
        let whole: u64 = self.kinds.values().map(|alike| alike.count).sum();
        let mut text = format!(
            "# Of the capture {file}: {whole} messages; {} of {} kinds are left out (the rarest, and those above {BYTES_MAX} bytes),\n\
             # and {} messages that are cut or have no whole byte.\n\
             # A capture does not say its board, its kernel, its client, how the driver waits, and where one transfer of a message ends:\n\
             # change what is wrong.\n\
             title = {:?}\nboard = {board:?}\nkernel = {kernel:?}\n# in-kernel, or spidev if a program sends them.\n\
             client = \"in-kernel\"\nwaiting = \"driver\"\n# {} MHz, {why}.\nspeed_hz = {speed_hz}\n",
            self.kinds.len() - kinds.len(),
            self.kinds.len(),
            self.left_out,
            format!("messages of the capture {file}"),
            number(speed_hz as f64 / 1e6),
        );
        let us = |counts: &Counts| counts.percentile(50).map(|ticks| tick.ns(ticks) / 1e3);
        let mut names = Names::new();
        for ((place, bytes), alike) in kinds {
            let of = place.map_or_else(|| "no chip select".to_owned(), &select);
            let plain: String = of
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
                .collect();
            let own = clock(alike)
                .filter(|hz| given.is_none() && (hz / speed_hz as f64 - 1.0).abs() > OTHER_CLOCK);
            let kind = Kind {
                messages: alike.count,
                of: &of,
                name: format!("m-{plain}-{bytes}"),
                lengths: &[*bytes],
                published: us(&alike.active).map(|us| ("Chip select is active", "cs-low", us)),
                every_us: us(&alike.period),
                speed_hz: own.map(|hz| hz.round() as u64),
            };
            text += &message(&kind, &mut names);
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use barewire_scope::decode::Select;

    use super::*;

    const ORIGIN: Origin<'_> =
        Origin { file: "c.vcd", board: "rpi3", kernel: "6.1", speed_hz: None };

    fn wires() -> Wires {
        Wires {
            sck: 0,
            mosi: Some(1),
            miso: Some(2),
            selects: vec![Select { bit: 3, active_high: false }],
            mode: 0,
            word_bits: 8,
            lsb_first: false,
            pause: 0,
            late_edges: false,
        }
    }

    /// A message of so many bytes at `start`, with a clock of 2 MHz at a tick of a nanosecond.
    fn sent(start: u64, words: u64) -> Message {
        let clocked = 4_000 * words;
        Message {
            select: Some(0),
            start,
            end: start + clocked + 1_000,
            clocked: Some((start + 500, start + 500 + clocked)),
            words,
            sck: (3_500 * words, 7 * words),
            ..Message::default()
        }
    }

    fn of(messages: &[Message]) -> Captured {
        let (mut captured, wires) = (Captured::default(), wires());
        messages.iter().for_each(|message| captured.add(&wires, message, Tick::NS));
        captured
    }

    #[test]
    fn a_capture_becomes_messages_with_their_times_and_clocks() {
        let text = |captured: &Captured, origin| {
            captured.text(origin, Tick::NS, |place| format!("CS#{place}"))
        };
        let mut slow = sent(900_000, 1);
        (slow.sck, slow.cut) = ((7_000, 7), false);
        let all = [
            sent(0, 3),
            sent(100_000, 3),
            sent(200_000, 3),
            slow,
            Message { cut: true, ..sent(950_000, 3) },
        ];
        let made = text(&of(&all), ORIGIN).expect("messages");
        for part in [
            "3 of CS#0\n[[message]]\nname = \"m-cs-0-3\"\nlengths = [3]\n# Chip select is active, the median.\npublished.cs-low = 13.000\n",
            "# every_us = 100.000",
            "4 messages; 0 of 2 kinds",
            "and 1 messages that are cut",
            "# 2 MHz, by the capture.\nspeed_hz = 2000000",
            "name = \"m-cs-0-1\"\nlengths = [1]\n# Chip select is active, the median.\npublished.cs-low = 5.000\nspeed_hz = 1000000\n",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
        let given =
            text(&of(&all), Origin { speed_hz: Some(4_000_000), ..ORIGIN }).expect("messages");
        assert!(
            given.contains("# 4 MHz, as given.") && given.matches("speed_hz").count() == 1,
            "{given}"
        );
        let none = text(&of(&[Message { cut: true, ..sent(0, 3) }]), ORIGIN).expect_err("nothing");
        assert!(none.contains("no whole message of 1 to 65536"), "{none}");
        let still = Message { sck: (0, 0), ..sent(0, 3) };
        assert!(text(&of(&[still]), ORIGIN).expect_err("no clock").contains("--speed-hz"));
    }
}
