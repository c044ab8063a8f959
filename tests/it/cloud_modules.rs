//! The Terraform modules of the clouds, with real Terraform and a provider that knows the real one's schema and makes nothing: every
//! configuration in `tests/terraform/<target>` is validated, planned, applied, planned again, and destroyed.
//!
//! What an API would say is not known here: `make test-clouds` asks emulators through the real providers.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cloud_support::{Module, profiles};

/// Every configuration of a target from nothing to nothing; returns what each hand-off says.
pub(crate) fn live_through(target: &str, provider: &str) -> BTreeMap<String, Value> {
    let mut handoffs = BTreeMap::new();
    for (name, config) in profiles(target) {
        let module = Module::with_stub(target, provider, &config);
        assert!(module.ok(&["fmt", "-check", "-diff"]).is_empty(), "{target} is not formatted");
        module.ok(&["validate"]);
        module.apply();
        assert_eq!(module.changes(), BTreeMap::new(), "{target} {name}: the second plan is not empty");
        let output: Value = serde_json::from_str(&module.ok(&["output", "-json"])).unwrap();
        handoffs.insert(name.clone(), output["handoff"]["value"].clone());
        module.ok(&["destroy", "-auto-approve"]);
        let left: Value = serde_json::from_str(&module.ok(&["show", "-json"])).unwrap();
        assert!(left["values"]["root_module"]["resources"].is_null(), "{target} {name}: {left}");
    }
    handoffs
}

#[test]
fn gce_in_every_profile() {
    let handoffs = live_through("gce", "google");
    assert!(handoffs.len() >= 8, "{:?}", handoffs.keys());
    insta::assert_snapshot!("gce_handoffs", format!("{:#}", serde_json::to_value(handoffs).unwrap()));
}
