//! Admission webhooks that the API server must ask and whose pods are not there: whatever they are
//! asked about cannot be written, and that may be what would bring their pods back. Only looks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::api::Kubectl;
use crate::error::{Error, Result};

const KINDS: &str = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
/// The label of an `EndpointSlice` that names its Service.
const SERVICE: &str = "kubernetes.io/service-name";

/// A webhook with `failurePolicy: Fail` whose Service has no ready pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnansweredWebhook {
    /// The object that has it: `ValidatingWebhookConfiguration/guard`.
    pub object: String,
    /// Its place in that object.
    #[serde(skip)]
    index: usize,
    /// Its name: `guard.example.com`.
    pub webhook: String,
    /// The Service that is to answer: `NAMESPACE/NAME`.
    pub service: String,
    /// What it is asked about: `pods`, `*/*`.
    pub resources: Vec<String>,
}

impl UnansweredWebhook {
    /// What that means, in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{}: its webhook {} has to be asked about {} and the Service {} has no ready pod",
            self.object,
            self.webhook,
            self.resources.join(", "),
            self.service
        )
    }

    /// Both in one line.
    #[must_use]
    pub fn advise(&self) -> String {
        format!("{}; to let it pass: {}", self.describe(), self.remedy())
    }

    /// The command that lets everything pass that cannot be asked about, until it is undone.
    #[must_use]
    pub fn remedy(&self) -> String {
        let patch =
            format!(r#"[{{"op": "replace", "path": "/webhooks/{}/failurePolicy", "value": "Ignore"}}]"#, self.index);
        format!("kubectl patch {} --type=json --patch='{patch}'", self.object.to_lowercase())
    }
}

/// All of them. A webhook of an address outside of the cluster is not judged.
///
/// # Errors
/// That the API does not answer.
pub fn find_unanswered(kubectl: &Kubectl) -> Result<Vec<UnansweredWebhook>> {
    let configurations = kubectl.get(&[KINDS])?;
    let mut ready = BTreeMap::new();
    for (namespace, name) in services(&configurations) {
        let selector = format!("--selector={SERVICE}={name}");
        let slices = kubectl.get(&["endpointslices", &format!("--namespace={namespace}"), &selector])?;
        ready.insert(format!("{namespace}/{name}"), has_ready(&slices));
    }
    Ok(judge(&configurations, |service| ready.get(service) == Some(&true)))
}

/// The error with all of them as evidence, as far as they can be found out: the error itself
/// counts.
#[must_use]
pub fn with_unanswered(error: Error, kubectl: &Kubectl) -> Error {
    let webhooks = find_unanswered(kubectl).unwrap_or_default();
    webhooks.iter().map(UnansweredWebhook::advise).fold(error, Error::evidence)
}

/// Each webhook that has to be asked, with the object that has it and its place there.
fn required(configurations: &Value) -> impl Iterator<Item = (&Value, usize, &Value)> {
    let objects = configurations["items"].as_array().into_iter().flatten();
    let webhooks = objects.flat_map(|object| {
        let webhooks = object["webhooks"].as_array().into_iter().flatten().enumerate();
        webhooks.map(move |(index, webhook)| (object, index, webhook))
    });
    // What is not said is Fail.
    webhooks.filter(|(_, _, webhook)| webhook["failurePolicy"] != "Ignore")
}

fn service(webhook: &Value) -> Option<(&str, &str)> {
    let service = &webhook["clientConfig"]["service"];
    Some((service["namespace"].as_str()?, service["name"].as_str()?))
}

fn services(configurations: &Value) -> BTreeSet<(&str, &str)> {
    required(configurations).filter_map(|(_, _, webhook)| service(webhook)).collect()
}

/// An endpoint whose readiness is not said is ready.
fn has_ready(slices: &Value) -> bool {
    let slices = slices["items"].as_array().into_iter().flatten();
    let mut endpoints = slices.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
    endpoints.any(|endpoint| endpoint["conditions"]["ready"] != false)
}

fn judge(configurations: &Value, is_ready: impl Fn(&str) -> bool) -> Vec<UnansweredWebhook> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |(object, index, webhook): (&Value, usize, &Value)| {
        let (namespace, name) = service(webhook)?;
        let service = format!("{namespace}/{name}");
        if is_ready(&service) {
            return None;
        }
        let rules = webhook["rules"].as_array().into_iter().flatten();
        let resources: BTreeSet<String> =
            rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten()).map(text).collect();
        // What is asked about nothing stops nothing.
        (!resources.is_empty()).then(|| UnansweredWebhook {
            object: format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"])),
            index,
            webhook: text(&webhook["name"]),
            service,
            resources: resources.into_iter().collect(),
        })
    };
    required(configurations).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(webhooks: &[Value]) -> Value {
        json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "guard"}, "webhooks": webhooks})
    }

    fn webhook(name: &str, policy: &Value, client: &Value) -> Value {
        json!({"name": name, "failurePolicy": policy, "clientConfig": client,
            "rules": [{"resources": ["pods", "leases"]}, {"resources": ["pods"]}]})
    }

    #[test]
    fn what_must_be_asked_and_does_not_answer_is_found_with_the_way_out() {
        let service = |name: &str| json!({"service": {"namespace": "web", "name": name}});
        let list = json!({"items": [configuration(&[
            webhook("lax.example.com", &json!("Ignore"), &service("away")),
            webhook("outside.example.com", &json!("Fail"), &json!({"url": "https://192.0.2.1"})),
            webhook("well.example.com", &json!("Fail"), &service("there")),
            webhook("strict.example.com", &json!("Fail"), &service("away")),
            webhook("silent.example.com", &Value::Null, &service("away")),
            json!({"name": "idle.example.com", "failurePolicy": "Fail", "clientConfig": service("away"), "rules": []}),
        ])]});
        assert_eq!(services(&list), BTreeSet::from([("web", "away"), ("web", "there")]));
        let found = judge(&list, |service| service == "web/there");
        let told: Vec<String> = found.iter().map(|one| format!("{}\n{}", one.describe(), one.remedy())).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        ValidatingWebhookConfiguration/guard: its webhook strict.example.com has to be asked about leases, pods and the Service web/away has no ready pod
        kubectl patch validatingwebhookconfiguration/guard --type=json --patch='[{"op": "replace", "path": "/webhooks/3/failurePolicy", "value": "Ignore"}]'
        ValidatingWebhookConfiguration/guard: its webhook silent.example.com has to be asked about leases, pods and the Service web/away has no ready pod
        kubectl patch validatingwebhookconfiguration/guard --type=json --patch='[{"op": "replace", "path": "/webhooks/4/failurePolicy", "value": "Ignore"}]'
        "#);
        assert_eq!(judge(&Value::Null, |_| false), []);
    }

    #[test]
    fn a_service_is_there_with_one_ready_endpoint() {
        let slice = |ready: &Value| json!({"endpoints": [{"conditions": {"ready": ready}}]});
        assert!(has_ready(&json!({"items": [slice(&json!(false)), slice(&json!(true))]})));
        assert!(has_ready(&json!({"items": [slice(&Value::Null)]})));
        assert!(!has_ready(&json!({"items": [slice(&json!(false)), {"endpoints": null}]})));
        assert!(!has_ready(&json!({"items": []})));
    }
}
