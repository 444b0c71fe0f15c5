//! An initramfs: a cpio archive in the "newc" format, which the kernel unpacks at boot.
//!
//! The crate cpio writes it. Times are 0, so that equal content is equal bytes. The kernel takes an archive
//! without compression, so none is needed here.

use std::io::Write as _;

use cpio::NewcBuilder;

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// An archive that grows by entries.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// A directory that every user may enter. Its parent must be there already.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, 2, &[]);
    }

    /// A file with the permissions `mode`.
    pub(crate) fn file(&mut self, path: &str, mode: u32, data: &[u8]) {
        self.entry(path, REGULAR | mode, 1, data);
    }

    /// A symbolic link to `target`.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        self.entry(path, SYMLINK | 0o777, 1, target.as_bytes());
    }

    /// The whole archive.
    pub(crate) fn finish(self) -> Vec<u8> {
        cpio::newc::trailer(self.bytes).expect("a vector takes all that is written")
    }

    fn entry(&mut self, path: &str, mode: u32, links: u32, data: &[u8]) {
        let size = u32::try_from(data.len()).expect("a file of the initramfs is below 4 GiB");
        let entry = NewcBuilder::new(path).ino(self.entries).mode(mode).nlink(links);
        self.entries += 1;
        let mut writer = entry.write(&mut self.bytes, size);
        let written = writer.write_all(data).and_then(|()| writer.finish());
        written.expect("a vector takes all that is written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_by_their_mode() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.symlink("bin/sh", "busybox");
        archive.file("init", 0o755, b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8(bytes.clone()).expect("plain text");
        for (name, mode) in [("bin", "000041ed"), ("bin/sh", "0000a1ff"), ("init", "000081ed")] {
            let at = text.find(&format!("{name}\0")).expect(name);
            // The mode stands behind the magic number and the inode of a header of 110.
            assert_eq!(&text[at - 110 + 14..at - 110 + 22], mode, "{name}");
        }
        assert!(text.contains("busybox") && text.contains("12345"));
        assert_eq!(bytes.len() % 4, 0);
    }
}
