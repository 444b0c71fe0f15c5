//! The ioctls that a recorder sees: which, in which order, and every byte of their structs.

use std::cell::Cell;
use std::rc::Rc;

use barewire::bus::Bus;
use barewire::hal::HalDevice;
use barewire::spi::{MODE_3, Mode};
use embedded_hal::spi::{Operation, SpiDevice};

use super::abi::{SpiIocTransfer, TRANSFER_SIZE};
use super::*;

/// A call of the kernel.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Set(Setting),
    Message(Vec<[u8; TRANSFER_SIZE]>),
}

/// Microseconds of a clock that the test controls.
#[derive(Clone, Default)]
struct Clock(Rc<Cell<u64>>);

impl Timer for Clock {
    fn frequency_hz(&self) -> u32 {
        1_000_000
    }
    fn now_ticks(&mut self) -> u64 {
        self.0.set(self.0.get() + 1);
        self.0.get()
    }
    fn sleep_ns(&mut self, ns: u64) {
        self.0.set(self.0.get() + ns.div_ceil(1000));
    }
}

/// Replaces the kernel: records calls, and fails if the test asks for that.
#[derive(Default)]
struct Recorder {
    calls: Vec<Call>,
    /// The time of each message, in microseconds.
    times: Vec<u64>,
    clock: Clock,
    mode: u32,
    fail_set: Option<Errno>,
    /// How many messages succeed before one fails, and its error.
    fail_message: Option<(usize, Errno)>,
    /// By how many bytes the returned length is too short.
    short: usize,
    /// How long a message takes, in microseconds.
    takes_us: u64,
}

impl Ioctl for Recorder {
    fn mode32(&mut self) -> Result<u32, Errno> {
        Ok(self.mode)
    }

    fn max_speed_hz(&mut self) -> Result<u32, Errno> {
        Ok(500_000)
    }

    fn set(&mut self, setting: Setting) -> Result<(), Errno> {
        self.calls.push(Call::Set(setting));
        self.fail_set.map_or(Ok(()), Err)
    }

    fn message(&mut self, message: &Message<'_>) -> Result<usize, Errno> {
        self.calls.push(Call::Message(message.transfers().to_vec()));
        self.times.push(self.clock.0.get());
        self.clock.0.set(self.clock.0.get() + self.takes_us);
        match &mut self.fail_message {
            Some((0, errno)) => Err(*errno),
            Some((left, _)) => {
                *left -= 1;
                Ok(message.len())
            }
            None => Ok(message.len() - self.short),
        }
    }
}

type Tested = Spidev<Recorder, Clock>;
/// The structs of each `SPI_IOC_MESSAGE`.
type Messages = Vec<Vec<[u8; TRANSFER_SIZE]>>;

/// A bus on a kernel that takes everything.
fn bus() -> Bus<Tested> {
    Bus::new(spidev(Recorder::default()))
}

fn spidev(recorder: Recorder) -> Tested {
    let clock = recorder.clock.clone();
    Spidev::new(recorder, clock, "/dev/spidev0.0", 4096).expect("the mode is read")
}

fn settings() -> Settings {
    Settings::new(0, 1_000_000)
}

/// The messages that were sent to the kernel on a bus.
fn messages_on(bus: Bus<Tested>) -> Messages {
    let calls = bus.into_inner().ioctl.calls.into_iter();
    let messages = calls.filter_map(|call| match call {
        Call::Message(transfers) => Some(transfers),
        Call::Set(_) => None,
    });
    messages.collect()
}

/// Runs one message on a new bus, and returns its result and the recorded messages.
fn run_on(
    spidev: Tested,
    settings: Settings,
    message: &mut [Transfer<'_>],
) -> (Result<usize, MessageError>, Messages, Option<SpidevError>) {
    let last_error = spidev.last_error();
    let bus = Bus::new(spidev);
    let ran = bus.device(&settings).expect("settings").sync(message);
    (ran, messages_on(bus), last_error.take())
}

/// As `run_on`, for messages that must succeed.
fn sent(settings: Settings, message: &mut [Transfer<'_>]) -> Messages {
    let (ran, messages, error) = run_on(spidev(Recorder::default()), settings, message);
    ran.expect("the message runs");
    assert_eq!(error, None);
    messages
}

fn address(bytes: &[u8]) -> u64 {
    bytes.as_ptr().addr() as u64
}

const PLAIN: SpiIocTransfer = SpiIocTransfer {
    tx_buf: 0,
    rx_buf: 0,
    len: 0,
    speed_hz: 0,
    delay_usecs: 0,
    bits_per_word: 0,
    cs_change: 0,
    tx_nbits: 0,
    rx_nbits: 0,
    word_delay_usecs: 0,
};

/// The field `len` of each struct of a message.
fn lens(message: &[[u8; TRANSFER_SIZE]]) -> Vec<u32> {
    let len = |t: &[u8; 32]| u32::from_ne_bytes(t[16..20].try_into().expect("4 bytes"));
    message.iter().map(len).collect()
}

fn cs_changes(message: &[[u8; TRANSFER_SIZE]]) -> Vec<u8> {
    message.iter().map(|transfer| transfer[27]).collect()
}

fn delays(message: &[[u8; TRANSFER_SIZE]]) -> Vec<u16> {
    let delay = |t: &[u8; 32]| u16::from_ne_bytes(t[24..26].try_into().expect("2 bytes"));
    message.iter().map(delay).collect()
}

#[test]
fn settings_are_applied_before_the_first_message_and_when_they_change() {
    let bus = bus();
    let slow = bus.device(&settings()).expect("settings");
    let other = Settings { speed_hz: 2_000_000, ..settings() }.with_mode(MODE_3 | Mode::CS_HIGH);
    let other = bus.device(&other).expect("settings");
    let wide = bus.device(&settings().with_bits_per_word(16)).expect("settings");
    for device in [&slow, &slow, &other, &other, &wide] {
        assert_eq!(device.sync(&mut [Transfer::write(&[1, 2])]), Ok(2));
    }
    let kinds = bus.into_inner().ioctl.calls.into_iter().map(|call| match call {
        Call::Set(setting) => Some(setting),
        Call::Message(_) => None,
    });
    let expected = [
        Some(Setting::Mode32(0)),
        Some(Setting::BitsPerWord(8)),
        Some(Setting::MaxSpeedHz(1_000_000)),
        None,
        None,
        Some(Setting::Mode32(7)),
        Some(Setting::MaxSpeedHz(2_000_000)),
        None,
        None,
        Some(Setting::Mode32(0)),
        Some(Setting::BitsPerWord(16)),
        Some(Setting::MaxSpeedHz(1_000_000)),
        None,
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}

#[test]
fn wires_stay_as_the_device_tree_has_them_and_leftovers_go() {
    // The node has 3WIRE, NO_CS, LOOP, CPHA and dual receive.
    let recorder = Recorder { mode: 0x10 | 0x40 | 0x20 | 0x01 | 0x400, ..Recorder::default() };
    let bus = Bus::new(spidev(recorder));
    let device = bus.device(&settings().with_mode(Mode::CPOL)).expect("settings");
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    let first = bus.into_inner().ioctl.calls.remove(0);
    assert_eq!(first, Call::Set(Setting::Mode32(0x10 | 0x400 | 0x02)));
}

#[test]
fn a_device_without_a_chip_select_says_so_to_the_kernel() {
    let bus = bus();
    let device = bus.device(&settings().with_mode(Mode::NO_CS)).expect("settings");
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    let first = bus.into_inner().ioctl.calls.remove(0);
    assert_eq!(first, Call::Set(Setting::Mode32(0x40)));
}

#[test]
fn every_kind_of_buffers_has_its_addresses() {
    let tx = [1, 2, 3];
    let (mut rx, mut both, mut in_place) = ([0; 2], [0; 3], [9; 5]);
    let at = [address(&tx), address(&rx), address(&both), address(&in_place)];
    let messages = sent(
        settings(),
        &mut [
            Transfer::write(&tx),
            Transfer::read(&mut rx),
            Transfer::exchange(&tx, &mut both),
            Transfer::in_place(&mut in_place),
            Transfer::write(&[]),
        ],
    );
    let expected = [
        SpiIocTransfer { tx_buf: at[0], len: 3, ..PLAIN },
        SpiIocTransfer { rx_buf: at[1], len: 2, ..PLAIN },
        SpiIocTransfer { tx_buf: at[0], rx_buf: at[2], len: 3, ..PLAIN },
        SpiIocTransfer { tx_buf: at[3], rx_buf: at[3], len: 5, ..PLAIN },
        PLAIN,
    ];
    assert_eq!(messages, [expected.map(|transfer| transfer.encode())]);
}

#[cfg(target_endian = "little")]
#[test]
fn a_transfer_with_everything_is_these_bytes() {
    let tx = [0; 4];
    let transfer = Transfer::write(&tx)
        .with_speed_hz(0x0012_3456)
        .with_bits_per_word(16)
        .with_delay_ns(19_088_001)
        .with_word_delay_ns(4_001)
        .with_cs_change();
    let messages = sent(settings(), &mut [transfer, Transfer::write(&[])]);
    let mut expected = [0; TRANSFER_SIZE];
    expected[..8].copy_from_slice(&address(&tx).to_ne_bytes());
    expected[16] = 4;
    expected[20..23].copy_from_slice(&[0x56, 0x34, 0x12]);
    expected[24..26].copy_from_slice(&19_089_u16.to_le_bytes());
    expected[26] = 16;
    expected[27] = 1;
    expected[30] = 5;
    assert_eq!(messages, [vec![expected, [0; TRANSFER_SIZE]]]);
}

#[test]
fn delays_are_rounded_up_to_microseconds_and_reported() {
    let asked = Settings {
        cs_setup_ns: 1,
        cs_hold_ns: 1_001,
        cs_inactive_ns: 2_000,
        word_delay_ns: 999,
        ..settings()
    };
    let bus = bus();
    let effective = *bus.device(&asked).expect("settings").effective();
    let expected = Effective {
        speed_hz: 1_000_000,
        cs_setup_ns: 1_000,
        cs_hold_ns: 2_000,
        cs_inactive_ns: 2_000,
        word_delay_ns: 1_000,
        word_rest_clocks: 0,
        quantum_ns: 1_000,
    };
    assert_eq!(effective, expected);
}

#[test]
fn cs_setup_is_an_empty_transfer_and_cs_hold_the_last_delay() {
    let asked = Settings { cs_setup_ns: 3_000, cs_hold_ns: 5_000, ..settings() };
    let messages = sent(
        asked,
        &mut [
            Transfer::write(&[1]),
            Transfer::write(&[2]).with_delay_ns(1).with_cs_change(),
            Transfer::write(&[3]).with_delay_ns(7_000),
        ],
    );
    let [message] = &messages[..] else { panic!("one message") };
    assert_eq!(lens(message), [0, 1, 1, 0, 1]);
    assert_eq!(delays(message), [3, 0, 6, 3, 12]);
    assert_eq!(cs_changes(message), [0, 0, 1, 0, 0]);
}

#[test]
fn a_delay_beyond_its_field_is_refused_with_the_longest() {
    let refused = |asked: Settings| {
        let spidev = spidev(Recorder::default());
        let error = spidev.configure(&asked).expect_err("too long");
        (error, spidev.take_error())
    };
    let max = Settings { cs_hold_ns: 65_535_000, cs_setup_ns: 65_535_000, ..settings() };
    let max = Settings { word_delay_ns: 255_000, cs_inactive_ns: u32::MAX, ..max };
    assert!(spidev(Recorder::default()).configure(&max).is_ok());

    let (error, whole) = refused(Settings { cs_hold_ns: 65_535_001, ..settings() });
    assert_eq!(error, Error::DelayTooLong { asked_ns: 65_535_001 });
    let delay = |what, asked_us, max_us| Some(SpidevError::Delay { what, asked_us, max_us });
    assert_eq!(whole, delay("cs_hold", 65_536, 65_535));
    let (_, whole) = refused(Settings { cs_setup_ns: 70_000_000, ..settings() });
    assert_eq!(whole, delay("cs_setup", 70_000, 65_535));
    let (_, whole) = refused(Settings { word_delay_ns: 255_001, ..settings() });
    assert_eq!(whole, delay("word_delay", 256, 255));

    // A transfer's own delay shares its field with cs_hold.
    let holding = Settings { cs_hold_ns: 35_000, ..settings() };
    for (delay_ns, fits) in [(65_500_000, true), (65_500_001, false)] {
        let message = &mut [Transfer::write(&[1]).with_delay_ns(delay_ns)];
        let (ran, messages, whole) = run_on(spidev(Recorder::default()), holding, message);
        assert_eq!(ran.is_ok(), fits);
        assert_eq!(messages.len(), usize::from(fits), "a refused message is not begun");
        assert_eq!(whole.is_none(), fits);
    }
}

/// The transaction of `operations` on a device of `settings`, with room for 40 transfers.
fn transaction(
    settings: Settings,
    operations: &mut [Operation<'_, u8>],
) -> (Result<(), MessageError>, Messages) {
    let bus = bus();
    let mut device = HalDevice::new(bus.device(&settings).expect("settings")).with_room::<40>();
    let ran = device.transaction(operations);
    (ran, messages_on(bus))
}

#[test]
fn a_delay_of_embedded_hal_beyond_the_field_is_several() {
    for (cs_hold_ns, delay_ns, expected) in [
        (0, 65_535_000, &[65_535, 0][..]),
        (0, 65_535_001, &[65_535, 1, 0]),
        (0, 200_000_000, &[65_535, 65_535, 65_535, 3_395, 0]),
        // Every delay shares its field with cs_hold; the last transfer has cs_hold only.
        (35_000, 131_000_001, &[65_500, 65_500, 1, 35]),
        (0, 2_000_000_000, &[&[65_535; 30][..], &[33_950, 0]].concat()),
    ] {
        let settings = Settings { cs_hold_ns, ..settings() };
        let mut rx = [0];
        let mut operations =
            [Operation::Write(&[1]), Operation::DelayNs(delay_ns), Operation::Read(&mut rx)];
        let (ran, messages) = transaction(settings, &mut operations);
        assert_eq!(ran, Ok(()), "{delay_ns}");
        let [message] = &messages[..] else { panic!("one message") };
        assert_eq!(delays(message), expected, "{delay_ns}");
        // The pieces are transfers without bytes, under one selection.
        let mut expected = vec![0; expected.len()];
        expected[0] = 1;
        *expected.last_mut().expect("the read") = 1;
        assert_eq!(lens(message), expected);
        assert!(cs_changes(message).iter().all(|&cs_change| cs_change == 0));
    }
}

#[test]
fn a_transaction_of_embedded_hal_that_is_too_long_is_told_of_bufsiz() {
    let limits = *bus().device(&settings()).expect("settings").limits();
    assert_eq!((limits.max_delay_ns, limits.max_message_bytes), (65_535_000, 4_096));
    let (ran, messages) = transaction(settings(), &mut [Operation::Write(&[0; 4_096])]);
    assert_eq!((ran, messages.len()), (Ok(()), 1));
    let (ran, messages) = transaction(settings(), &mut [Operation::Write(&[0; 4_097])]);
    let refused = ran.expect_err("is too long");
    assert_eq!(refused.error, Error::MessageTooLong { bytes: 4_224, max_bytes: 4_096 });
    assert!(refused.to_string().contains("spidev.bufsiz="), "{refused}");
    assert!(messages.is_empty());
}

/// A refused message takes no time: the suite counts it as too long, not as one whose delays are
/// missing.
#[test]
fn the_suite_tells_a_message_too_long_from_one_too_short() {
    use barewire_conformance::{Clock, Options, What, run};
    let suite = |step_ns: u64, delays: bool| {
        let bus = bus();
        let device = bus.device(&settings()).expect("settings");
        let mut now_ns = 0;
        let mut clock = || {
            now_ns += step_ns;
            now_ns
        };
        let options = Options { max_len: 8192, loopback: false, delays };
        run(&device, &options, &mut Clock::Nanoseconds(&mut clock))
    };
    let in_time = suite(10_000_000, true);
    assert_eq!(in_time.failures, []);
    assert!(in_time.too_long > 0);
    let at_once = suite(0, true);
    assert_eq!(at_once.too_long, in_time.too_long);
    assert!(at_once.failed > 0);
    assert!(at_once.failures.iter().all(|one| matches!(one.what, What::TooShort { .. })));
    let without = suite(0, false);
    assert_eq!(without.failures, []);
    assert!(without.iterations > 0 && without.iterations < in_time.iterations);
}

#[test]
fn a_clock_below_the_controllers_slowest_is_an_error() {
    let ran = |speed_hz: u32, own_hz: u32, takes_us: u64| {
        let spidev = spidev(Recorder { takes_us, ..Recorder::default() });
        let mut message = [Transfer::write(&[0x9f, 0, 0, 0]).with_speed_hz(own_hz)];
        let (ran, messages, error) =
            run_on(spidev, Settings { speed_hz, ..settings() }, &mut message);
        assert_eq!(messages.len(), 1);
        (ran.map_err(|error| (error.error, error.actual_length)), error)
    };
    // 32 clocks at 1 Hz are 32 s.
    let (failed, why) = ran(1, 0, 150);
    assert_eq!(failed, Err((Error::Os { errno: Errno::INVAL.raw_os_error() }, 0)));
    let why = why.expect("the whole error").to_string();
    assert!(why.contains("faster than 1 Hz") && why.contains("32000000 us"), "{why}");
    assert_eq!(ran(1, 0, 32_000_000), (Ok(4), None));
    // Words of nine bits have two bytes.
    assert_eq!(ran(1, 0, 18_000_000), (Ok(4), None));
    assert!(ran(999, 0, 15_900).0.is_err());
    assert_eq!(ran(999, 0, 16_100), (Ok(4), None));
    // A transfer with a speed of its own takes less, and from 1 kHz nothing is checked.
    assert_eq!(ran(1, 1_000_000, 40), (Ok(4), None));
    assert_eq!(ran(1_000, 0, 0), (Ok(4), None));
}

#[test]
fn what_spidev_has_no_line_or_clock_for_is_refused() {
    let configure = |asked: Settings| spidev(Recorder::default()).configure(&asked).map(drop);
    let other = Settings { chip_select: 1, ..settings() };
    assert_eq!(configure(other), Err(Error::NoSuchChipSelect { chip_select: 1 }));
    assert_eq!(configure(Settings { speed_hz: 0, ..settings() }), Err(Error::SpeedZero));
    let odd = settings().with_bits_per_word(9);
    assert_eq!(configure(odd), Err(Error::BitsPerWord { bits: 9 }));
}

#[test]
fn a_short_cs_inactive_is_the_kernels_and_a_long_one_cuts_the_message() {
    let message = |ns: u32| {
        let (mut a, mut b) = ([0; 1], [0; 2]);
        let first = Transfer::read(&mut a).with_cs_change_delay_ns(ns);
        sent(settings(), &mut [first, Transfer::read(&mut b)])
    };
    for ns in [0, 1, 10_000] {
        let messages = message(ns);
        assert_eq!(messages.len(), 1, "{ns} ns");
        assert_eq!(cs_changes(&messages[0]), [1, 0]);
    }
    let messages = message(10_001);
    assert_eq!(messages.iter().map(|m| lens(m)).collect::<Vec<_>>(), [[1], [2]]);
    assert_eq!(messages.iter().map(|m| cs_changes(m)).collect::<Vec<_>>(), [[0], [0]]);
}

#[test]
fn cs_stays_inactive_as_long_as_asked_between_messages() {
    let failing = Some((1, Errno::IO));
    for (cs_inactive_ns, us, fail_message) in
        [(5_000, 5, None), (1_000_000, 1_000, None), (5_000, 5, failing)]
    {
        let bus = Bus::new(spidev(Recorder { fail_message, ..Recorder::default() }));
        let device = bus.device(&Settings { cs_inactive_ns, ..settings() }).expect("settings");
        for index in 0..3 {
            let ran = device.sync(&mut [Transfer::write(&[1])]);
            assert_eq!(ran.is_ok(), fail_message.is_none() || index == 0);
        }
        let times = bus.into_inner().ioctl.times;
        for pair in times.windows(2) {
            assert!(pair[1] - pair[0] >= us, "{times:?}");
            assert!(pair[1] - pair[0] <= us + 5, "{times:?}");
        }
    }
}

#[test]
fn no_time_is_read_where_none_was_asked() {
    let bus = bus();
    let device = bus.device(&settings()).expect("settings");
    device.sync(&mut [Transfer::write(&[1])]).expect("runs");
    assert_eq!(bus.into_inner().ioctl.clock.0.get(), 0);
}

#[test]
fn a_message_as_long_as_bufsiz_goes_whole() {
    for len in [4095, 4096] {
        let tx = vec![0; len];
        let messages = sent(settings(), &mut [Transfer::write(&tx)]);
        assert_eq!(lens(&messages[0]), [len as u32]);
    }
    // Each direction has its own buffer.
    let (tx, mut rx) = (vec![0; 4096], vec![0; 4096]);
    let messages = sent(settings(), &mut [Transfer::write(&tx), Transfer::read(&mut rx)]);
    assert_eq!(lens(&messages[0]), [4096, 4096]);
}

#[test]
fn a_message_too_long_is_refused_where_cs_would_have_to_stay() {
    let tx = vec![0; 4097];
    let (ran, messages, whole) =
        run_on(spidev(Recorder::default()), settings(), &mut [Transfer::write(&tx)]);
    let nearest = Error::MessageTooLong { bytes: 4224, max_bytes: 4096 };
    assert_eq!(ran, Err(MessageError::refused(nearest, 0)));
    assert!(messages.is_empty());
    let whole = whole.expect("kept");
    assert_eq!(whole, SpidevError::TooLong { bytes: 4224, bufsiz: 4096 });
    let text = whole.to_string();
    assert!(text.contains("options spidev bufsiz="), "{text}");

    // Each transfer is rounded up to 128 bytes: the 33rd is too much, and the error names it.
    let mut message: Vec<_> = (0..33).map(|_| Transfer::write(&[0])).collect();
    let (ran, ..) = run_on(spidev(Recorder::default()), settings(), &mut message);
    assert_eq!(ran, Err(MessageError::refused(nearest, 32)));
    message.truncate(32);
    let (ran, messages, _) = run_on(spidev(Recorder::default()), settings(), &mut message);
    assert_eq!((ran, messages.len()), (Ok(32), 1));
}

#[test]
fn a_long_message_is_split_where_cs_drops_anyway() {
    let block = [0; 1500];
    let mut message: Vec<_> = (0..7).map(|_| Transfer::write(&block)).collect();
    for index in [0, 2, 4] {
        message[index].cs_change = true;
    }
    // CS drops after 1,500, 4,500, 7,500 and 10,500 bytes; rounded up, a block takes 1,536.
    let messages = sent(settings(), &mut message);
    let lens: Vec<_> = messages.iter().map(|m| lens(m).len()).collect();
    assert_eq!(lens, [1, 2, 2, 2], "two blocks fit; three do not");
    let changes: Vec<_> = messages.iter().map(|m| cs_changes(m)).collect();
    assert_eq!(changes, [vec![0], vec![0, 0], vec![0, 0], vec![0, 0]], "CS drops by itself");
}

#[test]
fn cs_change_inside_a_part_stays() {
    let block = [0; 1000];
    let mut message: Vec<_> = (0..6).map(|_| Transfer::write(&block).with_cs_change()).collect();
    message[5].cs_change = false;
    let messages = sent(settings(), &mut message);
    let changes: Vec<_> = messages.iter().map(|m| cs_changes(m)).collect();
    assert_eq!(changes, [vec![1, 1, 1, 0], vec![1, 0]]);
}

#[test]
fn an_ioctl_takes_511_transfers() {
    let transfers = |count| (0..count).map(|_| Transfer::write(&[])).collect::<Vec<_>>();
    let messages = sent(settings(), &mut transfers(511));
    assert_eq!(messages[0].len(), 511);
    let (ran, messages, whole) =
        run_on(spidev(Recorder::default()), settings(), &mut transfers(512));
    let nearest = Error::TooManyTransfers { transfers: 512, max: 511 };
    assert_eq!(ran, Err(MessageError::refused(nearest, 511)));
    assert!(messages.is_empty());
    assert_eq!(whole, Some(SpidevError::TooManyTransfers { transfers: 512 }));

    let mut split = transfers(600);
    split[300].cs_change = true;
    let counts: Vec<_> = sent(settings(), &mut split).iter().map(Vec::len).collect();
    assert_eq!(counts, [301, 299]);

    // The empty transfer that makes cs_setup counts.
    let slow = Settings { cs_setup_ns: 1, ..settings() };
    assert_eq!(sent(slow, &mut transfers(510))[0].len(), 511);
    let (ran, ..) = run_on(spidev(Recorder::default()), slow, &mut transfers(511));
    assert_eq!(ran.map_err(|error| error.transfer_index), Err(510));
}

#[test]
fn an_error_in_a_later_part_is_the_messages() {
    let recorder = Recorder { fail_message: Some((1, Errno::MSGSIZE)), ..Recorder::default() };
    let tx = vec![0; 4096];
    let message = &mut [Transfer::write(&[1]).with_cs_change(), Transfer::write(&tx)];
    let (ran, messages, whole) = run_on(spidev(recorder), settings(), message);
    let error = ran.expect_err("the second part fails");
    assert_eq!((error.transfer_index, error.actual_length), (1, 1));
    assert_eq!(error.error, Error::Os { errno: Errno::MSGSIZE.raw_os_error() });
    assert_eq!(messages.len(), 2);
    assert!(matches!(whole, Some(SpidevError::MessageSize { bufsiz: 4096, .. })), "{whole:?}");
}

#[test]
fn a_bufsiz_that_holds_nothing_is_refused() {
    let spidev = Spidev::new(Recorder::default(), Clock::default(), "/dev/spidev0.0", 64);
    let spidev = spidev.expect("the mode is read");
    let (ran, messages, _) = run_on(spidev, settings(), &mut [Transfer::write(&[1])]);
    assert!(ran.is_err() && messages.is_empty());
}

#[test]
fn what_the_kernel_says_is_told_with_a_remedy() {
    let cases = [
        (Errno::MSGSIZE, "options spidev bufsiz="),
        (Errno::IO, "failed in the middle"),
        (Errno::TIMEDOUT, "dmesg"),
        (Errno::NODEV, "has gone"),
        (Errno::SHUTDOWN, "open the node anew"),
        (Errno::INVAL, "word length, speed or mode"),
        (Errno::NOMEM, "/dev/spidev0.0"),
    ];
    for (errno, remedy) in cases {
        let recorder = Recorder { fail_message: Some((0, errno)), ..Recorder::default() };
        let message = &mut [Transfer::write(&[1])];
        let (ran, messages, whole) = run_on(spidev(recorder), settings(), message);
        let os = Error::Os { errno: errno.raw_os_error() };
        assert_eq!(ran, Err(MessageError::refused(os, 0)));
        assert_eq!(messages.len(), 1, "nothing is sent after an error without CS held");
        let text = whole.expect("kept").to_string();
        assert!(text.contains(remedy) && text.contains("/dev/spidev0.0"), "{errno}: {text}");
    }
    let recorder = Recorder { short: 1, ..Recorder::default() };
    let (ran, _, whole) = run_on(spidev(recorder), settings(), &mut [Transfer::write(&[1, 2])]);
    assert_eq!(ran.map_err(Error::from), Err(Error::Os { errno: Errno::IO.raw_os_error() }));
    assert!(matches!(whole, Some(SpidevError::Short { expected: 2, actual: 1, .. })));
}

#[test]
fn a_setting_refused_is_named_and_asked_again() {
    let bus = Bus::new(spidev(Recorder { fail_set: Some(Errno::INVAL), ..Recorder::default() }));
    let mut spidev = bus.into_inner();
    let lsb_first = settings().with_mode(Mode::LSB_FIRST);
    let (program, _) = spidev.configure(&lsb_first).expect("spidev may have it");
    for _ in 0..2 {
        let mut message = [Transfer::write(&[1])];
        spidev.plan(&program, &mut message).expect("planned");
        let failed = spidev.run(&program, &mut message);
        assert_eq!(failed, Err(Unfinished::os(0, Errno::INVAL.raw_os_error())));
        let text = spidev.take_error().expect("kept").to_string();
        assert!(text.contains("mode 0x8 (MODE_0) with LSB_FIRST"), "{text}");
    }
    let asked = Call::Set(Setting::Mode32(8));
    assert_eq!(spidev.ioctl.calls, [asked.clone(), asked]);
    assert_eq!(spidev.take_error(), None, "taken once");
}

#[test]
fn settings_are_applied_anew_after_an_error() {
    let mut spidev = spidev(Recorder::default());
    let (program, _) = spidev.configure(&settings()).expect("settings");
    for fail in [None, Some((0, Errno::IO)), None] {
        spidev.ioctl.fail_message = fail;
        let mut message = [Transfer::write(&[1])];
        spidev.plan(&program, &mut message).expect("planned");
        assert_eq!(spidev.run(&program, &mut message).is_err(), fail.is_some());
    }
    let sets = spidev.ioctl.calls.iter().filter(|call| matches!(call, Call::Set(_)));
    assert_eq!(sets.count(), 6);
}

#[test]
fn a_prepared_message_is_split_as_it_was_planned() {
    let bus = bus();
    let device = bus.device(&settings()).expect("settings");
    let block = [0; 3000];
    let mut message = [Transfer::write(&block).with_cs_change(), Transfer::write(&block)];
    let mut prepared = device.prepare_message(&mut message).expect("planned");
    assert_eq!(prepared.run(), Ok(6000));
    assert_eq!(prepared.run(), Ok(6000));
    let mut access = device.prepare([0x9f, 0, 0]).expect("planned");
    assert_eq!(access.run(), Ok(&[0; 3]));
    assert_eq!(messages_on(bus).len(), 5);
}

#[test]
fn threads_may_share_a_bus_on_spidev() {
    fn shared<T: Sync>() {}
    fn sent<T: Send>() {}
    shared::<Bus<Spidev>>();
    sent::<crate::MappedRegisters>();
}

#[test]
fn the_nodes_own_clock_is_a_default() {
    assert_eq!(spidev(Recorder::default()).max_speed_hz(), Ok(500_000));
}

/// Bytes of each stretch that CS is active.
fn stretches(lens: impl Iterator<Item = (usize, bool)>) -> Vec<usize> {
    let mut stretches = vec![0];
    for (len, drops) in lens {
        *stretches.last_mut().expect("one is open") += len;
        if drops {
            stretches.push(0);
        }
    }
    assert_eq!(stretches.pop(), Some(0), "CS is inactive at the end");
    stretches
}

proptest::proptest! {
    /// However a message is split, each chip sees its bytes under its chip selects, and no ioctl
    /// exceeds spidev's room.
    #[test]
    fn a_split_changes_nothing_on_the_wire(
        transfers in proptest::collection::vec((0_usize..700, proptest::bool::ANY), 1..40),
        bufsiz in 128_usize..2000,
    ) {
        let buffer = [0; 700];
        let mut message: Vec<_> =
            transfers.iter().map(|&(len, _)| Transfer::write(&buffer[..len])).collect();
        let last = message.len() - 1;
        for (transfer, &(_, cs_change)) in message[..last].iter_mut().zip(&transfers) {
            transfer.cs_change = cs_change;
        }
        let total = transfers.iter().map(|&(len, _)| len).sum();
        let wanted = transfers.iter().enumerate().map(|(i, &(len, drops))| (len, drops || i == last));
        let aligned = |len: usize| len.next_multiple_of(128);
        let fits = stretches(wanted.clone().map(|(len, drops)| (aligned(len), drops)))
            .iter()
            .all(|&bytes| bytes <= bufsiz);

        let spidev = Spidev::new(Recorder::default(), Clock::default(), "/dev/spidev0.0", bufsiz);
        let spidev = spidev.expect("the mode is read");
        let (ran, messages, whole) = run_on(spidev, settings(), &mut message);
        if !fits {
            let refused = matches!(whole, Some(SpidevError::TooLong { bytes, .. }) if bytes > bufsiz);
            proptest::prop_assert!(refused, "{whole:?}");
            proptest::prop_assert!(messages.is_empty());
        } else {
            proptest::prop_assert_eq!(ran, Ok(total));
            for message in &messages {
                let sum: usize = lens(message).iter().map(|&len| aligned(len as usize)).sum();
                proptest::prop_assert!(sum <= bufsiz, "{sum} of {bufsiz}");
                proptest::prop_assert_eq!(cs_changes(message).pop(), Some(0));
            }
            // CS drops at the end of a message too.
            let sent = messages.iter().flat_map(|message| {
                let last = message.len() - 1;
                let pairs = lens(message).into_iter().zip(cs_changes(message)).enumerate();
                pairs.map(move |(i, (len, change))| (len as usize, (change == 1) != (i == last)))
            });
            proptest::prop_assert_eq!(stretches(sent), stretches(wanted));
        }
    }
}
