//! Random configurations for real: what `config check` takes becomes a cluster that is Ready, whose
//! pods and Services work, and that runs with what was declared. `random_tests` draws them.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;

use serde_json::{Value, json};

use crate::cluster_support::{Site, say};

/// Puts the answers of one object into another one.
fn merge(into: &mut Value, from: &Value) {
    match (into.as_object_mut(), from.as_object()) {
        (Some(into), Some(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        _ => into.clone_from(from),
    }
}

#[test]
#[ignore = "some minutes for each: make test-settings"]
fn cluster_of_a_random_configuration_is_ready() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/random");
    let mut files: Vec<_> = fs_err::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let Some(site) = Site::of_cluster("random", "10.123.23.0/24", 1) else { return };
        let mut config = site.json_of(".config.json");
        let drawn: Value = serde_json::from_str(&fs_err::read_to_string(&file).unwrap()).unwrap();
        merge(&mut config, &drawn);
        fs_err::write(site.dir.join(".config.json"), config.to_string()).unwrap();
        site.ok(&["config", "check"]);
        site.warm_cache();
        site.ok(&["up"]);
        assert_eq!(site.ready_nodes(), ["it-control-plane-0", "it-worker-0"], "{}", file.display());
        site.ok(&["validate"]);
        assert_eq!(site.ok(&["plan"]).out.trim(), "nothing to do", "{}", file.display());
        let status: Value = serde_json::from_str(&site.ok(&["status", "--output", "json"]).out).unwrap();
        assert_eq!(status["drifts"], json!([]), "{}", file.display());
        site.ok(&["down", "--yes"]);
        say(&format!("ready: {drawn}"));
    }
}
