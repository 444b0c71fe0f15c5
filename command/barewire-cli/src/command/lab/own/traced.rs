//! An experiment made of a kernel's trace: its messages with their median times, on a board and a kernel that the user names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use barewire_lab::own::NAME_MAX;
use barewire_lab::report::number;
use barewire_scope::trace::{Profile, Shape, Trace};

/// Shapes that become messages: the most frequent.
pub(super) const MESSAGES_MAX: usize = 6;
/// The most bytes of a message in the lab.
pub(super) const BYTES_MAX: u64 = 65_536;
/// The clocks that an experiment takes, in Hz.
pub(super) const SPEED_HZ: [f64; 2] = [10e3, 200e6];

/// What a recording does not say.
#[derive(Clone, Copy, Debug)]
pub(in crate::command::lab) struct Origin<'o> {
    /// The file.
    pub(in crate::command::lab) file: &'o str,
    pub(in crate::command::lab) board: &'o str,
    pub(in crate::command::lab) kernel: &'o str,
    /// SPI's clock, if the user names it.
    pub(in crate::command::lab) speed_hz: Option<u64>,
}

/// Messages of a kind, for their table.
pub(super) struct Kind<'k> {
    pub(super) messages: u64,
    /// What they were sent to.
    pub(super) of: &'k str,
    pub(super) name: String,
    pub(super) lengths: &'k [u64],
    /// A comment, and the figure that was seen, in microseconds.
    pub(super) published: Option<(&'static str, &'static str, f64)>,
    /// The median period, in microseconds.
    pub(super) every_us: Option<f64>,
    /// Their own clock.
    pub(super) speed_hz: Option<u64>,
}

/// Names that are taken, and how often.
pub(super) type Names = BTreeMap<String, usize>;

/// A message's table.
pub(super) fn message(kind: &Kind<'_>, names: &mut Names) -> String {
    let Kind { messages, of, lengths, published, every_us, speed_hz, .. } = kind;
    let mut name = kind.name.clone();
    name.truncate(NAME_MAX - 3);
    let times = names.entry(name.clone()).or_default();
    *times += 1;
    if *times > 1 {
        name = format!("{name}-{times}");
    }
    let count = if *messages == 1 { "One".to_owned() } else { messages.to_string() };
    let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
    let mut text = format!(
        "\n# {count} of {of}\n[[message]]\nname = {name:?}\nlengths = [{}]\n",
        lengths.join(", ")
    );
    if let Some((what, figure, us)) = published {
        let _ = writeln!(text, "# {what}, the median.\npublished.{figure} = {us:.3}");
    }
    if let Some(hz) = speed_hz {
        let _ = writeln!(text, "speed_hz = {hz}");
    }
    if let Some(us) = every_us {
        let _ = writeln!(
            text,
            "# The median period; with it the code is cold, as after sleep.\n# every_us = {us:.3}"
        );
    }
    text
}

fn shape_text(shape: &Shape, names: &mut Names) -> String {
    let lengths: Vec<String> = shape.transfers.iter().map(u64::to_string).collect();
    let device = shape.device.trim_start_matches("spi").replace('.', "-");
    let kind = Kind {
        messages: shape.messages as u64,
        of: &shape.device,
        name: format!("cs{device}-{}", lengths.join("-")),
        lengths: &shape.transfers,
        published: Some(("From submission to end", "call", shape.whole.median_us)),
        every_us: shape.done_to_submit.as_ref().map(|gap| shape.whole.median_us + gap.median_us),
        speed_hz: None,
    };
    message(&kind, names)
}

/// The experiment's text.
///
/// # Errors
/// If the trace has no message that the lab can have, or does not tell the clock.
pub(in crate::command::lab) fn text(trace: &Trace, origin: Origin<'_>) -> Result<String, String> {
    let Origin { file, board, kernel, speed_hz } = origin;
    let profile = Profile::of(&trace.messages);
    let can = |shape: &&Shape| {
        let bytes: u64 = shape.transfers.iter().sum();
        (1..=BYTES_MAX).contains(&bytes) && !shape.transfers.contains(&0)
    };
    let shapes: Vec<&Shape> = profile.shapes.iter().filter(can).take(MESSAGES_MAX).collect();
    if shapes.is_empty() {
        return Err(format!("{file} has no message of 1 to {BYTES_MAX} bytes"));
    }
    let by_slope = profile.transfer.as_ref().map(|cost| 8e6 / cost.us_per_byte);
    let by_slope = by_slope.filter(|hz| hz.is_finite() && (SPEED_HZ[0]..=SPEED_HZ[1]).contains(hz));
    let (speed_hz, why) = match (speed_hz, by_slope) {
        (Some(hz), _) => (hz, "as given"),
        (None, Some(hz)) => (
            hz.round() as u64,
            "by what a byte more takes in the trace, not less: put in what the device asks for",
        ),
        _ => return Err(format!("{file} does not tell SPI's clock: name it with --speed-hz")),
    };
    let left_out = profile.shapes.len() - shapes.len();
    let mut text = format!(
        "# Of the trace {file}: {} messages; {left_out} of {} kinds are left out (the rarest, and those above {BYTES_MAX} bytes).\n\
         # The trace does not say its board, its kernel, its client, and how the driver waits: change what is wrong.\n\
         title = {:?}\nboard = {board:?}\nkernel = {kernel:?}\n# in-kernel, or spidev if a program sends them.\n\
         client = \"in-kernel\"\nwaiting = \"driver\"\n# {} MHz, {why}.\nspeed_hz = {speed_hz}\n",
        trace.messages.len(),
        profile.shapes.len(),
        format!("messages of the trace {file}"),
        number(speed_hz as f64 / 1e6),
    );
    let mut names = Names::new();
    for shape in shapes {
        text += &shape_text(shape, &mut names);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use barewire_scope::trace::{Mark, Message, Transfer};

    use super::*;

    fn sent(device: &str, lengths: &[u64], us: f64) -> Message {
        // 1 us, and 0.5 us a byte.
        let transfers = lengths.iter().map(|&len| Transfer {
            len,
            stop_ns: 1_000 + 500 * len,
            ..Transfer::default()
        });
        let done_ns = (us * 1e3) as u64;
        Message {
            device: device.into(),
            transfers: transfers.collect(),
            marks: vec![(0, Mark::Submit), (done_ns, Mark::Done)],
            next_submit_ns: Some(done_ns + 100_000),
            ..Message::default()
        }
    }

    #[test]
    fn a_trace_becomes_messages_with_their_times_and_clock() {
        let messages = vec![
            sent("spi0.0", &[1, 3], 20.0),
            sent("spi0.0", &[1, 3], 22.0),
            sent("spi1.2", &[8], 9.0),
        ];
        let trace = Trace { messages, ..Trace::default() };
        let origin = Origin { file: "t.txt", board: "rpi3", kernel: "6.1", speed_hz: None };
        let made = text(&trace, origin).expect("messages");
        for part in [
            "name = \"cs0-0-1-3\"\nlengths = [1, 3]",
            "published.call = 21.000",
            "speed_hz = 16000000",
            "cs1-2-8",
            "# every_us = 121.000",
        ] {
            assert!(made.contains(part), "{part}\n{made}");
        }
        let given = text(&trace, Origin { speed_hz: Some(2_000_000), ..origin }).expect("messages");
        assert!(given.contains("# 2 MHz, as given.\nspeed_hz = 2000000"), "{given}");
        let alone = Trace { messages: vec![sent("spi0.0", &[4], 9.0)], ..Trace::default() };
        assert!(text(&alone, origin).expect_err("one length").contains("--speed-hz"));
        let large = Trace { messages: vec![sent("spi0.0", &[70_000], 9.0)], ..Trace::default() };
        assert!(text(&large, origin).expect_err("too large").contains("no message of 1 to 65536"));
    }
}
