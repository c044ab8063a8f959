//! What is on a disk, and may it be ours? Looks, checks, formats and grows; never mounts, and never
//! writes to what is neither blank nor ours.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{major, minor};

use crate::error::{Error, Result};
use crate::exec::{Failure, Run, signals};
use crate::failpoint;
use crate::input::mounts;

use super::{blank, task};

/// Where a run remembers which disk it began to format: gone with a restart of the host, after
/// which the same name may be another disk.
const FORMATTING: &str = "/run/turnup-format";
/// A large disk with a broken journal takes its time.
const CHECK: Duration = Duration::from_mins(30);
/// Making a file system writes little, but on a slow disk.
const FORMAT: Duration = Duration::from_mins(15);

/// A block device that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device {
    /// As it was asked for.
    pub(super) path: PathBuf,
    /// The kernel's number of it: `MAJOR:MINOR`.
    pub(super) number: String,
}

/// What was seen on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// What blkid knows, by its names; nothing when it knows nothing.
    known: BTreeMap<String, String>,
    /// Whether it found the marks of several things.
    ambivalent: bool,
    /// Whether the kernel has partitions on it.
    partitions: bool,
    /// Where it has a byte that is not zero, if it has one ([`blank`]).
    data: Option<u64>,
}

/// What that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// Nothing at all is on it.
    Blank,
    /// A file system with the label that was asked for; its UUID.
    Ours(String),
    /// Unknown bytes, such as those of an unfinished mkfs, and where the first of them is.
    Unknown(u64),
    /// What uses it while nothing can be said of it, as a part of a sentence.
    Used(String),
    /// Anything else, as a part of a sentence.
    Other(String),
}

impl Judged {
    /// What is on the disk, as a part of a sentence.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Blank => "nothing".to_owned(),
            Self::Ours(uuid) => format!("this cluster's data ({uuid})"),
            Self::Unknown(at) => format!("data of no known kind (at byte {at})"),
            Self::Used(what) | Self::Other(what) => what.clone(),
        }
    }
}

impl Device {
    /// The first device of these paths once it is there, but not later than this.
    pub(super) fn wait_for(paths: &[PathBuf], patience: Duration) -> Result<Self> {
        let since = Instant::now();
        loop {
            if let Some(device) = Self::find(paths)? {
                return Ok(device);
            }
            if since.elapsed() > patience {
                return Err(missing(paths, patience));
            }
            signals::sleep(Duration::from_millis(200))?;
        }
    }

    /// The first device of these paths; none when nothing is there.
    pub(super) fn find(paths: &[PathBuf]) -> Result<Option<Self>> {
        let Some((path, data)) = paths.iter().find_map(|path| Some((path, fs_err::metadata(path).ok()?))) else {
            return Ok(None);
        };
        if !data.file_type().is_block_device() {
            return Err(
                Error::precondition(format!("{} is no disk", path.display())).hint("lsblk --paths (on the host)")
            );
        }
        let number = format!("{}:{}", major(data.rdev()), minor(data.rdev()));
        Ok(Some(Self { path: path.clone(), number }))
    }

    /// What the kernel says of it.
    fn sys(&self) -> PathBuf {
        Path::new("/sys/dev/block").join(&self.number)
    }

    /// Whether it is in use: by a mount, a volume group, an array.
    fn is_in_use(&self) -> Result<bool> {
        let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap_or_default();
        match fs_err::OpenOptions::new().read(true).custom_flags(exclusive).open(&self.path) {
            Ok(_) => Ok(false),
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// What is on it, as a probe for a file system with this label sees it.
    pub(super) fn judge(&self, label: &str) -> Result<Judged> {
        if self.is_in_use()? {
            return Ok(Judged::Used(self.describe_use()));
        }
        Ok(judge(&self.look()?, label))
    }

    fn describe_use(&self) -> String {
        let holders = names_in(&self.sys().join("holders"));
        let mounted = mounts_of(&self.number).unwrap_or_default();
        match (holders.is_empty(), mounted.is_empty()) {
            (false, _) => format!("what {} uses", holders.join(", ")),
            (true, false) => format!("a file system that is mounted at {}", mounted.join(", ")),
            (true, true) => "something that is in use".to_owned(),
        }
    }

    fn look(&self) -> Result<Seen> {
        // Past the cache, which believes what it saw before.
        let run = Run::new("blkid").args(["-p", "-o", "export"]).arg(&self.path).dir("/");
        let (text, ambivalent) = match run.output() {
            Ok(output) => (output.stdout, false),
            Err(failure) if failure.code() == Some(2) => (String::new(), false),
            Err(failure) if failure.code() == Some(8) => (String::new(), true),
            Err(failure) => return Err(failure.into()),
        };
        let partitions = names_in(&self.sys()).iter().any(|name| self.sys().join(name).join("partition").exists());
        let data = blank::find_data(fs_err::File::open(&self.path)?.file(), self.sectors()? * 512)?;
        Ok(Seen { known: parse(&text), ambivalent, partitions, data })
    }

    /// At least one: where nothing can be read, nothing is proved.
    fn sectors(&self) -> Result<u64> {
        let text = fs_err::read_to_string(self.sys().join("size"))?;
        let sectors = text.trim().parse().ok().filter(|sectors| *sectors > 0);
        sectors.ok_or_else(|| Error::precondition(format!("{} has no size", self.path.display())))
    }

    /// Makes a file system with this label on a device that was judged to be blank, or to be a half
    /// of our own. mkfs looks for itself, too, and refuses anything but that half.
    pub(super) fn format(&self, label: &str) -> Result<()> {
        let over: &[&str] = if self.is_half_formatted()? { &["-F"] } else { &[] };
        failpoint::around(format_args!("format {}: begin", self.path.display()), || {
            task::write_atomic(Path::new(FORMATTING), self.identity()?.as_bytes(), 0o600, 0)
        })?;
        let run = Run::new("mkfs.ext4").args(["-q", "-m", "0", "-L", label]).args(over).arg(&self.path).dir("/");
        run.timeout(FORMAT).succeed().map_err(|error| error.hint("turnup bootstrap (formats it again)"))?;
        forget_formatting()
    }

    /// Whether a run of ours was killed while it formatted this very device: what is on it now is a
    /// half of our own.
    pub(super) fn is_half_formatted(&self) -> Result<bool> {
        let started = fs_err::read_to_string(FORMATTING);
        Ok(match started {
            Ok(started) => started == self.identity()?,
            Err(_) => false,
        })
    }

    /// Number and size in sectors.
    fn identity(&self) -> Result<String> {
        Ok(format!("{} {}", self.number, self.sectors()?))
    }

    /// Whether the device has become larger than the ext4 on it, by more than what mkfs leaves over
    /// at the end.
    pub(super) fn has_grown(&self) -> Result<bool> {
        const LEFT_OVER: u64 = 256 << 20;
        let mut block = [0; 1024];
        fs_err::File::open(&self.path)?.file().read_exact_at(&mut block, 1024)?;
        let bytes = self.sectors()? * 512;
        Ok(ext4_size(&block).is_some_and(|size| bytes > size + LEFT_OVER))
    }

    /// Lets the file system fill the device. The kernel does that to one that is mounted only for a
    /// root with all rights; one that is not mounted was checked before as a whole.
    pub(super) fn grow(&self) -> Result<()> {
        failpoint::around(format_args!("grow {}", self.path.display()), || {
            Run::new("resize2fs").arg(&self.path).dir("/").timeout(CHECK).succeed()?;
            Ok(())
        })
    }

    /// Lets fsck mend what can be mended without a question; refuses a file system with anything
    /// else wrong. Whether it mended something. `whole` is for one that seems to be in order.
    pub(super) fn check(&self, whole: bool) -> Result<bool> {
        let shown = self.path.display();
        let args = if whole { &["-p", "-f"][..] } else { &["-p"] };
        match Run::new("fsck.ext4").args(args).arg(&self.path).dir("/").timeout(CHECK).output() {
            Ok(_) => Ok(false),
            // Corrected; with 2 a root file system would want a restart, which this one is not.
            Err(failure) if failure.code().is_some_and(|code| code & !3 == 0) => Ok(true),
            Err(failure @ Failure::Exited { .. }) => {
                let said = failure.ended().stdout.clone() + failure.stderr();
                let error = Error::precondition(format!(
                    "the file system on {shown} is damaged, and fsck does not mend it alone"
                ));
                let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
                let last = &lines[lines.len().saturating_sub(6)..];
                let error = last.iter().fold(error, |error, line| error.evidence(*line));
                Err(error.hint(format!("look at it on the host (copy the disk first): fsck.ext4 {shown}")))
            }
            Err(failure) => Err(failure.into()),
        }
    }
}

/// The bytes of the file system with this superblock ("The Super Block" in the kernel's description
/// of ext4); none of another kind.
fn ext4_size(block: &[u8; 1024]) -> Option<u64> {
    let word = |at: usize| u64::from(u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]));
    let is_ext4 = block[0x38..0x3a] == [0x53, 0xef];
    let has_64_bits = word(0x60) & 0x80 != 0;
    let blocks = word(0x4) | if has_64_bits { word(0x150) << 32 } else { 0 };
    is_ext4.then(|| blocks.saturating_mul(1024 << word(0x18).min(6)))
}

/// No format is unfinished any more, or the record does not matter any more.
pub(super) fn forget_formatting() -> Result<()> {
    match fs_err::remove_file(FORMATTING) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The refusal of a disk with something else on it.
pub(super) fn refuse(path: &Path, label: &str, what: &str) -> Error {
    let shown = path.display();
    Error::precondition(format!("{shown} is to be this cluster's alone, and has on it {what}"))
        .evidence(format!("this cluster's disk is ext4 with the label {label:?}, or blank; nothing on this one was changed"))
        .hint(format!(
            "name another disk; if the data on it is not needed, on the host: wipefs --all {shown} && blkdiscard --zeroout {shown}"
        ))
}

fn missing(paths: &[PathBuf], patience: Duration) -> Error {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let error =
        Error::precondition(format!("the host has no disk {} after {} s", names.join(" or "), patience.as_secs()));
    let list =
        Run::new("lsblk").args(["--paths", "--output", "NAME,SIZE,TYPE,FSTYPE,LABEL,MOUNTPOINT"]).dir("/").output();
    let text = list.map(|output| output.stdout).unwrap_or_default();
    text.lines().fold(error, Error::evidence).hint("ls -l /dev/disk/by-id (on the host), and name one that is there")
}

fn judge(seen: &Seen, label: &str) -> Judged {
    let known = |name: &str| seen.known.get(name).map(String::as_str).unwrap_or_default();
    if seen.ambivalent {
        return Judged::Other("the marks of several things (wipefs lists them)".into());
    }
    if seen.partitions || !known("PTTYPE").is_empty() {
        let kind = if known("PTTYPE").is_empty() { String::new() } else { format!(" ({})", known("PTTYPE")) };
        return Judged::Other(format!("partitions{kind}"));
    }
    match (known("TYPE"), known("LABEL")) {
        ("", _) if !seen.known.is_empty() => Judged::Other("something that blkid knows no name for".into()),
        ("", _) => seen.data.map_or(Judged::Blank, Judged::Unknown),
        ("ext4", found) if found == label => Judged::Ours(known("UUID").to_owned()),
        (kind, "") => Judged::Other(format!("{kind} without a label")),
        ("ext4", other) => Judged::Other(format!("ext4 with the label {other:?}, as another cluster's")),
        (kind, other) => Judged::Other(format!("{kind} with the label {other:?}")),
    }
}

/// `NAME=VALUE` a line; blkid escapes what a shell would not take, which no value that counts has.
fn parse(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs
        .filter(|(name, _)| *name != "DEVNAME")
        .map(|(name, value)| (name.to_owned(), value.replace('\\', "")))
        .collect()
}

/// The mount points of a device, the one that is seen last.
pub(super) fn mounts_of(number: &str) -> Result<Vec<String>> {
    Ok(mounts()?.into_iter().filter(|mount| mount.device == number).map(|mount| mount.point).collect())
}

/// The number of the device whose file system is seen at this path; none when nothing is mounted
/// right there.
pub(super) fn mounted_at(path: &str) -> Result<Option<String>> {
    Ok(mounts()?.into_iter().rev().find(|mount| mount.point == path).map(|mount| mount.device))
}

/// What is in a directory; nothing where there is none.
pub(super) fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(export: &str) -> Seen {
        Seen { known: parse(export), data: Some(0), ..Seen::default() }
    }

    #[test]
    fn the_size_of_a_file_system_is_that_of_its_blocks() {
        let mut block = [0; 1024];
        assert_eq!(ext4_size(&block), None, "no ext4");
        block[0x38..0x3a].copy_from_slice(&[0x53, 0xef]);
        block[4..8].copy_from_slice(&131_072_u32.to_le_bytes());
        block[0x18] = 2;
        block[0x150] = 1;
        assert_eq!(ext4_size(&block), Some(512 << 20), "without the 64-bit feature the upper half is something else");
        block[0x60] = 0x80;
        assert_eq!(ext4_size(&block), Some((512 << 20) + (16 << 40)));
    }

    #[test]
    fn only_nothing_at_all_is_blank() {
        let blank = Seen::default();
        assert_eq!(judge(&blank, "shelf"), Judged::Blank);
        for other in [
            Seen { data: Some(1 << 30), ..blank.clone() },
            Seen { partitions: true, ..blank.clone() },
            Seen { ambivalent: true, ..blank.clone() },
            // Signatures that lie behind the first MiB: arrays, backups of partition tables.
            Seen { data: None, ..seen("DEVNAME=/dev/sdb\nTYPE=linux_raid_member\nUSAGE=raid\n") },
            Seen { data: None, ..seen("DEVNAME=/dev/sdb\nPTTYPE=gpt\n") },
            Seen { data: None, ..seen("DEVNAME=/dev/sdb\nUSAGE=crypto\n") },
        ] {
            assert!(matches!(judge(&other, "shelf"), Judged::Other(_) | Judged::Unknown(_)), "{other:?}");
        }
    }

    #[test]
    fn what_is_on_a_disk_is_named() {
        let ours = "DEVNAME=/dev/sdb\nLABEL=shelf\nUUID=8a-1\nBLOCK_SIZE=4096\nTYPE=ext4\nUSAGE=filesystem\n";
        assert_eq!(judge(&seen(ours), "shelf"), Judged::Ours("8a-1".into()));
        for (export, expected) in [
            (ours.replace("=shelf", "=other"), "ext4 with the label \"other\", as another cluster's"),
            (ours.replace("LABEL=shelf\n", ""), "ext4 without a label"),
            (ours.replace("ext4", "xfs"), "xfs with the label \"shelf\""),
            (ours.replace("ext4", "ext3"), "ext3 with the label \"shelf\""),
            (format!("{ours}PTTYPE=dos\n"), "partitions (dos)"),
            ("TYPE=LVM2_member\n".to_owned(), "LVM2_member without a label"),
        ] {
            assert_eq!(judge(&seen(&export), "shelf"), Judged::Other(expected.into()), "{export}");
        }
        // Only unknown bytes may be an unfinished mkfs of ours: anything recognised has an owner.
        assert_eq!(judge(&seen("DEVNAME=/dev/sdb\n"), "shelf"), Judged::Unknown(0));
        let partitions = Seen { partitions: true, ..seen(ours) };
        assert_eq!(judge(&partitions, "shelf"), Judged::Other("partitions".into()));
    }

    #[test]
    fn a_refusal_says_what_is_there_and_the_way_out() {
        insta::assert_snapshot!(refuse(Path::new("/dev/sdb"), "shelf", "xfs without a label").render());
    }
}
