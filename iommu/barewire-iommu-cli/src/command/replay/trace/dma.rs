//! The kernel's dma events.
//!
//! `dma_addr=` and `phys_addr=` are hexadecimal without `0x`; `size=` is decimal. Lists are
//! `{0x1000,0x2000}`, of sizes too.

use super::{Call, Event, LineError, number};

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Map,
    Unmap,
    Alloc,
    Free,
    AllocList,
    MapList,
    UnmapList,
    Failed,
    Passed(&'static str),
}

impl Kind {
    /// The kind of the event with that name.
    pub(super) fn of(name: &str) -> Option<Self> {
        const PASSED: [&str; 4] = [
            "dma_sync_single_for_cpu",
            "dma_sync_single_for_device",
            "dma_sync_sg_for_cpu",
            "dma_sync_sg_for_device",
        ];
        Some(match name {
            "dma_map_page" | "dma_map_phys" | "dma_map_resource" => Self::Map,
            "dma_unmap_page" | "dma_unmap_phys" | "dma_unmap_resource" => Self::Unmap,
            "dma_alloc" | "dma_alloc_pages" => Self::Alloc,
            "dma_alloc_sgt" => Self::AllocList,
            "dma_free" | "dma_free_pages" | "dma_free_sgt" => Self::Free,
            "dma_map_sg" => Self::MapList,
            "dma_unmap_sg" => Self::UnmapList,
            "dma_map_sg_err" | "dma_alloc_sgt_err" => Self::Failed,
            _ => Self::Passed(PASSED.iter().find(|passed| **passed == name)?),
        })
    }

    /// Reads the fields after the name.
    pub(super) fn parse<'a>(
        self,
        mut words: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Event<'a>, LineError> {
        if let Self::Passed(name) = self {
            return Ok(Event::Passed(name));
        }
        let device = words.next().filter(|word| !word.contains('='));
        let device = device.ok_or(LineError::Missing("device"))?;
        let fields = Fields(words);
        let call = match self {
            Self::Map | Self::Alloc => fields.map(self == Self::Alloc)?,
            Self::AllocList => {
                let (addr, size) = fields.range()?;
                // The list's only piece is the whole of it.
                let phys = match fields.list("phys_addrs")?[..] {
                    [phys] => Some(phys),
                    _ => None,
                };
                Call::Map { addr, size, phys: within(phys, size)? }
            }
            Self::Unmap | Self::Free => {
                let (addr, size) = fields.range()?;
                Call::Unmap { addr, size }
            }
            Self::MapList => fields.map_list()?,
            Self::UnmapList => {
                let phys = fields.list("phys_addrs")?;
                if phys.is_empty() {
                    return Err(LineError::Empty);
                }
                Call::UnmapList { phys }
            }
            Self::Failed | Self::Passed(_) => Call::Failed,
        };
        Ok(Event::Dma { device, call })
    }
}

/// The words behind the device's name.
struct Fields<I>(I);

impl<'a, I: Iterator<Item = &'a str> + Clone> Fields<I> {
    fn text(&self, name: &'static str) -> Result<&'a str, LineError> {
        let value = |word: &'a str| word.strip_prefix(name)?.strip_prefix('=');
        self.0.clone().find_map(value).ok_or(LineError::Missing(name))
    }

    /// A number that the kernel prints without `0x`.
    fn hex(&self, name: &'static str) -> Result<u64, LineError> {
        let text = self.text(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(text);
        // `from_str_radix` takes a sign, which has no meaning here.
        if !digits.starts_with(|first: char| first.is_ascii_hexdigit()) {
            return Err(LineError::Number(name));
        }
        u64::from_str_radix(digits, 16).map_err(|_| LineError::Number(name))
    }

    fn list(&self, name: &'static str) -> Result<Vec<u64>, LineError> {
        let text = self.text(name)?;
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let inner = inner.ok_or(LineError::List(name))?;
        if inner.is_empty() {
            return Ok(Vec::new());
        }
        inner
            .split(',')
            .map(|item| number(name, Some(item)).map_err(|_| LineError::List(name)))
            .collect()
    }

    fn range(&self) -> Result<(u64, u64), LineError> {
        let (addr, size) = (self.hex("dma_addr")?, number("size", Some(self.text("size")?))?);
        sound(addr, size)?;
        Ok((addr, size))
    }

    fn map(&self, allocated: bool) -> Result<Call, LineError> {
        let (addr, size) = (self.hex("dma_addr")?, number("size", Some(self.text("size")?))?);
        let phys = if allocated { None } else { Some(self.hex("phys_addr")?) };
        if failed(addr, phys) || (allocated && is_null(self.text("virt_addr")?)) {
            return Ok(Call::Failed);
        }
        sound(addr, size)?;
        Ok(Call::Map { addr, size, phys: within(phys, size)? })
    }

    fn map_list(&self) -> Result<Call, LineError> {
        let addresses = self.list("dma_addrs")?;
        let sizes = self.list("sizes")?;
        let phys = self.list("phys_addrs")?;
        if addresses.len() != sizes.len() {
            return Err(LineError::Uneven { addresses: addresses.len(), sizes: sizes.len() });
        }
        if addresses.is_empty() || phys.is_empty() {
            return Err(LineError::Empty);
        }
        let segments: Vec<(u64, u64)> = addresses.into_iter().zip(sizes).collect();
        for &(addr, size) in &segments {
            sound(addr, size)?;
        }
        let truncated = self.0.clone().any(|word| word == "[TRUNCATED]");
        Ok(Call::MapList { segments, phys, truncated })
    }
}

/// A range of at least a byte, up to the last of 64 bits.
fn sound(addr: u64, size: u64) -> Result<(), LineError> {
    let last = size.checked_sub(1).ok_or(LineError::Empty)?;
    addr.checked_add(last).map(drop).ok_or(LineError::Overflow)
}

/// The same for the address in memory, if it is known.
fn within(phys: Option<u64>, size: u64) -> Result<Option<u64>, LineError> {
    phys.map_or(Ok(()), |phys| sound(phys, size))?;
    Ok(phys)
}

/// Whether the address stands for an error: all bits of the kernel's type are set, which may have
/// 32. Such an address of a buffer has the buffer's offset in its page.
fn failed(addr: u64, phys: Option<u64>) -> bool {
    let same_offset = phys.is_some_and(|phys| phys & 0xfff == addr & 0xfff);
    addr == u64::MAX || (addr == u64::from(u32::MAX) && !same_offset)
}

/// Whether `%p` printed no pointer, in the words of the kernel or of the tools.
fn is_null(text: &str) -> bool {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    matches!(text, "(null)" | "(nil)")
        || (!digits.is_empty() && digits.bytes().all(|digit| digit == b'0'))
}
