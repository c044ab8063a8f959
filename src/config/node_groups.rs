//! Can node groups be what `phase1.node_groups` says of them? What no single field tells: sizes and
//! their bounds, reserved labels, taints, fields that mean nothing on the target, and images that
//! it does not know.
//!
//! Pure: it judges values.

use std::collections::BTreeSet;

use serde_json::Value;

use super::format::Format;
use super::problem::Problem;
use super::relations::OnlyFields;
use super::schema::TARGET;
use super::values::Values;
use crate::format::Taint;

/// The setting.
pub(super) const GROUPS: &str = "phase1.node_groups";
/// The field that says what hosts are made of.
const IMAGE: &str = "image";
/// How labels begin that turnup decides.
const RESERVED: [&str; 2] = ["node-role.kubernetes.io/", "turnup.dev/"];

/// Everything that is wrong with the groups.
pub(super) fn check(facts: &Values<'_, '_>) -> Vec<Problem> {
    let target = facts.text(TARGET).unwrap_or_default();
    let all = facts.schema.related(|relations| Some(&relations.fields)).filter(|(name, _)| *name == GROUPS);
    let here: Vec<&OnlyFields> =
        all.flat_map(|(_, fields)| fields).filter(|only| only.targets.iter().any(|known| known == target)).collect();
    let judge = |group: Value| {
        let name = group.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut found: Vec<String> = here.iter().flat_map(|only| judge_fields(&group, only)).collect();
        let own = [judge_image(&group, facts), judge_size(&group), judge_labels(&group), judge_taints(&group)];
        found.extend(own.into_iter().flatten());
        found.into_iter().map(move |why| Problem::error(format!("{GROUPS}: {name}: {why}")).about(GROUPS))
    };
    facts.records(GROUPS).into_iter().flat_map(judge).collect()
}

/// Fields that mean nothing on the target.
fn judge_fields(group: &Value, only: &OnlyFields) -> Vec<String> {
    let fields = group.as_object().into_iter().flatten().map(|(field, _)| field);
    let strange = fields.filter(|field| !only.fields.contains(field));
    strange.map(|field| format!("{field}: {}", only.why.replace("FIELD", field))).collect()
}

/// The image takes the place of a setting: where that is one of some words, so is the image. Disks
/// are judged by their cloud.
fn judge_image(group: &Value, facts: &Values<'_, '_>) -> Option<String> {
    let tree = facts.schema.tree();
    let image = group.get(IMAGE).and_then(Value::as_str)?;
    let defaults = &facts.schema.rule(tree.symbol(GROUPS)?).field_defaults;
    let (_, settings) = defaults.iter().find(|(field, _)| field == IMAGE)?;
    let mut here = settings.iter().filter(|name| facts.text(name).is_some());
    let format = here.find_map(|name| facts.schema.rule(tree.symbol(name)?).format.as_ref())?;
    let why = if matches!(format, Format::Enum(_)) { format.validate(image).err()? } else { return None };
    Some(format!("{IMAGE}: {why}"))
}

/// Sizes that the autoscaler could never reach.
fn judge_size(group: &Value) -> Option<String> {
    let number = |field: &str| group.get(field).and_then(Value::as_i64);
    let (min, size, max) = (number("min"), number("size")?, number("max"));
    if min.is_none_or(|min| min <= size) && max.is_none_or(|max| size <= max) {
        return None;
    }
    let shown = |bound: Option<i64>| bound.map_or_else(|| "none".to_owned(), |bound| bound.to_string());
    Some(format!("the size is {size}, but must lie between min ({}) and max ({})", shown(min), shown(max)))
}

fn judge_labels(group: &Value) -> Option<String> {
    let labels = group.get("labels").and_then(Value::as_object)?;
    let key = labels.keys().find(|key| RESERVED.iter().any(|own| key.starts_with(own)))?;
    Some(format!("the label {key} is reserved: turnup sets it"))
}

/// Kubernetes knows a taint by its key and effect.
fn judge_taints(group: &Value) -> Option<String> {
    let mut seen = BTreeSet::new();
    let texts = group.get("taints").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut taints = texts.filter_map(|text| text.parse::<Taint>().ok());
    let Taint { key, effect, .. } = taints.find(|taint| !seen.insert((taint.key.clone(), taint.effect.clone())))?;
    Some(format!("two taints have the key {key} and the effect {effect}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_group_cannot_be_is_said() {
        let only = OnlyFields {
            fields: ["name", "size"].map(str::to_owned).into(),
            targets: Vec::new(),
            why: "hosts here have no FIELD".into(),
        };
        assert_eq!(judge_fields(&json!({"name": "a", "size": 1}), &only), Vec::<String>::new());
        assert_eq!(judge_fields(&json!({"name": "a", "spot": true}), &only), ["spot: hosts here have no spot"]);
        assert_eq!(judge_size(&json!({"size": 3, "max": 3})), None);
        let told = judge_size(&json!({"size": 3, "max": 2}));
        assert_eq!(told.as_deref(), Some("the size is 3, but must lie between min (none) and max (2)"));
        assert!(judge_labels(&json!({"labels": {"node-role.kubernetes.io/gpu": ""}})).is_some());
        assert_eq!(judge_labels(&json!({"labels": {"example.com/pool": "a"}})), None);
        assert!(judge_taints(&json!({"taints": ["a=b:NoSchedule", "a=c:NoSchedule"]})).is_some());
        assert_eq!(judge_taints(&json!({"taints": ["a=b:NoSchedule", "a=b:NoExecute"]})), None);
    }
}
