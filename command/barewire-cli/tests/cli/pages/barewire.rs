//! `barewire …` as pages write it: parsed by the command's own definition, and run where that needs no board.

use std::path::Path;
use std::process::Command;

use barewire_open::name;

use crate::command::{Ran, barewire, noise};

/// The values that a reader fills in.
const VALUES: &str = "ARCHITECTURE amd64, BOARD sabrelite, BOOT mapped, BUS sim:imx8mp, COMMAND flash, \
                      CONTROLLER 30830000.spi, N 7, NAME fmt, SEED 7, TRACE trace.txt";
/// Parts of commands that a page leaves out.
const LEFT_OUT: [(&str, &str); 3] = [
    ("mem:…", "mem:0x30820000,reference-hz=80M,cs=gpio@0x30240000.9"),
    ("flash\n…", "flash\nread\n--bus\nsim:imx8mp\n--length\n64K\npart.bin"),
    ("--bus\n…", "--bus\nsim:imx8mp"),
];
const BUSES: [&str; 7] = ["sim:", "null:", "qemu:", "spidev:", "barewire:", "mem:", "uio:"];
/// Commands that need a machine, end by Ctrl-C alone, or take minutes.
const NOT_RUN: &str = "run, serve, doctor, restore, bench, iommu, can bridge, lab fit, lab gain --trace, lab report, lab sweep --path";
/// Options whose numbers on the pages take long to run, and the number used here instead.
const SHORTER: [(&str, u64); 4] =
    [("--frames", 300), ("--samples", 2_000), ("--messages", 10_000), ("--schedules", 10_000)];

/// A command to run, and how it must end.
pub(super) struct Run {
    /// Its place in the page.
    pub(super) place: String,
    pub(super) words: Vec<String>,
    pub(super) code: i32,
}

/// The command with the page's placeholders filled in, and whether one is left.
pub(super) fn filled(words: &[String]) -> (Vec<String>, bool) {
    // Words may have blanks; no page has this character.
    let mut whole = format!("\n{}\n", words.join("\n"));
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (name, value) in VALUES.split(", ").filter_map(|pair| pair.split_once(' ')).chain(LEFT_OUT)
    {
        for (at, _) in whole.clone().rmatch_indices(name) {
            let (before, behind) = (&whole[..at], &whole[at + name.len()..]);
            if !before.ends_with(is_part) && !behind.starts_with(is_part) {
                whole = format!("{before}{value}{behind}");
            }
        }
    }
    let synopsis = whole.replace(['[', ']', '…'], "");
    let partial = whole.contains("\n…\n");
    (synopsis.split('\n').filter(|word| !word.is_empty()).map(String::from).collect(), partial)
}

/// Parses a command, and the names of buses in it. `named` may lack arguments: it stands in a sentence.
pub(super) fn check(words: &[String], named: bool) -> Result<(), String> {
    super::parsed(barewire_cli::command().try_get_matches_from(words).map(drop), named)?;
    words.iter().try_for_each(|word| {
        let map = word.split_once('=').filter(|(node, _)| node.starts_with("/dev/"));
        let bus = map.map_or(word.as_str(), |(_, bus)| bus);
        // A map names the chip select by a number, where a bus's own name has lines.
        let is_number =
            |part: &str| part.strip_prefix("cs=").is_some_and(|cs| cs.parse::<u8>().is_ok());
        let parts: Vec<_> =
            bus.split(',').filter(|part| map.is_none() || !is_number(part)).collect();
        // The file of a board of the reader's own is made by a command before.
        let parts =
            parts.iter().map(|part| if *part == "sim:board.toml" { "sim:rpi3" } else { part });
        let parts: Vec<_> = parts.collect();
        let is_bus = BUSES.iter().any(|kind| bus.starts_with(kind));
        if is_bus { name::parse(&parts.join(",")).map(drop) } else { Ok(()) }
    })
}

/// Whether it can be run anywhere: it names no board, ends by itself, and soon.
pub(super) fn runs(words: &[String]) -> bool {
    let names =
        |what: &[&str]| words.iter().any(|word| what.iter().any(|part| word.contains(part)));
    let line = words[1..].join(" ") + " ";
    let not_run = NOT_RUN.split(", ").any(|begin| line.starts_with(&format!("{begin} ")));
    let endless = line.starts_with("can dump ") && !line.contains(" -n ");
    words.len() > 1
        && !not_run
        && !endless
        && !names(&BUSES[2..])
        && !names(&["/dev/", "--help", "mine."])
}

/// The exit code that a page's remark promises.
pub(super) fn code(remark: &str) -> i32 {
    let number = remark
        .split_once("exits ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or_else(|| i32::from(remark.contains("must fail")))
}

/// Makes the files that pages write to chips, two captures, and a reader's `examples` of the tree at `root`.
pub(super) fn fixtures(root: &Path, dir: &Path) {
    std::os::unix::fs::symlink(root.join("examples"), dir.join("examples")).expect("a new name");
    for capture in ["before.vcd", "after.vcd"] {
        std::fs::copy(root.join("examples/adc.vcd"), dir.join(capture)).expect("an example");
    }
    for (file, len) in [("firmware.bin", 64 << 10), ("boot.bin", 4 << 10)] {
        std::fs::write(dir.join(file), noise(len, 7)).expect("a file is written");
    }
}

impl Run {
    /// Runs it in `dir`. Returns the reason if it is wrong.
    pub(super) fn run(&self, dir: &Path) -> Option<String> {
        let mut words = self.words[1..].to_vec();
        for at in 1..words.len() {
            let limit = SHORTER
                .iter()
                .find(|(option, _)| *option == words[at - 1])
                .map(|(_, limit)| *limit);
            if let Some(limit) =
                limit.filter(|limit| words[at].parse().unwrap_or(u64::MAX) > *limit)
            {
                words[at] = limit.to_string();
            }
        }
        let mut timed = Command::new("timeout");
        timed.arg("240").arg(barewire(&[]).get_program()).args(words).env_remove("BAREWIRE_BUS");
        let ran: Ran = timed.current_dir(dir).output().expect("the command starts").into();
        let last = ran.stderr.lines().last().unwrap_or_default();
        let (place, line) = (&self.place, self.words.join(" "));
        let wrong =
            format!("{place}: `{line}` ends with {:?}, not {}: {last}", ran.code, self.code);
        (ran.code != Some(self.code)).then_some(wrong)
    }
}
