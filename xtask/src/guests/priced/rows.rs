//! A row for each path and length: one operation of those that ran, its counts and its time.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::super::board::Board;
use super::super::reviewed;
use super::prices::{Level, List};
use super::replay::{Block, Blocks, Time, time};
use super::trace::{Counts, Event, Operation};
use crate::check::{Check, Verdict, quoted};

/// The reviewed rows.
pub(super) const SNAPSHOT: &str = "guests/priced.txt";

/// The share by which a time may differ from the table's.
const TOLERANCE: f64 = 0.03;

/// SCK of all operations.
const SCK_HZ: u64 = 20_000_000;

/// Bytes before the data of an mtd's read: a fast read's opcode, four of address, one of nothing.
const READ_HEADER: u64 = 6;

/// An operation and what it costs at each level.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) board: &'static str,
    pub(super) kernel: String,
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) is_cold: bool,
    pub(super) counts: Counts,
    /// Reads and writes of the controller's registers, the bank's, and others.
    pub(super) accesses: [[u64; 2]; 3],
    pub(super) interrupts: u64,
    pub(super) exceptions: u64,
    pub(super) switches: u64,
    /// At the levels low, used and high.
    pub(super) times: [Time; 3],
}

/// A row for each path, length and state of a boot, in the order in which they ran.
///
/// # Errors
/// A price that is missing, or a board whose registers are not known.
pub(super) fn of(
    board: &'static Board,
    kernel: &str,
    operations: &[Operation],
    list: &List,
) -> Result<Vec<Row>, String> {
    let blocks = blocks(board)?;
    let mut keys: Vec<(&str, u64, bool)> = Vec::new();
    for one in operations {
        let key = (&*one.path, one.bytes, one.is_cold);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut rows = Vec::new();
    for (path, bytes, is_cold) in keys {
        let is_one =
            |one: &&Operation| (&*one.path, one.bytes, one.is_cold) == (path, bytes, is_cold);
        let all: Vec<&Operation> = operations.iter().filter(is_one).collect();
        let Some(one) = middle(&all) else { continue };
        let mut times = [Time::default(); 3];
        for (level, time) in Level::ALL.into_iter().zip(&mut times) {
            *time = price(one, board, list, level, SCK_HZ)?;
        }
        rows.push(Row {
            board: board.name,
            kernel: kernel.to_owned(),
            path: path.to_owned(),
            bytes,
            is_cold,
            counts: one.counts(),
            accesses: [Block::Controller, Block::Bank, Block::Other].map(|block| {
                let is_read = |e| matches!(e, Event::Read(at) if blocks.of(at) == block);
                let is_write = |e| matches!(e, Event::Write(at, _) if blocks.of(at) == block);
                [one.count(is_read), one.count(is_write)]
            }),
            interrupts: one.count(|event| event == Event::Interrupt),
            exceptions: one.count(|event| event == Event::Exception),
            switches: one.count(|event| event == Event::Switch),
            times,
        });
    }
    Ok(rows)
}

/// The operation with the middle number of instructions: a tick of the kernel's clock is in some of them.
pub(super) fn middle<'a>(all: &[&'a Operation]) -> Option<&'a Operation> {
    let mut all = all.to_vec();
    all.sort_by_key(|one| one.counts().instructions);
    all.get(all.len() / 2).copied()
}

/// The time of an operation on a board at a level, at that SCK.
///
/// # Errors
/// As [`of`].
pub(super) fn price(
    one: &Operation,
    board: &Board,
    list: &List,
    level: Level,
    sck_hz: u64,
) -> Result<Time, String> {
    let blocks = blocks(board)?;
    let bits = bits(one, &blocks, board);
    Ok(time(one, &blocks, &list.of(board.name, level)?, bits, sck_hz))
}

/// Where the board's blocks are: [`Board::registers`], and the data registers of its controller.
fn blocks(board: &Board) -> Result<Blocks, String> {
    let range = |text: &str| {
        let (first, size) = text.split_once(':')?;
        Some((u64::from_str_radix(first, 16).ok()?, u64::from_str_radix(size, 16).ok()?))
    };
    let [controller, bank] = board.registers.map(range);
    // i.MX 8M Plus Reference Manual, ECSPI_TXDATA, ECSPI_RXDATA, and ECSPI_CONREG with SMC and XCH; BCM2835 ARM Peripherals,
    // 10.5: FIFO.
    let (sent, received, start) = match board.name {
        "imx8mp-evk" => (4, 0, Some((8, 1 << 3, 1 << 2))),
        "raspi3b" => (4, 4, None),
        name => return Err(format!("the data registers of {name} are not known here")),
    };
    match (controller, bank) {
        (Some(controller), Some(bank)) => Ok(Blocks { controller, bank, sent, received, start }),
        _ => Err(format!("the registers of {} are no ranges", board.name)),
    }
}

/// The bits of an operation on the wire.
fn bits(one: &Operation, blocks: &Blocks, board: &Board) -> u64 {
    // BCM2835's FIFO takes a byte at a time.
    if board.name == "raspi3b" {
        return 8 * one.count(|event| blocks.is_sent(event));
    }
    let header = if one.path.ends_with("mtd") { READ_HEADER } else { 0 };
    8 * (one.bytes + header)
}

/// Lines and pages.
fn misses(counts: &Counts) -> u64 {
    counts.code_l2
        + counts.code_memory
        + counts.load_l2
        + counts.load_memory
        + counts.store_l2
        + counts.store_memory
        + counts.walks
}

fn state(is_cold: bool) -> &'static str {
    if is_cold { "cold" } else { "warm" }
}

fn us(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// For people: the parts of each time at a level.
pub(super) fn text(rows: &[Row], level: Level) -> String {
    let mut text = String::from(
        "Counted in an emulator and priced, never measured: microseconds. `wire` is the bits at SCK, which overlaps; the other\n\
         parts add up to `total`.\n",
    );
    let mut before = ("", "");
    for row in rows {
        if before != (row.board, &*row.kernel) {
            before = (row.board, &row.kernel);
            let _ = writeln!(
                text,
                "\n{}, Linux {}, SCK {} MHz\n{:<18}{:>6} {:<5}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
                row.board,
                row.kernel,
                SCK_HZ / 1_000_000,
                "path",
                "bytes",
                "",
                "instr.",
                "misses",
                "regs",
                "order",
                "waits",
                "wakes",
                "total",
                "wire"
            );
        }
        let of = row.times[level as usize];
        let _ = write!(text, "{:<18}{:>6} {:<5}", row.path, row.bytes, state(row.is_cold));
        for part in [
            of.instructions,
            of.misses,
            of.registers,
            of.ordering,
            of.waits,
            of.wakes,
            of.total(),
            of.wire,
        ] {
            let _ = write!(text, "{:>9.2}", us(part));
        }
        text.push('\n');
    }
    text
}

/// Objects, separated by commas.
pub(super) fn json(rows: &[Row], level: Level) -> String {
    let object = |row: &Row| {
        let of = row.times[level as usize];
        let [low, used, high] = row.times.map(|time| time.total() / 1_000);
        let Counts {
            instructions,
            code_l2,
            code_memory,
            load_l2,
            load_memory,
            store_l2,
            store_memory,
            walks,
            dmb,
            dsb,
            isb,
            exclusives,
            gic,
        } = row.counts;
        let [controller, bank, other] = row.accesses;
        format!(
            "{{\"board\":{},\"kernel\":{},\"path\":{},\"bytes\":{},\"cold\":{},\"sck_hz\":{SCK_HZ},\
             \"ns\":{},\"ns_range\":[{low},{used},{high}],\"parts_ns\":{{\"instructions\":{},\"misses\":{},\
             \"registers\":{},\"ordering\":{},\"waits\":{},\"wakes\":{}}},\"wire_ns\":{},\
             \"counts\":{{\"instructions\":{instructions},\"code_l2\":{code_l2},\"code_memory\":{code_memory},\
             \"load_l2\":{load_l2},\"load_memory\":{load_memory},\"store_l2\":{store_l2},\
             \"store_memory\":{store_memory},\"walks\":{walks},\"dmb\":{dmb},\"dsb\":{dsb},\"isb\":{isb},\
             \"exclusives\":{exclusives},\"gic\":{gic},\"interrupts\":{},\"exceptions\":{},\"switches\":{},\
             \"controller\":{controller:?},\"bank\":{bank:?},\"other\":{other:?}}}}}",
            quoted(row.board),
            quoted(&row.kernel),
            quoted(&row.path),
            row.bytes,
            row.is_cold,
            of.total() / 1_000,
            of.instructions / 1_000,
            of.misses / 1_000,
            of.registers / 1_000,
            of.ordering / 1_000,
            of.waits / 1_000,
            of.wakes / 1_000,
            of.wire / 1_000,
            row.interrupts,
            row.exceptions,
            row.switches,
        )
    };
    rows.iter().map(object).collect::<Vec<_>>().join(",")
}

/// The key of a line of the reviewed table: board, kernel, path, bytes and state.
fn key(row: &Row) -> String {
    format!(
        "{:<11} {:<20} {:<17} {:>4} {}",
        row.board,
        row.kernel,
        row.path,
        row.bytes,
        state(row.is_cold)
    )
}

fn line(row: &Row) -> String {
    let [low, used, high] = row.times.map(|time| us(time.total()));
    let [controller, bank, other] = row.accesses.map(|[reads, writes]| format!("{reads}/{writes}"));
    let counts = &row.counts;
    format!(
        "{} {:>7} {:>6} {controller:>9} {bank:>5} {other:>6} {:>5} {:>5} {:>4} {:>4} {low:>8.2} {used:>8.2} {high:>8.2}",
        key(row),
        counts.instructions,
        misses(counts),
        counts.dmb + counts.dsb + counts.isb,
        counts.exclusives,
        row.interrupts,
        row.switches,
    )
}

const HEAD: &str = "\
# Operations counted in guests and priced by guests/prices.txt (`cargo xtask guests --priced`); see docs/priced.md. Nothing here
# was measured. Board, kernel, path, bytes, state; instructions; lines and pages that had to be fetched; reads/writes of the
# controller's registers, of the bank's, of others; barriers; exclusives; interrupts; switches of tasks; microseconds at the
# low, used and high prices. The used ones gate within 3 % on the kernel that the line names.
";

/// A line of the reviewed table, split into its key and the time at the used prices.
fn parsed(line: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., low, used, high] = *words.as_slice() else { return None };
    let times: Vec<f64> =
        [low, used, high].iter().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (words.len() == 17 && times.is_sorted()).then(|| (words[..5].join(" "), times[1]))
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty())
}

/// The reviewed table with the rows of the boards and kernels that ran replaced.
pub(super) fn blessed(known: &str, rows: &[Row]) -> String {
    let is_new = |line: &str| {
        let mut words = line.split_whitespace();
        let (board, kernel) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        rows.iter().any(|row| row.board == board && row.kernel == kernel)
    };
    let kept = lines(known).filter(|line| !is_new(line)).map(str::to_owned);
    let mut all: BTreeMap<(String, usize), String> = BTreeMap::new();
    for (at, line) in kept.chain(rows.iter().map(line)).enumerate() {
        let group: Vec<&str> = line.split_whitespace().take(2).collect();
        all.insert((group.join(" "), at), line);
    }
    all.into_values().fold(HEAD.to_owned(), |text, line| text + &line + "\n")
}

/// Judges the rows of a board. Those of another build of a kernel than the table's are not in it.
pub(super) fn judge(board: &str, rows: &[Row], known: &str) -> Check {
    const NAME: &str = "priced";
    let mut known: Vec<(String, f64)> =
        match lines(known).map(|line| parsed(line).ok_or(line)).collect() {
            Ok(known) => known,
            Err(line) => {
                return Check::new(NAME, Verdict::Failed, format!("{SNAPSHOT}: no row: `{line}`"));
            }
        };
    let now = |row: &Row| {
        let words: Vec<String> = key(row).split_whitespace().map(str::to_owned).collect();
        (words.join(" "), us(row.times[Level::Used as usize].total()))
    };
    let now: Vec<(String, f64)> = rows.iter().filter(|row| row.board == board).map(now).collect();
    let kernel = |path: &str| path.split(' ').take(2).collect::<Vec<_>>().join(" ");
    known.retain(|(path, _)| now.iter().any(|(other, _)| kernel(other) == kernel(path)));
    if known.is_empty() {
        return Check::new(
            NAME,
            Verdict::Skipped,
            format!("{SNAPSHOT} has another build of the kernel; BAREWIRE_BLESS=1 adds this one"),
        );
    }
    let shown = |time: &f64| format!("{time:.2}");
    let is_off = |_: &str, now: &f64, was: &f64| (now - was).abs() > was * TOLERANCE;
    reviewed::check(NAME, &reviewed::differences(SNAPSHOT, &now, &known, shown, is_off))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, used: u64) -> Row {
        let time = |total: u64| Time { instructions: total, ..Time::default() };
        Row {
            board: "imx8mp-evk",
            kernel: "6.1".to_owned(),
            path: path.to_owned(),
            bytes: 4,
            is_cold: false,
            counts: Counts::default(),
            accesses: [[1, 2]; 3],
            interrupts: 0,
            exceptions: 1,
            switches: 0,
            times: [time(used / 2), time(used), time(used * 2)],
        }
    }

    #[test]
    fn a_row_within_three_percent_passes_and_another_does_not() {
        let known = blessed("", &[row("spidev", 10_000_000)]);
        let verdict = |used| judge("imx8mp-evk", &[row("spidev", used)], &known).verdict;
        assert_eq!([verdict(10_290_000), verdict(9_710_000)], [Verdict::Passed; 2]);
        assert_eq!([verdict(10_310_000), verdict(9_690_000)], [Verdict::Failed; 2]);
        let other = judge("imx8mp-evk", &[row("mtd", 10_000_000)], &known);
        assert!(other.why.contains("mtd 4 warm 10.00 is not in"), "{other:?}");
        let newer = Row { kernel: "6.2".to_owned(), ..row("spidev", 1) };
        assert_eq!(judge("imx8mp-evk", &[newer], &known).verdict, Verdict::Skipped);
    }

    #[test]
    fn blessing_replaces_what_ran_and_keeps_the_rest() {
        let newer = Row { kernel: "6.12".to_owned(), ..row("spidev", 20_000_000) };
        let both = blessed(&blessed("", &[row("spidev", 10_000_000)]), &[newer]);
        assert_eq!(lines(&both).count(), 2);
        let again = blessed(&both, &[row("spidev", 11_000_000)]);
        assert_eq!(lines(&again).count(), 2);
        assert!(again.contains("11.00") && again.contains("20.00") && !again.contains(" 5.00"));
    }

    #[test]
    fn the_reviewed_table_has_every_path_warm_and_cold() {
        let text = include_str!("../../../../guests/priced.txt");
        let all: Vec<String> = lines(text).map(|line| parsed(line).expect(line).0).collect();
        for start in ["imx8mp-evk 6.1.", "imx8mp-evk 6.12.", "raspi3b 6.1."] {
            let own: Vec<&String> = all.iter().filter(|key| key.starts_with(start)).collect();
            for path in
                ["spidev", "spi_sync", "mtd", "module-run", "mapped-prepared", "mapped-sync"]
            {
                for bytes in [4, 64, 1024] {
                    for state in ["warm", "cold"] {
                        let end = format!(" {path} {bytes} {state}");
                        assert!(own.iter().any(|key| key.ends_with(&end)), "{start}{end}");
                    }
                }
            }
        }
    }

    /// `guests/kernel.txt` has instructions by the guest's clock and accesses by another plugin, over 1,000 operations.
    #[test]
    fn what_is_counted_here_is_what_two_other_ways_count() {
        let priced = include_str!("../../../../guests/priced.txt");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let row = |board: &str, newer: bool, path: &str| {
            let is_one = |words: &Vec<String>| {
                (&*words[0], words[1].starts_with("6.12."), &*words[2], &*words[3], &*words[4])
                    == (board, newer, path, "4", "warm")
            };
            lines(priced).map(words).find(is_one)
        };
        let accesses = |words: &[String]| -> f64 {
            let all = words[7..9].iter().flat_map(|pair| pair.split('/'));
            all.map(|one| one.parse::<f64>().expect(one)).sum()
        };
        let mut compared = 0;
        for other in lines(include_str!("../../../../guests/kernel.txt")).map(words) {
            let (what, newer) = match other[1].strip_suffix("-6.12") {
                Some(what) => (what, true),
                None => (&*other[1], false),
            };
            let paths = match what {
                "sync-4" => ["spi_sync", "module-spi_sync"],
                "spidev-4" | "spidev-4-accesses" => ["spidev", "module-spidev"],
                "run-4" => ["spi_sync", "module-run"],
                _ => continue,
            };
            for (path, known) in paths.into_iter().zip(&other[2..4]) {
                let Some(row) = row(&other[0], newer, path) else { continue };
                let known: f64 = known.parse().expect(known);
                let (now, tolerance) = match what.ends_with("accesses") {
                    true => (accesses(&row), 0.0),
                    false => (row[5].parse().expect(&row[5]), (0.02 * known).max(12.0)),
                };
                assert!((now - known).abs() <= tolerance, "{other:?}: {row:?}");
                compared += 1;
            }
        }
        assert!(compared >= 20, "{compared}");
    }
}
