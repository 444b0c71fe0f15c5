//! `ssd1306` on a display with D/C# and RES#.

use barewire::bus::OwnedDevice;
use barewire::spi::{Settings, Transfer};
use barewire_sim::bring_up::{ChipBench, SimBus, SimOutput, bench};
use barewire_sim::chip::Chip;
use barewire_sim::model::ssd1306::{COLUMNS, PAGES, Ssd1306 as Model};
use barewire_sim::{BoardSpec, Pad};
use display_interface_spi::SPIInterface;
use embedded_hal::digital::OutputPin;
use ssd1306::mode::DisplayConfig;
use ssd1306::prelude::{DisplayRotation, DisplaySize128x64};
use ssd1306::{Ssd1306, mode::BufferedGraphicsMode};
use std::rc::Rc;

use super::BOARDS;

type Display = Ssd1306<
    SPIInterface<OwnedDevice<Rc<SimBus>>, SimOutput>,
    DisplaySize128x64,
    BufferedGraphicsMode<DisplaySize128x64>,
>;

const DC: Pad = Pad { block: 0, bit: 2 };
const RES: Pad = Pad { block: 0, bit: 3 };

fn settings() -> Settings {
    Settings { cs_setup_ns: 20, cs_hold_ns: 10, ..Settings::new(0, 10_000_000) }
}

fn display(bench: &ChipBench<Model>, dc: Pad) -> Display {
    let interface = SPIInterface::new(bench.device(), bench.output(dc, false));
    Ssd1306::new(interface, DisplaySize128x64, DisplayRotation::Rotate0)
        .into_buffered_graphics_mode()
}

/// The dots of a ring and a diagonal.
fn lit(x: usize, y: usize) -> bool {
    let (dx, dy) = (x.abs_diff(64), y.abs_diff(32));
    (600..900).contains(&(dx * dx + dy * dy)) || x == 2 * y
}

fn draw(display: &mut Display) {
    for y in 0..8 * PAGES {
        for x in 0..COLUMNS {
            display.set_pixel(x as u32, y as u32, lit(x, y));
        }
    }
}

/// Section 8.7: bit n of a byte of page p is row 8 p + n.
fn picture() -> [[u8; COLUMNS]; PAGES] {
    std::array::from_fn(|page| {
        std::array::from_fn(|x| {
            (0..8).fold(0, |byte, bit| byte | u8::from(lit(x, 8 * page + bit)) << bit)
        })
    })
}

#[test]
fn it_draws_what_it_is_told_on_every_board() {
    for board in BOARDS {
        let bench = bench(board, &settings(), Model::new(), &[("D/C#", DC), ("RES#", RES)])
            .expect("sets up");
        let mut res = bench.output(RES, true);
        let mut display = display(&bench, DC);
        display.reset(&mut res, &mut bench.delay()).expect("resets");
        display.init().expect("initialises");
        draw(&mut display);
        display.flush().expect("sends");
        assert!(bench.chip.borrow().is_on());
        assert!(*bench.chip.borrow().memory() == picture(), "{board}: the first picture");

        // A second picture, of which the driver sends what has changed.
        display.clear_buffer();
        display.set_pixel(127, 63, true);
        display.flush().expect("sends");
        let mut one = [[0; COLUMNS]; PAGES];
        one[PAGES - 1][COLUMNS - 1] = 0x80;
        assert!(*bench.chip.borrow().memory() == one, "{board}: the second picture");
        bench.assert_clean();

        // The recording has an edge of D/C# for each turn from commands to data.
        let vcd = String::from_utf8(bench.finish().capture.vcd).expect("text");
        assert!(vcd.contains(" cs0_d/c# $end"), "{board}");
    }
}

#[test]
fn a_display_without_its_reset_or_with_its_lines_confused_is_reported() {
    let lines = [("D/C#", DC), ("RES#", RES)];
    let details = |act: &dyn Fn(&ChipBench<Model>)| -> Vec<String> {
        let bench = bench("imx8mp", &settings(), Model::new(), &lines).expect("sets up");
        act(&bench);
        assert!(*bench.chip.borrow().memory() != picture());
        bench.finish().violations.into_iter().map(|violation| violation.detail).collect()
    };
    let unreset = details(&|bench| {
        let mut display = display(bench, DC);
        display.init().expect("initialises");
    });
    assert!(unreset[0].contains("0xae before RES#"), "{unreset:?}");

    let short = details(&|bench| {
        let mut res = bench.output(RES, false);
        res.set_high().expect("an edge");
        display(bench, DC).init().expect("initialises");
    });
    assert!(short[0].contains("0xae before RES#"), "{short:?}");

    // The driver's D/C# is another pad than the chip's, which stays high: all is data.
    let confused = details(&|bench| {
        let mut res = bench.output(RES, true);
        let mut display = display(bench, Pad { block: 0, bit: 1 });
        display.reset(&mut res, &mut bench.delay()).expect("resets");
        display.init().expect("initialises");
        draw(&mut display);
        display.flush().expect("sends");
        assert!(!bench.chip.borrow().is_on());
    });
    assert!(confused.is_empty(), "data is never wrong: {confused:?}");
}

#[test]
fn the_model_reports_each_broken_rule() {
    let mut chip = Model::new();
    let mut at = 0;
    let mut send = |chip: &mut Model, dc: bool, bytes: &[u8]| -> Vec<String> {
        chip.set_pin("D/C#", dc, at);
        barewire_sim::chip::bytewise::selection(chip, &mut at, bytes, 100_000, 50_000);
        std::iter::from_fn(|| chip.take_complaint()).collect()
    };
    assert_eq!(send(&mut chip, false, &[0xe3]), ["0xe3 before RES# was low for 3 µs and high"]);
    chip.set_pin("RES#", false, 0);
    chip.set_pin("RES#", true, 3_000_000);
    assert!(send(&mut chip, false, &[0x20, 0x00, 0x21, 5, 6, 0x22, 1, 2]).is_empty());
    assert!(
        send(&mut chip, true, &[1, 2, 3, 4, 5]).is_empty(),
        "the fifth byte lands where the first did"
    );
    assert_eq!([chip.memory()[1][5], chip.memory()[1][6], chip.memory()[2][5]], [5, 2, 3]);
    assert_eq!(send(&mut chip, false, &[0x02]), [""; 0]);
    assert!(
        send(&mut chip, false, &[0xad, 0x30]).is_empty(),
        "drivers for the SSD1315 too send it"
    );
    assert_eq!(send(&mut chip, false, &[0x23]), ["no such command: 0x23"]);
    assert_eq!(send(&mut chip, false, &[0x21, 9, 4]), ["columns from 9 to 4"]);
    assert_eq!(send(&mut chip, false, &[0x20, 3]), ["addressing mode 3 is invalid"]);
    assert!(send(&mut chip, false, &[0x81]).is_empty());
    assert_eq!(send(&mut chip, true, &[0]), ["data instead of a parameter of 0x81"]);
}

#[test]
fn a_word_that_is_cut_off_is_reported() {
    let lines = [("D/C#", DC), ("RES#", RES)];
    let bench = bench("rpi3", &settings(), Model::new(), &lines).expect("sets up");
    assert_eq!(BoardSpec::find("rpi3").expect("known").name, bench.board.spec().name);
    let mut res = bench.output(RES, false);
    embedded_hal::delay::DelayNs::delay_us(&mut bench.delay(), 3);
    res.set_high().expect("an edge");
    bench.device().device().sync(&mut [Transfer::write(&[0xe3])]).expect("sends");
    bench.assert_clean();
    let mut chip = bench.chip.borrow_mut();
    chip.select(0);
    chip.exchange(barewire_sim::chip::Clocking { at: 0, period: 100_000 }, 0, 3);
    chip.set_pin("D/C#", true, 300_000);
    chip.deselect(400_000);
    let told: Vec<String> = std::iter::from_fn(|| chip.take_complaint()).collect();
    assert_eq!(told, ["D/C# changed within a byte", "CS# rose after 3 bits of a byte"]);
}
