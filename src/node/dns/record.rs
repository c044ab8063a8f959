//! What a zone has at a name, and what is to be there, apart from how a zone is asked.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// The data of all records of one type at a name, as they are on the wire.
pub(super) type RecordSet = BTreeSet<Vec<u8>>;

/// What a zone has at a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundName {
    /// Addresses of both families, and whose the name is: A, AAAA, TXT.
    pub(super) sets: [RecordSet; 3],
    /// The TTL of one of its addresses.
    pub(super) ttl: Option<u32>,
}

impl FoundName {
    #[cfg(test)]
    pub(super) fn new(owner: Option<&str>, addresses: &[IpAddr], ttl: u32) -> Self {
        let [v4, v6] = split(&addresses.iter().copied().collect());
        Self { sets: [v4, v6, owner.map(text_data).into_iter().collect()], ttl: Some(ttl) }
    }

    /// Whether this owner made it.
    pub(super) fn belongs_to(&self, owner: &str) -> bool {
        self.sets[2].contains(&text_data(owner))
    }

    /// The texts at it, for messages.
    pub(super) fn texts(&self) -> Vec<String> {
        let text = |data: &Vec<u8>| String::from_utf8_lossy(data.get(1..).unwrap_or_default()).into_owned();
        self.sets[2].iter().map(text).collect()
    }

    /// The addresses to which it leads.
    pub(super) fn addresses(&self) -> BTreeSet<IpAddr> {
        let v4 = self.sets[0].iter().filter_map(|data| <[u8; 4]>::try_from(data.as_slice()).ok()).map(IpAddr::from);
        let v6 = self.sets[1].iter().filter_map(|data| <[u8; 16]>::try_from(data.as_slice()).ok()).map(IpAddr::from);
        v4.chain(v6).collect()
    }
}

/// What is to be at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewName {
    pub(super) addresses: BTreeSet<IpAddr>,
    pub(super) ttl: u32,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    Done,
    /// Something else was at the name by then, and stays.
    Raced,
}

/// A text as TXT has it: its length and itself. Texts of ours are short.
pub(super) fn text_data(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or(u8::MAX);
    std::iter::once(length).chain(text.bytes().take(usize::from(length))).collect()
}

/// The addresses by family, as they are on the wire.
pub(super) fn split(addresses: &BTreeSet<IpAddr>) -> [RecordSet; 2] {
    let mut sets = [RecordSet::new(), RecordSet::new()];
    for address in addresses {
        sets[usize::from(address.is_ipv6())].insert(address_data(*address));
    }
    sets
}

/// An address as A or AAAA has it.
pub(super) fn address_data(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
