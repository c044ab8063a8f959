//! Terraform's state as its file and `terraform state pull` tell it: which resources there are, and
//! what is to be known of them. It holds secrets: nothing here shows more of a resource than its
//! address and its identifier.

use serde_json::Value;

/// A resource that Terraform has made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Resource {
    /// Its address, as Terraform writes it.
    pub(super) address: String,
    /// Its type.
    pub(super) kind: String,
    attributes: Value,
}

impl Resource {
    /// All of a state, in the order of the file. A state that does not read is Terraform's to
    /// complain about.
    pub(super) fn parse_all(state: &[u8]) -> Vec<Self> {
        let mut state: Value = serde_json::from_slice(state).unwrap_or_default();
        let mut made = Vec::new();
        for resource in state["resources"].as_array_mut().into_iter().flatten().filter(|one| one["mode"] == "managed") {
            let text = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
            let module = resource["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
            let kind = text("type");
            let name = format!("{module}{kind}.{}", text("name"));
            for instance in resource["instances"].as_array_mut().into_iter().flatten() {
                let key = instance.get("index_key").map(|key| format!("[{key}]")).unwrap_or_default();
                let attributes = instance["attributes"].take();
                made.push(Self { address: format!("{name}{key}"), kind: kind.clone(), attributes });
            }
        }
        made
    }

    /// An attribute that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attributes[name].as_str()
    }

    /// Whether an attribute is there and true.
    pub(super) fn is(&self, name: &str) -> bool {
        self.attributes[name] == true
    }

    /// Its address, with the name by which its cloud knows it: what the user needs once Terraform
    /// has forgotten it.
    pub(super) fn describe(&self) -> String {
        match self.text("id") {
            Some(id) => format!("{} ({id})", self.address),
            None => self.address.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_a_list_of_resources_by_their_addresses() {
        let state = json!({"version": 4, "resources": [
            {"mode": "data", "type": "a_zone", "name": "all", "instances": [{"attributes": {"id": "x"}}]},
            {"mode": "managed", "type": "a_disk", "name": "etcd", "instances": [
                {"index_key": "main-a", "attributes": {"id": "disks/1", "locked": true}},
                {"index_key": 0, "attributes": {"password": "secret"}},
            ]},
            {"mode": "managed", "module": "module.m[\"k\"]", "type": "a_group", "name": "own", "instances": [{}]},
        ]});
        let made = Resource::parse_all(state.to_string().as_bytes());
        let told: Vec<String> = made.iter().map(Resource::describe).collect();
        assert_eq!(told, ["a_disk.etcd[\"main-a\"] (disks/1)", "a_disk.etcd[0]", "module.m[\"k\"].a_group.own"]);
        assert!(made[0].is("locked") && !made[0].is("id") && !made[1].is("locked"));
        assert_eq!(Resource::parse_all(b"half of a st"), []);
    }
}
