//! The cost of waiting for an exchange on each board, by polling and by interrupt: reviewed tables.
//!
//! Set `BAREWIRE_BLESS=1` to write them anew, then review the difference.

use std::fmt::Write as _;

use barewire_sim::BoardSpec;
use barewire_sim::board::boards;
use barewire_sim::scenario::waiting::{Cost, Waits, break_even, run};
use barewire_sim::wire::Driver;

use crate::snapshot;

const HEADER: &str = "\
Waiting for one exchange, simulated, a GPIO chip select of a shared bank, the device's second
message, the driver alone. polled: in the call. asleep: the caller's thread sleeps in the kernel
until UIO's interrupt. handler: a hard interrupt goes on with it and wakes the caller.
call: virtual microseconds until the caller goes on. cpu: those that no other thread of the same
processor had. wire: the share of the call in which SCK ran, in percent. irqs: interrupts. The time
that the kernel's own handler takes from others (asleep) is not in the model.
break-even: the shortest exchange that takes less processor time than polled.
";

const LENGTHS: [usize; 10] = [1, 4, 16, 64, 256, 512, 1_024, 4_096, 16_384, 65_536];
/// 64 KiB take minutes at 1 MHz in an unoptimised build.
const SLOW_BYTES_MAX: usize = 4_096;

/// The board's first chip select that is a GPIO.
fn gpio_line(board: &BoardSpec) -> u8 {
    let gpio = |cs: &_| matches!(cs, Driver::Gpio { .. });
    let index = board.cs.iter().position(|cs| gpio(&cs.driver)).expect("a GPIO line");
    index as u8
}

fn column(cost: Cost, interrupts: bool) -> String {
    let us = |ns: u64| format!("{}.{}", ns / 1_000, ns / 100 % 10);
    let Cost { call_ns, cpu_ns, wire_use_milli, .. } = cost;
    let wire = format!("{}.{}", wire_use_milli / 10, wire_use_milli % 10);
    let irqs = if interrupts { format!("{:>6}", cost.interrupts) } else { String::new() };
    format!("{irqs}{:>10}{:>9}{wire:>6}", us(call_ns), us(cpu_ns))
}

fn even(board: &'static BoardSpec, speed_hz: u32, max_bytes: usize) -> String {
    let text = |waits| match break_even(board, gpio_line(board), speed_hz, waits, max_bytes) {
        Some(1) => "1 byte".into(),
        Some(bytes) => format!("{bytes} bytes"),
        None => format!("none up to {max_bytes} bytes"),
    };
    format!("asleep {}, handler {}", text(Waits::Asleep), text(Waits::Handler))
}

fn table(board: &'static BoardSpec) -> String {
    let mut text = format!(
        "\n{} at up to 20 MHz\n         polled                   asleep                         handler\n",
        board.name
    );
    text += " bytes      call      cpu  wire  irqs      call      cpu  wire  irqs      call      cpu  wire\n";
    for bytes in LENGTHS {
        let cost = |waits| run(board, gpio_line(board), 20_000_000, bytes, waits);
        let polled = cost(Waits::Polled);
        let _ = write!(text, "{bytes:>6}{}", column(polled, false));
        for waits in [Waits::Asleep, Waits::Handler] {
            let _ = write!(text, "{}", column(cost(waits), true));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "break-even at 20 MHz: {}", even(board, 20_000_000, 65_536));
    let _ = writeln!(text, "break-even at 1 MHz: {}", even(board, 1_000_000, SLOW_BYTES_MAX));
    text
}

#[test]
fn waiting_costs_what_was_reviewed() {
    let mut text = String::from(HEADER);
    boards().for_each(|board| text += &table(board));
    snapshot::check("waiting.txt", &text);
}

/// Three interrupts a burst of 512 bytes, and one that TC may take.
#[test]
fn ecspi_interrupts_as_seldom_as_its_fifo_allows() {
    let board = BoardSpec::find("imx8mp").expect("a board");
    for bytes in [1, 64, 512, 513, 4_096] {
        for waits in [Waits::Asleep, Waits::Handler] {
            let Cost { interrupts, .. } = run(board, 0, 20_000_000, bytes, waits);
            assert!(interrupts <= 4 * bytes.div_ceil(512) as u64, "{bytes} bytes");
        }
    }
}
