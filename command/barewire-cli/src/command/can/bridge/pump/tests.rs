//! The pump between two stand-ins, and between a simulated chip and a stand-in for the socket.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use barewire_sim::model::can::{self as sim, Fault, Feed};

use super::super::super::candump;
use super::super::super::node::Node;
use super::super::super::rig;
use super::super::carry;
use super::*;

/// A socket that takes as much as it has room for.
struct FakeSocket {
    incoming: VecDeque<LogLine>,
    written: Vec<String>,
    room: usize,
    fd: bool,
}

impl FakeSocket {
    fn new(incoming: &[&str]) -> Self {
        let incoming = incoming.iter().map(|text| logged(text)).collect();
        Self { incoming, written: Vec::new(), room: usize::MAX, fd: true }
    }
}

impl CanSocket for FakeSocket {
    fn read(&mut self) -> io::Result<Option<LogLine>> {
        Ok(self.incoming.pop_front())
    }

    fn write(&mut self, what: &LogLine) -> io::Result<()> {
        if self.room == 0 {
            return Err(io::Error::from_raw_os_error(ENOBUFS));
        }
        self.room -= 1;
        self.written.push(what.to_string());
        Ok(())
    }

    fn carries_fd(&self) -> bool {
        self.fd
    }
}

/// A chip with that many places to transmit from.
struct FakePort {
    incoming: VecDeque<LogLine>,
    sent: Vec<String>,
    room: usize,
    asked: u32,
}

impl FakePort {
    fn new(incoming: &[&str]) -> Self {
        let incoming = incoming.iter().map(|text| logged(text)).collect();
        Self { incoming, sent: Vec::new(), room: usize::MAX, asked: 0 }
    }
}

impl Port for FakePort {
    fn receive(&mut self, see: &mut dyn FnMut(LogLine, bool)) -> Result<(), Failure> {
        self.asked += 1;
        let overflow =
            |what: &LogLine| matches!(what, LogLine::Error(error) if error.data[1] & 1 != 0);
        self.incoming.drain(..).for_each(|what| see(what, overflow(&what)));
        Ok(())
    }

    fn transmit(&mut self, frame: &Frame) -> Result<bool, Failure> {
        if self.room == 0 {
            return Ok(false);
        }
        self.room -= 1;
        self.sent.push(CanFrame::from_chip(frame).to_string());
        Ok(true)
    }
}

fn logged(text: &str) -> LogLine {
    candump::parse_frame(text).expect(text)
}

#[test]
fn both_ways_in_order_errors_among_the_frames() {
    let from_bus = ["123#11", "20000004#0001000000000000", "12345678##1AABB", "123#R4"];
    let from_socket = ["001#", "002##2", "00000003#R1"];
    let (mut port, mut socket) = (FakePort::new(&from_bus), FakeSocket::new(&from_socket));
    let mut pump = Pump::new(true);
    assert!(pump.step(&mut port, &mut socket).expect("goes"));
    assert_eq!(socket.written, from_bus);
    // Only the sender itself can report its error state.
    assert_eq!(port.sent, ["001#", "002##0", "00000003#R1"]);
    let Counts { frames_to_socket, errors_to_socket, frames_to_bus, overflows, .. } = pump.counts;
    assert_eq!((frames_to_socket, errors_to_socket, frames_to_bus, overflows), (3, 1, 3, 1));
    assert!(pump.is_empty() && !pump.step(&mut port, &mut socket).expect("goes"));
}

#[test]
fn a_socket_without_room_loses_nothing_and_stops_the_chip() {
    let texts: Vec<String> = (0..QUEUE_MAX + 5).map(|id| format!("{id:03X}#")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (mut port, mut socket) = (FakePort::new(&texts), FakeSocket::new(&[]));
    let mut pump = Pump::new(true);
    socket.room = 3;
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!((socket.written.len(), pump.counts.socket_full, port.asked), (3, 1, 1));
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!(
        (pump.counts.socket_full, port.asked),
        (2, 1),
        "nobody is asked while the queue is full"
    );
    socket.room = usize::MAX;
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!(socket.written, texts);
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!(port.asked, 2);
}

#[test]
fn a_chip_without_room_keeps_the_frame_and_leaves_the_rest_in_the_socket() {
    let texts = ["001#", "002#", "003#", "004#"];
    let (mut port, mut socket) = (FakePort::new(&[]), FakeSocket::new(&texts));
    let mut pump = Pump::new(true);
    port.room = 1;
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!((port.sent.len(), socket.incoming.len(), pump.counts.chip_full), (1, 2, 1));
    assert!(!pump.is_empty());
    port.room = usize::MAX;
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!(port.sent, texts);
}

#[test]
fn what_a_side_does_not_carry_is_counted() {
    let from_bus = ["001##1AA", "002#AA", "20000040#0000000000000000"];
    let from_socket = ["001##0", "002#0011223344556677_9", "20000004#0000000000000000", "003#"];
    let (mut port, mut socket) = (FakePort::new(&from_bus), FakeSocket::new(&from_socket));
    socket.fd = false;
    let mut pump = Pump::new(false);
    pump.step(&mut port, &mut socket).expect("goes");
    assert_eq!(socket.written, from_bus[1..]);
    assert_eq!(port.sent, ["003#"]);
    assert_eq!((pump.counts.fd_dropped, pump.counts.refused), (1, 3));
}

#[test]
fn other_errors_of_the_socket_end_it() {
    struct Down;
    impl CanSocket for Down {
        fn read(&mut self) -> io::Result<Option<LogLine>> {
            Err(io::Error::from_raw_os_error(100))
        }

        fn write(&mut self, _: &LogLine) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(100))
        }

        fn carries_fd(&self) -> bool {
            true
        }
    }
    for incoming in [&["001#"][..], &[]] {
        let mut port = FakePort::new(incoming);
        assert!(Pump::new(true).step(&mut port, &mut Down).is_err());
    }
}

/// Runs `with` on a simulated chip that is on its bus, and a far node that sends 600 frames, each `gap_ps`
/// after the one before.
fn with_chip(gap_ps: u64, with: impl FnOnce(&mut Node<'_>, &Rc<RefCell<Feed>>)) {
    rig::on_bus(
        |config| config,
        |node| {
            let from_ps = node.now_ns() * 1_000;
            let frames = (0..600_u32).map(move |id| {
                let at_ps = from_ps + u64::from(id) * gap_ps;
                (at_ps, sim::CanFrame::new(0x100 + id, &id.to_le_bytes()))
            });
            let far = Rc::new(RefCell::new(Feed::new("far", frames)));
            node.simulated().expect("a simulated board").bus.attach(far.clone());
            with(node, &far);
        },
    );
}

#[test]
fn frames_go_through_a_chip_both_ways_while_errors_are_told() {
    with_chip(0, |node, far| {
        let can = node.simulated().expect("simulated");
        can.bus.inject(Fault::ErrorFlag { frame: 20, bit: 30 });
        // More urgent than all of the far node's.
        let mut socket = FakeSocket::new(&["001#AA", "002#BB", "003#"]);
        let mut pump = Pump::new(false);
        while far.borrow().sent_frames() < 50 {
            node.wait(1_000_000);
            pump.step(node, &mut socket).expect("goes");
        }
        assert_eq!((pump.counts.frames_to_bus, far.borrow().received_frames()), (3, 3));
        let frames = socket.written.iter().filter(|text| !text.starts_with("20"));
        let expected = (0..50_u8).map(|id| format!("{:03X}#{id:02X}000000", 0x100 + u16::from(id)));
        assert!(frames.take(50).cloned().eq(expected), "{:?}", socket.written);
        let error = socket.written.iter().find(|text| text.starts_with("20")).expect("an error");
        // A protocol error and a bus error: stuffing or form, as the chip saw it.
        assert!(error.starts_with("20000088#0000"), "{error}");
        assert_eq!(pump.counts.errors_to_socket, 1);
    });
}

#[test]
fn an_overflow_behind_a_socket_without_room_is_told_and_over() {
    with_chip(0, |node, far| {
        let mut socket = FakeSocket::new(&[]);
        socket.room = 0;
        let mut pump = Pump::new(false);
        while !far.borrow().is_done() {
            node.pass(1_000_000);
            node.wait(0);
            pump.step(node, &mut socket).expect("goes");
        }
        socket.room = usize::MAX;
        for _ in 0..20 {
            node.wait(1_000_000);
            pump.step(node, &mut socket).expect("goes");
        }
        assert!(pump.counts.socket_full > 0 && pump.counts.overflows > 0, "{:?}", pump.counts);
        let error = socket.written.iter().find(|text| text.starts_with("20000004#0001"));
        assert!(error.is_some(), "{:?}", pump.counts);
        // Frames that were not lost are in order.
        let frames: Vec<&String> =
            socket.written.iter().filter(|text| !text.starts_with("20")).collect();
        assert!(frames.len() < 600 && frames.len() >= QUEUE_MAX && frames.is_sorted());
    });
}

#[test]
fn virtual_time_does_not_run_ahead_of_real_time() {
    with_chip(10_000_000_000, |node, far| {
        let mut socket = FakeSocket::new(&["001#"]);
        let mut pump = Pump::new(false);
        let begun = Instant::now();
        carry(node, &mut pump, &mut socket, Some(100)).expect("goes");
        // At most one frame at once, and one per 10 ms of elapsed time.
        let most = 2 + begun.elapsed().as_millis() / 10;
        let sent = far.borrow().sent_frames();
        assert!(sent >= 1 && u128::from(sent) <= most, "{sent} frames in {:?}", begun.elapsed());
        assert_eq!((pump.counts.frames_to_socket, pump.counts.frames_to_bus), (sent, 1));
    });
}
