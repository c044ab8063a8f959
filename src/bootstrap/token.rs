//! Join tokens. A worker that turnup logs in to gets one of its own, valid half an hour and deleted as soon as the worker has its
//! certificate (security defaults). The workers of a group that come by themselves share one, which lives for months; when two thirds of that
//! are over, its life begins anew.

use std::time::Duration;

use base64::Engine as _;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use zeroize::Zeroizing;

use crate::document::{self, Document};
use crate::error::{Context as _, Error, Result};
use crate::state::Store;

use super::api::Kubectl;
use super::comers::GROUP;
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
            "expiration": rfc3339(expires),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": groups,
        },
    })
}

/// In whole seconds, as the API has it.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The token of one group, below the cluster's `pki/`. It has no `Debug`: it is a secret.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupToken {
    schema: String,
    group: String,
    token: Zeroizing<String>,
    made: Timestamp,
    expires: Timestamp,
}

impl Document for GroupToken {
    const SCHEMA: &'static str = "turnup.group-token/1";
    const WHAT: &'static str = "the token with which a group's workers join";
    const REMEDY: &'static str = "remove the file; turnup up makes another token, and the old one is good no more";

    fn check(&self, path: &str) -> Result<()> {
        let part = |text: &str, length| text.len() == length && text.bytes().all(|byte| ALPHABET.contains(&byte));
        let (id, secret) = self.halves();
        if part(id, 6) && part(secret, 16) {
            return Ok(());
        }
        Err(Error::person(format!("{path}: the token has not the form of one")).hint(Self::REMEDY))
    }
}

impl GroupToken {
    /// The token itself.
    pub(super) fn text(&self) -> &str {
        &self.token
    }

    /// Its first half: no secret, but the name of an object.
    pub(super) fn id(&self) -> &str {
        self.halves().0
    }

    fn halves(&self) -> (&str, &str) {
        self.token.split_once('.').unwrap_or_default()
    }

    /// Whether more than a third of this life is left, and not more than all of it: it may have been made when tokens lived longer.
    pub(super) fn is_fresh(&self, life: Duration) -> bool {
        self.is_fresh_at(SignedDuration::try_from(life).unwrap_or(SignedDuration::MAX), Timestamp::now())
    }

    fn is_fresh_at(&self, life: SignedDuration, now: Timestamp) -> bool {
        let left = self.expires.duration_since(now);
        left > life / 3 && left <= life
    }
}

fn group_file(group: &str) -> String {
    format!("pki/token-{group}.json")
}

/// The group's token, made where there is none, and good for longer where that is due.
pub(super) fn ensure_for_group(store: &Store, group: &str, life: Duration) -> Result<GroupToken> {
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

/// The group's token, if somebody made it.
pub(super) fn find_for_group(store: &Store, group: &str) -> Result<Option<GroupToken>> {
    let path = store.path(group_file(group)).display().to_string();
    let bytes = store.read(group_file(group))?.map(Zeroizing::new);
    bytes.map(|bytes| document::parse(&path, &String::from_utf8_lossy(&bytes))).transpose()
}

/// Its value stays as long as its file does: another one would be other user data, for which a cloud replaces every host of the group.
fn ensure_at(store: &Store, group: &str, life: Duration, now: Timestamp) -> Result<GroupToken> {
    let life = SignedDuration::try_from(life).context("phase1.user_data.token_lifetime is too long")?;
    let expires = now.checked_add(life).context("a token would live too long")?;
    let token = match find_for_group(store, group)? {
        Some(token) if token.is_fresh_at(life, now) => return Ok(token),
        Some(token) => GroupToken { expires, ..token },
        None => GroupToken {
            schema: GroupToken::SCHEMA.into(),
            group: group.into(),
            token: Zeroizing::new(format!("{}.{}", *random(6)?, *random(16)?)),
            made: now,
            expires,
        },
    };
    let text = Zeroizing::new(document::render(&group_file(group), &token)?);
    store.write_file(group_file(group), text.as_bytes(), 0o600)?;
    Ok(token)
}

/// Lets the group's token in, and no other of this group: one whose file was removed is good no more.
pub(super) fn register_for_group(kubectl: &Kubectl, group: &str, token: &GroupToken) -> Result<()> {
    let selector = format!("--selector={GROUP}={group}");
    let found = kubectl.run(&["get", "secret", "--namespace=kube-system", &selector, "--output=name"])?;
    let own = format!("secret/bootstrap-token-{}", token.id());
    for name in found.lines().map(str::trim).filter(|name| !name.is_empty() && *name != own) {
        kubectl.run(&["delete", "--namespace=kube-system", name, "--ignore-not-found"])?;
    }
    let (id, secret) = token.halves();
    // The second group says in the audit log whose token it was, and could be bound by itself.
    let groups = format!("{JOINING},{JOINING}:{group}");
    let object = object(id, secret, token.expires, (GROUP, group), &groups);
    kubectl.apply(object.to_string())
}

/// Whether the API has this token, good for as long as its file says.
pub(super) fn is_registered(kubectl: &Kubectl, group: &str, token: &GroupToken) -> Result<bool> {
    let selector = format!("--selector={GROUP}={group}");
    let path = "--output=jsonpath={range .items[*]}{.metadata.name} {.data.expiration}{\"\\n\"}{end}";
    let found = kubectl.run(&["get", "secret", "--namespace=kube-system", &selector, path])?;
    let expiration = base64::engine::general_purpose::STANDARD.encode(rfc3339(token.expires));
    Ok(found.lines().any(|line| line.trim() == format!("bootstrap-token-{} {expiration}", token.id())))
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
    fn the_token_of_a_group_stays_and_lives_on() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        store.create_dir("pki").unwrap();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let at = |hours: i64| start + SignedDuration::from_hours(hours);
        let life = Duration::from_hours(90);
        let first = ensure_at(&store, "pool", life, start).unwrap();
        assert_eq!((first.expires, first.id()), (at(90), &first.text()[..6]));
        assert_eq!(ensure_at(&store, "pool", life, at(59)).unwrap().expires, at(90), "a third is left");
        let second = ensure_at(&store, "pool", life, at(61)).unwrap();
        assert_eq!((second.text(), second.expires, second.made), (first.text(), at(151), start));
        assert_ne!(ensure_at(&store, "other", life, start).unwrap().text(), first.text(), "each group its own");
        // Nobody came for a long time: machines still have the same one.
        let late = ensure_at(&store, "pool", life, at(1000)).unwrap();
        assert_eq!((late.text(), late.expires), (first.text(), at(1090)));
        let short = Duration::from_hours(1);
        assert_eq!(
            ensure_at(&store, "pool", short, at(1001)).unwrap().expires,
            at(1002),
            "a shorter life counts at once"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs_err::metadata(store.path("pki/token-pool.json")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
        store.remove("pki/token-pool.json").unwrap();
        assert_ne!(ensure_at(&store, "pool", life, at(1001)).unwrap().text(), first.text(), "the way to another one");
    }
}
