//! `cargo xtask size`: the code of whole firmware programs in bytes, compared with a reviewed table.
//!
//! The programs are in `examples/firmware-size`: the same few messages by each path, on each block. They are linked, not
//! run. A row is the sum of the sections that a microcontroller keeps in flash and does not copy; or, of the program `ram`,
//! the size of a type.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionFlags, elf};

use crate::check::is_blessing;
use crate::child::Task;
use crate::context::{Context, Outcome};
use crate::needs::{self, Need};
use crate::report::End;
use crate::step::{Lane, Step};

pub(crate) const STEP: Step = Step {
    name: "size",
    about: "bytes of whole firmware programs, by block and path; messages of the core built for size",
    lane: Lane::Own,
    minutes: 4,
    needs: &[Need::Target(TARGETS[0]), Need::Target(TARGETS[1])],
    paths: &["stack/barewire/", "examples/firmware-size/"],
    run: checked,
};

/// Cortex-M0 and M4, without and with the instructions that divide.
const TARGETS: [&str; 2] = ["thumbv6m-none-eabi", "thumbv7em-none-eabi"];

/// The blocks, by the programs' features.
const BLOCKS: [&str; 8] =
    ["atmel", "bcm2835", "cadence", "dw_ssi", "ecspi", "mcspi", "pl022", "sifive"];

/// What is built of every block, as small as it gets.
const SMALL: [&str; 4] = ["prepared", "sync", "hal", "every_path"];

/// The block on which the programs are also built in other ways.
const EXAMPLE: &str = "pl022";

/// What is built of it too, as fast as it gets.
const FAST: [&str; 9] = [
    "empty",
    "prepared",
    "sync",
    "hal",
    "every_path",
    "any_prepared",
    "any_sync",
    "any_hal",
    "ram",
];

/// Judges of the simulator that run messages on every block.
const JUDGES: [&str; 5] = ["messages", "conformance", "hal", "settings", "trouble"];

/// The directory of the programs and the table.
const DIR: &str = "examples/firmware-size";
const TABLE: &str = "sizes.txt";

/// The page that has these figures, between two marks.
const PAGE: &str = "docs/firmware.md";
const BEGIN: &str = "<!-- sizes -->\n";
const END: &str = "<!-- end of sizes -->";

/// The share of a row, in percent, that it may differ from the table without a review, as with the guests' instructions.
const TOLERANCE: u64 = 2;

/// Bytes by target, block, variant and program.
type Sizes = BTreeMap<[String; 4], u64>;

/// The step, after installing what it needs if that is allowed.
pub(crate) fn run(cx: &Context) -> End {
    // The step reports what stays missing.
    let _ = needs::obtain(STEP.needs, cx);
    End::of(&STEP.checked(cx, |cx| outcome(cx, &|_, _| true)))
}

/// CI builds one block only for the processor that divides: its other rows say little that those of the first do not. Then it
/// asks on every block whether what is small does the same.
fn checked(cx: &Context) -> Outcome {
    let sizes = outcome(cx, &|target, block| target == TARGETS[0] || block == EXAMPLE);
    Outcome::of_all(vec![sizes, same_messages(cx)])
}

/// The simulator's judges of messages, with the core built for size.
fn same_messages(cx: &Context) -> Outcome {
    let dir = cx.root.join(cx.target_dir("small")).to_string_lossy().into_owned();
    let build = ["test", "-p", "barewire-sim", "--features", "barewire/small", "--test", "it"];
    let place = ["--profile", "ci", "--target-dir", &dir, "--", "--show-output"];
    let args = [&build[..], &place, &JUDGES].concat();
    cx.run_tests(&Task::new("cargo", &args))
}

fn outcome(cx: &Context, builds: &dyn Fn(&str, &str) -> bool) -> Outcome {
    match compared(cx, builds) {
        Ok(success) => Outcome::of_check(success),
        Err(why) => {
            cx.console.say(&why);
            Outcome::failed().with_note(why)
        }
    }
}

/// Builds all programs, prints the table, and compares it with the reviewed one. Returns whether all is as reviewed.
///
/// # Errors
/// What cannot be read or written.
fn compared(cx: &Context, builds: &dyn Fn(&str, &str) -> bool) -> Result<bool, String> {
    let Some(sizes) = sizes(cx, builds)? else { return Ok(false) };
    cx.console.say(&table(&sizes));
    let path = cx.root.join(DIR).join(TABLE);
    if is_blessing() {
        fs::write(&path, table(&sizes)).map_err(|error| format!("{}: {error}", path.display()))?;
        let page = cx.root.join(PAGE);
        let text = fs::read_to_string(&page).map_err(|error| format!("{PAGE}: {error}"))?;
        let text = with_tables(&text, &sizes).ok_or_else(|| format!("{PAGE}: no {BEGIN}"))?;
        fs::write(&page, text).map_err(|error| format!("{PAGE}: {error}"))?;
        cx.console
            .say(&format!("{}: written, and {PAGE}; review both and run again", path.display()));
        return Ok(false);
    }
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut reviewed = parse(&text)?;
    reviewed.retain(|[target, block, ..], _| builds(target, block));
    let wrong = differences(&reviewed, &sizes);
    for line in &wrong {
        cx.console.say(&format!("FAILED {line}"));
    }
    if !wrong.is_empty() {
        cx.console.say(&format!("BAREWIRE_BLESS=1 cargo xtask size writes {DIR}/{TABLE} anew"));
    }
    Ok(wrong.is_empty())
}

/// The rows of the targets and blocks that it `builds`; `None` if a program does not compile.
fn sizes(cx: &Context, builds: &dyn Fn(&str, &str) -> bool) -> Result<Option<Sizes>, String> {
    let mut sizes = Sizes::new();
    for target in TARGETS {
        for block in BLOCKS.into_iter().filter(|block| builds(target, block)) {
            let variants: &[(&str, &[&str])] = match block {
                EXAMPLE if target == TARGETS[0] => &[("small", &SMALL), ("fast", &FAST)],
                _ => &[("small", &SMALL)],
            };
            for &(variant, programs) in variants {
                let Some(built) = build(cx, target, block, variant, programs) else {
                    return Ok(None);
                };
                for program in programs {
                    let file = fs::read(built.join(program));
                    let file = file.map_err(|error| format!("{program}: {error}"))?;
                    let measured = match *program {
                        "ram" => types(&file)?,
                        _ => vec![((*program).to_owned(), text(&file)?)],
                    };
                    for (program, bytes) in measured {
                        sizes.insert([target.into(), block.into(), variant.into(), program], bytes);
                    }
                }
            }
        }
    }
    Ok(Some(sizes))
}

/// Builds programs, and returns the directory that they are in.
fn build(
    cx: &Context,
    target: &str,
    block: &str,
    variant: &str,
    programs: &[&str],
) -> Option<PathBuf> {
    let dir = cx.root.join(cx.target_dir("firmware-size"));
    let features = if variant == "small" { format!("{block},small") } else { block.into() };
    let dir_text = dir.to_string_lossy();
    let mut args = vec!["build", "--release", "--locked", "--target", target];
    args.extend(["--features", features.as_str(), "--target-dir", &dir_text]);
    args.extend(programs.iter().flat_map(|program| ["--bin", program]));
    let ran = cx.ran_in(&cx.root.join(DIR), &Task::new("cargo", &args));
    ran.success.then(|| dir.join(target).join("release"))
}

/// What a program has in flash, except what is copied to RAM: sections that are loaded and not written.
fn text(file: &[u8]) -> Result<u64, String> {
    let file = object::File::parse(file).map_err(|error| error.to_string())?;
    let kept = |flags: u64| {
        flags & u64::from(elf::SHF_ALLOC) != 0 && flags & u64::from(elf::SHF_WRITE) == 0
    };
    let sizes = file.sections().map(|section| match section.flags() {
        SectionFlags::Elf { sh_flags } if kept(sh_flags) => section.size(),
        _ => 0,
    });
    Ok(sizes.sum())
}

/// The sizes of the types that the program `ram` names.
fn types(file: &[u8]) -> Result<Vec<(String, u64)>, String> {
    let file = object::File::parse(file).map_err(|error| error.to_string())?;
    let named = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok()?.strip_prefix("RAM_")?.to_lowercase();
        Some((format!("ram:{name}"), symbol.size()))
    };
    Ok(file.symbols().filter_map(named).collect())
}

fn table(sizes: &Sizes) -> String {
    let mut text = String::from(
        "# Bytes of flash of a whole program (or of RAM of a type); see docs/firmware.md. `cargo xtask size`\n",
    );
    for ([target, block, variant, program], bytes) in sizes {
        let _ = writeln!(text, "{target:<21}{block:<9}{variant:<7}{program:<19}{bytes:>7}");
    }
    text
}

/// The page's tables.
fn tables(sizes: &Sizes) -> String {
    let bytes = |target: &str, block: &str, variant: &str, program: &str| {
        let row = [target, block, variant, program].map(str::to_owned);
        sizes.get(&row).map_or_else(|| "–".to_owned(), |bytes| grouped(*bytes))
    };
    let [m0, m4] = TARGETS;
    let mut text = String::from(
        "| bytes of flash, PL022 | `Bus::new` | by types | and `small` | `small`, thumbv7em |\n|---|---|---|---|---|\n",
    );
    for (program, any, name) in [
        ("prepared", "any_prepared", "prepared"),
        ("sync", "any_sync", "sync"),
        ("hal", "any_hal", "`embedded-hal`"),
        ("every_path", "-", "sync, a future, a submitted message, the interrupt"),
    ] {
        let all = bytes(m0, EXAMPLE, "fast", any);
        let (fast, small) =
            (bytes(m0, EXAMPLE, "fast", program), bytes(m0, EXAMPLE, "small", program));
        let other = bytes(m4, EXAMPLE, "small", program);
        let _ = writeln!(text, "| {name} | {all} | {fast} | {small} | {other} |");
    }
    let empty = bytes(m0, EXAMPLE, "fast", "empty");
    let _ = writeln!(text, "| an empty program | | {empty} | | |\n");
    text += "| bytes of flash, `small`, thumbv6m | prepared | sync | `embedded-hal` | all of them |\n|---|---|---|---|---|\n";
    for block in BLOCKS {
        let [prepared, sync, hal, every] = SMALL.map(|program| bytes(m0, block, "small", program));
        let _ = writeln!(text, "| {block} | {prepared} | {sync} | {hal} | {every} |");
    }
    text += "\n| bytes of RAM, thumbv6m, PL022 | |\n|---|---|\n";
    for (name, what) in [
        ("controller", "the controller, in a bus"),
        ("bus_plain", "a bus with it, plain messages of one user"),
        ("bus_spin", "a bus with a queue and interrupts"),
        ("bus_any", "a bus that may be used in any way (`Bus::new`)"),
        ("device", "a device"),
        ("prepared_4", "a prepared access of 4 bytes"),
    ] {
        let ram = bytes(m0, EXAMPLE, "fast", &format!("ram:{name}"));
        let _ = writeln!(text, "| {what} | {ram} |");
    }
    text
}

fn grouped(bytes: u64) -> String {
    match bytes / 1_000 {
        0 => bytes.to_string(),
        thousands => format!("{thousands},{:03}", bytes % 1_000),
    }
}

/// A page with the tables between its marks.
fn with_tables(page: &str, sizes: &Sizes) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", tables(sizes)))
}

fn parse(text: &str) -> Result<Sizes, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let read = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [target, block, variant, program, bytes] = words[..] else { return None };
        let key = [target, block, variant, program].map(str::to_owned);
        Some((key, bytes.parse().ok()?))
    };
    lines.map(|line| read(line).ok_or_else(|| format!("no line of sizes: `{line}`"))).collect()
}

/// What differs from the reviewed table, a line each.
fn differences(reviewed: &Sizes, now: &Sizes) -> Vec<String> {
    let mut wrong = Vec::new();
    for (row, bytes) in now {
        match reviewed.get(row) {
            Some(was) if was.abs_diff(*bytes) * 100 <= was * TOLERANCE => {}
            Some(was) => wrong.push(format!("{}: {bytes} bytes, reviewed {was}", row.join(" "))),
            None => wrong.push(format!("{}: {bytes} bytes, not in the table", row.join(" "))),
        }
    }
    let gone = reviewed.keys().filter(|row| !now.contains_key(*row));
    wrong.extend(gone.map(|row| format!("{}: not built", row.join(" "))));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(rows: &[(&str, u64)]) -> Sizes {
        let key = |program: &str| ["m0", "pl022", "small", program].map(str::to_owned);
        rows.iter().map(|&(program, bytes)| (key(program), bytes)).collect()
    }

    #[test]
    fn a_table_reads_back() {
        let sizes = sizes(&[("sync", 7_576), ("ram:device", 200)]);
        assert_eq!(parse(&table(&sizes)), Ok(sizes));
        assert!(parse("m0 pl022 small sync").is_err() && parse("m0 pl022 small sync x").is_err());
    }

    #[test]
    fn a_row_that_grew_shrank_came_or_went_fails() {
        let reviewed = sizes(&[("prepared", 8_000), ("sync", 7_000), ("hal", 9_000)]);
        let now = sizes(&[("prepared", 8_160), ("sync", 6_859), ("every_path", 1)]);
        let wrong = differences(&reviewed, &now);
        assert_eq!(
            wrong,
            [
                "m0 pl022 small every_path: 1 bytes, not in the table",
                "m0 pl022 small sync: 6859 bytes, reviewed 7000",
                "m0 pl022 small hal: not built",
            ]
        );
        assert_eq!(differences(&now, &now), [""; 0]);
    }

    #[test]
    fn the_page_has_the_reviewed_figures() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| fs::read_to_string(root.join(path)).expect("it is in the tree");
        let (reviewed, page) = (parse(&read("examples/firmware-size/sizes.txt")), read(PAGE));
        let reviewed = reviewed.expect("a table");
        assert_eq!(with_tables(&page, &reviewed), Some(page), "BAREWIRE_BLESS=1 cargo xtask size");
    }

    #[test]
    fn every_program_is_built() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for entry in fs::read_dir(root.join(DIR).join("src/bin")).expect("it is in the tree") {
            let name = entry.expect("an entry").file_name().into_string().expect("a name");
            assert!(FAST.contains(&name.trim_end_matches(".rs")), "{name}");
        }
    }
}
