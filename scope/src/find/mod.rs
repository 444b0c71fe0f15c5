//! Which wire is which, and how bits are sampled: from names, else from how the lines move.
//!
//! # How it works
//! 1. SCK (`lines`): a name that says so; else the line with most edges among those whose edges lie within chip selects;
//!    else the line with most edges.
//! 2. Chip selects (`selects`): lines that do not move in the middle of a word, and that together enclose SCK's edges.
//! 3. Data: lines that move in the middle of words. Which is MISO: by name; else the one that follows SCK later, for it
//!    comes through a chip; else the one that moves less in the first word, where the commands are.
//! 4. Mode (`mode`): CPOL is SCK's level when a message begins. Data changes behind the edge that is not sampled.
//! 5. Words (`mode`): 8 bits, unless the pauses of SCK or the lengths of the messages say otherwise.
//!
//! Each step can be overridden, and leaves a sentence on what speaks for it.

mod beside;
mod lines;
mod mode;
mod selects;

use crate::capture::{self, Channel, Edge};
use crate::decode::{Select, Wires};
use lines::Clocked;

/// What the user says of the wires; the rest is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// SCK's channel.
    pub clk: Option<String>,
    /// MOSI's channel.
    pub mosi: Option<String>,
    /// MISO's channel. If it is MOSI's too, the bus has three wires.
    pub miso: Option<String>,
    /// The chip selects' channels; an empty list: there is none.
    pub cs: Option<Vec<String>>,
    /// Whether all chip selects are active when high.
    pub cs_active_high: Option<bool>,
    /// The SPI mode, 0 to 3.
    pub mode: Option<u8>,
    /// The bits of a word, 1 to 32.
    pub word_bits: Option<u8>,
    /// Whether the first bit is the lowest. It is never found.
    pub lsb_first: bool,
    /// Without chip selects, a longer pause is a border, in ticks.
    pub pause: Option<u64>,
    /// [`Wires::late_edges`].
    pub late_edges: bool,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// How to read the wires.
    pub wires: Wires,
    /// What speaks for it, a sentence each.
    pub why: Vec<String>,
}

/// What a wire is called in captures: a name with one of these parts is that wire's, or one with such a word of two letters.
const SCK: &[&str] = &["sck", "sclk", "clk", "clock"];
const MOSI: &[&str] = &["mosi", "copi", "sdi", "din", "si", "di"];
const MISO: &[&str] = &["miso", "cipo", "sdo", "dout", "so", "do"];
const CS: &[&str] = &["cs", "ss", "nss", "csn", "ncs", "ce", "sel", "select", "csb", "ssn", "ssel"];

/// Whether `name` is one of a data wire or a clock.
fn means(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let has_word = |word| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|own| own == word);
    words.iter().any(|&word| if word.len() > 2 { name.contains(word) } else { has_word(word) })
}

/// How many letters two names have in common at their beginnings: those of one bus are alike, `rpi_CLK` and `rpi_MOSI`.
fn alike(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// Whether `name` is one of a chip select: a word of it is, apart from a number behind it.
fn means_select(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| CS.contains(&word)) || name.contains("chipselect")
}

/// The channel of a name: as in the file, or `D3` and `3` for number 3.
fn channel<'c>(channels: &'c [Channel], name: &str, option: &str) -> Result<&'c Channel, String> {
    let named =
        |name: &str| channels.iter().find(|channel| channel.name.eq_ignore_ascii_case(name));
    let number = name.trim_start_matches(['d', 'D']);
    let by_number = || {
        let number: u8 = number.parse().ok()?;
        named(&format!("channel {number}"))
            .or_else(|| channels.iter().find(|channel| channel.bit == number))
    };
    named(name).or_else(by_number).ok_or_else(|| {
        let names: Vec<_> = channels.iter().map(|channel| channel.name.as_str()).collect();
        format!("it has no channel \"{name}\" ({option}); it has {}", names.join(", "))
    })
}

/// Finds what `hints` leave open, in the changes at the beginning of a capture.
///
/// # Errors
/// A channel does not exist or has two roles, or no line clocks.
pub fn find(channels: &[Channel], edges: &[Edge], hints: &Hints) -> Result<Found, String> {
    let mut why = Vec::new();
    let role = |name: &Option<String>, option| {
        name.as_ref().map(|name| channel(channels, name, option)).transpose()
    };
    let (clk, mosi, miso) =
        (role(&hints.clk, "--clk")?, role(&hints.mosi, "--mosi")?, role(&hints.miso, "--miso")?);
    let cs = hints
        .cs
        .as_ref()
        .map(|names| names.iter().map(|name| channel(channels, name, "--cs")).collect());
    let cs: Option<Vec<&Channel>> = cs.transpose()?;
    let name_of = |bit| capture::name_of(channels, bit).unwrap_or("?");

    // 1, 2. SCK and the chip selects.
    let taken: Vec<u8> = [mosi, miso].into_iter().flatten().map(|channel| channel.bit).collect();
    if let Some(twice) =
        clk.iter().chain(cs.iter().flatten()).find(|channel| taken.contains(&channel.bit))
    {
        return Err(format!("channel {} is given two roles", twice.name));
    }
    let found = lines::clock(channels, edges, clk, cs.as_deref(), hints.cs_active_high, &taken)?;
    let Clocked { sck, selects, .. } = &found;
    why.extend(found.why.iter().cloned());

    // 3. Data.
    let is_free = |bit: u8| {
        bit != *sck && !selects.iter().any(|select| select.bit == bit) && !taken.contains(&bit)
    };
    let moving = lines::data(edges, &found, |bit| {
        channels.iter().any(|channel| channel.bit == bit) && is_free(bit)
    });
    let named = |words: &[&str]| {
        let fitting =
            channels.iter().filter(|channel| is_free(channel.bit) && means(&channel.name, words));
        // Of the equal ones the first.
        fitting.rev().max_by_key(|channel| alike(&channel.name, name_of(*sck)))
    };
    let mut bits = [mosi.or_else(|| named(MOSI)), miso.or_else(|| named(MISO))]
        .map(|channel| channel.map(|channel| channel.bit));
    let given = [mosi.is_some(), miso.is_some()];
    let mut unknown: Vec<&lines::Moving> =
        moving.iter().filter(|line| !bits.contains(&Some(line.bit))).collect();
    unknown.truncate(bits.iter().filter(|bit| bit.is_none()).count());
    for (bit, (given, role)) in bits.iter().zip(given.iter().zip(["MOSI", "MISO"])) {
        if let (Some(bit), false) = (bit, given) {
            why.push(format!("{} is {role}, by its name", name_of(*bit)));
        }
    }
    match (bits, &unknown[..]) {
        ([None, None], [one, other]) => {
            let (miso_first, because) = lines::is_miso(one, other);
            bits = [one, other].map(|line| Some(line.bit));
            if miso_first {
                bits.reverse();
            }
            let [mosi, miso] = bits.map(|bit| name_of(bit.unwrap_or_default()));
            why.push(format!(
                "{mosi} and {miso} move in the middle of words; {miso} is MISO: {because}"
            ));
        }
        ([None, other], [line, ..]) if !given[0] && (other.is_some() || !given[1]) => {
            bits[0] = Some(line.bit);
            why.push(format!(
                "{} moves in the middle of words: it is called MOSI",
                name_of(line.bit)
            ));
        }
        ([Some(_), None], [line, ..]) => {
            bits[1] = Some(line.bit);
            why.push(format!(
                "{} moves in the middle of words: it is the other data line, MISO",
                name_of(line.bit)
            ));
        }
        _ => {}
    }
    if bits == [None, None] {
        why.push("no line moves in the middle of words: there are no data".into());
    }

    // 4, 5. Mode and words.
    let word_bits = hints.word_bits.unwrap_or(8);
    let pause =
        hints.pause.unwrap_or_else(|| found.usual_gap.saturating_mul(mode::PAUSE_HALF_CLOCKS));
    let [mosi, miso] = bits;
    let (sck, selects) = (*sck, selects.clone());
    let mut wires = Wires {
        sck,
        mosi,
        miso,
        selects,
        mode: 0,
        word_bits,
        lsb_first: hints.lsb_first,
        pause,
        late_edges: hints.late_edges,
    };
    match hints.mode {
        Some(mode) => wires.mode = mode,
        None => {
            let (mode, because) = mode::mode(edges, &wires);
            wires.mode = mode;
            why.push(because);
        }
    }
    if hints.word_bits.is_none() {
        let (bits, because) = mode::word(edges, &wires);
        wires.word_bits = bits;
        why.extend(because);
    }
    Ok(Found { wires, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_meaning() {
        for name in ["CS#", "cs0", "/CS", "rpi_CSN", "CE0", "nSS", "SPI CS", "~SS"] {
            assert!(means_select(name), "{name}");
        }
        for name in ["0", "MISO", "WP#", "DC", "res", "access", "D3"] {
            assert!(!means_select(name), "{name}");
        }
        assert!(
            means("SPI_CLK", SCK) && means("sck", SCK) && means("SDI", MOSI) && !means("SI", MISO)
        );
        assert!(means("flash SO", MISO) && means("DI", MOSI));
        assert!(!means("also", MISO) && !means("D0", MISO));
        assert_eq!(alike("uc_CLK", "uc_MOSI"), 3);
        assert!(
            means("flash SO", MISO)
                && means("DI", MOSI)
                && !means("also", MISO)
                && !means("D0", MISO)
        );
        assert_eq!(alike("uc_CLK", "uc_MOSI"), 3);
    }
}
