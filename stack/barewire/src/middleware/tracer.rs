//! Reports each message and its times to a sink.

use crate::controller::{Controller, Preset, Unfinished};
use crate::middleware::Layer;
use crate::spi::Transfer;
use crate::time::Timer;
use crate::trace::{Event, Sink};

/// A controller that reports its messages.
///
/// Times are read from the tracer's own timer, before and after the wrapped controller runs the
/// message. Its transfers are reported afterwards, when the received data is complete.
#[derive(Debug)]
pub struct Tracer<C, T, S> {
    inner: C,
    timer: T,
    sink: S,
}

impl<C, T, S> Tracer<C, T, S> {
    /// Wraps `inner`, and reports to `sink` with times from `timer`.
    pub const fn new(inner: C, timer: T, sink: S) -> Self {
        Self { inner, timer, sink }
    }

    /// Returns the controller and the sink.
    pub fn into_inner(self) -> (C, S) {
        (self.inner, self.sink)
    }

    /// The sink.
    pub const fn sink(&self) -> &S {
        &self.sink
    }
}

impl<C: Controller, T: Timer, S: Sink> Layer for Tracer<C, T, S> {
    type Inner = C;

    fn inner(&self) -> &C {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut C {
        &mut self.inner
    }

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let at_ticks = self.timer.now_ticks();
        self.sink.event(&Event::MessageStart { at_ticks, transfers: message.len() });
        let ran = self.inner.run(preset, message);
        let at_ticks = self.timer.now_ticks();
        let finished = match ran {
            Ok(_) => message.len(),
            Err(unfinished) => unfinished.transfer_index(),
        };
        for (index, transfer) in message.iter().enumerate().take(finished) {
            let cs_change = transfer.cs_change;
            self.sink.event(&Event::Transfer { index, data: transfer.data(), cs_change });
        }
        self.sink.event(&match ran {
            Ok(actual_length) => Event::MessageDone { at_ticks, actual_length },
            Err(unfinished) => Event::MessageFailed { at_ticks, unfinished },
        });
        ran
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec::Vec;
    use std::{format, vec};

    use super::*;
    use crate::bus::Bus;
    use crate::controller::null::Null;
    use crate::middleware::{Fault, FaultInjector, When};
    use crate::spi::Settings;

    struct Count(u64);

    impl Timer for Count {
        fn frequency_hz(&self) -> u32 {
            1_000
        }
        fn now_ticks(&mut self) -> u64 {
            self.0 += 1;
            self.0
        }
    }

    fn words(event: &Event<'_>) -> String {
        match event {
            Event::MessageStart { at_ticks, transfers } => format!("{at_ticks} start {transfers}"),
            Event::Transfer { index, data, cs_change } => {
                format!("transfer {index} {:02x?} {:02x?} {cs_change}", data.tx(), data.rx())
            }
            Event::MessageDone { at_ticks, actual_length } => {
                format!("{at_ticks} done {actual_length}")
            }
            Event::MessageFailed { at_ticks, unfinished } => {
                format!("{at_ticks} failed at {}", unfinished.transfer_index())
            }
        }
    }

    #[test]
    fn events_come_in_order_with_times_and_bytes() {
        let mut log: Vec<String> = vec![];
        let sink = |event: &Event<'_>| log.push(words(event));
        let bus = Bus::new(Tracer::new(Null::new(), Count(0), sink));
        let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
        let mut rx = [7; 2];
        let mut message = [Transfer::write(&[1]).with_cs_change(), Transfer::read(&mut rx)];
        device.sync(&mut message).expect("runs");
        let _ = bus;
        assert_eq!(
            log,
            [
                "1 start 2",
                "transfer 0 Some([01]) None true",
                "transfer 1 None Some([00, 07]) false",
                "2 done 3"
            ]
        );
    }

    #[test]
    fn a_message_that_fails_says_where() {
        let mut log: Vec<String> = vec![];
        let sink = |event: &Event<'_>| log.push(words(event));
        let faulty = FaultInjector::new(Null::new(), Fault::Timeout, When::Transfer(1));
        let bus = Bus::new(Tracer::new(faulty, Count(0), sink));
        let device = bus.device(&Settings::new(0, 1_000)).expect("opens");
        let error = device
            .sync(&mut [Transfer::write(&[1, 2]), Transfer::write(&[3])])
            .expect_err("the injector times out");
        assert_eq!((error.transfer_index, error.actual_length), (1, 2));
        let _ = bus;
        assert_eq!(log, ["1 start 2", "transfer 0 Some([01, 02]) None false", "2 failed at 1"]);
    }
}
