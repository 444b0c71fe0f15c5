//! `struct spi_ioc_transfer`, and how much of it a node takes.

use rustix::io::Errno;

/// Bytes of `struct spi_ioc_transfer`.
pub const TRANSFER_BYTES: usize = 32;

/// The default of `bufsiz`, in bytes, as in the kernel.
pub const BUFSIZ: u32 = 4096;

/// The alignment of the kernel's buffers, to which it rounds each transfer's length when it adds
/// them up: 128 bytes on arm64, 64 on arm, and a pointer's size on machines whose caches are coherent.
const ALIGNMENT: u64 = if cfg!(target_arch = "aarch64") {
    128
} else if cfg!(target_arch = "arm") {
    64
} else {
    8
};

/// `struct spi_ioc_transfer`: addresses always have 64 bits. Zero means "none" in them and "the
/// node's" elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IocTransfer {
    /// The address of the bytes to send, or 0.
    pub tx_buf: u64,
    /// The address to receive at, or 0.
    pub rx_buf: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// Its clock, in hertz.
    pub speed_hz: u32,
    /// The delay after it, in microseconds.
    pub delay_usecs: u16,
    /// Bits of a word.
    pub bits_per_word: u8,
    /// Not 0: CS becomes inactive behind it; behind the last one, it stays active.
    pub cs_change: u8,
    /// How many lines send: 0, 1, 2, 4 or 8.
    pub tx_nbits: u8,
    /// How many lines receive.
    pub rx_nbits: u8,
    /// The delay between two words, in microseconds.
    pub word_delay_usecs: u8,
}

impl IocTransfer {
    /// Reads it as it lies in memory; the last byte is padding.
    #[must_use]
    pub fn decode(bytes: &[u8; TRANSFER_BYTES]) -> Self {
        let [t0, t1, t2, t3, t4, t5, t6, t7, r0, r1, r2, r3, r4, r5, r6, r7, rest @ ..] = *bytes;
        let [l0, l1, l2, l3, s0, s1, s2, s3, d0, d1, bits, change, tx, rx, word, _] = rest;
        Self {
            tx_buf: u64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            rx_buf: u64::from_ne_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            len: u32::from_ne_bytes([l0, l1, l2, l3]),
            speed_hz: u32::from_ne_bytes([s0, s1, s2, s3]),
            delay_usecs: u16::from_ne_bytes([d0, d1]),
            bits_per_word: bits,
            cs_change: change,
            tx_nbits: tx,
            rx_nbits: rx,
            word_delay_usecs: word,
        }
    }

    /// All transfers of a message, as they are in memory. An incomplete last one is left out.
    pub fn decode_all(bytes: &[u8]) -> impl Iterator<Item = Self> + '_ {
        bytes.as_chunks::<TRANSFER_BYTES>().0.iter().map(Self::decode)
    }

    /// The bytes that it sends.
    #[must_use]
    pub fn tx_bytes(&self) -> usize {
        if self.tx_buf == 0 { 0 } else { self.len as usize }
    }

    /// The bytes that it receives.
    #[must_use]
    pub fn rx_bytes(&self) -> usize {
        if self.rx_buf == 0 { 0 } else { self.len as usize }
    }
}

/// A message's bytes, added up as the kernel adds them: what is sent and what is received apart, each
/// transfer rounded up to the buffers' alignment.
#[derive(Clone, Copy, Debug)]
pub struct Sums {
    bufsiz: u64,
    tx: u64,
    rx: u64,
    total: u64,
}

impl Sums {
    /// Begins with nothing, on a node that takes `bufsiz` bytes.
    #[must_use]
    pub fn new(bufsiz: u32) -> Self {
        Self { bufsiz: bufsiz.into(), tx: 0, rx: 0, total: 0 }
    }

    /// Adds a transfer.
    ///
    /// # Errors
    /// `EMSGSIZE` if that is more than the node takes.
    pub fn add(&mut self, transfer: &IocTransfer) -> Result<(), Errno> {
        let len = u64::from(transfer.len);
        let rounded = len.next_multiple_of(ALIGNMENT);
        self.total += len;
        let int_max = i32::MAX as u64;
        let mut fits = self.total <= int_max && len <= int_max;
        if transfer.rx_buf != 0 {
            self.rx += rounded;
            fits &= self.rx <= self.bufsiz;
        }
        if transfer.tx_buf != 0 {
            self.tx += rounded;
            fits &= self.tx <= self.bufsiz;
        }
        if fits { Ok(()) } else { Err(Errno::MSGSIZE) }
    }

    /// The sum of the lengths: what the ioctl returns.
    #[must_use]
    pub fn total(&self) -> u32 {
        // `add` has seen that it is at most `i32::MAX`.
        u32::try_from(self.total).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tx: bool, rx: bool, len: u32) -> IocTransfer {
        let (tx_buf, rx_buf) = (u64::from(tx), u64::from(rx));
        IocTransfer { tx_buf, rx_buf, len, ..IocTransfer::default() }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn every_field_has_its_place() {
        let bytes: [u8; 32] = std::array::from_fn(|index| index as u8);
        let transfer = IocTransfer {
            tx_buf: 0x0706_0504_0302_0100,
            rx_buf: 0x0f0e_0d0c_0b0a_0908,
            len: 0x1312_1110,
            speed_hz: 0x1716_1514,
            delay_usecs: 0x1918,
            bits_per_word: 0x1a,
            cs_change: 0x1b,
            tx_nbits: 0x1c,
            rx_nbits: 0x1d,
            word_delay_usecs: 0x1e,
        };
        assert_eq!(IocTransfer::decode(&bytes), transfer);
        let twice = [bytes, bytes].concat();
        assert_eq!(IocTransfer::decode_all(&twice).collect::<Vec<_>>(), [transfer, transfer]);
        assert_eq!(IocTransfer::decode_all(&twice[1..]).count(), 1);
    }

    #[test]
    fn what_is_sent_and_received_is_summed_apart() {
        let mut sums = Sums::new(4096);
        for transfer in [of(true, false, 4096), of(false, true, 4096), of(false, false, 100_000)] {
            assert_eq!(sums.add(&transfer), Ok(()));
        }
        assert_eq!(sums.total(), 108_192);
        assert_eq!(sums.clone().add(&of(true, false, 1)), Err(Errno::MSGSIZE));
        assert_eq!(sums.clone().add(&of(false, true, 1)), Err(Errno::MSGSIZE));
        assert_eq!(sums.add(&of(true, true, 0)), Ok(()));
    }

    #[test]
    fn each_transfer_is_rounded_up() {
        let room = 4096 / ALIGNMENT as u32;
        let mut sums = Sums::new(4096);
        for _ in 0..room {
            assert_eq!(sums.add(&of(true, true, 1)), Ok(()));
        }
        assert_eq!(sums.total(), room);
        assert_eq!(sums.add(&of(true, true, 1)), Err(Errno::MSGSIZE), "one more of one byte");
    }

    #[test]
    fn no_sum_overflows() {
        let mut sums = Sums::new(u32::MAX);
        assert_eq!(sums.add(&of(false, false, i32::MAX as u32)), Ok(()));
        assert_eq!(sums.clone().add(&of(false, false, 1)), Err(Errno::MSGSIZE));
        assert_eq!(sums.add(&of(true, true, u32::MAX)), Err(Errno::MSGSIZE));
        assert_eq!(Sums::new(u32::MAX).add(&of(true, true, 1 << 31)), Err(Errno::MSGSIZE));
    }
}
