//! A CAN controller on a CAN bus with one other node, which sends every frame back.
//!
//! The far node flips the lowest bit of the identifier, so that the two never send the same one at once. It
//! keeps order: a frame that it hears waits behind those that it has yet to send.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use barewire_sim::Board;
use barewire_sim::chip::Ps;
use barewire_sim::model::can::{BitTimes, CanBus, CanFrame, CanNode, Counters, Span};
use barewire_sim::model::mcp2518fd::{Mcp2518Fd, Options};

use super::{FitError, Fitted};

const OSCILLATOR_HZ: u32 = 40_000_000;

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

pub(super) fn fit(board: &Board, cs: u8, text: Option<&str>) -> Result<Fitted, FitError> {
    let bus = CanBus::new(rates(text.unwrap_or("500000/2000000"))?);
    bus.set_recording(false);
    let options = Options { oscillator_hz: OSCILLATOR_HZ, ..Options::default() };
    let chip = Mcp2518Fd::new(&bus, options);
    let far = Rc::new(RefCell::new(Far::default()));
    bus.attach(far.clone());
    let mut fitted = Fitted::new(cs, "can", "microchip,mcp2518fd", 17_000_000);
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
