//! What is mounted where this process sees it, as the kernel says it (`/proc/self/mountinfo`,
//! proc(5)).

use std::io;
use std::path::Path;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountPoint {
    /// The number of the device, `8:1`.
    pub device: String,
    /// Where it is seen.
    pub point: String,
    /// Options of the file system, such as `rw` and `lowerdir=/a`.
    pub options: Vec<String>,
}

/// Every mount that this process sees, in the order in which they were made.
pub(crate) fn mounts() -> io::Result<Vec<MountPoint>> {
    super::read_text(Path::new("/proc/self/mountinfo"), super::DOCUMENT).map(|text| parse(&text))
}

fn parse(text: &str) -> Vec<MountPoint> {
    let mount = |line: &str| {
        let mut fields = line.split(' ');
        let (device, point) = (fields.nth(2)?, fields.nth(1)?);
        let options = fields.next_back()?;
        Some(MountPoint {
            device: device.to_owned(),
            point: unescape(point),
            options: options.split(',').map(unescape).collect(),
        })
    };
    text.lines().filter_map(mount).collect()
}

/// Blanks, tabs, line ends and backslashes are written as octal numbers.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, plain)| text.replace(code, plain))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    #[test]
    fn every_field_is_the_right_one_and_escapes_are_undone() {
        let text = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
                    99 22 0:50 / /a\\040b\\134040 rw - overlay overlay rw,lowerdir=/root\\040s,upperdir=/u\n\
                    broken\n";
        let found = parse(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].device.as_str(), found[0].point.as_str()), ("8:1", "/"));
        assert_eq!(found[1].point, "/a b\\040");
        assert_eq!(found[1].options, ["rw", "lowerdir=/root s", "upperdir=/u"]);
    }

    #[test]
    fn the_root_is_always_among_them() {
        assert!(mounts().unwrap().iter().any(|mount| mount.point == "/"));
    }
}
