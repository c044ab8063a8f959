//! Finds out what a tree itself says about whose it is: the text of its `mainmenu`, and the version
//! that its build gives it.

use super::{Dialect, Family, Version};

/// Why a dialect was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The caller named it.
    Named,
    /// The tree's `mainmenu` begins with this text.
    Mainmenu(&'static str),
    /// The top file has this line.
    Line(&'static str),
    /// Nothing but `KERNELVERSION` tells, and that is Linux's.
    KernelVersion,
    /// Nothing tells: the newest rules of Linux count.
    Nothing,
}

/// A dialect, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The dialect.
    pub dialect: Dialect,
    /// Why it is this family.
    pub evidence: Evidence,
    /// Which variable or file gave the version; none when the newest was taken.
    pub version_from: Option<&'static str>,
}

impl Detected {
    /// A dialect that the caller named.
    #[must_use]
    pub const fn named(dialect: Dialect) -> Self {
        Self { dialect, evidence: Evidence::Named, version_from: None }
    }

    /// One sentence without a full stop: which rules, and why.
    #[must_use]
    pub fn explain(&self) -> String {
        let dialect = self.dialect;
        let base = match dialect.family() {
            Family::Linux => String::new(),
            _ => format!(", based on those of Linux {}", dialect.base()),
        };
        let why = match &self.evidence {
            Evidence::Named => "named by the caller".to_owned(),
            Evidence::Mainmenu(start) => format!("the mainmenu begins with `{start}`"),
            Evidence::Line(line) => format!("its top file says `{line}`"),
            Evidence::KernelVersion => "KERNELVERSION is set and no mainmenu says otherwise".to_owned(),
            Evidence::Nothing => "nothing says whose tree this is".to_owned(),
        };
        let version = self.version_from.map_or_else(String::new, |from| format!(", the version is that of {from}"));
        format!("the rules of {dialect}{base}: {why}{version}")
    }
}

/// How the `mainmenu` of a project begins, and where its version is besides `KERNELVERSION`.
const MAINMENUS: &[(&str, Family, Option<&str>)] = &[
    ("Linux/", Family::Linux, None),
    ("Linux Kernel", Family::Linux, None),
    ("U-Boot ", Family::UBoot, Some("UBOOTVERSION")),
    ("Buildroot ", Family::Buildroot, Some("BR2_VERSION_FULL")),
    ("Barebox", Family::Barebox, None),
    ("OpenWrt ", Family::OpenWrt, None),
    ("LEDE ", Family::OpenWrt, None),
    ("coreboot ", Family::Coreboot, Some("KERNELVERSION")),
    ("libpayload ", Family::Coreboot, None),
    ("Zephyr ", Family::Kconfiglib, None),
    ("NuttX", Family::Kconfiglib, None),
    ("Espressif IoT Development Framework", Family::EspIdf, None),
];

/// Projects whose `mainmenu` says nothing, by a line that only their top files have.
const LINES: &[(&str, Family)] = &[("source libbb/Config.in", Family::BusyBox)];

/// The dialect of the tree with this top file. `lookup` answers what a variable is, `makefile`
/// gives the text of the `Makefile` at the top of the tree, and is asked only when no variable has
/// the version.
pub fn detect(top: &str, lookup: &dyn Fn(&str) -> Option<String>, makefile: &dyn Fn() -> Option<String>) -> Detected {
    let exported = || Some((Version::parse(&lookup("KERNELVERSION")?)?, "KERNELVERSION"));
    let Some((evidence, family, variable)) = find_mainmenu(top).or_else(|| find_line(top)) else {
        return match exported() {
            Some((version, from)) => Detected {
                dialect: Dialect::new(Family::Linux, version),
                evidence: Evidence::KernelVersion,
                version_from: Some(from),
            },
            None => Detected { dialect: Dialect::LATEST, evidence: Evidence::Nothing, version_from: None },
        };
    };
    let own = variable.and_then(|name| Some((Version::parse(&lookup(name)?)?, name)));
    let built = || Some((makefile_version(&makefile()?)?, "the Makefile"));
    let version = own.or_else(exported).or_else(|| if has_versions(family) { built() } else { None });
    let dialect = version.map_or_else(|| Dialect::newest(family), |(version, _)| Dialect::new(family, version));
    Detected { dialect, evidence, version_from: version.map(|(_, from)| from) }
}

/// Whether versions of a family differ, so that it is worth looking for one.
fn has_versions(family: Family) -> bool {
    family == Family::Linux || super::table::bases(family).count() > 1
}

/// The first `mainmenu` line of a file, if it is one of a known project.
fn find_mainmenu(top: &str) -> Option<(Evidence, Family, Option<&'static str>)> {
    let title = top.lines().find_map(|line| {
        let rest = line.trim_start().strip_prefix("mainmenu")?;
        rest.trim_start().strip_prefix(['"', '\''])
    })?;
    let (start, family, variable) = MAINMENUS.iter().find(|(start, ..)| title.starts_with(start))?;
    Some((Evidence::Mainmenu(start.trim_end()), *family, *variable))
}

fn find_line(top: &str) -> Option<(Evidence, Family, Option<&'static str>)> {
    let (line, family) = LINES.iter().find(|(line, _)| top.lines().any(|found| found.trim() == *line))?;
    Some((Evidence::Line(line), *family, None))
}

/// `VERSION` and `PATCHLEVEL` in the first lines of a Makefile as Linux and its forks have it.
fn makefile_version(text: &str) -> Option<Version> {
    let field = |name: &str| {
        let value = text.lines().take(40).find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))?;
        value.trim().parse().ok()
    };
    Some(Version::new(field("VERSION")?, field("PATCHLEVEL")?))
}

#[cfg(test)]
mod tests {
    use super::detect;

    fn found(top: &str, variables: &[(&str, &str)], makefile: &str) -> String {
        let lookup =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        detect(top, &lookup, &|| Some(makefile.to_owned())).explain()
    }

    #[test]
    fn a_tree_says_whose_it_is() {
        let linux = "# x\nmainmenu \"Linux/$(ARCH) $(KERNELVERSION) Kernel Configuration\"\n";
        let makefile = "# x\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 176\n";
        assert_eq!(
            found(linux, &[], makefile),
            "the rules of linux-6.1: the mainmenu begins with `Linux/`, the version is that of the Makefile"
        );
        assert!(found(linux, &[("KERNELVERSION", "6.12.1")], makefile).starts_with("the rules of linux-6.12:"));
        let barebox = "mainmenu \"Barebox/$(ARCH) $(KERNELVERSION) Configuration\"\n";
        assert_eq!(
            found(barebox, &[("KERNELVERSION", "2021.07.0")], ""),
            "the rules of barebox-2021.7, based on those of Linux 5.13: the mainmenu begins with `Barebox`, the version is that of \
             KERNELVERSION"
        );
    }

    #[test]
    fn without_a_known_mainmenu_only_the_version_counts() {
        assert!(
            found("mainmenu \"Mine\"\n", &[("KERNELVERSION", "6.1.0")], "")
                .starts_with("the rules of linux-6.1: KERNELVERSION")
        );
        assert_eq!(
            found("config A\n", &[], "VERSION = 6\nPATCHLEVEL = 1\n"),
            "the rules of linux-7.2: nothing says whose tree this is"
        );
    }
}
