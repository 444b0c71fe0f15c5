//! An initramfs: a cpio archive in the "newc" format, which the kernel unpacks at boot.
//!
//! *Read first*: "initramfs buffer format", Documentation/driver-api/early-userspace/buffer-format.rst
//! of Linux 6.1, by Al Viro and H. Peter Anvin, 2002
//! (<https://docs.kernel.org/6.1/driver-api/early-userspace/buffer-format.html>).
//!
//! Each entry is a header of 13 fields of 8 hexadecimal digits behind the magic number `070701`, the
//! name with a NUL, and the data; header with name, and data, are padded to 4 bytes each. The kernel
//! takes an archive without compression, so none is needed here.
//!
//! *Not supported*: hard links, device nodes, times (all are 0, so that equal content is equal bytes).

/// What each header begins with.
const MAGIC: &str = "070701";
/// The name of the entry that ends an archive.
const LAST: &str = "TRAILER!!!";

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// An archive that grows by entries.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    /// A directory that anybody may enter. Its parent must be there already.
    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, &[]);
    }

    /// A file with the permissions `mode`.
    pub(super) fn file(&mut self, path: &str, mode: u32, data: &[u8]) {
        self.entry(path, REGULAR | mode, data);
    }

    /// A symbolic link to `target`.
    pub(super) fn symlink(&mut self, path: &str, target: &str) {
        self.entry(path, SYMLINK | 0o777, target.as_bytes());
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entries = 0;
        self.entry(LAST, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, data: &[u8]) {
        let inode = self.entries;
        self.entries += 1;
        let links = if mode & DIRECTORY == DIRECTORY { 2 } else { 1 };
        let size = u32::try_from(data.len()).expect("a file of the initramfs is below 4 GiB");
        let name = u32::try_from(path.len() + 1).expect("a name is short");
        // Inode, mode, user, group, links, time, size, device and special device by two numbers
        // each, the name's length with its NUL, and a checksum that this format leaves at 0.
        let fields = [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name, 0];
        self.bytes.extend(MAGIC.bytes());
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_header_name_and_data_each_padded_to_four() {
        let mut archive = Archive::default();
        archive.file("init", 0o755, b"12345");
        let bytes = archive.finish();
        let text = String::from_utf8(bytes.clone()).expect("plain text");
        let header = "07070100000000000081ed00000000000000000000000100000000\
                      0000000500000000000000000000000000000000\
                      0000000500000000";
        assert_eq!(&text[..110], header);
        // 110 + 5 are padded to 116, and 5 to 8.
        assert_eq!(&text[110..124], "init\0\x0012345\0\0\0");
        assert_eq!(&text[124..130], MAGIC);
        assert!(text.trim_end_matches('\0').ends_with(LAST));
        assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn kinds_differ_by_their_mode() {
        let mut archive = Archive::default();
        archive.directory("bin");
        archive.symlink("bin/sh", "busybox");
        let text = String::from_utf8(archive.finish()).expect("plain text");
        assert_eq!(&text[14..22], "000041ed");
        // 110 + 4 are padded to 116.
        assert_eq!(&text[116 + 6..116 + 22], "000000010000a1ff");
        assert!(text.contains("bin/sh\0") && text.contains("busybox"));
    }

    #[test]
    fn the_end_alone_is_an_archive() {
        let bytes = Archive::default().finish();
        assert_eq!(bytes.len(), (110 + LAST.len() + 1).next_multiple_of(4));
    }
}
