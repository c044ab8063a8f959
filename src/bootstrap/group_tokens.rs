//! The join tokens of node groups, whose hosts join by themselves: `pki/token-<group>.json`.
//!
//! Each token is bound to the group, so to the names of its Nodes, and has an end that nothing
//! moves. When less than a third of its life is left, a run of turnup makes the next one; both are
//! valid until the older one ends, so a machine that was made from the previous launch template
//! still joins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::document::{self, Document, Fields};
use crate::error::{Class, Context as _, Error, Result};
use crate::state::Store;

use super::api::Kubectl;
use super::group_node::GROUP;
use super::token::{BOOTSTRAPPERS, Token, object_name, rfc3339};

/// The tokens of one group, the current one first. It has no `Debug`: it holds secrets.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupTokens {
    schema: String,
    group: String,
    /// How the names of the group's Nodes begin: `pool-`.
    name_prefix: String,
    tokens: Vec<GroupToken>,
}

/// One of them.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GroupToken {
    token: Zeroizing<String>,
    made: Timestamp,
    expires: Timestamp,
}

impl Document for GroupTokens {
    const SCHEMA: &'static str = "turnup.group-tokens/1";
    const WHAT: &'static str = "the join tokens of a node group";
    const REMEDY: &'static str = "remove the file; turnup up makes another token and revokes the old ones";

    fn fields() -> Fields {
        // Tokens have a form of their own, and no message repeats one.
        Fields::new(&[
            ("schema", "text"),
            ("group", "dns-label"),
            ("name_prefix", "word"),
            ("tokens[].token", "content"),
            ("tokens[].made", "word"),
            ("tokens[].expires", "word"),
        ])
    }

    fn check(&self, path: &str) -> Result<()> {
        let mistake = |what: &str| Err(Error::precondition(format!("{path}: {what}")).hint(Self::REMEDY));
        if self.tokens.is_empty() {
            return mistake("there is no token in it");
        }
        if self.tokens.iter().any(|one| Token::parse(&one.token).is_none()) {
            return mistake("a token has not the form of one");
        }
        Ok(())
    }
}

/// The end of the token with which new hosts of a group join.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JoinToken {
    /// The node group.
    pub group: String,
    /// When it was made.
    pub made: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
}

impl GroupTokens {
    /// The group's name.
    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// How the names of its Nodes begin.
    pub(super) fn name_prefix(&self) -> &str {
        &self.name_prefix
    }

    /// The token that new hosts are given.
    pub(super) fn current(&self) -> &str {
        self.tokens.first().map_or("", |one| &one.token)
    }

    /// The same without the secret.
    pub(super) fn summary(&self) -> Option<JoinToken> {
        let current = self.tokens.first()?;
        Some(JoinToken { group: self.group.clone(), made: current.made, expires: current.expires })
    }

    /// The public halves of all of them.
    pub(super) fn ids(&self) -> String {
        let ids = self.tokens.iter().filter_map(|one| Some(one.token.split_once('.')?.0));
        ids.collect::<Vec<_>>().join(" ")
    }

    /// Whether a run of turnup has to make the next one, or to shorten the life of one.
    pub(super) fn is_due(&self, life: Duration, now: Timestamp) -> bool {
        let Ok(life) = SignedDuration::try_from(life) else { return false };
        let left = |one: &GroupToken| one.expires.duration_since(now);
        self.tokens.first().is_none_or(|current| left(current) <= life / 3)
            || self.tokens.iter().any(|one| left(one) > life)
    }

    fn valid(&self, now: Timestamp) -> impl Iterator<Item = (Token, Timestamp)> {
        let valid = self.tokens.iter().filter(move |one| one.expires > now);
        valid.filter_map(|one| Some((Token::parse(&one.token)?, one.expires)))
    }
}

fn file_of(group: &str) -> String {
    format!("pki/token-{group}.json")
}

/// The tokens of a group, if it has any.
pub(super) fn find(store: &Store, group: &str) -> Result<Option<GroupTokens>> {
    let path = store.path(file_of(group)).display().to_string();
    let bytes = store.read(file_of(group))?.map(Zeroizing::new);
    bytes.map(|bytes| document::parse(&path, &String::from_utf8_lossy(&bytes))).transpose()
}

/// Forgets the tokens of a group; the API knows them until it is told.
pub(super) fn forget(store: &Store, group: &str) -> Result<()> {
    store.remove(file_of(group))
}

/// The tokens of all groups that ever got any, by the names of the groups.
pub(super) fn find_all(store: &Store) -> Result<Vec<GroupTokens>> {
    let Ok(entries) = fs_err::read_dir(store.path("pki")) else { return Ok(Vec::new()) };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let groups: BTreeSet<String> =
        names.filter_map(|name| Some(name.strip_prefix("token-")?.strip_suffix(".json")?.to_owned())).collect();
    groups.iter().filter_map(|group| find(store, group).transpose()).collect()
}

/// What is known of the tokens with which new hosts join, without the secrets.
///
/// # Errors
/// That a file is damaged.
pub fn find_summaries(store: &Store) -> Result<Vec<JoinToken>> {
    Ok(find_all(store)?.iter().filter_map(GroupTokens::summary).collect())
}

/// Gives the group a token that has more than a third of `life` before it. `publish` makes them
/// known to the API before they are written. When it fails, a token that is still valid stays the
/// current one; the failure is returned.
pub(super) fn ensure(
    store: &Store,
    (group, name_prefix): (&str, &str),
    life: Duration,
    publish: impl FnOnce(&GroupTokens) -> Result<()>,
) -> Result<(GroupTokens, Option<Error>)> {
    let (known, now) = (find(store, group)?, Timestamp::now());
    let next = match (rotate(known.as_ref(), (group, name_prefix), life, now)?, known.as_ref()) {
        (Some(next), _) => next,
        (None, Some(known)) => return Ok((known.clone(), None)),
        (None, None) => return Err(Error::bug("a group without a token needs one")),
    };
    let failure = publish(&next).err();
    let is_valid = |known: &GroupTokens| known.tokens.first().is_some_and(|one| one.expires > now);
    match (failure, known.filter(is_valid)) {
        (Some(error), _) if error.class() == Class::Interrupted => Err(error),
        (Some(error), Some(known)) => Ok((known, Some(error))),
        (failure, _) => {
            let text = Zeroizing::new(document::render(&file_of(group), &next)?);
            store.write_file(file_of(group), text.as_bytes(), 0o600)?;
            Ok((next, failure))
        }
    }
}

/// The tokens as they have to become; none when nothing has to change. Pure but for the new token.
fn rotate(
    known: Option<&GroupTokens>,
    (group, name_prefix): (&str, &str),
    life: Duration,
    now: Timestamp,
) -> Result<Option<GroupTokens>> {
    let is_fresh = |known: &GroupTokens| !known.is_due(life, now) && known.name_prefix == name_prefix;
    if known.is_some_and(is_fresh) {
        return Ok(None);
    }
    let length = SignedDuration::try_from(life).context("phase1.user_data.token_lifetime is too long")?;
    let latest = now.checked_add(length).context("phase1.user_data.token_lifetime is too long")?;
    let valid = known.into_iter().flat_map(|known| &known.tokens).filter(|one| one.expires > now);
    // A life that was made shorter counts for tokens that are there already.
    let mut tokens: Vec<GroupToken> =
        valid.map(|one| GroupToken { expires: one.expires.min(latest), ..one.clone() }).collect();
    if tokens.first().is_none_or(|one| one.expires.duration_since(now) <= length / 3) {
        let token = Zeroizing::new(Token::generate()?.text().to_owned());
        tokens.insert(0, GroupToken { token, made: now, expires: latest });
    }
    let (group, name_prefix) = (group.to_owned(), name_prefix.to_owned());
    Ok(Some(GroupTokens { schema: GroupTokens::SCHEMA.into(), group, name_prefix, tokens }))
}

/// Makes the API know the valid tokens of the group and no other of this group: one whose file was
/// removed is revoked.
pub(super) fn register(kubectl: &Kubectl, group: &str, tokens: Option<&GroupTokens>) -> Result<()> {
    // The second group says whose token it was, and the CSR approver binds it to the names of the
    // group.
    let groups = format!("{BOOTSTRAPPERS},{BOOTSTRAPPERS}:{group}");
    let mut own = BTreeSet::new();
    for (token, expires) in tokens.into_iter().flat_map(|tokens| tokens.valid(Timestamp::now())) {
        kubectl.apply(&token.object(expires, (GROUP, group), &groups).to_string())?;
        own.insert(object_name(token.id()));
    }
    for name in find_registered(kubectl, group)?.keys().filter(|name| !own.contains(*name)) {
        kubectl.run(&["delete", "secret", name, "--namespace=kube-system", "--ignore-not-found"])?;
    }
    Ok(())
}

/// Whether the API knows the valid tokens of the group, each with its end, and none that is not in
/// the file.
pub(super) fn is_registered(kubectl: &Kubectl, group: &str, tokens: Option<&GroupTokens>) -> Result<bool> {
    let found = find_registered(kubectl, group)?;
    let mut valid = tokens.into_iter().flat_map(|tokens| tokens.valid(Timestamp::now()));
    let ids = tokens.map(GroupTokens::ids).unwrap_or_default();
    let own: BTreeSet<String> = ids.split_whitespace().map(object_name).collect();
    Ok(valid.all(|(token, expires)| found.get(&object_name(token.id())) == Some(&rfc3339(expires)))
        && found.keys().all(|name| own.contains(name)))
}

/// The names of the group's Secrets in the API, and when each ends.
fn find_registered(kubectl: &Kubectl, group: &str) -> Result<BTreeMap<String, String>> {
    let selector = format!("--selector={GROUP}={group}");
    let path = "--output=jsonpath={range .items[*]}{.metadata.name} {.data.expiration}{\"\\n\"}{end}";
    let found = kubectl.run(&["get", "secret", "--namespace=kube-system", &selector, path])?;
    let read = |line: &str| {
        let (name, expiration) = line.trim().split_once(' ')?;
        let expiration = STANDARD.decode(expiration).unwrap_or_default();
        Some((name.to_owned(), String::from_utf8_lossy(&expiration).into_owned()))
    };
    Ok(found.lines().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use proptest::prelude::*;

    use super::*;

    const POOL: (&str, &str) = ("pool", "pool-");

    #[test]
    fn every_text_is_checked() {
        document::hostile::try_every_text::<GroupTokens>(&serde_json::json!({
            "schema": GroupTokens::SCHEMA, "group": "pool", "name_prefix": "pool-",
            "tokens": [{
                "token": "abcdef.0123456789abcdef",
                "made": "2026-01-01T00:00:00Z", "expires": "2026-04-01T00:00:00Z",
            }],
        }));
    }

    fn at(hours: i64) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(hours)
    }

    fn hours(count: u64) -> Duration {
        Duration::from_hours(count)
    }

    fn ends(tokens: &GroupTokens) -> Vec<(&str, Timestamp)> {
        tokens.tokens.iter().map(|one| (one.token.as_str(), one.expires)).collect()
    }

    #[test]
    fn a_token_is_followed_by_another_one_and_never_lives_longer() {
        let next =
            |known: Option<&GroupTokens>, life: u64, now: i64| rotate(known, POOL, hours(life), at(now)).unwrap();
        let first = next(None, 90, 0).unwrap();
        assert_eq!(ends(&first), [(first.current(), at(90))]);
        assert!(next(Some(&first), 90, 59).is_none(), "more than a third is left");
        let second = next(Some(&first), 90, 60).unwrap();
        assert_ne!(second.current(), first.current());
        assert_eq!(ends(&second), [(second.current(), at(150)), (first.current(), at(90))], "both are valid");
        assert!(next(Some(&second), 90, 91).is_none());
        let third = next(Some(&second), 90, 121).unwrap();
        assert_eq!(ends(&third)[1..], [(second.current(), at(150))], "the first one has ended");
        let late = next(Some(&first), 90, 1000).unwrap();
        assert_eq!(late.tokens.len(), 1, "turnup was not run for long: {:?}", ends(&late));
        let shorter = next(Some(&first), 10, 1).unwrap();
        assert_eq!(ends(&shorter), [(first.current(), at(11))], "a shorter life counts at once");
        let moved = rotate(Some(&first), ("pool", "rack-"), hours(90), at(1)).unwrap().unwrap();
        assert_eq!((moved.current(), moved.name_prefix()), (first.current(), "rack-"));
        assert!(GroupTokens { tokens: Vec::new(), ..first }.check("f").is_err());
    }

    #[test]
    fn a_token_that_the_api_cannot_be_told_of_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.create_dir("pki").unwrap();
        let away = |_: &GroupTokens| Err(Error::transient("the API is away"));
        let ensure = |life: u64, publish: &dyn Fn(&GroupTokens) -> Result<()>| {
            let (tokens, failure) = ensure(&store, POOL, hours(life), publish)?;
            let written = find(&store, "pool")?.unwrap();
            assert_eq!(written.current(), tokens.current());
            Ok::<_, Error>((tokens.current().to_owned(), failure.is_some()))
        };
        let (first, failed) = ensure(90, &away).unwrap();
        assert!(failed, "there is no other one, and the step `rbac` tells the API");
        assert_eq!(ensure(90, &away).unwrap(), (first.clone(), false), "nothing is due");
        // Ten times as long: less than a third of that is left.
        assert_eq!(ensure(900, &away).unwrap(), (first.clone(), true));
        assert!(ensure(900, &|_| Err(Error::new(Class::Interrupted, "stopped"))).is_err());
        let (second, failed) = ensure(900, &|_| Ok(())).unwrap();
        assert!(second != first && !failed);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs_err::metadata(store.path("pki/token-pool.json")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        let all = find_all(&store).unwrap();
        assert_eq!(all.iter().map(GroupTokens::group).collect::<Vec<_>>(), ["pool"]);
    }

    proptest! {
        /// Whenever turnup runs and whatever the life is by then.
        #[test]
        fn no_token_ever_lives_longer_than_it_was_made_for(runs in prop::collection::vec((0_i64..200, 1_u64..200), 1..20)) {
            let (mut known, mut now) = (None::<GroupTokens>, 0);
            for (pause, life) in runs {
                now += pause;
                let before = known.clone();
                if let Some(next) = rotate(known.as_ref(), POOL, hours(life), at(now)).unwrap() {
                    known = Some(next);
                }
                let tokens = known.as_ref().unwrap();
                let length = SignedDuration::try_from(hours(life)).unwrap();
                prop_assert!(tokens.tokens[0].expires.duration_since(at(now)) > length / 3);
                for one in tokens.tokens.iter().filter(|one| one.expires > at(now)) {
                    prop_assert!(one.expires.duration_since(at(now)) <= length);
                    let old = before.iter().flat_map(|before| &before.tokens).find(|old| old.token == one.token);
                    prop_assert!(old.is_none_or(|old| one.expires <= old.expires && one.made == old.made));
                }
                let lost = before.iter().flat_map(|before| &before.tokens).filter(|old| old.expires > at(now));
                for old in lost {
                    prop_assert!(tokens.tokens.iter().any(|one| one.token == old.token), "a machine may still have it");
                }
            }
        }
    }
}
