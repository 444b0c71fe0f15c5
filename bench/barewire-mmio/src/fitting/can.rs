//! A CAN controller on a CAN bus with one other node, which sends every frame back.
//!
//! After the rates the text may name a fault: see [`Trouble`].
//!
//! The far node flips the lowest bit of the identifier, so that the two never send the same one at once. It
//! keeps order: a frame that it hears waits behind those that it has yet to send.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::chip::Ps;
use barewire_sim::model::can::{BitTimes, CanBus, CanFrame, CanNode, Counters, Fault, Span};
use barewire_sim::model::mcp2518fd::{Mcp2518Fd, Options};

use super::{FitError, FittedChip};

const OSCILLATOR_HZ: u32 = 40_000_000;
/// With [`Trouble::Off`], the first frame that is destroyed, and how many are: each attempt adds 8 to the transmit error
/// counter, and beyond 255 the node is off.
const OFF_FIRST: u64 = 100;
const OFF_FRAMES: u64 = 32;
/// With [`Trouble::Flood`], the frames that the far node sends behind one another, and the SPI clock.
const FLOOD: usize = 200;
const FLOOD_HZ: u32 = 1_000_000;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    /// An error flag destroys every twelfth frame, which is sent again. A successful one takes 1 from the error counter to
    /// which it adds 8, so the counter stays low.
    Flags,
    /// Every 50th read with a CRC arrives with a wrong bit.
    Crc,
    /// Every 50th read of registers that change has the CRC of other data: errata DS80000789 and DS80000792.
    Errata,
    /// Every 500th word of RAM has a flipped bit, which ECC corrects.
    Ecc,
    /// The hundredth frame is destroyed so often that its sender is off.
    Off,
    /// The first frame that the far node hears makes it send 200 of 64 bytes, more than the chip's FIFO holds: its SPI runs at
    /// 1 MHz.
    Flood,
}

/// Their names.
const TROUBLES: [(&str, Trouble); 6] = [
    ("flags", Trouble::Flags),
    ("crc", Trouble::Crc),
    ("errata", Trouble::Errata),
    ("ecc", Trouble::Ecc),
    ("off", Trouble::Off),
    ("flood", Trouble::Flood),
];

impl Trouble {
    fn parse(name: &str) -> Result<Self, FitError> {
        let found = TROUBLES.iter().find(|(known, _)| *known == name).map(|(_, trouble)| *trouble);
        found.ok_or_else(|| {
            let names = TROUBLES.map(|(name, _)| name).join(", ");
            FitError(format!("no trouble is called {name:?}; there are {names}"))
        })
    }

    fn options(self) -> Options {
        let every = NonZeroU32::new;
        let mut options = Options { oscillator_hz: OSCILLATOR_HZ, ..Options::default() };
        match self {
            Self::Crc => options.faults.read_crc_corrupt_every = every(50),
            Self::Errata => options.errata.read_crc_every = every(50),
            Self::Ecc => options.faults.ram_flip_every = every(500),
            Self::None | Self::Flags | Self::Off | Self::Flood => {}
        }
        options
    }
}

/// The other node.
#[derive(Default)]
struct Far {
    counters: Counters,
    queue: VecDeque<(Ps, CanFrame)>,
    received: u64,
    sent: u64,
    /// A sum over what was heard and its order, and over what was sent.
    heard_sum: u64,
    sent_sum: u64,
    most_queued: usize,
    /// Frames to be sent when the first one is heard.
    flood: usize,
}

fn summed(sum: u64, frame: &CanFrame) -> u64 {
    // FNV-1a, which the guest's program computes too.
    let bytes = frame.id.to_le_bytes().into_iter().chain(frame.data().iter().copied());
    bytes.fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

impl CanNode for Far {
    fn name(&self) -> &str {
        "far node"
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    fn wants(&self) -> Ps {
        self.queue.front().map_or(Ps::MAX, |(from, _)| *from)
    }

    fn offer(&mut self, _at: Ps) -> Option<CanFrame> {
        self.queue.front().map(|(_, frame)| *frame)
    }

    fn sent(&mut self, _at: Ps, _span: Span) {
        if let Some((_, frame)) = self.queue.pop_front() {
            self.sent += 1;
            self.sent_sum = summed(self.sent_sum, &frame);
        }
    }

    fn received(&mut self, at: Ps, frame: &CanFrame, _span: Span) {
        self.received += 1;
        for number in 0..std::mem::take(&mut self.flood) {
            let frame = CanFrame::fd(0x701, &[number as u8; 64], true);
            self.queue.push_back((at, frame));
        }
        let mut back = *frame;
        back.id ^= 1;
        self.heard_sum = summed(self.heard_sum, &back);
        self.queue.push_back((at, back));
        self.most_queued = self.most_queued.max(self.queue.len());
    }
}

/// `NOMINAL/DATA`, in bits a second.
fn rates(text: &str) -> Result<BitTimes, FitError> {
    let rate = |text: &str| text.parse().ok().filter(|rate| (10_000..=8_000_000).contains(rate));
    let pair = text.split_once('/').and_then(|(nominal, data)| rate(nominal).zip(rate(data)));
    let (nominal, data): (u32, u32) = pair
        .ok_or_else(|| FitError("rates are NOMINAL/DATA in bit/s, like 500000/2000000".into()))?;
    Ok(BitTimes::from_rates(nominal, data))
}

pub(super) fn fit(board: &Board, cs: u8, text: Option<&str>) -> Result<FittedChip, FitError> {
    let text = text.unwrap_or("500000/2000000");
    let (bit_rates, trouble) = text.split_once(',').map_or((text, None), |(a, b)| (a, Some(b)));
    let trouble = trouble.map_or(Ok(Trouble::None), Trouble::parse)?;
    let bus = CanBus::new(rates(bit_rates)?);
    bus.set_recording(false);
    let chip = Mcp2518Fd::new(&bus, trouble.options());
    let flood = if trouble == Trouble::Flood { FLOOD } else { 0 };
    let far = Rc::new(RefCell::new(Far { flood, ..Far::default() }));
    bus.attach(far.clone());
    match trouble {
        Trouble::Flags => bus.inject(Fault::ErrorFlags { first: 20, every: 12, bit: 15 }),
        Trouble::Off => (OFF_FIRST..OFF_FIRST + OFF_FRAMES)
            .for_each(|frame| bus.inject(Fault::ErrorFlag { frame, bit: 15 })),
        _ => {}
    }
    let max_hz = if trouble == Trouble::Flood { FLOOD_HZ } else { 17_000_000 };
    let mut fitted = FittedChip::new(cs, "can", "microchip,mcp2518fd", max_hz);
    fitted.line = Some(board.line_of(chip.int()));
    fitted.properties.push("clocks = <&can_clock>;".into());
    fitted.beside.push(format!(
        "can_clock: can-clock {{ compatible = \"fixed-clock\"; #clock-cells = <0>; \
         clock-frequency = <{OSCILLATOR_HZ}>; }};"
    ));
    board.attach(cs, Rc::new(RefCell::new(chip)));
    fitted.tell = Box::new(move || {
        let far = far.borrow();
        let Far { received, sent, heard_sum, sent_sum, most_queued, .. } = *far;
        vec![format!(
            "can: {} frames on the bus; the far node heard {received} ({heard_sum:016x}), sent {sent} \
             ({sent_sum:016x}), queued {most_queued} at most",
            bus.frames()
        )]
    });
    Ok(fitted)
}
