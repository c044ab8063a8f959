//! Writes a value as YAML in block style, the form that people and tools expect of Kubernetes'
//! configuration files. The same value gives the same bytes. It reads no YAML.

use serde_json::Value;

/// Words that YAML 1.1, which Kubernetes' parser accepts, does not read as text.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// The document of this value, with a newline at its end.
#[must_use]
pub(crate) fn render(value: &Value) -> String {
    let lines = inline(value).map_or_else(|| block(value), |line| vec![line]);
    lines.join("\n") + "\n"
}

/// The value on one line; none when it needs a block.
fn inline(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) if members.is_empty() => Some("{}".into()),
        Value::Array(items) if items.is_empty() => Some("[]".into()),
        Value::Object(_) | Value::Array(_) => None,
        Value::String(text) => Some(scalar(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}

fn block(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.iter().flat_map(|(key, value)| member(&scalar(key), value)).collect(),
        Value::Array(items) => items.iter().flat_map(item).collect(),
        _ => Vec::new(),
    }
}

fn member(key: &str, value: &Value) -> Vec<String> {
    if let Some(text) = inline(value) {
        return vec![format!("{key}: {text}")];
    }
    let indent = if value.is_array() { "" } else { "  " };
    let lines = block(value).into_iter().map(|line| format!("{indent}{line}"));
    std::iter::once(format!("{key}:")).chain(lines).collect()
}

fn item(value: &Value) -> Vec<String> {
    let lines = inline(value).map_or_else(|| block(value), |line| vec![line]).into_iter();
    lines.enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { "- " } else { "  " })).collect()
}

/// Plain text where every parser reads it as text, else a JSON string, which is valid YAML.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let quoted = Value::from(text).to_string();
    // JSON strings may contain characters that YAML does not allow unescaped.
    let is_strange = |letter: char| letter == '\x7f' || !(letter.is_ascii() || letter.is_alphanumeric());
    let escape = |letter: char| format!("\\U{:08x}", u32::from(letter));
    quoted.chars().map(|letter| if is_strange(letter) { escape(letter) } else { letter.into() }).collect()
}

/// Words, paths, addresses that begin with a letter, and flags.
fn is_plain(text: &str) -> bool {
    let word = text.strip_prefix("--").or_else(|| text.strip_prefix('/')).unwrap_or(text);
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "/_.-=:,*+".contains(letter);
    word.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(is_known)
        && !text.ends_with(':')
        && !RESERVED.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_manifest_looks_as_people_write_it() {
        let pod = json!({
            "apiVersion": "v1", "metadata": {"name": "etcd", "labels": {}},
            "spec": {
                "hostNetwork": true,
                "containers": [{"name": "etcd", "command": ["etcd", "--listen=https://10.0.0.1:2379,https://[::1]:2379"], "ports": []}, {"name": "b"}],
                "matrix": [[1, 2], [-3.5]], "version": "1.36", "yes": "no", "text": "a\nb\u{85}", "pods": "10.0.0.0/16",
            },
        });
        insta::assert_snapshot!(render(&pod));
        assert_eq!(render(&json!([])), "[]\n");
    }

    /// Values with strings that are special in YAML, and with arbitrary ones.
    fn value() -> impl Strategy<Value = Value> {
        let words = prop::sample::select(vec![
            "",
            "~",
            "null",
            "Yes",
            "off",
            "y",
            "1",
            "0x1f",
            "1e3",
            "12:30",
            "2026-01-01",
            ".inf",
            "-",
            "--",
            "---",
            "...",
            "--a=b",
            "a:",
            "a: b",
            "a #b",
            "#",
            "&a",
            "*a",
            "!a",
            "%a",
            "@a",
            "`a",
            "'",
            "\"",
            "\\",
            "[",
            "{}",
            "a,b",
            "? a",
            "- a",
            "<<",
            "=",
            "|",
            ">",
            " a",
            "a ",
            "\t",
            "\r\n",
        ]);
        let text = prop_oneof![words.prop_map(str::to_owned), "\\PC{0,12}", any::<String>()];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((text.clone(), inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_yaml_parser_reads_what_was_meant(value in value()) {
            let text = render(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }

    /// The parser above reads YAML 1.2. Kubernetes' parser also reads 1.1, which has more words
    /// that are no text.
    #[test]
    fn what_an_older_parser_takes_for_another_type_is_quoted() {
        for text in [
            "yes",
            "NO",
            "On",
            "off",
            "y",
            "N",
            "null",
            "~",
            "0o7",
            "1_000",
            "12:30:45",
            "1e3",
            "0x1f",
            "+1",
            "2026-01-01",
            "=",
            "<<",
        ] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
        for text in ["VersionTLS13", "--v=2", "/etc/kubernetes", "system:nodes", "nodes", "true-north"] {
            assert_eq!(scalar(text), text);
        }
    }
}
