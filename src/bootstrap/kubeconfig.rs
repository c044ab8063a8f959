//! Kubeconfigs, as JSON, which every reader of YAML reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::change;

/// How a user of the API proves who it is.
pub enum Identity<'a> {
    /// Certificate and key inside the file, in PEM.
    Embedded {
        /// The certificate.
        certificate: &'a str,
        /// The key.
        key: &'a str,
    },
    /// One file on the host with both, which its user renews.
    File(&'a str),
    /// A bootstrap token.
    Token(&'a str),
}

/// A kubeconfig for one user of one cluster; `authority` is the cluster's CA in PEM.
#[must_use]
pub fn render(cluster: &str, server: &str, authority: &str, user: &str, identity: &Identity<'_>) -> String {
    let context = if user == "admin" { cluster.to_owned() } else { format!("{user}@{cluster}") };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": encode(authority)}}],
        "users": [{"name": user, "user": credentials(identity)}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
    });
    format!("{config:#}\n")
}

/// Base64; what is not known yet stays what says so.
fn encode(text: &str) -> String {
    if change::is_unknown(text) { text.to_owned() } else { STANDARD.encode(text) }
}

fn credentials(identity: &Identity<'_>) -> Value {
    match identity {
        Identity::Embedded { certificate, key } => json!({
            "client-certificate-data": encode(certificate),
            "client-key-data": encode(key),
        }),
        Identity::File(path) => json!({"client-certificate": path, "client-key": path}),
        Identity::Token(token) => json!({"token": token}),
    }
}
