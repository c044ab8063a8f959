//! Kubeconfigs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::node::yaml;
use crate::unknown;

/// How a user of the API proves who it is.
pub enum Identity<'a> {
    /// Certificate and key inside the file, in PEM.
    Embedded {
        /// The certificate.
        certificate: &'a str,
        /// The key.
        key: &'a str,
    },
    /// Files on the host, which may be renewed; one with both where the paths are the same.
    Files {
        /// The certificate's.
        certificate: &'a str,
        /// The key's.
        key: &'a str,
    },
    /// A program on the host that prints a credential, and its arguments.
    Program(&'a [&'a str]),
    /// A bootstrap token.
    Token(&'a str),
    /// Not at all: the server asks for no proof.
    Unproven,
}

/// The text of a [`config`].
#[must_use]
pub fn render(cluster: &str, server: &str, authority: &str, user: &str, identity: &Identity<'_>) -> String {
    yaml::render(&config(cluster, server, authority, user, identity))
}

/// A kubeconfig for one user of one cluster; `authority` is the cluster's CA in PEM.
#[must_use]
pub fn config(cluster: &str, server: &str, authority: &str, user: &str, identity: &Identity<'_>) -> Value {
    let context = if user == "admin" { cluster.to_owned() } else { format!("{user}@{cluster}") };
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": encode(authority)}}],
        "users": [{"name": user, "user": credentials(identity)}],
        "contexts": [{"name": context, "context": {"cluster": cluster, "user": user}}],
        "current-context": context,
    })
}

/// Base64; what is not known yet stays what says so.
fn encode(text: &str) -> String {
    if unknown::is_in(text) { text.to_owned() } else { STANDARD.encode(text) }
}

fn credentials(identity: &Identity<'_>) -> Value {
    match identity {
        Identity::Embedded { certificate, key } => json!({
            "client-certificate-data": encode(certificate),
            "client-key-data": encode(key),
        }),
        Identity::Files { certificate, key } => json!({"client-certificate": certificate, "client-key": key}),
        Identity::Program(words) => json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": words.first(),
            "args": words.get(1..),
            "interactiveMode": "Never",
            "provideClusterInfo": false,
        }}),
        Identity::Token(token) => json!({"token": token}),
        Identity::Unproven => json!({}),
    }
}
