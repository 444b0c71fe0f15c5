//! Frames echoed from the hard interrupt: none lost, and what it costs, a reviewed table.
//!
//! Set `BAREWIRE_BLESS=1` to write it anew; the difference is then for a reviewer.

use std::fmt::Write as _;
use std::num::NonZeroU64;

use barewire::chip::mcp251xfd::Id;
use barewire_sim::engine::Thread;
use barewire_sim::model::can::{Record, Traffic};

use super::*;

/// What the echoes took.
#[derive(Default)]
struct Echoed {
    frames: u64,
    looks: u64,
    /// SPI accesses and bytes from the interrupt's first to its last.
    all: (u64, u64),
    /// Those of them that transmitted.
    sending: (u64, u64),
    eof_to_sof_ps: Vec<Ps>,
    int_low_ps: Vec<Ps>,
    cs_to_clock_ps: Vec<Ps>,
    /// Between an interrupt's first two accesses.
    cs_high_ps: Vec<Ps>,
}

/// Echoes `count` frames under the identifier before, and holds what was on the bus against what
/// was sent.
fn echo(config: Config, gap_ps: Ps, count: u64) -> Echoed {
    let rig = Rig::alone(|_| {});
    let spi = rig.bus();
    let mut driver = rig.started(&spi, config);
    let Rig { board, can, chip, line, .. } = &rig;
    let start_ps = board.engine().now_ps() + 10 * MS;
    can.add_traffic(Traffic {
        gap_ps,
        count: NonZeroU64::new(count),
        start_ps,
        ..Traffic::default()
    });
    let access = || (chip.borrow().instructions(), board.wire_use().bits / 8);
    let less =
        |(accesses, bytes): (u64, u64), before: (u64, u64)| (accesses - before.0, bytes - before.1);
    let plus = |sum: &mut (u64, u64), more: (u64, u64)| *sum = (sum.0 + more.0, sum.1 + more.1);
    let mut echoed = Echoed::default();
    board.start_selections();
    let handler = Thread::new("handler", || {
        while line.wait(None) {
            let begun = access();
            let served = driver.serve(
                || line.is_high(),
                |can, received, found| {
                    assert_eq!(*found, Found { frame: true, ..Found::default() });
                    let Id::Standard(id) = received.frame.id() else { panic!("{received:?}") };
                    let begun = access();
                    can.transmit(&received.frame.with_id(standard(id.as_raw() - 1)))?;
                    plus(&mut echoed.sending, less(access(), begun));
                    Ok(())
                },
            );
            let served = served.expect("goes through");
            echoed.frames += u64::from(served.frames);
            echoed.looks += u64::from(served.looks);
            plus(&mut echoed.all, less(access(), begun));
        }
    });
    // An asked and an answered frame: 264 bits with all stuff bits there can be.
    let end_ps = start_ps + count * gap_ps.max(264 * BIT) + 5 * MS;
    let idle = Thread::new("idle", || board.engine().sleep_until(end_ps));
    board.engine().run(vec![idle.on(0, 0), handler.interrupt(0)]);
    can.catch_up(board.engine().now_ps());
    rig.assert_clean();

    assert_eq!(chip.borrow().taken_and_dropped(), (count, 0));
    let records = can.records();
    assert!(records.iter().all(Record::is_taken));
    let (asked, answered): (Vec<&Record>, Vec<&Record>) =
        records.iter().partition(|record| record.frame.id == 0x077);
    assert_eq!((asked.len(), answered.len()), (count as usize, count as usize), "none lost");
    echoed.eof_to_sof_ps = asked
        .iter()
        .zip(&answered)
        .map(|(asked, answered)| {
            assert_eq!((answered.frame.id, answered.frame.data()), (0x076, asked.frame.data()));
            answered.sof - asked.eof
        })
        .collect();
    echoed.int_low_ps = chip
        .borrow()
        .take_int_lows()
        .iter()
        .map(|&(from, until)| until.expect("high in the end") - from)
        .collect();
    let selections = board.take_selections();
    let half_a_clock = 1_000_000_000_000 / u64::from(2 * SPI_HZ);
    let lead = |one: &barewire_sim::selection::Selection| {
        one.first_clock_at + half_a_clock - one.selected_at
    };
    echoed.cs_to_clock_ps = selections.iter().map(lead).collect();
    // Frames are milliseconds apart: a service's accesses are those that follow within 100 us.
    let first = |index: usize| {
        index == 0 || selections[index].selected_at - selections[index - 1].deselected_at > MS / 10
    };
    echoed.cs_high_ps = (0..selections.len().saturating_sub(1))
        .filter(|&index| first(index))
        .map(|index| selections[index + 1].selected_at - selections[index].deselected_at)
        .collect();
    echoed
}

/// The middle one and the largest, in microseconds.
fn p50_and_max(mut times: Vec<Ps>) -> (f64, f64) {
    times.sort_unstable();
    let us = |ps: Ps| ps as f64 / 1_000_000.0;
    (us(times[(times.len() - 1) / 2]), us(times[times.len() - 1]))
}

#[test]
fn at_full_load_nothing_is_lost_or_reordered() {
    let frames = std::env::var("CAN_FRAMES").map_or(200, |text| text.parse().expect("a number"));
    let echoed = echo(classic(), 0, frames);
    assert_eq!(echoed.frames, frames);
    // Three to receive, two to send; the count of 8 free places is asked for when it is used up.
    assert_eq!(echoed.all.0, 5 * frames + (frames - 1) / 8);
    assert_eq!(echoed.looks, frames);
}

#[test]
fn with_crc_nothing_is_lost_either() {
    let echoed = echo(Config { crc: true, ..classic() }, 0, 50);
    assert_eq!((echoed.frames, echoed.all.0), (50, 250 + 49 / 8));
}

#[test]
fn an_echo_costs_what_was_reviewed() {
    const FRAMES: u64 = 20;
    let echoed = echo(classic(), 10 * MS, FRAMES);
    assert_eq!((echoed.frames, echoed.looks), (FRAMES, FRAMES));
    let (accesses, bytes) = echoed.all;
    let (sent_accesses, sent_bytes) = echoed.sending;
    let mut text = String::from(
        "\
20 frames of 8 bytes, one every 10 ms at 250 kbit/s, echoed from the hard interrupt by an MCP2518FD
behind SPI at 16 MHz, a GPIO chip select of a shared bank. simulated: imx8mp with the profile's costs,
the driver alone, no kernel. published: a scope's on an i.MX8MP with canecho, from the interrupt
thread of Linux 5.18-rc1 and through its sockets; A as it was, B with polling, C with a fast path.
A hard interrupt without a kernel is what the published figures are not: another row than theirs.

                              simulated simulated published published published
",
    );
    let _ =
        writeln!(text, "{:<28}{:>11}{:>10}{:>10}{:>10}{:>10}", "us", "p50", "max", "A", "B", "C");
    let rows = [
        ("RX EOF to TX SOF", echoed.eof_to_sof_ps, ["380", "310", "152"], 152.0),
        ("INT low", echoed.int_low_ps, ["160", "144", "55"], 55.0),
        ("CS to first clock", echoed.cs_to_clock_ps, ["ca. 10", "9.8", "2.6"], 2.6),
        ("CS high, 1st to 2nd access", echoed.cs_high_ps, ["ca. 25", "ca. 30", "5"], 5.0),
    ];
    for (name, times, [a, b, c], below_us) in rows {
        let (p50, max) = p50_and_max(times);
        let _ = writeln!(text, "{name:<28}{p50:>11.2}{max:>10.2}{a:>10}{b:>10}{c:>10}");
        assert!(p50 > 0.0 && p50 < below_us, "{name}: {p50} us");
    }
    text += "\nper frame, simulated   accesses   bytes\n";
    for (name, accesses, bytes) in [
        ("received", accesses - sent_accesses, bytes - sent_bytes),
        ("sent", sent_accesses, sent_bytes),
    ] {
        let mean = |sum: u64| sum as f64 / FRAMES as f64;
        let _ = writeln!(text, "{name:<21}{:>10.2}{:>8.2}", mean(accesses), mean(bytes));
    }
    text += "published: four accesses for a received frame, two for a sent one\n";
    snapshot::check("mcp251xfd.txt", &text);
}
