//! The pages that contain a register block.

/// The part of a file to map, and the block's place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The mapping's offset in the file: a multiple of the page size.
    pub(crate) file_offset: u64,
    /// Bytes to map: whole pages.
    pub(crate) map_len: usize,
    /// The block's offset in the mapping.
    pub(crate) block_offset: usize,
    /// Bytes of the block.
    pub(crate) block_len: u32,
}

impl Window {
    /// The pages of `page_size` bytes that contain a block of `len` bytes at `address`; `None` if
    /// it is empty or extends beyond the last address.
    pub(crate) fn around(address: u64, len: u32, page_size: usize) -> Option<Self> {
        let page = page_size as u64;
        let end = address.checked_add(len.into())?.checked_next_multiple_of(page)?;
        let file_offset = address - address % page;
        let map_len = usize::try_from(end - file_offset).ok()?;
        let block_offset = (address - file_offset) as usize;
        (len > 0).then_some(Self { file_offset, map_len, block_offset, block_len: len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_pages_a_block_touches() {
        let around = |address, len| {
            let w = Window::around(address, len, 0x1000).expect("it fits");
            assert_eq!(w.file_offset + w.block_offset as u64, address);
            assert_eq!(w.block_len, len);
            (w.file_offset, w.map_len)
        };
        assert_eq!(around(0x3082_0000, 0x40), (0x3082_0000, 0x1000));
        assert_eq!(around(0x3082_0000, 0x1000), (0x3082_0000, 0x1000));
        assert_eq!(around(0x3082_0000, 0x1001), (0x3082_0000, 0x2000));
        assert_eq!(around(0x3038_4070, 4), (0x3038_4000, 0x1000));
        assert_eq!(around(0xffc, 4), (0, 0x1000));
        assert_eq!(around(0xffc, 8), (0, 0x2000));
    }

    #[test]
    fn no_block_is_empty_or_beyond_the_end() {
        assert_eq!(Window::around(0x1000, 0, 0x1000), None);
        assert_eq!(Window::around(u64::MAX - 3, 4, 0x1000), None);
        assert_eq!(Window::around(u64::MAX - 0x0fff, 4, 0x1000), None);
    }
}
