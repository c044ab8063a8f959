//! Conditions of objects of the API: what `status.conditions` says.

use serde_json::Value;

/// The condition of this type.
#[must_use]
pub fn find_condition<'v>(object: &'v Value, kind: &str) -> Option<&'v Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether the object says that it is ready.
#[must_use]
pub fn is_ready(object: &Value) -> bool {
    find_condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_is_found_by_its_type() {
        let node = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}, {"type": "Other"}]}});
        assert_eq!(find_condition(&node, "Ready"), Some(&node["status"]["conditions"][0]));
        assert_eq!(find_condition(&node, "Gone"), None);
        assert_eq!(find_condition(&json!({}), "Ready"), None);
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!((is_ready(&node), is_ready(&ready), is_ready(&json!({}))), (false, true, false));
    }
}
