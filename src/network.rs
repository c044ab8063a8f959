//! Networks of IPv4 and of IPv6 whose host bits are zero: `ipnet`, parsed with advice. It must not
//! look at this machine's interfaces.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpAdd as _, Ipv4Net, Ipv6Net};

/// An IPv4 network in CIDR notation whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network(Ipv4Net);

impl Network {
    /// The network of this prefix length that contains the address.
    #[must_use]
    pub fn containing(address: Ipv4Addr, prefix: u8) -> Self {
        Self(Ipv4Net::new_assert(address, prefix.min(32)).trunc())
    }

    /// The number of leading bits that all addresses share.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.0.prefix_len()
    }

    /// How many addresses there are, the network's and the broadcast address included.
    #[must_use]
    pub const fn size(self) -> u64 {
        1 << (32 - self.prefix())
    }

    /// The address with this index, counted from the network's own; none past the end.
    #[must_use]
    pub fn address(self, index: u32) -> Option<Ipv4Addr> {
        (u64::from(index) < self.size()).then(|| self.0.network().saturating_add(index))
    }

    /// Whether the address lies in the network.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        self.0.contains(&address)
    }

    /// Whether any address lies in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        self.0.contains(&other.0) || other.0.contains(&self.0)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = split(text, "10.1.0.0/16")?;
        if address.contains(':') {
            return Err(format!("`{text}` is an IPv6 network, and only an IPv4 one can stand here"));
        }
        let parsed: Ipv4Addr =
            address.parse().map_err(|_| format!("`{address}` is not an IPv4 address (four numbers from 0 to 255)"))?;
        let network = Self::containing(parsed, length(prefix, 32)?);
        if parsed == network.0.network() { Ok(network) } else { Err(inside(text, network)) }
    }
}

/// An IPv6 network in CIDR notation whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network6(Ipv6Net);

impl Network6 {
    /// The network of this prefix length that contains the address.
    #[must_use]
    pub fn containing(address: Ipv6Addr, prefix: u8) -> Self {
        Self(Ipv6Net::new_assert(address, prefix.min(128)).trunc())
    }

    /// The number of leading bits that all addresses share.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.0.prefix_len()
    }

    /// The network's own, first address.
    #[must_use]
    pub fn first(self) -> Ipv6Addr {
        self.0.network()
    }
}

impl fmt::Display for Network6 {
    /// As clouds write it: RFC 5952.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Network6 {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = split(text, "2001:db8::/32")?;
        let parsed: Ipv6Addr =
            address.parse().map_err(|_| format!("`{address}` is not an IPv6 address such as 2001:db8::"))?;
        let network = Self::containing(parsed, length(prefix, 128)?);
        if parsed == network.first() { Ok(network) } else { Err(inside(text, network)) }
    }
}

/// The address and the prefix length, as they are written.
fn split<'a>(text: &'a str, example: &str) -> Result<(&'a str, &'a str), String> {
    text.split_once('/').ok_or_else(|| format!("a network needs a prefix length, as in {example}"))
}

fn length(text: &str, longest: u8) -> Result<u8, String> {
    let digits = !text.is_empty() && text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    let length = text.parse().ok().filter(|length| digits && *length <= longest);
    length.ok_or_else(|| format!("`{text}` is not a prefix length from 0 to {longest}"))
}

fn inside(text: &str, network: impl fmt::Display) -> String {
    format!("{text} is an address inside the network {network}; write the network itself")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn parses_and_shows() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "192.168.7.1/32", "10.117.0.0/24"] {
            assert_eq!(network(text).to_string(), text);
        }
    }

    #[test]
    fn refuses_with_advice() {
        let advice = |text: &str| text.parse::<Network>().unwrap_err();
        assert_eq!(
            advice("10.1.2.3/16"),
            "10.1.2.3/16 is an address inside the network 10.1.0.0/16; write the network itself"
        );
        assert_eq!(advice("10.0.0.0"), "a network needs a prefix length, as in 10.1.0.0/16");
        assert_eq!(advice("10.0.0/8"), "`10.0.0` is not an IPv4 address (four numbers from 0 to 255)");
        assert_eq!(advice("10.0.0.0/33"), "`33` is not a prefix length from 0 to 32");
        assert_eq!(advice("10.0.0.0/+8"), "`+8` is not a prefix length from 0 to 32");
        assert_eq!(advice("10.0.0.0/"), "`` is not a prefix length from 0 to 32");
        assert_eq!(advice("fd00::/8"), "`fd00::/8` is an IPv6 network, and only an IPv4 one can stand here");
    }

    #[test]
    fn networks_of_ipv6_are_written_in_one_way() {
        let shown = |text: &str| text.parse::<Network6>().map(|network| network.to_string());
        assert_eq!(shown("2001:DB8:0:0::/32").unwrap(), "2001:db8::/32");
        assert_eq!(shown("::/0").unwrap(), "::/0");
        assert_eq!(shown("fd00::1/128").unwrap(), "fd00::1/128");
        assert_eq!(
            shown("2001:db8::1/64").unwrap_err(),
            "2001:db8::1/64 is an address inside the network 2001:db8::/64; write the network itself"
        );
        assert_eq!(shown("fd00::").unwrap_err(), "a network needs a prefix length, as in 2001:db8::/32");
        assert_eq!(shown("10.0.0.0/8").unwrap_err(), "`10.0.0.0` is not an IPv6 address such as 2001:db8::");
        assert_eq!(shown("fd00::/129").unwrap_err(), "`129` is not a prefix length from 0 to 128");
    }

    #[test]
    fn overlap_is_symmetric_and_exact() {
        let (wide, inside, beside) = (network("10.0.0.0/8"), network("10.96.0.0/16"), network("10.97.0.0/16"));
        assert!(wide.overlaps(inside) && inside.overlaps(wide) && wide.overlaps(wide));
        assert!(!inside.overlaps(beside) && !beside.overlaps(inside));
        assert!(network("0.0.0.0/0").overlaps(beside));
    }

    #[test]
    fn counts_addresses() {
        let pods = network("10.244.0.0/16");
        assert_eq!(network("10.0.0.0/30").address(3).unwrap().to_string(), "10.0.0.3");
        assert_eq!(network("10.0.0.0/30").address(4), None);
        assert!(pods.contains(Ipv4Addr::new(10, 244, 9, 9)) && !pods.contains(Ipv4Addr::new(10, 245, 0, 0)));
    }
}
