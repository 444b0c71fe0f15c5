//! The protocol's messages: 32 bytes each, the same on the socket and on the shared page.
//!
//! *Read first*: docs/mmio.md, which has the table of messages.
//!
//! # How it works
//! A message is four little-endian words of 64 bits. The first holds the kind (16 bits), a width (8), an
//! index (8) and an offset (32). The others are a value, a time, and the time of the next event.
//! [`Request::parse`] and [`Answer::parse`] take any four words and never panic; what they accept,
//! `emit` writes back with the words that the message does not use as 0.

/// The protocol's version. Server and client must have the same.
pub const VERSION: u32 = 1;
/// The bytes of a message.
pub const BYTES: usize = 32;
/// No event is due.
pub const NEVER: u64 = u64::MAX;

/// The words of a message.
pub type Words = [u64; 4];

/// The words of a message's bytes.
#[must_use]
pub fn words(bytes: &[u8; BYTES]) -> Words {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
}

/// The bytes of a message's words.
#[must_use]
pub fn bytes(words: Words) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (chunks, _) = bytes.as_chunks_mut::<8>();
    for (chunk, word) in chunks.iter_mut().zip(words) {
        *chunk = word.to_le_bytes();
    }
    bytes
}

/// The words are no message of this protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoMessage {
    /// The kind found.
    pub kind: u16,
}

impl std::fmt::Display for NoMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no message of kind {:#x}", self.kind)
    }
}

impl std::error::Error for NoMessage {}

/// What a pad is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadDrive {
    /// An output, low.
    Low,
    /// An output, high.
    High,
    /// An input.
    Input,
}

/// A message of the client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first message of a connection.
    Hello {
        /// The client's [`VERSION`].
        version: u32,
        /// Accesses go over a shared page.
        page: bool,
    },
    /// Asks for a block.
    Describe {
        /// The block: 0 is the controller, the GPIO banks follow.
        block: u8,
    },
    /// Reads a register.
    Read {
        /// The block.
        block: u8,
        /// Bytes: 1, 2 or 4.
        width: u8,
        /// The register's offset in the block.
        offset: u32,
        /// The client's time.
        now_ns: u64,
    },
    /// Writes a register. On the page a client need not wait for the answer.
    Write {
        /// The block.
        block: u8,
        /// Bytes: 1, 2 or 4.
        width: u8,
        /// The register's offset in the block.
        offset: u32,
        /// The value.
        value: u32,
        /// The client's time.
        now_ns: u64,
    },
    /// Lets the board come to the client's time.
    Wait {
        /// The client's time.
        now_ns: u64,
    },
    /// Reads a pad's level, without an access to its bank.
    Look {
        /// The GPIO bank, from 0.
        bank: u8,
        /// The pad's bit.
        bit: u32,
        /// The client's time.
        now_ns: u64,
    },
    /// Sets a pad, by the bank's registers.
    Drive {
        /// The GPIO bank, from 0.
        bank: u8,
        /// The pad's bit.
        bit: u32,
        /// How the pad is driven from now on.
        pad: PadDrive,
        /// The client's time.
        now_ns: u64,
    },
    /// The last message of a connection.
    Bye,
}

const HELLO: u16 = 1;
const DESCRIBE: u16 = 2;
const READ: u16 = 3;
const WRITE: u16 = 4;
const WAIT: u16 = 5;
const LOOK: u16 = 6;
const DRIVE: u16 = 7;
const BYE: u16 = 8;

const fn head(kind: u16, width: u8, index: u8, offset: u32) -> u64 {
    kind as u64 | (width as u64) << 16 | (index as u64) << 24 | (offset as u64) << 32
}

impl Request {
    /// The request in `words`.
    ///
    /// # Errors
    /// [`NoMessage`], also for a width, pad or version flag that the protocol does not have.
    pub fn parse(words: Words) -> Result<Self, NoMessage> {
        let [first, value, now_ns, _] = words;
        let (kind, width, index) = (first as u16, (first >> 16) as u8, (first >> 24) as u8);
        let offset = (first >> 32) as u32;
        let bad = Err(NoMessage { kind });
        let sized = matches!(width, 1 | 2 | 4);
        Ok(match kind {
            HELLO if value <= 1 => Self::Hello { version: offset, page: value == 1 },
            DESCRIBE => Self::Describe { block: index },
            READ if sized => Self::Read { block: index, width, offset, now_ns },
            WRITE if sized => {
                let value = value as u32;
                Self::Write { block: index, width, offset, value, now_ns }
            }
            WAIT => Self::Wait { now_ns },
            LOOK => Self::Look { bank: index, bit: offset, now_ns },
            DRIVE => {
                let pad = match value {
                    0 => PadDrive::Low,
                    1 => PadDrive::High,
                    2 => PadDrive::Input,
                    _ => return bad,
                };
                Self::Drive { bank: index, bit: offset, pad, now_ns }
            }
            BYE => Self::Bye,
            _ => return bad,
        })
    }

    /// Its words.
    #[must_use]
    pub fn emit(self) -> Words {
        match self {
            Self::Hello { version, page } => [head(HELLO, 0, 0, version), page.into(), 0, 0],
            Self::Describe { block } => [head(DESCRIBE, 0, block, 0), 0, 0, 0],
            Self::Read { block, width, offset, now_ns } => {
                [head(READ, width, block, offset), 0, now_ns, 0]
            }
            Self::Write { block, width, offset, value, now_ns } => {
                [head(WRITE, width, block, offset), value.into(), now_ns, 0]
            }
            Self::Wait { now_ns } => [head(WAIT, 0, 0, 0), 0, now_ns, 0],
            Self::Look { bank, bit, now_ns } => [head(LOOK, 0, bank, bit), 0, now_ns, 0],
            Self::Drive { bank, bit, pad, now_ns } => {
                let value = match pad {
                    PadDrive::Low => 0,
                    PadDrive::High => 1,
                    PadDrive::Input => 2,
                };
                [head(DRIVE, 0, bank, bit), value, now_ns, 0]
            }
            Self::Bye => [head(BYE, 0, 0, 0), 0, 0, 0],
        }
    }
}

/// Why the server refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// The words are no message.
    NoMessage = 1,
    /// The server has another version: the answer's value.
    Version = 2,
    /// The board has no such block, bank or pad.
    NoSuchPlace = 3,
    /// The offset is outside the block, or not a multiple of the width.
    Offset = 4,
    /// The time is too far ahead: the answer's value is the longest step, in nanoseconds.
    TooFar = 5,
    /// The first message must be Hello, and no later one may be.
    Order = 6,
}

impl Reason {
    const ALL: [Self; 6] = [
        Self::NoMessage,
        Self::Version,
        Self::NoSuchPlace,
        Self::Offset,
        Self::TooFar,
        Self::Order,
    ];

    /// The reason in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::NoMessage => "no message of this protocol",
            Self::Version => "the server speaks another version",
            Self::NoSuchPlace => "the board has no such block, bank or pad",
            Self::Offset => "the offset is outside the block, or not a multiple of the width",
            Self::TooFar => "the time is too far ahead",
            Self::Order => "a connection begins with Hello, which comes once",
        }
    }
}

/// A message of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To Hello. If the client asked for a page, its descriptor comes with these bytes.
    Welcome {
        /// The server's [`VERSION`].
        version: u32,
        /// How many blocks the board has.
        blocks: u8,
        /// How many interrupt lines.
        lines: u8,
    },
    /// To Describe.
    Block {
        /// The block.
        block: u8,
        /// The bytes of its registers.
        bytes: u32,
        /// Where Linux and the SoC's manual have it.
        base: u64,
        /// What a write costs, in nanoseconds of the board's time: a client that does not wait for a
        /// write's answer lets so much time pass.
        write_ns: u64,
    },
    /// The answer to every request that acts on the board.
    Done {
        /// The interrupt lines that are asserted, a bit each.
        lines: u32,
        /// What was read, or 0.
        value: u32,
        /// The board's time, which includes the access.
        now_ns: u64,
        /// When a line may change without an access; [`NEVER`] for never.
        due_ns: u64,
    },
    /// The answer to a request that the server does not carry out.
    Refused {
        /// Why.
        reason: Reason,
        /// A figure that belongs to the reason.
        value: u64,
    },
}

const WELCOME: u16 = 0x81;
const BLOCK: u16 = 0x82;
const DONE: u16 = 0x83;
const REFUSED: u16 = 0x84;

impl Answer {
    /// The answer in `words`.
    ///
    /// # Errors
    /// [`NoMessage`].
    pub fn parse(words: Words) -> Result<Self, NoMessage> {
        let [first, value, now_ns, due_ns] = words;
        let (kind, width, index) = (first as u16, (first >> 16) as u8, (first >> 24) as u8);
        let offset = (first >> 32) as u32;
        Ok(match kind {
            WELCOME => Self::Welcome { version: offset, blocks: index, lines: width },
            BLOCK => Self::Block { block: index, bytes: offset, base: value, write_ns: now_ns },
            DONE => Self::Done { lines: offset, value: value as u32, now_ns, due_ns },
            REFUSED => {
                let reason = Reason::ALL.into_iter().find(|reason| *reason as u32 == offset);
                Self::Refused { reason: reason.ok_or(NoMessage { kind })?, value }
            }
            _ => return Err(NoMessage { kind }),
        })
    }

    /// Its words.
    #[must_use]
    pub fn emit(self) -> Words {
        match self {
            Self::Welcome { version, blocks, lines } => {
                [head(WELCOME, lines, blocks, version), 0, 0, 0]
            }
            Self::Block { block, bytes, base, write_ns } => {
                [head(BLOCK, 0, block, bytes), base, write_ns, 0]
            }
            Self::Done { lines, value, now_ns, due_ns } => {
                [head(DONE, 0, 0, lines), value.into(), now_ns, due_ns]
            }
            Self::Refused { reason, value } => [head(REFUSED, 0, 0, reason as u32), value, 0, 0],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_parsed_is_emitted_and_parsed_again(
            kind in prop_oneof![0_u16..16, 0x80_u16..0x88, any::<u16>()],
            width in prop_oneof![Just(0_u8), Just(1), Just(2), Just(4), any::<u8>()],
            rest in any::<[u8; 5]>(),
            value in prop_oneof![0_u64..3, any::<u64>()],
            times in any::<[u64; 2]>(),
        ) {
            let [index, rest @ ..] = rest;
            let words = [head(kind, width, index, u32::from_le_bytes(rest)), value, times[0], times[1]];
            if let Ok(request) = Request::parse(words) {
                prop_assert_eq!(Request::parse(request.emit()), Ok(request));
                prop_assert!(Answer::parse(words).is_err());
            }
            if let Ok(answer) = Answer::parse(words) {
                prop_assert_eq!(Answer::parse(answer.emit()), Ok(answer));
            }
            prop_assert_eq!(super::words(&bytes(words)), words);
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let write =
            Request::Write { block: 1, width: 4, offset: 0x0403_0201, value: 5, now_ns: 1 << 40 };
        let mut expected = [0; BYTES];
        expected[..12].copy_from_slice(&[4, 0, 4, 1, 1, 2, 3, 4, 5, 0, 0, 0]);
        expected[21] = 1;
        assert_eq!(bytes(write.emit()), expected);
    }

    #[test]
    fn widths_and_pads_that_do_not_exist_are_refused() {
        for words in [
            [head(READ, 3, 0, 0), 0, 0, 0],
            [head(WRITE, 0, 0, 0), 0, 0, 0],
            [head(DRIVE, 0, 0, 0), 3, 0, 0],
            [head(HELLO, 0, 0, 1), 2, 0, 0],
            [0; 4],
        ] {
            assert_eq!(Request::parse(words), Err(NoMessage { kind: words[0] as u16 }));
        }
        let unknown = [head(REFUSED, 0, 0, 99), 0, 0, 0];
        assert_eq!(Answer::parse(unknown), Err(NoMessage { kind: REFUSED }));
    }
}
