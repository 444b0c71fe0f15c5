//! `barewire can bridge`: frames between the chip's CAN bus and a SocketCAN interface, both ways.
//!
//! *Read first*: the kernel's `Documentation/networking/can.rst`; [`pump`], which carries the frames.
//!
//! # How it works
//! A simulated board is slowed down to real time, so frames of its far node arrive in real time.
//! On other buses the bridge polls chip and socket in turn, every half millisecond.
//!
//! # What an interface like vcan does not carry
//! 1. No bit timing and no arbitration: a written frame arrives at once, in the order of writing.
//! 2. No back-pressure: a write never waits for a bus. Frames that arrive faster than our bus carries
//!    them wait in the socket's queue. When it is full the kernel drops frames, unseen by us.
//! 3. No acknowledgement: a writer does not learn whether its frame was on our bus, or when.
//! 4. No error counters and no bus-off: our errors arrive as error frames, for programs that ask for
//!    them, and no program can restart our chip through the interface.

mod pump;
mod socket;

use std::thread;
use std::time::{Duration, Instant};

use barewire::chip::mcp251xfd::Frame;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;

use super::args::{CanArgs, Which};
use super::far::{Far, FarArgs};
use super::frame::{CanFrame, ErrorFrame, LogLine};
use super::node::{Counters, Node, POLL_NS};
use crate::shared::failure::Failure;
use crate::shared::interrupt;
use crate::shared::output::note;
use crate::shared::session::{self, Figures, Session};
use crate::shared::text::{figure, number};
use pump::{CanSocket, Counts, Port, Pump};
use socket::Interface;

/// How long an idle bridge sleeps, where virtual time waits for real time.
const IDLE: Duration = Duration::from_micros(200);
/// Steps for the frames that are still on their way at the end.
const LAST_STEPS: u32 = 100;
const NS_PER_MS: u64 = 1_000_000;

#[derive(clap::Args, Debug)]
#[command(
    after_long_help = "vcan and vxcan have no bit timing, no arbitration, no acknowledgement and no \
    error counters, and a write to them never waits for a bus: what comes faster than the chip's bus \
    carries is dropped by the kernel once the socket's queue is full. Errors of the chip's bus arrive as \
    error frames (candump NAME,0:0,#FFFFFFFF)."
)]
pub(crate) struct Args {
    #[command(flatten)]
    can: CanArgs,
    /// The interface, vcan0 for one: `ip link add dev vcan0 type vcan && ip link set vcan0 up`
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    iface: String,
    /// End after this many milliseconds instead of by Ctrl-C
    #[arg(long, value_name = "MS", value_parser = number::count::<u64>)]
    duration_ms: Option<u64>,
    #[command(flatten)]
    far: FarArgs,
}

/// The result. Scripts rely on its field names.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    which: Which,
    interface: String,
    interface_mtu: u32,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    counters: Counters,
    /// How far virtual time was behind real time at most.
    behind_ms: Option<u64>,
    interrupted: bool,
}

/// The chip as a side of the bridge.
impl Port for Node<'_> {
    fn receive(&mut self, see: &mut dyn FnMut(LogLine, bool)) -> Result<(), Failure> {
        self.serve(|seen| {
            if seen.found.frame {
                see(LogLine::Frame(CanFrame::from_chip(&seen.received.frame)), false);
            }
            if let Some(error) = ErrorFrame::of(seen.found, seen.counters) {
                see(LogLine::Error(error), seen.found.overflow);
            }
            Ok(())
        })
        .map(drop)
    }

    fn transmit(&mut self, frame: &Frame) -> Result<bool, Failure> {
        Ok(Node::transmit(self, frame)?.is_some())
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    args.far.check_bus(&args.can.bus)?;
    let far = args.far.settle(args.can.fd, Far::default())?;
    // Opened before the board, because it is what is most likely missing.
    let socket = Interface::open(&args.iface)?;
    session::run(&args.can.request()?, |session| bridge(args, &far, socket, session))
}

fn bridge(
    args: &Args,
    far: &Far,
    mut socket: Interface,
    session: &Session,
) -> Result<Report, Failure> {
    let (mut node, which) = args.can.open(session, args.can.config())?;
    node.start()?;
    session.begin_figures();
    if !session.silent {
        note!(
            "{} has no bit timing, no arbitration and no acknowledgement, and what comes faster than \
             the bus carries is dropped by the kernel; Ctrl-C ends",
            args.iface
        );
        if args.can.fd && !socket.carries_fd() {
            note!("{} carries no CAN FD: `ip link set {0} mtu 72`", args.iface);
        }
    }
    if let Some(can) = node.simulated() {
        // Without an option that asks it to send, the far node only acknowledges.
        let asked = args.far.sending().is_some() || args.far.count.is_some();
        let silent = far.clone().silent();
        if asked { far } else { &silent }.attach(can, node.now_ns() * 1_000);
    }
    let mut pump = Pump::new(args.can.fd);
    let behind_ms = carry(&mut node, &mut pump, &mut socket, args.duration_ms)?;
    let counters = Counters::of(node.error_counters()?);
    node.stop()?;
    let simulated = node.simulated().is_some();
    Ok(Report {
        which,
        interface: args.iface.clone(),
        interface_mtu: socket.mtu,
        counts: pump.counts,
        counters,
        behind_ms: simulated.then_some(behind_ms),
        interrupted: interrupt::asked(),
    })
}

/// Carries until the time is over or Ctrl-C comes. How far virtual time was behind at most.
fn carry(
    node: &mut Node<'_>,
    pump: &mut Pump,
    socket: &mut impl CanSocket,
    duration_ms: Option<u64>,
) -> Result<u64, Failure> {
    let (begun, begun_ns) = (Instant::now(), node.now_ns());
    let simulated = node.simulated().is_some();
    let over = |elapsed: Duration| {
        let limit = duration_ms.map(Duration::from_millis);
        interrupt::asked() || limit.is_some_and(|limit| elapsed >= limit)
    };
    let mut behind_ns = 0;
    while !over(begun.elapsed()) {
        let busy = pump.step(node, socket)?;
        if simulated {
            let target_ns = begun_ns + begun.elapsed().as_nanos() as u64;
            let left_ns = target_ns.saturating_sub(node.now_ns());
            behind_ns = behind_ns.max(left_ns);
            let something = match (left_ns, pump.takes_more()) {
                (0, _) => false,
                (_, true) => node.wait(left_ns),
                // The chip's interrupt stays asserted, but time must pass.
                (_, false) => {
                    node.pass(left_ns);
                    false
                }
            };
            if !something && !busy {
                thread::sleep(IDLE);
            }
        } else if !busy {
            // With an INT line too, waits are no longer than this: the socket is read between two
            // waits.
            node.wait(POLL_NS);
        }
    }
    for _ in 0..LAST_STEPS {
        if pump.is_empty() || !pump.step(node, socket)? {
            break;
        }
    }
    Ok(behind_ns / NS_PER_MS)
}

impl session::Report for Report {
    fn text(&self, _: Option<&Figures>) -> String {
        let Which { place, chip, .. } = &self.which;
        let Counts {
            frames_to_socket,
            errors_to_socket,
            frames_to_bus,
            fd_dropped,
            refused,
            socket_full,
            chip_full,
            overflows,
        } = self.counts;
        let [to_socket, to_bus] = [frames_to_socket, frames_to_bus].map(figure::grouped);
        let mut text = format!(
            "{chip} on {}{}, {}: {to_socket} frames to the interface, {to_bus} to the bus\n",
            place.bus,
            place.kind(),
            self.interface
        );
        for (count, what) in [
            (errors_to_socket, "errors told as error frames"),
            (overflows, "times the chip lost frames"),
            (socket_full, "times the interface had no room"),
            (chip_full, "times the chip had no room"),
            (fd_dropped, "frames of CAN FD dropped: the interface carries none"),
            (refused, "frames from the interface that this bus cannot carry"),
        ] {
            if count > 0 {
                text += &format!("{} {what}\n", figure::grouped(count));
            }
        }
        let Counters { transmit_errors, receive_errors, error_state } = self.counters;
        text + &format!("TEC {transmit_errors}, REC {receive_errors}, error {error_state}\n")
    }

    fn verdict(&self) -> Result<(), Failure> {
        match self.interrupted {
            true => Err(Failure::Interrupted("stopped as asked".into())),
            false => Ok(()),
        }
    }
}
