//! A specification as text, for messages that say what to write instead; and the names of the
//! options, which [`bus_text`](crate::bus_text) parses.

use std::fmt::Write as _;

use barewire::controller::atmel::Pipe;

use super::{Block, CsLineAt, CsPin, LockAt, MapSpec, Via};
use crate::gpio::GpioChip;

pub(crate) const CONTROLLER: &str = "controller";
pub(crate) const REFERENCE_HZ: &str = "reference-hz";
pub(crate) const CS: &str = "cs";
pub(crate) const PIPE: &str = "pipe";
pub(crate) const IGNORE_CLOCK: &str = "ignore-clock";
pub(crate) const POLL_LIMIT_US: &str = "poll-limit-us";
pub(crate) const SHARED: &str = "shared";
pub(crate) const EXCLUSIVE: &str = "exclusive";
pub(crate) const UNSAFE_SHARED: &str = "unsafe-shared";
pub(crate) const NODE: &str = "node";
pub(crate) const OPTIONS: [&str; 10] = [
    CONTROLLER,
    REFERENCE_HZ,
    CS,
    PIPE,
    IGNORE_CLOCK,
    POLL_LIMIT_US,
    SHARED,
    EXCLUSIVE,
    UNSAFE_SHARED,
    NODE,
];

/// Atmel's pipes and their names.
pub(crate) const PIPES: [(&str, Pipe); 3] = [
    ("wait-data-read", Pipe::WaitDataRead),
    ("one-word", Pipe::OneWord),
    ("two-words", Pipe::TwoWords),
];

/// The bus as text for a command line, beginning with `mem:`, `uio:` or `barewire:`, with every option that
/// differs from its default. Gaps between chip selects are closed, because the text cannot express
/// them.
#[must_use]
pub fn text(spec: &MapSpec) -> String {
    let mut text = spec.to_string();
    // What the kernel says is no part of the text.
    let is_door = matches!(spec.via, Via::Door { .. });
    let mut option = |name: &str, value: &str| {
        text.push(',');
        text.push_str(name);
        if !value.is_empty() {
            text.push('=');
            text.push_str(value);
        }
    };
    if spec.block != Block::DEFAULT && !is_door {
        option(CONTROLLER, spec.block.name());
    }
    if !is_door {
        option(REFERENCE_HZ, &hertz(spec.reference_hz));
    }
    let lines: Vec<String> = spec.chip_selects.iter().flatten().map(line).collect();
    if !lines.is_empty() {
        option(CS, &lines.join("+"));
    }
    if let Some(pipe) = spec.pipe {
        if let Some((name, _)) = PIPES.iter().find(|(_, other)| *other == pipe) {
            option(PIPE, name);
        }
    }
    if spec.ignore_clock {
        option(IGNORE_CLOCK, "");
    }
    if let Some(us) = spec.poll_limit_us {
        option(POLL_LIMIT_US, &us.to_string());
    }
    let key = if spec.exclusive { EXCLUSIVE } else { SHARED };
    match &spec.lock {
        LockAt::Default if spec.exclusive == is_door => {}
        LockAt::Default => option(key, ""),
        LockAt::File(path) => option(key, &path.display().to_string()),
    }
    if spec.unsafe_shared {
        option(UNSAFE_SHARED, "");
    }
    if !spec.nodes.is_empty() {
        option(NODE, &spec.nodes.join("+"));
    }
    text
}

/// Hertz, with the largest suffix that is exact.
fn hertz(hz: u32) -> String {
    match hz {
        0 => "0".into(),
        _ if hz % 1_000_000 == 0 => format!("{}M", hz / 1_000_000),
        _ if hz % 1_000 == 0 => format!("{}k", hz / 1_000),
        _ => hz.to_string(),
    }
}

fn line(pin: &CsPin) -> String {
    let mut text = match &pin.at {
        CsLineAt::Native { channel } => format!("native{channel}"),
        // With the polarity that the device tree has.
        CsLineAt::Door { line } => return format!("line{line}"),
        CsLineAt::Gpio { address, bit } => format!("gpio@{address:#x}.{bit}"),
        CsLineAt::Kernel(line) => match &line.chip {
            GpioChip::At(address) => format!("gpio@{address:#x}:{}", line.offset),
            GpioChip::Labelled(label) => format!("gpio@{label}:{}", line.offset),
        },
    };
    if pin.active_high {
        let _ = text.write_str(":high");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus_text::{parse_door, parse_mem, parse_uio};

    #[test]
    fn what_is_written_reads_as_what_it_was() {
        for bus in [
            "mem:0x30820000,reference-hz=80M,cs=native0+gpio@0x30240000.9:high",
            "mem:0xfff00000,controller=pl022,reference-hz=66667k,cs=gpio@0xfff30000.3,ignore-clock",
            "mem:0x3f203000,controller=bcm2835,reference-hz=400M,cs=native0,node=i2s@7e203000+none",
            "mem:0xf0004000,controller=atmel,reference-hz=66666666,cs=native3,pipe=one-word,exclusive",
            "mem:0x30820000,reference-hz=80M,cs=native0,exclusive=/run/x",
            "barewire:0",
            "barewire:3,cs=line1+native0+gpio@pca9535:3:high,poll-limit-us=5,shared",
            "barewire:0,pipe=one-word,shared=/run/x",
            "barewire:0,exclusive=/run/x",
            "uio:uio0,reference-hz=24M,cs=gpio@pca9535:3+gpio@0x30240000:40,poll-limit-us=0",
            "uio:uio12,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8,ignore-clock,poll-limit-us=5,shared=/run/x,unsafe-shared",
        ] {
            let read = |bus: &str| match bus.split_once(':') {
                Some(("mem", rest)) => parse_mem(rest),
                Some(("barewire", rest)) => parse_door(rest),
                Some((_, rest)) => parse_uio(rest),
                None => unreachable!("all have a kind"),
            };
            let spec = read(bus).expect(bus);
            assert_eq!(text(&spec), bus);
            assert_eq!(read(&text(&spec)), Ok(spec));
        }
    }
}
