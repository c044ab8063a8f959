//! Files that may come from another party: read whole within a limit, and whose they are.
//!
//! It reads bytes and asks the file system; the caller judges what is in a file.

mod mounts;
mod owner;

use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;

pub(crate) use mounts::{MountPoint, mounts};
pub(crate) use owner::{require_own_dir, require_trusted};

/// The largest file that a user writes for turnup, or another program's output: 16 MiB. A thousand
/// hosts take half of it.
pub(crate) const DOCUMENT: u64 = 16 << 20;
/// The largest file of keys, a password or known hosts: 1 MiB.
pub(crate) const KEYS: u64 = 1 << 20;
/// The largest file that turnup or Terraform keeps below a cluster's directory: 512 MiB, ten times
/// the journal of a thousand hosts.
pub(crate) const STATE: u64 = 512 << 20;

/// The text with LF at the end of each line: other systems write CR LF, and terminals paste CR.
pub(crate) fn unify_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The bytes of a regular file that has no more than `most` of them.
///
/// What kind of file it is and how large is asked of the open file before the first byte is read,
/// and no more than `most` is read: a device such as `/dev/zero`, a FIFO without a writer or a
/// growing file neither exhausts memory nor blocks.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut options = fs_err::OpenOptions::new();
    // A FIFO is opened without a wait for its writer, and a terminal does not become ours.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    let refuse = |kind, what: String| Err(io::Error::new(kind, format!("{}: {what}", path.display())));
    if metadata.is_dir() {
        return refuse(io::ErrorKind::IsADirectory, "it is a directory, and only a regular file is read".to_owned());
    }
    if !metadata.is_file() {
        let what = format!("it is {}, and only a regular file is read", describe(metadata.file_type()));
        return refuse(io::ErrorKind::InvalidInput, what);
    }
    if metadata.len() > most {
        let what = format!("it has {}, and at most {} are read", bytes(metadata.len()), bytes(most));
        return refuse(io::ErrorKind::FileTooLarge, what);
    }
    let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        return refuse(io::ErrorKind::FileTooLarge, format!("it has more than the {} that are read", bytes(most)));
    }
    Ok(content)
}

/// The same for a file of UTF-8 text.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: no UTF-8 text at byte {at}", path.display()))
    })
}

fn describe(kind: std::fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "no regular file"
    }
}

/// A size in bytes, with its unit where it is a round number: `1 MiB`, `1048577 bytes`.
fn bytes(count: u64) -> String {
    match count {
        count if count > 0 && count.is_multiple_of(1 << 20) => format!("{} MiB", count >> 20),
        count => format!("{count} bytes"),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs_err::write(&file, "12345").unwrap();
        assert_eq!(read(&file, 5).unwrap(), b"12345");
        assert!(read(&file, 4).unwrap_err().to_string().ends_with("f: it has 5 bytes, and at most 4 bytes are read"));
        // A size that would take far too long to read: 1 TiB of holes.
        fs_err::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
        let told = read(&file, DOCUMENT).unwrap_err().to_string();
        assert!(told.ends_with("it has 1048576 MiB, and at most 16 MiB are read"), "{told}");
        // A file that says it is empty, and is not.
        assert!(read(Path::new("/proc/self/status"), 10).is_err());
        assert!(read(Path::new("/proc/self/status"), KEYS).unwrap().starts_with(b"Name:"));
        fs_err::write(&file, [b'a', 0xff]).unwrap();
        assert!(read_text(&file, 5).unwrap_err().to_string().ends_with("no UTF-8 text at byte 1"));
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let link = dir.path().join("link");
        fs_err::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
        for (path, what) in [
            (fifo.as_path(), "it is a FIFO, and only"),
            (Path::new("/dev/zero"), "it is a character device, and only"),
            (&link, "it is a character device, and only"),
            (dir.path(), "it is a directory"),
        ] {
            let told = read(path, DOCUMENT).unwrap_err().to_string();
            assert!(told.contains(what), "{told}");
        }
        assert!(read(&dir.path().join("socket"), DOCUMENT).is_err());
    }
}
