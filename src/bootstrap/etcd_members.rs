//! Who the members of etcd are, and how each of them starts for the first time: with all others at
//! once, or as one more of those who run.
//!
//! etcd believes what it is told only at its first start, so what each member was told is written
//! down and never changes after it. A plan of members is a pure function of the file and the
//! inventory; asking and telling etcd is `etcd_step`'s and `etcdctl`'s part.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::cluster::{Cluster, find_document};
use crate::document::{Document, Fields, Found};
use crate::error::{Error, Result};
use crate::inventory::{Host, Inventory};
use crate::node::etcd_first_start::EtcdStart;
use crate::state::Store;
use crate::unknown;

/// Where it lies below the cluster's directory.
pub(super) const FILE: &str = "outputs/etcd.json";

/// How far the first start of all members has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FoundingStage {
    /// No member was started.
    Planned,
    /// Some may have been; whether they are a majority is not known.
    // The word of earlier versions.
    #[serde(alias = "begun")]
    Started,
    /// They were a majority once: members come and go by etcd's own word.
    Established,
}

/// How a member starts for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MemberStart {
    /// With the others of its first list, all at once.
    New,
    /// The same, and it has: with no data it is never started again.
    Founded,
    /// As one more, which etcd does not count yet.
    Joining,
    /// As one more; it is a full member.
    Joined,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    /// The host's name.
    pub(super) name: String,
    /// Where the other members reach it.
    pub(super) address: IpAddr,
    /// The machine with its data.
    pub(super) instance: String,
    /// How it starts.
    pub(super) start: MemberStart,
    /// `name=URL` of each member of its first list, its own among them.
    pub(super) first: Vec<String>,
}

/// The members of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Members {
    /// Always [`Members::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// How far they are.
    pub(super) stage: FoundingStage,
    /// In the order of the inventory.
    #[serde(rename = "members")]
    pub(super) all: Vec<Member>,
}

impl Document for Members {
    const SCHEMA: &'static str = "turnup.etcd/1";
    const WHAT: &'static str = "the members of etcd";
    const REMEDY: &'static str = "remove the file; turnup bootstrap reads the members from the hosts and recreates it";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("stage", "word"),
            ("members[].name", "dns-label"),
            ("members[].address", "ip"),
            ("members[].instance", "id"),
            ("members[].start", "word"),
            ("members[].first[]", "id"),
        ])
    }
}

impl Member {
    /// Where the other members reach this one.
    pub(super) fn peer_url(&self) -> String {
        peer_url(self.address)
    }

    /// How it starts for the first time; none once it has. A member that starts again without data
    /// would be taken for the one that it was, without what that has promised: etcd could lose
    /// writes, and several such members would form another cluster.
    pub(super) const fn first_start(&self) -> Option<EtcdStart> {
        match self.start {
            MemberStart::New => Some(EtcdStart::Founding),
            MemberStart::Joining => Some(EtcdStart::Joining),
            MemberStart::Founded | MemberStart::Joined => None,
        }
    }

    /// It has data from here on.
    pub(super) fn settle(&mut self) {
        self.start = match self.start {
            MemberStart::New | MemberStart::Founded => MemberStart::Founded,
            MemberStart::Joining | MemberStart::Joined => MemberStart::Joined,
        };
    }
}

/// Where the member on the host with this address is reached by the others.
pub(super) fn peer_url(address: IpAddr) -> String {
    format!("https://{}", std::net::SocketAddr::new(address, 2380))
}

impl Members {
    /// What is written down; none before the first run.
    pub(super) fn find(store: &Store) -> Result<Option<Self>> {
        Ok(match find_document(store, FILE)? {
            Found::There(members) => Some(members),
            Found::Missing => None,
            Found::Older(schema) => {
                return Err(Error::precondition(format!("{FILE} is of an older turnup ({schema})")).hint(Self::REMEDY));
            }
        })
    }

    /// What is written down, or what a first run would write.
    pub(super) fn read(cluster: &Cluster, inventory: &Inventory) -> Result<Self> {
        Ok(Self::find(&cluster.store)?.unwrap_or_else(|| Self::all_at_once(inventory)))
    }

    /// How many members have to start side by side: as long as they were no majority once, none is
    /// ready before more than half of them are.
    pub(super) fn count_at_once(store: &Store, inventory: &Inventory) -> Result<usize> {
        let is_established = Self::find(store)?.is_some_and(|known| known.stage == FoundingStage::Established);
        Ok(if is_established { 1 } else { inventory.control_planes().count() / 2 + 1 })
    }

    /// All control-plane hosts of the inventory, none of which has an etcd yet.
    pub(super) fn all_at_once(inventory: &Inventory) -> Self {
        let first: Vec<String> = inventory.control_planes().map(name_and_url).collect();
        let member = |host| Member { first: first.clone(), ..member_of(host, MemberStart::New) };
        let all = inventory.control_planes().map(member).collect();
        Self { schema: Self::SCHEMA.into(), stage: FoundingStage::Planned, all }
    }

    /// Those of the inventory that have data of etcd, where the file was lost; a first start where
    /// none has.
    pub(super) fn recover(inventory: &Inventory, with_data: &[&str]) -> Self {
        let mut members = Self::all_at_once(inventory);
        if !with_data.is_empty() {
            members.all.retain(|member| with_data.contains(&member.name.as_str()));
            members.all.iter_mut().for_each(Member::settle);
            members.stage = FoundingStage::Established;
        }
        members
    }

    /// The member of this name.
    pub(super) fn get(&self, name: &str) -> Result<&Member> {
        self.find_member(name).ok_or_else(|| Error::bug(format!("{FILE} has no member {name:?}")))
    }

    /// The member of this name has data from here on.
    pub(super) fn settle(&mut self, name: &str) {
        self.all.iter_mut().filter(|member| member.name == name).for_each(Member::settle);
    }

    fn find_member(&self, name: &str) -> Option<&Member> {
        self.all.iter().find(|member| member.name == name)
    }

    /// The others.
    pub(super) fn without(&self, name: &str) -> Self {
        let all = self.all.iter().filter(|member| member.name != name).cloned().collect();
        Self { schema: self.schema.clone(), stage: self.stage, all }
    }

    /// The members that the inventory wants, and those of now whom etcd has to forget first.
    /// `has_data` says of a host which is another machine than it was whether the member's data
    /// came along.
    pub(super) fn plan(
        self,
        inventory: &Inventory,
        has_data: &dyn Fn(&Host) -> Result<bool>,
    ) -> Result<(Self, Vec<Member>)> {
        let mut stay = Vec::new();
        for host in inventory.control_planes() {
            match self.find_member(&host.name) {
                Some(old) if old.instance == host.instance || has_data(host)? => stay.push(member_again(old, host)),
                _ => {}
            }
        }
        if self.stage == FoundingStage::Established && !self.all.is_empty() && stay.is_empty() {
            self.refuse_loss(inventory)?;
        }
        if self.stage == FoundingStage::Planned || stay.is_empty() {
            return Ok((Self::all_at_once(inventory), Vec::new()));
        }
        let stays = |name: &str| stay.iter().any(|member: &Member| member.name == name);
        let (left, _): (Vec<Member>, _) = self.all.iter().cloned().partition(|member| !stays(&member.name));
        let comes = inventory.control_planes().any(|host| !stays(&host.name));
        if self.stage == FoundingStage::Started && (comes || !left.is_empty()) {
            return Err(self.unfinished(inventory));
        }
        let mut urls: Vec<String> =
            stay.iter().map(|member| format!("{}={}", member.name, member.peer_url())).collect();
        let mut all = Vec::new();
        for host in inventory.control_planes() {
            if let Some(member) = stay.iter().find(|member| member.name == host.name) {
                all.push(member.clone());
            } else {
                // One after another: each knows those who came before it.
                urls.push(name_and_url(host));
                all.push(Member { first: urls.clone(), ..member_of(host, MemberStart::Joining) });
            }
        }
        Ok((Self { all, ..self }, left))
    }

    /// Without a majority no member can be added or removed.
    pub(super) fn unfinished(&self, inventory: &Inventory) -> Error {
        let first = self.names().join(" ");
        Error::config("the control-plane hosts were changed before etcd had a majority of them")
            .evidence(format!("the members of its first start: {}", self.names().join(", ")))
            .evidence(format!("the inventory has: {}; or one of them is another machine by now", wanted(inventory)))
            .hint(format!(
                "put the first ones back until `turnup up` has ended; or, with them back, start again: turnup reset {first}"
            ))
    }

    /// No host has the data of a member: what would start is another, empty cluster.
    fn refuse_loss(&self, inventory: &Inventory) -> Result<()> {
        if !inventory.control_planes().any(|host| self.find_member(&host.name).is_some()) {
            return Err(self.strangers(inventory));
        }
        // Which machines there will be is not known where they are only imagined; Terraform is
        // refused what would delete all of them.
        if inventory.control_planes().any(|host| unknown::is_in(&host.instance)) {
            return Ok(());
        }
        Err(self.reinstalled(inventory))
    }

    /// If none of the members that have the data remains, the data is lost.
    fn strangers(&self, inventory: &Inventory) -> Error {
        Error::config("none of the control-plane hosts is a member of etcd, so all data of etcd would be lost")
            .evidence(format!("it is on: {}", self.names().join(", ")))
            .evidence(format!("the inventory has: {}", wanted(inventory)))
            .hint("keep one of the old ones on the list until the new ones have joined; or give the data up: turnup down (with the old list)")
    }

    /// The hosts have the members' names, and none has a member's data.
    fn reinstalled(&self, inventory: &Inventory) -> Error {
        let hosts = inventory.control_planes().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" ");
        Error::precondition("the control-plane hosts are other machines than before, and none has the data of etcd")
            .evidence(format!("members of etcd were on: {}", self.names().join(", ")))
            .hint(format!(
                "bring one of the old machines or its disk back; or give the data up: turnup reset {hosts}; then: turnup up, \
                 and with a backup: turnup restore --file BACKUP"
            ))
    }

    fn names(&self) -> Vec<&str> {
        self.all.iter().map(|member| member.name.as_str()).collect()
    }
}

fn wanted(inventory: &Inventory) -> String {
    inventory.control_planes().map(|host| host.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// A host in a list of members.
pub(super) fn name_and_url(host: &Host) -> String {
    format!("{}={}", host.name, peer_url(host.address))
}

fn member_of(host: &Host, start: MemberStart) -> Member {
    let (name, instance) = (host.name.clone(), host.instance.clone());
    Member { name, address: host.address, instance, start, first: Vec::new() }
}

/// The same member, wherever its host is by now.
fn member_again(old: &Member, host: &Host) -> Member {
    Member { first: old.first.clone(), ..member_of(host, old.start) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]
    use super::*;

    /// Control-plane hosts by name, address and machine.
    fn inventory_of(hosts: &[(&str, &str, &str)]) -> Inventory {
        let host = |(name, address, instance): &(&str, &str, &str)| {
            serde_json::json!({"name": name, "role": "control-plane", "address": address, "instance": instance,
                "ssh": {"user": "root", "port": 22, "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}})
        };
        let hosts: Vec<_> = hosts.iter().map(host).collect();
        let inventory = serde_json::json!({"schema": "turnup.provision/1", "cluster": "c", "target": "baremetal",
            "api": {"host": "10.0.0.100", "port": 6443}, "hosts": hosts});
        Inventory::parse("f", &inventory.to_string()).unwrap()
    }

    fn members(hosts: &[(&str, &str, &str)]) -> Members {
        Members::all_at_once(&inventory_of(hosts))
    }

    fn plan(members: Members, hosts: &[(&str, &str, &str)], with_data: &[&str]) -> Result<(Members, Vec<Member>)> {
        members.plan(&inventory_of(hosts), &|host| Ok(with_data.contains(&host.name.as_str())))
    }

    const THREE: [(&str, &str, &str); 3] = [("a", "10.0.0.1", "1"), ("b", "10.0.0.2", "1"), ("c", "10.0.0.3", "1")];

    #[test]
    fn until_one_is_started_the_list_may_be_any() {
        let (planned, left) = plan(members(&THREE), &THREE[..1], &[]).unwrap();
        assert_eq!((planned.all.len(), left.len()), (1, 0));
        assert_eq!(planned.all[0].first, ["a=https://10.0.0.1:2380"]);
        assert_eq!(planned.all[0].first_start(), Some(EtcdStart::Founding));
    }

    #[test]
    fn they_start_side_by_side_until_they_were_a_majority() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let count = || Members::count_at_once(&store, &inventory_of(&THREE)).unwrap();
        assert_eq!((count(), Members::count_at_once(&store, &inventory_of(&THREE[..1])).unwrap()), (2, 1));
        for (stage, expected) in [(FoundingStage::Started, 2), (FoundingStage::Established, 1)] {
            let known = Members { stage, ..members(&THREE) };
            store.write_file(FILE, crate::document::render(FILE, &known).unwrap().as_bytes(), 0o600).unwrap();
            assert_eq!(count(), expected);
        }
    }

    #[test]
    fn a_lost_file_makes_no_second_cluster() {
        let inventory = inventory_of(&THREE);
        assert_eq!(Members::recover(&inventory, &[]), members(&THREE));
        let (next, left) = Members::recover(&inventory, &["a"]).plan(&inventory, &|_| Ok(false)).unwrap();
        let told: Vec<_> = next.all.iter().map(Member::first_start).collect();
        assert_eq!((told, left.len()), (vec![None, Some(EtcdStart::Joining), Some(EtcdStart::Joining)], 0));
    }

    #[test]
    fn the_word_of_earlier_versions_is_read() {
        assert_eq!(serde_json::from_value::<FoundingStage>("begun".into()).unwrap(), FoundingStage::Started);
    }

    #[test]
    fn without_a_majority_the_list_stays() {
        let started = Members { stage: FoundingStage::Started, ..members(&THREE) };
        assert_eq!(plan(started.clone(), &THREE, &[]).unwrap(), (started.clone(), Vec::new()));
        let error = plan(started.clone(), &THREE[..1], &[]).unwrap_err().render();
        insta::assert_snapshot!(error);
        let other = [THREE[0], THREE[1], ("c", "10.0.0.3", "2")];
        assert!(plan(started.clone(), &other, &[]).is_err(), "a machine was replaced");
        assert!(plan(started.clone(), &other, &["c"]).is_ok(), "its data came along");
        let others = THREE.map(|(name, address, _)| (name, address, "2"));
        let (again, left) = plan(started, &others, &[]).unwrap();
        assert_eq!((again.stage, left.len()), (FoundingStage::Planned, 0), "nothing is left of the first start");
    }

    #[test]
    fn data_is_not_left_behind() {
        let founded = Members { stage: FoundingStage::Established, ..members(&THREE) };
        let strangers =
            THREE.map(|(name, address, _)| (["x", "y", "z"][usize::from(name.as_bytes()[0] - b'a')], address, "1"));
        insta::assert_snapshot!(plan(founded.clone(), &strangers, &[]).unwrap_err().render());
        let reinstalled = THREE.map(|(name, address, _)| (name, address, "2"));
        insta::assert_snapshot!(plan(founded.clone(), &reinstalled, &[]).unwrap_err().render());
        assert!(plan(founded.clone(), &reinstalled, &["b"]).is_ok(), "one has its data");
        let instance = unknown::after(&crate::bootstrap::step_ids::NODE_CONFIG);
        let imagined = THREE.map(|(name, address, _)| (name, address, instance.as_str()));
        assert!(plan(founded.clone(), &imagined, &[]).is_ok(), "machines that are only imagined");
        let unfinished = Members { stage: FoundingStage::Planned, ..founded.clone() };
        assert!(plan(unfinished, &reinstalled, &[]).is_ok(), "there was no data yet");
        let reset = Members { all: Vec::new(), ..founded };
        assert_eq!(plan(reset, &strangers, &[]).unwrap().0.all.len(), 3, "all were reset");
    }

    #[test]
    fn members_come_and_go_one_by_one() {
        let founded = Members { stage: FoundingStage::Established, ..members(&THREE) };
        let hosts = [("a", "10.0.0.9", "2"), ("b", "10.0.0.2", "2"), ("d", "10.0.0.4", "1")];
        let (next, left) = plan(founded.clone(), &hosts, &["a"]).unwrap();
        assert_eq!(left.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        let told: Vec<_> = next.all.iter().map(|member| (member.first_start(), member.first.join(","))).collect();
        let first = "a=https://10.0.0.1:2380,b=https://10.0.0.2:2380,c=https://10.0.0.3:2380";
        let joined = "a=https://10.0.0.9:2380,b=https://10.0.0.2:2380";
        assert_eq!(told[0], (Some(EtcdStart::Founding), first.to_owned()), "what it was told at its first start stays");
        assert_eq!(next.all[0].peer_url(), "https://10.0.0.9:2380");
        assert_eq!(
            told[1],
            (Some(EtcdStart::Joining), joined.to_owned()),
            "a machine without data joins like a stranger"
        );
        assert_eq!(told[2], (Some(EtcdStart::Joining), format!("{joined},d=https://10.0.0.4:2380")));
        let (same, left) = plan(next.clone(), &hosts, &[]).unwrap();
        assert_eq!((same, left.len()), (next, 0), "a second plan is the first");
    }

    #[test]
    fn no_text_of_it_says_what_it_should_not() {
        crate::document::hostile::try_every_text::<Members>(&serde_json::json!({
            "schema": Members::SCHEMA, "stage": "established",
            "members": [{"name": "m", "address": "10.0.0.1", "instance": "i-1", "start": "new", "first": ["m=https://10.0.0.1:2380"]}],
        }));
    }
}
