//! Join tokens. A worker that turnup logs in to gets one of its own, valid half an hour and deleted as soon as the worker has its
//! certificate (security defaults). The workers of a group that come by themselves share one, which lives for months and is made anew when
//! two thirds of that are over.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

use crate::document::{self, Document};
use crate::error::{Context as _, Error, Result};
use crate::state::Store;

use super::api::Kubectl;
use super::complete::TOKEN_LIFE;

/// The group of every host that joins with a token; `templates/bootstrap/access.yaml` says what it may: ask for a kubelet's certificate.
const JOINING: &str = "system:bootstrappers:turnup";

/// The alphabet of bootstrap tokens: `[a-z0-9]{6}.[a-z0-9]{16}`.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Makes a token for one host, after taking away what an earlier run left for it.
pub(super) fn create(kubectl: &Kubectl, host: &str) -> Result<Zeroizing<String>> {
    revoke(kubectl, host)?;
    let (id, secret) = (random(6)?, random(16)?);
    let expires = Timestamp::now() + SignedDuration::try_from(TOKEN_LIFE).unwrap_or_default();
    let object = object(&id, &secret, expires, ("turnup.dev/host", host), JOINING);
    kubectl.run_with(&["create", "--filename=-"], object.to_string())?;
    Ok(Zeroizing::new(format!("{}.{}", *id, *secret)))
}

fn object(id: &str, secret: &str, expires: Timestamp, label: (&str, &str), groups: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {
            "name": format!("bootstrap-token-{id}"),
            "namespace": "kube-system",
            "labels": {label.0: label.1},
        },
        "stringData": {
            "description": format!("lets {} join", label.1),
            "token-id": id,
            "token-secret": secret,
            "expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": groups,
        },
    })
}

/// The label of a group's tokens.
const GROUP: &str = "turnup.dev/group";

/// The tokens of one group, below the cluster's `pki/`. It has no `Debug`: they are secrets.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupTokens {
    schema: String,
    group: String,
    current: GroupToken,
    /// That of machines which were told before the current one was made; good until its own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<GroupToken>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GroupToken {
    token: Zeroizing<String>,
    made: Timestamp,
    expires: Timestamp,
}

impl Document for GroupTokens {
    const SCHEMA: &'static str = "turnup.group-token/1";
    const WHAT: &'static str = "the token with which a group's workers join";
    const REMEDY: &'static str = "remove the file; turnup up makes another token, and the old one is good no more";

    fn check(&self, path: &str) -> Result<()> {
        let good = |token: &GroupToken| {
            let part = |text: &str, length| text.len() == length && text.bytes().all(|byte| ALPHABET.contains(&byte));
            token.token.split_once('.').is_some_and(|(id, secret)| part(id, 6) && part(secret, 16))
        };
        if std::iter::once(&self.current).chain(&self.previous).all(good) {
            return Ok(());
        }
        Err(Error::person(format!("{path}: the token has not the form of one")).hint(Self::REMEDY))
    }
}

impl GroupTokens {
    /// The token for machines to come.
    pub(super) fn current(&self) -> &str {
        &self.current.token
    }

    /// The ids of those that are good at this time; they are no secret, but names of objects.
    pub(super) fn ids(&self, now: Timestamp) -> Vec<String> {
        self.good(now).filter_map(|token| token.token.split_once('.').map(|(id, _)| id.to_owned())).collect()
    }

    /// The API removes what has run out by itself.
    fn good(&self, now: Timestamp) -> impl Iterator<Item = &GroupToken> {
        std::iter::once(&self.current).chain(&self.previous).filter(move |token| token.expires > now)
    }
}

fn group_file(group: &str) -> String {
    format!("pki/token-{group}.json")
}

/// The group's tokens, made or made anew where it is time.
pub(super) fn ensure_for_group(store: &Store, group: &str, life: Duration) -> Result<GroupTokens> {
    ensure_at(store, group, life, Timestamp::now())
}

/// Whether any group ever got a token.
pub(super) fn has_any(store: &Store) -> Result<bool> {
    if !store.path("pki").is_dir() {
        return Ok(false);
    }
    for entry in fs_err::read_dir(store.path("pki"))? {
        if entry?.file_name().to_string_lossy().starts_with("token-") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The group's tokens, if somebody made them.
pub(super) fn find_for_group(store: &Store, group: &str) -> Result<Option<GroupTokens>> {
    let path = store.path(group_file(group)).display().to_string();
    let bytes = store.read(group_file(group))?.map(Zeroizing::new);
    bytes.map(|bytes| document::parse(&path, &String::from_utf8_lossy(&bytes))).transpose()
}

fn ensure_at(store: &Store, group: &str, life: Duration, now: Timestamp) -> Result<GroupTokens> {
    let life = SignedDuration::try_from(life).context("phase1.user_data.token_lifetime is too long")?;
    let known = find_for_group(store, group)?;
    let is_fresh = |tokens: &GroupTokens| {
        let left = tokens.current.expires.duration_since(now);
        // Also one that was made when tokens lived longer.
        left > life / 3 && left <= life
    };
    let previous = match known {
        Some(tokens) if is_fresh(&tokens) => return Ok(tokens),
        Some(tokens) => Some(tokens.current).filter(|token| token.expires > now),
        None => None,
    };
    let token = Zeroizing::new(format!("{}.{}", *random(6)?, *random(16)?));
    let current =
        GroupToken { token, made: now, expires: now.checked_add(life).context("a token would live too long")? };
    let tokens = GroupTokens { schema: GroupTokens::SCHEMA.into(), group: group.into(), current, previous };
    let text = Zeroizing::new(document::render(&group_file(group), &tokens)?);
    store.write_file(group_file(group), text.as_bytes(), 0o600)?;
    Ok(tokens)
}

/// Lets the group's tokens in, and no other of this group: one whose file was removed is good no more.
pub(super) fn register_for_group(kubectl: &Kubectl, group: &str, tokens: &GroupTokens) -> Result<()> {
    let now = Timestamp::now();
    let ids = tokens.ids(now);
    let selector = format!("--selector={GROUP}={group}");
    let found = kubectl.run(&["get", "secret", "--namespace=kube-system", &selector, "--output=name"])?;
    let is_known = |name: &str| ids.iter().any(|id| name == format!("secret/bootstrap-token-{id}"));
    for name in found.lines().map(str::trim).filter(|name| !name.is_empty() && !is_known(name)) {
        kubectl.run(&["delete", "--namespace=kube-system", name, "--ignore-not-found"])?;
    }
    for token in tokens.good(now) {
        let (id, secret) = token.token.split_once('.').unwrap_or_default();
        // The second group says in the audit log whose token it was, and could be bound by itself.
        let groups = format!("{JOINING},{JOINING}:{group}");
        let object = object(id, secret, token.expires, (GROUP, group), &groups);
        let apply = ["apply", "--server-side", "--field-manager=turnup", "--force-conflicts", "--filename=-"];
        kubectl.run_with(&apply, object.to_string())?;
    }
    Ok(())
}

/// Whether the API knows these ids.
pub(super) fn are_registered(kubectl: &Kubectl, group: &str, tokens: &GroupTokens) -> Result<bool> {
    let selector = format!("--selector={GROUP}={group}");
    let found = kubectl.run(&["get", "secret", "--namespace=kube-system", &selector, "--output=name"])?;
    let is_there = |id: &String| found.lines().any(|line| line.trim() == format!("secret/bootstrap-token-{id}"));
    Ok(tokens.ids(Timestamp::now()).iter().all(is_there))
}

/// Deletes the tokens of one host.
pub(super) fn revoke(kubectl: &Kubectl, host: &str) -> Result<()> {
    let selector = format!("--selector=turnup.dev/host={host}");
    kubectl.run(&["delete", "secret", "--namespace=kube-system", &selector, "--ignore-not-found"])?;
    Ok(())
}

fn random(length: usize) -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(length));
    while text.len() < length {
        let mut byte = [0_u8; 1];
        getrandom::fill(&mut byte).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
        // 252 is the largest multiple of 36 in a byte; what is above would make the first letters likelier.
        if byte[0] < 252 {
            text.push(char::from(ALPHABET[usize::from(byte[0]) % 36]));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
    use super::*;

    #[test]
    fn the_token_of_a_group_is_kept_until_two_thirds_are_over_and_then_both_are_good() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.create_dir("pki").unwrap();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |hours: i64| start + SignedDuration::from_hours(hours);
        let life = Duration::from_hours(90);
        let first = ensure_at(&store, "pool", life, start).unwrap();
        assert_eq!(ensure_at(&store, "pool", life, at(59)).unwrap().current(), first.current());
        let second = ensure_at(&store, "pool", life, at(61)).unwrap();
        assert_ne!(second.current(), first.current());
        assert_eq!(second.ids(at(61)), [&second.current()[..6], &first.current()[..6]]);
        assert_ne!(ensure_at(&store, "other", life, start).unwrap().current(), first.current(), "each group its own");
        assert_eq!(second.ids(at(91)), [&second.current()[..6]], "the old one has run out");
        // Nobody came for a long time: the old one is over as well.
        assert_eq!(ensure_at(&store, "pool", life, at(1000)).unwrap().ids(at(1000)).len(), 1);
        let short = Duration::from_hours(1);
        let third = ensure_at(&store, "pool", short, at(1001)).unwrap();
        assert_eq!(third.current.expires, at(1002), "a shorter life counts at once");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs_err::metadata(store.path("pki/token-pool.json")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }
}
