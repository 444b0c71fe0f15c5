//! The bus compared with frames worked out by hand, and with the rules of arbitration and errors.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

const BIT: Ps = 4_000_000;

fn bus() -> CanBus {
    CanBus::new(BitTimes::from_rates(250_000, 2_000_000))
}

fn share<N: CanNode + 'static>(bus: &CanBus, node: N) -> (NodeId, Rc<RefCell<N>>) {
    let node = Rc::new(RefCell::new(node));
    (bus.attach(node.clone()), node)
}

fn text(bits: &[bool]) -> String {
    bits.iter().map(|&bit| if bit { '1' } else { '0' }).collect()
}

/// Worked out on paper, except the CRC, which another program divided.
#[test]
fn a_classic_frame_is_these_bits() {
    let frame = CanFrame::new(0x123, &[0xde, 0xad, 0xbe, 0xef]);
    let expected = [
        "0",              // SOF
        "00100100011",    // identifier
        "000",            // RTR, IDE, r0
        "0100",           // DLC
        "11011110",       // DE
        "10101101",       // AD
        "1011111",        // BE up to its fifth one
        "0",              // stuff
        "0",              // BE's last
        "11101111",       // EF
        "1",              // CRC 0x4e6b, its first bit the fifth one
        "0",              // stuff
        "00111001101011", // CRC's others
        "1",              // delimiter
        "01",             // ACK slot and delimiter
        "1111111",        // EOF
    ]
    .concat();
    assert_eq!(text(&frame.wire_bits(true)), expected);
    let shape = frame.shape();
    assert_eq!((shape.nominal_bits, shape.stuff_bits, shape.crc), (78, 2, 0x4e6b));
}

#[test]
fn frames_have_their_lengths() {
    let shape = |frame: CanFrame| {
        let Shape { nominal_bits, data_bits, stuff_bits, crc, .. } = frame.shape();
        (nominal_bits, data_bits, stuff_bits, crc)
    };
    assert_eq!(shape(CanFrame::new(0x077, &[0x55; 8])), (110, 0, 2, 0x465f));
    assert_eq!(shape(CanFrame::new(0x014, &[1])), (55, 0, 3, 0x7753));
    assert_eq!(shape(CanFrame::new(0x077, &[])), (47, 0, 3, 0x08b6));
    assert_eq!(shape(CanFrame::remote(0x077, 8)), (46, 0, 2, 0x0f74));
    assert_eq!(shape(CanFrame::new(0, &[0; 8])), (124, 0, 16, 0x145b));
    assert_eq!(shape(CanFrame::new(0x7ff, &[0xff; 8])), (123, 0, 15, 0x4c89));
    let counting = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(shape(CanFrame::new(0x1234_5678, &counting)), (137, 0, 9, 0x221a));
    // CAN FD: 6 or 7 fixed stuff bits, the CRC of 17 bits up to 16 bytes.
    assert_eq!(shape(CanFrame::fd(0x077, &[], false)), (61, 0, 8, 0x0_fd8a));
    assert_eq!(shape(CanFrame::fd(0x123, &[0x55; 8], true)), (26, 97, 6, 0x1_56e5));
    assert_eq!(shape(CanFrame::fd(0, &[0; 16], true)), (28, 186, 33, 0x1_7ec7));
    assert_eq!(shape(CanFrame::fd(0, &[0; 64], true)), (28, 652, 111, 0x17_b97b));
    assert_eq!(shape(CanFrame::fd(0x7ff, &[0xff; 64], true)), (28, 653, 112, 0x0f_6d3d));
    let counting: Vec<u8> = (0..64).collect();
    assert_eq!(shape(CanFrame::fd(0x1234_5678, &counting, true)), (45, 575, 32, 0x02_19c7));
    assert_eq!(shape(CanFrame::fd(0x123, &counting[..20], false)), (239, 0, 22, 0x0b_bd35));
}

#[test]
fn data_is_filled_up_to_a_length_there_is() {
    assert_eq!(CanFrame::fd(1, &[7; 9], false).data().len(), 12);
    assert_eq!(CanFrame::fd(1, &[7; 49], false).dlc(), 15);
    assert_eq!(CanFrame::new(1, &[1, 2]).with_dlc(15, &[3; 64]).data(), [3; 8]);
    assert_eq!(format!("{:?}", CanFrame::new(0x123, &[0xde, 0xad])), "123#DEAD");
    assert_eq!(format!("{:?}", CanFrame::fd(0x1234_5678, &[1], true)), "12345678##101");
    assert_eq!(format!("{:?}", CanFrame::remote(0x7, 3)), "007#R3");
}

#[test]
fn a_frame_has_its_times_and_its_neighbours_their_gap() {
    let bus = bus();
    let frame = CanFrame::new(0x077, &[0x55; 8]);
    let sender = bus.add(Script::new("sender", [(0, frame), (0, frame), (9_000_000_000, frame)]));
    let (_, listener) = share(&bus, Script::new("listener", []));
    assert_eq!(bus.catch_up(0), 11 * BIT, "they take part after 11 recessive bits");
    bus.catch_up(20_000_000_000);
    let times: Vec<_> = bus.records().iter().map(|record| (record.sof, record.eof)).collect();
    let end = |sof: Ps| sof + 110 * BIT;
    let (first, second) = (11 * BIT, end(11 * BIT) + 3 * BIT);
    assert_eq!(
        times,
        [(first, end(first)), (second, end(second)), (9_000_000_000, end(9_000_000_000))]
    );
    assert!(bus.records().iter().all(|record| record.is_taken() && record.sender == sender));
    let listener = listener.borrow();
    assert_eq!(listener.received_frames()[0], (end(first) - BIT, frame), "EOF's last bit but one");
    assert_eq!(listener.received_frames().len(), 3);
}

#[test]
fn the_data_phase_is_at_its_own_rate() {
    let bus = bus();
    bus.add(Script::new("sender", [(0, CanFrame::fd(0x123, &[0x55; 8], true))]));
    bus.add_listener();
    bus.catch_up(10_000_000_000);
    let record = bus.records()[0];
    assert_eq!(record.eof - record.sof, 26 * BIT + 97 * 500_000);
}

#[test]
fn the_lowest_arbitration_field_wins() {
    // In order of winning: RTR loses against data, IDE against a base frame of the same 11 bits.
    let frames = [
        CanFrame::new(0x076, &[1]),
        CanFrame::new(0x077, &[2]),
        CanFrame::remote(0x077, 0),
        CanFrame::new(0x077 << 18, &[3]),
        CanFrame::remote(0x077 << 18, 0),
        CanFrame::new(0x077 << 18 | 1, &[4]),
        CanFrame::new(0x078, &[5]),
    ];
    let bus = bus();
    for frame in frames.iter().rev() {
        bus.add(Script::new("sender", [(1_000_000_000, *frame)]));
    }
    bus.catch_up(50_000_000_000);
    let order: Vec<_> = bus.records().iter().map(|record| record.frame).collect();
    assert_eq!(order, frames);
    assert!(bus.records().iter().all(Record::is_taken));
}

#[test]
fn the_lower_identifier_starves_the_higher_at_full_load() {
    let bus = bus();
    let busy = bus.add_traffic(Traffic { id: Pattern::Fixed(0x100), ..Traffic::default() });
    let (_, starved) =
        share(&bus, Script::new("starved", [(100_000_000, CanFrame::new(0x101, &[]))]));
    let (_, served) = share(&bus, Script::new("served", [(100_000_000, CanFrame::new(0xff, &[]))]));
    bus.catch_up(100_000_000_000);
    assert_eq!((starved.borrow().left(), served.borrow().left()), (1, 0));
    let records = bus.records();
    assert_ne!(records[1].sender, busy, "0x0ff goes between the first two");
    assert_eq!(records[2].sof - records[1].eof, 3 * BIT);
}

#[test]
fn equal_identifiers_with_other_data_collide() {
    let bus = bus();
    let frames = [CanFrame::new(0x100, &[0b0100_0000]), CanFrame::new(0x100, &[0])];
    let one = bus.add(Script::new("one", [(1_000_000_000, frames[0])]));
    let other = bus.add(Script::new("other", [(1_000_000_000, frames[1])]));
    let third = bus.add_listener();
    bus.catch_up(1_180_000_000);
    let record = bus.records()[0];
    assert_eq!(record.outcome, Outcome::Error(ErrorKind::Bit1));
    // SOF, 11, RTR, IDE, r0, DLC 0001, one data bit; two stuff bits among the 14 zeros from 0x100's
    // one to DLC's. The bit in error, the flags of both, the delimiter.
    let identical = 1 + 11 + 3 + 4 + 1 + 2;
    assert_eq!(record.eof - record.sof, (identical + 1 + 12 + 8) * BIT);
    let counted = |node| bus.counters(node);
    assert_eq!((counted(one).tec, counted(other).tec, counted(third).rec), (8, 8, 1));
    // Both try again at once, so they collide until they are off the bus, at the same time.
    bus.catch_up(20_000_000_000);
    assert!(bus.counters(one).tec > 255 || !bus.takes_part(one));
    assert!(bus.records().iter().all(|record| !record.is_taken()));
}

#[test]
fn equal_frames_are_one() {
    let bus = bus();
    let frame = CanFrame::new(0x100, &[1]);
    let (_, one) = share(&bus, Script::new("one", [(1_000_000_000, frame)]));
    let (_, other) = share(&bus, Script::new("other", [(1_000_000_000, frame)]));
    bus.add_listener();
    bus.catch_up(20_000_000_000);
    assert_eq!(bus.records().len(), 1);
    assert_eq!((one.borrow().left(), other.borrow().left()), (0, 0));
}

#[test]
fn without_an_acknowledge_the_sender_becomes_passive_and_stays() {
    let bus = bus();
    let frame = CanFrame::new(0x077, &[0x55; 8]);
    let sender = bus.add(Script::new("sender", [(0, frame)]));
    bus.catch_up(20_000_000_000);
    assert_eq!(bus.counters(sender), Counters { tec: 128, rec: 0 });
    let records = bus.records();
    assert!(records.len() > 30);
    assert!(records.iter().all(|record| record.outcome == Outcome::Error(ErrorKind::Ack)));
    // 102 bits up to the ACK slot's end, flag, delimiter; intermission; passive: 8 bits more.
    assert_eq!(records[0].eof - records[0].sof, (102 + 7 + 8) * BIT);
    assert_eq!(records[1].sof - records[0].eof, 3 * BIT);
    assert_eq!(records[20].eof - records[20].sof, (102 + 6 + 8) * BIT);
    assert_eq!(records[21].sof - records[20].eof, (3 + 8) * BIT);
    // A listener joins: the frame is sent, and the counter decreases by one.
    bus.add_listener();
    bus.catch_up(30_000_000_000);
    assert_eq!(bus.counters(sender).tec, 127);
    assert!(bus.records().last().unwrap().is_taken());
}

#[test]
fn who_only_listens_does_not_acknowledge_and_who_is_restricted_does() {
    for (role, taken) in [(Role::Listen, false), (Role::Restricted, true), (Role::Off, false)] {
        let bus = bus();
        bus.add(Script::new("sender", [(0, CanFrame::new(1, &[]))]));
        let link = Link { role, ..Link::ACTIVE };
        bus.add(Script::new("other", []).with_link(link));
        bus.catch_up(500_000_000);
        assert_eq!(bus.records()[0].is_taken(), taken, "{role:?}");
    }
}

#[test]
fn errors_are_counted_and_frames_sent_again() {
    let bus = bus();
    let frame = CanFrame::new(0x077, &[0x55; 8]);
    let sender = bus.add(Script::new("sender", [(0, frame), (0, frame), (0, frame)]));
    let (listening, listener) = share(&bus, Script::new("listener", []));
    bus.inject(Fault::Crc { frame: 0 });
    bus.inject(Fault::ErrorFlag { frame: 2, bit: 40 });
    bus.catch_up(11 * BIT + (102 + 7 + 8) * BIT);
    assert_eq!((bus.counters(sender).tec, bus.counters(listening).rec), (8, 1));
    bus.catch_up(10_000_000_000);
    let outcomes: Vec<_> = bus.records().iter().map(|record| record.outcome).collect();
    let ack = Outcome::Error(ErrorKind::Ack);
    let bit = Outcome::Error(ErrorKind::Bit1);
    assert_eq!(outcomes, [ack, Outcome::Taken, bit, Outcome::Taken, Outcome::Taken]);
    assert_eq!(bus.counters(sender).tec, 16 - 3);
    assert_eq!(bus.counters(listening).rec, 0);
    assert_eq!(listener.borrow().received_frames().len(), 3);
    let hit = bus.records()[2];
    assert_eq!(hit.eof - hit.sof, (41 + 12 + 8) * BIT);
}

#[test]
fn a_node_off_the_bus_is_back_after_128_times_11_bits() {
    let bus = bus();
    let counters = Counters { tec: 250, rec: 3 };
    let script = Script::new("sender", [(0, CanFrame::new(0x077, &[0x55; 8]))]);
    let sender = bus.add(script.with_counters(counters));
    bus.add_listener();
    bus.inject(Fault::ErrorFlag { frame: 0, bit: 40 });
    let flag_end = (11 + 41 + 12) * BIT;
    bus.catch_up(flag_end);
    assert_eq!(bus.counters(sender).state(), ErrorState::BusOff);
    assert!(!bus.takes_part(sender));
    let back = flag_end + 128 * 11 * BIT;
    bus.catch_up(back - 1);
    assert!(!bus.takes_part(sender));
    bus.catch_up(back);
    assert!(bus.takes_part(sender));
    assert_eq!(bus.counters(sender), Counters::default());
    bus.catch_up(back + 200 * BIT);
    assert_eq!(bus.records()[1].sof, back);
}

#[test]
fn frames_of_others_interrupt_the_recovery() {
    let bus = bus();
    let script = Script::new("sender", [(0, CanFrame::new(0x077, &[0x55; 8]))]);
    let sender = bus.add(script.with_counters(Counters { tec: 250, rec: 0 }));
    bus.inject(Fault::ErrorFlag { frame: 0, bit: 40 });
    bus.add_listener();
    // From the flag's end on idle for two and a half sequences; then full load.
    let flag_end = (11 + 41 + 12) * BIT;
    let start_ps = flag_end + 27 * BIT;
    bus.add_traffic(Traffic { start_ps, data: Pattern::Fixed([0x55; 64]), ..Traffic::default() });
    bus.catch_up(start_ps + 126 * 113 * BIT - 1);
    assert!(!bus.takes_part(sender));
    bus.catch_up(start_ps + 126 * 113 * BIT);
    assert!(bus.takes_part(sender), "each frame's end and intermission are 11 bits");
}

#[test]
fn a_dominant_bus_takes_senders_off_it_and_makes_receivers_passive() {
    let bus = bus();
    let sender = bus.add(Script::new("sender", [(1_000_000_000, CanFrame::new(0x077, &[]))]));
    let listener = bus.add_listener();
    let (from, until) = (1_040_000_000, 3_000_000_000);
    bus.inject(Fault::Dominant { from, until });
    bus.catch_up(from);
    assert_eq!((bus.counters(sender).tec, bus.counters(listener).rec), (8, 1));
    bus.catch_up(until);
    assert_eq!(bus.counters(sender).state(), ErrorState::BusOff);
    assert_eq!(bus.counters(listener).state(), ErrorState::Passive);
    bus.catch_up(until + (128 * 11 + 100) * BIT);
    assert!(bus.records().last().unwrap().is_taken(), "both came back");
}

#[test]
fn a_node_at_another_bit_rate_destroys_everything() {
    let bus = bus();
    let sender = bus.add(Script::new("sender", [(0, CanFrame::new(0x077, &[]))]));
    bus.add_listener();
    let times = Some(BitTimes::from_rates(500_000, 2_000_000));
    bus.add(Script::new("stranger", []).with_link(Link { times, ..Link::ACTIVE }));
    bus.catch_up(5_000_000_000);
    assert!(bus.records().iter().all(|record| !record.is_taken()));
    assert!(bus.counters(sender).tec > 100);
    // The data bit rate affects only data phases.
    let bus = self::bus();
    let frames = [CanFrame::new(0x077, &[]), CanFrame::fd(0x077, &[1], true)];
    bus.add(Script::new("sender", frames.map(|frame| (0, frame))));
    let times = Some(BitTimes::from_rates(250_000, 1_000_000));
    bus.add(Script::new("stranger", []).with_link(Link { times, ..Link::ACTIVE }));
    bus.catch_up(2_000_000_000);
    let taken: Vec<_> = bus.records().iter().map(Record::is_taken).collect();
    assert!(taken[0] && !taken[1], "{taken:?}");
}

#[test]
fn nodes_of_can_2_destroy_frames_of_can_fd_or_wait_until_they_are_over() {
    for (fd, taken) in [(FdSupport::ErrorFlag, false), (FdSupport::Ignores, true)] {
        let bus = bus();
        bus.add(Script::new("sender", [(0, CanFrame::fd(0x077, &[1; 8], true))]));
        bus.add_listener();
        let (_, old) = share(&bus, Script::new("old", []).with_link(Link { fd, ..Link::ACTIVE }));
        bus.catch_up(400_000_000);
        assert_eq!(bus.records()[0].is_taken(), taken, "{fd:?}");
        assert!(old.borrow().received_frames().is_empty());
    }
}

#[test]
fn traffic_keeps_its_gap_its_count_and_its_seed() {
    let run = |seed| {
        let bus = bus();
        bus.add_traffic(Traffic {
            gap_ps: 10_000_000_000,
            count: std::num::NonZeroU64::new(5),
            start_ps: 1_000_000_000,
            seed,
            ..Traffic::default()
        });
        bus.add_listener();
        bus.catch_up(1_000_000_000_000);
        bus.records()
    };
    let records = run(7);
    let starts: Vec<_> = records.iter().map(|record| record.sof / 1_000_000_000).collect();
    assert_eq!(starts, [1, 11, 21, 31, 41]);
    assert!(records.iter().all(|record| record.frame.id == 0x077 && record.frame.dlc() == 8));
    assert_ne!(records[0].frame, records[1].frame);
    assert_eq!(run(7), records);
    assert_ne!(run(8)[0].frame, records[0].frame);
}

#[test]
fn traffic_counts_and_varies() {
    let bus = bus();
    bus.add_traffic(Traffic {
        count: std::num::NonZeroU64::new(40),
        id: Pattern::Increment,
        length: Pattern::Increment,
        data: Pattern::Increment,
        extended: true,
        fd: Some(true),
        ..Traffic::default()
    });
    bus.add_listener();
    bus.catch_up(1_000_000_000_000);
    let records = bus.take_records();
    assert_eq!(records.len(), 40);
    assert!(records.iter().all(|record| record.frame.extended && record.frame.brs));
    assert_eq!((records[3].frame.id, records[3].frame.data()), (3, &[3, 0, 0][..]));
    let lengths: Vec<_> = records[8..18].iter().map(|record| record.frame.data().len()).collect();
    assert_eq!(lengths, [8, 12, 16, 20, 24, 32, 48, 64, 0, 1], "by DLC");
    assert!(bus.records().is_empty());
}

#[test]
fn traffic_has_every_kind_of_frame() {
    let frames = |traffic: Traffic| -> Vec<CanFrame> {
        traffic.frames().take(300).map(|(_, frame)| frame).collect()
    };
    let random = Traffic { id: Pattern::Random, length: Pattern::Random, ..Traffic::default() };
    for bit in [false, true] {
        let all = frames(Traffic { id_bit: Some(bit), ..random.clone() });
        assert!(all.iter().all(|frame| (frame.id & 1 != 0) == bit));
    }
    let remote = frames(Traffic { remote: true, length: Pattern::Fixed(64), ..random.clone() });
    assert!(remote.iter().all(|frame| frame.remote && frame.dlc() == 8 && frame.data().is_empty()));
    for fd_too in [false, true] {
        let all = frames(Traffic { mix: Some(fd_too), ..random.clone() });
        let any = |is: fn(&CanFrame) -> bool| all.iter().any(is);
        assert!(any(|f| f.extended) && any(|f| !f.extended) && any(|f| f.remote));
        assert!(any(|f| !f.remote && !f.fd && f.data().len() == 8));
        assert_eq!(any(|f| f.fd && f.brs && f.data().len() == 64), fd_too);
        assert_eq!(any(|f| f.fd && !f.brs), fd_too);
        assert!(all.iter().all(|f| f.fd || f.dlc() <= 8));
    }
}
