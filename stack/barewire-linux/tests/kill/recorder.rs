//! A controller whose registers and wire are shared memory: what goes over the wire is written
//! down, byte by byte, so that a process killed in the midst of a message leaves half of it.
//!
//! # Layout, in words
//! 0: how many entries there are; 1: the block's configuration register; 8 and 9: messages each context has completed; from 16: the entries.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use barewire::controller::null::Null;
use barewire::controller::{
    Controller, Limits, Plan, Preset, Stopped, Unfinished, Wire, run_message,
};
use barewire::spi::{Data, Effective, Error, MessageError, Settings, Transfer};
use barewire_linux::SharedWords;

const LEN_AT: usize = 0;
const CONFIG_AT: usize = 1;
const COMPLETED_AT: usize = 8;
const ENTRIES_AT: usize = 16;

/// Entries there is room for: a sparse file of 64 MiB.
const ROOM: usize = (1 << 24) - ENTRIES_AT;

/// The bytes that went over the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// CS became active, the block being configured so.
    Select(u32),
    /// One byte.
    Byte(u8),
    /// CS became inactive.
    Deselect,
    /// The block was reclaimed: CS inactive.
    Reclaim,
    /// The opener was told of a process that died.
    Recovered,
}

impl Entry {
    fn to_word(self) -> u32 {
        match self {
            Self::Select(config) => 1 << 24 | config,
            Self::Byte(byte) => 2 << 24 | u32::from(byte),
            Self::Deselect => 3 << 24,
            Self::Reclaim => 4 << 24,
            Self::Recovered => 5 << 24,
        }
    }

    fn of_word(word: u32) -> Self {
        match word >> 24 {
            1 => Self::Select(word & 0x00ff_ffff),
            2 => Self::Byte(word as u8),
            3 => Self::Deselect,
            4 => Self::Reclaim,
            5 => Self::Recovered,
            _ => panic!("{word:#x} is no entry"),
        }
    }
}

/// The shared memory.
#[derive(Clone)]
pub(crate) struct Record(Arc<SharedWords>);

impl Record {
    /// The record in the file at `path`, which is made if need be.
    pub(crate) fn open(path: &Path) -> Self {
        let options = File::options().read(true).write(true).create(true).clone();
        let file = options.open(path).expect("a file of the test's own");
        file.set_len(4 * (ROOM + ENTRIES_AT) as u64).expect("a sparse file");
        Self(Arc::new(SharedWords::map(&file, ROOM + ENTRIES_AT).expect("mapped")))
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        &self.0.words()[index]
    }

    /// Writes an entry down; the bus's holder only. It counts once it is stored.
    pub(crate) fn push(&self, entry: Entry) {
        let len = self.word(LEN_AT).load(Ordering::Relaxed);
        assert!((len as usize) < ROOM, "the record is full: fewer messages, or more room");
        self.word(ENTRIES_AT + len as usize).store(entry.to_word(), Ordering::Relaxed);
        self.word(LEN_AT).store(len + 1, Ordering::Release);
    }

    /// All entries. Call it after the last writer has ended.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let len = self.word(LEN_AT).load(Ordering::Acquire) as usize;
        self.0.words()[ENTRIES_AT..][..len]
            .iter()
            .map(|word| Entry::of_word(word.load(Ordering::Relaxed)))
    }

    /// How many messages a context has completed, by its own count.
    pub(crate) fn completed(&self, context: u8) -> &AtomicU32 {
        self.word(COMPLETED_AT + usize::from(context))
    }
}

/// The controller. Like a real driver it remembers the settings that it wrote, and does not write
/// them again.
pub(crate) struct Recorder {
    record: Record,
    configured: Option<u32>,
    /// Waits for ever after this many bytes of a message.
    pub(crate) hangs_after: Option<usize>,
}

impl Recorder {
    pub(crate) fn new(record: Record) -> Self {
        Self { record, configured: None, hangs_after: None }
    }
}

/// Some microseconds, so that many moments lie inside a message.
fn one_byte_time() {
    for _ in 0..150 {
        std::hint::spin_loop();
    }
}

impl Wire for Recorder {
    fn select(&mut self, preset: &Preset) {
        let config = preset.regs[0];
        if self.configured != Some(config) {
            self.record.word(CONFIG_AT).store(config, Ordering::Relaxed);
            self.configured = Some(config);
        }
        // The block acts on its register's value, not on the value that the driver remembers.
        self.record.push(Entry::Select(self.record.word(CONFIG_AT).load(Ordering::Relaxed)));
    }

    fn deselect(&mut self, _preset: &Preset) {
        self.record.push(Entry::Deselect);
    }

    fn exchange(
        &mut self,
        _preset: &Preset,
        _plan: &Plan,
        data: &mut Data<'_>,
    ) -> Result<(), Stopped> {
        for (index, byte) in data.tx().unwrap_or_default().iter().enumerate() {
            while self.hangs_after == Some(index) {
                std::thread::park();
            }
            one_byte_time();
            self.record.push(Entry::Byte(*byte));
        }
        Ok(())
    }

    fn recover(&mut self) {}

    fn wait_ticks(&mut self, _ticks: u32) {}
}

impl Controller for Recorder {
    fn limits(&self) -> Limits {
        Null::new().limits()
    }

    fn configure(&self, settings: &Settings) -> Result<(Preset, Effective), Error> {
        let (mut preset, effective) = Null::new().configure(settings)?;
        preset.regs[0] = settings.speed_hz;
        Ok((preset, effective))
    }

    fn plan(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        Null::new().plan(preset, message)
    }

    fn run(&mut self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<usize, Unfinished> {
        run_message(self, preset, message)
    }

    fn reclaim(&mut self) {
        self.configured = None;
        self.record.push(Entry::Reclaim);
    }
}
