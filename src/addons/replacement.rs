//! Objects that the API server refuses to change because a field of them is immutable: they are
//! deleted and made again, unless data would go with them.

use serde_json::Value;

use crate::bootstrap::{APPLY, Kubectl};
use crate::change::{Change, Verb};
use crate::error::{Error, Result};

use super::object::{DEFINITION, is_ours, list_of, read_answer};
use super::own::OwnObject;

/// Kinds that are data, or take some along.
const DATA: [&str; 4] = ["PersistentVolume", "PersistentVolumeClaim", "Namespace", DEFINITION];
/// What the API server's validation says of a field that may not change (`apimachinery`'s
/// `ValidateImmutableField`, and the validations of kinds with words of their own).
const IMMUTABLE: [&str; 7] = [
    "is immutable",
    "cannot change roleRef",
    "may not change once set",
    "may not be changed",
    "may not change fields",
    "updates to statefulset spec",
    "updates to",
];

/// An object that can only be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) object: OwnObject,
    /// What forces it: `spec.selector`.
    pub(super) fields: Vec<String>,
    /// Why turnup does not do it.
    hindrance: Option<&'static str>,
}

impl Replacement {
    pub(super) fn change(&self, name: String) -> Change {
        let lines = self.fields.iter().map(|field| format!("  {field} # forces replacement")).collect();
        Change::new(Verb::Replace, "object", name).with_lines(lines)
    }

    /// Deletes the object with what it owns, so that it can be made again.
    fn delete(&self, kubectl: &Kubectl) -> Result<()> {
        let (argument, namespace) = (self.object.argument(), format!("--namespace={}", self.object.namespace));
        let args = ["delete", &argument, &namespace, "--ignore-not-found", "--cascade=foreground", "--timeout=90s"];
        kubectl.run(&args).map(drop)
    }
}

/// An error when turnup does not replace one of these.
pub(super) fn require_replaceable(replacements: &[Replacement]) -> Result<()> {
    let Some((one, hindrance)) = replacements.iter().find_map(|one| Some((one, one.hindrance?))) else {
        return Ok(());
    };
    let (object, fields) = (&one.object, one.fields.join(", "));
    let message = format!("{object} cannot become what its manifest says: {fields} never changes");
    Err(Error::config(message).evidence(hindrance).hint(format!(
        "kubectl get {} --namespace={} --output=yaml; correct the manifest or give the object another name",
        object.argument(),
        object.namespace
    )))
}

/// The rest of a manifest; nothing where there is none.
pub(super) fn without(manifest: &str, replacements: &[Replacement]) -> Result<Option<String>> {
    let is_other = |object: &OwnObject| !replacements.iter().any(|one| one.object == *object);
    let others: Vec<Value> =
        read(manifest)?.into_iter().filter(|(object, _)| is_other(object)).map(|(_, value)| value).collect();
    Ok((!others.is_empty()).then(|| list_of(&others)))
}

/// Applies a manifest; what the server refuses to change is deleted and the manifest applied once
/// more. Killed in between, the next run makes what is missing.
pub(super) fn replace_where_refused(kubectl: &Kubectl, manifest: &str, apply: impl Fn() -> Result<()>) -> Result<()> {
    let Err(error) = apply() else { return Ok(()) };
    let replacements = find_replacements(kubectl, manifest, &error)?;
    if replacements.is_empty() {
        return Err(error);
    }
    require_replaceable(&replacements)?;
    replacements.iter().try_for_each(|one| one.delete(kubectl))?;
    apply()
}

/// The objects of a manifest that can only be replaced, after the server refused it with this
/// error.
pub(super) fn find_replacements(kubectl: &Kubectl, manifest: &str, refused: &Error) -> Result<Vec<Replacement>> {
    let mut found = Vec::new();
    for (object, value) in read(manifest)? {
        if !refused.says(&format!("{:?} is invalid", object.name)) {
            continue;
        }
        let args = [&APPLY[..], &["--dry-run=server", "--validate=ignore", "--filename=-"]].concat();
        // kubectl names no namespace: of two with one name either may be meant.
        match kubectl.run_with(&args, &value.to_string()) {
            Ok(_) => {}
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => {
                let Some(fields) = find_immutable(error.evidence_lines()) else { continue };
                let hindrance = find_hindrance(kubectl, &object, &value)?;
                found.push(Replacement { object, fields, hindrance });
            }
        }
    }
    Ok(found)
}

/// Why turnup does not delete an object for its new form.
fn find_hindrance(kubectl: &Kubectl, object: &OwnObject, value: &Value) -> Result<Option<&'static str>> {
    let (argument, namespace) = (object.argument(), format!("--namespace={}", object.namespace));
    let args = ["get", &argument, &namespace, "--output=json", "--ignore-not-found", "--show-managed-fields"];
    let there = read_answer(&kubectl.run(&args)?)?;
    let has_data = |form: &Value| takes_data(&object.kind, form);
    Ok(if there.iter().any(|form| !is_ours(form)) {
        Some("another program made the object, and turnup deletes none of others")
    } else if has_data(value) || there.iter().any(has_data) {
        Some("to replace the object would delete data, which turnup does not")
    } else {
        None
    })
}

fn takes_data(kind: &str, form: &Value) -> bool {
    let claims = &form["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"];
    DATA.contains(&kind) || kind == "StatefulSet" && claims == "Delete"
}

/// The fields for which an object was refused, when each of them is immutable: what is wrong in
/// another way could not be made again.
fn find_immutable(lines: &[String]) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    for line in lines {
        let cause = line.split_once("is invalid: ").map_or(line.as_str(), |(_, cause)| cause).trim();
        let cause = cause.strip_prefix("* ").unwrap_or(cause);
        let is_cause =
            [": Invalid value", ": Forbidden", ": Required value", ": Unsupported value", ": Duplicate value"];
        if !is_cause.iter().any(|words| cause.contains(words)) {
            continue;
        }
        if !IMMUTABLE.iter().any(|words| cause.contains(words)) {
            return None;
        }
        fields.extend(cause.split_once(':').map(|(field, _)| field.to_owned()));
    }
    Some(fields).filter(|fields| !fields.is_empty())
}

fn read(manifest: &str) -> Result<Vec<(OwnObject, Value)>> {
    OwnObject::read(manifest).map_err(|why| Error::config(format!("a manifest cannot be read: {why}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(said: &str) -> Option<Vec<String>> {
        find_immutable(&said.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_may_not_change_is_known_by_the_servers_words() {
        for (said, expected) in [
            (
                "The Deployment \"web\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"b\"}}: field is immutable",
                Some(vec!["spec.selector"]),
            ),
            (
                "$ kubectl apply\nThe ClusterRoleBinding \"x\" is invalid: roleRef: Invalid value: {\"kind\":\"ClusterRole\"}: cannot change roleRef",
                Some(vec!["roleRef"]),
            ),
            (
                "The Service \"web\" is invalid: spec.clusterIPs[0]: Invalid value: [\"10.96.0.9\"]: may not change once set",
                Some(vec!["spec.clusterIPs[0]"]),
            ),
            (
                "The StatefulSet \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
                Some(vec!["spec"]),
            ),
            (
                "The Job \"once\" is invalid: \n* spec.selector: Required value\n* spec.template: Invalid value: {}: field is immutable",
                None,
            ),
            (
                "The Deployment \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                None,
            ),
            ("error: connection refused", None),
        ] {
            let expected = expected.map(|fields| fields.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(fields(said), expected, "{said}");
        }
    }

    #[test]
    fn no_data_goes_for_a_field() {
        let when_deleted =
            |word: &str| json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": word}}});
        for kind in DATA {
            assert!(takes_data(kind, &json!({})));
        }
        assert!(takes_data("StatefulSet", &when_deleted("Delete")));
        assert!(!takes_data("StatefulSet", &when_deleted("Retain")) && !takes_data("Deployment", &json!({})));

        let one = |hindrance| {
            let object =
                OwnObject { group: String::new(), kind: "Service".into(), namespace: "shop".into(), name: "a".into() };
            Replacement { object, fields: vec!["spec".into()], hindrance }
        };
        assert!(require_replaceable(&[one(None)]).is_ok());
        let error = require_replaceable(&[one(None), one(Some("it is data"))]).err().map(|error| error.render());
        insta::assert_snapshot!(error.unwrap_or_default(), @r"
        error: Service shop/a cannot become what its manifest says: spec never changes
          | it is data
        next: kubectl get service/a --namespace=shop --output=yaml; correct the manifest or give the object another name
        ");
    }
}
