//! A controller that records its messages on a tape: the bytes that a chip's driver sends and
//! receives.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use barewire::controller::{Controller, Preset, Stopped, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use barewire_sim::Board;
use barewire_sim::bring_up::{AnyController, any};

/// State shared by a bus and its judge.
#[derive(Clone, Default)]
pub(crate) struct Messages(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    lines: Vec<String>,
    /// Messages before the one that fails, and whether that is clocked.
    fails_after: Option<(u32, bool)>,
}

impl Messages {
    /// Fails the message that comes after `messages` more, before or after it is clocked.
    pub(crate) fn fail_after(&self, messages: u32, clocked: bool) {
        self.0.borrow_mut().fails_after = Some((messages, clocked));
    }

    /// Lets all messages through from now on. Returns whether a failure was still due.
    pub(crate) fn let_through(&self) -> bool {
        self.0.borrow_mut().fails_after.take().is_some()
    }

    /// Whether this message fails: if so, whether it is clocked.
    fn fails(&self) -> Option<bool> {
        let mut state = self.0.borrow_mut();
        let (left, clocked) = state.fails_after?;
        state.fails_after = left.checked_sub(1).map(|left| (left, clocked));
        (left == 0).then_some(clocked)
    }

    /// Writes a line of its own.
    pub(crate) fn note(&self, text: &str) {
        self.0.borrow_mut().lines.push(format!("= {text}"));
    }

    /// Returns the tape as text and empties it. Repeated lines appear once.
    pub(crate) fn text(&self) -> String {
        let lines = std::mem::take(&mut self.0.borrow_mut().lines);
        let mut text = String::new();
        for alike in lines.chunk_by(|a, b| a == b) {
            let _ = write!(text, "    {}", alike[0]);
            if alike.len() > 1 {
                let _ = write!(text, "  and {} alike", alike.len() - 1);
            }
            text.push('\n');
        }
        text
    }
}

/// The board's controller, its messages on a tape.
pub(crate) struct RecordedController {
    inner: AnyController,
    messages: Messages,
}

impl RecordedController {
    pub(crate) fn new(board: &Board, messages: &Messages) -> Self {
        Self { inner: any(board), messages: messages.clone() }
    }
}

impl Layer for RecordedController {
    barewire::wrapped_controller!(inner: AnyController);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let sent: Vec<Vec<u8>> = message
            .iter()
            .map(|transfer| transfer.data().tx().unwrap_or_default().to_vec())
            .collect();
        let failed = Err(Unfinished::stopped(0, Stopped::TimedOut { timeout_us: 1 }));
        let ran = match self.messages.fails() {
            None => self.inner.run(preset, message),
            Some(false) => failed,
            Some(true) => self.inner.run(preset, message).and(failed),
        };
        let mut line = String::new();
        for (transfer, sent) in message.iter().zip(sent) {
            let received = transfer.data().rx().unwrap_or_default();
            match (sent.is_empty(), received.is_empty()) {
                (false, true) => line += &told(&sent),
                (true, false) => line = line + "-> " + &told(received),
                _ => line = line + &told(&sent) + " -> " + &told(received),
            }
            line += if transfer.cs_change { " | " } else { " " };
        }
        if let Err(error) = ran {
            let _ = write!(line, "fails: {:?}", error.error());
        }
        self.messages.0.borrow_mut().lines.push(line.trim_end().to_owned());
        ran
    }
}

/// Bytes as hexadecimal, of long data the beginning and a sum over all.
fn told(bytes: &[u8]) -> String {
    let hex =
        |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    if bytes.len() <= 24 {
        return hex(bytes);
    }
    let sum = bytes.iter().fold(0_u32, |sum, &byte| sum.rotate_left(5) ^ u32::from(byte));
    format!("{} .. {} bytes, sum {sum:08x}", hex(&bytes[..8]), bytes.len())
}
