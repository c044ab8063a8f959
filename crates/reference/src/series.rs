//! Which of the releases of Linux that Debian packages a tree is of.

/// A line of releases that Debian packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Series {
    /// Debian 12's; the last one before the rules of choices changed that Debian carries.
    V6_1,
    /// Debian 13's.
    V6_12,
    /// The newest in sid, 7.2 or later.
    Newest,
}

impl Series {
    /// The two numbers in a package's name.
    pub(crate) fn version_in(name: &str) -> Option<(u32, u32)> {
        let version = name.strip_prefix("linux-source-")?.split('_').next()?;
        let (major, minor) = version.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// Whether it is the series of the package of this name.
    pub(crate) fn has(self, key: &str) -> bool {
        let version = Self::version_in(key);
        match self {
            Self::V6_1 => version == Some((6, 1)),
            Self::V6_12 => version == Some((6, 12)),
            Self::Newest => version >= Some((7, 2)),
        }
    }
}
