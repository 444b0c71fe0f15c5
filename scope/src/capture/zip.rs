//! The members of a zip archive, one at a time, inflated as they are read.
//!
//! # Read first
//! PKWARE, *APPNOTE.TXT* 6.3: 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 to 4.3.16 (its end, also for zip64),
//! 4.5.3 (zip64's sizes).
//!
//! # Not supported
//! Encryption, several disks, and methods other than *stored* and *deflated*: sigrok writes none of them.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom, Take};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use crate::error::io;

/// The longest comment behind the directory's end, and that end.
const TAIL_MAX: u64 = 0xffff + 22;
/// A directory longer than this is none of a capture: hundreds of thousands of members.
const DIRECTORY_MAX: u64 = 64 << 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A member, as the central directory describes it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) bytes: u64,
    packed_bytes: u64,
    crc: u32,
    method: u16,
    encrypted: bool,
    header_at: u64,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn read_at(file: &mut File, at: u64, len: u64) -> Result<Vec<u8>, String> {
    file.seek(SeekFrom::Start(at)).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// Lists the members of an archive.
pub(super) fn list(file: &mut File) -> Result<Vec<Member>, String> {
    let len = file.metadata().map_err(io)?.len();
    let tail_at = len.saturating_sub(TAIL_MAX);
    let tail = read_at(file, tail_at, TAIL_MAX)?;
    let end = tail.windows(4).rposition(|window| window == b"PK\x05\x06");
    let end = end.ok_or("a zip archive without its directory at the end: the file is cut")?;
    let cut = || "the zip archive's directory is cut or damaged".to_owned();
    let mut count = u64::from(u16_at(&tail, end + 10).ok_or_else(cut)?);
    let mut size = u64::from(u32_at(&tail, end + 12).ok_or_else(cut)?);
    let mut at = u64::from(u32_at(&tail, end + 16).ok_or_else(cut)?);
    let locator = end.checked_sub(20).filter(|&at| tail[at..].starts_with(b"PK\x06\x07"));
    if let Some(locator) = locator {
        let end = read_at(file, u64_at(&tail, locator + 8).ok_or_else(cut)?, 56)?;
        let is_end = end.starts_with(b"PK\x06\x06");
        let field = |at| u64_at(&end, at).filter(|_| is_end).ok_or_else(cut);
        (count, size, at) = (field(32)?, field(40)?, field(48)?);
    }
    if size > DIRECTORY_MAX || at.saturating_add(size) > len {
        return Err(cut());
    }
    let directory = read_at(file, at, size)?;
    let (mut rest, mut members) = (&directory[..], Vec::new());
    while members.len() as u64 != count {
        let (member, behind) = member(rest).ok_or_else(cut)?;
        members.push(member);
        rest = behind;
    }
    Ok(members)
}

/// The first entry of the rest of a directory, and what is behind it.
fn member(entry: &[u8]) -> Option<(Member, &[u8])> {
    if !entry.starts_with(b"PK\x01\x02") {
        return None;
    }
    let length = |at| u16_at(entry, at).map(usize::from);
    let (name_len, extra_len, comment_len) = (length(28)?, length(30)?, length(32)?);
    let name = entry.get(46..46 + name_len)?;
    let mut extra = entry.get(46 + name_len..46 + name_len + extra_len)?;
    let behind = entry.get(46 + name_len + extra_len + comment_len..)?;
    // Fields that do not fit 32 bits are all ones, and stand in this order in the extra field 1.
    let (mut bytes, mut packed_bytes, mut header_at) = (
        u64::from(u32_at(entry, 24)?),
        u64::from(u32_at(entry, 20)?),
        u64::from(u32_at(entry, 42)?),
    );
    while let (Some(id), Some(len)) = (u16_at(extra, 0), u16_at(extra, 2)) {
        let field = extra.get(4..4 + usize::from(len))?;
        extra = &extra[4 + field.len()..];
        if id == 1 {
            let large = [&mut bytes, &mut packed_bytes, &mut header_at];
            for (index, value) in
                large.into_iter().filter(|value| **value == 0xffff_ffff).enumerate()
            {
                *value = u64_at(field, 8 * index)?;
            }
        }
    }
    let member = Member {
        name: String::from_utf8_lossy(name).into_owned(),
        bytes,
        packed_bytes,
        crc: u32_at(entry, 16)?,
        method: u16_at(entry, 10)?,
        encrypted: u16_at(entry, 8)? & 1 != 0,
        header_at,
    };
    Some((member, behind))
}

enum Packed {
    Stored(Take<BufReader<File>>),
    Deflated(Box<DeflateDecoder<Take<BufReader<File>>>>),
}

/// A member that is being read.
pub(super) struct Open {
    member: Member,
    packed: Packed,
    crc: Crc,
    left: u64,
}

impl Open {
    /// Opens `member` of the archive in `file`.
    pub(super) fn new(file: &File, member: &Member) -> Result<Self, String> {
        let wrong = |what: &str| format!("member {}: {what}", member.name);
        if member.encrypted {
            return Err(wrong("it is encrypted"));
        }
        let mut file = file.try_clone().map_err(io)?;
        let header = read_at(&mut file, member.header_at, 30)?;
        let lengths = u16_at(&header, 26).zip(u16_at(&header, 28));
        let lengths = lengths.filter(|_| header.starts_with(b"PK\x03\x04"));
        let (name, extra) =
            lengths.ok_or_else(|| wrong("it is not where the archive's directory says"))?;
        file.seek_relative(i64::from(name) + i64::from(extra)).map_err(io)?;
        let packed = BufReader::with_capacity(64 << 10, file).take(member.packed_bytes);
        let packed = match member.method {
            STORED => Packed::Stored(packed),
            DEFLATED => Packed::Deflated(Box::new(DeflateDecoder::new(packed))),
            other => {
                return Err(wrong(&format!("it is packed by method {other}; 0 and 8 are read")));
            }
        };
        Ok(Self { member: member.clone(), packed, crc: Crc::new(), left: member.bytes })
    }

    /// Reads into `buffer`. Returns how much; 0 at the end, where length and checksum are compared.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let wrong = |what: String| format!("member {}: {what}", self.member.name);
        let len = match &mut self.packed {
            Packed::Stored(packed) => packed.read(buffer),
            Packed::Deflated(packed) => packed.read(buffer),
        };
        let len = len.map_err(|error| wrong(io(error)))?;
        self.left = (self.left.checked_sub(len as u64))
            .ok_or_else(|| wrong("it is longer than the archive says".into()))?;
        self.crc.update(&buffer[..len]);
        if len == 0 && self.left > 0 {
            return Err(wrong(format!("it ends {} bytes early: the file is cut", self.left)));
        }
        if len == 0 && self.crc.sum() != self.member.crc {
            return Err(wrong("its checksum is wrong: the file is damaged".into()));
        }
        Ok(len)
    }

    /// How much of it was read, in bytes of the archive.
    pub(super) fn read_bytes(&self) -> u64 {
        match &self.packed {
            Packed::Stored(packed) => self.member.packed_bytes - packed.limit(),
            Packed::Deflated(packed) => packed.total_in(),
        }
    }
}
