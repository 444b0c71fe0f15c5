//! The judge of settings, as a reviewed table for each block: a device's settings as the block makes them or the
//! reason why it refuses them, and the transfers that it refuses or awaits by interrupt.
//!
//! Set `BAREWIRE_BLESS=1` to write the tables anew, then review the difference.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use barewire::controller::{ALWAYS_POLL, Controller};
use barewire::spi::{MODE_0, MODE_1, MODE_2, MODE_3, Mode, Settings, Transfer};
use barewire_sim::model::echo::Echo;
use barewire_sim::wire::Driver;

use crate::blocks::{Block, on_every_block};
use crate::snapshot;

/// Transfers that take longer on the wire wait by interrupt.
const LIMIT_NS: u32 = 100_000;
/// Words of the longest transfer that is tried: twice as many as the wire takes in that time.
const WORDS_MAX: usize = 128;
const SPEEDS_HZ: [u32; 26] = [
    0,
    1,
    1_230,
    1_231,
    3_051,
    3_052,
    6_103,
    6_104,
    6_105,
    61_035,
    61_036,
    99_999,
    400_000,
    517_647,
    517_648,
    999_999,
    3_600_000,
    10_000_000,
    19_999_999,
    20_000_000,
    28_571_429,
    99_999_989,
    133_333_334,
    199_999_999,
    200_000_000,
    u32::MAX,
];

fn devices(cs: u8) -> Vec<(String, Settings)> {
    let base = Settings::new(cs, 20_000_000);
    let mut all = Vec::new();
    for speed_hz in SPEEDS_HZ {
        all.push((format!("{speed_hz} Hz"), Settings { speed_hz, ..base }));
    }
    let modes = [
        ("mode 1", MODE_1),
        ("mode 2", MODE_2),
        ("mode 3", MODE_3),
        ("LSB_FIRST", Mode::LSB_FIRST),
        ("LOOP", Mode::LOOP),
        ("CS_HIGH", Mode::CS_HIGH),
        ("NO_CS", Mode::NO_CS),
        ("NO_CS and CS_HIGH", Mode::NO_CS | Mode::CS_HIGH),
    ];
    all.extend(modes.map(|(name, mode)| (name.to_owned(), base.with_mode(mode))));
    for bits in [0, 4, 7, 9, 16, 24, 32] {
        all.push((format!("{bits} bits"), base.with_bits_per_word(bits)));
    }
    for ns in [1, 126, 700, 70_000, 5_000_000, u32::MAX] {
        all.push((format!("cs_setup {ns} ns"), Settings { cs_setup_ns: ns, ..base }));
        all.push((format!("cs_hold {ns} ns"), Settings { cs_hold_ns: ns, ..base }));
        all.push((format!("cs_inactive {ns} ns"), Settings { cs_inactive_ns: ns, ..base }));
        all.push((format!("word_delay {ns} ns"), Settings { word_delay_ns: ns, ..base }));
    }
    all
}

fn told_device(driver: &dyn Controller, settings: &Settings) -> String {
    match driver.configure(settings) {
        Err(error) => format!("{error:?}"),
        Ok((_, effective)) => {
            let mut text = format!("{} Hz", effective.speed_hz);
            for (name, ns) in [
                ("setup", effective.cs_setup_ns),
                ("hold", effective.cs_hold_ns),
                ("inactive", effective.cs_inactive_ns),
                ("word", effective.word_delay_ns),
            ] {
                if ns != 0 {
                    let _ = write!(text, ", {name} {ns} ns");
                }
            }
            text
        }
    }
}

/// A change of a transfer, by its name.
type Change = (&'static str, fn(&mut Transfer<'_>));

const CHANGES: [Change; 12] = [
    ("as it is", |_| ()),
    ("at 10 MHz", |transfer| transfer.speed_hz = 10_000_000),
    ("at 19.5 MHz", |transfer| transfer.speed_hz = 19_500_000),
    ("at 1 MHz", |transfer| transfer.speed_hz = 1_000_000),
    ("at 1 Hz", |transfer| transfer.speed_hz = 1),
    ("in words of 16 bits", |transfer| transfer.bits_per_word = 16),
    ("in words of 32 bits", |transfer| transfer.bits_per_word = 32),
    ("with 600 ns between words", |transfer| transfer.word_delay_ns = 600),
    ("with 70 us between words", |transfer| transfer.word_delay_ns = 70_000),
    ("with a delay behind it", |transfer| transfer.delay_ns = 1_000),
    ("with a pulse that has no delay", |transfer| transfer.cs_change_delay_ns = 1_000),
    ("with a delay that nobody waits for", |transfer| transfer.delay_ns = u32::MAX),
];

/// Whether a transfer of `len` bytes waits by interrupt, or why it is refused.
fn waits(
    driver: &mut dyn Controller,
    settings: &Settings,
    change: Change,
    len: usize,
) -> Result<bool, String> {
    let (preset, _) = driver.configure(settings).map_err(|error| format!("{error:?}"))?;
    let bytes = vec![0; len];
    let mut message = [Transfer::write(&bytes)];
    (change.1)(&mut message[0]);
    driver.plan(&preset, &mut message).map_err(|refused| format!("{:?}", refused.error))?;
    let waits = driver.start(&preset, &mut message).is_pending();
    if waits {
        driver.reclaim();
    }
    Ok(waits)
}

/// The longest transfer of words of 4 bytes that is polled, and what happens to longer ones.
fn told_transfer(driver: &mut dyn Controller, settings: &Settings, change: Change) -> String {
    let mut is_polled = |words: usize| match waits(driver, settings, change, 4 * words) {
        Ok(waits) => Ok(!waits),
        Err(error) => Err(error),
    };
    match is_polled(1) {
        Err(error) => return error,
        Ok(false) => return String::from("waits by interrupt from 4 bytes on"),
        Ok(true) => {}
    }
    let (mut polled, mut not) = (1, WORDS_MAX);
    while not - polled > 1 {
        let middle = polled.midpoint(not);
        if is_polled(middle) == Ok(true) { polled = middle } else { not = middle }
    }
    match is_polled(not) {
        Ok(true) => String::from("is polled"),
        Ok(false) => format!("is polled up to {} bytes", 4 * polled),
        Err(error) => format!("is polled up to {} bytes, then {error}", 4 * polled),
    }
}

/// Tables of chip selects that no board has, with the outcome for a device on each line.
fn tell_lines(block: &'static Block, text: &mut String) {
    let native = |channel, active_high| (Driver::Native(channel), active_high);
    for (name, lines) in [
        ("an active-high pin", vec![(block.pin(), true)]),
        ("an active-high line of the block", vec![native(0, true)]),
        (
            "two lines of the block and a pin",
            vec![native(0, false), native(1, false), (block.pin(), false)],
        ),
        ("lines of the block alone", (0..4).map(|channel| native(channel, false)).collect()),
        ("a fifth line of the block", vec![native(4, false)]),
    ] {
        let _ = writeln!(text, "{name}:");
        let taped = block.taped_with(&lines);
        for cs in 0..lines.len() {
            assert!(taped.board.attach(cs as u8, Rc::new(RefCell::new(Echo::default()))));
        }
        let started = catch_unwind(AssertUnwindSafe(|| (block.usual().start)(&taped.board, None)));
        let driver = match started {
            Ok(driver) => driver,
            Err(panic) => {
                let said = panic.downcast_ref::<String>().map(String::as_str);
                let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
                let _ = writeln!(text, "  panics: {}", said.unwrap_or_default());
                continue;
            }
        };
        for cs in 0..lines.len() as u8 {
            for (mode_name, mode) in
                [("as it is", Mode::default()), ("CS_HIGH", Mode::CS_HIGH), ("NO_CS", Mode::NO_CS)]
            {
                let told = told_device(&*driver, &Settings::new(cs, 1_000_000).with_mode(mode));
                let _ = writeln!(text, "  chip select {cs}, {mode_name}: {told}");
            }
        }
    }
}

fn settings_are_made_or_refused_as_reviewed(block: &'static Block) {
    let mut text = format!("What {} on {} makes of settings\n", block.name, block.board);
    let way = block.usual();
    for cs in [0, 1, 2, 9] {
        let board = block.board(way, 0);
        // PL022's own line is in the table only if a chip is on it.
        assert!(board.attach(cs.min(1), Rc::new(RefCell::new(Echo::default()))));
        let mut driver = (way.start)(&board, Some(LIMIT_NS));
        let line = if cs == 0 { "a GPIO" } else { "the block's own line" };
        if cs > 1 {
            let told = told_device(&*driver, &Settings::new(cs, 1_000_000));
            let _ = writeln!(text, "chip select {cs}: {told}");
            continue;
        }
        let _ = writeln!(text, "\nchip select {cs}, {line}: a device of 20 MHz with");
        for (name, settings) in devices(cs) {
            let _ = writeln!(text, "  {name:<30}{}", told_device(&*driver, &settings));
        }
        for (name, settings) in [
            ("20 MHz", Settings::new(cs, 20_000_000).with_mode(MODE_0)),
            ("20 MHz, mode 3", Settings::new(cs, 20_000_000).with_mode(MODE_3)),
            (
                "600 ns between words",
                Settings { word_delay_ns: 600, ..Settings::new(cs, 20_000_000) },
            ),
        ] {
            let _ = writeln!(
                text,
                "\na transfer to a device of {name}, {LIMIT_NS} ns being the limit,"
            );
            for change in CHANGES {
                let told = told_transfer(&mut *driver, &settings, change);
                let _ = writeln!(text, "  {:<36}{told}", change.0);
            }
        }
        let _ = writeln!(text);
    }
    tell_lines(block, &mut text);
    let mut driver = (way.start)(&block.board(way, 0), Some(ALWAYS_POLL));
    let limits = driver.limits();
    let (min_hz, max_hz) = (limits.min_speed_hz, limits.max_speed_hz);
    let _ =
        writeln!(text, "limits: {min_hz} to {max_hz} Hz, words {:#x}", limits.bits_per_word_mask);
    let always = waits(&mut *driver, &Settings::new(0, 1_000_000), CHANGES[0], 4 * WORDS_MAX);
    assert_eq!(always, Ok(false), "nothing waits where all is polled");
    snapshot::check(&format!("settings/{}.txt", block.name), &text);
}
on_every_block! { settings_are_made_or_refused_as_reviewed }
