//! Rounds of the addon-manager against a kubectl of files: what it applies, when, and that it takes
//! turns.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::*;

/// Answers from files of its directory; `apply` makes the objects what `applied.json` says.
const KUBECTL: &str = r#"#!/bin/sh
cd 'DIR' || exit 1
case "$*" in
*' get '*secrets*) cat secrets.json ;;
*' get '*lease*) cat lease.json 2>/dev/null || true ;;
*' get '*--filename=-*) cat > /dev/null; if [ -e kind-is-gone ]; then echo 'error: no matches for kind "Shop"' >&2; exit 1; fi; cat objects.json ;;
*' create '*|*' replace '*) cat > lease.json; cat lease.json; echo written >> calls ;;
*' apply '*) cat > manifest; if [ -e refused ]; then echo 'Error from server (Invalid): the port is taken' >&2; exit 1; fi
  rm -f kind-is-gone; cp applied.json objects.json; cat applied.json; echo apply >> calls ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
"#;

const MANIFEST: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: coredns, namespace: kube-system}\n---\n\
                        apiVersion: v1\nkind: ConfigMap\nmetadata: {name: coredns, namespace: kube-system}\n";

struct Fake {
    dir: tempfile::TempDir,
    manager: AddonManager,
}

impl Fake {
    /// A cluster that has both objects of one addon.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("kubectl");
        fs_err::write(&program, KUBECTL.replace("DIR", &dir.path().display().to_string())).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let manager = AddonManager {
            kubectl: Kubectl::new(program, "/nowhere".into()),
            lease: ApplyLease::new("cp-0".into()),
            known: BTreeMap::new(),
            failing: None,
        };
        let fake = Self { dir, manager };
        fake.keep("1", MANIFEST);
        fake.write("objects.json", &objects(&[("Deployment", 1), ("ConfigMap", 7)]));
        fake.write("applied.json", &objects(&[("Deployment", 1), ("ConfigMap", 7)]));
        fake
    }

    fn keep(&self, hash: &str, text: &str) {
        let addon = KeptManifest { name: "coredns".into(), hash: hash.into(), text: text.into() };
        self.write("secrets.json", &json!({"items": [addon.secret(0).unwrap()]}));
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        fs_err::write(self.path(name), value.to_string()).unwrap();
    }

    /// What a round says, and what it changed in the cluster.
    fn round(&mut self) -> (Vec<String>, usize) {
        fs_err::write(self.path("calls"), "").unwrap();
        let news = self.manager.tell_round();
        (news, fs_err::read_to_string(self.path("calls")).unwrap().matches("apply").count())
    }

    fn lease(&self) -> Value {
        serde_json::from_str(&fs_err::read_to_string(self.path("lease.json")).unwrap()).unwrap()
    }
}

fn objects(found: &[(&str, u64)]) -> Value {
    let item = |(kind, number): &(&str, u64)| match *kind {
        "Deployment" => json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "coredns", "namespace": "kube-system", "generation": number}}),
        _ => json!({"apiVersion": "v1", "kind": kind,
            "metadata": {"name": "coredns", "namespace": "kube-system", "resourceVersion": number.to_string()}}),
    };
    json!({"kind": "List", "items": found.iter().map(item).collect::<Vec<_>>()})
}

#[test]
fn what_was_deleted_or_changed_is_applied_again_and_all_else_is_left_alone() {
    let mut fake = Fake::new();
    assert_eq!(fake.round(), (vec![], 1), "it does not know yet how things were");
    assert_eq!(fake.round(), (vec![], 0));

    fake.write("objects.json", &objects(&[("Deployment", 1)]));
    let gone = "coredns: put right ConfigMap kube-system/coredns, which was gone";
    assert_eq!(fake.round(), (vec![gone.to_owned()], 1));
    assert_eq!(fake.round(), (vec![], 0));

    fake.write("objects.json", &objects(&[("Deployment", 2), ("ConfigMap", 7)]));
    fake.write("applied.json", &objects(&[("Deployment", 3), ("ConfigMap", 7)]));
    let changed = "coredns: put right Deployment kube-system/coredns, which was changed";
    assert_eq!(fake.round(), (vec![changed.to_owned()], 1));

    // Another one has set a field that the manifest does not have.
    fake.write("objects.json", &objects(&[("Deployment", 4), ("ConfigMap", 7)]));
    fake.write("applied.json", &objects(&[("Deployment", 4), ("ConfigMap", 7)]));
    assert_eq!(fake.round(), (vec![], 1));
    assert_eq!(fake.round(), (vec![], 0));

    fs_err::write(fake.path("kind-is-gone"), "").unwrap();
    assert_eq!(fake.round().1, 1, "kubectl says nothing then, and all is applied");
    assert_eq!(fake.lease()["spec"]["holderIdentity"], Value::Null, "others may apply again");
}

#[test]
fn a_new_form_of_a_manifest_is_applied_and_one_that_left_is_forgotten() {
    let mut fake = Fake::new();
    fake.round();
    fake.keep("2", MANIFEST);
    assert_eq!(fake.round().1, 1);
    assert_eq!(fake.round().1, 0);
    fake.write("secrets.json", &json!({"items": []}));
    fake.write("objects.json", &objects(&[]));
    assert_eq!(fake.round(), (vec![], 0), "to remove an addon is a run's work");
    assert!(fake.manager.known.is_empty());
}

#[test]
fn nothing_is_applied_while_another_one_holds_the_lease() {
    let mut fake = Fake::new();
    let held = json!({"metadata": {"resourceVersion": "5"},
        "spec": {"holderIdentity": "turnup@laptop", "leaseDurationSeconds": 600}});
    fake.write("lease.json", &held);
    assert_eq!(fake.round(), (vec![], 0));
    assert_eq!(fake.lease(), held);

    let mut free = held;
    free["spec"]["holderIdentity"] = Value::Null;
    fake.write("lease.json", &free);
    assert_eq!(fake.round().1, 1);
    let lease = fake.lease();
    assert_eq!((&lease["metadata"]["resourceVersion"], &lease["spec"]["leaseTransitions"]), (&json!("5"), &json!(1)));
}

#[test]
fn a_failure_is_told_once_and_tried_again() {
    let mut fake = Fake::new();
    fs_err::write(fake.path("refused"), "").unwrap();
    let (told, _) = fake.round();
    assert_eq!(told.len(), 1);
    assert!(told[0].starts_with("coredns cannot be applied: ") && told[0].contains("the port is taken"), "{told:?}");
    assert_eq!(fake.round(), (vec![], 0));
    fs_err::remove_file(fake.path("refused")).unwrap();
    assert_eq!(fake.round(), (vec![], 1));
}

#[test]
fn manifests_of_the_pod_network_come_first_and_all_other_own_ones_last() {
    let set = |name, objects: &[&str]| {
        let object = |name: &&str| OwnObject {
            group: String::new(),
            kind: "ConfigMap".into(),
            namespace: "default".into(),
            name: (*name).to_owned(),
        };
        super::super::own::OwnSet {
            name,
            setting: "phase3.manifests",
            text: name.to_owned(),
            hash: "0".into(),
            objects: objects.iter().map(object).collect(),
        }
    };
    let names = |sets: &[_]| {
        let all = KeptManifest::all(&[], sets);
        all.into_iter().map(|manifest| manifest.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[set("own", &["a"]), set("network", &["b"])]), ["network-manifests", "own-manifests"]);
    assert_eq!(names(&[set("own", &[])]), [""; 0]);
}
