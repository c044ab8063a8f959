//! Keysets: what can be rotated, each with its items. One item is the primary: it signs, or
//! encrypts. All trusted ones verify, or decrypt. A distrusted one is kept on the operator's
//! machine and used nowhere.
//!
//! A keyset that was never rotated has one item, and is not written down. The functions here are
//! pure: files are `pki_items`' part, what hosts have is `rotation`'s.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::document::{Document, Fields};
use crate::error::{Error, Result};

use super::authority::Authority;

/// Where the keysets with several items are written down, below the cluster's directory.
pub(super) const FILE: &str = "pki/keysets.json";
/// The item that the first run makes.
pub(super) const FIRST: u32 = 1;

/// Everything that is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeysetName {
    /// The authority of the API server, kubelets and clients of the API.
    KubernetesCa,
    /// The authority of etcd's servers, peers and clients.
    EtcdCa,
    /// The authority of the API server as a client of extension API servers.
    FrontProxyCa,
    /// The key that signs tokens of service accounts.
    ServiceAccount,
    /// The key that encrypts Secrets in etcd.
    EncryptionKey,
}

impl KeysetName {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::KubernetesCa, Self::EtcdCa, Self::FrontProxyCa, Self::ServiceAccount, Self::EncryptionKey];

    /// The word of the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KubernetesCa => "kubernetes-ca",
            Self::EtcdCa => "etcd-ca",
            Self::FrontProxyCa => "front-proxy-ca",
            Self::ServiceAccount => "service-account",
            Self::EncryptionKey => "encryption-key",
        }
    }

    /// The keyset with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|keyset| keyset.name() == name)
    }

    /// The authority whose certificates these are; none for keys alone.
    #[must_use]
    pub const fn authority(self) -> Option<Authority> {
        match self {
            Self::KubernetesCa => Some(Authority::Cluster),
            Self::EtcdCa => Some(Authority::Etcd),
            Self::FrontProxyCa => Some(Authority::FrontProxy),
            Self::ServiceAccount | Self::EncryptionKey => None,
        }
    }

    /// The file name of an item below `pki/`, without ending. That of the first one is what it was
    /// before there were keysets.
    pub(super) fn file(self, item: u32) -> String {
        let stem = match self {
            Self::ServiceAccount => "sa",
            Self::EncryptionKey => "encryption",
            Self::KubernetesCa | Self::EtcdCa | Self::FrontProxyCa => self.authority().map_or("", Authority::file),
        };
        numbered(stem, item)
    }
}

impl From<Authority> for KeysetName {
    fn from(authority: Authority) -> Self {
        match authority {
            Authority::Cluster => Self::KubernetesCa,
            Authority::Etcd => Self::EtcdCa,
            Authority::FrontProxy => Self::FrontProxyCa,
        }
    }
}

impl std::fmt::Display for KeysetName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A file name for an item: the first one's is the plain one.
pub(super) fn numbered(stem: &str, item: u32) -> String {
    if item == FIRST { stem.to_owned() } else { format!("{stem}-{item}") }
}

/// What an item is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    /// Signs or encrypts, and is trusted.
    Primary,
    /// Verifies or decrypts.
    Trusted,
    /// Is kept, and used nowhere.
    Distrusted,
}

impl ItemState {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Trusted => "trusted",
            Self::Distrusted => "distrusted",
        }
    }
}

/// One item.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeysetItem {
    /// Its number, which no other item of the keyset ever gets.
    pub id: u32,
    /// What it is used for.
    pub state: ItemState,
    /// When it was made; unknown of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// When it was first promoted; none of the first one, which was the primary from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promoted: Option<Timestamp>,
    /// Since when every host signs with it, where that was looked at: some time after its
    /// promotion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signs: Option<Timestamp>,
}

/// What a command does with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationStep {
    /// A new one is made and trusted.
    Create,
    /// It becomes the primary.
    Promote,
    /// It is trusted no longer.
    Distrust,
}

impl RotationStep {
    /// All of them, in the order of a rotation.
    pub const ALL: [Self; 3] = [Self::Create, Self::Promote, Self::Distrust];

    /// The command's word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Promote => "promote",
            Self::Distrust => "distrust",
        }
    }
}

/// The items of one name, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Keyset {
    /// Never empty.
    pub items: Vec<KeysetItem>,
    /// A rotation by one command is under way: it goes on where it was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rotating: bool,
}

impl Default for Keyset {
    fn default() -> Self {
        let first = KeysetItem { id: FIRST, state: ItemState::Primary, created: None, promoted: None, signs: None };
        Self { items: vec![first], rotating: false }
    }
}

impl Keyset {
    /// The number of the item that signs.
    #[must_use]
    pub fn primary(&self) -> u32 {
        self.items.iter().find(|item| item.state == ItemState::Primary).map_or(FIRST, |item| item.id)
    }

    /// The numbers of all items that are trusted, the primary's among them. The order stays when
    /// another one is promoted, so that bundles do, too.
    pub fn trusted(&self) -> impl Iterator<Item = u32> {
        self.items.iter().filter(|item| item.state != ItemState::Distrusted).map(|item| item.id)
    }

    /// The trusted item besides the primary.
    #[must_use]
    pub fn other(&self) -> Option<u32> {
        self.items.iter().find(|item| item.state == ItemState::Trusted).map(|item| item.id)
    }

    /// The number of the next item.
    #[must_use]
    pub fn next(&self) -> u32 {
        self.items.iter().map(|item| item.id).max().unwrap_or_default() + 1
    }

    fn state(&self, name: KeysetName, id: u32) -> Result<ItemState> {
        self.items.iter().find(|item| item.id == id).map(|item| item.state).ok_or_else(|| {
            let known: Vec<String> = self.items.iter().map(|item| item.id.to_string()).collect();
            Error::usage(format!("{name} has no item {id}"))
                .evidence(format!("its items: {}", known.join(", ")))
                .hint(format!("turnup keyset list {name}"))
        })
    }

    /// With one more item, which is trusted and signs nothing. One rotation at a time.
    pub fn create(&self, name: KeysetName, now: Timestamp) -> Result<Self> {
        if let Some(other) = self.other() {
            let message = format!("{name}: item {other} is trusted beside the primary, item {}", self.primary());
            let next = if other > self.primary() { "promote" } else { "distrust" };
            return Err(Error::precondition(message)
                .evidence("one rotation at a time: every bundle has two items at most")
                .hint(format!("turnup keyset {next} {name} {other}")));
        }
        let mut items = self.items.clone();
        items.push(KeysetItem {
            id: self.next(),
            state: ItemState::Trusted,
            created: Some(now),
            promoted: None,
            signs: None,
        });
        Ok(Self { items, ..*self })
    }

    /// What a rotation by one command does next, after a run of the phase; none when it is over.
    #[must_use]
    pub fn next_step(&self) -> Option<RotationStep> {
        match self.other() {
            Some(other) if other > self.primary() => Some(RotationStep::Promote),
            Some(_) => Some(RotationStep::Distrust),
            None => (!self.rotating).then_some(RotationStep::Create),
        }
    }

    /// When the primary was promoted; none of the first item.
    #[must_use]
    pub fn promoted(&self) -> Option<Timestamp> {
        self.items.iter().find(|item| item.state == ItemState::Primary)?.promoted
    }

    /// Since when every host signs with the primary; none where that was not looked at.
    #[must_use]
    pub fn signs(&self) -> Option<Timestamp> {
        self.items.iter().find(|item| item.state == ItemState::Primary)?.signs
    }

    /// With that written down.
    #[must_use]
    pub fn with_signs(&self, since: Timestamp) -> Self {
        let is_primary = |item: &KeysetItem| item.state == ItemState::Primary;
        let signs = |item: &KeysetItem| if is_primary(item) { Some(since) } else { item.signs };
        let items = self.items.iter().map(|item| KeysetItem { signs: signs(item), ..item.clone() });
        Self { items: items.collect(), ..*self }
    }

    /// The item that a command without a number means: to promote, the newer one that is trusted;
    /// to distrust, the older one.
    pub fn meant(&self, name: KeysetName, newer: bool) -> Result<u32> {
        let fits = |other: &u32| (*other > self.primary()) == newer;
        self.other().filter(fits).ok_or_else(|| {
            let which = if newer { "newer" } else { "older" };
            let message =
                format!("{name} has no trusted item that is {which} than its primary, item {}", self.primary());
            let next = if newer { "create" } else { "list" };
            Error::precondition(message).hint(format!("turnup keyset {next} {name}"))
        })
    }

    /// With this item as the primary; the one before stays trusted. `ends` is when its certificate
    /// ends.
    pub fn promote(&self, name: KeysetName, id: u32, ends: Option<Timestamp>, now: Timestamp) -> Result<Self> {
        match self.state(name, id)? {
            ItemState::Trusted => {}
            ItemState::Primary => {
                return Err(Error::usage(format!("{name}: item {id} is the primary already"))
                    .hint(format!("turnup keyset list {name}")));
            }
            ItemState::Distrusted => {
                return Err(Error::precondition(format!(
                    "{name}: item {id} is distrusted: what it signs counts nowhere"
                ))
                .hint(format!("turnup keyset create {name}")));
            }
        }
        if let Some(ends) = ends.filter(|ends| *ends <= now) {
            return Err(Error::precondition(format!("{name}: item {id} ended at {ends}"))
                .hint(format!("turnup keyset distrust {name} {id}; then turnup keyset create {name}")));
        }
        let primary = self.primary();
        let mut promoted = self.with(|item| match item.id {
            other if other == id => ItemState::Primary,
            other if other == primary => ItemState::Trusted,
            _ => item.state,
        });
        for item in &mut promoted.items {
            item.signs = None;
            if item.id == id && id != FIRST {
                item.promoted.get_or_insert(now);
            }
        }
        Ok(promoted)
    }

    /// Whether the item was the primary once, so that something of it may still be in use.
    #[must_use]
    pub fn has_signed(&self, id: u32) -> bool {
        self.items.iter().any(|item| item.id == id && (id == FIRST || item.promoted.is_some()))
    }

    /// Without trust in this item, which is kept.
    pub fn distrust(&self, name: KeysetName, id: u32) -> Result<Self> {
        match self.state(name, id)? {
            ItemState::Trusted => Ok(self.with(|item| if item.id == id { ItemState::Distrusted } else { item.state })),
            ItemState::Primary => {
                let error = Error::precondition(format!("{name}: item {id} is the primary, which signs"));
                Err(error.evidence("another item has to be promoted first").hint(match self.other() {
                    Some(other) => format!("turnup keyset promote {name} {other}"),
                    None => format!("turnup keyset create {name}"),
                }))
            }
            ItemState::Distrusted => Err(Error::usage(format!("{name}: item {id} is distrusted already"))
                .hint(format!("turnup keyset list {name}"))),
        }
    }

    fn with(&self, state: impl Fn(&KeysetItem) -> ItemState) -> Self {
        let items = self.items.iter().map(|item| KeysetItem { state: state(item), ..item.clone() });
        Self { items: items.collect(), ..*self }
    }
}

/// The keysets that were rotated, or are being rotated.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keysets {
    /// Always [`Keysets::SCHEMA`](Document::SCHEMA).
    schema: String,
    /// Those with more than their first item.
    pub(super) keysets: BTreeMap<KeysetName, Keyset>,
}

impl Default for Keysets {
    fn default() -> Self {
        Self { schema: Self::SCHEMA.into(), keysets: BTreeMap::new() }
    }
}

impl Document for Keysets {
    const SCHEMA: &'static str = "turnup.keysets/1";
    const WHAT: &'static str = "the list of keysets with several items";
    const REMEDY: &'static str = "put it back from a backup of the cluster's directory";

    fn fields() -> Fields {
        Fields::new(&[
            ("schema", "text"),
            ("keysets.*.items[].state", "word"),
            ("keysets.*.items[].created", "word"),
            ("keysets.*.items[].promoted", "word"),
            ("keysets.*.items[].signs", "word"),
        ])
    }

    fn check(&self, path: &str) -> Result<()> {
        for (name, Keyset { items, .. }) in &self.keysets {
            let primaries = items.iter().filter(|item| item.state == ItemState::Primary).count();
            let ascend = items.is_sorted_by(|one, next| one.id < next.id);
            if primaries != 1 || !ascend || items.first().is_none_or(|item| item.id < FIRST) {
                let message = format!("{path}: {name} needs one primary, and items in the order of their numbers");
                return Err(Error::precondition(message).hint(Self::REMEDY));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use serde_json::json;

    use super::*;
    use crate::document::{self, hostile};

    const NAME: KeysetName = KeysetName::KubernetesCa;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn states(keyset: &Keyset) -> Vec<(u32, &'static str)> {
        keyset.items.iter().map(|item| (item.id, item.state.name())).collect()
    }

    #[test]
    fn a_rotation_is_create_promote_distrust() {
        let first = Keyset::default();
        let created = first.create(NAME, at(1)).unwrap();
        assert_eq!(states(&created), [(1, "primary"), (2, "trusted")]);
        assert_eq!(created.meant(NAME, true).unwrap(), 2);
        let promoted = created.promote(NAME, 2, Some(at(9)), at(8)).unwrap();
        assert_eq!(states(&promoted), [(1, "trusted"), (2, "primary")]);
        assert_eq!(created.trusted().collect::<Vec<_>>(), promoted.trusted().collect::<Vec<_>>(), "bundles stay");
        assert_eq!(promoted.meant(NAME, false).unwrap(), 1);
        let distrusted = promoted.distrust(NAME, 1).unwrap();
        assert_eq!(states(&distrusted), [(1, "distrusted"), (2, "primary")]);
        assert_eq!(distrusted.trusted().collect::<Vec<_>>(), [2]);
        assert_eq!(states(&distrusted.create(NAME, at(2)).unwrap())[2], (3, "trusted"), "no number comes again");
        // A rotation can be given up: before, and after the promotion.
        assert_eq!(states(&created.distrust(NAME, 2).unwrap()), [(1, "primary"), (2, "distrusted")]);
        let back = promoted.promote(NAME, 1, None, at(8)).unwrap();
        assert_eq!(states(&back), states(&created));
        let signed = |keyset: &Keyset| [1, 2].map(|id| keyset.has_signed(id));
        assert_eq!([signed(&created), signed(&back)], [[true, false], [true, true]]);
    }

    #[test]
    fn a_rotation_by_one_command_goes_on_where_it_was_cut_off() {
        let idle = Keyset::default();
        assert_eq!(idle.next_step(), Some(RotationStep::Create));
        let created = Keyset { rotating: true, ..idle.create(NAME, at(1)).unwrap() };
        assert_eq!(created.next_step(), Some(RotationStep::Promote));
        let promoted = created.promote(NAME, 2, None, at(8)).unwrap();
        assert_eq!((promoted.next_step(), promoted.promoted()), (Some(RotationStep::Distrust), Some(at(8))));
        let distrusted = promoted.distrust(NAME, 1).unwrap();
        assert_eq!((distrusted.rotating, distrusted.next_step()), (true, None), "it ends, and makes no third item");
        let ended = Keyset { rotating: false, ..distrusted };
        assert_eq!(ended.next_step(), Some(RotationStep::Create), "the next one");
    }

    #[test]
    fn what_would_break_a_cluster_is_refused() {
        let first = Keyset::default();
        let created = first.create(NAME, at(1)).unwrap();
        let promoted = created.promote(NAME, 2, None, at(8)).unwrap();
        let distrusted = promoted.distrust(NAME, 1).unwrap();
        let refusals = [
            first.meant(NAME, true).unwrap_err(),
            first.meant(NAME, false).unwrap_err(),
            first.distrust(NAME, 1).unwrap_err(),
            created.create(NAME, at(2)).unwrap_err(),
            created.promote(NAME, 7, None, at(8)).unwrap_err(),
            created.promote(NAME, 1, None, at(8)).unwrap_err(),
            created.promote(NAME, 2, Some(at(8)), at(8)).unwrap_err(),
            created.distrust(NAME, 1).unwrap_err(),
            promoted.create(NAME, at(2)).unwrap_err(),
            distrusted.promote(NAME, 1, None, at(8)).unwrap_err(),
            distrusted.distrust(NAME, 1).unwrap_err(),
        ];
        insta::assert_snapshot!(refusals.map(|error| error.render()).join("\n\n"));
    }

    #[test]
    fn the_file_is_read_as_it_was_written_and_a_damaged_one_is_refused() {
        let promoted = Keyset::default().create(NAME, at(1)).unwrap().promote(NAME, 2, None, at(2)).unwrap();
        let promoted = promoted.with_signs(at(3));
        let all = Keysets { keysets: [(NAME, promoted)].into(), ..Keysets::default() };
        let text = document::render(FILE, &all).unwrap();
        assert_eq!(document::parse::<Keysets>(FILE, &text).unwrap(), all);
        hostile::try_every_text::<Keysets>(&serde_json::from_str(&text).unwrap());
        for items in [json!([]), json!([{"id": 1, "state": "trusted"}]), json!([{"id": 0, "state": "primary"}])] {
            let text = json!({"schema": Keysets::SCHEMA, "keysets": {"etcd-ca": {"items": items}}}).to_string();
            let error = document::parse::<Keysets>(FILE, &text).unwrap_err().render();
            assert!(error.contains("etcd-ca needs one primary"), "{error}");
        }
        assert!(KeysetName::ALL.iter().all(|name| KeysetName::find(name.name()) == Some(*name)));
        assert_eq!([NAME.file(1), NAME.file(2), KeysetName::ServiceAccount.file(3)], ["ca", "ca-2", "sa-3"]);
    }
}
