//! Boards from files: right ones, wrong ones with the place of what is wrong, and random ones.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::board::spec::{ChipSpec, CsSpec};
use crate::board::{Board, BoardOptions, Pad, board_names, boards};
use crate::bring_up;
use crate::model::signal::{Signal, SignalSpec};
use crate::wire::Driver;
use barewire::controller::Controller as _;

fn read(text: &str) -> Result<&'static BoardSpec, BoardFileError> {
    BoardSpec::from_toml("mine.toml", text, Path::new("/folder"))
}

const PIN_25: Pad = Pad { block: 0, bit: 25 };

#[test]
fn a_board_like_a_shipped_one_has_its_own_chips_only() {
    let spec = read("like = \"rpi3\"\n[[chip]]\npart = \"mcp3208\"\ncs = 1\n").expect("is right");
    let like = BoardSpec::find("rpi3").expect("a board");
    assert_eq!(
        (spec.name, spec.like, spec.title),
        ("mine.toml", Some("rpi3"), "a board of your own, like rpi3")
    );
    assert_eq!((spec.kind, spec.cs, spec.gpio), (like.kind, like.cs, like.gpio));
    assert_eq!((spec.controller_base, &spec.profile), (like.controller_base, &like.profile));
    assert!(matches!(spec.chips, [ChipSpec::Adc(adc)] if adc.cs == 1 && adc.vref_mv == 3_300));
    assert!(spec.first_flash().is_none());
}

#[test]
fn a_board_has_what_its_file_says() {
    let text = r#"
        title = "a bench of mine"
        costs = "imx8mp"
        [controller]
        kind = "bcm2835"
        name = "SPI9"
        base = 0x1000
        reference_hz = 250_000_000
        [gpio]
        base = 0x2000
        [[cs]]
        gpio = 8
        active_high = true
        [[cs]]
        native = 1
        pad = "GPIO7"
        [[cs]]
        program = 5
        name = "D5"
        [[chip]]
        part = "SSD1306"
        cs = 0
        dc = 25
        reset = 24
        picture = "p.pbm"
        [[chip]]
        part = "W25Q32JV"
        cs = 1
        file = "sub/f.bin"
        [[chip]]
        part = "MCP3004"
        cs = 2
        supply_mv = 5000
        vref_mv = 2500
        inputs = ["constant:1250", "file:v.txt:10"]
        [[wire]]
        from = 20
        to = 21
    "#;
    let spec = read(text).expect("is right");
    assert_eq!(
        (spec.title, spec.controller, spec.controller_base),
        ("a bench of mine", "SPI9", 0x1000)
    );
    assert_eq!((spec.gpio[0].name, spec.gpio[0].base, spec.like), ("GPIO", 0x2000, None));
    assert_eq!(spec.profile.reference_hz.value, 250_000_000);
    let gpio8 = CsSpec { active_high: true, ..CsSpec::gpio("GPIO8", 0, 8) };
    let program = CsSpec { by_program: true, ..CsSpec::gpio("D5", 0, 5) };
    assert_eq!(spec.cs, [gpio8, CsSpec::native_at("SPI9_CS1", 1, 0, 7), program]);
    let [ChipSpec::Display(display), ChipSpec::Flash(flash), ChipSpec::Adc(adc)] = spec.chips
    else {
        panic!("{:?}", spec.chips)
    };
    assert_eq!(
        (display.dc, display.reset.bit, display.picture),
        (PIN_25, 24, Some(Path::new("/folder/p.pbm")))
    );
    assert_eq!(
        ((flash.part)().name, flash.file),
        ("W25Q32JV", Some(Path::new("/folder/sub/f.bin")))
    );
    let file = SignalSpec::File { path: "/folder/v.txt".into(), rate_uhz: 10_000_000 };
    let constant = SignalSpec::Ready(Signal::Constant { level_uv: 1_250_000 });
    assert_eq!((adc.supply_mv, adc.vref_mv, adc.inputs), (5_000, 2_500, &[constant, file][..]));
    assert_eq!(spec.wires, [(Pad { block: 0, bit: 20 }, Pad { block: 0, bit: 21 })]);
}

#[test]
fn the_same_text_is_the_same_board_and_another_is_not() {
    let text = "like = \"zynq\"\n";
    let one = read(text).expect("is right");
    assert!(std::ptr::eq(one, read(text).expect("is right")));
    assert!(!std::ptr::eq(one, read("like = \"zynq\" \n").expect("is right")));
    let elsewhere = BoardSpec::from_toml("mine.toml", text, Path::new("/other")).expect("is right");
    assert!(!std::ptr::eq(one, elsewhere), "paths in it would be other files");
}

/// A file, the line and column that an error names, and a part of what it says.
type WrongFile = (&'static str, usize, usize, &'static str);

/// The first line of files that say one thing more.
const LIKE: &str = "like = \"rpi3\"\n";

#[rustfmt::skip]
const WHOLE: &[WrongFile] = &[
    ("", 1, 1, "costs = \"rpi3\" is missing; or take a shipped board's"),
    ("# nothing\n", 1, 1, "costs = \"rpi3\" is missing"),
    ("like = \"rpi4\"\n", 1, 8, "there is no shipped board \"rpi4\": did you mean \"rpi"),
    ("costs = \"rpi3\"\n", 1, 1, "kind = \"bcm2835\" is missing"),
    ("costs = \"rpi9\"\n", 1, 9, "there is no profile of costs \"rpi9\""),
    ("costs = \"rpi3\"\n[controller]\nkind = \"ecspi\"\n", 2, 1, "base = 0x3f20_4000 is missing"),
    ("costs = \"rpi3\"\n[controller]\nkind = \"ecspi\"\nbase = 0\n", 1, 1, "[gpio] with base"),
    ("costs = \"rpi3\"\n[controller]\nkind = \"ecspi\"\nbase = 0\n[gpio]\nbase = 0\n", 1, 1, "[[cs]] with gpio = 8 is missing"),
    ("like = \"rpi3\"\nlike = \"rpi5\"\n", 2, 1, "duplicate key"),
    ("like = rpi3\n", 1, 8, "string"),
    ("PK\u{3}\u{4}\n", 1, 5, ""),
];

/// What follows [`LIKE`]; lines are counted from it.
#[rustfmt::skip]
const PARTS: &[WrongFile] = &[
    ("colour = \"red\"", 1, 1, "unknown field `colour`"),
    ("title = \"\"", 1, 9, "a name is a line of text"),
    ("title = \"a\\nb\"", 1, 9, "a name is a line of text"),
    ("costs = 5", 1, 9, "expected a string"),
    ("[controller]\nkind = \"bcm2711\"", 2, 8, "did you mean \"bcm2835\"? (known: atmel,"),
    ("[controller]\nbase = 2", 2, 8, "a multiple of 4"),
    ("[controller]\nbase = -4", 2, 8, "expected u64"),
    ("[controller]\nbase = 0x7fff_ffff_ffff_fffc\nreference_hz = 9", 3, 16, "from 1 MHz to 1 GHz"),
    ("[controller]\nspeed = 1", 2, 1, "unknown field `speed`"),
    ("[[cs]]", 1, 1, "a chip select has one of gpio = PIN"),
    ("[[cs]]\ngpio = 8\nnative = 0", 1, 1, "a chip select has one of gpio = PIN"),
    ("[[cs]]\ngpio = 54", 2, 8, "there is no pin 54: GPIO has 0 to 53"),
    ("[[cs]]\ngpio = 40", 2, 8, "pin 40 is out of a program's reach"),
    ("[[cs]]\ngpio = -1", 2, 8, "a pin's number is 0 or above"),
    ("[[cs]]\ngpio = \"GPIO_8\"", 2, 8, "there is no pin \"GPIO_8\": did you mean \"GPIO8\"?"),
    ("[[cs]]\ngpio = 1.5", 2, 8, "expected a pin"),
    ("[[cs]]\ngpio = 8\n[[cs]]\nprogram = 8", 4, 11, "GPIO8 is chip select 0 already"),
    ("[[cs]]\nnative = 2", 2, 10, "BCM2835 SPI0 has the select lines 0 to 1 here"),
    ("[[cs]]\nnative = 1\n[[cs]]\nnative = 1", 4, 10, "line 1 is another chip select already"),
    ("[[cs]]\ngpio=1\n[[cs]]\ngpio=2\n[[cs]]\ngpio=3\n[[cs]]\ngpio=4\n[[cs]]\ngpio=5", 9, 1, "the chip selects 0 to 3; this one is 4"),
    ("[[chip]]\ncs = 0", 1, 1, "missing field `part`"),
    ("[[chip]]\npart = \"W25Q32JV\"", 1, 1, "missing field `cs`"),
    ("[[chip]]\npart = \"W25Q33\"\ncs = 0", 2, 8, "there is no part \"W25Q33\": did you mean \"W25Q32JV\"?"),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 2", 3, 6, "there is no chip select 2: the board has 0 to 1"),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 300", 3, 6, "expected u8"),
    ("[[chip]]\npart = \"jumper\"\ncs = 0\n[[chip]]\npart = \"jumper\"\ncs = 0", 6, 6, "chip select 0 has a chip already"),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 0\nsupply_mv = 5000", 4, 13, "supply_mv does not go with \"W25Q32JV\""),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 0\nfile = \"\"", 4, 8, "name a file"),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 0\nfile = \"x\"\n[[chip]]\npart = \"W25Q32JV\"\ncs = 1\nfile = \"x\"", 8, 8, "it would be written over"),
    ("[[chip]]\npart = \"MCP3002\"\ncs = 0\ninputs = [\"file:x:1\"]\n[[chip]]\npart = \"W25Q32JV\"\ncs = 1\nfile = \"x\"", 8, 8, "it would be written over"),
    ("[[chip]]\npart = \"W25Q32JV\"\ncs = 1\nfile = \"x\"\n[[chip]]\npart = \"MCP3002\"\ncs = 0\ninputs = [\"file:x:1\"]", 8, 11, "the board writes this file"),
    ("[[chip]]\npart = \"MCP3008\"\ncs = 0\nsupply_mv = 12000", 4, 13, "works from 2700 to 5500 mV"),
    ("[[chip]]\npart = \"MCP3008\"\ncs = 0\nvref_mv = 5000", 4, 11, "reference"),
    ("[[chip]]\npart = \"MCP3002\"\ncs = 0\ninputs = [\"constant:1\", \"constant:1\", \"constant:1\"]", 4, 39, "channels 0 to 1"),
    ("[[chip]]\npart = \"MCP3002\"\ncs = 0\ninputs = [\"saw:1\"]", 4, 11, "no such signal"),
    ("[[chip]]\npart = \"MCP2518FD\"\ncs = 0\noscillator_hz = 8", 4, 17, "2 to 40 MHz"),
    ("[[chip]]\npart = \"MCP2518FD\"\ncs = 0\nint = 8", 4, 7, "GPIO8 is chip select 0 already"),
    ("[[chip]]\npart = \"SSD1306\"\ncs = 0\ndc = 24", 2, 8, "needs the pins of D/C# and RES#"),
    ("[[chip]]\npart = \"SSD1306\"\ncs = 0\ndc = 24\nreset = 24", 5, 9, "GPIO24 is at a chip's pin already"),
    ("[[chip]]\npart = \"TSC2046\"\ncs = 0\npen = [0.5, 1.5]", 4, 7, "each from 0.0 to 1.0"),
    ("[[chip]]\npart = \"TSC2046\"\ncs = 0\npen = [0.5]", 4, 7, "length"),
    ("[[chip]]\npart = \"MAX7219\"\ncs = 0\nchips = 0", 4, 9, "1 to 64 chips"),
    ("[[wire]]\nfrom = 20\nto = 20", 3, 6, "GPIO20 is the end of a wire already"),
    ("[[wire]]\nfrom = 20\nto = 8", 3, 6, "GPIO8 is chip select 0 already"),
    ("[[wire]]\nfrom = 20", 1, 1, "missing field `to`"),
];

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_place() {
    let whole =
        WHOLE.iter().map(|&(text, line, column, what)| (text.to_owned(), line, column, what));
    let parts = PARTS
        .iter()
        .map(|&(text, line, column, what)| (format!("{LIKE}{text}"), line + 1, column, what));
    for (text, line, column, what) in whole.chain(parts) {
        let error = read(&text).expect_err(&text);
        assert_eq!((error.line, error.column), (line, column), "{text}\n{error}");
        assert!(error.what.contains(what), "{text}\n{error}");
    }
}

#[test]
fn with_no_cs_a_chip_needs_a_pad() {
    let text = "costs = \"imx6dl\"\n[controller]\nkind = \"ecspi\"\nbase = 0\nno_cs = true\n[gpio]\nbase = 0x1000\n\
                [[cs]]\nnative = 0\n[[chip]]\npart = \"jumper\"\ncs = 0\n";
    let error = read(text).expect_err("its chip could not be selected");
    assert_eq!((error.line, error.column), (12, 6), "{error}");
    assert!(read(&text.replace("native = 0", "native = 0\npad = 3")).is_ok());
}

#[test]
fn a_column_counts_characters() {
    let error = read("title = \"Prüfstand\" x").expect_err("is wrong");
    assert_eq!((error.line, error.column), (1, 21), "{error}");
}

#[test]
fn each_controller_starts_with_all_the_lines_that_a_file_can_give_it() {
    for Kind { name, controller, native_lines, .. } in &KINDS {
        let lines: String =
            (0..*native_lines).map(|line| format!("[[cs]]\nnative = {line}\n")).collect();
        let rest = "[[cs]]\ngpio = 2\n".repeat(usize::from(*native_lines < 4));
        let text = format!(
            "costs = \"rpi3\"\n[controller]\nkind = \"{name}\"\nbase = 0\n[gpio]\nbase = 0x1000\n{lines}{rest}"
        );
        let spec = read(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(spec.kind, *controller);
        assert_eq!(
            read(&text.replace("native = 0", &format!("native = {native_lines}")))
                .map(|_| ())
                .map_err(|error| error.line),
            Err(8)
        );
        let board = Board::new(spec, BoardOptions::default());
        assert!(bring_up::any(&board).limits().max_speed_hz > 0);
    }
    for like in boards() {
        assert!(KINDS.iter().any(|kind| kind.controller == like.kind), "{}", like.name);
    }
}

#[test]
fn a_line_of_the_programs_is_none_of_the_controllers() {
    let spec = read("like = \"rpi3\"\n[[cs]]\ngpio = 8\n[[cs]]\nprogram = 5\n").expect("is right");
    assert_eq!(spec.cs[1].driver, Driver::Gpio { block: 0, bit: 5 });
    let board = Board::new(spec, BoardOptions::default());
    assert!(board.has_line(0) && !board.has_line(1));
}

#[test]
fn files_of_chips_begin_at_the_folder_of_the_board() {
    let own = "like = \"rpi3\"\n[[chip]]\npart = \"W25Q32JV\"\ncs = 0\nfile = \"../a/b.toml\"\n";
    let error = BoardSpec::from_toml("/a/b/../a/b.toml", own, Path::new("/a/b")).map(|_| ());
    assert_eq!(error.map_err(|error| error.line), Err(5), "its own file");
    let text = "like = \"rpi3\"\n[[chip]]\npart = \"W25Q32JV\"\ncs = 0\nfile = \"/tmp/x.bin\"\n";
    let flash = read(text).expect("is right").flash();
    assert_eq!(
        flash.file.map(Path::to_path_buf),
        Some(PathBuf::from("/tmp/x.bin")),
        "a whole path stays"
    );
}

fn changed() -> impl Strategy<Value = String> {
    let text = (0..board_names().len())
        .prop_map(|at| BoardSpec::text_of(board_names()[at]).expect("a board"));
    let word = prop_oneof![
        Just(""),
        Just("\n"),
        Just("0"),
        Just("255"),
        Just("\"\""),
        Just("["),
        Just("true"),
        Just("native = 1\n"),
        Just("program = 3\n"),
        Just("[[cs]]\ngpio = 7\n"),
        Just("part = \"MCP2518FD\"\n"),
        Just("no_cs = true\n"),
        Just("é"),
    ];
    (text, prop::collection::vec((any::<prop::sample::Index>(), word, any::<bool>()), 1..4))
        .prop_map(|(text, changes)| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (at, word, whole) in changes {
                let at = at.index(lines.len());
                match whole {
                    true => lines[at] = word.into(),
                    false => lines[at].push_str(word),
                }
            }
            lines.join("\n")
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any text is a board that its driver starts on, or an error inside the text.
    #[test]
    fn a_changed_file_is_a_board_or_an_error(text in changed()) {
        match parse("mine.toml", &text, Path::new("")) {
            Ok(spec) => {
                let board = Board::new(Box::leak(Box::new(spec)), BoardOptions::default());
                prop_assert!(bring_up::any(&board).limits().max_speed_hz > 0);
            }
            Err(BoardFileError { line, column, what }) => {
                let place = text.lines().nth(line - 1).map_or(0, |line| line.chars().count());
                prop_assert!(column <= place + 1, "{line}:{column} {what}");
                prop_assert!(!what.is_empty());
            }
        }
    }
}
