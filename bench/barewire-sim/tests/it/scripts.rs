//! The judge of register accesses: every access of a driver, in order, while it does what is listed here, as a
//! reviewed script for each block.
//!
//! `REG=value` is a write, `REG:value` a read. Of consecutive words of data, the first, the last and their number are
//! shown; of a register that is polled, each new value. Accesses in brackets repeat, but for the data. `(select)` and
//! `(deselect)` stand where the chip's line moved and bits were clocked between, `(wait)` where nothing else happened
//! for longer than an access takes, `(unmask)` and `(sleep)` for calls of the caller's interrupt. A line with `=` says
//! how a message ended, and what it received.
//!
//! Set `BAREWIRE_BLESS=1` to write the scripts anew, then review the difference.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;

use barewire::bus::{Bus, Device};
use barewire::controller::{Controller, Preset};
use barewire::middleware::Pointer;
use barewire::spi::{MODE_1, MODE_2, MODE_3, Mode, Settings, Transfer};
use barewire_sim::bring_up::any_interrupt;
use barewire_sim::model::echo::Echo;
use barewire_sim::wire::Driver;

use crate::blocks::{Block, TapedBoard, Way, on_every_block};
use crate::driver::{Waits, on_bus};
use crate::snapshot;

const BYTES: [u8; 320] = {
    let mut bytes = [0; 320];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = (index + 1) as u8;
        index += 1;
    }
    bytes
};

/// One transfer of a script.
#[derive(Clone, Copy)]
enum Part {
    Write(usize),
    Read(usize),
    Exchange(usize),
    InPlace(usize),
}
use Part::{Exchange, InPlace, Read, Write};

/// Sends a message and notes its end. `set` changes its transfers.
fn send_with(
    taped: &TapedBoard,
    device: &Device<'_, dyn Controller + '_>,
    parts: &[Part],
    set: impl Fn(&mut [Transfer<'_>]),
) {
    send_as(taped, device, parts, set, false);
}

/// The same; a message that is `prepared` is planned and run by different calls.
fn send_as(
    taped: &TapedBoard,
    device: &Device<'_, dyn Controller + '_>,
    parts: &[Part],
    set: impl Fn(&mut [Transfer<'_>]),
    prepared: bool,
) {
    let mut buffers: Vec<Vec<u8>> = parts
        .iter()
        .map(|&part| match part {
            Write(_) => Vec::new(),
            Read(len) | Exchange(len) => vec![0xee; len],
            InPlace(len) => BYTES[..len].to_vec(),
        })
        .collect();
    let mut message: Vec<Transfer<'_>> = parts
        .iter()
        .zip(&mut buffers)
        .map(|(&part, buffer)| match part {
            Write(len) => Transfer::write(&BYTES[..len]),
            Read(_) => Transfer::read(buffer),
            Exchange(len) => Transfer::exchange(&BYTES[..len], buffer),
            InPlace(_) => Transfer::in_place(buffer),
        })
        .collect();
    set(&mut message);
    let ran = if prepared {
        device.prepare_message(&mut message).and_then(|mut message| message.run())
    } else {
        device.sync(&mut message)
    };
    let received: Vec<String> =
        buffers.concat().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    match ran {
        Ok(len) if received.is_empty() => taped.note(format!("= {len} bytes")),
        Ok(len) => taped.note(format!("= {len} bytes, received {}", received.join(" "))),
        Err(error) => {
            taped.note(format!("= {:?} in transfer {}", error.error, error.transfer_index))
        }
    }
}

/// A script being written.
struct Script {
    block: &'static Block,
    way: &'static Way,
    text: String,
}

impl Script {
    /// A board with an echo behind each of its lines. PL022's own line excludes all others, so it has a chip
    /// only if `native` is set.
    fn board(&self, native: bool) -> TapedBoard {
        let taped = self.block.taped(self.way);
        let lines = match (native, self.block.has_both_lines()) {
            (false, false) => 0..1,
            (true, false) => 1..2,
            (_, true) => 0..2,
        };
        for cs in lines {
            assert!(taped.board.attach(cs, Rc::new(RefCell::new(Echo::default()))));
        }
        taped
    }

    /// Adds the tape's entries, under `title`, and the broken rules.
    fn add(&mut self, title: &str, taped: &TapedBoard) {
        let _ = writeln!(self.text, "{title}");
        self.text += &taped.text(self.block);
        let mut broken: Vec<String> =
            taped.board.violations().iter().map(|found| format!("{:?}", found.rule)).collect();
        broken.sort();
        broken.dedup();
        if !broken.is_empty() {
            let _ = writeln!(self.text, "    broke {}", broken.join(", "));
        }
    }

    /// Writes what a caller with a device of `settings` does, after bring-up.
    fn on_device(
        &mut self,
        title: &str,
        waits: Waits,
        settings: Settings,
        act: impl FnOnce(&TapedBoard, &Device<'_, dyn Controller + '_>),
    ) {
        let taped = self.board(settings.chip_select == 1);
        on_bus(self.way.start, &taped.board, waits, |bus| {
            let _ = taped.text(self.block);
            match bus.device(&settings) {
                Ok(device) => act(&taped, &device),
                Err(error) => taped.note(format!("= {error:?}")),
            }
        });
        self.add(title, &taped);
    }

    /// Writes a message of `parts`, twice: the second is prepared, and the block configured.
    fn twice(&mut self, title: &str, waits: Waits, settings: Settings, parts: &[Part]) {
        self.on_device(title, waits, settings, |taped, device| {
            send_with(taped, device, parts, |_| ());
            send_as(taped, device, parts, |_| (), true);
        });
    }

    /// Writes a message with changed transfers, and one without.
    fn with(
        &mut self,
        title: &str,
        settings: Settings,
        parts: &[Part],
        set: impl Fn(&mut [Transfer<'_>]),
    ) {
        self.on_device(title, Waits::Polling, settings, |taped, device| {
            send_with(taped, device, parts, set);
            send_with(taped, device, &[Write(1)], |_| ());
        });
    }

    /// Drives the controller itself, by the calls of a caller and of a handler.
    fn by_hand(
        &mut self,
        title: &str,
        act: impl FnOnce(&TapedBoard, &mut dyn Controller, &Preset, &mut [Transfer<'_>]),
    ) {
        let taped = self.board(false);
        let mut driver = (self.way.start)(&taped.board, Some(0));
        let (preset, _) = driver.configure(&Settings::new(0, 20_000_000)).expect("opens");
        let mut rx = vec![0; self.block.longer];
        let mut message = [Transfer::read(&mut rx)];
        driver.plan(&preset, &mut message).expect("a good message");
        let _ = taped.text(self.block);
        act(&taped, &mut *driver, &preset, &mut message);
        self.add(title, &taped);
    }
}

fn write_scripts(script: &mut Script) {
    let longer = script.block.longer;
    let fast = Settings::new(0, 20_000_000);
    let native = Settings::new(1, 20_000_000);
    let polling = Waits::Polling;

    let taped = script.board(false);
    let driver = (script.way.start)(&taped.board, None);
    script.add("bring-up", &taped);
    drop(driver);

    for len in [1, 2, 3, 4, 5, 9, 16] {
        script.twice(&format!("{len} bytes"), polling, fast, &[InPlace(len)]);
    }
    script.twice("longer than the FIFO", polling, fast, &[Exchange(longer)]);
    script.twice("an odd command and its answer", polling, fast, &[Write(1), Read(3)]);
    script.twice("an even command and its answer", polling, fast, &[Write(4), Read(16)]);
    script.twice(
        "an empty transfer before and after",
        polling,
        fast,
        &[Write(0), Write(2), Read(0)],
    );
    script.twice("nothing but an empty transfer", polling, fast, &[Write(0)]);
    script.twice("a slow clock", polling, Settings::new(0, 1_000_000), &[InPlace(3)]);
    for (name, mode) in [("1", MODE_1), ("2", MODE_2), ("3", MODE_3)] {
        script.twice(
            &format!("mode {name}"),
            polling,
            fast.with_mode(mode),
            &[InPlace(4), Write(3)],
        );
    }
    for bits in [16, 32] {
        let settings = fast.with_bits_per_word(bits);
        script.twice(&format!("words of {bits} bits"), polling, settings, &[InPlace(8), Write(4)]);
    }
    for (name, mode) in [
        ("least significant bit first", Mode::LSB_FIRST),
        ("without a chip select", Mode::NO_CS),
        ("loopback", Mode::LOOP),
    ] {
        script.twice(name, polling, fast.with_mode(mode), &[InPlace(2), Write(1)]);
    }

    script.twice("own line: a byte", polling, native, &[InPlace(1)]);
    script.twice("own line: 4 bytes", polling, native, &[InPlace(4)]);
    script.twice("own line, mode 3: 9 bytes", polling, native.with_mode(MODE_3), &[Exchange(9)]);
    script.twice("own line: a command and its answer", polling, native, &[Write(1), Read(3)]);
    script.twice("own line: an empty transfer", polling, native, &[Write(0)]);
    script.with("own line: pulsed", native, &[Write(1), Write(1)], |message| {
        message[0].cs_change = true
    });
    script.twice(
        "own line: waits",
        polling,
        Settings { cs_setup_ns: 500, cs_inactive_ns: 900, ..native },
        &[InPlace(2)],
    );

    script.with(
        "a speed of its own between others",
        fast,
        &[Write(1), Write(2), Write(1)],
        |message| {
            message[1].speed_hz = 1_000_000;
        },
    );
    script.with("a speed of its own with the same divider", fast, &[Write(4)], |message| {
        message[0].speed_hz = 20_000_001;
    });
    script.with("words of its own", fast, &[Write(1), Write(4)], |message| {
        message[1].bits_per_word = 16
    });
    script.with("a pulse, and a delay in it", fast, &[Write(1), Write(2), Write(1)], |message| {
        message[0].cs_change = true;
        message[1].cs_change = true;
        message[1].cs_change_delay_ns = 3_000;
    });
    script.with("a delay after a transfer", fast, &[Write(1), Write(2)], |message| {
        message[0].delay_ns = 3_000
    });
    script.with("a delay between words", fast, &[Write(3), Write(2)], |message| {
        message[0].word_delay_ns = 700;
    });
    script.twice(
        "waits around the chip select",
        polling,
        Settings { cs_setup_ns: 700, cs_hold_ns: 800, cs_inactive_ns: 900, ..fast },
        &[InPlace(4)],
    );
    for word_delay_ns in [700, 70_000] {
        let settings = Settings { word_delay_ns, ..fast };
        let title = format!("{word_delay_ns} ns between the device's words");
        script.twice(&title, polling, settings, &[InPlace(4), Write(1)]);
    }

    // Lines that no board has, as far as the driver takes them.
    let own = |channel| (Driver::Native(channel), false);
    for (title, lines, mode) in [
        ("an active-high pin", vec![(script.block.pin(), true)], Mode::CS_HIGH | MODE_3),
        (
            "an active-high line of the block",
            vec![(Driver::Native(0), true)],
            Mode::CS_HIGH | MODE_3,
        ),
        ("a pin and a line of the block", vec![(script.block.pin(), false), own(0)], MODE_3),
    ] {
        let taped = script.block.taped_with(&lines);
        // PL022's own line excludes all others, and is left out where no chip is on it.
        assert!(taped.board.attach(0, Rc::new(RefCell::new(Echo::default()))));
        let bus = Bus::new(Pointer((script.block.usual().start)(&taped.board, None)));
        let bus: &Bus<dyn Controller + '_> = &bus;
        for cs in (0..lines.len() as u8).cycle().take(2 * lines.len()) {
            match bus.device(&Settings { chip_select: cs, ..fast.with_mode(mode) }) {
                Ok(device) => send_with(&taped, &device, &[InPlace(2)], |_| ()),
                Err(error) => taped.note(format!("= {error:?}")),
            }
        }
        script.add(title, &taped);
    }

    // Several devices on one bus.
    let taped = script.board(false);
    let bus = Bus::new(Pointer((script.way.start)(&taped.board, None)));
    let bus: &Bus<dyn Controller + '_> = &bus;
    let _ = taped.text(script.block);
    for settings in [
        fast,
        fast.with_mode(MODE_3),
        fast.with_mode(MODE_2),
        // Other clock polarities: the driver waits until the clock rests at the new level.
        Settings::new(0, 600_000),
        Settings::new(0, 600_000).with_mode(MODE_1),
        Settings::new(0, 600_000).with_mode(MODE_3),
        native,
        fast,
    ] {
        match bus.device(&settings) {
            Ok(device) => send_with(&taped, &device, &[Write(1)], |_| ()),
            Err(error) => taped.note(format!("= {error:?}")),
        }
    }
    script.add("devices in turn", &taped);

    for (name, waits) in [("asleep", Waits::Asleep(0)), ("by the handler", Waits::ByHandler(0))] {
        for len in [1, 2, 5] {
            script.twice(&format!("{name}: {len} bytes"), waits, fast, &[InPlace(len)]);
        }
        script.twice(&format!("{name}: longer than the FIFO"), waits, fast, &[Exchange(longer)]);
    }
    script.twice(
        "by the handler: words with a delay",
        Waits::ByHandler(0),
        Settings { word_delay_ns: 700, ..fast },
        &[Write(3)],
    );
    script.twice(
        "by the handler: a transfer that is polled, and a longer one",
        Waits::ByHandler(2_500),
        fast,
        &[Write(1), InPlace(longer)],
    );

    // A caller that sleeps, with its calls.
    let taped = script.board(false);
    let bus = Bus::new(any_interrupt(&taped.board, 0, taped.interrupt()));
    let bus: &Bus<dyn Controller + '_> = &bus;
    let device = bus.device(&fast).expect("opens");
    let _ = taped.text(script.block);
    send_with(&taped, &device, &[Read(2)], |_| ());
    send_with(&taped, &device, &[Read(longer)], |_| ());
    script.add("the calls of a caller that sleeps", &taped);

    // A caller that dies asleep.
    let taped = script.board(false);
    let bus = Bus::new(any_interrupt(&taped.board, 0, taped.interrupt()));
    let bus: &Bus<dyn Controller + '_> = &bus;
    let device = bus.device(&fast).expect("opens");
    let _ = taped.text(script.block);
    taped.tape.die_after(0);
    let died =
        catch_unwind(AssertUnwindSafe(|| device.sync(&mut [Transfer::write(&BYTES[..longer])])));
    died.expect_err("dies");
    taped.note(String::from("= died"));
    send_with(&taped, &device, &[InPlace(2)], |_| ());
    script.add("a caller that dies asleep, and the next one", &taped);

    script.by_hand(
        "a message that is abandoned, and the next one",
        |taped, driver, preset, message| {
            assert_eq!(driver.start(preset, message), Poll::Pending);
            driver.arm();
            driver.reclaim();
            taped.note(String::from("= reclaimed"));
            assert_eq!(driver.run(preset, &mut [Transfer::write(&BYTES[..0])]), Ok(0));
            let ran = driver.run(preset, message);
            taped.note(format!("= {ran:?}"));
        },
    );
    script.by_hand("an interrupt of another block", |_, driver, preset, message| {
        assert_eq!(driver.start(preset, message), Poll::Pending);
        driver.arm();
        assert_eq!(driver.resume(preset, message), Poll::Pending);
    });
    script.by_hand(
        "a block that stops, a handler in time and one too late",
        |taped, driver, preset, message| {
            taped.tape.stop_after(0);
            assert_eq!(driver.start(preset, message), Poll::Pending);
            driver.arm();
            assert_eq!(driver.resume(preset, message), Poll::Pending);
            driver.arm();
            taped.board.engine().spend_ps(10_000_000_000);
            let ran = driver.resume(preset, message);
            taped.note(format!("= {ran:?}"));
            assert!(taped.tape.go_on());
            let ran = driver.run(preset, message);
            taped.note(format!("= {ran:?}"));
        },
    );
    script.by_hand(
        "a handler that comes late to a block that was in time",
        |taped, driver, preset, message| {
            assert_eq!(driver.start(preset, message), Poll::Pending);
            driver.arm();
            let mut ran = Poll::Pending;
            while ran.is_pending() {
                taped.board.engine().spend_ps(10_000_000_000);
                ran = driver.resume(preset, message);
            }
            taped.note(format!("= {ran:?}"));
        },
    );
    for (title, len) in
        [("a block that stops: polled", 3), ("a block that stops: polled, longer", longer)]
    {
        script.on_device(title, polling, fast, |taped, device| {
            taped.tape.stop_after(0);
            send_with(taped, device, &[Write(0), Read(len)], |message| message[0].cs_change = true);
            assert!(taped.tape.go_on());
            send_with(taped, device, &[InPlace(3)], |_| ());
        });
    }
}

fn every_access_is_as_reviewed(block: &'static Block) {
    let mut text = String::new();
    for way in block.ways.iter().filter(|way| way.scripted) {
        let mut script = Script {
            block,
            way,
            text: format!("# {} on {}, {}\n", block.name, block.board, way.name),
        };
        write_scripts(&mut script);
        text += &script.text;
    }
    snapshot::check(&format!("scripts/{}.txt", block.name), &text);
}
on_every_block! { every_access_is_as_reviewed }
