//! What is to become of a name, and whose turn it is. Pure.
//!
//! The value is always the whole set of live API servers, never one address more or less than what
//! stands there. Where none is known to live, the last set stays: it is at least where they were.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::record::{FoundName, NewName};

/// Where a name leads before there is an API server, so that no resolver learns that the name does
/// not exist, which it may remember for hours. No host has this address (RFC 5737).
const PLACEHOLDER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 123));
/// For how many seconds resolvers may keep that.
const PLACEHOLDER_TTL: u32 = 10;
/// For so long a name is wrong before a host writes it whose turn it is not.
const OTHERS_TURN: Duration = Duration::from_secs(30);

/// What is to be done with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameAction {
    Keep,
    /// The name is made, which harms no other name: whose turn it is does not matter.
    Create(NewName),
    Replace(NewName),
    /// Another owner has it.
    Leave(String),
}

/// `live` is where the name should lead; empty where that is not known. Another TTL than `ttl` is
/// minded once: servers may have their own, and a difference must not be written again and again.
pub(super) fn decide(live: &BTreeSet<IpAddr>, found: &FoundName, owner: &str, ttl: u32, mind_ttl: bool) -> NameAction {
    let there = found.addresses();
    let new = |addresses: BTreeSet<IpAddr>| NewName { addresses, ttl };
    if !found.belongs_to(owner) {
        let texts = found.texts();
        return match (there.is_empty() && texts.is_empty(), live.is_empty()) {
            (false, _) => NameAction::Leave(describe(&there, &texts)),
            (true, true) => {
                NameAction::Create(NewName { addresses: BTreeSet::from([PLACEHOLDER]), ttl: PLACEHOLDER_TTL })
            }
            (true, false) => NameAction::Create(new(live.clone())),
        };
    }
    if live.is_empty() || there == *live && (!mind_ttl || found.ttl == Some(ttl)) {
        return NameAction::Keep;
    }
    NameAction::Replace(new(live.clone()))
}

/// Whether this host writes: the one whose etcd leads, and any other one where nothing was put
/// right for a while.
pub(super) fn is_turn(is_leader: bool, wrong_for: Duration) -> bool {
    is_leader || wrong_for >= OTHERS_TURN
}

fn describe(addresses: &BTreeSet<IpAddr>, texts: &[String]) -> String {
    let all = addresses.iter().map(ToString::to_string).chain(texts.iter().map(|text| format!("{text:?}")));
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNER: &str = "turnup cluster=it id=1";

    fn addresses(last: &[u8]) -> BTreeSet<IpAddr> {
        last.iter().map(|last| IpAddr::from([10, 0, 0, *last])).collect()
    }

    fn ours(last: &[u8]) -> FoundName {
        FoundName::new(Some(OWNER), &addresses(last).into_iter().collect::<Vec<_>>(), 30)
    }

    fn decided(live: &[u8], found: &FoundName) -> NameAction {
        decide(&addresses(live), found, OWNER, 30, false)
    }

    #[test]
    fn a_name_leads_to_the_live_set_and_to_nothing_else() {
        let new = |last: &[u8]| NewName { addresses: addresses(last), ttl: 30 };
        assert_eq!(decided(&[1, 2], &ours(&[1, 2])), NameAction::Keep);
        assert_eq!(decided(&[1, 3], &ours(&[1, 2])), NameAction::Replace(new(&[1, 3])));
        assert_eq!(decided(&[1], &FoundName::default()), NameAction::Create(new(&[1])));
        assert_eq!(decided(&[], &ours(&[1, 2])), NameAction::Keep, "nothing is known of them");
    }

    #[test]
    fn a_name_is_there_before_the_first_api_server() {
        let placeholder = NewName { addresses: BTreeSet::from([PLACEHOLDER]), ttl: PLACEHOLDER_TTL };
        assert_eq!(decided(&[], &FoundName::default()), NameAction::Create(placeholder));
        let there = FoundName::new(Some(OWNER), &[PLACEHOLDER], PLACEHOLDER_TTL);
        assert_eq!(decided(&[], &there), NameAction::Keep);
        assert!(matches!(decided(&[1], &there), NameAction::Replace(_)));
    }

    #[test]
    fn what_another_owner_has_is_left_alone() {
        let address = [IpAddr::from([192, 0, 2, 9])];
        for (owner, said) in
            [(None, "192.0.2.9"), (Some("turnup cluster=it id=2"), r#"192.0.2.9, "turnup cluster=it id=2""#)]
        {
            for live in [&[1][..], &[]] {
                assert_eq!(decided(live, &FoundName::new(owner, &address, 30)), NameAction::Leave(said.into()));
            }
        }
        assert!(matches!(decided(&[1], &FoundName::new(Some("v=spf1"), &[], 30)), NameAction::Leave(_)));
    }

    #[test]
    fn another_ttl_is_written_only_when_it_is_minded() {
        let found = FoundName::new(Some(OWNER), &[IpAddr::from([10, 0, 0, 1])], 300);
        assert_eq!(decide(&addresses(&[1]), &found, OWNER, 30, false), NameAction::Keep);
        assert!(matches!(decide(&addresses(&[1]), &found, OWNER, 30, true), NameAction::Replace(_)));
    }

    #[test]
    fn the_host_of_the_leader_writes_and_others_when_it_does_not() {
        assert!(is_turn(true, Duration::ZERO) && is_turn(false, OTHERS_TURN));
        assert!(!is_turn(false, OTHERS_TURN.saturating_sub(Duration::from_millis(1))));
    }

    proptest! {
        #[test]
        fn one_write_ends_it(live in prop::collection::vec(1_u8..9, 0..4), there in prop::collection::vec(1_u8..9, 0..4), is_ours: bool) {
            let found = if is_ours { ours(&there) } else { FoundName::default() };
            if let NameAction::Create(new) | NameAction::Replace(new) = decided(&live, &found) {
                prop_assert!(!new.addresses.is_empty());
                let all: Vec<IpAddr> = new.addresses.iter().copied().collect();
                prop_assert_eq!(decided(&live, &FoundName::new(Some(OWNER), &all, new.ttl)), NameAction::Keep);
            }
        }
    }
}
