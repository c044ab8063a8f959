//! What a certificate signing request says of itself, and what may become of it. Pure.

use serde_json::Value;

use super::super::condition::find_condition;
use super::super::token;

/// Signs what kubelets serve with.
pub(in crate::bootstrap) const SERVING: &str = "kubernetes.io/kubelet-serving";

/// Signs kubelets as clients of the API.
pub(in crate::bootstrap) const CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CsrDecision {
    /// The API may sign.
    Approve,
    /// Never: the reason in one word, and in a sentence.
    Deny(&'static str, String),
    /// Not now, and why. It stays pending and is looked at again.
    Wait(String),
    /// Another approver's.
    Ignore,
}

impl CsrDecision {
    pub(super) fn deny(reason: &'static str, why: impl Into<String>) -> Self {
        Self::Deny(reason, why.into())
    }
}

pub(super) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

pub(super) fn signer(request: &Value) -> &str {
    request["spec"]["signerName"].as_str().unwrap_or_default()
}

pub(super) fn created(request: &Value) -> &str {
    request["metadata"]["creationTimestamp"].as_str().unwrap_or_default()
}

pub(super) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether it is approved or denied.
pub(in crate::bootstrap) fn is_decided(request: &Value) -> bool {
    request["status"]["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty())
}

/// Whether it is approved.
pub(in crate::bootstrap) fn is_approved(request: &Value) -> bool {
    find_condition(request, "Approved").is_some()
}

/// Why it was denied.
pub(in crate::bootstrap) fn denial(request: &Value) -> Option<&str> {
    find_condition(request, "Denied")?["message"].as_str()
}

/// Whether it was made with a join token.
pub(in crate::bootstrap) fn is_from_token(request: &Value) -> bool {
    request["spec"]["username"].as_str().is_some_and(|user| user.starts_with(token::USER))
}

/// The machine that made it, by its cloud's word: `GROUP:NAME`.
pub(super) fn machine(request: &Value) -> Option<&str> {
    request["spec"]["username"].as_str()?.strip_prefix(token::MACHINE_USER)
}

/// The host that made it, by the certificate that turnup gave it.
pub(super) fn host(request: &Value) -> Option<&str> {
    let spec = &request["spec"];
    let name = spec["username"].as_str()?.strip_prefix(token::HOST_USER)?;
    texts(&spec["groups"]).contains(&token::HOSTS).then_some(name)
}

/// Whether it was made by a host that joins.
pub(super) fn is_of_joiner(request: &Value) -> bool {
    is_from_token(request) || machine(request).is_some()
}

/// Whether it was made by a host that joins a node group.
pub(super) fn is_of_group(request: &Value) -> bool {
    let prefix = format!("{}:", token::BOOTSTRAPPERS);
    is_of_joiner(request) && texts(&request["spec"]["groups"]).iter().any(|group| group.starts_with(&prefix))
}

/// Whether a name can be no option, line, path or command.
pub(super) fn is_plain(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "-.".contains(letter))
}
