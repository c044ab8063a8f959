//! Is a device blank? The positive proof without which nothing is formatted: bytes are read
//! wherever a file system, a partition table or an array has to have some, and every one of them is
//! zero. Only reads; what cannot be read proves nothing and is an error.
//!
//! A file system whose beginning was lost has copies of its superblock further in, by which
//! `fsck` brings it back: ext4 and XFS one in each group, Btrfs at 64 MiB and 256 GiB, GPT and
//! arrays their own at the end. Programs that look at the beginning alone take such a disk for an
//! empty one.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::FileExt;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// What is read at the beginning and at the end.
const EDGE: u64 = MIB;
/// What is read at each place between them.
const PIECE: u64 = 64 * KIB;
/// The groups of an ext4 with blocks of 1 KiB, as small ones have them: each begins with a copy of
/// the superblock, or with tables.
const SMALL_GROUP: u64 = 8 * MIB;
/// The same with blocks of 4 KiB.
const GROUP: u64 = 128 * MIB;
/// XFS divides a disk of less than 4 TiB into so many groups.
const QUARTERS: u64 = 4;
/// How many groups of a large disk are looked at, from its beginning: 2 TiB.
const MOST_GROUPS: u64 = 16 * KIB;

/// Where a device of this size has its first byte that is not zero, of those that are looked at;
/// none when all are zero.
///
/// # Errors
/// What the device says when it cannot be read.
pub(super) fn find_data(device: &impl FileExt, size: u64) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; usize::try_from(EDGE).map_err(io::Error::other)?];
    for (at, length) in places(size) {
        let piece = &mut buffer[..usize::try_from(length).map_err(io::Error::other)?];
        device.read_exact_at(piece, at)?;
        if let Some(index) = piece.iter().position(|byte| *byte != 0) {
            return Ok(Some(at + u64::try_from(index).unwrap_or_default()));
        }
    }
    Ok(None)
}

/// The places to look at, as offset and length, in their order.
fn places(size: u64) -> BTreeSet<(u64, u64)> {
    let edges = [0, size.saturating_sub(EDGE)].map(|at| (at, EDGE));
    let small = (1..GIB / SMALL_GROUP).map(|group| group * SMALL_GROUP);
    let large = (1..=MOST_GROUPS).map(|group| group * GROUP);
    // Groups of XFS end at a whole block, so the next one begins a little before or behind.
    let quarters = (1..QUARTERS).flat_map(|part| {
        let at = size / QUARTERS * part / PIECE * PIECE;
        [at.saturating_sub(PIECE), at, at + PIECE]
    });
    let pieces = small.chain(large).chain(quarters).map(|at| (at, PIECE));
    let within = |(at, length): (u64, u64)| (at < size).then(|| (at, length.min(size - at)));
    edges.into_iter().chain(pieces).filter_map(within).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    #![expect(clippy::disallowed_methods, reason = "the images are made by the system's own tools")]

    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    /// Of an image, in bytes: above the 512 MiB from which mkfs takes blocks of 4 KiB.
    const SIZE: u64 = 520 * MIB;

    fn image(dir: &Path, name: &str, size: u64) -> PathBuf {
        let path = dir.join(name);
        fs_err::File::create(&path).unwrap().set_len(size).unwrap();
        path
    }

    fn write(path: &Path, at: u64, bytes: &[u8]) {
        let file = fs_err::OpenOptions::new().write(true).open(path).unwrap();
        file.file().write_all_at(bytes, at).unwrap();
    }

    fn look(path: &Path) -> Option<u64> {
        let file = fs_err::File::open(path).unwrap();
        find_data(file.file(), file.metadata().unwrap().len()).unwrap()
    }

    /// Loses its first bytes, as by a `dd` to the wrong disk.
    fn behead(path: &Path, bytes: u64) {
        write(path, 0, &vec![0; usize::try_from(bytes).unwrap()]);
    }

    fn make(path: &Path, program: &str, args: &[&str]) {
        let made = Command::new(program).args(args).arg(path).output().unwrap();
        assert!(made.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&made.stderr));
    }

    #[test]
    fn a_disk_with_nothing_on_it_is_blank_whatever_its_size() {
        let dir = tempfile::tempdir().unwrap();
        for size in [0, 1, 512, MIB - 1, MIB, MIB + 1, 9 * MIB, SIZE, 20 * GIB, 3 << 40] {
            assert_eq!(look(&image(dir.path(), "blank", size)), None, "{size}");
        }
    }

    #[test]
    fn a_file_system_that_lost_its_beginning_is_none() {
        let dir = tempfile::tempdir().unwrap();
        for (name, size, args) in [
            ("ext4 of small blocks", 64 * MIB, &["-b", "1024"][..]),
            ("ext4 of blocks of 2 KiB", 300 * MIB, &["-b", "2048"]),
            ("ext4 as usual", SIZE, &["-b", "4096"]),
            ("ext4 with few copies", SIZE, &["-b", "4096", "-O", "sparse_super2"]),
            ("ext4 of a large disk", 20 * GIB, &[]),
            ("ext2", 100 * MIB, &["-t", "ext2"]),
            ("ext3", SIZE, &["-t", "ext3"]),
        ] {
            let path = image(dir.path(), "disk", size);
            make(&path, "mkfs.ext4", &[&["-q"], args].concat());
            assert!(look(&path).is_some_and(|at| at < 64 * KIB), "{name}");
            for lost in [4 * KIB, MIB, 4 * MIB] {
                behead(&path, lost);
                assert!(look(&path).is_some_and(|at| at >= lost), "{name} without its first {lost} bytes");
            }
        }
    }

    /// Where each has its signature, by the description of its format.
    #[test]
    fn the_marks_of_all_that_lies_on_disks_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        for (name, at, bytes) in [
            ("XFS", 0, &b"XFSB"[..]),
            ("the second group of XFS", SIZE / 4, b"XFSB"),
            ("the last group of XFS, a block behind", SIZE / 4 * 3 + 4096, b"XFSB"),
            ("Btrfs", 64 * KIB + 64, b"_BHRfS_M"),
            ("the copy of Btrfs", 64 * MIB + 64, b"_BHRfS_M"),
            ("LUKS", 0, b"LUKS\xba\xbe"),
            ("the second header of LUKS 2", 16 * KIB, b"SKUL\xba\xbe"),
            ("a physical volume of LVM", 512, b"LABELONE"),
            ("an array, version 1.2", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
            ("an array, version 1.0", SIZE - 8 * KIB, &[0xfc, 0x4e, 0x2b, 0xa9]),
            ("an array, version 0.90", SIZE / (64 * KIB) * (64 * KIB) - 64 * KIB, &[0xfc, 0x4e, 0x2b, 0xa9]),
            ("a partition table of DOS", 510, &[0x55, 0xaa]),
            ("GPT", 512, b"EFI PART"),
            ("the copy of GPT", SIZE - 512, b"EFI PART"),
            ("swap space", 4086, b"SWAPSPACE2"),
            ("ISO 9660", 32769, b"CD001"),
            ("NTFS", 3, b"NTFS    "),
            ("the copy of NTFS", SIZE - 509, b"NTFS    "),
            ("FAT", 82, b"FAT32   "),
            ("F2FS", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
            ("bcache", 4096 + 24, &[0xc6, 0x85, 0x73, 0xf6]),
            ("ZFS", 128 * KIB, &[0x0c, 0xb1, 0xba]),
            ("the third label of ZFS", SIZE - 512 * KIB + 128 * KIB, &[0x0c, 0xb1, 0xba]),
            ("DRBD", SIZE - 4096 + 60, &[0x83, 0x74, 0x02, 0x67]),
            ("one byte at the very end", SIZE - 1, &[1]),
        ] {
            let path = image(dir.path(), "disk", SIZE);
            write(&path, at, bytes);
            let seen = look(&path);
            let first = at + u64::try_from(bytes.iter().position(|byte| *byte != 0).unwrap()).unwrap();
            assert_eq!(seen, Some(first), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_blank() {
        /// A disk whose sectors behind a place are lost.
        struct Broken(u64);
        impl FileExt for Broken {
            fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
                if at + u64::try_from(buffer.len()).unwrap() > self.0 {
                    return Err(io::ErrorKind::Other.into());
                }
                buffer.fill(0);
                Ok(buffer.len())
            }

            fn write_at(&self, _buffer: &[u8], _at: u64) -> io::Result<usize> {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
        assert_eq!(find_data(&Broken(SIZE), SIZE).unwrap(), None);
        for readable in [0, MIB - 1, 300 * MIB, SIZE - 1] {
            assert!(find_data(&Broken(readable), SIZE).is_err(), "{readable}");
        }
    }

    #[test]
    fn no_more_is_read_than_a_minute_allows() {
        for (size, most) in [(20 * GIB, 25 * MIB), (16 << 40, 1100 * MIB)] {
            let read: u64 = places(size).iter().map(|(_, length)| length).sum();
            assert!(read <= most, "{size}: {read}");
        }
    }
}
