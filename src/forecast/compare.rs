//! Which values of two JSON documents differ, by their paths. Knows nothing of what the documents
//! mean.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

/// The keys that name an element of a list.
pub(super) const NAMES: [&str; 4] = ["path", "name", "reference", "key"];

/// The way to a value: keys of objects, names of list elements.
pub(super) type Way = Vec<String>;

/// The ways to all values that are not the same in both. Elements of lists are the same when their
/// names are.
pub(super) fn differences(before: &Value, after: &Value) -> BTreeSet<Way> {
    let mut found = BTreeSet::new();
    compare(before, after, &mut Way::new(), &mut found);
    found
}

fn compare(before: &Value, after: &Value, way: &mut Way, found: &mut BTreeSet<Way>) {
    if before == after {
        return;
    }
    let (Some(left), Some(right)) = (members(before), members(after)) else {
        found.insert(way.clone());
        return;
    };
    let find = |list: &'_ [FieldAndValue<'_>], name: &str| list.iter().position(|(known, _)| known == name);
    let names: BTreeSet<&str> = left.iter().chain(&right).map(|(name, _)| name.as_ref()).collect();
    let start = found.len();
    for name in names {
        way.push(name.to_owned());
        match (find(&left, name), find(&right, name)) {
            (Some(before), Some(after)) => compare(&left[before].1, &right[after].1, way, found),
            _ => drop(found.insert(way.clone())),
        }
        way.pop();
    }
    if found.len() == start {
        // The same elements in another order.
        found.insert(way.clone());
    }
}

/// A part of a value by its name.
pub(super) type FieldAndValue<'v> = (Cow<'v, str>, Cow<'v, Value>);

/// The parts of a value by their names; none for one that has no parts, or parts without names.
pub(super) fn members(value: &Value) -> Option<Vec<FieldAndValue<'_>>> {
    match value {
        Value::Object(object) => {
            Some(object.iter().map(|(key, value)| (Cow::from(key.as_str()), Cow::Borrowed(value))).collect())
        }
        Value::Array(list) => {
            // The program before its flags has no name among them.
            let bare = list.first().filter(|_| list.len() > 1);
            let bare = bare.and_then(|word| Some((word.as_str().filter(|text| !text.starts_with("--"))?, word)));
            let elements = &list[usize::from(bare.is_some())..];
            let mut members: Vec<FieldAndValue<'_>> =
                bare.map(|(text, word)| (Cow::from(text), Cow::Borrowed(word))).into_iter().collect();
            for element in elements {
                let name = name_of(element)?;
                // A flag that stands several times is one flag with several values.
                match (members.iter_mut().find(|(known, _)| known == name), element.as_str()) {
                    (Some((_, value)), Some(more)) => {
                        *value = Cow::Owned(format!("{} {more}", value.as_str().unwrap_or_default()).into());
                    }
                    _ => members.push((Cow::from(name), Cow::Borrowed(element))),
                }
            }
            let distinct: BTreeSet<&str> = members.iter().map(|(name, _)| name.as_ref()).collect();
            (distinct.len() == members.len()).then_some(members)
        }
        _ => None,
    }
}

/// The name of a list's element: its path or name; of a flag what is before its value. A list of
/// other words is one value.
fn name_of(element: &Value) -> Option<&str> {
    if let Some(text) = element.as_str() {
        return text.starts_with("--").then(|| text.split_once('=').map_or(text, |(flag, _)| flag));
    }
    NAMES.into_iter().find_map(|key| element.get(key)?.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flag_that_stands_several_times_is_one() {
        let before = json!(["run", "--a=1", "--issuer=x", "--z=1"]);
        let after = json!(["run", "--a=1", "--issuer=y", "--issuer=x", "--z=1"]);
        assert_eq!(differences(&before, &after), [vec!["--issuer".to_owned()]].into());
    }

    #[test]
    fn what_differs_is_named_by_key_name_and_flag() {
        let before = json!({"a": {"b": 1, "c": [1, 2]}, "files": [{"path": "/x", "mode": 1}, {"path": "/y", "mode": 1}],
            "command": ["run", "--a=1", "--b=2"]});
        let after = json!({"a": {"b": 2, "c": [1, 3]}, "files": [{"path": "/y", "mode": 2}, {"path": "/z", "mode": 1}],
            "command": ["run", "--a=1", "--b=3", "--c=4"]});
        let ways: Vec<String> = differences(&before, &after).iter().map(|way| way.join(" ")).collect();
        let expected = ["a b", "a c", "command --b", "command --c", "files /x", "files /y mode", "files /z"];
        assert_eq!(ways, expected);
        assert!(differences(&before, &before).is_empty());
        let turned = differences(&json!(["--a=1", "--b=2"]), &json!(["--b=2", "--a=1"]));
        assert_eq!(turned.len(), 1, "another order is a difference");
        assert_eq!(differences(&json!({"a": ["x"]}), &json!({"a": ["y"]})).len(), 1, "words are one value");
    }
}
