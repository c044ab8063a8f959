//! Who has tokens of service accounts that a former key has signed: pods, whose kubelets renew them
//! in time, and Secrets, which nothing renews.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::cluster::Cluster;
use crate::error::{Context as _, Error, Result};

use super::api::{has_ended, kubectl};

/// What a pod gets that asks for no other life (`BoundServiceAccountToken` of Kubernetes).
const USUAL: SignedDuration = SignedDuration::from_hours(1);
/// Kubelets renew a token after this, however long it lives (`pkg/kubelet/token`).
const RENEWED: SignedDuration = SignedDuration::from_hours(24);
/// For a kubelet that is late, and clocks that differ.
const SLACK: SignedDuration = SignedDuration::from_mins(15);
/// How many are named.
const NAMED: usize = 5;
/// The type of Secrets with a token that never expires.
const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";

/// When pods have no token of the former key any more, where the new one signs since this. Those
/// that asked for longer lives have theirs longer.
pub(super) fn usual_end(signs: Timestamp) -> Timestamp {
    signs + USUAL + SLACK
}

/// An error as long as a pod or a Secret has a token that this key (its public half in PEM) has
/// signed, while another one signs since `signs`.
pub(super) fn require_none(cluster: &Cluster, what: &str, public_key: &str, signs: Timestamp) -> Result<()> {
    let kubectl = kubectl(cluster)?;
    let pods = kubectl.get(&["pods", "--all-namespaces"])?;
    let late = find_pods(&pods, signs, Timestamp::now());
    if let Some(until) = late.iter().map(|(until, _)| *until).max() {
        let error = Error::precondition(format!("{what}: pods have tokens of the key before until {until:.0}"));
        return Err(named(error, late.into_iter().map(|(_, name)| format!("pod {name}")))
            .evidence("their tokens live longer than an hour; kubelets renew them within a day")
            .hint("turnup status says when, and how it goes on; or delete these pods"));
    }
    let secrets = kubectl.get(&["secrets", "--all-namespaces", &format!("--field-selector=type={TOKEN_SECRET}")])?;
    let signed = find_secrets(&secrets, &key_id(public_key)?);
    let Some((namespace, name)) = signed.first() else { return Ok(()) };
    let another = format!(
        "kubectl --namespace {namespace} patch secret {name} --type=json \
         --patch='[{{\"op\": \"remove\", \"path\": \"/data/token\"}}]'"
    );
    let error = Error::precondition(format!("{what}: Secrets have tokens of the key before, which never expire"));
    let names = signed.iter().map(|(namespace, name)| format!("Secret {namespace}/{name}"));
    Err(named(error, names).hint(format!("{another} (Kubernetes makes another token); then the same command again")))
}

fn named(error: Error, names: impl ExactSizeIterator<Item = String>) -> Error {
    let more = names.len().saturating_sub(NAMED);
    let error = names.take(NAMED).fold(error, Error::evidence);
    if more > 0 { error.evidence(format!("and {more} more")) } else { error }
}

/// The pods that may still use a token of before `signs`, each with the time until which.
fn find_pods(list: &Value, signs: Timestamp, now: Timestamp) -> Vec<(Timestamp, String)> {
    let items = list["items"].as_array().into_iter().flatten();
    let alive = items.filter(|pod| !has_ended(pod));
    let of_before = alive.filter(|pod| {
        let start: Option<Timestamp> = pod["metadata"]["creationTimestamp"].as_str().and_then(|at| at.parse().ok());
        start.is_none_or(|start| start < signs + SLACK)
    });
    let late = of_before.filter_map(|pod| {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let sources = volumes.flat_map(|volume| volume["projected"]["sources"].as_array().into_iter().flatten());
        let tokens = sources.filter_map(|source| source.get("serviceAccountToken"));
        let lives = tokens
            .map(|token| token["expirationSeconds"].as_i64().map_or(USUAL, SignedDuration::from_secs).min(RENEWED));
        let until = signs + lives.max()? + SLACK;
        let name = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        (until > now).then(|| (until, format!("{}/{}", name("namespace"), name("name"))))
    });
    late.collect()
}

/// Namespaces and names of the Secrets whose token this key has signed.
fn find_secrets(list: &Value, key_id: &str) -> Vec<(String, String)> {
    let items = list["items"].as_array().into_iter().flatten();
    let signed = items.filter(|secret| {
        secret["type"] == TOKEN_SECRET
            && secret["data"]["token"].as_str().and_then(signer_of).is_some_and(|signer| signer == key_id)
    });
    let name = |secret: &Value, field: &str| secret["metadata"][field].as_str().unwrap_or_default().to_owned();
    signed.map(|secret| (name(secret, "namespace"), name(secret, "name"))).collect()
}

/// What the head of a token says of the key that signed it.
fn signer_of(data: &str) -> Option<String> {
    let token = String::from_utf8(STANDARD.decode(data).ok()?).ok()?;
    let head: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').next()?).ok()?).ok()?;
    head["kid"].as_str().map(str::to_owned)
}

/// The name of a key in tokens: the digest of its public half, as Kubernetes makes it
/// (`pkg/serviceaccount/jwt.go`).
fn key_id(public_key: &str) -> Result<String> {
    let (_, pem) = x509_parser::pem::parse_x509_pem(public_key.as_bytes()).context("a public key is not PEM")?;
    Ok(URL_SAFE_NO_PAD.encode(Sha256::digest(&pem.contents)))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_pod_has_its_token_for_as_long_as_it_asked_and_a_day_at_most() {
        let pod = |name: &str, start: i64, seconds: Value, phase: &str| {
            let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": seconds}});
            let sources = json!([token, {"configMap": {"name": "kube-root-ca.crt"}}]);
            json!({"metadata": {"namespace": "shop", "name": name, "creationTimestamp": at(start).to_string()},
                "spec": {"volumes": [{"name": "x"}, {"projected": {"sources": sources}}]}, "status": {"phase": phase}})
        };
        let signs = 100_000;
        let list = json!({"items": [
            pod("usual", 0, json!(3607), "Running"),
            pod("long", 0, json!(36000), "Running"),
            pod("longest", 0, json!(10_000_000), "Pending"),
            pod("later", signs + 901, json!(36000), "Running"),
            pod("over", 0, json!(36000), "Succeeded"),
            json!({"metadata": {"name": "none"}, "spec": {}}),
        ]});
        let names = |now: i64| -> Vec<String> {
            find_pods(&list, at(signs), at(now)).into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names(signs), ["shop/usual", "shop/long", "shop/longest"]);
        assert_eq!(names(signs + 3607 + 900), ["shop/long", "shop/longest"]);
        assert_eq!(names(signs + 36000 + 900), ["shop/longest"]);
        assert_eq!(names(signs + 86400 + 900), Vec::<String>::new(), "kubelet renews it in a day");
        assert_eq!(usual_end(at(1000)), at(1000 + 75 * 60));
    }

    #[test]
    fn a_secret_is_known_by_the_key_in_the_head_of_its_token() {
        // openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | basenc --base64url
        let public_key = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        let id = key_id(public_key).unwrap();
        assert_eq!(id, "oekVYFTgT6yJmunydRMs3Ael28TqLCrTof_G4NJTaB8");
        let secret = |name: &str, kid: &str, of: &str| {
            let head = URL_SAFE_NO_PAD.encode(json!({"alg": "RS256", "kid": kid}).to_string());
            json!({"metadata": {"namespace": "ci", "name": name}, "type": of,
                "data": {"token": STANDARD.encode(format!("{head}.e30.c2ln"))}})
        };
        let list = json!({"items": [
            secret("old", &id, TOKEN_SECRET), secret("new", "another", TOKEN_SECRET), secret("own", &id, "Opaque"),
            json!({"type": TOKEN_SECRET, "data": {"token": "%"}}), json!({"type": TOKEN_SECRET}),
        ]});
        assert_eq!(find_secrets(&list, &id), [("ci".to_owned(), "old".to_owned())]);
        assert!(key_id("none").is_err());
    }
}
