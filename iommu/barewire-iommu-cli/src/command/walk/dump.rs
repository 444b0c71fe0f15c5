//! Files that hold physical memory from some address on.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::shared::failure::Failure;
use crate::shared::number;

/// A file and where its first byte was, as asked.
#[derive(Clone, Debug)]
pub(super) struct DumpFile {
    path: String,
    base: u64,
}

/// Parses `FILE@0xBASE`; the file's name may hold an `@` too.
pub(super) fn asked(text: &str) -> Result<DumpFile, String> {
    let (path, base) = text.rsplit_once('@').filter(|(path, _)| !path.is_empty()).ok_or(
        "where in physical memory does it begin? write FILE@0xBASE, as tables.bin@0x80000000",
    )?;
    let base = number::bytes(base).map_err(|error| format!("{base:?} behind the @: {error}"))?;
    if !base.is_multiple_of(8) {
        return Err(format!("{base:#x} is no place for descriptors: begin at a multiple of 8"));
    }
    Ok(DumpFile { path: path.into(), base })
}

struct Dump {
    file: File,
    path: String,
    base: u64,
    len: u64,
}

/// Pages of dumps that were read last. A walk comes back to few tables, but often.
const PAGES: usize = 64;
const PAGE: u64 = 4096;

struct Page {
    dump: usize,
    number: u64,
    bytes: Vec<u8>,
}

/// All dumps. They are read as far as needed.
pub(super) struct Memory {
    dumps: Vec<Dump>,
    pages: Vec<Option<Page>>,
    /// The first thing that went wrong while reading.
    failed: Option<Failure>,
}

impl Memory {
    pub(super) fn open(asked: &[DumpFile]) -> Result<Self, Failure> {
        let mut dumps: Vec<Dump> = Vec::new();
        for DumpFile { path, base } in asked {
            let base = *base;
            let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
            let (about, file) =
                opened.map_err(|error| Failure::io(format_args!("open {path:?}"), &error))?;
            if !about.is_file() {
                return Err(Failure::Failed(format!(
                    "{path:?} is no file: copy the memory to one"
                )));
            }
            let len = about.len();
            if base.checked_add(len).is_none() {
                return Err(Failure::Usage(format!(
                    "{path:?} has {len} bytes, too many to begin at {base:#x}"
                )));
            }
            let over = |other: &&Dump| base < other.base + other.len && other.base < base + len;
            if let Some(other) = dumps.iter().find(over) {
                return Err(Failure::Usage(format!(
                    "{path:?} and {:?} both have {:#x}: which is it?",
                    other.path,
                    base.max(other.base)
                )));
            }
            dumps.push(Dump { file, path: path.clone(), base, len });
        }
        let pages = (0..PAGES).map(|_| None).collect();
        Ok(Self { dumps, pages, failed: None })
    }

    /// The 8 bytes at `at`, if a dump has them.
    pub(super) fn read(&mut self, at: u64) -> Option<u64> {
        let has = |dump: &Dump| {
            at.checked_sub(dump.base).is_some_and(|offset| dump.len.saturating_sub(offset) >= 8)
        };
        let index = self.dumps.iter().position(has)?;
        let dump = &self.dumps[index];
        let offset = at - dump.base;
        let number = offset / PAGE;
        let slot = &mut self.pages[(number as usize ^ index) % PAGES];
        let page = match slot {
            Some(page) if page.dump == index && page.number == number => page,
            _ => match dump.page(number) {
                Ok(bytes) => slot.insert(Page { dump: index, number, bytes }),
                Err(error) => {
                    let doing = format!("read {:?} at {offset:#x}", dump.path);
                    self.failed.get_or_insert(Failure::io(doing, &error));
                    return None;
                }
            },
        };
        let within = (offset % PAGE) as usize;
        let bytes = page.bytes.get(within..within + 8)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    /// The error of a read, if one failed.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The addresses there are, for errors.
    pub(super) fn extent(&self) -> String {
        let one = |dump: &Dump| format!("{:#x} to {:#x}", dump.base, dump.base + dump.len);
        self.dumps.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

impl Dump {
    fn page(&self, number: u64) -> io::Result<Vec<u8>> {
        let begin = number * PAGE;
        let mut bytes = vec![0; PAGE.min(self.len - begin) as usize];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes)
    }
}
