//! barewire's own drivers, unchanged, on a board behind the protocol.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use barewire::bus::Bus;
use barewire::controller::ecspi::{Ecspi, EcspiConfig};
use barewire::controller::gpio::{ImxGpio, Ownership};
use barewire::controller::{ALWAYS_POLL, CsLine};
use barewire::reg::Registers as _;
use barewire::spi::{Settings, Transfer};
use barewire_mmio::message::{self, Answer, BYTES, Reason, Request, VERSION};
use barewire_mmio::{Client, End, Machine, Server};
use barewire_sim::{Board, BoardOptions, BoardSpec};

/// A board's server on a thread of its own, and the socket to it.
fn served(
    board: &'static str,
    chips: &'static [&str],
) -> (UnixStream, JoinHandle<(End, u64, u64)>) {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let thread = thread::spawn(move || {
        let spec = BoardSpec::find(board).expect("a board");
        let chips: Vec<_> = chips.iter().map(|chip| chip.parse().expect("a chip")).collect();
        let machine = Machine::new(Board::new(spec, BoardOptions::default()), &chips);
        let mut server = Server::new(machine.expect("it fits"));
        let end = server.serve(&theirs, || false).expect("served");
        (end, server.counts().1, server.machine().board().harms_total())
    });
    (ours, thread)
}

#[test]
fn the_shipped_driver_exchanges_through_the_jumper() {
    let (socket, server) = served("imx8mp", &["jumper@0", "jumper@1"]);
    let client = Client::over(socket).expect("a client");
    let blocks = client.blocks();
    assert_eq!(blocks.len(), 2);
    assert_eq!((blocks[0].base, blocks[0].bytes), (0x3082_0000, 0x4000));
    {
        let config = EcspiConfig {
            reference_hz: 80_000_000,
            chip_selects: [
                CsLine::Gpio { bit: 9, active_high: false },
                CsLine::Native { channel: 1, active_high: false },
                CsLine::Absent,
                CsLine::Absent,
            ],
            poll_limit_ns: ALWAYS_POLL,
        };
        let gpio = ImxGpio::new(client.registers(1), Ownership::Shared);
        let ecspi = Ecspi::new(client.registers(0), gpio, client.timer(), config);
        let bus = Bus::new(ecspi);
        for cs in [0, 1] {
            let device = bus.device(&Settings::new(cs, 10_000_000)).expect("a device");
            for length in [1, 2, 3, 4, 63, 64, 65, 255, 256] {
                let sent: Vec<u8> = (0..length).map(|n| (n * 7 + 3) as u8).collect();
                let mut heard = vec![0; sent.len()];
                device.sync(&mut [Transfer::exchange(&sent, &mut heard)]).expect("exchanged");
                assert_eq!(heard, sent, "{length} bytes at chip select {cs}");
            }
        }
    }
    drop(client);
    assert_eq!(server.join().expect("no panic"), (End::Bye, 0, 0));
}

#[test]
fn an_interrupt_line_is_waited_for_in_the_boards_time() {
    let (socket, server) = served("imx8mp", &["touch@3"]);
    let client = Client::over(socket).expect("a client");
    // The pen lands at 1 s of the board's time.
    let mut due = client.wait_until(0).1;
    let mut lines = 0;
    while lines & 2 == 0 {
        (lines, due) = client.wait_until(due);
    }
    let ms = client.now_ns() / 1_000_000;
    assert!((1_000..1_010).contains(&ms), "{ms}");
    drop(client);
    assert_eq!(server.join().expect("no panic").0, End::Bye);
}

#[test]
fn the_socket_alone_will_do() {
    let (mut socket, server) = served("imx8mp", &[]);
    let mut ask = |words| {
        socket.write_all(&message::bytes(words)).expect("sent");
        let mut answer = [0; BYTES];
        socket.read_exact(&mut answer).expect("answered");
        Answer::parse(message::words(&answer)).expect("an answer")
    };
    let hello = Request::Hello { version: VERSION, page: false };
    assert_eq!(ask(hello.emit()), Answer::Welcome { version: VERSION, blocks: 2, lines: 1 });
    let refused = |reason, value| Answer::Refused { reason, value };
    assert_eq!(ask(hello.emit()), refused(Reason::Order, 0));
    assert_eq!(ask([0xffff; 4]), refused(Reason::NoMessage, 0xffff));
    let read = Request::Read { block: 0, width: 4, offset: 0x18, now_ns: 50_000 };
    let Answer::Done { value: 3, now_ns, .. } = ask(read.emit()) else { panic!("STATREG") };
    assert!((50_001..51_000).contains(&now_ns), "{now_ns}");
    drop(socket);
    let (end, refusals, _) = server.join().expect("no panic");
    assert_eq!((end, refusals), (End::Gone, 2));
}

#[test]
fn another_version_is_refused() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let server = thread::spawn(move || {
        let board = Board::new(BoardSpec::find("rpi3").expect("a board"), BoardOptions::default());
        let mut server = Server::new(Machine::new(board, &[]).expect("no chips"));
        server.serve(&theirs, || false).expect_err("refused").to_string()
    });
    let hello = Request::Hello { version: 99, page: true };
    (&ours).write_all(&message::bytes(hello.emit())).expect("sent");
    let mut answer = [0; BYTES];
    (&ours).read_exact(&mut answer).expect("answered");
    let answer = Answer::parse(message::words(&answer));
    assert_eq!(answer, Ok(Answer::Refused { reason: Reason::Version, value: VERSION.into() }));
    assert!(server.join().expect("no panic").contains("version"));
}

#[test]
fn a_server_that_stops_is_noticed() {
    let (ours, theirs) = UnixStream::pair().expect("sockets");
    let server = thread::spawn(move || {
        let board = Board::new(BoardSpec::find("rpi3").expect("a board"), BoardOptions::default());
        let mut server = Server::new(Machine::new(board, &[]).expect("no chips"));
        let stop = std::cell::Cell::new(0);
        // Not before the client has described the blocks.
        server.serve(&theirs, || stop.replace(stop.get() + 1) > 20).expect("served")
    });
    let client = Client::over(ours).expect("a client");
    assert_eq!(server.join().expect("no panic"), End::Stopped);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        client.registers(0).read(0);
        std::mem::forget(client);
    }));
    assert!(outcome.is_err());
}
