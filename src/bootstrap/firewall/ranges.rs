//! A set of IP addresses, made from addresses and networks and written as elements of an nftables
//! set. Pure arithmetic.
//!
//! Equal sets are written in the same way, whatever they were made from: neighbouring and
//! overlapping parts become one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::{Network, Network6};
use crate::error::{Error, Result};

/// First and last address of each part, in order, with a gap between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    v4: Vec<(u128, u128)>,
    v6: Vec<(u128, u128)>,
}

/// The elements of an `ipv4_addr` and of an `ipv6_addr` set: `10.0.0.1`, `10.0.0.0/8`,
/// `10.0.0.1-10.0.0.9`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Elements {
    pub(super) v4: Vec<String>,
    pub(super) v6: Vec<String>,
}

impl Ranges {
    /// From networks in CIDR form; their formats have been checked with the settings.
    pub(super) fn of_networks<T: AsRef<str>>(networks: &[T]) -> Result<Self> {
        let mut ranges = Self::default();
        for text in networks.iter().map(AsRef::as_ref) {
            let wrong = |why: String| Error::config(format!("{text} is no network: {why}"));
            if text.contains(':') {
                let network: Network6 = text.parse().map_err(wrong)?;
                let first = u128::from(network.first());
                let size = u128::MAX.checked_shr(network.prefix().into()).unwrap_or(0);
                ranges.v6.push((first, first | size));
            } else {
                let network: Network = text.parse().map_err(wrong)?;
                let first = u128::from(u32::from(network.address(0).unwrap_or(Ipv4Addr::UNSPECIFIED)));
                ranges.v4.push((first, first + u128::from(network.size()) - 1));
            }
        }
        Ok(ranges.merged())
    }

    /// From single addresses.
    pub(super) fn of_addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut ranges = Self::default();
        for address in addresses {
            let (number, is_v4) = number_of(address);
            if is_v4 { &mut ranges.v4 } else { &mut ranges.v6 }.push((number, number));
        }
        ranges.merged()
    }

    /// What is in the one or in the other.
    pub(super) fn union(&self, other: &Self) -> Self {
        let both = |one: &[(u128, u128)], other: &[(u128, u128)]| [one, other].concat();
        Self { v4: both(&self.v4, &other.v4), v6: both(&self.v6, &other.v6) }.merged()
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let (number, is_v4) = number_of(address);
        let ranges = if is_v4 { &self.v4 } else { &self.v6 };
        ranges.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// Whether all of it is in the other.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let inside = |ranges: &[(u128, u128)], others: &[(u128, u128)]| {
            ranges.iter().all(|(first, last)| others.iter().any(|(low, high)| low <= first && last <= high))
        };
        inside(&self.v4, &other.v4) && inside(&self.v6, &other.v6)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// As nftables writes them.
    pub(super) fn elements(&self) -> Elements {
        let v4 = |number: u128| Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).to_string();
        let v6 = |number: u128| Ipv6Addr::from(number).to_string();
        Elements {
            v4: self.v4.iter().map(|range| element(*range, 32, v4)).collect(),
            v6: self.v6.iter().map(|range| element(*range, 128, v6)).collect(),
        }
    }

    fn merged(mut self) -> Self {
        for ranges in [&mut self.v4, &mut self.v6] {
            ranges.sort_unstable();
            let mut merged: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
            for (first, last) in ranges.drain(..) {
                match merged.last_mut() {
                    Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                    _ => merged.push((first, last)),
                }
            }
            *ranges = merged;
        }
        self
    }
}

/// An IPv4 address that is written as one of IPv6 is the one of IPv4.
fn number_of(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u32::from(address).into(), true),
        IpAddr::V6(address) => (address.into(), false),
    }
}

fn element((first, last): (u128, u128), bits: u32, show: impl Fn(u128) -> String) -> String {
    if first == last {
        return show(first);
    }
    // A power of two that the first address is a multiple of; all addresses are one more than the
    // largest number.
    let size = (last - first).checked_add(1);
    match size {
        None => format!("{}/0", show(first)),
        Some(size) if size.is_power_of_two() && first.is_multiple_of(size) => {
            format!("{}/{}", show(first), bits - size.trailing_zeros())
        }
        Some(_) => format!("{}-{}", show(first), show(last)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;
    use proptest::prelude::*;

    fn networks(texts: &[&str]) -> Ranges {
        Ranges::of_networks(texts).unwrap()
    }

    #[test]
    fn parts_that_touch_become_one() {
        let shown = |ranges: &Ranges| ranges.elements().v4.join(" ");
        assert_eq!(shown(&networks(&["10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16"])), "10.0.0.0/8");
        let hosts = [1, 2, 3, 9].map(|host| IpAddr::from([10, 0, 0, host]));
        assert_eq!(shown(&Ranges::of_addresses(hosts)), "10.0.0.1-10.0.0.3 10.0.0.9");
        assert_eq!(shown(&networks(&["0.0.0.0/0"])), "0.0.0.0/0");
        assert_eq!(networks(&["::/0", "fd00::/8"]).elements().v6, ["::/0"]);
        assert_eq!(networks(&["fd00::/8", "2001:db8::/32"]).elements().v6, ["2001:db8::/32", "fd00::/8"]);
        assert!(networks(&[]).is_empty());
    }

    #[test]
    fn a_mapped_address_is_the_one_of_ipv4() {
        let ranges = networks(&["192.0.2.0/24"]);
        assert!(ranges.contains("::ffff:192.0.2.7".parse().unwrap()));
        assert!(!ranges.contains("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        assert!(Ranges::of_networks(&["10.0.0.1/8"]).is_err());
        assert!(Ranges::of_networks(&["fd00::1/8"]).is_err());
    }

    proptest! {
        #[test]
        fn an_address_is_in_the_set_when_it_is_in_a_part(parts in prop::collection::vec((any::<u32>(), 0_u8..=32), 0..8), probe in any::<u32>()) {
            let parts: Vec<Network> = parts.into_iter().map(|(base, prefix)| Network::containing(base.into(), prefix)).collect();
            let texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
            let ranges = Ranges::of_networks(&texts).unwrap();
            // Addresses at the edges are where a mistake would be.
            let edges = parts.iter().flat_map(|part| {
                let first = u32::from(part.address(0).unwrap());
                let last = first.wrapping_add(u32::try_from(part.size() - 1).unwrap());
                [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
            });
            for address in edges.chain([probe]).map(Ipv4Addr::from) {
                prop_assert_eq!(ranges.contains(address.into()), parts.iter().any(|part| part.contains(address)));
            }
            // Written and read again, however it was put together.
            let mut turned = texts.clone();
            turned.reverse();
            prop_assert_eq!(&Ranges::of_networks(&turned).unwrap(), &ranges);
            prop_assert_eq!(&ranges.union(&ranges), &ranges);
            prop_assert!(ranges.v4.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }
}
