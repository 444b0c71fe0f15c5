//! The documented texts, and the errors of all others.

use super::*;
use crate::map::SpecError;

fn gpio(bit: u8) -> Option<CsPin> {
    Some(CsLineAt::Gpio { address: 0x3024_0000, bit }.into())
}

#[test]
fn the_documented_texts_are_read() {
    let text = "uio0,reference-hz=80000000,cs=gpio@0x30240000.9,poll-limit-us=50";
    let spec = parse_uio(text).expect("reads");
    let expected = MapSpec {
        block: Block::Ecspi,
        via: Via::Uio { device: "uio0".into() },
        reference_hz: 80_000_000,
        chip_selects: [gpio(9), None, None, None],
        pipe: None,
        ignore_clock: false,
        poll_limit_us: Some(50),
        lock: LockAt::Default,
        exclusive: false,
        unsafe_shared: false,
        nodes: vec![],
    };
    assert_eq!(spec, expected);
    assert_eq!(spec.to_string(), "uio:uio0");

    let text = "0x30820000,reference-hz=80000000,cs=native0+gpio@0x30240000.9";
    let spec = parse_mem(text).expect("reads");
    let native = Some(CsLineAt::Native { channel: 0 }.into());
    let expected = MapSpec {
        via: Via::DevMem { address: 0x3082_0000 },
        chip_selects: [native, gpio(9), None, None],
        poll_limit_us: None,
        ..expected
    };
    assert_eq!(spec, expected);
    assert_eq!(spec.to_string(), "mem:0x30820000");

    let text = "0x3f204000,controller=bcm2835,reference-hz=400M,cs=gpio@0x3f200000.8";
    let spec = parse_mem(text).expect("reads");
    let ce0 = Some(CsLineAt::Gpio { address: 0x3f20_0000, bit: 8 }.into());
    let expected = MapSpec {
        block: Block::Bcm2835,
        via: Via::DevMem { address: 0x3f20_4000 },
        reference_hz: 400_000_000,
        chip_selects: [ce0, None, None, None],
        ..expected
    };
    assert_eq!(spec, expected);
    assert_eq!(spec.to_string(), "mem:0x3f204000");
}

#[test]
fn each_controller_and_each_pipe_has_its_name() {
    let read = |options: &str| {
        parse_mem(&format!("0xf0004000,cs=native0,{options},reference-hz=132M")).map(|spec| {
            let MapSpec { block, pipe, .. } = spec;
            (block, pipe)
        })
    };
    assert_eq!(read("controller=ecspi"), Ok((Block::Ecspi, None)));
    assert_eq!(read("controller=bcm2835"), Ok((Block::Bcm2835, None)));
    assert_eq!(read("controller=pl022"), Ok((Block::Pl022, None)));
    assert_eq!(read("controller=atmel"), Ok((Block::Atmel, None)));
    for (name, pipe) in [
        ("wait-data-read", Pipe::WaitDataRead),
        ("one-word", Pipe::OneWord),
        ("two-words", Pipe::TwoWords),
    ] {
        let options = format!("pipe={name},controller=atmel");
        assert_eq!(read(&options), Ok((Block::Atmel, Some(pipe))));
    }
}

#[test]
fn options_come_in_any_order_and_numbers_as_people_write_them() {
    let text = "/dev/uio12,ignore-clock,cs=gpio@0X3024_0000.0+gpio@0x30240000.31+native3+native1,reference-hz=66_500k";
    let spec = parse_uio(text).expect("reads");
    assert_eq!(spec.via, Via::Uio { device: "uio12".into() });
    assert_eq!(spec.reference_hz, 66_500_000);
    let native = |channel| Some(CsLineAt::Native { channel }.into());
    assert_eq!(spec.chip_selects, [gpio(0), gpio(31), native(3), native(1)]);
    assert!(spec.ignore_clock);
    assert_eq!((&spec.lock, spec.exclusive), (&LockAt::Default, false));
    let shared = |option: &str| {
        parse_uio(&format!("uio0,{option},reference-hz=80M,cs=native0"))
            .map(|spec| (spec.lock, spec.exclusive))
    };
    assert_eq!(shared("shared"), Ok((LockAt::Default, false)));
    assert_eq!(shared("exclusive"), Ok((LockAt::Default, true)));
    assert_eq!(shared("shared=/a/b"), Ok((LockAt::File("/a/b".into()), false)));
    assert_eq!(shared("exclusive=/a/b"), Ok((LockAt::File("/a/b".into()), true)));
    assert_eq!(shared("exclusive,shared"), Err(BusTextError::SharedOrExclusive));
    let hertz = |value: &str| {
        parse_mem(&format!("0x0,cs=native0,reference-hz={value}")).map(|spec| spec.reference_hz)
    };
    assert_eq!(hertz("80M"), Ok(80_000_000));
    assert_eq!(hertz("1"), Ok(1));
    assert_eq!(hertz("4294967295"), Ok(u32::MAX));
    assert!(hertz("4294967296").is_err());
}

#[test]
fn what_cannot_be_read_is_told_with_what_could() {
    let good = "reference-hz=80M,cs=native0";
    for (text, part) in [
        ("", "write uio0 or /dev/uio0"),
        ("uio", "write uio0"),
        ("uio0x", "write uio0"),
        ("../mem", "write uio0"),
        ("/dev/mem", "write uio0"),
        ("uio0", "option reference-hz is missing"),
        (
            "uio0,",
            "no option \"\": (known: controller, reference-hz, cs, pipe, ignore-clock, poll-limit-us, shared, exclusive, unsafe-shared, node)",
        ),
        ("uio0,control=ecspi", "did you mean \"controller\"?"),
        ("uio0,Controler=ecspi", "did you mean \"controller\"?"),
        (
            "uio0,controller",
            "option controller: there is no \"\": (known: ecspi, bcm2835, pl022, atmel, dw-ssi, sifive, mcspi, cadence)",
        ),
        (
            "uio0,controller=",
            "(known: ecspi, bcm2835, pl022, atmel, dw-ssi, sifive, mcspi, cadence)",
        ),
        ("uio0,controller=bcm2853", "no \"bcm2853\": did you mean \"bcm2835\"?"),
        ("uio0,controller=ECSPI", "did you mean \"ecspi\"?"),
        ("uio0,controller=pl022x", "did you mean \"pl022\"?"),
        ("uio0,controller=dw-sssi", "did you mean \"dw-ssi\"?"),
        ("uio0,controller=at91", "no \"at91\": (known: ecspi, "),
        ("uio0,controller=atmel,controller=atmel", "controller is given twice"),
        ("uio0,pip=one-word", "did you mean \"pipe\"?"),
        (
            "uio0,pipe",
            "option pipe: there is no \"\": (known: wait-data-read, one-word, two-words)",
        ),
        ("uio0,pipe=two-word", "did you mean \"two-words\"?"),
        ("uio0,pipe=one-word,pipe=one-word", "pipe is given twice"),
        ("uio0,reference-hz=1,cs=native0,pipe=one-word", "ecspi has a FIFO"),
        (
            "uio0,controller=bcm2835,reference-hz=1,cs=native2",
            "no line 2 of its own: they are 0 to 1",
        ),
        (
            "uio0,controller=pl022,reference-hz=1,cs=native1",
            "no line 1 of its own: its only one is 0",
        ),
        ("uio0,controller=pl022,reference-hz=1,cs=gpio@0x1000.8", "no pin 8: they are 0 to 7"),
        (
            "uio0,controller=pl022,reference-hz=1,cs=native0+gpio@0x1000.7",
            "must be the only chip select",
        ),
        (
            "uio0,controller=atmel,reference-hz=1,cs=native4",
            "no line 4 of its own: they are 0 to 3",
        ),
        ("uio0,poll-limit=5", "did you mean \"poll-limit-us\"?"),
        ("uio0,poll-limit-us", "\"\" is not a time in microseconds"),
        ("uio0,poll-limit-us=5us", "write 50"),
        ("uio0,poll-limit-us=-1", "write 50"),
        ("uio0,poll-limit-us=4294967296", "write 50"),
        ("uio0,poll-limit-us=1,poll-limit-us=2", "poll-limit-us is given twice"),
        ("uio0,reference-hz=1,cs=native0,poll-limit-us=4294968", "at most 4294967 µs"),
        ("uio0,cs=native0", "reference-hz=80M"),
        ("uio0,reference-hz=80M", "cs=native0 or cs=gpio@0x30240000:9"),
        ("uio0,reference=80M", "did you mean \"reference-hz\"?"),
        ("uio0,refernce-hz=80M", "did you mean \"reference-hz\"?"),
        ("uio0,Reference_Hz=80M", "did you mean \"reference-hz\"?"),
        ("uio0,css=native0", "did you mean \"cs\"?"),
        ("uio0,clock", "did you mean \"ignore-clock\"?"),
        ("uio0,zzz=1", "no option \"zzz\": (known"),
        ("uio0,x=1", "no option \"x\": (known"),
        ("uio0,cs=native0,cs=native0", "cs is given twice"),
        ("uio0,ignore-clock,ignore-clock", "ignore-clock is given twice"),
        ("uio0,ignore-clock=yes", "takes no value"),
        ("uio0,shared,shared=/x", "shared is given twice"),
        ("uio0,shared=", "\"\" is not a path from the root"),
        ("uio0,shared=spi.lock", "/run/lock/spi.lock, or the option alone"),
        ("uio0,node", "\"\" is not the name of a device-tree node"),
        ("uio0,node=spi@1++none", "or node=none"),
        ("uio0,node=/soc/spi@1", "without its path"),
        ("uio0,node=none,node=none", "node is given twice"),
        ("uio0,nod=x", "did you mean \"node\"?"),
        ("uio0,share", "did you mean \"shared\"?"),
        ("uio0,reference-hz", "80000000 or 80M"),
        ("uio0,reference-hz=fast", "80000000 or 80M"),
        ("uio0,reference-hz=-1", "80000000 or 80M"),
        ("uio0,reference-hz=18446744073709551615M", "80000000 or 80M"),
        ("uio0,reference-hz=0,cs=native0", "0 Hz"),
        ("uio0,cs=", "\"\" is not a chip select"),
        ("uio0,cs=native", "native0"),
        ("uio0,cs=native0+", "\"\" is not a chip select"),
        ("uio0,cs=gpio@30240000.9", "gpio@0x30240000.9"),
        ("uio0,cs=gpio@0x30240000", "line 9"),
        ("uio0,cs=gpio@0x30240000.256", "line 9"),
        ("uio0,cs=gpio9", "line 9"),
        ("uio0,cs=native0+native1+native2+native3+native0", "5 chip selects"),
        ("uio0,reference-hz=1,cs=native4", "no line 4 of its own: they are 0 to 3"),
        ("uio0,reference-hz=1,cs=gpio@0x1000.32", "no pin 32: they are 0 to 31"),
        ("uio0,reference-hz=1,cs=native1+gpio@0x1000.1+gpio@0x1000.1", "1 and 2 are the same line"),
    ] {
        let error = parse_uio(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    for text in ["", "30820000", "0x", "0xg", "uio0", "0x1_0000_0000_0000_0000", "0x+1"] {
        let error = parse_mem(&format!("{text},{good}")).expect_err(text).to_string();
        assert!(error.contains("as 0x30820000"), "{text}: {error}");
    }
    assert!(parse_mem(&format!("0x3082_0000,{good}")).is_ok());
    let error = parse_mem(&format!("0x0,{good},poll-limit-us=5")).expect_err("no interrupt");
    assert!(error.to_string().contains("map the controller through UIO"), "{error}");
    let limit = |us| parse_uio(&format!("uio0,{good},poll-limit-us={us}"));
    assert_eq!(limit(0).map(|spec| spec.poll_limit_us), Ok(Some(0)));
    assert_eq!(limit(50).map(|spec| spec.poll_limit_us), Ok(Some(50)));
}

proptest::proptest! {
    /// Any text is parsed or refused, and a parsed one is valid.
    #[test]
    fn no_text_makes_it_panic(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "uio", "0", "0x", "3082", ",", "=", "+", ".", "@", "_", "-", "reference-hz",
                "cs", "ignore-clock", "poll-limit-us", "native", "gpio", "gpio@0x1000.", "M", "k",
                "controller", "controller=", "bcm2835", "pl022", "atmel", "ecspi", "dw-ssi", "sifive", "mcspi", "cadence", "pipe", "pipe=one-word", "é", "\0",
                "18446744073709551616", "uio0,reference-hz=1,cs=",
            ]),
            0..12,
        ),
    ) {
        let text = pieces.concat();
        for read in [parse_uio(&text), parse_mem(&text)] {
            match read {
                Ok(spec) => proptest::prop_assert_eq!(spec.check(), Ok(())),
                Err(error) => proptest::prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}

fn first_line(line: &str) -> Result<CsPin, BusTextError> {
    let spec = parse_mem(&format!("0x30820000,reference-hz=80M,cs={line}"))?;
    Ok(spec.chip_selects[0].clone().expect("one line"))
}

#[test]
fn a_line_of_the_kernel_is_named_by_address_or_label() {
    let at = |address| GpioChip::At(address);
    let labelled = |label: &str| GpioChip::Labelled(label.to_owned());
    for (text, chip, offset, active_high) in [
        ("gpio@0x30240000:9", at(0x3024_0000), 9, false),
        ("gpio@0x30240000:9:high", at(0x3024_0000), 9, true),
        ("gpio@pinctrl-bcm2711:25", labelled("pinctrl-bcm2711"), 25, false),
        ("gpio@30240000.gpio:9", labelled("30240000.gpio"), 9, false),
        ("gpio@a:b:63:high", labelled("a:b"), 63, true),
    ] {
        let at = CsLineAt::Kernel(GpioLine { chip, offset });
        assert_eq!(first_line(text), Ok(CsPin { at, active_high }), "{text}");
    }
    let high = CsPin { at: CsLineAt::Native { channel: 3 }, active_high: true };
    assert_eq!(first_line("native3:high"), Ok(high));
    let at = CsLineAt::Gpio { address: 0x3024_0000, bit: 9 };
    assert_eq!(first_line("gpio@0x30240000.9:high"), Ok(CsPin { at, active_high: true }));
}

#[test]
fn a_number_of_a_chip_is_refused_with_the_remedy() {
    for text in [
        "gpiochip4:9",
        "gpio@gpiochip4:9",
        "gpio@/dev/gpiochip4:9",
        "gpio@4:9",
        "gpio@4.9",
        "/dev/gpiochip0:3:high",
    ] {
        let error = first_line(text).expect_err(text);
        let expected = BusTextError::ChipNumber { option: "cs", text: text.to_owned() };
        assert_eq!(error, expected);
        let told = error.to_string();
        assert!(told.contains("gpio@0x30240000:9") && told.contains("gpio@LABEL:9"), "{told}");
        assert!(parse_interrupt_line("--int", text).is_err(), "{text}");
    }
    for text in [
        "3",
        "gpio@30240000:9",
        "gpio@:9",
        "gpio@0x3024000z:9",
        "gpio@label",
        "gpio@label:",
        "gpio@label:x",
    ] {
        let error = first_line(text).expect_err(text);
        assert!(matches!(error, BusTextError::Value { option: "cs", .. }), "{text}: {error:?}");
    }
}

#[test]
fn an_interrupt_line_is_one_of_the_kernel() {
    let line = |chip, offset| GpioLine { chip, offset };
    let read = |text| parse_interrupt_line("--int", text);
    let address = line(GpioChip::At(0x3024_0000), 3);
    assert_eq!(read("gpio@0x30240000:3"), Ok((address.clone(), Sense::Low)));
    assert_eq!(read("gpio@0x30240000:3:high"), Ok((address, Sense::High)));
    for text in ["native0", "gpio@0x30240000.3", "3", ""] {
        let error = read(text).expect_err(text);
        assert!(matches!(error, BusTextError::Value { option: "--int", .. }), "{error:?}");
    }
}

#[test]
fn sharing_a_bank_without_protection_is_said_in_so_many_words() {
    let read = |options: &str| {
        parse_mem(&format!("0x30820000,reference-hz=80M,{options}")).map(|spec| spec.unsafe_shared)
    };
    assert_eq!(read("cs=gpio@0x30240000.9"), Ok(false));
    assert_eq!(read("cs=gpio@0x30240000.9,unsafe-shared"), Ok(true));
    assert!(read("cs=gpio@0x30240000.9,unsafe-shared=yes").is_err());
    let error = read("cs=gpio@0x30240000:9,unsafe-shared").expect_err("no registers");
    assert_eq!(error, BusTextError::Spec(SpecError::NoBankToShare));
}
