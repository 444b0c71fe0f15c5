//! `barewire can gen`: sends frames, and sees that all of them arrive.
//!
//! # How it works
//! Our chip gets one frame after the other, none before its time. It confirms each frame that was
//! sent and acknowledged. On a simulated board each frame that the far node received is compared
//! with what was sent, while the command runs: only frames on their way are kept.
//!
//! The bus load is the time of all frames, their three bits of intermission included, over the time from
//! the first one's begin to the last one's end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use barewire::chip::mcp251xfd::{CanError, Config, ErrorState};
use barewire_sim::model::can::{BitTimes, Feed};
use serde::Serialize;

use super::args::{CanArgs, Which};
use super::far::{Far, FarArgs};
use super::frame::CanFrame;
use super::node::{Counters, Node};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::progress::Progress;
use crate::shared::session::{self, Figures, Session};
use crate::shared::text::figure;

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const INTERMISSION_BITS: u64 = 3;
/// The longest single wait.
const SLICE_NS: u64 = 1_000_000;
/// The longest single wait until a frame is due. Ctrl-C is checked between waits.
const DUE_SLICE_NS: u64 = 100_000_000;
/// Frames between two steps of the progress bar.
const STEP: u64 = 64;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    can: CanArgs,
    #[command(flatten)]
    far: FarArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    frames_sent: u64,
    /// The frames that the far node received.
    frames_received: Option<u64>,
    frames_lost: Option<u64>,
    frames_reordered: Option<u64>,
    frames_per_s: Option<f64>,
    bus_load_percent: Option<f64>,
    #[serde(flatten)]
    counters: Counters,
    spi_accesses_per_frame: Option<f64>,
    interrupted: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let far = args.far.settle(args.can.fd, Far::default())?;
    let mut request = args.can.request()?;
    if let Some(path) = args.far.replay() {
        request = request.reading("--replay", path);
    }
    session::run(&request, |session| generate(args, &far, session))
}

/// The frames sent so far.
struct SentFrames {
    times: BitTimes,
    /// Given to the chip, and not yet confirmed.
    pending: VecDeque<(u8, CanFrame)>,
    confirmed: u64,
    first_sof_us: Option<u64>,
    last_eof_ps: u64,
    busy_ps: u64,
    /// Confirmations that were not the next one's.
    strange: u64,
}

impl SentFrames {
    fn new(times: BitTimes) -> Self {
        Self {
            times,
            pending: VecDeque::new(),
            confirmed: 0,
            first_sof_us: None,
            last_eof_ps: 0,
            busy_ps: 0,
            strange: 0,
        }
    }

    fn confirm(&mut self, sequence: u8, sof_us: u64) {
        let Some((expected, frame)) = self.pending.pop_front() else {
            self.strange += 1;
            return;
        };
        self.strange += u64::from(expected != sequence);
        self.confirmed += 1;
        self.first_sof_us.get_or_insert(sof_us);
        let frame_ps = frame.to_sim().shape().duration(self.times);
        self.last_eof_ps = sof_us * PS_PER_US + frame_ps;
        self.busy_ps += frame_ps + INTERMISSION_BITS * self.times.nominal_ps;
    }

    /// From the first frame's begin to the last one's end and intermission.
    fn span_ps(&self) -> Option<u64> {
        let span_ps = self.last_eof_ps.checked_sub(self.first_sof_us? * PS_PER_US)?;
        Some(span_ps + INTERMISSION_BITS * self.times.nominal_ps)
    }
}

/// Reads from the chip which frames were sent.
fn confirm(node: &mut Node<'_>, sent: &mut SentFrames) -> Result<(), Failure> {
    let clock = node.clock();
    let mut bus_off = false;
    node.serve(|seen| {
        if let Some(transmitted) = seen.found.transmitted {
            sent.confirm(transmitted.sequence, clock.at_us(transmitted.timestamp));
        }
        bus_off |= seen.found.state == Some(ErrorState::BusOff);
        Ok(())
    })?;
    if bus_off { Err(CanError::BusOff.into()) } else { Ok(()) }
}

/// Says whom to blame for a frame that does not go out.
fn stuck(node: &mut Node<'_>, far: &Far, sent: &SentFrames) -> Failure {
    let after = figure::time((far.patience_ps / PS_PER_NS) as f64);
    let Counters { transmit_errors, receive_errors, error_state } = match node.error_counters() {
        Ok(counters) => Counters::of(counters),
        Err(error) => return error,
    };
    let why = match transmit_errors {
        0 => "do others have the bus, or is -p shorter than a frame?",
        _ => "does anybody acknowledge?",
    };
    Failure::Failed(format!(
        "nothing went out for {after} (-p) after {} frames; TEC {transmit_errors}, REC {receive_errors}, \
         error {error_state}: {why}",
        figure::grouped(sent.confirmed)
    ))
}

/// Waits until the chip has taken `frame`. False: Ctrl-C came first.
fn hand_over(
    node: &mut Node<'_>,
    far: &Far,
    sent: &mut SentFrames,
    frame: CanFrame,
) -> Result<bool, Failure> {
    let chip_frame = frame.to_chip().ok_or_else(|| {
        Failure::Failed(format!("{frame} is sent by nobody: a classic DLC above 8"))
    })?;
    // On a CAN bus faster than SPI there is always a place free, and no reason to wait: but confirmations
    // have no more places than frames.
    let most = usize::from(node.config().tx_objects);
    let begun_ns = node.now_ns();
    loop {
        if sent.pending.len() < most
            && let Some(sequence) = node.transmit(&chip_frame)?
        {
            sent.pending.push_back((sequence, frame));
            return Ok(true);
        }
        if interrupt::asked() {
            return Ok(false);
        }
        if (node.now_ns() - begun_ns) * PS_PER_NS >= far.patience_ps {
            return Err(stuck(node, far, sent));
        }
        if node.wait(SLICE_NS) {
            confirm(node, sent)?;
        }
    }
}

/// Sends the frames. False: Ctrl-C came first.
fn send(
    node: &mut Node<'_>,
    far: &Far,
    sent: &mut SentFrames,
    given: &mut impl FnMut(CanFrame),
    progress: &Progress,
) -> Result<bool, Failure> {
    let start_ns = node.now_ns();
    for (at_ps, frame) in far.frames() {
        loop {
            if interrupt::asked() {
                return Ok(false);
            }
            match (start_ns + at_ps / PS_PER_NS).saturating_sub(node.now_ns()) {
                0 => break,
                left_ns if node.wait(left_ns.min(DUE_SLICE_NS)) => confirm(node, sent)?,
                _ => {}
            }
        }
        if !hand_over(node, far, sent, frame)? {
            return Ok(false);
        }
        given(frame);
        if sent.confirmed.is_multiple_of(STEP) {
            progress.set(sent.confirmed);
        }
    }
    let mut confirmed = (sent.confirmed, node.now_ns());
    while !sent.pending.is_empty() {
        if interrupt::asked() {
            return Ok(false);
        }
        if node.wait(SLICE_NS) {
            confirm(node, sent)?;
        }
        let now_ns = node.now_ns();
        if sent.confirmed != confirmed.0 {
            confirmed = (sent.confirmed, now_ns);
        } else if (now_ns - confirmed.1) * PS_PER_NS > far.patience_ps {
            return Err(stuck(node, far, sent));
        }
    }
    Ok(true)
}

/// The most frames that were given to the chip and not yet heard. The chip holds fewer.
const UNHEARD_MAX: usize = 1_024;

/// Compares the frames that the far node hears with the frames given to the chip.
#[derive(Default)]
struct Comparison {
    given: u64,
    received: u64,
    in_order: u64,
    /// Given, and not yet heard.
    unheard: VecDeque<CanFrame>,
    /// Heard since the last comparison.
    heard: Vec<CanFrame>,
}

impl Comparison {
    /// A frame was given to the chip. The far node may have heard it already.
    fn give(&mut self, frame: CanFrame) {
        self.given += 1;
        if self.unheard.len() == UNHEARD_MAX {
            self.unheard.pop_front();
        }
        self.unheard.push_back(frame);
        self.compare();
    }

    /// The far node heard a frame. It is compared when the next one is given, or at the end.
    fn hear(&mut self, frame: CanFrame) {
        self.received += 1;
        self.heard.push(frame);
    }

    fn compare(&mut self) {
        for frame in self.heard.drain(..) {
            if let Some(at) = self.unheard.iter().position(|given| *given == frame) {
                self.unheard.drain(..=at);
                self.in_order += 1;
            }
        }
    }

    /// The number of frames given and not received. In an interrupted run the last ones may be missing.
    fn lost(&self, interrupted: bool) -> u64 {
        if interrupted { 0 } else { self.given.saturating_sub(self.received) }
    }

    /// The number of frames that were not the next one given, or were never given.
    fn reordered(&mut self) -> u64 {
        self.compare();
        self.received - self.in_order
    }
}

fn generate(args: &Args, far: &Far, session: &Session) -> Result<Report, Failure> {
    // Each frame is confirmed; others' frames are not asked for, and attempts that fail are counted.
    let config = Config { transmit_events: true, invalid_frames: false, ..args.can.config() };
    let (mut node, which) = args.can.open(session, config)?;
    node.receive_nothing()?;
    let compared = node.simulated().map(|can| {
        let compared = Rc::new(RefCell::new(Comparison::default()));
        let ears = compared.clone();
        let far = Feed::new("far", [])
            .with_ears(move |frame, _| ears.borrow_mut().hear(CanFrame::from_sim(frame)));
        can.bus.add(far);
        compared
    });
    // The far node is on the bus first: like ours it waits for eleven bits, and it acknowledges the first frame.
    node.start()?;
    session.begin_figures();
    let accesses_before = node.accesses();
    let mut sent = SentFrames::new(args.can.times()?);
    let progress = Progress::counting("sending", far.total().unwrap_or(0), session.silent);
    let mut give = |frame| {
        if let Some(compared) = &compared {
            compared.borrow_mut().give(frame);
        }
    };
    let done = send(&mut node, far, &mut sent, &mut give, &progress)?;
    drop(progress);
    let accesses = node.accesses().zip(accesses_before).map(|(now, before)| now - before);
    let counters = Counters::of(node.error_counters()?);
    node.stop()?;
    if sent.strange > 0 {
        let strange = sent.strange;
        return Err(Failure::Failed(format!("the chip confirmed {strange} frames out of turn")));
    }
    let mut compared = compared.as_ref().map(|compared| compared.borrow_mut());
    let frames = sent.confirmed as f64;
    let span_ps = sent.span_ps().filter(|&span_ps| span_ps > 0).map(|span_ps| span_ps as f64);
    Ok(Report {
        which,
        frames_sent: sent.confirmed,
        frames_received: compared.as_ref().map(|compared| compared.received),
        frames_lost: compared.as_ref().map(|compared| compared.lost(!done)),
        frames_reordered: compared.as_mut().map(|compared| compared.reordered()),
        frames_per_s: span_ps.map(|span_ps| frames / (span_ps / 1e12)),
        bus_load_percent: span_ps.map(|span_ps| 100.0 * sent.busy_ps as f64 / span_ps),
        counters,
        spi_accesses_per_frame: accesses
            .filter(|_| sent.confirmed > 0)
            .map(|accesses| accesses as f64 / frames),
        interrupted: !done,
    })
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let Which { place, chip, rates, .. } = &self.which;
        let mut text = format!(
            "{chip} on {}{}, {} kbit/s: {} frames sent and acknowledged",
            place.bus,
            place.kind(),
            f64::from(rates.bitrate_hz) / 1e3,
            figure::grouped(self.frames_sent)
        );
        if let Some(received) = self.frames_received {
            let [lost, reordered] =
                [self.frames_lost, self.frames_reordered].map(Option::unwrap_or_default);
            text += &format!(
                ", {} received, {lost} lost, {reordered} out of order",
                figure::grouped(received)
            );
        }
        if let (Some(rate), Some(load)) = (self.frames_per_s, self.bus_load_percent) {
            text += &format!(
                "\n{rate:.1} frames/s; bus load {load:.1} % of the time from the first frame's begin \
                 to the last one's end"
            );
        }
        if let Some(accesses) = self.spi_accesses_per_frame {
            text += &format!("\n{accesses:.2} SPI accesses a frame");
        }
        let Counters { transmit_errors, receive_errors, error_state } = self.counters;
        text + &format!("\nTEC {transmit_errors}, REC {receive_errors}, error {error_state}\n")
    }

    fn verdict(&self) -> Result<(), Failure> {
        if self.interrupted {
            return Err(Failure::Interrupted("stopped as asked".into()));
        }
        match (self.frames_lost, self.frames_reordered) {
            (None | Some(0), None | Some(0)) => Ok(()),
            (lost, reordered) => Err(Failure::Failed(format!(
                "{} frames were lost and {} came out of order",
                lost.unwrap_or_default(),
                reordered.unwrap_or_default()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use barewire_sim::model::can::Fault;

    use super::super::frame::{Kind, id_of};
    use super::super::rig;
    use super::*;

    /// Sends on a bus that `prepare` has set up, with 20 ms of patience. Returns the error's text.
    fn fails(prepare: impl FnOnce(&Node<'_>)) -> String {
        let far = Far { gap_ps: 0, patience_ps: 20_000_000_000, ..Far::default() };
        let mut text = String::new();
        rig::on_bus(
            |config| Config { transmit_events: true, invalid_frames: false, ..config },
            |node| {
                prepare(node);
                let mut sent = SentFrames::new(BitTimes::from_rates(250_000, 250_000));
                let progress = Progress::counting("sending", 0, true);
                let done = send(node, &far, &mut sent, &mut |_| (), &progress);
                text = done.expect_err("nobody takes them").to_string();
            },
        );
        text
    }

    #[test]
    fn frames_that_nobody_acknowledges_are_given_up_with_the_reason() {
        let text = fails(|_| ());
        assert!(text.contains("nothing went out for 20.0 ms (-p) after 0 frames"), "{text}");
        assert!(text.contains("TEC 128") && text.contains("error passive"), "{text}");
    }

    #[test]
    fn bus_off_ends_it() {
        let text = fails(|node| {
            let can = node.simulated().expect("simulated");
            can.bus.add_listener();
            can.bus.inject(Fault::ErrorFlags { first: 5, every: 1, bit: 20 });
        });
        assert!(text.starts_with("bus-off: "), "{text}");
    }

    fn frame(id: u32) -> CanFrame {
        CanFrame::new(id_of(id, false).expect("11 bits"), Kind::Data, &[id as u8]).expect("a frame")
    }

    #[test]
    fn losses_and_changes_of_order_are_seen() {
        let frames = |ids: &[u32]| ids.iter().map(|&id| frame(id)).collect::<Vec<_>>();
        let given = frames(&[1, 2, 3, 4]);
        for (heard, interrupted, lost, reordered) in [
            (&[1, 2, 3, 4][..], false, 0, 0),
            (&[1, 2, 4], false, 1, 0),
            (&[1, 2, 4], true, 0, 0),
            (&[1, 3, 2, 4], false, 0, 1),
            (&[2, 1, 3, 4], false, 0, 1),
            (&[1, 2, 3, 5], false, 0, 1),
            (&[], false, 4, 0),
        ] {
            let mut compared = Comparison::default();
            given.iter().for_each(|&frame| compared.give(frame));
            frames(heard).into_iter().for_each(|frame| compared.hear(frame));
            let found = (compared.lost(interrupted), compared.reordered());
            assert_eq!(found, (lost, reordered), "{heard:?}");
        }
    }

    #[test]
    fn a_frame_may_be_heard_before_the_chip_has_said_that_it_took_it() {
        let mut compared = Comparison::default();
        for id in 1..100 {
            compared.hear(frame(id));
            compared.give(frame(id));
        }
        assert_eq!((compared.lost(false), compared.reordered()), (0, 0));
    }

    #[test]
    fn frames_that_nobody_hears_take_no_more_memory() {
        let mut compared = Comparison::default();
        let given = UNHEARD_MAX as u64 + 100;
        (0..given).for_each(|_| compared.give(frame(1)));
        assert_eq!(compared.unheard.len(), UNHEARD_MAX);
        assert_eq!((compared.lost(false), compared.reordered()), (given, 0));
    }
}
