//! Join tokens: one a worker, valid half an hour, deleted as soon as the worker has its certificate (security defaults).

use serde_json::json;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

use super::api::Kubectl;
use super::complete::TOKEN_LIFE;

/// The alphabet of bootstrap tokens: `[a-z0-9]{6}.[a-z0-9]{16}`.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// Makes a token for one host, after taking away what an earlier run left for it.
pub(super) fn create(kubectl: &Kubectl, host: &str) -> Result<Zeroizing<String>> {
    revoke(kubectl, host)?;
    let (id, secret) = (random(6)?, random(16)?);
    let expiration = jiff::Timestamp::now() + jiff::SignedDuration::try_from(TOKEN_LIFE).unwrap_or_default();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {
            "name": format!("bootstrap-token-{}", *id),
            "namespace": "kube-system",
            "labels": {"turnup.dev/host": host},
        },
        "stringData": {
            "description": format!("lets {host} join"),
            "token-id": *id,
            "token-secret": *secret,
            "expiration": expiration.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:turnup",
        },
    });
    kubectl.run_with(&["create", "--filename=-"], object.to_string())?;
    Ok(Zeroizing::new(format!("{}.{}", *id, *secret)))
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
