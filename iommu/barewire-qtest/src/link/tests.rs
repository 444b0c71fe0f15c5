//! The connection, with a scripted peer.

use super::*;

/// A link and its peer.
fn pair() -> (Link, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    (Link::new(ours).expect("a link"), theirs)
}

/// Answers `commands` lines by `answer` on a thread. Returns the lines.
fn serve(
    mut theirs: UnixStream,
    commands: usize,
    answer: impl Fn(&str) -> String + Send + 'static,
) -> std::thread::JoinHandle<Vec<String>> {
    use std::io::BufRead;
    std::thread::spawn(move || {
        let reader = std::io::BufReader::new(theirs.try_clone().expect("a clone"));
        let mut lines = Vec::new();
        for line in reader.lines().take(commands) {
            let line = line.expect("a line");
            theirs.write_all(answer(&line).as_bytes()).expect("answers");
            lines.push(line);
        }
        lines
    })
}

#[test]
fn commands_arrive_in_order_and_answers_belong_to_them() {
    let (mut link, theirs) = pair();
    let served = serve(theirs, 4, |line| match line {
        "readl 0x2008018" => "IRQ raise 1\nOK 0x00000000000000fb\nIRQ lower 1\n".into(),
        _ => "OK\n".into(),
    });
    link.write(0x0200_8008, 0);
    link.write(0x0200_8008, 0xffff_ffff);
    let mut words = [0; 2];
    link.read_n(0x0200_8018, &mut words);
    assert_eq!(words, [0xfb; 2]);
    assert_eq!(link.error(), None);
    assert_eq!(
        served.join().expect("served"),
        [
            "writel 0x2008008 0x0",
            "writel 0x2008008 0xffffffff",
            "readl 0x2008018",
            "readl 0x2008018"
        ]
    );
}

#[test]
fn posted_writes_are_sent_before_anybody_waits_and_counted_later() {
    let (mut link, theirs) = pair();
    let served = serve(theirs, 10 * BATCH, |_| "OK\n".into());
    for value in 0..10 * BATCH as u32 {
        link.write(4, value);
        assert!(link.unanswered.len() <= IN_FLIGHT_MAX);
    }
    link.settle();
    assert_eq!((link.unanswered.len(), link.error()), (0, None));
    let lines = served.join().expect("served");
    assert_eq!(lines.last().map(String::as_str), Some("writel 0x4 0x3e7"));
}

#[test]
fn a_refused_write_is_an_error_though_it_was_posted() {
    let (mut link, theirs) = pair();
    let served = serve(theirs, 3, |line| match line {
        "writel 0x8 0x2" => "FAIL no\n".into(),
        _ => "OK\n".into(),
    });
    for value in 1..=3 {
        link.write(8, value);
    }
    link.settle();
    assert_eq!(link.error(), Some(&QemuError::Protocol { line: "FAIL no".into() }));
    served.join().expect("served");
}

#[test]
fn after_an_error_reads_are_zero_and_the_first_error_stays() {
    let (mut link, theirs) = pair();
    drop(theirs);
    let mut words = [7; 3];
    link.read_n(0, &mut words);
    assert_eq!(words, [0; 3]);
    let first = link.error().cloned().expect("an error");
    assert!(matches!(first, QemuError::Broken { .. }), "{first:?}");
    for value in 0..1_000 {
        link.write(0, value);
    }
    link.settle();
    link.read_n(0, &mut words);
    assert_eq!(link.error(), Some(&first));
    assert!(link.out.len() < BATCH * 32, "nothing stays queued without an owner");
}

#[test]
fn a_value_where_none_belongs_is_an_error() {
    for answer in ["OK 0x1\n", "ERR\n", "\n", "bogus\n"] {
        let (mut link, theirs) = pair();
        let served = serve(theirs, 1, move |_| answer.into());
        link.write(0, 1);
        link.settle();
        assert!(matches!(link.error(), Some(QemuError::Protocol { .. })), "{answer:?}");
        served.join().expect("served");
    }
    let (mut link, theirs) = pair();
    let served = serve(theirs, 1, |_| "OK\n".into());
    link.read_n(0, &mut [0]);
    assert!(matches!(link.error(), Some(QemuError::Protocol { .. })));
    served.join().expect("served");
}

#[test]
fn interrupt_lines_are_known_once_everything_is_answered() {
    let (mut link, theirs) = pair();
    let served = serve(theirs, 4, |line| match line {
        "irq_intercept_in /nowhere" => "FAIL Unknown device\n".into(),
        "irq_intercept_in /gic" => "OK\n".into(),
        "writel 0x4 0x1" => "IRQ raise 7\nIRQ lower 7\nIRQ raise 7\nIRQ raise 8\nOK\n".into(),
        _ => "IRQ lower 8\nOK\n".into(),
    });
    let refusal = link.try_command("irq_intercept_in /nowhere");
    assert_eq!(refusal, Ok(Some("FAIL Unknown device".into())));
    assert_eq!(link.try_command("irq_intercept_in /gic"), Ok(None));
    assert_eq!(link.irq(7), Irq::default());
    link.write(4, 1);
    link.write(8, 2);
    link.settle();
    assert_eq!(link.irq(7), Irq { raised: true, raises: 2 });
    assert_eq!(link.irq(8), Irq { raised: false, raises: 1 });
    assert_eq!(link.error(), None, "a refusal is no lost connection");
    served.join().expect("served");
}

#[test]
fn a_command_on_a_lost_connection_is_its_error() {
    let (mut link, theirs) = pair();
    drop(theirs);
    let error = link.try_command("irq_intercept_in /gic").expect_err("nobody is there");
    assert_eq!(link.error(), Some(&error));
    assert_eq!(link.try_command("endianness"), Err(error));
}

#[test]
fn nobody_at_the_other_end_is_noticed_in_time() {
    let (mut link, _theirs) = pair();
    let greeted = link.greet(Duration::from_millis(30));
    assert!(matches!(greeted, Err(QemuError::Silent { waited_ms: 30.. })), "{greeted:?}");
}

#[test]
fn numbers_are_written_as_short_as_they_are() {
    let text = |value| {
        let mut out = Vec::new();
        push_hex(&mut out, value);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(
        [0, 1, 0xf, 0x10, 0x1234, u64::MAX].map(text),
        ["0x0", "0x1", "0xf", "0x10", "0x1234", "0xffffffffffffffff"]
    );
}

#[test]
fn long_words_have_64_bits_both_ways() {
    let (mut link, theirs) = pair();
    let served = serve(theirs, 2, |line| match line {
        "readq 0x98" => "OK 0xfedcba9876543210\n".into(),
        _ => "OK\n".into(),
    });
    link.write_long(0x80, 0xffff_0000_4000_0000);
    assert_eq!(link.read_long(0x98), 0xfedc_ba98_7654_3210);
    assert_eq!(link.error(), None);
    assert_eq!(served.join().expect("served"), ["writeq 0x80 0xffff000040000000", "readq 0x98"]);
}
