//! What a component says that it runs with, held against what its configuration says: `/configz`
//! of a configuration file's fields, `/flagz` of flags. It asks nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::format::parse_duration;

/// Flags that `/flagz` shows empty, whatever they were set to.
const NOT_SHOWN: [&str; 1] = ["runtime-config"];

/// A value that a component does not run with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// `maxPods`, `evictionHard.memory.available`, `--max-requests-inflight`.
    pub entry: String,
    /// What the configuration says.
    pub declared: String,
    /// What the component says; nothing where it does not name it.
    pub effective: Option<String>,
}

/// Fields of a configuration file that the component runs with otherwise. `effective` is the
/// object of its kind in the answer of `/configz`. Components leave out what is false, zero or
/// empty.
#[must_use]
pub fn compare_fields(declared: &Value, effective: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    // `/configz` shows the object, not the document around it.
    for (name, value) in declared.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "apiVersion" | "kind") {
            compare(name, value, effective.get(name), &mut found);
        }
    }
    found
}

fn compare(path: &str, declared: &Value, effective: Option<&Value>, found: &mut Vec<Mismatch>) {
    if let (Value::Object(fields), Some(Value::Object(_)) | None) = (declared, effective) {
        for (name, value) in fields {
            compare(&format!("{path}.{name}"), value, effective.and_then(|all| all.get(name)), found);
        }
        return;
    }
    let same = match effective {
        None => is_empty(declared),
        Some(effective) => effective == declared || is_same(&text(effective), &text(declared)),
    };
    if !same {
        found.push(Mismatch { entry: path.to_owned(), declared: text(declared), effective: effective.map(text) });
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || parse_duration(text).is_some_and(|length| length.is_zero()),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(true) => false,
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Flags, as `--name=value`, that the component runs with otherwise. `said` is the text of
/// `/flagz`, whose separator of names and values differs from process to process, on purpose
/// (k8s.io/component-base/zpages/flagz).
#[must_use]
pub fn compare_flags<'a>(declared: impl IntoIterator<Item = &'a str>, said: &str) -> Vec<Mismatch> {
    let mut flags: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for flag in declared {
        let flag = flag.strip_prefix("--").unwrap_or(flag);
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        flags.entry(name).or_default().push(value);
    }
    let shown = flags.into_iter().filter(|(name, _)| !NOT_SHOWN.contains(name));
    let compared = shown.filter_map(|(name, values)| {
        let effective = find_flag(said, name)?;
        // A flag that may be repeated is a list.
        let declared = values.join(",");
        let last = values.last().copied().unwrap_or_default();
        let same = is_same(effective, &declared) || is_same(effective, last);
        (!same).then(|| Mismatch { entry: format!("--{name}"), declared, effective: Some(effective.to_owned()) })
    });
    compared.collect()
}

/// The value of a flag in the text of `/flagz`, lists without their brackets; nothing for one that
/// it does not name.
#[must_use]
pub fn find_flag<'t>(said: &'t str, name: &str) -> Option<&'t str> {
    const BETWEEN: [char; 3] = [':', '=', ' '];
    let rest = said.lines().find_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with(BETWEEN)))?;
    Some(rest.trim_start_matches(BETWEEN).trim_end().trim_start_matches('[').trim_end_matches(']'))
}

/// Whether two texts are one value: components write durations whole (`4m0s` for `4m`), and lists
/// with commas or blanks.
#[must_use]
pub fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| text.replace(' ', ",");
    let duration = parse_duration(one);
    plain(one) == plain(other) || duration.is_some() && duration == parse_duration(other)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_compared_as_the_component_means_them() {
        let declared = json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "maxPods": 110, "readOnlyPort": 0, "registerWithTaints": [], "syncFrequency": "1m",
            "imageMaximumGCAge": "0s", "authentication": {"anonymous": {"enabled": false}},
            "evictionHard": {"memory.available": "100Mi"}, "memorySwap": {"swapBehavior": "NoSwap"},
        });
        let mut effective = json!({
            "maxPods": 110, "syncFrequency": "1m0s", "authentication": {"anonymous": {}},
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "10%"},
            "memorySwap": {"swapBehavior": "NoSwap"}, "podPidsLimit": 4096,
        });
        assert_eq!(compare_fields(&declared, &effective), []);
        effective["maxPods"] = json!(100);
        effective["evictionHard"]["memory.available"] = json!("200Mi");
        effective.as_object_mut().unwrap().remove("memorySwap");
        let found: Vec<(String, String, Option<String>)> = compare_fields(&declared, &effective)
            .into_iter()
            .map(|Mismatch { entry, declared, effective }| (entry, declared, effective))
            .collect();
        let one = |entry: &str, declared: &str, effective: Option<&str>| {
            (entry.to_owned(), declared.to_owned(), effective.map(str::to_owned))
        };
        assert_eq!(
            found,
            [
                one("maxPods", "110", Some("100")),
                one("evictionHard.memory.available", "100Mi", Some("200Mi")),
                one("memorySwap.swapBehavior", "NoSwap", None),
            ]
        );
    }

    #[test]
    fn flags_are_compared_whatever_stands_between_name_and_value() {
        let flags = [
            "--request-timeout=60s",
            "--enable-admission-plugins=NodeRestriction,PodNodeSelector",
            "--service-account-issuer=https://a",
            "--service-account-issuer=https://b",
            "--runtime-config=api/beta=false",
            "--unknown-to-it=1",
        ];
        for between in [": ", "=", " "] {
            let lines = [
                "request-timeout|1m0s",
                "request-timeout-more|1s",
                "enable-admission-plugins|[NodeRestriction PodNodeSelector]",
                "service-account-issuer|[https://a,https://b]",
                "runtime-config|",
            ];
            let said = format!("\napiserver flagz\n{}\n", lines.join("\n").replace('|', between));
            assert_eq!(compare_flags(flags, &said), []);
            let found = compare_flags(["--request-timeout=30s"], &said);
            let expected = Mismatch {
                entry: "--request-timeout".to_owned(),
                declared: "30s".to_owned(),
                effective: Some("1m0s".to_owned()),
            };
            assert_eq!(found, [expected]);
        }
    }
}
