//! `embedded-hal` in both directions, on a wire that records its calls.

mod device;
mod other_way;
mod time;

use core::cell::RefCell;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::rc::Rc;
use std::vec::Vec;

use crate::controller::null::Null;
use crate::controller::{
    Controller, Limits, Plan, Preset, Stopped, Unfinished, Wire, plan_message, run_message,
};
use crate::spi::{Data, Effective, Error, MessageError, Settings, Transfer};

/// A call of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Select,
    Deselect,
    Recover,
    /// The bytes sent, and whether there was a receive buffer.
    Exchange(Vec<u8>, bool),
    Ticks(u32),
}

type Log = Rc<RefCell<Vec<Event>>>;

/// A wire that answers each byte with its position on the wire, from 1, and a timer without cost.
struct Recorder {
    log: Log,
    timer_hz: u32,
    clocked: u8,
    /// The number of the exchange, from 0, that times out.
    fails_at: Option<usize>,
    exchanges: usize,
    /// A longest delay other than the timer's.
    max_delay_ns: Option<u32>,
}

impl Recorder {
    fn new(timer_hz: u32) -> (Self, Log) {
        let log = Log::default();
        let this = Self {
            log: log.clone(),
            timer_hz,
            clocked: 0,
            fails_at: None,
            exchanges: 0,
            max_delay_ns: None,
        };
        (this, log)
    }

    fn tell(&self, event: Event) {
        self.log.borrow_mut().push(event);
    }
}

impl Wire for Recorder {
    fn select(&mut self, _: &Preset) {
        self.tell(Event::Select);
    }

    fn deselect(&mut self, _: &Preset) {
        self.tell(Event::Deselect);
    }

    fn exchange(&mut self, _: &Preset, plan: &Plan, data: &mut Data<'_>) -> Result<(), Stopped> {
        assert_eq!(plan.word_bytes(), 1, "embedded-hal's words have 8 bits");
        self.exchanges += 1;
        if self.fails_at == Some(self.exchanges - 1) {
            return Err(Stopped::TimedOut { timeout_us: 7 });
        }
        let mut sent = std::vec![0; data.len()];
        if let Some(tx) = data.tx() {
            sent.copy_from_slice(tx);
        }
        self.tell(Event::Exchange(sent, data.rx().is_some()));
        let mut rx = data.rx_mut();
        for index in 0..rx.as_deref().map_or(0, <[u8]>::len) {
            if let Some(rx) = &mut rx {
                rx[index] = self.clocked.wrapping_add(index as u8 + 1);
            }
        }
        self.clocked = self.clocked.wrapping_add(data.len() as u8);
        Ok(())
    }

    fn recover(&mut self) {
        self.tell(Event::Recover);
    }

    fn wait_ticks(&mut self, ticks: u32) {
        if ticks > 0 {
            self.tell(Event::Ticks(ticks));
        }
    }
}

impl Controller for Recorder {
    fn limits(&self) -> Limits {
        let Limits { min_speed_hz, max_speed_hz, bits_per_word_mask, .. } = Null::new().limits();
        let limits = Limits::new(min_speed_hz, max_speed_hz, bits_per_word_mask, self.timer_hz);
        self.max_delay_ns.map_or(limits, |ns| limits.with_max_delay_ns(ns))
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        Null::new().configure(settings)
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        plan_message(preset, self.timer_hz, message, |_| Ok(0))
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }

    fn reclaim(&mut self) {}
}

/// Polls until the future is ready. Returns its output and the number of polls.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for polls in 1.. {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return (output, polls);
        }
    }
    unreachable!("polled for ever")
}
