//! The families of systems that hosts may run, told by os-release(5): what a host installs
//! packages with, and whether turnup knows it at all. Pure.

/// What a host's system is, as far as turnup treats one in another way than the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemFamily {
    /// Debian, Ubuntu and what is made from them: apt.
    Debian,
    /// Fedora, Rocky and their like: dnf.
    Fedora,
    /// Flatcar, the `CoreOS` of Fedora: one image, a `/usr` that is read only, and no packages.
    Image,
}

/// The families in words.
const KNOWN: &str = "Debian, Ubuntu and their like; Fedora, Rocky and their like; Flatcar and Fedora CoreOS";

impl SystemFamily {
    /// The family by the text of `/etc/os-release`; why not, where turnup knows none.
    pub fn of_release(text: &str) -> Result<Self, String> {
        let value = |key: &str| release_value(text, key);
        let (id, like) = (value("ID"), value("ID_LIKE"));
        if id == "flatcar" || like == "coreos" || value("VARIANT_ID") == "coreos" {
            return Ok(Self::Image);
        }
        // The most exact one first, as the file says it.
        let names = std::iter::once(id.as_str()).chain(like.split_whitespace());
        let family = |name: &str| match name {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" | "rhel" | "centos" | "rocky" | "almalinux" => Some(Self::Fedora),
            _ => None,
        };
        names.into_iter().find_map(family).ok_or_else(|| {
            let name = [value("PRETTY_NAME"), value("NAME"), id.clone()].into_iter().find(|name| !name.is_empty());
            let name = name.unwrap_or_else(|| "a system that does not say its name in /etc/os-release".to_owned());
            format!("it runs {name}, which is of no family that turnup knows: {KNOWN}")
        })
    }

    /// The packages that bring these programs; none where there are no packages.
    #[must_use]
    pub fn packages(self, programs: &[String]) -> Option<String> {
        let package = |program: &String| {
            let (debian, fedora) = match program.as_str() {
                "nft" => ("nftables", "nftables"),
                "ip" | "ss" => ("iproute2", "iproute"),
                "iptables" => ("iptables", "iptables-nft"),
                "conntrack" => ("conntrack", "conntrack-tools"),
                "modprobe" => ("kmod", "kmod"),
                "mount" | "blkid" => ("util-linux", "util-linux"),
                "fsck.ext4" | "mkfs.ext4" => ("e2fsprogs", "e2fsprogs"),
                other => (other, other),
            };
            (if self == Self::Debian { debian } else { fedora }).to_owned()
        };
        let mut names: Vec<String> = programs.iter().map(package).collect();
        names.dedup();
        (self != Self::Image).then(|| names.join(" "))
    }
}

/// What `/etc/os-release` says under this name; empty where it does not.
pub(crate) fn release_value(text: &str, key: &str) -> String {
    let line = text.lines().rev().find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
}

/// `/etc/os-release` of systems, shortened to what tells them apart.
#[cfg(test)]
pub(crate) const RELEASES: [(&str, &str); 9] = [
    ("Debian 12", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"),
    ("Ubuntu 24.04", "PRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\nID=ubuntu\nID_LIKE=debian\n"),
    (
        "Rocky 9",
        "NAME=\"Rocky Linux\"\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\nPRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n",
    ),
    (
        "Fedora 42",
        "NAME=\"Fedora Linux\"\nID=fedora\nVARIANT_ID=server\nPRETTY_NAME=\"Fedora Linux 42 (Server Edition)\"\n",
    ),
    ("Fedora CoreOS", "ID=fedora\nVARIANT_ID=coreos\nPRETTY_NAME=\"Fedora CoreOS 42.20250705.3.0\"\n"),
    (
        "Flatcar",
        "NAME=\"Flatcar Container Linux by Kinvolk\"\nID=flatcar\nID_LIKE=coreos\nPRETTY_NAME=\"Flatcar Container Linux by Kinvolk 4152.2.3 (Oklo)\"\n",
    ),
    (
        "openSUSE",
        "NAME=\"openSUSE Leap\"\nID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\nPRETTY_NAME=\"openSUSE Leap 15.6\"\n",
    ),
    ("Arch", "NAME=\"Arch Linux\"\nPRETTY_NAME=\"Arch Linux\"\nID=arch\n"),
    ("nothing", ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_family_or_a_reason_against_it() {
        let told = RELEASES.map(|(name, text)| match SystemFamily::of_release(text) {
            Ok(family) => format!("{name}: {family:?}\n"),
            Err(why) => format!("{name}: {}\n", why.replace(KNOWN, "…")),
        });
        insta::assert_snapshot!(told.concat(), @r"
        Debian 12: Debian
        Ubuntu 24.04: Debian
        Rocky 9: Fedora
        Fedora 42: Fedora
        Fedora CoreOS: Image
        Flatcar: Image
        openSUSE: it runs openSUSE Leap 15.6, which is of no family that turnup knows: …
        Arch: it runs Arch Linux, which is of no family that turnup knows: …
        nothing: it runs a system that does not say its name in /etc/os-release, which is of no family that turnup knows: …
        ");
    }

    #[test]
    fn packages_have_the_names_of_the_family() {
        let programs = ["conntrack", "ip", "ss", "iptables", "mount"].map(str::to_owned);
        let names = |family: SystemFamily| family.packages(&programs);
        assert_eq!(names(SystemFamily::Debian).as_deref(), Some("conntrack iproute2 iptables util-linux"));
        assert_eq!(names(SystemFamily::Fedora).as_deref(), Some("conntrack-tools iproute iptables-nft util-linux"));
        assert_eq!(names(SystemFamily::Image), None);
    }
}
