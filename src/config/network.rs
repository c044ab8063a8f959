//! IPv4 networks: parsing with advice, containment and overlap. Pure arithmetic; it must not look at this machine's interfaces.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// An IPv4 network in CIDR notation whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    base: u32,
    prefix: u8,
}

impl Network {
    /// The network of this prefix length that contains the address.
    #[must_use]
    pub fn containing(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.min(32);
        Self { base: u32::from(address) & mask(prefix), prefix }
    }

    /// The number of leading bits that all addresses share.
    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// How many addresses there are, the network's and the broadcast address included.
    #[must_use]
    pub const fn size(self) -> u64 {
        1 << (32 - self.prefix)
    }

    /// The address with this index, counted from the network's own; none past the end.
    #[must_use]
    pub fn address(self, index: u32) -> Option<Ipv4Addr> {
        (u64::from(index) < self.size()).then(|| Ipv4Addr::from(self.base + index))
    }

    /// The subnet with this index when the network is cut into networks of a longer prefix; none past the end.
    #[must_use]
    pub fn subnet(self, prefix: u8, index: u32) -> Option<Self> {
        if prefix < self.prefix || prefix > 32 || u64::from(index) >= 1 << (prefix - self.prefix) {
            return None;
        }
        let step = 1_u64 << (32 - prefix);
        let base = u32::try_from(u64::from(self.base) + u64::from(index) * step).ok()?;
        Some(Self { base, prefix })
    }

    /// Whether the address lies in the network.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == self.base
    }

    /// Whether any address lies in both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let shorter = mask(self.prefix.min(other.prefix));
        self.base & shorter == other.base & shorter
    }
}

const fn mask(prefix: u8) -> u32 {
    match prefix {
        0 => 0,
        bits => u32::MAX << (32 - bits),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.base), self.prefix)
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((address, prefix)) = text.split_once('/') else {
            return Err("a network needs a prefix length, as in 10.1.0.0/16".to_owned());
        };
        if address.contains(':') {
            return Err("IPv6 networks are not supported yet".to_owned());
        }
        let parsed: Ipv4Addr =
            address.parse().map_err(|_| format!("`{address}` is not an IPv4 address (four numbers from 0 to 255)"))?;
        let digits = !prefix.is_empty() && prefix.len() <= 2 && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let length = prefix.parse::<u8>().ok().filter(|length| digits && *length <= 32);
        let Some(length) = length else {
            return Err(format!("`{prefix}` is not a prefix length from 0 to 32"));
        };
        let network = Self::containing(parsed, length);
        if u32::from(parsed) == network.base {
            Ok(network)
        } else {
            Err(format!("{text} is an address inside the network {network}; write the network itself"))
        }
    }
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
        assert_eq!(advice("fd00::/8"), "IPv6 networks are not supported yet");
    }

    #[test]
    fn overlap_is_symmetric_and_exact() {
        let (wide, inside, beside) = (network("10.0.0.0/8"), network("10.96.0.0/16"), network("10.97.0.0/16"));
        assert!(wide.overlaps(inside) && inside.overlaps(wide) && wide.overlaps(wide));
        assert!(!inside.overlaps(beside) && !beside.overlaps(inside));
        assert!(network("0.0.0.0/0").overlaps(beside));
    }

    #[test]
    fn counts_addresses_and_subnets() {
        let pods = network("10.244.0.0/16");
        assert_eq!(pods.subnet(24, 255).unwrap().to_string(), "10.244.255.0/24");
        assert_eq!(pods.subnet(24, 256), None);
        assert_eq!(pods.subnet(8, 0), None);
        assert_eq!(network("0.0.0.0/0").subnet(32, u32::MAX).unwrap().to_string(), "255.255.255.255/32");
        assert_eq!(network("10.0.0.0/30").address(3).unwrap().to_string(), "10.0.0.3");
        assert_eq!(network("10.0.0.0/30").address(4), None);
        assert!(pods.contains(Ipv4Addr::new(10, 244, 9, 9)) && !pods.contains(Ipv4Addr::new(10, 245, 0, 0)));
    }
}
