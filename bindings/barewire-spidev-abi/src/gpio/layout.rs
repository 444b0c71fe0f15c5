//! The structures of `linux/gpio.h`, by their fields' places. Numbers are in the machine's byte order.

/// `struct gpiochip_info`.
pub(super) const CHIP_INFO: usize = 68;
/// `struct gpio_v2_line_info`.
pub(super) const LINE_INFO: usize = 256;
/// `struct gpio_v2_line_config`.
pub(super) const LINE_CONFIG: usize = 272;
/// `struct gpio_v2_line_request`.
pub(super) const LINE_REQUEST: usize = 592;
/// `struct gpio_v2_line_values`.
pub(super) const LINE_VALUES: usize = 16;
/// `struct gpio_v2_line_event`.
pub(super) const LINE_EVENT: usize = 48;
/// `struct gpio_v2_line_info_changed`.
pub(super) const LINE_INFO_CHANGED: usize = 288;
/// `struct gpioline_info`.
pub(super) const LINE_INFO_1: usize = 72;
/// `struct gpioline_info_changed`.
pub(super) const LINE_INFO_CHANGED_1: usize = 104;
/// `struct gpiohandle_request`.
pub(super) const HANDLE_REQUEST: usize = 364;
/// `struct gpiohandle_config`.
pub(super) const HANDLE_CONFIG: usize = 84;
/// `struct gpiohandle_data`.
pub(super) const HANDLE_DATA: usize = 64;
/// `struct gpioevent_request`.
pub(super) const EVENT_REQUEST: usize = 48;
/// `struct gpioevent_data` where a 64-bit number is aligned to 8 bytes.
pub(super) const EVENT_DATA: usize = 16;

/// Bytes of a name.
pub(super) const NAME: usize = 32;
/// The most lines of a request.
pub(super) const REQUEST_LINES: usize = 64;
/// The most attributes of a configuration.
pub(super) const ATTRS: usize = 10;

/// Fields of a structure. Fields outside it read as zero.
#[derive(Clone, Copy)]
pub(super) struct Fields<'b>(pub(super) &'b [u8]);

impl<'b> Fields<'b> {
    /// The `len` bytes at `at`, fewer at the end.
    pub(super) fn bytes(self, at: usize, len: usize) -> &'b [u8] {
        let end = at.saturating_add(len).min(self.0.len());
        self.0.get(at..end).unwrap_or_default()
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        self.bytes(at, 4).try_into().map_or(0, u32::from_ne_bytes)
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        self.bytes(at, 8).try_into().map_or(0, u64::from_ne_bytes)
    }

    /// A name, of which the last byte is not looked at.
    pub(super) fn name(self, at: usize) -> Vec<u8> {
        let bytes = self.bytes(at, NAME - 1);
        bytes.iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

/// A structure that is filled in, zero at first.
pub(super) struct FilledStruct(pub(super) Vec<u8>);

impl FilledStruct {
    pub(super) fn new(len: usize) -> Self {
        Self(vec![0; len])
    }

    pub(super) fn bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self
    }

    pub(super) fn u32(self, at: usize, value: u32) -> Self {
        self.bytes(at, &value.to_ne_bytes())
    }

    pub(super) fn u64(self, at: usize, value: u64) -> Self {
        self.bytes(at, &value.to_ne_bytes())
    }

    /// A name, cut so that it ends in a zero byte.
    pub(super) fn name(self, at: usize, name: &[u8]) -> Self {
        self.bytes(at, &name[..name.len().min(NAME - 1)])
    }
}
