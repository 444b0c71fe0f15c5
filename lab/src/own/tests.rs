//! Files that are right, and wrong ones with the place of what is wrong.

use barewire_sim::BoardSpec;

use super::*;
use crate::kernel::Waiting;

fn read(text: &str) -> Result<OwnExperiment, String> {
    OwnExperiment::read("mine", text, &|name| {
        BoardSpec::find(name).map_err(|error| error.to_string())
    })
}

const PI: &str = "board = \"rpi3\"\nkernel = \"4.4\"\nspeed_hz = 3_000_000\n\n[[message]]\nname = \"a\"\nlengths = [3]\n";

#[test]
fn what_is_left_out_is_as_the_page_says() {
    let own = read(PI).expect("is right");
    assert_eq!(
        (own.client, own.cs, own.processors, own.driver),
        (Client::Spidev, 0, 4, Driver::Bcm2835)
    );
    let [message] = &own.messages[..] else { panic!("one message") };
    assert_eq!((message.batch, message.cs_change, message.cs_change_delay_ns), (1, false, 10_000));
    assert_eq!((message.delay_ns, message.every_ps, message.speed_hz), (0, 0, 3_000_000));
    assert_eq!(own.path(message).waiting, Waiting::Polling);
    assert!(!own.is_cold(message));
}

#[test]
fn the_driver_waits_as_its_version_does() {
    let waiting = |board: &str, kernel: &str, length: usize, more: &str| {
        let text = format!(
            "board = {board:?}\nkernel = {kernel:?}\nspeed_hz = 10_000_000\n{more}\n[[message]]\nname = \"a\"\nlengths = [{length}]\n"
        );
        let own = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        own.path(&own.messages[0]).waiting
    };
    let dma = "[dma]\nsetup_us = 20\nbytes_per_us = 10\n";
    for (board, kernel, length, more, is) in [
        ("rpi3", "4.4", 33, "", Waiting::Polling),
        ("rpi3", "4.4", 34, "", Waiting::Interrupts),
        ("rpi3", "4.0", 1, "", Waiting::Interrupts),
        ("rpi3", "6.1", 96, "", Waiting::Interrupts),
        ("rpi3", "6.1", 96, dma, Waiting::Dma),
        ("rpi3", "6.1", 95, dma, Waiting::Interrupts),
        ("imx8mp", "5.18", 4, "", Waiting::Interrupts),
        ("imx8mp", "5.19", 24, "", Waiting::Polling),
        ("imx8mp", "6.12", 25, "", Waiting::Interrupts),
        ("beaglebone", "4.4", 159, dma, Waiting::Polling),
        ("beaglebone", "4.4", 160, dma, Waiting::Dma),
        ("beaglebone", "4.4", 160, "", Waiting::Polling),
    ] {
        assert_eq!(waiting(board, kernel, length, more), is, "{board} {kernel} {length} {more}");
    }
}

#[test]
fn bytes_are_words_before_4_13_and_refills_are_counted() {
    let own = |kernel: &str, more: &str| {
        read(&format!("board = \"imx6dl\"\nkernel = {kernel:?}\nspeed_hz = 20_000_000\n{more}\n[[message]]\nname = \"a\"\nlengths = [256]\n"))
            .expect("is right")
    };
    let (old, new) = (own("4.1", ""), own("4.14", ""));
    assert_eq!((old.fifo(), old.refills(256)), (imx::Fifo::BYTES, 3));
    assert_eq!((new.fifo(), new.refills(256)), (imx::Fifo::WORDS, 0));
    let fifo = own("4.1", "[fifo]\nrefill_bytes = 16\ngap_us = 7");
    assert_eq!((fifo.fifo().words, fifo.fifo().refill_ps, fifo.refills(256)), (16, 7_000_000, 15));
}

#[test]
fn what_is_wrong_is_refused_at_its_line() {
    let with = |from: &str, to: &str| PI.replacen(from, to, 1);
    for (text, told) in [
        (
            with("rpi3", "rpi33"),
            "line 1, column 9: no simulated board is called \"rpi33\"; did you mean \"rpi3\"?",
        ),
        (
            with("rpi3", "zynq"),
            "line 1, column 9: zynq has the controller Cadence SPI, whose kernel driver is not in the lab",
        ),
        (
            with("4.4", "7.0"),
            "line 2, column 10: the kernel is \"7.0\": the lab knows Linux 3.14 to 6.12",
        ),
        (with("4.4", "2.6"), "line 2, column 10: "),
        (with("4.4", "new"), "line 2, column 10: "),
        (with("3_000_000", "0"), "line 3, column 12: it is 0: the lab takes 10000 to 200000000 Hz"),
        (with("[3]", "[0]"), "line 7, column 11: a transfer has at least 1 byte"),
        (with("[3]", "[]"), "line 7, column 11: a transfer has at least 1 byte"),
        (
            with("[3]", "[5000]"),
            "line 7, column 11: it has 5000 bytes: at most 4096 in one message, as spidev's bufsiz",
        ),
        (
            with("[3]", "[1]\nbatch = 512"),
            "line 8, column 9: it is 512: the lab takes 1 to 511 in a batch",
        ),
        (
            with("[3]", "[1]\ncs_change = true"),
            "line 8, column 13: cs_change stands between two of a batch",
        ),
        (
            with("[3]", "[3]\ndelay_us = -1.0"),
            "line 8, column 12: it is -1: the lab takes 0 to 1000000 us",
        ),
        (
            with("[3]", "[3]\npublished.rat = 5.0"),
            "line 8, column 11: there is no figure \"rat\": did you mean \"rate\"?",
        ),
        (
            with("[3]", "[3]\npublished.rate = 0.0"),
            "line 8, column 18: a published figure is a number above 0",
        ),
        (with("name = \"a\"", "name = \"a b\""), "line 6, column 8: a message's name has"),
        (
            format!("{PI}[[message]]\nname = \"a\"\nlengths = [1]\n"),
            "line 9, column 8: \"a\" is there already: give it another name",
        ),
        (with("kernel", "kernle"), "line 2, column 1: unknown field `kernle`"),
        (PI[..PI.find("[[").expect("a message")].into(), "it has no message: add [[message]]"),
        (
            with("\n\n", "\nclient = \"spdev\"\n"),
            "line 4, column 10: there is no client \"spdev\": did you mean \"spidev\"?",
        ),
        (
            with("\n\n", "\nclient = \"in-kernel-optimized\"\n"),
            "line 4, column 10: spi_optimize_message is in Linux since 6.9",
        ),
        (
            with("\n\n", "\nwaiting = \"dma\"\n"),
            "line 4, column 11: nothing is known of this board's DMA engine",
        ),
        (
            with("\n\n", "\nwaiting = \"sleeping\"\n"),
            "line 4, column 11: there is no way of waiting \"sleeping\"",
        ),
        (
            with("\n\n", "\ncs = 1\n"),
            "line 4, column 6: chip select 1 of rpi3 is none that spi-bcm2835 can use in the lab: it has 0",
        ),
        (
            with("\n\n", "\n[fifo]\nrefill_bytes = 16\n"),
            "line 4, column 1: spi-bcm2835 has no refills",
        ),
        (
            with("\n\n", "\n[processor]\nhz = 5\n"),
            "line 5, column 6: it is 5: the lab takes 1000000 to 10000000000 Hz",
        ),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.contains(told), "{text}\n{error}\nnot {told}");
    }
}
