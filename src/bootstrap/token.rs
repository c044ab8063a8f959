//! Bootstrap tokens: their form, their Secret in the API, and the tokens of single hosts that
//! turnup logs in to.
//!
//! A host's token lives as long as `phase2.pki.token_lifetime` says. turnup approves one request
//! that was made with it, for the name of that host, and deletes it as soon as the kubelet has its
//! certificate.
//! The tokens of node groups are in `group_tokens`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

use super::api::Kubectl;

/// The group of every host that joins with a token, or by its cloud's word;
/// `templates/bootstrap/rbac.yaml` says what it may do: request a certificate. Nothing approves
/// that request but turnup.
pub(super) const BOOTSTRAPPERS: &str = "system:bootstrappers:turnup";
/// What kube-apiserver makes of a token's id: the user name of its bearer.
pub(super) const USER: &str = "system:bootstrap:";
/// What the API server makes of what a cloud signs of a machine: this, its group, `:` and its name.
pub(super) const MACHINE_USER: &str = "turnup:machine:";
/// The group of every host that turnup logs in to, which may request certificates for its kubelet;
/// `templates/bootstrap/rbac.yaml` says so.
pub(super) const HOSTS: &str = "turnup:hosts";
/// What the user name of such a host begins with.
pub(super) const HOST_USER: &str = "turnup:host:";
/// Names the host that a token is for.
const HOST_LABEL: &str = "turnup.dev/host";

/// The alphabet of bootstrap tokens: `[a-z0-9]{6}.[a-z0-9]{16}`.
const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A token: `ID.SECRET`. It has no `Debug`: it is a secret.
pub(super) struct Token(Zeroizing<String>);

impl Token {
    /// A new one.
    pub(super) fn generate() -> Result<Self> {
        Ok(Self(Zeroizing::new(format!("{}.{}", *random(6)?, *random(16)?))))
    }

    /// One that was made before; none when the text has another form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let part = |text: &str, length| text.len() == length && text.bytes().all(|byte| ALPHABET.contains(&byte));
        let (id, secret) = text.split_once('.')?;
        (part(id, 6) && part(secret, 16)).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The token itself.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// Its first half, which is public.
    pub(super) fn id(&self) -> &str {
        self.halves().0
    }

    fn halves(&self) -> (&str, &str) {
        self.0.split_once('.').unwrap_or_default()
    }

    /// The Secret by which kube-apiserver knows it. `label` says what it is for; `groups` are those
    /// of its bearer, with commas.
    pub(super) fn object(&self, expires: Timestamp, label: (&str, &str), groups: &str) -> serde_json::Value {
        let (id, secret) = self.halves();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "bootstrap.kubernetes.io/token",
            "metadata": {
                "name": object_name(id),
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
}

/// The name of a token's Secret.
pub(super) fn object_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// In whole seconds, as the API has it.
pub(super) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Makes a token for one host that lives as long as `life`, after deleting those that an earlier
/// run left for it.
pub(super) fn create(kubectl: &Kubectl, host: &str, life: Duration) -> Result<Token> {
    revoke(kubectl, host)?;
    let token = Token::generate()?;
    let object = token.object(Timestamp::now() + life, (HOST_LABEL, host), BOOTSTRAPPERS);
    kubectl.run_with(&["create", "--filename=-"], &object.to_string())?;
    Ok(token)
}

/// Deletes the tokens of one host.
pub(super) fn revoke(kubectl: &Kubectl, host: &str) -> Result<()> {
    let selector = format!("--selector={HOST_LABEL}={host}");
    kubectl.run(&["delete", "secret", "--namespace=kube-system", &selector, "--ignore-not-found"])?;
    Ok(())
}

fn random(length: usize) -> Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(length));
    while text.len() < length {
        let mut byte = [0_u8; 1];
        getrandom::fill(&mut byte).map_err(|error| Error::permanent(format!("no random numbers: {error}")))?;
        // 252 is the largest multiple of 36 in a byte; what is above would make the first letters
        // likelier.
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
    fn a_token_has_the_form_that_the_api_reads() {
        let token = Token::generate().unwrap();
        assert_eq!(Token::parse(token.text()).unwrap().id(), &token.text()[..6]);
        for wrong in ["", "abcdef", "abcdef.0123456789abcde", "abcdeF.0123456789abcdef", "abcdef.0123456789abcdef\n"] {
            assert!(Token::parse(wrong).is_none(), "{wrong:?}");
        }
        let object = token.object("2026-01-01T00:00:00Z".parse().unwrap(), (HOST_LABEL, "w0"), BOOTSTRAPPERS);
        assert_eq!(object["metadata"]["name"], object_name(token.id()));
        assert_eq!(object["stringData"]["expiration"], "2026-01-01T00:00:00Z");
        assert_eq!(object["stringData"]["auth-extra-groups"], "system:bootstrappers:turnup");
    }
}
