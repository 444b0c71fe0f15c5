//! Short messages joined into one transfer, for a native chip select that is active for one burst
//! only.
//!
//! # How it works
//! The native chip select of some blocks is active for one burst. A write and the read that follows
//! would select the chip twice. The drivers of these blocks refuse such a message
//! ([`Error::NativeCsWouldPulse`]) before anything is clocked. But on the wire the message is one
//! exchange: the written bytes go out, then zeros, and the answer comes in during the zeros.
//!
//! So a refused message of at most [`JOINED_MAX`] bytes is copied into one transfer and tried
//! again, and the received bytes are copied back. A message that is not refused costs nothing
//! extra.
//!
//! Only plain transfers are joined: those without a clock, word length, delay or `cs_change` of
//! their own. Otherwise the message keeps its error. It also keeps it if the controller refuses the
//! joined transfer, because that is longer than a burst or its words do not fit.

use crate::spi::{Error, MessageError, Transfer};

/// The longest message that is joined, in bytes. Most register drivers send a command, an address
/// and a few bytes.
pub(super) const JOINED_MAX: usize = 64;

/// The bytes of a message, contiguous.
pub(super) struct JoinedBytes {
    bytes: [u8; JOINED_MAX],
    len: usize,
}

impl JoinedBytes {
    /// Joins a message that was refused with `error`, if it can be joined.
    pub(super) fn of(error: &MessageError, message: &[Transfer<'_>]) -> Option<Self> {
        let refused = matches!(error.error, Error::NativeCsWouldPulse { .. });
        let plain = |transfer: &Transfer<'_>| transfer.is_plain() && !transfer.cs_change;
        if !refused || message.len() < 2 || !message.iter().all(plain) {
            return None;
        }
        let mut joined = Self { bytes: [0; JOINED_MAX], len: 0 };
        for transfer in message {
            let end = joined.len + transfer.data.len();
            let place = joined.bytes.get_mut(joined.len..end)?;
            if let Some(tx) = transfer.data.tx() {
                place.copy_from_slice(tx);
            }
            joined.len = end;
        }
        Some(joined)
    }

    /// The transfer to run instead; received bytes replace those sent.
    pub(super) fn transfer(&mut self) -> Transfer<'_> {
        Transfer::in_place(&mut self.bytes[..self.len])
    }

    /// Copies the received bytes to the transfers of the original message.
    pub(super) fn scatter(&self, message: &mut [Transfer<'_>]) {
        let mut begin = 0;
        for transfer in message {
            let end = begin + transfer.data.len();
            if let Some(rx) = transfer.data.rx_mut() {
                rx.copy_from_slice(&self.bytes[begin..end]);
            }
            begin = end;
        }
    }
}

/// Runs `message` by `run`. If it is refused because its chip select would pulse, runs it joined.
///
/// # Errors
/// The error of `run`. If `run` refuses the joined transfer as well, the error of the original
/// message.
#[inline]
pub(super) fn run_or_join(
    message: &mut [Transfer<'_>],
    mut run: impl FnMut(&mut [Transfer<'_>]) -> Result<usize, MessageError>,
) -> Result<usize, MessageError> {
    let refused = match run(message) {
        Ok(length) => return Ok(length),
        Err(error) => error,
    };
    let Some(mut joined) = JoinedBytes::of(&refused, message) else { return Err(refused) };
    match run(&mut [joined.transfer()]) {
        Ok(length) => {
            joined.scatter(message);
            Ok(length)
        }
        Err(MessageError {
            error: Error::NativeCsWouldPulse { .. } | Error::Length { .. },
            ..
        }) => Err(refused),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    const PULSE: Error = Error::NativeCsWouldPulse { max_bytes: 512 };

    /// A wire that takes one transfer of at most `max` bytes and answers each byte by its complement.
    fn one_burst(
        max: usize,
        bursts: &mut Vec<Vec<u8>>,
        message: &mut [Transfer<'_>],
    ) -> Result<usize, MessageError> {
        let [transfer] = message else { return Err(MessageError::refused(PULSE, 0)) };
        let len = transfer.data.len();
        if len > max {
            return Err(MessageError::refused(PULSE, 0));
        }
        let sent = transfer.data.tx().map_or(vec![0; len], <[u8]>::to_vec);
        if let Some(rx) = transfer.data.rx_mut() {
            rx.iter_mut().zip(&sent).for_each(|(rx, &tx)| *rx = !tx);
        }
        bursts.push(sent);
        Ok(len)
    }

    fn run(
        max: usize,
        message: &mut [Transfer<'_>],
    ) -> (Result<usize, MessageError>, Vec<Vec<u8>>) {
        let mut bursts = Vec::new();
        let ran = run_or_join(message, |message| one_burst(max, &mut bursts, message));
        (ran, bursts)
    }

    #[test]
    fn a_write_and_a_read_are_one_burst() {
        let (mut rx, mut both) = ([0; 3], [7, 8]);
        let message = &mut [
            Transfer::write(&[1, 2]),
            Transfer::read(&mut rx),
            Transfer::in_place(&mut both),
            Transfer::write(&[9]),
        ];
        assert_eq!(run(512, message), (Ok(8), vec![vec![1, 2, 0, 0, 0, 7, 8, 9]]));
        assert_eq!((rx, both), ([0xff; 3], [!7, !8]));
    }

    #[test]
    fn a_message_that_runs_is_not_joined() {
        let mut rx = [0; 2];
        assert_eq!(run(512, &mut [Transfer::read(&mut rx)]), (Ok(2), vec![vec![0, 0]]));
    }

    #[test]
    fn what_is_too_long_or_asks_for_something_keeps_its_error() {
        let refused = || (Err(MessageError::refused(PULSE, 0)), Vec::<Vec<u8>>::new());
        let bytes = [0; JOINED_MAX];
        let joined = |len: usize, max| {
            run(max, &mut [Transfer::write(&[1]), Transfer::write(&bytes[..len])])
        };
        assert_eq!(joined(JOINED_MAX - 1, 512).0, Ok(JOINED_MAX));
        assert_eq!(joined(JOINED_MAX, 512), refused());
        assert_eq!(joined(8, 8), refused(), "longer than a burst");
        let first = || Transfer::write(&[1]);
        for asking in [
            first().with_cs_change(),
            first().with_delay_ns(1),
            first().with_word_delay_ns(1),
            first().with_speed_hz(1),
            first().with_bits_per_word(16),
        ] {
            assert_eq!(run(512, &mut [asking, Transfer::write(&[2])]), refused());
        }
        assert_eq!(run(2, &mut [Transfer::write(&[1, 2, 3])]), refused(), "one transfer is one");
    }

    #[test]
    fn what_goes_wrong_on_the_wire_is_told() {
        let mut count = 0;
        let timeout = MessageError::refused(Error::Timeout { timeout_us: 9 }, 0);
        let ran = run_or_join(&mut [Transfer::write(&[1]), Transfer::write(&[2])], |message| {
            count += 1;
            Err(if message.len() > 1 { MessageError::refused(PULSE, 0) } else { timeout })
        });
        assert_eq!((ran, count), (Err(timeout), 2));
    }
}
