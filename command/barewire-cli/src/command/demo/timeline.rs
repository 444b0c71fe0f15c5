//! One access as a scope on the pins would show it, read off a recording of the wire.

use std::collections::HashMap;

use serde::Serialize;

/// Its edges, in virtual nanoseconds from the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Timeline {
    pub(super) cs_falls_ns: u64,
    /// First edge of SCK.
    pub(super) first_clock_ns: u64,
    /// Last edge of SCK.
    pub(super) last_clock_ns: u64,
    pub(super) cs_rises_ns: u64,
    pub(super) returns_ns: u64,
}

impl Timeline {
    /// From a VCD in nanoseconds that was begun at the call, and when the call returned. `None`
    /// if CS does not fall and rise around some clocks.
    pub(super) fn read(vcd: &str, returns_ns: u64) -> Option<Self> {
        let mut names = HashMap::new();
        let mut now = 0;
        let (mut falls, mut rises, mut first, mut last) = (None, None, None, None);
        let (header, body) = vcd.split_once("$enddefinitions $end")?;
        if !header.contains("$timescale 1 ns $end") {
            return None;
        }
        for line in header.lines() {
            if let ["$var", _, _, code, name, ..] = line.split(' ').collect::<Vec<_>>()[..] {
                names.insert(code, name);
            }
        }
        // The levels at the beginning are no edges.
        let (_, edges) = body.split_once("$end")?;
        for line in edges.lines() {
            if let Some(time) = line.strip_prefix('#') {
                now = time.parse().ok()?;
                continue;
            }
            let Some((level, code)) = line.split_at_checked(1) else { continue };
            match (names.get(code).copied(), level) {
                (Some("cs0"), "0") => falls = falls.or(Some(now)),
                (Some("cs0"), "1") => rises = Some(now),
                (Some("sck"), _) => {
                    first = first.or(Some(now));
                    last = Some(now);
                }
                _ => {}
            }
        }
        let this = Self {
            cs_falls_ns: falls?,
            first_clock_ns: first?,
            last_clock_ns: last?,
            cs_rises_ns: rises?,
            returns_ns,
        };
        this.spans().is_some().then_some(this)
    }

    /// How long each of its five parts takes; `None` if they are not in order.
    pub(super) fn spans(&self) -> Option<[u64; 5]> {
        let edges = [
            0,
            self.cs_falls_ns,
            self.first_clock_ns,
            self.last_clock_ns,
            self.cs_rises_ns,
            self.returns_ns,
        ];
        let mut spans = [0; 5];
        for (span, pair) in spans.iter_mut().zip(edges.windows(2)) {
            *span = pair[1].checked_sub(pair[0])?;
        }
        Some(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VCD: &str = "$timescale 1 ns $end\n$scope module barewire $end\n\
        $var wire 1 ! sck $end\n$var wire 1 # miso $end\n$var wire 1 $ cs0 $end\n\
        $upscope $end\n$enddefinitions $end\n#0\n$dumpvars\n0!\n1#\n1$\n$end\n\
        #100\n0$\n#400\n1!\n#425\n0!\n0#\n#500\n1!\n#525\n0!\n#700\n1#\n1$\n";

    #[test]
    fn edges_are_read_off_the_recording() {
        let timeline = Timeline::read(VCD, 800).expect("a whole access");
        assert_eq!(timeline.spans(), Some([100, 300, 125, 175, 100]));
    }

    #[test]
    fn half_an_access_is_none() {
        assert_eq!(Timeline::read(&VCD.replace("#700\n1#\n1$\n", ""), 800), None);
        assert_eq!(Timeline::read(VCD, 600), None, "it cannot return before CS rises");
        assert_eq!(Timeline::read("", 0), None);
    }
}
