//! The mapped nodes: each call of a program, run on the node's bus.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

use barewire_linux::shared::ChipLock;
use barewire_spidev_abi::{
    AbiError, Chip, Errno, IocTransfer, NodeName, Request, Setup, TRANSFER_BYTES,
};

use super::clock::Clock;
use super::direct::Direct;
use super::map::Map;
use super::program::LIBRARY;
use crate::shared::failure::Failure;
use crate::shared::output::note;
use crate::shared::session::Session;

/// The answer to a call: its value and the bytes after it.
pub(super) type Answer = Result<(u32, Vec<u8>), Errno>;

struct Node<'s> {
    name: NodeName,
    bus: usize,
    session: &'s Session,
    clock: Rc<Clock<'s>>,
    lock: RefCell<Option<ChipLock>>,
    chip: RefCell<Chip>,
    /// The files by which the program runs messages itself.
    direct: Option<Direct>,
}

/// All nodes.
pub(super) struct Nodes<'s> {
    nodes: Vec<Node<'s>>,
    verbose: bool,
    told: RefCell<HashSet<String>>,
}

impl<'s> Nodes<'s> {
    /// The nodes of `maps` on `sessions`, each with its bus's name, whose clocks are `clocks`. `setup` has
    /// the settings common to all nodes. With a `tree` for the files that this needs, the program may run
    /// messages itself where the bus allows it.
    pub(super) fn open(
        maps: &[Map],
        sessions: &[(&str, &'s Session)],
        clocks: &[Rc<Clock<'s>>],
        setup: &Setup,
        verbose: bool,
        tree: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut nodes = Vec::with_capacity(maps.len());
        for map in maps {
            let Some(bus) = sessions.iter().position(|(name, _)| *name == map.bus) else {
                continue;
            };
            let session = sessions[bus].1;
            let mode = session.mode(map.chip_select);
            let setup = Setup { chip_select: map.chip_select, mode, ..*setup };
            let chip = Chip::new(session.open.bus(), setup).map_err(|error| {
                Failure::Failed(format!("{} on {}: {error}", map.node.path(), map.bus))
            })?;
            let lock = session.chip_lock(map.chip_select)?;
            let direct = match tree {
                Some(tree) => Direct::make(tree, map, session, &chip)?,
                None => None,
            };
            nodes.push(Node {
                name: map.node,
                bus,
                session,
                clock: clocks[bus].clone(),
                lock: RefCell::new(lock),
                chip: RefCell::new(chip),
                direct,
            });
        }
        Ok(Self { nodes, verbose, told: RefCell::default() })
    }

    /// The index of a node.
    pub(super) fn find(&self, name: NodeName) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// A node's name.
    pub(super) fn name(&self, index: usize) -> Option<NodeName> {
        self.nodes.get(index).map(|node| node.name)
    }

    /// The most bytes of a node's message.
    pub(super) fn bufsiz(&self, index: usize) -> u32 {
        self.nodes.get(index).map_or(0, |node| node.chip.borrow().setup().bufsiz)
    }

    /// Says that bytes which were written around the library were dropped. Their writer took them for sent, so this is
    /// said without `--verbose` too.
    pub(super) fn refused_write(&self, index: usize, length: usize) {
        let Some(node) = self.nodes.get(index) else { return };
        self.tell_once(format!(
            "{}: {length} bytes were written around {LIBRARY} and reached no chip: the file is not open for \
             writing, or they are more than --bufsiz allows, {}",
            node.name.path(),
            node.chip.borrow().setup().bufsiz
        ));
    }

    fn tell_once(&self, text: String) {
        if self.told.borrow_mut().insert(text.clone()) {
            note!("barewire: {text}");
        }
    }

    /// Counts one more opener.
    pub(super) fn opened(&self, index: usize) {
        if let Some(node) = self.nodes.get(index) {
            node.chip.borrow_mut().open();
        }
    }

    /// Counts one opener less.
    pub(super) fn closed(&self, index: usize) {
        if let Some(node) = self.nodes.get(index) {
            node.chip.borrow_mut().close(node.session.open.bus());
            if let Some(direct) = &node.direct {
                direct.count_closed(&node.chip.borrow());
            }
            self.tell_kept(node.bus, false);
        }
    }

    /// Whether the program runs messages itself.
    pub(super) fn any_direct(&self) -> bool {
        self.nodes.iter().any(|node| node.direct.is_some())
    }

    /// Ends the program's own messages on a bus that is gone.
    pub(super) fn look(&self) {
        for node in &self.nodes {
            if let Some(direct) = &node.direct
                && node.session.open.cause().is_some()
            {
                direct.stop();
            }
        }
    }

    /// Ends all of the program's own messages.
    pub(super) fn stop(&self) {
        self.nodes.iter().filter_map(|node| node.direct.as_ref()).for_each(Direct::stop);
    }

    /// Says whether a chip of that bus is left selected, or may be in a moment.
    fn tell_kept(&self, bus: usize, soon: bool) {
        let of_bus = || self.nodes.iter().filter(|node| node.bus == bus);
        if of_bus().any(|node| node.direct.is_some()) {
            let kept = soon || of_bus().any(|node| node.chip.borrow().is_selected());
            of_bus().filter_map(|node| node.direct.as_ref()).for_each(|it| it.set_kept(kept));
        }
    }

    /// An ioctl, whose argument is `body`.
    pub(super) fn ioctl(&self, index: usize, number: u32, body: &[u8]) -> Answer {
        let node = self.nodes.get(index).ok_or(Errno::BADF)?;
        match Request::decode(number)? {
            Request::Read(setting) => {
                let value = node.chip.borrow().read(setting).to_le_bytes();
                let value = match setting.bytes() {
                    1 => vec![value[0]],
                    _ => u32::from_le_bytes(value).to_ne_bytes().to_vec(),
                };
                Ok((0, value))
            }
            Request::Write(setting) => {
                let value = match *body {
                    [byte] if setting.bytes() == 1 => byte.into(),
                    [a, b, c, d] if setting.bytes() == 4 => u32::from_ne_bytes([a, b, c, d]),
                    _ => return Err(Errno::PROTO),
                };
                let bus = node.session.open.bus();
                let write = || node.chip.borrow_mut().write(bus, setting, value);
                let written = node.clock.during(write);
                if let Some(direct) = &node.direct {
                    direct.publish(&node.chip.borrow());
                }
                self.tell_kept(node.bus, false);
                self.judged(node, format_args!("{setting:?} = {value:#x}"), written)?;
                Ok((0, Vec::new()))
            }
            Request::Message(transfers) => {
                let bytes = transfers * TRANSFER_BYTES;
                let (structs, tx) = body.split_at_checked(bytes).ok_or(Errno::PROTO)?;
                let transfers: Vec<_> = IocTransfer::decode_all(structs).collect();
                self.message(node, &transfers, tx)
            }
        }
    }

    /// Reads `len` bytes.
    pub(super) fn read(&self, index: usize, len: u32) -> Answer {
        let node = self.nodes.get(index).ok_or(Errno::BADF)?;
        if len > node.chip.borrow().setup().bufsiz {
            return Err(Errno::MSGSIZE);
        }
        // Any address but 0: received bytes are wanted.
        self.message(node, &[IocTransfer { rx_buf: 1, len, ..IocTransfer::default() }], &[])
    }

    /// Writes `tx`.
    pub(super) fn write(&self, index: usize, tx: &[u8]) -> Answer {
        let node = self.nodes.get(index).ok_or(Errno::BADF)?;
        let len = u32::try_from(tx.len()).map_err(|_| Errno::MSGSIZE)?;
        if len > node.chip.borrow().setup().bufsiz {
            return Err(Errno::MSGSIZE);
        }
        self.message(node, &[IocTransfer { tx_buf: 1, len, ..IocTransfer::default() }], tx)
    }

    fn message(&self, node: &Node<'_>, transfers: &[IocTransfer], tx: &[u8]) -> Answer {
        if transfers.last().is_some_and(|last| last.cs_change != 0) {
            self.tell_kept(node.bus, true);
        }
        let answer = node.clock.during(|| self.message_alone(node, transfers, tx));
        self.tell_kept(node.bus, false);
        answer
    }

    fn message_alone(&self, node: &Node<'_>, transfers: &[IocTransfer], tx: &[u8]) -> Answer {
        let bus = node.session.open.bus();
        // At most one chip stays selected after a message. A message to that chip continues; a message
        // to another chip deselects it first.
        let others =
            self.nodes.iter().filter(|other| other.bus == node.bus && other.name != node.name);
        others.for_each(|other| other.chip.borrow_mut().release(bus));
        let received =
            transfers.iter().map(IocTransfer::rx_bytes).fold(0_usize, usize::saturating_add);
        let mut chip = node.chip.borrow_mut();
        if received > transfers.len().saturating_mul(chip.setup().bufsiz as usize) {
            return Err(Errno::MSGSIZE);
        }
        let mut rx = vec![0; received];
        let mut lock = node.lock.borrow_mut();
        if let Some(lock) = &mut *lock {
            lock.acquire()?;
        }
        let ran = chip.run(bus, transfers, tx, &mut rx);
        if let Some(lock) = &mut *lock {
            lock.release();
        }
        let total = self.judged(node, format_args!("a message"), ran)?;
        Ok((total, rx))
    }

    /// Says why a call failed, if that is wanted.
    fn judged<T>(
        &self,
        node: &Node<'_>,
        what: fmt::Arguments<'_>,
        result: Result<T, AbiError>,
    ) -> Result<T, Errno> {
        let AbiError { errno, why } = match result {
            Ok(value) => return Ok(value),
            Err(failed) => failed,
        };
        // If the bus itself has failed, tell the cause; the node fails with it.
        let cause = node.session.open.cause();
        let errno = if cause.is_some() { Errno::SHUTDOWN } else { errno };
        if self.verbose || cause.is_some() {
            let why = cause.or_else(|| why.map(|why| why.to_string()));
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            self.tell_once(format!("{}: {what}: {errno}{why}", node.name.path()));
        }
        Err(errno)
    }
}
