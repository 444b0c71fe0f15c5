//! Settings to register values: the divisor, the mode, the line, and how a transfer is cut into frames.

use super::regs::{DIVISOR_MAX, LINES_MAX, SCPH, SCPOL, SRL};
use super::{P_NATIVE, P_SER, Size, is_native};
use crate::controller::block::BlockConfig;
use crate::controller::lines::{self, Select};
use crate::controller::{CsLine, Limits, Plan, Preset};
use crate::spi::{Effective, Error, MessageError, Mode, Settings, Transfer};
use crate::time::{quotient, quotient_ceil};

/// The properties of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DwSsiConfig {
    /// The clock that BAUDR divides (`ssi_clk`), in hertz, above zero.
    pub reference_hz: u32,
    /// The select lines; a device names one by its index. Native lines are active low.
    pub chip_selects: [CsLine; 4],
    /// How many native select lines the block has, wired or not, 1 to 16: `num-cs` of a device
    /// tree. While a GPIO selects a chip, the block needs one that is not wired to another chip.
    pub native_lines: u8,
    /// Transfers that take longer than this on the wire, in nanoseconds, wait by interrupt; the
    /// others are polled. [`ALWAYS_POLL`](crate::controller::ALWAYS_POLL) if there is no interrupt.
    pub poll_limit_ns: u32,
}

// A plan's `control`: the mode bits of CTRLR0 in the lower half, BAUDR in the upper half.
const MODE_BITS: u32 = 0xffff;

/// CTRLR0 of a plan's `control`, without a frame size.
#[inline(always)]
pub(super) const fn mode_of(control: u32) -> u32 {
    control & MODE_BITS
}

/// BAUDR of a plan's `control`.
#[inline(always)]
pub(super) const fn divisor(control: u32) -> u32 {
    control >> 16
}

impl DwSsiConfig {
    /// BAUDR, in its place in `control`, for the fastest clock not above `speed_hz`.
    fn divisor_for(&self, speed_hz: u32) -> Result<u32, Error> {
        if speed_hz == 0 {
            return Err(Error::SpeedZero);
        }
        // The block clears an odd divisor's lowest bit, to a faster clock than asked for.
        let divisor = u64::from(quotient_ceil(self.reference_hz, speed_hz)).next_multiple_of(2);
        if divisor > DIVISOR_MAX.into() {
            let min_hz = quotient_ceil(self.reference_hz, DIVISOR_MAX);
            return Err(Error::SpeedTooLow { asked_hz: speed_hz, min_hz });
        }
        Ok((divisor as u32) << 16)
    }

    /// SER while the chip is selected: the chip's native line, or one that is not wired to a chip.
    fn ser(&self, select: Select) -> Result<u32, Error> {
        let channel = match select {
            Select::Native { channel } => Some(channel),
            Select::Gpio { .. } | Select::None => {
                lines::idle_channels(&self.chip_selects, self.native_lines).next()
            }
        };
        channel.map(|channel| 1 << channel).ok_or(Error::NoIdleChipSelect)
    }
}

/// The properties of the board, and how the block was built.
#[derive(Debug)]
pub struct Built {
    pub(super) board: DwSsiConfig,
    /// Found out at bring-up.
    pub(super) size: Size,
}

impl From<DwSsiConfig> for Built {
    fn from(board: DwSsiConfig) -> Self {
        Self { board, size: Size::default() }
    }
}

impl BlockConfig for Built {
    fn check(&self) {
        assert!(self.board.reference_hz > 0, "the block's reference clock runs");
        let count = self.board.native_lines;
        assert!(
            (1..=LINES_MAX).contains(&count),
            "the block has 1 to 16 select lines, not {count}"
        );
        for (channel, _) in lines::native(&self.board.chip_selects) {
            assert!(channel < count, "the block has {count} select lines, and no line {channel}");
        }
    }

    fn chip_selects(&self) -> &[CsLine] {
        &self.board.chip_selects
    }

    fn limits(&self, timer_hz: u32) -> Limits {
        let wide = if self.size.wide { 1 << 31 } else { 0 };
        Limits::new(
            quotient_ceil(self.board.reference_hz, DIVISOR_MAX),
            self.board.reference_hz / 2,
            1 << 7 | 1 << 15 | wide,
            timer_hz,
        )
    }

    fn configure(&self, settings: &Settings, timer_hz: u32) -> Result<(Preset, Effective), Error> {
        let (select, active_high) = lines::find(&self.board.chip_selects, settings)?;
        let mode = settings.mode;
        if mode.contains(Mode::LSB_FIRST) {
            return Err(Error::LsbFirst);
        }
        let native = matches!(select, Select::Native { .. });
        if native {
            check_native_settings(settings, active_high)?;
        }
        let bit = |on: bool, bit: u32| if on { bit } else { 0 };
        let control = self.board.divisor_for(settings.speed_hz)?
            | bit(mode.contains(Mode::CPHA), SCPH)
            | bit(mode.contains(Mode::CPOL), SCPOL)
            | bit(mode.contains(Mode::LOOP), SRL);
        let speed_hz = quotient(self.board.reference_hz, divisor(control));

        let mut regs = [0; 4];
        regs[P_SER] = self.board.ser(select)?;
        regs[P_NATIVE] = native.into();
        let plan = Plan::new(control, 0, word_bytes(settings.bits_per_word, self.size)?);
        let mut preset =
            Preset::by_timer(settings, timer_hz, plan, regs)?.with_line(select, active_high);
        // Whether the native line would pulse depends on the whole message.
        preset.asks = native;
        preset.selection = preset.selection.holding_cs(!native);
        Ok((preset, Effective::by_timer(speed_hz, settings, timer_hz)))
    }

    fn plan(&self, preset: &Preset, transfer: &Transfer<'_>) -> Result<u32, Error> {
        if transfer.bits_per_word != 0 {
            word_bytes(transfer.bits_per_word, self.size)?;
        }
        let device = preset.plan.control;
        if transfer.speed_hz == 0 {
            return Ok(device);
        }
        Ok(self.board.divisor_for(transfer.speed_hz)? | mode_of(device))
    }

    fn complete(&self, preset: &Preset, message: &mut [Transfer<'_>]) -> Result<(), MessageError> {
        check_native(preset, self.size, message)
    }

    fn poll_limit_ns(&self) -> u32 {
        self.board.poll_limit_ns
    }

    fn reference_hz(&self) -> u32 {
        self.board.reference_hz
    }

    fn word_periods(&self, plan: &Plan) -> u32 {
        8 * u32::from(plan.word_bytes()) * divisor(plan.control)
    }
}

/// Bytes of a word of `bits`, if a frame can hold them.
fn word_bytes(bits: u8, size: Size) -> Result<u8, Error> {
    match bits {
        8 | 16 => Ok(bits / 8),
        32 if size.wide => Ok(4),
        _ => Err(Error::BitsPerWord { bits }),
    }
}

/// Checks the settings of a device on a native line. It is active low, falls with the first bit and
/// rises with the last, so it has none of the waits that software makes around a GPIO's edges.
fn check_native_settings(settings: &Settings, active_high: bool) -> Result<(), Error> {
    if active_high {
        return Err(Error::CsPolarity { active_high: false });
    }
    let Settings { cs_setup_ns, cs_hold_ns, word_delay_ns, .. } = *settings;
    match [cs_setup_ns, cs_hold_ns, word_delay_ns].into_iter().find(|&asked_ns| asked_ns > 0) {
        Some(asked_ns) => Err(Error::NativeCsDelay { asked_ns, max_ns: 0 }),
        None => Ok(()),
    }
}

/// Reads that a change of the frame size within a transfer costs: the one that finds the block idle
/// before it, and one for the writes.
const CHANGE_READS: usize = 2;

/// How many bytes go in a frame, for a transfer of `len` bytes (at least one) with `plan`. The
/// remainder of `len` goes in one last, shorter frame.
///
/// A frame costs a read whatever it carries, so few frames are best. For example, 4 bytes are one
/// frame, 9 are three of 3, and 257 are 64 of 4 and one of 1.
#[inline]
pub(super) fn frame_bytes(plan: &Plan, len: usize, size: Size) -> u8 {
    let word = plan.word_bytes();
    let widest = size.frame_bytes_max();
    if plan.word_delay_ticks != 0 || word >= widest {
        return word;
    }
    if len < usize::from(widest) {
        return len as u8;
    }
    equal_frames(len, word, widest).unwrap_or(widest)
}

/// [`frame_bytes`] of a transfer in 8-bit words without delays, in a few instructions.
#[inline(always)]
pub(super) fn frame_of_bytes(len: usize, size: Size) -> u8 {
    match (size.wide, len) {
        (true, _) if len % 4 == 0 => 4,
        (true, 1 | 2) => len as u8,
        (true, ..=THIRDS_MAX) if len % 3 == 0 => 3,
        (true, _) => 4,
        (false, 1 | 3) => 1,
        (false, _) => 2,
    }
}

/// The longest transfer that is cut into frames of 3 bytes.
const THIRDS_MAX: usize = 24;

/// The widest frame of whole words that divides `len`, if that takes hardly more frames than the
/// widest frame would. On a native line, any frame size that divides `len` will do.
fn equal_frames(len: usize, word: u8, widest: u8) -> Option<u8> {
    let few = len / usize::from(widest) + CHANGE_READS;
    divisors(len, word, widest).find(|&bytes| len / usize::from(bytes) <= few)
}

/// Frames of whole words that divide `len`, the widest first.
fn divisors(len: usize, word: u8, widest: u8) -> impl Iterator<Item = u8> {
    let whole = move |&bytes: &u8| {
        bytes.checked_rem(word) == Some(0) && len.checked_rem(bytes.into()) == Some(0)
    };
    (word..=widest).rev().filter(whole)
}

/// [`frame_bytes`] on a native line, where the frame size must not change: the line would rise.
pub(super) fn native_frame_bytes(plan: &Plan, len: usize, size: Size) -> u8 {
    let word = plan.word_bytes();
    let widest = if plan.word_delay_ticks == 0 { size.frame_bytes_max() } else { word };
    divisors(len, word, widest).next().unwrap_or(word)
}

/// Refuses messages that would pulse the native line. It rises when the transmit FIFO is empty, so
/// a message is one transfer that is in the FIFO before it begins.
pub(super) fn check_native(
    preset: &Preset,
    size: Size,
    message: &[Transfer<'_>],
) -> Result<(), MessageError> {
    if !is_native(preset) {
        return Ok(());
    }
    let last = message.len().saturating_sub(1);
    for (index, transfer) in message.iter().enumerate() {
        let (plan, len) = (&transfer.plan, transfer.data.len());
        let frame = native_frame_bytes(plan, len, size);
        let frames_max = if plan.word_delay_ticks == 0 { size.depth } else { 1 };
        let max_bytes = frames_max * usize::from(frame);
        if len > max_bytes || (index < last && !transfer.cs_change) {
            return Err(MessageError::refused(Error::NativeCsWouldPulse { max_bytes }, index));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Size = Size::new(64, true);
    const NARROW: Size = Size::new(16, false);

    #[test]
    fn few_frames_carry_a_transfer() {
        let bytes = Plan::new(0, 0, 1);
        let frames =
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 257].map(|len| frame_bytes(&bytes, len, WIDE));
        assert_eq!(frames, [1, 2, 3, 4, 4, 3, 4, 4, 3, 4, 3, 4]);
        let frames = [1, 2, 3, 4, 5, 257].map(|len| frame_bytes(&bytes, len, NARROW));
        assert_eq!(frames, [1, 2, 1, 2, 2, 2]);
    }

    #[test]
    fn a_short_transfer_is_cut_as_any() {
        let bytes = Plan::new(0, 0, 1);
        for size in [WIDE, NARROW] {
            for len in 1..=1_000 {
                let cut = frame_bytes(&bytes, len, size);
                assert_eq!(frame_of_bytes(len, size), cut, "{len} {size:?}");
                let frames = len / usize::from(cut);
                assert!(len > size.load_bytes || frames <= size.depth, "{len} {size:?}");
            }
        }
    }

    #[test]
    fn a_word_is_never_cut_and_words_apart_are_frames() {
        let words = Plan::new(0, 0, 2);
        assert_eq!([2, 4, 6, 10].map(|len| frame_bytes(&words, len, WIDE)), [2, 4, 2, 4]);
        assert_eq!(frame_bytes(&words, 8, NARROW), 2);
        assert_eq!(frame_bytes(&Plan::new(0, 0, 4), 8, WIDE), 4);
        let apart = Plan::new(0, 1, 1);
        assert_eq!(frame_bytes(&apart, 8, WIDE), 1);
    }

    #[test]
    fn frames_of_the_own_line_are_equal() {
        let bytes = Plan::new(0, 0, 1);
        let frames = [3, 4, 5, 10, 64, 255].map(|len| native_frame_bytes(&bytes, len, WIDE));
        assert_eq!(frames, [3, 4, 1, 2, 4, 3]);
    }
}
