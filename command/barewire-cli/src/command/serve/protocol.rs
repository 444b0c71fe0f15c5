//! The serprog protocol, version 1, as far as a programmer of SPI chips needs it.
//!
//! Read first: *Serial Flasher Protocol Specification - version 1*, flashrom's documentation,
//! <https://www.flashrom.org/supported_hw/supported_prog/serprog/serprog-protocol.html>.
//!
//! # How it works
//! A command is a byte and its parameters, numbers with the low byte first. The answer is ACK and what was
//! asked for, or NAK. This module only decodes and encodes.

const ACK: u8 = 0x06;
const NAK: u8 = 0x15;
/// The bus type of SPI.
const SPI: u8 = 8;

/// Bytes that a program may send ahead: the sockets and terminals behind this hold more.
const SERIAL_BUFFER: u16 = u16::MAX;
/// Bytes of operations that wait for O_EXEC: only delays do, and they are summed.
const OPERATION_BUFFER: u16 = u16::MAX;
/// The longest operation each way, in bytes: what flashrom takes at once.
const OPERATION_MAX: usize = 64 << 10;

/// Commands by their numbers.
const NOP: u8 = 0x00;
const Q_IFACE: u8 = 0x01;
const Q_CMDMAP: u8 = 0x02;
const Q_PGMNAME: u8 = 0x03;
const Q_SERBUF: u8 = 0x04;
const Q_BUSTYPE: u8 = 0x05;
const Q_OPBUF: u8 = 0x07;
const Q_WRNMAXLEN: u8 = 0x08;
const O_INIT: u8 = 0x0b;
const O_DELAY: u8 = 0x0e;
const O_EXEC: u8 = 0x0f;
const SYNCNOP: u8 = 0x10;
const Q_RDNMAXLEN: u8 = 0x11;
const S_BUSTYPE: u8 = 0x12;
const O_SPIOP: u8 = 0x13;
const S_SPI_FREQ: u8 = 0x14;
const S_PIN_STATE: u8 = 0x15;

const KNOWN: [u8; 17] = [
    NOP,
    Q_IFACE,
    Q_CMDMAP,
    Q_PGMNAME,
    Q_SERBUF,
    Q_BUSTYPE,
    Q_OPBUF,
    Q_WRNMAXLEN,
    O_INIT,
    O_DELAY,
    O_EXEC,
    SYNCNOP,
    Q_RDNMAXLEN,
    S_BUSTYPE,
    O_SPIOP,
    S_SPI_FREQ,
    S_PIN_STATE,
];

/// A request of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    /// A question whose answer never changes.
    Known(Vec<u8>),
    /// The longest operation in that direction.
    Limit(Way),
    /// A delay of that many microseconds, at the next [`Command::Execute`].
    Delay(u32),
    /// Do what waits.
    Execute,
    /// Forget what waits.
    Discard,
    /// A clock in hertz.
    Speed(u32),
    /// Send these, then receive that many.
    Operation { send: &'a [u8], receive: usize },
    /// Not known here.
    Unknown,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Send,
    Receive,
}

/// The first command in the received bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A command of that many bytes.
    Command(Command<'a>, usize),
    /// A part of a command only.
    More,
}

/// The longest operations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    send: usize,
    receive: usize,
}

impl Limits {
    /// The limits on a bus whose messages have at most `message_bytes`. Most of a message is for data; a
    /// command with its address takes the rest.
    pub(super) fn of(message_bytes: usize) -> Self {
        const COMMAND_BYTES: usize = 8;
        let data = message_bytes.saturating_sub(COMMAND_BYTES).clamp(1, OPERATION_MAX);
        Self { send: message_bytes.min(OPERATION_MAX), receive: data }
    }

    pub(super) fn answer(&self, way: Way) -> Vec<u8> {
        let bytes = match way {
            Way::Send => self.send,
            Way::Receive => self.receive,
        };
        ack(&(bytes as u32).to_le_bytes()[..3])
    }
}

/// ACK and an answer.
pub(super) fn ack(answer: &[u8]) -> Vec<u8> {
    [&[ACK], answer].concat()
}

/// NAK.
pub(super) fn nak() -> Vec<u8> {
    vec![NAK]
}

/// The number of the `bytes` at `at`, low byte first.
fn number(asked: &[u8], at: usize, bytes: usize) -> Option<u32> {
    let field = asked.get(at..at + bytes)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}

/// Decodes the command at the front.
pub(super) fn next(asked: &[u8]) -> Next<'_> {
    decode(asked).map_or(Next::More, |(command, bytes)| Next::Command(command, bytes))
}

fn decode(asked: &[u8]) -> Option<(Command<'_>, usize)> {
    let known = |answer: &[u8]| Command::Known(ack(answer));
    Some(match *asked.first()? {
        NOP => (known(&[]), 1),
        Q_IFACE => (known(&1_u16.to_le_bytes()), 1),
        Q_CMDMAP => {
            let mut map = [0; 32];
            KNOWN.iter().for_each(|command| map[usize::from(command / 8)] |= 1 << (command % 8));
            (known(&map), 1)
        }
        Q_PGMNAME => (known(b"barewire\0\0\0\0\0\0\0\0"), 1),
        Q_SERBUF => (known(&SERIAL_BUFFER.to_le_bytes()), 1),
        Q_BUSTYPE => (known(&[SPI]), 1),
        Q_OPBUF => (known(&OPERATION_BUFFER.to_le_bytes()), 1),
        Q_WRNMAXLEN => (Command::Limit(Way::Send), 1),
        Q_RDNMAXLEN => (Command::Limit(Way::Receive), 1),
        O_INIT => (Command::Discard, 1),
        O_DELAY => (Command::Delay(number(asked, 1, 4)?), 5),
        O_EXEC => (Command::Execute, 1),
        // The only answer with both NAK and ACK: it shows a program where answers begin.
        SYNCNOP => (Command::Known(vec![NAK, ACK]), 1),
        S_BUSTYPE => match number(asked, 1, 1)? {
            bus if bus == u32::from(SPI) => (known(&[]), 2),
            _ => (Command::Known(nak()), 2),
        },
        O_SPIOP => {
            let [send, receive] = [number(asked, 1, 3)? as usize, number(asked, 4, 3)? as usize];
            let end = 7 + send;
            (Command::Operation { send: asked.get(7..end)?, receive }, end)
        }
        S_SPI_FREQ => match number(asked, 1, 4)? {
            0 => (Command::Known(nak()), 5),
            hertz => (Command::Speed(hertz), 5),
        },
        // The lines are the board's; there is nothing to let go.
        S_PIN_STATE => {
            number(asked, 1, 1)?;
            (known(&[]), 2)
        }
        _ => (Command::Unknown, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(asked: &[u8]) -> Vec<u8> {
        match next(asked) {
            Next::Command(Command::Known(answer), _) => answer,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_are_the_specifications() {
        assert_eq!(answer(&[0x00]), [0x06]);
        assert_eq!(answer(&[0x01]), [0x06, 1, 0]);
        assert_eq!(answer(&[0x05]), [0x06, 8]);
        assert_eq!(answer(&[0x10]), [0x15, 0x06]);
        assert_eq!(answer(&[0x12, 8]), [0x06]);
        assert_eq!(answer(&[0x12, 1]), [0x15]);
        assert_eq!(answer(&[0x14, 0, 0, 0, 0]), [0x15]);
        let map = answer(&[0x02]);
        assert_eq!((map.len(), map[0]), (33, 0x06));
        // 00 to 05, 07; 08, 0b, 0e, 0f; 10 to 15.
        assert_eq!(map[1..4], [0b1011_1111, 0b1100_1001, 0b0011_1111]);
        assert!(map[4..].iter().all(|byte| *byte == 0));
        assert_eq!(Limits::of(usize::MAX).answer(Way::Send), [0x06, 0, 0, 1]);
        assert_eq!(Limits::of(256).answer(Way::Receive), [0x06, 248, 0, 0]);
    }

    #[test]
    fn commands_with_parameters_wait_for_all_of_them() {
        let read = [0x13, 4, 0, 0, 2, 1, 0, 0x03, 1, 2, 3, 0x00];
        for cut in 1..11 {
            assert_eq!(next(&read[..cut]), Next::More, "{cut}");
        }
        let operation = Command::Operation { send: &[3, 1, 2, 3], receive: 258 };
        assert_eq!(next(&read), Next::Command(operation, 11));
        assert_eq!(next(&[0x0e, 1, 0, 0]), Next::More);
        assert_eq!(next(&[0x0e, 1, 1, 0, 0]), Next::Command(Command::Delay(257), 5));
        assert_eq!(next(&[0x14, 0x40, 0x42, 0x0f, 0]), Next::Command(Command::Speed(1_000_000), 5));
        assert_eq!(next(&[0x09, 1]), Next::Command(Command::Unknown, 1));
        assert_eq!(next(&[]), Next::More);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8 & 0x1f
            })
            .take(12)
            .collect();
            if let Next::Command(_, len) = next(&bytes) {
                assert!((1..=bytes.len()).contains(&len));
            }
        }
    }
}
