//! cangen's options: what they make, and what is refused.

use std::fs;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    far: FarArgs,
}

fn far(options: &str, fd_bus: bool) -> Result<Far, Failure> {
    let words = ["far"].into_iter().chain(options.split_whitespace());
    let only = Only::try_parse_from(words).map_err(|e| Failure::Usage(e.to_string()))?;
    only.far.settle(fd_bus, Far::default())
}

fn made(options: &str, fd_bus: bool) -> Vec<(u64, String)> {
    let far = far(options, fd_bus).unwrap_or_else(|error| panic!("{options}: {error}"));
    far.frames().take(500).map(|(at, frame)| (at, frame.to_string())).collect()
}

fn texts(options: &str) -> Vec<String> {
    made(options, false).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn fixed_values_are_what_was_asked() {
    let frames = made("-g 0.5 -n 3 -I 42a -L 4 -D 1122", false);
    let expected =
        [(0, "42A#11220000"), (500_000_000, "42A#11220000"), (1_000_000_000, "42A#11220000")];
    assert_eq!(frames, expected.map(|(at, text)| (at, text.to_string())));
    assert_eq!(texts("-n 1 -I 7 -D AABBCC"), ["007#AABBCC"]);
    assert_eq!(texts("-n 1 -e -I 7 -D AA"), ["00000007#AA"]);
    assert_eq!(texts("-n 1 -I 7 -R -L 3"), ["007#R3"]);
    assert_eq!(made("-n 1 -I 7 -b -D AA", true)[0].1, "007##1AA");
    assert_eq!(made("-n 1 -I 7 -f -L 12", true)[0].1.len(), "007##0".len() + 24);
    assert_eq!(made("-n 2 -I 7", false)[1].0, 200_000_000_000, "cangen's gap");
    assert_eq!(made("-n 2 -I 7 --full-load", false)[1].0, 0);
}

#[test]
fn increments_go_round() {
    let frames = texts("-n 20 -I i -L i -D i");
    assert_eq!(&frames[..3], ["000#", "001#01", "002#0200"]);
    assert_eq!((frames[8].as_str(), frames[9].as_str()), ("008#0800000000000000", "009#"));
    let lengths: Vec<usize> = far("-f -L i", true)
        .expect("options")
        .frames()
        .take(17)
        .map(|(_, frame)| frame.data().len())
        .collect();
    assert_eq!(lengths, [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64, 0]);
}

#[test]
fn random_values_are_the_seeds_and_everywhere() {
    assert_eq!(texts("-n 50"), texts("-n 50 --seed 1"));
    assert_ne!(texts("-n 50"), texts("-n 50 --seed 2"));
    for (options, odd) in [("-I e", 0), ("-I o", 1)] {
        let far = far(options, false).expect("options");
        assert!(far.frames().take(200).all(|(_, frame)| frame.raw_id() % 2 == odd));
    }
    let frames: Vec<CanFrame> =
        far("-m", true).expect("options").frames().take(500).map(|(_, frame)| frame).collect();
    let any = |is: &dyn Fn(&CanFrame) -> bool| frames.iter().any(is);
    assert!(any(&|f| f.is_extended()) && any(&|f| !f.is_extended()));
    assert!(any(&|f| f.kind == Kind::Data) && any(&|f| f.kind == Kind::Remote));
    assert!(any(&|f| f.kind == Kind::Fd { brs: true, esi: false }));
    assert!(any(&|f| f.kind == Kind::Fd { brs: false, esi: false }));
    assert!(any(&|f| f.data().len() == 64) && any(&|f| f.data().is_empty()));
    assert!(far("-m", false).expect("options").frames().take(500).all(|(_, f)| !f.is_fd()));
}

#[test]
fn what_no_frame_can_be_is_refused() {
    for (options, fd_bus, part) in [
        ("-f", false, "--fd"),
        ("-b", false, "--fd"),
        ("-I 800", false, "say -e"),
        ("-L 9", false, "at most 8"),
        ("-f -L 9", true, "12, 16"),
        ("-L 2 -D 112233", false, "-D has 3 bytes and -L 2"),
        ("-D 112233445566778899", false, "at most 8"),
        ("-I 20000000", false, "29 bits"),
        ("-I 0x12", false, "without 0x"),
        ("-L 65", false, "0 to 64"),
        ("-g -1", false, "error"),
        ("-g x", false, "milliseconds"),
        ("-n 0", false, "error"),
        ("-R -f", true, "cannot be used with"),
        ("-m -e", true, "cannot be used with"),
        ("--replay x -I 1", false, "cannot be used with"),
    ] {
        let error = far(options, fd_bus).expect_err(options);
        assert!(error.to_string().contains(part), "{options}: {error}");
    }
}

#[test]
fn a_log_is_sent_at_its_times_or_not_at_all() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("log");
    let replay = |text: &str, fd_bus| {
        fs::write(&path, text).expect("written");
        let args = FarArgs { replay: Some(path.clone()), ..FarArgs::default() };
        args.settle(fd_bus, Far::default())
    };
    let far = replay("(5.000000) can0 123#11\n(5.000250) can0 12345678#R1\n", false);
    let frames: Vec<_> = far.expect("a log").frames().collect();
    assert_eq!(frames.iter().map(|&(at, _)| at).collect::<Vec<_>>(), [0, 250_000_000]);
    assert_eq!(frames[1].1.to_string(), "12345678#R1");
    for (text, fd_bus, part) in [
        ("(1.000000) can0 123#1\n", false, "line 1: "),
        ("(1.000000) can0 123##0\n", false, "line 1: a frame of CAN FD"),
        (
            "(1.000000) can0 1FF#\n(1.000000) can0 20000004#0001000000000000",
            true,
            "line 2: an error",
        ),
        ("(1.000000) can0 123#0011223344556677_9\n", true, "line 1: a classic DLC"),
    ] {
        let error = replay(text, fd_bus).expect_err(text);
        assert!(error.to_string().contains(part), "{error}");
    }
}
