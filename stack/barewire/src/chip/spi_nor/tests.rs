//! Two users of one chip without 4-byte opcodes: all of one's operations between any two messages
//! of the other's, and a user that dies at any of its messages.

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use super::{Addressing, Enter, NorError, Programming, SpiNor, no_observer};
use crate::chip::testing::Clock;
use crate::chip::{Port, Sharing};
use crate::spi::{Error, MessageError, Transfer};

const MIB: u64 = 1 << 20;
const SIZE: u64 = 32 * MIB;
/// Above the reach of 3-byte addresses; its lower 3 bytes are `HIGH - 16 MiB`.
const HIGH: u64 = 20 * MIB;
/// The number of polls before the chip is ready.
const POLLS: u32 = 3;

/// A W25Q256FV: SFDP of the first edition, 4-byte mode. From its datasheet's instruction descriptions.
struct Flash {
    /// The bytes that differ from [`factory`].
    changed: BTreeMap<u64, u8>,
    four_byte: bool,
    /// The extended address register: 1 after E9h.
    upper: u64,
    enabled: bool,
    busy_polls: u32,
    /// See [`sfdp`].
    extended: bool,
}

/// The initial byte at an address. The upper half is erased.
fn factory(address: u64) -> u8 {
    if address >= SIZE / 2 + MIB { 0xff } else { (address.wrapping_mul(0x9e37_79b9) >> 13) as u8 }
}

/// The SFDP of that part, or, if `extended`, of a part whose bytes above 16 MiB are reached only
/// through an extended address register.
fn sfdp(extended: bool) -> Vec<u8> {
    let mut image = vec![0xff; 0x100];
    image[..8].copy_from_slice(b"SFDP\x00\x01\x00\xff");
    image[8..16].copy_from_slice(&[0, 0, 1, 9, 0x80, 0, 0, 0xff]);
    let words = [0xfff3_20e5_u32, 0x0fff_ffff, 0, 0, 0, 0, 0, 0x520f_200c, 0x0000_d810];
    for (index, word) in words.iter().enumerate() {
        image[0x80 + 4 * index..][..4].copy_from_slice(&word.to_le_bytes());
    }
    if extended {
        image[11] = 16;
        image[0x80 + 36..0x80 + 60].fill(0);
        image[0x80 + 60..][..4].copy_from_slice(&(1_u32 << 26 | 1 << 16).to_le_bytes());
    }
    image
}

impl Flash {
    fn new() -> Self {
        let changed = BTreeMap::new();
        Self { changed, four_byte: false, upper: 0, enabled: false, busy_polls: 0, extended: false }
    }

    fn at(&self, address: u64) -> u8 {
        let address = address % SIZE;
        self.changed.get(&address).copied().unwrap_or_else(|| factory(address))
    }

    /// One selection. Returns the bytes on MISO.
    fn exchange(&mut self, sent: &[u8]) -> Vec<u8> {
        let mut answer = vec![0xff; sent.len()];
        if sent[0] == 0x05 {
            let busy = u8::from(self.busy_polls > 0);
            self.busy_polls = self.busy_polls.saturating_sub(1);
            answer[1..].fill(busy | u8::from(self.enabled) << 1);
            return answer;
        }
        if self.busy_polls > 0 {
            return answer;
        }
        let (width, upper) = if self.four_byte { (4, 0) } else { (3, self.upper) };
        let address = |width: usize| {
            let bytes = sent.get(1..=width).expect("an address");
            bytes.iter().fold(upper, |address, &byte| address << 8 | u64::from(byte))
        };
        match sent[0] {
            0x9f => answer[1..4].copy_from_slice(&[0xef, 0x40, 0x19]),
            0x5a => {
                let from = address(3) as usize & 0xff_ffff;
                answer[5..].copy_from_slice(&sfdp(self.extended)[from..from + sent.len() - 5]);
            }
            0x35 => answer[1..].fill(0),
            0x03 => {
                let from = address(width);
                for (index, byte) in answer[1 + width..].iter_mut().enumerate() {
                    *byte = self.at(from + index as u64);
                }
            }
            0x06 => self.enabled = true,
            0x04 => self.enabled = false,
            0xb7 => self.four_byte = true,
            0xe9 => (self.four_byte, self.upper) = (false, 1),
            0xc5 if self.enabled => self.upper = u64::from(sent[1]),
            0xc5 => {}
            0x02 if self.enabled => {
                let from = address(width);
                for (index, byte) in sent[1 + width..].iter().enumerate() {
                    let at = (from & !0xff | (from + index as u64) & 0xff) % SIZE;
                    let value = self.at(at) & byte;
                    self.changed.insert(at, value);
                }
                self.worked();
            }
            0x20 | 0x52 | 0xd8 if self.enabled => {
                let size = [0x1000, 0x8000, 0x1_0000][usize::from(sent[0] >> 6)];
                let from = address(width) / size * size;
                self.changed.extend((from..from + size).map(|at| (at % SIZE, 0xff)));
                self.worked();
            }
            0x02 | 0x20 | 0x52 | 0xd8 => {}
            opcode => panic!("{opcode:02x} is no command of the chip"),
        }
        answer
    }

    fn worked(&mut self) {
        self.enabled = false;
        self.busy_polls = POLLS;
    }

    /// Whether the chip is in the state that a boot ROM needs.
    fn rests(&self) -> bool {
        !self.four_byte && self.upper == 0 && !self.enabled && self.busy_polls == 0
    }
}

type Intruder = Box<dyn FnOnce(&Rc<Scene>)>;

/// The chip, its user, and the interruption.
struct Scene {
    chip: RefCell<Flash>,
    sharing: Sharing,
    held: Cell<bool>,
    messages: Cell<u32>,
    /// The first user's message at which the other comes in.
    intruder: RefCell<Option<(u32, Intruder)>>,
}

impl Scene {
    fn new(sharing: Sharing) -> Rc<Self> {
        Rc::new(Self {
            chip: RefCell::new(Flash::new()),
            sharing,
            held: Cell::new(false),
            messages: Cell::new(0),
            intruder: RefCell::new(None),
        })
    }
}

struct User {
    world: Rc<Scene>,
    /// The other user comes in between.
    first: bool,
    /// After this many messages nothing reaches the wire any more.
    dies_after: Option<u32>,
}

impl User {
    fn open(
        world: &Rc<Scene>,
        first: bool,
        dies_after: Option<u32>,
    ) -> Result<TestedNor, NorError> {
        SpiNor::new(Self { world: Rc::clone(world), first, dies_after }, Clock(0))
    }
}

type TestedNor = SpiNor<User, Clock>;

impl Port for User {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        if self.first {
            let number = self.world.messages.get();
            self.world.messages.set(number + 1);
            let free = !self.world.held.get();
            let due = self.world.intruder.borrow().as_ref().is_some_and(|(at, _)| *at <= number);
            if due && (free || self.world.sharing == Sharing::Alone) {
                let (_, intrude) = self.world.intruder.take().expect("just seen");
                intrude(&self.world);
            }
        }
        match &mut self.dies_after {
            Some(0) => return Err(MessageError::refused(Error::Timeout { timeout_us: 0 }, 0)),
            Some(left) => *left -= 1,
            None => {}
        }
        let mut sent = Vec::new();
        for transfer in &*message {
            match transfer.data().tx() {
                Some(tx) => sent.extend_from_slice(tx),
                None => sent.resize(sent.len() + transfer.data().len(), 0),
            }
        }
        let answer = self.world.chip.borrow_mut().exchange(&sent);
        let mut at = 0;
        for transfer in message {
            let len = transfer.data().len();
            if let Some(rx) = transfer.rx_mut() {
                rx.copy_from_slice(&answer[at..at + len]);
            }
            at += len;
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        20_000_000
    }

    fn begin(&mut self) -> Result<Sharing, MessageError> {
        if self.first {
            // A point between two operations is also between two messages.
            let number = self.world.messages.get();
            let due = self.world.intruder.borrow().as_ref().is_some_and(|(at, _)| *at <= number);
            if due && let Some((_, intrude)) = self.world.intruder.take() {
                intrude(&self.world);
            }
        }
        assert!(!self.world.held.replace(true) || self.world.sharing == Sharing::Alone);
        Ok(self.world.sharing)
    }

    fn end(&mut self) {
        self.world.held.set(false);
    }
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| ((at + seed).wrapping_mul(0x2545_f491) >> 11) as u8).collect()
}

/// The first user: reads high and low, writes into the middle of a used sector, reads again.
fn first(world: &Rc<Scene>) -> Result<bool, NorError> {
    let mut chip = User::open(world, true, None)?;
    let mut right = true;
    for offset in [HIGH - 0x20, 0x1000] {
        let mut read = [0; 0x100];
        chip.read(offset, &mut read)?;
        right &= (offset..).zip(read).all(|(at, byte)| byte == factory(at));
    }
    let data = bytes(1, 600);
    let mut scratch = vec![0; 4096];
    chip.write(HIGH + 0x1100, &data, &mut scratch, &mut no_observer)?;
    chip.write(HIGH + 0x1180, &bytes(2, 600), &mut scratch, &mut no_observer)?;
    Ok(right)
}

/// The other user: identifies the chip, reads, writes next to the first one's data, leaves.
fn other(world: &Rc<Scene>, dies_after: Option<u32>) -> Result<bool, NorError> {
    let mut chip = User::open(world, false, dies_after)?;
    let mut read = [0; 0x100];
    chip.read(0x5000, &mut read)?;
    let right = (0x5000..).zip(read).all(|(at, byte)| byte == factory(at));
    let mut scratch = vec![0; 4096];
    chip.write(HIGH + 0x1f00, &bytes(3, 300), &mut scratch, &mut no_observer)?;
    Ok(right)
}

/// Whether the chip holds what both users wrote, and no other byte changed.
fn holds(world: &Scene, other_wrote: bool) -> bool {
    let chip = world.chip.borrow();
    let mut expected: BTreeMap<u64, u8> = BTreeMap::new();
    expected.extend((HIGH + 0x1100..).zip(bytes(1, 600)));
    expected.extend((HIGH + 0x1180..).zip(bytes(2, 600)));
    if other_wrote {
        expected.extend((HIGH + 0x1f00..).zip(bytes(3, 300)));
    }
    let others_are = |at: u64| !other_wrote && (HIGH + 0x1000..HIGH + 0x3000).contains(&at);
    expected.iter().all(|(&at, &byte)| chip.at(at) == byte)
        && chip.changed.iter().all(|(&at, &byte)| {
            expected.get(&at).is_some_and(|&expected| byte == expected)
                || byte == factory(at)
                || others_are(at)
        })
}

/// Runs with the other user coming in at message `at`. Returns whether all is right; `None` beyond
/// the last message.
fn interleaved(sharing: Sharing, at: u32) -> Option<bool> {
    let world = Scene::new(sharing);
    let outcome = Rc::new(Cell::new(None));
    let told = Rc::clone(&outcome);
    let intrude = move |world: &Rc<Scene>| told.set(Some(other(world, None) == Ok(true)));
    *world.intruder.borrow_mut() = Some((at, Box::new(intrude)));
    let right = first(&world) == Ok(true);
    Some(right & outcome.get()? & holds(&world, true) & world.chip.borrow().rests())
}

#[test]
#[cfg_attr(miri, ignore = "many long runs, without unsafe code")]
fn anothers_operations_between_any_two_messages_change_nothing() {
    let mut at = 0;
    while let Some(right) = interleaved(Sharing::Shared, at) {
        assert!(right, "at message {at}");
        at += 1;
    }
    assert!(at > 40, "{at} messages");
}

#[test]
#[cfg_attr(miri, ignore = "many long runs, without unsafe code")]
fn without_operations_they_would() {
    let wrong = (0..).map_while(|at| interleaved(Sharing::Alone, at)).filter(|right| !right);
    assert!(wrong.count() > 20, "this test's chip and users can tell");
}

#[test]
#[cfg_attr(miri, ignore = "many long runs, without unsafe code")]
fn a_user_that_dies_at_any_message_leaves_nothing_behind() {
    for at in [0, 30] {
        for messages in 0.. {
            let world = Scene::new(Sharing::Shared);
            let died = Rc::new(Cell::new(None));
            let told = Rc::clone(&died);
            let intrude =
                move |world: &Rc<Scene>| told.set(Some(other(world, Some(messages)).is_err()));
            *world.intruder.borrow_mut() = Some((at, Box::new(intrude)));
            assert_eq!(first(&world), Ok(true), "dies after {messages}, from message {at} on");
            assert!(holds(&world, false), "dies after {messages}, from message {at} on");
            assert!(world.chip.borrow().rests(), "dies after {messages}, from message {at} on");
            if died.get() == Some(false) {
                assert!(messages > 20, "{messages}");
                break;
            }
        }
    }
}

#[test]
fn a_user_alone_enters_the_mode_once_and_leaves_it_in_the_end() {
    let world = Scene::new(Sharing::Alone);
    let mut chip = User::open(&world, true, None).expect("opens");
    assert!(world.chip.borrow().four_byte);
    let before = world.messages.get();
    chip.read(HIGH, &mut [0; 16]).expect("reads");
    assert_eq!(world.messages.get() - before, 1);
    drop(chip);
    assert!(world.chip.borrow().rests());
}

#[test]
#[cfg_attr(miri, ignore = "many messages, without unsafe code")]
fn an_extended_address_register_reaches_all_and_is_left_at_0() {
    for sharing in [Sharing::Alone, Sharing::Shared] {
        let world = Scene::new(sharing);
        world.chip.borrow_mut().extended = true;
        let mut chip = User::open(&world, true, None).expect("opens");
        assert_eq!(chip.geometry().addressing, Addressing::ExtendedAddress);
        let from = SIZE / 2 - 100;
        let mut read = [0; 200];
        chip.read(from, &mut read).expect("reads");
        assert!((from..).zip(read).all(|(at, byte)| byte == factory(at)), "across 16 MiB");
        let data = bytes(4, 300);
        chip.write(HIGH + 5, &data, &mut [0; 4096], &mut no_observer).expect("writes");
        chip.read(0x1000, &mut read).expect("reads");
        assert!((0x1000..).zip(read).all(|(at, byte)| byte == factory(at)), "and back below");
        drop(chip);
        let chip = world.chip.borrow();
        assert!((HIGH + 5..).zip(data).all(|(at, byte)| chip.at(at) == byte));
        assert!(chip.rests(), "{sharing:?}: {} in the register", chip.upper);
    }
}

#[test]
#[cfg_attr(miri, ignore = "ten seconds of polls, without unsafe code")]
fn a_shared_chip_that_stays_busy_is_occupied() {
    let world = Scene::new(Sharing::Shared);
    let mut chip = User::open(&world, true, None).expect("opens");
    world.chip.borrow_mut().busy_polls = u32::MAX;
    let error = chip.read(0, &mut [0; 4]).expect_err("nobody can read it");
    assert!(matches!(error, NorError::Occupied { status: 1, .. }), "{error}");
    assert!(!world.held.get(), "the next is let in");
}

#[test]
fn a_part_known_by_its_id_has_its_datasheets_times_and_pages() {
    let world = Scene::new(Sharing::Alone);
    let chip = User::open(&world, true, None).expect("opens");
    let geometry = *chip.geometry();
    assert_eq!(geometry.name, Some("W25Q256FV"));
    assert_eq!(geometry.addressing, Addressing::FourByteMode { enter: Enter::En4b });
    assert_eq!(geometry.programming, Programming::Page { size: 256 });
    let ms = |ns: u64| ns / 1_000_000;
    let erase: Vec<_> = geometry
        .erase_types()
        .map(|erase| (erase.size >> 10, ms(erase.typical_ns), ms(erase.max_ns)))
        .collect();
    assert_eq!(erase, [(4, 45, 400), (32, 120, 1_600), (64, 150, 2_000)]);
    assert!(geometry.times_known);
}

/// A user whose controller samples MISO one clock late, or to whom no chip answers.
struct Sampled {
    user: User,
    late: bool,
    noise: u8,
}

impl Port for Sampled {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        self.user.run(message)?;
        let mut before = 1;
        for byte in message.iter_mut().filter_map(Transfer::rx_mut).flatten() {
            if self.late {
                (*byte, before) = (before << 7 | *byte >> 1, *byte & 1);
            } else {
                self.noise = self.noise.wrapping_mul(5).wrapping_add(113);
                *byte = self.noise;
            }
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        self.user.speed_hz()
    }
}

#[test]
fn a_chip_that_is_sampled_late_or_not_there_is_told_from_an_unknown_one() {
    let open = |late| {
        let user = User { world: Scene::new(Sharing::Alone), first: false, dies_after: None };
        SpiNor::new(Sampled { user, late, noise: 7 }, Clock(0)).map(|_| ()).expect_err("no chip")
    };
    assert!(matches!(open(true), NorError::Shifted { late: true, .. }), "{:?}", open(true));
    assert!(matches!(open(false), NorError::Unstable { .. }), "{:?}", open(false));
}

/// A chip that has an id and SFDP, and is otherwise zeros.
struct Says {
    id: [u8; 3],
    sfdp: Vec<u8>,
}

impl Port for Says {
    fn run(&mut self, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        let sent = message[0].data().tx().expect("a command").to_vec();
        for byte in message.iter_mut().filter_map(Transfer::rx_mut) {
            byte.fill(0);
            match sent[0] {
                0x9f => byte[1..].copy_from_slice(&self.id),
                0x5a => byte.copy_from_slice(&self.sfdp[usize::from(sent[3])..][..byte.len()]),
                _ => {}
            }
        }
        Ok(())
    }

    fn speed_hz(&self) -> u32 {
        20_000_000
    }
}

/// Both were found by fuzzing.
#[test]
fn a_lock_register_of_no_known_form_and_a_register_at_the_end_of_all_addresses() {
    // An SST26 of 1 KiB, with blocks of 256 bytes.
    let mut small = sfdp(false);
    small[0x84..0x88].copy_from_slice(&0x1fff_u32.to_le_bytes());
    small[0x9c..0xa0].copy_from_slice(&[8, 0x20, 0, 0]);
    let says = Says { id: [0xbf, 0x26, 0x43], sfdp: small };
    let mut chip = SpiNor::new(says, Clock(0)).expect("opens");
    assert!(chip.protection().expect("reads").power_up, "it is taken for locked");
    // A sector map that is chosen by a register at ffffffffh.
    let mut far = sfdp(false);
    far[6] = 1;
    far[16..24].copy_from_slice(&[0x81, 0, 1, 2, 0xc0, 0, 0, 0xff]);
    let command = 1_u32 << 24 | 3 << 22 | 15 << 16 | 0x65 << 8;
    far[0xc0..0xc4].copy_from_slice(&command.to_le_bytes());
    let says = Says { id: [0x77, 0, 0], sfdp: far };
    let chip = SpiNor::new(says, Clock(0)).expect("opens");
    assert!(chip.geometry().notes.iter().any(|note| note == super::Note::SectorMap));
}
