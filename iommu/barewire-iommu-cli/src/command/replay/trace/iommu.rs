//! The fields of `iommu:map` and `iommu:unmap`.

use super::{Event, LineError, number};

/// Reads `map:`.
pub(super) fn map<'a>(words: impl Iterator<Item = &'a str>) -> Result<Event<'a>, LineError> {
    Fields::new(words)?.map()
}

/// Reads `unmap:`.
pub(super) fn unmap<'a>(words: impl Iterator<Item = &'a str>) -> Result<Event<'a>, LineError> {
    Fields::new(words)?.unmap()
}

#[derive(Default)]
struct Fields<'a> {
    iova: Option<&'a str>,
    end: Option<&'a str>,
    paddr: Option<&'a str>,
    size: Option<&'a str>,
    unmapped_size: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn new(words: impl Iterator<Item = &'a str>) -> Result<Self, LineError> {
        let mut fields = Self::default();
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "-" {
                fields.end = Some(words.next().ok_or(LineError::Missing("size"))?);
                continue;
            }
            let place = match word.split_once('=') {
                Some(("iova", _)) => &mut fields.iova,
                Some(("paddr", _)) => &mut fields.paddr,
                Some(("size", _)) => &mut fields.size,
                Some(("unmapped_size", _)) => &mut fields.unmapped_size,
                // A newer kernel may say more.
                _ => continue,
            };
            *place = word.split_once('=').map(|(_, value)| value);
        }
        Ok(fields)
    }

    fn range(&self) -> Result<(u64, u64), LineError> {
        let iova = number("iova", self.iova)?;
        let size = number("size", self.size)?;
        if size == 0 {
            return Err(LineError::Empty);
        }
        let last = iova.checked_add(size - 1).ok_or(LineError::Overflow)?;
        if self.end.is_some() {
            let (end, expected) = (number("iova", self.end)?, last.wrapping_add(1));
            if end != expected {
                return Err(LineError::End { end, expected });
            }
        }
        Ok((iova, size))
    }

    fn map(&self) -> Result<Event<'a>, LineError> {
        let (iova, size) = self.range()?;
        let phys = number("paddr", self.paddr)?;
        phys.checked_add(size - 1).ok_or(LineError::Overflow)?;
        Ok(Event::Map { iova, phys, size })
    }

    fn unmap(&self) -> Result<Event<'a>, LineError> {
        let (iova, size) = self.range()?;
        let unmapped = number("unmapped_size", self.unmapped_size)?;
        if unmapped > size {
            return Err(LineError::TooMuch { size, unmapped });
        }
        Ok(Event::Unmap { iova, size, unmapped })
    }
}
