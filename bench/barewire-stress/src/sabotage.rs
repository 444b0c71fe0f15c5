//! A layer beneath the bus that breaks a promise on purpose, a few times: the judge must notice.

use std::cell::Cell;
use std::rc::Rc;

use barewire::controller::{Controller, Preset, Unfinished};
use barewire::middleware::Layer;
use barewire::spi::Transfer;
use serde::Serialize;

/// The fault to inject.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sabotage {
    /// A message is sent after the next one of its context
    Reorder,
    /// Another message is sent between two halves of one
    Interleave,
    /// A message is reported done and not sent
    Lose,
    /// A message is sent twice
    Duplicate,
}

/// How often.
const TIMES: u64 = 5;
/// One message in this many.
const ONE_IN: u64 = 53;

/// A message, copied.
struct MessageCopy {
    preset: Preset,
    context: u8,
    transfers: Vec<(Vec<u8>, bool)>,
}

/// See the module.
pub(super) struct Saboteur<C> {
    inner: C,
    kind: Option<Sabotage>,
    messages: u64,
    done: Rc<Cell<u64>>,
    held_back: Option<MessageCopy>,
}

impl<C: Controller> Saboteur<C> {
    /// A controller that breaks the promise that `kind` names, and counts that in `done`.
    pub(super) fn new(inner: C, kind: Option<Sabotage>, done: Rc<Cell<u64>>) -> Self {
        Self { inner, kind, messages: 0, done, held_back: None }
    }

    fn send(&mut self, copied: &MessageCopy) -> Result<usize, Unfinished> {
        let mut message = Vec::with_capacity(copied.transfers.len());
        for (bytes, cs_change) in &copied.transfers {
            let mut transfer = Transfer::write(bytes);
            transfer.cs_change = *cs_change;
            message.push(transfer);
        }
        self.inner.plan(&copied.preset, &mut message).expect("it was planned before");
        self.inner.run(&copied.preset, &mut message)
    }
}

fn copied(preset: &Preset, message: &[Transfer<'_>]) -> MessageCopy {
    let bytes = |transfer: &Transfer<'_>| {
        let data = transfer.data();
        data.tx().map_or_else(|| vec![0; data.len()], <[u8]>::to_vec)
    };
    let transfers: Vec<_> = message.iter().map(|one| (bytes(one), one.cs_change)).collect();
    MessageCopy { preset: *preset, context: transfers[0].0[0], transfers }
}

fn len(message: &[Transfer<'_>]) -> usize {
    message.iter().map(|transfer| transfer.data().len()).sum()
}

impl<C: Controller> Layer for Saboteur<C> {
    barewire::wrapped_controller!(inner: C);

    fn run_layer(
        &mut self,
        preset: &Preset,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, Unfinished> {
        let Some(kind) = self.kind else { return self.inner.run(preset, message) };
        self.messages += 1;
        let due = self.done.get() < TIMES && self.messages.is_multiple_of(ONE_IN);
        match kind {
            Sabotage::Lose if due => {
                self.done.set(self.done.get() + 1);
                Ok(len(message))
            }
            Sabotage::Duplicate if due => {
                self.done.set(self.done.get() + 1);
                let copied = copied(preset, message);
                self.inner.run(preset, message)?;
                self.send(&copied)
            }
            Sabotage::Reorder if due && self.held_back.is_none() => {
                self.held_back = Some(copied(preset, message));
                Ok(len(message))
            }
            Sabotage::Interleave
                if due && message.iter().all(|one| !one.cs_change) && self.held_back.is_none() =>
            {
                let mut whole = copied(preset, message);
                let mut bytes: Vec<u8> =
                    whole.transfers.drain(..).flat_map(|(bytes, _)| bytes).collect();
                let rest = bytes.split_off(bytes.len() - 1);
                whole.transfers.push((bytes, false));
                let first = whole;
                self.send(&first)?;
                self.held_back = Some(MessageCopy { transfers: vec![(rest, false)], ..first });
                Ok(len(message))
            }
            _ => {
                let ours = message[0].data().tx().map_or(0, |tx| tx[0]);
                let ran = self.inner.run(preset, message);
                let sends =
                    |held: &MessageCopy| kind == Sabotage::Interleave || held.context == ours;
                if let Some(held) = self.held_back.take_if(|held| sends(held)) {
                    self.done.set(self.done.get() + 1);
                    self.send(&held)?;
                }
                ran
            }
        }
    }
}
